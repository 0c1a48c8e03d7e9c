"""Learning to rank of Elasticsearch and OpenSearch: linear, XGBoost's JSON, RankLib's text.

Both compute in float32; RankLib's linear models in float64.
"""

from __future__ import annotations

import json

import numpy as np

from firstpage.errors import DataError
from firstpage.interop.export import ranklib
from firstpage.interop.export.float32 import above32, single_weights
from firstpage.interop.export.subject import Files, Subject
from firstpage.scorers.forest import Tree
from firstpage.scorers.scorer import JsonObject

HOW = """Fill in the templates of `features.json`, and upload (once, before the first model of all:
`curl -XPUT 'http://localhost:9200/_ltr'`):

    curl -XPOST 'http://localhost:9200/_ltr/_featureset/NAME' \\
      -H 'Content-Type: application/json' --data-binary '@features.json'
    curl -XPOST 'http://localhost:9200/_ltr/_featureset/NAME/_createmodel' \\
      -H 'Content-Type: application/json' --data-binary '@model.json'

Rerank the first 100 documents of a search:

    "rescore": {"window_size": 100, "query": {"query_weight": 0, "rescore_query":
      {"sltr": {"model": "NAME", "params": {"keywords": "the query"}}}}}

A feature that does not match a document is 0. Scores may be below 0: those of documents outside the
window are not comparable, so make the window as large as what you show."""

KEYS = ("name", "params", "template_language", "template")  # others are refused there


def export(subject: Subject) -> Files:
    if subject.kind == "linear":
        return _linear(subject)
    trees = [_Numbered(subject, tree).node(0, 0) for tree in subject.forest32().trees]
    return _files(subject, "model/xgboost+json", json.dumps(trees, allow_nan=False), False)


def export_ranklib(subject: Subject) -> Files:
    """The same, with the model as a RankLib file."""
    return _files(subject, "model/ranklib", ranklib.text_of(subject), False)


def _linear(subject: Subject) -> Files:
    raw, intercept = subject.weights()
    both = np.append(raw, intercept)
    weights = single_weights(both, subject.source, "Elasticsearch").tolist()
    found = dict(zip(subject.features.names, weights, strict=False))
    if weights[-1]:
        found[subject.features.constant()] = weights[-1]
    return _files(subject, "model/linear", json.dumps(found, allow_nan=False), bool(weights[-1]))


def _files(subject: Subject, kind: str, definition: str, constant: bool) -> Files:
    features = [_feature(subject, name) for name in subject.features.names]
    if constant:
        template = {"match_all": {"boost": 1.0}}
        features.append(_with(subject.features.constant(), [], template))
    stored = {"featureset": {"name": subject.name, "features": features}}
    held = {"model": {"name": subject.name, "model": {"type": kind, "definition": definition}}}
    contents = {
        "model.json": json.dumps(held, indent=1, allow_nan=False).encode() + b"\n",
        "features.json": json.dumps(stored, indent=1, allow_nan=False).encode() + b"\n",
    }
    return Files("model.json", contents, HOW.replace("NAME", subject.name))


def _feature(subject: Subject, name: str) -> JsonObject:
    known = subject.features.known.get(name, {})
    if "template" in known:
        params = known.get("params", [])
        if not isinstance(known["template"], (dict, str)) or not isinstance(params, list):
            raise DataError(
                f"the feature {name!r} must have a query or a text as 'template', and a list as "
                "'params'."
            )
        return {key: value for key, value in known.items() if key in KEYS}
    return _with(name, ["keywords"], {"match": {"FILL_IN": "{{keywords}}"}})


def _with(name: str, params: list[str], template: JsonObject) -> JsonObject:
    return {
        "name": name, "params": params, "template_language": "mustache", "template": template,
    }  # fmt: skip


class _Numbered:
    """A tree as XGBoost dumps it, nodes numbered as they come: `yes` is x < split_condition."""

    def __init__(self, subject: Subject, tree: Tree) -> None:
        self.names, self.tree, self.count = subject.features.names, tree, 0

    def node(self, at: int, depth: int) -> JsonObject:
        number, tree = self.count, self.tree
        self.count += 1
        if tree.feature[at] < 0:
            return {"nodeid": number, "leaf": float(np.float32(tree.value[at]))}
        left = self.node(int(tree.left[at]), depth + 1)
        right = self.node(int(tree.right[at]), depth + 1)
        return {
            "nodeid": number, "depth": depth, "split": self.names[int(tree.feature[at])],
            "split_condition": above32(tree.threshold[at]), "yes": left["nodeid"],
            "no": right["nodeid"], "missing": left["nodeid"], "children": [left, right],
        }  # fmt: skip
