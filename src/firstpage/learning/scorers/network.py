"""Networks of any depth, with attention within a list: fitted by PyTorch, scored by NumPy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from firstpage.core import (
    BoundKernel,
    DataError,
    Floats,
    Ints,
    ParameterError,
    check_number,
    lookup,
    missing_dependency,
)
from firstpage.learning.scorers.forward import ACTIVATIONS, Architecture
from firstpage.learning.scorers.network_scoring import (
    INPUTS,
    InputTransform,
    NetworkScoring,
    chunks,
)
from firstpage.learning.scorers.scorer import Slices

if TYPE_CHECKING:
    from firstpage.data import Features
    from firstpage.learning.scorers.torch_operations import TorchOperations

NORMS = ("layer",)
FEEDFORWARD_RATIO = 4  # units of a feed-forward layer per unit of its input, by default
Torch: TypeAlias = Any
"""The module torch, or a tensor: PyTorch is optional, and is not typed here."""


@dataclass(frozen=True)
class Network:
    """Feed-forward network with any number of layers and, optionally, attention within a list.

    A hidden layer is linear, normalized, activated and dropped out, in this order.  The output is
    linear.  With attention, a score depends on the other documents of the query, but not on their
    order.  Fitting needs the package torch; scoring does not.

    Parameters
    ----------
    layers : tuple of int, default (64,)
        The number of units of each hidden layer; () has none.
    activation : {"relu", "gelu", "silu", "tanh"}, default "relu"
        The activation function; "gelu" is its approximation by tanh.
    dropout : float, default 0.0
        The fraction of units that are set to 0 at random in training, at least 0 and below 1.
    norm : {"layer"}, optional
        "layer" normalizes the units of each hidden layer to mean 0 and variance 1 per document.
    input : {"standardize", "log1p", "log1p+standardize", "none"}, default "standardize"
        The transform of the features: sign(x) log(1 + abs(x)), and mean 0 and variance 1 over the
        training documents.  It is a part of the model.
    attention : tuple of int, optional
        The number of attention blocks after the hidden layers, the number of heads, which divides
        the units of the last layer, and optionally the units of the feed-forward layers; these are
        4 times those of the last layer by default.
    device : str, default "cpu"
        Where it is fitted: "cpu", "cuda" or any other device of PyTorch.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    DataError
        On fitting, if the device cannot be used.
    MissingDependency
        On fitting, if torch is not installed.

    References
    ----------
    Pobrotyn, Bartczak, Synowiec, Bialobrzeski and Bojar (2020), Context-aware learning to rank with
    self-attention.

    Qin et al. (2021), Are neural rankers still outperformed by gradient boosted decision trees?

    Examples
    --------
    >>> import firstpage as fp
    >>> deep = fp.ListMLE(scorer="network(layers=(128, 64), dropout=0.1, norm=layer)")
    >>> listwise = fp.ListNet(scorer="network(layers=(64,), attention=(2, 4))")
    """

    layers: tuple[int, ...] = (64,)
    activation: str = "relu"
    dropout: float = 0.0
    norm: str | None = None
    input: str = "standardize"
    attention: tuple[int, ...] | None = None
    device: str = "cpu"
    additive: ClassVar[Literal[False]] = False
    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        layers = (self.layers,) if isinstance(self.layers, int) else self.layers
        object.__setattr__(self, "layers", _sizes(layers, "layers", "such as (128, 64)"))
        for name, known in (("activation", ACTIVATIONS), ("input", INPUTS), ("norm", NORMS)):
            if name != "norm" or self.norm is not None:
                value = lookup(str(getattr(self, name)), {k: k for k in known}, name)
                object.__setattr__(self, name, value)
        object.__setattr__(self, "device", str(self.device))
        check_number(self, "dropout", 0)
        if self.dropout >= 1:
            raise ParameterError(f"dropout of Network must be below 1; got {self.dropout!r}.")
        if self.attention is not None:
            attention = _sizes(self.attention, "attention", "(blocks, heads)")
            object.__setattr__(self, "attention", attention)
            self._check_attention(attention)

    def _check_attention(self, attention: tuple[int, ...]) -> None:
        if len(attention) not in (2, 3):
            raise ParameterError(
                "attention of Network must be (blocks, heads) or (blocks, heads, units of the "
                f"feed-forward layers); got {attention!r}."
            )
        if not self.layers or self.layers[-1] % attention[1]:
            raise ParameterError(
                f"the heads of the attention must divide the units of the last layer; got "
                f"{attention[1]} heads and layers {self.layers!r}."
            )

    def architecture(self, inputs: int) -> Architecture:
        """Return the shape of the network for this number of features."""
        attention = None
        if self.attention is not None:
            blocks, heads, *units = self.attention
            attention = blocks, heads, (*units, FEEDFORWARD_RATIO * self.layers[-1])[0]
        return Architecture(inputs, self.layers, self.activation, self.norm is not None, attention)

    def bind(self, X: Features, offsets: Ints | None = None, seed: int = 0) -> BoundNetwork:
        """Set the scorer up on features."""
        return BoundNetwork(self, X, offsets, seed)


def _sizes(value: object, name: str, form: str) -> tuple[int, ...]:
    """Return numbers of units, as integers of at least 1."""
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (None,)
    if not all(isinstance(s, (int, np.integer)) and s >= 1 and s is not True for s in sizes):
        raise ParameterError(
            f"{name} of Network must be integers of at least 1, {form}; got {value!r}."
        )
    return tuple(int(s) for s in sizes)


class BoundNetwork:
    """A network whose parameters are one flat tensor, so that any solver can update them."""

    linear = False
    parallel = False  # PyTorch has threads of its own
    relative_error = 1e-7

    def __init__(
        self, scorer: Network, X: Features, offsets: Ints | None = None, seed: int = 0
    ) -> None:
        self.torch = import_torch()
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        self.inputs = InputTransform.fit(scorer.input, dense)
        self.device, self._seed, self._dropout = scorer.device, seed, scorer.dropout
        self.deterministic = scorer.dropout == 0
        self.X = self.upload(self.inputs.apply(dense).astype(np.float32))
        self.offsets = np.array([0, len(dense)]) if offsets is None else offsets
        self.architecture = scorer.architecture(dense.shape[1])
        self.size = self.architecture.size
        self._flat = self.torch.zeros(self.size, device=self.device, requires_grad=True)
        self._draws: Counter[int] = Counter()  # by the first row of a slice
        self._skipped = 0
        self._validation: tuple[Features | None, Torch] = (None, None)

    def upload(self, array: Any) -> Torch:
        """Return an array as a tensor on the device."""
        if self.device == "meta":
            raise DataError("device 'meta' cannot be used (its tensors have no numbers).")
        try:
            return self.torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
        except (RuntimeError, AssertionError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"device {self.device!r} cannot be used ({reason}).") from error

    def initial_params(self, seed: int) -> Floats:
        """Return random weights, and biases of 0."""
        return self.architecture.initial(seed)

    def load(self, params: Floats) -> None:
        with self.torch.no_grad():
            self._flat.copy_(self.torch.from_numpy(np.ascontiguousarray(params, np.float32)))

    def skip_draws(self, evaluations: int) -> None:
        """Continue as after this many more evaluations: the dropout depends on their number."""
        self._skipped += evaluations

    def operations(self, ends: Ints, start: int | None = None) -> TorchOperations:
        """Return the operations on rows whose lists begin and end at `ends`.

        For training, `start` is the first row of the slice, on which the dropout depends.
        """
        from firstpage.learning.scorers.torch_operations import ListBatches, TorchOperations

        shape = self.architecture
        lists = ListBatches.of(ends, shape.heads, self.upload) if shape.blocks else None
        dropout = 0.0 if start is None else self._dropout
        return TorchOperations(shape.activation, shape.heads, lists, dropout)

    def reseed(self, operations: TorchOperations, start: int) -> None:
        """Seed the dropout of the next evaluation of a slice of rows."""
        if operations.dropout:
            key = (self._seed, start, self._skipped + self._draws[start])
            self._draws[start] += 1
            seed = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]) >> 1
            operations.generator = self.torch.Generator(self.device).manual_seed(seed)

    def scores(self, operations: TorchOperations, X: Torch, flat: Torch) -> Torch:
        """Return the scores of rows, with their graph, from flat parameters.

        They are split at once: the gradients of views would be vectors of full length, and added.
        """
        shapes = self.architecture.shapes
        views = flat.split([math.prod(shape) for shape in shapes.values()])
        weights = {
            name: view.view(shape)
            for (name, shape), view in zip(shapes.items(), views, strict=True)
        }
        return self.architecture.scores(operations, X, weights)

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, score_gradient: Floats, gradient: Floats
    ) -> tuple[BoundKernel, BoundKernel]:
        rows, operations = self.X[lo:hi], self.operations(self.lists_in(lo, hi), lo)
        pending: list[Torch] = []  # scores with their graph, until they are back-propagated

        def forward() -> None:
            self.reseed(operations, lo)
            pending[:] = [self.scores(operations, rows, self._flat)]
            scores[:] = pending[0].detach().cpu().numpy()

        def backward() -> None:
            self._flat.grad = None
            upstream = self.torch.from_numpy(score_gradient.astype(np.float32)).to(self.device)
            pending.pop().backward(gradient=upstream)
            gradient[:] = self._flat.grad.cpu().numpy()

        return forward, backward

    def lists_in(self, lo: int, hi: int) -> Ints:
        """Return where the lists of the rows lo:hi begin and end, counted from lo."""
        inside = self.offsets[(self.offsets > lo) & (self.offsets < hi)]
        ends: Ints = np.unique(np.concatenate([[lo], inside, [hi]])) - lo
        return ends

    def preconditioner(self, slices: Slices, weights: Floats, l2: float) -> Floats | None:
        return None

    def scoring(self, params: Floats) -> NetworkScoring:
        return NetworkScoring(self.architecture, self.inputs, params.astype(np.float32))

    def predict(self, params: Floats, X: Features, offsets: Ints | None = None) -> Floats:
        """Return one score per row, without dropout; on a device, computed there in float32."""
        if self.device == "cpu":
            return self.scoring(params).predict(X, offsets=offsets)
        if self._validation[0] is not X:
            dense = X if isinstance(X, np.ndarray) else X.toarray()
            self._validation = X, self.upload(self.inputs.apply(dense).astype(np.float32))
        rows, flat = self._validation[1], self.upload(params.astype(np.float32))
        out = np.empty(len(rows))
        with self.torch.no_grad():
            for ends in chunks(len(rows), offsets, self.architecture):
                lo, hi = int(ends[0]), int(ends[-1])
                scores = self.scores(self.operations(ends - lo), rows[lo:hi], flat)
                out[lo:hi] = scores.double().cpu().numpy()
        return out


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Limit PyTorch to this number of threads in the context; None changes nothing."""
    if threads is None:
        yield
        return
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def import_torch() -> Torch:
    """Return PyTorch; raise an error that says how to install it if it is missing."""
    try:
        import torch
    except ImportError as error:
        raise missing_dependency("torch", "torch", "A network (scorer=..)") from error
    return torch
