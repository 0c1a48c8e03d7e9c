"""Documents of every format: values, ids, locations, and one line for what is refused."""

from __future__ import annotations

import datetime
import gzip
import json
import lzma
import re
import tracemalloc
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.data.formats import row_reader
from firstpage.search import documents, smart, sources, trec_text
from firstpage.search.documents import SourceDocument, read_documents

RED = {"title": "red shoe", "text": "a shoe, red"}
BLUE = {"title": "blue shoe", "text": "a shoe,\nblue"}
JSONL = "".join(
    json.dumps({"id": name, **values}) + "\n" for name, values in (("r", RED), ("b", BLUE))
)
CSV = 'id,title,text\nr,red shoe,"a shoe, red"\nb,blue shoe,"a shoe,\nblue"\n'
TSV = 'id\ttitle\ttext\nr\tred shoe\ta shoe, red\nb\tblue shoe\t"a shoe,\nblue"\n'
TREC = """<DOC>
<DOCNO> r </DOCNO>
<TITLE>red shoe</TITLE>
<TEXT>
a shoe, red
</TEXT>
</DOC>
<DOC><DOCNO>b</DOCNO><HEADLINE>blue shoe</HEADLINE><TEXT>a shoe,
blue</TEXT></DOC>
"""
SMART = ".I r\n.T\nred shoe\n.W\na shoe, red\n.I b\n.T\nblue shoe\n.W\na shoe,\nblue\n"
SAME = {"a.jsonl": JSONL, "a.csv": CSV, "a.tsv": TSV, "a.trec": TREC, "a.all": SMART}


def read(path: Path, raw: str | bytes, **options: Any) -> list[SourceDocument]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return list(read_documents([path], **options))


def values(path: Path, raw: str | bytes, **options: Any) -> dict[str, dict[str, str | float]]:
    return {document.id: dict(document.values) for document in read(path, raw, **options)}


def notes_of(path: Path, raw: str | bytes, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(path, raw, **options)
    assert all(issubclass(warning.category, FirstpageWarning) for warning in caught)
    return [str(warning.message).removeprefix(f"{path.parent}/") for warning in caught]


@pytest.mark.parametrize("name", SAME)
def test_formats_agree(name: str, tmp_path: Path) -> None:
    assert values(tmp_path / name, SAME[name]) == {"r": RED, "b": BLUE}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_formats_are_recognized_in_compressed_files(name: str, suffix: str, tmp_path: Path) -> None:
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.compress,
    }
    raw = packers[suffix](SAME[name].encode())
    assert values(tmp_path / f"{name}{suffix}", raw) == {"r": RED, "b": BLUE}
    with pytest.raises(DataError, match="damaged or truncated"):
        read(tmp_path / f"{name}{suffix}", raw[:-9])


@pytest.mark.parametrize("name", SAME)
def test_line_ends_of_windows_and_a_missing_one_at_the_end(name: str, tmp_path: Path) -> None:
    raw = SAME[name].rstrip("\n").replace("\n", "\r\n")
    assert values(tmp_path / name, "\ufeff" + raw) == {"r": RED, "b": BLUE}


@pytest.mark.parametrize(
    ("format", "raw"),
    [("jsonl", JSONL), ("csv", CSV), ("tsv", TSV), ("trec", TREC), ("smart", SMART)],
)
def test_a_format_that_is_named_needs_no_suffix(format: str, raw: str, tmp_path: Path) -> None:
    assert values(tmp_path / "documents", raw, format=format) == {"r": RED, "b": BLUE}


@pytest.mark.parametrize(
    ("name", "raw", "lines"),
    [
        ("a.jsonl", "\n" + JSONL, [2, 3]),
        ("a.csv", CSV + "x,y,z\n", [2, 3, 5]),
        ("a.trec", "\n" + TREC, [2, 9]),
        ("a.all", SMART, [1, 6]),
    ],
)
def test_location_is_the_line_where_a_document_begins(
    name: str, raw: str, lines: list[int], tmp_path: Path
) -> None:
    found = [document.location for document in read(tmp_path / name, raw)]
    assert found == [f"{tmp_path / name}:{line}" for line in lines]


