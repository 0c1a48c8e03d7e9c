"""Scorers by name, and scorings by the kind in model files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from firstpage.core import ParameterError, Registry, canonical_name
from firstpage.learning.scorers.linear import Linear, LinearScoring
from firstpage.learning.scorers.mlp import MLP
from firstpage.learning.scorers.network import Network
from firstpage.learning.scorers.network_scoring import NetworkScoring
from firstpage.learning.scorers.scorer import Scoring
from firstpage.learning.scorers.scoring_base import JsonObject
from firstpage.learning.scorers.stumps import StumpsScoring
from firstpage.learning.scorers.tree_scoring import TreesScoring
from firstpage.learning.scorers.trees import Trees

AnyScorer = Linear | MLP | Network | Trees
SCORERS: dict[str, type[AnyScorer]] = {
    "linear": Linear, "mlp": MLP, "network": Network, "trees": Trees,
}  # fmt: skip
REGISTRY = Registry("scorer", SCORERS)
SCORINGS: Mapping[str, Callable[[JsonObject], Scoring]] = {
    "linear": LinearScoring.from_dict, "mlp": NetworkScoring.from_mlp_dict,
    "network": NetworkScoring.from_dict, "trees": TreesScoring.from_dict,
    "stumps": StumpsScoring.from_dict,
}  # fmt: skip


def scorer(name_or_scorer: str | AnyScorer) -> AnyScorer:
    """Return the scorer of a string such as "trees(count=300)"; a scorer is returned unchanged."""
    if isinstance(name_or_scorer, str):
        return REGISTRY.create(name_or_scorer)
    if type(name_or_scorer) not in SCORERS.values():
        raise ParameterError(
            f"scorer must be a string such as 'linear', or a scorer; got {name_or_scorer!r}."
        )
    return name_or_scorer


def is_additive(name_or_scorer: object) -> bool:
    """Return whether a scorer is trees; that of a string is known by its name alone."""
    if isinstance(name_or_scorer, str):
        return canonical_name(name_or_scorer).startswith("trees")
    return bool(getattr(name_or_scorer, "additive", False))
