from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import firstpage as fp
from tests.narrow import dense, instance, present

RNG = np.random.default_rng(0)
DATA = fp.Dataset.from_arrays(
    RNG.normal(size=(9, 3)),
    range(9),
    list("aabbbbccd"),
    [f"d{i}" for i in range(9)],
    ["x", "y", "z"],
)


def test_shape_and_names() -> None:
    assert (len(DATA), DATA.n_docs, DATA.n_features) == (4, 9, 3)
    assert DATA.lengths.tolist() == [2, 4, 2, 1]
    assert DATA.qid.tolist() == list("aabbbbccd")
    assert present(DATA.docid).tolist() == [f"d{i}" for i in range(9)]
    assert DATA.feature_names == ("x", "y", "z")
    assert "4 queries, 9 documents, 3 features, dense float64" in repr(DATA)


def test_queries_are_selected_by_index_slice_and_mask() -> None:
    assert DATA[1].y.tolist() == [2, 3, 4, 5]
    assert DATA[-1].y.tolist() == [8]
    assert DATA[1:3].y.tolist() == [2, 3, 4, 5, 6, 7]
    assert DATA[1:3].offsets.tolist() == [0, 4, 6]
    assert np.shares_memory(DATA[1:3].X, DATA.X)
    assert DATA[::2].y.tolist() == [0, 1, 6, 7]
    assert DATA[[3, 0]].y.tolist() == [8, 0, 1]
    assert list(DATA[[3, 0]].queries) == ["d", "a"]
    assert list(present(DATA[[3, -4]].docids)) == ["d8", "d0", "d1"]
    assert DATA[np.array([True, False, False, True])].y.tolist() == [0, 1, 8]
    assert DATA.query("c").y.tolist() == [6, 7]
    assert len(DATA[2:2]) == 0
    assert [q.n_docs for q in DATA] == [2, 4, 2, 1]
    with pytest.raises(IndexError):
        DATA[4]
    with pytest.raises(IndexError):
        DATA[[9]]
    with pytest.raises(fp.DataError, match="mask has 2 entries for 4 queries"):
        DATA[np.array([True, False])]
    with pytest.raises(fp.DataError, match="no query 'zz'"):
        DATA.query("zz")


def test_datasets_are_immutable() -> None:
    with pytest.raises(ValueError, match="read-only"):
        DATA.X[0, 0] = 1
    with pytest.raises(AttributeError):
        DATA.y = np.zeros(9)  # type: ignore[misc]


def test_copies_are_immutable_and_as_small() -> None:
    """What is computed from the labels is not pickled; without it a copy computes the same."""
    before = len(pickle.dumps(DATA))
    assert DATA.truth.ideal(2)[0].tolist() == [1, 0, 5, 4, 7, 6, 8]
    assert len(DATA.truth.by_label[0]) == len(DATA.qid) == DATA.n_docs
    assert len(pickle.dumps(DATA)) == before
    for copied in (pickle.loads(pickle.dumps(DATA)), copy.deepcopy(DATA), copy.copy(DATA)):
        assert copied.sha256(with_names=True) == DATA.sha256(with_names=True)
        assert copied.truth.ideal(2)[0].tolist() == [1, 0, 5, 4, 7, 6, 8]
        for array in (copied.X, copied.y, pickle.loads(pickle.dumps(copied.truth)).labels):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_interleaved_rows_are_regrouped() -> None:
    with pytest.warns(fp.FirstpageWarning, match="regrouped"):
        data = fp.Dataset.from_arrays([[1.0], [2.0], [3.0]], [1, 2, 3], [5, 6, 5], ["p", "q", "r"])
    assert dense(data.X[:, 0]).tolist() == [1, 3, 2]
    assert list(present(data.docids)) == ["p", "r", "q"]


@pytest.mark.parametrize(
    ("X", "y", "qid", "message"),
    [
        ([1.0], [1], [1], "two-dimensional"),
        ([[1.0]], [1, 2], [1], "the three must be equal"),
        ([["a"]], [1], [1], "must be numbers"),
        ([[1.0]], [1], [1, 2], "one query id per document"),
        ([[1.0]], [1], [[1]], "one-dimensional"),
    ],
)
def test_inconsistent_arrays_are_refused(X, y, qid, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.Dataset.from_arrays(X, y, qid)


def test_query_ids_of_all_types() -> None:
    for qid, names in (
        ([3, 3, 1], ["3", "1"]),
        (["x", "x", 7], ["x", "7"]),
        (np.array([2.0, 2.0, 5.0]), ["2", "5"]),
        (np.array(["é", "é", "ü"]), ["é", "ü"]),
    ):
        data = fp.Dataset.from_arrays(np.zeros((3, 1)), [0, 0, 0], qid)
        assert list(data.queries) == names
    assert fp.Dataset.from_arrays(np.zeros((1, 1)), [0], ["007"]).qid.tolist() == ["007"]


def test_pandas_and_polars_columns_are_accepted() -> None:
    import pandas as pd
    import polars as pl

    frame = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    for table, series in ((pd.DataFrame(frame), pd.Series), (pl.DataFrame(frame), pl.Series)):
        data = fp.Dataset.from_arrays(table, series([1, 0]), series(["q", "q"]))
        assert dense(data.X).tolist() == [[1, 3], [2, 4]]
        evaluation = fp.evaluate(
            series([1.0, 2.0]), series([1, 0]), qid=series(["q", "q"]), measures="RR"
        )
        assert evaluation["RR"] == 0.5


def test_feature_names_are_checked(tmp_path: Path) -> None:
    with pytest.raises(fp.DataError, match="2 features need as many distinct names"):
        fp.Dataset.from_arrays([[1.0, 2.0]], [1], [1], feature_names=["a"])
    data = fp.Dataset.from_arrays([[1.0, 2.0]], [1], [1], feature_names=["label", "b"])
    with pytest.raises(fp.DataError, match="cannot be named label"):
        fp.write(data, tmp_path / "x.csv")


def test_datasets_copy_labels_and_leave_arrays_writable() -> None:
    X, y = np.zeros((2, 1)), np.array([1.0, 0.0])
    data = fp.Dataset.from_arrays(X, y, [1, 1])
    truth = fp.Truth.from_labels(y)
    run = fp.Run.from_arrays([1, 1], ["a", "b"], y)
    X[0, 0] = 5  # the caller's array stays writable
    y[0] = 9
    assert data.y[0] == truth.labels[0] == run.values[0] == 1

    sparse = fp.Dataset.from_arrays(csr_array(np.eye(2)), [1, 0], [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        instance(csr_array, sparse.X).indices[0] = 1


def test_digests_of_sparse_data_cover_the_columns() -> None:

    digests = {
        fp.Dataset.from_arrays(csr_array(X), [0, 1, 0, 1], [1, 1, 2, 2]).sha256()
        for X in (np.eye(4), np.eye(4)[::-1], np.eye(4, 5, 1))
    }
    assert len(digests) == 3


def test_sparse_integers_keep_all_digits() -> None:

    data = fp.Dataset.from_arrays(csr_array([[2**24 + 1], [2**24]]), [0, 1], [1, 1])
    assert instance(csr_array, data.X).toarray().ravel().tolist() == [2**24 + 1, 2**24]


def test_categories_that_float32_merges_are_refused() -> None:
    X = np.array([[2**24 + 1], [2**24]], np.float32)
    with pytest.raises(fp.DataError, match="16,777,216 and more, which float32 does not"):
        fp.Dataset.from_arrays(X, [0, 1], [1, 1]).with_categories(1)
