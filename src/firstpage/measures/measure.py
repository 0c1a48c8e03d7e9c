"""What measures rest on: conventions, ranked lists, and the base of all measures.

A convention says what different tools mean by the same measure; docs/conventions.md has a table of
them, made from here.  Ranked lists hold, for each query, the labels of the ranked documents in
ranked order, where scores tie, and the labels of all judged documents (the pool), ranked or not.  A
measure is a frozen value with parameters, a text, and one number per query.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from firstpage.data.groups import labels_by_score, offsets_from_lengths, sort_groups
from firstpage.data.ids import Ids
from firstpage.data.truth import random_keys
from firstpage.errors import DataError, MeasureError
from firstpage.kernels.measures.binary import count_relevant
from firstpage.kernels.sorting import (
    number_ties,
    order_ties_by_id,
    order_ties_by_key,
    tie_blocks,
    top_labels,
)
from firstpage.types import Floats, Ints

Ties = Literal["average", "file", "docid", "shuffle", "worst"]
Queries = Literal["judged", "run"]


@dataclass(frozen=True)
class Convention:
    """How rankings and truth are read.

    ties     "average": the exact expectation over all orders of documents with equal scores;
             "file": as they stand; "docid": by name, downward; "shuffle": at random by
             `seed`; "worst": the least relevant first.
    gain     of DCG and NDCG where the measure does not name one: "exp" or "linear".
    discount "log2": 1/log2(1+place); "letor": 1, 1, 1/log2(3), 1/log2(4), ..
    rel      labels from this on count as relevant in binary measures.
    queries  "judged": every query with judgments counts, 0 where the run misses it;
             "run": only queries that the run has.
    depth    documents beyond this place of a run do not exist.  None: all do.
    single   scores are rounded to float32 before they are compared, as trec_eval does.
    strict_cutoff  NDCG@k of a list shorter than k is 0.
    negative_unjudged  judgments below 0 count as none at all (matters to bpref and Judged).
    """

    name: str = "default"
    ties: Ties = "average"
    gain: str = "exp"
    discount: str = "log2"
    rel: float = 1.0
    queries: Queries = "judged"
    depth: int | None = None
    single: bool = False
    strict_cutoff: bool = False
    negative_unjudged: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for value, options, name in (
            (self.ties, get_args(Ties), "ties"),
            (self.queries, get_args(Queries), "queries"),
        ):
            if value not in options:
                raise MeasureError(f"{name} must be one of {', '.join(options)}; got {value!r}.")
        depth = self.depth
        if depth is not None and (not isinstance(depth, (int, np.integer)) or depth < 1):
            raise MeasureError(f"depth must be at least 1 and whole, and is {depth}.")
        if not np.isfinite(self.rel):
            raise MeasureError(f"rel must be a finite number, and is {self.rel}.")
        object.__setattr__(self, "seed", int(self.seed) % 2**63)  # any whole number will do


CONVENTIONS = {
    c.name: c
    for c in (
        Convention(),
        Convention(
            "trec",
            ties="docid",
            gain="linear",
            queries="run",
            single=True,
            negative_unjudged=True,
        ),
        Convention("letor", ties="file", discount="letor", strict_cutoff=True),
    )
}


def convention(which: str | Convention = "default", **changes: Any) -> Convention:
    """A named convention, with single settings changed; None leaves a setting as it is."""
    if isinstance(which, Convention):
        found = which
    elif which in CONVENTIONS:
        found = CONVENTIONS[which]
    else:
        near = get_close_matches(which, CONVENTIONS, 1, 0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise MeasureError(
            f"there is no convention {which!r}; there are {', '.join(CONVENTIONS)}.{hint}"
        )
    return replace(found, **{name: v for name, v in changes.items() if v is not None})


ALL = np.iinfo(np.int64).max // 4  # a cut-off that cuts nothing
SHORT = 64  # up to this depth the best labels are picked, beyond it all are sorted


@dataclass(frozen=True, eq=False)
class Lists:
    """Queries with their ranked documents.  `labels` is NaN where a document is unjudged.

    `block` has, at the first place of every run of equal scores, its length.
    """

    queries: Ids
    offsets: Ints
    labels: Floats
    block: Ints
    longest_tie: int
    pool_offsets: Ints
    pool: Floats
    origin: Ints | None  # each ranked document's row in the pool, -1: unjudged; None: all are it
    _counts: dict[float, Floats] = field(default_factory=dict, repr=False)
    _ideals: dict[int, tuple[Floats, Ints]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    def relevant(self, level: float) -> Floats:
        """Number of judged documents of at least this label, a query."""
        if level not in self._counts:
            out = np.empty(len(self))
            count_relevant(self.pool, self.pool_offsets, level, out)
            self._counts[level] = out
        return self._counts[level]

    @property
    def judged(self) -> Floats:
        """Number of judged documents, a query."""
        return np.diff(self.pool_offsets).astype(np.float64)

    @cached_property
    def top(self) -> Floats:
        """The greatest label of each query's pool; 0 where there is none above."""
        labels, offsets = self.ideal(1)
        top = np.zeros(len(self))
        top[np.diff(offsets) > 0] = labels
        return np.maximum(top, 0.0)

    def ideal(self, depth: int) -> tuple[Floats, Ints]:
        """The pool's labels downward, the first `depth` of each query; and their offsets."""
        depth = depth if depth <= SHORT else ALL
        if depth not in self._ideals:
            self._ideals[depth] = self._best(depth)
        return self._ideals[depth]

    def _best(self, depth: int) -> tuple[Floats, Ints]:
        if depth == ALL:
            _, best = sort_groups(self.pool, self.pool_offsets)
            return best, self.pool_offsets
        room = np.minimum(np.diff(self.pool_offsets), depth)
        offsets = offsets_from_lengths(room)
        best = np.empty(int(offsets[-1]))
        top_labels(self.pool, self.pool_offsets, offsets, best)
        return best, offsets

    @cached_property
    def judged_only(self) -> Lists:
        """The judged documents alone, those that were not retrieved in one tie at the end."""
        if self.origin is None:
            return self
        kept = np.flatnonzero(self.origin >= 0)
        lost = np.ones(len(self.pool), bool)
        lost[self.origin[kept]] = False
        tie = np.empty(len(self.labels), np.int64)
        number_ties(self.block, self.offsets, tie)
        every = np.arange(len(self))
        owner = np.concatenate(
            [
                np.repeat(every, self.lengths)[kept],
                np.repeat(every, np.diff(self.pool_offsets))[lost],
            ]
        )
        labels = np.concatenate([self.labels[kept], self.pool[lost]])
        keys = -np.concatenate([tie[kept], np.full(int(lost.sum()), len(tie))]).astype(np.float64)
        order = np.argsort(owner, kind="stable")
        block = np.ones(len(labels), np.int64)
        longest = tie_blocks(keys[order], self.pool_offsets, block)
        return Lists(
            self.queries, self.pool_offsets, labels[order], block, longest,
            self.pool_offsets, self.pool, None,
        )  # fmt: skip


