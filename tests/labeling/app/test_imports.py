"""Imports: every format, every limit, and errors that name file:line."""

from __future__ import annotations

import gzip
import io
import math
from pathlib import Path
from typing import Any

import polars
import pytest

from firstpage.core.errors import DataError
from firstpage.data.formats import row_reader
from firstpage.data.formats.row_reader import ReadLimits
from firstpage.labeling.app.imports import bundle
from firstpage.labeling.app.imports.bundle import File, Sources, read
from firstpage.labeling.app.imports.pictures import MAX_BYTES, from_folder, from_uploads
from tests.labeling.app.site import Site, jsonl
from tests.narrow import present

PNG = b"\x89PNG\r\n\x1a\n" + b"rest of the picture"
TOPICS = b"""<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.
<narr> Narrative:
Relevant ones.
</top>
<top><num> Number: 302 <title> Polio </top>
"""
RUN = b"301 Q0 A 1 9.5 x\n301 Q0 B 2 8.5 x\n301 Q0 C 3 1 x\n999 Q0 Z 1 1 x\n"
COLLECTION = b"""<DOC>
<DOCNO> A </DOCNO>
<TITLE>On A &amp; more</TITLE>
<TEXT>
<P>First.</P>
<P>Second.</P>
</TEXT>
</DOC>
<DOC><DOCNO>B</DOCNO><TEXT>b</TEXT></DOC>
"""


def file(name: str, data: bytes) -> File:
    return File(name, io.BytesIO(data))


def sources(**files: Any) -> Sources:
    """Return the sources of an import; `run` is a single run."""
    run = files.pop("run", None)
    return Sources(**files, runs=() if run is None else (run,))


def table(**columns: list[Any]) -> bytes:
    """Return columns as Parquet."""
    buffer = io.BytesIO()
    polars.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def keys(parsed: bundle.Bundle) -> dict[str, list[str]]:
    return {q.key: [d.key for d in q.documents] for q in parsed.queries}


ROWS: list[dict[str, Any]] = [
    {"query": "q1", "document": "a", "text": "A", "title": "T", "prior": 2.5},
    {"query": "q1", "document": "b", "html": "<b>B</b>"},
    {"query": "q2", "document": "a", "text": "A"},
]


def test_rows_of_json_lines() -> None:
    queries = jsonl({"query": "q1", "text": "one", "description": "more"}, {"query": "q2"})
    parsed = read(
        sources(queries=file("q.jsonl", queries), documents=file("d.jsonl", jsonl(*ROWS)))
    )
    assert keys(parsed) == {"q1": ["a", "b"], "q2": ["a"]}
    first = parsed.queries[0]
    assert (first.text, first.description) == ("one", "more")
    assert [d.kind for d in first.documents] == ["text", "html"]
    assert first.documents[0].prior == 2.5
    assert parsed.queries[1].text == "q2", "a query without a text is shown by its id"


def test_csv_parquet_and_gzip_give_the_same_rows(tmp_path: Path) -> None:
    expected = keys(read(sources(documents=file("d.jsonl", jsonl(*ROWS)))))
    table = polars.DataFrame([{**dict.fromkeys(ROWS[0]), "html": None, **r} for r in ROWS])
    packed = gzip.compress(jsonl(*ROWS))
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    for name, data in [
        ("d.csv", table.write_csv().encode()),
        ("d.tsv", table.write_csv(separator="\t").encode()),
        ("d.parquet", buffer.getvalue()),
        ("d.jsonl.gz", packed),
        ("D.JSONL", b"\xef\xbb\xbf" + jsonl(*ROWS)),
    ]:
        assert keys(read(sources(documents=file(name, data)))) == expected, name


def test_cards_and_lists() -> None:
    rows: list[dict[str, Any]] = [
        {"query": "q", "document": "a", "kind": "card", "title": "Lamp", "price": "9", "stock": 3},
        {"query": "q", "document": "b", "items": ["one", {"title": "two", "url": "http://x"}]},
    ]
    card, listed = read(sources(documents=file("d.jsonl", jsonl(*rows)))).queries[0].documents
    assert card.fields == {"price": "9", "stock": 3}
    assert listed.kind == "list"
    assert listed.fields == {"items": [{"title": "one"}, {"title": "two", "url": "http://x"}]}


