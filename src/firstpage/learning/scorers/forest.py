"""One representation for all decision trees, and the text formats of LightGBM and XGBoost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.core import Array, Bools, DataError, Floats, Ints

Node = tuple[int, float, int, int, float]
"""(feature, threshold, left, right, value); the feature of a leaf is -1."""
ZERO = float(np.float32(1e-35))  # LightGBM reads values of at most this magnitude as 0
DECISION_TYPE = 2  # LightGBM's code for a numerical split, missing values to the left
ZERO_FIELDS = ("split_gain", "internal_value", "internal_weight", "internal_count")
MAX_TREE_DEPTH = 300  # files are written and read recursively
MAX_CODE = float(2**31)  # from which on a number is not a category
MISSING_ZERO, MISSING_NAN = 1, 2  # LightGBM's codes of what a split reads as missing


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes of a decision tree; the root is node 0.

    A document whose feature is <= threshold goes to the left; the feature of a leaf is -1.  Nodes
    may share children.

    Attributes
    ----------
    feature, threshold, left, right, value : ndarray
        One entry per node.
    missing_left : ndarray of bool
        Whether NaN goes to the left; by default where 0 goes, as in trees that saw no NaN.
    subset : ndarray of int
        The index in `subsets` of a split on categories, else -1.
    subsets : tuple of ndarray
        The categories that go to the left, as ascending integers; all other numbers go right.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats
    missing_left: Bools = None  # type: ignore[assignment]
    subset: Ints = None  # type: ignore[assignment]
    subsets: tuple[Ints, ...] = ()

    def __post_init__(self) -> None:
        if self.missing_left is None:
            object.__setattr__(self, "missing_left", self.threshold >= 0)
        if self.subset is None:
            object.__setattr__(self, "subset", np.full(len(self.feature), -1))

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

    @cached_property
    def _members(self) -> Bools:
        """Whether a category, the column, is in a subset, the row; the last column is False."""
        width = max((int(subset[-1]) + 1 for subset in self.subsets if len(subset)), default=0)
        members = np.zeros((len(self.subsets), width + 1), bool)
        for row, subset in zip(members, self.subsets, strict=True):
            row[subset] = True
        return members

    def goes_left(self, node: Ints, x: Floats) -> Bools:
        """Return whether these nodes send these values to the left."""
        missing = np.isnan(x)
        left: Bools = np.where(missing, self.missing_left[node], x <= self.threshold[node])
        if not self.subsets:
            return left
        splits_categories = (self.subset[node] >= 0) & ~missing
        if splits_categories.any():
            x, subset = x[splits_categories], self.subset[node[splits_categories]]
            last = self._members.shape[1] - 1
            code = np.where((x > -1) & (x < MAX_CODE), x, last).astype(np.int64)  # toward 0
            left[splits_categories] = self._members[subset, np.minimum(code, last)]
        return left

    def leaves(self, X: Array) -> Ints:
        """Return the leaf that each row reaches, as the number of its node."""
        at = np.zeros(len(X), np.int64)
        rows = np.arange(len(X))
        while len(rows):
            rows = rows[self.feature[at[rows]] >= 0]
            node = at[rows]
            goes_left = self.goes_left(node, X[rows, self.feature[node]])
            at[rows] = np.where(goes_left, self.left[node], self.right[node])
        return at

    def depth(self) -> int:
        """Return the number of splits on the longest path from the root to a leaf."""
        depth, nodes = 0, np.zeros(1, np.int64)
        while len(nodes := nodes[self.feature[nodes] >= 0]):
            children = np.concatenate([self.left[nodes], self.right[nodes]])
            depth, nodes = depth + 1, np.unique(children)
        return depth

    def pruned(self, missing: bool) -> Tree:
        """Return the tree without splits that send all numbers to one side.

        With `missing`, NaN counts as a number.
        """
        order: list[int] = []
        number: dict[int, int] = {}
        children: list[tuple[int, int]] = []

        def add(at: int) -> int:
            while self.feature[at] >= 0 and np.isinf(self.threshold[at]):
                left = bool(self.threshold[at] > 0)
                if missing and left != self.missing_left[at]:
                    break
                at = int(self.left[at] if left else self.right[at])
            if at not in number:
                index = number[at] = len(order)
                order.append(at)
                children.append((-1, -1))
                if self.feature[at] >= 0:
                    children[index] = add(int(self.left[at])), add(int(self.right[at]))
            return number[at]

        add(0)
        left, right = np.array(children, np.int64).T
        return replace(
            self,
            feature=self.feature[order],
            threshold=self.threshold[order],
            left=left,
            right=right,
            value=self.value[order],
            missing_left=self.missing_left[order],
            subset=self.subset[order],
        )


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
    missing : bool
        Whether the training data had missing values of a feature that is split on.
    """

    trees: tuple[Tree, ...]
    single: bool = False
    missing: bool = False

    @classmethod
    def from_trees(
        cls, trees: Sequence[Tree], single: bool = False, missing: bool = False
    ) -> Forest:
        """Create a forest; without trees, one whose scores are all 0."""
        return cls(tuple(trees) or (Tree.leaf(0.0),), single, missing)

    def scores(self, X: Array) -> Floats:
        """Return one score per row."""
        return self.scores_and_magnitudes(X)[0]

    def scores_and_magnitudes(self, X: Array) -> tuple[Floats, Floats]:
        """Return one score per row, and the sum of the absolute values of its leaves.

        Rounding errors of the score are relative to that sum.
        """
        rows = X.astype(np.float32) if self.single else np.asarray(X)
        rows = rows.astype(np.float64)  # comparisons in float64 are exact for float32 too
        total: Array = np.zeros(len(rows), np.float32 if self.single else np.float64)
        magnitudes = np.zeros(len(rows))
        for tree in self.trees:
            values = tree.value[tree.leaves(rows)]
            total += values.astype(total.dtype)
            magnitudes += np.abs(values)
        return total.astype(np.float64), magnitudes

    @property
    def largest_score(self) -> float:
        """The sum of the largest absolute leaf of each tree, in the type of the scores."""
        largest = [np.abs(tree.value[tree.feature < 0]).max() for tree in self.trees]
        with np.errstate(over="ignore"):
            return float(np.sum(largest, dtype=np.float32 if self.single else np.float64))

    @cached_property
    def _splits(self) -> dict[int, Floats]:
        """The distinct thresholds by feature; none of features that hold categories."""
        feature = np.concatenate([tree.feature for tree in self.trees])
        threshold = np.concatenate([tree.threshold for tree in self.trees])
        numerical = np.concatenate([tree.subset for tree in self.trees]) < 0
        return {
            f: np.unique(threshold[(feature == f) & numerical])
            for f in np.unique(feature).tolist()
            if f >= 0
        }

    @cached_property
    def categories(self) -> dict[int, Ints]:
        """The categories in splits, by feature that is split by categories."""
        codes: dict[int, list[Ints]] = {}
        for tree in self.trees:
            for node in np.flatnonzero(tree.subset >= 0).tolist():
                subset = tree.subsets[tree.subset[node]]
                codes.setdefault(int(tree.feature[node]), []).append(subset)
        return {feature: np.unique(np.concatenate(known)) for feature, known in codes.items()}

    def used_features(self) -> list[int]:
        """Return the features that are split on."""
        return list(self._splits)

    def thresholds(self, feature: int) -> Floats:
        """Return the distinct thresholds of a feature, ascending."""
        return self._splits.get(feature, np.empty(0))

    def with_thresholds(self, change: Callable[[Ints, Floats], Floats]) -> Forest:
        """Return the forest with the thresholds change(features, thresholds); splits that then send
        all numbers to one side are removed."""
        feature, threshold, subset = (
            np.concatenate([getattr(tree, name) for tree in self.trees])
            for name in ("feature", "threshold", "subset")
        )
        split = (feature >= 0) & (subset < 0)
        if split.any():
            threshold[split] = change(feature[split], threshold[split])
        ends = np.cumsum([len(tree.feature) for tree in self.trees])
        trees = tuple(
            replace(tree, threshold=changed).pruned(self.missing)
            for tree, changed in zip(self.trees, np.split(threshold, ends[:-1]), strict=True)
        )
        return replace(self, trees=trees)

    def probes(self, rows: int, n_features: int, rng: np.random.Generator) -> Floats:
        """Return random rows with values at and around thresholds, categories and NaN."""
        X = rng.normal(0, 3, (rows, n_features))
        for feature in self.used_features():
            known = self.thresholds(feature)
            known = known[np.abs(known) < 3e38]
            if feature in self.categories:
                codes = self.categories[feature]
                X[:, feature] = rng.integers(-1, int(codes.max(initial=0)) + 3, rows)
            elif len(known):
                drawn = rng.choice(known, rows)
                X[:, feature] = drawn + rng.choice([0, 0, 1, -1, 0.5, -0.5], rows) * np.abs(drawn)
        return X


