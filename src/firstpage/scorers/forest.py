"""Trees of any origin in one form, and the texts of the libraries that grow them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from firstpage.errors import DataError
from firstpage.types import Array, Floats, Ints

Node = tuple[int, float, int, int, float]
"""(feature, threshold, left, right, value); of a leaf the feature is -1."""
ZERO = float(np.float32(1e-35))  # LightGBM takes what is not farther from zero for zero
LEFT = 2  # of LightGBM's decision types: plain thresholds, missing values to the left
NOTHING = ("split_gain", "internal_value", "internal_weight", "internal_count")
DEEPEST = 300  # splits one below the other: files are written and read by recursion


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes from the root, 0, on: x <= threshold goes to the left; a leaf has the feature -1."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Tree:
        feature, threshold, left, right, value = zip(*nodes, strict=True)
        whole = (np.array(part, np.int64) for part in (feature, left, right))
        f, lo, hi = whole
        return cls(f, np.array(threshold, np.float64), lo, hi, np.array(value, np.float64))

    @classmethod
    def leaf(cls, value: float) -> Tree:
        return cls.of([(-1, 0.0, -1, -1, value)])

    def leaves(self, X: Array) -> Ints:
        """The node where each row ends."""
        at = np.zeros(len(X), np.int64)
        rows = np.arange(len(X))
        while len(rows):
            rows = rows[self.feature[at[rows]] >= 0]
            node = at[rows]
            goes = X[rows, self.feature[node]] <= self.threshold[node]
            at[rows] = np.where(goes, self.left[node], self.right[node])
        return at

    def depth(self) -> int:
        """Splits on the longest way."""
        found, now = 0, np.zeros(1, np.int64)
        while len(now := now[self.feature[now] >= 0]):
            found, now = found + 1, np.concatenate([self.left[now], self.right[now]])
        return found

    def pruned(self) -> Tree:
        """Without splits that send all numbers to one side."""
        nodes: list[Node] = []

        def add(at: int) -> int:
            while self.feature[at] >= 0 and np.isinf(self.threshold[at]):
                at = int(self.left[at] if self.threshold[at] > 0 else self.right[at])
            number = len(nodes)
            nodes.append((-1, 0.0, -1, -1, float(self.value[at])))
            if self.feature[at] >= 0:
                left, right = add(int(self.left[at])), add(int(self.right[at]))
                split = int(self.feature[at]), float(self.threshold[at])
                nodes[number] = (*split, left, right, 0.0)
            return number

        add(0)
        return Tree.of(nodes)


@dataclass(frozen=True, eq=False)
class Forest:
    """A sum of trees.

    single   features are rounded to float32 first and the leaves added in float32, as XGBoost does
    """

    trees: tuple[Tree, ...]
    single: bool = False

    @classmethod
    def of(cls, trees: Sequence[Tree], single: bool = False) -> Forest:
        """From trees; where there are none, of one that is 0 everywhere."""
        return cls(tuple(trees) or (Tree.leaf(0.0),), single)

    def scores(self, X: Array) -> Floats:
        rows = X.astype(np.float32) if self.single else np.asarray(X)
        rows = rows.astype(np.float64)  # comparisons in float64 are right for float32 too
        total: Array = np.zeros(len(rows), np.float32 if self.single else np.float64)
        for tree in self.trees:
            total += tree.value[tree.leaves(rows)].astype(total.dtype)
        return total.astype(np.float64)

    def sizes(self, X: Array) -> Floats:
        """The sum of the sizes of the leaves: what rounding is measured by."""
        total = np.zeros(len(X))
        for tree in self.trees:
            total += np.abs(tree.value[tree.leaves(np.asarray(X, np.float64))])
        return total

    @cached_property
    def _splits(self) -> dict[int, Floats]:
        """Different thresholds by feature."""
        feature = np.concatenate([tree.feature for tree in self.trees])
        threshold = np.concatenate([tree.threshold for tree in self.trees])
        order = np.argsort(feature, kind="stable")
        found, starts = np.unique(feature[order], return_index=True)
        parts = np.split(threshold[order], starts[1:])
        return {int(f): np.unique(p) for f, p in zip(found, parts, strict=True) if f >= 0}

    def used(self) -> list[int]:
        """The features that are split on."""
        return list(self._splits)

    def thresholds(self, feature: int) -> Floats:
        return self._splits.get(feature, np.empty(0))

    def with_thresholds(self, change: Callable[[Ints, Floats], Floats]) -> Forest:
        """With other thresholds: change(features, thresholds); splits that do nothing go."""
        found = []
        for tree in self.trees:
            split = tree.feature >= 0
            threshold = tree.threshold.copy()
            if split.any():
                threshold[split] = change(tree.feature[split], tree.threshold[split])
            found.append(replace(tree, threshold=threshold).pruned())
        return replace(self, trees=tuple(found))


def lightgbm_forest(text: str, source: str) -> Forest:
    """The trees of LightGBM's text; `source` names the model where they are more than that."""
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
    return Forest.of(trees)


