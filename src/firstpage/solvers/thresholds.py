"""Where stumps cut a feature: midpoints between neighbouring values, of about equal weight."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from firstpage.types import Array, Floats, Ints

SAMPLED = 200_000  # documents that quantiles are learnt from, at most


def thresholds_of(X: Any, weights: Floats, bins: int) -> list[Floats]:
    """For every feature its thresholds, rising; none where it is constant.

    Quantiles are those of the documents' weights, so that a document of weight 2 counts as two and
    one of weight 0 not at all.  Of many documents every so-manyth is looked at.
    """
    rows = np.flatnonzero(weights > 0)
    rows = rows[:: stride(len(rows))]
    picked = X if len(rows) == X.shape[0] else X[rows]
    columns: Iterable[Array]
    if isinstance(picked, np.ndarray):
        columns = np.ascontiguousarray(picked.T)
    else:
        by_column = picked.tocsc()
        columns = (by_column[:, [f]].toarray()[:, 0] for f in range(picked.shape[1]))
    weight = weights[rows]
    even = len(weight) == 0 or bool((weight == weight[0]).all())
    return [_cut(column, None if even else weight, bins) for column in columns]


def stride(rows: int) -> int:
    """Of so many documents every so-manyth is looked at."""
    return max(1, -(-rows // SAMPLED))


def _cut(column: Array, weight: Floats | None, bins: int) -> Floats:
    """Thresholds of one feature; all midpoints if its values are no more than the bins."""
    if weight is None:
        values = np.sort(column)
        reached = np.arange(1.0, len(values) + 1)
    else:
        order = np.argsort(column, kind="stable")
        values, reached = column[order], np.cumsum(weight[order])
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))  # of each distinct value
    if len(last) > bins:
        cuts = _quantiles(np.diff(reached[last], prepend=0.0), bins)
        last = np.append(last[cuts], last[-1])
    nexts = last[:-1] + 1
    return midpoints(values[last[:-1]].astype(np.float64), values[nexts].astype(np.float64))


def _quantiles(mass: Floats, bins: int) -> Ints:
    """Numbers of the values after which to cut, so that bins are of about equal mass.

    A value heavier than a bin fills one alone; the light ones share the bins that are left.
    """
    heavy = mass > mass.sum() / bins
    share = mass[~heavy].sum() / (bins - np.count_nonzero(heavy))
    reached = np.cumsum(np.where(heavy, share, mass))
    found = np.searchsorted(reached, share * (np.arange(1, bins) - 1e-9))
    return np.unique(np.minimum(found, len(mass) - 2))


def midpoints(low: Floats, high: Floats) -> Floats:
    """Numbers t with low <= t < high, in the middle where there is one."""
    middle = low / 2 + high / 2
    return np.where((middle >= low) & (middle < high), middle, low)
