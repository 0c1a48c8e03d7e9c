"""Measures of the C/W/L framework: the gain that a user expects, by how the user goes on reading.

A user who has read rank i goes on with probability C(i), so that rank i is read with probability
V(i) = C(1) .. C(i - 1).  The value is the expected gain per document that is read, the sum of
V(i) gain(i) over the sum of V(i), over 1,000 ranks (Moffat, Bailey, Scholer and Thomas 2017).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise, product
from math import factorial, prod
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, Ints, MeasureError
from firstpage.evaluation.measures.base import Convention, Measure, Needs, RankedLists, first_ranks
from firstpage.evaluation.measures.graded import (
    GAINS,
    check_scale,
    discounted_gains,
    discounts,
    scale_of,
)

RANKS = 1000  # ranks of a list, as in cwl_eval; those below its documents gain nothing
MAX_ARRANGEMENTS = 1000  # of the gains of tied documents that are all measured
SAMPLED_ARRANGEMENTS = 1000  # random ones, where there are more
BATCH_ROWS = 256


@dataclass(frozen=True)
class ScaledGains(Measure):
    """Base of the measures whose gains are labels, scaled to the range from 0 to 1.

    Parameters
    ----------
    max : float or {"data", "query"}, optional
        Label with gain 1: a number, the greatest label in the data (the default), or the greatest
        label in the query.
    min : float, default 0
        Label with gain 0; lower ones and unjudged documents gain nothing either.
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    has_scale: ClassVar[bool] = True

    max: float | str | None = None
    min: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale(self, self.max)
        if isinstance(self.max, (int, float)) and not self.max > self.min:
            raise MeasureError(f"max of {self.name} must be above min ({self.min:g}).")

    def _gains(self, lists: RankedLists) -> Floats:
        """Return the gain of every ranked document."""
        span = np.repeat(scale_of(self, self.max, lists) - self.min, np.diff(lists.offsets))
        gains = np.clip(np.nan_to_num(lists.labels, nan=self.min) - self.min, 0.0, None)
        return np.divide(gains, span, out=np.zeros_like(gains), where=span > 0)


@dataclass(frozen=True)
class UserModel(ScaledGains):
    """Base of the measures that a continuation probability defines.

    With tied scores it is the mean over all orders of the tied documents, if these have at most
    1,000 different sequences of gains, else over 1,000 random ones, by the convention's
    seed and the query id.
    """

    def _continuation(self, gains: Floats, rank: Floats) -> Floats:
        """Return C of every rank, given a row of gains per list."""
        raise AssertionError(f"{self.name} has no user model")  # every subclass defines it

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        gains = self._gains(lists)
        width = min(RANKS, getattr(self, "cutoff", None) or RANKS)
        sums, counts = np.zeros(len(lists)), np.zeros(len(lists))
        rows: list[Floats] = []
        numbers: list[int] = []
        hashes = lists.queries.hashes.tolist()  # not the number of a query: shards have their own
        for q, (lo, hi) in enumerate(pairwise(lists.offsets.tolist())):
            seed = (convention.seed, hashes[q])
            for arrangement in tie_arrangements(gains[lo:hi], lists.tie_sizes[lo:hi], seed):
                rows.append(arrangement[:width])
                numbers.append(q)
                if len(rows) == BATCH_ROWS:
                    self._add(rows, numbers, width, sums, counts)
        self._add(rows, numbers, width, sums, counts)
        return sums / counts

    def _add(
        self, rows: list[Floats], numbers: list[int], width: int, sums: Floats, counts: Floats
    ) -> None:
        """Add the values of rows of gains to those of their queries, and empty the lists."""
        if not rows:
            return
        padded = np.zeros((len(rows), width))
        for row, gains in enumerate(rows):
            padded[row, : len(gains)] = gains
        rank = np.arange(1, width + 1, dtype=np.float64)
        read = np.ones_like(padded)
        np.cumprod(self._continuation(padded, rank)[:, :-1], axis=1, out=read[:, 1:])
        np.add.at(sums, numbers, (read * padded).sum(axis=1) / read.sum(axis=1))
        np.add.at(counts, numbers, 1.0)
        rows.clear()
        numbers.clear()


