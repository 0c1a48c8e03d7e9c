"""Which weights are allowed, and the gains and discounts that are nearest to them.

Allowed are linear images of numbers that are not negative.  A better grade is worth no less at any
place: a weight is a sum of steps, one from each grade to the next, none below 0.  Non-increasing
discounts are the same once more, over places.  So every wish about order is a map, and the learning
problem has no other constraint than steps >= 0.  Gains and discounts are the nearest matrix of rank
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.data.preferences.utility import Utility, normalize_gains
from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class Cone:
    """table: from steps to the worth of every level at every place, 0 for the worst;
    weights: from steps to the weights whose size is penalized.

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
    centered = up if nonnegative else up - up.mean(axis=0)
    along: Floats = (
        np.tri(places, dtype=np.float64).T if decreasing else np.eye(places)
    )  # a place is the sum of later ones
    table, weights = (np.asarray(np.kron(along, rows), np.float64) for rows in (up, centered))
    return Cone(places, levels, table, weights)


@dataclass(frozen=True, eq=False)
class Factors:
    """gains (0 to 1) of the grades upward, discounts (from 1) of the places.

    share: how much of the weights' size (squared) the two explain: 1 where gains do not depend on
    the place at all.
    """

    gains: Floats
    discounts: Floats
    share: float

    @property
    def table(self) -> Floats:
        """Discounts times gains."""
        return np.outer(self.discounts, self.gains)


def factors(table: Floats) -> Factors:
    """Of weights with a row a place and a column a grade, the worst of which is worth 0.

    Weights that grow with the grade have singular vectors of one sign, and gains that grow too.
    """
    u, sizes, v = np.linalg.svd(table, full_matrices=False)
    total = float(sizes @ sizes)
    if total == 0.0:
        return Factors(np.zeros(table.shape[1]), np.zeros(table.shape[0]), 1.0)
    sign = 1.0 if u[:, 0].sum() >= 0.0 else -1.0
    gains, discounts = normalize_gains(sign * v[0], sign * u[:, 0])
    return Factors(gains + 0.0, discounts + 0.0, float(sizes[0] ** 2) / total)  # no -0.0


def utility_of(grades: tuple[int, ...], table: Floats, about: dict[str, Any]) -> Utility:
    """Return the measure with these weights, and the gains and discounts nearest to them."""
    best = factors(table)
    return Utility(grades, table, best.gains, best.discounts, "gains", about)


def similarity(one: Floats, other: Floats) -> float:
    """Cosine of two tables of weights, each less its worst grade's, place by place."""
    a, b = ((w - w[:, :1]).ravel() for w in (one, other))
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size else 0.0
