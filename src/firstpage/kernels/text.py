"""Terms of documents: statistics of a collection, matches of a query, TF-IDF vectors.

`tokens` holds the term numbers of all documents in the order of their positions.  Field f of
document d ends before `ends[d, f]`, and begins where the previous field, or document, ends.
Workspaces that are indexed by term are zero on entry and on exit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from firstpage.kernels.compiler.decorators import compiled_kernel, subroutine
from firstpage.types import Array, Floats, Ints

Tokens = NDArray[np.uint32]


@subroutine
def document_start(ends: Ints, row: int) -> int:
    """Return where a document begins."""
    return ends[row - 1, ends.shape[1] - 1] if row > 0 else 0


@compiled_kernel
def collection_statistics(
    tokens: Tokens, ends: Ints, rows: Ints, sign: int, field_mark: Ints, document_mark: Ints,
    distinct: Ints, df: Ints, cf: Ints,
) -> None:  # fmt: skip
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
    tokens: Tokens, ends: Ints, rows: Ints, slots: Array, query: Ints, window: int,
    adjacent: Array, positions: Ints, matched: Ints, last: Ints, runs: Ints, out: Floats,
) -> None:  # fmt: skip
    """Write how query terms are arranged in each field of the documents.

    `query` holds the slots of the query's terms in their order, with -1 where a phrase cannot
    continue, and `adjacent[a, b]` whether slot b follows slot a somewhere in the query.
    `out[i, f]` gets the number of distinct adjacent query terms that follow each other in the
    field; the number of those of which the second, in any order, ends a passage of `window`
    positions with the first; the length of the shortest passage with all query terms of the field;
    the length of the longest phrase of the query; and the position of the first query term, -1
    without one.
    """
    n_slots = last.size
    for i in range(rows.size):
        begin = document_start(ends, rows[i])
        for f in range(ends.shape[1]):
            end = ends[rows[i], f]
            ordered, near, phrase, n = 0, 0, 0, 0
            for s in range(n_slots):
                last[s] = -1
            for j in range(query.size):
                runs[j] = 0
            present = 0
            for p in range(begin, end):
                slot = slots[tokens[p]] - 1
                if slot < 0:
                    continue
                follows = n > 0 and positions[n - 1] == p - 1
                for other in range(n_slots):
                    if last[other] >= 0 and p - last[other] < window and other != slot:
                        if adjacent[other, slot] or adjacent[slot, other]:
                            near += 1
                        if adjacent[other, slot] and last[other] == p - 1:
                            ordered += 1
                for j in range(query.size - 1, -1, -1):  # backward: runs[j - 1] is of the last term
                    if query[j] == slot:
                        runs[j] = 1 + (runs[j - 1] if follows and j > 0 else 0)
                        phrase = max(phrase, runs[j])
                    else:
                        runs[j] = 0
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
def tfidf_rows(
    tokens: Tokens, ends: Ints, rows: Ints, idf: Floats, counts: Ints, indptr: Ints, indices: Ints,
    values: Floats,
) -> None:  # fmt: skip
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
