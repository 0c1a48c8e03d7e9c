"""The scores of least risk, with a certificate of how near they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from firstpage.papers.theory.spaces import Pair, Space
from firstpage.papers.theory.surrogates import Surrogate
from firstpage.types import Array, Floats

FAR = 40.0  # scores beyond this are as good as infinite
AWAY = 1e4
ASIDE = 1e-7
PLANES = 400  # at most
CHORDS = 40  # on which convexity is tried


@dataclass(frozen=True, eq=False)
class Least:
    """Scores of the least risk that was found.

    slope  the norm of the risk's slope there: 0 at a least point without corners
    gap    for planes: the risk is at most this above the least one
    """

    scores: Floats
    risk: float
    slope: float
    gap: float | None = None

    def top(self, k: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.argsort(-self.scores, kind="stable")[:k])

    def lead(self, top: Sequence[int]) -> float:
        """By how much each of `top` is above the next, and its last above all others; the least."""
        rest = np.delete(self.scores, list(top))
        line = [*self.scores[list(top)], *([rest.max()] if len(rest) else [])]
        return float(-np.diff(line).max()) if len(line) > 1 else 0.0


def risk(phi: Surrogate, space: Space, g: Floats) -> float:
    """Q(p, g): the mean loss of scores g under the chances of the orders."""
    return float(space.chances @ phi.values(g))


def risk_slope(phi: Surrogate, space: Space, g: Floats) -> Floats:
    found: Floats = space.chances @ phi.slopes(g)
    return found


def least(
    phi: Surrogate, space: Space, rng: np.random.Generator, starts: int = 3, smooth: bool = True,
    convex: bool = False,
) -> list[Least]:  # fmt: skip
    """The least points that several starts lead to, the best first; equally good ones stay.

    Without corners: quasi-Newton, then Newton steps.  With corners: planes, if it is convex; else
    a search by values alone, which has no certificate.
    """
    if not smooth and (convex or phi.convex):
        return [by_planes(phi, space)]
    found = [_descent(phi, space, rng.normal(size=phi.n), smooth) for _ in range(starts)]
    found.sort(key=lambda each: each.risk)
    near = found[0].risk + 1e-9 * (1 + abs(found[0].risk))
    return [each for each in found if each.risk <= near]


def looks_convex(phi: Surrogate, rng: np.random.Generator) -> bool:
    """Whether no order's loss was found above the middle of a line between two of its points."""
    for _ in range(CHORDS):
        a, b = 3 * rng.normal(size=(2, phi.n))
        ends = (phi.values(a) + phi.values(b)) / 2
        if (phi.values((a + b) / 2) > ends + 1e-9 * (1 + np.abs(ends))).any():
            return False
    return True


def _descent(phi: Surrogate, space: Space, start: Array, smooth: bool) -> Least:
    """Down from a start; scores stop at AWAY, so that a risk that falls without end ends there."""

    def value(g: Array) -> float:
        return risk(phi, space, np.clip(g, -AWAY, AWAY))

    def slope(g: Array) -> Array:
        found: Array = risk_slope(phi, space, np.clip(g, -AWAY, AWAY)) * (np.abs(g) < AWAY)
        return found

    def down(start: Array) -> Array:
        found: Any = minimize(value, start, jac=slope, method="BFGS", options={"gtol": 1e-9})
        end: Array = np.clip(found.x, -AWAY, AWAY)
        return end

    g = down(start)
    free = abs(value(g / 2) - value(g)) < 1e-12 * (1 + abs(value(g)))  # only the direction counts
    for _ in range(4 if free else 0):  # far out slopes are small whatever the direction: come back
        g = unit(down(unit(g)))
    if not smooth:
        g = minimize(value, g, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12}).x
    elif phi.exact:
        g = _polished(phi, space, g, free)
    return Least(g, value(g), float(np.linalg.norm(risk_slope(phi, space, g))))


def unit(g: Array) -> Array:
    """The same direction at length 1; 0 stays."""
    found: Array = g / (np.linalg.norm(g) or 1.0)
    return found


def _polished(phi: Surrogate, space: Space, g: Floats, free: bool) -> Floats:
    """Newton steps, as long as they make the slope smaller; `free`: at length 1."""
    slope = risk_slope(phi, space, g)
    for _ in range(6):
        bend = np.empty((phi.n, phi.n))
        for i in range(phi.n):
            up, down = g.copy(), g.copy()
            up[i] += 1e-4
            down[i] -= 1e-4
            bend[i] = (risk_slope(phi, space, up) - risk_slope(phi, space, down)) / 2e-4
        step = np.linalg.lstsq(bend + bend.T, 2 * slope, rcond=1e-7)[0]
        there = unit(g - step) if free else g - step
        after = risk_slope(phi, space, there)
        if not np.linalg.norm(after) < np.linalg.norm(slope):
            break
        g, slope = there, after
    return g


def by_planes(phi: Surrogate, space: Space, tie: Pair | None = None) -> Least:
    """The least risk of a convex loss with corners: planes below it, a linear programme a round.

    With `tie` = (i, j) only among scores that do not have i above j.  The slope of a function is
    taken by differences, a little beside the point: programmes end at corners, where there is none.
    """
    n = phi.n
    aside = np.random.default_rng(0).normal(size=n) * (0.0 if phi.exact else ASIDE)
    tol = 1e-9 if phi.exact else 1e-6
    g = np.zeros(n)
    rows: list[Array] = []
    right: list[float] = []
    if tie is not None:
        rows.append(np.r_[np.eye(n)[tie[0]] - np.eye(n)[tie[1]], 0.0])
        right.append(0.0)
    best, kept, low = np.inf, g, -np.inf
    for _ in range(PLANES):
        g = g + aside
        value, slope = risk(phi, space, g), space.chances @ phi.slopes(g, ASIDE / 100)
        if value < best:
            best, kept = value, g
        rows.append(np.r_[slope, -1.0])
        right.append(float(slope @ g) - value)
        bounds = [(-FAR, FAR)] * n + [(0.0, None)]
        done: Any = linprog(np.r_[np.zeros(n), 1.0], np.array(rows), np.array(right), bounds=bounds)
        g, low = done.x[:n], float(done.fun)
        if best - low <= tol * (1 + abs(best)):
            break
    return Least(kept - kept.mean(), best, float("nan"), max(best - low, 0.0))
