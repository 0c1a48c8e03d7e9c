"""Quick sort by majority votes: Supervised Kemeny and its relatives.

"A majority puts x before y" is not transitive, so what a sort gives depends on whom it compares.
The rule here: the pivot of a list is its first document in base order; those that lead the pivot
go before it, all others after it, both in base order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.method import Method, all_votes, pair_table, room
from firstpage.kernels.hashing import STEP
from firstpage.kernels.voting.kemeny import kwik_sort
from firstpage.kernels.voting.votes import quick_sort
from firstpage.registry import PartError, number
from firstpage.types import Floats, Ints

Credit = Literal["extended", "paper"]


@dataclass(frozen=True)
class SupervisedKemeny(Method):
    """Supervised Kemeny Ranking (Cheng, Sun and Xie: TopRank, Algorithm 2).

    credit   "extended": a document in a ranker's first k_agg places beats all below it;
             "paper", as printed: only those that are in the first k_agg places too
    k_agg    how deep a ranker's list gives credit; None: half of the candidates, rounded up

    Equal weights give the unsupervised form.
    """

    credit: Credit = "extended"
    k_agg: int | None = None
    about: ClassVar[str] = "quick sort by the majority of weighed votes (TopRank)"

    def __post_init__(self) -> None:
        if self.credit not in get_args(Credit):
            raise PartError(f"credit must be extended or paper; got {self.credit!r}.")
        if self.k_agg is not None:
            number(self, "k_agg", low=1, whole=True)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        top = (ballots.lengths + 1) // 2
        if self.k_agg is not None:
            top = np.minimum(ballots.lengths, self.k_agg)
        reach = np.full(len(ballots), ballots.reach, np.int64)
        return _sorted(ballots, weights, top, top.copy() if self.credit == "paper" else reach)


@dataclass(frozen=True)
class Kemeny(Method):
    """The same sort by all votes, however deep: approximates the order of least Kemeny cost."""

    about: ClassVar[str] = "quick sort by the majority of all votes"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        return _sorted(ballots, weights, *all_votes(ballots))


def _sorted(ballots: Ballots, weights: Floats, top: Ints, reach: Ints) -> Ints:
    order = np.empty(ballots.places.shape[1], np.int64)
    quick_sort(
        ballots.places, weights, ballots.offsets, top, reach, room(ballots, 2), room(ballots), order
    )
    return order


@dataclass(frozen=True)
class KwikSort(Method):
    """Quick sort with random pivots (Ailon et al. 2008), `repeats` times; the cheapest stays.

    Each query has random numbers of its own, from the seed and its id.
    """

    repeats: int = 10
    seed: int = 0
    about: ClassVar[str] = "the cheapest of several quick sorts with random pivots"

    def __post_init__(self) -> None:
        number(self, "repeats", low=1, whole=True)
        number(self, "seed", whole=True)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        order = np.empty(ballots.places.shape[1], np.int64)
        spread = np.uint64(int(self.seed) * int(STEP) % 2**64)
        kwik_sort(
            ballots.places, weights, ballots.offsets, ballots.reach,
            ballots.queries.hashes ^ spread, int(self.repeats),
            pair_table(ballots), room(ballots), room(ballots), room(ballots, 2), order,
        )  # fmt: skip
        return order
