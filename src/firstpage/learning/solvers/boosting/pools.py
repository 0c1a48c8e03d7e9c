"""Weak rankers set up on documents: all stumps of all features, and the features themselves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from firstpage.core import Array, Bools, BoundKernel, Bytes, DataError, Floats, Ints
from firstpage.core.engine import Lanes, resolve
from firstpage.core.kernels import scoring as kernel
from firstpage.data import Truth
from firstpage.evaluation.measures import Measure
from firstpage.learning.losses.measure_forms import MeasureOfScores
from firstpage.learning.scorers.linear import LinearScoring
from firstpage.learning.scorers.scorer import Scoring
from firstpage.learning.scorers.stumps import StumpsScoring

if TYPE_CHECKING:
    from firstpage.data import Features


MEASURE_EPS = 1e-12  # smaller differences of a measure are rounding


class QueryMeasure(MeasureOfScores):
    """A measure from 0 to 1 on some documents of a truth.

    Attributes
    ----------
    rows : array of int or None
        The documents of the lists; None: all.
    informative : array of bool
        Queries whose order by label has another value than its reverse.
    """

    def __init__(self, measure: Measure, truth: Truth, rows: Ints | None = None) -> None:
        self.rows = rows
        if rows is not None:
            offsets = np.searchsorted(rows, truth.offsets).astype(np.int64)
            truth = Truth(truth.labels[rows], offsets, truth.queries)
        super().__init__(measure, truth)
        best, worst = self.values(truth.labels), self.values(-truth.labels)
        # In absolute value, since the discounts of a measure file may increase.
        self.informative: Bools = np.abs(best - worst) > MEASURE_EPS
        too_high = best.max(initial=0.0) > 1 + MEASURE_EPS
        if measure.lower_is_better or too_high or worst.min(initial=0) < 0:
            raise DataError(
                f"boosting needs a measure from 0 to 1 of which higher is better; got {measure}."
            )

    def __len__(self) -> int:
        return len(self.truth)

    def __call__(self, scores: Floats) -> Floats:
        """Return one value per query, from the scores of all documents."""
        return self.values(scores if self.rows is None else scores[self.rows])


CHUNK_ROWS = 1 << 14  # binned at a time
SINGLE_THREAD_BINS = 1 << 20  # bins up to which a second thread does not pay off
MAX_TABLE_BYTES = 8 << 30  # of a table of weak rankers by queries
Allocator = Callable[[tuple[int, ...], Any], Array]
"""(shape, dtype) -> an uninitialized array, which may be on disk."""


class EnsembleScoring(Scoring, Protocol):
    """A sum of weak rankers as a model."""

    @property
    def params(self) -> Floats:
        """The parameters from which a fit can be resumed."""
        ...


class WeakRankerPool(Protocol):
    """Weak rankers set up on training data, numbered from 0; each may be added or subtracted."""

    count: int
    signs: tuple[int, ...]  # (1, -1), or (1,)

    def edges(self, potential: Floats) -> Floats:
        """Return the sum over documents of potential * weak ranker, one number per weak ranker."""
        ...

    def measure_values(self, measure: QueryMeasure) -> Array:
        """Return the measure of each, of shape (signs, weak rankers, queries), in float32."""
        ...

    def values(self, number: int, X: Features) -> Floats:
        """Return the values of a weak ranker on any documents."""
        ...

    def add(self, number: int, step: float, scores: Floats) -> None:
        """Add step * weak ranker to the scores of the training documents."""
        ...

    def scoring(self, chosen: list[tuple[int, float]], start: Floats | None) -> EnsembleScoring:
        """Return the sum of the chosen (weak ranker, step) as a model, added to the parameters
        `start` of another."""
        ...


def column_of(X: Features, feature: int) -> Array:
    """Return one feature of all rows, dense."""
    if isinstance(X, np.ndarray):
        return X[:, feature]
    column: Array = X[:, [feature]].toarray()[:, 0]
    return column


class StumpPool:
    """All stumps of all features; a constant feature has none."""

    def __init__(
        self,
        cuts: list[Floats],
        signs: tuple[int, ...],
        X: Features,
        threads: int | None,
        allocate: Allocator = np.empty,
    ) -> None:
        self.signs, self.n_features = signs, int(X.shape[1])
        self.columns = np.array([f for f, cut in enumerate(cuts) if len(cut)], np.int64)
        thresholds = [cuts[f] for f in self.columns]
        self.firsts: Ints = np.cumsum([0, *map(len, thresholds)]).astype(np.int64)
        self.thresholds = np.concatenate([np.empty(0), *thresholds])
        self.count = len(self.thresholds)
        self.feature = np.repeat(self.columns, np.diff(self.firsts))
        self.bins: Bytes = allocate((len(self.columns), X.shape[0]), np.uint8)
        for lo in range(0, X.shape[0], CHUNK_ROWS):
            rows = X[lo : lo + CHUNK_ROWS][:, self.columns]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            columns = np.ascontiguousarray(rows.T)
            kernel.bin_columns(columns, lo, self.firsts, self.thresholds, self.bins)
        widest = int(np.diff(self.firsts).max(initial=0)) + 1
        self._sums, self._edges = np.empty((len(self.columns), widest)), np.empty(self.count)
        self._potential = np.empty(X.shape[0])
        self._lanes = Lanes(
            self._bin_kernels(resolve(threads) if self.bins.size > SINGLE_THREAD_BINS else 1)
        )

    def _bin_kernels(self, lanes: int) -> list[list[BoundKernel]]:
        """Return kernels that sum the bins, with some features per lane; the sums of a feature do
        not depend on its lane."""
        ends = np.linspace(0, len(self.columns), lanes + 1).astype(int).tolist()
        return [
            [kernel.bin_sums.bind(self.bins[a:b], self._potential, self._sums[a:b])]
            for a, b in pairwise(ends)
            if b > a
        ]

    def edges(self, potential: Floats) -> Floats:
        self._potential[:] = potential
        self._lanes.run()
        kernel.stump_edges(self._sums, self.firsts, self._edges)
        return self._edges

    def measure_values(self, measure: QueryMeasure) -> Array:
        needed = 8 * self.count * len(measure)
        if needed > MAX_TABLE_BYTES:
            raise DataError(
                f"the table of {self.count} stumps by {len(measure)} queries takes "
                f"{needed / 2**30:.1f} GB; use fewer stumps, as in weak='stumps(bins=16)', or "
                "weak='features'."
            )
        out = np.empty((2, self.count, len(measure)), np.float32)
        for c in range(len(self.columns)):
            first, last = int(self.firsts[c]), int(self.firsts[c + 1])
            bins = self.bins[c] if measure.rows is None else self.bins[c][measure.rows]
            if measure.sums is None:
                for t in range(last - first):
                    above = (bins > t).astype(np.float64)
                    out[0, first + t], out[1, first + t] = (
                        measure.values(above),
                        measure.values(-above),
                    )
            else:
                self._measure_stumps(measure, bins, out[:, first:last])
        return out[: len(self.signs)]

    def _measure_stumps(self, measure: QueryMeasure, bins: Bytes, out: Array) -> None:
        """Write the measures of all stumps of a feature, in closed form: a stump has two blocks of
        equal scores, and the measure is a sum of discounted gains."""
        assert measure.sums is not None
        longest = int(measure.truth.lengths.max(initial=0))
        cumulative_discount = np.zeros(longest + 1)
        discount = measure.sums.discount[:longest]
        cumulative_discount[1 : len(discount) + 1] = np.cumsum(discount)
        cumulative_discount[len(discount) + 1 :] = cumulative_discount[len(discount)]
        gains, offsets, (positive, negative) = measure.sums.gains, measure.truth.offsets, out
        counts, sums = np.empty(out.shape[1] + 1, np.int64), np.empty(out.shape[1] + 1)
        kernel.stump_dcg(
            bins, gains, offsets, cumulative_discount, counts, sums, positive, negative
        )

    def _stump(self, number: int) -> tuple[int, int]:
        """Return the row of its feature, and the number of its threshold."""
        row = int(np.searchsorted(self.firsts, number, side="right")) - 1
        return row, number - int(self.firsts[row])

    def values(self, number: int, X: Features) -> Floats:
        column = column_of(X, int(self.feature[number]))
        # In float64: NumPy would round the threshold to the type of a float32 column.
        above: Floats = (column.astype(np.float64) > self.thresholds[number]).astype(np.float64)
        return above

    def add(self, number: int, step: float, scores: Floats) -> None:
        row, t = self._stump(number)
        kernel.add_stump(self.bins[row], t, step, scores)

    def scoring(self, chosen: list[tuple[int, float]], start: Floats | None) -> StumpsScoring:
        numbers = np.array([h for h, _ in chosen], np.int64)
        rows = np.column_stack(
            [self.feature[numbers], self.thresholds[numbers], [s for _, s in chosen]]
        )
        if start is not None:
            if start.ndim != 2 or start[:, 0].max(initial=0) >= self.n_features:
                raise DataError(
                    "warm_start: the previous model is not a sum of stumps of these features."
                )
            rows = np.concatenate([start, rows])
        return StumpsScoring.from_stumps(self.n_features, *rows.T)


class FeaturePool:
    """Every feature that varies, scaled from 0 at its least value to 1 at its greatest."""

    def __init__(
        self,
        ranges: tuple[Floats, Floats],
        signs: tuple[int, ...],
        X: Features,
        allocate: Allocator = np.empty,
    ) -> None:
        self.signs, self.n_features = signs, int(X.shape[1])
        low, high = ranges
        with np.errstate(over="ignore", divide="ignore"):
            scale = 1 / (high - low)
        self.columns = np.flatnonzero(np.isfinite(scale) & (scale > 0))
        self.count = len(self.columns)
        self.low, self.scale = low[self.columns], scale[self.columns]
        # A copy by column, in which they are read; sparse if the features are.
        self._X: Any
        if isinstance(X, np.ndarray):
            self._X = allocate((self.count, X.shape[0]), X.dtype)
            for lo in range(0, X.shape[0], CHUNK_ROWS):
                self._X[:, lo : lo + CHUNK_ROWS] = X[lo : lo + CHUNK_ROWS][:, self.columns].T
        else:
            self._X = X[:, self.columns].tocsc()
        self._edges = np.empty(self.count)

    def edges(self, potential: Floats) -> Floats:
        if isinstance(self._X, np.ndarray):
            kernel.feature_edges(self._X, self.low, potential, self._edges)
        else:
            self._edges[:] = self._X.T @ potential - self.low * potential.sum()
        return self._edges * self.scale

    def _column(self, number: int) -> Array:
        return self._X[number] if isinstance(self._X, np.ndarray) else column_of(self._X, number)

    def _scaled(self, number: int, column: Array) -> Floats:
        scaled: Floats = (column.astype(np.float64) - self.low[number]) * self.scale[number]
        return scaled

    def measure_values(self, measure: QueryMeasure) -> Array:
        out = np.empty((len(self.signs), self.count, len(measure)), np.float32)
        for h in range(self.count):
            values = self._scaled(h, self._column(h))
            values = values if measure.rows is None else values[measure.rows]
            for s, sign in enumerate(self.signs):
                out[s, h] = measure.values(sign * values)
        return out

    def values(self, number: int, X: Features) -> Floats:
        return self._scaled(number, column_of(X, int(self.columns[number])))

    def add(self, number: int, step: float, scores: Floats) -> None:
        factor = step * float(self.scale[number])
        kernel.add_scaled(self._column(number), float(self.low[number]), factor, scores)

    def scoring(self, chosen: list[tuple[int, float]], start: Floats | None) -> LinearScoring:
        weights = np.zeros(self.n_features)
        if start is not None:
            if start.shape != weights.shape:
                raise DataError(
                    "warm_start: the previous model does not have one weight per feature."
                )
            weights += start
        for h, step in chosen:
            weights[self.columns[h]] += step * self.scale[h]
        return LinearScoring(weights)


def feature_ranges(X: Features) -> tuple[Floats, Floats]:
    """Return the least and the greatest value of every feature; 0 without rows."""
    if not X.shape[0]:
        return np.zeros(X.shape[1]), np.zeros(X.shape[1])
    return _reduced(X, "min").astype(np.float64), _reduced(X, "max").astype(np.float64)


def _reduced(X: Features, function: str) -> Array:
    values = getattr(X, function)(axis=0)
    return np.asarray(values if isinstance(values, np.ndarray) else values.toarray()).ravel()
