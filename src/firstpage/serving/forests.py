"""Tree ensembles scored by our kernel: equal to the scores of the libraries, and faster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.errors import DataError
from firstpage.kernels.scoring import forest_scores
from firstpage.scorers.forest import Forest
from firstpage.scorers.scorer import Scoring
from firstpage.types import Array, Floats, Ints

MAX_DEPTH = 40  # of a tree; the kernel walks every row to this depth, which deep trees make slow
N_PROBES = 256  # rows on which the kernel is compared with the library


@dataclass(frozen=True, eq=False)
class FlatForest:
    """A forest as flat arrays; the features must be finite."""

    feature: Ints
    threshold: Floats
    child: Ints
    value: Array
    roots: Ints
    depths: Ints
    single: bool

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
        forest_scores(
            rows, self.feature, self.threshold, self.child, self.value, self.roots, self.depths,
            out,
        )  # fmt: skip
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
        X = _probes(forest, scoring.n_features, rng).astype(dtype)
        if not np.array_equal(flat.predict(X), scoring.predict(X)):
            return None
    return flat


def _flatten(forest: Forest, depths: list[int]) -> FlatForest:
    sizes = [len(tree.feature) for tree in forest.trees]
    roots = offsets_from_lengths(sizes)[:-1]
    feature, threshold, left, right, value = (
        np.concatenate([getattr(tree, name) for tree in forest.trees])
        for name in ("feature", "threshold", "left", "right", "value")
    )
    is_leaf, node, root = feature < 0, np.arange(len(feature)), np.repeat(roots, sizes)
    children = [np.where(is_leaf, node, child + root) for child in (left, right)]
    return FlatForest(
        np.where(is_leaf, 0, feature), threshold, np.column_stack(children).ravel(),
        value.astype(np.float32 if forest.single else np.float64), roots,
        np.array(depths, np.int64), forest.single,
    )  # fmt: skip


def _probes(forest: Forest, width: int, rng: np.random.Generator) -> Floats:
    """Return random rows with values at thresholds and on both sides of them."""
    X = rng.normal(0, 3, (N_PROBES, width))
    for feature in forest.used_features():
        thresholds = forest.thresholds(feature)
        thresholds = thresholds[np.abs(thresholds) < 3e38]
        if len(thresholds):
            drawn = rng.choice(thresholds, N_PROBES)
            X[:, feature] = drawn + rng.choice([0, 0, 1, -1, 0.5, -0.5], N_PROBES) * np.abs(drawn)
    return X
