"""RankLib model files, and models for the learning to rank plugins of Elasticsearch and OpenSearch.

The plugins read linear models, XGBoost's JSON and RankLib's text.  All compute in float32, except
RankLib's linear models, which compute in float64.  In RankLib, features are numbered from 1, in the
order of the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from firstpage.core import DataError
from firstpage.interop.export.export_model import ExportFiles, ExportModel, json_bytes, usage
from firstpage.interop.export.float32 import above32, float32_text, single_weights
from firstpage.learning.scorers import JsonObject, Tree


def export_ranklib(exported: ExportModel) -> ExportFiles:
    """Return a model as a RankLib file."""
    return ExportFiles(
        "model.txt", {"model.txt": ranklib_text(exported).encode()}, usage("ranklib")
    )


def ranklib_text(exported: ExportModel) -> str:
    """Return a RankLib model: "Linear Regression", whose feature 0 is the intercept, or trees."""
    if exported.kind == "linear":
        weights, intercept = exported.weights()
        pairs = [f"{i}:{w!r}" for i, w in enumerate(weights.tolist(), 1)]
        return "\n".join(["## Linear Regression", "## Lambda = 0.0", f"0:{intercept!r} "]) + (
            " ".join(pairs) + "\n"
        )
    trees = exported.forest32().trees
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


def _node(tree: Tree, node: int, indent: str) -> Iterator[str]:
    """Yield the lines of a node and its children."""
    if tree.feature[node] < 0:
        yield f"{indent}<output> {float32_text(tree.value[node])} </output>"
        return
    yield f"{indent}<feature> {int(tree.feature[node]) + 1} </feature>"
    yield f"{indent}<threshold> {float32_text(tree.threshold[node])} </threshold>"
    for side, child in (("left", tree.left[node]), ("right", tree.right[node])):
        yield f'{indent}<split pos="{side}">'
        yield from _node(tree, int(child), indent + "\t")
        yield f"{indent}</split>"


KEYS = ("name", "params", "template_language", "template")  # the plugin rejects others


def export_elastic(exported: ExportModel) -> ExportFiles:
    """Return a model for the plugin, linear or as XGBoost's JSON, and a feature set."""
    if exported.kind == "linear":
        return _linear(exported)
    trees = [_NodeNumbering(exported, tree).node(0, 0) for tree in exported.forest32().trees]
    return _files(exported, "model/xgboost+json", json.dumps(trees, allow_nan=False), False)


def export_elastic_ranklib(exported: ExportModel) -> ExportFiles:
    """Return a model for the plugin as RankLib's text, and a feature set."""
    return _files(exported, "model/ranklib", ranklib_text(exported), False)


def _linear(exported: ExportModel) -> ExportFiles:
    raw, intercept = exported.weights()
    weights = single_weights(np.append(raw, intercept), exported.source, "Elasticsearch").tolist()
    by_name = dict(zip(exported.features.names, weights, strict=False))
    if weights[-1]:
        by_name[exported.features.constant()] = weights[-1]
    return _files(exported, "model/linear", json.dumps(by_name, allow_nan=False), bool(weights[-1]))


def _files(exported: ExportModel, kind: str, definition: str, constant: bool) -> ExportFiles:
    features = [_feature(exported, name) for name in exported.features.names]
    if constant:
        template = {"match_all": {"boost": 1.0}}
        features.append(_definition(exported.features.constant(), [], template))
    stored = {"featureset": {"name": exported.name, "features": features}}
    model = {"model": {"name": exported.name, "model": {"type": kind, "definition": definition}}}
    contents = {"model.json": json_bytes(model), "features.json": json_bytes(stored)}
    return ExportFiles("model.json", contents, usage("elasticsearch", exported.name))


def _feature(exported: ExportModel, name: str) -> JsonObject:
    known = exported.features.known.get(name, {})
    if "template" in known:
        params = known.get("params", [])
        if not isinstance(known["template"], (dict, str)) or not isinstance(params, list):
            raise DataError(
                f"the feature {name!r} must have a query or a string as 'template', and a list as "
                "'params'."
            )
        return {key: value for key, value in known.items() if key in KEYS}
    return _definition(name, ["keywords"], {"match": {"FILL_IN": "{{keywords}}"}})


def _definition(name: str, params: list[str], template: JsonObject) -> JsonObject:
    return {"name": name, "params": params, "template_language": "mustache", "template": template}


class _NodeNumbering:
    """A tree as XGBoost dumps it, with nodes numbered in preorder; `yes` is x < split_condition."""

    def __init__(self, exported: ExportModel, tree: Tree) -> None:
        self.names, self.tree, self.count = exported.features.names, tree, 0

    def node(self, index: int, depth: int) -> JsonObject:
        """Return a node and its children as XGBoost's JSON."""
        number, tree = self.count, self.tree
        self.count += 1
        if tree.feature[index] < 0:
            return {"nodeid": number, "leaf": float(np.float32(tree.value[index]))}
        left = self.node(int(tree.left[index]), depth + 1)
        right = self.node(int(tree.right[index]), depth + 1)
        return {
            "nodeid": number,
            "depth": depth,
            "split": self.names[int(tree.feature[index])],
            "split_condition": above32(tree.threshold[index]),
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": left["nodeid"],
            "children": [left, right],
        }
