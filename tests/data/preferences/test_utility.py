"""Utilities: their forms, their files, and invalid files."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.preferences.utility import Utility, read_utility


def test_standard_gains_and_discounts():
    utility = Utility.from_dcg("exp", range(5), 10)
    assert utility.gains == pytest.approx(np.array([0, 1, 3, 7, 15]) / 15)
    assert utility.discounts == pytest.approx(1 / np.log2(np.arange(2, 12)))
    assert utility.label_gain() == pytest.approx([0, 1, 3, 7, 15])
    assert utility.weights == pytest.approx(15 * np.outer(utility.discounts, utility.gains))


def test_gains_are_normalized():
    utility = Utility.from_gains([-1, 0, 3], [2.0, 1.0], grades=[1, 2, 4])
    assert utility.gains == pytest.approx([0, 0.25, 1])
    assert utility.discounts == pytest.approx([1, 0.5])
    assert utility.label_gain(1.0) == pytest.approx([0, 0, 0.25, 0.25, 1])


def test_file_round_trips(tmp_path):
    path = tmp_path / "measure.json"
    segment = Utility.from_dcg("linear", range(3), 2)
    first = Utility.from_gains([0, 1, 5], [1, 0.3], about={"pairs": 7}, segments={"news": segment})
    first.with_form("weights").save(path)
    reread = read_utility(path)
    assert reread.grades == (0, 1, 2)
    assert reread.form == "weights"
    assert reread.about == {"pairs": 7}
    assert np.array_equal(reread.weights, first.weights)
    assert np.array_equal(reread.segment("news").gains, segment.gains)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda stored: stored.update(format="other"), "not a measure of Firstpage"),
        (lambda stored: stored.update(version=99), "newer Firstpage"),
        (lambda stored: stored.update(version="1"), "its version is '1'"),
        (lambda stored: stored["gains"].__setitem__(1, 0.5), "checksum differs"),
        (lambda stored: stored.pop("gains"), "'gains' is missing"),
        (
            lambda stored: stored.update(discounts=[1.0]),
            "damaged (weights must have one row per position",
        ),
        (
            lambda stored: stored.update(grades=[2, 1, 0]),
            "grades must be two or more integers in ascending order",
        ),
        (lambda stored: stored.update(form="x"), "form must be gains or weights"),
        (lambda stored: stored.update(segments=[1]), "damaged"),
    ],
)
def test_damaged_file_is_reported_in_one_line(tmp_path, change, message):
    path = tmp_path / "measure.json"
    Utility.from_dcg("exp", range(3), 2).save(path)
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    with pytest.raises(DataError) as error:
        read_utility(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_edited_file_is_read_without_its_checksum(tmp_path):
    path = tmp_path / "measure.json"
    Utility.from_dcg("exp", range(3), 2).save(path)
    stored = json.loads(path.read_text())
    del stored["sha256"]
    stored["gains"][1] = 0.5
    path.write_text(json.dumps(stored))
    assert read_utility(path).gains == pytest.approx([0, 0.5, 1])


def test_invalid_json_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "measure.json"
    path.write_text("{")
    with pytest.raises(DataError, match=r"measure.json:1: not a measure file"):
        read_utility(path)
    with pytest.raises(DataError, match="no such file"):
        read_utility(tmp_path / "none.json")


def test_invalid_numbers_are_refused():
    with pytest.raises(DataError, match="must be finite"):
        Utility.from_gains([0, np.nan], [1])
    with pytest.raises(DataError, match="two or more grades"):
        Utility.from_gains([1], [1])


def test_unusable_gain_is_refused():
    wide = fp.dcglearn.Utility.from_gains([0, 1], [1.0], grades=(0, 2000))
    with pytest.raises(DataError, match="give the gain of the best label"):
        wide.label_gain()
    for top in (np.nan, np.inf, 0.0):
        with pytest.raises(DataError, match="above 0 and finite"):
            wide.label_gain(top)