def test_trec() -> None:
    parsed = read(
        sources(
            topics=file("topics", TOPICS),
            run=file("r.run", RUN),
            depth=2,
            collection=file("c.trectext", COLLECTION),
        )
    )
    assert keys(parsed) == {"301": ["A", "B"]}
    query = parsed.queries[0]
    assert query.text == "International Organized Crime"
    assert query.description == "Identify organizations. Relevant ones."
    first = query.documents[0]
    assert (first.title, first.body, first.prior) == ("On A & more", "First.\nSecond.", 9.5)


def test_a_run_of_ms_marco_is_ordered_by_its_ranks() -> None:
    parsed = read(
        sources(
            topics=file("topics", TOPICS),
            run=file("r.tsv", b"301\tB\t2\n301\tA\t1\n302\tA\t1\n"),
            collection=file("c.trectext", COLLECTION),
        )
    )
    assert keys(parsed) == {"301": ["A", "B"], "302": ["A"]}
    assert parsed.notes == (
        "r.tsv: lines of three fields are read as query, document and rank (MS MARCO).",
    )


def test_omissions_are_noted() -> None:
    parsed = read(
        sources(
            topics=file("topics", TOPICS),
            run=file("r.run", RUN),
            depth=2,
            collection=file("c.trectext", COLLECTION),
        )
    )
    assert parsed.notes == (
        "1 query ('302') left out: r.run has no documents of them.",
        "1 query ('999') of r.run left out: they are not among the queries.",
        "of 1 query in r.run, only the best 2 documents are imported.",
    )
    run = b"".join(b"%d Q0 A 1 1 x\n" % number for number in range(9))
    single_query = jsonl({"query": "0"})
    parsed = read(
        sources(
            queries=file("q.jsonl", single_query),
            run=file("r", run),
            collection=file("c", COLLECTION),
        )
    )
    assert parsed.notes[0].startswith("8 queries ('1', '2', '3' and 5 more) of r left out")
    assert read(sources(documents=file("d.jsonl", jsonl(*ROWS)))).notes == ()


def test_omissions_are_noted_by_the_api_and_the_page(site: Site) -> None:
    site.project(queries=0, opened=False)
    lena = site.client("lena")
    files = {
        "topics": ("t", TOPICS), "run": ("r.run", RUN.replace(b"301 Q0 C 3 1 x\n", b"")),
        "collection": ("c", COLLECTION),
    }  # fmt: skip
    csrf = {"csrf": lena.headers["X-CSRF-Token"]}
    page = lena.post("/p/books/preview/import", files=files, data=csrf)
    assert "1 query (&#39;302&#39;) left out: r.run has no documents of them." in page.text
    page = lena.post("/p/books/import", files=files, data=csrf)
    assert "Imported." in page.text
    assert "1 query (&#39;302&#39;) left out: r.run has no documents of them." in page.text
    lena.post("/api/v1/projects", json={"slug": "other"})
    reply = lena.post("/api/v1/projects/other/import", files=files).json()
    assert reply["queries"] == 1
    assert "left out" in reply["notes"][0]


@pytest.mark.parametrize(("name", "second"), [
    ("c", b"<DOC><DOCNO>B</DOCNO><TEXT>another</TEXT></DOC>\n"),
    ("c.jsonl", jsonl({"id": "B", "text": "another"})),
])  # fmt: skip
def test_a_document_with_two_texts_is_refused(name: str, second: bytes) -> None:
    first = second.replace(b"another", b"one")
    run = b"1 Q0 B 1 1 x\n"
    same = read(sources(run=file("r", run), collection=file(name, first + first)))
    assert same.queries[0].documents[0].body == "one"
    with pytest.raises(DataError, match=rf"^{name}:2: duplicate document 'B' with another text"):
        read(sources(run=file("r", run), collection=file(name, first + second)))


@pytest.mark.parametrize(("files", "message"), [
    ({"collection": b"<DOC><DOCNO>A</DOCNO><TEXT>a\x00b</TEXT></DOC>"}, "collection:1: 'text' contains"),
    ({"topics": b"<top><num> 1 <title> t <desc> a\x00b </top>"}, "topics:1: 'desc' contains"),
    ({"run": b"%s Q0 A 1 1 x" % (b"q" * 201)}, "run:1: 'query' has 201 characters"),
])  # fmt: skip
def test_texts_of_trec_files_are_checked(files: dict[str, bytes], message: str) -> None:
    contents = {"run": b"1 Q0 A 1 1 x\n", "collection": b"<DOC><DOCNO>A</DOCNO></DOC>\n", **files}
    with pytest.raises(DataError) as error:
        read(sources(**{name: file(name, data) for name, data in contents.items()}))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["query", "document", "title", "text"])
