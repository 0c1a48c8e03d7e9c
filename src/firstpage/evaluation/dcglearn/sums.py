"""Sums over all pairs that the solver needs, computed block by block on several threads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from firstpage.core import Array, Bools, Floats
from firstpage.core.engine import Lanes, resolve
from firstpage.core.kernels.losses import preferences as kernel
from firstpage.evaluation.dcglearn.pairs import TIE, Pairs

MIN_BLOCK = 1 << 13  # pairs per block
MAX_BLOCKS = 16  # fixed, so that sums do not depend on the number of threads
MAX_BYTES = 1 << 28  # for the normal equations of all blocks
KINDS = 3
Arrays = dict[str, Array]  # by the name of the parameter


class PairSums:
    """Sums over pairs, with a point `z` (their differences) and a direction `step`.

    Blocks are added in order.  `costs` and `margins` are those of a tie, of a preference and of a
    strong one.
    """

    def __init__(self, pairs: Pairs, margins: Floats, threads: int | None = None) -> None:
        n, size = len(pairs), pairs.positions * pairs.levels
        self.pairs, self.margins, self.costs = pairs, margins, np.ones(KINDS)
        self.z, self.step = np.zeros(n), np.zeros(n)
        self._force = self.step  # the two are never needed at once
        self._state = np.zeros(n, np.int8)
        max_in_memory = max(1, MAX_BYTES // (8 * KINDS * size * size))
        blocks = max(1, min(MAX_BLOCKS, max_in_memory, n // MIN_BLOCK))
        self._table, self._step_size = np.zeros(size), np.zeros(1)
        self._square = np.zeros((blocks, KINDS, size, size))
        self._targets = np.zeros((blocks, KINDS, size))
        self._sums = np.zeros((blocks, 4))
        self._gradients = np.zeros((blocks, size))
        self._changed = np.zeros((blocks, 1), np.int64)
        self._threads = min(resolve(threads), blocks)
        self._bind(blocks)

    def _bind(self, blocks: int) -> None:
        """Bind every kernel to its arrays, with a call per block."""
        p, levels = self.pairs, self.pairs.levels
        ends = [len(p) * b // blocks for b in range(blocks + 1)]
        slices = [slice(a, b) for a, b in itertools.pairwise(ends)]

        def lanes(kernel: Any, by_pair: Arrays, by_block: Arrays, **same: Any) -> Lanes:
            calls = [
                kernel.bind(
                    **{name: array[rows] for name, array in by_pair.items()},
                    **{name: array[block] for name, array in by_block.items()},
                    **same,
                )
                for block, rows in enumerate(slices)
            ]
            return Lanes([calls[i :: self._threads] for i in range(self._threads)])

        sides: Arrays = {"left": p.left, "right": p.right}
        kinds: Arrays = {"z": self.z, "kind": p.kind, "weight": p.weight}
        weights: dict[str, Any] = {"table": self._table, "levels": levels}
        costs = {"margins": self.margins, "costs": self.costs}
        sums, dual = {"sums": self._sums}, {"dual": self._force}
        self._move_lanes = lanes(kernel.differences, {**sides, "out": self.z}, {}, **weights)
        self._direction_lanes = lanes(
            kernel.differences, {**sides, "out": self.step}, {}, **weights
        )
        self._cost_lanes = lanes(kernel.residuals, {**kinds, **dual}, sums, **costs)
        self._gradient_lanes = lanes(
            kernel.vjp, {**sides, **dual}, {"out": self._gradients}, levels=levels
        )
        self._active_lanes = lanes(
            kernel.update_normal_equations,
            {**sides, **kinds, "state": self._state},
            {"square": self._square, "rhs": self._targets, "changed": self._changed},
            margins=self.margins,
            levels=levels,
        )
        self._line_lanes = lanes(
            kernel.directional_derivatives,
            {**kinds, "step": self.step},
            sums,
            step_size=self._step_size,
            **costs,
        )

    def move_to(self, table: Floats) -> None:
        """Make the differences under these weights the current point."""
        self._table[:] = table
        self._move_lanes.run()

    def set_direction(self, direction: Floats) -> None:
        """Make a change of weights the search direction."""
        self._table[:] = direction
        self._direction_lanes.run()

    def cost(self) -> tuple[float, float]:
        """Return the weighted squared shortfalls, and their contribution to the dual value."""
        self._cost_lanes.run()
        value, dual, *_ = self._sums.sum(axis=0)
        return float(value), float(dual)

    def negative_half_gradient(self) -> Floats:
        """Return minus half the gradient of `cost` in the weights; overwrites the direction."""
        self._cost_lanes.run()
        self._gradient_lanes.run()
        gradient: Floats = self._gradients.sum(axis=0)
        return gradient

    def update_active(self) -> int:
        """Update the normal equations; return how many pairs became active or inactive."""
        self._active_lanes.run()
        return int(self._changed.sum())

    def normal_equations(self) -> tuple[Floats, Floats]:
        """Return the sums of cost * delta delta' and of cost * margin * delta over active pairs.

        Active pairs are those that miss their margin.
        """
        square, targets = self._square.sum(axis=0), self._targets.sum(axis=0)
        kinds, size, _ = square.shape  # only the lower triangle counts
        sums = (self.costs @ square.reshape(kinds, -1)).reshape(size, size)
        signed_targets = np.array([-1.0, 1.0, 1.0]) * self.margins * self.costs @ targets
        lower = np.arange(size)[:, None] >= np.arange(size)
        return np.where(lower, sums, sums.T), signed_targets

    def line_derivatives(self, t: float) -> tuple[float, float, float]:
        """Return half the derivative and curvature of `cost`, and `cost`, at step size t."""
        self._step_size[0] = t
        self._line_lanes.run()
        first, second, value, _ = self._sums.sum(axis=0)
        return float(first), float(second), float(value)

    def near_margin(self, slack: float) -> Bools:
        """Return which pairs miss their margin, or exceed it by less than `slack` margins."""
        margin = self.margins[self.pairs.kind]
        tied = self.pairs.kind == TIE
        excess = np.where(tied, margin - np.abs(self.z), self.z - margin)
        near: Bools = excess < slack * margin
        return near
