"""Measures of binary relevance.  A label of at least `rel` (default 1) is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.kernels.measures import binary, graded
from firstpage.measures.measure import ALL, Convention, Measure, RankedLists, cut, ratio
from firstpage.types import Floats, Ints


@dataclass(frozen=True)
class _Binary(Measure):
    rel: float | None = None

    def _level(self, how: Convention) -> float:
        return float(how.rel if self.rel is None else self.rel)

    def _hits(self, lists: RankedLists, level: float, cutoffs: Ints) -> Floats:
        out = np.empty(len(lists))
        binary.hits(lists.labels, lists.tie_sizes, lists.offsets, level, cutoffs, out)
        return out


def _everywhere(lists: RankedLists, cutoff: int | None) -> Ints:
    return np.full(len(lists), cut(cutoff), np.int64)


@dataclass(frozen=True)
class P(_Binary):
    """Precision: the share of relevant documents in the first k places; missing ones count."""

    cutoff: int | None = None
    about: ClassVar[str] = "precision in the first k places"
    without_cutoff: ClassVar[str] = "P@10; SetP is for whole lists"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        assert self.cutoff is not None
        return self._hits(lists, self._level(how), _everywhere(lists, self.cutoff)) / self.cutoff


@dataclass(frozen=True)
class Recall(_Binary):
    """The share of all relevant documents that the first k places hold."""

    cutoff: int | None = None
    about: ClassVar[str] = "share of the relevant documents found"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        level = self._level(how)
        found = self._hits(lists, level, _everywhere(lists, self.cutoff))
        return ratio(found, lists.relevant(level))


@dataclass(frozen=True)
class Rprec(_Binary):
    """Precision in the first R places, R the number of relevant documents."""

    about: ClassVar[str] = "precision at the number of relevant documents"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        relevant = lists.relevant(self._level(how))
        return ratio(self._hits(lists, self._level(how), relevant.astype(np.int64)), relevant)


@dataclass(frozen=True)
class AP(_Binary):
    """Average precision: the mean, over relevant documents, of the precision at their place.

    Relevant documents that are not found, or stand below the cut-off, count 0.
    """

    cutoff: int | None = None
    about: ClassVar[str] = "average precision (its mean is MAP)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        level = self._level(how)
        out = np.empty(len(lists))
        binary.average_precision(
            lists.labels, lists.tie_sizes, lists.offsets, level, cut(self.cutoff),
            lists.relevant(level), out,
        )  # fmt: skip
        return out


@dataclass(frozen=True)
class RR(_Binary):
    """One over the place of the first relevant document; 0 if there is none."""

    cutoff: int | None = None
    about: ClassVar[str] = "reciprocal rank (its mean is MRR)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return self._first(lists, how)[0]

    def _first(self, lists: RankedLists, how: Convention) -> tuple[Floats, Floats]:
        reciprocal, success = np.empty(len(lists)), np.empty(len(lists))
        binary.first_hit(
            lists.labels, lists.tie_sizes, lists.offsets, self._level(how), cut(self.cutoff),
            reciprocal, success,
        )  # fmt: skip
        return reciprocal, success


@dataclass(frozen=True)
class Success(RR):
    """1 if a relevant document stands in the first k places."""

    about: ClassVar[str] = "is there a relevant document in the first k?"
    without_cutoff: ClassVar[str] = "Success@5"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return self._first(lists, how)[1]


@dataclass(frozen=True)
class bpref(_Binary):
    """Relevant documents against judged non-relevant ones above them; unjudged: not there."""

    about: ClassVar[str] = "binary preference (Buckley & Voorhees 2004)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        level = self._level(how)
        relevant = lists.relevant(level)
        out = np.empty(len(lists))
        binary.bpref(
            lists.labels,
            lists.tie_sizes,
            lists.offsets,
            level,
            relevant,
            lists.judged - relevant,
            out,
        )
        return out


@dataclass(frozen=True)
class Judged(Measure):
    """The share of judged documents in the first k places (of those that are there)."""

    cutoff: int | None = None
    about: ClassVar[str] = "share of judged documents in the first k"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        out = np.empty(len(lists))
        cutoffs = _everywhere(lists, self.cutoff)
        binary.hits(lists.labels, lists.tie_sizes, lists.offsets, -np.inf, cutoffs, out)
        return ratio(out, np.minimum(lists.lengths, cutoffs).astype(np.float64))


@dataclass(frozen=True)
class RBP(_Binary):
    """Rank-biased precision: a reader goes on to the next place with chance p."""

    p: float = 0.8
    cutoff: int | None = None
    about: ClassVar[str] = "rank-biased precision (Moffat & Zobel 2008)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        out = np.empty(len(lists))
        graded.rank_biased_precision(
            lists.labels, lists.tie_sizes, lists.offsets, self._level(how), float(self.p),
            cut(self.cutoff), out,
        )  # fmt: skip
        return out


@dataclass(frozen=True)
class SetP(_Binary):
    """The share of relevant documents in the whole list."""

    about: ClassVar[str] = "precision of the whole list"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return self._set(lists, how)[0]

    def _set(self, lists: RankedLists, how: Convention) -> tuple[Floats, Floats]:
        level = self._level(how)
        found = self._hits(lists, level, np.full(len(lists), ALL, np.int64))
        return ratio(found, lists.lengths.astype(np.float64)), ratio(found, lists.relevant(level))


@dataclass(frozen=True)
class SetR(SetP):
    """The share of all relevant documents that the list holds."""

    about: ClassVar[str] = "recall of the whole list"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return self._set(lists, how)[1]


@dataclass(frozen=True)
class SetF(SetP):
    """Harmonic mean of SetP and SetR."""

    about: ClassVar[str] = "F1 of the whole list"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        p, r = self._set(lists, how)
        return ratio(2 * p * r, p + r)
