"""Which weights are allowed: linear images of numbers that are not negative.

A better grade is worth no less at any place: a weight is a sum of steps, one from each grade to
the next, none below 0.  Non-increasing discounts are the same once more, over places.  So every
wish about order is a map, and the learning problem has no other constraint than steps >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class Cone:
    """table: from steps to the worth of every level at every place, 0 for the worst;
    weights: from steps to the weights whose size is penalised.

    Adding a number to all weights of a place changes no comparison, so that the smallest weights
    have the mean 0 at each place; with `nonnegative` they begin at 0 instead.
    """

    places: int
    levels: int
    table: Floats
    weights: Floats

    @cached_property
    def metric(self) -> Floats:
        """The penalty as a quadratic form of the steps."""
        form: Floats = self.weights.T @ self.weights
        return form

    @cached_property
    def smallest_eigenvalue(self) -> float:
        """Of the metric: how much the penalty curves in its flattest direction."""
        return float(np.linalg.eigvalsh(self.metric)[0])

    @cached_property
    def condition(self) -> float:
        """Of the metric: its largest eigenvalue over its smallest."""
        return float(np.linalg.eigvalsh(self.metric)[-1]) / self.smallest_eigenvalue


def cone(places: int, levels: int, nonnegative: bool = False, decreasing: bool = False) -> Cone:
    """All weights that grow with the grade; with `decreasing`, steps fall from place to place."""
    up: Floats = np.tri(levels, levels - 1, -1, np.float64)  # level l is the sum of the steps 1..l
    centred = up if nonnegative else up - up.mean(axis=0)
    along: Floats = (
        np.tri(places, dtype=np.float64).T if decreasing else np.eye(places)
    )  # a place is the sum of later ones
    table, weights = (np.asarray(np.kron(along, rows), np.float64) for rows in (up, centred))
    return Cone(places, levels, table, weights)
