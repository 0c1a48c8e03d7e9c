"""Losses that read a measure (PL-Rank, LambdaLoss), by PyTorch alone.

Queries of similar length are padded to one length, a power of two, and computed together in
float64.  Random numbers are those of the CPU: a hash of the seed, the evaluation, the query and the
document.  So values and gradients are those of `kernels.losses.plrank` and `lambdaloss` up to
rounding, and equal to the last bit where a pass is repeated on the same device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from firstpage.core import Ints, Words
from firstpage.core.kernels import MIX1, MIX2, S27, S30, S31, STEP
from firstpage.core.kernels.losses import (
    ADDITIVE,
    CASCADE,
    LAMBDARANK,
    LOSS2,
    PRECISION,
    TABLE,
    UNIT,
)
from firstpage.learning.losses.base import LossTerm
from firstpage.learning.losses.lambdaloss import LambdaLossTarget
from firstpage.learning.losses.measure_forms import MeasureForm
from firstpage.learning.losses.plrank import MAX_EXACT, MAX_GAP, ExpectedMeasureTarget
from firstpage.learning.solvers.gpu.tensors import on, torch

if TYPE_CHECKING:
    from torch import Tensor

MAX_ELEMENTS = 1 << 23  # of a tensor of a chunk
MAX_PAIRS = 1 << 26  # of a chunk, where many documents are tied
LOW = float(np.finfo(np.float64).min)  # the score of padding; differences of two are not NaN


class Chunk(NamedTuple):
    """Some queries, padded to one length.

    Attributes
    ----------
    queries : ndarray of int
        Their numbers.
    scores, gains : Tensor
        A row per query; the scores of padding are LOW.
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
        self.discount, self.table = on(device, form.discount), on(device, form.table)
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
        padded = t.where(inside, scores[own].double(), LOW)
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
        return self.target.samples

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
        t, kind, samples = torch(), self.form.kind, self.target.samples
        chunk = chunk._replace(scores=_compressed(chunk))
        width = chunk.scores.shape[1]
        depth = min(self.form.depth, width)
        each = (len(chunk.queries), samples, width)
        arrival = t.log(-t.log(self._uniform(chunk))) - chunk.scores[:, None]
        items = t.topk(arrival, depth, dim=2, largest=False, sorted=True).indices
        scores = chunk.scores[:, None].expand(each)
        ranked = t.zeros(each, dtype=t.bool, device=self.device).scatter_(2, items, True)
        rest = scores.masked_fill(ranked, LOW)
        below = t.logsumexp(rest, 2)
        item_scores = scores.gather(2, items)
        # From the last document upward: the log of the sum over the documents from this rank on.
        upward = t.cat([below[:, :, None], item_scores.flip(2)], 2)
        logs = t.logcumsumexp(upward, 2).flip(2)
        logs, following = logs[:, :, :-1], logs[:, :, 1:]
        p, remain = t.exp(item_scores - logs), t.exp(following - logs)
        shrink = t.exp(logs[:, :, 1:] - logs[:, :, :-1])
        rest_p = t.exp(rest - below[:, :, None])
        counted = (t.arange(depth, device=self.device) < chunk.lengths[:, None]).double()
        item_gains = chunk.gains[:, None].expand(each).gather(2, items)
        last = t.exp(rest - logs[:, :, -1:])
        if kind == TABLE:
            own, means, center, direct = self._by_table(
                chunk, items, p, remain, shrink, rest_p, counted
            )
        else:
            own, means, center, direct = self._by_gain(
                chunk, item_gains, p, remain, shrink, rest_p, counted
            )
        togo = own.flip(2).cumsum(2).flip(2) - own  # below each rank
        risk = _decayed(means + togo, shrink)
        ranked_grad = togo + p * (direct[0] - risk)
        grad = last * (direct[1] - risk[:, :, -1:])
        grad = grad.scatter(2, items, ranked_grad).sum(1)
        scale = self.scale[on(self.device, chunk.queries)]
        expected = means.sum((1, 2)) / samples + center.sum(1)
        values = self.best[on(self.device, chunk.queries)] - scale * expected
        return values, -grad * (scale / samples)[:, None]

    def _by_gain(
        self,
        chunk: Chunk,
        item_gains: Tensor,
        p: Tensor,
        remain: Tensor,
        shrink: Tensor,
        rest_p: Tensor,
        counted: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Return the rewards of the ranks, their expectations, what they are relative to, and the
        sums of p * weight of ranked documents and of the others."""
        t, kind, depth = torch(), self.form.kind, p.shape[2]
        mean_gain = t.zeros(len(chunk.queries), dtype=t.float64, device=self.device)
        if kind == ADDITIVE:
            mean_gain = (chunk.gains * chunk.inside).sum(1) / chunk.lengths
        means = _upward_means(p, remain, item_gains, (rest_p * chunk.gains[:, None]).sum(2))
        state = t.ones_like(item_gains)
        if kind == CASCADE:
            state[:, :, 1:] = (1.0 - item_gains[:, :, :-1]).cumprod(2)
        elif kind == PRECISION:
            state[:, :, 1:] += item_gains[:, :, :-1].cumsum(2)
        weights = self.discount[:depth] * state * counted[:, None]
        relative = item_gains - mean_gain[:, None, None]
        one = _decayed(weights, shrink)
        direct = (
            relative * one,
            (chunk.gains - mean_gain[:, None])[:, None] * one[:, :, -1:],
        )
        center = mean_gain[:, None] * self.discount[:depth] * counted
        means = (means - mean_gain[:, None, None]) * weights
        return relative * weights, means, center, direct

    def _by_table(
        self,
        chunk: Chunk,
        items: Tensor,
        p: Tensor,
        remain: Tensor,
        shrink: Tensor,
        rest_p: Tensor,
        counted: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Return the same as `_by_gain` for weights of a rank and a column."""
        t, depth, columns = torch(), p.shape[2], self.form.columns
        column = chunk.gains.long()
        one_hot = t.nn.functional.one_hot(column, columns).double()
        table = self.table[:depth]
        center = (one_hot * chunk.inside[:, :, None]).sum(1) @ table.T / chunk.lengths[:, None]
        item_columns = column[:, None].expand(rest_p.shape).gather(2, items)
        items_hot = t.nn.functional.one_hot(item_columns, columns).double()
        rest_mean = t.einsum("qsw,qwc->qsc", rest_p, one_hot)
        fractions = _upward_means(p[..., None], remain[..., None], items_hot, rest_mean)
        means = ((fractions * table).sum(3) - center[:, None]) * counted[:, None]
        own = ((items_hot * table).sum(3) - center[:, None]) * counted[:, None]
        steps = (table[None] - center[:, :, None]) * counted[:, :, None]
        sums = _decayed(steps[:, None].expand(*p.shape, columns), shrink[..., None])
        ranked = sums.gather(3, item_columns[..., None])[..., 0]
        others = sums[:, :, -1].gather(2, column[:, None].expand(rest_p.shape))
        return own, means, center * counted, (ranked, others)


def _compressed(chunk: Chunk) -> Tensor:
    """Return the scores; if some are huge, with the gaps between them reduced to MAX_GAP."""
    t = torch()
    if float(t.where(chunk.inside, chunk.scores, 0.0).abs().max()) <= MAX_EXACT:
        return chunk.scores
    scores, order = t.sort(chunk.scores, dim=1, descending=True, stable=True)
    gaps = (scores[:, :-1] - scores[:, 1:]).clamp(max=MAX_GAP)
    reduced = -t.nn.functional.pad(gaps, (1, 0)).cumsum(1)
    return t.where(chunk.inside, t.zeros_like(scores).scatter(1, order, reduced), LOW)


def _upward_means(p: Tensor, remain: Tensor, gains: Tensor, mean: Tensor) -> Tensor:
    """Return the expected gain at each rank: that of its document with probability p, else the
    mean of those below."""
    means = torch().empty_like(gains)
    for x in range(gains.shape[2] - 1, -1, -1):
        mean = p[:, :, x] * gains[:, :, x] + remain[:, :, x] * mean
        means[:, :, x] = mean
    return means


def _decayed(values: Tensor, shrink: Tensor) -> Tensor:
    """Return the sums over ranks up to each one, multiplied by `shrink` from rank to rank."""
    sums = values.clone()
    for x in range(1, values.shape[2]):
        sums[:, :, x] += sums[:, :, x - 1] * shrink[:, :, x - 1]
    return sums


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
        form = target.form
        ranks = np.arange(form.depth, dtype=np.float64)
        values = form.table if form.kind == TABLE else form.discount[:, None]
        # Sums over the ranks before each one: of the discounts, and of rank * discount.
        empty = np.zeros((1, values.shape[1]))
        self._sums = on(device, np.vstack([empty, np.cumsum(values, axis=0)]))
        self._moments = on(device, np.vstack([empty, np.cumsum(ranks[:, None] * values, axis=0)]))

    def _rows_per_query(self, width: int) -> int:
        # All documents may be tied with the last one that counts.
        return width * max(self.form.columns, 1) // 4 + 1

    def _compute(self, chunk: Chunk) -> tuple[Tensor, Tensor]:
        t, form = torch(), self.form
        scores, order = t.sort(chunk.scores, dim=1, descending=True, stable=True)
        gains = chunk.gains.gather(1, order)
        width = scores.shape[1]
        at = t.arange(width, device=self.device)
        starts, ends = _blocks(scores)
        reach = int((starts < chunk.lengths.clamp(max=form.depth)[:, None]).sum(1).max())
        if len(chunk.queries) * reach * width > MAX_PAIRS:  # many documents are tied
            values, grad = t.zeros_like(chunk.lengths).double(), t.zeros_like(chunk.scores)
            self._on_host(t.ones_like(chunk.lengths), chunk, values, grad)
            return values, grad
        # Rank i is above rank j, or both are tied.
        i, j = slice(0, reach), slice(0, width)
        above, other = gains[:, i, None], gains[:, None, j]
        counted = (at[None, :] > at[:reach, None]) & (at < chunk.lengths[:, None])[:, None]
        counted = counted & (starts[:, i, None] < form.depth) & (above != other)
        tied = starts[:, i, None] == starts[:, None, j]
        if form.kind == TABLE:
            weight = self._table_weights(gains, starts, ends, reach, tied)
        else:
            weight = t.zeros(1, dtype=t.float64, device=self.device)
            if self.target.variant != LOSS2:
                weight = self._weights(gains, starts, ends, reach, tied)
            if self.target.variant != LAMBDARANK:
                factor = 1.0 if self.target.variant == LOSS2 else self.target.mu
                weight = weight + factor * self._rank_differences(starts, ends, reach, tied)
            weight = weight * (above - other).abs()
        weight = t.where(counted, weight, 0.0)
        x = t.where(counted, scores[:, i, None] - scores[:, None, j], 0.0)
        small = t.exp(-x)
        better = above > other
        upper = small / (1.0 + small)
        value = weight * (t.log1p(small) + t.where(better, 0.0, x))
        p = weight * (upper - t.where(better, 0.0, 1.0))
        grad = p.sum(1)
        grad[:, i] -= p.sum(2)
        scale = self.scale[on(self.device, chunk.queries)]
        values = scale * value.sum((1, 2))
        grad = t.zeros_like(grad).scatter(1, order, grad) * scale[:, None]
        if form.kind in (CASCADE, PRECISION):
            some = (ends - starts > 1) & (starts < form.depth) & (at < chunk.lengths[:, None])
            self._on_host(some.any(1), chunk, values, grad)
        return values, grad

    def _weights(
        self, gains: Tensor, starts: Tensor, ends: Tensor, reach: int, tied: Tensor
    ) -> Tensor:
        """Return the mean change of the measure per difference of gains."""
        t, kind = torch(), self.form.kind
        width = gains.shape[1]
        if kind == ADDITIVE:
            mean, inner = self._block_means(starts, ends)
            between = (mean[:, :reach] - mean[:, None, :, 0]).abs()
            return t.where(tied, inner[:, :reach].abs(), between)
        discount = t.zeros(width + 1, dtype=t.float64, device=self.device)
        depth = min(width, len(self.discount))
        discount[:depth] = self.discount[:depth]
        step = discount[:-1] - discount[1:]  # from rank r to r + 1
        if kind == PRECISION:
            state = 1.0 + gains.cumsum(1)  # below rank r
            sums = (step * state).cumsum(1) - step * state
            own = gains * discount[:-1]
            change = sums[:, None] - sums[:, :reach, None]
            change = change - own[:, :reach, None] + gains[:, :reach, None] * discount[:-1]
            return change.abs()
        at = t.arange(width, device=self.device)
        self_ = at[None, :] == at[:reach, None]
        state = t.where(self_, 1.0, 1.0 - gains[:, None]).cumprod(2)  # below rank r, without i
        passed = t.where(at[None, :] >= at[:reach, None], step * state, 0.0)
        return (passed.cumsum(2) - passed).abs()

    def _block_means(self, starts: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Return, by rank and column, the mean weight of the block, and the mean difference of the
        weights of two of its ranks."""
        a, b = starts.clamp(max=self.form.depth), ends.clamp(max=self.form.depth)
        size = (ends - starts).double()[..., None]
        total = self._sums[b] - self._sums[a]
        moment = self._moments[b] - self._moments[a] - starts.double()[..., None] * total
        pairs = (0.5 * size * (size - 1.0)).clamp(min=1.0)
        return total / size, ((size - 1.0) * total - 2.0 * moment) / pairs

    def _table_weights(
        self, gains: Tensor, starts: Tensor, ends: Tensor, reach: int, tied: Tensor
    ) -> Tensor:
        t = torch()
        mean, inner = self._block_means(starts, ends)
        column = gains.long()
        above = column[:, :reach, None].expand(tied.shape)
        other = column[:, None].expand(tied.shape)

        def difference(of: Tensor) -> Tensor:
            """Return the weights of both columns at the block of rank i, subtracted."""
            change: Tensor = of.gather(2, above) - of.gather(2, other)
            return change

        below = mean.gather(2, above.transpose(1, 2)).transpose(1, 2)
        below = below - mean.gather(2, column[..., None]).transpose(1, 2)
        between = difference(mean[:, :reach]) - below
        return t.where(tied, difference(inner[:, :reach]), between).abs()

    def _rank_differences(self, starts: Tensor, ends: Tensor, reach: int, tied: Tensor) -> Tensor:
        """Return the mean weight of the difference of both ranks, in the variants "loss2"."""
        t, depth = torch(), self.form.depth
        a, last = starts[:, :reach, None], ends[:, :reach, None].clamp(max=depth) - 1
        size = (ends - starts)[:, :reach, None]
        b, b_last = starts[:, None], ends[:, None] - 1

        def doubles(index: Tensor) -> Tensor:
            """Return the double sums; pairs of which an index is out of range do not count."""
            return self.doubles[index.clamp(0, len(self.doubles) - 1)]

        total = doubles(b_last - a + 1) - doubles(b_last - last)
        total = total - doubles(b - a) + doubles(b - 1 - last)
        between = total / (size * (ends - starts)[:, None])
        inner = doubles(size) - doubles(size - (last - a + 1))
        pairs = (0.5 * size * (size - 1)).clamp(min=1.0)
        return t.where(tied, inner / pairs, between)

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


def _blocks(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first rank of each rank's tied scores, and the end of these."""
    t = torch()
    width = scores.shape[1]
    at = t.arange(width, device=scores.device).expand(scores.shape)
    changes = scores[:, 1:] != scores[:, :-1]
    starts = t.where(t.nn.functional.pad(changes, (1, 0), value=True), at, 0).cummax(1).values
    last = t.where(t.nn.functional.pad(changes, (0, 1), value=True), at, width)
    ends = last.flip(1).cummin(1).values.flip(1) + 1
    return starts, ends


def measure_term(
    term: LossTerm, offsets: Ints, order: Ints, device: str
) -> ExpectedMeasureOnDevice | LambdaLossOnDevice:
    """Return a term that reads a measure, on the device."""
    target: Any = term.measure
    if isinstance(target, ExpectedMeasureTarget):
        return ExpectedMeasureOnDevice(term, target, offsets, order, device)
    assert isinstance(target, LambdaLossTarget)
    return LambdaLossOnDevice(term, target, offsets, order, device)
