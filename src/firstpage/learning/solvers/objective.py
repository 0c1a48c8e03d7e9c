"""The objective: the mean loss over queries, plus a penalty, as a function of parameters.

Queries are split into blocks whose features fit into the CPU's cache.  Each block is scored, its
loss is computed and the gradient back-propagated before the next one is touched, so that X is read
from memory once.  Each block has a gradient of its own, and these are summed in a fixed order: the
number of threads changes nothing, not even the last bit.
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from firstpage.core import BoundKernel, Floats, Ints
from firstpage.core.engine import Lanes, resolve
from firstpage.data import Truth
from firstpage.learning.losses.base import Loss, safe_inverse
from firstpage.learning.losses.levels import query_sums
from firstpage.learning.scorers.linear import float64_gradient
from firstpage.learning.scorers.scorer import BoundScorer
from firstpage.learning.solvers.score_space import ScoreSpace, bind_weighting, loss_error_bound
from firstpage.learning.solvers.solver import LossWithErrors

BLOCK_BYTES = 1 << 21  # of features: what stays in the caches of a core
SAMPLE_ROWS = 20  # rows per parameter, from which the preconditioner is estimated
SAMPLE_RANGES = 4  # ranges of consecutive queries of that sample
LOSS_ROUNDINGS = 16  # of a loss kernel, per document of the longest list
SINGLE_THREAD_BYTES = 1 << 22  # of features, below which threads cost more than they save


class BlockObjective:
    """sum over queries of weight * loss / sum of weights + l2 / 2 * |params|^2.

    `total` is the sum of all weights, where these queries are only some of them, the first of which
    has the number `first_query`.
    """

    def __init__(
        self,
        loss: Loss,
        scorer: BoundScorer,
        truth: Truth,
        row_bytes: int,
        weights: Floats | None = None,
        query_weights: Floats | None = None,
        l2: float = 0.0,
        threads: int | None = None,
        batch: int | None = None,
        total: float | None = None,
        first_query: int = 0,
    ) -> None:
        self.scorer, self.l2 = scorer, l2
        self.offsets, self._weights = truth.offsets, weights
        unscaled = np.ones(len(truth)) if query_weights is None else query_weights
        self.query_weights: Floats = unscaled / (unscaled.sum() if total is None else total)
        self._values = np.empty(len(truth))
        self.bounds = _blocks(truth.offsets, row_bytes, scorer.size, batch, first_query)
        # Batches are evaluated one at a time, and share one gradient.
        self._gradients = np.zeros((len(self.bounds) if batch is None else 1, scorer.size))
        self._batched, self._row_bytes = batch is not None, row_bytes
        small = int(truth.offsets[-1]) * row_bytes < SINGLE_THREAD_BYTES
        self.target = loss.target(truth, weights)
        self.target.check_derivatives()
        self.target.number_queries(first_query)
        self.threads = 1 if small or not scorer.parallel else resolve(threads)

    @cached_property
    def _kernels(self) -> list[list[BoundKernel]]:
        """The kernels of every block: scores, loss, query weights, back-propagation.

        They are bound when first used: a solver that works in score space needs none of them.
        """
        offsets, count = self.offsets, self.threads
        kernels: dict[int, list[BoundKernel]] = {}
        longest = max((offsets[hi] - offsets[lo] for lo, hi in self.bounds), default=0)
        for lane in range(count):
            # Blocks of a lane run one after the other and share a workspace.
            scores, grad = np.empty(int(longest)), np.empty(int(longest))
            for block in range(lane, len(self.bounds), count):
                lo, hi = self.bounds[block]
                a, b = int(offsets[lo]), int(offsets[hi])
                s, g, values = scores[: b - a], grad[: b - a], self._values[lo:hi]
                gradient = self._gradients[0 if self._batched else block]
                forward, backward = self.scorer.bind_slice(a, b, s, g, gradient)
                loss = self.target.bind_slice(lo, hi, s, values, g)
                weighting = bind_weighting(
                    g, self.query_weights[lo:hi], np.diff(offsets[lo : hi + 1])
                )
                kernels[block] = [forward, loss, weighting, backward]
        return [kernels[block] for block in range(len(self.bounds))]

    @cached_property
    def _lanes(self) -> Lanes:
        count = self.threads
        return Lanes(
            [
                [run for block in self._kernels[lane::count] for run in block]
                for lane in range(count)
            ]
        )

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
        self.scorer.load(params)
        self._lanes.run()
        value = float((self._values * self.query_weights).sum())
        gradient: Floats = self._gradients.sum(axis=0)
        return value + self.l2 / 2 * float(params @ params), gradient + self.l2 * params

    def evaluate_with_errors(self, params: Floats) -> LossWithErrors:
        """Return the mean loss and its gradient in float64, with bounds of their rounding errors.

        Only for smooth convex losses of linear scores.
        """
        blocks = _blocks(self.offsets, self._row_bytes, self.size, None)
        sums: dict[tuple[int, int], LossWithErrors] = {}

        def run(block: tuple[int, int]) -> None:
            sums[block] = self._block_with_errors(*block, params)

        lanes = [blocks[lane :: self.threads] for lane in range(self.threads)]
        Lanes([[partial(run, block) for block in lane] for lane in lanes]).run()
        losses, gradients, loss_errors, gradient_errors = zip(
            *(sums[block] for block in blocks), strict=True
        )
        return (
            float(sum(losses)),
            np.sum(gradients, axis=0),
            float(sum(loss_errors)),
            np.sum(gradient_errors, axis=0),
        )

    def _block_with_errors(self, lo: int, hi: int, params: Floats) -> LossWithErrors:
        """Return the sums of `evaluate_with_errors` over the queries lo:hi.

        Errors of the scores change the gradient by the scores at most by the norm of the Hessian.
        A loss kernel is taken to round its scores, relative to the highest one, and its results
        LOSS_ROUNDINGS times per document of the list.  Sums over rows are bounded by Euclidean
        norms, of the columns of X and of the errors.
        """
        ends = self.offsets[lo : hi + 1]
        a, b, lengths = int(ends[0]), int(ends[-1]), np.diff(ends)
        X = self.scorer.X[a:b]
        scores, values, grad = self.scorer.predict(params, X), np.empty(hi - lo), np.empty(b - a)
        self.target.bind_slice(lo, hi, scores, values, grad)()
        query_weights = self.query_weights[lo:hi]
        grad *= np.repeat(query_weights, lengths)

        unit = float(np.finfo(np.float64).eps)
        loss_unit = LOSS_ROUNDINGS * unit * int(lengths.max(initial=0))
        gradient, column_norms = float64_gradient(X, grad)
        below = np.repeat(_query_maxima(scores, ends - a), lengths) - scores
        score_error = (self.size + 2) * unit * float(column_norms @ np.abs(params))
        score_error += loss_unit * _norm(below)
        hessian_norms = query_weights * self.target.hessian_scale()[lo:hi]
        grad_norm = _norm(grad)
        grad_error = float(hessian_norms.max(initial=0.0)) * score_error
        grad_error += (loss_unit + (b - a) * unit) * grad_norm
        loss_error = grad_norm * score_error
        loss_error += (loss_unit + (hi - lo) * unit) * float(query_weights @ np.abs(values))
        return float(query_weights @ values), gradient, loss_error, column_norms * grad_error

    def score_range(self, params: Floats) -> tuple[float, float]:
        """Return the widest range of scores in a query, and the greatest absolute score."""
        scores = self.scorer.predict(params, self.scorer.X)
        starts = self.offsets[:-1][np.diff(self.offsets) > 0]
        if not len(starts):
            return 0.0, 0.0
        ranges = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
        return float(ranges.max(initial=0.0)), float(np.abs(scores).max(initial=0.0))

    def score_space(self) -> ScoreSpace:
        """Return the same objective as a function of the scores."""
        return ScoreSpace(self)

    def preconditioner(self) -> Floats | None:
        """Return the preconditioner of the scorer, estimated from a sample of the queries."""
        ranges = _sample(self.offsets, SAMPLE_ROWS * self.size)
        total = sum(float(self.query_weights[lo:hi].sum()) for lo, hi in ranges)
        slices = [self.offsets[lo : hi + 1] for lo, hi in ranges]
        curvatures = [self.score_curvature(lo, hi, total) for lo, hi in ranges]
        return self.scorer.preconditioner(slices, np.concatenate(curvatures), self.l2)

    def score_curvature(self, lo: int, hi: int, total: float) -> Floats:
        """Return about the second derivative by each score of the queries lo:hi, for query weights
        of this total."""
        ends = self.offsets[lo : hi + 1]
        a, b = int(ends[0]), int(ends[-1])
        weight = np.ones(b - a) if self._weights is None else self._weights[a:b]
        scale = self.query_weights[lo:hi] * self.target.hessian_scale()[lo:hi]
        per_query = scale / total * safe_inverse(query_sums(weight, ends - a))
        curvature: Floats = weight * np.repeat(per_query, np.diff(ends))
        return curvature

    def block(self, number: int, params: Floats) -> tuple[float, Floats]:
        """Return an estimate from one block; the mean over the blocks is the objective."""
        value, gradient = self.block_sum(number, params)
        times = len(self.bounds)
        penalty = self.l2 / 2 * float(params @ params)
        return value * times + penalty, gradient * times + self.l2 * params

    def block_sum(self, number: int, params: Floats) -> tuple[float, Floats]:
        """Return the weighted sum of the losses of one block, and its gradient in a buffer."""
        self.scorer.load(params)
        for run in self._kernels[number]:
            run()
        lo, hi = self.bounds[number]
        value = float((self._values[lo:hi] * self.query_weights[lo:hi]).sum())
        return value, self._gradients[0 if self._batched else number]

    def skip_draws(self, evaluations: int) -> None:
        """Continue as after this many more evaluations, where the loss or scorer draws."""
        self.target.skip_draws(evaluations)
        self.scorer.skip_draws(evaluations)

    def set_evaluation(self, number: int) -> None:
        """Set the number of the next evaluation, where the loss draws at random."""
        self.target.set_evaluation(number)

    def loss_error_bound(self) -> float:
        """Return by how much the mean loss at the last point may exceed the computed value."""
        return loss_error_bound(self.target, self._values, self.query_weights)


def _norm(values: Floats) -> float:
    """Return the Euclidean norm, without the threads of BLAS, which cost more than this sum."""
    return float(np.sqrt(np.square(values).sum()))


def _query_maxima(scores: Floats, ends: Ints) -> Floats:
    """Return the highest score of each query; 0 for queries without documents."""
    maxima = np.zeros(len(ends) - 1)
    filled = np.diff(ends) > 0
    maxima[filled] = np.maximum.reduceat(scores, ends[:-1][filled]) if filled.any() else 0.0
    return maxima


def _sample(offsets: Ints, rows: int) -> list[tuple[int, int]]:
    """Return a few evenly spaced ranges of queries, of about this many rows in all."""
    count, all_rows = len(offsets) - 1, int(offsets[-1])
    if all_rows <= rows or count <= SAMPLE_RANGES:
        return [(0, count)]
    ranges = []
    for i in range(SAMPLE_RANGES):
        lo = count * i // SAMPLE_RANGES
        hi = int(np.searchsorted(offsets, offsets[lo] + rows // SAMPLE_RANGES))
        ranges.append((lo, min(max(hi, lo + 1), count * (i + 1) // SAMPLE_RANGES)))
    return ranges


def _blocks(
    offsets: Ints, row_bytes: int, size: int, batch: int | None, first_query: int = 0
) -> list[tuple[int, int]]:
    """Return ranges of queries: of `batch` queries each, or of as many as BLOCK_BYTES hold.

    Batches begin at queries whose number, counted from `first_query`, is a multiple of `batch`.

    With many parameters blocks are larger, so that their gradients need at most a tenth of the
    memory of the features.
    """
    count = len(offsets) - 1
    if batch is not None:
        starts = range(-(first_query % batch), count, batch)
        return [(max(lo, 0), min(lo + batch, count)) for lo in starts]
    return query_ranges(offsets, max(1, max(BLOCK_BYTES, 80 * size) // max(row_bytes, 1)))


def query_ranges(offsets: Ints, rows: int) -> list[tuple[int, int]]:
    """Return ranges of consecutive queries of at most this many rows, but at least one query."""
    ranges, lo, count = [], 0, len(offsets) - 1
    while lo < count:
        hi = int(np.searchsorted(offsets, offsets[lo] + rows, side="right")) - 1
        hi = min(max(hi, lo + 1), count)
        ranges.append((lo, hi))
        lo = hi
    return ranges
