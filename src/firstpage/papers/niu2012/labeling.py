"""Tables 1 to 3: what labeling costs, and how far two people agree, simulated and recorded.

Simulated assessors agree as those of Niu et al. (2012) did, and label as in section 4.1.

Recorded votes are of about 33 texts a topic, every pair judged by five people.  The heap asks, and
somebody who judged that pair answers.  A "person" there is one vote of each pair, so several
people; two of them share no vote.  Nobody graded these texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from statistics import median

import numpy as np

from firstpage.data.formats.row_reader import NO_LIMITS, read_csv_rows
from firstpage.errors import DataError
from firstpage.labeling.planning.assignment import make_assignment
from firstpage.labeling.planning.tasks import Assignment
from firstpage.labeling.simulation.simulate import Responder, run_strategy
from firstpage.labeling.simulation.votes import Votes, read_votes
from firstpage.labeling.statistics.agreement import (
    Agreement,
    by_query,
    compare_methods,
    result_overlaps,
    total,
)
from firstpage.labeling.statistics.effort import SECONDS_PER_JUDGMENT
from firstpage.labeling.statistics.records import Labels
from firstpage.labeling.statistics.relations import top_labels
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import Answer, Compare, Grade, Question, TopKTask
from firstpage.papers.niu2012.printed import SIGNS
from firstpage.papers.study.letor_protocol import seed_of
from firstpage.papers.study.study import Row
from firstpage.types import Floats


@dataclass(frozen=True)
class Crowd:
    """How people see: `noise` is the sd of a utility (itself of sd 1), `jitter` that of the lines.

    `lines` between grades are quantiles of a query's utilities.
    """

    noise: float = 0.5
    jitter: float = 0.35
    lines: tuple[float, ...] = (0.5, 0.7, 0.85, 0.95)

    def __post_init__(self) -> None:
        if self.noise < 0 or self.jitter < 0:
            raise DataError("noise and jitter must be numbers from 0 on.")
        if list(self.lines) != sorted(self.lines) or not all(0 <= x <= 1 for x in self.lines):
            raise DataError(f"lines must ascend between 0 and 1; got {self.lines}.")

    def seen(self, utility: Floats, rng: np.random.Generator) -> Floats:
        """One person's view of the documents."""
        return utility + self.noise * rng.standard_normal(len(utility))

    def grades(self, utility: Floats, rng: np.random.Generator) -> Floats:
        """One person's grades, 0 the worst; the lines move together."""
        lines = np.quantile(utility, self.lines) + self.jitter * rng.standard_normal()
        return np.digitize(self.seen(utility, rng), lines).astype(np.float64)


QUERIES, DOCUMENTS, K, FOLDS = 50, 50, 10, 5
PEOPLE = ("U1", "U2", "U3", "U4", "U5")


@dataclass(frozen=True, eq=False)
class Labeled:
    """What two people found of a query, one by each tool."""

    top: tuple[int, ...]  # documents, the best first
    grades: Floats
    asked: int


def plan(queries: Sequence[str], replicates: int, seed: int) -> Assignment:
    """U_i does fold i with pairs and fold i + 1 with grades; a second time shifted by two."""
    return make_assignment(queries, PEOPLE, folds=FOLDS, replicates=replicates, seed=seed)


def assignment(queries: Sequence[str], replicates: int, seed: int) -> dict[str, str]:
    """The fold of each query, by the name of who labels its top."""
    found = plan(queries, replicates, seed)
    return {t.query: t.assessor for t in found.tasks if t.tool == "pairs" and t.replicate == 0}


def labeled(crowd: Crowd, utility: Floats, rng: np.random.Generator) -> Labeled:
    """A query judged by one person with pairs, and by another one with grades."""
    top, asked = by_pairs(crowd.seen(utility, rng), "heap", int(rng.integers(2**31)))
    return Labeled(top, crowd.grades(utility, rng), asked)


def by_pairs(view: Floats, how: str, seed: int, k: int = K) -> tuple[tuple[int, ...], int]:
    """The top k that a strategy finds with a person of this view, and how many pairs it asks."""
    end = run_strategy(strategy(how), TopKTask(len(view), k, seed), _sure(view))[0]
    return end.top_k.order, end.questions


def _sure(view: Floats) -> Responder:
    def respond(question: Question) -> Answer:
        assert isinstance(question, Compare)
        return Answer(int(np.sign(view[question.first] - view[question.second])))

    return respond


SIMULATED = "simulated"
TOOLS = {"pairs": "top-k", "grades": "graded"}
DOUBLY = 4  # queries that two of the paper's people judged, as its chi-squares tell
RARE = 0.05


