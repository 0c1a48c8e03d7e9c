"""Kernels of stored vectors against sums of Python's integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.kernels import vectors as kernel

DIMENSIONS = 5
codes = st.lists(st.integers(-2, 2), min_size=DIMENSIONS, max_size=DIMENSIONS)
documents = st.lists(st.lists(codes, max_size=3), min_size=1, max_size=12)


def expected(docs: list[list[list[int]]], query: list[int]) -> list[list[float]]:
    """Return the similarity of each vector of each document."""
    return [[sum(a * b for a, b in zip(v, query, strict=True)) * 0.5 for v in d] for d in docs]


def arrays(docs: list[list[list[int]]]) -> dict[str, np.ndarray]:
    flat = [vector for document in docs for vector in document]
    return {
        "codes": np.array(flat, np.int8).reshape(-1, DIMENSIONS),
        "scales": np.full(len(flat), 0.25, np.float32),
        "ends": np.cumsum([len(document) for document in docs]),
    }


@given(documents, codes, st.data())
def test_document_similarities(docs: list[list[list[int]]], query: list[int], data: st.DataObject):
    rows = data.draw(st.lists(st.integers(0, len(docs) - 1), max_size=6))
    whole, best = np.full(len(rows), 9.0), np.full(len(rows), 9.0)
    kernel.document_similarities(
        **arrays(docs),
        rows=np.array(rows, np.int64),
        query=np.array(query, np.int16),
        query_scale=2.0,
        whole=whole,
        best=best,
    )
    values = expected(docs, query)
    assert whole.tolist() == [values[row][0] if values[row] else 0.0 for row in rows]
    assert best.tolist() == [max(values[row], default=0.0) for row in rows]


@given(documents, codes, st.data())
def test_best_documents(docs: list[list[list[int]]], query: list[int], data: st.DataObject):
    excluded = data.draw(st.lists(st.booleans(), min_size=len(docs), max_size=len(docs)))
    lo = data.draw(st.integers(0, len(docs)))
    hi = data.draw(st.integers(lo, len(docs)))
    depth = data.draw(st.integers(1, 6))
    scores, rows = np.zeros(depth), np.zeros(depth, np.int64)
    count = kernel.best_documents(
        **arrays(docs),
        excluded=np.array(excluded).view(np.uint8),
        lo=lo,
        hi=hi,
        query=np.array(query, np.int16),
        query_scale=2.0,
        top_scores=scores,
        top_rows=rows,
    )
    values = expected(docs, query)
    ranked = sorted(
        (-max(values[row]), row) for row in range(lo, hi) if values[row] and not excluded[row]
    )
    assert sorted(zip(-scores[:count], rows[:count], strict=True)) == ranked[:depth]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=5))
def test_count_bits(words: list[int]) -> None:
    with np.errstate(over="ignore"):
        counted = [int(kernel.count_bits(np.uint64(word))) for word in words]
    assert counted == [word.bit_count() for word in words]


def test_pack_signs() -> None:
    codes = np.random.default_rng(0).integers(-1, 2, (7, 130)).astype(np.int8)
    signs = np.full((7, 3), 99, np.uint64)
    kernel.pack_signs(codes, signs)
    expected = [
        [
            sum(1 << i for i in range(64) if v[64 * j : 64 * j + 64][i : i + 1].sum() > 0)
            for j in range(3)
        ]
        for v in codes
    ]
    assert signs.tolist() == expected


def test_greatest_sum_fits_into_32_bits() -> None:
    """The sum of a query's components is bounded, so that no product overflows."""
    query = np.full(512, 32767, np.int16)
    whole, best = np.zeros(1), np.zeros(1)
    kernel.document_similarities(
        codes=np.full((1, 512), 127, np.int8),
        scales=np.ones(1, np.float32),
        ends=np.array([1]),
        rows=np.array([0]),
        query=query,
        query_scale=1.0,
        whole=whole,
        best=best,
    )
    assert whole[0] == best[0] == 512 * 127 * 32767


words = st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3)


@given(st.lists(words, min_size=1, max_size=20), words, st.data())
def test_coarse_distances(vectors: list[list[int]], query: list[int], data: st.DataObject) -> None:
    lo = data.draw(st.integers(0, len(vectors)))
    hi = data.draw(st.integers(lo, len(vectors)))
    distances = np.full(len(vectors), 200, np.uint8)
    histogram = np.zeros(256, np.int64)
    planes = np.array(vectors, np.uint64).T.copy()
    kernel.coarse_distances(planes, lo, hi, np.array(query, np.uint64), distances, histogram)
    counted = [sum((a ^ b).bit_count() for a, b in zip(v, query, strict=True)) for v in vectors]
    assert distances.tolist() == [count if lo <= v < hi else 200 for v, count in enumerate(counted)]
    assert histogram.tolist() == np.bincount(counted[lo:hi], minlength=256).tolist()
    fine = np.zeros(hi - lo, np.uint16)
    signs, chosen = np.array(vectors, np.uint64), np.arange(lo, hi)[::-1].copy()
    kernel.sign_distances(signs, chosen, np.array(query, np.uint64), fine)
    assert fine.tolist() == counted[lo:hi][::-1]


def test_exclude_vectors() -> None:
    distances, histogram = np.array([3, 1, 1, 0, 2], np.uint8), np.array([1, 2, 1, 1])
    ends, rows = np.array([2, 2, 4, 5]), np.array([0, 1, 3])
    kernel.exclude_vectors(distances, ends, rows, histogram)
    assert distances.tolist() == [255, 255, 1, 0, 255]
    assert histogram.tolist() == [1, 1, 0, 0]
