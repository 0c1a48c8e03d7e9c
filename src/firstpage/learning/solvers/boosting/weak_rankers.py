"""Weak rankers, which boosting sums: threshold stumps, and the features themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from firstpage.core import Array, Floats, Ints, ParameterError, Registry, check_number
from firstpage.data import concat_features
from firstpage.learning.solvers.boosting.pools import (
    Allocator,
    FeaturePool,
    StumpPool,
    WeakRankerPool,
    feature_ranges,
)

if TYPE_CHECKING:
    from firstpage.data import Features as Matrix

MAX_SAMPLED_DOCS = 200_000  # from which quantiles are estimated


def thresholds_of(X: Matrix, weights: Floats, bins: int) -> list[Floats]:
    """Return the ascending thresholds of every feature; none for a constant feature.

    Quantiles are weighted, so that a document of weight 2 counts as two and one of weight 0 not at
    all.  Of many documents only every n-th is read.
    """
    rows = np.flatnonzero(weights > 0)
    rows = rows[:: sampling_stride(len(rows))]
    sample = X if len(rows) == X.shape[0] else X[rows]
    columns: Iterable[Array]
    if isinstance(sample, np.ndarray):
        columns = np.ascontiguousarray(sample.T)
    else:
        by_column = sample.tocsc()
        columns = (by_column[:, [f]].toarray()[:, 0] for f in range(sample.shape[1]))
    weight = weights[rows]
    equal = len(weight) == 0 or bool((weight == weight[0]).all())
    return [_column_thresholds(column, None if equal else weight, bins) for column in columns]


def sampling_stride(rows: int) -> int:
    """Return n such that every n-th of this many documents is sampled."""
    return max(1, -(-rows // MAX_SAMPLED_DOCS))


def _column_thresholds(column: Array, weight: Floats | None, bins: int) -> Floats:
    """Return the thresholds of one feature: all midpoints if it has at most `bins` values."""
    if weight is None:
        values = np.sort(column)
        cumulative = np.arange(1.0, len(values) + 1)
    else:
        order = np.argsort(column, kind="stable")
        values, cumulative = column[order], np.cumsum(weight[order])
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))  # of each distinct value
    if len(last) > bins:
        cuts = _quantiles(np.diff(cumulative[last], prepend=0.0), bins)
        last = np.append(last[cuts], last[-1])
    nexts = last[:-1] + 1
    return midpoints(values[last[:-1]].astype(np.float64), values[nexts].astype(np.float64))


def _quantiles(mass: Floats, bins: int) -> Ints:
    """Return the numbers of the values after which to cut, for bins of about equal mass.

    A value of more mass than a bin has a bin to itself; the others share the remaining bins.
    """
    large = mass > mass.sum() / bins
    bin_mass = mass[~large].sum() / (bins - np.count_nonzero(large))
    cumulative = np.cumsum(np.where(large, bin_mass, mass))
    cuts = np.searchsorted(cumulative, bin_mass * (np.arange(1, bins) - 1e-9))
    return np.unique(np.minimum(cuts, len(mass) - 2))


def midpoints(low: Floats, high: Floats) -> Floats:
    """Return numbers t with low <= t < high: the midpoint, where it can be represented."""
    middle = low / 2 + high / 2
    return np.where((middle >= low) & (middle < high), middle, low)


Signs = Literal["both", "plus"]
FeatureRange = tuple[Floats, Floats]
"""The least and the greatest value of every feature."""
ShardSample = Any
"""Of a shard: rows, or feature ranges."""
PoolParameters = Any
"""From all shards: thresholds, or feature ranges."""
MAX_BINS = 256  # a bin is stored in a byte


@dataclass(frozen=True)
class Stumps:
    """Weak rankers that are 1 where a feature is above a threshold, else 0.

    Parameters
    ----------
    bins : int, default 128
        The number of bins of equal weight that the values of a feature are split into, from 2 to
        256; thresholds lie between them.
    signs : {"both", "plus"}, default "both"
        "both" also takes stumps that are 0 above the threshold and 1 below; "plus" assumes that
        more of a feature is never worse.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Freund, Iyer, Schapire and Singer (2003), An efficient boosting algorithm for combining
    preferences.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> X, y, qid = np.arange(6.0)[:, None], [0, 0, 1, 0, 1, 1], [1, 1, 1, 2, 2, 2]
    >>> ranker = fp.RankBoost(weak="stumps(bins=16)", rounds=5).fit(X, y, qid=qid)
    >>> bool(ranker.predict(X)[5] > ranker.predict(X)[0])
    True
    """

    bins: int = 128
    signs: Signs = "both"

    def __post_init__(self) -> None:
        check_number(self, "bins", 2, integer=True)
        if self.bins > MAX_BINS:
            raise ParameterError(f"bins of Stumps must be at most {MAX_BINS}; got {self.bins}.")
        _check_signs(self.signs)

    def pool(self, X: Matrix, weights: Floats, threads: int | None = 1) -> WeakRankerPool:
        """Learn the thresholds from documents, and set the stumps up on these."""
        thresholds = thresholds_of(X, weights, int(self.bins))
        return StumpPool(thresholds, _sign_factors(self.signs), X, threads)

    # --- over shards: a sample of each, what is learned from all samples, and pools from that

    def sample(self, X: Matrix, first: int, count: int) -> Matrix:
        """Return the rows of a shard from which thresholds are learned."""
        step = sampling_stride(count)
        return X[-first % step :: step]

    def learn(self, samples: list[Matrix]) -> list[Floats]:
        """Learn the thresholds from the samples of all shards."""
        rows = concat_features(samples)
        return thresholds_of(rows, np.ones(rows.shape[0]), int(self.bins))

    def build_pool(
        self,
        thresholds: list[Floats],
        X: Matrix,
        threads: int | None,
        allocate: Allocator = np.empty,
    ) -> WeakRankerPool:
        """Set stumps of learned thresholds up on documents."""
        return StumpPool(thresholds, _sign_factors(self.signs), X, threads, allocate)


@dataclass(frozen=True)
class Features:
    """Weak rankers that are the features themselves, scaled to 0 .. 1 over the training documents.

    Parameters
    ----------
    signs : {"both", "plus"}, default "both"
        "both" also takes features with a minus sign; "plus" assumes that more of a feature is
        never worse.

    Raises
    ------
    ParameterError
        If `signs` is neither "both" nor "plus".

    References
    ----------
    Xu and Li (2007), AdaRank: a boosting algorithm for information retrieval.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> X, y, qid = np.arange(6.0)[:, None], [0, 0, 1, 0, 1, 1], [1, 1, 1, 2, 2, 2]
    >>> ranker = fp.AdaRank(weak="features(signs=plus)", rounds=5).fit(X, y, qid=qid)
    >>> bool(ranker.predict(X)[5] > ranker.predict(X)[0])
    True
    """

    signs: Signs = "both"

    def __post_init__(self) -> None:
        _check_signs(self.signs)

    def pool(self, X: Matrix, weights: Floats, threads: int | None = 1) -> WeakRankerPool:
        """Learn the ranges of the features from documents, and set the features up on these."""
        positive = weights > 0
        ranges = feature_ranges(X if positive.all() else X[positive])
        return FeaturePool(ranges, _sign_factors(self.signs), X)

    def sample(self, X: Matrix, first: int, count: int) -> FeatureRange | None:
        """Return the ranges of the features of a shard."""
        return feature_ranges(X) if X.shape[0] else None

    def learn(self, samples: list[FeatureRange | None]) -> FeatureRange:
        """Combine the ranges of all shards."""
        ranges = [sample for sample in samples if sample is not None]
        low = np.minimum.reduce([low for low, _ in ranges])
        return low, np.maximum.reduce([high for _, high in ranges])

    def build_pool(
        self,
        ranges: FeatureRange,
        X: Matrix,
        threads: int | None,
        allocate: Allocator = np.empty,
    ) -> WeakRankerPool:
        """Set features of learned ranges up on documents."""
        return FeaturePool(ranges, _sign_factors(self.signs), X, allocate)


class WeakRankers(Protocol):
    """Weak rankers that are learned from features, in memory or over shards."""

    def pool(self, X: Matrix, weights: Floats, threads: int | None = 1) -> WeakRankerPool:
        """Learn the weak rankers from documents of these weights, and set them up on these."""
        ...

    def sample(self, X: Matrix, first: int, count: int) -> ShardSample:
        """Return a sample of the rows of a shard, numbered from `first` of `count` in all."""
        ...

    def learn(self, samples: list[ShardSample]) -> PoolParameters:
        """Learn the weak rankers from the samples of all shards."""
        ...

    def build_pool(
        self,
        learned: PoolParameters,
        X: Matrix,
        threads: int | None,
        allocate: Allocator = np.empty,
    ) -> WeakRankerPool:
        """Set learned weak rankers up on documents."""
        ...


WEAK: dict[str, Any] = {"stumps": Stumps, "features": Features}
REGISTRY = Registry("weak ranker", WEAK)


def weak_rankers(name_or_object: str | WeakRankers) -> WeakRankers:
    """Return the weak rankers of a string such as "stumps(bins=32)"; an object is returned
    unchanged."""
    if isinstance(name_or_object, str):
        created: WeakRankers = REGISTRY.create(name_or_object)
        return created
    if not hasattr(name_or_object, "pool"):
        raise ParameterError(
            "weak must be a string such as 'stumps(bins=32)' or 'features'; got "
            f"{name_or_object!r}."
        )
    return name_or_object


def _check_signs(signs: str) -> None:
    if signs not in ("both", "plus"):
        raise ParameterError(f"signs must be 'both' or 'plus'; got {signs!r}.")


def _sign_factors(signs: str) -> tuple[int, ...]:
    return (1, -1) if signs == "both" else (1,)
