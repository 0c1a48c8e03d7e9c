"""Objectives whose passes run on a device, with the interface of those on the host.

Losses are computed by Triton without padding: one value per query, one derivative per score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from firstpage.core import Array, Bools, Floats, Ints
from firstpage.data import Truth
from firstpage.learning.gpu import has_kernels
from firstpage.learning.losses.base import LossTerm, ShortLists
from firstpage.learning.scorers.network import BoundNetwork
from firstpage.learning.solvers.gpu.measure_terms import MeasureTermOnDevice, measure_term
from firstpage.learning.solvers.gpu.tensors import checked, on, torch
from firstpage.learning.solvers.objective import BlockObjective, query_ranges
from firstpage.learning.solvers.solver import LossWithErrors, Objective

if TYPE_CHECKING:
    from torch import Tensor

    from firstpage.data import Features
    from firstpage.learning.scorers.torch_operations import TorchOperations

FLOAT32_ERROR = 1e-7  # relative error of an objective computed in float32
CHUNK_ROWS = 1 << 18  # uploaded, or sent through a network, at once
QUERIES_PER_CHUNK = 4096  # whose subsets are computed together
MAX_FUSED_FEATURES = 1024  # that a program can hold
PROGRAM_VALUES = 32 * 160  # numbers of the features that a program holds at once
PROGRAMS_PER_MULTIPROCESSOR = 4  # so that what they read twice stays in the cache


def device_objective(host: BlockObjective, truth: Truth, device: str) -> Objective:
    """Return the objective on a device if its loss can be computed there; else that of the host.

    `host` is set up on the same data, and does what is not done on the device.
    """
    bound, terms = host.scorer, host.target.terms()
    if terms is None or not _computable(terms, device):
        return HostLossObjective(host, device) if bound.linear else host
    order = truth.by_label[0]
    losses = DeviceLosses(terms, truth.offsets, order, device)
    if bound.linear:
        return LinearObjective(host, losses, order, device)
    return NetworkObjective(host, losses, order)


def _computable(terms: Sequence[LossTerm], device: str) -> bool:
    """Return whether all terms can be computed there; terms of measures need float64 only."""
    if all(term.measure is not None for term in terms):
        return not device.startswith("mps")
    return has_kernels(device)


class _DeviceObjective:
    """Base class: the attributes that solvers read."""

    def __init__(self, host: BlockObjective, device: str) -> None:
        self.host, self.device = host, device
        self.l2, self.query_weights, self.bounds = host.l2, host.query_weights, host.bounds
        self.size, self.relative_error = host.size, max(FLOAT32_ERROR, host.relative_error)
        self._query_weights = on(device, host.query_weights)

    def preconditioner(self) -> Floats | None:
        return self.host.preconditioner()

    def score_range(self, params: Floats) -> tuple[float, float]:
        return self.host.score_range(params)

    def evaluate_with_errors(self, params: Floats) -> LossWithErrors:
        return self.host.evaluate_with_errors(params)

    def skip_draws(self, evaluations: int) -> None:
        self.host.skip_draws(evaluations)

    def _with_penalty(self, value: float, gradient: Tensor, params: Floats) -> tuple[float, Floats]:
        on_host: Floats = gradient.double().cpu().numpy()
        return value + self.l2 / 2 * float(params @ params), on_host + self.l2 * params


class HostLossObjective(_DeviceObjective):
    """Features on the device, the loss on the host: for losses and devices without kernels."""

    def __init__(self, host: BlockObjective, device: str) -> None:
        super().__init__(host, device)
        X = host.scorer.X
        self._X = uploaded(X, np.arange(X.shape[0]), device)
        rows, queries = X.shape[0], len(host.query_weights)
        self._scores, self._grad, self._values = np.empty(rows), np.empty(rows), np.empty(queries)
        self._loss = host.target.bind_slice(0, queries, self._scores, self._values, self._grad)
        self._row_weights = np.repeat(host.query_weights, np.diff(host.offsets))

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        w = on(self.device, params.astype(np.float32))
        self._scores[:] = (self._X @ w).double().cpu().numpy()
        self._loss()
        grad = on(self.device, (self._grad * self._row_weights).astype(np.float32))
        value = float(self._values @ self.host.query_weights)
        return self._with_penalty(value, self._X.T @ grad, params)

    def block(self, number: int, params: Floats) -> tuple[float, Floats]:
        """Return an estimate from one block, which is computed on the host."""
        return self.host.block(number, params)


class LinearObjective(_DeviceObjective):
    """Linear scores: features are read about once per pass."""

    def __init__(
        self, host: BlockObjective, losses: DeviceLosses, order: Ints, device: str
    ) -> None:
        super().__init__(host, device)
        t = torch()
        self._losses = losses
        self._X = uploaded(host.scorer.X, order, device)
        rows, queries = self._X.shape[0], len(host.query_weights)
        self._offsets = on(device, host.offsets)
        row_weights = np.repeat(host.query_weights, np.diff(host.offsets))
        self._row_weights = on(device, row_weights.astype(np.float32))
        self._float_weights = self._query_weights.float()
        self._fused_term = losses.single_term if 1 < self.size <= MAX_FUSED_FEATURES else None
        if self._fused_term is not None:
            programs = PROGRAMS_PER_MULTIPROCESSOR * _multiprocessors(device)
            self._firsts = on(device, _balanced_ranges(host.offsets, programs))
            self._workspace = [t.empty(rows, device=device) for _ in range(3)]
            self._values = t.zeros(queries, dtype=t.float64, device=device)
            self._gradients = t.zeros((programs, self.size), device=device)

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        w = on(self.device, params.astype(np.float32))
        if self._fused_term is None:
            values, grad = self._losses.run(0, len(self.query_weights), self._X @ w)
            gradient = self._X.T @ (grad * self._row_weights)
            return self._with_penalty(float(values @ self._query_weights), gradient, params)
        self._pass(w)
        value = float(self._values @ self._query_weights)
        return self._with_penalty(value, self._gradients.double().sum(dim=0), params)

    def block(self, number: int, params: Floats) -> tuple[float, Floats]:
        """Return an estimate from one block; the mean over the blocks is the objective."""
        lo, hi = self.bounds[number]
        a, b = int(self.host.offsets[lo]), int(self.host.offsets[hi])
        X = self._X[a:b]
        values, grad = self._losses.run(lo, hi, X @ on(self.device, params.astype(np.float32)))
        gradient = X.T @ (grad * self._row_weights[a:b])
        times = len(self.bounds)
        value = times * float(values @ self._query_weights[lo:hi])
        return self._with_penalty(value, gradient * times, params)

    def _pass(self, w: Tensor) -> None:
        """Compute scores, losses and gradients, all on the device and without synchronization."""
        from firstpage.learning.gpu.list_kernels import fused_pass

        assert self._fused_term is not None
        term = self._fused_term
        wide = 1 << (self.size.bit_length() - 1)
        rest = max(1 << (self.size - wide - 1).bit_length(), 1) if self.size > wide else 1
        rows = max(1, 1 << (max(PROGRAM_VALUES // (wide + rest), 1).bit_length() - 1))
        scores, grad, workspace = self._workspace
        fused_pass[(len(self._gradients),)](
            self._X,
            w,
            scores,
            grad,
            *term.columns,
            workspace,
            self._offsets,
            term.counts,
            term.factor,
            self._float_weights,
            self._firsts,
            self._values,
            self._gradients,
            self.size,
            wide,
            rest,
            rows,
            term.tile,
            term.loss,
        )


class NetworkObjective(_DeviceObjective):
    """A network: its layers by PyTorch, its loss by Triton kernels."""

    def __init__(self, host: BlockObjective, losses: DeviceLosses, order: Ints) -> None:
        bound = cast(BoundNetwork, host.scorer)
        super().__init__(host, bound.device)
        self._losses, self._bound = losses, bound
        self._X = bound.X[on(bound.device, order)]
        self._row_weights = on(bound.device, np.repeat(host.query_weights, np.diff(host.offsets)))
        self._offsets = host.offsets
        self._operations: dict[int, TorchOperations] = {}  # by the first query of a chunk

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        """Return value and gradient, in chunks of complete queries whose layers fit."""
        flat = on(self.device, params.astype(np.float32))
        value, gradient = 0.0, torch().zeros(self.size, dtype=torch().float64, device=self.device)
        for lo, hi in query_ranges(self._offsets, CHUNK_ROWS):
            chunk_value, chunk_gradient = self._chunk(lo, hi, flat)
            value, gradient = value + chunk_value, gradient + chunk_gradient.double()
        return self._with_penalty(value, gradient, params)

    def block(self, number: int, params: Floats) -> tuple[float, Floats]:
        """Return an estimate from one block; the mean over the blocks is the objective."""
        lo, hi = self.bounds[number]
        flat = on(self.device, params.astype(np.float32))
        value, gradient = self._chunk(lo, hi, flat)
        times = len(self.bounds)
        return self._with_penalty(value * times, gradient * times, params)

    def _chunk(self, lo: int, hi: int, flat: Tensor) -> tuple[float, Tensor]:
        """Return the weighted loss of the queries lo:hi, and its gradient by the parameters."""
        a, b = int(self._offsets[lo]), int(self._offsets[hi])
        if lo not in self._operations:
            ends = self._offsets[lo : hi + 1] - a
            self._operations[lo] = self._bound.operations(ends, a)
        operations = self._operations[lo]
        self._bound.reseed(operations, a)
        leaf = flat.detach().requires_grad_()
        scores = self._bound.scores(operations, self._X[a:b], leaf)
        values, grad = self._losses.run(lo, hi, scores.detach())
        grad = grad * self._row_weights[a:b].float()
        (gradient,) = torch().autograd.grad(scores, leaf, grad)
        return float(values @ self._query_weights[lo:hi]), gradient


def uploaded(X: Features, order: Ints, device: str) -> Tensor:
    """Return features in another order of rows, in float32 on the device.

    They are uploaded in chunks, so that no second copy is made.
    """
    t = torch()
    out = checked(device, lambda: t.empty(X.shape, dtype=t.float32, device=device))
    position = np.empty(len(order), np.int64)  # where each row goes
    position[order] = np.arange(len(order))
    for lo in range(0, len(order), CHUNK_ROWS):
        rows = X[lo : lo + CHUNK_ROWS]
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        out[on(device, position[lo : lo + CHUNK_ROWS])] = on(device, dense.astype(np.float32))
    return out


def _multiprocessors(device: str) -> int:
    if not device.startswith("cuda"):
        return 1
    return int(torch().cuda.get_device_properties(device).multi_processor_count)


def _balanced_ranges(offsets: Ints, count: int) -> Array:
    """Split the queries into `count` ranges of about as many documents each; return the first query
    of each range, and the end."""
    ends = np.searchsorted(offsets, np.linspace(0, int(offsets[-1]), count + 1)).astype(np.int32)
    ends[0], ends[-1] = 0, len(offsets) - 1
    return ends


class DeviceLosses:
    """The terms of all queries; rows stand in the order `order`, from best to worst label."""

    def __init__(self, terms: Sequence[LossTerm], offsets: Ints, order: Ints, device: str) -> None:
        self.offsets = offsets
        self._ends = on(device, offsets)
        self._terms: list[PermutationTermOnDevice | TermOnDevice | MeasureTermOnDevice] = []
        self.single_term: TermOnDevice | None = None  # the only term, which a fused pass can take
        for term in terms:
            if term.measure is not None:
                self._terms.append(measure_term(term, offsets, order, device))
                continue
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
        from firstpage.learning.gpu.list_kernels import KINDS

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
        from firstpage.learning.gpu.list_kernels import each_query

        t = torch()
        values = t.zeros(hi - lo, dtype=t.float64, device=scores.device)
        grad, workspace = t.zeros_like(scores), t.empty_like(scores)
        if hi > lo:
            each_query[(hi - lo,)](
                scores,
                grad,
                *self.columns,
                workspace,
                ends,
                self.counts,
                self.factor,
                values,
                lo,
                self.tile,
                self.loss,
            )
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
    """Permutations of a few documents, by the formula of PyTorch."""

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
        """Return the queries of one length, and their rows, subset probabilities and tables."""
        queries = np.flatnonzero(np.diff(lists.firsts) == m)
        docs = lists.docs[lists.firsts[queries][:, None] + np.arange(m)]
        rows = position[offsets[queries][:, None] + docs]
        of_length = np.diff(lists.starts) == 1 << m
        tables = lists.reach[lists.starts[:-1][of_length][:, None] + np.arange(1 << m)]
        tables[:, 0] = 0.0  # the empty subset
        numbers = (np.cumsum(of_length) - 1)[lists.table[queries]]
        return queries, [on(self.device, array) for array in (rows, tables, numbers)]

    def run(self, lo: int, hi: int, scores: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        from firstpage.learning.torch.permutations import permutation_sums

        t = torch()
        values = t.zeros(hi - lo, dtype=t.float64, device=scores.device)
        grad = t.zeros_like(scores)
        base = int(ends[lo])
        for group, (rows, tables, numbers) in self._groups:
            a, b = np.searchsorted(group, (lo, hi)).tolist()
            for first in range(a, b, QUERIES_PER_CHUNK):
                chunk = slice(first, min(first + QUERIES_PER_CHUNK, b))
                own, reach = rows[chunk] - base, tables[numbers[chunk]]
                chunk_values, chunk_grad = permutation_sums(scores[own].double(), None, reach)
                queries = on(self.device, group[chunk])
                factor = self.factor[queries]
                values[queries - lo] = factor * chunk_values
                grad[own] = (factor[:, None] * chunk_grad).to(grad.dtype)
        return values, grad


def _lengths(lists: ShortLists) -> list[int]:
    """Return the different lengths of lists of two or more documents."""
    return [m for m in np.unique(np.diff(lists.firsts)).tolist() if m > 1]
