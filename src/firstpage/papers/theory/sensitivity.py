"""Definition 3 of Xia et al. (2009), clause by clause: is a loss top-k order sensitive?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.core import Array, Bools, Floats
from firstpage.learning.losses import Loss
from firstpage.papers.theory.spaces import (
    Phi,
    Surrogate,
    changes_top,
    check_depth,
    make_surrogate,
    orders,
    precedes,
    swapped,
)

LINES = 12  # random lines that are searched for a kink
SEGMENTS = 48  # of a line
MIN_SEGMENT = 1e-5  # length at which the search for a kink stops
MIN_JUMP = 1e-3  # of the derivative, at a kink


@dataclass(frozen=True, eq=False)
class Kink:
    """A point where a derivative jumps: the scores, the number of the order, and the jump."""

    scores: Floats
    order: int
    jump: float


def find_kink(phi: Surrogate, rng: np.random.Generator) -> Kink | None:
    """Return a kink of the loss of some order, if a search along random lines finds one.

    The change of the derivative over a segment vanishes with its length where the function is
    smooth, but not at a kink.  Lines keep away from scores of 0, where a cosine is undefined.
    """
    for _ in range(LINES):
        start, direction = 3 * rng.normal(size=phi.n), rng.normal(size=phi.n)
        order = int(rng.integers(len(phi.values(start))))

        def value_at(
            t: float, start: Array = start, direction: Array = direction, order: int = order
        ) -> float:
            return float(phi.values(start + t * direction)[order])

        ends = np.linspace(-4.0, 4.0, SEGMENTS + 1)
        values = np.array([value_at(t) for t in ends])
        second_differences = np.abs(values[2:] - 2 * values[1:-1] + values[:-2])
        sharpest = int(np.argmax(second_differences))
        t, jump = _locate_jump(value_at, ends[sharpest], ends[sharpest + 2])
        if jump > MIN_JUMP:
            return Kink(start + t * direction, order, jump)
    return None


def _locate_jump(f: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Return where between the two the derivative changes most, and by how much it jumps there.

    The interval is halved until it is short.  The jump is 0 if the change vanishes with its length.
    """
    points = [low, (low + high) / 2, high]
    values = [f(t) for t in points]
    jump, earlier_jump = 0.0, None
    while points[2] - points[0] > MIN_SEGMENT:
        first, second = (points[0] + points[1]) / 2, (points[1] + points[2]) / 2
        points = [points[0], first, points[1], second, points[2]]
        values = [values[0], f(first), values[1], f(second), values[2]]
        # The change of the mean derivative from the first half of an interval to the second.
        jumps = np.abs(np.diff(values, 2)) / (first - points[0])
        largest = int(np.argmax(jumps))
        jump = float(jumps[largest])
        points, values = points[largest : largest + 3], values[largest : largest + 3]
        if earlier_jump is None and points[2] - points[0] < 64 * MIN_SEGMENT:
            earlier_jump = jump
    persists = earlier_jump is not None and jump > 0.3 * earlier_jump
    return points[1], jump if persists else 0.0


CLAUSES = {
    "nonnegative": "the loss is at least 0",
    "differentiable": "the loss has no kinks",
    "symmetric": "(1) swapping two objects in the scores and in the order changes nothing",
    "ordered": "(2) where the top k differ, the order that contradicts the scores costs no less",
    "strict": "(2) for at least one such order it costs more",
    "subgroup": "(2) where the top k are the same, both orders cost the same",
    "gradient": "(3) at equal scores, some order has the smaller derivative by its better object",
}
TIE_TOLERANCE, MIN_DIFFERENCE = 1e-9, 1e-10  # of losses, relative
DIFFERENCE_TOLERANCE = 1e-4  # of gradients by finite differences


@dataclass(frozen=True)
class Clause:
    """The result for one clause of the definition.

    Attributes
    ----------
    name, text : str
        Name and statement of the clause.
    holds : bool
        Whether no trial refuted it.
    tested, failed : int
        Number of trials, and of those that refuted it.
    example : str
        A trial that refuted it.
    """

    name: str
    text: str
    holds: bool
    tested: int
    failed: int
    example: str = ""


