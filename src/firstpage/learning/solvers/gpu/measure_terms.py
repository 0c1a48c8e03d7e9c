"""Losses that read a measure (PL-Rank, LambdaLoss), by the formulas of PyTorch.

Queries of similar length are padded to one length, a power of two, and computed together in
float64 by `learning.torch.measure_formulas`.  Random numbers are those of the CPU: a hash of the
seed, the evaluation, the query and the document.  So values and gradients are those of
`kernels.losses.plrank` and `lambdaloss` up to rounding, and equal to the last bit where a pass is
repeated on the same device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from firstpage.core import Ints, Words
from firstpage.core.kernels import MIX1, MIX2, S27, S30, S31, STEP
from firstpage.core.kernels.losses import CASCADE, PRECISION, TABLE, UNIT
from firstpage.learning.losses.base import LossTerm
from firstpage.learning.losses.lambdaloss import LambdaLossTarget
from firstpage.learning.losses.measure_forms import MeasureForm
from firstpage.learning.losses.plrank import MAX_EXACT, MAX_GAP, ExpectedMeasureTarget
from firstpage.learning.solvers.gpu.tensors import on, torch

if TYPE_CHECKING:
    from torch import Tensor

MAX_ELEMENTS = 1 << 23  # of a tensor of a chunk
MAX_PAIRS = 1 << 26  # of a chunk, where many documents are tied


class Chunk(NamedTuple):
    """Some queries, padded to one length.

    Attributes
    ----------
    queries : ndarray of int
        Their numbers.
    scores, gains : Tensor
        A row per query; the scores of padding are 0.
    lengths : Tensor
        The number of documents of each query.
    rows : Tensor
        The row on the device of each document, from the first of the slice.
    inside : Tensor
        Which entries are documents.
    """

    queries: Ints
    scores: Tensor
    gains: Tensor
    lengths: Tensor
    rows: Tensor
    inside: Tensor


class MeasureTermOnDevice:
    """Base class: the arrays of a term, and its queries by length."""

    def __init__(
        self,
        term: LossTerm,
        form: MeasureForm,
        informative: Any,
        offsets: Ints,
        order: Ints,
        device: str,
    ) -> None:
        self.weight, self.device = term.weight, device
        self.offset = None if term.offset is None else on(device, term.offset)
        self.form, self._offsets, self._order = form, offsets, order
        table = form.table if form.kind == TABLE else form.discount[:, None]
        self.table = on(device, table)
        self.scale, self._gains = on(device, form.scale), on(device, form.gains[order])
        lengths = np.diff(offsets)
        bits = np.frexp(np.maximum(lengths - 1, 0).astype(float))[1]
        self._widths = [
            (1 << int(bit), np.flatnonzero((bits == bit) & informative & (lengths > 1)))
            for bit in np.unique(bits)
        ]

    def run(self, lo: int, hi: int, scores: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of the queries lo:hi in float64, and the gradient."""
        t = torch()
        self._begin(lo, hi)
        values = t.zeros(hi - lo, dtype=t.float64, device=scores.device)
        grad = t.zeros(len(scores), dtype=t.float64, device=scores.device)
        for width, queries in self._widths:
            a, b = np.searchsorted(queries, (lo, hi)).tolist()
            count = max(MAX_ELEMENTS // (width * self._rows_per_query(width)), 1)
            for first in range(a, b, count):
                chunk = self._chunk(queries[first : min(first + count, b)], lo, width, scores)
                chunk_values, chunk_grad = self._compute(chunk)
                values[on(self.device, chunk.queries - lo)] = chunk_values
                grad[chunk.rows[chunk.inside]] = chunk_grad[chunk.inside]
        return values, grad.to(scores.dtype)

    def _chunk(self, queries: Ints, lo: int, width: int, scores: Tensor) -> Chunk:
        t = torch()
        starts = on(self.device, self._offsets[queries])
        lengths = on(self.device, np.diff(self._offsets)[queries])
        at = t.arange(width, device=self.device)
        inside = at < lengths[:, None]
        rows = t.where(inside, starts[:, None] + at, starts[:, None])
        own = rows - int(self._offsets[lo])
        padded = t.where(inside, scores[own].double(), 0.0)
        return Chunk(queries, padded, self._gains[rows], lengths, own, inside)

    def _begin(self, lo: int, hi: int) -> None:
        """Prepare an evaluation of the queries lo:hi."""

    def _rows_per_query(self, width: int) -> int:
        """Return how many numbers there are per document, in the largest tensor."""
        raise NotImplementedError

    def _compute(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        """Return the values and the gradient."""
        raise NotImplementedError


class ExpectedMeasureOnDevice(MeasureTermOnDevice):
    """The estimate of `kernels.losses.plrank.expected_measure`, for all samples at once."""

    def __init__(
        self, term: LossTerm, target: ExpectedMeasureTarget, offsets: Ints, order: Ints, device: str
    ) -> None:
        super().__init__(term, target.form, target.gain_range != 0, offsets, order, device)
        self.target = target
        self.best = on(device, target.best)
        self._documents = on(device, order - np.repeat(offsets[:-1], np.diff(offsets)))
        self._evaluation = 0

    def _begin(self, lo: int, hi: int) -> None:
        self._evaluation = int(self.target.evaluations[lo])
        self._first = int(self._offsets[lo])
        self.target.evaluations[lo:hi] += 1

    def _rows_per_query(self, width: int) -> int:
        return self.target.samples * (1 + int(self.table.shape[1]))

    def _uniform(self, chunk: Chunk) -> Tensor:
        """Return the uniform random numbers of all samples and documents."""
        t, target = torch(), self.target
        with np.errstate(over="ignore"):
            call = mixed(np.asarray([target.seed], np.uint64) + STEP)
            call = mixed(call + np.uint64(self._evaluation))
            key = mixed(call + (chunk.queries + int(target.first_query[0])).astype(np.uint64))
            keys = np.empty((len(key), target.samples), np.uint64)
            for sample in range(target.samples):
                keys[:, sample] = key = mixed(key + STEP)
        documents = self._documents[chunk.rows + self._first]
        state = (
            on(self.device, keys.view(np.int64))[:, :, None]
            + ((documents + 1) * _signed(STEP))[:, None, :]
        )
        state = (state ^ _shifted(state, 30)) * _signed(MIX1)
        state = (state ^ _shifted(state, 27)) * _signed(MIX2)
        words = _shifted(state ^ _shifted(state, 31), 11)
        uniform: Tensor = (words.to(t.float64) + 0.5) * UNIT
        return uniform

    def _compute(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        from firstpage.learning.torch.measure_formulas import RankForm, expected_measure

        form, numbers = RankForm(self.form.kind, self.table), on(self.device, chunk.queries)
        scores, uniforms = _compressed(chunk), self._uniform(chunk)
        values, grad = expected_measure(scores, chunk.gains, chunk.inside, form, uniforms)
        scale = self.scale[numbers]
        return self.best[numbers] - scale * values, -scale[:, None] * grad


def _compressed(chunk: Chunk) -> Tensor:
    """Return the scores; if some are huge, with the gaps between them reduced to MAX_GAP."""
    t = torch()
    if float(chunk.scores.abs().max()) <= MAX_EXACT:
        return chunk.scores
    padded = chunk.scores.masked_fill(~chunk.inside, -np.inf)
    scores, order = t.sort(padded, dim=1, descending=True, stable=True)
    gaps = (scores[:, :-1] - scores[:, 1:]).clamp(max=MAX_GAP)
    reduced = -t.nn.functional.pad(gaps, (1, 0)).cumsum(1)
    return t.where(chunk.inside, t.zeros_like(scores).scatter(1, order, reduced), 0.0)


def mixed(state: Words) -> Words:
    """Return `kernels.hashing.mix` of an array."""
    z = (state ^ (state >> S30)) * MIX1
    z = (z ^ (z >> S27)) * MIX2
    out: Words = z ^ (z >> S31)
    return out


def _signed(word: np.uint64) -> int:
    return int(word.astype(np.int64))


def _shifted(words: Tensor, bits: int) -> Tensor:
    """Return 64-bit words shifted to the right, filled with zeros."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)


class LambdaLossOnDevice(MeasureTermOnDevice):
    """The loss of `kernels.losses.lambdaloss`, for all pairs of a query at once.

    With ties, the mean weights of kinds CASCADE and PRECISION are computed on the host.
    """

    def __init__(
        self, term: LossTerm, target: LambdaLossTarget, offsets: Ints, order: Ints, device: str
    ) -> None:
        super().__init__(term, target.form, target.form.scale != 0, offsets, order, device)
        self.target, self.doubles = target, on(device, target.doubles)

    def _rows_per_query(self, width: int) -> int:
        # All documents may be tied with the last one that counts.
        return width * max(self.form.columns, 1) // 4 + 1

    def _compute(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        from firstpage.learning.torch.measure_formulas import RankForm, lambda_loss, sort_lists

        t, kind, depth = torch(), self.form.kind, self.form.depth
        lists = sort_lists(chunk.scores, chunk.inside)
        counted = lists.first < chunk.lengths.clamp(max=depth)[:, None]
        rows = int(counted.sum(1).max())
        if len(chunk.queries) * rows * chunk.scores.shape[1] > MAX_PAIRS:  # many documents are tied
            values, grad = t.zeros_like(chunk.lengths).double(), t.zeros_like(chunk.scores)
            self._on_host(t.ones_like(chunk.lengths), chunk, values, grad)
            return values, grad
        form, target = RankForm(kind, self.table), self.target
        values, grad = lambda_loss(
            lists, chunk.gains, form, target.variant, target.mu, self.doubles, rows, t.float64
        )
        scale = self.scale[on(self.device, chunk.queries)]
        values, grad = scale * values, scale[:, None] * grad
        if kind in (CASCADE, PRECISION):
            tied = (lists.end - lists.first > 1) & counted
            self._on_host(tied.any(1), chunk, values, grad)
        return values, grad

    def _on_host(self, some: Tensor, chunk: Chunk, values: Tensor, grad: Tensor) -> None:
        """Replace the values and gradients of some queries by those of the host."""
        for number in np.flatnonzero(some.cpu().numpy()).tolist():
            q = int(chunk.queries[number])
            lo, hi = int(self._offsets[q]), int(self._offsets[q + 1])
            documents = self._order[lo:hi] - lo
            scores, value, gradient = np.empty(hi - lo), np.empty(1), np.empty(hi - lo)
            scores[documents] = chunk.scores[number, : hi - lo].cpu().numpy()
            self.target.bind_slice(q, q + 1, scores, value, gradient)()
            values[number] = float(value[0])
            grad[number, : hi - lo] = on(self.device, gradient[documents])


def measure_term(
    term: LossTerm, offsets: Ints, order: Ints, device: str
) -> ExpectedMeasureOnDevice | LambdaLossOnDevice:
    """Return a term that reads a measure, on the device."""
    target: Any = term.measure
    if isinstance(target, ExpectedMeasureTarget):
        return ExpectedMeasureOnDevice(term, target, offsets, order, device)
    assert isinstance(target, LambdaLossTarget)
    return LambdaLossOnDevice(term, target, offsets, order, device)
