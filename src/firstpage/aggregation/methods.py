"""Methods of aggregation, by name: `skr`, `Borda`, `rrf(c=20)`, `local-kemeny(start=copeland)`.

Some give each document points, ranker by ranker; some sort by majority votes; some search for the
order of least Kemeny cost.

"A majority puts x before y" is not transitive, so what a sort gives depends on which documents it
compares.  The rule of the quick sorts: the pivot of a list is its first document in base order;
those that lead the pivot go before it, all others after it, both in base order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.weights import normalize_weights
from firstpage.data.groups import offsets_from_lengths, sort_groups
from firstpage.errors import DataError
from firstpage.kernels.hashing import STEP
from firstpage.kernels.voting.exact_kemeny import components, order_components
from firstpage.kernels.voting.kemeny import best_insertion, kwik_sort
from firstpage.kernels.voting.votes import ABSENT, count_duels, quick_sort, swap_neighbors
from firstpage.registry import ParameterError, Registry, by_class_name, number, split
from firstpage.types import Floats, Ints, Words

POINT_GRID = 2.0**30  # points that are equal but for rounding become equal on this grid
BEYOND_ALL = 2 * ABSENT  # a place beyond all


@dataclass(frozen=True)
class Method:
    """Base of all methods.  `order` is deterministic: equals stand in base order.

    `str(method)` is a text that `method()` parses.
    """

    summary: ClassVar[str] = ""  # one line, for the manual

    def __str__(self) -> str:
        given = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return type(self).__name__ + (f"({', '.join(given)})" if given else "")

    def order(self, ballots: Ballots, weights: Iterable[float] | None = None) -> Ints:
        """Each query's candidates from best to worst, by their numbers in base order."""
        return self._order(ballots, normalize_weights(weights, ballots.n_rankers))

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        raise AssertionError(f"{type(self).__name__} has no order")  # every subclass has its own


def order_by_points(points: Floats, ballots: Ballots, fine: float = POINT_GRID) -> Ints:
    """Candidates by points, most first; equal ones in base order."""
    order, _ = sort_groups(np.rint(points * fine), ballots.offsets)
    return order - np.repeat(ballots.offsets[:-1], ballots.lengths)


def vote_limits(ballots: Ballots) -> tuple[Ints, Ints]:
    """`top` and `reach` of every query, as kernels take them, where no vote is left out."""
    size = len(ballots)
    return np.full(size, BEYOND_ALL, np.int64), np.full(size, ballots.vote_limit, np.int64)


def workspace(ballots: Ballots, numbers: int = 1) -> Ints:
    """Return memory for `numbers` numbers per candidate of the longest query."""
    return np.empty(max(2, numbers * ballots.longest), np.int64)


def pair_table(ballots: Ballots) -> Floats:
    """Return memory for one number per pair of candidates."""
    return np.empty(ballots.longest**2)