def test_lone_surrogates_are_refused(name: str) -> None:
    row = jsonl({**ROWS[0], name: "x\ud800"})
    with pytest.raises(DataError, match=rf"^d\.jsonl:1: '{name}' contains a lone surrogate"):
        read(sources(documents=file("d.jsonl", row)))


def test_a_letor_file_with_texts() -> None:
    letor = b"2 qid:1 1:0.5 # docid = A inc = 1\n0 qid:1 # B\n# only a comment\n"
    texts = jsonl({"docid": "A", "text": "a"}, {"id": "B", "text": "b"}, {"id": "C"})
    parsed = read(sources(letor=file("x.txt", letor), collection=file("c.jsonl", texts)))
    assert keys(parsed) == {"1": ["A", "B"]}


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no JSON", {"documents": ("d.jsonl", jsonl(ROWS[0]) + b"{")}, "d.jsonl:2: the line is not valid JSON"),
    ("an array", {"documents": ("d.jsonl", b"[1]")}, "one JSON object"),
    ("deep", {"documents": ("d.jsonl", b"[" * 100_000)}, "d.jsonl:1"),
    ("no document", {"documents": ("d.jsonl", jsonl({"query": "q"}))}, "d.jsonl:1: the id of the document"),
    ("twice", {"documents": ("d.jsonl", jsonl(ROWS[0], ROWS[0]))}, "d.jsonl:2: duplicate document"),
    ("prior", {"documents": ("d.jsonl", jsonl({**ROWS[0], "prior": "x"}))}, "prior must be a number"),
    ("kind", {"documents": ("d.jsonl", jsonl({**ROWS[0], "kind": "x"}))}, "kind must be one of"),
    ("NUL", {"documents": ("d.jsonl", jsonl({**ROWS[0], "text": "\x00"}))}, "d.jsonl:1: 'text'"),
    ("long key", {"documents": ("d.jsonl", jsonl({**ROWS[0], "query": "x" * 201}))}, "at most 200"),
    ("not UTF-8", {"documents": ("d.csv", b"query,document\n\xff,a")}, "d.csv:2: is not UTF-8"),
    ("cells", {"documents": ("d.csv", b"query,document\n1,2,3")}, "d.csv:2: has more cells"),
    ("quote", {"documents": ("d.csv", b'query,document\n"1')}, "d.csv:2"),
    ("no parquet", {"documents": ("d.parquet", b"PAR1nonsense")}, "d.parquet"),
    ("format", {"documents": ("d.docx", b"x")}, "rows are read from"),
    ("gzip", {"documents": ("d.jsonl.gz", gzip.compress(b"x" * 99)[:20])}, "damaged or truncated"),
    ("strange query", {"queries": ("q.jsonl", jsonl({"query": "other"})),
                       "documents": ("d.jsonl", jsonl(*ROWS))}, "which is not among the queries"),
    ("queries alone", {"queries": ("q.jsonl", jsonl({"query": "x"}))}, "no documents"),
    ("nothing", {}, "nothing to import"),
    ("no texts", {"run": ("r", RUN)}, "give their texts"),
    ("run", {"run": ("r", b"1 Q0 A 1"), "collection": ("c", COLLECTION)}, "r:1: the line has 4 fields instead of 6"),
    ("score", {"run": ("r", b"1 Q0 A 1 nan x"), "collection": ("c", COLLECTION)}, "r:1: the score"),
    ("text missing", {"run": ("r", RUN), "collection": ("c", COLLECTION)}, "'C'"),
    ("texts twice", {"documents": ("d.jsonl", jsonl(*ROWS)), "collection": ("c", COLLECTION)},
     "a collection has the texts of runs or a LETOR file, and documents have their own"),
    ("open block", {"topics": ("t", b"<top>\n<num> 1"), "run": ("r", RUN),
                    "collection": ("c", COLLECTION)}, "t:1: <top> is not closed by </top>"),
    ("letor", {"letor": ("l", b"1 1:2"), "collection": ("c", COLLECTION)}, "l:1: a line must start"),
    ("empty qid", {"letor": ("l", b"1 qid: # docid = A\n"), "collection": ("c", COLLECTION)}, "l:1: the id of the query is empty"),
    ("control qid", {"letor": ("l", b"1 qid:\x01 # docid = A\n"), "collection": ("c", COLLECTION)}, "l:1: the id of the query contains the character '\\x01'"),
    ("control num", {"topics": ("t", b"a\x01\twords\n"), "run": ("r", RUN), "collection": ("c", COLLECTION)}, "t:1: the id of the query contains the character"),
    ("infinite id", {"documents": ("d.parquet", table(query=["q"], document=[math.inf], text=["x"]))}, "the id of the document is missing; name its column 'document'"),
    ("id that is not a number", {"documents": ("d.parquet", table(query=["q", "q"], document=[1.0, math.nan], text=["x", "y"]))}, "d.parquet: row 2: the id of the document is missing"),
    ("gold_questions", {"gold_questions": ("g.jsonl", jsonl({"query": "q", "left": "a", "right": "b", "outcome": 7}))},
     "g.jsonl:1: outcome must be an integer from -1 to 1, or one of left, right, tie, equal; got 7"),
    ("much better", {"training": ("t.jsonl", jsonl({"text": "q", "left": "a", "right": "b", "outcome": 2}))},
     "t.jsonl:1: outcome must be an integer from -1 to 1"),
    ("picture", {"documents": ("d.jsonl", jsonl({**ROWS[0], "image": "x.png"}))}, "is missing; add its file"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "files", "message"), BAD, ids=[b[0] for b in BAD])
