"""Models for Apache Solr's learning to rank: LinearModel and MultipleAdditiveTreesModel.

Solr computes in float32.  It adds 1e-6 to every threshold that it reads, so thresholds are written
lower by that amount.  Where no float32 gives the right sum, a normalizer scales the feature by a
power of two, which is exact, until one does.
"""

from __future__ import annotations

import numpy as np

from firstpage.core import Array, DataError, Floats
from firstpage.interop.export.export_model import ExportFiles, ExportModel, json_bytes, usage
from firstpage.interop.export.float32 import MAX_FLOAT32, float32_text, single_weights
from firstpage.learning.scorers import JsonObject, Tree

SOLR_EPSILON = np.float32(1e-6)  # which Solr adds to a threshold
TINY = 1e-30  # smaller absolute values, except 0, do not occur as features
MAX_POWER = 126  # 2^-126 is the smallest normal float32
PACKAGE = "org.apache.solr.ltr"


def export(exported: ExportModel) -> ExportFiles:
    """Return a model and a feature store for Solr."""
    head = {"store": exported.name, "name": exported.name}
    constant: str | None = None
    if exported.kind == "linear":
        raw, intercept = exported.weights()
        weights = single_weights(np.append(raw, intercept), exported.source, "Solr").tolist()
        names = list(exported.features.names)
        if weights[-1]:
            constant = exported.features.constant()
            names.append(constant)
        model = {
            "class": f"{PACKAGE}.model.LinearModel",
            **head,
            "features": [{"name": name} for name in names],
            "params": {"weights": dict(zip(names, weights, strict=False))},
        }
    else:
        forest = exported.forest32()
        used = forest.used_features() or [0]
        power = {f: _power(forest.thresholds(f), _name(exported, f)) for f in used}
        texts = {f: _texts(forest.thresholds(f), power[f]) for f in used}
        model = {
            "class": f"{PACKAGE}.model.MultipleAdditiveTreesModel",
            **head,
            "features": [_feature(_name(exported, f), power[f]) for f in used],
            "params": {"trees": [_tree(tree, exported, texts) for tree in forest.trees]},
        }
    store = _store(exported, constant)
    contents = {"model.json": json_bytes(model), "features.json": json_bytes(store)}
    return ExportFiles("model.json", contents, usage("solr", exported.name))


def _name(exported: ExportModel, feature: int) -> str:
    return exported.features.names[feature]


def _store(exported: ExportModel, constant: str | None) -> list[JsonObject]:
    """Return the feature store: the user's definitions, and templates of the other features."""
    store = []
    for name in exported.features.names:
        template = {"class": f"{PACKAGE}.feature.SolrFeature", "params": {"q": "{!func}FILL_IN"}}
        known = exported.features.known.get(name, {})
        definition = {k: v for k, v in known.items() if k in ("class", "params")}
        if "class" in definition and not (
            isinstance(definition["class"], str)
            and isinstance(definition.setdefault("params", {}), dict)
        ):
            raise DataError(
                f"the feature {name!r} must have a string as 'class', and a mapping as 'params'."
            )
        definition = definition if "class" in definition else {}
        store.append({"store": exported.name, "name": name, **(definition or template)})
    if constant is not None:
        value_one = {"class": f"{PACKAGE}.feature.ValueFeature", "params": {"value": 1}}
        store.append({"store": exported.name, "name": constant, **value_one})
    return store


def _feature(name: str, power: int) -> JsonObject:
    """Return a feature of the model, scaled by a power of two."""
    if not power:
        return {"name": name}
    params = {"min": "0.0", "max": float32_text(2.0**-power)}
    return {"name": name, "norm": {"class": f"{PACKAGE}.norm.MinMaxNormalizer", "params": params}}


def _power(thresholds: Floats, name: str) -> int:
    """Return the smallest power of two by which scaling lets all thresholds be written."""
    largest = float(np.abs(thresholds).max(initial=0.0))
    for power in range(MAX_POWER + 1):
        if largest * 2.0**power >= MAX_FLOAT32 / 2:
            break
        if not np.isnan(lowered(thresholds, power)).any():
            return power
    smallest = float(np.abs(thresholds[thresholds != 0]).min())
    raise DataError(
        f"the feature {name!r} has thresholds of {smallest:g} and of {largest:g}: Solr, which adds "
        "0.000001 to every threshold, cannot represent both; scale the feature before training, or "
        "export to another target."
    )


def lowered(thresholds: Floats, power: int = 0) -> Array:
    """Return the numbers to write so that Solr, after its addition, has the scaled thresholds.

    NaN where there is no such number.  Thresholds with absolute values below TINY may change, but
    neither their sign nor beyond TINY.
    """
    target = (thresholds * 2.0**power).astype(np.float32)
    guess = target - SOLR_EPSILON
    candidates = [guess]
    for direction in (-np.inf, np.inf):
        neighbor = guess
        for _ in range(2):
            neighbor = np.nextafter(neighbor, np.float32(direction))
            candidates.append(neighbor)
    numbers = np.full(target.shape, np.nan, np.float32)
    for candidate in candidates:
        exact = candidate + SOLR_EPSILON == target
        numbers = np.where(np.isnan(numbers) & exact, candidate, numbers)
    for candidate in candidates:
        total = candidate + SOLR_EPSILON
        near_zero = (np.abs(thresholds) < TINY) & (np.abs(total) < TINY * 2.0**power)
        fits = near_zero & ((total >= 0) == (target >= 0))
        numbers = np.where(np.isnan(numbers) & fits, candidate, numbers)
    return numbers


def _texts(thresholds: Floats, power: int) -> dict[float, str]:
    """Return the text of each threshold."""
    return {
        t: float32_text(w)
        for t, w in zip(thresholds.tolist(), lowered(thresholds, power).tolist(), strict=True)
    }


def _tree(tree: Tree, exported: ExportModel, texts: dict[int, dict[float, str]]) -> JsonObject:
    """Return a tree as Solr's JSON."""

    def node(index: int) -> JsonObject:
        feature = int(tree.feature[index])
        if feature < 0:
            return {"value": float32_text(tree.value[index])}
        return {
            "feature": _name(exported, feature),
            "threshold": texts[feature][float(tree.threshold[index])],
            "left": node(int(tree.left[index])),
            "right": node(int(tree.right[index])),
        }

    return {"weight": "1.0", "root": node(0)}
