"""Gradients of scores by the features of a document, in NumPy: reverse-mode differentiation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from firstpage.core import Array, Floats, Ints
from firstpage.learning.scorers.forward import Architecture, NumpyOperations

MAX_CELLS = 1 << 22  # derivatives by attention weights that are computed at a time
Vjp = Callable[[Floats], Floats]


def score_gradients(
    shape: Architecture, weights: dict[str, Floats], x: Floats, targets: Ints
) -> tuple[Floats, Floats]:
    """Return the scores of some rows of one list, and their gradients by the same rows.

    The features of the other documents of the list are constant.
    """
    if not shape.blocks:  # rows are independent
        nodes: list[Traced] = []
        operations = TracedOperations(shape.activation, 1, [0, len(targets)])
        scores: Traced = shape.scores(operations, Traced(x[targets], nodes), weights)
        return scores.value, scores.back_propagate(np.ones(len(targets)))
    nodes, count = [], len(x)
    operations = TracedOperations(shape.activation, shape.heads, [0, count])
    scores = shape.scores(operations, Traced(x, nodes), weights)
    gradients = np.empty((len(targets), x.shape[1]))
    step = max(1, MAX_CELLS // (shape.heads * count * count))
    for lo in range(0, len(targets), step):
        rows = targets[lo : lo + step]
        back = scores.back_propagate(np.eye(count)[rows])
        gradients[lo : lo + step] = back[np.arange(len(rows)), rows]
    return scores.value[targets], gradients


@dataclass(frozen=True, eq=False)
class Traced:
    """A value of a forward pass that remembers how it was computed.

    Attributes
    ----------
    value : ndarray
        The value.
    nodes : list of Traced
        All values of the pass, in the order in which they were computed.
    sources : tuple
        The values that it was computed from, each with a function from the gradient by this value
        to that by the other.  Gradients may have additional axes in front.
    """

    value: Floats
    nodes: list[Traced] = field(repr=False)
    sources: tuple[tuple[Traced, Vjp], ...] = ()

    def __post_init__(self) -> None:
        self.nodes.append(self)

    def derived(self, value: Floats, vjp: Vjp) -> Traced:
        """Return a value that was computed from this one."""
        return Traced(value, self.nodes, ((self, vjp),))

    def __matmul__(self, weight: Floats) -> Traced:
        if weight.ndim == 1:
            return self.derived(self.value @ weight, lambda g: g[..., None] * weight)
        return self.derived(self.value @ weight, lambda g: g @ weight.T)

    def __add__(self, other: Traced | Floats) -> Traced:
        if not isinstance(other, Traced):
            return self.derived(self.value + other, _unchanged)
        sources = ((self, _unchanged), (other, _unchanged))
        return Traced(self.value + other.value, self.nodes, sources)

    def back_propagate(self, gradient: Floats) -> Floats:
        """Return the gradient by the first value of the pass, from that by this one."""
        gradients: dict[int, Floats] = {id(self): gradient}
        for node in reversed(self.nodes[1:]):
            upstream = gradients.pop(id(node))
            for source, vjp in node.sources:
                through = vjp(upstream)
                before = gradients.get(id(source))
                gradients[id(source)] = through if before is None else before + through
        return gradients[id(self.nodes[0])]


def _unchanged(gradient: Floats) -> Floats:
    return gradient


class TracedOperations(NumpyOperations):
    """The operations in NumPy, with their derivatives; the rows are one list."""

    def activate(self, x: Traced) -> Traced:
        slope = _derivative(self.activation, x.value)
        return x.derived(super().activate(x.value), lambda g: g * slope)

    def normalize(self, x: Traced, weight: Floats, bias: Floats) -> Traced:
        def vjp(gradient: Floats) -> Floats:
            gradient = gradient * weight
            centered = x.value - x.value.mean(axis=-1, keepdims=True)
            deviation = np.sqrt((centered * centered).mean(axis=-1, keepdims=True) + 1e-5)
            unit = centered / deviation
            along = (gradient * unit).mean(axis=-1, keepdims=True)
            rest = gradient - gradient.mean(axis=-1, keepdims=True) - unit * along
            divided: Floats = rest / deviation
            return divided

        return x.derived(super().normalize(x.value, weight, bias), vjp)

    def attend(self, qkv: Traced) -> Traced:
        heads, count = self.heads, len(qkv.value)
        width = qkv.value.shape[1] // 3

        def split(x: Floats) -> Array:
            """Return (.., head, row, unit) of (.., row, unit of all heads)."""
            return np.swapaxes(x.reshape(*x.shape[:-1], heads, width // heads), -3, -2)

        def merge(x: Floats) -> Array:
            return np.swapaxes(x, -3, -2).reshape(*x.shape[:-3], count, width)

        def vjp(gradient: Floats) -> Floats:
            q, k, v = (split(x) for x in np.split(qkv.value, 3, axis=1))
            root = np.sqrt(width // heads)
            logits = q @ k.transpose(0, 2, 1) / root
            weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
            weight /= weight.sum(axis=-1, keepdims=True)
            mixed = split(gradient)
            by_weight = mixed @ v.transpose(0, 2, 1)
            by_logit = weight * (by_weight - (by_weight * weight).sum(axis=-1, keepdims=True))
            by_q, by_k = by_logit @ k / root, np.swapaxes(by_logit, -1, -2) @ q / root
            by_v = weight.transpose(0, 2, 1) @ mixed
            return np.concatenate([merge(part) for part in (by_q, by_k, by_v)], axis=-1)

        return qkv.derived(super().attend(qkv.value), vjp)


def _derivative(activation: str, x: Floats) -> Floats:
    """Return the derivative of an activation function."""
    if activation == "relu":
        return (x > 0).astype(np.float64)
    if activation == "tanh":
        return 1 - np.tanh(x) ** 2
    if activation == "silu":
        sigmoid = 0.5 + 0.5 * np.tanh(0.5 * x)
        return sigmoid * (1 + x * (1 - sigmoid))
    t = np.tanh(0.7978845608028654 * (x + 0.044715 * x**3))
    inner = 0.7978845608028654 * (1 + 3 * 0.044715 * x**2)
    gelu: Floats = 0.5 * (1 + t) + 0.5 * x * (1 - t**2) * inner
    return gelu
