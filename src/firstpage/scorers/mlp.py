"""A network with one hidden layer, fitted by PyTorch and fed by our slopes; scored by NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from firstpage.engine.threads import limited_blas, resolve
from firstpage.errors import DataError, missing_dependency
from firstpage.registry import check_number
from firstpage.scorers.scorer import (
    Contributions,
    Importances,
    JsonObject,
    Network,
    Run,
    ScoringBase,
    Slices,
)
from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

ROWS = 1 << 16  # scored at a time
EXPLAINED = 1024  # explained at a time
Torch: TypeAlias = Any
"""The module, or a tensor of it: PyTorch is optional, and has no types here."""


@dataclass(frozen=True)
class MLP:
    """relu(x W + b) v + c over standardized features.

    hidden   units of the hidden layer
    device   "cpu", "cuda" or any other device of PyTorch
    """

    hidden: int = 64
    device: str = "cpu"
    additive: ClassVar[Literal[False]] = False
    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number(self, "hidden", 1, integer=True)

    def bind(self, X: Features) -> BoundMLP:
        return BoundMLP(self, X)


class BoundMLP:
    """All parameters in one flat tensor, so that any solver can move them."""

    parallel = False  # PyTorch has threads of its own
    noise = 1e-7

    def __init__(self, scorer: MLP, X: Features) -> None:
        self.torch = _torch()
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        self.mean = dense.mean(axis=0, dtype=np.float64)
        deviation = dense.std(axis=0, dtype=np.float64)
        self.deviation = np.where(deviation > 0, deviation, 1.0)
        scaled = ((dense - self.mean) / self.deviation).astype(np.float32)
        try:
            self.X = self.torch.from_numpy(scaled).to(scorer.device)
        except (RuntimeError, AssertionError, TypeError) as error:
            said = str(error).splitlines()[0]
            raise DataError(f"device {scorer.device!r} cannot be used ({said}).") from error
        self.device = scorer.device
        self.n_features, self.hidden = scaled.shape[1], scorer.hidden
        self.size = (self.n_features + 2) * self.hidden + 1
        self._flat = self.torch.zeros(self.size, device=scorer.device, requires_grad=True)

    def start(self, seed: int) -> Floats:
        """He's start: the hidden layer keeps the spread of its input; the scores begin small."""
        rng = np.random.default_rng(seed)
        params = np.zeros(self.size)
        first = self.n_features * self.hidden
        params[:first] = rng.normal(0, np.sqrt(2 / self.n_features), first)
        last = first + self.hidden
        params[last : last + self.hidden] = rng.normal(0, np.sqrt(1 / self.hidden), self.hidden)
        return params

    def load(self, params: Floats) -> None:
        with self.torch.no_grad():
            self._flat.copy_(self.torch.from_numpy(np.ascontiguousarray(params, np.float32)))

    def bind(
        self, lo: int, hi: int, scores: Floats, grad: Floats, slope: Floats
    ) -> tuple[Run, Run]:
        rows = self.X[lo:hi]
        held: list[Torch] = []

        def forward() -> None:
            W, b, v, c = layers(self._flat, self.n_features, self.hidden)
            found = self.torch.relu(rows @ W + b) @ v + c
            held[:] = [found]
            scores[:] = found.detach().cpu().numpy()

        def back() -> None:
            self._flat.grad = None
            upstream = self.torch.from_numpy(grad.astype(np.float32)).to(self.device)
            held.pop().backward(gradient=upstream)
            slope[:] = self._flat.grad.cpu().numpy()

        return forward, back

    def conditioner(self, parts: Slices, weights: Floats, l2: float) -> Floats | None:
        return None

    def scoring(self, params: Floats) -> MLPScoring:
        W, b, v, c = layers(params.astype(np.float32), self.n_features, self.hidden)
        return MLPScoring(
            self.mean, self.deviation, np.array(W), np.array(b), np.array(v), float(c)
        )

    def predict(self, params: Floats, X: Features) -> Floats:
        return self.scoring(params).predict(X)


