"""Probability spaces over all orders of a few objects, and losses looked at on all of them.

As in Xia et al. (2009), an order is a tuple of objects, the best first.  Its top-k subgroup is the
set of all orders with the same first k objects.  A loss is one of ours, or a function of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np

from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.focused import Focused, TopList
from firstpage.losses.loss import Loss
from firstpage.losses.registry import loss as loss_of
from firstpage.registry import canonical_name, parameter_names, parse_call
from firstpage.types import Array, Bools, Floats, Ints

MOST = 6  # objects; 720 orders
Pair = tuple[int, int]


@lru_cache(16)
def orders(n: int) -> Ints:
    """All orders of n objects, one a row."""
    if not 2 <= n <= MOST:
        raise DataError(f"all orders of n objects are tried: n must be from 2 to {MOST}; got {n}.")
    found = np.array(list(permutations(range(n))), np.int64)
    found.setflags(write=False)
    return found


@lru_cache(16)
def places(n: int) -> Ints:
    """The place of every object in every order, from 0."""
    return np.argsort(orders(n), axis=1).astype(np.int64)


def depth(k: int, n: int) -> int:
    """k, if there is such a depth."""
    if not 1 <= k <= n:
        raise DataError(f"k must be from 1 to the number of objects, {n}; got {k}.")
    return k


@lru_cache(64)
def swapped(n: int, i: int, j: int) -> Ints:
    """For every order the number of the one in which i and j have changed places."""
    number = {tuple(order): at for at, order in enumerate(orders(n).tolist())}
    change = {i: j, j: i}
    return np.array(
        [number[tuple(change.get(o, o) for o in order)] for order in orders(n).tolist()], np.int64
    )


def before(n: int, i: int, j: int) -> Bools:
    """Orders that have i before j."""
    found: Bools = places(n)[:, i] < places(n)[:, j]
    return found


def changes_top(n: int, k: int, i: int, j: int) -> Bools:
    """Orders whose first k objects are others, or in another order, after i and j are swapped."""
    where = places(n)
    found: Bools = np.minimum(where[:, i], where[:, j]) < k
    return found


@dataclass(frozen=True, eq=False)
class Space:
    """A chance for each order of n objects, in the order of `orders(n)`."""

    n: int
    chances: Floats

    def __post_init__(self) -> None:
        total = float(self.chances.sum())
        if len(self.chances) != len(orders(self.n)) or (self.chances < 0).any():
            raise DataError(f"{self.n} objects have {len(orders(self.n))} chances of at least 0.")
        if abs(total - 1) > 1e-9:
            raise DataError(f"chances must add up to 1; they add up to {total:g}.")

    @classmethod
    def of(cls, chances: dict[tuple[int, ...], float]) -> Space:
        """From the chances of some orders; the others have none."""
        n = len(next(iter(chances)))
        held = [chances.get(tuple(order), 0.0) for order in orders(n).tolist()]
        return cls(n, np.array(held, np.float64))

    def subgroups(self, k: int) -> dict[tuple[int, ...], float]:
        """The chance of each top-k subgroup (Definition 1)."""
        found: dict[tuple[int, ...], float] = {}
        for order, chance in zip(orders(self.n).tolist(), self.chances.tolist(), strict=True):
            top = tuple(order[:k])
            found[top] = found.get(top, 0.0) + chance
        return found

    def preserves(self, k: int, i: int, j: int, by: float = 0.0) -> bool:
        """Definition 2: wherever it matters to the top k, i before j has the greater chance."""
        chance = self._of_own_top(k)
        which = before(self.n, i, j) & changes_top(self.n, k, i, j)
        other = chance[swapped(self.n, i, j)]
        return bool((chance[which] > other[which] + by).all())

    def _of_own_top(self, k: int) -> Floats:
        held = self.subgroups(k)
        return np.array([held[tuple(order[:k])] for order in orders(self.n).tolist()])

    def pairs(self, k: int, by: float = 0.0) -> list[Pair]:
        """All pairs for which the space is top-k order preserving."""
        n = self.n
        every = [(i, j) for i in range(n) for j in range(n) if i != j]
        return [(i, j) for i, j in every if self.preserves(k, i, j, by)]

    def bayes(self, k: int) -> tuple[tuple[int, ...], float]:
        """The top of the Bayes ranker for the top-k true loss, and its lead over the next."""
        held = sorted(self.subgroups(k).items(), key=lambda item: -item[1])
        lead = held[0][1] - held[1][1] if len(held) > 1 else 1.0
        return held[0][0], lead


def theorem_6_pairs(order: Sequence[int], k: int, rng: np.random.Generator) -> list[Pair]:
    """n - 1 pairs: neighbors down to place k + 1, then each below somebody from place k on."""
    n = len(order)
    pairs = [(order[i], order[i + 1]) for i in range(min(k, n - 1))]
    last = k - 1
    below = range(2, n - k + 1)
    return pairs + [(order[last + int(rng.integers(0, i))], order[last + i]) for i in below]


def random_space(
    rng: np.random.Generator, n: int, k: int, pairs: Sequence[Pair], harsh: bool = False
) -> Space:
    """A space that preserves `pairs` at the top k, and is as free as it can be otherwise.

    Subgroups are put into a random order that agrees with what the pairs ask, and get falling
    chances along it: steep, or nearly equal.  Inside a subgroup chances are random; a harsh space
    has all of the subgroup in one order, the one that contradicts the pairs most.
    """
    tops = list(dict.fromkeys(tuple(order[:k]) for order in orders(n).tolist()))
    line = _extension(rng, tops, pairs)
    steps = rng.random(len(tops)) + 0.02
    if rng.random() < 0.5:
        steps = steps**3 + 1e-3
    base = float(rng.choice([0.02, 1.0, 20.0]))  # steep, fair, nearly equal
    chances = dict(zip(line, base + np.cumsum(steps)[::-1], strict=True))
    found = np.zeros(len(orders(n)))
    every = orders(n).tolist()
    for top in tops:
        rows = [at for at, order in enumerate(every) if tuple(order[:k]) == top]
        found[rows] = chances[top] * _tail(rng, [every[r] for r in rows], pairs, harsh)
    return Space(n, found / found.sum())


def _tail(
    rng: np.random.Generator, rows: list[list[int]], pairs: Sequence[Pair], harsh: bool
) -> Array:
    """How a subgroup's chance is dealt out to its orders."""
    if not harsh:
        return rng.dirichlet(np.full(len(rows), float(rng.choice([0.2, 1.0]))))
    against = [sum(r.index(i) > r.index(j) for i, j in pairs) for r in rows]
    share = np.full(len(rows), 1e-3)
    share[int(np.argmax(against))] = 1.0
    found: Array = share / share.sum()
    return found


