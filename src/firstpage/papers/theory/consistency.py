"""Do the scores of least risk put the right objects on top?  Theorem 6 of Xia et al., tried out.

The scores of least risk come with a certificate of how near they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from firstpage.losses.loss import Loss
from firstpage.papers.theory.sensitivity import Sensitivity, kink, order_sensitive
from firstpage.papers.theory.spaces import (
    Pair,
    Phi,
    Space,
    Surrogate,
    depth,
    orders,
    random_space,
    surrogate,
    theorem_6_pairs,
)
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
    """The least risk of a convex loss with corners: planes below it, a linear program a round.

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


CLEAR = 1e-7  # a lead of scores below this is a tie
SURE = 1e-5  # of slopes and of gaps


@dataclass(frozen=True)
class Agreement:
    """On how many spaces the scores of least risk have the Bayes ranker's top k.

    lead   the least lead of an object of the top over the next, where they agree
    slope  the greatest norm of the risk's slope at what was taken as the least point; for losses
           with corners, the most by which its risk may be above the least
    unsure spaces in which no point is certified as a least one: the risk falls without end, or
           the loss has corners and is not convex
    """

    loss: str
    n: int
    k: int
    spaces: int
    agree: int
    lead: float
    slope: float
    unsure: int = 0
    example: str = ""

    @property
    def holds(self) -> bool:
        return self.agree == self.spaces

    @property
    def wrong(self) -> int:
        return self.spaces - self.agree - self.unsure


@dataclass(frozen=True)
class Consistency:
    """A loss under the definition, and under the test that the definition is meant for."""

    sensitivity: Sensitivity
    agreement: Agreement

    @property
    def holds(self) -> bool:
        """Sensitive, so that Theorem 6 applies, and no space found in which it goes wrong."""
        return self.sensitivity.holds and self.agreement.holds

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return f"Consistency({self.sensitivity.loss}: {self.verdict})"

    @property
    def verdict(self) -> str:
        k, found = self.sensitivity.k, self.agreement
        if found.wrong:
            return f"not consistent with the top-{k} true loss: there is a counter-example"
        if not self.sensitivity.holds:
            return (
                f"not top-{k} order sensitive, so that no theorem speaks for it; no "
                f"counter-example in {found.spaces - found.unsure} spaces"
            )
        if found.unsure:
            return (
                f"undecided: in {found.unsure} of {found.spaces} spaces no least risk was certified"
            )
        return f"consistent with the top-{k} true loss, as far as enumeration can tell"

    def to_dict(self) -> dict[str, Any]:
        return {
            "holds": self.holds, "verdict": self.verdict, **self.sensitivity.to_dict(),
            "agreement": {**vars(self.agreement), "holds": self.agreement.holds},
        }  # fmt: skip


def spaces_for(
    rng: np.random.Generator, n: int, k: int, count: int
) -> Iterator[tuple[Space, list[Pair]]]:
    """Spaces that fulfill what Theorem 6 asks, every other one a harsh one; and the pairs."""
    for number in range(count):
        order = rng.permutation(n).tolist()
        pairs = theorem_6_pairs(order, k, rng)
        yield random_space(rng, n, k, pairs, harsh=number % 2 == 0), pairs


def agreement(
    loss: Loss | Phi | Surrogate | str, n: int = 4, k: int = 1, spaces: int = 20, seed: int = 0
) -> Agreement:
    """Least points on random spaces that are order preserving for Theorem 6's n - 1 pairs."""
    phi = surrogate(loss, n)
    depth(k, n)
    rng = np.random.default_rng(seed)
    smooth = kink(phi, rng) is None
    convex = phi.convex or (not smooth and looks_convex(phi, rng))
    agree, unsure, lead, slope, example = 0, 0, np.inf, 0.0, ""
    for space, _ in spaces_for(rng, n, k, spaces):
        top = space.bayes(k)[0]
        found = least(phi, space, rng, smooth=smooth, convex=convex)
        worst = min(found, key=lambda each: each.lead(top))
        sure = certified(worst, smooth)
        right = sure and worst.lead(top) > CLEAR and not tied(phi, space, worst, top)
        agree, unsure = agree + right, unsure + (not sure)
        lead = min(lead, worst.lead(top)) if right else lead
        slope = max(slope, *(each.slope if each.gap is None else each.gap for each in found))
        if sure and not right and not example:
            example = told(space, worst, k)
    return Agreement(phi.name, n, k, spaces, agree, float(lead), slope, unsure, example)


def certified(found: Least, smooth: bool) -> bool:
    """Whether the point is shown to be a least one: its slope is 0, or planes have met it."""
    if found.gap is not None:
        return found.gap <= SURE
    return smooth and found.slope <= SURE


def tied(phi: Surrogate, space: Space, found: Least, top: Sequence[int]) -> bool:
    """Whether scores with another top, or one that is not clear, are as good.

    Planes end at one of many least points; the others count as well.
    """
    if found.gap is None:
        return False
    rest = [o for o in range(space.n) if o not in top]
    pairs = [*pairwise(top), *((top[-1], o) for o in rest)]
    off = 1e-8 if phi.exact else 3e-6
    return any(by_planes(phi, space, pair).risk <= found.risk + off for pair in pairs)


def told(space: Space, found: Least, k: int) -> str:
    """A space and where the risk is least in it."""
    by_chance, count = np.argsort(-space.chances, kind="stable"), np.count_nonzero(space.chances)
    shown = [
        f"{''.join(str(o + 1) for o in orders(space.n)[row])}: {space.chances[row]:.3f}"
        for row in by_chance[: min(6, count)]
    ]
    more = " .." if count > 6 else ""
    top = "".join(str(o + 1) for o in space.bayes(k)[0])
    scores = ", ".join(f"{x:.3f}" for x in found.scores - found.scores.mean())
    return (
        f"chances {', '.join(shown)}{more}; the likeliest top is {top}, the risk is least at "
        f"({scores})"
    )


def consistency(
    loss: Loss | Phi | Surrogate | str, n: int = 4, k: int = 1, samples: int = 40,
    spaces: int = 20, seed: int = 0,
) -> Consistency:  # fmt: skip
    """Is a loss consistent with the top-k true loss?  The definition, and a test of what follows.

    loss  a name such as "ListMLE(k=2)", a Loss, or phi(scores, order) with the best object first
    """
    phi = surrogate(loss, n)
    return Consistency(
        order_sensitive(phi, n, k, samples, seed), agreement(phi, n, k, spaces, seed)
    )