def test_invalid_files_give_one_line_errors(case: str, files: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as error:
        read(sources(**{name: file(*content) for name, content in files.items()}))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["bomb.jsonl.gz", "bomb.parquet", "bomb.csv.gz"])
def test_decompression_bombs_are_stopped(name: str) -> None:
    if name.endswith("parquet"):
        buffer = io.BytesIO()
        rows = {
            "query": ["q"] * 75_000,
            "document": ["d"] * 75_000,
            "text": ["x" * 200] * 75_000,
        }
        polars.DataFrame(rows).write_parquet(buffer, compression="zstd")
        packed = buffer.getvalue()
    else:
        packed = gzip.compress(b"0" * 15_000_000)
    assert len(packed) < 1_000_000
    with pytest.raises(DataError, match=r"contains more than|a line is longer than"):
        read(sources(documents=file(name, packed)), ReadLimits(bytes=5_000_000))


def gzipped(*parts: bytes) -> bytes:
    """Return a gzip file with one member per part."""
    return b"".join(gzip.compress(part) for part in parts)


READ_AS = {  # the source and the file name
    "rows": ("documents", "d.jsonl.gz"), "table": ("documents", "d.csv.gz"),
    "topics": ("topics", "t.gz"), "run": ("run", "r.gz"), "letor": ("letor", "l.gz"),
    "qrels": ("qrels", "q.gz"), "gold_questions": ("gold_questions", "g.jsonl.gz"),
    "training": ("training", "p.tsv.gz"),
}  # fmt: skip


