"""Descriptions of data: counts and suspicious features."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp

DATA = fp.Synthetic(queries=6, docs="uniform(1, 9)", features=4, grades=3).dataset()


def test_suspicious_features_are_reported() -> None:
    X = np.array(
        [[1, 2, np.nan, 5, 0], [1, 3, 1, 5, 0], [1, 3, 1, 6, 0], [1, 4, np.inf, 6, 0]], np.float32
    )
    data = fp.Dataset.from_arrays(X, [0, 1, 0, 0], [1, 1, 2, 2], ["a", "a", "b", "c"])
    description = fp.describe(data)
    assert description.labels == {"0": 3, "1": 1}
    assert description.constant_features == (1, 5)
    assert description.constant_in_every_query == (4,)
    assert description.nan_features == (3,)
    assert description.infinite_features == (3,)
    assert description.repeated_ids == 1
    assert description.queries_without_relevant == 1
    text = str(description)
    for part in ("queries", "labels", "constant over all documents: 1, 5", "NaN", "█"):
        assert part in text
    json.dumps(description.to_dict())
    duplicated = fp.Dataset.from_arrays(np.ones((3, 2)), [0, 0, 0], [1, 1, 2])
    assert fp.describe(duplicated).repeated_rows == 1


def test_describe_runs_qrels_and_sparse_data() -> None:
    assert fp.describe(fp.Run.from_dict({"1": {"a": 1.0}})).labels == {}
    assert fp.describe(fp.Qrels.from_dict({"1": {"a": 1, "b": 0}})).labels == {"0": 1, "1": 1}
    from scipy.sparse import csr_array

    description = fp.describe(DATA.with_features(csr_array(np.eye(DATA.n_docs))))
    assert description.density == pytest.approx(1 / DATA.n_docs)
    many = fp.Dataset.from_arrays(np.zeros((50, 1)), np.linspace(0, 1, 50), range(50))
    assert len(fp.describe(many).labels) == 8
