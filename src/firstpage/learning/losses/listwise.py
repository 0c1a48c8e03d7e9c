"""Listwise losses: Plackett-Luce (ListMLE), cross entropy (ListNet), cosine, squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

import numpy as np

from firstpage.core import BoundKernel, DataError, Floats, Ints
from firstpage.core.kernels.losses import listwise as kernel
from firstpage.data import Truth
from firstpage.learning.losses.base import Loss, LossTarget, LossTerm, Traits, safe_inverse
from firstpage.learning.losses.levels import (
    LabelLevels,
    label_levels,
    level_arrays,
    query_sums,
    top_k_labels,
)


@dataclass(frozen=True)
class PlackettLuce(Loss):
    """Negative log-likelihood of the true order under the Plackett-Luce model, that of ListMLE.

    The document at each rank is chosen among all documents not yet ranked, with a probability
    proportional to exp(score).  The order is read as deep as the truth decides it: a full order
    gives ListMLE, a top-k truth gives top-k ListMLE.  Equal labels compete for their ranks
    together; the lowest label, which is preferred to nothing, adds nothing.  O(n) per query.

    Parameters
    ----------
    k : int, optional
        Read only the first k ranks.
    average : bool, default False
        Take the mean over the ranks instead of their sum.

    References
    ----------
    Xia, Liu, Wang, Zhang and Li (2008), Listwise approach to learning to rank: theory and
    algorithm.  Xia, Liu and Li (2009), Statistical consistency of top-k ranking.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> values, _ = fp.extend.loss("PlackettLuce", k=1).value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(3))  # log 3: the first of three documents
    1.099
    """

    k: int | None = None
    average: bool = False

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        levels = label_levels(truth, weights, self.k)
        upper = np.where(levels.is_lowest, 0.0, levels.top_probability)
        if self.average:
            ranks = levels.per_query(upper * levels.total)
            upper = upper * np.repeat(safe_inverse(ranks), levels.sizes)
        return _PlackettLuceTarget(levels, upper, upper * levels.total)


@dataclass(frozen=True, eq=False)
class _PlackettLuceTarget(LossTarget):
    levels: LabelLevels
    upper: Floats  # coefficient of the scores of each level
    mass: Floats  # weight of the logarithm at each level

    def hessian_scale(self) -> Floats:
        return self.levels.per_query(self.mass)

    def terms(self) -> list[LossTerm]:
        levels = self.levels
        weight, coefficient = levels.by_row(levels.weight), levels.per_document(self.upper)
        columns = {
            "weight": weight,
            "coefficient": coefficient * weight,
            "mass": levels.at_starts(self.mass),
        }
        return [LossTerm("plackett_luce", columns, np.ones(len(levels.offsets) - 1))]

    def _workspace(self, lo: int, hi: int) -> _ListWorkspace:
        rows = int(self.levels.offsets[hi] - self.levels.offsets[lo])
        most_levels = int(self.levels.sizes[lo:hi].max(initial=1))
        return {"z": np.empty(rows), "logs": np.empty(most_levels)}

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        return kernel.plackett_luce.bind(
            scores,
            placed=self.upper,
            mass=self.mass,
            values=values,
            grad=grad,
            **level_arrays(self.levels, lo, hi),
            **self._workspace(lo, hi),
        )

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return kernel.plackett_luce_curvature.bind(
            scores,
            mass=self.mass,
            out=out,
            **level_arrays(self.levels, lo, hi),
            **self._workspace(lo, hi),
        )


class _ListWorkspace(TypedDict):
    z: Floats
    logs: Floats


def relevance(truth: Truth, weights: Floats | None, k: int | None) -> Floats:
    """Return the numbers that ListNet and RankCosine compare scores with: the labels, or the top-k
    labels where k is not None."""
    return truth.labels if k is None else top_k_labels(truth, weights, k)


@dataclass(frozen=True)
class SoftmaxCrossEntropy(Loss):
    """Cross entropy of softmax distributions of labels and scores, ListNet's top-one form.

    Minus the sum over documents of softmax(labels / temperature) * log softmax(scores).  O(n) per
    query.

    Parameters
    ----------
    k : int, optional
        Replace the labels by the top-k labels k, k-1, .., 1, 0, .., 0 of the truth.
    temperature : float, default 1.0
        The number by which labels are divided; above 0.

    Raises
    ------
    DataError
        If `temperature` is not above 0.

    References
    ----------
    Cao, Qin, Liu, Tsai and Li (2007), Learning to rank: from pairwise approach to listwise
    approach.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> values, _ = fp.extend.loss("SoftmaxCrossEntropy").value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(3))  # log 3
    1.099
    """

    k: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise DataError(f"temperature must be above 0; got {self.temperature}.")

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        psi = relevance(truth, weights, self.k) / self.temperature
        weight = np.ones(len(psi)) if weights is None else weights.astype(np.float64)
        return TopOneTarget(psi, weight, truth.offsets, np.ones(len(truth)))


class _ListTarget(LossTarget):
    """One number per document that scores are compared with, and a factor per query."""

    def __init__(self, target: Floats, weight: Floats, offsets: Ints, factor: Floats) -> None:
        self.target, self.weight, self.offsets, self.factor = target, weight, offsets, factor

    def _slice(self, lo: int, hi: int) -> tuple[Floats, Floats, Ints, Floats]:
        """Return the target, the weights, the offsets and the factors of the queries lo:hi."""
        a, b = int(self.offsets[lo]), int(self.offsets[hi])
        return self.target[a:b], self.weight[a:b], self.offsets[lo : hi + 1], self.factor[lo:hi]


class TopOneTarget(_ListTarget):
    """Softmax cross entropy toward softmax(psi), over documents of positive weight."""

    def __init__(self, psi: Floats, weight: Floats, offsets: Ints, factor: Floats) -> None:
        super().__init__(np.empty(len(psi)), weight, offsets, factor)
        kernel.softmax(psi, weight, offsets, self.target)

    def hessian_scale(self) -> Floats:
        return self.factor

    def terms(self) -> list[LossTerm]:
        columns = {"weight": self.weight, "target": self.target}
        return [LossTerm("softmax", columns, self.factor)]

    def entropy(self) -> Floats:
        """Return the least value that scores can reach, per query (before the factor)."""
        target = self.target
        per_copy = np.divide(target, self.weight, out=np.ones_like(target), where=target > 0)
        return query_sums(-target * np.log(per_copy), self.offsets)

    def at_zero(self) -> Floats:
        """Return the value per query where all scores are equal (before the factor)."""
        total = query_sums(self.weight, self.offsets)
        return np.log(total, out=np.zeros_like(total), where=total > 0)

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        target, weight, offsets, factor = self._slice(lo, hi)
        return kernel.softmax_cross_entropy.bind(
            scores, target, weight, offsets, factor, values, grad
        )

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        _, weight, offsets, factor = self._slice(lo, hi)
        return kernel.softmax_curvature.bind(scores, weight, offsets, factor, out)


@dataclass(frozen=True)
class Cosine(Loss):
    """Cosine distance of scores and labels, the loss of RankCosine.

    (1 - cosine(scores, labels)) / 2, between 0 and 1; it does not depend on the scale of the
    scores.  It is not convex.  Adding a constant to all scores changes it, so that features should
    be centered in each query (``normalize="standard"``).

    Parameters
    ----------
    k : int, optional
        Replace the labels by the top-k labels k, k-1, .., 1, 0, .., 0 of the truth.
    floor : float, default 1e-6
        The least length of a vector of scores; shorter ones are divided by this, since the cosine
        is undefined where all scores are 0.

    References
    ----------
    Qin, Zhang, Tsai, Wang, Liu and Li (2008), Query-level loss functions for information retrieval.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> values, _ = fp.extend.loss("Cosine").value_grad(np.array([-4.0, -2.0, 0.0]), data.truth)
    >>> float(values[0].round(3))  # the opposite direction
    1.0
    """

    k: int | None = None
    floor: float = 1e-6
    traits: ClassVar[Traits] = Traits(convex=False)

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        psi = relevance(truth, weights, self.k)
        weight = np.ones(len(psi)) if weights is None else weights.astype(np.float64)
        lengths = np.diff(truth.offsets)
        norm = np.sqrt(query_sums(weight * psi**2, truth.offsets))
        unit = psi * np.repeat(safe_inverse(norm), lengths)
        return _CosineTarget(unit, weight, truth.offsets, np.full(len(truth), self.floor))


class _CosineTarget(_ListTarget):
    """Labels, scaled to length 1 per query; the factor is the least length of the scores."""

    def hessian_scale(self) -> Floats:
        return np.ones(len(self.offsets) - 1)

    def terms(self) -> list[LossTerm]:
        columns = {"weight": self.weight, "target": self.target}
        return [LossTerm("cosine", columns, self.factor)]

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        return self._bind(lo, hi, scores, values, grad, np.empty(hi - lo))

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, norms: Floats
    ) -> BoundKernel:
        target, weight, offsets, factor = self._slice(lo, hi)
        floor = float(factor[0]) if len(factor) else 0.0
        return kernel.cosine.bind(
            scores, target, weight, offsets, floor, values, grad, lengths=norms
        )

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        """Bind an upper bound of the curvature: the second derivative by one score is at most
        0.58 / length^2."""
        norms = np.empty(hi - lo)
        run = self._bind(lo, hi, scores, np.empty(hi - lo), np.empty(len(scores)), norms)
        _, weight, offsets, _ = self._slice(lo, hi)

        def curvature() -> None:
            run()
            out[:] = weight * np.repeat(0.58 / norms**2, np.diff(offsets))

        return curvature


@dataclass(frozen=True)
class SquaredError(Loss):
    """Half the squared difference of score and label, averaged over the documents of a query.

    Parameters
    ----------
    k : int, optional
        Replace the labels by the top-k labels k, k-1, .., 1, 0, .., 0 of the truth.
    average : bool, default True
        Take the mean over the documents of a query; False takes their sum.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> loss = fp.extend.loss("SquaredError", average=False)
    >>> values, _ = loss.value_grad(np.zeros(3), data.truth)
    >>> float(values[0])  # (4 + 1) / 2
    2.5
    """

    k: int | None = None
    average: bool = True
    traits: ClassVar[Traits] = Traits(quadratic=True)

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        weight = np.ones(len(truth.labels)) if weights is None else weights.astype(np.float64)
        factor = (
            safe_inverse(query_sums(weight, truth.offsets)) if self.average else np.ones(len(truth))
        )
        labels = relevance(truth, weights, self.k)
        return _SquaredErrorTarget(labels, weight, truth.offsets, factor)


class _SquaredErrorTarget(_ListTarget):
    def hessian_scale(self) -> Floats:
        return self.factor * query_sums(self.weight, self.offsets)

    def terms(self) -> list[LossTerm]:
        columns = {"weight": self.weight, "label": self.target}
        return [LossTerm("squared", columns, self.factor)]

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        target, weight, offsets, factor = self._slice(lo, hi)
        return kernel.squared_error.bind(scores, target, weight, offsets, factor, values, grad)

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        _, weight, offsets, factor = self._slice(lo, hi)
        curvature = weight * np.repeat(factor, np.diff(offsets))
        return lambda: out.__setitem__(slice(None), curvature)
