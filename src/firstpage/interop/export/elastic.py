"""RankLib's model files, and learning to rank of Elasticsearch and OpenSearch, which reads them:
linear, XGBoost's JSON, RankLib's text.

All compute in float32; RankLib's linear models in float64.  In RankLib features are numbers from 1
on, in the order of the model's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from firstpage.errors import DataError
from firstpage.interop.export.export_model import ExportFiles, ExportModel
from firstpage.interop.export.float32 import above32, single_weights, written
from firstpage.scorers.forest import Tree
from firstpage.scorers.scorer import JsonObject

HOW_RANKLIB = """\
Score a LETOR file with RankLib: `java -jar RankLib.jar -load MODEL -rank FILE -score OUT`.
Feature 1 is the first column of the model, and so on. Trees compute in float32."""


def export_ranklib(subject: ExportModel) -> ExportFiles:
    return ExportFiles("model.txt", {"model.txt": ranklib_text(subject).encode()}, HOW_RANKLIB)


def ranklib_text(subject: ExportModel) -> str:
    """A model file: "Linear Regression", whose number 0 is the intercept, or "LambdaMART"."""
    if subject.kind == "linear":
        weights, intercept = subject.weights()
        pairs = [f"{i}:{w!r}" for i, w in enumerate(weights.tolist(), 1)]
        return "\n".join(["## Linear Regression", "## Lambda = 0.0", f"0:{intercept!r} "]) + (
            " ".join(pairs) + "\n"
        )
    trees = subject.forest32().trees
    leaves = max(int((tree.feature < 0).sum()) for tree in trees)
    lines = [
        "## LambdaMART",
        f"## No. of trees = {len(trees)}",
        f"## No. of leaves = {leaves}",
        "## No. of threshold candidates = 256",
        "## Learning rate = 1.0",
        "## Stop early = 100",
        "",
        "<ensemble>",
    ]
    for number, tree in enumerate(trees, 1):
        lines.append(f'\t<tree id="{number}" weight="1.0">')
        lines.append("\t\t<split>")
        lines += _node(tree, 0, "\t\t\t")
        lines += ["\t\t</split>", "\t</tree>"]
    return "\n".join([*lines, "</ensemble>", ""])


def _node(tree: Tree, at: int, indent: str) -> Iterator[str]:
    if tree.feature[at] < 0:
        yield f"{indent}<output> {written(tree.value[at])} </output>"
        return
    yield f"{indent}<feature> {int(tree.feature[at]) + 1} </feature>"
    yield f"{indent}<threshold> {written(tree.threshold[at])} </threshold>"
    for side, child in (("left", tree.left[at]), ("right", tree.right[at])):
        yield f'{indent}<split pos="{side}">'
        yield from _node(tree, int(child), indent + "\t")
        yield f"{indent}</split>"


HOW_ELASTIC = """\
Fill in the templates of `features.json`, and upload (once, before the first model of all:
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


def export_elastic(subject: ExportModel) -> ExportFiles:
    if subject.kind == "linear":
        return _linear(subject)
    trees = [_Numbered(subject, tree).node(0, 0) for tree in subject.forest32().trees]
    return _files(subject, "model/xgboost+json", json.dumps(trees, allow_nan=False), False)


def export_elastic_ranklib(subject: ExportModel) -> ExportFiles:
    """The same, with the model as a RankLib file."""
    return _files(subject, "model/ranklib", ranklib_text(subject), False)


def _linear(subject: ExportModel) -> ExportFiles:
    raw, intercept = subject.weights()
    both = np.append(raw, intercept)
    weights = single_weights(both, subject.source, "Elasticsearch").tolist()
    found = dict(zip(subject.features.names, weights, strict=False))
    if weights[-1]:
        found[subject.features.constant()] = weights[-1]
    return _files(subject, "model/linear", json.dumps(found, allow_nan=False), bool(weights[-1]))


def _files(subject: ExportModel, kind: str, definition: str, constant: bool) -> ExportFiles:
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
    return ExportFiles("model.json", contents, HOW_ELASTIC.replace("NAME", subject.name))


def _feature(subject: ExportModel, name: str) -> JsonObject:
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

    def __init__(self, subject: ExportModel, tree: Tree) -> None:
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
