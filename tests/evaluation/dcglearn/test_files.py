"""Files of preferences: DCGLearn reads them, and refuses those that are damaged or say nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.data.preferences.files import (
    read_preferences,
    write_preferences,
)
from firstpage.data.preferences.preferences import Preferences
from firstpage.data.runs import Qrels
from firstpage.evaluation.dcglearn.learn import DCGLearn
from tests.evaluation.dcglearn.reference import random_preferences


def random_pairs() -> Preferences:
    preferences = random_preferences(900, ties=0.2, strong=0.3)
    left = preferences.left.copy()
    left[::9, 2] = -1  # unjudged
    a, b = (np.where(side < 0, np.nan, side) for side in (left, preferences.right))
    return Preferences.from_grades(
        a,
        b,
        preferences.outcome,
        query=[f"q{row % 70}" for row in range(900)],
        grades=range(len(preferences.grades)),
    )


def test_learns_from_a_file_as_from_its_pairs(tmp_path: Path) -> None:
    write_preferences(random_pairs(), tmp_path / "prefs.jsonl")
    from_file = DCGLearn(C=1.0).fit(tmp_path / "prefs.jsonl")
    in_memory = DCGLearn(C=1.0).fit(random_pairs())
    assert np.array_equal(from_file.weights_, in_memory.weights_)
    assert from_file.about() == in_memory.about()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"left": [1], "right": [1], "outcome": 1}\n', "no pair has both a weight"),
        ('{"left": [1], "right": [0], "outcome": 0}\n', "all pairs are ties"),
        ('{"left": [1], "right": [0], "outcome": 7}\n', r"a\.jsonl:1: an outcome must be"),
        ("", r"a\.jsonl: contains no pairs"),
    ],
)
def test_files_without_preferences_raise(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as error:
        DCGLearn(K=2, C=1.0).fit(path)
    assert "\n" not in str(error.value)


def test_a_folder_is_not_a_file_of_preferences(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        DCGLearn().fit(tmp_path)


def test_damaged_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    write_preferences(random_pairs()[:20], path)
    content = path.read_bytes()
    compression = content.index(b"PK\x01\x02") + 10  # the number of its method
    for byte in (100, 150, 180, compression):
        damaged = bytearray(content)
        damaged[byte] ^= 0xFF
        for written in (damaged, content[:byte]):
            path.write_bytes(written)
            with pytest.raises(DataError, match=r"p\.npz: cannot be read as arrays"):
                read_preferences(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"query": np.array("q")}, r"query must have an entry per pair; its shape is \(\)"),
        ({"segment": np.array([["a"]])}, r"segment must have an entry per pair"),
        ({"left": np.array(1)}, r"left must have a row per pair; its shape is \(\)"),
    ],
)
@pytest.mark.parametrize("pool", [False, True])
def test_arrays_of_other_shapes_are_refused(
    arrays: dict[str, Any], message: str, pool: bool, tmp_path: Path
) -> None:
    sides = {"left": np.array([[1, 0]]), "right": np.array([[0, 1]])}
    np.savez(tmp_path / "p.npz", **{**sides, **({} if pool else {"outcome": [1]}), **arrays})
    with pytest.raises(DataError, match=message):
        read_preferences(tmp_path / "p.npz", pool=pool)


def test_arrays_need_no_judgments(tmp_path: Path) -> None:
    write_preferences(random_pairs()[:20], tmp_path / "p.npz")
    qrels = Qrels.from_dict({"q1": {"a": 1}})
    with pytest.raises(DataError, match=r"p\.npz: arrays contain grades, not documents"):
        read_preferences(tmp_path / "p.npz", qrels=qrels)
