"""Trees as a model of LightGBM, which scores them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from firstpage.exporting.forest import Tree

LEFT = 2  # of decision types: plain thresholds, missing values to the left
NOTHING = ("split_gain", "internal_value", "internal_weight", "internal_count")


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


def _joined(values: Iterable[Any]) -> str:
    return " ".join(repr(value) for value in values)
