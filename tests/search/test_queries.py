"""Queries of every format: ids, texts, and one line for what is refused."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.search import queries
from firstpage.search.queries import Queries, read_queries

EXPECTED = {"007": "red shoes", "8": 'a "big" coat'}
TOPICS = """<top>
<num> Number: 007
<title> Topic: red
 shoes

<desc> Description:
Shoes that are &lt;red&gt;.

<narr> Narrative:
Not blue.
</top>

<top><num>8</num><title>a "big" coat</title><desc>Coats.</desc><narr></narr></top>
"""
SAME = {
    "a.jsonl": '{"qid": "007", "text": "red shoes"}\n{"qid": 8, "text": "a \\"big\\" coat"}\n',
    "a.csv": 'query_id,query\n007,red shoes\n8,"a ""big"" coat"\n',
    "a.tsv": 'id\ttext\n007\tred shoes\n8\t"a ""big"" coat"\n',
    "labeling.csv": 'query,text\n007,red shoes\n8,"a ""big"" coat"\n',
    "labeling.tsv": 'query\ttext\n007\tred shoes\n8\t"a ""big"" coat"\n',
    "cases.tsv": '"Text"\tQUERY\nred shoes\t007\n"a ""big"" coat"\t8\n',
    "headless.tsv": '007\tred shoes\n8\ta "big" coat\n',
    "topics.301": TOPICS,
    "a.qry": '.I 007\n.W\nred shoes\n.I 8\n.W\na "big" coat\n',
}


def read(path: Path, raw: str | bytes, **options: Any) -> Queries:
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return read_queries(path, **options)


def refused(path: Path, raw: str | bytes, message: str, **options: Any) -> None:
    """Check that reading raises one line that begins with a message, after the folder."""
    with pytest.raises(DataError) as caught:
        read(path, raw, **options)
    text = str(caught.value)
    assert text.removeprefix(f"{path.parent}/").startswith(message), text
    assert "\n" not in text


def notes_of(path: Path, raw: str | bytes, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(path, raw, **options)
    assert all(issubclass(warning.category, FirstpageWarning) for warning in caught)
    return [str(warning.message).replace(f"{path.parent}/", "") for warning in caught]


@pytest.mark.parametrize("name", SAME)
def test_formats_agree(name: str, tmp_path: Path) -> None:
    assert dict(read(tmp_path / name, SAME[name])) == EXPECTED
    crlf = "\ufeff" + SAME[name].replace("\n", "\r\n").removesuffix("\r\n")
    assert dict(read(tmp_path / name, crlf)) == EXPECTED
    packed = tmp_path / f"{name}.gz"
    assert dict(read(packed, gzip.compress(SAME[name].encode()))) == EXPECTED
    with pytest.raises(DataError, match="damaged or truncated"):
        read(packed, gzip.compress(SAME[name].encode())[:-9])


@pytest.mark.parametrize("name", SAME)
def test_ordinal_numbers(name: str, tmp_path: Path) -> None:
    numbered = read(tmp_path / name, SAME[name], numbering="ordinal")
    assert dict(numbered) == {"1": "red shoes", "2": 'a "big" coat'}
    assert numbered.source == str(tmp_path / name)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    polars.DataFrame({"_id": [7, 8], "Query": ["red", None]}).write_parquet(path)
    with pytest.warns(FirstpageWarning, match="1 of 2 queries have no text"):
        assert dict(read_queries(path)) == {"7": "red", "8": ""}


@pytest.mark.parametrize("id_key", ["id", "query_id", "qid", "_id", "QID"])
@pytest.mark.parametrize("text_key", ["text", "query", "title", "Title"])
def test_every_key(id_key: str, text_key: str, tmp_path: Path) -> None:
    row = json.dumps({text_key: "t", id_key: " 1 "})
    assert dict(read(tmp_path / "a.jsonl", row)) == {"1": "t"}
    for separator, name in ((",", "a.csv"), ("\t", "a.tsv")):
        table = f"{text_key}{separator}{id_key}\nt{separator}1\n"
        assert dict(read(tmp_path / name, table)) == {"1": "t"}


def test_text_comes_before_query_and_title_and_other_fields_are_reported(tmp_path: Path) -> None:
    raw = '{"id": 1, "title": "a", "query": "b", "text": "c", "metadata": {}}\n'
    assert notes_of(tmp_path / "a.jsonl", raw) == [
        "a.jsonl:1: only 'text' is the query; not read: 'title', 'query', 'metadata'."
    ]
    with pytest.warns(FirstpageWarning):
        assert dict(read(tmp_path / "a.jsonl", raw)) == {"1": "c"}
    with pytest.warns(
        FirstpageWarning
    ):  # the empty text of the first row does not select the title
        assert read(tmp_path / "a.csv", "id,title,text\n1,a,\n2,b,c\n").texts == ("", "c")
    cisi = ".I 1\n.T\ntitle\n.W\nwords\n"
    with pytest.warns(FirstpageWarning, match="not read: 'title'"):
        assert dict(read(tmp_path / "cisi.qry", cisi)) == {"1": "words"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("title",), "red shoes"),
        ("desc", "Shoes that are <red>."),
        (("title", "description"), "red shoes Shoes that are <red>."),
        (["narrative", "title"], "Not blue. red shoes"),
    ],
)
def test_parts_of_topics(parts: Any, expected: str, tmp_path: Path) -> None:
    topic = TOPICS[: TOPICS.index("</top>") + len("</top>")]
    assert dict(read(tmp_path / "topics", topic, topic_parts=parts)) == {"007": expected}


def test_lines_are_read_when_asked_for_only(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    refused(path, "red shoes\ncoat\n", "a.txt: its format is recognized neither by its name nor")
    with pytest.raises(DataError) as caught:
        read_queries(path)
    assert all(name in str(caught.value) for name in queries.FORMATS)
    assert dict(read_queries(path, format="lines")) == {"1": "red shoes", "2": "coat"}
    (note,) = notes_of(path, "red\n \ncoat\n", format="lines")
    assert note == (
        "a.txt: 1 of 3 queries have no text and so no candidates; the first is '2' (a.txt:2)."
    )


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.jsonl", '{"id": 1, "text": "x"}\n{"id": 2, "text": ""}\n{"id": 3, "text": null}'),
        ("a.csv", 'id,text\n1,x\n2,\n3," "\n'),
        ("a.tsv", "1\tx\n2\t\n3\t \n"),
        ("a.qry", ".I 1\n.W\nx\n.I 2\n.W\n.I 3\n.W\n\n"),
        (
            "a.top",
            "".join(f"<top><num>{n}<title>{t}</top>" for n, t in zip("123", "x  ", strict=True)),
        ),
    ],
)
def test_empty_queries_are_kept_and_reported_in_one_line(
    name: str, raw: str, tmp_path: Path
) -> None:
    (note,) = notes_of(tmp_path / name, raw)
    assert note.startswith(f"{name}: 2 of 3 queries have no text and so no candidates")
    with pytest.warns(FirstpageWarning):
        assert dict(read(tmp_path / name, raw)) == {"1": "x", "2": "", "3": ""}


def test_control_characters_and_latin_1(tmp_path: Path) -> None:
    with pytest.warns(FirstpageWarning, match="control characters"):
        found = read(tmp_path / "a.jsonl", '{"id": 1, "text": "a\\u0000b"}')
    assert found.texts == ("a b",)
    with pytest.warns(FirstpageWarning, match="a:3: is not UTF-8; such lines are read as Latin-1"):
        assert read(tmp_path / "a", b".I 1\n.W\ncaf\xe9\n").texts == ("café",)


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.jsonl", '{"text": "x"}', "a.jsonl:1: the query has no id; give it one of id, _id, qid"),
        ("a.jsonl", '{"id": null, "text": "x"}', "a.jsonl:1: the query has no id"),
        ("a.jsonl", '{"id": 1}', "a.jsonl:1: the query has no text; give it one of text, query"),
        (
            "a.jsonl",
            '{"id": 1, "text": ["x"]}',
            "a.jsonl:1: the text of the query must be a string; got list",
        ),
        (
            "a.jsonl",
            '{"id": 1, "text": true}',
            "a.jsonl:1: the text of the query must be a string; got bool",
        ),
        ("a.jsonl", '{"id": ', "a.jsonl:1: the line is not valid JSON"),
        ("a.jsonl", "\n", "a.jsonl: contains no queries"),
        (
            "a.csv",
            "id,x\n1,2\n",
            "a.csv:2: the query has no text; give it one of text",
        ),
        ("a.csv", "name,text\n1,2\n", "a.csv:2: the query has no id"),
        ("a.csv", "id,text\n1,2,3\n", "a.csv:2: has more cells than the header"),
        ("a.csv", "id,text,text\n1,2,3\n", "a.csv:1: the column 'text' occurs twice"),
        ("a.csv", "id,text\n,x\n", "a.csv:2: the query has no id"),
        ("a.tsv", "1\tx\n2\n", "a.tsv:2: has 1 cells; lines of a table without header are an id"),
        ("a.tsv", "1\tx\ty\n", "a.tsv:1: has 3 cells"),
        ("a.tsv", b"1\t\xff\n", "a.tsv:1: is not UTF-8 text"),
        ("a.qry", ".I 1\n.A\nx\n", "a.qry:1: the query has no text"),
        ("a.top", "<top>\n<num>1\n", "a.top:1: <top> is not closed by </top>."),
        ("a.top", "<top><num>1</top>", "a.top:1: the topic has no <title>; it has num."),
        ("a.top", "\n<top><title>x</top>", "a.top:2: the query has no id"),
        ("a.txt", "", "a.txt: is empty."),
        ("a.txt", bytes(range(256)), "a.txt: its format is recognized neither"),
    ],
)
def test_refused_queries(name: str, raw: str | bytes, message: str, tmp_path: Path) -> None:
    refused(tmp_path / name, raw, message)


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.tsv", "1\tx\n2\ty\n1\tz\n", "a.tsv:3: the query id '1' occurs also in {}/a.tsv:1"),
        ("a.qry", ".I 1\n.W\n.I 1\n.W\n", "a.qry:3: the query id '1' occurs also in {}/a.qry:1"),
    ],
)
def test_repeated_ids_name_both_lines(name: str, raw: str, message: str, tmp_path: Path) -> None:
    refused(tmp_path / name, raw, message.format(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        assert read_queries(tmp_path / name, numbering="ordinal").ids[:2] == ("1", "2")


def test_parameters_are_checked(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^format must be one of jsonl, .*, lines; got 'xml'\.$"):
        read_queries(tmp_path / "a", format="xml")
    with pytest.raises(DataError, match=r"^numbering must be one of ids, ordinal; got 'no'\.$"):
        read_queries(tmp_path / "a", numbering="no")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no such file"):
        read_queries(tmp_path / "a")
    with pytest.raises(DataError, match="is a folder"):
        read_queries(tmp_path)


def test_queries_of_python_values() -> None:
    listed = Queries.from_list(["a", "b"], source="here")
    assert (listed.ids, listed.texts, listed.source, len(listed)) == (
        ("1", "2"),
        ("a", "b"),
        "here",
        2,
    )
    assert listed == Queries.from_mapping({"1": "a", "2": "b"})
    assert listed != Queries.from_mapping({"2": "b", "1": "a"})
    assert list(listed) == [("1", "a"), ("2", "b")]
    assert repr(Queries.from_list("abcd")) == "Queries(4: '1', '2', '3', ..)"
    assert repr(Queries((), ())) == "Queries(0)"
    assert Queries(["x"], ["y"]).ids == ("x",)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ids", "texts", "message"),
    [
        (("1",), (), "There are 1 ids of queries and 0 texts"),
        (("1", "1"), ("a", "b"), "The query id '1' occurs twice"),
        ((" 1",), ("a",), "without blanks around it"),
        (("",), ("a",), "the id is empty"),
        (("a\nb",), ("a",), "contains the character"),
        ((1,), ("a",), "The id of a query is a text"),
        (("1",), (2,), "The text of query '1' must be a string; got int"),
    ],
)
def test_refused_python_values(ids: Any, texts: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Queries(ids, texts)


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Z"]), min_size=1).filter(
            lambda name: name.casefold() not in queries.QUERY_ID_KEYS
        ),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Z"]), min_size=1),
        min_size=1,
    )
)
def test_tab_separated_queries_come_back(tmp_path: Path, texts: dict[str, str]) -> None:
    raw = "".join(f"{query}\t{text}\n" for query, text in texts.items())
    first = {cell.casefold().strip('"') for cell in next(iter(texts.items()))}
    if (
        raw.startswith("\ufeff")
        or first & set(queries.QUERY_ID_KEYS)
        or first == queries.LABELING_KEYS
    ):
        return
    assert dict(read(tmp_path / "a.tsv", raw)) == texts


@given(st.binary(max_size=60), st.sampled_from([*queries.FORMATS]))
def test_any_bytes_give_queries_or_one_line(tmp_path: Path, raw: bytes, format: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        try:
            read(tmp_path / "a", raw, format=format)
        except DataError as error:
            assert "\n" not in str(error)


@pytest.mark.data
def test_cranfield(real_data: Path) -> None:
    path = real_data / "cranfield" / "cran.qry"
    found = read_queries(path)
    assert len(found) == 225
    assert (found.ids[0], found.ids[2], found.ids[-1]) == ("001", "004", "365")
    assert (
        found.texts[2]
        == "what problems of heat conduction in composite slabs have been solved so\nfar ."
    )
    assert read_queries(path, numbering="ordinal").ids == tuple(str(n) for n in range(1, 226))