def rank_lists(
    scores: Floats,
    labels: Floats,
    offsets: Ints,
    queries: Ids,
    how: Convention,
    docids: Ids | None = None,
    pool: tuple[Floats, Ints, Ints] | None = None,
) -> Lists:
    """Order every query's documents by score, ties by the convention.

    `labels` may be NaN for unjudged documents; then `pool` holds all judged labels, their
    offsets, and for each document its row among them (-1: unjudged).
    """
    _check_scores(scores, offsets, queries)
    if how.single:
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32).astype(np.float64)
    if how.ties in ("average", "file") and how.depth is None and pool is None:
        return _rank_labels(scores, labels, offsets, queries, how)
    order, keys = sort_groups(scores, offsets)
    if how.ties == "docid":
        if docids is None:
            raise MeasureError(
                "ties by document id need document ids, and these lists have none. "
                "Choose another rule with ties= (--ties), such as average or file."
            )
        spare = np.empty(len(order), np.int64)
        order_ties_by_id(keys, offsets, order, docids.data, docids.starts, docids.ends, spare)
    elif how.ties == "shuffle":
        order_ties_by_key(keys, offsets, order, random_keys(queries, offsets, how.seed))
    elif how.ties == "worst":
        order_ties_by_key(keys, offsets, order, np.nan_to_num(labels, nan=-np.inf))
    pool_labels, pool_offsets, origin = (labels, offsets, None) if pool is None else pool
    if how.depth is not None:
        order, keys, offsets = _cut(order, keys, offsets, queries, how)
        origin = order if origin is None else origin[order]
    elif origin is not None:
        origin = origin[order]
    block, longest = np.ones(len(keys), np.int64), 1
    if how.ties == "average":
        longest = tie_blocks(keys, offsets, block)
    return Lists(queries, offsets, labels[order], block, longest, pool_offsets, pool_labels, origin)


