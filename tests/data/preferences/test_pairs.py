"""Votes on pairs of documents: their files, joins, and messages about bad rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp

HEAD = "query,left,right,outcome"


def read(tmp_path: Path, text: str, name: str = "votes.csv") -> fp.PreferencePairs:
    (tmp_path / name).write_text(text)
    return fp.read_pairs(tmp_path / name)


def rows(pairs: fp.PreferencePairs) -> list[tuple]:
    from firstpage.data.preferences.pair_files import votes_of

    return [tuple(vote) for vote in votes_of(pairs)]


def test_the_forms_of_a_file_are_equal(tmp_path: Path) -> None:
    expected = [("q1", "a", "b", 1, 1.0, "ada"), ("q1", "c", "a", 1, 2.5, "ben"),
                ("q2", "a", "b", 0, 1.0, "ben")]  # fmt: skip
    ours = f"{HEAD},weight,voter\nq1,a,b,left,1,ada\nq1,a,c,right,2.5,ben\nq2,a,b,tie,1,ben\n"
    crowd = "topic,arg1,arg2,vote,weight,worker,gold\nq1,a,b,a1,,ada,x\nq1,a,c,a2,2.5,ben,\n"
    crowd += "q2,a,b,equal,,ben,\n"
    assert rows(read(tmp_path, ours)) == expected
    assert rows(read(tmp_path, crowd)) == expected
    assert rows(read(tmp_path, ours.replace(",", "\t"), "votes.tsv")) == expected
    lines = [
        {"query": "q1", "preferred": "a", "other": "b", "voter": "ada"},
        {"query": "q1", "preferred": "c", "other": "a", "weight": 2.5, "voter": "ben"},
        {"qid": "q2", "left": "a", "right": "b", "outcome": 0, "voter": "ben"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert rows(read(tmp_path, text, "votes.jsonl")) == expected
    import polars

    table = polars.DataFrame(
        {"query": ["q1"], "left": ["a"], "right": ["b"], "outcome": [1], "voter": ["ada"]}
    )
    table.write_parquet(tmp_path / "votes.parquet")
    assert rows(fp.read_pairs(tmp_path / "votes.parquet")) == expected[:1]


def test_written_votes_are_read_back(tmp_path: Path) -> None:
    pairs = fp.PreferencePairs.from_arrays(
        ["a,b", 'say "x"', "línea"], [1, "y", "z\n"], [2, "x", "w"], weight=[1, 0.1, 3],
        tied=[False, True, False], voter=["", "v", "w"],
    )  # fmt: skip
    fp.write_pairs(pairs, tmp_path / "votes.csv")
    again = fp.read_pairs(tmp_path / "votes.csv")
    assert [vote[:5] for vote in rows(again)] == [vote[:5] for vote in rows(pairs)]
    assert again.n_voters == 3
    assert again.weight.tolist() == [1, 0.1, 3]
    with pytest.raises(fp.DataError, match=r"use the suffix .csv"):
        fp.write_pairs(pairs, tmp_path / "votes.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}\n", r"votes.csv: there are no votes"),
        ("", r"votes.csv: there are no votes"),
        ("query,left,right\nq,a,b\n", r"votes.csv:1: there is no column vote or outcome"),
        (f"{HEAD}\nq,a,a,left\n", r"votes.csv:2: a document against itself \('a'\)"),
        (f"{HEAD}\nq,a,b,left\nq,a,b,better\n", r"votes.csv:3: the vote 'better'"),
        (f"{HEAD}\nq,a,b,\n", r"votes.csv:2: the vote ''"),
        (f"{HEAD}\nq,a,,left\n", r"votes.csv:2: there is no right"),
        (f"{HEAD}\n,a,b,left\n", r"votes.csv:2: there is no query"),
        (f"{HEAD}\nq,a,b\n", r"votes.csv:2: the row has 3 fields"),
        (f"{HEAD},weight\nq,a,b,left,-1\n", r"votes.csv:2: a weight must be .*; got '-1'"),
        (f"{HEAD},weight\nq,a,b,left,nan\n", r"votes.csv:2: a weight must be .*; got 'nan'"),
        (f"{HEAD},weight\nq,a,b,left,inf\n", r"votes.csv:2: a weight must be"),
        (f"{HEAD},weight\nq,a,b,left,x\n", r"votes.csv:2: a weight must be"),
        ("query,preferred,other,outcome\nq,a,b,left\n", r"votes.csv:2: has preferred or other"),
        ("query,topic,left,right,outcome\nq,q,a,b,left\n", r"votes.csv:1: the query is in several"),
        (
            f"{HEAD},task,seq,event\nq,a,b,left,1,1,judgment\n",
            r"log of .* --content pairs -o votes",
        ),
    ],
)
def test_bad_rows_are_refused_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": [1, np.nan]}, "the weight of vote 2 is nan"),
        ({"weight": [-1, 1]}, "the weight of vote 1 is -1"),
        ({"weight": ["x", 1]}, "must be numbers"),
        ({"weight": [1]}, "equally long"),
        ({"tied": [True]}, "equally long"),
        ({"voter": ["a"]}, "equally long"),
    ],
)
def test_bad_columns_are_refused(options: dict, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.PreferencePairs.from_arrays(["q", "q"], ["a", "b"], ["b", "c"], **options)


def test_a_document_is_not_compared_with_itself() -> None:
    with pytest.raises(fp.DataError, match="vote 1 compares document 'a' with itself"):
        fp.PreferencePairs.from_arrays(["q"], ["a"], ["a"])
    with pytest.raises(fp.DataError, match="equally long"):
        fp.PreferencePairs.from_arrays(["q"], ["a", "b"], ["b"])


def test_votes_are_joined_by_query_and_document() -> None:
    data = fp.Dataset.from_arrays(np.zeros((4, 1)), np.zeros(4), [1, 1, 2, 2], ["a", "b", "a", "c"])
    pairs = fp.PreferencePairs.from_arrays(
        [2, 1, 1, 1, 2, 3],
        list("cabaaa"),
        list("abacbb"),
        weight=[1, 1, 2, 1, 1, 1],
        tied=[False, False, False, False, False, True],
    )
    joined, matched = pairs.to_rows(data)
    assert matched.tolist() == [True, True, True, False, False, False]
    assert joined.offsets.tolist() == [0, 1, 2]
    assert (joined.left.tolist(), joined.right.tolist()) == ([0, 0], [1, 1])
    assert joined.left_weight.tolist() == [1, 0]
    assert joined.right_weight.tolist() == [2, 1]
    text = pairs.unmatched(matched, ["data.txt"])
    assert text is not None
    assert "3 of 6 pairs are left out, since data.txt has no such documents: 'a' and 'c'" in text
    assert text.endswith("; and others.")
    with pytest.raises(fp.DataError, match=r"none of its 6 pairs is of documents of data\.txt"):
        pairs.unmatched(np.zeros(6, bool), ["data.txt"])
    with pytest.raises(fp.DataError, match="contains no pairs"):
        pairs[:0].unmatched(np.zeros(0, bool), ["data.txt"])


def test_a_repeated_document_is_refused() -> None:
    data = fp.Dataset.from_arrays(np.zeros((2, 1)), np.zeros(2), [1, 1], ["a", "a"])
    with pytest.raises(fp.DataError, match="'a' occurs twice"):
        fp.PreferencePairs.from_arrays([1], ["a"], ["b"]).to_rows(data)


def test_the_recorded_votes_are_read(real_data: Path) -> None:
    pairs = fp.read_pairs(real_data / "ukpconvarg1" / "votes.csv")
    assert len(pairs) == 41750
    assert len(pairs.queries) == 16
    assert pairs.n_voters > 1000
    assert 0 < pairs.tied.mean() < 0.5
