"""Join several runs, and combine the scores or ranks that they give to the same documents.

Tables have one row per ranker and one column per candidate: ranks, 0 being the best and ABSENT for
documents that a ranker does not list, or scores, NaN for those.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.hashing import equal_ranges
from firstpage.core.kernels.voting.votes import ABSENT
from firstpage.core.types import Bytes, Floats, Ints, Words

MIN_MAX, MAX, SUM, Z, RANK, BORDA = 1, 2, 3, 4, 5, 6  # normalizations of scores
COMB_SUM, COMB_MNZ, COMB_ANZ, COMB_MAX, COMB_MIN, COMB_MED = 0, 1, 2, 3, 4, 5  # combinations
ZERO, ONE = np.uint64(0), np.uint64(1)
HALF, LOW_HALF = np.uint64(32), np.uint64((1 << 32) - 1)
BLOCK = 1024  # candidates whose sums stay in the cache
LEAST_RANGE = 1e-9  # a smaller range, sum or deviation of scores counts as this
RANK_CONSTANT = 60.0  # c of the reciprocal ranks 1 / (c + rank) that give the base order
POINT_UNITS = 2.0**52  # of a point, so that sums of these are exact
IGNORED_UNITS = 1024.0  # by which sums that are equal in theory differ, since terms are rounded


@subroutine
def find_or_insert(
    data: Bytes,
    start: int,
    end: int,
    word: np.uint64,
    count: int,
    table: Words,
    size: int,
    known: Ints,
) -> int:
    """Return the number of an identifier in its query; `count` if it is new.

    An entry of the table has the upper half of the hash, and the number plus 1; 0 is empty.
    `known` has where the known identifiers begin and end.
    """
    mask = np.uint64(size - 1)
    slot = word & mask
    entry = table[slot]
    while entry != ZERO:
        if (entry ^ word) >> HALF == ZERO:
            number = np.int64(entry & LOW_HALF) - 1
            if equal_ranges(data, start, end, data, known[2 * number], known[2 * number + 1]):
                return number
        slot = (slot + ONE) & mask
        entry = table[slot]
    table[slot] = ((word >> HALF) << HALF) | np.uint64(count + 1)
    known[2 * count], known[2 * count + 1] = start, end
    return count


@kernel
def merge_ids(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    hashes: Words,
    bounds: Ints,
    order: Ints,
    table: Words,
    workspace: Ints,
    numbers: Ints,
    first: Ints,
    offsets: Ints,
) -> int:
    """Number the documents of each query over all runs, in order of appearance.

    `bounds[q, a]` is where the rows of query q in run a begin and end; `order` has these rows from
    best to worst.  `numbers` gets the number of each row's document in its query, `first` a row of
    each document, and `offsets` where the documents of a query begin.  Returns -1, or a row whose
    document occurs twice in its run.  `table` has a power of two of entries, at least twice the
    rows of any query, and `workspace` three times as many as these rows.
    """
    lo: int = np.int64(0)
    offsets[0] = 0
    rankers = bounds.shape[1]
    most = workspace.size // 3
    last, known = workspace[:most], workspace[most:]
    for q in range(bounds.shape[0]):
        total = 0
        for a in range(rankers):
            total += bounds[q, a, 1] - bounds[q, a, 0]
        size = 16
        while size < 2 * total:
            size *= 2
        for slot in range(size):
            table[slot] = ZERO
        count: int = np.int64(0)
        for a in range(rankers):
            for i in range(bounds[q, a, 0], bounds[q, a, 1]):
                row = order[i]
                number = find_or_insert(
                    data=data,
                    start=starts[row],
                    end=ends[row],
                    word=hashes[row],
                    count=count,
                    table=table,
                    size=size,
                    known=known,
                )
                if number == count:
                    first[lo + count] = row
                    count += 1
                elif last[number] == a:
                    return row
                last[number] = a
                numbers[row] = number
        lo += count
        offsets[q + 1] = lo
    return -1


@kernel
def base_points(
    bounds: Ints,
    order: Ints,
    keys: Floats,
    numbers: Ints,
    weights: Floats,
    base: int,
    offsets: Ints,
    points: Floats,
) -> None:
    """Write the points by which the documents of each query are in base order, best first.

    Points are those of reciprocal rank fusion, in which equal scores, in `keys`, share the mean of
    their ranks; the documents of run `base` (-1: of none) have more, by their rank in it.  Terms
    are integers, so that sums do not depend on the order of the runs.
    """
    for q in range(bounds.shape[0]):
        lo = offsets[q]
        for i in range(lo, offsets[q + 1]):
            points[i] = 0.0
        for a in range(weights.size):
            at, end = bounds[q, a, 0], bounds[q, a, 1]
            while at < end:
                after = at + 1
                while after < end and keys[after] == keys[at]:
                    after += 1
                rank = 0.5 * (at + after + 1) - bounds[q, a, 0]
                term = np.floor(weights[a] * POINT_UNITS / (RANK_CONSTANT + rank))
                for i in range(at, after):
                    points[lo + numbers[order[i]]] += term
                at = after
        for i in range(lo, offsets[q + 1]):
            points[i] = np.floor(points[i] / IGNORED_UNITS)
        if base >= 0:
            begin = bounds[q, base, 0]
            for i in range(begin, bounds[q, base, 1]):
                points[lo + numbers[order[i]]] = POINT_UNITS - (i - begin)


@kernel
def renumber(
    order: Ints,
    bounds: Ints,
    offsets: Ints,
    first: Ints,
    workspace: Ints,
    numbers: Ints,
    ordered_first: Ints,
) -> None:
    """Number the documents of each query by their place in `order`, and order their rows.

    `workspace` has one number per document of the longest query.
    """
    for q in range(bounds.shape[0]):
        lo = offsets[q]
        for i in range(lo, offsets[q + 1]):
            workspace[order[i] - lo] = i - lo
            ordered_first[i] = first[order[i]]
        for a in range(bounds.shape[1]):
            for i in range(bounds[q, a, 0], bounds[q, a, 1]):
                numbers[i] = workspace[numbers[i]]


@kernel
def tabulate_runs(
    bounds: Ints,
    order: Ints,
    keys: Floats,
    numbers: Ints,
    voters: Ints,
    heads: Ints,
    positions: Ints,
    scores: Floats,
) -> None:
    """Write the rank and the score of each candidate of each query, for each ranker.

    `keys` has the scores in the order of `order`.  Documents of equal score are ordered by their
    numbers, in `order` too; numbers beyond the size of the query in `heads` are not candidates.
    `voters` has the ranker of each run, -1 for none.  An empty table of scores is not written.
    """
    with_scores = scores.size > 0
    for q in range(bounds.shape[0]):
        lo, size = heads[q], heads[q + 1] - heads[q]
        for a in range(bounds.shape[1]):
            ranker = voters[a]
            if ranker < 0:
                continue
            for i in range(lo, lo + size):
                positions[ranker, i] = ABSENT
            if with_scores:
                for i in range(lo, lo + size):
                    scores[ranker, i] = np.nan
            at, end = bounds[q, a, 0], bounds[q, a, 1]
            position = 0
            while at < end:
                after = at + 1
                while after < end and keys[after] == keys[at]:
                    after += 1
                if after - at > 1:
                    sort_by_number(order, numbers, at, after)
                for i in range(at, after):
                    number = numbers[order[i]]
                    if number < size:
                        positions[ranker, lo + number] = position
                        if with_scores:
                            scores[ranker, lo + number] = keys[i]
                        position += 1
                at = after


@subroutine
def sort_by_number(order: Ints, numbers: Ints, lo: int, hi: int) -> None:
    """Sort order[lo:hi] by ascending number, in place (shell sort: ties are short, or sorted)."""
    gap = 1
    while 3 * gap < hi - lo:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(lo + gap, hi):
            row = order[i]
            number = numbers[row]
            j = i
            while j >= lo + gap and numbers[order[j - gap]] > number:
                order[j] = order[j - gap]
                j -= gap
            order[j] = row
        gap //= 3


@kernel
def normalize_scores(scores: Floats, offsets: Ints, kind: int, out: Floats) -> int:
    """Write normalized scores; return -1, or the ranker whose scores have no positive maximum.

    Of a ranker with infinite scores -2 - ranker is returned.  NaN, of documents that a ranker does
    not list, stays NaN without a branch.
    """
    for a in range(scores.shape[0]):
        for q in range(offsets.size - 1):
            lo, hi = offsets[q], offsets[q + 1]
            listed, least, greatest, total = 0, np.inf, -np.inf, 0.0
            for i in range(lo, hi):
                score = scores[a, i]
                known = score == score
                listed += known
                least = score if score < least else least
                greatest = score if score > greatest else greatest
                total += score if known else 0.0
            shift, scale = 0.0, 1.0
            if total - total != 0.0:
                return -2 - a
            if listed == 0:
                shift = 0.0
            elif greatest == least and kind != MAX:
                shift = least  # equal scores are 0
            elif kind == MIN_MAX:
                shift, scale = least, max(greatest - least, LEAST_RANGE)
            elif kind == MAX:
                if greatest <= 0.0:
                    return a
                scale = greatest
            elif kind == SUM:
                shift, scale = least, max(total - least * listed, LEAST_RANGE)
            else:
                shift = total / listed
                squares = 0.0
                for i in range(lo, hi):
                    score = scores[a, i]
                    difference = score - shift if score == score else 0.0
                    squares += difference * difference
                scale = max(np.sqrt(squares / listed), LEAST_RANGE)
            for i in range(lo, hi):
                out[a, i] = (scores[a, i] - shift) / scale
    return -1


@kernel
def normalize_ranks(positions: Ints, offsets: Ints, borda: int, ignore: int, out: Floats) -> None:
    """Write 1 - rank / length: of the list or, of Borda, of all candidates.

    Documents that are not listed get NaN, or of Borda the mean of the remaining ranks, unless
    `ignore` is 1.
    """
    for a in range(positions.shape[0]):
        for q in range(offsets.size - 1):
            lo, hi = offsets[q], offsets[q + 1]
            listed = 0
            for i in range(lo, hi):
                listed += positions[a, i] < ABSENT
            size = float(hi - lo) if borda else float(listed)
            unlisted = np.nan
            if borda and not ignore and size > 0.0:
                unlisted = 0.5 - (listed - 1) / (2.0 * size)
            for i in range(lo, hi):
                rank = positions[a, i]
                out[a, i] = 1.0 - rank / size if rank < ABSENT else unlisted


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
def add_scores(table: Floats, weights: Floats, kind: int, counts: Floats, points: Floats) -> None:
    """Write the weighted sum of each candidate's scores; times or over their number, by `kind`.

    NaN does not count; `counts` is as long as `points`.  Blocks of candidates stay in the cache
    while the rankers' rows are added, without branches.
    """
    for start in range(0, points.size, BLOCK):
        end = min(start + BLOCK, points.size)
        for i in range(start, end):
            points[i] = 0.0
            counts[i] = 0.0
        for a in range(weights.size):
            weight = weights[a]
            for i in range(start, end):
                score = table[a, i]
                known = score == score
                points[i] += weight * score if known else 0.0
                counts[i] += 1.0 if known else 0.0
        if kind == COMB_MNZ:
            for i in range(start, end):
                points[i] *= counts[i]
        elif kind == COMB_ANZ:
            for i in range(start, end):
                points[i] /= max(counts[i], 1.0)


@kernel
def choose_scores(
    table: Floats, weights: Floats, kind: int, workspace: Floats, points: Floats
) -> None:
    """Write the least, the greatest or the median of each candidate's weighted scores.

    Candidates that no ranker lists get 0.  `workspace` has one number per ranker.
    """
    for i in range(points.size):
        count: int = np.int64(0)
        least, greatest = np.inf, -np.inf
        for a in range(weights.size):
            score = weights[a] * table[a, i]
            if score == score:
                least, greatest = min(least, score), max(greatest, score)
                workspace[count] = score
                count += 1
        if count == 0:
            points[i] = 0.0
        elif kind == COMB_MAX:
            points[i] = greatest
        elif kind == COMB_MIN:
            points[i] = least
        else:
            points[i] = median(workspace, count)


@kernel
def add_rank_terms(positions: Ints, weights: Floats, terms: Floats, points: Floats) -> None:
    """Write the weighted sum of terms by rank.

    `terms[r]` is the term of rank r, the last one 0 for documents that are not listed.
    """
    absent = np.uint64(terms.size - 1)
    for start in range(0, points.size, BLOCK):
        end = min(start + BLOCK, points.size)
        for i in range(start, end):
            points[i] = 0.0
        for a in range(weights.size):
            weight = weights[a]
            for i in range(start, end):
                rank = np.uint64(positions[a, i])
                points[i] += weight * terms[rank if rank < absent else absent]


@kernel
def multiply_by_count(positions: Ints, factors: Floats, counts: Ints, points: Floats) -> None:
    """Multiply the points of each candidate by factors[n], n being the number of lists with it.

    `counts` is workspace of BLOCK numbers.
    """
    for start in range(0, points.size, BLOCK):
        size = min(BLOCK, points.size - start)
        for i in range(size):
            counts[i] = 0
        for a in range(positions.shape[0]):
            for i in range(size):
                counts[i] += positions[a, start + i] < ABSENT
        for i in range(size):
            points[start + i] *= factors[counts[i]]
