"""Feature scaling, per query and over all documents."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.data.transforms import transform_from_dict
from tests.narrow import dense, present

RNG = np.random.default_rng(0)
DATA = fp.Dataset.from_arrays(
    RNG.normal(size=(9, 3)),
    range(9),
    list("aabbbbccd"),
    [f"d{i}" for i in range(9)],
    ["x", "y", "z"],
)

groups = st.lists(
    st.lists(
        st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=2), min_size=1, max_size=5
    ),
    min_size=1,
    max_size=4,
)


def dataset(lists) -> fp.Dataset:
    X = np.array([row for rows in lists for row in rows], np.float64)
    qid = np.repeat(np.arange(len(lists)), [len(rows) for rows in lists])
    return fp.Dataset.from_arrays(X, np.zeros(len(X)), qid)


@given(groups)
def test_minmax_and_standardize_per_query(lists) -> None:
    data = dataset(lists)
    for q, rows in enumerate(lists):
        scaled = dense(fp.MinMax().apply(data)[q].X)
        assert (scaled >= -1e-12).all()
        assert (scaled <= 1 + 1e-12).all()
        standardized = dense(fp.Standardize().apply(data)[q].X)
        deviation = np.array(rows).std(axis=0)
        assert standardized.mean(axis=0) == pytest.approx(0, abs=1e-6)
        assert standardized.std(axis=0)[deviation > 1e-3] == pytest.approx(1.0)


@given(groups)
def test_global_transforms_match_scikit_learn(lists) -> None:
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    data = dataset(lists)
    for ours, theirs in ((fp.MinMax, MinMaxScaler), (fp.Standardize, StandardScaler)):
        fitted = ours(per="global").fit(data)
        # scikit-learn treats ranges of the size of rounding errors as zero; skip small ones
        varying = np.ptp(dense(data.X), axis=0) > 1e-3
        expected = theirs().fit_transform(data.X)
        assert fitted.apply(data).X[:, varying] == pytest.approx(expected[:, varying], abs=1e-6)


def test_constant_features_become_zero_and_nan_stays() -> None:
    data = fp.Dataset.from_arrays([[5.0, np.nan], [5.0, 1.0], [5.0, 3.0]], [0, 0, 0], [1, 1, 1])
    for transform_class in (fp.MinMax, fp.Standardize):
        for per in ("query", "global"):
            X = transform_class(per=per).fit(data).apply(data).X
            assert dense(X[:, 0]).tolist() == [0, 0, 0]
            assert np.isnan(X[0, 1])
            assert X[1, 1] < X[2, 1]


def test_transforms_are_stored_as_json() -> None:
    for transform in (
        fp.MinMax(),
        fp.Standardize(per="global").fit(DATA),
        fp.MinMax(per="global").fit(DATA),
    ):
        restored = transform_from_dict(json.loads(json.dumps(transform.to_dict())))
        assert restored == transform
        assert np.array_equal(dense(restored.apply(DATA).X), dense(transform.apply(DATA).X))
        assert restored.apply(DATA).feature_names == DATA.feature_names


def test_invalid_transforms_are_refused() -> None:
    with pytest.raises(fp.DataError, match="must be fitted first"):
        fp.MinMax(per="global").apply(DATA)
    with pytest.raises(fp.DataError, match="fitted to 3 features; the data have 1"):
        other = fp.Dataset.from_arrays([[1.0]], [0], [1])
        fp.MinMax(per="global").fit(DATA).apply(other)
    with pytest.raises(fp.DataError, match="'query' or 'global'"):
        fp.MinMax(per="document")  # type: ignore[arg-type]
    with pytest.raises(fp.DataError, match=r"no transform 'minmaxx'\. Did you mean 'minmax'"):
        transform_from_dict({"transform": "minmaxx"})
    from scipy.sparse import csr_array

    with pytest.raises(fp.DataError, match=r"use data.dense\(\) first"):
        fp.MinMax().apply(DATA.with_features(csr_array(np.eye(9, 3))))


def reference_scaled(columns: list[list[float]], kind: str) -> list[list[float]]:
    """Scale each column separately, number by number."""
    scaled = []
    for column in columns:
        if kind == "minmax":
            shift, scale = min(column), max(column) - min(column)
        else:
            shift = sum(column) / len(column)
            scale = (sum((value - shift) ** 2 for value in column) / len(column)) ** 0.5
        scaled.append([(value - shift) / (scale if scale > 0 else 1.0) for value in column])
    return scaled


@pytest.mark.parametrize("transform_class", [fp.MinMax, fp.Standardize])
@pytest.mark.parametrize("per", ["query", "global"])
def test_scaling_matches_a_plain_loop(transform_class: Any, per: str) -> None:
    groups = [DATA] if per == "global" else list(DATA)
    expected = [
        row
        for group in groups
        for row in zip(
            *reference_scaled(dense(group.X).T.tolist(), transform_class.name), strict=True
        )
    ]
    scaled = transform_class(per=per).fit(DATA).apply(DATA)
    assert scaled.X.tolist() == [pytest.approx(row, abs=1e-12) for row in expected]
    out = np.empty_like(DATA.X)
    assert np.shares_memory(transform_class(per=per).fit(DATA).apply(DATA, out).X, out)
    assert np.array_equal(out, scaled.X)


@pytest.mark.parametrize("transform_class", [fp.MinMax, fp.Standardize])
def test_fit_on_several_datasets_equals_fit_on_all(transform_class: type) -> None:
    at_once = transform_class(per="global").fit(DATA)
    by_parts = transform_class(per="global").fit([DATA[:1], DATA[1:]])
    assert by_parts.shift == pytest.approx(at_once.shift, rel=1e-12)
    assert by_parts.scale == pytest.approx(at_once.scale, rel=1e-12)


@pytest.mark.parametrize("per", ["query", "global"])
@pytest.mark.parametrize("value", [0.1, 0.7, 1e16 / 3])
def test_a_constant_feature_becomes_0_however_its_mean_is_rounded(per, value: float) -> None:
    X = np.c_[np.full(11, value), np.arange(11.0)]
    X[4, 0] = np.nan
    data = fp.Dataset.from_arrays(X, np.zeros(11), [1] * 11)
    fitted = fp.Standardize(per=per).fit(data)
    assert np.nanmax(np.abs(dense(fitted.apply(data).X[:, 0]))) == 0
    if per == "global":
        assert present(fitted.scale)[0] == 1


@pytest.mark.parametrize("per", ["query", "global"])
@pytest.mark.parametrize("transform", [fp.Standardize, fp.MinMax])
def test_a_range_beyond_the_largest_number_is_refused(transform, per: str) -> None:
    data = fp.Dataset.from_arrays([[1.0, -1e308], [2.0, 1e308]], [0, 1], [1, 1])
    with pytest.raises(fp.DataError, match=r"the feature in column 1 .* so large"):
        transform(per=per).fit(data).apply(data)