def test_several_files_and_one_path_alone(tmp_path: Path) -> None:
    for name, raw in SAME.items():
        (tmp_path / name).write_text(raw)
    both = read_documents([tmp_path / "a.jsonl", str(tmp_path / "a.trec")])
    assert [document.id for document in both] == ["r", "b", "r", "b"]
    assert [document.id for document in read_documents(str(tmp_path / "a.csv"))] == ["r", "b"]
    assert list(read_documents([])) == []


# --- ids


@pytest.mark.parametrize(
    "key", ["id", "document", "docid", "doc_id", "docno", "_id", "DocNo", "ID"]
)
def test_every_key_of_an_id(key: str, tmp_path: Path) -> None:
    assert values(tmp_path / "a.jsonl", json.dumps({"text": "t", key: "7"})) == {"7": {"text": "t"}}
    assert values(tmp_path / "a.csv", f"text,{key}\nt,7\n") == {"7": {"text": "t"}}
    if key != "_id":
        marked = f"<DOC><{key}>7</{key}><TEXT>t</TEXT></DOC>"
        assert values(tmp_path / "a.trec", marked) == {"7": {"text": "t"}}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"document": "the text", "docno": "7"}, {"7": {"document": "the text"}}),
        ({"docid": 3, "id": 4}, {"4": {"docid": 3.0}}),
        ({"id": 4.0}, {"4": {}}),
        ({"id": 10**30}, {str(10**30): {}}),
        ({"id": " two words\u00a0"}, {"two words": {}}),
        ({"id": "é 漢/#"}, {"é 漢/#": {}}),
    ],
)
def test_ids(row: dict[str, Any], expected: dict[str, Any], tmp_path: Path) -> None:
    assert values(tmp_path / "a.jsonl", json.dumps(row)) == expected


def test_id_field(tmp_path: Path) -> None:
    row = '{"id": 1, "sku": "s", "Sku": "S"}'
    assert values(tmp_path / "a.jsonl", row, id_field="sku") == {"s": {"id": 1.0, "Sku": "S"}}
    assert list(values(tmp_path / "a.jsonl", row, id_field="Sku")) == ["S"]
    assert list(values(tmp_path / "a.jsonl", row, id_field="SKU")) == ["s"]
    ohsumed = ".I 1\n.U\n87049087\n.W\nheart\n"
    assert values(tmp_path / "o", ohsumed, id_field="u") == {
        "87049087": {"id": "1", "text": "heart"}
    }
    with pytest.raises(
        DataError, match=r"a\.jsonl:1: has no value of 'isbn', the field of the ids"
    ):
        read(tmp_path / "a.jsonl", row, id_field="isbn")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"text": "x"}', "a.jsonl:1: has no id; give each document one of id, _id, docno"),
        ('{"id": null}', "a.jsonl:1: has no id"),
        ('{"id": ""}', "a.jsonl:1: the id is empty"),
        ('{"id": " \\n "}', "a.jsonl:1: the id is empty"),
        ('{"id": "a\\tb"}', "a.jsonl:1: the id contains the character '\\t' at position 2"),
        ('{"id": "a\\u0000"}', "a.jsonl:1: the id contains the character '\\x00' at position 2"),
        ('{"id": "\\ud800"}', "a.jsonl:1: the id contains the character '\\ud800' at position 1"),
        ('{"id": "a\\u2028b"}', "a.jsonl:1: the id contains the character '\\u2028'"),
        ('{"id": true}', "a.jsonl:1: an id must be a text or a number; got bool"),
        ('{"id": ["a"]}', "a.jsonl:1: an id must be a text or a number; got list"),
        ('{"id": NaN}', "a.jsonl:1: an id must be a text or a number; got nan"),
    ],
)
def test_refused_ids(row: str, message: str, tmp_path: Path) -> None:
    refused(tmp_path / "a.jsonl", row, message)


