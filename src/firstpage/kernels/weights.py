"""A DCG whose weights depend on the place and on the grade together."""

from __future__ import annotations

from firstpage.kernels.native import kernel, part
from firstpage.types import Floats, Ints


@part
def column_of(label: float, grades: Floats) -> int:
    """The number of a grade; 0 also for labels below all and unjudged ones, -1 for no grade."""
    at = 0
    for g in range(1, grades.size):
        at += 1 if label >= grades[g] else 0
    return -1 if label > grades[at] else at


@kernel
def count_grades(labels: Floats, offsets: Ints, grades: Floats, counts: Ints) -> int:
    """How many documents of each grade every query has, a row a query.

    Returns the first document whose label is no grade, or -1.
    """
    bad = -1
    for q in range(offsets.size - 1):
        for g in range(grades.size):
            counts[q, g] = 0
        for i in range(offsets[q], offsets[q + 1]):
            at = column_of(labels[i], grades)
            if at >= 0:
                counts[q, at] += 1
            elif bad < 0:
                bad = i
    return bad


@kernel
def weighed(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    grades: Floats,
    table: Floats,
    counts: Floats,
    out: Floats,
) -> None:
    """Expected sum over places of the weight of the grade that stands there.

    `table` has a row a place that counts and a column a grade; `labels` stand in ranked order, and
    all are grades (or below, or NaN: unjudged); `block` has the length of every run of tied scores
    at its first place.  In a tie every place has the mean of its documents, for which `counts` has
    room: one number a grade.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + table.shape[0])
        total = 0.0
        i = lo
        while i < end:
            size = block[i]
            if size == 1:
                total += table[i - lo, max(column_of(labels[i], grades), 0)]
            else:
                for g in range(grades.size):
                    counts[g] = 0.0
                for j in range(i, i + size):
                    counts[max(column_of(labels[j], grades), 0)] += 1.0
                for p in range(i - lo, min(i + size, end) - lo):
                    for g in range(grades.size):
                        total += counts[g] / size * table[p, g]
            i += size
        out[q] = total
