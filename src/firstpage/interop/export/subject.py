"""A model as targets see it, and what each of them can take of it."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.io.files import read_all
from firstpage.data.transforms import MinMax, Standardize
from firstpage.errors import DataError, FirstpageWarning, at
from firstpage.interop.export.forest import MOST, Forest, Tree, floor32, unscaled
from firstpage.interop.export.grown import forest_of
from firstpage.rankers.cascade import Cascade
from firstpage.rankers.model_files import Model
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.mlp import MLPScoring
from firstpage.types import Floats, Ints

CONSTANT = "constant"
Given = str | os.PathLike[str] | Sequence[Any] | None


@dataclass(frozen=True)
class Features:
    """One different name a column; `known` holds definitions that the user gave, by name."""

    names: tuple[str, ...]
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def constant(self) -> str:
        """A name that no feature has, for one that is always 1."""
        name = CONSTANT
        while name in self.names:
            name += "_"
        return name


def features_of(given: Given, own: tuple[str, ...] | None, count: int) -> Features:
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


def _in_order(found: Features, own: tuple[str, ...], source: str) -> Features:
    """The names of the model in any order mean its columns; a name of it in the place of another
    is a mistake, that would give a weight to the wrong feature."""
    if set(found.names) == set(own):
        return Features(own, found.known)
    places = {name: i for i, name in enumerate(own, 1)}
    for place, name in enumerate(found.names, 1):
        if places.get(name, place) != place:
            raise DataError(
                f"{source}: {name!r} stands at {place}, and is feature {places[name]} of the "
                "model; keep its order, or give all of its names."
            )
    return found


def _read(source: str) -> Any:
    try:
        text = read_all(Path(source)).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: is no UTF-8 text (byte {error.start}).") from None
    if not source.lower().endswith(".json"):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{at(source, getattr(error, 'lineno', 1))}: no JSON ({error}).") from None


def _of_items(given: Any, count: int, source: str) -> Features:
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


def _writable(item: dict[str, Any], source: str) -> None:
    """Refuse what JSON has no form for, such as NaN."""
    try:
        json.dumps(item, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{source}: the feature {item['name']!r} cannot be written as JSON ({error})."
        ) from None


def _is_constant(item: Any) -> bool:
    if not isinstance(item, dict) or not str(item.get("name")).startswith(CONSTANT):
        return False
    return item.get("params") == {"value": 1} or item.get("template") == {
        "match_all": {"boost": 1.0}
    }


def _checked(
    names: tuple[str, ...], known: dict[str, dict[str, Any]], count: int, source: str
) -> Features:
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
    return Features(names, known)


LEAST = 1e-30  # numbers that are all nearer to zero lose digits in float32
MANY = 200  # trees, beyond which sums in float32 and in float64 are a millionth apart


@dataclass(frozen=True, eq=False)
class Subject:
    """What is exported, and under which name."""

    name: str
    features: Features
    scoring: Any
    transform: MinMax | Standardize | None
    ranker: str
    source: str

    @property
    def kind(self) -> str:
        if isinstance(self.scoring, LinearScoring):
            return "linear"
        return "network" if isinstance(self.scoring, MLPScoring) else "trees"

    def for_engine(self, engine: str, networks: bool = False) -> None:
        """Refuse what an engine that scores one document at a time cannot do."""
        by_query = self.transform is not None and self.transform.per == "query"
        if self.kind == "network" and not networks:
            other = "vespa-onnx" if engine == "Vespa" and not by_query else "onnx or numpy"
            raise DataError(
                f"{self.source} is a network, which {engine} cannot score; export it to {other}."
            )
        if by_query:
            raise DataError(
                f"{self.source} scales features query by query, and {engine} sees one document at "
                "a time; export to onnx or numpy, or train without normalize (or with "
                "normalize='global minmax' or 'global standard')."
            )

    def check(self) -> None:
        """Refuse numbers that no program could score with."""
        if not self.features.names:
            raise DataError(f"{self.source} has no features.")
        if self.kind == "linear":
            weights, intercept = self.scoring.coefficients
            if not np.isfinite(weights).all() or not np.isfinite(intercept):
                raise DataError(f"{self.source}: a weight is infinite.")
        if self.kind == "network" and not np.isfinite(self.scoring.c):
            raise DataError(f"{self.source}: its output is infinite.")
        if self.transform is not None and self.transform.per == "global":
            self._scaling()

    def weights(self) -> tuple[Floats, float]:
        """Of features as they come, scaling over all documents folded in."""
        weights, intercept = self.scoring.coefficients
        constant = float(intercept)
        if self.transform is not None:
            shift, scale = self._scaling()
            with np.errstate(over="ignore", invalid="ignore"):
                weights = weights / scale
                constant = float(intercept - np.dot(weights, shift))
        if not np.isfinite(weights).all() or not np.isfinite(constant):
            raise DataError(f"{self.source}: a weight is infinite once scaling is folded in.")
        return weights, constant

    def forest(self) -> Forest:
        """Trees over features as they come; they split float64 numbers as the model does.  With
        scaling folded in, float32 numbers."""
        found = forest_of(self.scoring, self.source)
        if self.transform is None:
            return found
        shift, scale = self._scaling()

        def change(feature: Ints, threshold: Floats) -> Floats:
            return unscaled(threshold, shift[feature], scale[feature]).astype(np.float64)

        return found.with_thresholds(change)

    def forest32(self) -> Forest:
        """Trees whose thresholds are float32 numbers and split those as the model does.

        The smallest come first where the model adds in float64: float32 sums lose least that way.
        """
        found = self.forest().with_thresholds(_single)
        single_leaves(found, self.source)
        note_sums(found, True)
        return found if found.single else replace(found, trees=_smallest_first(found.trees))

    def _scaling(self) -> tuple[Floats, Floats]:
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


@dataclass(frozen=True)
class Files:
    """What a target makes: the model's file first; and how to bring them to the engine.

    fixed   files name each other, so that none may be called otherwise
    """

    model: str
    contents: dict[str, bytes]
    how: str
    fixed: bool = False


def part_of(model: Model, part: str | None) -> tuple[Any, Any, str]:
    """(scoring, transform, ranker) of a model, or of a part of a cascade."""
    if not isinstance(model.scoring, Cascade):
        if part is not None:
            raise DataError(f"{model.source} has no parts; leave out part={part!r}.")
        return model.scoring, model.transform, model.ranker
    cascade = model.scoring
    stages = {"first": cascade.first}
    stages |= {f"voter {i}": voter for i, voter in enumerate(cascade.voters, 1)}
    if part is None:
        raise DataError(
            f"{model.source} is a {model.ranker}: several models vote on the order, which no "
            "engine can; export one of them: part='first' (--part first), or 'voter 1' .. "
            f"'voter {len(cascade.voters)}'."
        )
    if part not in stages:
        raise DataError(f"{model.source} has no part {part!r}; it has {', '.join(stages)}.")
    stage = stages[part]
    if stage.transform is not None and model.transform is not None:
        raise DataError(f"{model.source}: {part} scales what is already scaled; export it alone.")
    return stage.scoring, stage.transform or model.transform, stage.name


def single_weights(weights: Floats, source: str, engine: str) -> Floats:
    """Weights as float32 has them; refused where it cannot hold them."""
    with np.errstate(over="ignore"):
        found = weights.astype(np.float32)
    largest = float(np.abs(weights).max(initial=0.0))
    if not np.isfinite(found).all() or 0 < largest < LEAST:
        raise DataError(
            f"{source}: a weight of {largest:g} is beyond the float32 numbers of {engine}; scale "
            "the features before training, or export to onnx, numpy or vespa."
        )
    return found.astype(np.float64)


def _single(_: Ints, threshold: Floats) -> Floats:
    """As float32 numbers; what no number is above, as infinite."""
    return np.where(threshold >= MOST, np.inf, floor32(threshold).astype(np.float64))


def _smallest_first(trees: Sequence[Tree]) -> tuple[Tree, ...]:
    return tuple(sorted(trees, key=lambda t: float(np.abs(t.value[t.feature < 0]).mean())))


def note_sums(forest: Forest, single: bool) -> None:
    """Say where a target adds many trees up in another type than the model does."""
    if forest.single == single or len(forest.trees) <= MANY:
        return
    there, here = ("float32", "float64") if single else ("float64", "float32")
    warnings.warn(
        f"{len(forest.trees)} trees are added up in {there} there, and in {here} by predict: "
        "scores may be off by a millionth or two.",
        FirstpageWarning,
        stacklevel=5,
    )


def single_leaves(forest: Forest, source: str) -> None:
    """Refuse trees whose sums are no float32 numbers: too large, or lost near zero."""
    largest = [float(np.abs(tree.value[tree.feature < 0]).max()) for tree in forest.trees]
    if sum(largest) > MOST or 0 < max(largest) < LEAST:
        raise DataError(
            f"{source}: a leaf of {max(largest):g} is beyond float32 numbers, in which trees are "
            "added up there; scale the labels before training, or export to numpy or vespa."
        )
