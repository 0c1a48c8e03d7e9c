"""Sort the documents of each query by score: stable and exact.

Moving scores and document indices separately costs twice, and branches on random scores cannot be
predicted.  Therefore leading bits of a score and the index of the document in the remaining bits
form one word, and words are sorted without branches.  Documents whose leading bits are equal are
sorted by their full scores afterwards.

Two sorts share this idea.  `pack_cells` makes words for NumPy's `sort`, which uses the vector units
of the machine: of 32 bits for most lists, which it sorts two to four times faster than those of 64
bits.  `firstpage.data.groups` calls it for many lists at once.  `sort_down` sorts one list inside a
kernel, by merging words of 64 bits.  In short lists, the documents before each one are counted.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import AnyWords, Floats, Ints, Words

RUN = 8  # merge sort starts from sorted runs of this length
SHORT_LIST = 16  # documents whose ranks are counted, without words
LONG_LIST = 1 << 14  # in longer lists, words of 32 bits suit cells of equal width only
MAX_MOVES = 16  # per document, before insertion is given up for a merge sort
ZERO, ONE, SIGN, S63 = np.uint64(0), np.uint64(1), np.uint64(1 << 63), np.uint64(63)
WORD = np.uint64(64)  # bits


@subroutine
def ordered_bits(u: np.uint64) -> np.uint64:
    """Return the bits of a score as a word that compares as the score does; -0.0 is 0.0."""
    u = ZERO if u == SIGN else u
    return u ^ (SIGN | (ZERO - (u >> S63)))


@subroutine
def pack(bits: Words, lo: int, size: int, mask: np.uint64, words: Words) -> None:
    """Write words that sort like the scores; among equal scores the first document is greatest."""
    for i in range(size):
        words[i] = (ordered_bits(bits[lo + i]) & ~mask) | (mask - np.uint64(i))


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
        sort_down(
            scores=scores,
            bits=bits,
            lo=lo,
            hi=hi,
            items=order[lo:hi],
            words=words,
            word_workspace=word_workspace,
            workspace=workspace,
        )
        for i in range(lo, hi):
            keys[i] = scores[order[i]]


@subroutine
def write_ranked(
    scores: Floats,
    labels: Floats,
    lo: int,
    hi: int,
    items: Ints,
    ranked: Floats,
    block: Ints,
) -> int:
    """Write the labels of sorted items and the sizes of ties; return the longest."""
    longest, start = 1, 0
    for i in range(hi - lo):
        ranked[lo + i] = labels[items[i]]
        block[lo + i] = 1
    for i in range(1, hi - lo + 1):
        if i == hi - lo or scores[items[i]] != scores[items[start]]:
            block[lo + start] = i - start
            longest = max(longest, i - start)
            start = i
    return longest


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
        sort_down(
            scores=scores,
            bits=bits,
            lo=lo,
            hi=hi,
            items=items,
            words=words,
            word_workspace=word_workspace,
            workspace=workspace,
        )
        longest = max(
            longest,
            write_ranked(
                scores=scores, labels=labels, lo=lo, hi=hi, items=items, ranked=ranked, block=block
            ),
        )
    return longest


# --- words that NumPy sorts


@subroutine
def index_bits(size: int) -> int:
    """Return the number of bits for the indices of `size` documents."""
    bits: int = np.int64(0)
    while (np.int64(1) << bits) < size:
        bits += 1
    return bits


@subroutine
def cell_scale(scores: Floats, lo: int, size: int, last_cell: float) -> tuple[float, float]:
    """Return the greatest score and the number of cells per unit; 0 cells if none suit.

    Cells of equal width suit scores whose range is a few standard deviations, and whose mean is not
    close to the least or the greatest one.
    """
    top, top1, low, low1 = -np.inf, -np.inf, np.inf, np.inf
    total, total1, square, square1 = 0.0, 0.0, 0.0, 0.0
    for i in range(lo, lo + size - size % 2, 2):  # two independent chains of operations
        a, b = scores[i], scores[i + 1]
        top, top1 = (a if a > top else top), (b if b > top1 else top1)
        low, low1 = (a if a < low else low), (b if b < low1 else low1)
        total, total1 = total + a, total1 + b
        square, square1 = square + a * a, square1 + b * b
    if size % 2:
        a = scores[lo + size - 1]
        top, low, total, square = max(top, a), min(low, a), total + a, square + a * a
    top, low = max(top, top1), min(low, low1)
    mean = (total + total1) / size
    variance = max((square + square1) / size - mean * mean, 0.0)
    span = top - low
    scale = last_cell / span if span > 0.0 else np.inf
    wide = span * span < 100.0 * variance and span < 20.0 * min(top - mean, mean - low)
    if not (wide and scale < np.inf):
        scale = 0.0
    return top, scale


@kernel
def pack_cells(
    scores: Floats, bits: Words, offsets: Ints, starts: Ints, widths: Ints, words: AnyWords
) -> int:
    """Write a row of words per query, which ascend as its scores descend; ties by index.

    The range of a query's scores is divided into cells: of equal width, or, if the scores have long
    tails, into cells of their ordered bits.  A word holds the number of the cell, counted from the
    greatest score, and the index of the document.  Scores of one cell may differ: `unpack_order`
    and `unpack_labels` resolve this.  Query q has the row words[starts[q]:starts[q] + widths[q]],
    filled up with the greatest word; those of width 0 have none.  Returns -1, or a query for which
    words of 32 bits have too few cells.
    """
    for q in range(offsets.size - 1):
        lo, size, start = offsets[q], offsets[q + 1] - offsets[q], starts[q]
        if widths[q] == 0:
            continue
        index_size = np.uint64(index_bits(size))
        cell_bits = np.uint64(8 * words.itemsize) - index_size
        scale, best = 0.0, 0.0
        if words.itemsize == 4:
            best, scale = cell_scale(scores, lo, size, float((ONE << cell_bits) - ONE - ONE))
            if scale == 0.0 and size > LONG_LIST:
                return q
        if scale > 0.0:
            for i in range(size):
                cell = np.int64((best - scores[lo + i]) * scale)
                words[start + i] = (np.uint64(cell) << index_size) | np.uint64(i)
        else:
            top, low = ZERO, ~ZERO
            for i in range(lo, lo + size):
                u = ordered_bits(bits[i])
                top, low = (u if u > top else top), (u if u < low else low)
            shift = ZERO
            while shift + cell_bits < WORD and ((top - low) >> shift) >> cell_bits != ZERO:
                shift += ONE
            for i in range(size):
                word = (top - ordered_bits(bits[lo + i])) >> shift
                words[start + i] = (word << index_size) | np.uint64(i)
        for i in range(size, widths[q]):
            words[start + i] = ~ZERO
    return -1


@subroutine
def count_ranks(scores: Floats, lo: int, hi: int, ranks: Ints) -> None:
    """Write the rank of each document of a short list, ties in file order: no branch depends on it.

    Each pair of documents is compared once.
    """
    for i in range(hi - lo):
        score, before = scores[lo + i], np.int64(0)
        for j in range(i):
            precedes = scores[lo + j] >= score
            before += 1 if precedes else 0
            ranks[j] += 0 if precedes else 1
        ranks[i] = before


@subroutine
def sort_inside_cells(
    scores: Floats, items: Ints, keys: Floats, lo: int, hi: int, workspace: Ints
) -> None:
    """Sort items[lo:hi] by descending score and stable, where only scores of one cell are unsorted.

    `keys` are the scores of the items.  By insertion, since cells have few documents; where they
    have many, by merging.
    """
    moves = MAX_MOVES * (hi - lo)
    for i in range(lo + 1, hi):
        key = keys[i]
        if keys[i - 1] < key:
            item = items[i]
            j = i - 1
            while j >= lo and keys[j] < key:
                keys[j + 1], items[j + 1] = keys[j], items[j]
                j -= 1
            keys[j + 1], items[j + 1] = key, item
            moves -= i - j
            if moves < 0:
                merge_items(scores, items, lo, hi, workspace)
                for at in range(lo, hi):
                    keys[at] = scores[items[at]]
                return


@kernel
def unpack_order(
    scores: Floats,
    offsets: Ints,
    starts: Ints,
    words: AnyWords,
    workspace: Ints,
    order: Ints,
    keys: Floats,
) -> None:
    """Write each query's documents to `order` and their scores to `keys`, from sorted words.

    `workspace` is as long as `order`.
    """
    for q in range(offsets.size - 1):
        lo, hi, start = offsets[q], offsets[q + 1], starts[q]
        if hi - lo <= SHORT_LIST:
            count_ranks(scores, lo, hi, workspace)
            for i in range(hi - lo):
                order[lo + workspace[i]] = lo + i
                keys[lo + workspace[i]] = scores[lo + i]
            continue
        bits = np.uint64(index_bits(hi - lo))
        mask = (ONE << bits) - ONE
        shared = 0
        previous = ~np.uint64(words[start])
        for i in range(hi - lo):
            word = np.uint64(words[start + i])
            row = np.uint64(lo) + (word & mask)
            order[lo + i] = np.int64(row)
            keys[lo + i] = scores[row]
            shared |= (word ^ previous) >> bits == ZERO
            previous = word
        if shared:
            sort_inside_cells(scores, order, keys, lo, hi, workspace)


@subroutine
def write_ties(keys: Floats, lo: int, hi: int, block: Ints) -> int:
    """Write the sizes of ties of a list's sorted scores, keys[:hi - lo]; return the longest."""
    longest, start = 1, 0
    for i in range(hi - lo):
        block[lo + i] = 1
    for i in range(1, hi - lo + 1):
        if i == hi - lo or keys[i] != keys[start]:
            block[lo + start] = i - start
            longest = max(longest, i - start)
            start = i
    return longest


