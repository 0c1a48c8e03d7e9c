"""A truth as losses read it: documents from best to worst, in levels of equal label.

With a depth k only the first k places count.  Where equal labels leave open who takes the last
of them, the documents share: each is in the top k with the same chance.  That is the mean over
all ways to break the tie, and needs no random order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.data.truth import Truth
from firstpage.types import Array, Floats, Ints


@dataclass(frozen=True, eq=False)
class Levels:
    """Query q has the levels firsts[q]:firsts[q+1]; places are counted inside the query.

    order    documents from best to worst, as numbers inside their query
    weight   in that order; a document of weight 2 counts as two copies
    end      one past each level's last place
    total    summed weight of each level
    above    summed weight of the levels above it
    share    chance of its documents to be among the first k places
    lowest   whether nothing of positive weight stands below it, so that it is preferred to nothing
    """

    offsets: Ints
    order: Array
    weight: Floats
    firsts: Ints
    end: Ints
    total: Floats
    above: Floats
    share: Floats
    lowest: Array

    @property
    def sizes(self) -> Ints:
        """Levels per query."""
        return np.diff(self.firsts)

    def per_query(self, values: Floats) -> Floats:
        """The sum over each query's levels."""
        return query_sums(values, self.firsts)

    def spread(self, values: Floats) -> Floats:
        """One number a level as one number a document, in the order of the rows."""
        return self.by_row(np.repeat(values, self.widths))

    def by_row(self, values: Floats) -> Floats:
        """One number a document, from true order to the order of rows."""
        out = np.empty(len(self.order))
        out[np.repeat(self.offsets[:-1], np.diff(self.offsets)) + self.order] = values
        return out

    def at_starts(self, values: Floats) -> Floats:
        """One number a level with the first document of it, in the order of rows; else 0."""
        out = np.zeros(len(self.order))
        out[self._starts()] = values
        return self.by_row(out)

    @property
    def widths(self) -> Ints:
        """Documents per level."""
        return np.diff(self._starts(), append=len(self.order))

    def _starts(self) -> Ints:
        """The first row of every level, in sorted order."""
        start = np.concatenate([[0], self.end[:-1]])
        start[self.firsts[:-1][self.sizes > 0]] = 0
        found: Ints = np.repeat(self.offsets[:-1], self.sizes) + start
        return found


def levels(truth: Truth, weights: Floats | None = None, k: int | None = None) -> Levels:
    """Sort and cut a truth into levels; `weights` are the documents', in the order of rows."""
    order, keys = truth.by_label
    offsets, lengths = truth.offsets, truth.lengths
    change = np.empty(len(keys), bool)
    change[1:] = keys[1:] != keys[:-1]
    change[offsets[:-1][lengths > 0]] = True
    starts = np.flatnonzero(change)
    firsts = np.searchsorted(starts, offsets).astype(np.int64)
    sizes = np.diff(firsts)
    base = np.repeat(offsets[:-1], sizes)
    end = np.append(starts[1:], len(keys)) - base
    weight = np.ones(len(keys)) if weights is None else weights[order].astype(np.float64)
    total = np.add.reduceat(weight, starts) if len(starts) else np.empty(0)
    reached = np.concatenate([[0.0], np.cumsum(total)])
    above = reached[:-1] - np.repeat(reached[firsts[:-1]], sizes)
    heavy = offsets_from_lengths(total > 0)  # levels, counted: exact
    below = np.repeat(heavy[firsts[1:]], sizes) - heavy[1:]
    share = np.ones(len(total))
    if k is not None:
        room = np.clip(np.round(k - above, 9), 0.0, total)  # running sums leave dust
        share = np.divide(room, total, out=np.zeros_like(total), where=total > 0)
    local = (order - np.repeat(offsets[:-1], lengths)).astype(np.int32)
    return Levels(offsets, local, weight, firsts, end, total, above, share, below == 0)


def query_sums(values: Floats, offsets: Ints) -> Floats:
    """The sum over each group; not by differences of running sums, which leave dust."""
    filled = np.diff(offsets) > 0
    if filled.all() and len(filled):
        found: Floats = np.add.reduceat(values, offsets[:-1])
        return found
    out = np.zeros(len(offsets) - 1)
    if filled.any():
        out[filled] = np.add.reduceat(values, offsets[:-1][filled])
    return out


def expected_places(found: Levels, k: int) -> Floats:
    """The top-k label k + 1 - place of every document, at least 0; the mean where places tie."""
    left = np.maximum(k - found.above, 0.0)
    after = np.maximum(k - found.above - found.total, 0.0)
    sums = (left * (left + 1) - after * (after + 1)) / 2
    mean = np.divide(sums, found.total, out=np.zeros_like(sums), where=found.total > 0)
    return found.spread(mean)
