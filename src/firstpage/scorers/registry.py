"""Scorers by name, and scorings by the kind that model files give."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from firstpage.registry import ParameterError, Registry
from firstpage.scorers.linear import Linear, LinearScoring
from firstpage.scorers.mlp import MLP, MLPScoring
from firstpage.scorers.scorer import JsonObject, Scoring
from firstpage.scorers.stumps import StumpsScoring
from firstpage.scorers.trees import Trees, TreesScoring

Scorer = Linear | MLP | Trees
SCORERS: dict[str, type[Scorer]] = {"linear": Linear, "mlp": MLP, "trees": Trees}
REGISTRY = Registry("scorer", SCORERS)
SCORINGS: Mapping[str, Callable[[JsonObject], Scoring]] = {
    "linear": LinearScoring.from_dict, "mlp": MLPScoring.from_dict,
    "trees": TreesScoring.from_dict, "stumps": StumpsScoring.from_dict,
}  # fmt: skip


def scorer(given: str | Scorer) -> Scorer:
    """Return the scorer of a text such as "trees(count=300)"; a scorer stays as it is."""
    if isinstance(given, str):
        return REGISTRY.create(given)
    if type(given) not in SCORERS.values():
        raise ParameterError(f"scorer must be a text such as 'linear', or a scorer; got {given!r}.")
    return given
