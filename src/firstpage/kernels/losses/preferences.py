"""Pairs of rankings under a table of weights: differences, active margins, normal equations.

A row of `left` and `right` holds the levels of a pair at each place; `table` the worth of every
level at every place, row by row.  `kind` says what a pair is: 0 a tie, which asks that the
difference z be at most `margins[0]` in size; 1, 2, .. a preference for the left one, which asks
z >= margins[kind].  What is missing is squared, times the pair's weight and `costs[kind]`.
"""

from __future__ import annotations

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.types import Array, Floats


@kernel
def differences(left: Array, right: Array, table: Floats, levels: int, out: Floats) -> None:
    """Worth of the left ranking less that of the right one."""
    for i in range(left.shape[0]):
        total = 0.0
        for k in range(left.shape[1]):
            at = k * levels
            total += table[at + left[i, k]] - table[at + right[i, k]]
        out[i] = total


@subroutine
def side_of(z: float, kind: int, margins: Floats) -> int:
    """1 where a larger difference is wanted, -1 where a smaller one is (ties), 0 if all is well."""
    if kind > 0:
        return 1 if z < margins[kind] else 0
    if z > margins[0]:
        return -1
    return 1 if z < -margins[0] else 0


@kernel
def residuals(
    z: Floats, kind: Array, weight: Floats, margins: Floats, costs: Floats, force: Floats,
    sums: Floats,
) -> None:  # fmt: skip
    """What every pair still wants, times its cost, as `force`; sums[0]: the cost of all that,
    sums[1]: what a dual solution gets from these forces."""
    value, dual = 0.0, 0.0
    for i in range(z.size):
        side = side_of(z[i], kind[i], margins)
        force[i] = 0.0
        if side != 0:
            aim = margins[kind[i]] if kind[i] > 0 else -margins[0]  # of side * z
            short = aim - side * z[i]
            cost = costs[kind[i]] * weight[i]
            force[i] = side * cost * short
            value += cost * short * short
            dual += 2.0 * cost * short * aim - cost * short * short
    sums[0] = value
    sums[1] = dual


@kernel
def vjp(left: Array, right: Array, force: Floats, levels: int, out: Floats) -> None:
    """Sum of the forces at each place and level: out = sum of force * (left - right)."""
    for at in range(out.size):
        out[at] = 0.0
    for i in range(left.shape[0]):
        f = force[i]
        if f != 0.0:
            for k in range(left.shape[1]):
                out[k * levels + left[i, k]] += f
                out[k * levels + right[i, k]] -= f


@subroutine
def add_square(
    left: Array, right: Array, i: int, levels: int, kind: int, weight: float, square: Array
) -> None:
    """square[kind] += weight * delta delta', the lower triangle by blocks of places."""
    for k in range(left.shape[1]):
        a, b = k * levels + left[i, k], k * levels + right[i, k]
        if a == b:
            continue
        for m in range(k + 1):
            c, d = m * levels + left[i, m], m * levels + right[i, m]
            if c != d:
                square[kind, a, c] += weight
                square[kind, b, d] += weight
                square[kind, a, d] -= weight
                square[kind, b, c] -= weight


@kernel
def update_normal_equations(
    left: Array, right: Array, z: Floats, kind: Array, weight: Floats, margins: Floats,
    levels: int, state: Array, square: Floats, aims: Floats, changed: Array,
) -> None:  # fmt: skip
    """Bring the sums over active margins up to date with the differences `z`.

    `state` is the side of every pair that they hold; only pairs whose side has changed are added
    or taken away.  square[kind]: sum of weight * delta delta'; aims[kind]: sum of
    weight * side * delta.  No cost is in them, so that they last when costs change, and sums of
    pairs of weight 1 are whole numbers, without rounding.
    """
    count = 0
    for i in range(z.size):
        side = side_of(z[i], kind[i], margins)
        old = state[i]
        if side == old:
            continue
        count += 1
        state[i] = side
        w = weight[i]
        if (side == 0) != (old == 0):
            add_square(left, right, i, levels, kind[i], w if side != 0 else -w, square)
        step = w * (side - old)
        for k in range(left.shape[1]):
            aims[kind[i], k * levels + left[i, k]] += step
            aims[kind[i], k * levels + right[i, k]] -= step
    changed[0] = count


@kernel
def directional_derivatives(
    z: Floats, step: Floats, kind: Array, weight: Floats, margins: Floats, costs: Floats,
    at: Floats, sums: Floats,
) -> None:  # fmt: skip
    """The cost at z + at[0] * step as sums[2]; half its first and second derivative before."""
    value, first, second = 0.0, 0.0, 0.0
    for i in range(z.size):
        here = z[i] + at[0] * step[i]
        side = side_of(here, kind[i], margins)
        if side != 0:
            aim = margins[kind[i]] if kind[i] > 0 else -margins[0]
            cost = costs[kind[i]] * weight[i]
            short = aim - side * here
            value += cost * short * short
            first -= cost * short * side * step[i]
            second += cost * step[i] * step[i]
    sums[0] = first
    sums[1] = second
    sums[2] = value


@kernel
def agreement(z: Floats, kind: Array, weight: Floats, tolerance: float, sums: Floats) -> None:
    """Weight of the preferences (sums[0]) and of those agreed with (sums[1]); no difference
    counts half.  sums[2], sums[3]: weight of the ties, and of their differences' sizes."""
    every, right, ties, apart = 0.0, 0.0, 0.0, 0.0
    for i in range(z.size):
        if kind[i] > 0:
            every += weight[i]
            if z[i] > tolerance:
                right += weight[i]
            elif z[i] >= -tolerance:
                right += 0.5 * weight[i]
        else:
            ties += weight[i]
            apart += weight[i] * abs(z[i])
    sums[0] = every
    sums[1] = right
    sums[2] = ties
    sums[3] = apart
