"""Pairs of rankings under a table of weights: differences, active margins, normal equations.

A row of `left` and `right` holds the levels of a pair at each rank; `table` the weight of every
level at every rank, row by row.  `kind` is 0 for a tie, which requires |z| <= margins[0] of the
difference z; 1, 2, .. for a preference for the left ranking, which requires z >= margins[kind].
The loss is the squared violation, times the pair's weight and `costs[kind]`.
"""

from __future__ import annotations

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Array, Floats


@kernel
def differences(left: Array, right: Array, table: Floats, levels: int, out: Floats) -> None:
    """Write the value of the left ranking minus that of the right one."""
    for i in range(left.shape[0]):
        total = 0.0
        for k in range(left.shape[1]):
            at = k * levels
            total += table[at + left[i, k]] - table[at + right[i, k]]
        out[i] = total


@subroutine
def violated_side(z: float, kind: int, margins: Floats) -> int:
    """Return the violated side: 1 if z is too small, -1 if it is too large (ties), else 0."""
    if kind > 0:
        return 1 if z < margins[kind] else 0
    if z > margins[0]:
        return -1
    return 1 if z < -margins[0] else 0


@kernel
def residuals(
    z: Floats,
    kind: Array,
    weight: Floats,
    margins: Floats,
    costs: Floats,
    dual: Floats,
    sums: Floats,
) -> None:
    """Write the signed violation of every pair times its cost, the dual variables, to `dual`.

    sums[0] receives the loss, sums[1] the dual objective of these variables.
    """
    value, dual_value = 0.0, 0.0
    for i in range(z.size):
        side = violated_side(z[i], kind[i], margins)
        dual[i] = 0.0
        if side != 0:
            target = margins[kind[i]] if kind[i] > 0 else -margins[0]  # of side * z
            violation = target - side * z[i]
            cost = costs[kind[i]] * weight[i]
            dual[i] = side * cost * violation
            value += cost * violation * violation
            dual_value += 2.0 * cost * violation * target - cost * violation * violation
    sums[0] = value
    sums[1] = dual_value


@kernel
def vjp(left: Array, right: Array, dual: Floats, levels: int, out: Floats) -> None:
    """Compute out = sum of dual * (left - right), one number per rank and level."""
    for at in range(out.size):
        out[at] = 0.0
    for i in range(left.shape[0]):
        d = dual[i]
        if d != 0.0:
            for k in range(left.shape[1]):
                out[k * levels + left[i, k]] += d
                out[k * levels + right[i, k]] -= d


@subroutine
def add_square(
    left: Array, right: Array, i: int, levels: int, kind: int, weight: float, square: Array
) -> None:
    """Add weight * delta delta' to square[kind]: the lower triangle, by blocks of ranks."""
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
    left: Array,
    right: Array,
    z: Floats,
    kind: Array,
    weight: Floats,
    margins: Floats,
    levels: int,
    state: Array,
    square: Floats,
    rhs: Floats,
    changed: Array,
) -> None:
    """Update the sums over active margins to the differences `z`.

    `state` is the side at which every pair is in the sums; only pairs whose side has changed are
    added or removed.  square[kind] is the sum of weight * delta delta', rhs[kind] the sum of
    weight * side * delta.  They contain no costs, so that they stay valid when costs change, and
    sums of pairs of weight 1 are integers, without rounding.
    """
    count = 0
    for i in range(z.size):
        side = violated_side(z[i], kind[i], margins)
        old_side = state[i]
        if side == old_side:
            continue
        count += 1
        state[i] = side
        w = weight[i]
        if (side == 0) != (old_side == 0):
            add_square(
                left, right, i, levels, kind[i], weight=w if side != 0 else -w, square=square
            )
        step = w * (side - old_side)
        for k in range(left.shape[1]):
            rhs[kind[i], k * levels + left[i, k]] += step
            rhs[kind[i], k * levels + right[i, k]] -= step
    changed[0] = count


@kernel
def directional_derivatives(
    z: Floats,
    step: Floats,
    kind: Array,
    weight: Floats,
    margins: Floats,
    costs: Floats,
    step_size: Floats,
    sums: Floats,
) -> None:
    """Write the loss at z + step_size[0] * step to sums[2].

    sums[0] and sums[1] receive half of its first and second derivative along the step.
    """
    value, first, second = 0.0, 0.0, 0.0
    for i in range(z.size):
        moved = z[i] + step_size[0] * step[i]
        side = violated_side(moved, kind[i], margins)
        if side != 0:
            target = margins[kind[i]] if kind[i] > 0 else -margins[0]
            cost = costs[kind[i]] * weight[i]
            violation = target - side * moved
            value += cost * violation * violation
            first -= cost * violation * side * step[i]
            second += cost * step[i] * step[i]
    sums[0] = first
    sums[1] = second
    sums[2] = value


@kernel
def agreement(z: Floats, kind: Array, weight: Floats, tolerance: float, sums: Floats) -> None:
    """Write the weight of the preferences to sums[0] and of those agreed with to sums[1].

    A difference within the tolerance counts half.  sums[2] and sums[3] receive the weight of the
    ties and the weighted sum of their absolute differences.
    """
    preferences, agreed, ties, absolute = 0.0, 0.0, 0.0, 0.0
    for i in range(z.size):
        if kind[i] > 0:
            preferences += weight[i]
            if z[i] > tolerance:
                agreed += weight[i]
            elif z[i] >= -tolerance:
                agreed += 0.5 * weight[i]
        else:
            ties += weight[i]
            absolute += weight[i] * abs(z[i])
    sums[0] = preferences
    sums[1] = agreed
    sums[2] = ties
    sums[3] = absolute
