"""A measure for each kind of queries, drawn to that of all by as much as its pairs are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstpage.data.preferences.preferences import Preferences, factorize
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.pairs import Pairs
from firstpage.dcglearn.solver import Optimum
from firstpage.dcglearn.validation import Recipe, agreement
from firstpage.dcglearn.weights import factors, utility_of
from firstpage.types import Array, Floats, Ints


@dataclass(frozen=True, eq=False)
class Segment:
    """One kind of queries; accuracies are on pairs held out, NaN where there were too few."""

    name: str
    pairs: int
    utility: Utility
    accuracy: float
    accuracy_pooled: float


def learn_segments(
    given: Preferences, pairs: Pairs, recipe: Recipe, c: float, pooling: float,
    pooled: Optimum, parts: Sequence[tuple[Ints, Ints]],
) -> dict[str, Segment]:  # fmt: skip
    """Fit every segment that the preferences name; `parts` are folds to hold out.

    Pairs without a name are of no segment, and count for all only.
    """
    if given.segment is None:
        return {}
    names = list(given.segment[pairs.rows])
    number = factorize(names, len(names))
    drawn = _Drawn(recipe, c, pooling)
    own, of_all = _held_out(drawn, pairs, number, parts)
    found = {}
    for at, name in enumerate(dict.fromkeys(names)):
        if not name:
            continue
        mine = pairs[number == at]
        table = drawn.fit(mine, pooled).table.reshape(recipe.cone.places, -1)
        about = {
            "segment": name, "pairs": len(mine), "C": c, "pooling": pooling,
            "rank_one_share": factors(table).share,
        }  # fmt: skip
        utility = utility_of(given.grades, table, about)
        found[name] = Segment(name, len(mine), utility, float(own[at]), float(of_all[at]))
    return found


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Fits that are drawn to the weights of all."""

    recipe: Recipe
    c: float
    pooling: float

    def fit(self, pairs: Pairs, pooled: Optimum) -> Optimum:
        drawn = replace(self.recipe, center=self.pooling * pooled.weights)
        return drawn.fit(drawn.sums(pairs), self.c, pooled)


def _held_out(
    drawn: _Drawn, pairs: Pairs, number: Array, parts: Sequence[tuple[Ints, Ints]]
) -> tuple[Floats, Floats]:
    """Accuracy on held-out pairs, by segment: of its own measure, and of that of all."""
    kinds = int(number.max()) + 1
    right, every = np.zeros((2, kinds)), np.zeros(kinds)
    for train, held in parts:
        pooled = drawn.recipe.fit(drawn.recipe.sums(pairs[train]), drawn.c)
        for kind in range(kinds):
            mine, test = (pairs[rows[number[rows] == kind]] for rows in (train, held))
            if not (test.kind > 0).any():
                continue
            own = drawn.fit(mine, pooled) if len(mine) else pooled
            for at, optimum in enumerate((own, pooled)):
                told = agreement(test, optimum.table)
                right[at, kind] += told.accuracy * told.preferences
            every[kind] += told.preferences
    shares = np.divide(right, every, out=np.full((2, kinds), np.nan), where=every > 0)
    return shares[0], shares[1]
