"""Measures of precision and recall beyond AP: interpolated, inferred, geometric, by pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, MeasureError
from firstpage.core.kernels.measures import recall as kernel
from firstpage.evaluation.measures.base import (
    EVERYTHING,
    Convention,
    Needs,
    RankedLists,
    fill_empty,
    first_ranks,
    kernel_cutoff,
    kernel_values,
)
from firstpage.evaluation.measures.binary import AP, Binary, bpref

MIN_GEOMETRIC = 0.00001  # smaller values enter a geometric mean as this one
ELEVEN_POINTS = np.arange(11) / 10


def log_factorials(lists: RankedLists) -> Floats:
    """Return log(0!), log(1!), .. up to the length of the longest list."""
    size = int(lists.lengths.max(initial=0)) + 1
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])


@dataclass(frozen=True)
class IPrec(Binary):
    """Interpolated precision: the greatest precision at any rank that reaches a recall.

    IPrec(recall=x) = the greatest P@j over all ranks j with at least x * R relevant documents in
    the first j ranks, R being the number of judged relevant documents; x * R is rounded as in
    trec_eval 9.  It is 0 where the list does not reach the recall.  The first t of m tied
    documents, of which r are relevant, are taken to contain t * r / m relevant ones.

    Parameters
    ----------
    recall : float, default 0.0
        The recall x, from 0 to 1.  ``IPrec@0.1`` and ``iprec_at_recall_0.10`` set it too.

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1] * 4, measures="IPrec@0.5")["IPrec@0.5"]
    0.5
    """

    recall: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.recall <= 1:
            raise MeasureError(f"recall of IPrec must lie from 0 to 1; got {self.recall}.")

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        values = _at_recalls(self, lists, convention, np.array([self.recall], np.float64))
        return fill_empty(values[:, 0].copy(), lists, convention)


def _at_recalls(
    measure: Binary, lists: RankedLists, convention: Convention, recalls: Floats
) -> Floats:
    """Return the interpolated precision at recalls, a row per query."""
    out = np.empty((len(lists), len(recalls)))
    relevant = lists.relevant_counts(measure.relevance_level(convention))
    kernel.interpolated_precision(*measure._ties(lists, convention), relevant, recalls, out)
    return out


@dataclass(frozen=True)
class AP11(Binary):
    """Eleven-point average precision: the mean of IPrec at the recalls 0, 0.1, .. 1.

    AP11 = (IPrec(recall=0) + IPrec(recall=0.1) + .. + IPrec(recall=1)) / 11.

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="AP11")["AP11"]
    0.5
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        values = _at_recalls(self, lists, convention, ELEVEN_POINTS).mean(axis=1)
        return fill_empty(values, lists, convention)


@dataclass(frozen=True)
class GMAP(AP):
    """Geometric mean average precision: the geometric mean of AP over the queries.

    GMAP = exp(mean over the queries of log(max(AP, 0.00001))).

    It rewards improvements of the hardest queries.  Values per query are natural logarithms of AP,
    at least log(0.00001), so that tests of differences compare geometric means.

    References
    ----------
    Robertson, On GMAP: and Other Transformations, CIKM 2006.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([2, 1, 2, 1], [1, 0, 0, 1], qid=[1, 1, 2, 2], measures="GMAP")
    >>> round(result["GMAP"], 4)
    0.7071
    """

    per_query: ClassVar[str] = "logarithms of AP"
    value_range: ClassVar[tuple[float, float] | None] = (math.log(MIN_GEOMETRIC), 0.0)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return np.log(np.maximum(super().values(lists, convention), MIN_GEOMETRIC))

    def from_mean(self, mean: float, queries: int) -> float:
        return float(np.exp(mean))


@dataclass(frozen=True)
class GMbpref(bpref):
    """Geometric mean of bpref over the queries.

    GMbpref = exp(mean over the queries of log(max(bpref, 0.00001))).

    Values per query are natural logarithms of bpref, at least log(0.00001).

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([2, 1, 2, 1], [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="GMbpref")
    >>> result["GMbpref"]
    1.0
    """

    per_query: ClassVar[str] = "logarithms of bpref"
    value_range: ClassVar[tuple[float, float] | None] = (math.log(MIN_GEOMETRIC), 0.0)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return np.log(np.maximum(super().values(lists, convention), MIN_GEOMETRIC))

    def from_mean(self, mean: float, queries: int) -> float:
        return float(np.exp(mean))


@dataclass(frozen=True)
class infAP(Binary):
    """Inferred average precision, for judgments that are a random sample of the pool.

    Documents of the judgments with a grade below 0 were in the pool and not sampled; documents
    without a judgment were not in the pool.  The precision at a relevant document is that among
    the judged documents above it, times the fraction of the documents above it that were in the
    pool.  If all of the pool is judged, it is AP, but for a smoothing of 0.00001.

    References
    ----------
    Yilmaz and Aslam, Estimating Average Precision with Incomplete and Imperfect Judgments,
    CIKM 2006.

    Examples
    --------
    >>> import firstpage as fp
    >>> run, qrels = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"a": 1, "b": -1, "c": 1}}
    >>> round(fp.evaluate(run, qrels, measures="infAP")["infAP"], 4)
    1.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        level = self.relevance_level(convention)
        kinds = np.full(len(lists.labels), kernel.OUTSIDE, np.int64)
        if lists.pool_rows is not None:
            kinds[lists.pool_rows == -2] = kernel.POOLED
        kinds[lists.labels < 0] = kernel.POOLED
        kinds[lists.labels >= 0] = kernel.NONRELEVANT
        kinds[lists.labels >= level] = kernel.RELEVANT
        out = kernel_values(
            kernel.inferred_ap,
            (kinds, lists.tie_sizes, lists.offsets),
            relevant=lists.relevant_counts(level),
            log_factorials=log_factorials(lists),
        )
        return fill_empty(out, lists, convention)

    def needs(self, convention: Convention) -> Needs:
        return EVERYTHING


@dataclass(frozen=True)
class binG(Binary):
    """Binary G: the mean over relevant documents of 1 / log2(2 + non-relevant ones above).

    binG = (1/R) * sum over the relevant documents in the list of 1 / log2(2 + n), R being the
    number of judged relevant documents, and n that of the other documents above.

    Unjudged documents are not relevant; relevant documents that were not retrieved contribute 0.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [1, 0, 0], qid=[1, 1, 1], measures="binG")["binG"]
    1.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        out = np.empty(len(lists))
        relevant = lists.relevant_counts(self.relevance_level(convention))
        kernel.binary_g(*self._ties(lists, convention), relevant, out)
        return fill_empty(out, lists, convention)


@dataclass(frozen=True)
class Accuracy(Binary):
    """The fraction of pairs of retrieved documents in which the relevant one ranks first.

    Accuracy@k = (pairs in which the relevant document is above) / (pairs).

    A pair consists of a relevant and another document, both in the first k ranks.  Unjudged
    documents are not relevant.  A query without such pairs has the value 0.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [0, 1, 0], qid=[1, 1, 1], measures="Accuracy")["Accuracy"]
    0.5
    """

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return kernel_values(
            kernel.pairs_in_order,
            lists.ranked,
            level=self.relevance_level(convention),
            cutoff=kernel_cutoff(self.cutoff),
            log_factorials=log_factorials(lists),
        )

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(self.cutoff)
