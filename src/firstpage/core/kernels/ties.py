"""Find and order the documents of each query that have equal scores."""

from __future__ import annotations

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.sorting import heap_sift
from firstpage.core.types import Bytes, Floats, Ints


@subroutine
def tie_end(keys: Floats, start: int, end: int) -> int:
    """Return the end of the run of equal keys that begins at `start`."""
    at = start + 1
    while at < end and keys[at] == keys[start]:
        at += 1
    return at


@kernel
def tie_blocks(keys: Floats, offsets: Ints, block: Ints) -> int:
    """Write the length of every run of equal keys at its first position; return the longest."""
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
    """Write the number of the tie that each document belongs to, ascending along the ranking."""
    for q in range(offsets.size - 1):
        i, hi = offsets[q], offsets[q + 1]
        while i < hi:
            for j in range(i, i + block[i]):
                out[j] = i
            i += block[i]


@kernel
def order_ties_by_key(keys: Floats, offsets: Ints, order: Ints, tie_key: Floats) -> None:
    """Reorder documents of equal score by `tie_key`, ascending (heap sort, in place)."""
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


@subroutine
def id_before(data: Bytes, starts: Ints, ends: Ints, a: int, b: int) -> bool:
    """Return whether identifier a comes before b, in the order of bytes, the shorter first."""
    size_a, size_b = ends[a] - starts[a], ends[b] - starts[b]
    for i in range(min(size_a, size_b)):
        x, y = data[starts[a] + i], data[starts[b] + i]
        if x != y:
            return x < y
    return size_a < size_b


@kernel
def order_ties_by_id(
    keys: Floats, offsets: Ints, order: Ints, data: Bytes, starts: Ints, ends: Ints, workspace: Ints
) -> None:
    """Reorder documents of equal score by identifier, descending, as trec_eval does."""
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
                            workspace[out] = order[a]
                            a += 1
                        else:
                            workspace[out] = order[b]
                            b += 1
                    left = right
                for at in range(i, j):
                    order[at] = workspace[at]
                width *= 2
            i = j