def _children(numbers: Ints, inner: int) -> Ints:
    """Leaves, which LightGBM numbers -1, -2, .., follow the splits."""
    return np.where(numbers >= 0, numbers, inner + ~numbers)


def _snapped(threshold: Floats) -> Floats:
    """LightGBM reads features within ZERO of zero as zero; thresholds there mean the same."""
    near = np.abs(threshold) <= ZERO
    meant = np.where(threshold >= 0, ZERO, np.nextafter(-ZERO, -np.inf))
    return np.where(near, meant, threshold)


def xgboost_forest(text: str, source: str) -> Forest:
    """The trees of XGBoost's JSON; `source` names the model where they are more than that."""
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
    return Forest.of(trees, single=True)


def lightgbm_text(trees: Sequence[Tree], n_features: int) -> str:
    """The text that LightGBM would write; gains and counts, which nobody knows, are 0."""
    blocks = [f"Tree={number}\n{_block(tree)}\n\n\n" for number, tree in enumerate(trees)]
    head = [
        "tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
        f"max_feature_idx={n_features - 1}", "objective=regression",
        "feature_names=" + " ".join(f"Column_{i}" for i in range(n_features)),
        "feature_infos=" + " ".join(["[-inf:inf]"] * n_features),
        "tree_sizes=" + _joined(len(block) for block in blocks),
    ]  # fmt: skip
    tail = "end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n\n"
    return "\n".join(head) + "\n\n" + "".join(blocks) + tail + "pandas_categorical:null\n"


def _block(tree: Tree) -> str:
    leaf = tree.feature < 0
    inner = np.flatnonzero(~leaf)
    number = np.empty(len(leaf), np.int64)
    number[inner] = np.arange(len(inner))
    number[leaf] = ~np.arange(int(leaf.sum()))
    lines = [f"num_leaves={int(leaf.sum())}", "num_cat=0"]
    if len(inner):
        lines += [
            "split_feature=" + _joined(tree.feature[inner].tolist()),
            "threshold=" + _joined(tree.threshold[inner].tolist()),
            "decision_type=" + _joined([LEFT] * len(inner)),
            "left_child=" + _joined(number[tree.left[inner]].tolist()),
            "right_child=" + _joined(number[tree.right[inner]].tolist()),
            *(f"{name}=" + _joined([0] * len(inner)) for name in NOTHING),
        ]
    lines += [
        "leaf_value=" + _joined(tree.value[leaf].tolist()),
        "leaf_weight=" + _joined([0] * int(leaf.sum())),
        "leaf_count=" + _joined([0] * int(leaf.sum())),
        "is_linear=0",
        "shrinkage=1",
    ]
    return "\n".join(lines)


def _joined(values: Iterable[float]) -> str:
    return " ".join(repr(value) for value in values)
