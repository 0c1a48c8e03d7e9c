"""Ground truth as an ordered partition: one number a document, bigger is better.

Grades, a full order and a top-k truth are the same thing read differently: equal numbers
mean "no preference".  A top-k truth numbers its documents k, k-1, .. 1 and all others 0, so
that the first document has the number k in every query, however short.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from firstpage.data.groups import check_offsets, group_rows, sort_groups
from firstpage.data.ids import Ids
from firstpage.errors import DataError
from firstpage.kernels.hashing import STEP, random_words
from firstpage.kernels.sorting import order_ties_by_key
from firstpage.types import Floats, Ints

MAX_K = 10**9  # deeper than any list
TruthKind = Literal["graded", "full order", "top-k"]


@dataclass(frozen=True, eq=False)
class Truth:
    """Labels of the documents of many queries, with conversions that never change the input."""

    labels: Floats
    offsets: Ints
    queries: Ids

    def __post_init__(self) -> None:
        check_offsets(self.offsets, self.queries, len(self.labels), "truth")
        bad = ~np.isfinite(self.labels)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"a label of query {self._query_of(row)!r} is {self.labels[row]}; "
                "labels must be finite numbers."
            )

    @classmethod
    def from_labels(cls, labels: Any, qid: Any = None) -> Truth:
        """From one label and one query id a document, in grouped rows; no qid: one query."""
        values = np.array(labels, np.float64).ravel()
        ids = np.zeros(len(values), np.int64) if qid is None else qid
        queries, offsets, order = group_rows(ids, len(values))
        if order is not None:
            raise DataError(
                "the rows of a query must stand together here; Dataset.from_arrays regroups them."
            )
        return cls(values, offsets, queries)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        span = (
            f", labels {self.labels.min():g} to {self.labels.max():g}" if len(self.labels) else ""
        )
        return f"Truth({len(self)} queries, {len(self.labels)} documents{span})"

    def _query_of(self, row: int) -> str:
        return self.queries[int(np.searchsorted(self.offsets, row, side="right")) - 1]

    # --- reading it

    @property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @cached_property
    def by_label(self) -> tuple[Ints, Floats]:
        """Documents by label, downward and in file order inside a label; the labels so."""
        return sort_groups(self.labels, self.offsets)

    @cached_property
    def depth(self) -> Ints:
        """For each query, how many first places the labels decide one by one.

        n for a full order, k for a top-k truth, 0 where the best grade is shared.
        """
        keys = self.by_label[1]
        depth = np.empty(len(self), np.int64)
        for q, (lo, hi) in enumerate(self._bounds()):
            same = keys[lo : hi - 1] == keys[lo + 1 : hi] if hi > lo else np.empty(0, bool)
            depth[q] = int(np.argmax(same)) if same.any() else hi - lo
        return depth

    @property
    def kind(self) -> TruthKind:
        """What the labels can be read as; a full order is also a top-k truth."""
        if (self.depth == self.lengths).all():
            return "full order"
        return "top-k" if self.top_k_depth is not None else "graded"

    @cached_property
    def top_k_depth(self) -> int | None:
        """k, if the labels of every query are k, k-1, .. followed by zeros; else None."""
        if not len(self.labels) or (top := self.labels.max()) < 1 or top != int(top):
            return None
        place = np.arange(len(self.labels)) - np.repeat(self.offsets[:-1], self.lengths)
        want = np.maximum(top - place, 0)
        return int(top) if np.array_equal(self.by_label[1], want) else None

    # --- converting it

    def full_order(self, seed: int = 0) -> Truth:
        """Every document at a place of its own, labeled n-1 .. 0.

        Documents of equal label are put in a random order that depends on the seed and the
        query's id alone, so that adding or removing other queries changes nothing.
        """
        place = self._places(seed)
        return self._with(np.repeat(self.lengths, self.lengths) - 1 - place)

    def top_k(self, k: int, seed: int = 0, min_grade: float | None = None) -> Truth:
        """The first k documents labeled k .. 1, the rest 0; random among equals as above.

        With `min_grade`, documents below it are never in the top, even if it stays short.
        """
        if not isinstance(k, (int, np.integer)) or not 1 <= k <= MAX_K:
            raise DataError(f"k must be a whole number from 1 on, and is {k}.")
        known = self.top_k_depth
        # Up to 2, 1, 0, 0 the labels may well be grades, of which a top k can be drawn.
        if known is not None and known > 2 and (self.depth < np.minimum(k, self.lengths)).any():
            raise DataError(
                f"this truth knows the order of the top {known} only; it cannot give the top {k}."
            )
        labels = np.maximum(k - self._places(seed), 0).astype(np.float64)
        if min_grade is not None:
            labels[self.labels < min_grade] = 0
        return self._with(labels)

    def binary(self, level: float = 1) -> Truth:
        """1 for labels of at least `level`, 0 for the others."""
        return self._with((self.labels >= level).astype(np.float64))

    def pairs(self, which: Literal["all", "cross"] = "all") -> tuple[Ints, Ints]:
        """Row numbers (better, worse) of every preference.

        "all": each pair of one query with different labels.  "cross": only those between the
        documents with a positive label and the others, FocusedRank's T x F.
        """
        if which not in ("all", "cross"):
            raise DataError(f"which must be 'all' or 'cross'; got {which!r}.")
        better, worse = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for lo, hi in self._bounds():
            y = self.labels[lo:hi]
            wins = y[:, None] > y[None, :]
            if which == "cross":
                wins &= (y[:, None] > 0) & (y[None, :] <= 0)
            u, v = np.nonzero(wins)
            better.append(u + lo)
            worse.append(v + lo)
        return np.concatenate(better), np.concatenate(worse)

    def _with(self, labels: Any) -> Truth:
        return Truth(np.asarray(labels, np.float64), self.offsets, self.queries)

    def _bounds(self) -> list[tuple[int, int]]:
        ends = self.offsets.tolist()
        return list(itertools.pairwise(ends))

    def _places(self, seed: int) -> Ints:
        """The place of every document from 0, ties in seeded random order."""
        order, keys = self.by_label[0].copy(), self.by_label[1]
        order_ties_by_key(keys, self.offsets, order, random_keys(self.queries, self.offsets, seed))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - np.repeat(self.offsets[:-1], self.lengths)
        return place


def random_keys(queries: Ids, offsets: Ints, seed: int) -> Floats:
    """A number in [0, 1) a document, from the seed and the id of its query."""
    words = np.empty(int(offsets[-1]), np.uint64)
    spread = np.uint64(int(seed) * int(STEP) % 2**64)  # neighboring seeds differ in every bit
    random_words(queries.hashes ^ spread, offsets, words)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
