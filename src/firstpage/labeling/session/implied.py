"""Questions that were asked, that are implied by the answers, and that were never needed.

Implied pairs can be probed: asked although their outcome is known, so that the transitivity of an
assessor's answers is measured and not assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.labeling.session.events import Judgment
from firstpage.labeling.strategies.sorting import KnownOutcomes
from firstpage.labeling.strategies.strategy import Answer, Compare


@dataclass(frozen=True)
class QuestionCounts:
    """The pairs of a query's documents, by how their order is known.

    Attributes
    ----------
    asked : int
        Pairs that were answered; an answer to a hidden repeat does not count twice.
    implied : int
        Other pairs whose outcome follows from answers: by transitivity, or since one document
        was flagged as bad.
    pruned : int
        The remaining pairs: the top k does not depend on them.
    """

    asked: int = 0
    implied: int = 0
    pruned: int = 0

    def __add__(self, other: QuestionCounts) -> QuestionCounts:
        return QuestionCounts(
            self.asked + other.asked, self.implied + other.implied, self.pruned + other.pruned
        )


@dataclass(frozen=True)
class ProbeCounts:
    """Answers to implied pairs that were asked nevertheless; a contradiction is the opposite."""

    confirmed: int = 0
    tied: int = 0
    contradicted: int = 0

    @property
    def total(self) -> int:
        """The number of probes with an answer."""
        return self.confirmed + self.tied + self.contradicted

    def __add__(self, other: ProbeCounts) -> ProbeCounts:
        return ProbeCounts(
            self.confirmed + other.confirmed,
            self.tied + other.tied,
            self.contradicted + other.contradicted,
        )


class Closure:
    """The transitive closure of the strict answers to questions of the strategy."""

    def __init__(self, documents: Sequence[str]) -> None:
        self.documents = tuple(documents)
        self._index = {name: i for i, name in enumerate(self.documents)}
        self._known = KnownOutcomes(len(self.documents), "closure")
        self.asked: set[tuple[int, int]] = set()

    def learn(self, judgments: Iterable[Judgment]) -> Closure:
        """Add judgments: all count as asked, and those of the strategy enter the closure."""
        for judgment in judgments:
            question = self._question(judgment)
            if question is None or judgment.skipped:
                continue
            self.asked.add(question.pair)
            if judgment.kind == "judgment":
                sign = (judgment.outcome > 0) - (judgment.outcome < 0)
                bad = frozenset(self._index[name] for name in judgment.bad)
                self._known.learn(question, Answer(sign, bad))
        return self

    def outcome(self, judgment: Judgment) -> int | None:
        """Return the implied outcome of a judgment's pair, from the left; None if it is open."""
        question = self._question(judgment)
        return None if question is None else self._known.outcome(question)

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs, better document first, that follow by transitivity alone."""
        names, bad = self.documents, self._known.bad
        return [
            (names[better], names[worse])
            for better, below in enumerate(self._known.worse)
            for worse in _bits(below)
            if (min(better, worse), max(better, worse)) not in self.asked
            and better not in bad
            and worse not in bad
        ]

    def counts(self) -> QuestionCounts:
        """Return how many pairs were asked, are implied, and were never needed."""
        n, bad = len(self.documents), self._known.bad
        total, n_bad = n * (n - 1) // 2, len(bad)
        implied = len(self.pairs())
        with_bad = n_bad * (n - n_bad) + n_bad * (n_bad - 1) // 2  # all of these are known
        implied += with_bad - sum(first in bad or second in bad for first, second in self.asked)
        return QuestionCounts(len(self.asked), implied, total - len(self.asked) - implied)

    def _question(self, judgment: Judgment) -> Compare | None:
        if judgment.right is None or judgment.left == judgment.right:
            return None
        first, second = self._index.get(judgment.left), self._index.get(judgment.right)
        return None if first is None or second is None else Compare(first, second)


def question_counts(documents: Sequence[str], judgments: Iterable[Judgment]) -> QuestionCounts:
    """Return how many pairs of a query were asked, are implied, and were never needed."""
    return Closure(documents).learn(judgments).counts()


def probe_counts(documents: Sequence[str], judgments: Iterable[Judgment]) -> ProbeCounts:
    """Return how the answers to probes compare with what the answers before them imply."""
    closure, counts = Closure(documents), ProbeCounts()
    for judgment in judgments:
        if judgment.kind == "probe" and not judgment.skipped:
            implied = closure.outcome(judgment)
            sign = (judgment.outcome > 0) - (judgment.outcome < 0)
            if implied:  # a revision of an earlier answer can open the pair again
                counts += ProbeCounts(sign == implied, sign == 0, sign == -implied)
        closure.learn([judgment])
    return counts


def probe(
    documents: Sequence[str], log: Sequence[Judgment], rng: np.random.Generator
) -> tuple[str, str] | None:
    """Return an implied pair that was not asked yet, in random order; None if there is none."""
    pairs = Closure(documents).learn(log).pairs()
    if not pairs:
        return None
    pair = pairs[int(rng.integers(len(pairs)))]
    return (pair[1], pair[0]) if rng.random() < 0.5 else pair


def _bits(mask: int) -> Iterable[Any]:
    """Yield the positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
