"""A network with one hidden layer: fitted by PyTorch from score gradients, scored by NumPy."""

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
    ScoringBase,
    Slices,
)
from firstpage.types import Array, BoundKernel, Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

SCORED_ROWS = 1 << 16  # scored at a time
EXPLAINED_ROWS = 1024  # explained at a time
Torch: TypeAlias = Any
"""The module torch, or a tensor: PyTorch is optional, and is not typed here."""


@dataclass(frozen=True)
class MLP:
    """Network with one hidden layer: relu(x W + b) v + c over standardized features.

    Fitting needs the package torch; scoring does not.

    Parameters
    ----------
    hidden : int, default 64
        The number of units of the hidden layer, at least 1.
    device : str, default "cpu"
        Where it is fitted: "cpu", "cuda" or any other device of PyTorch.

    Raises
    ------
    ParameterError
        If `hidden` is not an integer of at least 1.
    DataError
        On fitting, if the device cannot be used.
    MissingDependency
        On fitting, if torch is not installed.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.ListMLE(scorer="mlp(hidden=32)")
    """

    hidden: int = 64
    device: str = "cpu"
    additive: ClassVar[Literal[False]] = False
    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number(self, "hidden", 1, integer=True)

    def bind(self, X: Features) -> BoundMLP:
        """Set the scorer up on features.

        Parameters
        ----------
        X : array or sparse array
            The features of the training documents, one row per document.

        Returns
        -------
        BoundMLP
            The scorer on these features, for a solver.
        """
        return BoundMLP(self, X)


class BoundMLP:
    """A network whose parameters are one flat tensor, so that any solver can update them."""

    linear = False
    parallel = False  # PyTorch has threads of its own
    relative_error = 1e-7

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
            reason = str(error).splitlines()[0]
            raise DataError(f"device {scorer.device!r} cannot be used ({reason}).") from error
        self.device = scorer.device
        self.n_features, self.hidden = scaled.shape[1], scorer.hidden
        self.size = (self.n_features + 2) * self.hidden + 1
        self._flat = self.torch.zeros(self.size, device=scorer.device, requires_grad=True)

    def initial_params(self, seed: int) -> Floats:
        """Return He initialization: the hidden layer keeps the variance of its input."""
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

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, score_gradient: Floats, gradient: Floats
    ) -> tuple[BoundKernel, BoundKernel]:
        rows = self.X[lo:hi]
        pending: list[Torch] = []  # scores with their graph, until they are back-propagated

        def forward() -> None:
            W, b, v, c = layers(self._flat, self.n_features, self.hidden)
            output = self.torch.relu(rows @ W + b) @ v + c
            pending[:] = [output]
            scores[:] = output.detach().cpu().numpy()

        def backward() -> None:
            self._flat.grad = None
            upstream = self.torch.from_numpy(score_gradient.astype(np.float32)).to(self.device)
            pending.pop().backward(gradient=upstream)
            gradient[:] = self._flat.grad.cpu().numpy()

        return forward, backward

    def preconditioner(self, slices: Slices, weights: Floats, l2: float) -> Floats | None:
        return None

    def scoring(self, params: Floats) -> MLPScoring:
        W, b, v, c = layers(params.astype(np.float32), self.n_features, self.hidden)
        return MLPScoring(
            self.mean, self.deviation, np.array(W), np.array(b), np.array(v), float(c)
        )

    def predict(self, params: Floats, X: Features) -> Floats:
        return self.scoring(params).predict(X)


def layers(flat: Torch, inputs: int, hidden: int) -> tuple[Torch, Torch, Torch, Torch]:
    """Return views (W, b, v, c) of flat parameters, which are an array or a tensor."""
    a, b, c = inputs * hidden, (inputs + 1) * hidden, (inputs + 2) * hidden
    return flat[:a].reshape(inputs, hidden), flat[a:b], flat[b:c], flat[c]


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Limit PyTorch to this number of threads in the context; None changes nothing."""
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
        """The flat parameters, in the order of `layers`."""
        return np.concatenate([self.W.ravel(), self.b, self.v, [self.c]]).astype(np.float64)

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        with limited_blas(resolve(threads)):
            return self._scores(X)

    def _scores(self, X: Features) -> Floats:
        out = np.empty(X.shape[0])
        for lo in range(0, X.shape[0], SCORED_ROWS):
            rows = X[lo : lo + SCORED_ROWS]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            hidden = np.maximum((rows - self.mean) / self.deviation @ self.W + self.b, 0.0)
            out[lo : lo + SCORED_ROWS] = hidden @ self.v + self.c
        return out

    def explain(self) -> Importances:
        """Return the sum of |W| |v| over all paths from each standardized feature to the score."""
        strength = np.abs(self.W).astype(np.float64) @ np.abs(self.v).astype(np.float64)
        return Importances("path strength (standardized)", strength)

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return the gradient at each document x its difference from the training mean.

        The base is what remains of the score: the biases of the active units.
        """
        values, base = np.empty(X.shape), np.empty(len(X))
        transposed = self.W.T.astype(np.float64)
        for lo in range(0, len(X), EXPLAINED_ROWS):
            inputs = (X[lo : lo + EXPLAINED_ROWS] - self.mean) / self.deviation
            active = (inputs @ self.W + self.b > 0) * self.v.astype(np.float64)
            values[lo : lo + EXPLAINED_ROWS] = inputs * (active @ transposed)
            base[lo : lo + EXPLAINED_ROWS] = active @ self.b + self.c
        return Contributions("value x gradient", values, base)

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
        consistent = shapes == ((size,), (size,), (size, hidden), (hidden,), (hidden,))
        if not consistent or not all(np.isfinite(a).all() for a in (mean, deviation, W, b, v)):
            raise DataError(
                "the shapes of the network's layers do not match, or a value is not finite"
            )
        c = float(stored["c"])
        if not (deviation > 0).all() or not np.isfinite(c):
            raise DataError(
                "a deviation of the network is not above 0, or its output bias is not finite"
            )
        return cls(mean, deviation, W, b, v, c)
