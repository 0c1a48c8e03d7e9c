"""Model files: JSON, never pickle.  A file says what it holds and how it came to be."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol

import numpy as np

from firstpage.data.columns import match_columns
from firstpage.data.dataset import Dataset
from firstpage.data.io.json_files import JsonFormat, json_digest, write_json
from firstpage.data.preferences.utility import MEASURE_FORMAT as MEASURE
from firstpage.data.preferences.utility import Utility
from firstpage.data.shards.shards import Shards
from firstpage.data.transforms import MinMax, Standardize, transform_from_dict
from firstpage.engine.addresses import working
from firstpage.errors import DataError
from firstpage.measures.measure import Measure
from firstpage.measures.sharded import predicted_shards
from firstpage.rankers.scorings import Stage, scoring_from_dict
from firstpage.scorers.scorer import JsonObject, Scoring
from firstpage.types import Floats

FILE = JsonFormat("firstpage-model", 1, "model")
HELD: dict[str, type | tuple[type, ...]] = {  # what a file holds, and of which type
    "ranker": str, "parameters": dict, "features": dict, "normalize": (dict, type(None)),
    "scorer": dict, "training": dict,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds: enough to score, without scikit-learn.

    `load` turns it into the estimator that it came from.
    """

    ranker: str
    parameters: JsonObject
    scoring: Scoring
    transform: MinMax | Standardize | None
    feature_names: tuple[str, ...] | None
    training: JsonObject
    source: str = "model"

    @property
    def n_features(self) -> int:
        return self.scoring.n_features

    def __repr__(self) -> str:
        return f"Model({self.source}: {self.ranker}, {self.n_features} features)"

    def stage_for(self, data: Dataset | Shards, pad: bool = False) -> Stage:
        """Return what scores these data, or parts of them; data of other features are refused."""
        columns = match_columns(data, self.feature_names, self.n_features, self.source, pad)
        return Stage(self.ranker, self.scoring, self.transform, columns)

    def predict(self, data: Dataset | Shards, engine: Any = None, pad: bool = False) -> Floats:
        """One score per document; shards are scored where `engine` says.

        Columns are matched by `match_columns`; `pad` takes missing last features for 0.
        """
        stage = self.stage_for(data, pad)
        if isinstance(data, Shards):
            with working(engine) as place:
                return predicted_shards(stage, data, place)
        return stage.predict(data)

    def to_dict(self) -> JsonObject:
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
        return FILE.with_header(held)


class FittedRanker(Protocol):
    """What a model file takes of an estimator."""

    model_: Scoring
    training_: JsonObject

    def get_params(self, deep: bool = True) -> JsonObject: ...


def model_of(ranker: FittedRanker) -> Model:
    """A fitted estimator as a model."""
    names = getattr(ranker, "feature_names_in_", None)
    parameters = {
        name: plain_parameter(value) for name, value in ranker.get_params(deep=False).items()
    }
    return Model(
        type(ranker).__name__,
        parameters,
        ranker.model_,
        getattr(ranker, "transform_", None),
        None if names is None else tuple(str(n) for n in names),
        ranker.training_,
    )


def plain_parameter(value: Any) -> Any:
    """A parameter as JSON holds it; parts such as solvers as the text that names them."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Utility):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain_parameter(one) for one in value]
    if type(value).__name__ == "FrozenEstimator":  # by name: scikit-learn is not loaded for this
        value = value.estimator
    if not is_dataclass(value) or isinstance(value, Measure) or hasattr(value, "get_params"):
        return str(value)
    inside = ", ".join(f"{f.name}={getattr(value, f.name)!r}" for f in fields(value) if f.init)
    return f"{type(value).__name__}({inside})"


def restored(value: Any, name: str) -> Any:
    """What `_plain` made of a utility, as one again; everything else as it is."""
    if not isinstance(value, dict) or value.get("format") != MEASURE.format:
        return value
    try:
        return Utility.from_dict(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{name}: damaged: a parameter is no utility ({error}).") from None


def save(ranker: FittedRanker, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, in one step: a killed process leaves the old file or the new."""
    write_json(model_of(ranker).to_dict(), path)


def read_model(path: str | os.PathLike[str]) -> Model:
    """The model of a file; a newer, foreign or damaged one is refused."""
    name, held = os.fspath(path), FILE.read(path)
    for part, kind in HELD.items():
        if part not in held or not isinstance(held[part], kind):
            raise DataError(f"{name}: damaged: {part!r} is missing or of a wrong type.")
    if json_digest({part: held[part] for part in HELD}) != held.get("sha256"):
        raise DataError(f"{name}: damaged: its contents do not match its checksum.")
    try:
        return _model(held, name)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        said = str(error) if isinstance(error, DataError) else f"{error!r} is missing or wrong"
        raise DataError(f"{name}: damaged: {said}.".replace("..", ".")) from None


def _model(held: JsonObject, name: str) -> Model:
    """The contents of a file, checked against each other."""
    features, scoring = held["features"], scoring_from_dict(held["scorer"])
    names = features["names"]
    if scoring.n_features != features["count"]:
        raise DataError("the number of weights is not the number of features")
    if names is not None and (
        len(names) != features["count"] or not all(isinstance(n, str) for n in names)
    ):
        raise DataError("the names of the features are not one text a feature")
    transform = None if held["normalize"] is None else transform_from_dict(held["normalize"])
    kept = None if names is None else tuple(names)
    return Model(
        held["ranker"], held["parameters"], scoring, transform, kept, held["training"], name
    )