def effort(rng: np.random.Generator, strategies: list[str]) -> list[Row]:
    """Judgments a query, and minutes at the seconds a judgment that the paper measured."""
    asked: dict[str, list[int]] = {}
    for _ in range(QUERIES):
        utility, seed = rng.standard_normal(DOCUMENTS), seed_of(rng)
        view = Crowd().seen(utility, rng)
        for how in strategies:  # all begin with the same order of the same view
            asked.setdefault(how, []).append(by_pairs(view, how, seed)[1])
        asked.setdefault("five-grade", []).append(_graded(Crowd().grades(utility, rng), seed))
    found: list[Row] = []
    for how, counts in asked.items():
        each = SECONDS_PER_JUDGMENT["grades" if how == "five-grade" else "pairs"] / 60
        labels = {"data": SIMULATED, "tool": how}
        for measure, factor in (("judgments", 1.0), ("minutes at the paper's seconds", each)):
            values = [round(factor * n, 6) for n in counts]
            row = {**labels, "measure": measure, "value": float(np.mean(values))}
            found.append({**row, "queries": values})
    return found


def _graded(grades: Floats, seed: int) -> int:
    """How many questions the tool for grades asks."""

    def respond(question: Question) -> Answer:
        assert isinstance(question, Grade)
        return Answer(int(grades[question.document]))

    return run_strategy(strategy("five-grade"), TopKTask(len(grades), K, seed), respond)[
        0
    ].questions


def growth(rng: np.random.Generator, sizes: list[int], tops: list[int]) -> list[Row]:
    """Judgments of the heap by the number of documents and k, and at worst."""
    found = []
    for n in sizes:
        for k in tops:
            _, asked = by_pairs(rng.standard_normal(n), "heap", seed_of(rng), k)
            labels = {"data": "any order", "documents": n, "k": k}
            found.append({**labels, "measure": "judgments", "value": float(asked)})
    return found


def agreement(rng: np.random.Generator, noise: float) -> list[Row]:
    """Tables 2 and 3: every query by two people with each tool, all four different.

    noise  of those who grade; those who compare have the crowd's
    """
    results = _results(rng, Crowd(noise=noise))
    name = "simulated assessors" if noise == Crowd().noise else f"grading noise {noise:g}"
    found = []
    for tool, called in TOOLS.items():
        overlaps = result_overlaps(results, tool)
        found += agreed(total(overlaps), list(by_query(overlaps).values()), SIMULATED, name, called)
    return found


def agreed(whole: Agreement, each: list[Agreement], data: str, name: str, tool: str) -> list[Row]:
    """Rows of a table of agreement, and of its figures; `each`: its queries.

    Chance and kappa must not depend on what documents are called.
    """
    matrix = {"data": data, "matrix": f"{tool}, {name}"}
    found: list[Row] = [
        {**matrix, "said": row, "other": column, "value": float(whole.table[i, j])}
        for i, row in enumerate(SIGNS)
        for j, column in enumerate(SIGNS)
    ]
    summary = {"data": data, "summary": name, "tool": tool}
    ways = [both.symmetrized() for both in each]
    for measure in ("overall", "without_ties", "chance", "kappa"):
        values = [round(float(getattr(way, measure)), 6) for way in ways]
        row = {**summary, "measure": measure.replace("_", " "), "queries": values}
        found.append({**row, "value": float(getattr(whole.symmetrized(), measure))})
    ties = {**summary, "measure": "ties", "queries": [round(way.ties[0], 6) for way in ways]}
    return [*found, {**ties, "value": whole.symmetrized().ties[0]}]


def alarms(rng: np.random.Generator) -> list[Row]:
    """How often a chi-square of four queries against four others, by one tool, finds a difference.

    There is none; the test takes pairs for independent, and those of one query are not.
    """
    results = _results(rng, Crowd())
    found: list[Row] = []
    for tool, called in TOOLS.items():
        tables = list(by_query(result_overlaps(results, tool)).values())
        fours = [tables[i : i + DOUBLY] for i in range(0, len(tables) - DOUBLY + 1, DOUBLY)]
        sums = [Agreement(np.sum([table.counts for table in four], axis=0)) for four in fours]
        tests = [compare_methods(*two) for two in zip(sums[::2], sums[1::2], strict=True)]
        for figure in ("overall", "without_ties"):
            rare = float(np.mean([test[figure].p < RARE for test in tests]))
            labels = {"data": SIMULATED, "test": f"{called}, 4 queries against 4"}
            found.append({**labels, "finds": figure.replace("_", " "), "value": rare})
    return found


