"""The terms of a loss on a device: values per query and gradients by score, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from firstpage.losses.loss import LossTerm, ShortLists
from firstpage.solvers.gpu.libraries import on, torch
from firstpage.types import Array, Bools, Ints

if TYPE_CHECKING:
    from torch import Tensor

QUERIES_PER_CHUNK = 4096  # whose subsets are computed together


class DeviceLosses:
    """The terms of all queries; rows stand in the order `order`, from best to worst label."""

    def __init__(self, terms: Sequence[LossTerm], offsets: Ints, order: Ints, device: str) -> None:
        self.offsets = offsets
        self._ends = on(device, offsets)
        self._terms: list[PermutationTermOnDevice | TermOnDevice] = []
        self.single_term: TermOnDevice | None = None  # the only term, which a fused pass can take
        for term in terms:
            if term.lists is not None:
                self._terms.append(PermutationTermOnDevice(term, offsets, order, device))
                continue
            uploaded = TermOnDevice(term, offsets, order, device)
            self._terms.append(uploaded)
            if len(terms) == 1 and uploaded.weight == 1.0 and uploaded.offset is None:
                self.single_term = uploaded

    def run(self, lo: int, hi: int, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of the queries lo:hi in float64, and the gradient in float32."""
        values = torch().zeros(hi - lo, dtype=torch().float64, device=scores.device)
        grad = torch().zeros_like(scores)
        for term in self._terms:
            term_values, term_grad = term.run(lo, hi, scores, self._ends)
            if term.offset is not None:
                term_values = term_values - term.offset[lo:hi]
            values += term.weight * term_values
            grad += term.weight * term_grad
        return values, grad


class TermOnDevice:
    """A term that Triton computes."""

    def __init__(self, term: LossTerm, offsets: Ints, order: Ints, device: str) -> None:
        from firstpage.solvers.gpu.list_kernels import KINDS

        self.weight = term.weight
        self.offset = None if term.offset is None else on(device, term.offset)
        self.loss, names, self.tile = KINDS[term.kind]
        empty = on(device, np.zeros(1, np.float32))
        self.columns = [
            empty if name is None else on(device, term.columns[name][order].astype(np.float32))
            for name in names
        ]
        counts = np.zeros(len(offsets) - 1, np.int32)
        if term.kind == "pairs":
            counts = _last_true(term.columns["upper"][order] > 0, offsets)
        self.counts = on(device, counts)
        self.factor = on(device, term.factor.astype(np.float32))

    def run(self, lo: int, hi: int, scores: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        from firstpage.solvers.gpu.list_kernels import each_query

        t = torch()
        values = t.zeros(hi - lo, dtype=t.float64, device=scores.device)
        grad, workspace = t.zeros_like(scores), t.empty_like(scores)
        if hi > lo:
            each_query[(hi - lo,)](
                scores, grad, *self.columns, workspace, ends, self.counts, self.factor, values, lo,
                self.tile, self.loss,
            )  # fmt: skip
        return values, grad


def _last_true(mask: Bools, offsets: Ints) -> Array:
    """Return, per query, the number of documents up to and including the last true one."""
    position = np.arange(1, len(mask) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    counts = np.zeros(len(offsets) - 1, np.int32)
    filled = np.diff(offsets) > 0
    reach = np.where(mask, position, 0)
    if filled.any():
        counts[filled] = np.maximum.reduceat(reach, offsets[:-1][filled])
    return counts


class PermutationTermOnDevice:
    """Permutations of a few documents: sums over subsets, as matrix products.

    Every document is ranked once, so that the value is the sum over subsets of the probability that
    the subset is left over times log(sum of exp of its scores), minus the sum of all scores.
    """

    def __init__(self, term: LossTerm, offsets: Ints, order: Ints, device: str) -> None:
        assert term.lists is not None
        self.weight, self.device = term.weight, device
        self.offset = None if term.offset is None else on(device, term.offset)
        self.factor = on(device, term.factor)
        position = np.empty(len(order), np.int64)  # of each row of the data in the order used here
        position[order] = np.arange(len(order))
        self._groups = [self._group(term.lists, m, offsets, position) for m in _lengths(term.lists)]

    def _group(
        self, lists: ShortLists, m: int, offsets: Ints, position: Ints
    ) -> tuple[Ints, list[Tensor]]:
        """Return the queries of one length, and their rows, subsets and subset probabilities."""
        queries = np.flatnonzero(np.diff(lists.firsts) == m)
        docs = lists.docs[lists.firsts[queries][:, None] + np.arange(m)]
        rows = position[offsets[queries][:, None] + docs]
        subsets = np.arange(1 << m)
        inside = ((subsets[None, :] >> np.arange(m)[:, None]) & 1).astype(np.float64)
        reach = [lists.reach[s : s + (1 << m)] for s in lists.starts[:-1]]
        of_length = np.array([len(r) == 1 << m for r in reach])
        number = np.cumsum(of_length) - 1
        tables = np.array([r for r, fits in zip(reach, of_length, strict=True) if fits])
        tables[:, 0] = 0.0  # the empty subset
        arrays = (rows, inside, tables, number[lists.table[queries]])
        return queries, [on(self.device, array) for array in arrays]

    def run(self, lo: int, hi: int, scores: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        t = torch()
        values = t.zeros(hi - lo, dtype=t.float64, device=scores.device)
        grad = t.zeros_like(scores)
        base = int(ends[lo])
        for group, (rows, inside, tables, table) in self._groups:
            a, b = np.searchsorted(group, (lo, hi)).tolist()
            for first in range(a, b, QUERIES_PER_CHUNK):
                chunk = slice(first, min(first + QUERIES_PER_CHUNK, b))
                chunk_values, chunk_grad = self._chunk(
                    scores, rows[chunk] - base, inside, tables[table[chunk]]
                )
                queries = on(self.device, group[chunk])
                factor = self.factor[queries]
                values[queries - lo] = factor * chunk_values
                grad[(rows[chunk] - base).reshape(-1)] = (
                    (factor[:, None] * chunk_grad).reshape(-1).to(grad.dtype)
                )
        return values, grad

    def _chunk(
        self, scores: Tensor, rows: Tensor, inside: Tensor, reach: Tensor
    ) -> tuple[Tensor, Tensor]:
        t = torch()
        s = scores[rows].to(t.float64)
        top = s.max(dim=1, keepdim=True).values
        e = t.exp(s - top)
        sums = e @ inside
        sums[:, 0] = 1.0
        sums = sums.clamp_min(t.finfo(t.float64).tiny)
        values = (reach * (t.log(sums) + top)).sum(dim=1) - s.sum(dim=1)
        return values, e * ((reach / sums) @ inside.T) - 1.0


def _lengths(lists: ShortLists) -> list[int]:
    """Return the different lengths of lists of two or more documents."""
    return [m for m in np.unique(np.diff(lists.firsts)).tolist() if m > 1]
