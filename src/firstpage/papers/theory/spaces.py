"""Probability spaces over all orders of a few objects, and losses evaluated on all orders.

As in Xia et al. (2009), an order is a tuple of objects, the best first.  Its top-k subgroup is the
set of all orders with the same first k objects.  A loss is one of the package, or a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np

from firstpage.core import (
    Array,
    Bools,
    DataError,
    Floats,
    Ints,
    canonical_name,
    parameter_names,
    parse_call,
)
from firstpage.data import Truth
from firstpage.learning.losses import Focused, Loss, TopList
from firstpage.learning.losses import loss as loss_by_name

MAX_OBJECTS = 6  # 720 orders
Pair = tuple[int, int]
Order = tuple[int, ...]


@lru_cache(16)
def orders(n: int) -> Ints:
    """Return all orders of n objects, one per row."""
    if not 2 <= n <= MAX_OBJECTS:
        raise DataError(
            f"n must be an integer from 2 to {MAX_OBJECTS}, as all orders of n objects are tested; "
            f"got {n}."
        )
    rows = np.array(list(permutations(range(n))), np.int64)
    rows.setflags(write=False)
    return rows


@lru_cache(16)
def positions(n: int) -> Ints:
    """Return the position of every object in every order, counted from 0."""
    return np.argsort(orders(n), axis=1).astype(np.int64)


def check_depth(k: int, n: int) -> None:
    """Raise an error unless k is between 1 and n."""
    if not 1 <= k <= n:
        raise DataError(f"k must be from 1 to the number of objects, {n}; got {k}.")


@lru_cache(64)
def swapped(n: int, i: int, j: int) -> Ints:
    """Return for every order the number of the order with i and j swapped."""
    number = {tuple(order): row for row, order in enumerate(orders(n).tolist())}
    return np.array([number[_swap(order, i, j)] for order in orders(n).tolist()], np.int64)


def _swap(order: Sequence[int], i: int, j: int) -> Order:
    exchange = {i: j, j: i}
    return tuple(exchange.get(o, o) for o in order)


def precedes(n: int, i: int, j: int) -> Bools:
    """Return which orders have i before j."""
    mask: Bools = positions(n)[:, i] < positions(n)[:, j]
    return mask


def changes_top(n: int, k: int, i: int, j: int) -> Bools:
    """Return which orders have another top k, or another order of it, with i and j swapped."""
    mask: Bools = np.minimum(positions(n)[:, i], positions(n)[:, j]) < k
    return mask


@dataclass(frozen=True, eq=False)
class ProbabilitySpace:
    """A probability for each order of n objects, in the order of `orders(n)`."""

    n: int
    probabilities: Floats

    def __post_init__(self) -> None:
        total = float(self.probabilities.sum())
        count = len(orders(self.n))
        if len(self.probabilities) != count or (self.probabilities < 0).any():
            raise DataError(f"{self.n} objects need {count} probabilities of at least 0.")
        if abs(total - 1) > 1e-9:
            raise DataError(f"probabilities must add up to 1; they add up to {total:g}.")

    @classmethod
    def from_orders(cls, probabilities: dict[Order, float]) -> ProbabilitySpace:
        """Return the space with the probabilities of some orders; the others have 0."""
        n = len(next(iter(probabilities)))
        values = [probabilities.get(tuple(order), 0.0) for order in orders(n).tolist()]
        return cls(n, np.array(values, np.float64))

    def subgroups(self, k: int) -> dict[Order, float]:
        """Return the probability of each top-k subgroup (Definition 1)."""
        totals: dict[Order, float] = {}
        rows = zip(orders(self.n).tolist(), self.probabilities.tolist(), strict=True)
        for order, probability in rows:
            top = tuple(order[:k])
            totals[top] = totals.get(top, 0.0) + probability
        return totals

    def preserves(self, k: int, i: int, j: int, margin: float = 0.0) -> bool:
        """Return whether the space is top-k order preserving for i and j (Definition 2).

        Wherever swapping them changes the top k, i before j must be more probable.
        """
        probability = self._subgroup_probabilities(k)
        mask = precedes(self.n, i, j) & changes_top(self.n, k, i, j)
        other = probability[swapped(self.n, i, j)]
        return bool((probability[mask] > other[mask] + margin).all())

    def _subgroup_probabilities(self, k: int) -> Floats:
        """Return for each order the probability of its subgroup."""
        totals = self.subgroups(k)
        return np.array([totals[tuple(order[:k])] for order in orders(self.n).tolist()])

    def pairs(self, k: int, margin: float = 0.0) -> list[Pair]:
        """Return all pairs for which the space is top-k order preserving."""
        n = self.n
        pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
        return [(i, j) for i, j in pairs if self.preserves(k, i, j, margin)]

    def bayes(self, k: int) -> tuple[Order, float]:
        """Return the top of the Bayes ranker for the top-k true loss, and its lead."""
        ranked = sorted(self.subgroups(k).items(), key=lambda item: -item[1])
        lead = ranked[0][1] - ranked[1][1] if len(ranked) > 1 else 1.0
        return ranked[0][0], lead


def theorem_6_pairs(order: Sequence[int], k: int, rng: np.random.Generator) -> list[Pair]:
    """Return the n - 1 pairs that Theorem 6 requires.

    They are the neighbors down to rank k + 1; each later object is paired with a random object
    above it, of rank k or below.
    """
    n = len(order)
    pairs = [(order[i], order[i + 1]) for i in range(min(k, n - 1))]
    last = k - 1
    lower_ranks = range(2, n - k + 1)
    return pairs + [(order[last + int(rng.integers(0, i))], order[last + i]) for i in lower_ranks]


def random_space(
    rng: np.random.Generator, n: int, k: int, pairs: Sequence[Pair], adversarial: bool = False
) -> ProbabilitySpace:
    """Return a random space that preserves `pairs` at the top k.

    Subgroups are put into a random order that agrees with the pairs, and get decreasing
    probabilities along it: steep, moderate or nearly equal.  Inside a subgroup, probabilities are
    random; with `adversarial`, nearly all is on the order that contradicts the pairs most.
    """
    tops = list(dict.fromkeys(tuple(order[:k]) for order in orders(n).tolist()))
    sequence = _linear_extension(rng, tops, pairs)
    steps = rng.random(len(tops)) + 0.02
    if rng.random() < 0.5:
        steps = steps**3 + 1e-3
    base = float(rng.choice([0.02, 1.0, 20.0]))  # steep, moderate, nearly equal
    top_weights = dict(zip(sequence, base + np.cumsum(steps)[::-1], strict=True))
    weights = np.zeros(len(orders(n)))
    all_orders = orders(n).tolist()
    for top in tops:
        rows = [row for row, order in enumerate(all_orders) if tuple(order[:k]) == top]
        subgroup = [all_orders[row] for row in rows]
        weights[rows] = top_weights[top] * _subgroup_weights(rng, subgroup, pairs, adversarial)
    return ProbabilitySpace(n, weights / weights.sum())


def _subgroup_weights(
    rng: np.random.Generator, subgroup: list[list[int]], pairs: Sequence[Pair], adversarial: bool
) -> Array:
    """Return the fractions of a subgroup's probability that its orders get."""
    if not adversarial:
        return rng.dirichlet(np.full(len(subgroup), float(rng.choice([0.2, 1.0]))))
    contradictions = [sum(r.index(i) > r.index(j) for i, j in pairs) for r in subgroup]
    weights = np.full(len(subgroup), 1e-3)
    weights[int(np.argmax(contradictions))] = 1.0
    fractions: Array = weights / weights.sum()
    return fractions


