"""Losses by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firstpage.losses.focused import focused_net
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy
from firstpage.losses.loss import Loss
from firstpage.losses.pairwise import PairwiseExponential, PairwiseHinge, PairwiseLogistic
from firstpage.losses.permutation import PermutationCrossEntropy
from firstpage.losses.pointwise import SquaredError
from firstpage.losses.structural import AveragePrecisionHinge, StructuralHinge
from firstpage.names import PartError, lookup, parameters, plain, split

LOSSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        PairwiseLogistic, PairwiseExponential, PairwiseHinge, PlackettLuce, SoftmaxCrossEntropy,
        PermutationCrossEntropy, Cosine, SquaredError, AveragePrecisionHinge, StructuralHinge,
    )
}  # fmt: skip


def loss(text: str, **given: Any) -> Loss:
    """The loss that a text names, as `PlackettLuce(k=10)`.

    `Focused(k, beta)` is FocusedNet's; other parts may be given as `listwise` and `pairwise`.
    """
    name, inside = split(text)
    given = {**inside, **given}
    if plain(name) == "focused":
        made = focused_net(given.pop("k", 10), given.pop("beta", 0.5))
        return replace(made, **given)
    cls = lookup(name, LOSSES, "loss")
    for key in given:
        if key not in parameters(cls):
            options = ", ".join(parameters(cls))
            raise PartError(f"{cls.__name__} has no parameter {key!r} (it has: {options}).")
    found: Loss = cls(**given)
    return found
