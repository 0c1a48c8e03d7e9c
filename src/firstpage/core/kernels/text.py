"""Terms of documents: statistics of a collection, matches of a query, TF-IDF vectors.

`tokens` holds the term numbers of all documents in the order of their positions.  Field f of
document d ends before `ends[d, f]`, and begins where the previous field, or document, ends.
Workspaces that are indexed by term are zero on entry and on exit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from firstpage.core.kernels.compiler.decorators import compiled_kernel, subroutine
from firstpage.core.types import Array, Floats, Ints

Tokens = NDArray[np.uint32]


@subroutine
def document_start(ends: Ints, row: int) -> int:
    """Return where a document begins."""
    return ends[row - 1, ends.shape[1] - 1] if row > 0 else 0


@compiled_kernel
def collection_statistics(
    tokens: Tokens,
    ends: Ints,
    rows: Ints,
    sign: int,
    field_mark: Ints,
    document_mark: Ints,
    distinct: Ints,
    df: Ints,
    cf: Ints,
) -> None:
    """Add documents to the statistics of the collection, or remove them with a sign of -1.

    `distinct[i]` gets the number of distinct terms of each field of document `rows[i]`; the last
    column of `distinct`, and the last row of `df` and `cf`, are about the document as a whole.  The
    marks are zero for every term on entry, and hold the last document of each term on exit.
    """
    fields = ends.shape[1]
    for i in range(rows.size):
        row = rows[i]
        begin = document_start(ends, row)
        in_document = 0
        for f in range(fields):
            n_distinct = 0
            for p in range(begin, ends[row, f]):
                term = tokens[p]
                cf[f, term] += sign
                cf[fields, term] += sign
                if field_mark[term] != i * fields + f + 1:
                    field_mark[term] = i * fields + f + 1
                    df[f, term] += sign
                    n_distinct += 1
                if document_mark[term] != i + 1:
                    document_mark[term] = i + 1
                    df[fields, term] += sign
                    in_document += 1
            begin = ends[row, f]
            distinct[i, f] = n_distinct
        distinct[i, fields] = in_document


@compiled_kernel
def count_matches(tokens: Tokens, ends: Ints, rows: Ints, slots: Array, tf: Array) -> None:
    """Write how often each query term occurs in each field of the documents.

    `slots[term]` is the number of a query term, starting at 1, and 0 for every other term.
    """
    for i in range(rows.size):
        begin = document_start(ends, rows[i])
        for f in range(ends.shape[1]):
            for s in range(tf.shape[2]):
                tf[i, f, s] = 0
            for p in range(begin, ends[rows[i], f]):
                slot = slots[tokens[p]]
                if slot > 0:
                    tf[i, f, slot - 1] += 1
            begin = ends[rows[i], f]


@compiled_kernel
def match_positions(
    tokens: Tokens,
    ends: Ints,
    rows: Ints,
    slots: Array,
    query: Ints,
    first_place: Ints,
    places: Ints,
    window: int,
    positions: Ints,
    matched: Ints,
    last: Ints,
    runs: Ints,
    run_ends: Ints,
    out: Floats,
) -> None:
    """Write how query terms are arranged in each field of the documents.

    `query` holds the slots of the query's terms in their order, with -1 where a phrase cannot
    continue.  Slot s is at `places[first_place[s]:first_place[s + 1]]` in it, in ascending order.
    `runs` and `run_ends` have the size of `query`, and `run_ends` is -1 on entry.
    `out[i, f]` gets the number of distinct adjacent query terms that follow each other in the
    field; the number of those of which the second, in any order, ends a passage of `window`
    positions with the first; the length of the shortest passage with all query terms of the field;
    the length of the longest phrase of the query; and the position of the first query term, -1
    without one.
    """
    for i in range(rows.size):
        begin = document_start(ends, rows[i])
        for f in range(ends.shape[1]):
            end = ends[rows[i], f]
            ordered, near, phrase, n = 0, 0, 0, 0
            for s in range(last.size):
                last[s] = -1
            present = 0
            for p in range(begin, end):
                slot = slots[tokens[p]] - 1
                if slot < 0:
                    continue
                m = n - 1
                while m >= 0 and p - positions[m] < window:
                    other = matched[m]
                    if other != slot and last[other] == positions[m]:
                        if follows(query, first_place, places, other, slot):
                            near += 1
                            if positions[m] == p - 1:
                                ordered += 1
                        elif follows(query, first_place, places, slot, other):
                            near += 1
                    m -= 1
                # Backward, so that the run of the place before is still that of the last token.
                for q in range(first_place[slot + 1] - 1, first_place[slot] - 1, -1):
                    j = places[q]
                    continues = j > 0 and p > begin and run_ends[j - 1] == p - 1
                    runs[j] = runs[j - 1] + 1 if continues else 1
                    run_ends[j] = p
                    phrase = max(phrase, runs[j])
                if last[slot] < 0:
                    present += 1
                last[slot] = p
                positions[n] = p
                matched[n] = slot
                n += 1
            span = shortest_passage(positions, matched, n, present, last)
            out[i, f, 0] = ordered
            out[i, f, 1] = near
            out[i, f, 2] = span
            out[i, f, 3] = phrase
            out[i, f, 4] = positions[0] - begin if n > 0 else -1
            begin = end


@subroutine
def follows(query: Ints, first_place: Ints, places: Ints, before: int, slot: int) -> bool:
    """Return whether a slot follows another somewhere in the query."""
    for q in range(first_place[slot], first_place[slot + 1]):
        if places[q] > 0 and query[places[q] - 1] == before:
            return True
    return False


@subroutine
def shortest_passage(positions: Ints, matched: Ints, n: int, present: int, counts: Ints) -> int:
    """Return the length of the shortest passage with all `present` slots, 0 without a match."""
    for s in range(counts.size):
        counts[s] = 0
    best, low, covered = 0, 0, 0
    for high in range(n):
        counts[matched[high]] += 1
        if counts[matched[high]] == 1:
            covered += 1
        while covered == present:
            length = positions[high] - positions[low] + 1
            if best == 0 or length < best:
                best = length
            counts[matched[low]] -= 1
            if counts[matched[low]] == 0:
                covered -= 1
            low += 1
    return best


@compiled_kernel
def bm25_ndcg(
    query_ends: Ints,
    match_ends: Ints,
    lengths: Floats,
    gains: Floats,
    tf: Floats,
    term_weights: Floats,
    ideal: Floats,
    k1: float,
    b: float,
    weights: Floats,
    mean: float,
    discounts: Floats,
    top_scores: Floats,
    top_gains: Floats,
    out: Floats,
) -> None:
    """Write the NDCG of each query's documents, ranked by BM25 over weighted fields.

    The documents of query q end before `query_ends[q]`, and the matches of document d, a query term
    each, before `match_ends[d]`.  `lengths[d]` are the lengths of the fields of document d, and
    `tf[m]` the frequencies of the term of match m in them.  `mean` is the weighted mean length.
    Documents with equal scores keep their order.
    """
    depth = discounts.size
    d, m = 0, 0
    for q in range(query_ends.size):
        n_top = 0
        while d < query_ends[q]:
            length = 0.0
            for f in range(weights.size):
                length += lengths[d, f] * weights[f]
            saturation = k1 * (1.0 - b + b * length / mean) if mean > 0.0 else length
            score = 0.0
            while m < match_ends[d]:
                frequency = 0.0
                for f in range(weights.size):
                    frequency += tf[m, f] * weights[f]
                if frequency > 0.0:
                    part = frequency * (k1 + 1.0) / (frequency + saturation)
                    score += part * term_weights[m]
                m += 1
            if n_top < depth or score > top_scores[n_top - 1]:
                n_top = min(n_top + 1, depth)
                at = n_top - 1
                while at > 0 and score > top_scores[at - 1]:
                    top_scores[at] = top_scores[at - 1]
                    top_gains[at] = top_gains[at - 1]
                    at -= 1
                top_scores[at] = score
                top_gains[at] = gains[d]
            d += 1
        total = 0.0
        for i in range(n_top):
            total += top_gains[i] * discounts[i]
        out[q] = total / ideal[q]


@compiled_kernel
def tfidf_rows(
    tokens: Tokens,
    ends: Ints,
    rows: Ints,
    idf: Floats,
    counts: Ints,
    indptr: Ints,
    indices: Ints,
    values: Floats,
) -> None:
    """Write the TF-IDF vectors of documents as the rows of a CSR matrix, with norm 1.

    The weight of a term is (1 + ln tf) idf.  Terms whose idf is 0 are left out.
    """
    size = 0
    last_field = ends.shape[1] - 1
    for i in range(rows.size):
        begin, end = document_start(ends, rows[i]), ends[rows[i], last_field]
        for p in range(begin, end):
            counts[tokens[p]] += 1
        squares = 0.0
        first = size
        for p in range(begin, end):
            term = tokens[p]
            if counts[term] > 0 and idf[term] > 0.0:
                weight = (1.0 + math.log(counts[term])) * idf[term]
                indices[size] = term
                values[size] = weight
                squares += weight * weight
                size += 1
            counts[term] = 0
        norm = math.sqrt(squares)
        for j in range(first, size):
            values[j] /= norm
        indptr[i + 1] = size


@compiled_kernel
def centroid_cosines(
    indptr: Ints, indices: Ints, values: Floats, weights: Floats, centroid: Floats, out: Floats
) -> None:
    """Write the cosines of all rows with the weighted mean of the first `weights.size` rows."""
    for i in range(weights.size):
        for j in range(indptr[i], indptr[i + 1]):
            centroid[indices[j]] += weights[i] * values[j]
    squares = 0.0
    for i in range(weights.size):
        for j in range(indptr[i], indptr[i + 1]):
            squares += weights[i] * values[j] * centroid[indices[j]]
    scale = 1.0 / math.sqrt(squares) if squares > 0.0 else 0.0
    for i in range(out.size):
        total = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            total += values[j] * centroid[indices[j]]
        out[i] = total * scale
    for i in range(weights.size):
        for j in range(indptr[i], indptr[i + 1]):
            centroid[indices[j]] = 0.0