def lightgbm_forest(text: str, source: str) -> Forest:
    """Parse LightGBM's text format; `source` names the model in errors."""
    head, *blocks = re.split(r"^Tree=\d+\n", text.partition("\nend of trees")[0], flags=re.M)
    factor = 1 / max(len(blocks), 1) if "\naverage_output\n" in head else 1.0
    trees, missing = [], False
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
        missing |= bool(((kind & 1 == 0) & (kind >> 2 & 3 == MISSING_NAN)).any())
        trees.append(_lightgbm_tree(fields, feature, kind, value))
    return Forest.from_trees(trees, missing=missing)


def _lightgbm_tree(fields: dict[str, str], feature: Ints, kind: Ints, value: Floats) -> Tree:
    """Return a tree with at least one split from the fields of LightGBM's text."""
    threshold = np.array(fields["threshold"].split(), np.float64)
    categorical = kind & 1 == 1
    subset = np.full(len(feature), -1)
    subset[categorical] = threshold[categorical].astype(np.int64)
    threshold = np.where(categorical, 0.0, _normalize_zeros(threshold))
    reads = np.where(categorical, 0, kind >> 2 & 3)
    default_left = kind & 2 > 0
    missing_left = np.where(reads == 0, threshold >= 0, default_left) & ~categorical
    inner, leaves = len(feature), len(value)
    left, right = (
        _children(np.array(fields[f"{side}_child"].split(), np.int64), inner)
        for side in ("left", "right")
    )
    zeros, no_child = np.zeros(leaves), np.full(leaves, -1)
    tree = Tree(
        np.concatenate([feature, no_child]),
        np.concatenate([threshold, zeros]),
        np.concatenate([left, no_child]),
        np.concatenate([right, no_child]),
        np.concatenate([np.zeros(inner), value]),
        np.concatenate([missing_left, zeros > 0]),
        np.concatenate([subset, no_child]),
        _subsets(fields),
    )
    # Zeros read as missing go to the default side.  Most thresholds send them there anyway.
    moved = np.flatnonzero((reads == MISSING_ZERO) & ((threshold >= 0) != default_left))
    return _with_zeros_moved(tree, moved) if len(moved) else tree