@pytest.mark.parametrize("kind", READ_AS)
def test_blank_lines_are_counted_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small gzip of newlines holds millions of lines, and each costs time."""
    calls = 0
    decoded = row_reader._decoded

    def counted(*given: Any) -> str:
        nonlocal calls
        calls += 1
        return decoded(*given)

    monkeypatch.setattr(row_reader, "_decoded", counted)
    given, name = READ_AS[kind]
    collection = {"collection": file("c", COLLECTION)} if kind in ("run", "letor") else {}
    bomb = gzipped(b"\n" * 5_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(DataError, match=rf"^{name}: contains more than 1,000 lines; split it\.$"):
        read(sources(**{given: file(name, bomb)}, **collection), ReadLimits(lines=1000))
    assert calls <= 1000


def test_a_collection_of_blank_lines_is_stopped() -> None:
    for name in ("c.gz", "c.jsonl.gz"):
        bomb = file(name, gzipped(b"<DOC>\n", b"\n" * 5_000_000))
        with pytest.raises(DataError, match=f"^{name}: contains more than 1,000 lines"):
            read(sources(run=file("r", RUN), collection=bomb), ReadLimits(lines=1000))


def parquet(height: int, width: int) -> bytes:
    """Return a Parquet file of empty cells."""
    buffer = io.BytesIO()
    polars.DataFrame({f"c{i}": [None] * height for i in range(width)}).write_parquet(buffer)
    return buffer.getvalue()


def test_rows_columns_and_cells_have_limits() -> None:
    wide = ",".join(f"c{i}" for i in range(11)).encode()
    for name, data, message in (
        ("d.jsonl", b"{}\n" * 101, "d.jsonl: contains more than 100 rows; split it."),
        ("d.csv", b"query\n" + b"q\n" * 101, "d.csv: contains more than 100 rows; split it."),
        ("d.csv", wide + b"\n", "d.csv:1: has 11 columns; at most 10 are read."),
        ("d.parquet", parquet(101, 1), "d.parquet: contains more than 100 rows; split it."),
        ("d.parquet", parquet(1, 11), "d.parquet: contains more than 10 columns; split it."),
        ("d.parquet", parquet(90, 10), "d.parquet: contains more than 500 cells; split it."),
    ):
        limits = ReadLimits(rows=100, columns=10, cells=500)
        with pytest.raises(DataError) as error:
            list(row_reader.read_rows(name, io.BytesIO(data), limits))
        assert str(error.value) == message
    assert (
        len(list(row_reader.read_rows("d.jsonl", io.BytesIO(b"{}\n" * 100), ReadLimits(rows=100))))
        == 100
    )


def test_a_parquet_file_of_nothing_but_rows_is_stopped() -> None:
    """Empty cells take no bytes, so a limit on bytes does not suffice."""
    with pytest.raises(DataError, match="contains more than 1,000,000 rows"):
        read(sources(documents=file("d.parquet", parquet(1_000_001, 1))))


def test_a_header_of_many_columns_is_read_fast() -> None:
    header = b",".join(b"c%d" % i for i in range(200_000))
    with pytest.raises(DataError, match=r"^d\.csv:1: has 200,000 columns; at most 1,000 are read"):
        read(sources(documents=file("d.csv", header + b"\n1,2\n")))


def test_unclosed_tags_are_parsed_in_linear_time() -> None:
    block = b"<DOC><DOCNO>A</DOCNO>" + b"<TEXT><TITLE>" * 100_000 + b"</DOC>\n"
    parsed = (
        read(sources(run=file("r", b"1 Q0 A 1 1 x\n"), collection=file("c", block)))
        .queries[0]
        .documents[0]
    )
    assert (parsed.key, parsed.title, parsed.body) == ("A", "", "")


def test_the_elements_of_a_document() -> None:
    block = (
        b"<DOC><docno>A</DOCNO><HEAD>never closed <TITLE>one</title>"
        b"<TEXT>first <TITLE>inside</TITLE></TEXT></TEXT><BODY>second</BODY><TEXT>third</TEXT></DOC>\n"
        b"<DOC><DOCNO>B</DOCNO>no element <HEAD>but this</HEAD> one</DOC>\n"
    )
    run = b"1 Q0 A 1 2 x\n1 Q0 B 2 1 x\n"
    first, second = (
        read(sources(run=file("r", run), collection=file("c", block))).queries[0].documents
    )
    assert (first.title, first.body) == ("one", "never closed\nfirst  inside\nthird\n\nsecond")
    assert (second.title, second.body) == ("but this", "no element\none")


def test_a_line_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "MAX_LINE_BYTES", 1000)
    with pytest.raises(DataError, match=r"d\.jsonl:1: a line is longer than"):
        read(sources(documents=file("d.jsonl", b"x" * 200_000)))


def test_image_types_are_determined_by_content(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(PNG)
    (tmp_path / "images" / "evil.png").write_bytes(b"<svg onload='x'>")
    (tmp_path / "images" / "big.png").write_bytes(PNG + b"x" * MAX_BYTES)
    (tmp_path / "secret.png").write_bytes(PNG)
    pictures = from_folder(tmp_path / "images")
    assert pictures.by_digest[pictures.digest("d:1", "a.png")][0] == "image/png"
    for name in ("../secret.png", "/etc/passwd", str(tmp_path / "secret.png"), "none.png"):
        with pytest.raises(DataError, match="is missing; add its file"):
            pictures.digest("d:1", name)
    with pytest.raises(DataError, match="is not a PNG"):
        pictures.digest("d:1", "evil.png")
    with pytest.raises(DataError, match="shrink it"):
        pictures.digest("d:1", "big.png")
    assert from_uploads({"a.png": io.BytesIO(PNG)}).digest("d", "a.png")


def test_import_through_the_api(db_site: Site) -> None:
    """An import is all or nothing, pictures included; gold questions need existing documents."""
    db_site.project("new", opened=False, queries=0)
    lena = db_site.client("lena")
    picture = {"query": "q1", "document": "p", "image": "a.png", "title": "A lamp"}
    docs = ("d.jsonl", jsonl(*ROWS, picture))
    wrong = jsonl({"query": "q1", "left": "a", "right": "none", "outcome": 1})
    files = [
        ("documents", docs),
        ("gold_questions", ("g.jsonl", wrong)),
        ("images", ("a.png", PNG)),
    ]
    path = "/api/v1/projects/new/import"
    refused = lena.post(path, files=files)
    assert refused.status_code == 400
    assert "g.jsonl:1" in refused.json()["detail"]
    right = jsonl({"query": "q1", "left": "a", "right": "b", "outcome": "left"})
    files[1] = ("gold_questions", ("g.jsonl", right))
    done = lena.post(path, files=files)
    counts = {"queries": 2, "documents": 4, "gold_questions": 1, "training": 0, "grades": 0}
    assert done.json() == {**counts, "notes": []}
    second = lena.post(path, files=files)
    assert second.status_code == 400
    assert "already" in second.json()["detail"]
    with db_site.store.read() as tx:
        from firstpage.labeling.app.store.tables import documents

        row = present(tx.first(documents.select().where(documents.c.key == "p")))
    shown = lena.get(f"/documents/{row['id']}/image")
    assert shown.content == PNG
    assert shown.headers["content-type"] == "image/png"
    assert "A lamp" in lena.get(f"/documents/{row['id']}").text


CARD = '{"query": "q", "document": "a", "text": "x", "fields": {"price": %s}}\n'
LIST = '{"query": "q", "document": "a", "items": [{"title": "t", "more": [%s]}]}\n'


@pytest.mark.parametrize("line", [CARD, LIST, LIST.replace('"more"', '"text"')])
@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', '"a\\u0000"', "1" * 400]
)
def test_unstorable_values_are_refused(line: str, value: str) -> None:
    with pytest.raises(DataError, match=r"^d\.jsonl:1: "):
        read(sources(documents=file("d.jsonl", (line % value).encode())))


def test_deeply_nested_items_are_refused() -> None:
    line = LIST % ("[" * 900 + "]" * 900)
    with pytest.raises(DataError, match=r"^d\.jsonl:1: .*nested too deeply"):
        read(sources(documents=file("d.jsonl", line.encode())))


def test_names_of_fields_are_checked_too() -> None:
    line = CARD.replace("price", "\\ud800") % 1
    with pytest.raises(DataError, match=r"^d\.jsonl:1: .*lone surrogate"):
        read(sources(documents=file("d.jsonl", line.encode())))


def test_field_values_keep_their_types() -> None:
    card = CARD % '1.5, "new": true, "in": null, "n": 3, "of": [1]'
    items = LIST % '1, null, {"a": "b"}'
    parsed = read(
        sources(documents=file("d.jsonl", (card + items.replace('"a"', '"b"', 1)).encode()))
    )
    first, second = parsed.queries[0].documents
    assert first.fields == {"price": 1.5, "new": True, "in": "None", "n": 3, "of": "[1]"}
    assert second.fields == {"items": [{"title": "t", "more": [1, None, {"a": "b"}]}]}


@pytest.mark.parametrize("prior", ["9" * 400, '"x"', "1e999", "[1]", '"' + "9" * 400 + '"'])
def test_an_invalid_prior_is_refused(prior: str) -> None:
    line = f'{{"query": "q", "document": "a", "text": "x", "prior": {prior}}}\n'
    with pytest.raises(DataError, match=r"^d\.jsonl:1: prior must be a number") as error:
        read(sources(documents=file("d.jsonl", line.encode())))
    assert len(str(error.value)) < 150


@pytest.mark.parametrize("outcome", ["+-+1", "--1", "+", "1" * 5000, "\u00b2", "\u0661"])
def test_an_invalid_outcome_is_refused(outcome: str) -> None:
    row = {"query": "q", "left": "a", "right": "b", "outcome": outcome}
    with pytest.raises(DataError, match=r"^g\.jsonl:1: outcome must be an integer"):
        read(sources(gold_questions=file("g.jsonl", jsonl(row))))


def gold(left: str, right: str | None, outcome: int) -> dict[str, Any]:
    return {"query": "q0", "left": left, "right": right, "outcome": outcome}


@pytest.mark.parametrize(
    ("project", "known", "words"),
    [
        ({"tool": "lists"}, [gold("d0", "d1", 2), gold("d1", "d0", -1)], ""),
        ({}, [gold("d0", "d1", 0)], ""),  # both may be bad
        ({"options": {"bad": False}}, [gold("d0", "d1", 0)], "g.jsonl:1: the outcome is 0, and this project offers no tie"),
        ({}, [gold("d0", "d1", 1), gold("d0", "d1", 1), gold("d1", "d0", 1)], "g.jsonl:3: there is another known answer about 'd1' and 'd0' of query 'q0'"),
        ({"tool": "grades"}, [gold("d0", None, 3), gold("d0", None, 4)], "g.jsonl:2: there is another known answer about 'd0'"),
    ],
)  # fmt: skip
def test_known_answers_can_be_given_and_do_not_contradict(
    site: Site, project: dict[str, Any], known: list[dict[str, Any]], words: str
) -> None:
    site.project(queries=1, **project)
    lena, path = site.client("lena"), "/api/v1/projects/books/import"

    def imported(*rows: dict[str, Any]) -> Any:
        return lena.post(path, files={"gold_questions": ("g.jsonl", jsonl(*rows))})

    reply = imported(*known)
    assert reply.status_code == (400 if words else 200)
    assert words in reply.json().get("detail", "")
    if len(known) > 1:  # the answers before are known after an import of their own
        assert imported(*known[:-1]).status_code == 200
        assert imported(known[-1]).status_code == reply.status_code


def test_missing_values_of_tables_are_empty() -> None:
    """Tables of numbers write them as NaN."""
    data = table(
        query=["q"] * 2,
        document=[7.0, 8.0],
        docno=[math.nan] * 2,
        text=["x", "y"],
        title=[1.5, math.nan],
        image=[math.nan] * 2,
        html=[math.nan] * 2,
        more=[math.nan] * 2,
    )
    known = table(query=["q"] * 2, left=[7.0] * 2, right=[8.0, math.nan], outcome=[1, 1])
    practice = table(text=["q"], left=["a"], right=[math.nan], grade=[4])
    parsed = read(
        sources(
            documents=file("d.parquet", data),
            gold_questions=file("g.parquet", known),
            training=file("t.parquet", practice),
        )
    )
    documents = parsed.queries[0].documents
    assert [(d.key, d.title, d.kind) for d in documents] == [
        ("7", "1.5", "text"),
        ("8", "", "text"),
    ]
    assert [(g.left, g.right) for g in parsed.gold_questions] == [("7", "8"), ("7", None)]
    assert [q.right for q in parsed.training] == [None]
    assert not parsed.notes


def test_duplicate_columns_are_refused() -> None:
    table = b"query,document,text, text\nq,a,one,two\n"
    with pytest.raises(DataError, match=r"^d\.csv:1: the column 'text' occurs twice"):
        read(sources(documents=file("d.csv", table)))


def document_rows(count: int, query: str = "q", **columns: Any) -> bytes:
    """Return rows of this number of documents of one query."""
    return jsonl(
        *({"query": query, "document": f"d{i}", "text": "x", **columns} for i in range(count))
    )


def test_documents_per_query_are_limited(site: Site) -> None:
    lena = site.client("lena")
    cases: list[tuple[str, str, int, dict[str, Any]]] = [
        ("pairs", "pairs", 10_000, {}),
        ("grades", "grades", 5000, {}),
        ("lists", "lists", 100, {"items": ["one"]}),
    ]
    for slug, tool, most, more in cases:
        site.project(slug, queries=0, opened=False, tool=tool, setting={"k": 3})
        path = f"/api/v1/projects/{slug}/import"
        reply = lena.post(path, files={"documents": ("d.jsonl", document_rows(most + 1, **more))})
        assert reply.status_code == 400
        assert f"query 'q' has {most + 1:,} " in reply.json()["detail"]
        reply = lena.post(path, files={"documents": ("d.jsonl", document_rows(most, **more))})
        assert reply.json()["documents"] == most


def test_a_strategy_with_a_lower_document_limit_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused at set-up and when the strategy of a task is changed."""
    monkeypatch.setattr("firstpage.labeling.strategies.registry.MAX_COMPARED", 500)
    site.project(
        queries=1, documents=501, opened=False, tool="grades", setting={"k": 3, "strategy": "heap"}
    )
    lena = site.client("lena")
    path = "/api/v1/projects/books"
    for changes in ({"tool": "pairs"}, {"options": {"tools": ["grades", "pairs"]}}):
        reply = lena.patch(path, json=changes)
        assert reply.status_code == 400
        assert "query 'q0' has 501 documents, and heap takes at most 500" in reply.json()["detail"]
    assert lena.get(path).json()["tool"] == "grades"
    assert lena.patch(path, json={"setting": {"k": 4}}).status_code == 200
    site.project("films", queries=1, documents=101)
    task = site.task("films", "ada")
    reply = lena.post(f"/api/v1/tasks/{task}/switch", json={"strategy": "pairs"})
    assert reply.status_code == 400
    assert "pairs takes at most 100" in reply.json()["detail"]


