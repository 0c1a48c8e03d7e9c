"""Losses by name."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from firstpage.core import (
    ParameterError,
    Registry,
    by_class_name,
    canonical_name,
    imported,
    parse_call,
    register,
)
from firstpage.learning.losses.base import FunctionLoss, Loss
from firstpage.learning.losses.focused import focused_net
from firstpage.learning.losses.lambdaloss import LambdaLoss
from firstpage.learning.losses.listwise import (
    Cosine,
    PlackettLuce,
    SoftmaxCrossEntropy,
    SquaredError,
)
from firstpage.learning.losses.neighbors import SampledNeighbors
from firstpage.learning.losses.pairwise import PairwiseExponential, PairwiseHinge, PairwiseLogistic
from firstpage.learning.losses.permutation import PermutationCrossEntropy
from firstpage.learning.losses.plrank import ExpectedMeasure
from firstpage.learning.losses.structural import AveragePrecisionHinge, StructuralHinge

LOSSES: dict[str, type[Loss]] = by_class_name(
    PairwiseLogistic,
    PairwiseExponential,
    PairwiseHinge,
    PlackettLuce,
    SoftmaxCrossEntropy,
    PermutationCrossEntropy,
    Cosine,
    SquaredError,
    AveragePrecisionHinge,
    StructuralHinge,
    ExpectedMeasure,
    LambdaLoss,
    SampledNeighbors,
)
REGISTRY = Registry("loss", LOSSES)


def loss(text: str | Loss | Callable[..., Any], **parameters: Any) -> Loss:
    """Create a loss from its name.

    Case, hyphens, underscores, periods and spaces in the name do not matter.

    Parameters
    ----------
    text : str, Loss or callable
        The name of a loss, with parameters if any, as in ``"PlackettLuce(k=10)"``: one of
        PairwiseLogistic, PairwiseExponential, PairwiseHinge, PlackettLuce, SoftmaxCrossEntropy,
        PermutationCrossEntropy, Cosine, SquaredError, AveragePrecisionHinge, StructuralHinge,
        ExpectedMeasure, LambdaLoss, SampledNeighbors and Focused.  ``Focused(k, beta)`` is the
        loss of FocusedNet, of which `listwise` and `pairwise` may be replaced by other losses.
        ``"module:Name"`` is a loss of your own, or a function.  A Loss is returned as it is; a
        function of the scores and the labels of one query, which returns a value and its
        gradient, becomes a loss.
    **parameters
        Parameters of the loss; they take precedence over those of `text`.

    Returns
    -------
    Loss
        The loss.

    Raises
    ------
    ParameterError
        If there is no such loss, or if it has no such parameter.
    DataError
        If a parameter is out of its range.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.extend.loss("PlackettLuce(k=10)")
    PlackettLuce(k=10, average=False)
    >>> fp.extend.loss("pairwise-logistic", k=5, average=True)
    PairwiseLogistic(k=5, pairs='all', average=True)
    """
    if isinstance(text, Loss):
        return text
    if not isinstance(text, str):
        return _of_function(text)
    name, parsed = parse_call(text)
    values = {**parsed, **parameters}
    if ":" in name and not isinstance(found := imported(name, "loss"), type):
        return _of_function(found)
    if canonical_name(name) != "focused":
        return REGISTRY.instance(name, values)
    allowed = list(signature(focused_net).parameters)
    unknown = next((key for key in values if key not in allowed), None)
    if unknown is not None:
        raise ParameterError(
            f"Focused has no parameter {unknown!r} (it has: {', '.join(allowed)})."
        )
    return focused_net(**values)


def _of_function(function: Any) -> Loss:
    if isinstance(function, type) or not callable(function):
        raise ParameterError(
            "a loss must be its name, a Loss, or a function of the scores and labels of a query; "
            f"got {function!r}."
        )
    if not hasattr(function, "__qualname__"):  # an instance, or functools.partial
        raise ParameterError(f"a function must be defined with def, by a name; got {function!r}.")
    return FunctionLoss(function)


def register_loss(loss_class: type[Loss], name: str | None = None) -> type[Loss]:
    """Give a loss of your own a name, by which `fp.extend.loss` and `LossRanker` find it.

    Parameters
    ----------
    loss_class : type
        A frozen dataclass derived from `fp.extend.Loss`, which implements
        ``value_grad(self, scores, truth)``.
    name : str, optional
        The name; that of the class if None.

    Returns
    -------
    type
        The class, so that this can be used as a decorator.

    Raises
    ------
    ParameterError
        If it is not such a class, or if another loss has the name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import firstpage as fp
    >>> @fp.extend.register_loss
    ... @dataclass(frozen=True)
    ... class HalfSquares(fp.extend.Loss):
    ...     scale: float = 1.0
    ...
    ...     def value_grad(self, scores, truth):
    ...         error = self.scale * (scores - truth.labels)
    ...         return np.add.reduceat(error**2, truth.offsets[:-1]) / 2, self.scale * error
    >>> fp.extend.loss("HalfSquares(scale=2)")
    HalfSquares(scale=2)
    """
    if not isinstance(loss_class, type) or not issubclass(loss_class, Loss):
        raise ParameterError(
            f"register_loss takes a class derived from fp.extend.Loss; got {loss_class!r}."
        )
    register(loss_class, name, "loss", LOSSES)
    return loss_class