def _linear_extension(
    rng: np.random.Generator, tops: list[Order], pairs: Sequence[Pair]
) -> list[Order]:
    """Return the subgroups in a random order in which a swap against a pair comes later."""
    below: dict[Order, set[Order]] = {top: set() for top in tops}
    for top in tops:
        for i, j in pairs:
            if i in top and (j not in top or top.index(i) < top.index(j)):
                below[top].add(_swap(top, i, j))
    n_predecessors = dict.fromkeys(tops, 0)
    for lower in below.values():
        for top in lower:
            n_predecessors[top] += 1
    sequence: list[Order] = []
    available = [top for top in tops if not n_predecessors[top]]
    while available:
        sequence.append(available.pop(int(rng.integers(len(available)))))
        for top in sorted(below[sequence[-1]]):
            n_predecessors[top] -= 1
            if not n_predecessors[top]:
                available.append(top)
    if len(sequence) < len(tops):
        raise DataError("the pairs form a cycle: no space can preserve them all.")
    return sequence


Phi = Callable[[Floats, Order], float]
DIFFERENCE_STEP = 1e-5  # of finite differences, where no gradient is given
LOSS_OF_RANKER = {
    "listmle": "PlackettLuce", "ranknet": "PairwiseLogistic", "rankboost": "PairwiseExponential",
    "ranksvm": "PairwiseHinge", "listnet": "SoftmaxCrossEntropy", "rankcosine": "Cosine",
    "regression": "SquaredError", "focusednet": "Focused", "topmargin": "StructuralHinge",
}  # fmt: skip


