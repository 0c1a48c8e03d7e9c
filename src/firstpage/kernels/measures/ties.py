"""Ties between documents, and the best labels of a query."""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, part
from firstpage.types import Bytes, Floats, Ints


@part
def tie_end(keys: Floats, start: int, end: int) -> int:
    """One past the run of equal keys that begins at `start`."""
    at = start + 1
    while at < end and keys[at] == keys[start]:
        at += 1
    return at


@kernel
def tie_blocks(keys: Floats, offsets: Ints, block: Ints) -> int:
    """Write at the first place of every run of equal keys its length; returns the longest."""
    longest = 1
    for q in range(offsets.size - 1):
        i, hi = offsets[q], offsets[q + 1]
        while i < hi:
            j = tie_end(keys, i, hi)
            block[i] = j - i
            longest = max(longest, j - i)
            i = j
    return longest


@kernel
def number_ties(block: Ints, offsets: Ints, out: Ints) -> None:
    """Give the documents of each tie one number, rising along the ranking."""
    for q in range(offsets.size - 1):
        i, hi = offsets[q], offsets[q + 1]
        while i < hi:
            for j in range(i, i + block[i]):
                out[j] = i
            i += block[i]


@part
def heap_sift(order: Ints, key: Floats, lo: int, at: int, size: int) -> None:
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and key[order[lo + child + 1]] > key[order[lo + child]]:
            child += 1
        if key[order[lo + child]] <= key[order[lo + at]]:
            return
        order[lo + child], order[lo + at] = order[lo + at], order[lo + child]
        at = child


@kernel
def order_ties_by_key(keys: Floats, offsets: Ints, order: Ints, tie_key: Floats) -> None:
    """Reorder documents of equal score by `tie_key`, smallest first (heap sort, in place)."""
    for q in range(offsets.size - 1):
        i, hi = offsets[q], offsets[q + 1]
        while i < hi:
            j = tie_end(keys, i, hi)
            size = j - i
            for at in range(size // 2 - 1, -1, -1):
                heap_sift(order, tie_key, i, at, size)
            for end in range(size - 1, 0, -1):
                order[i], order[i + end] = order[i + end], order[i]
                heap_sift(order, tie_key, i, 0, end)
            i = j


@part
def id_before(data: Bytes, starts: Ints, ends: Ints, a: int, b: int) -> bool:
    """True if identifier a comes before b, byte by byte, the shorter first."""
    size_a, size_b = ends[a] - starts[a], ends[b] - starts[b]
    for i in range(min(size_a, size_b)):
        x, y = data[starts[a] + i], data[starts[b] + i]
        if x != y:
            return x < y
    return size_a < size_b


@kernel
def order_ties_by_id(
    keys: Floats, offsets: Ints, order: Ints, data: Bytes, starts: Ints, ends: Ints, spare: Ints
) -> None:
    """Reorder documents of equal score by identifier, greatest first, as trec_eval does."""
    for q in range(offsets.size - 1):
        i, hi = offsets[q], offsets[q + 1]
        while i < hi:
            j = tie_end(keys, i, hi)
            width = 1
            while width < j - i:  # bottom-up merge sort: long ties must not cost n^2
                left = i
                while left < j:
                    mid, right = min(left + width, j), min(left + 2 * width, j)
                    a, b = left, mid
                    for out in range(left, right):
                        first = a < mid
                        if first and b < right:
                            first = not id_before(data, starts, ends, order[a], order[b])
                        if first:
                            spare[out] = order[a]
                            a += 1
                        else:
                            spare[out] = order[b]
                            b += 1
                    left = right
                for at in range(i, j):
                    order[at] = spare[at]
                width *= 2
            i = j


@kernel
def top_labels(labels: Floats, offsets: Ints, best_offsets: Ints, best: Floats) -> None:
    """Each query's greatest labels, downward: as many as `best_offsets` leaves room for.

    Insertion into a short sorted list: most labels are no better than its last one.
    """
    for q in range(offsets.size - 1):
        start, room = best_offsets[q], best_offsets[q + 1] - best_offsets[q]
        held, least = 0, -np.inf
        for i in range(offsets[q], offsets[q + 1]):
            label = labels[i]
            if label <= least and held == room:
                continue
            j = start + min(held, room - 1) - 1
            while j >= start and best[j] < label:
                best[j + 1] = best[j]
                j -= 1
            best[j + 1] = label
            held = min(held + 1, room)
            least = best[start + held - 1]
