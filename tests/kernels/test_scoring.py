"""Scores and their sums, against NumPy and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from firstpage.kernels import scoring
from firstpage.types import Array

RNG = np.random.default_rng(0)
TYPES = [np.float32, np.float64]


def features(rows: int, columns: int, kind: type) -> Array:
    return np.ascontiguousarray(RNG.normal(size=(rows, columns)).astype(kind))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 0), (5, 7), (131, 33)])
def test_dense_scores_and_their_transpose(shape: tuple[int, int], kind: type) -> None:
    """Rows that are no multiple of four, and more than one chunk."""
    X = features(*shape, kind)
    w, g = RNG.normal(size=shape[1]), RNG.normal(size=shape[0])
    tolerance = {"rel": 1e-4, "abs": 1e-5} if kind is np.float32 else {"rel": 1e-12, "abs": 1e-12}
    scores, exact, back = np.empty(shape[0]), np.empty(shape[0]), np.empty(shape[1])
    scoring.dense_scores(X, w.astype(kind), scores)
    scoring.float64_scores(X, w, exact)
    scoring.dense_vjp(X, g, np.empty(shape[1], kind), back)
    assert scores == pytest.approx(X.astype(np.float64) @ w, **tolerance)
    assert exact == pytest.approx(X.astype(np.float64) @ w, rel=1e-12, abs=1e-12)
    assert back == pytest.approx(X.T.astype(np.float64) @ g, **tolerance)


@pytest.mark.parametrize("kind", TYPES)
def test_sparse_scores_and_their_transpose(kind: type) -> None:
    X = features(20, 6, kind) * (RNG.random((20, 6)) < 0.4)
    rows = csr_array(X.astype(kind))
    w, g = RNG.normal(size=6), RNG.normal(size=20)
    scores, back = np.empty(20), np.empty(6)
    scoring.sparse_scores(rows.data, rows.indices, rows.indptr, w, scores)
    scoring.sparse_vjp(rows.data, rows.indices, rows.indptr, g, back)
    assert scores == pytest.approx(X.astype(np.float64) @ w, rel=1e-12, abs=1e-12)
    assert back == pytest.approx(X.T.astype(np.float64) @ g, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_seen_in_one_sum(bad: float) -> None:
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
        wanted = np.sqrt(weight[lo:hi])[:, None] * (X[lo:hi] - mean)
        assert out[lo:hi] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("kind", TYPES)
def test_stumps_are_counted_as_a_plain_loop_counts_them(kind: type) -> None:
    """Values on a threshold are not above it."""
    documents, thresholds = 50, [[-1.0, 0.0, 0.5], [], [0.25]]
    X = np.round(2 * features(documents, 3, kind)) / 4
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
    wanted = [
        sum(v for x, v in zip(X[:, f], values, strict=True) if x > t)
        for f in range(3)
        for t in thresholds[f]
    ]
    assert edges == pytest.approx(wanted, abs=1e-12)
