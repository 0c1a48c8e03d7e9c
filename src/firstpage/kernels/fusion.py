"""Join several runs, and combine the scores or ranks that they give to the same documents.

Tables have one row per ranker and one column per candidate: ranks, 0 being the best and ABSENT for
documents that a ranker does not list, or scores, NaN for those.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.kernels.hashing import equal_ranges
from firstpage.kernels.sorting import heap_sift
from firstpage.kernels.voting.votes import ABSENT
from firstpage.types import Bytes, Floats, Ints, Words

MIN_MAX, MAX, SUM, Z, RANK, BORDA = 1, 2, 3, 4, 5, 6  # normalizations of scores
COMB_SUM, COMB_MNZ, COMB_ANZ, COMB_MAX, COMB_MIN, COMB_MED = 0, 1, 2, 3, 4, 5  # combinations
LEAST_RANGE = 1e-9  # a smaller range, sum or deviation of scores counts as this


@subroutine
def find_or_insert(
    data: Bytes, starts: Ints, ends: Ints, hashes: Words, row: int, lo: int, count: int,
    first: Ints, table: Ints, size: int,
) -> int:  # fmt: skip
    """Return the number of the identifier of a row in its query; `count` if it is new."""
    slot = np.int64(hashes[row] & np.uint64(size - 1))
    while table[slot] >= 0:
        other = first[lo + table[slot]]
        if hashes[other] == hashes[row] and equal_ranges(
            data, starts[row], ends[row], data, starts[other], ends[other]
        ):
            return table[slot]
        slot = (slot + 1) & (size - 1)
    table[slot] = count
    first[lo + count] = row
    return count


@kernel
def merge_ids(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    hashes: Words,
    bounds: Ints,
    order: Ints,
    base: int,
    table: Ints,
    last: Ints,
    numbers: Ints,
    first: Ints,
    offsets: Ints,
) -> int:
    """Number the documents of each query in base order, over all runs.

    `bounds[q, a]` is where the rows of query q in run a begin and end; `order` has these rows from
    best to worst.  The documents of run `base` (-1: of none) come first, then the first document
    of each run, the second of each, and so on.  `numbers` gets the number of each row's document
    in its query, `first` the row of each document, and `offsets` where the documents of a query
    begin.  Returns -1, or a row whose document occurs twice in its run.  `table` has a power of two
    of entries, at least twice the rows of any query, all -1; `last` is workspace for the documents
    of a query.
    """
    lo: int = np.int64(0)
    offsets[0] = 0
    for q in range(bounds.shape[0]):
        total, longest = 0, 0
        for a in range(bounds.shape[1]):
            length = bounds[q, a, 1] - bounds[q, a, 0]
            total += length
            longest = max(longest, length)
        size = 16
        while size < 2 * total:
            size *= 2
        count: int = np.int64(0)
        for turn in range(2):  # the base run, then the others in turns
            for p in range(longest):
                for a in range(bounds.shape[1]):
                    i = bounds[q, a, 0] + p
                    if (a == base) != (turn == 0) or i >= bounds[q, a, 1]:
                        continue
                    row = order[i]
                    number = find_or_insert(
                        data, starts, ends, hashes, row, lo, count, first, table, size
                    )
                    if number == count:
                        count += 1
                    elif last[number] == a:
                        return row
                    last[number] = a
                    numbers[row] = number
        for slot in range(size):
            table[slot] = -1
        lo += count
        offsets[q + 1] = lo
    return -1


@kernel
def tabulate_runs(
    bounds: Ints,
    order: Ints,
    keys: Floats,
    numbers: Ints,
    key_of_row: Floats,
    run_of_row: Ints,
    heads: Ints,
    positions: Ints,
    scores: Floats,
) -> None:
    """Write the rank and the score of each candidate of each query, for each ranker.

    `keys` has the scores in the order of `order`.  Documents of equal score are ordered by their
    numbers, which `key_of_row` has as floats; numbers beyond the size of the query in `heads` are
    not candidates.  `run_of_row` is the ranker of a column of `bounds`, -1 for none.
    """
    for q in range(bounds.shape[0]):
        lo, size = heads[q], heads[q + 1] - heads[q]
        for a in range(bounds.shape[1]):
            ranker = run_of_row[a]
            at, end = bounds[q, a, 0], bounds[q, a, 1]
            position = 0
            while ranker >= 0 and at < end:
                after = at + 1
                while after < end and keys[after] == keys[at]:
                    after += 1
                if after - at > 1:
                    sort_by_key(order, key_of_row, at, after)
                for i in range(at, after):
                    number = numbers[order[i]]
                    if number < size:
                        positions[ranker, lo + number] = position
                        scores[ranker, lo + number] = keys[i]
                        position += 1
                at = after


@subroutine
def sort_by_key(order: Ints, key: Floats, lo: int, hi: int) -> None:
    """Sort order[lo:hi] by ascending key, in place."""
    size = hi - lo
    for at in range(size // 2 - 1, -1, -1):
        heap_sift(order, key, lo, at, size)
    for end in range(size - 1, 0, -1):
        order[lo], order[lo + end] = order[lo + end], order[lo]
        heap_sift(order, key, lo, np.int64(0), end)


@kernel
def normalize_scores(
    scores: Floats, positions: Ints, offsets: Ints, kind: int, ignore: int, out: Floats
) -> int:
    """Write normalized scores; return -1, or the ranker whose scores have no positive maximum.

    `ignore` is 1 if a Borda normalization gives nothing to documents that a ranker does not list.
    """
    for a in range(positions.shape[0]):
        for q in range(offsets.size - 1):
            lo, hi = offsets[q], offsets[q + 1]
            listed = 0
            for i in range(lo, hi):
                listed += positions[a, i] < ABSENT
            shift, scale = 0.0, 1.0
            if kind < RANK:
                least, greatest, total = np.inf, -np.inf, 0.0
                for i in range(lo, hi):
                    score = scores[a, i]
                    if positions[a, i] < ABSENT:
                        least, greatest = min(least, score), max(greatest, score)
                        total += score
                if listed == 0:
                    least, greatest = 0.0, 1.0
                if kind == MIN_MAX:
                    shift, scale = least, greatest - least
                elif kind == MAX:
                    if greatest <= 0.0:
                        return a
                    scale = greatest
                elif kind == SUM:
                    shift, scale = least, total - least * listed
                else:
                    shift = total / max(listed, 1)
                    squares = 0.0
                    for i in range(lo, hi):
                        if positions[a, i] < ABSENT:
                            squares += (scores[a, i] - shift) * (scores[a, i] - shift)
                    scale = np.sqrt(squares / max(listed, 1))
                if kind != MAX:
                    scale = max(scale, LEAST_RANGE)
            size = float(hi - lo) if kind == BORDA else float(listed)
            unlisted = np.nan
            if kind == BORDA and not ignore:
                unlisted = 0.5 - (listed - 1) / (2.0 * size) if size > 0 else 0.0
            for i in range(lo, hi):
                if positions[a, i] == ABSENT:
                    out[a, i] = unlisted
                elif kind >= RANK:
                    out[a, i] = 1.0 - positions[a, i] / size
                else:
                    out[a, i] = (scores[a, i] - shift) / scale
    return -1


@subroutine
def median(values: Floats, count: int) -> float:
    """Return the median of the first `count` values, which are sorted in place."""
    for i in range(1, count):
        value = values[i]
        j = i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])


@kernel
def combine_scores(
    table: Floats, weights: Floats, kind: int, workspace: Floats, points: Floats
) -> None:
    """Write the combination of the weighted scores of each candidate; 0 where no ranker lists it.

    `workspace` has one number per ranker.
    """
    rankers = weights.size
    for i in range(points.size):
        total, count = 0.0, 0
        least, greatest = np.inf, -np.inf
        for a in range(rankers):
            score = weights[a] * table[a, i]
            if score == score:  # not NaN
                total += score
                least, greatest = min(least, score), max(greatest, score)
                workspace[count] = score
                count += 1
        if count == 0:
            points[i] = 0.0
        elif kind == COMB_SUM:
            points[i] = total
        elif kind == COMB_MNZ:
            points[i] = total * count
        elif kind == COMB_ANZ:
            points[i] = total / count
        elif kind == COMB_MAX:
            points[i] = greatest
        elif kind == COMB_MIN:
            points[i] = least
        else:
            points[i] = median(workspace, count)


@kernel
def add_rank_terms(
    positions: Ints, weights: Floats, terms: Floats, factors: Floats, points: Floats
) -> None:
    """Write the weighted sum of terms by rank, times a factor by the number of lists.

    `terms[r]` is the term of rank r, and `factors[n]` the factor of documents in n lists.
    """
    for i in range(points.size):
        total, count = 0.0, 0
        for a in range(weights.size):
            rank = positions[a, i]
            if rank < ABSENT:
                total += weights[a] * terms[rank]
                count += 1
        points[i] = total * factors[count]
