"""Tables 1 to 3: effort of labeling and agreement of assessors, simulated and recorded.

Simulated assessors agree as those of Niu et al. (2012) did, and label as in section 4.1.

Recorded votes are on about 33 texts per topic; every pair was judged by five people.  The heap asks
for pairs, and one of the votes on the pair answers.  An "assessor" is one vote per pair, and so
combines several people; two assessors have no vote in common.  There are no grades of these texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from statistics import median

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.data.formats import NO_LIMITS, read_csv_rows
from firstpage.labeling import (
    SECONDS_PER_JUDGMENT,
    Agreement,
    Answer,
    Assignment,
    Compare,
    Grade,
    Labels,
    Question,
    Responder,
    TopKTask,
    Votes,
    by_query,
    compare_methods,
    make_assignment,
    read_votes,
    result_overlaps,
    run_strategy,
    strategy,
    top_labels,
    total,
)
from firstpage.papers.niu2012.printed import SIGNS
from firstpage.papers.study.letor_protocol import draw_seed
from firstpage.papers.study.study import Row


@dataclass(frozen=True)
class Crowd:
    """Simulated assessors.

    Attributes
    ----------
    noise : float
        Standard deviation of the perceived utility (the utility itself has 1).
    jitter : float
        Standard deviation of the boundaries between grades.
    boundary_quantiles : tuple of float
        Boundaries between grades, as quantiles of the utilities of a query.
    """

    noise: float = 0.5
    jitter: float = 0.35
    boundary_quantiles: tuple[float, ...] = (0.5, 0.7, 0.85, 0.95)

    def __post_init__(self) -> None:
        if self.noise < 0 or self.jitter < 0:
            raise DataError("noise and jitter must be numbers of at least 0.")
        quantiles = list(self.boundary_quantiles)
        if quantiles != sorted(quantiles) or not all(0 <= x <= 1 for x in quantiles):
            raise DataError(
                f"boundary_quantiles must be ascending numbers between 0 and 1; got {quantiles}."
            )

    def perceive(self, utility: Floats, rng: np.random.Generator) -> Floats:
        """Return the utilities of documents as one assessor perceives them."""
        return utility + self.noise * rng.standard_normal(len(utility))

    def grades(self, utility: Floats, rng: np.random.Generator) -> Floats:
        """Return the grades of one assessor, 0 the lowest; the boundaries shift together."""
        boundaries = (
            np.quantile(utility, self.boundary_quantiles) + self.jitter * rng.standard_normal()
        )
        return np.digitize(self.perceive(utility, rng), boundaries).astype(np.float64)


QUERIES, DOCUMENTS, K, FOLDS = 50, 50, 10, 5
ASSESSORS = ("U1", "U2", "U3", "U4", "U5")


@dataclass(frozen=True, eq=False)
class QueryJudgments:
    """Judgments of a query by two assessors, one with each tool."""

    top: tuple[int, ...]  # documents, the best first
    grades: Floats
    questions: int


def assignment_plan(queries: Sequence[str], replicates: int, seed: int) -> Assignment:
    """Return the assignment of the paper: U_i compares pairs of fold i and grades fold i + 1.

    A second replicate is shifted by two folds.
    """
    return make_assignment(queries, ASSESSORS, folds=FOLDS, replicates=replicates, seed=seed)


def assignment(queries: Sequence[str], replicates: int, seed: int) -> dict[str, str]:
    """Return the fold of each query, named by the assessor who labels its top."""
    tasks = assignment_plan(queries, replicates, seed).tasks
    return {t.query: t.assessor for t in tasks if t.tool == "pairs" and t.replicate == 0}


def label_query(crowd: Crowd, utility: Floats, rng: np.random.Generator) -> QueryJudgments:
    """Return the judgments of a query by two assessors, by pairs and by grades."""
    top, questions = label_top_k(crowd.perceive(utility, rng), "heap", int(rng.integers(2**31)))
    return QueryJudgments(top, crowd.grades(utility, rng), questions)


def label_top_k(
    perceived: Floats, strategy_name: str, seed: int, k: int = K
) -> tuple[tuple[int, ...], int]:
    """Return the top k of a strategy with a consistent assessor, and the number of questions."""
    task = TopKTask(len(perceived), k, seed)
    result = run_strategy(strategy(strategy_name), task, _consistent_answers(perceived))[0]
    return result.top_k.order, result.questions


def _consistent_answers(perceived: Floats) -> Responder:
    """Return the answers of an assessor who always compares these utilities."""

    def respond(question: Question) -> Answer:
        assert isinstance(question, Compare)
        return Answer(int(np.sign(perceived[question.first] - perceived[question.second])))

    return respond


SIMULATED = "simulated"
TOOLS = {"pairs": "top-k", "grades": "graded"}
DOUBLE_JUDGED = 4  # queries that two assessors of the paper judged, according to its chi-squares
ALPHA = 0.05


def simulated_effort(rng: np.random.Generator, strategies: list[str]) -> list[Row]:
    """Return judgments per query, and minutes at the seconds per judgment of the paper."""
    questions: dict[str, list[int]] = {}
    for _ in range(QUERIES):
        utility, seed = rng.standard_normal(DOCUMENTS), draw_seed(rng)
        perceived = Crowd().perceive(utility, rng)
        for name in strategies:  # all start with the same order and utilities
            questions.setdefault(name, []).append(label_top_k(perceived, name, seed)[1])
        grades = Crowd().grades(utility, rng)
        questions.setdefault("five-grade", []).append(_grading_questions(grades, seed))
    rows: list[Row] = []
    for name, counts in questions.items():
        minutes = SECONDS_PER_JUDGMENT["grades" if name == "five-grade" else "pairs"] / 60
        labels = {"data": SIMULATED, "tool": name}
        for measure, factor in (("judgments", 1.0), ("minutes at the paper's seconds", minutes)):
            values = [round(factor * n, 6) for n in counts]
            row = {**labels, "measure": measure, "value": float(np.mean(values))}
            rows.append({**row, "queries": values})
    return rows


def _grading_questions(grades: Floats, seed: int) -> int:
    """Return the number of questions of the grading tool."""

    def respond(question: Question) -> Answer:
        assert isinstance(question, Grade)
        return Answer(int(grades[question.document]))

    return run_strategy(strategy("five-grade"), TopKTask(len(grades), K, seed), respond)[
        0
    ].questions


def heap_growth(rng: np.random.Generator, sizes: list[int], tops: list[int]) -> list[Row]:
    """Return judgments of the heap by number of documents and k."""
    rows = []
    for n in sizes:
        for k in tops:
            _, questions = label_top_k(rng.standard_normal(n), "heap", draw_seed(rng), k)
            labels = {"data": "random order", "documents": n, "k": k}
            rows.append({**labels, "measure": "judgments", "value": float(questions)})
    return rows


def simulated_agreement(rng: np.random.Generator, noise: float) -> list[Row]:
    """Return the rows of Tables 2 and 3: every query by two assessors with each tool.

    All four assessors differ.  `noise` is that of graders; those who compare have the default.
    """
    results = _results(rng, Crowd(noise=noise))
    name = "simulated assessors" if noise == Crowd().noise else f"grading noise {noise:g}"
    rows = []
    for tool, label_kind in TOOLS.items():
        overlaps = result_overlaps(results, tool)
        query_tables = list(by_query(overlaps).values())
        rows += agreement_rows(total(overlaps), query_tables, SIMULATED, name, label_kind)
    return rows


def agreement_rows(
    overall: Agreement, query_tables: list[Agreement], data: str, name: str, tool: str
) -> list[Row]:
    """Return the rows of a table of agreement, and of its statistics with values per query.

    Tables are symmetrized, so that chance and kappa do not depend on the order of documents.
    """
    matrix = {"data": data, "matrix": f"{tool}, {name}"}
    rows: list[Row] = [
        {**matrix, "assessor 1": row, "assessor 2": column, "value": float(overall.table[i, j])}
        for i, row in enumerate(SIGNS)
        for j, column in enumerate(SIGNS)
    ]
    statistic_labels = {"data": data, "assessors": name, "tool": tool}
    symmetric = [table.symmetrized() for table in query_tables]
    for measure in ("overall", "without_ties", "chance", "kappa"):
        values = [round(float(getattr(table, measure)), 6) for table in symmetric]
        row = {**statistic_labels, "measure": measure.replace("_", " "), "queries": values}
        rows.append({**row, "value": float(getattr(overall.symmetrized(), measure))})
    tie_fractions = [round(table.ties[0], 6) for table in symmetric]
    ties = {**statistic_labels, "measure": "ties", "queries": tie_fractions}
    return [*rows, {**ties, "value": overall.symmetrized().ties[0]}]


def false_positive_rates(rng: np.random.Generator) -> list[Row]:
    """Return how often a chi-square test of four queries against four others is significant.

    Both are judged with the same tool: the null hypothesis is true.  The test assumes independent
    pairs, but the pairs of a query are dependent.
    """
    results = _results(rng, Crowd())
    rows: list[Row] = []
    for tool, label_kind in TOOLS.items():
        tables = list(by_query(result_overlaps(results, tool)).values())
        groups = [
            tables[i : i + DOUBLE_JUDGED]
            for i in range(0, len(tables) - DOUBLE_JUDGED + 1, DOUBLE_JUDGED)
        ]
        sums = [Agreement(np.sum([table.counts for table in group], axis=0)) for group in groups]
        tests = [compare_methods(*pair) for pair in zip(sums[::2], sums[1::2], strict=True)]
        for statistic in ("overall", "without_ties"):
            rate = float(np.mean([test[statistic].p < ALPHA for test in tests]))
            labels = {"data": SIMULATED, "test": f"{label_kind}, 4 queries against 4"}
            rows.append({**labels, "statistic": statistic.replace("_", " "), "value": rate})
    return rows


def _results(rng: np.random.Generator, graders: Crowd) -> dict[tuple[str, str, str], Labels]:
    """Return final labels by query, assessor and tool, assigned as in section 4.1.1."""
    queries = [f"q{i:02}" for i in range(QUERIES)]
    names = [f"d{i:02}" for i in range(DOCUMENTS)]
    utility = {query: rng.standard_normal(DOCUMENTS) for query in queries}
    labels: dict[tuple[str, str, str], Labels] = {}
    for task in assignment_plan(queries, 2, draw_seed(rng)).tasks:
        query_utility, key = utility[task.query], (task.query, task.assessor, task.tool)
        if task.tool == "pairs":
            top, _ = label_top_k(Crowd().perceive(query_utility, rng), "heap", draw_seed(rng))
            labels[key] = top_labels([names[i] for i in top], names, K)
        else:
            labels[key] = dict(zip(names, graders.grades(query_utility, rng).tolist(), strict=True))
    return labels


VOTES_DATA = "UKPConvArg1"
TIME_COLUMNS = ("worker", "accept_time", "submit_time")
Answers = dict[tuple[int, int], int]


@lru_cache(maxsize=1)
def _topics(folder: str) -> list[Votes]:
    return read_votes(Path(folder) / "votes.csv")


def voted_effort(rng: np.random.Generator, strategies: list[str], folder: str) -> list[Row]:
    """Return judgments per topic, answered by votes, and by consistent simulated assessors."""
    questions: dict[tuple[str, str], list[float]] = {}
    texts = [len(topic.documents) for topic in _topics(folder)]
    for topic in _topics(folder):
        seed, n = draw_seed(rng), len(topic.documents)
        utility = rng.standard_normal(n)
        for name in strategies:
            task = TopKTask(n, K, seed)
            count = run_strategy(strategy(name), task, topic.responder(rng))[0].questions
            questions.setdefault((VOTES_DATA, name), []).append(count)
            consistent = label_top_k(utility, name, seed)[1]
            questions.setdefault((f"as many texts as {VOTES_DATA}", name), []).append(consistent)
    rows: list[Row] = [
        {
            "data": data,
            "tool": name,
            "measure": "judgments",
            "value": float(np.mean(counts)),
            "queries": counts,
        }
        for (data, name), counts in questions.items()
    ]
    text_row: Row = {"data": VOTES_DATA, "tool": "all", "measure": "texts"}
    return [*rows, {**text_row, "value": float(np.mean(texts)), "queries": texts}]


def seconds_per_pair(rng: np.random.Generator, folder: str) -> list[Row]:
    """Return the median seconds per pair between accepting and submitting a sheet."""
    path = Path(folder) / "votes.csv"
    sheets: dict[tuple[str, ...], int] = {}
    with path.open("rb") as stream:
        for location, row in read_csv_rows(str(path), stream, NO_LIMITS):
            if any(name not in row for name in TIME_COLUMNS):
                raise DataError(f"{location}: the columns {', '.join(TIME_COLUMNS)} are required.")
            key = tuple(row[name] for name in TIME_COLUMNS)
            sheets[key] = sheets.get(key, 0) + 1
    durations = [
        (_parse_time(end) - _parse_time(start)) / n for (_, start, end), n in sheets.items()
    ]
    return [
        {
            "data": VOTES_DATA,
            "tool": "pairs on a sheet",
            "measure": "seconds",
            "value": median(durations),
        }
    ]


def _parse_time(text: str) -> float:
    """Return a time such as `2016-01-31 16:53:19.0 UTC` in seconds."""
    try:
        return datetime.fromisoformat(text[:19]).timestamp()
    except ValueError:
        raise DataError(f"{text!r} is not a time such as 2016-01-31 16:53:19.") from None


def voted_agreement(rng: np.random.Generator, folder: str) -> list[Row]:
    """Return the rows of Table 2: agreement of top-k labels of two "assessors", and of votes."""
    tops, votes = [], []
    for topic in _topics(folder):
        first, second = _draw_two_votes(topic, rng)
        tops.append(
            Agreement.from_labels(
                _top_k_labels(topic, first, rng), _top_k_labels(topic, second, rng)
            )
        )
        relations = np.array([[answers[pair] for pair in first] for answers in (first, second)])
        votes.append(Agreement.from_relations(*relations))
    rows = []
    for tool, tables in (("top-k", tops), ("pairs", votes)):
        overall = Agreement(np.sum([table.counts for table in tables], axis=0))
        rows += agreement_rows(overall, tables, VOTES_DATA, "votes", tool)
    return rows


def _draw_two_votes(topic: Votes, rng: np.random.Generator) -> tuple[Answers, Answers]:
    """Return two different votes of every pair that has at least two."""
    drawn = {
        pair: rng.choice(votes, 2, replace=False).tolist()
        for pair, votes in topic.outcomes.items()
        if len(votes) > 1
    }
    first, second = ({pair: votes[i] for pair, votes in drawn.items()} for i in (0, 1))
    return first, second


def _top_k_labels(topic: Votes, answers: Answers, rng: np.random.Generator) -> dict[str, float]:
    task = TopKTask(len(topic.documents), K, draw_seed(rng))
    top = run_strategy(strategy("heap"), task, _recorded_answers(answers))[0].top_k
    return dict(top_labels([topic.documents[d] for d in top.order], topic.documents, K))


def _recorded_answers(answers: Answers) -> Responder:
    def respond(question: Question) -> Answer:
        assert isinstance(question, Compare)
        outcome = answers.get(question.pair, 0)
        return Answer(outcome if question.first < question.second else -outcome)

    return respond
