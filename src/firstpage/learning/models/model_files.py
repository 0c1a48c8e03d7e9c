"""Model files: JSON, never pickle, with the parameters and the training record of the model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, qualified_name
from firstpage.core.engine import open_engine
from firstpage.data import Categories, Dataset, Transform, match_columns
from firstpage.data.io import JsonFormat, json_digest, write_json
from firstpage.data.preferences import MEASURE_FORMAT as MEASURE
from firstpage.data.preferences import Utility
from firstpage.data.shards import Shards
from firstpage.evaluation.measures import Measure, predict_shards
from firstpage.learning.losses.base import FunctionLoss
from firstpage.learning.models.scorings import Stage, scoring_from_dict, stored_transform
from firstpage.learning.scorers.scorer import Scoring
from firstpage.learning.scorers.scoring_base import Contributions, JsonObject

FILE = JsonFormat("firstpage-model", 1, "model")
LONG_RECORDS = ("curve", "distributions")  # of the training record
FIELDS: dict[str, type | tuple[type, ...]] = {  # of a model file, with their types
    "ranker": str, "parameters": dict, "features": dict, "normalize": (dict, type(None)),
    "scorer": dict, "training": dict,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Model:
    """The contents of a model file: enough to score.

    `firstpage.load` turns a file into a fitted ranker instead.

    Attributes
    ----------
    ranker : str
        The name of the ranker.
    parameters : dict
        Its parameters.
    scoring : Scoring
        The fitted scoring function.
    transform : MinMax, Standardize, Impute or None
        The scaling of the features.
    feature_names : tuple of str or None
        The names of the features, if known.
    training : dict
        The training record.
    source : str
        Where the model comes from, for messages.
    categories : mapping of int to tuple of str
        The categories of each column that holds categories.
    """

    ranker: str
    parameters: JsonObject
    scoring: Scoring
    transform: Transform | None
    feature_names: tuple[str, ...] | None
    training: JsonObject
    source: str = "model"
    categories: Categories = field(default_factory=dict)

    @property
    def reads_missing(self) -> bool:
        """Whether features may be missing (NaN)."""
        return Stage(self.ranker, self.scoring, self.transform).reads_missing

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.scoring.n_features

    def __repr__(self) -> str:
        return f"Model({self.source}: {self.ranker}, {self.n_features} features)"

    def description(self) -> dict[str, Any]:
        """Return what the model is: its ranker, parameters, features and training data."""
        data = self.training.get("data") or {}
        record = {name: data[name] for name in ("source", "queries", "documents") if name in data}
        fusion = self.training.get("fusion")
        return {
            "source": self.source,
            "kind": "model" if fusion is None else "fusion model",
            "ranker": self.ranker,
            "parameters": self.parameters,
            "features": self.n_features,
            **({} if fusion is None else {"systems": list(fusion["systems"])}),
            "trained_on": record,
        }

    def stage_for(self, data: Dataset | Shards, pad: bool = False) -> Stage:
        """Return the scorer of these data, with their columns matched to the model's features."""
        if "fusion" in self.training:
            raise DataError(
                f"{self.source}: is a model that fuses runs, and has no features of data; use "
                f"firstpage aggregate RUNS --model {self.source}."
            )
        columns = match_columns(
            data, self.feature_names, self.n_features, self.source, pad, self.categories
        )
        return Stage(self.source, self.scoring, self.transform, columns)

    def predict(self, data: Dataset | Shards, engine: Any = None, pad: bool = False) -> Floats:
        """Return one score per document; shards are scored by `engine`.

        Columns are matched by `match_columns`; with `pad`, missing last features are 0.
        """
        stage = self.stage_for(data, pad)
        if isinstance(data, Shards):
            with open_engine(engine) as shard_engine:
                return predict_shards(stage, data, shard_engine)
        return stage.predict(data)

    def scaled(self, X: Array, offsets: Ints) -> Array:
        """Return features as the scoring function expects them."""
        return X if self.transform is None else self.transform.transform(X, offsets)

    def contributions(
        self, X: Array, offsets: Ints, rows: Ints
    ) -> tuple[tuple[str, ...], Contributions]:
        """Return names and the contributions to the scores of some rows.

        All candidates of the queries are needed, since scaling may depend on them.
        """
        scaled, scoring = self.scaled(X, offsets), self.scoring
        if scoring.network is not None:
            of_rows = scoring.network.contributions(scaled, offsets, rows)
        elif scoring.by_query:
            of_all = scoring.contributions(scaled, offsets)
            of_rows = replace(of_all, values=of_all.values[rows])
        else:
            of_rows = scoring.contributions(np.ascontiguousarray(scaled[rows]))
        names = self.feature_names or tuple(str(i + 1) for i in range(self.n_features))
        return of_rows.names or names, of_rows

    def to_dict(self) -> JsonObject:
        """Return the contents of the model file, with format, version and checksum."""
        categories = {str(column): list(names) for column, names in self.categories.items()}
        contents = {
            "ranker": self.ranker,
            "parameters": self.parameters,
            "features": {
                "count": self.n_features,
                "names": None if self.feature_names is None else list(self.feature_names),
                **({"categories": categories} if categories else {}),
            },
            "normalize": None if self.transform is None else self.transform.to_dict(),
            "scorer": self.scoring.to_dict(),
            "training": self.training,
        }
        return FILE.with_header(contents)


