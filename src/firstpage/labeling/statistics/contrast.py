"""How far people agree, and how much more by one method than by another, over queries drawn again.

Pairs of one query hang together, so a test that takes them as independent finds too much; an
interval over queries does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from firstpage.errors import DataError
from firstpage.labeling.statistics.agreement import Agreement
from firstpage.labeling.statistics.intervals import Interval, bootstrap
from firstpage.types import Floats


def contrast(
    one: Mapping[str, Agreement], other: Mapping[str, Agreement], figure: str = "overall", *,
    rounds: int = 2000, seed: int = 0, level: float = 0.95,
) -> Interval:  # fmt: skip
    """The figure of `one` less that of `other` (tables by query), and its bootstrap interval.

    `figure` is overall, without_ties or kappa, the latter of symmetrised tables.  A query that
    only one method has counts for that method; NaN where a method has no pairs.
    """
    if figure not in FIGURES:
        raise DataError(f"figure must be one of {', '.join(FIGURES)}; got {figure!r}.")
    queries = sorted({*one, *other})
    none = Agreement.none()
    first, second = (
        np.array([method.get(q, none).symmetrised().counts for q in queries]).reshape(-1, 3, 3)
        for method in (one, other)
    )

    def statistic(weights: Floats) -> Floats:
        return FIGURES[figure](np.tensordot(weights, first, 1)) - FIGURES[figure](
            np.tensordot(weights, second, 1)
        )

    return bootstrap(statistic, len(queries), rounds, seed, level)


def estimate(
    tables: Mapping[str, Agreement], figure: str = "overall", *,
    rounds: int = 2000, seed: int = 0, level: float = 0.95,
) -> Interval:  # fmt: skip
    """Return a figure of all tables (by query) together, with its bootstrap interval."""
    counts = np.array([table.symmetrised().counts for table in tables.values()]).reshape(-1, 3, 3)

    def statistic(weights: Floats) -> Floats:
        return FIGURES[figure](np.tensordot(weights, counts, 1))

    return bootstrap(statistic, len(tables), rounds, seed, level)


def _overall(counts: Floats) -> Floats:
    return _share(np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2)))


def _without_ties(counts: Floats) -> Floats:
    agreed = counts[:, 0, 0] + counts[:, 2, 2]
    return _share(agreed, agreed + counts[:, 0, 2] + counts[:, 2, 0])


def _kappa(counts: Floats) -> Floats:
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    chance = _share((rows * columns).sum(axis=1), counts.sum(axis=(1, 2)) ** 2)
    return _share(_overall(counts) - chance, 1 - chance)


def _share(over: Floats, under: Floats) -> Floats:
    empty = np.full(over.shape, np.nan)
    found: Floats = np.divide(over, under, out=empty, where=under > 0)
    return found


FIGURES: Mapping[str, Callable[[Floats], Floats]] = {
    "overall": _overall,
    "without_ties": _without_ties,
    "kappa": _kappa,
}