@kernel
def unpack_labels(
    scores: Floats,
    labels: Floats,
    offsets: Ints,
    starts: Ints,
    words: AnyWords,
    items: Ints,
    keys: Floats,
    workspace: Ints,
    ranked: Floats,
    block: Ints,
) -> int:
    """Write labels in the order of the scores and the sizes of ties, from sorted words.

    Returns the length of the longest tie.  `items`, `keys` and `workspace` are as long as the
    longest query.
    """
    longest = 1
    for q in range(offsets.size - 1):
        lo, hi, start = offsets[q], offsets[q + 1], starts[q]
        if hi - lo <= SHORT_LIST:
            count_ranks(scores, lo, hi, items)
            for i in range(hi - lo):
                ranked[lo + items[i]] = labels[lo + i]
                keys[items[i]] = scores[lo + i]
            longest = max(longest, write_ties(keys, lo, hi, block))
            continue
        bits = np.uint64(index_bits(hi - lo))
        mask = (ONE << bits) - ONE
        shared = 0
        previous = ~np.uint64(words[start])
        for i in range(hi - lo):
            word = np.uint64(words[start + i])
            ranked[lo + i] = labels[np.uint64(lo) + (word & mask)]
            block[lo + i] = 1
            shared |= (word ^ previous) >> bits == ZERO
            previous = word
        if shared:  # equal scores share a cell, so there is no tie otherwise
            for i in range(hi - lo):
                row = np.uint64(lo) + (np.uint64(words[start + i]) & mask)
                items[i] = np.int64(row)
                keys[i] = scores[row]
            sort_inside_cells(scores, items, keys, np.int64(0), hi - lo, workspace)
            for i in range(hi - lo):
                ranked[lo + i] = labels[items[i]]
            longest = max(longest, write_ties(keys, lo, hi, block))
    return longest


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
