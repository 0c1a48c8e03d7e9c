"""Methods that sort or count by majority votes on pairs of documents.

The majority relation ("a majority puts x before y") is not transitive, so the result of a sort
depends on which documents it compares.  The quick sorts take the first document in base order as
the pivot of a list; documents that a majority puts before the pivot go before it, all others after
it, both in base order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from firstpage.core import Floats, Ints, ParameterError, check_number
from firstpage.core.kernels.voting import (
    ABSENT,
    copeland_scores,
    majority_quick_sort,
    partial_quick_sort,
)
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.base import Method, order_by_points, vote_limits, workspace


@dataclass(frozen=True)
class Copeland(Method):
    """Copeland's method: pairwise contests won less lost, each decided by the weighted majority.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "Copeland").order.tolist()
    [1, 0, 2]
    """

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        points = np.empty(ballots.positions.shape[1])
        copeland_scores(ballots.positions, weights, ballots.offsets, *vote_limits(ballots), points)
        return order_by_points(points, ballots)


Credit = Literal["extended", "paper"]
PartialVotes = Literal["weighted", "equal"]


@dataclass(frozen=True)
class SupervisedKemeny(Method):
    """Supervised Kemeny Ranking (Algorithm 2 of [1]_): quick sort by weighted majority votes.

    Equal weights give the unsupervised form.

    Parameters
    ----------
    credit : {"extended", "paper"}, default "extended"
        "extended": a document at a ranker's first `k_agg` positions beats all below it; "paper",
        as printed: only those that are at the first `k_agg` positions too.
    k_agg : int, optional
        The number of first positions of a ranker's list that give credit; by default half of the
        candidates, rounded up, of a list of all candidates, and every position of a partial list.
    partial : {"weighted", "equal"}, default "weighted"
        How lists vote that lack some of the candidates.  "weighted": a listed document beats one
        that is not listed by (c + 1) / (c + rank) of a vote, and another listed one by the
        difference of these weights, but at least by 1 / n_rankers of its own.  "equal": by one
        vote, as in lists of all candidates, to which `partial` does not apply; neither does it with
        credit="paper" or missing="ignore".
    c : float, default 60.0
        The constant of these weights, at least 0: a larger one makes all ranks of a list count
        alike.

    Raises
    ------
    ParameterError
        If a parameter is invalid.

    References
    ----------
    .. [1] Cheng, Sun, Xie, "TopRank: A Novel Top-k Ranking Method Based on Rank Aggregation", 2014.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "skr", weights=[0.2, 0.2, 0.6]).order.tolist()
    [1, 0, 2]
    """

    credit: Credit = "extended"
    k_agg: int | None = None
    partial: PartialVotes = "weighted"
    c: float = 60.0
    tuned: ClassVar[dict[str, tuple[float, ...]]] = {"c": (10, 20, 60, 200, 1000)}

    def __post_init__(self) -> None:
        if self.credit not in get_args(Credit):
            raise ParameterError(f"credit must be extended or paper; got {self.credit!r}.")
        if self.partial not in get_args(PartialVotes):
            raise ParameterError(f"partial must be weighted or equal; got {self.partial!r}.")
        check_number(self, "c", minimum=0)
        if self.k_agg is not None:
            check_number(self, "k_agg", minimum=1, integer=True)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        top = (ballots.lengths + 1) // 2
        if self.k_agg is not None:
            top = np.minimum(ballots.lengths, self.k_agg)
        if self.partial == "weighted" and self.credit == "extended" and ballots.missing == "last":
            complete = _complete_lists(ballots)
            if not complete.all():
                depth = ballots.lengths if self.k_agg is None else top
                discounts = np.zeros(ballots.longest + 1)  # the last one of documents not listed
                discounts[:-1] = (self.c + 1) / (self.c + 1 + np.arange(ballots.longest))
                return _partial_quick_sorted(ballots, weights, complete, discounts, top, depth)
        limit = np.full(len(ballots), ballots.vote_limit, np.int64)
        return _quick_sorted(ballots, weights, top, top.copy() if self.credit == "paper" else limit)


@dataclass(frozen=True)
class Kemeny(Method):
    """Quick sort by the majority of all votes, which approximates the order of minimal Kemeny cost.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "Kemeny").order.tolist()
    [1, 0, 2]
    """

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        return _quick_sorted(ballots, weights, *vote_limits(ballots))


def _quick_sorted(ballots: Ballots, weights: Floats, top: Ints, limit: Ints) -> Ints:
    """Sort by votes in which positions below `top` win and positions below `limit` lose."""
    order = np.empty(ballots.positions.shape[1], np.int64)
    majority_quick_sort(
        ranks=ballots.positions,
        weights=weights,
        offsets=ballots.offsets,
        top=top,
        reach=limit,
        stack=workspace(ballots, 2),
        workspace=workspace(ballots),
        order=order,
    )
    return order


def _complete_lists(ballots: Ballots) -> Ints:
    """Return 1 for each ranker and query whose candidates it lists all, else 0."""
    absent = ballots.positions == ABSENT
    counts = np.zeros((ballots.n_rankers, absent.shape[1] + 1), np.int64)
    np.cumsum(absent, axis=1, out=counts[:, 1:])
    missing = np.diff(counts.take(ballots.offsets, axis=1), axis=1)
    return np.ascontiguousarray(missing == 0, np.int64)


def _partial_quick_sorted(
    ballots: Ballots, weights: Floats, complete: Ints, discounts: Floats, top: Ints, depth: Ints
) -> Ints:
    """Sort by votes that are weighted by rank in lists that lack some candidates."""
    order = np.empty(ballots.positions.shape[1], np.int64)
    partial_quick_sort(
        ranks=ballots.positions,
        weights=weights,
        offsets=ballots.offsets,
        complete=complete,
        discounts=discounts,
        least=1.0 / ballots.n_rankers,
        top=top,
        depth=depth,
        stack=workspace(ballots, 2),
        workspace=workspace(ballots),
        order=order,
    )
    return order