@dataclass(frozen=True)
class Sensitivity:
    """Result of `order_sensitive`: whether a loss is top-k order sensitive; true if it is.

    Attributes
    ----------
    loss : str
        Name of the loss.
    n : int
        Number of objects.
    k : int
        Depth of the top.
    clauses : tuple of Clause
        The result for each clause of the definition: "nonnegative", "differentiable",
        "symmetric", "ordered", "strict", "subgroup" and "gradient".
    holds : bool
        Whether all clauses hold.
    broken : tuple of str
        Names of the clauses that do not hold.

    Examples
    --------
    >>> import firstpage as fp
    >>> sensitivity = fp.papers.order_sensitive("ListMLE", n=3, k=1, samples=5)
    >>> sensitivity
    Sensitivity(PlackettLuce, top 1 of 3: breaks subgroup)
    >>> bool(sensitivity), sensitivity.broken
    (False, ('subgroup',))
    """

    loss: str
    n: int
    k: int
    clauses: tuple[Clause, ...]

    @property
    def holds(self) -> bool:
        """Whether all clauses hold."""
        return all(clause.holds for clause in self.clauses)

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the clauses that do not hold."""
        return tuple(clause.name for clause in self.clauses if not clause.holds)

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        broken = f"breaks {', '.join(self.broken)}" if self.broken else "holds"
        return f"Sensitivity({self.loss}, top {self.k} of {self.n}: {broken})"

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON.

        Returns
        -------
        dict
            Keys "loss", "n", "k", "holds" and "clauses" (a list of dicts).
        """
        return {
            "loss": self.loss,
            "n": self.n,
            "k": self.k,
            "holds": self.holds,
            "clauses": [vars(clause) for clause in self.clauses],
        }


def order_sensitive(
    loss: Loss | Phi | Surrogate | str, n: int = 4, k: int = 1, samples: int = 40, seed: int = 0
) -> Sensitivity:
    """Test whether a loss is top-k order sensitive.

    Every clause of the definition is tested on all orders and pairs of `n` objects, at random
    and special score vectors.  A clause that holds was not refuted; a clause that does not hold
    comes with an example.

    Parameters
    ----------
    loss : str, Loss or callable
        Name of a loss or of a ranker, such as "ListMLE(k=2)", a loss object, or a function
        ``phi(scores, order)``, where `order` has the number of the best object first.
    n : int, default 4
        Number of objects, 2 to 6.
    k : int, default 1
        Depth of the top.
    samples : int, default 40
        Number of random score vectors.
    seed : int, default 0
        Seed of the score vectors.

    Returns
    -------
    Sensitivity
        The result for each clause; true if all hold.

    Raises
    ------
    DataError
        If `n` or `k` is out of range, if the loss is unknown, or if a function fails or does not
        return a finite number.

    References
    ----------
    F. Xia, T.-Y. Liu and H. Li: Statistical Consistency of Top-k Ranking. NIPS 2009,
    Definition 3.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.papers.order_sensitive("ListMLE(k=1)", n=3, k=1, samples=5)
    Sensitivity(PlackettLuce(k=1), top 1 of 3: holds)
    >>> fp.papers.order_sensitive("RankSVM(k=1)", n=3, k=1, samples=5).broken
    ('differentiable',)
    """
    phi = make_surrogate(loss, n)
    check_depth(k, n)
    tally = _Tally(phi, k)
    rng = np.random.default_rng(seed)
    for g in trial_scores(rng, n, samples):
        tally.update(g)
    kink = find_kink(phi, rng)
    tally.tested["differentiable"] = LINES
    if kink is not None:
        tally.fail(
            "differentiable", kink.scores, kink.order, f"its derivative jumps by {kink.jump:.3g}"
        )
    return Sensitivity(phi.name, n, k, tally.clauses())


