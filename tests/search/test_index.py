"""The index: fields, changes, searching, and what damage, crashes and full disks leave."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage import Index, TextFeatures
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.search import storage
from firstpage.search.documents import SourceDocument
from firstpage.search.families import FAMILIES
from firstpage.search.first_stage import FirstStage
from firstpage.search.retrieval import BM25
from firstpage.search.schema import SAMPLE
from tests.patience import PATIENCE

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "s1", "title": "Red shoes", "text": "Running shoes for women.", "price": 49.5},
    {"id": "s2", "title": "Blue coat", "text": "A warm coat for winter.", "price": 120},
    {"id": "s3", "title": "Red coat", "text": "", "price": None},
    {"id": "s4", "text": "shoes, shoes and shoes", "price": 10},
]
HOSTILE = [
    "", " ", 'c++: "x', "title:red AND (", "*", "red\x00shoes", "\ud800", "😀", "x" * 100_000,
    "red " * 20_000, "'s", "-red +shoe ~2^3 [a TO b]", "\\", "日本語", "the of and",
]  # fmt: skip


def ids(index: Index, text: str, depth: int = 10) -> list[str]:
    return [hit.id for hit in index.search(text, depth)]


def state(index: Index) -> tuple[Any, ...]:
    """Return what an index holds, whatever the order of its rows and terms."""
    forward = index.forward
    numbers = forward.terms.terms
    statistics = {
        numbers[t]: (forward.df[:, t].tolist(), forward.cf[:, t].tolist())
        for t in np.flatnonzero(forward.df[-1])
    }
    documents = {name: index.document(name) for name in forward.row_of}
    hits = {
        text: {hit.id: round(hit.score, 9) for hit in index.search(text, 50)}
        for text in ("red shoe", "coat", "warm winter w1 w2 w3")
    }
    return len(index), statistics, documents, hits, forward.n_occurrences.tolist()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.from_documents(DOCUMENTS, tmp_path / "shop.index", latent=0)


# --- contents and search


def test_contents(index: Index) -> None:
    assert len(index) == 4
    assert index.schema.values == ("price",)
    assert list(index.schema.analyzers) == ["title", "text"]
    assert ids(index, "shoe") == ["s4", "s1"]
    assert ids(index, "red coat")[0] == "s3"
    assert index.document("s3") == {"title": "Red coat"}
    assert "4 documents, fields title, text" in repr(index)
    again = Index(index.path)
    assert state(again) == state(index)
    assert again.fingerprint == index.fingerprint


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text[:12]) for text in HOSTILE])
def test_hostile_queries(index: Index, text: str) -> None:
    hits = index.search(text)
    assert bool(hits) == ("red" in text)
    assert all(np.isfinite(hit.score) for hit in hits)


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text[:12]) for text in HOSTILE])
def test_hostile_documents(tmp_path: Path, text: str) -> None:
    document = SourceDocument("x", {"text": text.replace("\ud800", "")}, "here")
    index = Index.from_documents([document, *DOCUMENTS], tmp_path / "i", latent=0)
    assert index.document("x")["text"] == text.replace("\ud800", "")
    assert ("x" in ids(index, "red", 100)) == ("red" in text)


@pytest.mark.parametrize("depth", [0, -1])
def test_depth_is_positive(index: Index, depth: int) -> None:
    for call in (
        lambda: index.search("red", depth),
        lambda: index.candidates([("q", "red")], depth),
    ):
        with pytest.raises(DataError, match=f"depth must be at least 1; got {depth}"):
            call()


def test_depth_beyond_the_collection(index: Index) -> None:
    assert len(index.search("red shoes coat", 10**12)) == 4


def test_candidates(index: Index) -> None:
    queries = [("q1", "red shoe"), ("q2", "zebra"), ("q3", "coat")]
    with pytest.warns(FirstpageWarning, match="1 of 3 queries match no document .* 'q2'"):
        run = index.candidates(queries, depth=2)
    assert list(run.queries) == ["q1", "q3"]
    assert run.offsets.tolist() == [0, 2, 4]
    assert list(run.docids)[2:] == ids(index, "coat")
    with (
        pytest.raises(DataError, match="no query matches a document"),
        pytest.warns(FirstpageWarning),
    ):
        index.candidates([("q2", "zebra")])
    with pytest.raises(DataError, match="the query 'q1' occurs twice; ids must be distinct"):
        index.candidates([("q1", "red"), ("q1", "coat")])


# --- fields

KINDS = [
    ([{"n": 1}, {"n": 2.5}], {}, "number"),
    ([{"n": "1"}, {"n": " 2.5e3 "}], {}, "number"),
    ([{"n": "1"}, {"n": "x"}], {}, "text"),
    ([{"n": "1_000"}], {}, "text"),
    ([{"n": "nan"}], {}, "text"),
    ([{"n": "2024-02-29"}, {"n": "2024-03-01T10:00:00+02:00"}], {}, "date"),
    ([{"n": "2024-02-29"}, {"n": "2024-02-30"}], {}, "text"),
    ([{"n": "2024-02-29"}, {"n": 2024}], {}, "text"),
    ([{"n": True}, {"n": None}], {}, "number"),
    ([{"n": 1}], {"n": "text"}, "text"),
    ([{"n": 1}], {"n": "german"}, "text"),
    ([{"n": 1}], {"n": "ignore"}, "ignore"),
    ([{"n": 86400}, {"n": "1970-01-03"}], {"n": "date"}, "date"),
]


@pytest.mark.parametrize(("rows", "fields", "kind"), KINDS)
def test_kinds_of_fields(
    rows: list[dict[str, Any]], fields: dict[str, str], kind: str, tmp_path: Path
) -> None:
    documents = [{"id": i, "title": "x", **row} for i, row in enumerate(rows)]
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        index = Index.from_documents(documents, tmp_path / "i", fields=fields, latent=0)
    stored = index.schema.to_dict()
    assert [k for k in stored if "n" in stored[k]] == [kind]
    is_mixed = kind == "text" and not fields and len(rows) > 1
    assert [str(note.message)[:35] for note in notes] == (
        ["the field 'n' is searched as text, "] if is_mixed else []
    )


def test_numbers_that_identify_are_no_features(tmp_path: Path) -> None:
    rows = [
        {"id": i, "title": "red", "product_id": i, "sku": 7 * i, "age": i % 7} for i in range(100)
    ]
    with pytest.warns(FirstpageWarning) as caught:
        index = Index.from_documents(rows, tmp_path / "i", latent=0)
    first, second = (str(each.message) for each in caught)
    assert "the field 'product_id' is stored only, since it is named like an identifier" in first
    assert "the field 'sku' has another integer in each of 100 documents" in second
    assert index.schema.numbers == ("sku", "age")
    assert index.schema.ignored == ("product_id",)
    fields = {"product_id": "number", "sku": "ignore"}
    declared = Index.from_documents(rows, tmp_path / "j", latent=0, fields=fields)
    assert declared.schema.numbers == ("product_id", "age")


def test_declared_fields_without_values_are_reported(tmp_path: Path) -> None:
    rows = [{"id": i, "title": "x"} for i in range(SAMPLE)] + [{"id": "last", "title": "x", "n": 1}]
    fields = {"titel": "german", "n": "number", "pric": "ignore"}
    with pytest.warns(FirstpageWarning) as notes:
        Index.from_documents(rows, tmp_path / "i", fields=fields, latent=0)
    assert [str(note.message) for note in notes] == [
        f"{tmp_path / 'i'}: no document has a value of these declared fields: 'titel', 'pric'; the "
        "fields with values are 'title', 'n'."
    ]


def test_values_of_fields(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "title": "x", "when": "1970-01-02", "n": "7"},
        {"id": "b", "title": "x", "when": "1970-01-01T01:00:00+01:00"},
        {"id": "c", "title": 9781234567897, "n": -2},
        {"id": "d", "title": 0.25},
    ]
    index = Index.from_documents(rows, tmp_path / "i", fields={"title": "text"}, latent=0)
    np.testing.assert_array_equal(index.forward.numbers["when"], [86400, 0, np.nan, np.nan])
    np.testing.assert_array_equal(index.forward.numbers["n"], [7, np.nan, -2, np.nan])
    assert ids(index, "9781234567897") == ["c"]
    assert ids(index, "0.25") == ["d"]


REFUSED_DOCUMENTS = [
    ([], {}, "there are no documents to index"),
    ([{"id": 1, "price": 3}], {}, "the documents have no text field"),
    ([{"id": 1, "document": "x"}], {}, "a text field cannot be named 'document', which names"),
    ([{"id": 1, "query": "x"}], {}, "a text field cannot be named 'query'"),
    ([{"id": 1, "title": "x"}], {"title": "klingon"}, "field 'title' cannot be 'klingon'; the kin"),
    ([{"title": "x"}], {}, "document 1: has no id"),
    ([{"id": "a", "t": "x"}, {"id": "b", "t": "y"}, {"id": "a", "t": "z"}], {},
     "document 3: the document 'a' is also at document 1; ids must be distinct"),
    ([{"id": 1, "t": "x", "n": 1}, {"id": 2, "t": "x", "n": "two"}], {"n": "number"},
     r"document 2: n is 'two', not a number; correct it, or create .* by fields={'n': 'text'}"),
    ([{"id": 1, "t": "x", "n": "May 1"}], {"n": "date"}, "document 1: n is 'May 1', not an ISO 8601"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "fields", "message"), REFUSED_DOCUMENTS)
def test_refused_documents(
    rows: list[dict[str, Any]], fields: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message) as raised:
        Index.from_documents(rows, tmp_path / "i", fields=fields)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_documents_are_read_by_one_search(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["s4", "s1", "s4", "s3"]
    expected = [index.document(name) for name in wanted]
    searches = []

    class Counting:
        def __init__(self, searcher: Any) -> None:
            self.searcher = searcher

        def search(self, *args: Any, **options: Any) -> Any:
            searches.append(args)
            return self.searcher.search(*args, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.searcher, name)

    monkeypatch.setattr(index.engine, "_searcher", Counting(index.engine.searcher))
    assert index.documents(wanted) == expected
    assert len(searches) == 1
    assert index.documents([]) == []
    with pytest.raises(DataError, match="a document is not in the index, such as 's9'"):
        index.documents(["s1", "s9"])
    with pytest.raises(DataError, match=r"the engine cannot read its files.*there is no row 77"):
        index.engine.sources([0, 77])


def test_generation(index: Index, tmp_path: Path) -> None:
    assert index.generation == 1
    index.add([{"id": "s9", "title": "socks"}])
    assert index.generation == 2
    index.set_first_stage(FirstStage(scoring=BM25(k1=2.0)))
    assert index.generation == Index(index.path).generation == 2
    index.delete(["s9"])
    index.fit_latent(2)
    assert index.generation == 4
    assert Index.from_documents(DOCUMENTS, index.path, overwrite=True).generation == 5


def test_unknown_fields_are_told_once(index: Index) -> None:
    rows = [{"id": f"n{i}", "title": "boots", "brand": "x"} for i in range(3)]
    with pytest.warns(FirstpageWarning, match="document 1: the field 'brand' is not searched") as w:
        index.add(rows)
    assert len(w) == 1
    assert index.document("n1")["brand"] == "x"


# --- changes


def test_add_replace_and_delete(index: Index) -> None:
    changes = index.add([{"id": "s1", "title": "Green boots"}, {"id": "s5", "text": "red boots"}])
    assert str(changes) == "1 added, 1 replaced"
    assert ids(index, "running") == []
    assert ids(index, "boots") == ["s1", "s5"] or ids(index, "boots") == ["s5", "s1"]
    assert str(index.delete(["s5", "s5", "s2"])) == "2 deleted"
    assert str(index.delete("s4")) == "1 deleted"
    assert sorted(index.forward.row_of) == ["s1", "s3"]
    assert state(Index(index.path)) == state(index)
    with pytest.raises(DataError, match="a document is not in the index, such as 's5'\\."):
        index.delete(["s1", "s5"])
    with pytest.raises(DataError, match="not in the index, such as 's5'"):
        index.document("s5")
    assert str(index.delete(["s1", "s3"])) == "2 deleted"
    assert len(index) == 0
    assert ids(index, "red") == []
    index.add(DOCUMENTS)
    assert sorted(ids(index, "red")) == ["s1", "s3"]


def test_a_failed_change_changes_nothing(index: Index) -> None:
    before = state(index)
    files = sorted(index.path.rglob("*"))
    for bad in ({"title": "no id"}, {"id": "s1", "price": "much"}):
        with pytest.raises(DataError):
            index.add([{"id": "s1", "title": "Green"}, {"id": "new", "title": "x"}, bad])
        assert state(index) == state(Index(index.path)) == before
    assert sorted(index.path.rglob("*")) == files


def test_an_open_index_keeps_its_state(index: Index) -> None:
    other = Index(index.path)
    before = state(other)
    index.add([{"id": "s9", "title": "more red"}])
    index.delete(["s1"])
    assert state(other) == before
    other.add([{"id": "s10", "title": "even more red"}])  # upon what the first writer committed
    assert sorted(other.forward.row_of) == ["s10", "s2", "s3", "s4", "s9"]


def test_existing_folders(index: Index, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"exists; add to it .*\. Or replace it with overwrite=True\."
    ):
        Index.from_documents(DOCUMENTS, index.path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="is not an index, so it is not overwritten"):
        Index.from_documents(DOCUMENTS, tmp_path / "folder", overwrite=True)
    for name, message in (("folder", "is not an index"), ("nothing", "no such index")):
        with pytest.raises(DataError, match=message):
            Index(tmp_path / name)


def test_overwriting_replaces_an_index_at_once(index: Index) -> None:
    before = state(index)
    other = Index(index.path)
    with pytest.raises(DataError, match="has no id"):
        Index.from_documents([DOCUMENTS[0], {"title": "x"}], index.path, overwrite=True)
    assert state(Index(index.path)) == before
    new = Index.from_documents(DOCUMENTS[:2], index.path, overwrite=True, latent=0)
    assert len(new) == len(Index(index.path)) == 2
    assert state(other) == before
    (index.path / "index.json").write_text("damaged")
    assert len(Index.from_documents(DOCUMENTS, index.path, overwrite=True, latent=0)) == 4
    kinds = sorted(re.sub("-.*", "", entry.name) for entry in index.path.iterdir())
    assert kinds == ["engine", "forward", "index.json", "statistics"]


def test_a_second_writer_is_refused(index: Index) -> None:
    with storage.writer_lock(index.path):
        for change in (
            lambda: index.add(DOCUMENTS),
            lambda: index.delete(["s1"]),
            lambda: index.fit_latent(2),
            lambda: Index.from_documents(DOCUMENTS, index.path, overwrite=True),
        ):
            with pytest.raises(DataError, match="another process writes to this index; wait"):
                change()
    assert len(index) == 4
    index.delete(["s1"])


@pytest.mark.parametrize("seed", range(4))
def test_any_changes_equal_a_fresh_index(seed: int, tmp_path: Path) -> None:
    """Statistics, search results and features are those of an index of the remaining documents."""
    rng = random.Random(seed)

    def document(name: str) -> dict[str, Any]:
        words = ["red", "shoe", "coat", *(f"w{rng.randrange(12)}" for _ in range(6))]
        fields = {f: " ".join(rng.choices(words, k=rng.randrange(1, 6))) for f in ("title", "text")}
        return {"id": name, "n": float(rng.randrange(5)), **fields}

    live = {f"d{i}": document(f"d{i}") for i in range(4)}
    index = Index.from_documents(live.values(), tmp_path / "a", latent=0)
    for step in range(8):
        if rng.random() < 0.6:
            names = rng.sample([f"d{i}" for i in range(12)], rng.randrange(1, 5))
            changed = {name: document(name) for name in names}
            index.add(changed.values())
            live |= changed
        else:
            names = rng.sample(sorted(live), rng.randrange(len(live)) if step < 7 else 1)
            index.delete(names)
            live = {name: values for name, values in live.items() if name not in names}
    fresh = Index.from_documents(live.values(), tmp_path / "b", latent=0)
    assert state(index) == state(fresh)
    columns = []
    for each in (index, fresh):
        features = TextFeatures(
            each, [*(name for name in FAMILIES if name not in ("latent", "vector")), "values"]
        )
        rows = each.forward.rows(sorted(live), "")
        columns.append(features.compute(each.forward.query("red w1 w1 shoe w99"), rows))
        chosen = [i for i, name in enumerate(features.names) if not name.startswith("feedback")]
        chosen = [i for i in chosen if features.names[i] != "first_stage.rank"]
        columns[-1] = columns[-1][:, chosen]
    np.testing.assert_allclose(
        columns[0], columns[1], rtol=1e-5, atol=1e-6
    )  # ranks of ties follow the rows


# --- crashes

WRITER = """
import os, random, sys, warnings
import numpy as np
import firstpage as fp
warnings.simplefilter("ignore")
path, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
index = fp.Index(path)
print("ready", os.getpid(), flush=True)
while True:
    names = [f"d{rng.randrange(60)}" for _ in range(8)]
    live = set(index.forward.row_of)
    if rng.random() < 0.2:
        documents = [{"id": f"d{i}", "title": f"red w{seed} w{i}"} for i in range(30)]
        print(sorted(d["id"] for d in documents), flush=True)
        index = fp.Index.from_documents(documents, path, overwrite=True, latent=4)
    elif rng.random() < 0.6:
        print(sorted(live | set(names)), flush=True)
        index.add([{"id": n, "title": f"red shoe {n} w{seed}"} for n in set(names)])
    else:
        print(sorted(live - set(names)), flush=True)
        index.delete(live & set(names))
