"""Measures of binary relevance.  A document is relevant if its label is at least `rel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, Ints, MeasureError
from firstpage.core.kernels.measures import binary, graded
from firstpage.evaluation.measures.base import (
    ALL,
    Convention,
    Measure,
    Needs,
    RankedLists,
    fill_empty,
    first_ranks,
    kernel_cutoff,
    kernel_values,
    ratio,
    relevant_ranks,
)
from firstpage.evaluation.measures.graded import (
    DEFAULT,
    GAINS,
    check_scale,
    discounted_gains,
    scale_of,
)
from firstpage.evaluation.measures.rank_forms import (
    AdditiveForm,
    CascadeForm,
    PrecisionForm,
    all_ranks,
    counted_ranks,
)


@dataclass(frozen=True)
class Binary(Measure):
    """Base of the measures of binary relevance.

    Parameters
    ----------
    rel : float, optional
        Smallest relevant label; default is the convention's (1).
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    rel: float | None = None

    def relevance_level(self, convention: Convention) -> float:
        return float(convention.rel if self.rel is None else self.rel)

    def needs(self, convention: Convention) -> Needs:
        cutoff = getattr(self, "cutoff", None)
        return (
            relevant_ranks(self.relevance_level(convention))
            if cutoff is None
            else first_ranks(cutoff)
        )

    def _ties(self, lists: RankedLists, convention: Convention) -> tuple[Ints, Ints]:
        """Return the ties that contain relevant documents, as kernels take them."""
        cutoff = kernel_cutoff(getattr(self, "cutoff", None))
        return lists.relevant_ties(self.relevance_level(convention), cutoff)

    def _hits(self, lists: RankedLists, convention: Convention, cutoffs: Ints) -> Floats:
        out = np.empty(len(lists))
        binary.hits_in_ties(*self._ties(lists, convention), cutoffs, out)
        return out

    def _relevant(self, lists: RankedLists) -> Floats:
        """Return 1 for the relevant documents of the pool, and 0 for others."""
        return (lists.pool >= self.relevance_level(DEFAULT)).astype(np.float64)

    def _inverse_relevant_counts(self, lists: RankedLists) -> Floats:
        counts = lists.relevant_counts(self.relevance_level(DEFAULT))
        return ratio(np.ones_like(counts), counts)


def same_cutoff(lists: RankedLists, cutoff: int | None) -> Ints:
    """Return the cut-off of every query, as kernels take it."""
    return np.full(len(lists), kernel_cutoff(cutoff), np.int64)


@dataclass(frozen=True)
class P(Binary):
    """Precision: the fraction of relevant documents among the first k ranks.

    P@k = (number of relevant documents in the first k ranks) / k.  Ranks that a shorter list
    does not fill count as not relevant.

    Parameters
    ----------
    cutoff : int
        Number of ranks k; required.

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="P@2")["P@2"]
    0.5
    """

    cutoff: int | None = None
    without_cutoff: ClassVar[str] = "P@10; SetP measures the entire list"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        assert self.cutoff is not None
        cutoffs = same_cutoff(lists, self.cutoff)
        return self._hits(lists, convention, cutoffs) / self.cutoff

    def rank_form(self, lists: RankedLists) -> AdditiveForm:
        discounts = (all_ranks(lists) <= kernel_cutoff(self.cutoff)) / float(self.cutoff or 1)
        return AdditiveForm(self._relevant(lists), discounts, counted_ranks(lists, self.cutoff))


