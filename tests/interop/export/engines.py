"""Independent evaluators of exported models, with the engines' documented arithmetic."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np

F = np.float32


# --- Solr: float features, normalizers, `<=` after 1e-6 is added, float sums


def solr(files: dict[str, bytes], names: list[str], X: np.ndarray) -> np.ndarray:
    model, store = json.loads(files["model.json"]), json.loads(files["features.json"])
    assert {f["store"] for f in store} == {model["store"]}
    known = {f["name"]: f for f in store}
    assert len(known) == len(store)
    columns = {}
    for feature in model["features"]:
        name = feature["name"]
        assert name in known, "Solr refuses models of features that are not in the store"
        if known[name]["class"].endswith("ValueFeature"):
            column = np.full(len(X), F(known[name]["params"]["value"]))
        else:
            column = X[:, names.index(name)].astype(F)
        columns[name] = _solr_norm(feature.get("norm"), column)
    if model["class"] == "org.apache.solr.ltr.model.LinearModel":
        weights = model["params"]["weights"]
        assert weights
        assert set(weights) == set(columns)
        total = np.zeros(len(X), F)
        for name, column in columns.items():
            total = total + column * F(weights[name])
        return total
    assert model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    summed: np.ndarray = np.zeros(len(X), F)
    for tree in model["params"]["trees"]:
        summed = summed + F(tree["weight"]) * _solr_node(tree["root"], columns, len(X))
    return summed


def _solr_norm(norm: Any, column: np.ndarray) -> np.ndarray:
    if norm is None:
        return column
    assert norm["class"] == "org.apache.solr.ltr.norm.MinMaxNormalizer"
    low, high = F(norm["params"]["min"]), F(norm["params"]["max"])
    assert high - low != 0
    with np.errstate(over="ignore"):
        return (column - low) / (high - low)


def _solr_node(node: Any, columns: dict[str, np.ndarray], n: int) -> np.ndarray:
    if "feature" not in node:
        assert set(node) == {"value"}
        return np.full(n, F(node["value"]))
    threshold = F(node["threshold"]) + F(1e-6)
    goes = columns[node["feature"]] <= threshold
    left, right = (_solr_node(node[side], columns, n) for side in ("left", "right"))
    return np.where(goes, left, right)


# --- Elasticsearch and OpenSearch


def elastic(files: dict[str, bytes], names: list[str], X: np.ndarray) -> np.ndarray:
    contents = json.loads(files["model.json"])["model"]
    stored = json.loads(files["features.json"])["featureset"]
    assert contents["name"] == stored["name"]
    order = [f["name"] for f in stored["features"]]
    assert all({"name", "params", "template"} <= set(f) for f in stored["features"])
    columns = {
        name: X[:, names.index(name)].astype(F) if name in names else np.ones(len(X), F)
        for name in order
    }
    kind, definition = contents["model"]["type"], contents["model"]["definition"]
    assert isinstance(definition, str)
    if kind == "model/linear":
        weights = json.loads(definition)
        assert set(weights) <= set(order)
        total = np.zeros(len(X), F)
        for name in order:
            total = total + F(weights.get(name, 0)) * columns[name]
        return total
    if kind == "model/ranklib":
        return ranklib(definition, np.column_stack([columns[name] for name in order]))
    assert kind == "model/xgboost+json"
    total = np.zeros(len(X), F)
    for tree in json.loads(definition):
        total = total + _xgb_node(tree, columns, len(X))
    return total


def _xgb_node(node: Any, columns: dict[str, np.ndarray], n: int) -> np.ndarray:
    if "leaf" in node:
        return np.full(n, F(node["leaf"]))
    first, second = node["children"]
    assert (node["yes"], node["no"]) == (first["nodeid"], second["nodeid"])
    assert isinstance(node["depth"], int)
    goes = F(node["split_condition"]) > columns[node["split"]]
    return np.where(goes, _xgb_node(first, columns, n), _xgb_node(second, columns, n))


# --- RankLib: features from 1 on; trees in float, linear regression in double


def ranklib(text: str, X: np.ndarray) -> np.ndarray:
    kind = text.splitlines()[0].removeprefix("## ")
    body = [line.strip() for line in text.splitlines() if line and not line.startswith("##")]
    if kind == "Linear Regression":
        pairs = dict(pair.split(":") for pair in body[0].split())
        total = np.full(len(X), float(pairs.pop("0")))
        for number, weight in pairs.items():
            total = total + float(weight) * X[:, int(number) - 1].astype(F).astype(float)
        return total
    assert kind == "LambdaMART"
    summed: np.ndarray = np.zeros(len(X), F)
    for tree in ElementTree.fromstring("".join(body)):
        factor = F(tree.attrib["weight"])
        summed = summed + _ranklib_node(tree[0], X.astype(F)).astype(F) * factor
    return summed


def _ranklib_node(node: Any, X: np.ndarray) -> np.ndarray:
    if node[0].tag == "output":
        return np.full(len(X), F(node[0].text))
    assert [child.tag for child in node] == ["feature", "threshold", "split", "split"]
    assert [child.attrib["pos"] for child in node[2:]] == ["left", "right"]
    goes = X[:, int(node[0].text) - 1] <= F(node[1].text)
    return np.where(goes, _ranklib_node(node[2], X), _ranklib_node(node[3], X))


# --- Vespa: double arithmetic, `if (test, then, else)`

TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?)|(\w+)|(<=|[-+*(),]))")


def vespa(text: str, X: np.ndarray) -> np.ndarray:
    actual = re.search(r"expression \{\n(.*?)\n {8}\}", text, re.S)
    assert actual
    tokens: list[str] = []
    at, body = 0, actual[1]
    while body[at:].strip():
        match = TOKEN.match(body, at)
        assert match, body[at : at + 40]
        tokens.append(match[0].strip())
        at = match.end()
    reader = _Vespa(tokens, X.astype(np.float64))
    value = reader.sum()
    assert reader.at == len(tokens)
    return value


class _Vespa:
    def __init__(self, tokens: list[str], X: np.ndarray) -> None:
        self.tokens, self.X, self.at = tokens, X, 0

    def take(self, expected: str | None = None) -> str:
        token = self.tokens[self.at]
        assert expected is None or token == expected, (token, expected)
        self.at += 1
        return token

    def sum(self) -> Any:
        total = self.product()
        while self.at < len(self.tokens) and self.tokens[self.at] == "+":
            self.take()
            total = total + self.product()
        return total

    def product(self) -> Any:
        total = self.atom()
        while self.at < len(self.tokens) and self.tokens[self.at] == "*":
            self.take()
            total = total * self.atom()
        return total

    def atom(self) -> Any:
        token = self.take()
        if token == "(":
            value = self.sum()
            self.take(")")
            return value
        if token == "-":
            return -self.atom()
        if token == "if":
            self.take("(")
            left = self.atom()
            self.take("<=")
            goes = left <= self.atom()
            self.take(",")
            first = self.sum()
            self.take(",")
            second = self.sum()
            self.take(")")
            return np.where(goes, first, second)
        if token.startswith("feature_"):
            return self.X[:, int(token.removeprefix("feature_")) - 1]
        return np.full(len(self.X), float(token))


ENGINES: dict[str, Callable[[dict[str, bytes], list[str], np.ndarray], np.ndarray]] = {
    "solr": solr,
    "elasticsearch": elastic,
    "opensearch-ranklib": elastic,
    "ranklib": lambda files, names, X: ranklib(files["model.txt"].decode(), X),
    "vespa": lambda files, names, X: vespa(
        next(v for k, v in files.items() if k.endswith(".profile")).decode(), X
    ),
}
