"""Losses by name."""

from __future__ import annotations

from inspect import signature
from typing import Any

from firstpage.losses.focused import focused_net
from firstpage.losses.lambdaloss import LambdaLoss
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy, SquaredError
from firstpage.losses.loss import Loss
from firstpage.losses.pairwise import PairwiseExponential, PairwiseHinge, PairwiseLogistic
from firstpage.losses.permutation import PermutationCrossEntropy
from firstpage.losses.plrank import ExpectedMeasure
from firstpage.losses.structural import AveragePrecisionHinge, StructuralHinge
from firstpage.registry import ParameterError, Registry, by_class_name, canonical_name, parse_call

LOSSES: dict[str, type[Loss]] = by_class_name(
    PairwiseLogistic, PairwiseExponential, PairwiseHinge, PlackettLuce, SoftmaxCrossEntropy,
    PermutationCrossEntropy, Cosine, SquaredError, AveragePrecisionHinge, StructuralHinge,
    ExpectedMeasure, LambdaLoss,
)  # fmt: skip
REGISTRY = Registry("loss", LOSSES)


def loss(text: str, **parameters: Any) -> Loss:
    """Create a loss from its name.

    Case, hyphens, underscores, periods and spaces in the name do not matter.

    Parameters
    ----------
    text : str
        The name of a loss, with parameters if any, as in ``"PlackettLuce(k=10)"``: one of
        PairwiseLogistic, PairwiseExponential, PairwiseHinge, PlackettLuce, SoftmaxCrossEntropy,
        PermutationCrossEntropy, Cosine, SquaredError, AveragePrecisionHinge, StructuralHinge,
        ExpectedMeasure, LambdaLoss and Focused.  ``Focused(k, beta)`` is the loss of FocusedNet, of
        which `listwise` and `pairwise` may be replaced by other losses.
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
    >>> fp.loss("PlackettLuce(k=10)")
    PlackettLuce(k=10, average=False)
    >>> fp.loss("pairwise-logistic", k=5, average=True)
    PairwiseLogistic(k=5, pairs='all', average=True)
    """
    name, parsed = parse_call(text)
    values = {**parsed, **parameters}
    if canonical_name(name) != "focused":
        return REGISTRY.instance(name, values)
    allowed = list(signature(focused_net).parameters)
    unknown = next((key for key in values if key not in allowed), None)
    if unknown is not None:
        raise ParameterError(
            f"Focused has no parameter {unknown!r} (it has: {', '.join(allowed)})."
        )
    return focused_net(**values)
