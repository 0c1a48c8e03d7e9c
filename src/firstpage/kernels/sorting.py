"""Sort the documents of each query by score: stable, exact, and without branches.

Sorting dominates the time of an evaluation.  Moving scores and document indices separately costs
twice, and branches on random scores cannot be predicted.  Therefore the leading bits of a score,
mapped so that they compare as unsigned integers, and the index of the document in the remaining
bits form one word; these words are distinct and are merged without branches.  Documents whose
leading bits are equal are sorted by their full scores afterwards.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.types import Bytes, Floats, Ints, Words

RUN = 8  # merge sort starts from sorted runs of this length
ZERO, ONE, SIGN, S63 = np.uint64(0), np.uint64(1), np.uint64(1 << 63), np.uint64(63)


@subroutine
def pack(bits: Words, lo: int, size: int, mask: np.uint64, words: Words) -> None:
    """Write words that sort like the scores; among equal scores the first document is greatest."""
    for i in range(size):
        u = bits[lo + i]
        u = ZERO if u == SIGN else u  # -0.0 is 0.0
        u = u ^ (SIGN | (ZERO - (u >> S63)))
        words[i] = (u & ~mask) | (mask - np.uint64(i))


@subroutine
def sort_run(words: Words, start: int, out: Words) -> None:
    """Sort RUN words by counting, for each, the greater ones: fixed loops without branches."""
    for i in range(RUN):
        word = words[start + i]
        rank = 0
        for j in range(RUN):
            rank += words[start + j] > word
        out[start + rank] = word


@subroutine
def sort_short_run(words: Words, start: int, end: int, out: Words) -> None:
    """Sort a shorter run by insertion."""
    for i in range(start, end):
        word = words[i]
        j = i - 1
        while j >= start and out[j] < word:
            out[j + 1] = out[j]
            j -= 1
        out[j + 1] = word


@subroutine
def merge_equal(words: Words, lo: int, mid: int, hi: int, out: Words) -> None:
    """Merge two neighboring runs of equal length, from both ends at once.

    Neither end can exhaust a run, so no bounds are checked; choices compile to selections.
    """
    a, b, x, y = np.uint64(lo), np.uint64(mid), np.uint64(mid - 1), np.uint64(hi - 1)
    front, back = np.uint64(lo), np.uint64(hi - 1)
    for _ in range(mid - lo):
        u, v = words[a], words[b]
        out[front] = u if u > v else v
        a += np.uint64(u > v)
        b += np.uint64(u <= v)
        u, v = words[x], words[y]
        out[back] = u if u < v else v
        x -= np.uint64(u < v)
        y -= np.uint64(u >= v)
        front += ONE
        back -= ONE


@subroutine
def merge_any(words: Words, lo: int, mid: int, hi: int, out: Words) -> None:
    """Merge two neighboring runs of any lengths."""
    a, b = lo, mid
    for at in range(lo, hi):
        if a < mid and (b >= hi or words[a] > words[b]):
            out[at] = words[a]
            a += 1
        else:
            out[at] = words[b]
            b += 1


@subroutine
def merge_pass(words: Words, size: int, width: int, out: Words) -> None:
    """Merge all pairs of neighboring runs of length `width`."""
    left: int = np.int64(0)  # a literal 0 would compile the subroutines again, for constants
    while left < size:
        mid = min(left + width, size)
        right = min(mid + width, size)
        if right - left == 2 * width:
            merge_equal(words, left, mid, right, out)
        else:
            merge_any(words, left, mid, right, out)
        left = right


@subroutine
def merge_items(scores: Floats, items: Ints, lo: int, hi: int, workspace: Ints) -> None:
    """Sort items[lo:hi], whose leading bits are equal, by their full scores.

    A stable merge sort, since there may be many of them.
    """
    width = 1
    while width < hi - lo:
        left = lo
        while left < hi:
            mid, right = min(left + width, hi), min(left + 2 * width, hi)
            a, b = left, mid
            for out in range(left, right):
                if a < mid and (b >= right or scores[items[a]] >= scores[items[b]]):
                    workspace[out] = items[a]
                    a += 1
                else:
                    workspace[out] = items[b]
                    b += 1
            left = right
        for at in range(lo, hi):
            items[at] = workspace[at]
        width *= 2


@subroutine
def sort_down(
    scores: Floats,
    bits: Words,
    lo: int,
    hi: int,
    items: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
) -> int:
    """Write the rows of scores[lo:hi], in descending order and stable, to items[:hi - lo].

    `bits` are the same scores, viewed as words.  Returns 1 if two scores may be equal, else 0.
    """
    size = hi - lo
    mask = ONE
    while mask < np.uint64(size):
        mask = mask << ONE
    mask = mask - ONE
    passes, width = 0, RUN
    while width < size:
        passes += 1
        width *= 2
    source, target = words, word_workspace
    if passes % 2 == 0:  # so that the result ends up in `words`
        source, target = word_workspace, words
    pack(bits, lo, size, mask, source)
    full = size - size % RUN
    for start in range(0, full, RUN):
        sort_run(source, start, target)
    sort_short_run(source, full, size, target)
    width = np.int64(RUN)
    for _ in range(passes):
        source, target = target, source
        merge_pass(source, size, width, target)
        width *= 2
    may_tie, first = 0, np.int64(0)
    for i in range(size):
        items[i] = lo + np.int64(mask - (words[i] & mask))
        if (words[i] ^ words[first]) & ~mask != ZERO:
            if i - first > 1:
                merge_items(scores, items, first, i, workspace)
            first = i
        elif i > first:
            may_tie = 1
    if size - first > 1:
        merge_items(scores, items, first, size, workspace)
    return may_tie


@kernel
def rank(
    scores: Floats,
    bits: Words,
    offsets: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
    order: Ints,
    keys: Floats,
) -> None:
    """Write each query's documents to `order`, in descending order of score, ties in file order.

    `bits` are the scores as words; `words`, `word_workspace` and `workspace` are as long as the
    longest query.  `keys` receives the scores in order.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        sort_down(scores, bits, lo, hi, order[lo:hi], words, word_workspace, workspace)
        for i in range(lo, hi):
            keys[i] = scores[order[i]]


@kernel
def rank_labels(
    scores: Floats,
    bits: Words,
    labels: Floats,
    offsets: Ints,
    items: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
    ranked: Floats,
    block: Ints,
) -> int:
    """Write the labels in the order of the scores, and the sizes of ties; return the longest.

    This does what `rank` and `tie_blocks` do, without storing the order.
    """
    longest = 1
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        may_tie = sort_down(scores, bits, lo, hi, items, words, word_workspace, workspace)
        for i in range(hi - lo):
            ranked[lo + i] = labels[items[i]]
            block[lo + i] = 1
        if may_tie:
            start = 0
            for i in range(1, hi - lo + 1):
                if i == hi - lo or scores[items[i]] != scores[items[start]]:
                    block[lo + start] = i - start
                    longest = max(longest, i - start)
                    start = i
    return longest


# --- ties between documents, and the best labels of a query


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


@subroutine
def heap_sift(order: Ints, key: Floats, lo: int, at: int, size: int) -> None:
    """Sift the item at `at` down the heap order[lo:lo + size]."""
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


@kernel
def top_labels(labels: Floats, offsets: Ints, best_offsets: Ints, best: Floats) -> None:
    """Write each query's greatest labels in descending order, as many as `best_offsets` allows.

    Labels are inserted into a short sorted list; most are no greater than its last one.
    """
    for q in range(offsets.size - 1):
        start, capacity = best_offsets[q], best_offsets[q + 1] - best_offsets[q]
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