def bit_rows(ballots: Ballots) -> tuple[Words, Words]:
    """Workspace for two bits a pair of candidates."""
    size = ballots.longest * ((ballots.longest + 63) // 64)
    return np.empty(size, np.uint64), np.empty(size, np.uint64)


FINE_POINT_GRID = 2.0**46  # the grid for points up to 1, which far down the lists differ by little


@dataclass(frozen=True)
class Borda(Method):
    """A ranker gives a document the number of those it puts below, less those it puts above.

    Documents that a ranker does not list share the points of the places that are left; with
    missing="silent" it gives them none, and counts among those that it lists.
    """

    summary: ClassVar[str] = "the mean place in the rankers' lists"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        return order_by_points(borda_points(ballots, weights), ballots)


def borda_points(ballots: Ballots, weights: Floats) -> Floats:
    """Documents below less documents above, by each ranker, weighed."""
    points = np.zeros(ballots.positions.shape[1])
    for places, weight in zip(ballots.positions, weights, strict=True):
        listed = places != ABSENT
        counts = offsets_from_lengths(listed)[ballots.offsets]
        length = np.repeat(np.diff(counts), ballots.lengths)
        if ballots.missing == "silent":
            points += weight * np.where(listed, length - 1 - 2 * places, 0)
        else:
            full = np.repeat(ballots.lengths, ballots.lengths)
            points += weight * np.where(listed, full - 1 - 2 * places, -length)
    return points


@dataclass(frozen=True)
class RRF(Method):
    """Reciprocal rank fusion (Cormack et al. 2009): the sum of weight / (c + place), from place 1.

    A ranker gives nothing to documents that it does not list.
    """

    c: float = 60.0
    summary: ClassVar[str] = "sums of 1 / (c + place)"

    def __post_init__(self) -> None:
        number(self, "c", low=0)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        points = np.zeros(ballots.positions.shape[1])
        for places, weight in zip(ballots.positions, weights, strict=True):
            shares = weight * (self.c + 1) / (self.c + 1 + places)
            points += np.where(places == ABSENT, 0.0, shares)
        return order_by_points(points, ballots, FINE_POINT_GRID)


@dataclass(frozen=True)
class Copeland(Method):
    """Every two documents meet in a duel, which the weighed majority decides: won less lost."""

    summary: ClassVar[str] = "majority duels won less lost"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        won = np.empty(ballots.positions.shape[1])
        count_duels(ballots.positions, weights, ballots.offsets, *vote_limits(ballots), won)
        return order_by_points(won, ballots)


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
    summary: ClassVar[str] = "quick sort by the majority of weighed votes (TopRank)"

    def __post_init__(self) -> None:
        if self.credit not in get_args(Credit):
            raise ParameterError(f"credit must be extended or paper; got {self.credit!r}.")
        if self.k_agg is not None:
            number(self, "k_agg", low=1, whole=True)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        top = (ballots.lengths + 1) // 2
        if self.k_agg is not None:
            top = np.minimum(ballots.lengths, self.k_agg)
        reach = np.full(len(ballots), ballots.vote_limit, np.int64)
        return _sorted(ballots, weights, top, top.copy() if self.credit == "paper" else reach)


@dataclass(frozen=True)
class Kemeny(Method):
    """The same sort by all votes, however deep: approximates the order of least Kemeny cost."""

    summary: ClassVar[str] = "quick sort by the majority of all votes"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        return _sorted(ballots, weights, *vote_limits(ballots))


def _sorted(ballots: Ballots, weights: Floats, top: Ints, reach: Ints) -> Ints:
    order = np.empty(ballots.positions.shape[1], np.int64)
    quick_sort(
        ballots.positions,
        weights,
        ballots.offsets,
        top,
        reach,
        workspace(ballots, 2),
        workspace(ballots),
        order,
    )
    return order


@dataclass(frozen=True)
class KwikSort(Method):
    """Quick sort with random pivots (Ailon et al. 2008), `repeats` times; the cheapest stays.

    Each query has random numbers of its own, from the seed and its id.
    """

    repeats: int = 10
    seed: int = 0
    summary: ClassVar[str] = "the cheapest of several quick sorts with random pivots"

    def __post_init__(self) -> None:
        number(self, "repeats", low=1, whole=True)
        number(self, "seed", whole=True)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        order = np.empty(ballots.positions.shape[1], np.int64)
        spread = np.uint64(int(self.seed) * int(STEP) % 2**64)
        kwik_sort(
            ballots.positions, weights, ballots.offsets, ballots.vote_limit,
            ballots.queries.hashes ^ spread, int(self.repeats),
            pair_table(ballots), workspace(ballots), workspace(ballots), workspace(ballots, 2),
            order,
        )  # fmt: skip
        return order


LargeComponents = Literal["refuse", "search"]
MAX_COMPONENT = (
    22  # documents of a component that the exact method can order; 2^22 numbers are 32 MB
)


@dataclass(frozen=True)
class LocalKemeny(Method):
    """Local Kemenization (Dwork et al. 2001): the order of another method, neighbors put right.

    Documents are carried up past neighbors that a majority puts below them.  `start` is a
    method; in a text it is named, as in `local-kemeny(start=copeland)`.
    """

    start: Method = Borda()
    summary: ClassVar[str] = "another method's order, neighbors put in majority order"

    def __post_init__(self) -> None:
        if not isinstance(self.start, Method):
            raise ParameterError(f"start of LocalKemeny must be a method; got {self.start!r}.")

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        order = self.start.order(ballots, weights)
        swap_neighbors(ballots.positions, weights, ballots.offsets, *vote_limits(ballots), order)
        return order


@dataclass(frozen=True)
class BestInsertion(Method):
    """Local search: move each document to its best place until no move saves anything.

    From every ranker's own list, from Borda's and from the quick sort's; the cheapest end stays.
    """

    summary: ClassVar[str] = "local search by moving single documents, from several starts"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        rankers = [
            order_by_points(-places.astype(np.float64), ballots) for places in ballots.positions
        ]
        others = [m.order(ballots, weights) for m in (Borda(), Kemeny())]
        order = np.empty(ballots.positions.shape[1], np.int64)
        best_insertion(
            ballots.positions, weights, ballots.offsets, ballots.vote_limit,
            np.array([*others, *rankers], np.int64),
            pair_table(ballots), workspace(ballots), workspace(ballots), order,
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
    larger: LargeComponents = "refuse"
    summary: ClassVar[str] = "the order of least Kemeny cost, where majority circles are small"

    def __post_init__(self) -> None:
        number(self, "limit", low=1, whole=True)
        if self.limit > MAX_COMPONENT:
            raise ParameterError(
                f"limit of ExactKemeny must be at most {MAX_COMPONENT}; got {self.limit}."
            )
        if self.larger not in get_args(LargeComponents):
            raise ParameterError(f"larger must be refuse or search; got {self.larger!r}.")

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        given = (ballots.positions, weights, ballots.offsets, ballots.vote_limit)
        size = ballots.positions.shape[1]
        first, above = np.empty(size, np.int64), np.empty(size, np.int64)
        components(*given, pair_table(ballots), *bit_rows(ballots), first, above)
        query = np.repeat(np.arange(len(ballots)), ballots.lengths)
        start = ballots.offsets[query]
        members = np.bincount(start + first, minlength=size)[start + first]
        rank = np.arange(size)
        if (members > self.limit).any():
            rank = self._searched(ballots, weights, members)
        order = np.lexsort((rank, first, above, query)) - start
        low, high = np.empty(MAX_COMPONENT << 11), np.empty(MAX_COMPONENT << 11)
        subsets = np.empty(1 << min(int(self.limit), int(members.max(initial=1))))
        order_components(
            *given, first, int(self.limit), pair_table(ballots), pair_table(ballots),
            low, high, subsets, workspace(ballots), workspace(ballots), order,
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


METHODS: dict[str, type[Method]] = by_class_name(
    SupervisedKemeny, Kemeny, Borda, RRF, Copeland, KwikSort, LocalKemeny, BestInsertion,
    ExactKemeny,
)  # fmt: skip
REGISTRY = Registry(
    "aggregation method", METHODS, {"skr": "SupervisedKemeny", "exact": "ExactKemeny"}
)


def method(text: str | Method, **given: Any) -> Method:
    """The method that a text names, with its parameters."""
    if isinstance(text, Method):
        return text
    if not isinstance(text, str):
        raise ParameterError(f"a method is a name such as skr or Borda; got {text!r}.")
    name, inside = split(text)
    given = {**inside, **given}
    if isinstance(given.get("start"), str):
        given["start"] = method(given["start"])
    return REGISTRY.instance(name, given)


def method_summaries() -> list[tuple[str, str]]:
    """(name, one line) of every method."""
    return [(name, cls.summary) for name, cls in METHODS.items()]
