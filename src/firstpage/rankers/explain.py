"""What a model looks at: a number a feature."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from firstpage.rankers.model_files import Model, read_model
from firstpage.scorers.scorer import JsonObject
from firstpage.types import Floats

SHOWN = 5  # features of an explanation's repr


@dataclass(frozen=True, eq=False)
class Explanation:
    """One number a feature; `kind` says what it is."""

    model: Model
    kind: str
    names: tuple[str, ...]
    values: Floats
    steps: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)
    """Of features that a model reads as step functions: thresholds, and levels from below on."""

    def __repr__(self) -> str:
        top = ", ".join(f"{name} {value:+.3g}" for name, value in self.ordered()[:SHOWN])
        rest = len(self.names) - SHOWN
        more = f", .. ({rest} more)" if rest > 0 else ""
        return f"Explanation({self.model.ranker}, {self.kind}: {top}{more})"

    def ordered(self) -> list[tuple[str, float]]:
        """The weightiest first."""
        order = np.argsort(-np.abs(self.values), kind="stable")
        return [(self.names[i], float(self.values[i])) for i in order.tolist()]

    def to_dict(self) -> JsonObject:
        record = {k: v for k, v in self.model.training.items() if k != "curve"}
        return {
            "ranker": self.model.ranker,
            "parameters": self.model.parameters,
            "kind": self.kind,
            "features": [{"name": n, "value": v, **self._steps(n)} for n, v in self.ordered()],
            "training": record,
        }

    def _steps(self, name: str) -> dict[str, list[float]]:
        if name not in self.steps:
            return {}
        thresholds, levels = self.steps[name]
        return {"thresholds": thresholds.tolist(), "levels": levels.tolist()}


def explain(path: str | os.PathLike[str] | Model) -> Explanation:
    """Weights of a linear model; of a network, how strongly a feature reaches the score; of trees,
    the loss that splits on it took away; of stumps, how far a feature can move the score; of a
    cascade, what its votes weigh."""
    model = path if isinstance(path, Model) else read_model(path)
    importances = model.scoring.explain()
    features = model.feature_names or tuple(str(i + 1) for i in range(model.n_features))
    steps = {features[number]: function for number, function in importances.steps.items()}
    names = importances.names or features
    return Explanation(model, importances.kind, names, importances.values, steps)