@dataclass(frozen=True)
class Recall(Binary):
    """Recall: the fraction of all relevant documents that are in the first k ranks.

    Recall@k = (relevant documents in the first k ranks) / (judged relevant documents); 0 for a
    query without relevant documents.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="Recall@2")
    >>> result["Recall@2"]
    0.5
    """

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        level = self.relevance_level(convention)
        if self.cutoff is None:
            hits = lists.retrieved_counts(level)
        else:
            hits = self._hits(lists, convention, same_cutoff(lists, self.cutoff))
        return fill_empty(ratio(hits, lists.relevant_counts(level)), lists, convention)

    def needs(self, convention: Convention) -> Needs:
        return Needs() if self.cutoff is None else first_ranks(self.cutoff)

    def rank_form(self, lists: RankedLists) -> AdditiveForm:
        return AdditiveForm(
            self._relevant(lists),
            (all_ranks(lists) <= kernel_cutoff(self.cutoff)).astype(np.float64),
            counted_ranks(lists, self.cutoff),
            self._inverse_relevant_counts(lists),
        )


@dataclass(frozen=True)
class Rprec(Binary):
    """R-precision: precision in the first R ranks, R being the number of relevant documents.

    Rprec = P@R.

    A query without relevant documents has the value 0.

    Parameters
    ----------
    multiple : float, default 1.0
        Number of ranks as a multiple of R, rounded as in trec_eval (Rprec_mult).

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="Rprec")["Rprec"]
    0.5
    """

    multiple: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.multiple) and self.multiple > 0):
            raise MeasureError(f"multiple of Rprec must be positive; got {self.multiple}.")

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        ranks = lists.relevant_counts(self.relevance_level(convention))
        if self.multiple != 1.0:
            ranks = np.floor(self.multiple * ranks + 0.9)
        hits = self._hits(lists, convention, ranks.astype(np.int64))
        return fill_empty(ratio(hits, ranks), lists, convention)


@dataclass(frozen=True)
class AP(Binary):
    """Average precision: the mean, over all relevant documents, of the precision at their rank.

    AP = (1/R) * sum over ranks j of relevant documents of P@j, R being the number of judged
    relevant documents.  Relevant documents that are not retrieved, or rank below the cut-off,
    contribute 0; a query without relevant documents has the value 0.  The mean over queries is MAP.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="AP")["AP"]
    0.5
    """

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        relevant = lists.relevant_counts(self.relevance_level(convention))
        out = np.empty(len(lists))
        ties, ends = self._ties(lists, convention)
        binary.average_precision(ties, ends, kernel_cutoff(self.cutoff), relevant, out)
        return fill_empty(out, lists, convention)

    def rank_form(self, lists: RankedLists) -> PrecisionForm:
        return PrecisionForm(
            self._relevant(lists),
            1 / all_ranks(lists),
            counted_ranks(lists, self.cutoff),
            self._inverse_relevant_counts(lists),
        )


@dataclass(frozen=True)
class RR(Binary):
    """Reciprocal rank: 1 / rank of the first relevant document, 0 if there is none.

    RR = 1 / (rank of the first relevant document).

    The mean over queries is MRR.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    References
    ----------
    Voorhees, The TREC-8 Question Answering Track Report, TREC 1999.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="RR")["RR"]
    0.5
    """

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return self._first_hit(lists, convention)[0]

    def _first_hit(self, lists: RankedLists, convention: Convention) -> tuple[Floats, Floats]:
        """Return the reciprocal rank and the success of each query."""
        reciprocal, success = np.empty(len(lists)), np.empty(len(lists))
        cutoff = kernel_cutoff(self.cutoff)
        ties, ends = lists.relevant_ties(self.relevance_level(convention), cutoff, first_only=True)
        binary.first_hit(ties, ends, cutoff, reciprocal, success)
        return reciprocal, success

    def needs(self, convention: Convention) -> Needs:
        if self.cutoff is None:
            return Needs(first_levels=frozenset([self.relevance_level(convention)]))
        return first_ranks(self.cutoff)

    def rank_form(self, lists: RankedLists) -> CascadeForm:
        depth = counted_ranks(lists, self.cutoff)
        return CascadeForm(self._relevant(lists), 1 / all_ranks(lists), depth)


