"""Definition 3 of Xia et al. (2009), clause by clause: is a loss top-k order sensitive?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.losses.loss import Loss
from firstpage.papers.theory.spaces import (
    Phi,
    Surrogate,
    before,
    changes_top,
    depth,
    orders,
    surrogate,
    swapped,
)
from firstpage.types import Array, Bools, Floats

LINES = 12
PIECES = 48  # of a line, each looked at
NARROW = 1e-5


@dataclass(frozen=True, eq=False)
class Kink:
    """Where a slope jumps: the scores, the order's number, and by how much."""

    scores: Floats
    order: int
    jump: float


def kink(phi: Surrogate, rng: np.random.Generator) -> Kink | None:
    """A corner of the loss of some order, if a search finds one.

    A smooth function's slope changes the less the nearer one looks; at a corner it does not.
    Lines keep clear of scores that are all 0, where a cosine has no value.
    """
    for _ in range(LINES):
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


CLAUSES = {
    "nonnegative": "the loss is at least 0",
    "differentiable": "the loss has no corners",
    "symmetric": "(1) swapping two objects in the scores and in the order changes nothing",
    "ordered": "(2) where the top k differ, the order that the scores contradict costs no less",
    "strict": "(2) for at least one such order it costs more",
    "subgroup": "(2) where the top k are the same, both orders cost the same",
    "slope": "(3) at equal scores some order pulls its better object up more than the other does",
}
TIE, CLEAR = 1e-9, 1e-10  # of values: equal up to rounding; surely greater
ROUGH = 1e-4  # of slopes by differences, which are off by their step times the curvature


@dataclass(frozen=True)
class Clause:
    """One part of the definition; `example` shows where it fails."""

    name: str
    text: str
    holds: bool
    tested: int
    failed: int
    example: str = ""


@dataclass(frozen=True)
class Sensitivity:
    """Whether a loss is top-k order sensitive, and which clauses it breaks."""

    loss: str
    n: int
    k: int
    clauses: tuple[Clause, ...]

    @property
    def holds(self) -> bool:
        return all(clause.holds for clause in self.clauses)

    @property
    def broken(self) -> tuple[str, ...]:
        return tuple(clause.name for clause in self.clauses if not clause.holds)

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        broken = f"breaks {', '.join(self.broken)}" if self.broken else "holds"
        return f"Sensitivity({self.loss}, top {self.k} of {self.n}: {broken})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "loss": self.loss, "n": self.n, "k": self.k, "holds": self.holds,
            "clauses": [vars(clause) for clause in self.clauses],
        }  # fmt: skip


def order_sensitive(
    loss: Loss | Phi | Surrogate | str, n: int = 4, k: int = 1, samples: int = 40, seed: int = 0
) -> Sensitivity:
    """Definition 3 for all orders and pairs of n objects, at `samples` score vectors.

    loss  a name such as "ListMLE(k=2)", a Loss, or phi(scores, order) with the best object first.
    A clause that holds was not refuted; one that fails has an example.
    """
    phi = surrogate(loss, n)
    depth(k, n)
    tally = _Tally(phi, k)
    rng = np.random.default_rng(seed)
    for g in points(rng, n, samples):
        tally.look(g)
    corner = kink(phi, rng)
    tally.tested["differentiable"] = LINES
    if corner is not None:
        tally.fail(
            "differentiable", corner.scores, corner.order, f"its slope jumps by {corner.jump:.3g}"
        )
    return Sensitivity(phi.name, n, k, tally.clauses())


def points(rng: np.random.Generator, n: int, samples: int) -> Iterator[Floats]:
    """Scores to try: of several scales, whole numbers, nearly equal ones, far ones."""
    for s in range(samples):
        g: Array = rng.normal(size=n) * (0.3, 1.0, 3.0)[s % 3]
        if s % 5 == 3:  # where hinges have their corners, and some scores are equal
            g = rng.integers(-2, 3, n) + 0.25
        elif s % 5 == 4:
            g[rng.integers(1, n) :] = g[0]
            g += 1e-3 * rng.normal(size=n)
        yield g.astype(np.float64)
    if samples:
        yield np.linspace(6.0, -6.0, n)
        yield np.r_[8.0, np.full(n - 1, -1.0)]


