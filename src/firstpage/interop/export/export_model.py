"""A model as targets see it, and what each of them can take of it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from firstpage.data.io.files import read_all
from firstpage.data.transforms import MinMax, Standardize
from firstpage.errors import DataError, location
from firstpage.interop.export.float32 import forest32, unscaled
from firstpage.rankers.model_files import Model
from firstpage.scorers.forest import DEEPEST, Forest
from firstpage.scorers.scorer import JsonObject, Network, Scoring
from firstpage.types import Floats, Ints

CONSTANT = "constant"
FeatureSource = str | os.PathLike[str] | Sequence[object] | None


@dataclass(frozen=True)
class ExportFeatures:
    """One different name a column; `known` holds definitions that the user gave, by name."""

    names: tuple[str, ...]
    known: dict[str, JsonObject] = field(default_factory=dict)

    def constant(self) -> str:
        """A name that no feature has, for one that is always 1."""
        name = CONSTANT
        while name in self.names:
            name += "_"
        return name


def export_features(
    given: FeatureSource, own: tuple[str, ...] | None, count: int
) -> ExportFeatures:
    """From a file or a list, else from the model, else feature_1 .. as LETOR files count."""
    if given is None:
        names = own or tuple(f"feature_{i + 1}" for i in range(count))
        return _checked(names, {}, count, "the model")
    if isinstance(given, (str, os.PathLike)):
        source = os.fspath(given)
        found = _of_items(_read(source), count, source)
    else:
        source = "features"
        found = _of_items(given, count, source)
    return found if own is None else _in_order(found, own, source)


def _in_order(found: ExportFeatures, own: tuple[str, ...], source: str) -> ExportFeatures:
    """The names of the model in any order mean its columns; a name of it in the place of another
    is a mistake, that would give a weight to the wrong feature."""
    if set(found.names) == set(own):
        return ExportFeatures(own, found.known)
    places = {name: i for i, name in enumerate(own, 1)}
    for place, name in enumerate(found.names, 1):
        if places.get(name, place) != place:
            raise DataError(
                f"{source}: {name!r} stands at {place}, and is feature {places[name]} of the "
                "model; keep its order, or give all of its names."
            )
    return found


def _read(source: str) -> object:
    try:
        text = read_all(Path(source)).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: is no UTF-8 text (byte {error.start}).") from None
    if not source.lower().endswith(".json"):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise DataError(f"{location(source, line)}: no JSON ({error}).") from None
    return parsed


def _of_items(given: object, count: int, source: str) -> ExportFeatures:
    """Names, or definitions as Solr's feature stores and Elasticsearch's feature sets have them."""
    if isinstance(given, dict):
        inner = given.get("featureset", given)
        given = inner.get("features") if isinstance(inner, dict) else None
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Set, dict)):
        raise DataError(f"{source}: must be a list of names, or of features that have a 'name'.")
    items = list(given)
    if len(items) == count + 1 and _is_constant(items[-1]):
        items.pop()  # which an export added
    names, known = [], {}
    for item in items:
        if isinstance(item, dict):
            if not isinstance(item.get("name"), str):
                raise DataError(f"{source}: a feature has no 'name': {str(item)[:80]}.")
            _writable(item, source)
            known[item["name"]] = item
            names.append(item["name"])
        elif isinstance(item, (str, int, float, np.generic)) and not isinstance(item, bool):
            names.append(str(item))
        else:
            raise DataError(f"{source}: a name must be a text; got {item!r}.")
    return _checked(tuple(names), known, count, source)


def _writable(item: JsonObject, source: str) -> None:
    """Refuse what JSON has no form for, such as NaN."""
    try:
        json.dumps(item, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{source}: the feature {item['name']!r} cannot be written as JSON ({error})."
        ) from None


def _is_constant(item: object) -> bool:
    if not isinstance(item, dict) or not str(item.get("name")).startswith(CONSTANT):
        return False
    return item.get("params") == {"value": 1} or item.get("template") == {
        "match_all": {"boost": 1.0}
    }


def _checked(
    names: tuple[str, ...], known: dict[str, JsonObject], count: int, source: str
) -> ExportFeatures:
    if len(names) != count:
        raise DataError(f"{source}: {len(names)} names for the {count} features of the model.")
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None or not all(name.strip() for name in names):
        what = "one is blank" if twice is None else f"{twice!r} is there twice"
        raise DataError(f"{source}: features need different names, none of them blank; {what}.")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{source}: the name {name!r} is no valid text.") from None
    return ExportFeatures(names, known)


CLOSE = 1e-6  # by which sums of leaves may differ from what a model predicts


@dataclass(frozen=True, eq=False)
class ExportModel:
    """What is exported, and under which name.

    dtype   of the input of programs that take either: float32 or float64
    """

    name: str
    features: ExportFeatures
    scoring: Scoring
    transform: MinMax | Standardize | None
    ranker: str
    source: str
    dtype: str = "float32"

    @property
    def kind(self) -> str:
        """What the model is: "linear", "network" or "trees"."""
        return self.scoring.export_kinds[0]

    def check(self) -> None:
        """Refuse numbers that no program could score with."""
        if not self.features.names:
            raise DataError(f"{self.source} has no features.")
        coefficients, network = self.scoring.coefficients, self.scoring.network
        if coefficients is not None and not all(np.isfinite(c).all() for c in coefficients):
            raise DataError(f"{self.source}: a weight is infinite.")
        if network is not None and not np.isfinite(network.c):
            raise DataError(f"{self.source}: its output is infinite.")
        if self.transform is not None and self.transform.per == "global":
            self.scaling()

    def coefficients(self) -> tuple[Floats, float]:
        """Of features as the model sees them."""
        found = self.scoring.coefficients
        assert found is not None, f"{self.kind} has no coefficients"
        return found

    def network(self) -> Network:
        found = self.scoring.network
        assert found is not None, f"{self.kind} has no layers"
        return found

    def weights(self) -> tuple[Floats, float]:
        """Of features as they come, scaling over all documents folded in."""
        weights, intercept = self.coefficients()
        constant = float(intercept)
        if self.transform is not None:
            shift, scale = self.scaling()
            with np.errstate(over="ignore", invalid="ignore"):
                weights = weights / scale
                constant = float(intercept - np.dot(weights, shift))
        if not np.isfinite(weights).all() or not np.isfinite(constant):
            raise DataError(f"{self.source}: a weight is infinite once scaling is folded in.")
        return weights, constant

    def own_forest(self) -> Forest:
        """Trees over features as the model sees them, checked against what it predicts."""
        found = self.scoring.forest(self.source)
        deepest = max(tree.depth() for tree in found.trees)
        if deepest > DEEPEST:
            raise DataError(
                f"{self.source} has a tree of {deepest} splits one below the other, and at most "
                f"{DEEPEST} can be written; grow shallower ones: "
                "scorer='trees(options={\"max_depth\": 12})'."
            )
        _check_scores(found, self.scoring, self.source)
        return found

    def forest(self) -> Forest:
        """Trees over features as they come; they split float64 numbers as the model does.  With
        scaling folded in, float32 numbers."""
        found = self.own_forest()
        if self.transform is None:
            return found
        shift, scale = self.scaling()

        def change(feature: Ints, threshold: Floats) -> Floats:
            return unscaled(threshold, shift[feature], scale[feature]).astype(np.float64)

        return found.with_thresholds(change)

    def forest32(self) -> Forest:
        """Trees over features as they come, for programs that compute in float32."""
        return forest32(self.forest(), self.source)

    def scaling(self) -> tuple[Floats, Floats]:
        """(shift, scale) of features that are scaled by numbers of all documents."""
        assert self.transform is not None
        shift, scale = self.transform.shift, self.transform.scale
        if (
            shift is None
            or scale is None
            or not len(shift) == len(scale) == len(self.features.names)
        ):
            raise DataError(f"{self.source}: its scaling of features is not known for all of them.")
        if not (np.isfinite(shift) & np.isfinite(scale) & (scale > 0)).all():
            raise DataError(
                f"{self.source}: its scaling of features is not finite for all of them."
            )
        return shift, scale


def _check_scores(forest: Forest, scoring: Scoring, source: str) -> None:
    """Against the model itself, at thresholds and between: options may mean what we do not read."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 3, (200, scoring.n_features)).astype(np.float32)
    for feature in forest.used():
        known = forest.thresholds(feature)
        known = known[np.abs(known) < 3e38].astype(np.float32)
        if len(known):
            rows = rng.random(len(X)) < 0.7
            X[rows, feature] = rng.choice(known, int(rows.sum()))
    wrong = np.abs(forest.scores(X) - scoring.predict(X)) > CLOSE * (forest.sizes(X) + 1e-300)
    if wrong.any():
        raise DataError(
            f"{source}: its trees were grown with options that cannot be exported (scores differ); "
            "grow them with options of thresholds and leaves alone."
        )