def refused(path: Path, raw: str | bytes, message: str, **options: Any) -> None:
    """Check that reading raises one line that begins with a message, after the folder."""
    with pytest.raises(DataError) as caught:
        read(path, raw, **options)
    text = str(caught.value)
    assert text.removeprefix(f"{path.parent}/").startswith(message), text
    assert "\n" not in text


# --- values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        (" text ", " text "),
        (3, 3.0),
        (-0.5, -0.5),
        (True, 1.0),
        (False, 0.0),
        (0, 0.0),
        (None, None),
        ("", None),
        ([], None),
        ([""], None),
        (["a", "b c"], "a\nb c"),
        (["a", None], "a"),
        ("a\x00b\x1fc\x7fd\x9be", "a b c d e"),
        ("a\tb\r\nc\x0b\x0c\u2028\u00a0", "a\tb\r\nc\x0b\x0c\u2028\u00a0"),
        (["a\x01"], "a "),
    ],
)
@pytest.mark.filterwarnings("ignore:.*control characters")
def test_values(value: object, expected: object, tmp_path: Path) -> None:
    found = values(tmp_path / "a.jsonl", json.dumps({"id": 1, "x": value}))["1"]
    assert found == ({} if expected is None else {"x": expected})
    assert type(found.get("x")) is type(expected)


def test_control_characters_are_reported_once(tmp_path: Path) -> None:
    raw = '{"id": 1, "x": "a\\u0001"}\n{"id": 2, "x": "\\u0002", "y": "\\ud83d"}\n'
    assert notes_of(tmp_path / "a.jsonl", raw) == [
        "a.jsonl:1: contains control characters; they are read as blanks, here and below."
    ]
    with pytest.warns(FirstpageWarning):
        assert values(tmp_path / "a.jsonl", raw)["2"] == {"x": " ", "y": " "}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("NaN", "is not a finite number; leave it out"),
        ("-Infinity", "is not a finite number"),
        ("1e999", "is not a finite number"),
        ("1" + "0" * 400, "is not a finite number"),
        ("{}", "is a nested object. A value is a text"),
        ('{"a": "b"}', "is a nested object"),
        ("[1, 2]", "is a list of values that are not texts"),
        ('[["a"]]', "is a list of values that are not texts"),
        ("[" * 400 + "]" * 400, "is a list of values that are not texts"),
    ],
)
def test_refused_values(value: str, message: str, tmp_path: Path) -> None:
    raw = f'{{"id": 1}}\n{{"id": 2, "y": "kept", "x": {value}}}\n'
    refused(tmp_path / "a.jsonl", raw, f"a.jsonl:2: the field 'x' {message}")
    for ignored in (["x"], "x"):
        found = values(tmp_path / "a.jsonl", raw, ignore_fields=ignored)
        assert found == {"1": {}, "2": {"y": "kept"}}


def test_ignored_fields_that_no_document_has_are_reported(tmp_path: Path) -> None:
    raw = '{"id": 1, "x": {}}\n{"id": 2, "y": [1]}\n'
    assert notes_of(tmp_path / "a.jsonl", raw, ignore_fields=["x", "y"]) == []
    assert notes_of(tmp_path / "a.jsonl", raw, ignore_fields=["X", "x", "y", "z"]) == [
        "no document has these fields to ignore: 'X', 'z'; check their names."
    ]


def test_cells_of_a_table_are_texts(tmp_path: Path) -> None:
    raw = "id;price;,note\n007;1.50;x\n8;;y\n"
    assert values(tmp_path / "a.csv", raw) == {
        "007": {"price": "1.50", ",note": "x"},
        "8": {",note": "y"},
    }


def test_a_column_without_a_name_is_ignored_and_reported(tmp_path: Path) -> None:
    raw = ",id,x\n0,a,1\n1,b,2\n"
    assert notes_of(tmp_path / "a.csv", raw) == ["a.csv:2: a field without a name is ignored."]
    with pytest.warns(FirstpageWarning):
        assert values(tmp_path / "a.csv", raw) == {"a": {"x": "1"}, "b": {"x": "2"}}


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1).filter(
            lambda name: name.strip() and name.casefold() not in documents.ID_KEYS
        ),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.integers(-(2**53), 2**53)
        | st.booleans(),
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"])).filter(str.strip),
)
def test_json_values_come_back(tmp_path: Path, row: dict[str, Any], name: str) -> None:
    (document,) = read(tmp_path / "a.jsonl", json.dumps({**row, "id": name}))
    assert document.id == name.strip()
    assert document.values == row
    assert {type(value) for value in document.values.values()} <= {str, float}


