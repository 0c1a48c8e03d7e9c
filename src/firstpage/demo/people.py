"""People who are programs: assessors who compare documents, editors who compare first pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from firstpage.data.utility import Utility
from firstpage.labeling.assessors import Text, Verdict
from firstpage.labeling.statistics.effort import SECONDS

Worth = Mapping[tuple[str, str], float]  # of (question, document)
SIGMA = 0.5  # of an assessor's error, where a step between grades is 1
BAD = 0.5  # what seems worth less than this is called clearly irrelevant
HASTE = 0.5  # spread of the logarithm of the seconds that an answer takes
# Whom the editors speak for: any right answer will do, and few read beyond the first places.
TASTE = Utility.of([0.0, 0.6, 0.85, 1.0], [1.0, 0.55, 0.3, 0.15, 0.1])
BLUR = 0.1  # of an editor's error; the worth of a page with one perfect first result is 1
ALIKE = 0.03  # pages nearer than this are called equally good


@dataclass
class _Person:
    """Somebody with a clock: answers take about as long as published ones did."""

    seed: int
    tool: str
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, 0])

    def seconds(self) -> float:
        """Lognormal, with the published mean."""
        normal = float(self.rng.standard_normal())
        return SECONDS[self.tool] * float(np.exp(HASTE * normal - HASTE * HASTE / 2))


@dataclass
class SimulatedAssessor(_Person):
    """Has a noisy copy of the true worth: what seems better to this person always does."""

    worth: Worth
    seems: dict[tuple[str, str], float] = field(default_factory=dict)

    def judge(self, query: str, left: Text, right: Text | None) -> Verdict:
        """Which of the two; documents that seem worth nothing are called bad."""
        assert right is not None
        one, two = (self._of(query, text.key) for text in (left, right))
        bad = tuple(t.key for t, v in ((left, one), (right, two)) if v < BAD)
        outcome = 0 if len(bad) == 2 else 1 if one > two else -1
        return Verdict(outcome, bad, {"seconds": self.seconds()})

    def _of(self, query: str, key: str) -> float:
        if (query, key) not in self.seems:
            mark = crc32(f"{query}\n{key}".encode())  # whatever was asked before
            error = np.random.default_rng([self.seed, 1, mark]).standard_normal()
            self.seems[query, key] = self.worth[query, key] + SIGMA * float(error)
        return self.seems[query, key]


@dataclass
class SimulatedEditor(_Person):
    """Compares two first pages by a taste that nobody else knows, and errs."""

    grades: Mapping[tuple[str, str], Sequence[int]]  # of (question, page), from the top

    def judge(self, query: str, left: Text, right: Text | None) -> Verdict:
        """Which page; 0 where they seem about as good."""
        assert right is not None
        apart = worth_of(self.grades[query, left.key]) - worth_of(self.grades[query, right.key])
        seems = apart + BLUR * float(self.rng.standard_normal())
        outcome = 0 if abs(seems) < ALIKE else 1 if seems > 0 else -1
        return Verdict(outcome, cost={"seconds": self.seconds()})


def worth_of(grades: Sequence[int]) -> float:
    """What a page is worth to the editors."""
    table = TASTE.table()
    return float(sum(table[place, grade] for place, grade in enumerate(grades)))