def _extension(
    rng: np.random.Generator, tops: list[tuple[int, ...]], pairs: Sequence[Pair]
) -> list[tuple[int, ...]]:
    """The subgroups in a random order in which every swap that a pair asks for goes down."""
    below: dict[tuple[int, ...], set[tuple[int, ...]]] = {top: set() for top in tops}
    for top in tops:
        for i, j in pairs:
            if i in top and (j not in top or top.index(i) < top.index(j)):
                change = {i: j, j: i}
                below[top].add(tuple(change.get(o, o) for o in top))
    waits = dict.fromkeys(tops, 0)
    for lower in below.values():
        for top in lower:
            waits[top] += 1
    line: list[tuple[int, ...]] = []
    free = [top for top in tops if not waits[top]]
    while free:
        line.append(free.pop(int(rng.integers(len(free)))))
        for top in sorted(below[line[-1]]):
            waits[top] -= 1
            if not waits[top]:
                free.append(top)
    if len(line) < len(tops):
        raise DataError("these pairs ask for a circle: no space can preserve them all.")
    return line


Phi = Callable[[Floats, tuple[int, ...]], float]
STEP = 1e-5  # of differences, where a slope is not given
RANKERS = {
    "listmle": "PlackettLuce", "ranknet": "PairwiseLogistic", "rankboost": "PairwiseExponential",
    "ranksvm": "PairwiseHinge", "listnet": "SoftmaxCrossEntropy", "rankcosine": "Cosine",
    "regression": "SquaredError", "focusednet": "Focused", "topmargin": "StructuralHinge",
}  # fmt: skip