def tie_arrangements(
    gains: Floats, tie_sizes: Ints, seed: int | tuple[int, int]
) -> Iterator[Floats]:
    """Yield the sequences of gains that the orders of tied documents make, all equally likely."""
    starts = []
    at = 0
    while at < len(gains):
        starts.append(at)
        at += int(tie_sizes[at])
    blocks = [gains[a:b] for a, b in pairwise([*starts, len(gains)])]
    tied = [block for block in blocks if len(block) > 1 and block.min() < block.max()]
    if not tied:
        yield gains
    elif _arrangement_count(tied) <= MAX_ARRANGEMENTS:
        choices = [
            [[gain] * len(block) for gain in block[:1]]
            if len(block) == 1 or block.min() == block.max()
            else list(_distinct_orders(sorted(block.tolist())))
            for block in blocks
        ]
        for parts in product(*choices):
            yield np.array([gain for part in parts for gain in part])
    else:
        rng = np.random.default_rng(seed)
        for _ in range(SAMPLED_ARRANGEMENTS):
            yield np.concatenate([rng.permutation(block) for block in blocks])


def _arrangement_count(blocks: list[Floats]) -> int:
    """Return the number of different sequences of gains, bounded where it is enormous."""
    count = 1
    for block in blocks:
        repeats = Counter(block.tolist()).values()
        count *= factorial(len(block)) // prod(map(factorial, repeats))
        if count > MAX_ARRANGEMENTS:
            break
    return count


def _distinct_orders(gains: list[float]) -> Iterator[list[float]]:
    """Yield the different orders of a sorted list that may have equal elements."""
    if not gains:
        yield []
        return
    for value, _ in groupby(gains):
        rest = gains.copy()
        rest.remove(value)
        for tail in _distinct_orders(rest):
            yield [value, *tail]


@dataclass(frozen=True)
class _Goal(UserModel):
    """Base of the user models with a goal.

    Parameters
    ----------
    T : float, default 1
        Total gain that the user looks for.
    """

    T: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.T > 0 and np.isfinite(self.T)):
            raise MeasureError(f"T of {self.name} must be a positive number; got {self.T}.")


@dataclass(frozen=True)
class INSQ(_Goal):
    """Expected gain of a user who goes on with probability ((i + 2T - 1) / (i + 2T))^2 at rank i.

    References
    ----------
    Moffat, Scholer and Thomas, Models and Metrics: IR Evaluation as a User Process, ADCS 2012.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([2, 1], [1, 0], qid=[1, 1], measures="INSQ")
    >>> round(result["INSQ"], 4)
    0.3882
    """

    def _continuation(self, gains: Floats, rank: Floats) -> Floats:
        return np.broadcast_to(((rank + 2 * self.T - 1) / (rank + 2 * self.T)) ** 2, gains.shape)


@dataclass(frozen=True)
class INST(_Goal):
    """Expected gain of a user who reads the less, the more of the goal T has been reached.

    The user goes on with probability ((i + T + t - 1) / (i + T + t))^2 at rank i, where t is what
    is left of T after the gains so far.

    References
    ----------
    Moffat, Bailey, Scholer and Thomas, INST: An Adaptive Metric for Information Retrieval
    Evaluation, ADCS 2015.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([2, 1], [1, 0], qid=[1, 1], measures="INST")
    >>> round(result["INST"], 4)
    0.6083
    """

    def _continuation(self, gains: Floats, rank: Floats) -> Floats:
        left = rank + 2 * self.T - np.cumsum(gains, axis=1)
        return ((left - 1) / left) ** 2


@dataclass(frozen=True)
class BPM(_Goal):
    """Mean gain of the ranks up to the one at which the gain reaches T, or up to rank k.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k that the user is willing to read; None reads until T is reached.

    References
    ----------
    Zhang et al., Evaluating Web Search with a Bejeweled Player Model, SIGIR 2017 (static form).

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [0, 1, 1], qid=[1, 1, 1], measures="BPM@10")["BPM@10"]
    0.5
    """

    cutoff: int | None = None

    def _continuation(self, gains: Floats, rank: Floats) -> Floats:
        return (np.cumsum(gains, axis=1) < self.T).astype(np.float64)


