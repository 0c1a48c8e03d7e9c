"""Similarities of a query and the stored vectors of documents: exact products of integers.

The vectors of document d are `codes[ends[d - 1]:ends[d]]`: that of the whole document, then those
of its passages.  A similarity is a sum of products of integers, times one factor per vector and one
of the query, so that it does not depend on the order of the sum.

The signs of the components of a vector are bits of words.  The number of bits in which a vector
differs from the query tells which few vectors are worth an exact similarity (Charikar, Similarity
estimation techniques from rounding algorithms, STOC 2002).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from firstpage.core.kernels.compiler.decorators import (
    compiled_kernel,
    inlined_subroutine,
    subroutine,
)
from firstpage.core.types import Array, Bytes, Floats, Ints, Words

PAIRS = np.uint64(0x5555555555555555)
QUADS = np.uint64(0x3333333333333333)
OCTETS = np.uint64(0x0F0F0F0F0F0F0F0F)
SUM = np.uint64(0x0101010101010101)
ONE, TWO, FOUR, TOP_BYTE = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@inlined_subroutine
def similarity(codes: Array, scales: Array, v: int, query: Array, query_scale: float) -> float:
    """Return the similarity of a vector and the query; the sum fits into 32 bits."""
    total: Any = np.int32(0)
    for j in range(codes.shape[1]):
        total = np.int32(total + np.int32(np.int32(codes[v, j]) * np.int32(query[j])))
    return float(total) * float(scales[v]) * query_scale


@compiled_kernel
def document_similarities(
    codes: Array,
    scales: Array,
    ends: Ints,
    rows: Ints,
    query: Array,
    query_scale: float,
    whole: Floats,
    best: Floats,
) -> None:
    """Write the similarity of whole documents and of their best vectors; 0 without vectors."""
    for i in range(rows.size):
        row = rows[i]
        begin = ends[row - 1] if row > 0 else 0
        whole[i] = 0.0
        best[i] = 0.0
        for v in range(begin, ends[row]):
            score = similarity(codes, scales, v, query, query_scale)
            if v == begin:
                whole[i] = score
            if v == begin or score > best[i]:
                best[i] = score


@subroutine
def precedes(score: float, row: int, other_score: float, other_row: int) -> bool:
    """Return whether a document ranks above another: by its score, then by its row."""
    return score > other_score or (score == other_score and row < other_row)


@subroutine
def offer(score: float, row: int, count: int, top_scores: Floats, top_rows: Ints) -> int:
    """Add a document to a heap of the best ones, the worst first; return how many it holds."""
    if count < top_scores.size:
        i = count
        count += 1
        while i > 0:
            parent = (i - 1) // 2
            if precedes(score, row, top_scores[parent], top_rows[parent]):
                break
            top_scores[i] = top_scores[parent]
            top_rows[i] = top_rows[parent]
            i = parent
    else:
        if not precedes(score, row, top_scores[0], top_rows[0]):
            return count
        i = 0
        while 2 * i + 1 < count:
            child = 2 * i + 1
            if child + 1 < count and precedes(
                top_scores[child], top_rows[child], top_scores[child + 1], top_rows[child + 1]
            ):
                child += 1
            if precedes(top_scores[child], top_rows[child], score, row):
                break
            top_scores[i] = top_scores[child]
            top_rows[i] = top_rows[child]
            i = child
    top_scores[i] = score
    top_rows[i] = row
    return count


@compiled_kernel
def best_documents(
    codes: Array,
    scales: Array,
    ends: Ints,
    excluded: Bytes,
    lo: int,
    hi: int,
    query: Array,
    query_scale: float,
    top_scores: Floats,
    top_rows: Ints,
) -> int:
    """Write the best documents of the rows lo:hi in any order, each by its best vector.

    Returns how many there are, at most the size of `top_rows`, which is at least 1.
    """
    count: Any = np.int64(0)
    for row in range(lo, hi):
        begin = ends[row - 1] if row > 0 else 0
        if excluded[row] == 0 and begin < ends[row]:
            best = similarity(codes, scales, begin, query, query_scale)
            for v in range(begin + 1, ends[row]):
                score = similarity(codes, scales, v, query, query_scale)
                if score > best:
                    best = score
            count = offer(best, row, count, top_scores, top_rows)
    return int(count)


@subroutine
def count_bits(word: Any) -> Any:
    """Return the number of ones of a word; LLVM makes one instruction of it."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & QUADS) + ((word >> TWO) & QUADS)
    word = (word + (word >> FOUR)) & OCTETS
    return (word * SUM) >> TOP_BYTE


@compiled_kernel
def coarse_distances(
    planes: Words, lo: int, hi: int, query: Words, distances: Bytes, histogram: Ints
) -> None:
    """Write in how many of their first 192 signs the vectors lo:hi differ from the query.

    `planes[j]` has word j of each vector, so that a register compares words of several vectors.
    `histogram[n]` gets the number of vectors at the distance n.
    """
    q0, q1, q2 = query[0], query[1], query[2]
    for v in range(lo, hi):
        distance = count_bits(planes[0, v] ^ q0) + count_bits(planes[1, v] ^ q1)
        distances[v] = np.uint8(distance + count_bits(planes[2, v] ^ q2))
    for v in range(lo, hi):  # alone, since the loop above has no dependencies and this one has
        histogram[distances[v]] += 1


@compiled_kernel
def exclude_vectors(distances: Bytes, ends: Ints, rows: Ints, histogram: Ints) -> None:
    """Make the distances of the vectors of these rows the largest, and do not count them."""
    for i in range(rows.size):
        for v in range(ends[rows[i] - 1] if rows[i] > 0 else 0, ends[rows[i]]):
            histogram[distances[v]] -= 1
            distances[v] = np.uint8(255)


@compiled_kernel
def sign_distances(signs: Words, chosen: Ints, query: Words, distances: Array) -> None:
    """Write in how many signs each chosen vector differs from the query."""
    for i in range(chosen.size):
        total: Any = np.uint64(0)
        for j in range(query.size):
            total += count_bits(signs[chosen[i], j] ^ query[j])
        distances[i] = np.uint16(total)


@compiled_kernel
def pack_signs(codes: Array, signs: Words) -> None:
    """Write which components of vectors are positive as bits of words."""
    for v in range(codes.shape[0]):
        for j in range(signs.shape[1]):
            word: Any = np.uint64(0)
            for b in range(min(64, codes.shape[1] - 64 * j)):
                word |= np.uint64(codes[v, 64 * j + b] > 0) << np.uint64(b)
            signs[v, j] = word
