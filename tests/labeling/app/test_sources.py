"""Where queries, documents and texts come from: runs, collections, an index, and their ids."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import polars
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.labeling.app.imports.bundle import Bundle, File, Sources, read
from tests.labeling.app.site import Site, jsonl
from tests.labeling.app.test_imports import file, keys

SHOES = [
    {"id": "s 1", "title": "Red shoe", "text": "A red running shoe.", "price": 10.0},
    {"id": "s2", "title": "Blue shoe", "text": "A blue shoe for rain.", "price": 12.5},
    {"id": "s3", "title": "Coat", "text": "A rain coat, red or blue.", "price": 99.0},
]
FIRST = b"q Q0 a 1 3 x\nq Q0 b 2 2 x\nq Q0 c 3 1 x\np Q0 a 1 1 x\n"
SECOND = b"q Q0 c 1 3 x\nq Q0 d 2 2 x\nq Q0 a 3 1 x\n"
TEXTS = [{"id": name, "title": name.upper(), "text": f"about {name}"} for name in "abcd"]


@pytest.fixture
def index(tmp_path: Path) -> fp.Index:
    return fp.Index.from_documents(SHOES, tmp_path / "shop.index", latent=0)


def of_runs(**options: Any) -> Bundle:
    return read(
        Sources(
            runs=(file("first.run", FIRST), file("sub/second.run.gz", gzip.compress(SECOND))),
            collection=file("c.jsonl", jsonl(*TEXTS)),
            **options,
        )
    )


def queries_of(name: str, data: bytes, **options: Any) -> dict[str, tuple[str, str]]:
    rows = [{"query": key, "document": "d", "text": "x"} for key in options.pop("keys")]
    documents = file("d.jsonl", jsonl(*rows))
    parsed = read(Sources(queries=file(name, data), documents=documents, **options))
    return {q.key: (q.text, q.description) for q in parsed.queries}


def test_candidates_of_an_index_with_their_texts(index: fp.Index) -> None:
    queries = file(
        "q.jsonl",
        jsonl(
            {"id": "1", "text": "red shoe"},
            {"id": "2", "text": "rain"},
            {"id": "3", "text": "zebra"},
        ),
    )
    parsed = read(Sources(queries=queries, index=index, depth=2))
    run = index.candidates([("1", "red shoe"), ("2", "rain")], 2).to_dict()
    assert {q.key: {d.key: d.prior for d in q.documents} for q in parsed.queries} == run
    document = parsed.queries[0].documents[0]
    assert (document.key, document.title, document.body) == ("s 1", "Red shoe", SHOES[0]["text"])
    assert (document.kind, document.fields) == ("card", {"price": 10})
    assert parsed.notes == (f"1 query ('3') left out: {index.path} has no documents of them.",)


def test_an_index_without_queries_or_matches_is_refused(index: fp.Index) -> None:
    with pytest.raises(DataError, match="give the queries whose candidates are judged"):
        read(Sources(index=index))
    nothing = file("q.jsonl", jsonl({"id": "1", "text": "zebra"}))
    with pytest.raises(DataError, match="no query matches a document"):
        read(Sources(queries=nothing, index=index))
    both = Sources(runs=(file("r", FIRST),), index=index, collection=file("c", b""))
    with pytest.raises(DataError, match="give the texts once"):
        read(both)


def test_documents_that_the_index_of_their_features_lacks_are_noted(index: fp.Index) -> None:
    rows = [{"query": "q", "document": key, "text": "x"} for key in ("s2", "other")]
    parsed = read(Sources(documents=file("d.jsonl", jsonl(*rows)), index=index))
    assert parsed.notes == (
        f"1 of 2 documents are not in {index.path}, and will have no features: 'other'.",
    )


def test_several_runs_are_pooled_and_recorded() -> None:
    parsed = of_runs(depth=3)
    assert keys(parsed) == {"q": ["a", "c", "b"], "p": ["a"]}
    assert [d.runs for d in parsed.queries[0].documents] == [
        ("first", "second"),
        ("first", "second"),
        ("first",),
    ]
    assert parsed.queries[0].documents[0].prior == pytest.approx(1 / 61 + 1 / 63)
    assert parsed.notes == (
        "of 1 query in the pool of 2 runs, only 3 documents are imported (--pool depth).",
        "sub/second.run.gz has no documents of 1 query ('p').",
    )
    assert set(keys(of_runs(depth=2, pool="rrf"))["q"]) == {"a", "c"}
    assert len(keys(of_runs(depth=2, pool="random", seed=4))["q"]) == 2


def test_two_runs_of_one_name_are_refused() -> None:
    runs = (file("a/x.run", FIRST), file("b/x.run.gz", SECOND))
    with pytest.raises(DataError, match="two runs are named 'x'; rename one file"):
        read(Sources(runs=runs, collection=file("c.jsonl", jsonl(*TEXTS))))


def test_missing_texts_are_counted() -> None:
    some = file("c.jsonl", jsonl(*TEXTS[:2]))
    with pytest.raises(DataError) as error:
        read(Sources(runs=(file("r", FIRST + b"q Q0 e 9 0 x\n"),), collection=some))
    assert "c.jsonl: document 'c' of query 'q', and 1 more are missing" in str(error.value)


def test_pages_of_runs() -> None:
    same = b"q Q0 a 1 3 x\nq Q0 b 2 2 x\nr Q0 a 1 1 x\n"
    parsed = read(
        Sources(
            runs=(
                file("one.run", FIRST + b"r Q0 a 1 1 x\n"),
                file("two.run", SECOND + b"r Q0 a 1 1 x\n"),
                file("three.run", same),
            ),
            collection=file("c.jsonl", jsonl(*TEXTS)),
            pages=True,
            depth=2,
        )
    )
    assert keys(parsed) == {"q": ["one", "two"]}
    page = parsed.queries[0].documents[1]
    assert (page.kind, page.title) == ("list", ""), "the name of a run would bias assessors"
    assert page.fields == {
        "items": [
            {"id": "c", "title": "C", "text": "about c"},
            {"id": "d", "title": "D", "text": "about d"},
        ]
    }
    assert parsed.notes == (
        "1 query ('p') left out: fewer than two runs have documents of them.",
        "1 query ('r') not asked: their pages are identical.",
        "1 pages left out that are identical to another one of their query.",
    )


def test_pages_need_two_different_runs() -> None:
    texts = file("c.jsonl", jsonl(*TEXTS))
    with pytest.raises(DataError, match="pages of one run cannot be compared"):
        read(Sources(runs=(file("r", FIRST),), collection=texts, pages=True))
    runs = (file("r", FIRST), file("s", FIRST))
    with pytest.raises(DataError, match="no query has two different pages"):
        read(Sources(runs=runs, collection=texts, pages=True))


def test_long_texts_are_cut_on_pages() -> None:
    texts = [{**row, "text": "word " * 200} for row in TEXTS]
    runs = (file("r", FIRST), file("s", SECOND))
    parsed = read(Sources(runs=runs, collection=file("c.jsonl", jsonl(*texts)), pages=True))
    fields = parsed.queries[0].documents[0].fields
    assert fields is not None
    assert {len(item["text"]) for item in fields["items"]} == {300}


def test_the_first_queries() -> None:
    parsed = of_runs(first=1)
    assert keys(parsed) == {"q": ["a", "c", "b", "d"]}
    assert parsed.notes[0] == "the first 1 of 2 queries are imported."
    queries = file("q.jsonl", jsonl({"id": "p", "text": "P"}, {"id": "q", "text": "Q"}))
    assert keys(of_runs(first=1, queries=queries)) == {"p": ["a"]}
    rows = [{"query": key, "document": "d", "text": "x"} for key in "abc"]
    documents = file("d.jsonl", jsonl(*rows))
    assert list(keys(read(Sources(documents=documents, first=2)))) == ["a", "b"]


@pytest.mark.parametrize("key", ["id", "document", "docid", "docno", "doc_id", "_id", "DocNo"])
def test_every_id_key_of_a_collection(key: str) -> None:
    rows = [{key: row["id"], "text": row["text"]} for row in TEXTS]
    parsed = read(Sources(runs=(file("r", FIRST),), collection=file("c.jsonl", jsonl(*rows))))
    assert parsed.queries[0].documents[0].body == "about a"


def test_a_column_document_beside_an_id_is_the_text() -> None:
    rows = [{"id": row["id"], "document": row["text"]} for row in TEXTS]
    parsed = read(Sources(runs=(file("r", FIRST),), collection=file("c.jsonl", jsonl(*rows))))
    assert parsed.queries[0].documents[0].body == "about a"


def collections(folder: Path) -> dict[str, Path]:
    """Return the same texts in every format."""
    table = polars.DataFrame(TEXTS)
    (folder / "texts").mkdir()
    for row in TEXTS:
        (folder / "texts" / row["id"]).with_suffix(".txt").write_text(row["text"])
    (folder / "c.jsonl").write_bytes(jsonl(*TEXTS))
    (folder / "c.jsonl.xz").write_bytes(lzma.compress(jsonl(*TEXTS)))
    table.write_csv(folder / "c.csv")
    table.write_parquet(folder / "c.parquet")
    (folder / "c.trec").write_text(
        "".join(
            f"<DOC>\n<DOCNO>{r['id']}</DOCNO>\n<TEXT>{r['text']}</TEXT>\n</DOC>\n" for r in TEXTS
        )
    )
    (folder / "c.all").write_text("".join(f".I {r['id']}\n.W\n{r['text']}\n" for r in TEXTS))
    return {path.name: path for path in folder.iterdir()}


def test_collections_of_every_format_give_the_same_texts(tmp_path: Path) -> None:
    for name, path in collections(tmp_path).items():
        run = FIRST if name != "texts" else b"q Q0 a.txt 1 3 x\n"
        parsed = read(Sources(runs=(file("r", run),), collection=File.local_collection(path)))
        assert parsed.queries[0].documents[0].body == "about a", name
        if path.is_file() and not name.endswith(".xz"):
            uploaded = file(name, path.read_bytes())
            parsed = read(Sources(runs=(file("r", run),), collection=uploaded))
            assert parsed.queries[0].documents[0].body == "about a", name


def test_a_collection_without_ids_is_refused() -> None:
    texts = file("c.jsonl", jsonl({"name": "a", "text": "x"}))
    with pytest.raises(DataError, match=r"^c\.jsonl:1: has no id; give each document one of id, "):
        read(Sources(runs=(file("r", FIRST),), collection=texts))


SMART = b".I 001\n.W\nred shoes\n.I 004\n.W\nrain\n"
TOPICS = b"<top>\n<num> Number: 001\n<title> red shoes\n<desc> Description:\nfor rain\n</top>\n"


@pytest.mark.parametrize(("name", "data", "expected"), [
    ("q.jsonl", jsonl({"qid": "001", "query": "red shoes"}), ("red shoes", "")),
    ("q.jsonl", jsonl({"query": "001", "text": "red shoes", "desc": "d"}), ("red shoes", "d")),
    ("q.jsonl", jsonl({"_id": " 001 ", "text": "red shoes"}), ("red shoes", "")),
    ("q.csv", b"query_id,query\n001,red shoes\n", ("red shoes", "")),
    ("q.tsv", b"001\tred shoes\n", ("red shoes", "")),
    ("q.tsv", b"id\ttext\n001\tred shoes\n", ("red shoes", "")),
    ("q.qry", SMART.partition(b".I 004")[0], ("red shoes", "")),
    ("query-text", b"001\nred shoes\n   /\n", ("red shoes", "")),
    ("q.qry", b".I 001\n.W\nr\xe9d shoes\n", ("r\xe9d shoes", "")),
    ("topics.txt", TOPICS, ("red shoes", "for rain")),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::firstpage.core.errors.FirstpageWarning")  # of the description
def test_queries_have_the_ids_of_read_queries(
    name: str, data: bytes, expected: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    read_by_search = fp.read_queries(tmp_path / name)
    assert dict(read_by_search) == {"001": expected[0]}
    assert queries_of(name, data, keys=["001"]) == {"001": expected}


def test_queries_can_be_numbered_or_lines() -> None:
    assert queries_of("q.qry", SMART, keys=["1", "2"], ordinal=True) == {
        "1": ("red shoes", ""),
        "2": ("rain", ""),
    }
    assert queries_of("q", b"red shoes\nrain\n", keys=["1", "2"], query_format="lines") == {
        "1": ("red shoes", ""),
        "2": ("rain", ""),
    }
    with pytest.raises(DataError, match=r"q: queries are rows .* TREC topics, SMART or NPL"):
        queries_of("q", b"red shoes\n", keys=["1"])


def test_files_of_classic_collections_are_read_as_by_other_commands(tmp_path: Path) -> None:
    texts, run = b"1\nthe caf\xe9\n/\n2\nrain\n/\n", b"1 Q0 1 1 2 x\n1 Q0 2 2 1 x\n"
    (tmp_path / "rlv-ass").write_bytes(b"1\n1 2\n/\n")
    (tmp_path / "x.rel").write_bytes(b"01 002 0 0\n01 001 0 0\n")
    topics = "<top>\n<num> 1\n<title> caf\xe9\n</top>\n".encode("latin-1")
    for name in ("rlv-ass", "x.rel"):
        with pytest.warns(fp.FirstpageWarning, match="2 documents of 1 queries have the grade 1"):
            expected = fp.read_qrels(tmp_path / name).to_dict()
        parsed = read(
            Sources(
                runs=(file("a.run", run),),
                collection=file("doc-text", texts),
                topics=file("topics.txt", topics),
                qrels=file(name, (tmp_path / name).read_bytes()),
            )
        )
        assert parsed.grades == expected == {"1": {"1": 1, "2": 1}}
        assert [d.body for d in parsed.queries[0].documents] == ["the caf\xe9", "rain"]
        assert parsed.queries[0].text == "caf\xe9"
        assert [note.partition(" such")[0] for note in parsed.notes] == [
            "topics.txt:3: is not UTF-8;",
            "doc-text:2: is not UTF-8;",
            parsed.notes[-1],
        ]
        assert parsed.notes[-1].startswith(f"{name}: read as")


@pytest.mark.parametrize("character", ["\t", "\n", "\u2028"])
def test_ids_with_tabs_and_line_ends_are_refused(character: str) -> None:
    row = {"query": f"a{character}b", "document": "d", "text": "x"}
    with pytest.raises(DataError, match=r"^d\.jsonl:1: the id of the query contains the character"):
        read(Sources(documents=file("d.jsonl", jsonl(row))))


def test_ids_of_letor_files_are_those_of_read_letor(tmp_path: Path) -> None:
    text = b"2 qid:1 1:0.5 # inc = 1 docid = A\n0 qid:1 1:1 # a=b\n1 qid:1 1:2 # docid: C\n"
    (tmp_path / "x.txt").write_bytes(text)
    names = list(fp.read_letor(tmp_path / "x.txt", cache=False).docids or ())
    texts = jsonl(*({"id": name, "text": "x"} for name in names))
    parsed = read(Sources(letor=file("x.txt", text), collection=file("c.jsonl", texts)))
    assert keys(parsed) == {"1": names}


def test_the_api_pools_uploaded_runs(site: Site) -> None:
    site.project(queries=0, opened=False)
    lena = site.client("lena")
    files = [
        ("run", ("first.run", FIRST)), ("run", ("second.run", SECOND)),
        ("collection", ("c.csv", polars.DataFrame(TEXTS).write_csv().encode())),
    ]  # fmt: skip
    options = {"pool": "rrf", "depth": "2", "first": "1"}
    reply = lena.post("/api/v1/projects/books/import", files=files, data=options)
    assert (reply.json()["queries"], reply.json()["documents"]) == (1, 2)
    pool = lena.get("/api/v1/projects/books/export/pool.jsonl").text
    assert '"document": "c", ' in pool
    assert '"runs": ["first", "second"]' in pool
    refused = lena.post("/api/v1/projects/books/import", files=files, data={"pool": "best"})
    assert refused.status_code == 422


def test_a_project_of_lists_compares_pages_of_uploaded_runs(site: Site) -> None:
    site.project(queries=0, opened=False, tool="lists")
    files = [
        ("run", ("first.run", FIRST)), ("run", ("second.run", SECOND)),
        ("collection", ("c.jsonl", jsonl(*TEXTS))),
    ]  # fmt: skip
    reply = site.client("lena").post("/api/v1/projects/books/import", files=files)
    assert (reply.json()["queries"], reply.json()["documents"]) == (1, 2)
    assert "fewer than two runs" in reply.json()["notes"][0]
