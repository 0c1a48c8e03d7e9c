"""Kemeny cost of an order: the weight of the votes that it contradicts, query by query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, Ints
from firstpage.core.kernels.voting import cost_bounds, order_costs
from firstpage.data import Ids
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.base import bit_rows, pair_table
from firstpage.evaluation.aggregation.weights import normalize_weights

GAP_TOLERANCE = 1e-9  # a smaller gap is a rounding error


@dataclass(frozen=True, eq=False)
class CostReport:
    """The Kemeny cost of every query's order, and a lower bound on it.

    Attributes
    ----------
    queries : Ids
        The queries.
    cost : ndarray of shape (n_queries,)
        The Kemeny cost of each order.
    lower_bound : ndarray of shape (n_queries,)
        A lower bound on the cost of any order of the query.
    gap : ndarray of shape (n_queries,)
        The optimality gap: an upper bound on the excess over the cost of the best order.
    optimal : int
        The number of queries whose order is proven optimal.
    ratio : float
        Total cost divided by total lower bound; 1 if both are 0.
    tied_pairs : ndarray of shape (n_queries,)
        The number of pairs of candidates with as many votes for one order as for the other.  Where
        there are any, other orders may have the same cost.
    pairs : ndarray of shape (n_queries,)
        The number of pairs of candidates.
    """

    queries: Ids
    cost: Floats
    lower_bound: Floats
    tied_pairs: Ints
    pairs: Ints

    @property
    def gap(self) -> Floats:
        """The optimality gap of each query."""
        return np.maximum(self.cost - self.lower_bound, 0.0)

    @property
    def optimal(self) -> int:
        """The number of queries whose order is proven optimal."""
        return int(np.count_nonzero(self.gap <= GAP_TOLERANCE * np.maximum(1.0, self.cost)))

    @property
    def ratio(self) -> float:
        """Total cost divided by total lower bound; 1 if both are 0."""
        bound, cost = float(self.lower_bound.sum()), float(self.cost.sum())
        return cost / bound if bound > 0 else 1.0 if cost <= GAP_TOLERANCE else np.inf

    def to_dict(self) -> dict[str, Any]:
        """Return the totals as JSON-serializable values, as `--json` prints them."""
        return {
            "cost": float(self.cost.sum()),
            "lower_bound": float(self.lower_bound.sum()),
            "ratio": self.ratio if np.isfinite(self.ratio) else None,
            "optimal": self.optimal,
            "queries": len(self.queries),
            "pairs": int(self.pairs.sum()),
            "tied_pairs": int(self.tied_pairs.sum()),
            "queries_with_ties": int(np.count_nonzero(self.tied_pairs)),
        }

    def __str__(self) -> str:
        note = ", as other orders may be where votes are tied" if self.tied_pairs.any() else ""
        return (
            f"Kemeny cost {self.cost.sum():.6g}, at least {self.lower_bound.sum():.6g} in any "
            f"order (ratio {self.ratio:.4f}); {self.optimal} of {len(self.queries)} queries "
            f"proven optimal{note}"
        )

    __repr__ = __str__


def kemeny_cost(order: Any, ballots: Ballots, weights: Iterable[float] | None = None) -> Floats:
    """Return the Kemeny cost of each query's order: the weight of the votes it contradicts.

    Parameters
    ----------
    order : array_like of shape (n_candidates,)
        The candidates of each query from best to worst, by their numbers in base order, as
        `Method.order` and `Aggregation.order` give them.
    ballots : Ballots
        The rankers' votes.
    weights : iterable of float, optional
        A weight per ranker; equal by default.  They are scaled to sum to 1.

    Returns
    -------
    ndarray of shape (n_queries,)
        The costs.

    Raises
    ------
    DataError
        If the order is not a permutation of the candidates of each query, or weights are invalid.

    References
    ----------
    .. [1] J. G. Kemeny, "Mathematics without Numbers", Daedalus 88(4), 1959.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [3, 1, 2]], [0, 3])
    >>> fp.aggregation.kemeny_cost([0, 1, 2], ballots).tolist()
    [0.5]
    """
    normalized = normalize_weights(weights, ballots.n_rankers)
    checked = _checked_order(order, ballots)
    costs = np.empty(len(ballots))
    order_costs(
        ranks=ballots.positions,
        weights=normalized,
        offsets=ballots.offsets,
        reach=ballots.vote_limit,
        order=checked,
        extra=pair_table(ballots),
        costs=costs,
    )
    return np.maximum(costs, 0.0)


def lower_bound(
    ballots: Ballots, weights: Iterable[float] | None = None, cycles: bool = True
) -> Floats:
    """Return a lower bound on the Kemeny cost of any order of each query.

    Every order contradicts at least the minority of the votes on each pair.

    Parameters
    ----------
    ballots : Ballots
        The rankers' votes.
    weights : iterable of float, optional
        A weight per ranker; equal by default.
    cycles : bool, default True
        Add what edge-disjoint majority cycles of length three must cost beyond that.

    Returns
    -------
    ndarray of shape (n_queries,)
        The bounds.

    Raises
    ------
    DataError
        If the weights are invalid.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [3, 1, 2]], [0, 3])
    >>> fp.aggregation.lower_bound(ballots).tolist()
    [0.5]
    """
    return bounds_and_ties(ballots, normalize_weights(weights, ballots.n_rankers), cycles)[0]


def bounds_and_ties(ballots: Ballots, weights: Floats, cycles: bool = True) -> tuple[Floats, Ints]:
    """Return a lower bound on the cost of each query, and its number of pairs with tied votes."""
    bounds, ties = np.empty(len(ballots)), np.empty(len(ballots), np.int64)
    beats, beaten = bit_rows(ballots)
    cost_bounds(
        ranks=ballots.positions,
        weights=weights,
        offsets=ballots.offsets,
        reach=ballots.vote_limit,
        cycles=int(cycles),
        extra=pair_table(ballots),
        beats=beats,
        beaten=beaten,
        bounds=bounds,
        ties=ties,
    )
    return np.maximum(bounds, 0.0), ties


def _checked_order(order: Any, ballots: Ballots) -> Ints:
    """Return the order; raise unless it has each candidate of a query once, as kernels require."""
    checked = np.ascontiguousarray(order, np.int64)
    size = ballots.positions.shape[1]
    start = np.repeat(ballots.offsets[:-1], ballots.lengths)
    if (
        checked.shape != (size,)
        or (checked < 0).any()
        or (checked >= np.repeat(ballots.lengths, ballots.lengths)).any()
    ):
        raise DataError(
            f"an order must list the {size} candidates by their numbers within the query."
        )
    if (np.bincount(start + checked, minlength=size) != 1).any():
        raise DataError("an order must list each candidate of a query once.")
    return checked
