"""Fusion: methods that add up the rankers' normalized scores, or points by rank.

Each ranker contributes to the score of a document by itself, so that the cost is linear in the
lengths of the lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, Ints, ParameterError, check_number
from firstpage.core.kernels import fusion as kernel
from firstpage.core.kernels.voting import ABSENT
from firstpage.data import offsets_from_lengths, sort_groups
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.base import Method, order_by_points, ordered_rankers

SCALED_EXPONENT = 12  # Borda's points are scaled to 2^12, so that no factor of weights matters
MAX_TOTAL = 1e300  # of weights that are factors of scores
ROUNDED_BITS = 8  # of the 53 bits of a score: what differs below them is a rounding error


@dataclass(frozen=True)
class Fusion(Method):
    """Base class of the methods that compute a score per document.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"q": {"a": 9, "b": 6}}, {"q": {"a": 1, "c": 3}}]
    >>> result = fp.aggregation.aggregate(runs, "CombSUM")
    >>> result.run.to_dict()
    {'q': {'a': 1.0, 'c': 1.0, 'b': 0.0}}
    """

    def points(self, ballots: Ballots, weights: Iterable[float] | None = None) -> Floats:
        """Return the fused score of each candidate."""
        numbers = None if weights is None else list(weights)
        ordered, normalized = ordered_rankers(ballots, numbers)
        total = 0.0 if numbers is None else sum(sorted(map(float, numbers)))
        if not 0 < total < MAX_TOTAL:  # all weights are 1 or 0, or their sums would overflow
            total = float(ballots.n_rankers)
        return total * self._points(ordered, normalized)

    def _points(self, ballots: Ballots, weights: Floats) -> Floats:
        """Return the scores with weights that sum to 1."""
        raise NotImplementedError

    def _order(self, ballots: Ballots, weights: Floats) -> Ints:
        return self.order_of_points(self._points(ballots, weights), ballots)

    def order_of_points(self, points: Floats, ballots: Ballots) -> Ints:
        """Return the candidates by descending points; ties in base order."""
        order, _ = sort_groups(rounded(points), ballots.offsets)
        return order - np.repeat(ballots.offsets[:-1], ballots.lengths)


def rounded(points: Floats) -> Floats:
    """Return points without their last bits, in which equal sums may differ."""
    half, mask = np.int64(1 << (ROUNDED_BITS - 1)), np.int64(-1 << ROUNDED_BITS)
    bits = np.ascontiguousarray(points).view(np.int64)
    return ((bits + half) & mask).view(np.float64)


@dataclass(frozen=True)
class Borda(Fusion):
    """Borda count: each ranker gives its best of n candidates n points, the next n - 1, and so on.

    Documents that a ranker does not list share the points of the remaining positions.  With
    missing="ignore" it gives them none, and gives a listed document the number of documents that it
    lists below less those above.

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

    def _points(self, ballots: Ballots, weights: Floats) -> Floats:
        if ballots.missing == "ignore":
            return borda_points(ballots, weights)
        size = np.repeat(ballots.lengths, ballots.lengths)
        return 0.5 * (borda_points(ballots, weights) + size + 1)

    def order_of_points(self, points: Floats, ballots: Ballots) -> Ints:
        exponent = int(np.frexp(np.abs(points).max(initial=0.0))[1])
        return order_by_points(np.ldexp(points, SCALED_EXPONENT - exponent), ballots)


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
class RankFusion(Fusion):
    """Base class of the methods that add up one term per list, a function of the rank."""

    def _terms(self, ranks: Floats) -> Floats:
        """Return the term of each rank, from 1."""
        raise NotImplementedError

    def _factors(self, counts: Floats) -> Floats | None:
        """Return the factor of documents in so many lists; None where it is 1."""
        return None

    def _points(self, ballots: Ballots, weights: Floats) -> Floats:
        points = np.empty(ballots.positions.shape[1])
        terms = np.zeros(ballots.longest + 1)  # the last one of documents that are not listed
        terms[:-1] = self._terms(np.arange(1.0, ballots.longest + 1))
        kernel.add_rank_terms(ballots.positions, weights, terms, points)
        factors = self._factors(np.arange(ballots.n_rankers + 1.0))
        if factors is not None:
            counts = np.empty(kernel.BLOCK, np.int64)
            kernel.multiply_by_count(ballots.positions, factors, counts, points)
        return points


