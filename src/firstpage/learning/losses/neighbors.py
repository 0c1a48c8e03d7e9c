"""The logistic loss of document pairs that are neighbors in random rankings (YetiRank)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.core import BoundKernel, Floats, Ints, ParameterError, check_number
from firstpage.core.kernels.losses import neighbors as kernel
from firstpage.data import Truth
from firstpage.learning.losses.base import Loss, LossTarget, SampledTarget, Traits
from firstpage.learning.losses.measure_forms import check_unweighted

LEAST_DISCOUNT = 1e-6  # of a rank that still counts


@dataclass(frozen=True)
class SampledNeighbors(Loss):
    """Logistic loss of document pairs that are neighbors in random rankings, that of YetiRank.

    Rankings are drawn from the Plackett-Luce model: the document at each rank is chosen among all
    documents not yet ranked, with a probability proportional to exp(score).  The documents u and v
    of two neighboring ranks x and x + 1, u of the better label, add
    decay^(x - 1) * (label of u - label of v) * log(1 + exp(s_v - s_u)).  Equal labels add nothing.
    The rankings are constants in the gradient.  O(n log n) per query and ranking.

    Parameters
    ----------
    k : int, optional
        Count only pairs whose upper document is at the first k ranks of the ranking.
    samples : int, default 1
        The number of rankings per query and evaluation.
    decay : float, default 0.85
        The weight of a rank as a fraction of that above it; above 0, at most 1.
    seed : int, default 0
        The seed of the rankings.

    Raises
    ------
    ParameterError
        If a number is out of its range.
    DataError
        On use, if documents have weights other than 1.

    References
    ----------
    Gulin, Kuralenok and Pavlov (2011), Winning the transfer learning track of Yahoo!'s learning to
    rank challenge with YetiRank.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(2), [1, 0], [1, 1])
    >>> values, gradient = fp.extend.loss("SampledNeighbors").value_grad(np.zeros(2), data.truth)
    >>> float(values[0].round(3)), gradient.tolist()  # log 2: two documents are always neighbors
    (0.693, [-0.5, 0.5])
    """

    k: int | None = None
    samples: int = 1
    decay: float = 0.85
    seed: int = 0
    traits: ClassVar[Traits] = Traits(smooth=False, convex=False, deterministic=False)

    def __post_init__(self) -> None:
        check_number(self, "samples", 1, integer=True)
        check_number(self, "decay", above=0)
        check_number(self, "seed", 0, integer=True)
        if self.decay > 1:
            raise ParameterError(f"decay must be at most 1; got {self.decay!r}.")

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        check_unweighted(self, weights)
        ranks = max(int(truth.lengths.max(initial=1)) - 1, 0)
        depth = ranks if self.k is None else min(self.k, ranks)
        discount: Floats = np.power(float(self.decay), np.arange(depth), dtype=np.float64)
        return SampledNeighborsTarget(
            samples=int(self.samples),
            seed=int(self.seed),
            evaluations=np.zeros(len(truth) + 1, np.int64),
            first_query=np.zeros(1, np.int64),
            labels=truth.labels.astype(np.float64),
            offsets=truth.offsets,
            discount=discount[discount >= LEAST_DISCOUNT],
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledNeighborsTarget(SampledTarget):
    """A truth prepared for `SampledNeighbors`."""

    labels: Floats
    offsets: Ints
    discount: Floats  # of the upper rank of two neighbors

    def hessian_scale(self) -> Floats:
        """Return about half the summed weight of the pairs, where all scores are equal."""
        queries, rows = len(self.offsets) - 1, int(self.offsets[-1])
        values = np.empty(queries)
        first = self.own_evaluations()
        first.bind_slice(0, queries, np.zeros(rows), values, np.empty(rows))()
        scale: Floats = 0.5 * values / np.log(2.0)
        return scale

    def terms(self) -> None:
        return None  # only the host draws rankings

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        offsets = self.offsets[lo : hi + 1]
        labels = self.labels[int(offsets[0]) : int(offsets[-1])]
        longest = max(int(np.diff(offsets).max(initial=0)), 1)
        arrival, items = np.empty(longest), np.empty(longest, np.int64)
        calls, first_query = self.evaluations[lo : lo + 1], lo + int(self.first_query[0])
        return kernel.sampled_neighbors.bind(
            scores, labels, offsets, self.discount, self.samples, self.seed, first_query, calls,
            arrival, items, values, grad, curvature,
        )  # fmt: skip
