"""The cone of admissible weights, and the gains and discounts nearest to given weights.

Admissible weights are linear images of nonnegative variables.  A better grade has at least the
weight of a worse one at every position, so that a weight is a sum of nonnegative steps, one from
each grade to the next.  Non-increasing discounts are the same construction over positions.  Every
order constraint is thus part of a linear map, and the learning problem keeps the single constraint
steps >= 0.  Gains and discounts are the factors of the nearest matrix of rank one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.data.preferences import Utility, normalize_gains


@dataclass(frozen=True, eq=False)
class Cone:
    """Linear maps from nonnegative steps to weights.

    Adding a constant to all weights of a position changes no comparison.  The penalized weights
    therefore have mean 0 at each position, or start at 0 with `nonnegative`.

    Attributes
    ----------
    positions : int
        Positions that the measure counts.
    levels : int
        Grades.
    table : ndarray
        Map from steps to the weight of every level at every position, 0 for the worst level.
    weights : ndarray
        Map from steps to the weights whose squared norm is penalized.
    """

    positions: int
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
        """The smallest eigenvalue of the metric: the lowest curvature of the penalty."""
        return float(np.linalg.eigvalsh(self.metric)[0])

    @cached_property
    def condition(self) -> float:
        """The condition number of the metric: its largest eigenvalue over its smallest."""
        return float(np.linalg.eigvalsh(self.metric)[-1]) / self.smallest_eigenvalue


def weight_cone(
    positions: int, levels: int, nonnegative: bool = False, decreasing: bool = False
) -> Cone:
    """Return the cone of weights that grow with the grade.

    With `decreasing`, the step between two grades does not grow from a position to the next.
    """
    # level l is the sum of the steps 1..l
    grade_sums: Floats = np.tri(levels, levels - 1, -1, np.float64)
    centered = grade_sums if nonnegative else grade_sums - grade_sums.mean(axis=0)
    # the step at a position is the sum of the variables from that position on
    position_sums: Floats = (
        np.tri(positions, dtype=np.float64).T if decreasing else np.eye(positions)
    )
    table, weights = (
        np.asarray(np.kron(position_sums, rows), np.float64) for rows in (grade_sums, centered)
    )
    return Cone(positions, levels, table, weights)


@dataclass(frozen=True, eq=False)
class RankOneFactors:
    """Gains and discounts whose product is nearest to a table of weights.

    Attributes
    ----------
    gains : ndarray
        Gain per grade, from 0 for the worst to 1 for the best.
    discounts : ndarray
        Discount per position; the first is 1.
    rank_one_fraction : float
        Fraction of the squared norm of the weights that the two explain; 1 where gains do not
        depend on the position at all.
    """

    gains: Floats
    discounts: Floats
    rank_one_fraction: float

    @property
    def table(self) -> Floats:
        """Discounts times gains, a row per position and a column per grade."""
        return np.outer(self.discounts, self.gains)


def rank_one_factors(table: Floats) -> RankOneFactors:
    """Return the gains and discounts nearest to weights (a row per position, a column per grade).

    The worst grade has weight 0.  Weights that grow with the grade have singular vectors of one
    sign, and gains that grow with the grade as well.
    """
    u, sizes, v = np.linalg.svd(table, full_matrices=False)
    total = float(sizes @ sizes)
    if total == 0.0:
        return RankOneFactors(np.zeros(table.shape[1]), np.zeros(table.shape[0]), 1.0)
    sign = 1.0 if u[:, 0].sum() >= 0.0 else -1.0
    gains, discounts = normalize_gains(sign * v[0], sign * u[:, 0])
    # adding 0.0 turns -0.0 into 0.0
    return RankOneFactors(gains + 0.0, discounts + 0.0, float(sizes[0] ** 2) / total)


def utility_from_weights(grades: tuple[int, ...], table: Floats, about: dict[str, Any]) -> Utility:
    """Return the measure with these weights, and the gains and discounts nearest to them."""
    best = rank_one_factors(table)
    return Utility(grades, table, best.gains, best.discounts, "gains", about)


def similarity(first: Floats, second: Floats) -> float:
    """Return the cosine of two tables of weights, each relative to its worst grade.

    Parameters
    ----------
    first, second : ndarray of shape (n_positions, n_grades)
        Weights per position and grade, such as `Utility.table` returns them.

    Returns
    -------
    float
        The cosine; 0 where one of the tables is constant in every position.

    References
    ----------
    Zhou, Zha, Chang and Xue, "Learning the gain values and discount factors of DCG", 2013, eq. (4).

    Examples
    --------
    >>> import firstpage as fp
    >>> dcg = fp.dcglearn.Utility.from_dcg("exp", range(3), 2)
    >>> round(fp.dcglearn.similarity(dcg.table(), 2 * dcg.table()), 6)
    1.0
    """
    a, b = ((w - w[:, :1]).ravel() for w in (first, second))
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norm if norm else 0.0