@dataclass(frozen=True)
class RRF(RankFusion):
    """Reciprocal rank fusion: the sum over rankers of weight / (c + rank), ranks from 1.

    A ranker gives nothing to documents that it does not list.

    Parameters
    ----------
    c : float, default 60.0
        The constant, at least 0 (often called k); a larger one flattens the differences between
        ranks.

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
    tuned: ClassVar[dict[str, tuple[float, ...]]] = {"c": (0, 1, 2, 5, 10, 20, 40, 60, 100, 200)}

    def __post_init__(self) -> None:
        check_number(self, "c", minimum=0)

    def _terms(self, ranks: Floats) -> Floats:
        return 1.0 / (self.c + ranks)


@dataclass(frozen=True)
class RBC(RankFusion):
    """Rank-biased centroid: the sum over rankers of (1 - phi) phi^(rank - 1).

    A ranker gives nothing to documents that it does not list.

    Parameters
    ----------
    phi : float, default 0.9
        The persistence of a reader, at least 0 and below 1; a larger one looks deeper.

    Raises
    ------
    ParameterError
        If `phi` is out of range.

    References
    ----------
    .. [1] P. Bailey, A. Moffat, F. Scholer, P. Thomas, "Retrieval Consistency in the Presence of
       Query Variations", SIGIR 2017.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "RBC(phi=0.8)").order.tolist()
    [1, 0, 2]
    """

    phi: float = 0.9
    tuned: ClassVar[dict[str, tuple[float, ...]]] = {
        "phi": (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
    }

    def __post_init__(self) -> None:
        check_number(self, "phi", minimum=0)
        if self.phi >= 1:
            raise ParameterError(f"phi of RBC must be below 1; got {self.phi!r}.")

    def _terms(self, ranks: Floats) -> Floats:
        terms: Floats = (1.0 - self.phi) * self.phi ** (ranks - 1)
        return terms


@dataclass(frozen=True)
class ISR(RankFusion):
    """Inverse square rank: the sum of 1 / rank^2, times the number of lists with the document.

    References
    ----------
    .. [1] A. Mourao, F. Martins, J. Magalhaes, "Multimodal Medical Information Retrieval with
       Unsupervised Rank Fusion", Computerized Medical Imaging and Graphics 39, 2015.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "ISR").order.tolist()
    [1, 0, 2]
    """

    def _terms(self, ranks: Floats) -> Floats:
        return 1.0 / ranks**2

    def _factors(self, counts: Floats) -> Floats | None:
        return counts


@dataclass(frozen=True)
class LogISR(ISR):
    """ISR with the logarithm of the number of lists: a document in one list alone gets 0.

    References
    ----------
    .. [1] A. Mourao, F. Martins, J. Magalhaes, "Multimodal Medical Information Retrieval with
       Unsupervised Rank Fusion", Computerized Medical Imaging and Graphics 39, 2015.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "LogISR").order.tolist()
    [1, 0, 2]
    """

    def _factors(self, counts: Floats) -> Floats | None:
        return np.log(np.maximum(counts, 1.0))


@dataclass(frozen=True)
class LogNISR(ISR):
    """ISR times log(number of lists + sigma), which orders documents of one list too.

    Parameters
    ----------
    sigma : float, default 0.01
        What is added to the number of lists, above 0 and at most 1.

    Raises
    ------
    ParameterError
        If `sigma` is out of range.

    References
    ----------
    .. [1] A. Mourao, F. Martins, J. Magalhaes, "Multimodal Medical Information Retrieval with
       Unsupervised Rank Fusion", Computerized Medical Imaging and Graphics 39, 2015.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2], [2, 3, 1]], [0, 3])
    >>> fp.aggregation.aggregate(ballots, "LogNISR").order.tolist()
    [1, 0, 2]
    """

    sigma: float = 0.01
    tuned: ClassVar[dict[str, tuple[float, ...]]] = {"sigma": (0.01, 0.05, 0.1, 0.3, 1.0)}

    def __post_init__(self) -> None:
        check_number(self, "sigma", above=0)
        if self.sigma > 1:
            raise ParameterError(f"sigma of LogNISR must be at most 1; got {self.sigma!r}.")

    def _factors(self, counts: Floats) -> Floats | None:
        return np.log(np.maximum(counts, 1.0) + self.sigma)