def _results(rng: np.random.Generator, graders: Crowd) -> dict[tuple[str, str, str], Labels]:
    """Final labels by query, person and tool, dealt out as in section 4.1.1."""
    queries = [f"q{i:02}" for i in range(QUERIES)]
    names = [f"d{i:02}" for i in range(DOCUMENTS)]
    utility = {query: rng.standard_normal(DOCUMENTS) for query in queries}
    found: dict[tuple[str, str, str], Labels] = {}
    for task in plan(queries, 2, seed_of(rng)).tasks:
        worth, key = utility[task.query], (task.query, task.assessor, task.tool)
        if task.tool == "pairs":
            top, _ = by_pairs(Crowd().seen(worth, rng), "heap", seed_of(rng))
            found[key] = top_labels([names[i] for i in top], names, K)
        else:
            found[key] = dict(zip(names, graders.grades(worth, rng).tolist(), strict=True))
    return found


VOTED = "UKPConvArg1"
TIMES = ("worker", "accept_time", "submit_time")
Answers = dict[tuple[int, int], int]


@lru_cache(maxsize=1)
def _topics(folder: str) -> list[Votes]:
    return read_votes(Path(folder) / "votes.csv")


def voted_effort(rng: np.random.Generator, strategies: list[str], folder: str) -> list[Row]:
    """Judgments a topic, answered by votes; and by nobody in doubt, for the same numbers."""
    asked: dict[tuple[str, str], list[float]] = {}
    texts = [len(topic.documents) for topic in _topics(folder)]
    for topic in _topics(folder):
        seed, n = seed_of(rng), len(topic.documents)
        view = rng.standard_normal(n)
        for how in strategies:
            task = TopKTask(n, K, seed)
            count = run_strategy(strategy(how), task, topic.responder(rng))[0].questions
            asked.setdefault((VOTED, how), []).append(count)
            sure = by_pairs(view, how, seed)[1]
            asked.setdefault((f"as many texts as {VOTED}", how), []).append(sure)
    found: list[Row] = [
        {"data": data, "tool": how, "measure": "judgments", "value": float(np.mean(counts)),
         "queries": counts}
        for (data, how), counts in asked.items()
    ]  # fmt: skip
    each: Row = {"data": VOTED, "tool": "all", "measure": "texts", "value": float(np.mean(texts))}
    return [*found, {**each, "queries": texts}]


def seconds(rng: np.random.Generator, folder: str) -> list[Row]:
    """The median of the seconds between accepting and submitting a sheet, by its pairs."""
    path = Path(folder) / "votes.csv"
    sheets: dict[tuple[str, ...], int] = {}
    with path.open("rb") as stream:
        for where, row in read_csv_rows(str(path), stream, NO_LIMITS):
            if any(name not in row for name in TIMES):
                raise DataError(f"{where}: lacks {', '.join(TIMES)}.")
            key = tuple(row[name] for name in TIMES)
            sheets[key] = sheets.get(key, 0) + 1
    spent = [(_time(end) - _time(start)) / n for (_, start, end), n in sheets.items()]
    return [
        {"data": VOTED, "tool": "pairs on a sheet", "measure": "seconds", "value": median(spent)}
    ]


def _time(text: str) -> float:
    """`2016-01-31 16:53:19.0 UTC` in seconds."""
    try:
        return datetime.fromisoformat(text[:19]).timestamp()
    except ValueError:
        raise DataError(f"{text!r} is no time such as 2016-01-31 16:53:19.") from None


def voted_agreement(rng: np.random.Generator, folder: str) -> list[Row]:
    """Table 2: the top-k labels of two "persons", and beside them their votes themselves."""
    tops, votes = [], []
    for topic in _topics(folder):
        one, other = _persons(topic, rng)
        tops.append(Agreement.from_labels(_labels(topic, one, rng), _labels(topic, other, rng)))
        both = np.array([[answers[pair] for pair in one] for answers in (one, other)])
        votes.append(Agreement.from_relations(*both))
    found = []
    for tool, each in (("top-k", tops), ("pairs", votes)):
        whole = Agreement(np.sum([table.counts for table in each], axis=0))
        found += agreed(whole, each, VOTED, "votes", tool)
    return found


def _persons(topic: Votes, rng: np.random.Generator) -> tuple[Answers, Answers]:
    """Two different votes of every pair that has two."""
    drawn = {
        pair: rng.choice(votes, 2, replace=False).tolist()
        for pair, votes in topic.outcomes.items()
        if len(votes) > 1
    }
    return {pair: two[0] for pair, two in drawn.items()}, {p: two[1] for p, two in drawn.items()}


def _labels(topic: Votes, answers: Answers, rng: np.random.Generator) -> dict[str, float]:
    task = TopKTask(len(topic.documents), K, seed_of(rng))
    top = run_strategy(strategy("heap"), task, _answering(answers))[0].top_k
    return dict(zip(topic.documents, map(float, top.labels(K)), strict=True))


def _answering(answers: Answers) -> Responder:
    def respond(question: Question) -> Answer:
        assert isinstance(question, Compare)
        outcome = answers.get(question.pair, 0)
        return Answer(outcome if question.first < question.second else -outcome)

    return respond