class Surrogate:
    """phi(g, y) for all orders y of n objects at once, and its slopes by the scores g."""

    name: str
    n: int
    exact: bool  # slopes are the loss's own, not differences
    convex: bool = False

    def values(self, g: Floats) -> Floats:
        raise AssertionError("every surrogate has its own")

    def slopes(self, g: Floats, step: float = STEP) -> Floats:
        """A row an order; by central differences unless the loss has better."""
        found = np.empty((len(orders(self.n)), self.n))
        for i in range(self.n):
            up, down = g.copy(), g.copy()
            up[i] += step * max(1.0, abs(g[i]))
            down[i] -= step * max(1.0, abs(g[i]))
            found[:, i] = (self.values(up) - self.values(down)) / (up[i] - down[i])
        return found


class OfLoss(Surrogate):
    """A loss of the package; the truth of an order is labeled n - 1 .. 0."""

    exact = True

    def __init__(self, loss: Loss, n: int) -> None:
        self.name, self.n, self.loss = written(loss), n, loss
        self.convex = loss.traits.convex
        count = len(orders(n))
        labels = (n - 1 - places(n)).astype(np.float64).ravel()
        truth = Truth.from_labels(labels, np.repeat(np.arange(count), n))
        self._scores, self._grad = np.empty(count * n), np.empty(count * n)
        self._values = np.empty(count)
        target = loss.target(truth)
        self._run = target.bind_slice(0, count, self._scores, self._values, self._grad)

    def values(self, g: Floats) -> Floats:
        self._scores.reshape(-1, self.n)[:] = g
        self._run()
        return self._values.copy()

    def slopes(self, g: Floats, step: float = STEP) -> Floats:
        self.values(g)
        return self._grad.reshape(-1, self.n).copy()


class OfFunction(Surrogate):
    """A function of scores and an order, the best object first."""

    exact = False

    def __init__(self, phi: Phi, n: int) -> None:
        self.name, self.n, self._phi = getattr(phi, "__name__", "phi"), n, phi
        self._orders = [tuple(order) for order in orders(n).tolist()]

    def values(self, g: Floats) -> Floats:
        try:
            found = np.array([float(self._phi(g.copy(), y)) for y in self._orders])
        except Exception as error:  # whatever a function of somebody else raises
            raise DataError(
                f"{self.name}: phi(scores, order) must give a number for {self.n} scores and an "
                f"order such as {self._orders[-1]}; it says: {error}."
            ) from error
        if not np.isfinite(found).all():
            at = self._orders[int(np.argmin(np.isfinite(found)))]
            raise DataError(f"{self.name}: is not finite at scores {g.tolist()}, order {at}.")
        return found


def surrogate(loss: Loss | Phi | Surrogate | str, n: int) -> Surrogate:
    """What is given, on all orders of n objects."""
    orders(n)
    if isinstance(loss, str):
        loss = named(loss)
    if isinstance(loss, Surrogate):
        return loss
    if isinstance(loss, Loss):
        return OfLoss(loss, n)
    if not callable(loss):
        raise DataError(f"a loss is a name, a Loss, or phi(scores, order); got {loss!r}.")
    return OfFunction(loss, n)


def named(text: str) -> Loss:
    """The loss of a name, or of the ranker of that name: `ListMLE(k=2)`."""
    name, given = parse_call(text)
    return loss_of(RANKERS.get(canonical_name(name), name), **given)


def forms(loss: Loss, text: str, k: int) -> dict[str, Loss]:
    """A loss as it is and, where it may be cut and is not, also cut after k places."""
    given: Any = loss
    if "k" not in parameter_names(type(loss)) or given.k is not None:
        return {text: loss}
    return {f"{text}, full order": loss, f"{text}, top {k}": replace(given, k=k)}


def written(loss: Loss) -> str:
    """A loss with those of its parameters that are not the usual ones."""
    if isinstance(loss, Focused) and isinstance(loss.listwise, TopList):
        return f"Focused(k={loss.listwise.k}, beta={loss.beta:g})"
    held: Any = loss
    given = [
        (f.name, getattr(held, f.name)) for f in fields(held) if f.default != getattr(held, f.name)
    ]
    inside = ", ".join(f"{name}={value}" for name, value in given)
    return type(loss).__name__ + (f"({inside})" if inside else "")
