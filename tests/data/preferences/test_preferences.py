"""Preferences over rankings: from arrays, lists and files, with missing values."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.preferences.files import read_preferences, write_preferences
from firstpage.data.preferences.preferences import Preferences
from firstpage.data.runs import Qrels, Run
from tests.narrow import present


def test_lists_of_any_length_with_unjudged_documents():
    preferences = Preferences.from_grades([[3, None, 1], [2]], [[0, 1, 2], [3, 3]], [1, -2])
    assert preferences.grades == (0, 1, 2, 3)
    assert preferences.left.tolist() == [[3, -1, 1], [2, -1, -1]]
    assert preferences.right.tolist() == [[0, 1, 2], [3, 3, -1]]
    assert preferences.outcome.tolist() == [1, -2]


@pytest.mark.parametrize(
    ("unjudged", "left"),
    [("worst", [[3, 0, 1, 0], [2, 0, 0, 0]]), ("condense", [[3, 1, 0, 0], [2, 0, 0, 0]])],
)
def test_encoding_of_unjudged_documents(unjudged, left):
    preferences = Preferences.from_grades([[3, None, 1], [2]], [[0, 1, 2], [3, 3]])
    assert preferences.encode(4, unjudged)[0].tolist() == left


def test_unjudged_documents_can_be_refused():
    preferences = Preferences.from_grades([[3, None, 1]], [[0, 1, 2]])
    with pytest.raises(DataError, match="pair 1: the left list has no grade at position 2"):
        preferences.encode(3, "refuse")
    with pytest.raises(DataError, match="worst, condense, refuse; got 'x'"):
        preferences.encode(3, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "grades"),
    [
        ([[1, 5]], (1, 2, 3, 4, 5)),
        ([[0, 4]], (0, 1, 2, 3, 4)),
        ([[2, 3]], (1, 2, 3)),
        ([[-1, 1]], (-1, 0, 1)),
        ([[1, 1]], (1, 2)),
    ],
)
def test_default_grades_are_the_integers_between_those_that_occur(left, grades):
    assert Preferences.from_grades(left, left).grades == grades
    assert Preferences.from_grades(np.array(left), np.array(left)).grades == grades


def test_listed_grades_need_not_be_contiguous():
    preferences = Preferences.from_grades([[0, 10]], [[3, 0]], grades=[0, 3, 10])
    assert preferences.left.tolist() == [[0, 2]]
    assert preferences.with_grades([0, 1, 3, 10]).left.tolist() == [[0, 3]]
    with pytest.raises(DataError, match="has the grade 10; the grades are 0, 3"):
        preferences.with_grades([0, 3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"left": [[1.5]], "right": [[1]]}, "pair 1 has the grade 1.5 at position 1"),
        ({"left": [[1]], "right": [[1]], "outcome": [3]}, "an outcome must be 2, 1"),
        ({"left": [[1]], "right": [[1]], "outcome": [np.nan]}, "an outcome must be 2, 1"),
        ({"left": [[1]], "right": [[1]], "weight": [np.nan]}, "the weight of pair 1 is nan"),
        ({"left": [[1]], "right": [[1]], "weight": [-1]}, "the weight of pair 1 is -1"),
        ({"left": [[1]], "right": [[1]], "weight": [np.inf]}, "the weight of pair 1 is inf"),
        (
            {"left": [[1]], "right": [[1]], "weight": [1, 1]},
            "weight must have one entry per pair; got 2 for 1",
        ),
        (
            {"left": [[1]], "right": [[1]], "query": ["a", "b"]},
            "query must have one entry per pair; got 2 for 1",
        ),
        ({"left": [[1], [1]], "right": [[1]]}, "one row per pair"),
        ({"left": [[None]], "right": [[None]]}, "no grade in any list"),
        ({"left": [1, 2], "right": [2, 1]}, "lists of rankings, each a list of grades"),
        ({"left": [[np.inf]], "right": [[1]]}, "a grade is infinite"),
        ({"left": [["x"]], "right": [[1]]}, "pair 1 has a grade that is not a number"),
        ({"left": [[0]], "right": [[10**6]]}, "List the grades that exist with grades=."),
        (
            {"left": [[0]], "right": [[1]], "grades": [1, 0]},
            "2 to 100 integers in ascending order",
        ),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(arguments, message):
    with pytest.raises(DataError) as error:
        Preferences.from_grades(**arguments)
    assert message in str(error.value)


def test_selection_and_concatenation_keep_names_and_grades():
    first = Preferences.from_grades([[0, 1]], [[1, 0]], [1], query=["q1"], segment=["s"])
    second = Preferences.from_grades([[5]], [[1]], [-1], query=["q2"], segment=["t"])
    both = first + second
    assert both.grades == (0, 1, 2, 3, 4, 5)
    assert both.left.tolist() == [[0, 1], [5, -1]]
    assert list(present(both.query)) == ["q1", "q2"]
    assert list(present(both[np.array([1])].segment)) == ["t"]


ROWS = [
    {"query": "q1", "left": [3, None, 1], "right": [0, 1], "outcome": 2, "weight": 0.5},
    {"query": "q2", "left": [1], "right": [2, 3], "outcome": -1},
]


def lines(path, rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("name", ["p.jsonl", "p.jsonl.gz", "p.npz"])
def test_files_round_trip(tmp_path, name):
    first = tmp_path / "first.jsonl"
    lines(first, [{**row, "segment": "news"} for row in ROWS])
    preferences = read_preferences(first)
    write_preferences(preferences, tmp_path / name)
    reread = read_preferences(tmp_path / name)
    assert reread.grades == preferences.grades == (0, 1, 2, 3)
    assert np.array_equal(reread.left, preferences.left)
    assert np.array_equal(reread.right, preferences.right)
    assert reread.outcome.tolist() == [2, -1]
    assert reread.weight.tolist() == [0.5, 1.0]
    assert list(present(reread.query)) == ["q1", "q2"]
    assert list(present(reread.segment)) == ["news", "news"]


def test_tables_of_words_are_read(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text('query,left,right,label\n1,"3 0 -","1,2",1\n2,0 1,1 0,3\n3,0,1,4\n')
    preferences = read_preferences(path)
    assert preferences.left.tolist() == [[3, 0, -1], [0, 1, -1], [0, -1, -1]]
    assert preferences.outcome.tolist() == [2, 0, -1]


@pytest.mark.parametrize(
    ("word", "outcome"), [("left", 1), ("RIGHT", -1), ("tie", 0), (">>", 2), ("<", -1), ("2.0", 2)]
)
def test_outcomes_in_words(tmp_path, word, outcome):
    path = tmp_path / "p.jsonl"
    lines(path, [{"left": [1], "right": [0], "preference": word}])
    assert read_preferences(path).outcome.tolist() == [outcome]


QRELS = Qrels.from_dict({"q1": {"a": 2, "b": 0}, "q2": {"c": 1}})
RUNS = {
    "old": Run.from_dict({"q1": {"a": 1.0, "b": 2.0, "x": 3.0}, "q2": {"c": 1.0}}),
    "new": Run.from_dict({"q1": {"a": 5.0}, "q2": {"x": 1.0}}),
}


def test_documents_get_their_grades_from_judgments(tmp_path):
    path = tmp_path / "p.jsonl"
    lines(path, [{"query": "q1", "left": ["a", "x"], "right": "b a", "outcome": 1}])
    preferences = read_preferences(path, qrels=QRELS)
    assert preferences.left.tolist() == [[2, -1]]
    assert preferences.right.tolist() == [[0, 2]]


def test_rankings_are_read_from_runs(tmp_path):
    path = tmp_path / "p.jsonl"
    lines(
        path,
        [
            {"query": "q1", "outcome": 1},
            {"query": "q2", "left": "new", "right": "old", "outcome": -1},
        ],
    )
    preferences = read_preferences(path, qrels=QRELS, runs=RUNS)
    assert preferences.left.tolist() == [[-1, 0, 2], [-1, -1, -1]]
    assert preferences.right.tolist() == [[2, -1, -1], [1, -1, -1]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"left": [1], "right": [0]}, "the outcome is missing"),
        ({"left": [1], "right": [0], "outcome": 7}, "an outcome must be 2, 1"),
        ({"left": [1], "right": [0], "outcome": True}, "an outcome must be 2, 1"),
        ({"left": [1], "right": [0], "label": 9}, "a label must be 1 (left much better) to 5"),
        ({"right": [0], "outcome": 1}, "'left' is missing"),
        ({"left": 3, "right": [0], "outcome": 1}, "a side must be a list of grades"),
        (
            {"left": ["doc7"], "right": [0], "outcome": 1},
            "Lists of documents need their judgments. Give them with qrels=",
        ),
        ({"left": [1.5], "right": [0], "outcome": 1}, "a grade must be an integer"),
        (
            {"left": [1], "right": [0], "outcome": 1, "weight": "x"},
            "a weight must be a number from 0 to 1e+100",
        ),
    ],
)
def test_invalid_row_is_reported(tmp_path, row, message):
    path = tmp_path / "p.jsonl"
    lines(path, [ROWS[0], row])
    with pytest.raises(DataError) as error:
        read_preferences(path)
    assert message in str(error.value)
    assert "p.jsonl:2:" in str(error.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"outcome": 1}, "the query is missing"),
        ({"query": "q9", "outcome": 1}, "query 'q9' has no judgments"),
        ({"query": "q1", "left": 7, "outcome": 1}, "a list of documents or a run"),
    ],
)
def test_invalid_row_of_documents_is_reported(tmp_path, row, message):
    path = tmp_path / "p.jsonl"
    lines(path, [row])
    with pytest.raises(DataError) as error:
        read_preferences(path, qrels=QRELS, runs=RUNS)
    assert message in str(error.value)


def test_invalid_files_are_refused(tmp_path):
    empty = tmp_path / "p.jsonl"
    empty.write_text("\n")
    with pytest.raises(DataError, match="contains no pairs"):
        read_preferences(empty)
    with pytest.raises(DataError, match="rows are read from"):
        (tmp_path / "p.txt").write_text("x")
        read_preferences(tmp_path / "p.txt")
    with pytest.raises(DataError, match="cannot be read as arrays"):
        (tmp_path / "p.npz").write_text("x")
        read_preferences(tmp_path / "p.npz")
    with pytest.raises(DataError, match="give the judgments"):
        read_preferences(empty, runs=RUNS)


def test_pool_has_no_outcomes(tmp_path):
    path = tmp_path / "p.jsonl"
    lines(path, [{"query": "q", "left": [1], "right": [0]}])
    assert read_preferences(path, pool=True).tied.all()


def test_small_unsigned_arrays_and_lists_of_other_widths():
    left = np.array([[0, 1], [1, 2]], np.uint8)
    preferences = fp.dcglearn.Preferences.from_grades(left, left[::-1], grades=range(-1, 3))
    assert preferences.left.tolist() == [[1, 2], [2, 3]]
    wide = fp.dcglearn.Preferences.from_grades(left, np.array([[0, 1, 2], [2, 1, 0]]))
    assert wide.left.tolist() == [[0, 1, -1], [1, 2, -1]]


def test_concatenation_keeps_names():
    named = fp.dcglearn.Preferences.from_grades([[1, 0]], [[0, 1]], query=["q"], segment=["s"])
    plain = fp.dcglearn.Preferences.from_grades([[1, 0]], [[0, 1]])
    both = named + plain
    assert list(present(both.query)) == ["q", "pair 2"]
    assert list(present(both.segment)) == ["s", ""]
