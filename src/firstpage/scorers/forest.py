"""One representation for all decision trees, and the text formats of LightGBM and XGBoost."""

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
"""(feature, threshold, left, right, value); the feature of a leaf is -1."""
ZERO = float(np.float32(1e-35))  # LightGBM reads values of at most this magnitude as 0
DECISION_TYPE = 2  # LightGBM's code for a numerical split, missing values to the left
ZERO_FIELDS = ("split_gain", "internal_value", "internal_weight", "internal_count")
MAX_TREE_DEPTH = 300  # files are written and read recursively


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes of a decision tree; the root is node 0.

    A document whose feature is <= threshold goes to the left; the feature of a leaf is -1.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats

    @classmethod
    def from_nodes(cls, nodes: Iterable[Node]) -> Tree:
        """Create a tree from its nodes, the root first."""
        feature, threshold, left, right, value = zip(*nodes, strict=True)
        f, lo, hi = (np.array(column, np.int64) for column in (feature, left, right))
        return cls(f, np.array(threshold, np.float64), lo, hi, np.array(value, np.float64))

    @classmethod
    def leaf(cls, value: float) -> Tree:
        """Create a tree without a split."""
        return cls.from_nodes([(-1, 0.0, -1, -1, value)])

    def leaves(self, X: Array) -> Ints:
        """Return the leaf that each row reaches, as the number of its node."""
        at = np.zeros(len(X), np.int64)
        rows = np.arange(len(X))
        while len(rows):
            rows = rows[self.feature[at[rows]] >= 0]
            node = at[rows]
            goes_left = X[rows, self.feature[node]] <= self.threshold[node]
            at[rows] = np.where(goes_left, self.left[node], self.right[node])
        return at

    def depth(self) -> int:
        """Return the number of splits on the longest path from the root to a leaf."""
        depth, nodes = 0, np.zeros(1, np.int64)
        while len(nodes := nodes[self.feature[nodes] >= 0]):
            depth, nodes = depth + 1, np.concatenate([self.left[nodes], self.right[nodes]])
        return depth

    def pruned(self) -> Tree:
        """Return the tree without splits that send all numbers to one side."""
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
        return Tree.from_nodes(nodes)


@dataclass(frozen=True, eq=False)
class Forest:
    """A sum of trees.

    Attributes
    ----------
    trees : tuple of Tree
        The trees, in the order in which their leaves are summed.
    single : bool
        Single precision: features are rounded to float32 and leaves are summed in float32, as
        XGBoost does.
    """

    trees: tuple[Tree, ...]
    single: bool = False

    @classmethod
    def from_trees(cls, trees: Sequence[Tree], single: bool = False) -> Forest:
        """Create a forest; without trees, one whose scores are all 0."""
        return cls(tuple(trees) or (Tree.leaf(0.0),), single)

    def scores(self, X: Array) -> Floats:
        """Return one score per row."""
        rows = X.astype(np.float32) if self.single else np.asarray(X)
        rows = rows.astype(np.float64)  # comparisons in float64 are exact for float32 too
        total: Array = np.zeros(len(rows), np.float32 if self.single else np.float64)
        for tree in self.trees:
            total += tree.value[tree.leaves(rows)].astype(total.dtype)
        return total.astype(np.float64)

    def leaf_magnitudes(self, X: Array) -> Floats:
        """Return the sum of the absolute values of the leaves per row, the scale of rounding."""
        total = np.zeros(len(X))
        for tree in self.trees:
            total += np.abs(tree.value[tree.leaves(np.asarray(X, np.float64))])
        return total

    @cached_property
    def _splits(self) -> dict[int, Floats]:
        """The distinct thresholds by feature."""
        feature = np.concatenate([tree.feature for tree in self.trees])
        threshold = np.concatenate([tree.threshold for tree in self.trees])
        order = np.argsort(feature, kind="stable")
        features, starts = np.unique(feature[order], return_index=True)
        groups = np.split(threshold[order], starts[1:])
        return {int(f): np.unique(g) for f, g in zip(features, groups, strict=True) if f >= 0}

    def used_features(self) -> list[int]:
        """Return the features that are split on."""
        return list(self._splits)

    def thresholds(self, feature: int) -> Floats:
        """Return the distinct thresholds of a feature, ascending."""
        return self._splits.get(feature, np.empty(0))

    def with_thresholds(self, change: Callable[[Ints, Floats], Floats]) -> Forest:
        """Return the forest with the thresholds change(features, thresholds); splits that then send
        all numbers to one side are removed."""
        trees = []
        for tree in self.trees:
            split = tree.feature >= 0
            threshold = tree.threshold.copy()
            if split.any():
                threshold[split] = change(tree.feature[split], tree.threshold[split])
            trees.append(replace(tree, threshold=threshold).pruned())
        return replace(self, trees=tuple(trees))


