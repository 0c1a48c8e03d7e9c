"""Quepid's judgments and clicks, valid and invalid; errors are one line with the location."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp
from firstpage.labeling.simulation.votes import read_votes
from tests.cli.conftest import run  # noqa: F401

RATED, CLICKED = "query,docid,rating\n", "query,docid,position,clicked\n"


def test_quepid_ratings_are_read(tmp_path: Path, run) -> None:  # noqa: F811
    file = tmp_path / "q.csv"
    file.write_text(
        'Query,DocID,Rating\n"red, shoes",d 1,3\n"red, shoes",d2,0\nhat,d1,1.5\nhat,d9,\n'
    )
    with pytest.warns(fp.FirstpageWarning, match="1 rows without a rating are dropped"):
        actual = fp.interop.read_quepid(file)
    assert actual.to_dict() == {"red, shoes": {"d 1": 3.0, "d2": 0.0}, "hat": {"d1": 1.5}}
    done = run("import", "quepid", file, "-o", tmp_path / "q.qrels")
    assert done.returncode == 0, done.stderr
    assert "trec_eval does not read such a file" in done.stderr
    assert fp.read_qrels(tmp_path / "q.qrels").to_dict() == actual.to_dict()


def test_apostrophes_of_quepid_stay(tmp_path: Path) -> None:
    """Only a blank before the apostrophe says that Firstpage wrote the file."""
    file = tmp_path / "q.csv"
    file.write_text("query,docid,rating\n'-x,'=d,1\n '-x, '=d,2\n")
    assert fp.interop.read_quepid(file).to_dict() == {"'-x": {"'=d": 1.0}, "-x": {"=d": 2.0}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,docid\na,b\n", "q.csv:1: has no column rating"),
        ("query,docid,rating\na,b,x\n", "q.csv:2: the rating 'x' is not a number"),
        ("query,docid,rating\na,b,1\na,b,2\n", "q.csv:3: 'b' has another rating"),
        ("query,docid,rating\na,b\n", "q.csv:2: has fewer fields than the header"),
        ("query,docid,rating\n", "contains no ratings"),
        ("query,docid,rating\n ,b,1\n", "a query is empty"),
    ],
)
def test_invalid_quepid_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "q.csv").write_text(text)
    with pytest.raises(fp.DataError, match=message):
        fp.interop.read_quepid(tmp_path / "q.csv")


def test_csv_of_spreadsheets_is_read(tmp_path: Path) -> None:
    text = '\ufeffQuery,DocID,Rating\r\n"red\r\nshoes",a,1\r\n"say ""hi""",b,2\r\n,,\r\n\r\n'
    (tmp_path / "q.csv").write_bytes(text.encode())
    assert fp.interop.read_quepid(tmp_path / "q.csv").to_dict() == {
        "red\nshoes": {"a": 1.0},
        'say "hi"': {"b": 2.0},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RATED + "red,shoes,5,3\n", "q.csv:2: has more fields than the header"),
        (RATED + '"a,b,1\nc,d,2\n', "q.csv:2: cannot be read as a table"),
        (RATED + '"a\nb",c,1\n"x",y,zz\n', "q.csv:4: the rating 'zz'"),
        (RATED + '"a\nb",c,1\n"x\nz",y,zz\n', "q.csv:4: the rating 'zz'"),
        (RATED + "a,b,1_0\n", "q.csv:2: the rating '1_0' is not a number"),
        (RATED + "a,,1\n", "q.csv:2: a document id is empty"),
        ("query,docid,rating,rating\na,b,1,2\n", "q.csv:1: the column rating occurs twice"),
        ("query,docid,rating,Rating\na,b,1,2\n", "q.csv:1: the column rating occurs twice"),
        (RATED.replace("\n", "\r") + "a,b,1\r", "q.csv:1: cannot be read as a table"),
    ],
)
def test_malformed_tables_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "q.csv").write_bytes(text.encode())
    with pytest.raises(fp.DataError, match=message) as error:
        fp.interop.read_quepid(tmp_path / "q.csv")
    assert "\n" not in str(error.value)


def test_byte_order_marks_are_removed_from_names(tmp_path: Path, run) -> None:  # noqa: F811
    """Concatenated files have them in the middle; readers drop them at the start."""
    (tmp_path / "q.csv").write_text(RATED + "\ufeffa,b,1\n", "utf-8")
    run("import", "quepid", tmp_path / "q.csv", "-o", tmp_path / "q.qrels")
    assert fp.read_qrels(tmp_path / "q.qrels").to_dict() == {"a": {"b": 1.0}}


def test_other_encodings_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes((RATED + "ü,b,1\n").encode("latin-1"))
    with pytest.raises(fp.DataError, match="is not UTF-8 text"):
        fp.interop.read_quepid(tmp_path / "a.csv")


def test_errors_in_compressed_tables_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "q.csv.gz").write_bytes(gzip.compress((RATED + "a,b,x\n").encode()))
    with pytest.raises(fp.DataError, match=r"q\.csv\.gz:2: the rating 'x'"):
        fp.interop.read_quepid(tmp_path / "q.csv.gz")


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".TSV.xz"])
def test_tab_separated_tables_are_read(tmp_path: Path, suffix: str) -> None:
    text = (CLICKED + "q,a,1,0\nq,b,2,1\n").replace(",", "\t").encode()
    packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(suffix[4:], bytes)(text)
    (tmp_path / f"c{suffix}").write_bytes(packed)
    assert fp.interop.read_clicks(tmp_path / f"c{suffix}") == [("q", "b", "a")]


