"""Apache Solr's learning to rank: LinearModel and MultipleAdditiveTreesModel.

Solr computes in float32.  It adds 1e-6 to every threshold that it reads, so ours are written that
much lower; where no float32 leads to the right one, a normalizer stretches the feature by a power
of two, which loses nothing, until one does.
"""

from __future__ import annotations

import json

import numpy as np

from firstpage.errors import DataError
from firstpage.interop.export.export_model import ExportFiles, ExportModel
from firstpage.interop.export.float32 import MOST, single_weights, written
from firstpage.scorers.forest import Tree
from firstpage.scorers.scorer import JsonObject
from firstpage.types import Array, Floats

SLACK = np.float32(1e-6)  # what Solr adds to a threshold
TINY = 1e-30  # numbers nearer to zero than this, but not zero, are no features
STRETCH = 126  # 2^-126 is the least normal float32
PACKAGE = "org.apache.solr.ltr"

HOW = """Copy both files to where curl runs, fill in `features.json`, and upload:

    curl -XPUT 'http://localhost:8983/solr/COLLECTION/schema/feature-store' \\
      -H 'Content-type:application/json' --data-binary '@features.json'
    curl -XPUT 'http://localhost:8983/solr/COLLECTION/schema/model-store' \\
      -H 'Content-type:application/json' --data-binary '@model.json'

Rerank the first 100 documents with `rq={!ltr model=NAME reRankDocs=100 efi.text="the query"}`.
A feature that finds nothing in a document is 0."""


def export(subject: ExportModel) -> ExportFiles:
    head = {"store": subject.name, "name": subject.name}
    constant: str | None = None
    if subject.kind == "linear":
        raw, intercept = subject.weights()
        weights = single_weights(np.append(raw, intercept), subject.source, "Solr").tolist()
        names = list(subject.features.names)
        if weights[-1]:
            constant = subject.features.constant()
            names.append(constant)
        model = {
            "class": f"{PACKAGE}.model.LinearModel", **head,
            "features": [{"name": name} for name in names],
            "params": {"weights": dict(zip(names, weights, strict=False))},
        }  # fmt: skip
    else:
        forest = subject.forest32()
        used = forest.used() or [0]
        stretch = {f: _stretch(forest.thresholds(f), _name(subject, f)) for f in used}
        texts = {f: _texts(forest.thresholds(f), stretch[f]) for f in used}
        model = {
            "class": f"{PACKAGE}.model.MultipleAdditiveTreesModel", **head,
            "features": [_feature(_name(subject, f), stretch[f]) for f in used],
            "params": {"trees": [_tree(tree, subject, texts) for tree in forest.trees]},
        }  # fmt: skip
    contents = {
        "model.json": json.dumps(model, indent=1, allow_nan=False).encode() + b"\n",
        "features.json": json.dumps(_store(subject, constant), indent=1, allow_nan=False).encode()
        + b"\n",
    }
    return ExportFiles("model.json", contents, HOW.replace("NAME", subject.name))


def _name(subject: ExportModel, feature: int) -> str:
    return subject.features.names[feature]


def _store(subject: ExportModel, constant: str | None) -> list[JsonObject]:
    """The feature store: what the user gave, and templates of the rest."""
    found = []
    for name in subject.features.names:
        template = {
            "class": f"{PACKAGE}.feature.SolrFeature",
            "params": {"q": "{!func}FILL_IN"},
        }
        known = subject.features.known.get(name, {})
        own = {k: v for k, v in known.items() if k in ("class", "params")}
        if "class" in own and not (
            isinstance(own["class"], str) and isinstance(own.setdefault("params", {}), dict)
        ):
            raise DataError(
                f"the feature {name!r} must have a text as 'class', and a mapping as 'params'."
            )
        own = own if "class" in own else {}
        found.append({"store": subject.name, "name": name, **(own or template)})
    if constant is not None:
        one = {"class": f"{PACKAGE}.feature.ValueFeature", "params": {"value": 1}}
        found.append({"store": subject.name, "name": constant, **one})
    return found


def _feature(name: str, stretch: int) -> JsonObject:
    if not stretch:
        return {"name": name}
    params = {"min": "0.0", "max": written(2.0**-stretch)}
    return {"name": name, "norm": {"class": f"{PACKAGE}.norm.MinMaxNormalizer", "params": params}}


def _stretch(thresholds: Floats, name: str) -> int:
    """The least power of two that, as a stretch, lets all thresholds be written."""
    most = float(np.abs(thresholds).max(initial=0.0))
    for power in range(STRETCH + 1):
        if most * 2.0**power >= MOST / 2:
            break
        if not np.isnan(lowered(thresholds, power)).any():
            return power
    least = float(np.abs(thresholds[thresholds != 0]).min())
    raise DataError(
        f"the feature {name!r} has thresholds of {least:g} and of {most:g}: Solr, which adds "
        "0.000001 to every threshold, cannot hold both; scale the feature before training, or "
        "export to another target."
    )


def lowered(thresholds: Floats, power: int = 0) -> Array:
    """What to write so that Solr, after its addition, has these, stretched; NaN where no number
    leads there.

    Thresholds nearer to zero than TINY may move, but neither across zero nor beyond TINY.
    """
    meant = (thresholds * 2.0**power).astype(np.float32)
    guess = meant - SLACK
    tries = [guess]
    for side in (-np.inf, np.inf):
        near = guess
        for _ in range(2):
            near = np.nextafter(near, np.float32(side))
            tries.append(near)
    found = np.full(meant.shape, np.nan, np.float32)
    for one in tries:
        found = np.where(np.isnan(found) & (one + SLACK == meant), one, found)
    for one in tries:
        has = one + SLACK
        near_zero = (np.abs(thresholds) < TINY) & (np.abs(has) < TINY * 2.0**power)
        fits = near_zero & ((has >= 0) == (meant >= 0))
        found = np.where(np.isnan(found) & fits, one, found)
    return found


def _texts(thresholds: Floats, power: int) -> dict[float, str]:
    """Thresholds as Solr shall read them."""
    return {
        t: written(w)
        for t, w in zip(thresholds.tolist(), lowered(thresholds, power).tolist(), strict=True)
    }


def _tree(tree: Tree, subject: ExportModel, texts: dict[int, dict[float, str]]) -> JsonObject:
    def node(at: int) -> JsonObject:
        feature = int(tree.feature[at])
        if feature < 0:
            return {"value": written(tree.value[at])}
        return {
            "feature": _name(subject, feature),
            "threshold": texts[feature][float(tree.threshold[at])],
            "left": node(int(tree.left[at])),
            "right": node(int(tree.right[at])),
        }

    return {"weight": "1.0", "root": node(0)}