@dataclass(frozen=True)
class NERR8(UserModel):
    """Expected gain of a user who goes on with probability 1 - gain(i), and stops after rank k.

    Parameters
    ----------
    cutoff : int
        Number of ranks k.

    References
    ----------
    Azzopardi, Mackenzie and Moffat, ERR is not C/W/L: Exploring the Relationship Between Expected
    Reciprocal Rank and Other Metrics, ICTIR 2021, equation 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="NERR8@10")["NERR8@10"]
    0.5
    """

    cutoff: int | None = None
    without_cutoff: ClassVar[str] = "NERR8@10"

    def _continuation(self, gains: Floats, rank: Floats) -> Floats:
        return 1.0 - gains


@dataclass(frozen=True)
class NERR9(UserModel):
    """Expected gain of a user who goes on with probability (1 - gain(i)) i / (i + 1), up to rank k.

    Parameters
    ----------
    cutoff : int
        Number of ranks k.

    References
    ----------
    Azzopardi, Mackenzie and Moffat, ERR is not C/W/L: Exploring the Relationship Between Expected
    Reciprocal Rank and Other Metrics, ICTIR 2021, equation 9.

    Examples
    --------
    >>> import firstpage as fp
    >>> round(fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="NERR9@10")["NERR9@10"], 4)
    0.3333
    """

    cutoff: int | None = None
    without_cutoff: ClassVar[str] = "NERR9@10"

    def _continuation(self, gains: Floats, rank: Floats) -> Floats:
        return (1.0 - gains) * rank / (rank + 1)


@dataclass(frozen=True)
class NERR10(UserModel):
    """Expected gain of a user who goes on with probability p (1 - gain(i)).

    Parameters
    ----------
    p : float, default 0.9
        Persistence of the user.

    References
    ----------
    Azzopardi, Mackenzie and Moffat, ERR is not C/W/L: Exploring the Relationship Between Expected
    Reciprocal Rank and Other Metrics, ICTIR 2021, equation 10.

    Examples
    --------
    >>> import firstpage as fp
    >>> round(fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="NERR10")["NERR10"], 4)
    0.4737
    """

    p: float = 0.9

    def _continuation(self, gains: Floats, rank: Floats) -> Floats:
        return self.p * (1.0 - gains)


@dataclass(frozen=True)
class NERR11(_Goal):
    """Expected gain of a user who goes on as in INSQ, times 1 - gain(i).

    References
    ----------
    Azzopardi, Mackenzie and Moffat, ERR is not C/W/L: Exploring the Relationship Between Expected
    Reciprocal Rank and Other Metrics, ICTIR 2021, equation 11.

    Examples
    --------
    >>> import firstpage as fp
    >>> round(fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="NERR11")["NERR11"], 4)
    0.3077
    """

    def _continuation(self, gains: Floats, rank: Floats) -> Floats:
        return (1.0 - gains) * ((rank + 2 * self.T - 1) / (rank + 2 * self.T)) ** 2


@dataclass(frozen=True)
class SDCG(ScaledGains):
    """DCG of scaled labels, divided by the sum of the discounts of the first k ranks.

    The ideal has the greatest label at all k ranks, however many documents are judged so.

    Parameters
    ----------
    cutoff : int
        Number of ranks k.

    References
    ----------
    Jarvelin and Kekalainen, Cumulated Gain-Based Evaluation of IR Techniques, TOIS 2002.
    Azzopardi, Thomas and Moffat, cwl_eval: An Evaluation Tool for Information Retrieval, SIGIR
    2019.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [1, 1], qid=[1, 1], measures="SDCG@2")["SDCG@2"]
    1.0
    """

    cutoff: int | None = None
    without_cutoff: ClassVar[str] = "SDCG@10"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        assert self.cutoff is not None, "required by without_cutoff"
        discount, no_scale = discounts("log2", self.cutoff), np.zeros(len(lists))
        ranked = self._gains(lists), lists.tie_sizes, lists.offsets
        weights = GAINS["linear"], np.empty(0), discount
        scaled: Floats = discounted_gains(ranked, no_scale, weights, self.cutoff) / discount.sum()
        return scaled

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(self.cutoff)