# --- Parquet


def test_parquet(tmp_path: Path) -> None:
    day = datetime.date(2024, 2, 29)
    frame = polars.DataFrame(
        {
            "docno": [1, 2],
            "text": ["a", None],
            "price": [1.5, float("nan")],
            "sold": [True, None],
            "day": [day, None],
            "time": [datetime.datetime(2024, 2, 29, 1, 2, 3), None],
            "tags": [["x", "y"], []],
            "cost": [Decimal("2.25"), None],
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    first, second = read_documents([tmp_path / "a.parquet"])
    assert (first.id, second.id) == ("1", "2")
    assert second.values == {}
    assert first.values == {
        "text": "a",
        "price": 1.5,
        "sold": 1.0,
        "day": "2024-02-29",
        "time": "2024-02-29T01:02:03",
        "tags": "x\ny",
        "cost": 2.25,
    }
    assert second.location == f"{tmp_path}/a.parquet: row 2"
    packed = gzip.compress((tmp_path / "a.parquet").read_bytes())
    assert values(tmp_path / "b.parquet.gz", packed)["1"] == first.values
    assert values(tmp_path / "named", (tmp_path / "a.parquet").read_bytes())["2"] == {}


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([{"a": 1}], "is a nested object"),
        ([[1.5]], "is a list of values that are not texts"),
        ([b"x"], "is a bytes"),
        ([float("inf")], "is not a finite number"),
        ([datetime.timedelta(1)], "is a timedelta"),
    ],
)
def test_refused_columns_of_parquet(column: list[Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    polars.DataFrame({"id": ["a"], "x": column}).write_parquet(path)
    refused(path, path.read_bytes(), f"a.parquet: row 1: the field 'x' {message}")
    assert [document.id for document in read_documents([path], ignore_fields=["x"])] == ["a"]


def test_parquet_is_read_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PARQUET_SLICE_ROWS", 3)
    path = tmp_path / "a.parquet"
    polars.DataFrame({"id": range(10)}).write_parquet(path, row_group_size=4)
    found = list(read_documents([path]))
    assert [document.id for document in found] == [str(n) for n in range(10)]
    assert [document.location for document in found][3:5] == [f"{path}: row 4", f"{path}: row 5"]


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    polars.DataFrame({"id": range(10)}).write_parquet(path)
    raw = path.read_bytes()
    for damaged in (b"", b"PAR1", raw[:-9], raw[:4] + raw[60:], b"{}"):
        refused(path, damaged, "a.parquet: cannot be read as Parquet")


def test_a_panic_of_the_parquet_reader_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan(*args: Any, **options: Any) -> None:
        raise polars.exceptions.PanicException("called `Option::unwrap()`\non a `None` value")

    monkeypatch.setattr(polars, "scan_parquet", scan)
    refused(tmp_path / "a.parquet", b"PAR1", "a.parquet: cannot be read as Parquet (called")


# --- TREC text


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<TEXT>a <b>bold</b> word</TEXT>", {"text": "a  bold  word"}),
        ("<TEXT>one</TEXT><TEXT>two</TEXT>", {"text": "one\ntwo"}),
        ("<HL>up</HL><HEAD>down</HEAD>", {"title": "up\ndown"}),
        ("<text>AT&amp;T &#233; R&D &hyph;</text>", {"text": "AT&T é R&D &hyph;"}),
        ("<TEXT>3 < 4 and 5 > 4</TEXT>", {"text": "3 < 4 and 5 > 4"}),
        ("loose <P> words <!-- hidden <TEXT> --> here", {"text": "loose\nwords   here"}),
        ("<TEXT>a <!-- open</TEXT>", {"text": "a <!-- open"}),
        ("<DATE>1991</DATE><PUB></PUB>", {"date": "1991"}),
        ("<A><B>inner</B></A>", {"a": "inner"}),
        ("<P>no end <TEXT>t</TEXT>", {"text": "no end\nt"}),
        ('<TEXT lang="en">t</TEXT >', {"text": "t"}),
        ("<DOCID>9</DOCID>", {"docid": "9"}),
        (
            "<DOCHDR>\nhttp://x/\n</DOCHDR>\n<html><title>T</title><body><p>one<p>two",
            {"dochdr": "http://x/", "title": "T", "text": "one\ntwo"},
        ),
    ],
)
def test_trec_elements(inside: str, expected: dict[str, str], tmp_path: Path) -> None:
    raw = f"<DOC>\n<DOCNO>1</DOCNO>\n{inside}\n</DOC>\n"
    assert values(tmp_path / "a.sgml", raw) == {"1": expected}