def _subsets(fields: dict[str, str]) -> tuple[Ints, ...]:
    """Return the categories of each bitset of LightGBM, of 32 bits per word."""
    if int(fields.get("num_cat", "0")) == 0:
        return ()
    ends = np.array(fields["cat_boundaries"].split(), np.int64)
    words = np.array(fields["cat_threshold"].split(), np.uint32)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")  # little-endian machines
    return tuple(
        np.flatnonzero(bits[32 * lo : 32 * hi])
        for lo, hi in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    )


def _with_zeros_moved(tree: Tree, moved: Ints) -> Tree:
    """Return the tree in which some splits send 0 and NaN to the side that `missing_left` names.

    Each of these splits becomes a chain of three, which share their children.
    """
    columns: dict[str, list[Any]] = {
        name: list(getattr(tree, name))
        for name in ("feature", "threshold", "left", "right", "value", "missing_left", "subset")
    }
    below, size = float(np.nextafter(-ZERO, -np.inf)), len(tree.feature)
    for node in moved.tolist():
        feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
        left, right = int(tree.left[node]), int(tree.right[node])
        zero_left = bool(tree.missing_left[node])
        if zero_left:  # threshold < 0: left up to it, then right, left for 0, right
            chain = [(threshold, left, size), (below, right, size + 1), (ZERO, left, right)]
        else:  # threshold > 0: left below 0, right for 0, then left up to the threshold
            chain = [(below, left, size), (ZERO, right, size + 1), (threshold, left, right)]
        for step, (cut, at_most, above) in enumerate(chain):
            last_zero = (step == 2) if zero_left else (step == 1)
            entry = (feature, cut, at_most, above, 0.0, last_zero, -1)
            for (_, column), item in zip(columns.items(), entry, strict=True):
                if step == 0:
                    column[node] = item
                else:
                    column.append(item)
        size += 2
    arrays: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
    return replace(tree, **arrays)


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
        left, right = (np.array(tree[f"{s}_children"], np.int64) for s in ("left", "right"))
        number = np.array(tree["split_conditions"], np.float32)
        leaf = left < 0
        # x < c is x <= the float32 below c
        below = np.nextafter(number, np.float32(-np.inf)).astype(np.float64)
        feature = np.where(leaf, -1, np.array(tree["split_indices"], np.int64))
        value = np.where(leaf, number.astype(np.float64), 0.0)
        default_left = np.array(tree["default_left"], bool)
        categorical = np.array(tree.get("split_type", np.zeros(len(leaf))), bool) & ~leaf
        subset = np.full(len(leaf), -1)
        subsets: list[Ints] = []
        for node, start, size in zip(
            tree.get("categories_nodes", []),
            tree.get("categories_segments", []),
            tree.get("categories_sizes", []),
            strict=True,
        ):
            subset[node] = len(subsets)
            subsets.append(np.unique(np.array(tree["categories"][start : start + size], np.int64)))
        trees.append(
            Tree(
                feature,
                np.where(leaf | categorical, 0.0, below),
                # XGBoost sends the categories of a split to the right
                np.where(categorical, right, left),
                np.where(categorical, left, right),
                value,
                np.where(categorical, ~default_left, default_left),
                subset,
                tuple(subsets),
            )
        )
    return Forest.from_trees(trees, single=True)


def lightgbm_text(trees: Sequence[Tree], n_features: int) -> str:
    """Return the trees in LightGBM's text format; gains and counts, which are unknown, are 0."""
    blocks = [f"Tree={number}\n{_tree_block(tree)}\n\n\n" for number, tree in enumerate(trees)]
    head = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={n_features - 1}",
        "objective=regression",
        "feature_names=" + " ".join(f"Column_{i}" for i in range(n_features)),
        "feature_infos=" + " ".join(["[-inf:inf]"] * n_features),
        "tree_sizes=" + _joined(len(block) for block in blocks),
    ]
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
