"""Sums over all pairs that a solver asks for, block by block, on several threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from firstpage.dcglearn.pairs import TIE, Pairs
from firstpage.engine.threads import Lanes, resolve
from firstpage.kernels.losses import preferences as kernel
from firstpage.types import Bools, Floats

SHORTEST = 1 << 13  # pairs that are worth a block of their own
BLOCKS = 16  # at most; fixed, so that sums do not depend on the number of threads
ROOM = 1 << 28  # bytes for the normal equations of all blocks
KINDS = 3


@dataclass(frozen=True, eq=False)
class Grouped:
    """Sums over the pairs that lack something, by kind: of weight * delta delta', of which the
    lower triangle counts, and of weight * side * delta."""

    square: Floats
    aims: Floats

    def normal(self, costs: Floats, margins: Floats) -> tuple[Floats, Floats]:
        """Sum of cost * delta delta' over active pairs, and of cost * aim * delta."""
        lower = np.tril(np.tensordot(costs, self.square, 1))
        aims = np.array([-1.0, 1.0, 1.0]) * margins * costs @ self.aims
        return lower + np.tril(lower, -1).T, aims


class AnySums(Protocol):
    """What the solver asks of pairs, wherever they are: a point, a direction, and sums there."""

    margins: Floats
    costs: Floats

    def move_to(self, table: Floats) -> None:
        """Take the differences under these weights as the point."""
        ...

    def aim(self, direction: Floats) -> None:
        """Take the change of weights as the direction."""
        ...

    def cost(self) -> tuple[float, float]:
        """What margins lack, squared and weighed; and the same forces' part of a dual value."""
        ...

    def pull(self) -> Floats:
        """Half the downward slope of `cost` in the weights.  Overwrites the direction."""
        ...

    def regroup(self) -> int:
        """Bring the normal equations up to date; how many pairs changed sides."""
        ...

    def normal(self) -> tuple[Floats, Floats]:
        """Those equations: see `Grouped.normal`."""
        ...

    def slope_at(self, t: float) -> tuple[float, float, float]:
        """At the point + t * direction: half the slope and the bend of `cost`, and itself."""
        ...

    def lacking(self, room: float) -> Bools:
        """Pairs that miss their margin, or meet it with less than `room` margins to spare."""
        ...

    def picked(self, chosen: Bools) -> Pairs:
        """Those pairs themselves."""
        ...


class Sums:
    """Pairs with a point `z` (their differences) and a direction `step`; all blocks in order.

    costs   of a tie, a preference and a strong one
    margins that they ask for
    """

    def __init__(self, pairs: Pairs, margins: Floats, threads: int | None = None) -> None:
        n, size = len(pairs), pairs.places * pairs.levels
        self.pairs, self.margins, self.costs = pairs, margins, np.ones(KINDS)
        self.z, self.step = np.zeros(n), np.zeros(n)
        self._force = self.step  # never needed at once
        self._state = np.zeros(n, np.int8)
        fit = max(1, ROOM // (8 * KINDS * size * size))
        blocks = max(1, min(BLOCKS, fit, n // SHORTEST))
        self._table, self._at = np.zeros(size), np.zeros(1)
        self._square = np.zeros((blocks, KINDS, size, size))
        self._aims = np.zeros((blocks, KINDS, size))
        self._sums = np.zeros((blocks, 4))
        self._pulls = np.zeros((blocks, size))
        self._changed = np.zeros((blocks, 1), np.int64)
        self._threads = min(resolve(threads), blocks)
        self._bind(blocks)

    def _bind(self, blocks: int) -> None:
        """Every kernel with its arrays, a call a block."""
        p, levels = self.pairs, self.pairs.levels
        ends = [len(p) * b // blocks for b in range(blocks + 1)]
        parts = [slice(a, b) for a, b in itertools.pairwise(ends)]

        def lanes(call: Callable[[int, slice], Callable[[], object]]) -> Lanes:
            jobs = [call(b, part) for b, part in enumerate(parts)]
            return Lanes([jobs[i :: self._threads] for i in range(self._threads)])

        def data(s: slice) -> tuple[object, ...]:
            return p.kind[s], p.weight[s], self.margins

        self._move = lanes(lambda b, s: kernel.differences.bind(
            p.left[s], p.right[s], self._table, levels, self.z[s]))  # fmt: skip
        self._aim = lanes(lambda b, s: kernel.differences.bind(
            p.left[s], p.right[s], self._table, levels, self.step[s]))  # fmt: skip
        self._gaps = lanes(lambda b, s: kernel.residuals.bind(
            self.z[s], *data(s), self.costs, self._force[s], self._sums[b]))  # fmt: skip
        self._pull = lanes(lambda b, s: kernel.vjp.bind(
            p.left[s], p.right[s], self._force[s], levels, self._pulls[b]))  # fmt: skip
        self._regroup = lanes(lambda b, s: kernel.update_normal_equations.bind(
            p.left[s], p.right[s], self.z[s], *data(s), levels, self._state[s],
            self._square[b], self._aims[b], self._changed[b]))  # fmt: skip
        self._along = lanes(lambda b, s: kernel.directional_derivatives.bind(
            self.z[s], self.step[s], *data(s), self.costs, self._at, self._sums[b]))  # fmt: skip

    def move_to(self, table: Floats) -> None:
        self._table[:] = table
        self._move.run()

    def aim(self, direction: Floats) -> None:
        self._table[:] = direction
        self._aim.run()

    def cost(self) -> tuple[float, float]:
        self._gaps.run()
        value, dual, *_ = self._sums.sum(axis=0)
        return float(value), float(dual)

    def pull(self) -> Floats:
        self._gaps.run()
        self._pull.run()
        found: Floats = self._pulls.sum(axis=0)
        return found

    def regroup(self) -> int:
        self._regroup.run()
        return int(self._changed.sum())

    def normal(self) -> tuple[Floats, Floats]:
        return self.grouped().normal(self.costs, self.margins)

    def grouped(self) -> Grouped:
        """The sums as `regroup` left them."""
        return Grouped(self._square.sum(axis=0), self._aims.sum(axis=0))

    def forget(self) -> None:
        """Group anew: from no pair."""
        for held in (self._state, self._square, self._aims):
            held[:] = 0

    def slope_at(self, t: float) -> tuple[float, float, float]:
        self._at[0] = t
        self._along.run()
        first, second, value, _ = self._sums.sum(axis=0)
        return float(first), float(second), float(value)

    def lacking(self, room: float) -> Bools:
        margin = self.margins[self.pairs.kind]
        tied = self.pairs.kind == TIE
        spare = np.where(tied, margin - np.abs(self.z), self.z - margin)
        found: Bools = spare < room * margin
        return found

    def picked(self, chosen: Bools) -> Pairs:
        return self.pairs[chosen]
