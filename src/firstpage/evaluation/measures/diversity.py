"""Measures of novelty and diversity, on judgments of subtopics (`DiversityQrels`).

They have the definitions of ndeval, the program of the TREC Web Track.  Relevance is binary, and
only subtopics with a relevant document count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, Ints, MeasureError
from firstpage.core.kernels.measures import diversity as kernel
from firstpage.data import offsets_from_lengths
from firstpage.data.formats import DiversityQrels
from firstpage.evaluation.measures.base import (
    Convention,
    Measure,
    Needs,
    RankedLists,
    first_ranks,
    kernel_cutoff,
    kernel_values,
    ratio,
)
from firstpage.evaluation.measures.graded import discounts

MIN_ALPHA = 1e-4  # of measures that are divided by the value of an endless list
SMALLEST_GAIN = 1e-18  # of a rank of that list; further ones are below double precision


@dataclass(frozen=True, eq=False)
class RelevantSubtopics:
    """The subtopics that each judged document is relevant for.

    Attributes
    ----------
    starts : array of int
        Document d is relevant for ``subtopics[starts[d]:starts[d + 1]]``.
    subtopics : array of int
        Numbers of subtopics within their query.
    order : array of int
        The rows of each query's documents, by document id.
    """

    starts: Ints
    subtopics: Ints
    order: Ints

    @classmethod
    def of(cls, qrels: DiversityQrels, level: float) -> RelevantSubtopics:
        """Return the judgments with a grade of at least `level`."""
        relevant = qrels.grades >= level
        kept = np.concatenate([[0], np.cumsum(relevant)])[qrels.starts]
        docids = list(qrels.docids)
        bounds = qrels.offsets.tolist()
        order = [
            row
            for lo, hi in pairwise(bounds)
            for row in sorted(range(lo, hi), key=docids.__getitem__, reverse=True)
        ]
        return cls(kept.astype(np.int64), qrels.subtopics[relevant], np.array(order, np.int64))

    @property
    def width(self) -> int:
        """The greatest number of subtopics of a query."""
        return int(self.subtopics.max(initial=-1)) + 1


@dataclass(frozen=True)
class Diversity(Measure):
    """Base of the measures of diversity.

    Parameters
    ----------
    rel : float, optional
        Smallest relevant grade; default is the convention's (1).
    """

    rel: float | None = None
    of_subtopics: ClassVar[bool] = True

    def relevance_level(self, convention: Convention) -> float:
        return float(convention.rel if self.rel is None else self.rel)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        if lists.subtopics is None:
            raise MeasureError(
                f"{self} needs judgments of subtopics: lines of `topic subtopic document judgment` "
                "(fp.read_diversity_qrels), or {query: {subtopic: {document: grade}}}."
            )
        relevant = RelevantSubtopics.of(lists.subtopics, self.relevance_level(convention))
        return self._values(lists, relevant)

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        raise AssertionError(f"{self.name} has no values")  # every subclass overrides this

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(getattr(self, "cutoff", None))


def _documents(lists: RankedLists) -> Ints:
    """Return the row of each ranked document in the judgments, -1 for unjudged ones."""
    return np.nan_to_num(lists.labels, nan=-1.0).astype(np.int64)


def _pool_rows(lists: RankedLists) -> Ints:
    """Return the row of every judged document of the measured queries."""
    return lists.pool.astype(np.int64)


def _subtopic_counts(lists: RankedLists, relevant: RelevantSubtopics) -> Ints:
    """Return the number of relevant documents per query and subtopic."""
    rows = _pool_rows(lists)
    lengths = np.diff(relevant.starts)[rows]
    query = np.repeat(np.repeat(np.arange(len(lists)), np.diff(lists.pool_offsets)), lengths)
    judgment = np.repeat(relevant.starts[rows], lengths) + (
        np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    )
    counts = np.zeros((len(lists), relevant.width), np.int64)
    np.add.at(counts, (query, relevant.subtopics[judgment]), 1)
    return counts


def _n_subtopics(lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
    """Return the number of subtopics with a relevant document, per query."""
    counts = _subtopic_counts(lists, relevant)
    return np.asarray((counts > 0).sum(axis=1), np.float64)


@dataclass(frozen=True)
class Novelty(Diversity):
    """Base of the measures in which the gain of a subtopic shrinks with each relevant document."""

    def _alpha(self) -> float:
        return float(getattr(self, "alpha", 0.5))

    def _discount(self, size: int) -> Floats:
        return discounts("log2", size)

    def _gain(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        size = int(np.diff(lists.offsets).max(initial=0))
        return kernel_values(
            kernel.novelty_gain,
            (_documents(lists), lists.tie_sizes, lists.offsets),
            starts=relevant.starts,
            subtopics=relevant.subtopics,
            alpha=self._alpha(),
            discount=self._discount(size),
            cutoff=kernel_cutoff(getattr(self, "cutoff", None)),
            counts=np.empty(relevant.width, np.int64),
            weights=np.empty(relevant.width),
            pass_means=np.empty(lists.longest_tie + 2),
        )

    def _ideal_gain(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        out = np.empty(len(lists))
        rows, offsets = _pool_rows(lists), lists.pool_offsets
        order = np.empty(len(relevant.order), np.int64)  # position of each row by document id
        order[relevant.order] = np.arange(len(order))
        query = np.repeat(np.arange(len(lists)), np.diff(offsets))
        by_id = rows[np.lexsort((order[rows], query))]
        kernel.ideal_novelty_gain(
            offsets=offsets,
            order=by_id,
            starts=relevant.starts,
            subtopics=relevant.subtopics,
            alpha=self._alpha(),
            discount=self._discount(int(np.diff(offsets).max(initial=0))),
            cutoff=kernel_cutoff(getattr(self, "cutoff", None)),
            used=np.empty(len(relevant.order), np.int64),
            weights=np.empty(relevant.width),
            out=out,
        )
        return out

    def _best_gain(self) -> float:
        """Return the gain per subtopic of a list whose documents cover all subtopics.

        It has as many documents as the cut-off; without one it is endless, so that the value of a
        query does not depend on the lengths of lists.
        """
        size, alpha = getattr(self, "cutoff", None), self._alpha()
        if size is None and alpha < MIN_ALPHA:
            raise MeasureError(
                f"{self} is divided by the value of an endless list of perfect documents, which "
                f"needs an alpha of at least {MIN_ALPHA:g}; give a cut-off, as in {self}@10."
            )
        if size is None:
            size = 1 + int(np.log(SMALLEST_GAIN) / np.log1p(-min(alpha, 0.99)))
        return float(((1 - alpha) ** np.arange(size)) @ self._discount(size))

    def _scaled(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        best = _n_subtopics(lists, relevant) * self._best_gain()
        return ratio(self._gain(lists, relevant), best)

    def _normalized(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        return ratio(self._gain(lists, relevant), self._ideal_gain(lists, relevant))


@dataclass(frozen=True)
class AlphaDCG(Novelty):
    """Alpha-DCG: DCG whose gain of a subtopic shrinks with each document that covers it.

    alpha-DCG@k = (1/N) * sum over the ranks j up to k of gain_j / log2(1 + j).

    The gain of a document is the sum, over the subtopics it is relevant for, of (1 - alpha) to the
    number of documents above that are relevant for the same subtopic.  As in ndeval, N is the sum
    of a list of k documents that are relevant for all subtopics; without a cut-off, of an endless
    one.

    Parameters
    ----------
    alpha : float, default 0.5
        How much a repeated subtopic loses, from 0 to 1.
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    References
    ----------
    Clarke et al., Novelty and Diversity in Information Retrieval Evaluation, SIGIR 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"a": 1, "b": 1}}})
    >>> run = {"q": {"a": 2.0, "b": 1.0}}
    >>> fp.evaluate(run, qrels, measures="alpha-DCG@1")["alpha-DCG@1"]
    1.0
    """

    alpha: float = 0.5
    cutoff: int | None = None
    text_name: ClassVar[str] = "alpha-DCG"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha <= 1:
            raise MeasureError(f"alpha of {self.name} must lie from 0 to 1; got {self.alpha}.")

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        return self._scaled(lists, relevant)


@dataclass(frozen=True)
class AlphaNDCG(AlphaDCG):
    """Alpha-nDCG: the gain of alpha-DCG, divided by that of an ideal list.

    alpha-nDCG@k = alpha-DCG@k / (alpha-DCG@k of the ideal list).

    The ideal list takes, at each rank, the judged document of greatest gain; of equal ones the
    first by document id.

    References
    ----------
    Clarke et al., Novelty and Diversity in Information Retrieval Evaluation, SIGIR 2008.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"a": 1, "b": 1}}})
    >>> run = {"q": {"b": 2.0, "a": 1.0}}
    >>> fp.evaluate(run, qrels, measures="alpha-nDCG@1")["alpha-nDCG@1"]
    0.5
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    text_name: ClassVar[str] = "alpha-nDCG"

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        return self._normalized(lists, relevant)


