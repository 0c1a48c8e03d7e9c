"""Weak rankers set up on documents: all stumps of all features, and the features themselves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from firstpage.data.truth import Truth
from firstpage.engine.threads import Lanes, resolve
from firstpage.errors import DataError
from firstpage.kernels import scoring as kernel
from firstpage.kernels.measures.graded import top_sums
from firstpage.measures.measure import SHORT, Measure, convention, rank_lists
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.scorer import Run, Scoring
from firstpage.scorers.stumps import StumpsScoring
from firstpage.types import Array, Bools, Bytes, Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features


DUST = 1e-12  # differences of a measure that are rounding


class Judge:
    """A measure on some documents of a truth, equal scores averaged over their orders.

    rows      which documents the lists are made of; None: all
    telling   queries whose order by label measures otherwise than its reverse; others say nothing
    """

    def __init__(self, measure: Measure, truth: Truth, rows: Ints | None = None) -> None:
        self.measure, self.rows, self.queries = measure, rows, truth.queries
        self.labels, self.offsets = truth.labels, truth.offsets
        if rows is not None:
            self.labels = truth.labels[rows]
            self.offsets = np.searchsorted(rows, truth.offsets).astype(np.int64)
        self._how = convention("default")
        ideal = rank_lists(self.labels, self.labels, self.offsets, self.queries, self._how)
        self.additive = measure.additive(ideal, self._how)
        best, worst = self.from_lists(self.labels), self.from_lists(-self.labels)
        self.telling: Bools = np.abs(best - worst) > DUST  # discounts of a file may rise
        if measure.lower_is_better or best.max(initial=0.0) > 1 + DUST or worst.min(initial=0) < 0:
            raise DataError(
                f"boosting needs a measure from 0 to 1, higher is better; not {measure}."
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __call__(self, scores: Floats) -> Floats:
        """One number a query, from the scores of all documents."""
        return self.from_lists(scores if self.rows is None else scores[self.rows])

    def from_lists(self, scores: Floats) -> Floats:
        """The same from the scores of the lists' documents."""
        sums = self.additive
        if sums is None or len(sums.discount) > SHORT:
            lists = rank_lists(scores, self.labels, self.offsets, self.queries, self._how)
            return self.measure.values(lists, self._how)
        out, room = np.empty(len(self)), len(sums.discount)
        top_sums(
            scores, sums.gains, self.offsets, sums.discount, np.empty(room), np.empty(room), out
        )
        return out


ROWS = 1 << 14  # binned at a time
ALONE = 1 << 20  # bins to add up that are not worth a second thread
MOST_BYTES = 8 << 30  # that a table of weak rankers by queries may take
Room = Callable[[tuple[int, ...], Any], Array]
"""Where a pool may keep a large array."""


class Sum(Scoring, Protocol):
    """A sum of weak rankers as a model."""

    @property
    def params(self) -> Floats:
        """What a fit can go on from."""
        ...


class Pool(Protocol):
    """Weak rankers set up on training data, numbered from 0; each may be taken with a minus."""

    count: int
    signs: tuple[int, ...]  # (1, -1), or (1,)

    def edges(self, potential: Floats) -> Floats:
        """The sum over documents of potential * weak ranker, one number each."""
        ...

    def judged(self, judge: Judge) -> Array:
        """What the judge says of each: signs x weak rankers x queries, in float32."""
        ...

    def values(self, number: int, X: Features) -> Floats:
        """A weak ranker on any documents."""
        ...

    def add(self, number: int, step: float, scores: Floats) -> None:
        """Add step * weak ranker to the scores of the training documents."""
        ...

    def scoring(self, chosen: list[tuple[int, float]], start: Floats | None) -> Sum:
        """The sum of (weak ranker, step) as a model, on top of the parameters of another."""
        ...


def column_of(X: Features, feature: int) -> Array:
    """One feature of all rows, dense."""
    if isinstance(X, np.ndarray):
        return X[:, feature]
    found: Array = X[:, [feature]].toarray()[:, 0]
    return found


