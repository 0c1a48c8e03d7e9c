"""Tables: CSV, Parquet, npz."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import firstpage as fp


def test_empty_last_columns_of_sparse_data_come_back(tmp_path: Path) -> None:
    from scipy.sparse import csr_array

    X = csr_array(np.array([[1.0, 0, 0], [0, 2, 0]], np.float32))
    fp.write_letor(fp.Dataset.from_arrays(X, [1, 0], [1, 2]), tmp_path / "x.txt")
    assert fp.read_letor(tmp_path / "x.txt").X.tolist() == [[1, 0, 0], [0, 2, 0]]
