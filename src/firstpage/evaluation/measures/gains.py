"""Further measures of graded relevance: CG, nERR, Q, Rndcg, NDCGrel, G and the residual of RBP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, MeasureError
from firstpage.core.kernels.measures import graded
from firstpage.core.kernels.measures import recall as kernel
from firstpage.evaluation.measures.base import (
    Convention,
    Measure,
    Needs,
    RankedLists,
    fill_empty,
    first_ranks,
    kernel_cutoff,
    kernel_values,
    ratio,
)
from firstpage.evaluation.measures.graded import ERR, Discounted, Gained, discounted_gains, err


@dataclass(frozen=True)
class CG(Gained):
    """Cumulative gain: the sum of the gains in the first k ranks, without a discount.

    CG@k = sum over the ranks j up to k of gain_j.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    References
    ----------
    Jarvelin and Kekalainen, Cumulated Gain-Based Evaluation of IR Techniques, TOIS 2002.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [2, 0, 1], qid=[1, 1, 1], measures="CG@2")["CG@2"]
    3.0
    """

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        self._check_overflow(lists, convention)
        ones = np.ones(int(lists.lengths.max(initial=0)))
        weights = *self.gain_table(lists, convention), ones
        return discounted_gains(lists.ranked, np.zeros(len(lists)), weights, self.cutoff)

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(self.cutoff)


@dataclass(frozen=True)
class nERR(ERR):
    """Normalized ERR: ERR divided by the ERR of the ideal order of the judged documents.

    nERR@k = ERR@k / (ERR@k of the ideal order).

    References
    ----------
    Chapelle et al., Expected Reciprocal Rank for Graded Relevance, CIKM 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="nERR")["nERR"]
    0.5
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        cutoff, scale = kernel_cutoff(self.cutoff), self.greatest_labels(lists)
        best, offsets = lists.ideal(cutoff)
        ranked = best, np.ones(len(best), np.int64), offsets
        ideal = kernel_values(
            graded.err, ranked, max_label=scale, cutoff=cutoff, pass_means=np.empty(3)
        )
        return fill_empty(ratio(err(lists, scale, cutoff), ideal), lists, convention)


@dataclass(frozen=True)
class Q(Gained):
    """Q-measure: average precision for graded relevance.

    Q = (1/R) * sum over ranks j of documents with a gain of
    (beta * cg(j) + n(j)) / (beta * ideal cg(j) + j), with R documents that have a gain, cg(j) the
    sum of the gains and n(j) the number of documents with a gain in the first j ranks.  beta = 0
    is AP.

    Parameters
    ----------
    beta : float, default 1.0
        Weight of the gains, at least 0.

    References
    ----------
    Sakai, Ranking the NTCIR Systems Based on Multigrade Relevance, AIRS 2004.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [0, 1, 0], qid=[1, 1, 1], measures="Q")["Q"]
    0.6666666666666666
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.beta) and self.beta >= 0):
            raise MeasureError(f"beta of Q must be at least 0; got {self.beta}.")

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        self._check_overflow(lists, convention)
        gains, ideal, offsets = self._gains(lists, convention, np.zeros(len(lists)))
        ranked = gains, lists.tie_sizes, lists.offsets
        beta = float(self.beta)
        out = kernel_values(kernel.q_measure, ranked, ideal=ideal, ideal_offsets=offsets, beta=beta)
        return fill_empty(out, lists, convention)


@dataclass(frozen=True)
class G(Gained):
    """Normalized gain G of trec_eval: gains, discounted by what was missed above.

    G = sum over ranks j of gain_j / log2(2 + c(j)), divided by the sum of all gains; c(j) is the
    gain of the ideal list in the first j ranks, at least 1 per rank, minus that of the ranking.
    Tied documents all have their mean gain.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [1, 0, 0], qid=[1, 1, 1], measures="G")["G"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        self._check_overflow(lists, convention)
        gains, ideal, offsets = self._gains(lists, convention, np.zeros(len(lists)))
        out = np.empty(len(lists))
        kernel.graded_g(gains, lists.tie_sizes, lists.offsets, ideal, offsets, out)
        return fill_empty(out, lists, convention)


@dataclass(frozen=True)
class NDCGrel(Discounted):
    """NDCG averaged over the relevant documents: the mean of the NDCG at their ranks.

    A document is relevant here if it has a gain.  One that was not retrieved counts with the NDCG
    of the entire list.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [1, 0], qid=[1, 1], measures="NDCGrel")["NDCGrel"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        gains, ideal, offsets = self._gains(lists, convention, lists.max_labels)
        discount, out = self._discount(lists, convention), np.empty(len(lists))
        self._kernel(gains, lists.tie_sizes, lists.offsets, ideal, offsets, discount, out)
        return fill_empty(out, lists, convention)

    _kernel = staticmethod(kernel.ndcg_at_relevant)


@dataclass(frozen=True)
class Rndcg(NDCGrel):
    """NDCG averaged over levels: the mean of the NDCG at the ranks where the ideal gain changes.

    With 5 documents of the best grade, 3 of the next, and 10 of the lowest grade with a gain, these
    are the ranks 5, 8 and 18.  The end of the list is one more, if the list is at least two ranks
    longer.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [1, 0], qid=[1, 1], measures="Rndcg")["Rndcg"]
    1.0
    """

    _kernel = staticmethod(kernel.ndcg_at_levels)


@dataclass(frozen=True)
class RBPResidual(Measure):
    """Residual of RBP: how much RBP could grow if all unjudged documents were relevant.

    The sum of the weights of unjudged documents and of the ranks below the end of the list.

    Parameters
    ----------
    p : float, default 0.8
        Persistence: the probability of continuing to the next rank, between 0 and 1.

    References
    ----------
    Moffat and Zobel, Rank-Biased Precision for Measurement of Retrieval Effectiveness, TOIS 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="RBPResidual(p=0.5)")
    >>> result["RBPResidual(p=0.5)"]
    0.25
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    p: float = 0.8
    lower_is_better: ClassVar[bool] = True

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        kernel, p, all_ranks = graded.rank_biased_precision, float(self.p), 2**62
        judged = kernel_values(kernel, lists.ranked, level=-np.inf, p=p, cutoff=all_ranks)
        return np.maximum(1.0 - judged, 0.0)
