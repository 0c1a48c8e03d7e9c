"""Methods that search for the order of least Kemeny cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.method import Method, all_votes, bit_rows, by_points, pair_table, room
from firstpage.aggregation.positional import Borda
from firstpage.aggregation.supervised_kemeny import Kemeny
from firstpage.errors import DataError
from firstpage.kernels.voting.exact_kemeny import components, order_components
from firstpage.kernels.voting.kemeny import best_insertion
from firstpage.kernels.voting.votes import swap_neighbours
from firstpage.registry import PartError, number
from firstpage.types import Floats, Ints

Larger = Literal["refuse", "search"]
MOST = 22  # documents of a component that the exact method can order; 2^22 numbers are 32 MB


@dataclass(frozen=True)
class LocalKemeny(Method):
    """Local Kemenisation (Dwork et al. 2001): the order of another method, neighbours put right.

    Documents are carried up past neighbours that a majority puts below them.  `start` is a
    method; in a text it is named, as in `local-kemeny(start=copeland)`.
    """

    start: Method = Borda()  # noqa: RUF009 (a frozen value)
    about: ClassVar[str] = "another method's order, neighbours put in majority order"

    def __post_init__(self) -> None:
        if not isinstance(self.start, Method):
            raise PartError(f"start of LocalKemeny must be a method; got {self.start!r}.")

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        order = self.start.order(ballots, weights)
        swap_neighbours(ballots.places, weights, ballots.offsets, *all_votes(ballots), order)
        return order


@dataclass(frozen=True)
class BestInsertion(Method):
    """Local search: move each document to its best place until no move saves anything.

    From every ranker's own list, from Borda's and from the quick sort's; the cheapest end stays.
    """

    about: ClassVar[str] = "local search by moving single documents, from several starts"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        rankers = [by_points(-places.astype(np.float64), ballots) for places in ballots.places]
        others = [m.order(ballots, weights) for m in (Borda(), Kemeny())]
        order = np.empty(ballots.places.shape[1], np.int64)
        best_insertion(
            ballots.places, weights, ballots.offsets, ballots.reach,
            np.array([*others, *rankers], np.int64),
            pair_table(ballots), room(ballots), room(ballots), order,
        )  # fmt: skip
        return order


@dataclass(frozen=True)
class ExactKemeny(Method):
    """The order of least Kemeny cost.

    Majorities that form no circles decide by themselves; documents on common circles are a
    component, ordered over its subsets.  A component of more than `limit` documents (at most 22)
    is an error, or with larger="search" is left to local search, which need not be the cheapest.
    """

    limit: int = 16
    larger: Larger = "refuse"
    about: ClassVar[str] = "the order of least Kemeny cost, where majority circles are small"

    def __post_init__(self) -> None:
        number(self, "limit", low=1, whole=True)
        if self.limit > MOST:
            raise PartError(f"limit of ExactKemeny must be at most {MOST}; got {self.limit}.")
        if self.larger not in get_args(Larger):
            raise PartError(f"larger must be refuse or search; got {self.larger!r}.")

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        given = (ballots.places, weights, ballots.offsets, ballots.reach)
        size = ballots.places.shape[1]
        first, above = np.empty(size, np.int64), np.empty(size, np.int64)
        components(*given, pair_table(ballots), *bit_rows(ballots), first, above)
        query = np.repeat(np.arange(len(ballots)), ballots.lengths)
        start = ballots.offsets[query]
        members = np.bincount(start + first, minlength=size)[start + first]
        rank = np.arange(size)
        if (members > self.limit).any():
            rank = self._searched(ballots, weights, members)
        order = np.lexsort((rank, first, above, query)) - start
        low, high = np.empty(MOST << 11), np.empty(MOST << 11)
        subsets = np.empty(1 << min(int(self.limit), int(members.max(initial=1))))
        order_components(
            *given, first, int(self.limit), pair_table(ballots), pair_table(ballots),
            low, high, subsets, room(ballots), room(ballots), order,
        )  # fmt: skip
        return order

    def _searched(self, ballots: Ballots, weights: Floats, members: Ints) -> Ints:
        """Where members of large components start: in the order of a local search."""
        large = members > self.limit
        if self.larger == "refuse":
            row = int(np.argmax(large))
            q = int(np.searchsorted(ballots.offsets, row, side="right")) - 1
            raise DataError(
                f"query {ballots.queries[q]!r}: {members[row]} documents lie on common majority "
                f"circles, and ExactKemeny orders up to {self.limit} of them. Lower the depth, or "
                "take ExactKemeny(larger=search) or BestInsertion."
            )
        rank = np.arange(len(members))
        start = np.repeat(ballots.offsets[:-1], ballots.lengths)
        place = np.empty_like(rank)
        place[start + BestInsertion().order(ballots, weights)] = rank
        return np.where(large, place, rank)
