"""A loss looked at on all orders of a few objects: one of ours, or a function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.focused import Focused, TopList
from firstpage.losses.loss import Loss
from firstpage.losses.registry import loss as loss_of
from firstpage.papers.theory.spaces import orders, places
from firstpage.registry import parameters, plain, split
from firstpage.types import Floats

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
    """A loss of the package; the truth of an order is labelled n - 1 .. 0."""

    exact = True

    def __init__(self, loss: Loss, n: int) -> None:
        self.name, self.n, self.loss = written(loss), n, loss
        self.convex = loss.traits.convex
        count = len(orders(n))
        labels = (n - 1 - places(n)).astype(np.float64).ravel()
        truth = Truth.of(labels, np.repeat(np.arange(count), n))
        self._scores, self._grad = np.empty(count * n), np.empty(count * n)
        self._values = np.empty(count)
        target = loss.target(truth)
        self._run = target.bind(0, count, self._scores, self._values, self._grad)

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
    name, given = split(text)
    return loss_of(RANKERS.get(plain(name), name), **given)


def forms(loss: Loss, text: str, k: int) -> dict[str, Loss]:
    """A loss as it is and, where it may be cut and is not, also cut after k places."""
    given: Any = loss
    if "k" not in parameters(type(loss)) or given.k is not None:
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