@dataclass(frozen=True)
class ExportFiles:
    """What a target makes: the model's file first; and how to bring them to the engine.

    fixed   files name each other, so that none may be called otherwise
    """

    model: str
    contents: dict[str, bytes]
    how: str
    fixed: bool = False


def cascade_part(
    model: Model, part: str | None
) -> tuple[Scoring, MinMax | Standardize | None, str]:
    """(scoring, transform, ranker) of a model, or of a part of a cascade."""
    stages = model.scoring.stages
    if not stages:
        if part is not None:
            raise DataError(f"{model.source} has no parts; leave out part={part!r}.")
        return model.scoring, model.transform, model.ranker
    if part is None:
        names = list(stages)
        raise DataError(
            f"{model.source} is a {model.ranker}: several models vote on the order, which no "
            f"engine can; export one of them: part={names[0]!r} (--part {names[0]}), or "
            f"{names[1]!r} .. {names[-1]!r}."
        )
    if part not in stages:
        raise DataError(f"{model.source} has no part {part!r}; it has {', '.join(stages)}.")
    stage = stages[part]
    if stage.transform is not None and model.transform is not None:
        raise DataError(f"{model.source}: {part} scales what is already scaled; export it alone.")
    return stage.scoring, stage.transform or model.transform, stage.name