@dataclass
class _Tally:
    """How often each clause was tried and failed, and where first."""

    phi: Surrogate
    k: int
    tested: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLAUSES, 0))
    failed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLAUSES, 0))
    example: dict[str, str] = field(default_factory=dict)

    def clauses(self) -> tuple[Clause, ...]:
        return tuple(
            Clause(name, text, not self.failed[name], self.tested[name], self.failed[name],
                   self.example.get(name, ""))
            for name, text in CLAUSES.items()
        )  # fmt: skip

    def fail(self, name: str, g: Floats, order: int, what: str) -> None:
        self.failed[name] += 1
        shown = ", ".join(f"{x:.4g}" for x in g)
        y = "".join(str(o + 1) for o in orders(self.phi.n)[order])
        self.example.setdefault(name, f"scores ({shown}), order {y}: {what}")

    def look(self, g: Floats) -> None:
        values = self.phi.values(g)
        self.tested["nonnegative"] += len(values)
        if values.min() < -TIE:
            at = int(np.argmin(values))
            self.fail("nonnegative", g, at, f"the loss is {values[at]:.4g}")
        for i, j in combinations(range(self.phi.n), 2):
            self._symmetric(g, values, i, j)
            low, high = (i, j) if g[i] < g[j] else (j, i)
            if g[low] < g[high]:
                self._ordered(g, values, low, high)
            self._slope(g, i, j)

    def _symmetric(self, g: Floats, values: Floats, i: int, j: int) -> None:
        other = g.copy()
        other[[i, j]] = g[[j, i]]
        off = np.abs(values - self.phi.values(other)[swapped(self.phi.n, i, j)])
        self.tested["symmetric"] += len(off)
        at = int(np.argmax(off))
        if off[at] > TIE * (1 + abs(values[at])):
            self.fail(
                "symmetric", g, at, f"swapping {i + 1} and {j + 1} changes it by {off[at]:.4g}"
            )

    def _ordered(self, g: Floats, values: Floats, low: int, high: int) -> None:
        """`low` has the lower score: orders that have it before `high` are contradicted."""
        first = before(self.phi.n, low, high)
        differ = changes_top(self.phi.n, self.k, low, high)
        more = values - values[swapped(self.phi.n, low, high)]
        scale = 1 + np.abs(values)
        who = f"{low + 1} before {high + 1}"
        self._each("ordered", g, first & differ, more < -TIE * scale, more, f"{who} costs less by")
        same = np.abs(more) > TIE * scale
        self._each("subgroup", g, first & ~differ, same, more, f"{who} costs more by")
        self.tested["strict"] += 1
        if not (more > CLEAR * scale)[first & differ].any():
            self.fail(
                "strict", g, int(np.argmax(first & differ)), f"no order with {who} costs more"
            )

    def _each(
        self, name: str, g: Floats, which: Bools, wrong: Bools, more: Floats, what: str
    ) -> None:
        self.tested[name] += int(which.sum())
        found = np.flatnonzero(which & wrong)
        for at in found[np.argsort(-np.abs(more[found]))]:
            size = abs(more[at]) if name == "ordered" else more[at]
            self.fail(name, g, int(at), f"{what} {size:.4g}")

    def _slope(self, g: Floats, i: int, j: int) -> None:
        even = g.copy()
        even[j] = even[i]
        slopes = self.phi.slopes(even)[:, i]
        which = before(self.phi.n, i, j) & changes_top(self.phi.n, self.k, i, j)
        more = slopes[swapped(self.phi.n, i, j)] - slopes
        self.tested["slope"] += 1
        if not (more[which] > (TIE if self.phi.exact else ROUGH)).any():
            what = f"no order pulls {i + 1} up more than {j + 1}"
            self.fail("slope", even, int(np.argmax(which)), what)
