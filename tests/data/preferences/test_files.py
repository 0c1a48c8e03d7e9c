"""Files of preferences."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.preferences.files import write_json_lines


def test_list_without_judged_documents_round_trips(tmp_path):
    path = tmp_path / "p.jsonl"
    preferences = fp.dcglearn.Preferences.from_grades(
        [[None, None], [1, 0]], [[1, 0], [0, 1]], grades=[0, 1]
    )
    fp.dcglearn.write_preferences(preferences, path)
    assert np.array_equal(fp.dcglearn.read_preferences(path).left[0], [-1, -1])


def test_rows_are_written_as_json_lines_only(tmp_path):
    with pytest.raises(DataError, match="pairs are written as"):
        write_json_lines([{"left": [1]}], tmp_path / "p.csv")
    with pytest.raises(DataError, match="is a folder"):
        fp.dcglearn.Utility.from_dcg("exp", range(3), 2).save(tmp_path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"grades": np.array(3)}, {"grades": np.array(["a", "b"])}, {"grades": np.array([np.nan, 1])},
    ],
)  # fmt: skip
def test_arrays_with_invalid_grades(tmp_path, arrays):
    path = tmp_path / "p.npz"
    np.savez(
        path, left=np.array([[1, 0]]), right=np.array([[0, 1]]), outcome=np.array([1]), **arrays
    )
    with pytest.raises(DataError, match="grades must be"):
        fp.dcglearn.read_preferences(path)


def test_single_array_is_refused(tmp_path):
    np.save(tmp_path / "p.npy", np.arange(3))
    (tmp_path / "p.npy").rename(tmp_path / "p.npz")
    with pytest.raises(DataError, match="it is a single array"):
        fp.dcglearn.read_preferences(tmp_path / "p.npz")


def test_huge_weight_is_refused(tmp_path):
    row = '{"left": [1], "right": [0], "outcome": 1, "weight": 1' + "0" * 400 + "}"
    (tmp_path / "p.jsonl").write_text(row)
    with pytest.raises(DataError, match="a weight must be a number from 0"):
        fp.dcglearn.read_preferences(tmp_path / "p.jsonl")
    with pytest.raises(DataError, match="a grade that is not a number"):
        fp.dcglearn.Preferences.from_grades([[10**400]], [[1]])
