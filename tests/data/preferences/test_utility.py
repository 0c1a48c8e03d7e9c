"""Utilities: their forms, their files, and what a file may not be."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.preferences.utility import Utility, read_utility
from firstpage.errors import DataError


def test_the_usual_gains_and_discounts():
    found = Utility.from_dcg("exp", range(5), 10)
    assert found.gains == pytest.approx(np.array([0, 1, 3, 7, 15]) / 15)
    assert found.discounts == pytest.approx(1 / np.log2(np.arange(2, 12)))
    assert found.label_gain() == pytest.approx([0, 1, 3, 7, 15])
    assert found.weights == pytest.approx(15 * np.outer(found.discounts, found.gains))


def test_gains_of_any_offset_and_scale():
    found = Utility.from_gains([-1, 0, 3], [2.0, 1.0], grades=[1, 2, 4])
    assert found.gains == pytest.approx([0, 0.25, 1])
    assert found.discounts == pytest.approx([1, 0.5])
    assert found.label_gain(1.0) == pytest.approx([0, 0, 0.25, 0.25, 1])


def test_a_file_gives_back_what_was_saved(tmp_path):
    path = tmp_path / "measure.json"
    part = Utility.from_dcg("linear", range(3), 2)
    first = Utility.from_gains([0, 1, 5], [1, 0.3], about={"pairs": 7}, segments={"news": part})
    first.with_form("weights").save(path)
    again = read_utility(path)
    assert again.grades == (0, 1, 2)
    assert again.form == "weights"
    assert again.about == {"pairs": 7}
    assert np.array_equal(again.weights, first.weights)
    assert np.array_equal(again.segment("news").gains, part.gains)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda held: held.update(format="other"), "not a measure of Firstpage"),
        (lambda held: held.update(version=99), "newer Firstpage"),
        (lambda held: held.update(version="1"), "its version is '1'"),
        (lambda held: held["gains"].__setitem__(1, 0.5), "checksum differs"),
        (lambda held: held.pop("gains"), "'gains' is missing"),
        (
            lambda held: held.update(discounts=[1.0]),
            "damaged (weights must have one row per position",
        ),
        (
            lambda held: held.update(grades=[2, 1, 0]),
            "grades must be two or more integers in ascending order",
        ),
        (lambda held: held.update(form="x"), "form must be gains or weights"),
        (lambda held: held.update(segments=[1]), "damaged"),
    ],
)
def test_a_damaged_file_is_told_in_one_line(tmp_path, change, words):
    path = tmp_path / "measure.json"
    Utility.from_dcg("exp", range(3), 2).save(path)
    held = json.loads(path.read_text())
    change(held)
    path.write_text(json.dumps(held))
    with pytest.raises(DataError) as error:
        read_utility(path)
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_changed_by_hand_is_read_without_its_checksum(tmp_path):
    path = tmp_path / "measure.json"
    Utility.from_dcg("exp", range(3), 2).save(path)
    held = json.loads(path.read_text())
    del held["sha256"]
    held["gains"][1] = 0.5
    path.write_text(json.dumps(held))
    assert read_utility(path).gains == pytest.approx([0, 0.5, 1])


def test_text_that_is_no_json_and_no_file(tmp_path):
    path = tmp_path / "measure.json"
    path.write_text("{")
    with pytest.raises(DataError, match=r"measure.json:1: not a measure file"):
        read_utility(path)
    with pytest.raises(DataError, match="no such file"):
        read_utility(tmp_path / "none.json")


def test_numbers_that_are_none():
    with pytest.raises(DataError, match="must be finite"):
        Utility.from_gains([0, np.nan], [1])
    with pytest.raises(DataError, match="two or more grades"):
        Utility.from_gains([1], [1])


def test_a_gain_that_nobody_can_use():
    wide = fp.Utility.from_gains([0, 1], [1.0], grades=(0, 2000))
    with pytest.raises(DataError, match="give the gain of the best label"):
        wide.label_gain()
    for top in (np.nan, np.inf, 0.0):
        with pytest.raises(DataError, match="above 0 and finite"):
            wide.label_gain(top)
