"""Losses of votes on pairs of documents: logistic (RankNet) and hinge (RankSVM).

The truth is a `PairTruth`.  A vote that neither document is better counts as half a vote for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

import numpy as np

from firstpage.core import BoundKernel, DataError, Floats, Ints, inherit_sections
from firstpage.core.kernels.losses import pairs as kernel
from firstpage.data import Truth
from firstpage.data.preferences import PairTruth, RowPairs
from firstpage.learning.losses.base import (
    Loss,
    LossTarget,
    LossTerm,
    Traits,
    safe_inverse,
    zero_curvature,
)
from firstpage.learning.losses.levels import query_sums

_Votes = tuple[Ints, RowPairs, Floats, Floats, Floats]


@dataclass(frozen=True)
class _Voted(Loss):
    """Base class of the losses of votes.

    Parameters
    ----------
    average : bool, default False
        Take the mean over the votes of a query instead of their sum.
    """

    average: bool = False

    def __init_subclass__(cls) -> None:
        inherit_sections(cls)

    def _votes(self, truth: Truth, weights: Floats | None) -> _Votes:
        """Return the pairs of a truth with their weights."""
        if not isinstance(truth, PairTruth):
            raise DataError(
                f"{type(self).__name__} reads votes on pairs, and there are only labels."
            )
        pairs = truth.votes
        left, right = pairs.votes_for()
        if weights is not None:
            starts = np.repeat(truth.offsets[:-1], pairs.per_query())
            copies = weights[starts + pairs.left] * weights[starts + pairs.right]
            left, right = left * copies, right * copies
        total = query_sums(left + right, pairs.offsets)
        if self.average:
            factor = np.repeat(safe_inverse(total), pairs.per_query())
            left, right = left * factor, right * factor
            total = (total > 0).astype(np.float64)
        return truth.offsets, pairs, left, right, total


@dataclass(frozen=True)
class VotedLogistic(_Voted):
    """Logistic loss of votes on pairs, the cross entropy of RankNet.

    The sum over votes, u preferred to v, of weight * log(1 + exp(s_v - s_u)).  The time is
    proportional to the number of pairs that have votes.

    Raises
    ------
    DataError
        If the truth has no votes.

    References
    ----------
    Burges et al. (2005), Learning to rank using gradient descent.
    Bradley and Terry (1952), Rank analysis of incomplete block designs.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> from firstpage.data.preferences.pairs import PairTruth
    >>> from firstpage.learning.losses.pairs import VotedLogistic
    >>> data = fp.Dataset.from_arrays(np.eye(2), [0, 0], [1, 1], "ab")
    >>> pairs, _ = fp.PreferencePairs.from_arrays([1, 1], "ab", "ba").to_rows(data)
    >>> values, _ = VotedLogistic().value_grad(np.zeros(2), PairTruth.of(data.truth, pairs))
    >>> float(values[0].round(3))  # two votes that contradict each other, each log 2
    1.386
    """

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        return _VotedLogisticTarget(*self._votes(truth, weights))


@dataclass(frozen=True)
class VotedHinge(_Voted):
    """Hinge loss of votes on pairs, the loss of RankSVM.

    The sum over votes, u preferred to v, of weight * max(0, 1 - s_u + s_v).

    Raises
    ------
    DataError
        If the truth has no votes.

    References
    ----------
    Joachims (2002), Optimizing search engines using clickthrough data.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> from firstpage.data.preferences.pairs import PairTruth
    >>> from firstpage.learning.losses.pairs import VotedHinge
    >>> data = fp.Dataset.from_arrays(np.eye(2), [0, 0], [1, 1], "ab")
    >>> pairs, _ = fp.PreferencePairs.from_arrays([1], "a", "b", weight=[3]).to_rows(data)
    >>> truth = PairTruth.of(data.truth, pairs)
    >>> float(VotedHinge().value_grad(np.array([0.5, 0.0]), truth)[0][0])
    1.5
    """

    traits: ClassVar[Traits] = Traits(smooth=False)

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        return _VotedHingeTarget(*self._votes(truth, weights))


class _VoteArrays(TypedDict):
    offsets: Ints
    pair_offsets: Ints
    left: Ints
    right: Ints
    left_weight: Floats
    right_weight: Floats


@dataclass(frozen=True, eq=False)
class _VotedTarget(LossTarget):
    offsets: Ints
    pairs: RowPairs
    left: Floats  # weight of the votes for the left document of each pair
    right: Floats  # and for the right one
    total: Floats  # summed weight per query
    kind: ClassVar[int]  # of the loss of a pair

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        return kernel.voted_loss.bind(
            self.kind, scores, values=values, grad=grad, **self._arrays(lo, hi)
        )

    def hessian_scale(self) -> Floats:
        return 0.5 * self.total

    def terms(self) -> list[LossTerm] | None:
        return None

    def _arrays(self, lo: int, hi: int) -> _VoteArrays:
        pairs = self.pairs
        rows = slice(int(pairs.offsets[lo]), int(pairs.offsets[hi]))
        return {
            "offsets": self.offsets[lo : hi + 1],
            "pair_offsets": pairs.offsets[lo : hi + 1],
            "left": pairs.left[rows],
            "right": pairs.right[rows],
            "left_weight": self.left[rows],
            "right_weight": self.right[rows],
        }


class _VotedLogisticTarget(_VotedTarget):
    kind = kernel.LOGISTIC

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return kernel.voted_logistic_curvature.bind(scores, out=out, **self._arrays(lo, hi))


class _VotedHingeTarget(_VotedTarget):
    kind = kernel.HINGE

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return zero_curvature(out)
