"""Rows of JSON lines and tables: separators, locations of errors, compression, limits."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageError
from firstpage.data.formats.row_reader import (
    NO_LIMITS,
    ReadLimits,
    read_csv_rows,
    read_file_cells,
    read_file_rows,
    read_rows,
    separator_of,
)
from firstpage.interop.read.judgments import read_quepid
from firstpage.labeling.simulation.votes import read_votes

TABLE = [["query", "left", "note"], ["q1", "a", "x"], ["q1", "b", ""]]


def text_of(separator: str, rows: list[list[str]] = TABLE) -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
def test_tables_with_any_separator(separator: str, name: str, tmp_path: Path) -> None:
    raw = text_of(separator).encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    where = str(tmp_path / name)
    assert list(read_file_rows(tmp_path / name)) == [
        (f"{where}:2", {"query": "q1", "left": "a", "note": "x"}),
        (f"{where}:3", {"query": "q1", "left": "b"}),  # an empty cell is omitted
    ]
    assert [cells for _, cells in read_file_cells(tmp_path / name)] == TABLE


@pytest.mark.parametrize(
    ("name", "line", "separator"),
    [
        ("a.csv", "query", ","),
        ("a.csv", "a;b,c;d", ";"),
        ("a.csv", '"a;b;c",d', ","),
        ("a.tsv", "query\ta, b, c, d", "\t"),
        ("a.tsv", "query,left", ","),
    ],
)
def test_separator_is_detected_from_the_first_line(name: str, line: str, separator: str) -> None:
    assert separator_of(name, line) == separator


@pytest.mark.parametrize(
    "row", ['{"query": "a", "query": "b"}', '{"query": "a", "list": [{"x": 1, "y": 2, "x": 3}]}']
)
def test_a_repeated_key_of_a_json_object_is_refused(row: str, tmp_path: Path) -> None:
    """Otherwise only the last value would count."""
    key = "query" if "list" not in row else "x"
    path = tmp_path / "a.jsonl"
    path.write_text('{"query": "a"}\n' + row + "\n")
    with pytest.raises(DataError, match=rf"a.jsonl:2: the key '{key}' occurs twice in one JSON"):
        list(read_file_rows(path))
    path = tmp_path / "measure.json"
    path.write_text(row)
    with pytest.raises(
        FirstpageError, match=rf"measure.json: the key '{key}' occurs twice in one JSON"
    ):
        fp.measure(f"DCG({path})")


def test_error_names_the_first_line_of_its_row() -> None:
    raw = b'\n\xef\xbb\xbfa,b\n"two\nlines",x\n\n"three\nmore\nlines",y,z\n'
    table = read_csv_rows("a.csv", io.BytesIO(raw.replace(b"\xef\xbb\xbf", b"")), NO_LIMITS)
    assert next(table) == ("a.csv:3", {"a": "two\nlines", "b": "x"})
    with pytest.raises(DataError, match=r"^a\.csv:6: has more cells than the header\.$"):
        next(table)


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.csv", b'a,b\n1,"2\n', r"a\.csv:2: cannot be read as a table"),
        ("a.csv", b"a;a\n1;2\n", "the column 'a' occurs twice"),
        ("a.csv", b"a,b\n\xff,2\n", r"a\.csv:2: is not UTF-8 text \(byte 1\)"),
        ("a.jsonl", b'{"a": 1}\n[2]\n', r"a\.jsonl:2: a line must be one JSON object"),
        ("a.jsonl", b'\n{"a": \n', r"a\.jsonl:2: the line is not valid JSON"),
        ("a.txt", b"", "rows are read from .jsonl"),
        ("a.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99, mtime=0)[:-9], "damaged or truncated"),
        ("a.csv", b"a\n1\n2\n3\n4\n", "more than 3 rows"),
        ("a.csv", b"a;b;c\n", "has 3 columns; at most 2"),
    ],
)
def test_invalid_rows_are_reported_in_one_line(name: str, raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_rows(name, io.BytesIO(raw), ReadLimits(rows=3, columns=2)))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_every_compression_is_read(suffix: str, tmp_path: Path) -> None:
    from firstpage.data.io.files import write_bytes

    path = tmp_path / f"a.jsonl{suffix}"
    with write_bytes(path) as out:
        out.write(b'{"a": 1}\n')
    assert list(read_file_rows(path)) == [(f"{path}:1", {"a": 1})]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_preferences_votes_and_quepid_accept_all_separators(separator: str, tmp_path: Path) -> None:
    def file(rows: list[list[str]]) -> Path:
        (tmp_path / "a.csv").write_text(text_of(separator, rows))
        return tmp_path / "a.csv"

    pairs = fp.dcglearn.read_preferences(
        file([["left", "right", "outcome"], ["2 1", "1 2", "left"]])
    )
    assert len(pairs) == 1
    (votes,) = read_votes(file([["topic", "arg1", "arg2", "vote"], ["q", "b", "a", "a1"]]))
    assert votes.documents == ("a", "b")
    judged = read_quepid(file([["query", "docid", "rating"], ["shoes", "d1", "3"]]))
    assert judged.to_dict() == {"shoes": {"d1": 3.0}}
