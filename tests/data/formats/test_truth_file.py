"""Truth files of the labeling application."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp
from firstpage.data.formats.registry import read_judgments

ROW: dict[str, Any] = {
    "query": "red shoes", "text": "red shoes", "documents": ["a", "b", "c", "d", "e"], "k": 3,
    "order": ["b", "a", "d"], "labels": {"a": 2, "b": 3, "c": 0, "d": 1, "e": 0},
    "tied": [["b", "a"]], "bad": ["c"], "confidence": [0.9, 0.8, 0.4], "set_confidence": 0.7,
    "membership": None, "assessors": 1, "judgments": 7, "skipped": 1, "unjudged": ["e"],
}  # fmt: skip


def write(folder: Path, *rows: Any, name: str = "truth.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_ties_share_a_label_and_unjudged_documents_are_left_out(tmp_path: Path) -> None:
    truth = fp.read_truth(write(tmp_path, ROW))
    assert truth.to_dict() == {"red shoes": {"a": 3, "b": 3, "c": 0, "d": 1}}
    assert truth.query_weights is not None
    assert truth.query_weights.tolist() == pytest.approx([0.7])
    assert truth.source == str(tmp_path / "truth.jsonl")


def test_ties_across_the_cut_share_the_better_label(tmp_path: Path) -> None:
    row = ROW | {"tied": [["d", "c"]], "unjudged": []}
    assert fp.read_truth(write(tmp_path, row)).to_dict() == {
        "red shoes": {"a": 2, "b": 3, "c": 1, "d": 1, "e": 0}
    }


def test_confidences_weight_queries_unless_turned_off(tmp_path: Path) -> None:
    rows = [ROW, ROW | {"query": 7, "confidence": None}, ROW | {"query": "x", "confidence": []}]
    path = write(tmp_path, *rows)
    truth = fp.read_truth(path)
    assert list(truth.queries) == ["red shoes", "7", "x"]
    assert truth.query_weights is not None
    assert truth.query_weights.tolist() == pytest.approx([0.7, 1, 1])
    assert fp.read_truth(path, confidences=False).query_weights is None
    assert fp.read_truth(write(tmp_path, rows[1], name="n.jsonl")).query_weights is None


def test_minimal_lines_and_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"query": "q", "labels": {"a": 0.5}}\n'))
    assert fp.read_truth(path).to_dict() == {"q": {"a": 0.5}}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"labels": {"a": 1}}, "has no query"),
        ({"query": "", "labels": {"a": 1}}, "has no query"),
        ({"query": "q"}, "has no labels; truth files are written by `firstpage label export"),
        ({"query": "q", "labels": []}, "has no labels"),
        ({"query": "q", "labels": {}}, "no document has a label"),
        (ROW | {"query": "q", "unjudged": list("abcde")}, "no document has a label"),
        ({"query": "q", "labels": {"a": "x"}}, "the label of 'a' is 'x', not a number"),
        ({"query": "q", "labels": {"a": True}}, "the label of 'a' is True, not a number"),
        ({"query": "q", "labels": {"a": float("nan")}}, "the label of 'a' is nan, not a number"),
        (ROW | {"query": "q", "tied": ["a"]}, "tied is not a list of document ids"),
        (ROW | {"query": "q", "unjudged": "a"}, "unjudged is not a list of document ids"),
        (ROW | {"query": "q", "confidence": [1.5]}, "confidence is not a list of probabilities"),
        (ROW | {"query": "q", "confidence": 0.5}, "confidence is not a list of probabilities"),
        (ROW, "the query 'red shoes' occurs twice"),
        ([1], "a line must be one JSON object"),
    ],
)
def test_malformed_lines_are_refused(tmp_path: Path, row: Any, message: str) -> None:
    with pytest.raises(fp.DataError) as error:
        fp.read_truth(write(tmp_path, ROW, row))
    assert "truth.jsonl:2: " in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_judgments_of_any_kind_are_recognized(tmp_path: Path) -> None:
    write(tmp_path, ROW, name="renamed.txt")
    (tmp_path / "q.txt").write_text("q 0 a 1\n")
    assert read_judgments(tmp_path / "renamed.txt").query_weights is not None
    assert read_judgments(tmp_path / "q.txt").to_dict() == {"q": {"a": 1}}
    assert isinstance(fp.read(write(tmp_path, ROW)), fp.Qrels)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.run", "1 Q0 a 1 0.5 me\n", "a.run:1:10: the line has more than the 4 fields"),
        ("a.txt", "2 qid:1 1:0.5 2:1 3:1\n", "a.txt: is LETOR text"),
        ("a.csv", "query,docid,rating\nq,d,1\n", "`firstpage import quepid` converts ratings"),
        ("a.npz", "", "a.npz: is a data file, not judgments"),
        ("a.jsonl", "", "a.jsonl: contains no queries"),
        ("a.jsonl", '{"a": 1', "a.jsonl:1: the line is not valid JSON"),
        ("a.qrels", "", "a.qrels: contains no grades"),
        ("a.qrels", "q 0 a nan\n", "a.qrels:1: the grade is not a number (NaN)"),
    ],
)
def test_other_files_are_refused_by_name(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(fp.DataError) as error:
        read_judgments(tmp_path / name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_truth_files_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(fp.DataError, match="truth files come from"):
        fp.write(fp.Qrels.from_dict({"q": {"a": 1}}), tmp_path / "t", "truth")
