"""`fp.explain`: the importance of each feature of a model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from firstpage.core import Floats
from firstpage.learning.models.model_files import LONG_RECORDS, FittedRanker, Model, as_model
from firstpage.learning.scorers.scoring_base import JsonObject

REPR_FEATURES = 5  # shown in the repr


@dataclass(frozen=True, eq=False)
class Explanation:
    """One number per feature of a model.

    Attributes
    ----------
    model : Model
        The model.
    kind : str
        What the numbers are, such as "weight".
    names : tuple of str
        The features, or the voters of a cascade.
    values : ndarray
        One number per name.
    steps : dict
        Thresholds and levels of the features that a model reads as step functions.

    Examples
    --------
    >>> import tempfile
    >>> import firstpage as fp
    >>> ranker = fp.Regression().fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranker.save(f"{folder}/model.json")
    ...     explanation = fp.explain(f"{folder}/model.json")
    >>> [(name, round(value, 3)) for name, value in explanation.ordered()]
    [('1', 1.0)]
    """

    model: Model
    kind: str
    names: tuple[str, ...]
    values: Floats
    steps: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)
    """Thresholds, and the levels between them from the lowest, by feature."""

    def __repr__(self) -> str:
        top = ", ".join(f"{name} {value:+.3g}" for name, value in self.ordered()[:REPR_FEATURES])
        rest = len(self.names) - REPR_FEATURES
        more = f", .. ({rest} more)" if rest > 0 else ""
        return f"Explanation({self.model.ranker}, {self.kind}: {top}{more})"

    def ordered(self) -> list[tuple[str, float]]:
        """Return the names and values, by decreasing absolute value.

        Returns
        -------
        list of (str, float)
            The features with their values.
        """
        order = np.argsort(-np.abs(self.values), kind="stable")
        return [(self.names[i], float(self.values[i])) for i in order.tolist()]

    def to_dict(self) -> JsonObject:
        """Return the explanation, the parameters and the training record as JSON.

        Returns
        -------
        dict
            The keys "ranker", "parameters", "kind", "features" and "training".
        """
        record = {k: v for k, v in self.model.training.items() if k not in LONG_RECORDS}
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


def explain(model: str | os.PathLike[str] | Model | FittedRanker) -> Explanation:
    """Return the importance of each feature of a model.

    The numbers are the weights of a linear model; the strength of the paths from a feature to the
    score of a network; the reduction of the loss by the splits of trees; the range by which a
    feature can change the score of stumps; and the weights of the votes of a cascade.

    Parameters
    ----------
    model : Ranker, path or Model
        A fitted ranker, a model file, or a model that was read.

    Returns
    -------
    Explanation
        One number per feature.

    Raises
    ------
    DataError
        If the file is missing or damaged.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.Regression().fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
    >>> fp.explain(ranker).names
    ('1',)
    """
    model = as_model(model)
    importances = model.scoring.explain()
    features = model.feature_names or tuple(str(i + 1) for i in range(model.n_features))
    steps = {features[number]: function for number, function in importances.steps.items()}
    names = importances.names or features
    return Explanation(model, importances.kind, names, importances.values, steps)
