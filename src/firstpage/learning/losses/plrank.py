"""The expected measure of rankings that are drawn from a Plackett-Luce model (PL-Rank)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from firstpage.core import BoundKernel, Floats, Ints, check_number
from firstpage.core.kernels.losses import plrank as kernel
from firstpage.data import Truth
from firstpage.evaluation.measures import Measure, MeasureLike
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.losses.base import Loss, LossTarget, SampledTarget, Traits
from firstpage.learning.losses.measure_forms import (
    MeasureTarget,
    check_supported,
    check_unweighted,
    measure_form,
)

MAX_EXACT = 2.0**20  # absolute score, up to which differences lose no precision that matters
MAX_GAP = 1000.0  # between two scores; exp(-MAX_GAP) is 0


@dataclass(frozen=True)
class ExpectedMeasure(Loss):
    """How far the expected measure of random rankings is below that of the true order.

    Rankings are drawn from the Plackett-Luce model: the document at each rank is chosen among all
    documents not yet ranked, with a probability proportional to exp(score).  Value and gradient are
    estimates without bias from `samples` rankings per query.  Every evaluation of the same target
    draws other rankings, which depend on `seed`, the number of the evaluation and the query.  The
    time per query and ranking is O(n log k).

    Parameters
    ----------
    measure : str or Measure, default "NDCG@10"
        The measure: NDCG, DCG, P, Recall, RBP, ERR, RR, Success, AP, kNDCG, kERR, DCG and NDCG of
        a measure file, or a measure of one's own that has a `rank_form`.
    k : int, optional
        Count only the first k ranks; None counts all ranks of the measure.
    samples : int, default 20
        The number of rankings per query and evaluation.
    seed : int, default 0
        The seed of the rankings.

    Attributes
    ----------
    parsed_measure : Measure
        The parsed `measure`.  A measure file is read once, when the loss is created.

    Raises
    ------
    DataError
        If the measure is not one of these; on use, if documents have weights other than 1.

    References
    ----------
    Oosterhuis (2021), Computationally efficient optimization of Plackett-Luce ranking models for
    relevance and fairness (PL-Rank-2).  Oosterhuis (2022), Learning-to-rank at the speed of
    sampling (PL-Rank-3).

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [1, 0, 0], [1, 1, 1])
    >>> loss = fp.extend.loss("ExpectedMeasure", measure="P@1", samples=10_000)
    >>> values, _ = loss.value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(2))  # 1 - 1/3
    0.67
    """

    measure: MeasureLike = "NDCG@10"
    k: int | None = None
    samples: int = 20
    seed: int = 0
    parsed_measure: Measure = field(init=False, repr=False)  # the file may change later
    traits: ClassVar[Traits] = Traits(convex=False, deterministic=False)

    def __post_init__(self) -> None:
        parsed = parse_measure(self.measure)
        check_supported(parsed, type(self).__name__)
        check_number(self, "samples", 1, integer=True)
        check_number(self, "seed", 0, integer=True)
        object.__setattr__(self, "parsed_measure", parsed)

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        check_unweighted(self, weights)
        form = measure_form(self.parsed_measure, truth, self.k)
        evaluations = np.zeros(len(truth) + 1, np.int64)
        return ExpectedMeasureTarget(
            form=form,
            offsets=truth.offsets,
            best=form.true_values(truth),
            gain_range=form.gain_range(truth.offsets),
            importance=form.importance(),
            samples=int(self.samples),
            seed=int(self.seed),
            evaluations=evaluations,
            first_query=np.zeros(1, np.int64),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpectedMeasureTarget(SampledTarget, MeasureTarget):
    """A truth prepared for `ExpectedMeasure`."""

    best: Floats  # value of the true order of each query
    gain_range: Floats
    importance: Floats

    def hessian_scale(self) -> Floats:
        scale: Floats = self.gain_range * self.importance.sum()
        return scale

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        form, offsets = self.form, self.offsets[lo : hi + 1]
        longest = max(int(np.diff(offsets).max(initial=0)), 1)
        depth = min(longest, form.depth)
        given, scores = scores, np.empty_like(scores)
        logs, means, weights, center = np.empty((4, depth))
        arrival, ranked = np.empty(longest), np.empty(longest, np.int8)
        items, togo, direct = np.empty(depth, np.int64), np.empty(depth + 1), np.empty(form.columns)
        calls, first_query = self.evaluations[lo : lo + 1], lo + int(self.first_query[0])
        gains = form.gains[int(offsets[0]) : int(offsets[-1])]
        run = kernel.expected_measure.bind(
            scores, gains, offsets, form.kind, form.discount, form.table, form.scale[lo:hi],
            self.best[lo:hi], self.importance, self.gain_range[lo:hi], self.samples, self.seed,
            first_query, calls, arrival, items, ranked, logs, means, weights, togo, center, direct,
            values, grad, curvature,
        )  # fmt: skip

        def evaluate() -> None:
            scores[:] = given
            if len(given) and max(float(given.max()), -float(given.min())) > MAX_EXACT:
                _compress(scores, offsets - offsets[0])
            run()

        return evaluate


def _compress(scores: Floats, offsets: Ints) -> None:
    """Change the scores of queries with huge ones: reduce the gaps between them to MAX_GAP.

    Rankings depend on differences only, and exp(-MAX_GAP) is 0 as well.  In sums with huge scores,
    noise and logarithms of counts would be lost to rounding.
    """
    for lo, hi in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = scores[lo:hi]
        if hi > lo and np.abs(own).max() > MAX_EXACT:
            order = np.argsort(-own, kind="stable")
            with np.errstate(over="ignore"):
                gaps = np.minimum(-np.diff(own[order]), MAX_GAP)
            own[order] = -np.concatenate([[0.0], np.cumsum(gaps)])