class FittedRanker(Protocol):
    """The attributes of a fitted ranker that a model file stores."""

    model_: Scoring
    training_: JsonObject

    def get_params(self, deep: bool = True) -> JsonObject: ...


def model_of(ranker: FittedRanker) -> Model:
    """Return a fitted ranker as a model."""
    names = getattr(ranker, "feature_names_in_", None)
    parameters = {
        name: parameter_to_json(value) for name, value in ranker.get_params(deep=False).items()
    }
    return Model(
        qualified_name(type(ranker)),
        parameters,
        ranker.model_,
        getattr(ranker, "transform_", None),
        None if names is None else tuple(str(n) for n in names),
        ranker.training_,
        categories=getattr(ranker, "categories_", {}),
    )


def as_model(model: str | os.PathLike[str] | Model | FittedRanker) -> Model:
    """Return a model, the model of a file, or a fitted ranker as a model."""
    if isinstance(model, Model):
        return model
    return read_model(model) if isinstance(model, str | os.PathLike) else model_of(model)


def parameter_to_json(value: Any) -> Any:
    """Return a parameter as JSON; objects such as solvers as the text that names them."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Utility):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [parameter_to_json(item) for item in value]
    if isinstance(value, FunctionLoss):
        value = value.function
    if isinstance(value, FunctionType):
        return qualified_name(value)
    if type(value).__name__ == "FrozenEstimator":  # by name: scoring does not import scikit-learn
        value = value.estimator
    if not is_dataclass(value) or isinstance(value, Measure) or hasattr(value, "get_params"):
        return str(value)
    inside = ", ".join(f"{f.name}={getattr(value, f.name)!r}" for f in fields(value) if f.init)
    return f"{qualified_name(type(value))}({inside})"


def parse_parameter(value: Any, name: str) -> Any:
    """Return a parameter of a model file; a utility is read from its JSON form."""
    if not isinstance(value, dict) or value.get("format") != MEASURE.format:
        return value
    try:
        return Utility.from_dict(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{name}: damaged: a parameter is not a valid utility ({error}).") from None


def save(ranker: FittedRanker, path: str | os.PathLike[str]) -> None:
    """Write the model file of a fitted ranker; the file is replaced atomically."""
    write_json(model_of(ranker).to_dict(), path)


def read_model(path: str | os.PathLike[str]) -> Model:
    """Return the model of a file; raise DataError if it is newer, foreign or damaged."""
    name, contents = os.fspath(path), FILE.read(path)
    for key, kind in FIELDS.items():
        if key not in contents or not isinstance(contents[key], kind):
            raise DataError(f"{name}: damaged: {key!r} is missing or of a wrong type.")
    if json_digest({key: contents[key] for key in FIELDS}) != contents.get("sha256"):
        raise DataError(f"{name}: damaged: its contents do not match its checksum.")
    try:
        return _model(contents, name)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = str(error) if isinstance(error, DataError) else f"{error!r} is missing or wrong"
        raise DataError(f"{name}: damaged: {reason}.".replace("..", ".")) from None


def _model(contents: JsonObject, source: str) -> Model:
    """Return the model of a file's contents; raise DataError where they contradict each other."""
    features, scoring = contents["features"], scoring_from_dict(contents["scorer"])
    names = features["names"]
    if scoring.n_features != features["count"]:
        raise DataError("the number of weights is not the number of features")
    if names is not None and (
        len(names) != features["count"] or not all(isinstance(n, str) for n in names)
    ):
        raise DataError("the names of the features are not one string per feature")
    categories = {int(c): tuple(n) for c, n in features.get("categories", {}).items()}
    if not all(
        0 <= column < features["count"] and all(isinstance(n, str) for n in known)
        for column, known in categories.items()
    ):
        raise DataError("the categories of a feature are not strings")
    return Model(
        contents["ranker"],
        contents["parameters"],
        scoring,
        stored_transform(contents["normalize"], scoring.n_features),
        None if names is None else tuple(names),
        contents["training"],
        source,
        categories,
    )
