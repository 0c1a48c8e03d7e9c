"""What a method of aggregation is: a frozen value with an `order` of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.weights import normalized
from firstpage.data.groups import ranked
from firstpage.kernels.voting.votes import ABSENT
from firstpage.types import Floats, Ints, Words

FINE = 2.0**30  # points that are equal but for rounding become equal on this grid
EVERY = 2 * ABSENT  # a place beyond all


@dataclass(frozen=True)
class Method:
    """Base of all methods.  `order` is deterministic: equals stand in base order.

    `str(method)` is a text that `method()` parses.
    """

    about: ClassVar[str] = ""  # one line, for the manual

    def __str__(self) -> str:
        given = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return type(self).__name__ + (f"({', '.join(given)})" if given else "")

    def order(self, ballots: Ballots, weights: Iterable[float] | None = None) -> Ints:
        """Each query's candidates from best to worst, by their numbers in base order."""
        return self._order(ballots, normalized(weights, ballots.rankers))

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        raise AssertionError(f"{type(self).__name__} has no order")  # every subclass has its own


def by_points(points: Floats, ballots: Ballots, fine: float = FINE) -> Ints:
    """Candidates by points, most first; equal ones in base order."""
    order, _ = ranked(np.rint(points * fine), ballots.offsets)
    return order - np.repeat(ballots.offsets[:-1], ballots.lengths)


def all_votes(ballots: Ballots) -> tuple[Ints, Ints]:
    """`top` and `reach` of every query, as kernels take them, where no vote is left out."""
    size = len(ballots)
    return np.full(size, EVERY, np.int64), np.full(size, ballots.reach, np.int64)


def room(ballots: Ballots, numbers: int = 1) -> Ints:
    """Workspace of so many numbers a candidate of the longest query."""
    return np.empty(max(2, numbers * ballots.longest), np.int64)


def pair_table(ballots: Ballots) -> Floats:
    """Workspace for one number a pair of candidates."""
    return np.empty(ballots.longest**2)


def bit_rows(ballots: Ballots) -> tuple[Words, Words]:
    """Workspace for two bits a pair of candidates."""
    size = ballots.longest * ((ballots.longest + 63) // 64)
    return np.empty(size, np.uint64), np.empty(size, np.uint64)
