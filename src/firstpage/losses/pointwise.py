"""Squared error: regression on the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.data.truth import Truth
from firstpage.kernels.losses import listwise as kernel
from firstpage.losses.levels import query_sums
from firstpage.losses.listwise import relevance
from firstpage.losses.loss import Loss, Run, Target, Traits, safe_inverse
from firstpage.losses.terms import Term
from firstpage.types import Floats, Ints


@dataclass(frozen=True)
class SquaredError(Loss):
    """Half the squared difference of score and label; its mean over the query's documents.

    With `k`, labels are the top-k map k, k-1, .. 1, 0, .. 0.  `average=False` sums instead.
    """

    k: int | None = None
    average: bool = True
    traits: ClassVar[Traits] = Traits(quadratic=True)

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        weight = np.ones(len(truth.labels)) if weights is None else weights.astype(np.float64)
        factor = (
            safe_inverse(query_sums(weight, truth.offsets)) if self.average else np.ones(len(truth))
        )
        return _SquaredError(relevance(truth, weights, self.k), weight, truth.offsets, factor)


@dataclass(frozen=True, eq=False)
class _SquaredError:
    labels: Floats
    weight: Floats
    offsets: Ints
    factor: Floats

    def stiffness(self) -> Floats:
        return self.factor * query_sums(self.weight, self.offsets)

    def terms(self) -> list[Term]:
        return [Term("squared", {"weight": self.weight, "label": self.labels}, self.factor)]

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        a, b = int(self.offsets[lo]), int(self.offsets[hi])
        return kernel.squared_error.bind(
            scores, self.labels[a:b], self.weight[a:b], self.offsets[lo : hi + 1],
            self.factor[lo:hi], values, grad,
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        a, b = int(self.offsets[lo]), int(self.offsets[hi])
        counts = np.diff(self.offsets[lo : hi + 1])
        curve = self.weight[a:b] * np.repeat(self.factor[lo:hi], counts)
        return lambda: out.__setitem__(slice(None), curve)
