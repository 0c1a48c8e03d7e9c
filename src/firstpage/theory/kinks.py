"""Has a function corners?  A search along lines for slopes that jump."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from firstpage.theory.surrogates import Surrogate
from firstpage.types import Array, Floats

LINES = 12
PIECES = 48  # of a line, each looked at
NARROW = 1e-5


@dataclass(frozen=True, eq=False)
class Kink:
    """Where a slope jumps: the scores, the order's number, and by how much."""

    scores: Floats
    order: int
    jump: float


def kink(phi: Surrogate, rng: np.random.Generator, lines: int = LINES) -> Kink | None:
    """A corner of the loss of some order, if a search finds one.

    A smooth function's slope changes the less the nearer one looks; at a corner it does not.
    Lines keep clear of scores that are all 0, where a cosine has no value.
    """
    for _ in range(lines):
        start, way = 3 * rng.normal(size=phi.n), rng.normal(size=phi.n)
        order = int(rng.integers(len(phi.values(start))))

        def along(t: float, start: Array = start, way: Array = way, order: int = order) -> float:
            return float(phi.values(start + t * way)[order])

        ends = np.linspace(-4.0, 4.0, PIECES + 1)
        heights = np.array([along(t) for t in ends])
        bends = np.abs(heights[2:] - 2 * heights[1:-1] + heights[:-2])
        at = int(np.argmax(bends))
        where, jump = _zoom(along, ends[at], ends[at + 2])
        if jump > 1e-3:
            return Kink(start + where * way, order, jump)
    return None


def _zoom(f: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where between the two the slope changes most, and what of that change stays near by.

    0 where the change melts away with the width, as it does where the slope has a slope.
    """
    wide = None
    while high - low > NARROW:
        quarter = (high - low) / 4
        parts = [(low + q * quarter, low + (q + 2) * quarter) for q in range(3)]
        jumps = [_jump(f, a, b) for a, b in parts]
        at = int(np.argmax(jumps))
        low, high = parts[at]
        if wide is None and high - low < 64 * NARROW:
            wide = jumps[at]
    last = _jump(f, low, high)
    return (low + high) / 2, last if wide is not None and last > 0.3 * wide else 0.0


def _jump(f: Callable[[float], float], low: float, high: float) -> float:
    """The change of the slope from the first half to the second."""
    return abs(f(high) - 2 * f((low + high) / 2) + f(low)) / ((high - low) / 2)
