"""Measures of order: how well a ranking agrees with the preferences in the truth.

They consider judged documents only; judged documents that were not retrieved form one tie at the
end of the list.  Documents of equal label have no preferred order.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from firstpage.core import Floats, Ints, MeasureError
from firstpage.core.kernels.measures import order as kernel
from firstpage.data import offsets_from_lengths
from firstpage.evaluation.measures.base import (
    ALL,
    Convention,
    Measure,
    RankedLists,
    kernel_cutoff,
    kernel_values,
    ratio,
)
from firstpage.evaluation.measures.graded import discounts

MANY_DEPTHS = 0.99  # persistence above which depths beyond the lists are not added one by one


def _concordance(lists: RankedLists) -> tuple[Floats, ...]:
    """Return pairs per query: concordant, discordant, tied in score, tied in label, all."""
    lists = lists.judged_only
    labels, n = lists.labels.copy(), lists.lengths.astype(np.float64)
    out = np.empty(4 * len(lists))
    kernel.concordance(labels, lists.tie_sizes, lists.offsets, np.empty(len(labels)), out)
    return *out.reshape(-1, 4).T, n * (n - 1) / 2


def _counters(lists: RankedLists) -> Ints:
    """Return workspace of kernels: an integer per document of the longest list, and one more."""
    return np.empty(int(lists.lengths.max(initial=0)) + 1, np.int64)


@dataclass(frozen=True)
class Tau(Measure):
    """Kendall's tau-b between scores and labels.

    tau-b = (C - D) / sqrt((n0 - n1) * (n0 - n2)), with C concordant and D discordant pairs among
    all n0, n1 of them tied in score and n2 tied in label; 0 where either is constant.

    References
    ----------
    Kendall, The Treatment of Ties in Ranking Problems, Biometrika 1945.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [2, 1, 0], qid=[1, 1, 1], measures="Tau")["Tau"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (-1.0, 1.0)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        concordant, discordant, tied_scores, tied_labels, pairs = _concordance(lists)
        norm = np.sqrt((pairs - tied_scores) * (pairs - tied_labels))
        return ratio(concordant - discordant, norm)


@dataclass(frozen=True)
class PairAccuracy(Measure):
    """Pairwise accuracy: the fraction of preferences that the ranking agrees with.

    PairAccuracy = (pairs in the order of the labels) / (pairs with different labels).

    A preference is a pair of documents with different labels; a pair with tied scores counts 1/2.
    A query without preferences has the value 0.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([3, 2, 2, 2], [0, 1, 1, 0], qid=[1] * 4, measures="PairAccuracy")
    >>> result["PairAccuracy"]
    0.25
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        concordant, discordant, _, tied_labels, all_pairs = _concordance(lists)
        pairs = all_pairs - tied_labels
        return ratio(concordant + (pairs - concordant - discordant) / 2, pairs)


@dataclass(frozen=True)
class WKT(Measure):
    """Weighted Kendall's tau distance: worse documents ranked above each of the true top k.

    WKT@k = sum over true ranks j <= k of (2^label_j - 1) / log2(1 + j) times the number of
    documents of a lower label that rank above document j.  Lower is better.  With `weights`,
    weight j of these takes the place of (2^label_j - 1) / log2(1 + j).  Documents of equal label
    share the weights of their true ranks.

    Parameters
    ----------
    norm : bool, default False
        Whether to divide by the sum of the weights, so that 1 - NDCG@k <= WKT(norm=true)@k.
    weights : sequence of float or str, optional
        The weight of each true rank, at least as many as the cut-off, or else as the longest query
        has judged documents; or a text file with these numbers, which is read at once.
    cutoff : int, optional
        Number of true ranks k; None takes all.

    Raises
    ------
    MeasureError
        If the value overflows, for labels above 1000 without `norm`; if a weight is not a number of
        at least 0, if all are 0, or if there are too few.

    References
    ----------
    Lan et al., Is Top-k Sufficient for Ranking?, CIKM 2013, eq. 12.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="WKT")["WKT"]
    1.0
    >>> measure = fp.measure("WKT(weights=[3, 1])")
    >>> fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures=measure)[str(measure)]
    3.0
    """

    norm: bool = False
    weights: tuple[float, ...] | str | None = None
    cutoff: int | None = None
    lower_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        weights = None if self.weights is None else rank_weights(self.weights)
        object.__setattr__(self, "weights", weights)
        super().__post_init__()
        if weights is not None and self.cutoff is not None and len(weights) < self.cutoff:
            raise MeasureError(
                f"WKT@{self.cutoff} needs a weight for each of {self.cutoff} true ranks; weights "
                f"has {len(weights)}."
            )

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        judged = lists.judged_only
        value, total = np.empty(len(judged)), np.empty(len(judged))
        best, _ = judged.ideal(ALL)
        longest = int(judged.lengths.max(initial=0))
        if self.weights is None:
            rank_factors = discounts(convention.discount, longest)
        else:
            rank_factors = self._rank_factors(longest)
        kernel.weighted_kendall(
            labels=judged.labels,
            tie_sizes=judged.tie_sizes,
            offsets=judged.offsets,
            ideal=best,
            max_label=judged.max_labels,
            discount=rank_factors,
            unit_gains=int(self.weights is not None),
            cutoff=kernel_cutoff(self.cutoff),
            weights=np.empty(len(rank_factors)),
            tree=_counters(judged),
            worse_above=_counters(judged),
            out=value,
            total=total,
        )
        if self.norm:
            return ratio(value, total)
        if self.weights is not None:
            return value
        if judged.max_labels.max(initial=0.0) > 1000:
            raise MeasureError(
                f"{self} overflows for labels up to {judged.max_labels.max():g}; use "
                "WKT(norm=true), which divides by the sum of the weights."
            )
        return value * np.exp2(judged.max_labels)

    def _rank_factors(self, longest: int) -> Floats:
        """Return the own weights of the true ranks of lists of up to `longest` documents."""
        weights = np.array(self.weights, np.float64)
        if self.cutoff is None and len(weights) < longest:
            raise MeasureError(
                f"WKT has {len(weights)} weights, and a query has {longest} judged documents; give "
                f"more weights, or a cut-off, as in WKT(weights=..)@{len(weights)}."
            )
        factors = np.zeros(max(longest, 1))
        factors[: len(weights)] = weights[: len(factors)]
        return factors


def rank_weights(weights: Any) -> tuple[float, ...]:
    """Return the weights of true ranks, from numbers or from a text file with numbers."""
    source = "weights of WKT"
    if isinstance(weights, (str, os.PathLike)):
        source = f"{os.fspath(weights)}: weights of WKT"
        try:
            text = Path(weights).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text file"
            raise MeasureError(
                f"{os.fspath(weights)}: the weights of WKT cannot be read ({reason}); write "
                "numbers, as in WKT(weights=[3, 2, 1]), or name a file with them."
            ) from None
        weights = text.strip().strip("[]").replace(",", " ").split()
    try:
        numbers = tuple(float(weight) for weight in weights)
    except (TypeError, ValueError):
        raise MeasureError(f"{source} must be numbers; got {weights!r:.60}.") from None
    for rank, number in enumerate(numbers, 1):
        if not 0.0 <= number < math.inf:
            raise MeasureError(
                f"{source} must be finite and at least 0; that of rank {rank} is {number:g}."
            )
    if not any(numbers):
        raise MeasureError(f"{source} must have a positive number; got {list(numbers)}.")
    return numbers


@dataclass(frozen=True)
class TopK01(Measure):
    """Top-k true loss: 0 if the first k ranks are exactly those of the truth, else 1.

    With tied scores it is the probability of an error under random tie breaking.  Lower is better.

    Parameters
    ----------
    cutoff : int
        Number of ranks k; required.

    References
    ----------
    Xia et al., Statistical Consistency of Top-k Ranking, NIPS 2009, eq. 5.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([3, 2, 1], [2, 0, 1], qid=[1, 1, 1], measures="TopK01@1")
    >>> result["TopK01@1"]
    0.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    cutoff: int | None = None
    lower_is_better: ClassVar[bool] = True
    without_cutoff: ClassVar[str] = "TopK01@3; Perm01 takes all ranks"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return _mismatch_probability(lists, kernel_cutoff(self.cutoff))