@pytest.mark.parametrize("name", ["text", "body", "content", "contents"])
def test_text_columns_have_aliases(name: str) -> None:
    csv = f"query,document,title,{name}\nq,d,T,what it says\n".encode()
    parsed = read(sources(documents=file("d.csv", csv)))
    assert parsed.queries[0].documents[0].body == "what it says"
    assert parsed.notes == ()


def test_the_narrative_is_part_of_the_description() -> None:
    for rows in (
        {"query": "q", "text": "tea", "desc": "What is tea?", "narr": "Only green tea."},
        {
            "query": "q",
            "text": "tea",
            "description": "What is tea?",
            "narrative": "Only green tea.",
        },
    ):
        parsed = read(
            sources(
                queries=file("q.jsonl", jsonl(rows)),
                documents=file("d.jsonl", jsonl({"query": "q", "document": "d", "text": "x"})),
            )
        )
        assert parsed.queries[0].description == "What is tea? Only green tea."
        assert parsed.notes == ()


def test_columns_that_are_not_read_are_named() -> None:
    documents = b"query,document,text,content,rank\nq,a,A,more,1\nq,b,B,,2\n"
    queries = jsonl({"query": "q", "text": "tea", "title": "Tea", "intent": "buy"})
    lesson = {"text": "t", "left": {"text": "a", "color": "red"}, "right": "b", "outcome": 1}
    parsed = read(
        sources(
            queries=file("q.jsonl", queries),
            documents=file("d.csv", documents),
            training=file("t.jsonl", jsonl(lesson)),
        )
    )
    assert parsed.notes == (
        "q.jsonl: columns that are not read: 'title' (1 rows), 'intent' (1 rows).",
        "t.jsonl: columns that are not read: 'color' (1 rows).",
        "d.csv: columns that are not read: 'content' (1 rows), 'rank' (2 rows).",
    )
    rows = [{"id": "A", "text": "a", "lang": "en"}, {"id": "Z", "other": "not wanted"}]
    parsed = read(
        sources(run=file("r", b"1 Q0 A 1 1 x\n"), collection=file("c.jsonl", jsonl(*rows)))
    )
    assert parsed.notes == ("c.jsonl: columns that are not read: 'lang' (1 rows).",)


