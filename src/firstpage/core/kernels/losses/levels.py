"""Sorted labels as levels of equal label, which losses read.

Query q has the rows offsets[q]:offsets[q + 1], sorted by descending label, and the levels
firsts[q]:firsts[q + 1].
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel
from firstpage.core.types import Array, Floats, Ints

DIGITS = 1e9  # to which summed weights are rounded where they are compared with k


@kernel
def split_levels(
    keys: Floats,
    rows: Ints,
    weight: Floats,
    offsets: Ints,
    k: int,
    order: Array,
    firsts: Ints,
    end: Ints,
    total: Floats,
    above: Floats,
    top_probability: Floats,
    is_lowest: Array,
) -> int:
    """Write the attributes of `LabelLevels`, and return the number of levels.

    `rows` are the documents in the order of `keys`; `k` is 0 where all ranks count.  Arrays with a
    number per level are as long as there are documents: each can be a level of its own.
    """
    level = -1
    for q in range(offsets.size - 1):
        lo, summed = offsets[q], 0.0
        firsts[q] = level + 1
        for i in range(lo, offsets[q + 1]):
            order[i] = rows[i] - lo
            if i == lo or keys[i] != keys[i - 1]:
                level += 1
                above[level], total[level] = summed, 0.0
            total[level] += weight[i]
            summed += weight[i]
            end[level] = i + 1 - lo
        lowest = True
        for x in range(level, firsts[q] - 1, -1):
            is_lowest[x] = lowest
            lowest = lowest and total[x] <= 0.0
            top_probability[x] = 1.0
            if k > 0:
                inside = np.rint((k - above[x]) * DIGITS) / DIGITS
                inside = min(max(inside, 0.0), total[x])
                top_probability[x] = inside / total[x] if total[x] > 0.0 else 0.0
    firsts[offsets.size - 1] = level + 1
    return level + 1


@kernel
def repeat_levels(
    values: Floats, order: Array, offsets: Ints, firsts: Ints, end: Ints, out: Floats
) -> None:
    """Write the number of each level to its documents, in the order of the rows."""
    for q in range(offsets.size - 1):
        lo, start = offsets[q], 0
        for level in range(firsts[q], firsts[q + 1]):
            for i in range(start, end[level]):
                out[lo + order[lo + i]] = values[level]
            start = end[level]


@kernel
def top_k_labels(
    keys: Floats, rows: Ints, weight: Floats, offsets: Ints, k: float, out: Floats
) -> None:
    """Write the top-k label of every row: k + 1 - rank, at least 0; the mean over ties."""
    for q in range(offsets.size - 1):
        start, above = offsets[q], 0.0
        while start < offsets[q + 1]:
            end, total = start, 0.0
            while end < offsets[q + 1] and keys[end] == keys[start]:
                total += weight[rows[end]]
                end += 1
            remaining = max(k - above, 0.0)
            after = max(k - above - total, 0.0)
            label = 0.0
            if total > 0.0:
                label = (remaining * (remaining + 1.0) - after * (after + 1.0)) / 2.0 / total
            for i in range(start, end):
                out[rows[i]] = label
            start, above = end, above + total