@dataclass(frozen=True)
class Perm01(Measure):
    """Permutation 0-1 loss: 0 if the entire order is that of the truth, else 1.

    With tied scores it is the probability of an error under random tie breaking.  Lower is better.

    References
    ----------
    Xia et al., Statistical Consistency of Top-k Ranking, NIPS 2009, eq. 2.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [2, 0, 1], qid=[1, 1, 1], measures="Perm01")["Perm01"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    lower_is_better: ClassVar[bool] = True

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return _mismatch_probability(lists, ALL)


def _mismatch_probability(lists: RankedLists, cutoff: int) -> Floats:
    judged = lists.judged_only
    best, _ = judged.ideal(ALL)
    return 1.0 - kernel_values(
        kernel.exact_match_probability, judged.ranked, ideal=best, cutoff=cutoff
    )


@dataclass(frozen=True)
class _Preferences(Measure):
    """Base of the measures of preferences, which the first ranks decide.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    cutoff: int | None = None

    def _precision(self, lists: RankedLists, weight: Floats) -> Floats:
        """Return the weighted fraction of the decided preferences that are correct."""
        judged = lists.judged_only
        correct, decided = np.empty(len(judged)), np.empty(len(judged))
        best, _ = judged.ideal(ALL)
        kernel.preferences(
            labels=judged.labels,
            tie_sizes=judged.tie_sizes,
            offsets=judged.offsets,
            ideal=best,
            weight=weight,
            cutoff=kernel_cutoff(self.cutoff),
            tree=_counters(judged),
            counts=_counters(judged),
            correct=correct,
            decided=decided,
        )
        return ratio(correct, decided)


