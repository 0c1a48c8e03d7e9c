"""Trees and stumps of models, read from the texts of the libraries that grew them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np

from firstpage.errors import DataError
from firstpage.interop.export.forest import DEEPEST, Forest, Tree
from firstpage.scorers.stumps import StumpsScoring
from firstpage.scorers.trees import TreesScoring
from firstpage.types import Floats, Ints

ZERO = float(np.float32(1e-35))  # LightGBM takes what is not farther from zero for zero
CLOSE = 1e-6


def forest_of(scoring: Any, source: str) -> Forest:
    """The trees of a model, checked against what it predicts."""
    found = read_forest(scoring, source)
    deepest = max(tree.depth() for tree in found.trees)
    if deepest > DEEPEST:
        raise DataError(
            f"{source} has a tree of {deepest} splits one below the other, and at most {DEEPEST} "
            "can be written; grow shallower ones: scorer='trees(options={\"max_depth\": 12})'."
        )
    _check(found, scoring, source)
    return found


def read_forest(scoring: Any, source: str) -> Forest:
    """The trees of a model as its text has them; not yet checked."""
    if isinstance(scoring, StumpsScoring):
        found = _steps(scoring)
    else:
        read = _lightgbm if scoring.library == "lightgbm" else _xgboost
        found = read(scoring.text, source)
    return replace(found, trees=found.trees or (Tree.leaf(0.0),))


def _steps(scoring: StumpsScoring) -> Forest:
    """One tree a feature, its steps in a balanced order: as few comparisons as can be."""
    trees = []
    for feature, (thresholds, levels) in scoring.functions().items():
        nodes: list[tuple[int, float, int, int, float]] = []

        def add(lo: int, hi: int, nodes: Any, f: int, at: Floats, level: Floats) -> int:
            number = len(nodes)
            nodes.append((-1, 0.0, -1, -1, float(level[lo])))
            if hi > lo:
                middle = (lo + hi) // 2
                left = add(lo, middle, nodes, f, at, level)
                right = add(middle + 1, hi, nodes, f, at, level)
                nodes[number] = (f, float(at[middle]), left, right, 0.0)
            return number

        add(0, len(thresholds), nodes, feature, thresholds, levels)
        trees.append(Tree.of(nodes))
    return Forest(tuple(trees))


def _lightgbm(text: str, source: str) -> Forest:
    head, *blocks = re.split(r"^Tree=\d+\n", text.partition("\nend of trees")[0], flags=re.M)
    share = 1 / max(len(blocks), 1) if "\naverage_output\n" in head else 1.0
    trees = []
    for block in blocks:
        said = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        value = np.array(said["leaf_value"].split(), np.float64) * share
        if said.get("is_linear", "0").strip() != "0":
            raise DataError(f"{source} has trees with linear leaves, which no other program reads.")
        feature = np.array(said.get("split_feature", "").split(), np.int64)
        if not len(feature):
            trees.append(Tree.leaf(float(value[0])))
            continue
        kind = np.array(said["decision_type"].split(), np.int64)
        if (kind & 1).any() or ((kind >> 2) & 3 == 1).any():
            raise DataError(
                f"{source} has splits on categories, or zeros that stand for missing values; only "
                "plain thresholds can be exported (or the trees as they are, to 'lightgbm')."
            )
        threshold = _snapped(np.array(said["threshold"].split(), np.float64))
        inner, leaves = len(feature), len(value)
        left, right = (
            _children(np.array(said[f"{side}_child"].split(), np.int64), inner)
            for side in ("left", "right")
        )
        none, nowhere = np.zeros(leaves), np.full(leaves, -1)
        trees.append(
            Tree(
                np.concatenate([feature, nowhere]), np.concatenate([threshold, none]),
                np.concatenate([left, nowhere]), np.concatenate([right, nowhere]),
                np.concatenate([np.zeros(inner), value]),
            )
        )  # fmt: skip
    return Forest(tuple(trees))


def _children(numbers: Ints, inner: int) -> Ints:
    """Leaves, which LightGBM numbers -1, -2, .., follow the splits."""
    return np.where(numbers >= 0, numbers, inner + ~numbers)


def _snapped(threshold: Floats) -> Floats:
    """LightGBM reads features within ZERO of zero as zero; thresholds there mean the same."""
    near = np.abs(threshold) <= ZERO
    meant = np.where(threshold >= 0, ZERO, np.nextafter(-ZERO, -np.inf))
    return np.where(near, meant, threshold)


def _xgboost(text: str, source: str) -> Forest:
    learner = json.loads(text)["learner"]
    booster = learner["gradient_booster"]
    if booster.get("name") != "gbtree":
        raise DataError(f"{source}: XGBoost's {booster.get('name')!r} is no sum of plain trees.")
    base = float(str(learner["learner_model_param"]["base_score"]).strip("[]"))
    trees = [] if base == 0 else [Tree.leaf(base)]
    for tree in booster["model"]["trees"]:
        if any(tree.get("split_type", [])):
            raise DataError(f"{source} has splits on categories, which cannot be exported.")
        left, right = (np.array(tree[f"{s}_children"], np.int64) for s in ("left", "right"))
        number = np.array(tree["split_conditions"], np.float32)
        leaf = left < 0
        # x < c is x <= the float32 below c
        below = np.nextafter(number, np.float32(-np.inf)).astype(np.float64)
        feature = np.where(leaf, -1, np.array(tree["split_indices"], np.int64))
        value = np.where(leaf, number.astype(np.float64), 0.0)
        trees.append(Tree(feature, np.where(leaf, 0.0, below), left, right, value))
    return Forest(tuple(trees), single=True)


def _check(forest: Forest, scoring: TreesScoring | StumpsScoring, source: str) -> None:
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
