"""The base class of aggregation methods, and the buffers that they share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from firstpage.core import DataError, Floats, Ints, Words
from firstpage.core.kernels.voting import ABSENT
from firstpage.data import sort_groups
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.weights import normalize_weights

POINT_GRID = 2.0**30  # points that differ by rounding errors are equal on this grid
BEYOND_ALL = 2 * ABSENT  # larger than any position
MAX_CANDIDATES = 10_000  # per query; a table of all their pairs takes 800 MB
FEW_CANDIDATES = 1024  # which usually tell rankers apart


@dataclass(frozen=True)
class Method:
    """Base class of the aggregation methods.

    Results are deterministic: ties are in base order.  They do not depend on the order of the
    rankers.  `str(method)` is a text that `method()` parses.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.aggregation.aggregate([{"q": {"a": 2, "b": 1}}], "rrf(c=20)")
    >>> str(result.method)
    'RRF(c=20)'
    """

    reads_scores: ClassVar[bool] = False  # not ranks alone

    @property
    def needs_scores(self) -> bool:
        """Whether the ballots must have the rankers' scores."""
        return self.reads_scores

    def __str__(self) -> str:
        parameters = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return type(self).__name__ + (f"({', '.join(parameters)})" if parameters else "")

    def order(self, ballots: Ballots, weights: Iterable[float] | None = None) -> Ints:
        """Return the candidates of each query from best to worst."""
        return self._order(*ordered_rankers(ballots, weights))

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        raise NotImplementedError


def ordered_rankers(ballots: Ballots, weights: Iterable[float] | None) -> tuple[Ballots, Floats]:
    """Return ballots with the rankers in an order that depends on their votes alone, and weights.

    Sums over rankers then have the same rounding errors, in whatever order the rankers are given.
    """
    normalized = normalize_weights(weights, ballots.n_rankers)
    tables = [ballots.positions] if ballots.scores is None else [ballots.positions, ballots.scores]
    for size in (FEW_CANDIDATES, None):
        keys = [
            (weight, *(table[a, :size].tobytes() for table in tables))
            for a, weight in enumerate(normalized.tolist())
        ]
        if len(set(keys)) == len(keys):
            break
    rankers = sorted(range(len(keys)), key=keys.__getitem__)
    if rankers == list(range(len(keys))):
        return ballots, normalized
    scores = None if ballots.scores is None else ballots.scores[rankers]
    names = tuple(ballots.names[a] for a in rankers) if ballots.names else ()
    ordered = replace(ballots, positions=ballots.positions[rankers], scores=scores, names=names)
    return ordered, normalized[rankers]


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
    """Return a buffer of one number per pair of candidates; refuse more than a table can hold."""
    if ballots.longest > MAX_CANDIDATES:
        raise DataError(
            f"a query has {ballots.longest} candidates, and methods that compare all pairs of them "
            f"take up to {MAX_CANDIDATES}; set a depth."
        )
    return np.empty(ballots.longest**2)


def bit_rows(ballots: Ballots) -> tuple[Words, Words]:
    """Return two buffers of one bit per pair of candidates."""
    size = ballots.longest * ((ballots.longest + 63) // 64)
    return np.empty(size, np.uint64), np.empty(size, np.uint64)