@dataclass(frozen=True)
class ERRIA(AlphaDCG):
    """Intent-aware expected reciprocal rank: as alpha-DCG, with the discount 1 / rank.

    A user who looks for one of the subtopics stops at a relevant document with probability alpha.

    References
    ----------
    Chapelle et al., Intent-Based Diversification of Web Search Results, Information Retrieval 2011.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"b": 1}}})
    >>> fp.evaluate({"q": {"a": 2.0}}, qrels, measures="ERR-IA@1")["ERR-IA@1"]
    0.5
    """

    text_name: ClassVar[str] = "ERR-IA"

    def _discount(self, size: int) -> Floats:
        return 1.0 / np.arange(1, size + 1)


@dataclass(frozen=True)
class nERRIA(ERRIA):
    """Normalized ERR-IA: ERR-IA divided by that of an ideal list.

    nERR-IA@k = ERR-IA@k / (ERR-IA@k of the ideal list).

    The ideal list is that of alpha-nDCG.

    References
    ----------
    Clarke et al., A Comparative Analysis of Cascade Measures for Novelty and Diversity, WSDM
    2011.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"b": 1}}})
    >>> fp.evaluate({"q": {"a": 2.0}}, qrels, measures="nERR-IA@1")["nERR-IA@1"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    text_name: ClassVar[str] = "nERR-IA"

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        return self._normalized(lists, relevant)


@dataclass(frozen=True)
class NRBP(Novelty):
    """Novelty- and rank-biased precision: as alpha-DCG, with the discount beta^(rank - 1).

    It is divided by the value of an endless list of documents that are relevant for all subtopics.

    Parameters
    ----------
    alpha : float, default 0.5
        How much a repeated subtopic loses, from 0 to 1.
    beta : float, default 0.5
        The probability of continuing to the next rank, between 0 and 1.

    References
    ----------
    Clarke, Kolla and Vechtomova, An Effectiveness Measure for Ambiguous and Underspecified Queries,
    ICTIR 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"b": 1}}})
    >>> fp.evaluate({"q": {"a": 2.0}}, qrels, measures="NRBP")["NRBP"]
    0.375
    """

    alpha: float = 0.5
    beta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.alpha <= 1 and 0 < self.beta < 1):
            raise MeasureError(
                f"alpha of {self.name} must lie from 0 to 1, and beta between 0 and 1; got "
                f"{self.alpha} and {self.beta}."
            )

    def _discount(self, size: int) -> Floats:
        return np.asarray(self.beta ** np.arange(size), np.float64)

    def _best_gain(self) -> float:
        return 1.0 / (1.0 - (1.0 - self.alpha) * self.beta)

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        return self._scaled(lists, relevant)


@dataclass(frozen=True)
class nNRBP(NRBP):
    """Normalized NRBP: NRBP divided by that of an ideal list.

    nNRBP = NRBP / (NRBP of the ideal list).

    The ideal list is that of alpha-nDCG.

    References
    ----------
    Clarke et al., A Comparative Analysis of Cascade Measures for Novelty and Diversity, WSDM
    2011.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"a": 1}}})
    >>> fp.evaluate({"q": {"a": 2.0}}, qrels, measures="nNRBP")["nNRBP"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        return self._normalized(lists, relevant)


@dataclass(frozen=True)
class StRecall(Novelty):
    """Subtopic recall: the fraction of the subtopics that the first k ranks cover.

    StRecall@k = (subtopics with a relevant document in the first k ranks) / (subtopics).

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    References
    ----------
    Zhai, Cohen and Lafferty, Beyond Independent Relevance, SIGIR 2003.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"a": 1, "b": 1}}})
    >>> run = {"q": {"b": 2.0, "a": 1.0}}
    >>> fp.evaluate(run, qrels, measures="StRecall@1")["StRecall@1"]
    0.5
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    cutoff: int | None = None

    def _alpha(self) -> float:
        return 1.0

    def _discount(self, size: int) -> Floats:
        return np.ones(size)

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        return ratio(self._gain(lists, relevant), _n_subtopics(lists, relevant))


@dataclass(frozen=True)
class PIA(StRecall):
    """Intent-aware precision: the mean over the subtopics of the precision in the first k ranks.

    P-IA@k = (sum over the subtopics of P@k) / (subtopics).

    Parameters
    ----------
    cutoff : int
        Number of ranks k; required.

    References
    ----------
    Agrawal et al., Diversifying Search Results, WSDM 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"a": 1, "b": 1}}})
    >>> fp.evaluate({"q": {"b": 2.0, "a": 1.0}}, qrels, measures="P-IA@2")["P-IA@2"]
    0.75
    """

    text_name: ClassVar[str] = "P-IA"
    without_cutoff: ClassVar[str] = "P-IA@10"

    def _alpha(self) -> float:
        return 0.0

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        assert self.cutoff is not None
        return super()._values(lists, relevant) / self.cutoff


@dataclass(frozen=True)
class APIA(Diversity):
    """Intent-aware average precision: the mean of AP over the subtopics.

    AP-IA = (sum over the subtopics of AP) / (subtopics).

    References
    ----------
    Agrawal et al., Diversifying Search Results, WSDM 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"b": 1}}})
    >>> fp.evaluate({"q": {"b": 2.0, "a": 1.0}}, qrels, measures="AP-IA")["AP-IA"]
    0.75
    """

    text_name: ClassVar[str] = "AP-IA"

    def _values(self, lists: RankedLists, relevant: RelevantSubtopics) -> Floats:
        counts = _subtopic_counts(lists, relevant)
        out = kernel_values(
            kernel.subtopic_average_precision,
            (_documents(lists), lists.tie_sizes, lists.offsets),
            starts=relevant.starts,
            subtopics=relevant.subtopics,
            relevant=counts,
            counts=np.empty(relevant.width, np.int64),
            before=np.empty(relevant.width),
        )
        return ratio(out, (counts > 0).sum(axis=1).astype(np.float64))


def with_subtopics(
    lists: RankedLists, qrels: DiversityQrels, convention: Convention
) -> RankedLists:
    """Return lists whose labels are row numbers of `qrels`, with these judgments."""
    lists = replace(lists, subtopics=qrels)
    if convention.without_relevant != "skip":
        return lists
    relevant = np.diff(RelevantSubtopics.of(qrels, convention.rel).starts) > 0
    counts = np.diff(offsets_from_lengths(relevant[_pool_rows(lists)])[lists.pool_offsets])
    return lists.select(counts > 0)
