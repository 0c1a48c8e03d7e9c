"""Aggregation methods by name: `skr`, `Borda`, `rrf(c=20)`, `local-kemeny(start=copeland)`.

Some methods add points per ranker, some sort by majority votes, and some search for the order of
minimal Kemeny cost.

The majority relation ("a majority puts x before y") is not transitive, so the result of a sort
depends on which documents it compares.  The quick sorts take the first document in base order as
the pivot of a list; documents that a majority puts before the pivot go before it, all others after
it, both in base order.
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
from firstpage.kernels.voting.votes import (
    ABSENT,
    copeland_scores,
    local_kemenization,
    majority_quick_sort,
)
from firstpage.registry import ParameterError, Registry, by_class_name, check_number, parse_call
from firstpage.types import Floats, Ints, Words

POINT_GRID = 2.0**30  # points that differ by rounding errors are equal on this grid
BEYOND_ALL = 2 * ABSENT  # larger than any position


@dataclass(frozen=True)
class Method:
    """Base class of the aggregation methods.

    Results are deterministic: ties are in base order.  `str(method)` is a text that `method()`
    parses.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.aggregation.aggregate([{"q": {"a": 2, "b": 1}}], "rrf(c=20)")
    >>> str(result.method)
    'RRF(c=20)'
    """

    summary: ClassVar[str] = ""  # one line, for the manual

    def __str__(self) -> str:
        parameters = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return type(self).__name__ + (f"({', '.join(parameters)})" if parameters else "")

    def order(self, ballots: Ballots, weights: Iterable[float] | None = None) -> Ints:
        """Return the candidates of each query from best to worst.

        Parameters
        ----------
        ballots : Ballots
            The rankers' votes.
        weights : iterable of float, optional
            A weight per ranker; equal by default.  They are scaled to sum to 1.

        Returns
        -------
        ndarray of shape (n_candidates,)
            For each query, the numbers of its candidates in base order, best first.

        Raises
        ------
        DataError
            If the weights are invalid.
        """
        return self._order(ballots, normalize_weights(weights, ballots.n_rankers))

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        raise NotImplementedError


def order_by_points(points: Floats, ballots: Ballots, grid: float = POINT_GRID) -> Ints:
    """Return the candidates by descending points; ties in base order."""
    order, _ = sort_groups(np.rint(points * grid), ballots.offsets)
    return order - np.repeat(ballots.offsets[:-1], ballots.lengths)


def vote_limits(ballots: Ballots) -> tuple[Ints, Ints]:
    """Return, per query, the limits of winning and losing positions if all votes count."""
    size = len(ballots)
    return np.full(size, BEYOND_ALL, np.int64), np.full(size, ballots.vote_limit, np.int64)


def workspace(ballots: Ballots, numbers: int = 1) -> Ints:
    """Return a buffer of `numbers` integers per candidate of the longest query."""
    return np.empty(max(2, numbers * ballots.longest), np.int64)


def pair_table(ballots: Ballots) -> Floats:
    """Return a buffer of one number per pair of candidates."""
    return np.empty(ballots.longest**2)


def bit_rows(ballots: Ballots) -> tuple[Words, Words]:
    """Return two buffers of one bit per pair of candidates."""
    size = ballots.longest * ((ballots.longest + 63) // 64)
    return np.empty(size, np.uint64), np.empty(size, np.uint64)


FINE_POINT_GRID = 2.0**46  # for points up to 1, which differ little far down the lists


@dataclass(frozen=True)
class Borda(Method):
    """Borda count: each ranker gives a document the number of documents below less those above.

    Documents that a ranker does not list share the points of the remaining positions; with
    missing="ignore" it gives them none, and counts only the documents that it lists.

    References
    ----------
    .. [1] J. A. Aslam, M. Montague, "Models for Metasearch", SIGIR 2001.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "Borda").order.tolist()
    [1, 0, 2]
    """

    summary: ClassVar[str] = "the mean position in the rankers' lists"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        return order_by_points(borda_points(ballots, weights), ballots)


def borda_points(ballots: Ballots, weights: Floats) -> Floats:
    """Return the weighted sum over rankers of documents below less documents above."""
    points = np.zeros(ballots.positions.shape[1])
    for positions, weight in zip(ballots.positions, weights, strict=True):
        listed = positions != ABSENT
        counts = offsets_from_lengths(listed)[ballots.offsets]
        length = np.repeat(np.diff(counts), ballots.lengths)
        if ballots.missing == "ignore":
            points += weight * np.where(listed, length - 1 - 2 * positions, 0)
        else:
            full = np.repeat(ballots.lengths, ballots.lengths)
            points += weight * np.where(listed, full - 1 - 2 * positions, -length)
    return points


@dataclass(frozen=True)
class RRF(Method):
    """Reciprocal rank fusion: the sum over rankers of weight / (c + rank), ranks from 1.

    A ranker gives nothing to documents that it does not list.

    Parameters
    ----------
    c : float, default 60.0
        The constant, at least 0; a larger one flattens the differences between ranks.

    Raises
    ------
    ParameterError
        If `c` is negative.

    References
    ----------
    .. [1] G. V. Cormack, C. L. A. Clarke, S. Buettcher, "Reciprocal Rank Fusion Outperforms
       Condorcet and Individual Rank Learning Methods", SIGIR 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "RRF(c=20)").order.tolist()
    [1, 0, 2]
    """

    c: float = 60.0
    summary: ClassVar[str] = "sums of 1 / (c + rank)"

    def __post_init__(self) -> None:
        check_number(self, "c", minimum=0)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        points = np.zeros(ballots.positions.shape[1])
        for positions, weight in zip(ballots.positions, weights, strict=True):
            terms = weight * (self.c + 1) / (self.c + 1 + positions)
            points += np.where(positions == ABSENT, 0.0, terms)
        return order_by_points(points, ballots, FINE_POINT_GRID)


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

    summary: ClassVar[str] = "pairwise majority contests won less lost"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        points = np.empty(ballots.positions.shape[1])
        copeland_scores(ballots.positions, weights, ballots.offsets, *vote_limits(ballots), points)
        return order_by_points(points, ballots)


Credit = Literal["extended", "paper"]


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
        candidates, rounded up.

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
    summary: ClassVar[str] = "quick sort by the majority of weighted votes (TopRank)"

    def __post_init__(self) -> None:
        if self.credit not in get_args(Credit):
            raise ParameterError(f"credit must be extended or paper; got {self.credit!r}.")
        if self.k_agg is not None:
            check_number(self, "k_agg", minimum=1, integer=True)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        top = (ballots.lengths + 1) // 2
        if self.k_agg is not None:
            top = np.minimum(ballots.lengths, self.k_agg)
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

    summary: ClassVar[str] = "quick sort by the majority of all votes"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        return _quick_sorted(ballots, weights, *vote_limits(ballots))


def _quick_sorted(ballots: Ballots, weights: Floats, top: Ints, limit: Ints) -> Ints:
    """Sort by votes in which positions below `top` win and positions below `limit` lose."""
    order = np.empty(ballots.positions.shape[1], np.int64)
    majority_quick_sort(
        ballots.positions,
        weights,
        ballots.offsets,
        top,
        limit,
        workspace(ballots, 2),
        workspace(ballots),
        order,
    )
    return order


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
    summary: ClassVar[str] = "the best of several quick sorts with random pivots"

    def __post_init__(self) -> None:
        check_number(self, "repeats", minimum=1, integer=True)
        check_number(self, "seed", integer=True)

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        order = np.empty(ballots.positions.shape[1], np.int64)
        salt = np.uint64(int(self.seed) * int(STEP) % 2**64)
        kwik_sort(
            ballots.positions, weights, ballots.offsets, ballots.vote_limit,
            ballots.queries.hashes ^ salt, int(self.repeats),
            pair_table(ballots), workspace(ballots), workspace(ballots), workspace(ballots, 2),
            order,
        )  # fmt: skip
        return order


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

    start: Method = Borda()
    summary: ClassVar[str] = "another method's order, neighbors put in majority order"

    def __post_init__(self) -> None:
        if not isinstance(self.start, Method):
            raise ParameterError(f"start of LocalKemeny must be a method; got {self.start!r}.")

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
    the result of lowest Kemeny cost.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "BestInsertion").order.tolist()
    [1, 0, 2]
    """

    summary: ClassVar[str] = "local search by moving single documents, from several starts"

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        rankers = [
            order_by_points(-positions.astype(np.float64), ballots)
            for positions in ballots.positions
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
    """The order of minimal Kemeny cost, found exactly.

    Documents on common cycles of the majority relation form a component (a strongly connected
    component of the majority graph); the components are ordered by majorities, and each is ordered
    by dynamic programming over its subsets.

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
    summary: ClassVar[str] = "the order of minimal Kemeny cost, where majority cycles are small"

    def __post_init__(self) -> None:
        check_number(self, "limit", minimum=1, integer=True)
        if self.limit > MAX_COMPONENT:
            raise ParameterError(
                f"limit of ExactKemeny must be at most {MAX_COMPONENT}; got {self.limit}."
            )
        if self.larger not in get_args(LargeComponents):
            raise ParameterError(f"larger must be refuse or search; got {self.larger!r}.")

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        votes = (ballots.positions, weights, ballots.offsets, ballots.vote_limit)
        size = ballots.positions.shape[1]
        first, above = np.empty(size, np.int64), np.empty(size, np.int64)
        components(*votes, pair_table(ballots), *bit_rows(ballots), first, above)
        query = np.repeat(np.arange(len(ballots)), ballots.lengths)
        start = ballots.offsets[query]
        members = np.bincount(start + first, minlength=size)[start + first]
        rank = np.arange(size)
        if (members > self.limit).any():
            rank = self._initial_ranks(ballots, weights, members)
        order = np.lexsort((rank, first, above, query)) - start
        low, high = np.empty(MAX_COMPONENT << 11), np.empty(MAX_COMPONENT << 11)
        subsets = np.empty(1 << min(int(self.limit), int(members.max(initial=1))))
        order_components(
            *votes, first, int(self.limit), pair_table(ballots), pair_table(ballots),
            low, high, subsets, workspace(ballots), workspace(ballots), order,
        )  # fmt: skip
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


METHODS: dict[str, type[Method]] = by_class_name(
    SupervisedKemeny, Kemeny, Borda, RRF, Copeland, KwikSort, LocalKemeny, BestInsertion,
    ExactKemeny,
)  # fmt: skip
REGISTRY = Registry(
    "aggregation method", METHODS, {"skr": "SupervisedKemeny", "exact": "ExactKemeny"}
)


def method(text: str | Method, **parameters: Any) -> Method:
    """Return the method that a text denotes.

    Parameters
    ----------
    text : str or Method
        A name with optional parameters, such as "Borda", "skr" or "rrf(c=20)"; a method is returned
        as it is.
    **parameters
        Parameters, which override those of the text.

    Returns
    -------
    Method
        The method.

    Raises
    ------
    ParameterError
        If the name or a parameter is unknown or invalid.
    """
    if isinstance(text, Method):
        return text
    if not isinstance(text, str):
        raise ParameterError(f"a method must be a name such as skr or Borda; got {text!r}.")
    name, inside = parse_call(text)
    parameters = {**inside, **parameters}
    if isinstance(parameters.get("start"), str):
        parameters["start"] = method(parameters["start"])
    return REGISTRY.instance(name, parameters)


def method_summaries() -> list[tuple[str, str]]:
    """Return the name and a one-line summary of every method."""
    return [(name, cls.summary) for name, cls in METHODS.items()]
