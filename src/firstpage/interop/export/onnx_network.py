"""The forward pass of a network as nodes of an ONNX graph, for the documents of one query."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from firstpage.learning.scorers import InputTransform, NetworkScoring


class Graph(Protocol):
    """A graph to which constants and nodes are added; both have names."""

    def constant(self, value: ArrayLike, dtype: type[np.generic] = np.float64) -> str: ...

    def node(self, kind: str, inputs: list[str], output: str = "", **attributes: Any) -> str: ...


@dataclass(frozen=True)
class Value:
    """The output of a node, with the operators of arrays."""

    graph: Graph
    name: str

    def apply(self, kind: str, *others: Value | float, **attributes: Any) -> Value:
        """Add a node that takes this value and others."""
        inputs = [
            value.name if isinstance(value, Value) else self.graph.constant(float(value))
            for value in (self, *others)
        ]
        return Value(self.graph, self.graph.node(kind, inputs, **attributes))

    def __matmul__(self, other: Value) -> Value:
        return self.apply("MatMul", other)

    def __add__(self, other: Value | float) -> Value:
        return self.apply("Add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self.apply("Sub", other)

    def __mul__(self, other: Value | float) -> Value:
        return self.apply("Mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self.apply("Div", other)


class OnnxOperations:
    """The operations of `forward` as nodes, without dropout."""

    def __init__(self, graph: Graph, activation: str, heads: int, width: int) -> None:
        self._graph, self._activation, self._heads, self._width = graph, activation, heads, width

    def _integers(self, *values: int) -> Value:
        return Value(self._graph, self._graph.constant(values, np.int64))

    def linear(self, x: Value, weight: Value, bias: Value) -> Value:
        return x @ weight + bias

    def activate(self, x: Value) -> Value:
        if self._activation == "relu":
            return x.apply("Relu")
        if self._activation == "tanh":
            return x.apply("Tanh")
        if self._activation == "silu":
            return x * ((x * 0.5).apply("Tanh") * 0.5 + 0.5)
        inner = (x + x * x * x * 0.044715) * 0.7978845608028654
        return x * 0.5 * (inner.apply("Tanh") + 1.0)

    def normalize(self, x: Value, weight: Value, bias: Value) -> Value:
        centered = x - x.apply("ReduceMean", axes=[-1], keepdims=1)
        variance = (centered * centered).apply("ReduceMean", axes=[-1], keepdims=1)
        return centered / (variance + 1e-5).apply("Sqrt") * weight + bias

    def attend(self, qkv: Value) -> Value:
        per_head = self._width // self._heads
        split = qkv.apply("Reshape", self._integers(-1, 3, self._heads, per_head))
        q, k, v = (
            split.apply("Gather", self._integers(number), axis=1).apply(
                "Squeeze", self._integers(1)
            )
            for number in range(3)
        )
        queries, values = (part.apply("Transpose", perm=[1, 0, 2]) for part in (q, v))
        keys = k.apply("Transpose", perm=[1, 2, 0])
        weight = (queries @ keys / sqrt(per_head)).apply("Softmax", axis=-1)
        mixed = (weight @ values).apply("Transpose", perm=[1, 0, 2])
        return mixed.apply("Reshape", self._integers(-1, self._width))

    def drop(self, x: Value) -> Value:
        return x


def add_network(graph: Graph, features: str, network: NetworkScoring) -> str:
    """Add the scores of a network to the graph, and return their name."""
    shape = network.architecture
    operations = OnnxOperations(graph, shape.activation, shape.heads, shape.width)
    weights = {
        name: Value(graph, graph.constant(weight)) for name, weight in network.weights.items()
    }
    inputs = _transformed(Value(graph, features), network.inputs)
    scores: Value = shape.scores(operations, inputs, weights)
    return scores.name


def _transformed(x: Value, inputs: InputTransform) -> Value:
    """Add the transform of the features."""
    if "log1p" in inputs.name:
        # ONNX has no log1p: log(1 + a) a / ((1 + a) - 1) is exact to rounding, and a near 0.
        absolute = x.apply("Abs")
        above = absolute + 1.0
        rounded = above - 1.0
        is_zero = Value(x.graph, x.graph.node("Equal", [rounded.name, x.graph.constant(0.0)]))
        one = Value(x.graph, x.graph.constant(1.0))
        divisor = is_zero.apply("Where", one, rounded)
        logarithm = is_zero.apply("Where", absolute, above.apply("Log") * absolute / divisor)
        x = x.apply("Sign") * logarithm
    mean, deviation = (
        Value(x.graph, x.graph.constant(array)) for array in (inputs.mean, inputs.deviation)
    )
    return (x - mean) / deviation
