"""Bradley and Terry's utilities (1952) by maximum likelihood; a tie is half a win for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve
from scipy.special import expit

from firstpage.types import Array, Floats

PENALTY = 1e-6
STEPS = 200
LONGEST = 2.0  # step of a utility: where one always wins, the likelihood is nearly flat
CLOSE = 1e-9


def bradley_terry(
    n: int,
    left: Sequence[int] | Array,
    right: Sequence[int] | Array,
    outcome: Sequence[int] | Array,
) -> Floats:
    """Utilities with P(left wins) = 1 / (1 + exp(u_right - u_left)), their mean 0.

    Maximises the log likelihood less `PENALTY` / 2 times the sum of squares, which keeps documents
    finite that always win, and puts those that nobody judged, or a group that nobody compared with
    the others, at 0.
    """
    games, points = np.zeros((n, n)), np.zeros(n)
    left, right = np.asarray(left, np.int64), np.asarray(right, np.int64)
    half = 0.5 * np.asarray(outcome, np.float64)
    for one, other, sign in ((left, right, 1.0), (right, left, -1.0)):
        np.add.at(games, (one, other), 1.0)
        np.add.at(points, one, sign * half)
    found = np.zeros(n)
    for _ in range(STEPS):
        step = _newton(found, games, points, PENALTY)
        longest = float(np.abs(step).max(initial=0.0))
        found = found + step * min(1.0, LONGEST / max(longest, CLOSE))
        if longest < CLOSE:
            break
    centred: Floats = found - found.mean()
    return centred


def _newton(at: Floats, games: Floats, points: Floats, penalty: float) -> Floats:
    """Newton's step; `points` are wins less half of the games, which the slope at 0 leaves."""
    chance = expit(at[:, None] - at)
    slope = points - (games * (chance - 0.5)).sum(axis=1) - penalty * at
    bend = games * chance * (1.0 - chance)
    curvature = np.diag(bend.sum(axis=1) + penalty) - bend
    found: Floats = solve(curvature, slope, assume_a="pos")
    return found