"""


# Each writer is forked from a process that has imported everything, which takes most of a start.
FORKS = """
import os, sys
import firstpage.search.index
for line in sys.stdin:
    sys.argv[1:] = line.split()
    writer = os.fork()
    if writer == 0:
        exec(WRITER, {})
    os.waitpid(writer, 0)
    print("killed", flush=True)
"""


class KilledWriters:
    """Starts writers, and kills each after a while."""

    def __init__(self) -> None:
        code = f"WRITER = {WRITER!r}\n{FORKS}"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, path: Path, seed: int, delay: float) -> list[str]:
        """Return the ids after each change, announced by a writer that is killed after a while."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path} {seed}\n")
        self._process.stdin.flush()
        ready, _, writer = self._process.stdout.readline().partition(" ")
        assert ready == "ready", "the writer cannot open what the last one left"
        time.sleep(delay)
        os.kill(int(writer), signal.SIGKILL)
        announced = ""
        while not announced.endswith("killed\n"):
            announced += self._process.stdout.readline()
        return announced.removesuffix("killed\n").splitlines()

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


@pytest.mark.filterwarnings("ignore:.* after the latent space was fitted")
def test_a_killed_writer_leaves_a_committed_index(tmp_path: Path) -> None:
    path = tmp_path / "i"
    documents = [{"id": f"d{i}", "title": f"red w{i}"} for i in range(30)]
    Index.from_documents(documents, path, latent=4)
    rng, commits, writers = random.Random(1), 0, KilledWriters()
    for seed in range(22):
        before = str(sorted(Index(path).forward.row_of))
        announced = [before, *writers.run(path, seed, rng.uniform(0.0, 0.3))]
        if not announced[-1].endswith("]"):
            announced.pop()
        commits += len(announced) - 1
        index = Index(path)
        assert str(sorted(index.forward.row_of)) in announced[-2:]  # the last change, or none of it
        live = {name: {"id": name, **index.document(name)} for name in index.forward.row_of}
        assert sorted(ids(index, "red", 1000)) == sorted(live)
        if live:
            fresh = Index.from_documents(live.values(), tmp_path / f"fresh{seed}", latent=0)
            assert state(index) == state(fresh)
    writers.close()
    assert commits > 10
    index.add([{"id": "last", "title": "a last word"}])
    assert ids(index, "last") == ["last"]
    leftover = {entry.name.partition("-")[0] for entry in path.iterdir()}
    assert leftover <= {"engine", "forward", "index.json", "latent", "statistics", "vectors"}


