"""Trees scored by a kernel of ours: the libraries' numbers, in a fraction of their time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.errors import DataError
from firstpage.kernels.scoring import forest_scores
from firstpage.scorers.forest import Forest
from firstpage.scorers.scorer import Scoring
from firstpage.types import Array, Floats, Ints

DEEP = 40  # splits one below the other up to which walking all rows to the end is no waste
PROBES = 256


@dataclass(frozen=True, eq=False)
class Flat:
    """A forest in flat arrays; features are finite numbers."""

    feature: Ints
    threshold: Floats
    child: Ints
    value: Array
    roots: Ints
    depths: Ints
    single: bool

    @property
    def steps(self) -> int:
        """Of one row."""
        return int(self.depths.sum())

    def predict(self, X: Array) -> Floats:
        rows = X
        if self.single:
            with np.errstate(over="ignore"):  # too great for float32 is greater than any threshold
                rows = np.ascontiguousarray(X, np.float32)
        out = np.zeros(len(X), self.value.dtype)
        forest_scores(
            rows, self.feature, self.threshold, self.child, self.value, self.roots, self.depths,
            out,
        )  # fmt: skip
        return out.astype(np.float64)


def flat_of(scoring: Scoring) -> Flat | None:
    """The model's trees, if they give the library's own scores to the last bit; else None."""
    try:
        forest = scoring.forest("model")
    except (DataError, KeyError, ValueError):  # trees that are more than thresholds and leaves
        return None
    depths = [tree.depth() for tree in forest.trees]
    if max(depths) > DEEP:
        return None
    found = _flat(forest, depths)
    rng = np.random.default_rng(0)
    for kind in (np.float32, np.float64):
        X = _probes(forest, scoring.n_features, rng).astype(kind)
        if not np.array_equal(found.predict(X), scoring.predict(X)):
            return None
    return found


def _flat(forest: Forest, depths: list[int]) -> Flat:
    sizes = [len(tree.feature) for tree in forest.trees]
    roots = offsets_from_lengths(sizes)[:-1]
    feature, threshold, left, right, value = (
        np.concatenate([getattr(tree, name) for tree in forest.trees])
        for name in ("feature", "threshold", "left", "right", "value")
    )
    leaf, own, root = feature < 0, np.arange(len(feature)), np.repeat(roots, sizes)
    sides = [np.where(leaf, own, side + root) for side in (left, right)]
    return Flat(
        np.where(leaf, 0, feature), threshold, np.column_stack(sides).ravel(),
        value.astype(np.float32 if forest.single else np.float64), roots,
        np.array(depths, np.int64), forest.single,
    )  # fmt: skip


def _probes(forest: Forest, width: int, rng: np.random.Generator) -> Floats:
    """Numbers at thresholds, and on both sides of them."""
    X = rng.normal(0, 3, (PROBES, width))
    for feature in forest.used_features():
        known = forest.thresholds(feature)
        known = known[np.abs(known) < 3e38]
        if len(known):
            near = rng.choice(known, PROBES)
            X[:, feature] = near + rng.choice([0, 0, 1, -1, 0.5, -0.5], PROBES) * np.abs(near)
    return X