class StumpPool:
    """All stumps of all features; constant features have none."""

    def __init__(
        self, cuts: list[Floats], signs: tuple[int, ...], X: Features, threads: int | None,
        room: Room = np.empty,
    ) -> None:  # fmt: skip
        self.signs, self.n_features = signs, int(X.shape[1])
        self.columns = np.array([f for f, cut in enumerate(cuts) if len(cut)], np.int64)
        kept = [cuts[f] for f in self.columns]
        self.firsts: Ints = np.cumsum([0, *map(len, kept)]).astype(np.int64)
        self.thresholds = np.concatenate([np.empty(0), *kept])
        self.count = len(self.thresholds)
        self.feature = np.repeat(self.columns, np.diff(self.firsts))
        self.bins: Bytes = room((len(self.columns), X.shape[0]), np.uint8)
        for lo in range(0, X.shape[0], ROWS):
            rows = X[lo : lo + ROWS][:, self.columns]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            columns = np.ascontiguousarray(rows.T)
            kernel.bin_columns(columns, lo, self.firsts, self.thresholds, self.bins)
        widest = int(np.diff(self.firsts).max(initial=0)) + 1
        self._sums, self._edges = np.empty((len(self.columns), widest)), np.empty(self.count)
        self._potential = np.empty(X.shape[0])
        self._lanes = Lanes(self._shared(resolve(threads) if self.bins.size > ALONE else 1))

    def _shared(self, lanes: int) -> list[list[Run]]:
        """Sums of bins, some features a lane; each feature's are its own, in whatever lane."""
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

    def judged(self, judge: Judge) -> Array:
        needed = 8 * self.count * len(judge)
        if needed > MOST_BYTES:
            raise DataError(
                f"what {self.count} stumps measure on {len(judge)} queries takes "
                f"{needed / 2**30:.1f} GB; take fewer, as in weak='stumps(bins=16)', or "
                "weak='features'."
            )
        out = np.empty((2, self.count, len(judge)), np.float32)
        for c in range(len(self.columns)):
            first, last = int(self.firsts[c]), int(self.firsts[c + 1])
            bins = self.bins[c] if judge.rows is None else self.bins[c][judge.rows]
            if judge.additive is None:
                for t in range(last - first):
                    above = (bins > t).astype(np.float64)
                    out[0, first + t], out[1, first + t] = (
                        judge.from_lists(above),
                        judge.from_lists(-above),
                    )
            else:
                self._two_blocks(judge, bins, out[:, first:last])
        return out[: len(self.signs)]

    def _two_blocks(self, judge: Judge, bins: Bytes, out: Array) -> None:
        """Closed form: a stump leaves two ties, and the measure adds up gains and discounts."""
        assert judge.additive is not None
        longest = int(np.diff(judge.offsets).max(initial=0))
        reach = np.zeros(longest + 1)
        discount = judge.additive.discount[:longest]
        reach[1 : len(discount) + 1] = np.cumsum(discount)
        reach[len(discount) + 1 :] = reach[len(discount)]
        spare = out.shape[1] + 1
        kernel.two_blocks(
            bins, judge.additive.gains, judge.offsets, reach, np.empty(spare, np.int64),
            np.empty(spare), out[0], out[1],
        )  # fmt: skip

    def _stump(self, number: int) -> tuple[int, int]:
        """The row of its feature, and which of its thresholds it is."""
        row = int(np.searchsorted(self.firsts, number, side="right")) - 1
        return row, number - int(self.firsts[row])

    def values(self, number: int, X: Features) -> Floats:
        column = column_of(X, int(self.feature[number]))
        # In float64: NumPy would round the threshold to a float32 column's type.
        above: Floats = (column.astype(np.float64) > self.thresholds[number]).astype(np.float64)
        return above

    def add(self, number: int, step: float, scores: Floats) -> None:
        row, t = self._stump(number)
        kernel.add_above(self.bins[row], t, step, scores)

    def scoring(self, chosen: list[tuple[int, float]], start: Floats | None) -> StumpsScoring:
        which = np.array([h for h, _ in chosen], np.int64)
        rows = np.column_stack(
            [self.feature[which], self.thresholds[which], [s for _, s in chosen]]
        )
        if start is not None:
            if start.ndim != 2 or start[:, 0].max(initial=0) >= self.n_features:
                raise DataError(
                    "warm_start: the model so far is no sum of stumps of these features."
                )
            rows = np.concatenate([start, rows])
        return StumpsScoring.of(self.n_features, *rows.T)


class FeaturePool:
    """Every feature that varies, from 0 at its least value to 1 at its greatest."""

    def __init__(
        self,
        limits: tuple[Floats, Floats],
        signs: tuple[int, ...],
        X: Features,
        room: Room = np.empty,
    ) -> None:
        self.signs, self.n_features = signs, int(X.shape[1])
        low, high = limits
        with np.errstate(over="ignore", divide="ignore"):
            scale = 1 / (high - low)
        self.columns = np.flatnonzero(np.isfinite(scale) & (scale > 0))
        self.count = len(self.columns)
        self.low, self.scale = low[self.columns], scale[self.columns]
        # By column, for that is how they are added: a copy, sparse where the features are.
        self._X: Any
        if isinstance(X, np.ndarray):
            self._X = room((self.count, X.shape[0]), X.dtype)
            for lo in range(0, X.shape[0], ROWS):
                self._X[:, lo : lo + ROWS] = X[lo : lo + ROWS][:, self.columns].T
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
        found: Floats = (column.astype(np.float64) - self.low[number]) * self.scale[number]
        return found

    def judged(self, judge: Judge) -> Array:
        out = np.empty((len(self.signs), self.count, len(judge)), np.float32)
        for h in range(self.count):
            values = self._scaled(h, self._column(h))
            values = values if judge.rows is None else values[judge.rows]
            for s, sign in enumerate(self.signs):
                out[s, h] = judge.from_lists(sign * values)
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
                raise DataError("warm_start: the model so far has not one weight a feature.")
            weights += start
        for h, step in chosen:
            weights[self.columns[h]] += step * self.scale[h]
        return LinearScoring(weights)


def limits(X: Features) -> tuple[Floats, Floats]:
    """The least and the greatest value of every feature; 0 without rows."""
    if not X.shape[0]:
        return np.zeros(X.shape[1]), np.zeros(X.shape[1])
    return _reduced(X, "min").astype(np.float64), _reduced(X, "max").astype(np.float64)


def _reduced(X: Features, how: str) -> Array:
    found = getattr(X, how)(axis=0)
    return np.asarray(found if isinstance(found, np.ndarray) else found.toarray()).ravel()
