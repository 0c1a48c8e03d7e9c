"""Scorers by name."""

from __future__ import annotations

from typing import Any

from firstpage.registry import PartError, Registry
from firstpage.scorers.linear import Linear
from firstpage.scorers.mlp import MLP
from firstpage.scorers.trees import Trees

SCORERS: dict[str, Any] = {"linear": Linear, "mlp": MLP, "trees": Trees}
REGISTRY = Registry("scorer", SCORERS)


def scorer(given: Any) -> Any:
    """A scorer from a text such as "trees(count=300)"; a scorer stays as it is."""
    if isinstance(given, str):
        return REGISTRY.create(given)
    if not hasattr(given, "additive"):
        raise PartError(f"scorer must be a text such as 'linear', or a scorer; got {given!r}.")
    return given
