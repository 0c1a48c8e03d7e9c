"""Weak rankers: what boosting adds up.  Threshold stumps, and features as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from firstpage.data.dataset import concat_features
from firstpage.registry import ParameterError, Registry, number
from firstpage.solvers.boosting.pools import FeaturePool, Pool, Room, StumpPool, limits
from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features as Matrix

SAMPLED = 200_000  # documents that quantiles are learned from, at most


def thresholds_of(X: Matrix, weights: Floats, bins: int) -> list[Floats]:
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


Signs = Literal["both", "plus"]
Limits = tuple[Floats, Floats]
"""The least and the greatest value of every feature."""
Sample = Any
"""Of a shard: rows, or limits."""
Learned = Any
"""From all shards: thresholds, or limits."""
MOST_BINS = 256  # a bin is a byte


@dataclass(frozen=True)
class Stumps:
    """1 where a feature is above a threshold, else 0.

    bins    parts of equal weight that a feature is cut into, at most; thresholds lie between them
    signs   "both": also 0 above and 1 below; "plus": more of a feature is never worse
    """

    bins: int = 128
    signs: Signs = "both"

    def __post_init__(self) -> None:
        number(self, "bins", 2, whole=True)
        if self.bins > MOST_BINS:
            raise ParameterError(f"bins of Stumps are at most {MOST_BINS}; got {self.bins}.")
        _check_signs(self.signs)

    def pool(self, X: Matrix, weights: Floats, threads: int | None = 1) -> Pool:
        cuts = thresholds_of(X, weights, int(self.bins))
        return StumpPool(cuts, _signs(self.signs), X, threads)

    # --- over shards: what each says of its rows, what follows for all, and pools of that

    def sample(self, X: Matrix, first: int, count: int) -> Matrix:
        """The rows from which thresholds are learned; X is numbered from `first` of `count`."""
        step = stride(count)
        return X[-first % step :: step]

    def learn(self, samples: list[Matrix]) -> list[Floats]:
        rows = concat_features(samples)
        return thresholds_of(rows, np.ones(rows.shape[0]), int(self.bins))

    def of(self, cuts: list[Floats], X: Matrix, threads: int | None, room: Room = np.empty) -> Pool:
        return StumpPool(cuts, _signs(self.signs), X, threads, room)


@dataclass(frozen=True)
class Features:
    """A feature itself, scaled to 0 .. 1 over the training documents, so that units do not matter.

    signs   "both": also a feature upside down; "plus": more of a feature is never worse
    """

    signs: Signs = "both"

    def __post_init__(self) -> None:
        _check_signs(self.signs)

    def pool(self, X: Matrix, weights: Floats, threads: int | None = 1) -> Pool:
        counted = weights > 0
        found = limits(X if counted.all() else X[counted])
        return FeaturePool(found, _signs(self.signs), X)  # too little work to share

    def sample(self, X: Matrix, first: int, count: int) -> Limits | None:
        """The least and greatest values; None where there are no rows."""
        return limits(X) if X.shape[0] else None

    def learn(self, samples: list[Limits | None]) -> Limits:
        known = [one for one in samples if one is not None]
        low = np.minimum.reduce([low for low, _ in known])
        return low, np.maximum.reduce([high for _, high in known])

    def of(self, found: Limits, X: Matrix, threads: int | None, room: Room = np.empty) -> Pool:
        return FeaturePool(found, _signs(self.signs), X, room)


class Weak(Protocol):
    """Weak rankers to be learned from features, in memory or over shards."""

    def pool(self, X: Matrix, weights: Floats, threads: int | None = 1) -> Pool:
        """Learn them from documents of these weights, and set them up on these."""
        ...

    def sample(self, X: Matrix, first: int, count: int) -> Sample:
        """What a shard tells of its rows, numbered from `first` of `count` in all."""
        ...

    def learn(self, samples: list[Sample]) -> Learned:
        """Learn them from the samples of all shards."""
        ...

    def of(self, learned: Learned, X: Matrix, threads: int | None, room: Room = np.empty) -> Pool:
        """Set up on documents what was learned."""
        ...


WEAK: dict[str, Any] = {"stumps": Stumps, "features": Features}
REGISTRY = Registry("weak ranker", WEAK)


def weak(given: str | Weak) -> Weak:
    """Weak rankers from a text such as "stumps(bins=32)"; an object stays as it is."""
    if isinstance(given, str):
        created: Weak = REGISTRY.create(given)
        return created
    if not hasattr(given, "pool"):
        raise ParameterError(
            f"weak must be a text such as 'stumps(bins=32)' or 'features'; got {given!r}."
        )
    return given


def _check_signs(signs: str) -> None:
    if signs not in ("both", "plus"):
        raise ParameterError(f"signs must be 'both' or 'plus'; got {signs!r}.")


def _signs(signs: str) -> tuple[int, ...]:
    return (1, -1) if signs == "both" else (1,)
