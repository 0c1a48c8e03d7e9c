"""Kemeny's cost of an order: the weight of the votes that it contradicts, query by query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.methods import bit_rows, pair_table
from firstpage.aggregation.weights import normalize_weights
from firstpage.data.ids import Ids
from firstpage.errors import DataError
from firstpage.kernels.voting.kemeny import cost_bounds, order_costs
from firstpage.types import Floats, Ints

GAP_TOLERANCE = 1e-9  # a gap below this is rounding


@dataclass(frozen=True, eq=False)
class CostReport:
    """The cost of every query's order, and what no order of it can cost less than."""

    queries: Ids
    cost: Floats
    lower_bound: Floats

    @property
    def gap(self) -> Floats:
        """How much more than the best order each one costs at most."""
        return np.maximum(self.cost - self.lower_bound, 0.0)

    @property
    def optimal(self) -> int:
        """The number of queries whose order is proven to cost least."""
        return int(np.count_nonzero(self.gap <= GAP_TOLERANCE * np.maximum(1.0, self.cost)))

    @property
    def ratio(self) -> float:
        """Cost over lower bound, all queries together; 1 where both are 0."""
        least, cost = float(self.lower_bound.sum()), float(self.cost.sum())
        return cost / least if least > 0 else 1.0 if cost <= GAP_TOLERANCE else np.inf

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "cost": float(self.cost.sum()),
            "lower_bound": float(self.lower_bound.sum()),
            "ratio": self.ratio if np.isfinite(self.ratio) else None,
            "optimal": self.optimal,
            "queries": len(self.queries),
        }

    def __str__(self) -> str:
        return (
            f"Kemeny cost {self.cost.sum():.6g}, at least {self.lower_bound.sum():.6g} in any "
            f"order (ratio {self.ratio:.4f}); {self.optimal} of {len(self.queries)} queries "
            "proven optimal"
        )

    __repr__ = __str__


def kemeny_cost(order: Any, ballots: Ballots, weights: Iterable[float] | None = None) -> Floats:
    """What each query's order costs; `order` as `Method.order` gives it."""
    given = normalize_weights(weights, ballots.n_rankers)
    checked = _checked(order, ballots)
    costs = np.empty(len(ballots))
    order_costs(
        ballots.positions,
        given,
        ballots.offsets,
        ballots.vote_limit,
        checked,
        pair_table(ballots),
        costs,
    )
    return np.maximum(costs, 0.0)


def lower_bound(
    ballots: Ballots, weights: Iterable[float] | None = None, cycles: bool = True
) -> Floats:
    """What no order of a query can cost less than.

    Of the votes on a pair the lesser side is always lost; `cycles` adds what circles of three
    majorities must lose beyond that, no vote used twice.
    """
    given = normalize_weights(weights, ballots.n_rankers)
    bounds = np.empty(len(ballots))
    cost_bounds(
        ballots.positions, given, ballots.offsets, ballots.vote_limit, int(cycles),
        pair_table(ballots), *bit_rows(ballots), bounds,
    )  # fmt: skip
    return np.maximum(bounds, 0.0)


def _checked(order: Any, ballots: Ballots) -> Ints:
    """Kernels trust an order to name each candidate of a query once; so it is held here."""
    found = np.ascontiguousarray(order, np.int64)
    size = ballots.positions.shape[1]
    start = np.repeat(ballots.offsets[:-1], ballots.lengths)
    if (
        found.shape != (size,)
        or (found < 0).any()
        or (found >= np.repeat(ballots.lengths, ballots.lengths)).any()
    ):
        raise DataError(f"an order must name the {size} candidates by their numbers in the query.")
    if (np.bincount(start + found, minlength=size) != 1).any():
        raise DataError("an order must name each candidate of a query once.")
    return found
