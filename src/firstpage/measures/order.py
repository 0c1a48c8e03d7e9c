"""Measures of order: how well a ranking agrees with the preferences in the truth.

They consider judged documents only; judged documents that were not retrieved form one tie at the
end of the list.  Documents of equal label have no preferred order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.errors import MeasureError
from firstpage.kernels.measures import order as kernel
from firstpage.measures.graded import discounts
from firstpage.measures.measure import (
    ALL,
    Convention,
    Measure,
    RankedLists,
    kernel_cutoff,
    ratio,
)
from firstpage.types import Floats, Ints


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

    about: ClassVar[str] = "Kendall's tau (tau-b: corrected for ties)"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        concordant, discordant, tied_scores, tied_labels, pairs = _concordance(lists)
        norm = np.sqrt((pairs - tied_scores) * (pairs - tied_labels))
        return ratio(concordant - discordant, norm)


@dataclass(frozen=True)
class PairAccuracy(Measure):
    """Pairwise accuracy: the fraction of preferences that the ranking agrees with.

    A preference is a pair of documents with different labels; a pair with tied scores counts 1/2.
    A query without preferences has the value 0.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([3, 2, 2, 2], [0, 1, 1, 0], qid=[1] * 4, measures="PairAccuracy")
    >>> result["PairAccuracy"]
    0.25
    """

    about: ClassVar[str] = "fraction of preferences in the correct order"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        concordant, discordant, _, tied_labels, all_pairs = _concordance(lists)
        pairs = all_pairs - tied_labels
        return ratio(concordant + (pairs - concordant - discordant) / 2, pairs)


@dataclass(frozen=True)
class WKT(Measure):
    """Weighted Kendall's tau distance: worse documents ranked above each of the true top k.

    WKT@k = sum over true ranks j <= k of (2^label_j - 1) / log2(1 + j) times the number of
    documents of a lower label that rank above document j.  Lower is better.

    Parameters
    ----------
    norm : bool, default False
        Whether to divide by the sum of the weights, so that 1 - NDCG@k <= WKT(norm=true)@k.
    cutoff : int, optional
        Number of true ranks k; None takes all.

    Raises
    ------
    MeasureError
        If the value overflows, for labels above 1000 without `norm`.

    References
    ----------
    Lan et al., Is Top-k Sufficient for Ranking?, CIKM 2013, eq. 12.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="WKT")["WKT"]
    1.0
    """

    norm: bool = False
    cutoff: int | None = None
    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "weighted Kendall's tau distance (Lan et al. 2013, eq. 12)"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        judged = lists.judged_only
        value, total = np.empty(len(judged)), np.empty(len(judged))
        best, _ = judged.ideal(ALL)
        rank_discounts = discounts(convention.discount, int(judged.lengths.max(initial=0)))
        kernel.weighted_kendall(
            judged.labels, judged.tie_sizes, judged.offsets, best, judged.max_labels,
            rank_discounts, kernel_cutoff(self.cutoff), np.empty(len(rank_discounts)),
            _counters(judged), _counters(judged), value, total,
        )  # fmt: skip
        if self.norm:
            return ratio(value, total)
        if judged.max_labels.max(initial=0.0) > 1000:
            raise MeasureError(
                f"{self} overflows for labels up to {judged.max_labels.max():g}; use "
                "WKT(norm=true), which divides by the sum of the weights."
            )
        return value * np.exp2(judged.max_labels)


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

    cutoff: int | None = None
    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "top-k true loss (Xia et al. 2009, eq. 5)"
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

    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "permutation 0-1 loss (Xia et al. 2009, eq. 2)"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return _mismatch_probability(lists, ALL)


def _mismatch_probability(lists: RankedLists, cutoff: int) -> Floats:
    judged = lists.judged_only
    out = np.empty(len(judged))
    best, _ = judged.ideal(ALL)
    kernel.exact_match_probability(
        judged.labels, judged.tie_sizes, judged.offsets, best, cutoff, out
    )
    return 1.0 - out


@dataclass(frozen=True)
class _Preferences(Measure):
    """Base of the measures of preferences, which the first ranks decide.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.
    """

    cutoff: int | None = None

    def _precision(self, lists: RankedLists, weight: Floats) -> Floats:
        """Return the weighted fraction of the decided preferences that are correct."""
        judged = lists.judged_only
        correct, decided = np.empty(len(judged)), np.empty(len(judged))
        best, _ = judged.ideal(ALL)
        kernel.preferences(
            judged.labels, judged.tie_sizes, judged.offsets, best, weight,
            kernel_cutoff(self.cutoff), _counters(judged), _counters(judged), correct, decided,
        )  # fmt: skip
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

    about: ClassVar[str] = "precision of preferences (Carterette & Bennett 2008)"

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

    about: ClassVar[str] = "normalized weighted precision of preferences"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        longest = int(lists.judged_only.lengths.max(initial=0))
        return self._precision(lists, discounts("log2", longest))


@dataclass(frozen=True)
class RBO(Measure):
    """Rank-biased overlap with the ideal order of the relevant documents; 1 for the ideal order.

    RBO = sum over depths d of p^(d-1) * A_d, divided by its value for the ideal order; A_d is the
    fraction of the first d documents that are in the ideal first d.  Ties in the truth are resolved
    in favor of the ranking, as in compatibility.

    Parameters
    ----------
    rel : float, optional
        Smallest relevant label; default is the convention's (1).
    p : float, default 0.9
        Persistence: the weight of each depth relative to the one before, between 0 and 1.
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    References
    ----------
    Webber, Moffat and Zobel, A Similarity Measure for Indefinite Rankings, TOIS 2010.
    Clarke, Vtyurina and Smucker, Offline Evaluation without Gain, ICTIR 2020 (compatibility).

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [2, 1, 0], qid=[1, 1, 1], measures="RBO")["RBO"]
    1.0
    """

    rel: float | None = None
    p: float = 0.9
    cutoff: int | None = None
    about: ClassVar[str] = "rank-biased overlap with the ideal order"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        level = convention.rel if self.rel is None else self.rel
        best, offsets = lists.ideal(ALL)
        relevant = best >= level
        relevant_offsets = offsets_from_lengths(relevant)[offsets]
        longest = int(np.diff(relevant_offsets).max(initial=0))
        size = int(lists.lengths.max(initial=0)) + 2
        log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size)))])
        out = np.empty(len(lists))
        kernel.rank_biased_overlap(
            lists.labels, lists.tie_sizes, lists.offsets, best[relevant],
            relevant_offsets, float(self.p), kernel_cutoff(self.cutoff), log_factorials,
            np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64), out,
        )  # fmt: skip
        return out
