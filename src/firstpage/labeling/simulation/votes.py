"""Recorded votes of real people: a strategy asks, and one of those who voted answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstpage.data.formats.row_reader import read_file_cells
from firstpage.errors import DataError, at
from firstpage.labeling.belief.utilities import bradley_terry
from firstpage.labeling.strategies.strategy import Answer, Compare, Question
from firstpage.types import Floats

Respond = Callable[[Question], Answer]
COLUMNS = {
    "query": ("topic", "query", "qid"),
    "left": ("arg1", "left", "a"),
    "right": ("arg2", "right", "b"),
    "outcome": ("vote", "outcome", "label"),
}
OUTCOMES = {
    "a1": 1, "left": 1, "1": 1, "a2": -1, "right": -1, "-1": -1, "2": -1,
    "equal": 0, "tie": 0, "0": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Votes:
    """All votes on the pairs of one query: documents by number, outcomes as of the smaller one."""

    query: str
    documents: tuple[str, ...]
    outcomes: Mapping[tuple[int, int], tuple[int, ...]]

    @property
    def merit(self) -> Floats:
        """The truth: places from worst (0) to best by Bradley-Terry utilities of all votes.

        "equal" is half a win for each; documents of one utility stand in the order of their names.
        """
        rows = [(i, j, o) for (i, j), votes in self.outcomes.items() for o in votes]
        left, right, outcome = np.array(rows).T
        utilities = np.round(bradley_terry(len(self.documents), left, right, outcome), 9)
        merit = np.empty(len(utilities))
        merit[np.argsort(-utilities, kind="stable")] = np.arange(len(utilities))[::-1]
        return merit

    def judge(self, rng: np.random.Generator, equal: str = "tie") -> Respond:
        """One who answers as a random one of those who judged the pair did, with replacement.

        `equal`: "tie" hands it on as a tie, "coin" as a win by the flip of a coin.  A pair that
        nobody judged is a tie.
        """

        def respond(question: Question) -> Answer:
            if not isinstance(question, Compare):
                raise DataError("votes on pairs cannot answer for grades; take another strategy.")
            votes = self.outcomes.get(question.pair, (0,))
            outcome = votes[int(rng.integers(len(votes)))]
            if outcome == 0 and equal == "coin":
                outcome = 1 if rng.random() < 0.5 else -1
            return Answer(outcome if question.first < question.second else -outcome)

        return respond


def read_votes(path: Path | str) -> list[Votes]:
    """Votes of a CSV file with the columns topic, arg1, arg2, vote (a1, a2 or equal)."""
    found: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for query, left, right, outcome in _rows(read_file_cells(Path(path)), path):
        if right < left:
            left, right, outcome = right, left, -outcome
        found[query][left, right].append(outcome)
    if not found:
        raise DataError(f"{path}: holds no votes.")
    return [_gathered(query, pairs) for query, pairs in found.items()]


def _rows(
    table: Iterator[tuple[int, list[str]]], path: Path | str
) -> Iterator[tuple[str, str, str, int]]:
    columns: list[int] = []
    _, header = next(table, (1, []))
    for names in COLUMNS.values():
        place = next((i for i, name in enumerate(header) if name.strip().lower() in names), None)
        if place is None:
            raise DataError(f"{at(path, 1)}: has no column {' or '.join(names)}.")
        columns.append(place)
    for number, row in table:
        if len(row) <= max(columns):
            raise DataError(f"{at(path, number)}: has {len(row)} fields; the header has more.")
        query, left, right, vote = (row[c] for c in columns)
        outcome = OUTCOMES.get(vote.strip().lower())
        if outcome is None or left == right:
            what = "a text against itself" if left == right else f"the vote {vote!r}"
            raise DataError(f"{at(path, number)}: {what}; a vote is a1, a2 or equal of two texts.")
        yield query, left, right, outcome


def _gathered(query: str, pairs: Mapping[tuple[str, str], list[int]]) -> Votes:
    documents = sorted({name for pair in pairs for name in pair})
    number = {name: i for i, name in enumerate(documents)}
    outcomes = {(number[a], number[b]): tuple(votes) for (a, b), votes in pairs.items()}
    return Votes(query, tuple(documents), outcomes)
