"""Pairwise logistic losses, weighted by the change of a measure (LambdaRank, LambdaLoss)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from firstpage.core import BoundKernel, DataError, Floats, check_number
from firstpage.core.kernels.losses import ADDITIVE
from firstpage.core.kernels.losses import lambdaloss as kernel
from firstpage.data import Truth
from firstpage.evaluation.measures import Measure, MeasureLike
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.losses.base import Loss, LossTarget, Traits
from firstpage.learning.losses.measure_forms import (
    MeasureTarget,
    check_supported,
    check_unweighted,
    measure_form,
)

Variant = Literal["lambdarank", "loss2", "loss2++"]
VARIANTS: dict[str, int] = {
    "lambdarank": kernel.LAMBDARANK,
    "loss2": kernel.LOSS2,
    "loss2++": kernel.LOSS2PP,
}


@dataclass(frozen=True)
class LambdaLoss(Loss):
    """Logistic loss of document pairs, weighted by the change of a measure.

    The sum over pairs, u of greater gain than v, of weight * log(1 + exp(s_v - s_u)).  The weights
    are computed from the current ranks, and are constants in the gradient.  Where scores are equal,
    they are means over all orders of the tied documents.  Pairs below the cut-off of the measure
    have weight 0 and cost nothing: the time per query is O(n log n + n k).

    Parameters
    ----------
    measure : str or Measure, default "NDCG@10"
        The measure: NDCG, DCG, P, Recall, RBP, ERR, RR, Success, AP, kNDCG, kERR, DCG and NDCG of
        a measure file, or a measure of one's own that has a `rank_form`.
    k : int, optional
        Count only the first k ranks; None counts all ranks of the measure.
    variant : {"lambdarank", "loss2", "loss2++"}, default "lambdarank"
        The weight of a pair.  "lambdarank": the absolute change of the measure if both documents
        exchange their ranks i and j.  "loss2": the difference of gains times
        discount(|i - j|) - discount(|i - j| + 1), a bound of NDCG.  "loss2++": the first plus `mu`
        times the second.  The last two need gains and discounts, as of NDCG.
    mu : float, default 10.0
        See "loss2++".

    Attributes
    ----------
    parsed_measure : Measure
        The parsed `measure`.  A measure file is read once, when the loss is created.

    Raises
    ------
    DataError
        If the measure is not one of these, or `variant` needs gains and discounts; on use, if
        documents have weights other than 1.

    References
    ----------
    Burges, Ragno and Le (2006), Learning to rank with nonsmooth cost functions.  Wang, Li,
    Golbandi, Bendersky and Najork (2018), The LambdaLoss framework for ranking metric optimization.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(2), [1, 0], [1, 1])
    >>> loss = fp.extend.loss("LambdaLoss", measure="P@1")
    >>> values, gradient = loss.value_grad(np.zeros(2), data.truth)
    >>> float(values[0].round(3)), gradient.tolist()  # log 2: an exchange changes P@1 by 1
    (0.693, [-0.5, 0.5])
    """

    measure: MeasureLike = "NDCG@10"
    k: int | None = None
    variant: Variant = "lambdarank"
    mu: float = 10.0
    parsed_measure: Measure = field(init=False, repr=False)  # the file may change later
    traits: ClassVar[Traits] = Traits(smooth=False, convex=False)

    def __post_init__(self) -> None:
        parsed = parse_measure(self.measure)
        check_supported(parsed, type(self).__name__)
        if self.variant not in VARIANTS:
            raise DataError(
                f"variant must be 'lambdarank', 'loss2' or 'loss2++'; got {self.variant!r}."
            )
        check_number(self, "mu", 0)
        object.__setattr__(self, "parsed_measure", parsed)

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        check_unweighted(self, weights)
        form = measure_form(self.parsed_measure, truth, self.k)
        if self.variant != "lambdarank" and form.kind != ADDITIVE:
            raise DataError(
                f"variant={self.variant!r} needs a measure of gains and discounts, such as "
                f"NDCG@10; {self.measure} is none. Use variant='lambdarank'."
            )
        return LambdaLossTarget(form, truth.offsets, VARIANTS[self.variant], float(self.mu))


@dataclass(frozen=True, eq=False)
class LambdaLossTarget(MeasureTarget):
    """A truth prepared for `LambdaLoss`."""

    variant: int
    mu: float

    @cached_property
    def doubles(self) -> Floats:
        """The sums of the cumulative sums of the weights of rank differences; 0 for -1."""
        if self.variant == kernel.LAMBDARANK:
            return np.empty(0)
        longest = int(np.diff(self.offsets).max(initial=0))
        discounts = np.zeros(longest + 2)
        known = self.form.all_discounts[: longest + 2]
        discounts[: len(known)] = known
        steps = np.abs(np.diff(discounts))  # of the rank differences 1, 2, ..
        return np.concatenate([[0.0, 0.0], np.cumsum(np.cumsum(steps))])

    def hessian_scale(self) -> Floats:
        """Return about half the summed weight of the pairs, where all scores are equal."""
        queries, rows = len(self.offsets) - 1, int(self.offsets[-1])
        values = np.empty(queries)
        self.bind_slice(0, queries, np.zeros(rows), values, np.empty(rows))()
        scale: Floats = 0.5 * values / np.log(2.0)
        return scale

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        form, offsets = self.form, self.offsets[lo : hi + 1]
        n = max(int(np.diff(offsets).max(initial=0)), 1)
        items, workspace = np.empty((2, n), np.int64)
        blocks, groups, block_groups = np.empty((3, n + 1), np.int64)
        words, word_workspace = np.empty((2, n), np.uint64)
        passing, leaving, entering, sums = np.empty((4, 2 * (n + 1)))
        rows = np.empty((min(n, form.depth) if form.columns else 0, form.columns))
        bits, means, inner_row = scores.view(np.uint64), np.empty(n + 1), np.empty(form.columns)
        gains = form.gains[int(offsets[0]) : int(offsets[-1])]
        return kernel.lambda_loss.bind(
            scores, bits, gains, offsets, form.kind, self.variant, self.mu, form.discount,
            form.table, self.doubles, form.scale[lo:hi], items, words, word_workspace, workspace,
            blocks, groups, block_groups, means, passing, leaving, entering, rows, inner_row, sums,
            values, grad, curvature,
        )  # fmt: skip
