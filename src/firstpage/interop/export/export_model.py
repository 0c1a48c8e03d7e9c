"""The model that is exported, as targets see it: names, weights, trees, scaling."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from firstpage.core import Advice, DataError, Floats, Ints, location
from firstpage.data import Categories, Transform
from firstpage.data.io import read_all
from firstpage.interop.export.float32 import forest32, unscaled
from firstpage.learning.models import Model, check_probes
from firstpage.learning.scorers import MAX_TREE_DEPTH, Forest, JsonObject, NetworkScoring, Scoring

CONSTANT = "constant"  # the name of a feature that is always 1
FeatureSource = str | os.PathLike[str] | Sequence[object] | None


@dataclass(frozen=True)
class ExportFeatures:
    """The names of the features, all different, and definitions of the user by name (`known`)."""

    names: tuple[str, ...]
    known: dict[str, JsonObject] = field(default_factory=dict)

    def constant(self) -> str:
        """Return a name that no feature has, for a feature that is always 1."""
        name = CONSTANT
        while name in self.names:
            name += "_"
        return name


def export_features(
    features: FeatureSource, model_names: tuple[str, ...] | None, count: int
) -> ExportFeatures:
    """Return the features of a file or a list, else of the model, else feature_1, feature_2, .."""
    if features is None:
        names = model_names or tuple(f"feature_{i + 1}" for i in range(count))
        return _checked(names, {}, count, "the model")
    if isinstance(features, (str, os.PathLike)):
        source = os.fspath(features)
        parsed = _from_items(_read(source), count, source)
    else:
        source = "features"
        parsed = _from_items(features, count, source)
    return parsed if model_names is None else _in_model_order(parsed, model_names, source)


def _in_model_order(
    features: ExportFeatures, model_names: tuple[str, ...], source: str
) -> ExportFeatures:
    """Return the features in the order of the model.

    All names of the model may come in any order.  Otherwise a name of the model at a wrong position
    is an error, because a weight would go to the wrong feature.
    """
    if set(features.names) == set(model_names):
        return ExportFeatures(model_names, features.known)
    positions = {name: i for i, name in enumerate(model_names, 1)}
    for position, name in enumerate(features.names, 1):
        if positions.get(name, position) != position:
            raise DataError(
                f"{source}: {name!r} is at position {position}, and is feature {positions[name]} "
                "of the model; keep its order, or give all of its names."
            )
    return features


def _read(source: str) -> object:
    """Return the contents of a .json file, or the lines of any other."""
    try:
        text = read_all(Path(source)).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: is not UTF-8 text (byte {error.start}).") from None
    if not source.lower().endswith(".json"):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise DataError(f"{location(source, line)}: not valid JSON ({error}).") from None
    return parsed


def _from_items(features: object, count: int, source: str) -> ExportFeatures:
    """Return features from names, or from definitions of Solr or Elasticsearch."""
    if isinstance(features, dict):
        inner = features.get("featureset", features)
        features = inner.get("features") if isinstance(inner, dict) else None
    if not isinstance(features, Iterable) or isinstance(features, (str, bytes, Set, dict)):
        raise DataError(f"{source}: must be a list of names, or of features that have a 'name'.")
    items = list(features)
    if len(items) == count + 1 and is_constant(items[-1]):
        items.pop()  # added by an earlier export
    names, known = [], {}
    for item in items:
        if isinstance(item, dict):
            if not isinstance(item.get("name"), str):
                raise DataError(f"{source}: a feature has no 'name': {str(item)[:80]}.")
            _check_json(item, source)
            known[item["name"]] = item
            names.append(item["name"])
        elif isinstance(item, (str, int, float, np.generic)) and not isinstance(item, bool):
            names.append(str(item))
        else:
            raise DataError(f"{source}: a name must be a string; got {item!r}.")
    return _checked(tuple(names), known, count, source)


def _check_json(item: JsonObject, source: str) -> None:
    """Raise an error for values that JSON cannot represent, such as NaN."""
    try:
        json.dumps(item, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{source}: the feature {item['name']!r} cannot be written as JSON ({error})."
        ) from None


def is_constant(item: object) -> bool:
    """Return whether a definition is the constant feature of an earlier export."""
    if not isinstance(item, dict) or not str(item.get("name")).startswith(CONSTANT):
        return False
    return item.get("params") == {"value": 1} or item.get("template") == {
        "match_all": {"boost": 1.0}
    }


def _checked(
    names: tuple[str, ...], known: dict[str, JsonObject], count: int, source: str
) -> ExportFeatures:
    """Return the features; raise an error unless there are `count` valid, different names."""
    if len(names) != count:
        raise DataError(f"{source}: {len(names)} names for the {count} features of the model.")
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None or not all(name.strip() for name in names):
        problem = "one is blank" if twice is None else f"{twice!r} occurs twice"
        raise DataError(f"{source}: features need different names that are not blank; {problem}.")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{source}: the name {name!r} is not valid Unicode text.") from None
    return ExportFeatures(names, known)


TOLERANCE = 1e-6  # relative difference of sums of leaves and predictions


@dataclass(frozen=True, eq=False)
class ExportModel:
    """A model to export.

    Attributes
    ----------
    name : str
        The name of the model in the target.
    features : ExportFeatures
        The features.
    scoring : Scoring
        The scoring function.
    transform : MinMax, Standardize, Impute or None
        The scaling of the features.
    ranker : str
        The name of the ranker.
    source : str
        Where the model comes from, for messages.
    dtype : {"float32", "float64"}
        The type of the input, where the target lets it be chosen.
    categories : mapping of int to tuple of str
        The categories of each column that holds categories; the target gets their indices.
    trained_on_missing : bool
        Whether the training data had missing values.
    """

    name: str
    features: ExportFeatures
    scoring: Scoring
    transform: Transform | None
    ranker: str
    source: str
    dtype: str = "float32"
    categories: Categories = field(default_factory=dict)
    trained_on_missing: bool = False

    @property
    def accepts_missing(self) -> bool:
        """Whether the model scores documents with missing values."""
        return self.scoring.reads_missing or self.fill is not None

    @property
    def needs_missing(self) -> bool:
        """Whether a missing value must not be replaced by 0."""
        if self.fill is not None:
            return bool(self.fill.any())
        return self.trained_on_missing and self.scoring.reads_missing

    @property
    def fill(self) -> Floats | None:
        """The values that replace missing ones before scaling."""
        return None if self.transform is None else self.transform.fill

    @property
    def kind(self) -> str:
        """The kind of the model: "linear", "network", "listwise network" or "trees"."""
        return self.scoring.export_kinds[0]

    def check(self) -> None:
        """Raise an error for a model without features, or with numbers or scores not finite."""
        if not self.features.names:
            raise DataError(f"{self.source} has no features.")
        network = self.scoring.network
        weights = [
            *(self.scoring.coefficients or ()),
            *([] if network is None else [network.values]),
        ]
        if not all(np.isfinite(each).all() for each in weights):
            raise DataError(f"{self.source}: a weight is infinite.")
        if self.transform is not None and self.transform.per == "global":
            self.scaling()
        check_probes(self.scoring, self.transform, self.source, self.categories)

    def coefficients(self) -> tuple[Floats, float]:
        """Return weights and intercept for scaled features."""
        coefficients = self.scoring.coefficients
        assert coefficients is not None, f"{self.kind} has no coefficients"
        return coefficients

    def network(self) -> NetworkScoring:
        """Return a fitted network."""
        network = self.scoring.network
        assert network is not None, f"{self.kind} has no layers"
        return network

    def weights(self) -> tuple[Floats, float]:
        """Return weights and intercept for unscaled features, with global scaling included."""
        weights, intercept = self.coefficients()
        constant = float(intercept)
        if self.transform is not None:
            shift, scale = self.scaling()
            with np.errstate(over="ignore", invalid="ignore"):
                weights = weights / scale
                constant = float(intercept - np.dot(weights, shift))
        if not np.isfinite(weights).all() or not np.isfinite(constant):
            raise DataError(f"{self.source}: a weight is infinite with the scaling included.")
        return weights, constant

    def own_forest(self) -> Forest:
        """Return the trees for scaled features, checked against the predictions of the model."""
        forest = self.scoring.forest(self.source)
        depth = max(tree.depth() for tree in forest.trees)
        if depth > MAX_TREE_DEPTH:
            raise DataError(
                f"{self.source} has a tree of depth {depth}, and at most {MAX_TREE_DEPTH} can be "
                "written; grow shallower trees: scorer='trees(options={\"max_depth\": 12})'."
            )
        _check_scores(forest, self.scoring, self.source)
        return forest

    def forest(self) -> Forest:
        """Return the trees for unscaled features.

        They split float64 numbers as the model does; with scaling included, float32 numbers.
        """
        forest = self.own_forest()
        if self.transform is None:
            return forest
        shift, scale = self.scaling()

        def unscale(feature: Ints, threshold: Floats) -> Floats:
            return unscaled(threshold, shift[feature], scale[feature]).astype(np.float64)

        return forest.with_thresholds(unscale)

    def forest32(self) -> Forest:
        """Return the trees for unscaled features, for programs that compute in float32."""
        return forest32(self.forest(), self.source)

    def scaling(self) -> tuple[Floats, Floats]:
        """Return (shift, scale) of global scaling."""
        assert self.transform is not None
        shift, scale = self.transform.shift, self.transform.scale
        count = len(self.features.names)
        if shift is None or scale is None or not len(shift) == len(scale) == count:
            raise DataError(f"{self.source}: its scaling is not known for all features.")
        if not (np.isfinite(shift) & np.isfinite(scale) & (scale > 0)).all():
            raise DataError(f"{self.source}: its scaling is not finite for all features.")
        return shift, scale


def _check_scores(forest: Forest, scoring: Scoring, source: str) -> None:
    """Compare trees with the model at and between thresholds: some options are not exported."""
    rng = np.random.default_rng(0)
    X = forest.probes(200, scoring.n_features, rng).astype(np.float32)
    if scoring.reads_missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    scores, magnitudes = forest.scores_and_magnitudes(X)
    wrong = np.abs(scores - scoring.predict(X)) > TOLERANCE * (magnitudes + 1e-300)
    if wrong.any():
        raise DataError(
            f"{source}: its trees were grown with options that cannot be exported (scores differ); "
            "grow them with options that affect only thresholds and leaves."
        )


@dataclass(frozen=True)
class ExportFiles:
    """The files of a target: the model's name, the contents by name, and how to use them.

    `fixed` says whether the files refer to each other, so that they must keep their names.
    """

    model: str
    contents: dict[str, bytes]
    usage: str
    fixed: bool = False


def usage(target: str, name: str = "") -> str:
    """Return what the README of an export says about using its files, with the model's name."""
    text = (Path(__file__).parent / "usage" / f"{target}.md").read_text("utf-8")
    return text.rstrip("\n").replace("NAME", name)


def json_bytes(value: object) -> bytes:
    """Return the contents of a JSON file."""
    return json.dumps(value, indent=1, allow_nan=False).encode() + b"\n"


def select_stage(model: Model, stage: str | None) -> tuple[Scoring, Transform | None, str]:
    """Return scoring, transform and ranker of a model, or of a stage of a cascade."""
    stages = model.scoring.stages
    if not stages:
        if stage is not None:
            raise DataError(f"{model.source} has no stages; leave out stage={stage!r}.")
        return model.scoring, model.transform, model.ranker
    if stage is None:
        names = list(stages)
        raise DataError(
            f"{model.source} is a {model.ranker}: several models vote on the order, which no "
            f"engine supports; export one of them: {names[0]!r}, {names[1]!r} .. {names[-1]!r}.",
            Advice("The first is exported with {}.", "stage", names[0]),
        )
    if stage not in stages:
        raise DataError(f"{model.source} has no stage {stage!r}; it has {', '.join(stages)}.")
    selected = stages[stage]
    if selected.transform is not None and model.transform is not None:
        raise DataError(f"{model.source}: {stage} scales what is already scaled; export it alone.")
    return selected.scoring, selected.transform or model.transform, selected.name