@dataclass(frozen=True)
class ppref(_Preferences):
    """Precision of preferences: the fraction of correct ones among those the top k decides.

    A preference is a pair of documents with different labels.  It is decided if at least one of the
    two is in the first k ranks.  With tied scores, the expected number of correct preferences is
    divided by the expected number of decided ones.

    References
    ----------
    Carterette and Bennett, Evaluation Measures for Preference Judgments, SIGIR 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [1, 0, 2], qid=[1, 1, 1], measures="ppref@1")["ppref@1"]
    0.5
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return self._precision(lists, np.ones(int(lists.judged_only.lengths.max(initial=0))))


@dataclass(frozen=True)
class nwppref(_Preferences):
    """Normalized weighted precision of preferences.

    As ppref, with the weight 1 / log2(1 + rank of the upper document) per pair, normalized by the
    weights of all decided pairs.

    References
    ----------
    Carterette and Bennett, Evaluation Measures for Preference Judgments, SIGIR 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([3, 2, 1], [1, 0, 2], qid=[1, 1, 1], measures="nwppref@1")
    >>> result["nwppref@1"]
    0.5
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        longest = int(lists.judged_only.lengths.max(initial=0))
        return self._precision(lists, discounts("log2", longest))


@dataclass(frozen=True)
class RBO(Measure):
    """Rank-biased overlap with the ideal order of the relevant documents; 1 for the ideal order.

    RBO = sum over depths d of p^(d-1) * A_d, divided by its value for the ideal order; A_d is the
    number of the first d documents that are in the ideal first d, over d.  Ties in the truth are
    resolved in favor of the ranking.  This is compatibility; depths below the ends of the lists
    count too, so that unjudged documents at the end of a ranking change nothing.  A query without
    relevant documents has no ideal order, and the value 0, also with `without_relevant="one"`.

    Parameters
    ----------
    rel : float, optional
        Smallest relevant label; default is the convention's (1).
    p : float, default 0.9
        Persistence: the weight of each depth relative to the one before, between 0 and 1.
    truncated : bool, default False
        Whether the sums end with the longer one of the ranking and the ideal order, as those of
        `Compat` in ir_measures do; the value then depends on the length of the ranking.
    cutoff : int, optional
        Number of depths k; None takes all.

    References
    ----------
    Webber, Moffat and Zobel, A Similarity Measure for Indefinite Rankings, TOIS 2010.
    Clarke, Smucker and Vtyurina, Offline Evaluation by Maximum Similarity to an Ideal Ranking,
    CIKM 2020 (compatibility).
    Clarke, Vtyurina and Smucker, Assessing Top-k Preferences, TOIS 2021.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [2, 1, 0], qid=[1, 1, 1], measures="RBO")["RBO"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    rel: float | None = None
    p: float = 0.9
    truncated: bool = False
    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        level = convention.rel if self.rel is None else self.rel
        best, offsets = lists.ideal(ALL)
        relevant = best >= level
        relevant_offsets = offsets_from_lengths(relevant)[offsets]
        longest = int(np.diff(relevant_offsets).max(initial=0))
        size = int(lists.lengths.max(initial=0)) + 2
        log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size)))])
        return kernel_values(
            kernel.rank_biased_overlap,
            lists.ranked,
            ideal=best[relevant],
            ideal_offsets=relevant_offsets,
            p=float(self.p),
            cutoff=kernel_cutoff(self.cutoff),
            truncated=int(self.truncated),
            endless=self._endless(),
            log_factorials=log_factorials,
            above=np.empty(longest + 1, np.int64),
            tied=np.empty(longest + 1, np.int64),
        )

    def _endless(self) -> float:
        """Return the sum of p^(d-1) / d over all depths if that needs many terms, else 0."""
        many = self.cutoff is None and self.p > MANY_DEPTHS
        return -math.log1p(-self.p) / self.p if many else 0.0