@dataclass(frozen=True)
class Success(RR):
    """Success: 1 if there is a relevant document in the first k ranks, else 0.

    With tied scores it is the probability of that under random tie breaking.

    Parameters
    ----------
    cutoff : int
        Number of ranks k; required.

    References
    ----------
    Craswell and Hawking, Overview of the TREC-2004 Web Track, TREC 2004.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="Success@1")
    >>> result["Success@1"]
    0.0
    """

    without_cutoff: ClassVar[str] = "Success@5; SetSuccess measures the entire list"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return self._first_hit(lists, convention)[1]

    def rank_form(self, lists: RankedLists) -> CascadeForm:
        depth = counted_ranks(lists, self.cutoff)
        return CascadeForm(self._relevant(lists), np.ones_like(all_ranks(lists)), depth)


@dataclass(frozen=True)
class bpref(Binary):
    """Binary preference: how few judged non-relevant documents rank above relevant ones.

    bpref = (1/R) * sum over retrieved relevant documents of 1 - min(n, R) / min(R, N), with R
    judged relevant and N judged non-relevant documents, n of which rank above the document.
    Unjudged documents are ignored.

    References
    ----------
    Buckley and Voorhees, Retrieval Evaluation with Incomplete Information, SIGIR 2004.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="bpref")["bpref"]
    0.25
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        level = self.relevance_level(convention)
        relevant = lists.relevant_counts(level)
        out = np.empty(len(lists))
        ties, ends = lists.relevant_ties(level, ALL, judged_only=True)
        binary.bpref(ties, ends, relevant, lists.judged_counts - relevant, out)
        return fill_empty(out, lists, convention)


@dataclass(frozen=True)
class Judged(Measure):
    """The fraction of judged documents among those retrieved in the first k ranks.

    Judged@k = (judged documents in the first k ranks) / (documents in the first k ranks).

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    Examples
    --------
    >>> import firstpage as fp
    >>> run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "c": 0}}
    >>> fp.evaluate(run, qrels, measures="Judged@1")["Judged@1"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        if self.cutoff is None:
            judged = lists.retrieved_counts(-np.inf)
        else:
            cutoffs, judged = same_cutoff(lists, self.cutoff), np.empty(len(lists))
            ties, ends = lists.relevant_ties(-np.inf, self.cutoff)
            binary.hits_in_ties(ties, ends, cutoffs, judged)
        retrieved = np.minimum(lists.lengths, kernel_cutoff(self.cutoff)).astype(np.float64)
        return ratio(judged, retrieved)

    def needs(self, convention: Convention) -> Needs:
        return Needs() if self.cutoff is None else first_ranks(self.cutoff)


@dataclass(frozen=True)
class RBP(Binary):
    """Rank-biased precision: a user continues to the next rank with probability p.

    RBP = (1 - p) * sum over ranks j of relevant documents of p^(j - 1).  With a `gain`, every
    document counts by its gain instead, divided by the gain of the greatest label of the scale.

    Parameters
    ----------
    p : float, default 0.8
        Persistence: the probability of continuing to the next rank, between 0 and 1.
    gain : {"exp", "linear"}, optional
        Gain of a label: 2^label - 1, or the label itself.  None counts relevant documents.
    max : float or {"data", "query"}, optional
        With a gain: the greatest label of the scale, as a number, the greatest in the data (the
        default), or the greatest in the query.
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    References
    ----------
    Moffat and Zobel, Rank-Biased Precision for Measurement of Retrieval Effectiveness, TOIS 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="RBP(p=0.5)")
    >>> result["RBP(p=0.5)"]
    0.25
    """

    p: float = 0.8
    gain: str | None = None
    max: float | str | None = None
    cutoff: int | None = None
    has_scale: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale(self, self.max)
        if self.gain not in (None, *GAINS):
            raise MeasureError(f"the gain of RBP must be exp or linear; got {self.gain!r}.")

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        if self.gain is not None:
            return self._graded(lists, self.gain)
        level, cutoff = self.relevance_level(convention), kernel_cutoff(self.cutoff)
        kernel = graded.rank_biased_precision
        return kernel_values(kernel, lists.ranked, level=level, p=float(self.p), cutoff=cutoff)

    def _graded(self, lists: RankedLists, gain: str) -> Floats:
        scale = scale_of(self, self.max, lists)
        ranks = np.arange(int(lists.lengths.max(initial=0)), dtype=np.float64)
        weights: Floats = (1 - self.p) * np.power(float(self.p), ranks)
        out = discounted_gains(
            lists.ranked, scale, (GAINS[gain], np.empty(0), weights), self.cutoff
        )
        return ratio(out, 1.0 - np.exp2(-scale) if gain == "exp" else scale)

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(self.cutoff)

    @property
    def has_rank_form(self) -> bool:
        """Whether `rank_form` returns a form: it does without a `gain`."""
        return self.gain is None and super().has_rank_form

    def rank_form(self, lists: RankedLists) -> AdditiveForm | None:
        if self.gain is not None:
            return None
        discounts = (1 - self.p) * self.p ** (all_ranks(lists) - 1)
        return AdditiveForm(self._relevant(lists), discounts, counted_ranks(lists, self.cutoff))


@dataclass(frozen=True)
class SetP(Binary):
    """Set precision: the fraction of relevant documents in the entire list.

    SetP = (relevant documents in the list) / (documents in the list).

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([4, 3, 2, 1], [0, 2, 0, 1], qid=[1, 1, 1, 1], measures="SetP")["SetP"]
    0.5
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return self._precision_recall(lists, convention)[0]

    def _precision_recall(
        self, lists: RankedLists, convention: Convention
    ) -> tuple[Floats, Floats]:
        level = self.relevance_level(convention)
        hits = lists.retrieved_counts(level)
        precision = ratio(hits, lists.lengths.astype(np.float64))
        return precision, ratio(hits, lists.relevant_counts(level))

    def needs(self, convention: Convention) -> Needs:
        return Needs()


@dataclass(frozen=True)
class SetR(SetP):
    """Set recall: the fraction of all relevant documents that the list contains.

    SetR = (relevant documents in the list) / (judged relevant documents).

    References
    ----------
    Manning, Raghavan and Schuetze, Introduction to Information Retrieval, 2008, chapter 8.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate({"q": {"a": 1.0}}, {"q": {"a": 1, "b": 1}}, measures="SetR")["SetR"]
    0.5
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return fill_empty(self._precision_recall(lists, convention)[1], lists, convention)


@dataclass(frozen=True)
class SetSuccess(SetP):
    """Set success: 1 if the list contains a relevant document, else 0.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([4, 3, 2, 1], [0, 0, 0, 1], qid=[1, 1, 1, 1], measures="SetSuccess")
    >>> result["SetSuccess"]
    1.0
    """

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return (lists.retrieved_counts(self.relevance_level(convention)) > 0).astype(np.float64)


@dataclass(frozen=True)
class SetF(SetP):
    """Set F: the weighted harmonic mean of SetP and SetR.

    SetF = (1 + beta) * P * R / (beta * P + R).

    Parameters
    ----------
    beta : float, default 1.0
        Weight of recall relative to precision, as in trec_eval; the square of van Rijsbergen's.

    References
    ----------
    van Rijsbergen, Information Retrieval, 1979, chapter 7.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([4, 3, 2, 1], [0, 0, 0, 1], qid=[1, 1, 1, 1], measures="SetF")
    >>> result["SetF"]
    0.4
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.beta) and self.beta >= 0):
            raise MeasureError(f"beta of SetF must be at least 0; got {self.beta}.")

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        precision, recall = self._precision_recall(lists, convention)
        return ratio((1 + self.beta) * precision * recall, self.beta * precision + recall)