def lightgbm_forest(text: str, source: str) -> Forest:
    """Parse LightGBM's text format; `source` names the model in errors."""
    head, *blocks = re.split(r"^Tree=\d+\n", text.partition("\nend of trees")[0], flags=re.M)
    factor = 1 / max(len(blocks), 1) if "\naverage_output\n" in head else 1.0
    trees = []
    for block in blocks:
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        value = np.array(fields["leaf_value"].split(), np.float64) * factor
        if fields.get("is_linear", "0").strip() != "0":
            raise DataError(f"{source} has trees with linear leaves, which cannot be exported.")
        feature = np.array(fields.get("split_feature", "").split(), np.int64)
        if not len(feature):
            trees.append(Tree.leaf(float(value[0])))
            continue
        kind = np.array(fields["decision_type"].split(), np.int64)
        if (kind & 1).any() or ((kind >> 2) & 3 == 1).any():
            raise DataError(
                f"{source} has splits on categories, or reads zeros as missing values; only "
                "numerical splits can be exported (or the unchanged trees, to 'lightgbm')."
            )
        threshold = _normalize_zeros(np.array(fields["threshold"].split(), np.float64))
        inner, leaves = len(feature), len(value)
        left, right = (
            _children(np.array(fields[f"{side}_child"].split(), np.int64), inner)
            for side in ("left", "right")
        )
        zeros, no_child = np.zeros(leaves), np.full(leaves, -1)
        trees.append(
            Tree(
                np.concatenate([feature, no_child]), np.concatenate([threshold, zeros]),
                np.concatenate([left, no_child]), np.concatenate([right, no_child]),
                np.concatenate([np.zeros(inner), value]),
            )
        )  # fmt: skip
    return Forest.from_trees(trees)


def _children(numbers: Ints, inner: int) -> Ints:
    """Return node numbers: leaves, which LightGBM numbers -1, -2, .., follow the splits."""
    return np.where(numbers >= 0, numbers, inner + ~numbers)


def _normalize_zeros(threshold: Floats) -> Floats:
    """Return equivalent thresholds for LightGBM's rule that features within ZERO of 0 are 0."""
    tiny = np.abs(threshold) <= ZERO
    equivalent = np.where(threshold >= 0, ZERO, np.nextafter(-ZERO, -np.inf))
    return np.where(tiny, equivalent, threshold)


def xgboost_forest(text: str, source: str) -> Forest:
    """Parse XGBoost's JSON format; `source` names the model in errors."""
    learner = json.loads(text)["learner"]
    booster = learner["gradient_booster"]
    if booster.get("name") != "gbtree":
        raise DataError(f"{source}: XGBoost's {booster.get('name')!r} is not a sum of trees.")
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
    return Forest.from_trees(trees, single=True)


def lightgbm_text(trees: Sequence[Tree], n_features: int) -> str:
    """Return the trees in LightGBM's text format; gains and counts, which are unknown, are 0."""
    blocks = [f"Tree={number}\n{_tree_block(tree)}\n\n\n" for number, tree in enumerate(trees)]
    head = [
        "tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
        f"max_feature_idx={n_features - 1}", "objective=regression",
        "feature_names=" + " ".join(f"Column_{i}" for i in range(n_features)),
        "feature_infos=" + " ".join(["[-inf:inf]"] * n_features),
        "tree_sizes=" + _joined(len(block) for block in blocks),
    ]  # fmt: skip
    tail = "end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n\n"
    return "\n".join(head) + "\n\n" + "".join(blocks) + tail + "pandas_categorical:null\n"


def _tree_block(tree: Tree) -> str:
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
            "decision_type=" + _joined([DECISION_TYPE] * len(inner)),
            "left_child=" + _joined(number[tree.left[inner]].tolist()),
            "right_child=" + _joined(number[tree.right[inner]].tolist()),
            *(f"{name}=" + _joined([0] * len(inner)) for name in ZERO_FIELDS),
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