class Surrogate:
    """phi(g, y) for all orders y of n objects at once, and its gradients by the scores g."""

    name: str
    n: int
    exact: bool  # gradients are analytic, not finite differences
    convex: bool = False

    def values(self, g: Floats) -> Floats:
        """Return the loss of every order."""
        raise AssertionError("subclasses implement it")

    def gradients(self, g: Floats, step: float = DIFFERENCE_STEP) -> Floats:
        """Return the gradient of every order, one per row; here by central differences."""
        rows = np.empty((len(orders(self.n)), self.n))
        for i in range(self.n):
            up, down = g.copy(), g.copy()
            up[i] += step * max(1.0, abs(g[i]))
            down[i] -= step * max(1.0, abs(g[i]))
            rows[:, i] = (self.values(up) - self.values(down)) / (up[i] - down[i])
        return rows


class LossSurrogate(Surrogate):
    """A loss of the package; the objects of an order have the labels n - 1 .. 0."""

    exact = True

    def __init__(self, loss: Loss, n: int) -> None:
        self.name, self.n, self.loss = loss_name(loss), n, loss
        self.convex = loss.traits.convex
        count = len(orders(n))
        labels = (n - 1 - positions(n)).astype(np.float64).ravel()
        truth = Truth.from_labels(labels, np.repeat(np.arange(count), n))
        self._scores, self._grad = np.empty(count * n), np.empty(count * n)
        self._values = np.empty(count)
        target = loss.target(truth)
        self._kernel = target.bind_slice(0, count, self._scores, self._values, self._grad)

    def values(self, g: Floats) -> Floats:
        self._scores.reshape(-1, self.n)[:] = g
        self._kernel()
        return self._values.copy()

    def gradients(self, g: Floats, step: float = DIFFERENCE_STEP) -> Floats:
        self.values(g)
        return self._grad.reshape(-1, self.n).copy()


class FunctionSurrogate(Surrogate):
    """A function of scores and an order with the best object first."""

    exact = False

    def __init__(self, phi: Phi, n: int) -> None:
        self.name, self.n, self._phi = getattr(phi, "__name__", "phi"), n, phi
        self._orders = [tuple(order) for order in orders(n).tolist()]

    def values(self, g: Floats) -> Floats:
        try:
            values = np.array([float(self._phi(g.copy(), y)) for y in self._orders])
        except Exception as error:  # a user's function may raise anything
            raise DataError(
                f"{self.name}: phi(scores, order) must return a number for {self.n} scores and an "
                f"order such as {self._orders[-1]}; it raised {type(error).__name__}: {error}."
            ) from error
        if not np.isfinite(values).all():
            order = self._orders[int(np.argmin(np.isfinite(values)))]
            raise DataError(f"{self.name}: is not finite at scores {g.tolist()}, order {order}.")
        return values


def make_surrogate(loss: Loss | Phi | Surrogate | str, n: int) -> Surrogate:
    """Return a loss, given by name, object or function, on all orders of n objects."""
    orders(n)
    if isinstance(loss, str):
        loss = parse_loss(loss)
    if isinstance(loss, Surrogate):
        return loss
    if isinstance(loss, Loss):
        return LossSurrogate(loss, n)
    if not callable(loss):
        raise DataError(
            f"loss must be a name, a Loss, or a function phi(scores, order); got {loss!r}."
        )
    return FunctionSurrogate(loss, n)


def parse_loss(text: str) -> Loss:
    """Return the loss of this name, or of the ranker of this name: `ListMLE(k=2)`."""
    name, params = parse_call(text)
    return loss_by_name(LOSS_OF_RANKER.get(canonical_name(name), name), **params)


def loss_forms(loss: Loss, text: str, k: int) -> dict[str, Loss]:
    """Return a loss by name and, if it has a top-k form and k is not set, also that form."""
    any_loss: Any = loss
    if "k" not in parameter_names(type(loss)) or any_loss.k is not None:
        return {text: loss}
    return {f"{text}, full order": loss, f"{text}, top {k}": replace(any_loss, k=k)}


def loss_name(loss: Loss) -> str:
    """Return the name of a loss with its parameters other than defaults."""
    if isinstance(loss, Focused) and isinstance(loss.listwise, TopList):
        return f"Focused(k={loss.listwise.k}, beta={loss.beta:g})"
    any_loss: Any = loss
    params = {
        f.name: getattr(any_loss, f.name)
        for f in fields(any_loss)
        if f.default != getattr(any_loss, f.name)
    }
    arguments = ", ".join(f"{name}={value}" for name, value in params.items())
    return type(loss).__name__ + (f"({arguments})" if arguments else "")
