"""The terms of a loss on a device: values by query and slopes by score, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from firstpage.losses.loss import ShortLists, Term
from firstpage.solvers.gpu.libraries import on, torch
from firstpage.types import Array, Bools, Ints

if TYPE_CHECKING:
    from torch import Tensor

CHUNK = 4096  # queries whose subsets are looked at together


class DeviceLosses:
    """Terms of all queries; rows stand in the order `order`, from best to worst label."""

    def __init__(self, terms: Sequence[Term], offsets: Ints, order: Ints, device: str) -> None:
        self.offsets = offsets
        self._ends = on(device, offsets)
        self._terms: list[ShortOnDevice | TermOnDevice] = []
        self.only: TermOnDevice | None = None  # where there is no other: part of a whole pass
        for term in terms:
            if term.lists is not None:
                self._terms.append(ShortOnDevice(term, offsets, order, device))
                continue
            own = TermOnDevice(term, offsets, order, device)
            self._terms.append(own)
            if len(terms) == 1 and own.share == 1.0 and own.less is None:
                self.only = own

    def run(self, lo: int, hi: int, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Values of the queries lo:hi in float64, and slopes by their scores, in float32."""
        values = torch().zeros(hi - lo, dtype=torch().float64, device=scores.device)
        grad = torch().zeros_like(scores)
        for part in self._terms:
            own, slope = part.run(lo, hi, scores, self._ends)
            if part.less is not None:
                own = own - part.less[lo:hi]
            values += part.share * own
            grad += part.share * slope
        return values, grad


class TermOnDevice:
    """A term that Triton computes."""

    def __init__(self, term: Term, offsets: Ints, order: Ints, device: str) -> None:
        from firstpage.solvers.gpu.list_kernels import KINDS

        self.share = term.share
        self.less = None if term.less is None else on(device, term.less)
        self.loss, names, self.tile = KINDS[term.kind]
        empty = on(device, np.zeros(1, np.float32))
        self.rows = [
            empty if name is None else on(device, term.rows[name][order].astype(np.float32))
            for name in names
        ]
        counts = np.zeros(len(offsets) - 1, np.int32)
        if term.kind == "pairs":
            counts = _reached(term.rows["up"][order] > 0, offsets)
        self.counts = on(device, counts)
        self.factor = on(device, term.factor.astype(np.float32))

    def run(self, lo: int, hi: int, scores: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        from firstpage.solvers.gpu.list_kernels import each_query

        t = torch()
        values = t.zeros(hi - lo, dtype=t.float64, device=scores.device)
        grad, spare = t.zeros_like(scores), t.empty_like(scores)
        if hi > lo:
            each_query[(hi - lo,)](
                scores, grad, *self.rows, spare, ends, self.counts, self.factor, values, lo,
                self.tile, self.loss,
            )  # fmt: skip
        return values, grad


def _reached(better: Bools, offsets: Ints) -> Array:
    """How many documents from the first one on, to the last of these."""
    place = np.arange(1, len(better) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    found = np.zeros(len(offsets) - 1, np.int32)
    filled = np.diff(offsets) > 0
    reach = np.where(better, place, 0)
    if filled.any():
        found[filled] = np.maximum.reduceat(reach, offsets[:-1][filled])
    return found


class ShortOnDevice:
    """Permutations of a few documents: sums over subsets, as matrix products.

    Every document is taken once, so that the value is the sum over subsets of the chance that they
    are left times log(sum of exp of their scores), less the sum of all scores.
    """

    def __init__(self, term: Term, offsets: Ints, order: Ints, device: str) -> None:
        assert term.lists is not None
        self.share, self.device = term.share, device
        self.less = None if term.less is None else on(device, term.less)
        self.factor = on(device, term.factor)
        place = np.empty(len(order), np.int64)  # where a row of the file stands now
        place[order] = np.arange(len(order))
        self._groups = [self._group(term.lists, m, offsets, place) for m in _lengths(term.lists)]

    def _group(
        self, lists: ShortLists, m: int, offsets: Ints, place: Ints
    ) -> tuple[Ints, list[Tensor]]:
        """The queries of one length: which, their rows, chances of subsets."""
        which = np.flatnonzero(np.diff(lists.firsts) == m)
        docs = lists.docs[lists.firsts[which][:, None] + np.arange(m)]
        rows = place[offsets[which][:, None] + docs]
        subsets = np.arange(1 << m)
        inside = ((subsets[None, :] >> np.arange(m)[:, None]) & 1).astype(np.float64)
        reach = [lists.reach[s : s + (1 << m)] for s in lists.starts[:-1]]
        sized = np.array([len(r) == 1 << m for r in reach])
        number = np.cumsum(sized) - 1
        tables = np.array([r for r, fits in zip(reach, sized, strict=True) if fits])
        tables[:, 0] = 0.0  # nothing is left
        given = (rows, inside, tables, number[lists.table[which]])
        return which, [on(self.device, each) for each in given]

    def run(self, lo: int, hi: int, scores: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        t = torch()
        values = t.zeros(hi - lo, dtype=t.float64, device=scores.device)
        grad = t.zeros_like(scores)
        base = int(ends[lo])
        for which, (rows, inside, tables, table) in self._groups:
            a, b = np.searchsorted(which, (lo, hi)).tolist()
            for first in range(a, b, CHUNK):
                part = slice(first, min(first + CHUNK, b))
                own, slope = self._some(scores, rows[part] - base, inside, tables[table[part]])
                queries = on(self.device, which[part])
                factor = self.factor[queries]
                values[queries - lo] = factor * own
                grad[(rows[part] - base).reshape(-1)] = (
                    (factor[:, None] * slope).reshape(-1).to(grad.dtype)
                )
        return values, grad

    def _some(
        self, scores: Tensor, rows: Tensor, inside: Tensor, reach: Tensor
    ) -> tuple[Tensor, Tensor]:
        t = torch()
        s = scores[rows].to(t.float64)
        top = s.max(dim=1, keepdim=True).values
        e = t.exp(s - top)
        left = e @ inside
        left[:, 0] = 1.0
        left = left.clamp_min(t.finfo(t.float64).tiny)
        values = (reach * (t.log(left) + top)).sum(dim=1) - s.sum(dim=1)
        return values, e * ((reach / left) @ inside.T) - 1.0


def _lengths(lists: ShortLists) -> list[int]:
    return [m for m in np.unique(np.diff(lists.firsts)).tolist() if m > 1]
