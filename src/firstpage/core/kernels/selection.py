"""Select the documents and the labels of each query that its first ranks need."""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.sorting import sort_down
from firstpage.core.types import Floats, Ints, Words


@subroutine
def kth_of_16(values: Floats, k: int) -> float:
    """Return the k-th greatest of 16 values, by counting, for each, those that are not less."""
    best = -np.inf
    for i in range(16):
        value = values[i]
        count = 0
        for j in range(16):
            count += 1 if values[j] >= value else 0
        best = value if count >= k and value > best else best
    return best


@kernel
def select_top(
    scores: Floats,
    offsets: Ints,
    depth: int,
    groups: int,
    maxima: Floats,
    maxima_bits: Words,
    items: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
    rows: Ints,
    ends: Ints,
) -> None:
    """Write rows that contain the first `depth` ranks of each query, with all of their ties.

    Documents are dealt into `groups` groups.  The depth-th greatest maximum of a group is no
    greater than the depth-th greatest score, so all documents below it are left out: about a third
    more than `depth` remain.  Lists of at most twice as many documents are taken whole.  `maxima`,
    its bits, and the four workspaces have the size `groups`, at least `depth`.  Rows are in file
    order; those of query q end at ends[q].
    """
    at: int = np.int64(0)
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        if hi - lo <= 2 * groups:
            for i in range(lo, hi):
                rows[at] = i
                at += 1
        else:
            for g in range(groups):
                maxima[g] = scores[lo + g]
            i = lo + groups
            while i + groups <= hi:
                for g in range(groups):
                    score, maximum = scores[i + g], maxima[g]
                    maxima[g] = score if score > maximum else maximum
                i += groups
            for g in range(hi - i):
                maxima[g] = max(maxima[g], scores[i + g])
            if groups == 16:
                least = kth_of_16(maxima, depth)
            else:
                sort_down(
                    scores=maxima,
                    bits=maxima_bits,
                    lo=np.int64(0),
                    hi=groups,
                    items=items,
                    words=words,
                    word_workspace=word_workspace,
                    workspace=workspace,
                )
                least = maxima[items[depth - 1]]
            for i in range(lo, hi):
                rows[at] = i
                at += 1 if scores[i] >= least else 0
        ends[q] = at


@subroutine
def count_grades(labels: Floats, lo: int, hi: int, counts: Ints) -> bool:
    """Count the documents of each grade; return False unless all labels are small grades."""
    for g in range(counts.size):
        counts[g] = 0
    greatest = float(counts.size - 1)
    other = 0
    for i in range(lo, hi):
        label = labels[i]
        inside = (label >= 0.0) & (label <= greatest)
        grade = np.uint64(label if inside else 0.0)
        other |= (not inside) | (float(grade) != label)
        counts[grade] += 1
    return other == 0


@kernel
def rank_grades(labels: Floats, offsets: Ints, counts: Ints, order: Ints, keys: Floats) -> int:
    """Write each query's documents by descending label, in file order among equals; and the labels.

    Grades below the size of `counts`, which is workspace, are counted.  Returns 0 where a label is
    not such a grade: then nothing is complete.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        if not count_grades(labels, lo, hi, counts):
            return 0
        start = lo
        for g in range(counts.size - 1, -1, -1):
            count = counts[g]
            counts[g] = start
            start += count
        for i in range(lo, hi):
            grade = np.uint64(labels[i])
            order[counts[grade]], keys[counts[grade]] = i, labels[i]
            counts[grade] += 1
    return 1


@kernel
def top_labels(
    labels: Floats, offsets: Ints, counts: Ints, best_offsets: Ints, best: Floats
) -> None:
    """Write each query's greatest labels in descending order, as many as `best_offsets` allows.

    Grades below the size of `counts`, which is workspace, are counted.  Other labels are inserted
    into a short sorted list; most are no greater than its last one.
    """
    for q in range(offsets.size - 1):
        start, capacity = best_offsets[q], best_offsets[q + 1] - best_offsets[q]
        if count_grades(labels, offsets[q], offsets[q + 1], counts):
            at, end = start, start + capacity
            for g in range(counts.size - 1, -1, -1):
                for _ in range(min(counts[g], end - at)):
                    best[at] = float(g)
                    at += 1
            continue
        size, minimum = 0, -np.inf
        for i in range(offsets[q], offsets[q + 1]):
            label = labels[i]
            if label <= minimum and size == capacity:
                continue
            j = start + min(size, capacity - 1) - 1
            while j >= start and best[j] < label:
                best[j + 1] = best[j]
                j -= 1
            best[j + 1] = label
            size = min(size + 1, capacity)
            minimum = best[start + size - 1]
