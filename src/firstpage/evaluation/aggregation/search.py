"""Methods that search for the order of minimal Kemeny cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from firstpage.core import DataError, Floats, Ints, ParameterError, check_number
from firstpage.core.kernels import STEP
from firstpage.core.kernels.voting import (
    best_insertion,
    components,
    kwik_sort,
    local_kemenization,
    order_components,
)
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.base import (
    Method,
    bit_rows,
    order_by_points,
    pair_table,
    vote_limits,
    workspace,
)
from firstpage.evaluation.aggregation.fusion import Borda
from firstpage.evaluation.aggregation.majority import Kemeny


@dataclass(frozen=True)
class KwikSort(Method):
    """Quick sort with random pivots, repeated; the order of lowest Kemeny cost is returned.

    Parameters
    ----------
    repeats : int, default 10
        The number of sorts, at least 1.
    seed : int, default 0
        Each query has its own random numbers, derived from the seed and its id.

    Raises
    ------
    ParameterError
        If a parameter is invalid.

    References
    ----------
    .. [1] N. Ailon, M. Charikar, A. Newman, "Aggregating Inconsistent Information: Ranking and
       Clustering", Journal of the ACM 55(5), 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "KwikSort(repeats=5)").order.tolist()
    [1, 0, 2]
    """

    repeats: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        check_number(self, "repeats", minimum=1, integer=True)
        check_number(self, "seed", integer=True)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        order = np.empty(ballots.positions.shape[1], np.int64)
        salt = np.uint64(int(self.seed) * int(STEP) % 2**64)
        kwik_sort(
            ranks=ballots.positions,
            weights=weights,
            offsets=ballots.offsets,
            reach=ballots.vote_limit,
            seeds=ballots.queries.hashes ^ salt,
            repeats=int(self.repeats),
            extra=pair_table(ballots),
            trial=workspace(ballots),
            workspace=workspace(ballots),
            stack=workspace(ballots, 2),
            order=order,
        )
        return order


BORDA = Borda()
LargeComponents = Literal["refuse", "search"]
MAX_COMPONENT = 22  # documents of a component ordered exactly; 2^22 numbers take 32 MB


@dataclass(frozen=True)
class LocalKemeny(Method):
    """Local Kemenization: the order of another method, with neighbors put in majority order.

    Each document moves up past neighbors that a majority puts below it.

    Parameters
    ----------
    start : Method, default Borda()
        The other method; in a text it is named, as in `local-kemeny(start=copeland)`.

    Raises
    ------
    ParameterError
        If `start` is not a method.

    References
    ----------
    .. [1] C. Dwork, R. Kumar, M. Naor, D. Sivakumar, "Rank Aggregation Methods for the Web",
       WWW 2001.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "LocalKemeny").order.tolist()
    [1, 0, 2]
    """

    start: Method = BORDA

    def __post_init__(self) -> None:
        if not isinstance(self.start, Method):
            raise ParameterError(f"start of LocalKemeny must be a method; got {self.start!r}.")

    @property
    def needs_scores(self) -> bool:
        """Whether the ballots must have the rankers' scores."""
        return self.start.needs_scores

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        order = self.start.order(ballots, weights)
        local_kemenization(
            ballots.positions, weights, ballots.offsets, *vote_limits(ballots), order
        )
        return order


@dataclass(frozen=True)
class BestInsertion(Method):
    """Local search: move single documents to their best position until no move lowers the cost.

    It starts from every ranker's list, from Borda's order and from the quick sort's, and returns
    the result of lowest Kemeny cost; of equal ones, the first by the numbers of its documents.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "BestInsertion").order.tolist()
    [1, 0, 2]
    """

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        rankers = [
            order_by_points(-positions.astype(np.float64), ballots)
            for positions in ballots.positions
        ]
        others = [m.order(ballots, weights) for m in (Borda(), Kemeny())]
        order = np.empty(ballots.positions.shape[1], np.int64)
        best_insertion(
            ranks=ballots.positions,
            weights=weights,
            offsets=ballots.offsets,
            reach=ballots.vote_limit,
            starts=np.array([*others, *rankers], np.int64),
            extra=pair_table(ballots),
            trial=workspace(ballots),
            position=workspace(ballots),
            order=order,
        )
        return order