def test_trec_documents_named_by_an_attribute(tmp_path: Path) -> None:
    raw = '<DOC id="AFP_1" type="story">\n<TEXT>t</TEXT>\n</DOC>\n'
    assert values(tmp_path / "gigaword", raw) == {"AFP_1": {"text": "t"}}


def test_several_trec_documents_in_one_line(tmp_path: Path) -> None:
    raw = "".join(f"<doc><docno>{n}</docno></doc> " for n in range(5))
    assert list(values(tmp_path / "a.txt", raw)) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("<DOC>\n<DOCNO>1</DOCNO>\n", "a.trec:1: <DOC> is not closed by </DOC>."),
        ("\n<DOC>\n<DOC>\n", "a.trec:2: <DOC> is not closed by </DOC> before the next in line 3."),
        ("<DOC>\n<TEXT>x</TEXT></DOC>", "a.trec:1: has no id; give each document one of docno, id"),
        ("<DOC><DOCNO> </DOCNO></DOC>", "a.trec:1: has no id"),
    ],
)
def test_refused_trec_files(raw: str, message: str, tmp_path: Path) -> None:
    refused(tmp_path / "a.trec", raw, message)


def test_text_outside_of_trec_documents_is_reported(tmp_path: Path) -> None:
    raw = "<?xml?>\n<DOC><DOCNO>1</DOCNO></DOC>\nbetween\n<DOC><DOCNO>2</DOCNO></DOC>\n"
    assert notes_of(tmp_path / "a.trec", raw) == [
        "a.trec:1: what is outside of <DOC> and </DOC> is ignored, here and below."
    ]


# --- SMART


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (".I 001\n.W\nx\n", {"001": {"text": "x"}}),
        (".I  1 \n.T  \nt\n.W\t\nx", {"1": {"title": "t", "text": "x"}}),
        (".I 1\n.W\nx\n.W\ny\n", {"1": {"text": "x\ny"}}),
        (".I 1\n.W\na .W b\n.Wx\n .W\n.. .\n", {"1": {"text": "a .W b\n.Wx\n .W\n.. ."}}),
        (".I 1\n.A\na\n.B\nb\n.K\nk\n.N\nn\n.C\nc\n", {
            "1": {"author": "a", "bibliography": "b", "keywords": "k", "notes": "n",
                  "categories": "c"}}),
        (".I 1\n.T\n.A\n.W\n\n.I 2\n", {"1": {}, "2": {}}),
        ("\n\n.I 1\n\n.W\n\nx\n\ny\n\n", {"1": {"text": "x\n\ny"}}),
    ],
)  # fmt: skip
def test_smart_records(raw: str, expected: dict[str, Any], tmp_path: Path) -> None:
    assert values(tmp_path / "cisi.all", raw) == expected


