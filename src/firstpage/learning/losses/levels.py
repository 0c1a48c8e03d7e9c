"""A truth as losses read it: documents from best to worst, in levels of equal label.

With a cutoff k only the first k ranks count.  Where a level of equal labels crosses rank k, each of
its documents is in the top k with the same probability.  That is the mean over all ways to break
the tie, and needs no random order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from firstpage.core import Array, Floats, Ints
from firstpage.core.kernels.losses import levels as kernel
from firstpage.data import Truth


@dataclass(frozen=True, eq=False)
class LabelLevels:
    """The levels of equal label of each query, as `label_levels` returns them.

    Query q has the levels firsts[q]:firsts[q + 1], from the best label to the worst.  Ranks are
    counted inside the query, from 0.

    Parameters
    ----------
    offsets : array of int
        Query q has the documents offsets[q]:offsets[q + 1].
    order : array of int
        The documents from best to worst label, as numbers inside their query.
    weight : array of float
        The weights of the documents in that order; one of weight 2 counts as two copies.
    firsts : array of int
        The first level of each query, and the number of all levels.
    end : array of int
        One past the last rank of each level.
    total : array of float
        The summed weight of each level.
    above : array of float
        The summed weight of the levels above, in the same query.
    top_probability : array of float
        The probability that a document of the level is among the first k, if equal labels are put
        in random order.
    is_lowest : array of bool
        Whether no level below has positive weight: the level is preferred to nothing.

    Examples
    --------
    >>> import firstpage as fp
    >>> levels = fp.extend.label_levels(fp.Truth.from_labels([0, 2, 1, 1]), k=2)
    >>> levels.order.tolist(), levels.end.tolist()
    ([1, 2, 3, 0], [1, 3, 4])
    >>> levels.top_probability.tolist()
    [1.0, 0.5, 0.0]
    """

    offsets: Ints
    order: Array
    weight: Floats
    firsts: Ints
    end: Ints
    total: Floats
    above: Floats
    top_probability: Floats
    is_lowest: Array

    def __repr__(self) -> str:
        return (
            f"LabelLevels({len(self.offsets) - 1} queries, {len(self.total)} levels, "
            f"{len(self.order)} documents)"
        )

    @property
    def sizes(self) -> Ints:
        """The number of levels per query."""
        return np.diff(self.firsts)

    def per_query(self, values: Floats) -> Floats:
        """Return the sum over the levels of each query.

        Parameters
        ----------
        values : array of float
            One number per level.

        Returns
        -------
        array of float
            One number per query.
        """
        return query_sums(values, self.firsts)

    def per_document(self, values: Floats) -> Floats:
        """Repeat one number per level for its documents, in the order of the rows.

        Parameters
        ----------
        values : array of float
            One number per level.

        Returns
        -------
        array of float
            One number per document.
        """
        out = np.empty(len(self.order))
        arrays = (self.order, self.offsets, self.firsts, self.end)
        kernel.repeat_levels(values.astype(np.float64), *arrays, out)
        return out

    def by_row(self, values: Floats) -> Floats:
        """Rearrange one number per document from the true order to the order of the rows.

        Parameters
        ----------
        values : array of float
            One number per document, from best to worst label.

        Returns
        -------
        array of float
            The same numbers in the order of the rows.
        """
        out = np.empty(len(self.order))
        out[np.repeat(self.offsets[:-1], np.diff(self.offsets)) + self.order] = values
        return out

    def at_starts(self, values: Floats) -> Floats:
        """Give the number of each level to its first document, and 0 to the others.

        Parameters
        ----------
        values : array of float
            One number per level.

        Returns
        -------
        array of float
            One number per document, in the order of the rows.
        """
        out = np.zeros(len(self.order))
        out[self.starts] = values
        return self.by_row(out)

    @property
    def widths(self) -> Ints:
        """The number of documents per level."""
        return np.diff(self.starts, append=len(self.order))

    @property
    def starts(self) -> Ints:
        """The first row of every level, in sorted order."""
        start = np.concatenate([[0], self.end[:-1]])
        start[self.firsts[:-1][self.sizes > 0]] = 0
        rows: Ints = np.repeat(self.offsets[:-1], self.sizes) + start
        return rows


def label_levels(truth: Truth, weights: Floats | None = None, k: int | None = None) -> LabelLevels:
    """Sort the documents of each query by label, and split them into levels of equal label.

    Parameters
    ----------
    truth : Truth
        The labels.
    weights : array of float, optional
        One weight per document, in the order of the rows.
    k : int, optional
        The depth of the top, for `top_probability`; None counts every rank.

    Returns
    -------
    LabelLevels
        The levels of all queries.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.extend.label_levels(fp.Truth.from_labels([0, 2, 2])).total.tolist()
    [2.0, 1.0]
    """
    rows, keys = truth.by_label
    offsets, size = truth.offsets, len(keys)
    weight = np.ones(size) if weights is None else weights[rows].astype(np.float64)
    order, firsts = np.empty(size, np.int32), np.empty(len(offsets), np.int64)
    end, is_lowest = np.empty(size, np.int64), np.empty(size, bool)
    total, above, top_probability = np.empty((3, size))
    k = k or 0
    count = kernel.split_levels(
        keys, rows, weight, offsets, k, order, firsts, end, total, above, top_probability,
        is_lowest,
    )  # fmt: skip
    end, is_lowest = end[:count].copy(), is_lowest[:count].copy()
    total, above, probability = (x[:count].copy() for x in (total, above, top_probability))
    return LabelLevels(offsets, order, weight, firsts, end, total, above, probability, is_lowest)


class LevelArrays(TypedDict):
    """The levels of a slice of queries, by the parameters of kernels."""

    order: Array
    weight: Floats
    offsets: Ints
    firsts: Ints
    end: Ints


def level_arrays(levels: LabelLevels, lo: int, hi: int) -> LevelArrays:
    """Return the levels of the queries lo:hi."""
    rows = slice(int(levels.offsets[lo]), int(levels.offsets[hi]))
    return {
        "order": levels.order[rows],
        "weight": levels.weight[rows],
        "offsets": levels.offsets[lo : hi + 1],
        "firsts": levels.firsts[lo : hi + 1],
        "end": levels.end,
    }


def query_sums(values: Floats, offsets: Ints) -> Floats:
    """Return the sum over each group.

    Not by differences of cumulative sums, whose rounding errors are larger.
    """
    filled = np.diff(offsets) > 0
    if filled.all() and len(filled):
        sums: Floats = np.add.reduceat(values, offsets[:-1])
        return sums
    out = np.zeros(len(offsets) - 1)
    if filled.any():
        out[filled] = np.add.reduceat(values, offsets[:-1][filled])
    return out


def top_k_labels(truth: Truth, weights: Floats | None, k: int) -> Floats:
    """Return the top-k label of every document: k + 1 - rank, at least 0; the mean over ties."""
    rows, keys = truth.by_label
    out = np.empty(len(rows))
    weight = np.ones(len(rows)) if weights is None else weights.astype(np.float64)
    kernel.top_k_labels(keys, rows, weight, truth.offsets, float(k), out)
    return out


def level_labels(levels: LabelLevels, k: int) -> Floats:
    """Return the top-k label of every level: the mean over its documents."""
    remaining = np.maximum(k - levels.above, 0.0)
    after = np.maximum(k - levels.above - levels.total, 0.0)
    sums = (remaining * (remaining + 1) - after * (after + 1)) / 2
    means: Floats = np.divide(sums, levels.total, out=np.zeros_like(sums), where=levels.total > 0)
    return means
