"""Losses by name."""

from __future__ import annotations

from inspect import signature
from typing import Any

from firstpage.losses.focused import focused_net
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy, SquaredError
from firstpage.losses.loss import Loss
from firstpage.losses.pairwise import PairwiseExponential, PairwiseHinge, PairwiseLogistic
from firstpage.losses.permutation import PermutationCrossEntropy
from firstpage.losses.structural import AveragePrecisionHinge, StructuralHinge
from firstpage.registry import ParameterError, Registry, by_class_name, canonical_name, parse_call

LOSSES: dict[str, type[Loss]] = by_class_name(
    PairwiseLogistic, PairwiseExponential, PairwiseHinge, PlackettLuce, SoftmaxCrossEntropy,
    PermutationCrossEntropy, Cosine, SquaredError, AveragePrecisionHinge, StructuralHinge,
)  # fmt: skip
REGISTRY = Registry("loss", LOSSES)


def loss(text: str, **given: Any) -> Loss:
    """The loss that a text names, as `PlackettLuce(k=10)`.

    `Focused(k, beta)` is FocusedNet's; other parts may be given as `listwise` and `pairwise`.
    """
    name, inside = parse_call(text)
    given = {**inside, **given}
    if canonical_name(name) != "focused":
        return REGISTRY.instance(name, given)
    allowed = list(signature(focused_net).parameters)
    unknown = next((key for key in given if key not in allowed), None)
    if unknown is not None:
        raise ParameterError(
            f"Focused has no parameter {unknown!r} (it has: {', '.join(allowed)})."
        )
    return focused_net(**given)
