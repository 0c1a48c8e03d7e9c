"""The forward pass of a network, written once for NumPy, PyTorch and ONNX.

Rows are documents.  Only attention looks at other rows, those of the same list.  The source of
`forward` and `NumpyOperations` is a part of exported Python files: it needs NumPy alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from firstpage.core import Floats

ACTIVATIONS = ("relu", "gelu", "silu", "tanh")
Tensor: TypeAlias = Any
"""An array of NumPy, a tensor of PyTorch, or a value of an ONNX graph."""


@dataclass(frozen=True)
class Architecture:
    """The shape of a network.

    Attributes
    ----------
    inputs : int
        The number of features.
    layers : tuple of int
        The units of each hidden layer.
    activation : str
        One of `ACTIVATIONS`.
    norm : bool
        Whether hidden layers are normalized before their activation.
    attention : tuple of int or None
        Blocks, heads and units of the feed-forward layers; None: no attention.
    """

    inputs: int
    layers: tuple[int, ...]
    activation: str = "relu"
    norm: bool = False
    attention: tuple[int, int, int] | None = None

    @property
    def blocks(self) -> int:
        """The number of attention blocks."""
        return 0 if self.attention is None else self.attention[0]

    @property
    def heads(self) -> int:
        """The number of heads of each block."""
        return 1 if self.attention is None else self.attention[1]

    @property
    def width(self) -> int:
        """The number of units that the output and the attention read."""
        return self.layers[-1] if self.layers else self.inputs

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters by name, in the order of the flat vector."""
        shapes: dict[str, tuple[int, ...]] = {}

        def add(name: str, *shape: int) -> None:
            shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[1:]

        def add_norm(name: str, width: int) -> None:
            shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (width,), (width,)

        inputs, width = self.inputs, self.width
        for i, units in enumerate(self.layers):
            add(f"layers.{i}", inputs, units)
            if self.norm:
                add_norm(f"layers.{i}.norm", units)
            inputs = units
        for i in range(self.blocks):
            assert self.attention is not None
            add_norm(f"blocks.{i}.norm1", width)
            add(f"blocks.{i}.qkv", width, 3 * width)
            add(f"blocks.{i}.projection", width, width)
            add_norm(f"blocks.{i}.norm2", width)
            add(f"blocks.{i}.feedforward1", width, self.attention[2])
            add(f"blocks.{i}.feedforward2", self.attention[2], width)
        if self.blocks:
            add_norm("norm", width)
        add("output", width)
        return shapes

    @cached_property
    def size(self) -> int:
        """The number of parameters."""
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def split(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the parameters by name, as views of a flat array or tensor."""
        weights, start = {}, 0
        for name, shape in self.shapes.items():
            end = start + int(np.prod(shape))
            weights[name] = flat[start:end].reshape(shape)
            start = end
        return weights

    def initial(self, seed: int) -> Floats:
        """Return random parameters: each layer keeps about the variance of its input.

        Layers with an activation that is about 0 on one side have twice the variance (He).
        """
        rng, values = np.random.default_rng(seed), []
        for name, shape in self.shapes.items():
            if "norm" in name:
                values.append(np.full(shape, float(name.endswith("weight"))))
            elif name.endswith("bias"):
                values.append(np.zeros(shape))
            else:
                activated = name.startswith("layers") or "feedforward1" in name
                gain = 2 if activated and self.activation != "tanh" else 1
                values.append(rng.normal(0, np.sqrt(gain / shape[0]), shape))
        return np.concatenate([value.ravel() for value in values])

    def scores(self, operations: Operations, x: Tensor, weights: dict[str, Tensor]) -> Tensor:
        """Return one score per row of transformed features."""
        return forward(operations, x, weights, len(self.layers), self.norm, self.blocks)


class Operations(Protocol):
    """What a forward pass needs besides sums."""

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Multiply each row by a matrix, or by a vector, and add the bias."""
        ...

    def activate(self, x: Tensor) -> Tensor:
        """Apply the activation function."""
        ...

    def normalize(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Apply layer normalization to each row."""
        ...

    def attend(self, qkv: Tensor) -> Tensor:
        """Return the attention of each row, from queries, keys and values side by side."""
        ...

    def drop(self, x: Tensor) -> Tensor:
        """Set values to 0 at random, in training only."""
        ...


def forward(
    operations: Operations,
    x: Tensor,
    weights: dict[str, Tensor],
    layers: int,
    norm: bool,
    blocks: int,
) -> Tensor:
    """Return one score per row: hidden layers, attention blocks, and a linear output.

    The blocks are those of Vaswani et al. (2017), normalized before each of their two parts.
    """

    def linear(x: Tensor, name: str) -> Tensor:
        return operations.linear(x, weights[name + ".weight"], weights[name + ".bias"])

    def normalized(x: Tensor, name: str) -> Tensor:
        return operations.normalize(x, weights[name + ".weight"], weights[name + ".bias"])

    for i in range(layers):
        x = linear(x, f"layers.{i}")
        x = normalized(x, f"layers.{i}.norm") if norm else x
        x = operations.drop(operations.activate(x))
    for i in range(blocks):
        qkv = linear(normalized(x, f"blocks.{i}.norm1"), f"blocks.{i}.qkv")
        attended = linear(operations.attend(qkv), f"blocks.{i}.projection")
        x = x + operations.drop(attended)
        inner = linear(normalized(x, f"blocks.{i}.norm2"), f"blocks.{i}.feedforward1")
        inner = operations.drop(operations.activate(inner))
        x = x + operations.drop(linear(inner, f"blocks.{i}.feedforward2"))
    x = normalized(x, "norm") if blocks else x
    return linear(x, "output")


class NumpyOperations:
    """The operations in NumPy, without dropout.

    `ends` say where the lists of rows begin and end.
    """

    max_cells = 1 << 22  # attention weights that are computed at a time

    def __init__(self, activation: str, heads: int, ends: Any) -> None:
        self.activation, self.heads, self.ends = activation, heads, ends

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return x @ weight + bias

    def activate(self, x: Tensor) -> Tensor:
        if self.activation == "relu":
            return np.maximum(x, 0.0)
        if self.activation == "tanh":
            return np.tanh(x)
        if self.activation == "silu":
            return x * (0.5 + 0.5 * np.tanh(0.5 * x))
        return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    def normalize(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        centered = x - x.mean(axis=-1, keepdims=True)
        variance = (centered * centered).mean(axis=-1, keepdims=True)
        return centered / np.sqrt(variance + 1e-5) * weight + bias

    def attend(self, qkv: Tensor) -> Tensor:
        heads, width = self.heads, qkv.shape[1] // 3
        out = np.empty((len(qkv), width))
        starts, lengths = np.asarray(self.ends)[:-1], np.diff(self.ends)
        for length in np.unique(lengths[lengths > 0]).tolist():  # lists of one length together
            same = starts[lengths == length]
            count = max(1, self.max_cells // (heads * length * length))
            step = max(1, self.max_cells // (heads * length))  # rows of a long list
            for a in range(0, len(same), count):
                rows = same[a : a + count, None] + np.arange(length)
                split = qkv[rows].reshape(len(rows), length, 3, heads, width // heads)
                q, k, v = split.transpose(2, 0, 3, 1, 4)
                for b in range(0, length, step):
                    weight = q[:, :, b : b + step] @ k.swapaxes(2, 3) / np.sqrt(width // heads)
                    weight = np.exp(weight - weight.max(axis=-1, keepdims=True))
                    mixed = weight / weight.sum(axis=-1, keepdims=True) @ v
                    chosen = rows[:, b : b + step]
                    out[chosen] = mixed.swapaxes(1, 2).reshape(*chosen.shape, width)
        return out

    def drop(self, x: Tensor) -> Tensor:
        return x