def trial_scores(rng: np.random.Generator, n: int, samples: int) -> Iterator[Floats]:
    """Yield score vectors: of several scales, near integers, nearly equal, and far apart."""
    for s in range(samples):
        g: Array = rng.normal(size=n) * (0.3, 1.0, 3.0)[s % 3]
        if s % 5 == 3:  # where hinges have their kinks, and some scores are equal
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
    """Counts of tests and failures per clause, and the first failure."""

    phi: Surrogate
    k: int
    tested: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLAUSES, 0))
    failed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLAUSES, 0))
    example: dict[str, str] = field(default_factory=dict)

    def clauses(self) -> tuple[Clause, ...]:
        return tuple(
            Clause(
                name,
                text,
                not self.failed[name],
                self.tested[name],
                self.failed[name],
                self.example.get(name, ""),
            )
            for name, text in CLAUSES.items()
        )

    def fail(self, name: str, g: Floats, order: int, reason: str) -> None:
        self.failed[name] += 1
        scores = ", ".join(f"{x:.4g}" for x in g)
        y = "".join(str(o + 1) for o in orders(self.phi.n)[order])
        self.example.setdefault(name, f"scores ({scores}), order {y}: {reason}")

    def update(self, g: Floats) -> None:
        """Test all clauses except "differentiable" at scores g."""
        values = self.phi.values(g)
        self.tested["nonnegative"] += len(values)
        if values.min() < -TIE_TOLERANCE:
            lowest = int(np.argmin(values))
            self.fail("nonnegative", g, lowest, f"the loss is {values[lowest]:.4g}")
        for i, j in combinations(range(self.phi.n), 2):
            self._test_symmetric(g, values, i, j)
            low, high = (i, j) if g[i] < g[j] else (j, i)
            if g[low] < g[high]:
                self._test_ordered(g, values, low, high)
            self._test_gradient(g, i, j)

    def _test_symmetric(self, g: Floats, values: Floats, i: int, j: int) -> None:
        swapped_g = g.copy()
        swapped_g[[i, j]] = g[[j, i]]
        error = np.abs(values - self.phi.values(swapped_g)[swapped(self.phi.n, i, j)])
        self.tested["symmetric"] += len(error)
        worst = int(np.argmax(error))
        if error[worst] > TIE_TOLERANCE * (1 + abs(values[worst])):
            reason = f"swapping {i + 1} and {j + 1} changes it by {error[worst]:.4g}"
            self.fail("symmetric", g, worst, reason)

    def _test_ordered(self, g: Floats, values: Floats, low: int, high: int) -> None:
        """Test clause (2); `low` has the lower score, so orders with it before `high` are wrong."""
        wrong_order = precedes(self.phi.n, low, high)
        differs = changes_top(self.phi.n, self.k, low, high)
        extra_cost = values - values[swapped(self.phi.n, low, high)]
        scale = 1 + np.abs(values)
        pair = f"{low + 1} before {high + 1}"
        self._test_orders(
            "ordered",
            g,
            wrong_order & differs,
            extra_cost < -TIE_TOLERANCE * scale,
            extra_cost,
            f"{pair} costs less by",
        )
        self._test_orders(
            "subgroup",
            g,
            wrong_order & ~differs,
            np.abs(extra_cost) > TIE_TOLERANCE * scale,
            extra_cost,
            f"{pair} costs more by",
        )
        self.tested["strict"] += 1
        if not (extra_cost > MIN_DIFFERENCE * scale)[wrong_order & differs].any():
            order = int(np.argmax(wrong_order & differs))
            self.fail("strict", g, order, f"no order with {pair} costs more")

    def _test_orders(
        self, name: str, g: Floats, mask: Bools, failed: Bools, extra_cost: Floats, reason: str
    ) -> None:
        self.tested[name] += int(mask.sum())
        failures = np.flatnonzero(mask & failed)
        for order in failures[np.argsort(-np.abs(extra_cost[failures]))]:
            size = abs(extra_cost[order]) if name == "ordered" else extra_cost[order]
            self.fail(name, g, int(order), f"{reason} {size:.4g}")

    def _test_gradient(self, g: Floats, i: int, j: int) -> None:
        equal_g = g.copy()
        equal_g[j] = equal_g[i]
        derivatives = self.phi.gradients(equal_g)[:, i]
        mask = precedes(self.phi.n, i, j) & changes_top(self.phi.n, self.k, i, j)
        difference = derivatives[swapped(self.phi.n, i, j)] - derivatives
        self.tested["gradient"] += 1
        tolerance = TIE_TOLERANCE if self.phi.exact else DIFFERENCE_TOLERANCE
        if not (difference[mask] > tolerance).any():
            reason = f"no order with {i + 1} before {j + 1} has the smaller derivative by {i + 1}"
            self.fail("gradient", equal_g, int(np.argmax(mask)), reason)
