"""Order documents inside their queries by score: stable, exact, and without branches.

Sorting is most of the time of an evaluation.  Moving scores and document numbers side by side
costs twice, and branches on random scores cannot be predicted.  So a score's leading bits, in
an order that unsigned numbers share, and the document's number in the bits that remain make one
word; such words are all different and are merged without branches.  What the cut bits would
have said is mended afterwards, where leading bits are alike.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.types import Bytes, Floats, Ints, Words

RUN = 8  # merge sort starts from sorted runs of this length
ZERO, ONE, SIGN, S63 = np.uint64(0), np.uint64(1), np.uint64(1 << 63), np.uint64(63)


@subroutine
def pack(bits: Words, lo: int, size: int, mask: np.uint64, words: Words) -> None:
    """Words that sort as the scores do; among equal ones the first document is greatest."""
    for i in range(size):
        u = bits[lo + i]
        u = ZERO if u == SIGN else u  # -0.0 is 0.0
        u = u ^ (SIGN | (ZERO - (u >> S63)))
        words[i] = (u & ~mask) | (mask - np.uint64(i))


@subroutine
def place_run(words: Words, start: int, out: Words) -> None:
    """Sort RUN words by counting, for each, the greater ones: fixed loops, no branch."""
    for i in range(RUN):
        mine = words[start + i]
        place = 0
        for j in range(RUN):
            place += words[start + j] > mine
        out[start + place] = mine


@subroutine
def insert_run(words: Words, start: int, end: int, out: Words) -> None:
    """The same for a shorter run, by insertion."""
    for i in range(start, end):
        mine = words[i]
        j = i - 1
        while j >= start and out[j] < mine:
            out[j + 1] = out[j]
            j -= 1
        out[j + 1] = mine


@subroutine
def merge_twins(words: Words, lo: int, mid: int, hi: int, out: Words) -> None:
    """Merge two neighboring runs of one length, from both ends at once.

    Neither end can run out of its half, so nothing is checked; the choices are selections.
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
    left: int = np.int64(0)  # a bare 0 would have the parts compiled once more, for constants
    while left < size:
        mid = min(left + width, size)
        right = min(mid + width, size)
        if right - left == 2 * width:
            merge_twins(words, left, mid, right, out)
        else:
            merge_any(words, left, mid, right, out)
        left = right


@subroutine
def merge_items(scores: Floats, items: Ints, lo: int, hi: int, spare: Ints) -> None:
    """Mend the order of items[lo:hi], alike in their leading bits, by their whole scores.

    A stable merge sort: there may be many of them.
    """
    width = 1
    while width < hi - lo:
        left = lo
        while left < hi:
            mid, right = min(left + width, hi), min(left + 2 * width, hi)
            a, b = left, mid
            for out in range(left, right):
                if a < mid and (b >= right or scores[items[a]] >= scores[items[b]]):
                    spare[out] = items[a]
                    a += 1
                else:
                    spare[out] = items[b]
                    b += 1
            left = right
        for at in range(lo, hi):
            items[at] = spare[at]
        width *= 2


@subroutine
def sort_down(
    scores: Floats,
    bits: Words,
    lo: int,
    hi: int,
    items: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
) -> int:
    """Row numbers of scores[lo:hi], greatest first and stable, into items[:hi - lo].

    `bits` are the same scores, read as words.  Returns 1 if two scores may be equal, else 0.
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
    here, there = words, spare_words
    if passes % 2 == 0:  # so that the last pass, or the runs, end in `words`
        here, there = spare_words, words
    pack(bits, lo, size, mask, here)
    whole = size - size % RUN
    for start in range(0, whole, RUN):
        place_run(here, start, there)
    insert_run(here, whole, size, there)
    width = np.int64(RUN)
    for _ in range(passes):
        here, there = there, here
        merge_pass(here, size, width, there)
        width *= 2
    alike, first = 0, np.int64(0)
    for i in range(size):
        items[i] = lo + np.int64(mask - (words[i] & mask))
        if (words[i] ^ words[first]) & ~mask != ZERO:
            if i - first > 1:
                merge_items(scores, items, first, i, spare)
            first = i
        elif i > first:
            alike = 1
    if size - first > 1:
        merge_items(scores, items, first, size, spare)
    return alike


@kernel
def rank(
    scores: Floats,
    bits: Words,
    offsets: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    order: Ints,
    keys: Floats,
) -> None:
    """Write each query's documents into `order`, best score first, ties in file order.

    `bits` are the scores as words; `words`, `spare_words` and `spare` have room for the longest
    query.  `keys` receives the scores in order.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        sort_down(scores, bits, lo, hi, order[lo:hi], words, spare_words, spare)
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
    spare_words: Words,
    spare: Ints,
    ranked: Floats,
    block: Ints,
) -> int:
    """The labels in the order of the scores, and the lengths of ties; returns the longest.

    What `rank` and `tie_blocks` do, without writing down who stands where.
    """
    longest = 1
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        alike = sort_down(scores, bits, lo, hi, items, words, spare_words, spare)
        for i in range(hi - lo):
            ranked[lo + i] = labels[items[i]]
            block[lo + i] = 1
        if alike:
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


@subroutine
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


@subroutine
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
