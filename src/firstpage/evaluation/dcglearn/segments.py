"""A measure per segment of queries, shrunk toward that of all pairs the more, the fewer pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstpage.core import Array, Floats, Ints
from firstpage.data.preferences import Preferences, Utility, factorize
from firstpage.evaluation.dcglearn.pairs import Pairs
from firstpage.evaluation.dcglearn.solver import Optimum
from firstpage.evaluation.dcglearn.validation import LearningSpec, preference_agreement
from firstpage.evaluation.dcglearn.weights import rank_one_factors, utility_from_weights


@dataclass(frozen=True, eq=False)
class Segment:
    """The measure of one segment of queries.

    Attributes
    ----------
    name : str
        Name of the segment.
    pairs : int
        Pairs of the segment.
    utility : Utility
        Its measure.
    accuracy : float
        Accuracy of its measure on held-out pairs; NaN where there were too few.
    accuracy_pooled : float
        Accuracy of the measure of all pairs on the same held-out pairs.
    """

    name: str
    pairs: int
    utility: Utility
    accuracy: float
    accuracy_pooled: float


def learn_segments(
    preferences: Preferences,
    pairs: Pairs,
    spec: LearningSpec,
    c: float,
    pooling: float,
    pooled: Optimum,
    splits: Sequence[tuple[Ints, Ints]],
) -> dict[str, Segment]:
    """Fit every named segment; `splits` are the folds of cross-validation.

    Pairs without a segment name count for the pooled measure only.
    """
    if preferences.segment is None:
        return {}
    names = list(preferences.segment[pairs.rows])
    number = factorize(names, len(names))
    shrinkage = _Shrinkage(spec, c, pooling)
    own_accuracy, pooled_accuracy = _cross_validate(shrinkage, pairs, number, splits)
    segments = {}
    for index, name in enumerate(dict.fromkeys(names)):
        if not name:
            continue
        members = pairs[number == index]
        table = shrinkage.fit(members, pooled).table.reshape(spec.cone.positions, -1)
        about = {
            "segment": name, "pairs": len(members), "C": c, "pooling": pooling,
            "rank_one_fraction": rank_one_factors(table).rank_one_fraction,
        }  # fmt: skip
        utility = utility_from_weights(preferences.grades, table, about)
        segments[name] = Segment(
            name, len(members), utility, float(own_accuracy[index]), float(pooled_accuracy[index])
        )
    return segments


@dataclass(frozen=True, eq=False)
class _Shrinkage:
    """Fits whose penalty shrinks toward the pooled weights."""

    spec: LearningSpec
    c: float
    pooling: float

    def fit(self, pairs: Pairs, pooled: Optimum) -> Optimum:
        spec = replace(self.spec, center=self.pooling * pooled.weights)
        return spec.fit(spec.sums(pairs), self.c, pooled)


def _cross_validate(
    shrinkage: _Shrinkage, pairs: Pairs, number: Array, splits: Sequence[tuple[Ints, Ints]]
) -> tuple[Floats, Floats]:
    """Return the held-out accuracy per segment of its own measure and of the pooled one."""
    count = int(number.max()) + 1
    correct, total = np.zeros((2, count)), np.zeros(count)
    for train, held_out in splits:
        pooled = shrinkage.spec.fit(shrinkage.spec.sums(pairs[train]), shrinkage.c)
        for segment in range(count):
            members, test = (pairs[rows[number[rows] == segment]] for rows in (train, held_out))
            if not (test.kind > 0).any():
                continue
            own = shrinkage.fit(members, pooled) if len(members) else pooled
            for row, optimum in enumerate((own, pooled)):
                agreement = preference_agreement(test, optimum.table)
                correct[row, segment] += agreement.accuracy * agreement.preferences
            total[segment] += agreement.preferences
    accuracies = np.divide(correct, total, out=np.full((2, count), np.nan), where=total > 0)
    return accuracies[0], accuracies[1]