def _rank_labels(
    scores: Floats, labels: Floats, offsets: Ints, queries: Ids, how: Convention
) -> Lists:
    """The usual case, where nobody asks which document stands where: labels are enough."""
    found, block, longest = labels_by_score(scores, labels, offsets)
    if how.ties == "file":
        block[:], longest = 1, 1
    return Lists(queries, offsets, found, block, longest, offsets, labels, None)


def _cut(
    order: Ints, keys: Floats, offsets: Ints, queries: Ids, how: Convention
) -> tuple[Ints, Floats, Ints]:
    """The first `depth` documents.  A tie across that place is cut at random, by the seed."""
    assert how.depth is not None
    if how.ties == "average":
        order_ties_by_key(keys, offsets, order, random_keys(queries, offsets, how.seed))
    place = np.arange(len(order)) - np.repeat(offsets[:-1], np.diff(offsets))
    keep = place < how.depth
    lengths = np.minimum(np.diff(offsets), how.depth)
    return order[keep], keys[keep], offsets_from_lengths(lengths)


def _check_scores(scores: Floats, offsets: Ints, queries: Ids) -> None:
    bad = np.isnan(scores)
    if bad.any():
        row = int(np.argmax(bad))
        q = int(np.searchsorted(offsets, row, side="right")) - 1
        raise DataError(
            f"the score of document {row - int(offsets[q]) + 1} in query {queries[q]!r} (row "
            f"{row + 1}) is not a number (NaN); a document without a score cannot be ranked."
        )


@dataclass(frozen=True, eq=False)
class Additive:
    """A measure as the sum over places of a document's gain times the place's discount."""

    gains: Floats  # one a judged document
    discount: Floats  # of the places that count


@dataclass(frozen=True)
class Measure:
    """Base of all measures.  `str(measure)` is its canonical text, which `measure()` parses.

    Subclasses declare parameters as fields; one called `cutoff` is written `@10`.
    """

    about: ClassVar[str] = ""  # one line, for the manual
    lower_is_better: ClassVar[bool] = False
    without_cutoff: ClassVar[str] = ""  # what to do instead, where there must be a cut-off

    @property
    def name(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        given = [
            f"{f.name}={_text(getattr(self, f.name))}"
            for f in fields(self)
            if f.name != "cutoff" and getattr(self, f.name) != f.default
        ]
        cutoff = getattr(self, "cutoff", None)
        inside = f"({', '.join(given)})" if given else ""
        return self.name + inside + (f"@{cutoff}" if cutoff is not None else "")

    def __matmul__(self, cutoff: int) -> Self:
        """`NDCG() @ 10`."""
        if "cutoff" not in {f.name for f in fields(self)}:
            raise MeasureError(f"{self.name} takes no cut-off.")
        changes: dict[str, Any] = {"cutoff": cutoff}
        return replace(self, **changes)

    def __post_init__(self) -> None:
        for name in ("rel", "max", "p", "gain"):
            value = getattr(self, name, None)
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, float) and not np.isfinite(number):
                    raise MeasureError(f"{name} of {self.name} must be finite; got {number}.")
        p = getattr(self, "p", None)
        if p is not None and not 0 < p < 1:
            raise MeasureError(f"p of {self.name} must lie between 0 and 1; got {p}.")
        cutoff = getattr(self, "cutoff", None)
        if cutoff is None and self.without_cutoff:
            raise MeasureError(f"{self.name} needs a cut-off, such as {self.without_cutoff}.")
        if cutoff is not None and (not isinstance(cutoff, (int, np.integer)) or cutoff < 1):
            raise MeasureError(f"the cut-off of {self.name} must be at least 1; got {cutoff!r}.")

    def values(self, lists: Lists, how: Convention) -> Floats:
        """One number a query."""
        raise AssertionError(f"{self.name} has no values")  # every subclass has its own

    def additive(self, lists: Lists, how: Convention) -> Additive | None:
        """Gains and discounts, where the measure adds them up; else None."""
        return None


def cut(cutoff: int | None) -> int:
    """A cut-off as kernels take it."""
    return ALL if cutoff is None else min(int(cutoff), ALL)


def ratio(above: Floats, below: Floats) -> Floats:
    """above / below, and 0 where below is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    return str(value)