def layers(flat: Torch, inputs: int, hidden: int) -> tuple[Torch, Torch, Torch, Torch]:
    """The flat parameters as (W, b, v, c); views, of arrays and tensors alike."""
    a, b, c = inputs * hidden, (inputs + 1) * hidden, (inputs + 2) * hidden
    return flat[:a].reshape(inputs, hidden), flat[a:b], flat[b:c], flat[c]


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """PyTorch in so many threads for a while; None: as it is."""
    if threads is None:
        yield
        return
    torch = _torch()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _torch() -> Torch:
    try:
        import torch
    except ImportError as error:
        raise missing_dependency("torch", "torch", "scorer='mlp'") from error
    return torch


@dataclass(frozen=True, eq=False)
class MLPScoring(ScoringBase):
    """A fitted network; needs no PyTorch."""

    mean: Floats
    deviation: Floats
    W: Array
    b: Array
    v: Array
    c: float
    export_kinds: ClassVar[tuple[str, ...]] = ("network",)

    def __repr__(self) -> str:
        return f"MLPScoring({self.n_features} features, {len(self.b)} hidden units)"

    @property
    def n_features(self) -> int:
        return len(self.mean)

    @property
    def network(self) -> Network:
        return Network(self.mean, self.deviation, self.W, self.b, self.v, self.c)

    @property
    def params(self) -> Floats:
        """As `layers` reads them."""
        return np.concatenate([self.W.ravel(), self.b, self.v, [self.c]]).astype(np.float64)

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        with limited_blas(resolve(threads)):
            return self._scores(X)

    def _scores(self, X: Features) -> Floats:
        out = np.empty(X.shape[0])
        for lo in range(0, X.shape[0], ROWS):
            rows = X[lo : lo + ROWS]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            hidden = np.maximum((rows - self.mean) / self.deviation @ self.W + self.b, 0.0)
            out[lo : lo + ROWS] = hidden @ self.v + self.c
        return out

    def explain(self) -> Importances:
        """Return how strongly each standardized feature reaches the score, over all paths."""
        reach = np.abs(self.W).astype(np.float64) @ np.abs(self.v).astype(np.float64)
        return Importances("path strength (standardized)", reach)

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return the gradient at each document x its distance from the mean of training; the base
        is what the corners of the network leave over."""
        values, base = np.empty(X.shape), np.empty(len(X))
        back = self.W.T.astype(np.float64)
        for lo in range(0, len(X), EXPLAINED):
            inputs = (X[lo : lo + EXPLAINED] - self.mean) / self.deviation
            on = (inputs @ self.W + self.b > 0) * self.v.astype(np.float64)
            values[lo : lo + EXPLAINED] = inputs * (on @ back)
            base[lo : lo + EXPLAINED] = on @ self.b + self.c
        return Contributions("value x slope", values, base)

    def to_dict(self) -> JsonObject:
        network = self.network
        arrays = {name: array.tolist() for name, array in network._asdict().items() if name != "c"}
        return {"kind": "mlp", **arrays, "c": self.c}

    @classmethod
    def from_dict(cls, stored: JsonObject) -> MLPScoring:
        mean, deviation = (np.array(stored[n], np.float64) for n in ("mean", "deviation"))
        W, b, v = (np.array(stored[n], np.float32) for n in ("W", "b", "v"))
        shapes = (mean.shape, deviation.shape, W.shape, b.shape, v.shape)
        size, hidden = len(mean), len(b)
        fit = shapes == ((size,), (size,), (size, hidden), (hidden,), (hidden,))
        if not fit or not all(np.isfinite(a).all() for a in (mean, deviation, W, b, v)):
            raise DataError("the layers of the network do not fit each other")
        c = float(stored["c"])
        if not (deviation > 0).all() or not np.isfinite(c):
            raise DataError("a deviation of the network is not above 0, or its output not finite")
        return cls(mean, deviation, W, b, v, c)
