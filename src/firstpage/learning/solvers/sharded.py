"""The objective over shards: the same sums, computed shard by shard wherever the shards are.

The results of a shard are functions of the arguments.  What it caches, scores and gradients at a
few points and the true rankings frozen last, is identified by the parameters that it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Protocol

import numpy as np

from firstpage.core import Array, Floats
from firstpage.core.engine import ShardJob
from firstpage.data import concat_features, offsets_from_lengths
from firstpage.learning.scorers.linear import MAX_COVARIANCE_FEATURES, BoundLinear, inverse_scales
from firstpage.learning.scorers.scorer import BoundScorer
from firstpage.learning.solvers.objective import SAMPLE_RANGES, SAMPLE_ROWS, BlockObjective
from firstpage.learning.solvers.score_space import ParameterPoint, ScoredPoint, ScoreSpace
from firstpage.learning.solvers.solver import LossWithErrors

MAX_CACHED_POINTS = 3  # both ends of a line, and the point before
BYTES_PER_DOCUMENT = 48  # approximate memory of an objective
SCORE_SPACE_BYTES = 40  # additional bytes per document, once the score space is used
QueryRange = tuple[int, int, int]
"""Some queries: the first, the last at most, and about how many rows."""
CurvatureSample = tuple[Any, Array, Floats, float]
"""Rows of some queries, the lengths of these, curvatures by score, and their weight."""


class Releasable(Protocol):
    """Data of which some are mapped files, whose pages in memory can be released."""

    @property
    def heap_bytes(self) -> int:
        """The bytes of the data that are not mapped."""
        ...

    def release(self) -> None: ...


class ObjectiveShard:
    """An objective without penalty over the queries of a shard.

    The weights of the queries of all shards sum to 1.
    """

    def __init__(self, objective: BlockObjective, data: Releasable) -> None:
        self.objective, self._data = objective, data
        self._points: dict[bytes, ScoredPoint] = {}
        self._frozen: bytes | None = None

    @property
    def nbytes(self) -> int:
        rows = int(self.objective.offsets[-1])
        score_space = SCORE_SPACE_BYTES if "space" in self.__dict__ else 0
        per_document = BYTES_PER_DOCUMENT + score_space + 16 * len(self._points)
        return rows * per_document + self._data.heap_bytes

    def release(self) -> None:
        self._data.release()

    @cached_property
    def space(self) -> ScoreSpace:
        return self.objective.score_space()

    # --- for descents

    def value_gradient(
        self, params: Floats, frozen: Floats | None, evaluation: int
    ) -> tuple[float, Floats]:
        """Return the mean loss, and its gradient by parameters.

        `evaluation` is its number, on which losses that draw at random depend.
        """
        self._freeze(frozen)
        self.objective.set_evaluation(evaluation)
        return self.objective(params)

    def block(self, params: Floats, block: tuple[int, int]) -> tuple[float, Floats]:
        """Return the sum of the losses of a batch in this shard, and its gradient.

        `block` has the number of the batch in this shard, and that of the evaluation.
        """
        number, evaluation = block
        self.objective.set_evaluation(evaluation)
        value, gradient = self.objective.block_sum(number, params)
        return value, gradient.copy()

    def evaluate_with_errors(self, params: Floats) -> LossWithErrors:
        return self.objective.evaluate_with_errors(params)

    def sample(self, ranges: list[QueryRange]) -> list[CurvatureSample]:
        """Return rows, lengths, curvatures and weights of some ranges of queries."""
        samples = []
        offsets = self.objective.offsets
        for lo, last, rows in ranges:
            hi = int(np.searchsorted(offsets, offsets[lo] + rows))
            hi = min(max(hi, lo + 1), last)
            X = self.objective.scorer.X
            sampled = X[int(offsets[lo]) : int(offsets[hi])]
            if isinstance(sampled, np.ndarray):
                sampled = np.array(sampled)  # not a view of a mapped file
            total = float(self.objective.query_weights[lo:hi].sum())
            curvature = self.objective.score_curvature(lo, hi, 1.0)
            samples.append((sampled, np.diff(offsets[lo : hi + 1]), curvature, total))
        return samples

    def squares(self) -> Floats:
        """Return the sum of squares of every feature."""
        squares: Floats = self.objective.scorer.squares()  # type: ignore[attr-defined]
        return squares

    def score_range(self, params: Floats) -> tuple[float, float]:
        return self.objective.score_range(params)

    # --- for cutting planes

    def evaluate(self, params: Floats, frozen: Floats | None) -> tuple[float, float]:
        """Return the loss, and by how much it may exceed the computed value."""
        self._freeze(frozen)
        self._points.pop(params.tobytes(), None)  # the error bound is that of the last evaluation
        return self._point(params).loss, self.space.loss_error_bound()

    def plane(self, params: Floats, frozen: Floats | None) -> tuple[float, Floats]:
        """Return the loss and its gradient by parameters."""
        self._freeze(frozen)
        point, gradient = self.space.evaluate_with_gradient(params)
        self._cache(point)
        return point.loss, gradient

    def line(
        self, start: Floats, end: Floats, frozen: Floats | None
    ) -> tuple[float, float, float, float]:
        """Return the losses at both ends of a line, and the derivatives along it there."""
        self._freeze(frozen)
        a, b = self._point(start), self._point(end)
        direction = b.scores - a.scores
        return a.loss, b.loss, float(a.grad @ direction), float(b.grad @ direction)

    def interpolate(
        self, start: Floats, end: Floats, step: float, frozen: Floats | None
    ) -> tuple[float, float]:
        """Return the loss at a point on a line, and the derivative along the line there."""
        self._freeze(frozen)
        a, b = self._point(start), self._point(end)
        point = self.space.interpolate(a, b, step)
        return point.loss, float(point.grad @ (b.scores - a.scores))

    def _point(self, params: Floats) -> ScoredPoint:
        """Return the point of these parameters, from the cache if it is there."""
        cached = self._points.pop(params.tobytes(), None)
        point = self.space.evaluate(params) if cached is None else cached
        self._cache(point)
        return point

    def _cache(self, point: ScoredPoint) -> None:
        self._points.pop(point.params.tobytes(), None)
        self._points[point.params.tobytes()] = point
        while len(self._points) > MAX_CACHED_POINTS:
            del self._points[next(iter(self._points))]

    def _freeze(self, frozen: Floats | None) -> None:
        """Fix the true rankings to those under the parameters `frozen`; None: do not fix them."""
        key = None if frozen is None else frozen.tobytes()
        if key == self._frozen:
            return
        self._points.clear()  # their gradients were under other true rankings
        if frozen is None:
            self.objective.target.thaw()
        else:
            self.space.freeze(frozen)
        self._frozen = key


class ShardedObjective:
    """An objective over shards, with the interface of `BlockObjective`.

    `scorer` is set up on no documents; `counts` has (queries, documents) of every shard.  A
    batch of queries may span several shards, which compute it at once.
    """

    def __init__(
        self,
        job: ShardJob[ObjectiveShard],
        scorer: BoundScorer,
        counts: Sequence[tuple[int, int]],
        l2: float,
        batch: int | None = None,
    ) -> None:
        self.job, self.scorer, self.counts, self.l2 = job, scorer, list(counts), l2
        self.frozen: Floats | None = None  # the parameters whose true rankings are frozen
        self._ends = np.cumsum([0, *(queries for queries, _ in counts)]).tolist()
        self._batch = self._ends[-1] if batch is None else batch
        self.bounds = [
            (lo, min(lo + self._batch, self._ends[-1]))
            for lo in range(0, self._ends[-1], self._batch)
        ]
        self._batched = batch is not None
        self._evaluations = [0] * len(self.bounds)  # of each batch so far

    @property
    def size(self) -> int:
        return self.scorer.size

    @property
    def relative_error(self) -> float:
        return self.scorer.relative_error

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        """Return the value and the gradient over all queries."""
        if self._batched:
            blocks = [self.block(number, params) for number in range(len(self.bounds))]
            mean: Floats = np.mean([gradient for _, gradient in blocks], axis=0)
            return float(np.mean([value for value, _ in blocks])), mean
        evaluation = self._evaluations[0] if self._evaluations else 0
        self.skip_draws(1)
        value, gradient = self.job.sum(
            ObjectiveShard.value_gradient, params, self.frozen, evaluation
        )
        return value + self.l2 / 2 * float(params @ params), gradient + self.l2 * params

    def _sample(self, rows: int) -> list[CurvatureSample]:
        """Return the samples of a few ranges of queries, of about this many rows in all.

        A range that reaches the end of a shard continues in the next one.
        """
        queries, documents = self._ends[-1], sum(documents for _, documents in self.counts)
        wanted = {0: (0, queries, documents)}
        if documents > rows and queries > SAMPLE_RANGES:
            ends = [queries * i // SAMPLE_RANGES for i in range(SAMPLE_RANGES + 1)]
            wanted = {
                i: (lo, last, rows // SAMPLE_RANGES) for i, (lo, last) in enumerate(pairwise(ends))
            }
        samples: list[list[CurvatureSample]] = [[] for _ in wanted]
        while wanted:
            own: list[list[QueryRange]] = [[] for _ in self.counts]
            numbers: list[list[int]] = [[] for _ in self.counts]
            for i, (lo, last, count) in wanted.items():
                shard = int(np.searchsorted(self._ends, lo, side="right")) - 1
                first, end = self._ends[shard], self._ends[shard + 1]
                own[shard].append((lo - first, min(last, end) - first, count))
                numbers[shard].append(i)
            results = self.job.map_own(ObjectiveShard.sample, [some or None for some in own])
            sampled = chain.from_iterable(results)
            for i, sample in zip(chain.from_iterable(numbers), sampled, strict=True):
                samples[i].append(sample)
                lo, last, count = wanted.pop(i)
                lo, count = lo + len(sample[1]), count - int(sample[1].sum())
                if lo < last and count > 0:
                    wanted[i] = (lo, last, count)
        return list(chain.from_iterable(samples))

    def block(self, number: int, params: Floats) -> tuple[float, Floats]:
        """Return an estimate from one batch; the mean over the batches is the objective."""
        lo, hi = self.bounds[number]
        evaluation = self._evaluations[number]
        self._evaluations[number] += 1
        own = [
            (number - first // self._batch, evaluation) if first < hi and last > lo else None
            for first, last in pairwise(self._ends)
        ]
        sums = self.job.map_own(ObjectiveShard.block, own, params)
        value, gradient = sums[0]
        for more_value, more_gradient in sums[1:]:
            value, gradient = value + more_value, gradient + more_gradient
        times = len(self.bounds)
        penalty = self.l2 / 2 * float(params @ params)
        return value * times + penalty, gradient * times + self.l2 * params

    def skip_draws(self, evaluations: int) -> None:
        self._evaluations = [number + evaluations for number in self._evaluations]

    def evaluate_with_errors(self, params: Floats) -> LossWithErrors:
        return self.job.sum(ObjectiveShard.evaluate_with_errors, params)

    def score_space(self) -> ShardedScoreSpace:
        return ShardedScoreSpace(self)

    def score_range(self, params: Floats) -> tuple[float, float]:
        """Return the widest range of scores in a query, and the greatest absolute score."""
        return self.job.max(ObjectiveShard.score_range, params)

    def preconditioner(self) -> Floats | None:
        """Return the preconditioner, from the sample of queries of `BlockObjective`."""
        if self.size > MAX_COVARIANCE_FEATURES:
            rows = sum(rows for _, rows in self.counts)
            return inverse_scales(self.job.sum(ObjectiveShard.squares), rows, self.l2)
        samples = self._sample(SAMPLE_ROWS * self.size)
        total = sum(weight for *_, weight in samples)
        curvatures = np.concatenate([curvature for _, _, curvature, _ in samples]) / total
        lengths = np.concatenate([lengths for _, lengths, _, _ in samples])
        ends = offsets_from_lengths(lengths)
        bound = BoundLinear(concat_features([rows for rows, *_ in samples]))
        return bound.preconditioner([ends], curvatures, self.l2)


@dataclass(frozen=True, eq=False)
class ShardedLine:
    """A line whose points are evaluated by the shards."""

    space: ShardedScoreSpace
    start: ParameterPoint
    end: ParameterPoint
    derivatives: tuple[float, float]

    def evaluate(self, step: float) -> tuple[ParameterPoint, float]:
        return self.space.evaluate_step(self.start, self.end, step)


class ShardedScoreSpace:
    """A score space over shards, with the interface of `ScoreSpace`; scores stay in the shards."""

    def __init__(self, objective: ShardedObjective) -> None:
        self._objective, self._job, self.l2 = objective, objective.job, objective.l2
        self._error_bound = 0.0

    def _point(self, params: Floats, loss: float) -> ParameterPoint:
        return ParameterPoint(params, loss, loss + self.l2 / 2 * float(params @ params))

    def evaluate(self, params: Floats) -> ParameterPoint:
        frozen = self._objective.frozen
        loss, self._error_bound = self._job.sum(ObjectiveShard.evaluate, params, frozen)
        return self._point(params, loss)

    def line(self, start: ParameterPoint, end: Floats) -> ShardedLine:
        frozen = self._objective.frozen
        first, last, *derivatives = self._job.sum(ObjectiveShard.line, start.params, end, frozen)
        a, b = self._point(start.params, first), self._point(end, last)
        return ShardedLine(self, a, b, (derivatives[0], derivatives[1]))

    def evaluate_step(
        self, start: ParameterPoint, end: ParameterPoint, step: float
    ) -> tuple[ParameterPoint, float]:
        """Return a point on a line, and the derivative of the loss along the line there."""
        frozen = self._objective.frozen
        loss, derivative = self._job.sum(
            ObjectiveShard.interpolate, start.params, end.params, step, frozen
        )
        return self._point(start.params + step * (end.params - start.params), loss), derivative

    def interpolate(
        self, start: ParameterPoint, end: ParameterPoint, step: float
    ) -> ParameterPoint:
        """Return a point without its loss: `plane` computes both in one call."""
        params = start.params + step * (end.params - start.params)
        return ParameterPoint(params, float("nan"), float("nan"))

    def plane(self, point: ParameterPoint) -> tuple[Floats, float]:
        frozen = self._objective.frozen
        loss, gradient = self._job.sum(ObjectiveShard.plane, point.params, frozen)
        return gradient, loss

    def freeze(self, params: Floats) -> None:
        self._objective.frozen = params.copy()

    def loss_error_bound(self) -> float:
        return self._error_bound