@dataclass(frozen=True)
class ExactKemeny(Method):
    """The order of minimal Kemeny cost, found exactly.

    Documents on common cycles of the majority relation form a component (a strongly connected
    component of the majority graph); the components are ordered by majorities, and each is ordered
    by dynamic programming over its subsets.  Where votes are tied, several orders may have the
    minimal cost; the base order decides then, between components and within them.

    Parameters
    ----------
    limit : int, default 16
        The largest component that is ordered exactly; at most 22.
    larger : {"refuse", "search"}, default "refuse"
        What to do with a larger one: raise an error, or order it by local search, which need not
        find the minimum.

    Raises
    ------
    ParameterError
        If a parameter is invalid.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "ExactKemeny").order.tolist()
    [1, 0, 2]
    """

    limit: int = 16
    larger: LargeComponents = "refuse"

    def __post_init__(self) -> None:
        check_number(self, "limit", minimum=1, integer=True)
        if self.limit > MAX_COMPONENT:
            raise ParameterError(
                f"limit of ExactKemeny must be at most {MAX_COMPONENT}; got {self.limit}."
            )
        if self.larger not in get_args(LargeComponents):
            raise ParameterError(f"larger must be refuse or search; got {self.larger!r}.")

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        size = ballots.positions.shape[1]
        first, above, place = (np.empty(size, np.int64) for _ in range(3))
        beats, beaten = bit_rows(ballots)
        components(
            ranks=ballots.positions,
            weights=weights,
            offsets=ballots.offsets,
            reach=ballots.vote_limit,
            extra=pair_table(ballots),
            beats=beats,
            beaten=beaten,
            first=first,
            above=above,
            rank=place,
        )
        query = np.repeat(np.arange(len(ballots)), ballots.lengths)
        start = ballots.offsets[query]
        members = np.bincount(start + first, minlength=size)[start + first]
        rank = np.arange(size)
        if (members > self.limit).any():
            rank = self._initial_ranks(ballots, weights, members)
        order = np.lexsort((rank, place, query)) - start
        low, high = np.empty(MAX_COMPONENT << 11), np.empty(MAX_COMPONENT << 11)
        subsets = np.empty(1 << min(int(self.limit), int(members.max(initial=1))))
        order_components(
            ranks=ballots.positions,
            weights=weights,
            offsets=ballots.offsets,
            reach=ballots.vote_limit,
            first=first,
            limit=int(self.limit),
            extra=pair_table(ballots),
            member_extra=pair_table(ballots),
            low=low,
            high=high,
            best=subsets,
            member_order=workspace(ballots),
            workspace=workspace(ballots),
            order=order,
        )
        return order

    def _initial_ranks(self, ballots: Ballots, weights: Floats, members: Ints) -> Ints:
        """Return the initial ranks: those of a local search for members of large components."""
        large = members > self.limit
        if self.larger == "refuse":
            row = int(np.argmax(large))
            q = int(np.searchsorted(ballots.offsets, row, side="right")) - 1
            raise DataError(
                f"query {ballots.queries[q]!r}: {members[row]} documents are on common majority "
                f"cycles, and ExactKemeny orders up to {self.limit} of them. Lower the depth, or "
                "use ExactKemeny(larger=search) or BestInsertion."
            )
        rank = np.arange(len(members))
        start = np.repeat(ballots.offsets[:-1], ballots.lengths)
        searched = np.empty_like(rank)
        searched[start + BestInsertion().order(ballots, weights)] = rank
        return np.where(large, searched, rank)
