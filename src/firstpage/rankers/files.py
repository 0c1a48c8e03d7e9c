"""Model files: JSON, never pickle.  A file says what it holds and how it came to be."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.files import write_bytes
from firstpage.data.transforms import MinMax, Standardize, transform_from_dict
from firstpage.errors import DataError
from firstpage.scorers.base import Scoring
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.mlp import MLPScoring
from firstpage.scorers.trees import TreesScoring
from firstpage.types import Floats

FORMAT = "firstpage-model"
VERSION = 1
SCORINGS: dict[str, Any] = {"linear": LinearScoring, "mlp": MLPScoring, "trees": TreesScoring}


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds: enough to score, without scikit-learn.

    `load` turns it into the estimator that it came from.
    """

    ranker: str
    parameters: dict[str, Any]
    scoring: Scoring
    transform: MinMax | Standardize | None
    feature_names: tuple[str, ...] | None
    training: dict[str, Any]
    source: str = "model"

    @property
    def n_features(self) -> int:
        return self.scoring.n_features

    def predict(self, data: Dataset) -> Floats:
        """One score a document."""
        if data.n_features != self.n_features:
            raise DataError(
                f"{data.source} has {data.n_features} features, and {self.source} was trained on "
                f"{self.n_features}."
            )
        if self.feature_names and data.feature_names and data.feature_names != self.feature_names:
            lost = [name for name in self.feature_names if name not in data.feature_names]
            what = f"lacks {lost[0]!r}" if lost else "has them in another order"
            raise DataError(f"{data.source} must have the features of {self.source}; it {what}.")
        return self.scoring.predict((self.transform.apply(data) if self.transform else data).X)

    def to_dict(self) -> dict[str, Any]:
        held = {
            "ranker": self.ranker,
            "parameters": self.parameters,
            "features": {
                "count": self.n_features,
                "names": None if self.feature_names is None else list(self.feature_names),
            },
            "normalize": None if self.transform is None else self.transform.to_dict(),
            "scorer": self.scoring.to_dict(),
            "training": self.training,
        }
        return {"format": FORMAT, "version": VERSION, "sha256": _digest(held), **held}


def _digest(held: dict[str, Any]) -> str:
    """Of what decides the scores, so that a flipped digit is noticed."""
    kept = {name: held[name] for name in ("features", "normalize", "scorer")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def model_of(ranker: Any) -> Model:
    """A fitted estimator as a model."""
    names = getattr(ranker, "feature_names_in_", None)
    parameters = {name: _plain(value) for name, value in ranker.get_params(deep=False).items()}
    return Model(
        type(ranker).__name__,
        parameters,
        ranker.model_,
        getattr(ranker, "transform_", None),
        None if names is None else tuple(str(n) for n in names),
        ranker.training_,
    )


def _plain(value: Any) -> Any:
    """A parameter as JSON holds it; parts such as solvers as the text that names them."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    fields = getattr(value, "__dataclass_fields__", {})
    inside = ", ".join(f"{n}={getattr(value, n)!r}" for n, f in fields.items() if f.init)
    return f"{type(value).__name__}({inside})"


def save(ranker: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, in one step: a killed process leaves the old file or the new."""
    text = json.dumps(model_of(ranker).to_dict(), indent=1, allow_nan=False)
    with write_bytes(Path(path)) as out:
        out.write(text.encode() + b"\n")


def read_model(path: str | os.PathLike[str]) -> Model:
    """The model of a file; a newer, foreign or damaged one is refused."""
    name = os.fspath(path)
    try:
        held = json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise DataError(f"{name}: no such file.") from None
    except (ValueError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", 1)
        raise DataError(f"{name}:{line}: not a model file, or a damaged one ({error}).") from None
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise DataError(f"{name}: not a model of Firstpage (its format is not {FORMAT!r}).")
    if not isinstance(held.get("version"), int) or held["version"] > VERSION:
        raise DataError(
            f"{name}: written by a newer Firstpage (file version {held.get('version')!r}, this one "
            f"reads up to {VERSION}). Upgrade Firstpage to read it."
        )
    try:
        if _digest(held) != held["sha256"]:
            raise DataError(f"{name}: damaged: its contents do not match its checksum.")
        names = held["features"]["names"]
        stored = held["scorer"]
        return Model(
            held["ranker"],
            held["parameters"],
            SCORINGS[stored["kind"]].from_dict(stored),
            None if held["normalize"] is None else transform_from_dict(held["normalize"]),
            None if names is None else tuple(names),
            held["training"],
            name,
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name}: damaged: {error!r} is missing or wrong.") from None


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator of a model file."""
    from firstpage.rankers.names import ranker

    model = read_model(path)
    found: Any = ranker(model.ranker, **model.parameters)
    found.model_ = model.scoring
    found.params_ = None
    found.training_ = model.training
    found.n_features_in_ = model.n_features
    found.n_iter_ = model.training.get("iterations")
    found.best_score_ = model.training.get("score")
    if model.feature_names is not None:
        found.feature_names_in_ = np.array(model.feature_names, object)
    if model.transform is not None:
        found.transform_ = model.transform
    if model.scoring.coefficients is not None:
        found.coef_, found.intercept_ = model.scoring.coefficients
        found.params_ = found.coef_
    return found