def test_clicks_become_skip_above_pairs(tmp_path: Path, run) -> None:  # noqa: F811
    rows = [
        {"query": "q", "ranking": ["a", "b", "c", "d"], "clicks": ["c", "b"]},
        {"query": "q", "ranking": ["b", "a"], "clicks": ["b"]},
        {"query": "x, y", "ranking": ["a", "b"], "clicks": ["b"]},
    ]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    actual = fp.interop.read_clicks(tmp_path / "c.jsonl")
    assert actual == [("q", "b", "a"), ("q", "c", "a"), ("x, y", "b", "a")]
    table = "query,docid,position,clicked\nq,a,1,0\nq,b,2,1\nq,c,3,1\nq,d,4,0\nq,b,1,1\nq,a,2,0\n"
    (tmp_path / "c.csv").write_text(table + '"x, y",a,1,0\n"x, y",b,2,true\n')
    assert fp.interop.read_clicks(tmp_path / "c.csv") == actual
    done = run("import", "clicks", tmp_path / "c.csv", "-o", tmp_path / "votes.csv")
    assert done.returncode == 0, done.stderr
    assert "note: clicks follow the order that was shown" in done.stderr
    votes = {v.query: v for v in read_votes(tmp_path / "votes.csv")}
    assert votes["q"].documents == ("a", "b", "c")
    assert votes["q"].outcomes == {(0, 1): (-1,), (0, 2): (-1,)}
    fp.write_pairs(fp.read_pairs(tmp_path / "votes.csv"), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "votes.csv").read_bytes()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.csv", "query,docid,position,clicked\nq,a,x,0\n", "not an integer"),
        ("c.csv", "query,docid,position,clicked\nq,a,1,maybe\n", "must be 0 or 1"),
        ("c.csv", "query,docid,position,clicked\nq,a,1,0\nq,a,2,1\n", "twice in one list"),
        ("c.csv", "query,docid,position,clicked\nq,a,1,1\n", "no click has a skipped"),
        ("c.jsonl", '{"query": "q"}\n', "must have query, ranking and clicks"),
        (
            "c.jsonl",
            '{"query": "q", "ranking": ["a"], "clicks": ["b"]}\n',
            "'b' was clicked but not",
        ),
        ("c.jsonl", "{\n{", "c.jsonl:1: the line is not valid JSON"),
    ],
)
def test_invalid_clicks_are_rejected(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(fp.DataError, match=message):
        fp.interop.read_clicks(tmp_path / name)


@pytest.mark.parametrize("first", [0, 1])
def test_positions_may_start_at_0_or_1(tmp_path: Path, first: int) -> None:
    rows = [("a", first, 0), ("b", first + 1, 1), ("a", first, 0), ("b", first + 3, 1)]
    text = "".join(f"q,{d},{p},{c}\n" for d, p, c in rows)
    (tmp_path / "c.csv").write_text(CLICKED + text)
    assert fp.interop.read_clicks(tmp_path / "c.csv") == [("q", "b", "a")] * 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("q,a,1,0\nq,b,2,1\nq,c,2,1\n", "c.csv:4: the position 2 comes after 2"),
        ("q,a,1,0\nq,b,3,1\nq,c,2,1\n", "sort the rows of each list by position"),
        ("q,a,-1,0\n", "below 0"),
        ("q,a,1_0,0\n", "not an integer"),
        ("q,,1,0\n", "a query or a document is empty"),
        (",a,1,0\n", "a query or a document is empty"),
    ],
)
def test_invalid_click_tables_are_rejected(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "c.csv").write_text(CLICKED + rows)
    with pytest.raises(fp.DataError, match=message):
        fp.interop.read_clicks(tmp_path / "c.csv")


def test_lists_with_different_first_positions_cause_a_warning(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(CLICKED + "q,c,3,1\nq,b,2,0\nq,a,1,0\nr,a,1,0\nr,b,2,1\n")
    with pytest.warns(fp.FirstpageWarning, match="lists begin at positions from 1 to 3"):
        assert fp.interop.read_clicks(tmp_path / "c.csv") == [("r", "b", "a")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": None, "ranking": ["a", "b"], "clicks": ["b"]}, "must have query"),
        ({"query": "q", "ranking": ["a", None], "clicks": ["a"]}, "must have query"),
        ({"query": "q", "ranking": ["a", ""], "clicks": ["a"]}, "no id may be empty"),
        ({"query": "q\ud800", "ranking": ["a", "b"], "clicks": ["b"]}, "must have query"),
        ({"query": "q", "ranking": [1, "1"], "clicks": [1]}, "'1' occurs twice in one list"),
        ({"query": "q", "ranking": ["a", "b"], "clicks": ["z"]}, "'z' was clicked but not"),
    ],
)
def test_invalid_click_lines_are_rejected(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    good = {"query": "q", "ranking": ["a", "b"], "clicks": ["b"]}
    (tmp_path / "c.jsonl").write_text(json.dumps(good) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(fp.DataError, match=rf"c\.jsonl:2: .*{message}"):
        fp.interop.read_clicks(tmp_path / "c.jsonl")


def test_only_newlines_separate_json_lines(tmp_path: Path) -> None:
    rows = [{"query": "q\u2028r", "ranking": ["a", "b"], "clicks": ["b"]}] * 2
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (tmp_path / "c.jsonl").write_text(text, "utf-8")
    assert fp.interop.read_clicks(tmp_path / "c.jsonl") == [("q\u2028r", "b", "a")] * 2
