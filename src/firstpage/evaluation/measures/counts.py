"""Counts of queries and documents, and measures of unranked sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.core import Floats
from firstpage.core.kernels.measures import binary
from firstpage.evaluation.measures.base import (
    Convention,
    Measure,
    Needs,
    RankedLists,
    fill_empty,
    first_ranks,
    kernel_cutoff,
    ratio,
)
from firstpage.evaluation.measures.binary import Binary, SetP, same_cutoff


class Summed:
    """Mixin of counts, which are summed over the queries and shown without decimals."""

    per_query: ClassVar[str] = "counts per query"

    def from_mean(self, mean: float, queries: int) -> float:
        return float(round(mean * queries, 6))

    def mean_text(self, mean: float, digits: int = 4) -> str:
        whole = mean.is_integer()  # expectations over ties and weighted sums are not
        return f"{mean:.0f}" if whole else f"{mean:.{digits}f}"


@dataclass(frozen=True)
class NumQ(Summed, Measure):
    """The number of queries that were measured.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [0, 1], qid=[1, 2], measures="NumQ")["NumQ"]
    2.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return np.ones(len(lists))

    def needs(self, convention: Convention) -> Needs:
        return Needs()


@dataclass(frozen=True)
class NumRet(NumQ):
    """The number of retrieved documents, summed over the queries.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [0, 1, 1], qid=[1, 1, 2], measures="NumRet")["NumRet"]
    3.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return lists.lengths.astype(np.float64)


@dataclass(frozen=True)
class _Count(Summed, Binary):
    """Base of the counts of relevant documents, which are summed over the queries."""

    value_range: ClassVar[tuple[float, float] | None] = None

    def needs(self, convention: Convention) -> Needs:
        return Needs()


@dataclass(frozen=True)
class NumRel(_Count):
    """The number of relevant documents in the judgments, summed over the queries.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([3, 2, 1], [0, 1, 1], qid=[1, 1, 2], measures="NumRel")["NumRel"]
    2.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return lists.relevant_counts(self.relevance_level(convention)).copy()


@dataclass(frozen=True)
class NumRelRet(_Count):
    """The number of relevant documents that were retrieved, summed over the queries.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate({"q": {"a": 1.0}}, {"q": {"a": 1, "b": 1}}, measures="NumRelRet")["NumRelRet"]
    1.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return lists.retrieved_counts(self.relevance_level(convention))


@dataclass(frozen=True)
class NumNonrelRet(_Count):
    """The number of retrieved documents that are judged not relevant, summed over the queries.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> run, qrels = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"a": 1, "b": 0}}
    >>> fp.evaluate(run, qrels, measures="NumNonrelRet")["NumNonrelRet"]
    1.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        level = self.relevance_level(convention)
        return lists.retrieved_counts(-np.inf) - lists.retrieved_counts(level)


@dataclass(frozen=True)
class Hits(Binary):
    """The number of relevant documents in the first k ranks.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 1, 1], qid=[1, 1, 1, 1], measures="Hits@3")["Hits@3"]
    2.0
    """

    value_range: ClassVar[tuple[float, float] | None] = None

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        if self.cutoff is None:
            return lists.retrieved_counts(self.relevance_level(convention))
        return self._hits(lists, convention, same_cutoff(lists, self.cutoff))

    def needs(self, convention: Convention) -> Needs:
        return Needs() if self.cutoff is None else first_ranks(self.cutoff)


@dataclass(frozen=True)
class F1(Hits):
    """F1: the harmonic mean of precision and recall in the first k ranks.

    F1@k = 2 * (relevant documents in the first k ranks) / (k + judged relevant documents); without
    a cut-off, k is the length of the list, as in SetF.

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="F1@2")["F1@2"]
    0.5
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        hits = super().values(lists, convention)
        k = lists.lengths.astype(np.float64) if self.cutoff is None else float(self.cutoff)
        return ratio(2 * hits, k + lists.relevant_counts(self.relevance_level(convention)))


@dataclass(frozen=True)
class RelP(Hits):
    """Relative precision: the relevant documents in the first k ranks, of those that fit there.

    RelP@k = (relevant documents in the first k ranks) / min(k, judged relevant documents).

    Parameters
    ----------
    cutoff : int
        Number of ranks k; required.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 0], qid=[1, 1, 1, 1], measures="RelP@3")["RelP@3"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    without_cutoff: ClassVar[str] = "RelP@10; SetRelP measures the entire list"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        relevant = lists.relevant_counts(self.relevance_level(convention))
        best = np.minimum(relevant, kernel_cutoff(self.cutoff))
        return fill_empty(ratio(super().values(lists, convention), best), lists, convention)


@dataclass(frozen=True)
class SetRelP(SetP):
    """Relative precision of the entire list: relevant documents, of those that fit in the list.

    SetRelP = (relevant documents in the list) / min(documents in the list, judged relevant
    documents).

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate({"q": {"a": 1.0}}, {"q": {"a": 1, "b": 1}}, measures="SetRelP")["SetRelP"]
    1.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        level = self.relevance_level(convention)
        best = np.minimum(lists.relevant_counts(level), lists.lengths)
        return fill_empty(ratio(lists.retrieved_counts(level), best), lists, convention)


@dataclass(frozen=True)
class SetAP(SetP):
    """Unranked average precision: SetP times SetR.

    SetAP = SetP * SetR.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate({"q": {"a": 1.0}}, {"q": {"a": 1, "b": 1}}, measures="SetAP")["SetAP"]
    0.5
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        precision, recall = self._precision_recall(lists, convention)
        return fill_empty(precision * recall, lists, convention)


@dataclass(frozen=True)
class SetUtility(Binary):
    """Linear utility of the entire list: weighted counts of relevant and other documents.

    Parameters
    ----------
    relevant : float, default 1.0
        Weight of each relevant document retrieved.
    nonrelevant : float, default -1.0
        Weight of each other document retrieved.
    missed : float, default 0.0
        Weight of each relevant document that was not retrieved.

    References
    ----------
    trec_eval of NIST, https://github.com/usnistgov/trec_eval.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([3, 2, 1], [0, 1, 0], qid=[1, 1, 1], measures="SetUtility")
    >>> result["SetUtility"]
    -1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = None

    relevant: float = 1.0
    nonrelevant: float = -1.0
    missed: float = 0.0

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        level = self.relevance_level(convention)
        hits = lists.retrieved_counts(level)
        missed = lists.relevant_counts(level) - hits
        return (
            self.relevant * hits + self.nonrelevant * (lists.lengths - hits) + self.missed * missed
        )

    def needs(self, convention: Convention) -> Needs:
        return Needs()


@dataclass(frozen=True)
class Unjudged(Measure):
    """The number of unjudged documents in the first k ranks, divided by k.

    Unjudged@k = (unjudged documents in the first k ranks) / k.

    Parameters
    ----------
    cutoff : int
        Number of ranks k; required.

    Examples
    --------
    >>> import firstpage as fp
    >>> run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "c": 0}}
    >>> fp.evaluate(run, qrels, measures="Unjudged@2")["Unjudged@2"]
    0.5
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    cutoff: int | None = None
    lower_is_better: ClassVar[bool] = True
    without_cutoff: ClassVar[str] = "Unjudged@10"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        assert self.cutoff is not None
        judged = np.empty(len(lists))
        ties, ends = lists.relevant_ties(-np.inf, self.cutoff)
        binary.hits_in_ties(ties, ends, same_cutoff(lists, self.cutoff), judged)
        return (np.minimum(lists.lengths, self.cutoff) - judged) / self.cutoff

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(self.cutoff)