def test_cross_references_are_ignored_and_reported_once(tmp_path: Path) -> None:
    raw = ".I 1\n.X\n1 5 1\n.W\nx\n.I 2\n.X\n1 5 2\n"
    assert notes_of(tmp_path / "a.all", raw) == [
        "a.all:1: cross references (.X) are ignored, here and below."
    ]
    with pytest.warns(FirstpageWarning):
        assert values(tmp_path / "a.all", raw) == {"1": {"text": "x"}, "2": {}}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (".I 1\nlost\n.W\n", "a.all:2: 'lost' belongs to no section"),
        ("x\n.I 1\n", "a.all:1: 'x' belongs to no section"),
        (".W\nx\n", "a.all:1: .W stands before the first '.I'"),
        (".I\n.W\nx\n", "a.all:1: the id is empty"),
        ("", "a.all: contains no record"),
    ],
)
def test_refused_smart_files(raw: str, message: str, tmp_path: Path) -> None:
    refused(tmp_path / "a.all", raw, message, format="smart")


@given(
    st.lists(
        st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]))
        .map(str.strip)
        .filter(lambda line: not line.startswith(".")),
        min_size=1,
    )
)
def test_smart_text_comes_back(tmp_path: Path, lines: list[str]) -> None:
    records = "".join(f".I {n}\n.W\n{line}\n" for n, line in enumerate(lines))
    found = values(tmp_path / "a", records, format="smart")
    assert [document.get("text", "") for document in found.values()] == lines


@pytest.mark.parametrize(
    "raw", [".I 1\n.W\ncaf\xe9\n.I 2\n.W\nna\xefve\n", "<DOC><DOCNO>1</DOCNO>\ncaf\xe9</DOC>"]
)
def test_latin_1_is_read_and_reported_once(raw: str, tmp_path: Path) -> None:
    (note,) = notes_of(tmp_path / "a", raw.encode("latin-1"))
    assert note.startswith("a:")
    assert note.endswith("is not UTF-8; such lines are read as Latin-1.")
    with pytest.warns(FirstpageWarning):
        assert values(tmp_path / "a", raw.encode("latin-1"))["1"] == {"text": "café"}
    assert values(tmp_path / "a", raw)["1"] == {"text": "café"}


# --- folders


def folder_of(path: Path, files: dict[str, str | bytes]) -> Path:
    for name, raw in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return path


def test_folder(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "docs",
        {
            "b.txt": "bee\n",
            "a/z.md": "# zed",
            "a.htm": "<title>A</title>page",
            "a-b/c.HTML": "<p>c",
            "d.txt.gz": gzip.compress(b"\xef\xbb\xbfdee"),
            "e.txt": "",
        },
    )
    empty = f"{folder}: 1 of 6 files is empty, and found by no search: e.txt."
    with pytest.warns(FirstpageWarning, match=re.escape(empty)):
        found = list(read_documents([folder]))
    assert {document.id: document.values for document in found} == {
        "a-b/c.HTML": {"text": "c"},
        "a.htm": {"title": "A", "text": "page"},
        "a/z.md": {"title": "zed"},
        "b.txt": {"text": "bee"},
        "d.txt.gz": {"text": "dee"},
        "e.txt": {},
    }
    assert [document.id for document in found] == sorted(document.id for document in found)
    assert found[0].location == str(folder / "a-b/c.HTML")
    with pytest.warns(FirstpageWarning, match=re.escape(empty)):
        assert list(read_documents([folder], format="folder")) == found


def test_other_files_of_a_folder_are_counted(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "d", {"a.txt": "a", "b.pdf": b"%", "c/d.png": b"\x89"})
    (folder / "loop").symlink_to(folder)
    (folder / "broken.txt").symlink_to(folder / "nowhere")
    with pytest.warns(FirstpageWarning) as caught:
        assert [document.id for document in read_documents([folder])] == ["a.txt"]
    assert [str(warning.message) for warning in caught] == [
        f"{folder}: 4 files are not read; documents are .txt, .md, .markdown, .html, .htm files."
    ]


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"a.txt.gz": gzip.compress(b"abc")[:-3]}, {}, "d/a.txt.gz: the .gz file is damaged"),
        ({"a.pdf": b""}, {}, "d: contains no .txt, .md, .markdown, .html"),
        ({"a.txt": b"x"}, {"id_field": "x"}, "d: the id of a file in a folder is its path"),
        ({"a.txt": b"x"}, {"format": "trec"}, "d: is a folder; name the trec files in it"),
        ({"a\tb.txt": b"x"}, {}, "d/a\tb.txt: the id contains the character '\\t'"),
        ({"a.html": b"&#" + b"9" * 5000 + b";"}, {}, "d/a.html: cannot be parsed as HTML"),
    ],
)
def test_refused_folders(
    files: dict[str, str | bytes], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "d", files)
    with pytest.raises(DataError) as caught:
        list(read_documents([folder], **options))
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message)


