"""Methods that give each document points, ranker by ranker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.method import Method, all_votes, by_points
from firstpage.data.groups import offsets_from_lengths
from firstpage.kernels.voting.votes import ABSENT, count_duels
from firstpage.registry import number
from firstpage.types import Floats, Ints

FINEST = 2.0**46  # the grid for points up to 1, which far down the lists differ by little


@dataclass(frozen=True)
class Borda(Method):
    """A ranker gives a document the number of those it puts below, less those it puts above.

    Documents that a ranker does not list share the points of the places that are left; with
    missing="silent" it gives them none, and counts among those that it lists.
    """

    about: ClassVar[str] = "the mean place in the rankers' lists"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        return by_points(borda_points(ballots, weights), ballots)


def borda_points(ballots: Ballots, weights: Floats) -> Floats:
    """Documents below less documents above, by each ranker, weighed."""
    points = np.zeros(ballots.places.shape[1])
    for places, weight in zip(ballots.places, weights, strict=True):
        listed = places != ABSENT
        counts = offsets_from_lengths(listed)[ballots.offsets]
        length = np.repeat(np.diff(counts), ballots.lengths)
        if ballots.missing == "silent":
            points += weight * np.where(listed, length - 1 - 2 * places, 0)
        else:
            full = np.repeat(ballots.lengths, ballots.lengths)
            points += weight * np.where(listed, full - 1 - 2 * places, -length)
    return points


@dataclass(frozen=True)
class RRF(Method):
    """Reciprocal rank fusion (Cormack et al. 2009): the sum of weight / (c + place), from place 1.

    A ranker gives nothing to documents that it does not list.
    """

    c: float = 60.0
    about: ClassVar[str] = "sums of 1 / (c + place)"

    def __post_init__(self) -> None:
        number(self, "c", low=0)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        points = np.zeros(ballots.places.shape[1])
        for places, weight in zip(ballots.places, weights, strict=True):
            shares = weight * (self.c + 1) / (self.c + 1 + places)
            points += np.where(places == ABSENT, 0.0, shares)
        return by_points(points, ballots, FINEST)


@dataclass(frozen=True)
class Copeland(Method):
    """Every two documents meet in a duel, which the weighed majority decides: won less lost."""

    about: ClassVar[str] = "majority duels won less lost"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        won = np.empty(ballots.places.shape[1])
        count_duels(ballots.places, weights, ballots.offsets, *all_votes(ballots), won)
        return by_points(won, ballots)
