"""Objectives whose passes run on a device; solvers see no difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage.data.truth import Truth
from firstpage.solvers.gpu.libraries import checked, has_kernels, on, torch
from firstpage.solvers.gpu.losses import DeviceLosses
from firstpage.solvers.objective import BlockObjective, whole_queries
from firstpage.solvers.solver import Objective
from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from torch import Tensor

    from firstpage.data.dataset import Features

NOISE = 1e-7  # of an objective from float32
ROWS = 1 << 18  # uploaded, or sent through a network, at once
MOST = 1024  # features that a program can hold
NUMBERS = 32 * 160  # that a program holds of the features at once
PROGRAMS = 4  # a multiprocessor, so that what they read twice stays in the cache


def device_objective(host: BlockObjective, truth: Truth, device: str) -> Objective:
    """The same objective on a device, where its loss can be computed there; else the host's.

    host  set up on the same data; it keeps what is not done on the device
    """
    bound = host.scorer
    if not has_kernels(device) or (terms := host.target.terms()) is None:
        return HostLoss(host, device) if bound.parallel else host
    order = truth.by_label[0]
    losses = DeviceLosses(terms, truth.offsets, order, device)
    if bound.parallel:
        return LinearObjective(host, losses, order, device)
    return NetworkObjective(host, losses, order)


class _OnDevice:
    """What all share: the shape that solvers look at."""

    def __init__(self, host: BlockObjective, device: str) -> None:
        self.host, self.device = host, device
        self.l2, self.shares, self.bounds = host.l2, host.shares, host.bounds
        self.size, self.noise = host.size, max(NOISE, host.noise)
        self._shares = on(device, host.shares)

    def conditioner(self) -> Floats | None:
        return self.host.conditioner()

    def score_range(self, params: Floats) -> tuple[float, float]:
        return self.host.score_range(params)

    def _with_penalty(self, value: float, slope: Tensor, params: Floats) -> tuple[float, Floats]:
        found: Floats = slope.double().cpu().numpy()
        return value + self.l2 / 2 * float(params @ params), found + self.l2 * params


class HostLoss(_OnDevice):
    """Features on the device, the loss on the host: for losses and devices without kernels."""

    def __init__(self, host: BlockObjective, device: str) -> None:
        super().__init__(host, device)
        X = host.scorer.X
        self._X = uploaded(X, np.arange(X.shape[0]), device)
        rows, queries = X.shape[0], len(host.shares)
        self._scores, self._grad, self._values = np.empty(rows), np.empty(rows), np.empty(queries)
        self._loss = host.target.bind(0, queries, self._scores, self._values, self._grad)
        self._each = np.repeat(host.shares, np.diff(host.offsets))

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        w = on(self.device, params.astype(np.float32))
        self._scores[:] = (self._X @ w).double().cpu().numpy()
        self._loss()
        grad = on(self.device, (self._grad * self._each).astype(np.float32))
        value = float(self._values @ self.host.shares)
        return self._with_penalty(value, self._X.T @ grad, params)


class LinearObjective(_OnDevice):
    """Linear scores: features are read about once a pass."""

    def __init__(
        self, host: BlockObjective, losses: DeviceLosses, order: Ints, device: str
    ) -> None:
        super().__init__(host, device)
        t = torch()
        self._losses = losses
        self._X = uploaded(host.scorer.X, order, device)
        rows, queries = self._X.shape[0], len(host.shares)
        self._offsets = on(device, host.offsets)
        self._each = on(device, np.repeat(host.shares, np.diff(host.offsets)).astype(np.float32))
        self._small = self._shares.float()
        self._fused = losses.only if 1 < self.size <= MOST else None
        if self._fused is not None:
            programs = PROGRAMS * _multiprocessors(device)
            self._firsts = on(device, _even(host.offsets, programs))
            self._room = [t.empty(rows, device=device) for _ in range(3)]
            self._values = t.zeros(queries, dtype=t.float64, device=device)
            self._slopes = t.zeros((programs, self.size), device=device)

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        w = on(self.device, params.astype(np.float32))
        if self._fused is None:
            values, grad = self._losses.run(0, len(self.shares), self._X @ w)
            slope = self._X.T @ (grad * self._each)
            return self._with_penalty(float(values @ self._shares), slope, params)
        self._pass(w)
        value = float(self._values @ self._shares)
        return self._with_penalty(value, self._slopes.double().sum(dim=0), params)

    def _pass(self, w: Tensor) -> None:
        """Scores, losses, slopes; all on the device, and nothing waits for it."""
        from firstpage.solvers.gpu.linear_kernels import whole_pass

        assert self._fused is not None
        term = self._fused
        wide = 1 << (self.size.bit_length() - 1)
        rest = max(1 << (self.size - wide - 1).bit_length(), 1) if self.size > wide else 1
        rows = max(1, 1 << (max(NUMBERS // (wide + rest), 1).bit_length() - 1))
        scores, grad, spare = self._room
        whole_pass[(len(self._slopes),)](
            self._X, w, scores, grad, *term.rows, spare, self._offsets, term.counts, term.factor,
            self._small, self._firsts, self._values, self._slopes, self.size, wide, rest, rows,
            term.tile, term.loss,
        )  # fmt: skip


class NetworkObjective(_OnDevice):
    """A network with one hidden layer: its layers by PyTorch, its loss by our kernels."""

    def __init__(self, host: BlockObjective, losses: DeviceLosses, order: Ints) -> None:
        bound: Any = host.scorer
        super().__init__(host, bound.device)
        self._losses, self._bound = losses, bound
        self._X = bound.X[on(bound.device, order)]
        self._each = on(bound.device, np.repeat(host.shares, np.diff(host.offsets)))
        self._ends = host.offsets

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        """In chunks of whole queries, whose hidden layer fits."""
        flat = on(self.device, params.astype(np.float32))
        value, slope = 0.0, torch().zeros(self.size, dtype=torch().float64, device=self.device)
        for lo, hi in whole_queries(self._ends, ROWS):
            own, back = self._some(lo, hi, flat)
            value, slope = value + own, slope + back.double()
        return self._with_penalty(value, slope, params)

    def block(self, number: int, params: Floats) -> tuple[float, Floats]:
        """An estimate of the same from one block; its mean over the blocks is the whole."""
        lo, hi = self.bounds[number]
        flat = on(self.device, params.astype(np.float32))
        value, slope = self._some(lo, hi, flat)
        times = len(self.bounds)
        return self._with_penalty(value * times, slope * times, params)

    def _some(self, lo: int, hi: int, flat: Tensor) -> tuple[float, Tensor]:
        from firstpage.scorers.mlp import layers

        t = torch()
        a, b = int(self._ends[lo]), int(self._ends[hi])
        X = self._X[a:b]
        W, bias, v, c = layers(flat, self._bound.n_features, self._bound.hidden)
        hidden = t.relu(X @ W + bias)
        values, grad = self._losses.run(lo, hi, hidden @ v + c)
        grad = grad * self._each[a:b].float()
        under = t.where(hidden > 0, grad[:, None] * v[None, :], 0.0)
        slope = t.cat([(X.T @ under).reshape(-1), under.sum(0), hidden.T @ grad, grad.sum()[None]])
        return float(values @ self._shares[lo:hi]), slope


def uploaded(X: Features, order: Ints, device: str) -> Tensor:
    """Features in another order of rows, in float32; in parts, so that no second copy is made."""
    t = torch()
    out = checked(device, lambda: t.empty(X.shape, dtype=t.float32, device=device))
    place = np.empty(len(order), np.int64)  # where each row goes
    place[order] = np.arange(len(order))
    for lo in range(0, len(order), ROWS):
        rows = X[lo : lo + ROWS]
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        out[on(device, place[lo : lo + ROWS])] = on(device, dense.astype(np.float32))
    return out


def _multiprocessors(device: str) -> int:
    if not device.startswith("cuda"):
        return 1
    return int(torch().cuda.get_device_properties(device).multi_processor_count)


def _even(offsets: Ints, parts: int) -> Array:
    """Queries in `parts` runs of about as many documents: the first of each, and the end."""
    ends = np.searchsorted(offsets, np.linspace(0, int(offsets[-1]), parts + 1)).astype(np.int32)
    ends[0], ends[-1] = 0, len(offsets) - 1
    return ends