def test_encodings_of_a_folder(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "d",
        {
            "bytes.txt": bytes(range(256)),
            "euro.html": "<p>5 €".encode("cp1252"),
            "greek.html": "<meta charset=iso-8859-7>λ".encode("iso-8859-7"),
            "latin.md": b"# caf\xe9",
            "mark.txt": "\ufeffdé".encode(),
            "mixed.txt": b"\xff\xc3\xa9",
            "new.txt": "né",
            "sixteen.txt": "dé".encode("utf-16"),
            "sixty.txt": "\ufeffdé".encode("utf-16-be"),
            "utf32.txt": "dé".encode("utf-32"),
        },
    )
    with pytest.warns(FirstpageWarning) as caught:
        values = {document.id: document.values for document in read_documents([folder])}
    assert values.pop("latin.md") == {"title": "café"}
    assert {name: value["text"] for name, value in values.items()} == {
        "euro.html": "5 €",
        "greek.html": "λ",
        "mark.txt": "dé",
        "mixed.txt": "ÿÃ©",
        "new.txt": "né",
        "sixteen.txt": "dé",
        "sixty.txt": "dé",
        "utf32.txt": "dé",
    }
    assert [str(warning.message) for warning in caught] == [
        f"{folder}: 1 of 10 files is left out, since NUL bytes are not text: bytes.txt.",
        f"{folder}: 3 of 10 files are not UTF-8, and read as Windows-1252: euro.html, latin.md, "
        "mixed.txt.",
    ]


def test_invalid_bytes_of_a_declared_encoding_are_counted(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "d",
        {
            "a.txt": b"\xef\xbb\xbfx\xe9",
            "b.html": b"<meta charset=euc-kr>x\xff",
            "c.txt": "x\ufffd".encode(),
            "d.txt": "x\ufffd".encode("utf-16"),
            "e.txt": "x".encode("utf-16") + b"y",
        },
    )
    with pytest.warns(FirstpageWarning) as caught:
        texts = [document.values["text"] for document in read_documents([folder])]
    assert texts == ["x\ufffd"] * 5
    assert [str(warning.message) for warning in caught] == [
        f"{folder}: 3 of 5 files are invalid in the declared encoding, and read with U+FFFD for "
        "the invalid bytes: a.txt, b.html, e.txt."
    ]


def test_a_long_file_of_a_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_FILE_BYTES", 1000)
    folder = folder_of(tmp_path / "d", {"a.txt.gz": gzip.compress(b"x" * 1000)})
    assert len(next(read_documents([folder])).values["text"]) == 1000  # type: ignore[arg-type]
    folder_of(folder, {"a.txt.gz": gzip.compress(b"x" * 1001)})
    with pytest.raises(DataError, match=r"a\.txt\.gz: is longer than 1,000 bytes"):
        list(read_documents([folder]))


