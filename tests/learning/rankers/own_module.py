"""Losses and rankers of a user's own, as a module that texts can name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import firstpage as fp
from firstpage.core.types import Floats

ABSENT = 3


@dataclass(frozen=True)
class LabelSquares(fp.extend.Loss):
    """Half the squared difference of score and label, summed over the documents of a query."""

    scale: float = 1.0

    def value_grad(
        self, scores: Floats, truth: fp.Truth, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        weight = np.ones(len(scores)) if weights is None else weights
        error = scores - self.scale * truth.labels
        return np.add.reduceat(weight * error**2, truth.offsets[:-1]) / 2, weight * error


def label_squares(scores: Floats, labels: Floats) -> tuple[float, Floats]:
    """Return the same loss of one query."""
    return float(((scores - labels) ** 2).sum() / 2), scores - labels


@dataclass(eq=False, repr=False)
class SquaresRanker(fp.LossRanker):
    """A ranker of the user's own."""

    loss: object = "tests.learning.rankers.own_module:LabelSquares(scale=2.0)"
