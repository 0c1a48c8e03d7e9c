"""A fitted network: its input transform and its weights, scored by NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.core.engine import limited_blas, resolve
from firstpage.data import check_scale
from firstpage.learning.scorers.forward import ACTIVATIONS, Architecture, NumpyOperations
from firstpage.learning.scorers.network_gradient import score_gradients
from firstpage.learning.scorers.scoring_base import (
    Contributions,
    Importances,
    JsonObject,
    ScoringBase,
)

if TYPE_CHECKING:
    from firstpage.data import Features

INPUTS = ("standardize", "log1p", "log1p+standardize", "none")
CHUNK_VALUES = 1 << 22  # of a layer, computed at a time
EXPLAINED_ROWS = 1024  # explained at a time


@dataclass(frozen=True, eq=False)
class InputTransform:
    """The transform of the features: (f(x) - mean) / deviation, where f may be log1p.

    Attributes
    ----------
    name : str
        One of `INPUTS`.
    mean, deviation : ndarray
        One number per feature; 0 and 1 where it does not standardize.
    """

    name: str
    mean: Floats
    deviation: Floats

    @classmethod
    def fit(cls, name: str, X: Array) -> InputTransform:
        """Return the transform with the statistics of the training documents."""
        mean, deviation = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if "standardize" in name:
            logarithm = cls(name, mean, deviation)._logarithm(X)
            mean = logarithm.mean(axis=0, dtype=np.float64)
            deviation = logarithm.std(axis=0, dtype=np.float64)
            check_scale(deviation)
            rounding_error = 64 * np.finfo(np.float64).eps * np.abs(mean)  # of a constant feature
            deviation = np.where(deviation > rounding_error, deviation, 1.0)
        return cls(name, mean, deviation)

    def _logarithm(self, X: Array) -> Array:
        if "log1p" not in self.name:
            return X
        X = X.astype(np.float64)
        logarithm: Array = np.copysign(np.log1p(np.abs(X)), X)
        return logarithm

    def apply(self, X: Array) -> Floats:
        """Return the transformed features in float64."""
        transformed: Floats = (self._logarithm(X) - self.mean) / self.deviation
        return transformed


def chunks(rows: int, offsets: Ints | None, architecture: Architecture) -> Iterator[Ints]:
    """Split rows into chunks whose layers fit into memory; yield where their lists begin and end.

    With attention, lists are complete; None is one list.
    """
    attention = architecture.attention
    inner = (1,) if attention is None else (3 * architecture.width, attention[2])
    widest = max(architecture.inputs, *architecture.layers, *inner)
    size = max(1, CHUNK_VALUES // widest)
    if not architecture.blocks:
        for lo in range(0, rows, size):
            yield np.array([lo, min(lo + size, rows)])
        return
    offsets = np.array([0, rows]) if offsets is None else offsets
    lo, count = 0, len(offsets) - 1
    while lo < count:
        hi = int(np.searchsorted(offsets, offsets[lo] + size, side="right")) - 1
        hi = min(max(hi, lo + 1), count)
        yield offsets[lo : hi + 1]
        lo = hi


@dataclass(frozen=True, eq=False)
class NetworkScoring(ScoringBase):
    """A fitted network; needs no PyTorch.

    Attributes
    ----------
    architecture : Architecture
        Its shape.
    inputs : InputTransform
        The transform of the features.
    values : ndarray of float32
        The parameters, in the order of `Architecture.shapes`.
    """

    architecture: Architecture
    inputs: InputTransform
    values: Array

    @classmethod
    def from_layer(
        cls, mean: Floats, deviation: Floats, W: Array, b: Array, v: Array, c: float
    ) -> NetworkScoring:
        """Return the network relu((x - mean) / deviation W + b) v + c with one hidden layer."""
        values = np.concatenate([np.ravel(W), b, v, [c]]).astype(np.float32)
        inputs = InputTransform("standardize", np.asarray(mean), np.asarray(deviation))
        return cls(Architecture(len(mean), (len(b),)), inputs, values)

    def __repr__(self) -> str:
        attention = self.architecture.attention
        blocks = "" if attention is None else f", {attention[0]} attention blocks"
        return (
            f"NetworkScoring({self.n_features} features, layers {self.architecture.layers}{blocks})"
        )

    @property
    def n_features(self) -> int:
        return self.architecture.inputs

    @property
    def by_query(self) -> bool:
        return self.architecture.blocks > 0

    @property
    def export_kinds(self) -> tuple[str, ...]:
        return ("listwise network",) if self.by_query else ("network",)

    @property
    def network(self) -> NetworkScoring:
        return self

    @property
    def params(self) -> Floats:
        """The flat parameters."""
        return self.values.astype(np.float64)

    @cached_property
    def weights(self) -> dict[str, Floats]:
        """The parameters by name, in float64."""
        return self.architecture.split(self.params)

    @property
    def products(self) -> int:
        """The number of multiplications per document, without those between documents."""
        return sum(weight.size for weight in self.weights.values() if weight.ndim)

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        """Return one score per document, in float64."""
        with limited_blas(resolve(threads)):
            return self._scores(X, offsets)

    def _scores(self, X: Features, offsets: Ints | None) -> Floats:
        out, shape = np.empty(X.shape[0]), self.architecture
        for ends in chunks(X.shape[0], offsets, shape):
            lo, hi = int(ends[0]), int(ends[-1])
            rows = X[lo:hi]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            operations = NumpyOperations(shape.activation, shape.heads, (ends - lo).tolist())
            out[lo:hi] = shape.scores(operations, self.inputs.apply(rows), self.weights)
        return out

    def explain(self) -> Importances:
        """Return the sum, over all paths from each transformed feature to the score, of the
        products of absolute weights.

        Paths between documents, and the divisors of normalized layers, do not count.
        """
        weights, shape = self.weights, self.architecture
        strength = np.abs(weights["output.weight"])
        strength = strength * np.abs(weights["norm.weight"]) if shape.blocks else strength

        def through(name: str) -> Floats:
            product: Floats = np.abs(weights[f"{name}.weight"]) @ strength
            return product

        for i in reversed(range(shape.blocks)):
            block = f"blocks.{i}"
            inner, inputs = through(f"{block}.feedforward2"), strength
            inner = np.abs(weights[f"{block}.feedforward1.weight"]) @ inner
            strength = inputs + np.abs(weights[f"{block}.norm2.weight"]) * inner
            value = weights[f"{block}.qkv.weight"][:, -shape.width :]
            mixed = np.abs(value) @ through(f"{block}.projection")
            strength = strength + np.abs(weights[f"{block}.norm1.weight"]) * mixed
        for i in reversed(range(len(shape.layers))):
            if shape.norm:
                strength = strength * np.abs(weights[f"layers.{i}.norm.weight"])
            strength = through(f"layers.{i}")
        return Importances("path strength (of transformed features)", strength)

    def contributions(
        self, X: Array, offsets: Ints | None = None, rows: Ints | None = None
    ) -> Contributions:
        """Return the gradient at each document x its transformed features, of all or some rows.

        With attention, the other documents of the list are constant.  The base is what remains of
        the score; without normalized layers and attention, and with relu, the biases of the active
        units.
        """
        rows = np.arange(len(X)) if rows is None else rows
        values, base = np.empty((len(rows), X.shape[1])), np.empty(len(rows))
        lists = np.array([0, len(X)]) if offsets is None or not self.by_query else offsets
        query = np.searchsorted(lists, rows, side="right") - 1
        for number in np.unique(query).tolist():
            lo, hi = int(lists[number]), int(lists[number + 1])
            chosen = np.flatnonzero(query == number)
            inputs = self.inputs.apply(X[lo:hi])
            for part in np.array_split(chosen, max(1, len(chosen) // EXPLAINED_ROWS)):
                at = rows[part] - lo
                scores, gradients = score_gradients(self.architecture, self.weights, inputs, at)
                values[part] = inputs[at] * gradients
                base[part] = scores - values[part].sum(axis=1)
        return Contributions("value x gradient", values, base)

    def to_dict(self) -> JsonObject:
        shape = self.architecture
        return {
            "kind": "network",
            "layers": list(shape.layers),
            "activation": shape.activation,
            "norm": "layer" if shape.norm else None,
            "attention": None if shape.attention is None else list(shape.attention),
            "input": self.inputs.name,
            "mean": self.inputs.mean.tolist(),
            "deviation": self.inputs.deviation.tolist(),
            "params": [float(str(value)) for value in self.values],  # the digits of float32
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> NetworkScoring:
        mean, deviation = (np.array(stored[n], np.float64) for n in ("mean", "deviation"))
        attention, layers = stored["attention"], stored["layers"]
        sizes = [*layers, *(attention or ())]
        known = (
            stored["activation"] in ACTIVATIONS,
            stored["input"] in INPUTS,
            stored["norm"] in (None, "layer"),
            attention is None or len(attention) == 3,
            all(type(size) is int and size >= 1 for size in sizes),
        )
        if not all(known) or (attention and (not layers or layers[-1] % attention[1])):
            raise DataError("the architecture of the network is not known")
        shape = Architecture(
            len(mean),
            tuple(layers),
            stored["activation"],
            stored["norm"] is not None,
            None if attention is None else (attention[0], attention[1], attention[2]),
        )
        network = cls(
            shape,
            InputTransform(stored["input"], mean, deviation),
            np.array(stored["params"], np.float32),
        )
        return _checked(network)

    @classmethod
    def from_mlp_dict(cls, stored: JsonObject) -> NetworkScoring:
        """Return the network of a model file with the kind "mlp", which has one hidden layer."""
        mean, deviation = (np.array(stored[n], np.float64) for n in ("mean", "deviation"))
        W, b, v = (np.array(stored[n], np.float32) for n in ("W", "b", "v"))
        if W.shape != (len(mean), len(b)) or v.shape != b.shape:
            raise DataError(MISMATCH)
        return _checked(cls.from_layer(mean, deviation, W, b, v, float(stored["c"])))


MISMATCH = "the shapes of the network's layers do not match, or a value is not finite"


def _checked(network: NetworkScoring) -> NetworkScoring:
    """Return a network that was read; raise an error if its numbers are not complete or finite."""
    inputs, shape = network.inputs, network.architecture
    sizes = (inputs.mean.shape, inputs.deviation.shape, network.values.shape)
    consistent = sizes == ((shape.inputs,), (shape.inputs,), (shape.size,))
    arrays: tuple[Any, ...] = (inputs.mean, inputs.deviation, network.values)
    if not consistent or not all(np.isfinite(array).all() for array in arrays):
        raise DataError(MISMATCH)
    if not (inputs.deviation > 0).all():
        raise DataError("a deviation of the network is not above 0")
    return network
