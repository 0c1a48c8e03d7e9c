"""Tables 1 and 2 with recorded votes: about 33 texts a topic, every pair judged by five people.

The heap asks, and somebody who judged that pair answers.  A "person" here is one vote of each pair,
so several people; two of them share no vote.  Nobody graded these texts.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from pathlib import Path
from statistics import median

import numpy as np

from firstpage.data.formats.row_reader import NO_LIMITS, csv_rows
from firstpage.errors import DataError
from firstpage.labeling.simulation.simulate import Respond, drive
from firstpage.labeling.simulation.votes import Votes, read_votes
from firstpage.labeling.statistics.agreement import Agreement
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import Answer, Compare, Question, Task
from firstpage.papers.niu2012.assessors import K, by_pairs
from firstpage.papers.niu2012.labeling import agreed
from firstpage.papers.study.letor_protocol import seed_of
from firstpage.papers.study.study import Row

NAME = "UKPConvArg1"
TIMES = ("worker", "accept_time", "submit_time")
Answers = dict[tuple[int, int], int]


@lru_cache(maxsize=1)
def _topics(folder: str) -> list[Votes]:
    return read_votes(Path(folder) / "votes.csv")


def effort(rng: np.random.Generator, strategies: list[str], folder: str) -> list[Row]:
    """Judgments a topic, answered by votes; and by nobody in doubt, for the same numbers."""
    asked: dict[tuple[str, str], list[float]] = {}
    texts = [len(topic.documents) for topic in _topics(folder)]
    for topic in _topics(folder):
        seed, n = seed_of(rng), len(topic.documents)
        view = rng.standard_normal(n)
        for how in strategies:
            task = Task(n, K, seed)
            count = drive(strategy(how), task, topic.judge(rng))[0].asked
            asked.setdefault((NAME, how), []).append(count)
            sure = by_pairs(view, how, seed)[1]
            asked.setdefault((f"as many texts as {NAME}", how), []).append(sure)
    found: list[Row] = [
        {"data": data, "tool": how, "measure": "judgments", "value": float(np.mean(counts)),
         "queries": counts}
        for (data, how), counts in asked.items()
    ]  # fmt: skip
    each: Row = {"data": NAME, "tool": "all", "measure": "texts", "value": float(np.mean(texts))}
    return [*found, {**each, "queries": texts}]


def seconds(rng: np.random.Generator, folder: str) -> list[Row]:
    """The median of the seconds between accepting and submitting a sheet, by its pairs."""
    path = Path(folder) / "votes.csv"
    sheets: dict[tuple[str, ...], int] = {}
    with path.open("rb") as stream:
        for where, row in csv_rows(str(path), stream, NO_LIMITS):
            if any(name not in row for name in TIMES):
                raise DataError(f"{where}: lacks {', '.join(TIMES)}.")
            key = tuple(row[name] for name in TIMES)
            sheets[key] = sheets.get(key, 0) + 1
    spent = [(_time(end) - _time(start)) / n for (_, start, end), n in sheets.items()]
    return [
        {"data": NAME, "tool": "pairs on a sheet", "measure": "seconds", "value": median(spent)}
    ]


def _time(text: str) -> float:
    """`2016-01-31 16:53:19.0 UTC` in seconds."""
    try:
        return datetime.fromisoformat(text[:19]).timestamp()
    except ValueError:
        raise DataError(f"{text!r} is no time such as 2016-01-31 16:53:19.") from None


def agreement(rng: np.random.Generator, folder: str) -> list[Row]:
    """Table 2: the top-k labels of two "persons", and beside them their votes themselves."""
    tops, votes = [], []
    for topic in _topics(folder):
        one, other = _persons(topic, rng)
        tops.append(Agreement.of(_labels(topic, one, rng), _labels(topic, other, rng)))
        both = np.array([[answers[pair] for pair in one] for answers in (one, other)])
        votes.append(Agreement.between(*both))
    found = []
    for tool, each in (("top-k", tops), ("pairs", votes)):
        whole = Agreement(np.sum([table.counts for table in each], axis=0))
        found += agreed(whole, each, NAME, "votes", tool)
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
    task = Task(len(topic.documents), K, seed_of(rng))
    top = drive(strategy("heap"), task, _answering(answers))[0].found
    return dict(zip(topic.documents, map(float, top.labels(K)), strict=True))


def _answering(answers: Answers) -> Respond:
    def respond(question: Question) -> Answer:
        assert isinstance(question, Compare)
        outcome = answers.get(question.pair, 0)
        return Answer(outcome if question.first < question.second else -outcome)

    return respond
