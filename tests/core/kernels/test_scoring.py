"""Scores and their gradients, against NumPy and plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from firstpage.core.kernels import scoring
from firstpage.core.types import Array

RNG = np.random.default_rng(0)
TYPES = [np.float32, np.float64]


def features(rows: int, columns: int, dtype: type) -> Array:
    return np.ascontiguousarray(RNG.normal(size=(rows, columns)).astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 0), (5, 7), (131, 33)])
def test_dense_scores_and_vjp_match_numpy(shape: tuple[int, int], dtype: type) -> None:
    """The shapes include numbers of rows that are not multiples of four, and several chunks."""
    X = features(*shape, dtype)
    w, g = RNG.normal(size=shape[1]), RNG.normal(size=shape[0])
    tolerance: dict[str, Any] = (
        {"rel": 1e-4, "abs": 1e-5} if dtype is np.float32 else {"rel": 1e-12, "abs": 1e-12}
    )
    scores, exact, vjp = np.empty(shape[0]), np.empty(shape[0]), np.empty(shape[1])
    scoring.dense_scores(X, w.astype(dtype), scores)
    scoring.float64_scores(X, w, exact)
    scoring.dense_vjp(X, g, np.empty(shape[1], dtype), vjp)
    assert scores == pytest.approx(X.astype(np.float64) @ w, **tolerance)
    assert exact == pytest.approx(X.astype(np.float64) @ w, rel=1e-12, abs=1e-12)
    assert vjp == pytest.approx(X.T.astype(np.float64) @ g, **tolerance)


@pytest.mark.parametrize("dtype", TYPES)
def test_sparse_scores_and_vjp_match_numpy(dtype: type) -> None:
    X = features(20, 6, dtype) * (RNG.random((20, 6)) < 0.4)
    rows = csr_array(X.astype(dtype))
    w, g = RNG.normal(size=6), RNG.normal(size=20)
    scores, vjp = np.empty(20), np.empty(6)
    scoring.sparse_scores(rows.data, rows.indices, rows.indptr, w, scores)
    scoring.sparse_vjp(rows.data, rows.indices, rows.indptr, g, vjp)
    assert scores == pytest.approx(X.astype(np.float64) @ w, rel=1e-12, abs=1e-12)
    assert vjp == pytest.approx(X.T.astype(np.float64) @ g, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_zero_if_finite_detects_nonfinite_values(bad: float) -> None:
    values = features(1, 100, np.float32)[0]
    assert scoring.zero_if_finite(values) == 0
    values[37] = bad
    assert np.isnan(scoring.zero_if_finite(values))


def test_rows_are_centered_by_the_weighted_mean_of_their_query() -> None:
    X, offsets = features(7, 3, np.float64), np.array([0, 3, 3, 7])
    weight = np.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0, 1.0])
    out = np.empty_like(X)
    scoring.center_rows(X, weight, offsets, np.empty(3), out)
    for lo, hi in ((0, 3), (3, 7)):
        mean = np.average(X[lo:hi], axis=0, weights=weight[lo:hi])
        expected = np.sqrt(weight[lo:hi])[:, None] * (X[lo:hi] - mean)
        assert out[lo:hi] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
def test_stump_edges_match_a_plain_loop(dtype: type) -> None:
    """Values equal to a threshold are not above it."""
    documents, thresholds = 50, [[-1.0, 0.0, 0.5], [], [0.25]]
    X = np.round(2 * features(documents, 3, dtype)) / 4
    firsts = np.array([0, 3, 3, 4])
    flat = np.array([t for each in thresholds for t in each])
    bins = np.zeros((3, documents), np.uint8)
    scoring.bin_columns(np.ascontiguousarray(X.T), 0, firsts, flat, bins)
    for f in range(3):
        assert bins[f].tolist() == [sum(x > t for t in thresholds[f]) for x in X[:, f]]
    values = RNG.normal(size=documents)
    sums, edges = np.zeros((3, 256)), np.empty(4)
    scoring.bin_sums(bins, values, sums)
    scoring.stump_edges(sums, firsts, edges)
    expected = [
        sum(v for x, v in zip(X[:, f], values, strict=True) if x > t)
        for f in range(3)
        for t in thresholds[f]
    ]
    assert edges == pytest.approx(expected, abs=1e-12)
