"""Gains and discounts from position-dependent weights: the nearest matrix of rank one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.data.preferences.utility import Utility, normalized
from firstpage.types import Floats


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
    gains, discounts = normalized(sign * v[0], sign * u[:, 0])
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
