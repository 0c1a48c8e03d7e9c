"""Aggregation methods by name: `skr`, `Borda`, `rrf(c=20)`, `local-kemeny(start=copeland)`.

`fusion` and `score_fusion` have the methods that add up points by rank or scores, `majority` those
that sort by majority votes, and `search` those that look for the order of minimal Kemeny cost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firstpage.core import ParameterError, Registry, by_class_name, parse_call
from firstpage.evaluation.aggregation.base import Method
from firstpage.evaluation.aggregation.fusion import ISR, RBC, RRF, Borda, LogISR, LogNISR
from firstpage.evaluation.aggregation.majority import Copeland, Kemeny
from firstpage.evaluation.aggregation.majority import Credit as Credit
from firstpage.evaluation.aggregation.majority import SupervisedKemeny as SupervisedKemeny
from firstpage.evaluation.aggregation.score_fusion import (
    CombANZ,
    CombMAX,
    CombMED,
    CombMIN,
    CombMNZ,
    CombSUM,
    ScoreFusion,
)
from firstpage.evaluation.aggregation.search import (
    BestInsertion,
    ExactKemeny,
    KwikSort,
    LocalKemeny,
)

METHODS: dict[str, type[Method]] = by_class_name(
    SupervisedKemeny, Kemeny, Borda, RRF, RBC, ISR, LogISR, LogNISR, CombSUM, CombMNZ, CombANZ,
    CombMAX, CombMIN, CombMED, Copeland, KwikSort, LocalKemeny, BestInsertion, ExactKemeny,
)  # fmt: skip
ALIASES = {
    "skr": "SupervisedKemeny", "exact": "ExactKemeny", "Condorcet": "Kemeny", "wsum": "CombSUM",
}  # fmt: skip
REGISTRY = Registry("aggregation method", METHODS, ALIASES)


def method(text: str | Method, **parameters: Any) -> Method:
    """Return the method that a text denotes."""
    if isinstance(text, Method):
        return text
    if not isinstance(text, str):
        raise ParameterError(f"a method must be a name such as skr or Borda; got {text!r}.")
    name, inside = parse_call(text)
    parameters = {**inside, **parameters}
    if isinstance(parameters.get("start"), str):
        parameters["start"] = method(parameters["start"])
    return REGISTRY.instance(name, parameters)


def with_normalization(chosen: Method, normalize: str) -> Method:
    """Return the method with this normalization of scores; refuse methods that use none."""
    if not isinstance(chosen, ScoreFusion):
        raise ParameterError(
            f"{type(chosen).__name__} does not use scores, so there is nothing to normalize; "
            "CombSUM, CombMNZ and the other Comb methods do."
        )
    return replace(chosen, normalize=normalize)