def test_empty_texts_are_counted() -> None:
    rows = [{"query": "q", "document": f"d{i}"} for i in range(5)]
    rows += [
        {"query": "q", "document": "t", "title": "T"},
        {"query": "p", "document": "x", "text": "x"},
    ]
    queries = jsonl({"query": "q", "text": "tea"}, {"query": "p"})
    parsed = read(
        sources(queries=file("q.jsonl", queries), documents=file("d.jsonl", jsonl(*rows)))
    )
    assert parsed.notes == (
        "1 queries have no text, so their ids are shown: 'p'.",
        "5 documents have no text and no title: 'd0' of 'q', 'd1' of 'q', 'd2' of 'q' and 2 more.",
        "1 documents have a title but no text: 't' of 'q'.",
    )


def test_pages_that_only_scripts_would_fill_are_counted() -> None:
    """Scripts are removed, so that assessors would see an empty page."""
    pages = {"a": "<script>x()</script><p> </p>", "b": "<p>b", "c": "<img src='data:x'>", "d": " "}
    rows = [{"query": "q", "document": key, "html": page} for key, page in pages.items()]
    parsed = read(sources(documents=file("d.jsonl", jsonl(*rows))))
    assert "2 documents have no text and no title: 'a' of 'q', 'd' of 'q'." in parsed.notes


def test_unknown_form_fields_are_refused(site: Site) -> None:
    site.project(queries=0, opened=False)
    lena = site.client("lena")
    documents = ("d.jsonl", jsonl(*ROWS))
    refused = lena.post(
        "/api/v1/projects/books/import", files={"documents": documents, "doucments": documents}
    )
    assert refused.status_code in (400, 422)
    assert "body.doucments: there is no such field" in refused.json()["detail"]
    refused = lena.post(
        "/api/v1/projects/books/import", files={"documents": documents}, data={"depth": "5"}
    )
    assert refused.status_code in (400, 422)
    assert "depth applies only to a run" in refused.json()["detail"]
    csv = ("d.csv", b"query,document,text,rank\nq,a,A,1\n")
    accepted = lena.post("/api/v1/projects/books/import", files={"documents": csv})
    assert accepted.json()["notes"] == ["d.csv: columns that are not read: 'rank' (1 rows)."]
