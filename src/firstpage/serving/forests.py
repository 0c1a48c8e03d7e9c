"""Tree ensembles scored by our kernel: equal to the scores of the libraries, and faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import Array, Bytes, DataError, Floats, Ints, Words
from firstpage.core.kernels import forest_scores, forest_scores_missing
from firstpage.data import offsets_from_lengths
from firstpage.learning.scorers import Forest, Scoring

MAX_DEPTH = 40  # of a tree; the kernel walks every row to this depth, which deep trees make slow
N_PROBES = 256  # rows on which the kernel is compared with the library
NODES = ("feature", "threshold", "child", "value", "roots", "depths")
MISSING = ("missing_right", "subset", "starts", "bits")  # what else missing values need


@dataclass(frozen=True, eq=False)
class FlatForest:
    """A forest as flat arrays; features may be missing (NaN) or categories."""

    feature: Ints
    threshold: Floats
    child: Ints
    value: Array
    roots: Ints
    depths: Ints
    single: bool
    missing_right: Bytes
    subset: Ints
    starts: Ints
    bits: Words
    largest_score: float

    @property
    def steps(self) -> int:
        """Number of splits that one row passes."""
        return int(self.depths.sum())

    def predict(self, X: Array) -> Floats:
        rows = X
        if self.single:
            with np.errstate(over="ignore"):  # a value beyond float32 is above every threshold
                rows = np.ascontiguousarray(X, np.float32)
        out = np.zeros(len(X), self.value.dtype)
        nodes: dict[str, Any] = {name: getattr(self, name) for name in NODES}
        if len(self.bits) or np.isnan(rows).any():
            nodes |= {name: getattr(self, name) for name in MISSING}
            forest_scores_missing(X=rows, **nodes, out=out)
        else:
            forest_scores(X=rows, **nodes, out=out)
        return out.astype(np.float64)


def flat_forest(scoring: Scoring) -> FlatForest | None:
    """Return the trees of a model as flat arrays, or None if the scores would not be equal."""
    try:
        forest = scoring.forest("model")
    except (DataError, KeyError, ValueError):  # trees with more than thresholds and leaves
        return None
    depths = [tree.depth() for tree in forest.trees]
    if max(depths) > MAX_DEPTH:
        return None
    flat = _flatten(forest, depths)
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        X = forest.probes(N_PROBES, scoring.n_features, rng).astype(dtype)
        some_missing = np.where(rng.random(X.shape) < 0.2, dtype(np.nan), X)
        for rows in (X, some_missing):
            if not np.array_equal(flat.predict(rows), scoring.predict(rows)):
                return None
    return flat


def _flatten(forest: Forest, depths: list[int]) -> FlatForest:
    sizes = [len(tree.feature) for tree in forest.trees]
    roots = offsets_from_lengths(sizes)[:-1]
    names = ("feature", "threshold", "left", "right", "value", "missing_left", "subset")
    feature, threshold, left, right, value, missing_left, subset = (
        np.concatenate([getattr(tree, name) for tree in forest.trees]) for name in names
    )
    is_leaf, node, root = feature < 0, np.arange(len(feature)), np.repeat(roots, sizes)
    children = [np.where(is_leaf, node, child + root) for child in (left, right)]
    subsets = [codes for tree in forest.trees for codes in tree.subsets]
    firsts = offsets_from_lengths([len(tree.subsets) for tree in forest.trees])[:-1]
    starts = offsets_from_lengths([int(codes.max(initial=-1)) // 64 + 1 for codes in subsets])
    bits = np.zeros(64 * int(starts[-1]), np.uint8)
    for start, codes in zip(starts.tolist(), subsets, strict=False):
        bits[64 * start + codes] = 1
    return FlatForest(
        np.where(is_leaf, 0, feature),
        threshold,
        np.column_stack(children).ravel(),
        value.astype(np.float32 if forest.single else np.float64),
        roots,
        np.array(depths, np.int64),
        forest.single,
        (~missing_left).astype(np.uint8),
        np.where(subset < 0, -1, subset + np.repeat(firsts, sizes)),
        starts,
        np.packbits(bits, bitorder="little").view(np.uint64),
        forest.largest_score,
    )