def test_the_next_writer_removes_an_abandoned_manifest(tmp_path: Path) -> None:
    index = Index.from_documents([{"id": "a", "title": "red"}], tmp_path / "i", latent=0)
    abandoned = tmp_path / "i" / ".index.json-7-0123abcd"  # of a writer killed before the rename
    abandoned.write_text("{")
    index.add([{"id": "b", "title": "blue"}])
    assert not abandoned.exists()


def test_a_killed_creation_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    draft = tmp_path / ".i.new"
    (draft / "engine-1").mkdir(parents=True)
    (draft / "index.json").write_text("half")
    assert len(Index.from_documents(DOCUMENTS, tmp_path / "i", latent=0)) == 4
    assert [entry.name for entry in tmp_path.iterdir()] == ["i"]


# --- damage


def test_damaged_files(tmp_path: Path) -> None:
    """Every file, missing, empty, cut or overwritten, is told in one line or does not matter."""
    documents = [{"id": f"d{i}", "title": f"red w{i % 7} w{i % 3}", "n": i} for i in range(40)]
    source = tmp_path / "i"
    Index.from_documents(documents, source, latent=4)
    files = [
        f.relative_to(source) for f in source.rglob("*") if f.is_file() and f.suffix != ".lock"
    ]
    assert len(files) > 15
    refused = 0
    for file in files:
        for damage in ("missing", "empty", "cut", "zeros", "noise"):
            path = (
                tmp_path / f"{damage}-{'-'.join(file.parts)}"
            )  # the engine may hold older folders
            shutil.copytree(source, path)
            content = (path / file).read_bytes()
            damaged = {
                "empty": b"",
                "cut": content[: len(content) // 2],
                "zeros": bytes(len(content)),
                "noise": bytes(random.Random(0).randrange(256) for _ in content),
            }.get(damage)
            if damaged is None:
                (path / file).unlink()
            else:
                (path / file).write_bytes(damaged)
            try:
                warnings.simplefilter("ignore", RuntimeWarning)  # values may be anything
                index = Index(path)
                index.search("red w1 w2")
                index.document("d1")
                features = TextFeatures(index, ["letor", "matching", "latent.feedback", "values"])
                features.compute(index.forward.query("red w1"), np.arange(5))
            except DataError as error:
                refused += 1
                assert "\n" not in str(error)
                assert str(path) in str(error)
            shutil.rmtree(path, ignore_errors=True)
    assert refused > 2 * len(files)


def test_a_manifest_of_another_index_is_refused(index: Index) -> None:
    text = (index.path / "index.json").read_text()
    (index.path / "index.json").write_text(text.replace('"rows": 4', '"rows": 3'))
    with pytest.raises(DataError, match="damaged: its contents do not match its checksum"):
        Index(index.path)


def in_child(code: str, *arguments: object) -> str:
    """Return what a Python process prints, whose uid and limits may change."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk(index: Index) -> None:
    code = """
        import resource, signal, sys
        import firstpage as fp
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        words = [" ".join(f"w{i * j % 997}" for j in range(150)) for i in range(3000)]
        for path in sys.argv[1:]:
            index, limit = fp.Index(path), int(path.rpartition("-")[2])
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            try:
                index.add([{"id": i, "title": text} for i, text in enumerate(words)])
            except fp.DataError as error:
                print(error)
    """
    before = state(index)
    files = {file.relative_to(index.path) for file in index.path.rglob("*")}
    copies = [index.path.with_name(f"copy-{limit}") for limit in (100, 3_000, 60_000)]
    for copy in copies:
        shutil.copytree(index.path, copy)
    messages = in_child(code, *copies).splitlines()
    for copy, message in zip(copies, messages, strict=True):
        assert message.startswith(str(copy))
        assert state(Index(copy)) == before
        assert {file.relative_to(copy) for file in copy.rglob("*")} == files


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_of_somebody_else_can_be_searched(index: Index) -> None:
    code = """
        import os, sys
        import firstpage as fp
        fp.Index(sys.argv[1]).search("shoe")  # imports all that somebody else may not read
        os.setuid(65534)
        index = fp.Index(sys.argv[1])
        print(index.search("shoe")[0].id, index.document("s1")["title"])
        for call in (lambda: index.add([{"id": 1, "title": "x"}]),
                     lambda: fp.Index.from_documents([{"id": 1, "t": "x"}], sys.argv[1] + "2")):
            try:
                call()
            except fp.DataError as error:
                print(error)
    """
    for folder in (index.path, *index.path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    first, *errors = in_child(code, index.path).splitlines()
    assert first == "s4 Red shoes"
    assert [line.endswith("cannot write there (Permission denied).") for line in errors] == [
        True
    ] * 2


# --- following the documents of today


def test_sync_equals_a_new_index(index: Index, tmp_path: Path) -> None:
    today = [
        DOCUMENTS[0],
        {**DOCUMENTS[1], "price": 99},
        {"id": "s5", "title": "Green hat", "price": 20},
    ]
    before = index.generation
    changes = index.sync(today)
    assert (changes.added, changes.replaced, changes.deleted, changes.unchanged) == (1, 1, 2, 1)
    assert str(changes) == "1 added, 1 replaced, 2 deleted, 1 unchanged"
    assert index.generation == before + 1
    fresh = Index.from_documents(today, tmp_path / "fresh.index", latent=0)
    assert state(index) == state(fresh)
    again = index.sync(today)
    assert str(again) == "3 unchanged"
    assert index.generation == before + 1  # nothing was written


def test_sync_refuses_what_it_cannot_follow(index: Index) -> None:
    before = state(index)
    with pytest.raises(DataError, match="no documents to follow, so none is deleted"):
        index.sync([])
    with pytest.raises(DataError, match="'s1' is also at"):
        index.sync([DOCUMENTS[0], DOCUMENTS[0]])
    assert state(Index(index.path)) == before


def test_accents_are_folded_unless_kept(tmp_path: Path) -> None:
    rows = [{"id": "d1", "text": "un café noir"}, {"id": "d2", "text": "a cafe"}]
    folded = Index.from_documents(rows, tmp_path / "folded", language="none", latent=0)
    assert ids(folded, "cafe") == ids(folded, "CAFÉ") == ["d2", "d1"]
    kept = Index.from_documents(
        rows, tmp_path / "kept", language="none", latent=0, fold_accents=False
    )
    assert ids(kept, "café") == ["d1"]
    assert ids(Index(kept.path), "cafe") == ["d2"]


# --- misspelled words


TYPOS = [("shose", "shoe"), ("wimter", "winter"), ("runnning", "run"), ("womn", "women")]


@pytest.mark.parametrize(("typed", "term"), TYPOS)
def test_a_misspelled_word_is_corrected_on_request(index: Index, typed: str, term: str) -> None:
    query = index.forward.query(typed, typos=True)
    assert [index.forward.terms.terms[number] for number in query.terms] == [term]
    assert query.corrected == ((typed, term),)
    assert query.n_unknown == 0
    assert index.forward.query(typed).corrected == ()
    assert index.forward.query(typed).n_unknown == 1


@pytest.mark.parametrize("typed", ["redd", "s4", "coot1", "xyzzy", "blu", "the"])
def test_what_is_not_corrected(index: Index, typed: str) -> None:
    allowed = {"redd": (("redd", "red"),)}
    assert index.forward.query(typed, typos=True).corrected == allowed.get(typed, ())