# --- what is refused


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.jsonl", b'{"id": 1}\n{"id": \n', "a.jsonl:2: the line is not valid JSON"),
        ("a.jsonl", b'{"id": 1, "x": ' + b"[" * 10**6, "a.jsonl:1: the line is not valid JSON"),
        ("a.jsonl", b'{"id": 1, "x": ' + b"9" * 10**4 + b"}", "a.jsonl:1: the line is not valid"),
        ("a.jsonl", b'{"id": 1, "x": "\xe9"}\n', "a.jsonl:1: is not UTF-8 text (byte 17)"),
        ("a.jsonl", b"[1]\n", "a.jsonl:1: a line must be one JSON object"),
        ("a.jsonl", b"\x00\x01\x02", "a.jsonl:1: the line is not valid JSON"),
        ("a.csv", b"id,x\n1,2,3\n", "a.csv:2: has more cells than the header"),
        ("a.csv", b"first\tsecond\n", None),
        ("a.txt", b"once upon a time", "a.txt: its format is recognized neither by its name nor"),
        ("a.txt", bytes(range(256)), "a.txt: its format is recognized neither"),
        ("a.bin", b"\x7fELF\x00", "a.bin: its format is recognized neither"),
        ("a.json", b'[{"id": 1}]', "a.json: its format is recognized neither"),
        ("a.txt", b"", "a.txt: is empty."),
        ("a.txt", b" \n", "a.txt: is empty."),
        ("a.txt", b"\xff\xfe<\x00D\x00", "a.txt: is UTF-16 text; save it as UTF-8."),
    ],
)
def test_refused_files(name: str, raw: bytes, message: str | None, tmp_path: Path) -> None:
    if message is None:
        assert notes_of(tmp_path / name, raw) == ["a.csv: contains no documents."]
    else:
        refused(tmp_path / name, raw, message)


def test_an_unknown_format_lists_the_formats(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path / "a.xyz", "words")
    assert all(name in str(caught.value) for name in documents.FORMATS)
    with pytest.raises(DataError, match=r"^format must be one of jsonl, .*, folder; got 'xml'\.$"):
        read_documents([tmp_path], format="xml")
    with pytest.raises(DataError, match=r"a\.xyz: is not a folder"):
        read(tmp_path / "a.xyz", "words", format="folder")
    with pytest.raises(DataError, match="no such file"):
        list(read_documents([tmp_path / "nothing.jsonl"]))


def test_lines_and_records_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(row_reader, "CHUNK_BYTES", 100)
    for name in ("a.jsonl", "a.csv"):
        refused(tmp_path / name, b"x" * 5000, f"{name}:1: a line is longer than 1,000 bytes")
    monkeypatch.setattr(smart, "MAX_RECORD_CHARACTERS", 3000)
    monkeypatch.setattr(trec_text, "MAX_RECORD_CHARACTERS", 3000)
    lines = "word\n" * 1000
    refused(tmp_path / "a", f".I 1\n.W\n{lines}", "a:1: is longer than 3,000 characters")
    refused(tmp_path / "a", f"\n<DOC>\n{lines}", "a:2: is longer than 3,000 characters")


@pytest.mark.parametrize("name", ["a.jsonl", "a.trec", "a.all"])
def test_memory_does_not_grow_with_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(SAME[name].replace("red", "red " * 500) * 2000)
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_documents([path]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 4000
    assert peak < 1 << 20 < path.stat().st_size / 5


@given(st.binary(max_size=60), st.sampled_from([*documents.FORMATS][:-1]))
def test_any_bytes_give_documents_or_one_line(tmp_path: Path, raw: bytes, format: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        try:
            read(tmp_path / "a", raw, format=format)
        except DataError as error:
            assert "\n" not in str(error)


@given(st.data(), st.sampled_from([*SAME]))
def test_damaged_files_give_documents_or_one_line(
    tmp_path: Path, data: st.DataObject, name: str
) -> None:
    raw = bytearray(SAME[name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        try:
            read(tmp_path / name, bytes(raw))
        except DataError as error:
            assert "\n" not in str(error)


@pytest.mark.data
def test_cranfield(real_data: Path) -> None:
    found = {
        document.id: document
        for document in read_documents([real_data / "cranfield/cran.all.1400"])
    }
    assert list(found) == [str(n) for n in range(1, 1401)]
    assert [name for name, document in found.items() if not document.values] == ["471", "995"]
    assert found["1"].values["author"] == "brenckman,m."
    assert (
        found["1"].values["title"]
        == "experimental investigation of the aerodynamics of a\nwing in a slipstream ."
    )
    assert {name for document in found.values() for name in document.values} == {
        "title",
        "author",
        "bibliography",
        "text",
    }
