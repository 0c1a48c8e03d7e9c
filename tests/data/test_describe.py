"""Descriptions of data: what is counted, and what is odd."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp

MADE = fp.Synthetic(queries=6, docs="uniform(1, 9)", features=4, grades=3).dataset()


def test_describe_finds_what_is_odd() -> None:
    X = np.array(
        [[1, 2, np.nan, 5, 0], [1, 3, 1, 5, 0], [1, 3, 1, 6, 0], [1, 4, np.inf, 6, 0]], np.float32
    )
    data = fp.Dataset.from_arrays(X, [0, 1, 0, 0], [1, 1, 2, 2], ["a", "a", "b", "c"])
    found = fp.describe(data)
    assert found.labels == {"0": 3, "1": 1}
    assert found.constant_features == (1, 5)
    assert found.constant_in_every_query == (4,)
    assert found.nan_features == (3,)
    assert found.infinite_features == (3,)
    assert found.repeated_ids == 1
    assert found.queries_without_relevant == 1
    text = str(found)
    for part in ("queries", "labels", "constant over all documents: 1, 5", "NaN", "█"):
        assert part in text
    json.dumps(found.to_dict())
    twice = fp.Dataset.from_arrays(np.ones((3, 2)), [0, 0, 0], [1, 1, 2])
    assert fp.describe(twice).repeated_rows == 1


def test_describe_runs_qrels_and_sparse_data() -> None:
    assert fp.describe(fp.Run.from_dict({"1": {"a": 1.0}})).labels == {}
    assert fp.describe(fp.Qrels.from_dict({"1": {"a": 1, "b": 0}})).labels == {"0": 1, "1": 1}
    from scipy.sparse import csr_array

    found = fp.describe(MADE.with_features(csr_array(np.eye(MADE.n_docs))))
    assert found.density == pytest.approx(1 / MADE.n_docs)
    many = fp.Dataset.from_arrays(np.zeros((50, 1)), np.linspace(0, 1, 50), range(50))
    assert len(fp.describe(many).labels) == 8
