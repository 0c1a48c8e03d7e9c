"""`index`, `candidates`, `features` and `search` with hostile input: one line, and no traceback."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import FirstpageWarning
from tests.narrow import instance

pytest.importorskip("tantivy")

DOCUMENTS = [
    {"id": f"d{i}", "title": f"red {thing}", "text": f"A red {thing} for {who}.", "price": i + 0.5}
    for i, (thing, who) in enumerate(
        (thing, who) for thing in ("shoe", "coat", "hat") for who in ("women", "men", "children")
    )
]
QUERIES = {"q1": "red shoe", "q2": "coat for men", "q3": "hat"}
GRADES = {"q1": {"d0": 2, "d3": 0}, "q2": {"d4": 2, "d3": 1}, "q3": {"d7": 1}}
OWN = "long=own:length"


def lines(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, queries, candidates and two models, one with a feature of its own."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "own.py").write_text("def length(q, docs): return [len(d['text']) for d in docs]")
    index = fp.Index.from_documents(DOCUMENTS, folder / "shop.index", latent=0)
    lines(folder / "queries.jsonl", [{"id": q, "text": t} for q, t in QUERIES.items()])
    run = index.candidates(QUERIES.items())
    fp.write_run(run, folder / "c.run")
    qrels = fp.Qrels.from_dict(GRADES)
    fp.write_qrels(qrels, folder / "shop.qrels")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        patch.syspath_prepend(folder)
        for name, own in (("model", []), ("own", [OWN])):
            features = fp.TextFeatures(index, "letor,first_stage", own)
            ranker = fp.ListNet().fit(features.dataset(QUERIES.items(), run, qrels))
            ranker.save(folder / f"{name}.json")
    return folder


def test_a_title_that_repeats_the_id_is_not_printed(run: Any, tmp_path: Path) -> None:
    rows = [{"id": "dict.get", "title": "dict.get"}, {"id": "d2", "title": "get a value"}]
    fp.Index.from_documents(rows, tmp_path / "i.index", latent=0)
    printed = run("search", tmp_path / "i.index", "get").stdout.splitlines()
    assert [line.split()[1] for line in printed if "." in line[:4]] == ["dict.get", "d2"]
    assert "     get a value" in printed
    assert "     dict.get" not in printed


# --- an index that follows a folder


def test_sync_follows_a_folder(run: Any, tmp_path: Path) -> None:
    folder, index = tmp_path / "notes", tmp_path / "notes.index"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text(f"A note about {name} and cafés.")
    run("index", folder, "-o", index)
    (folder / "a.txt").write_text("Changed.")
    (folder / "b.txt").unlink()
    (folder / "d.txt").write_text("A new café.")
    result = run("index", folder, "-o", index, "--sync")
    assert "1 added, 1 replaced, 1 deleted, 1 unchanged" in result.stderr
    found = json.loads(run("search", index, "cafe", "--json").stdout)
    assert sorted(row["id"] for row in found["results"]) == ["c.txt", "d.txt"]
    assert "3 unchanged" in run("index", folder, "-o", index, "--sync").stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sync", "--add"], "exclude each other"),
        (["--sync", "--delete", "a.txt"], "leave out --delete"),
        (["--sync", "--accents"], "--accents requires a new index"),
    ],
)
def test_sync_excludes(run: Any, shop: Path, options: list[str], message: str) -> None:
    result = run("index", shop / "queries.jsonl", "-o", shop / "shop.index", *options)
    assert result.returncode == 2
    assert message in result.stderr


# --- functions that a model file names


def test_a_model_calls_only_functions_that_are_named(
    shop: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    search = "search", "shop.index", "red shoe", "--model", "own.json"
    for named in ([], ["--feature", "own:length"], ["--feature", "other:f"]):
        result = run(*search, *named)
        assert result.returncode == 1
        assert result.stderr == (
            f"firstpage: error: own.json: uses the function '{OWN}' as a feature. A model file may "
            f"call only functions that you name: --feature {OWN} (in Python: own=['{OWN}']).\n"
        )
    result = run(*search, "--feature", OWN)
    assert result.returncode == 0, result.stderr
    assert "d0" in result.stdout
    result = run("search", "shop.index", "red", "--feature", OWN)
    assert result.returncode == 2
    assert "--feature requires --model" in result.stderr


# --- hostile documents

INDEXED = {  # what the file holds, and what the command says
    "broken.jsonl": (b'{"id": 1, "text": "a \xff"}', "broken.jsonl:1: is not UTF-8 text"),
    "nul.jsonl": (b'{"id": 1, "text": "a \x00"}', "nul.jsonl:1: the line is not valid JSON"),
    "latin.I": (b".I 1\n.W\ncaf\xe9\n", "note: latin.I:3: is not UTF-8; such lines are read as Lat"),
    "no-header.csv": (b"1,red\n2,blue\n", "first line of a table is its header: '1', 'red'."),
    "twice.jsonl": (b'{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}', "'1' is also at twice"),
    "empty.jsonl": (b"", "there are no documents to index"),
    "no-text.jsonl": (b'{"id": 1, "text": ""}\n{"id": 2}', "the documents have no text field"),
    "nan.jsonl": (b'{"id": 1, "text": "a", "p": NaN}', "the field 'p' is not a finite number"),
    "inf.jsonl": (b'{"id": 1, "text": "a", "p": 1e999}', "the field 'p' is not a finite number"),
    "huge.jsonl": (b'{"id": 1, "text": "a", "p": 1e300}', "huge.jsonl:1: p is 1e+300, beyond the l"),
    "digits.jsonl": (b'{"id": 1, "text": "a", "p": %s}' % (b"9" * 5000), "is not valid JSON"),
    "mixed.jsonl": (
        b'{"id": 1, "text": "a", "p": 1}\n{"id": 2, "text": "a", "p": "cheap"}',
        "note: the field 'p' is searched as text, since 1 of its first 2 values are not numbers",
    ),
    "dates.jsonl": (
        b'{"id": 1, "text": "a", "d": "2020-01-01"}\n{"id": 2, "text": "a", "d": "2020-13-01"}',
        "note: the field 'd' is searched as text, since 1 of its first 2 values are not dates",
    ),
    "long-id.jsonl": (b'{"id": "%s", "text": "a"}' % (b"x" * 70_000), "the id has 70,000 characters"),
    "blank.jsonl": (
        b'{"id": "a b", "text": "a c"}',
        "note: i: 1 of 1 ids contain blanks, such as 'a b'; runs and judgments of them are separated "
        "by tabs, which trec_eval does not read, and LETOR text cannot store them.",
    ),
    "tab.jsonl": (b'{"id": "a\\tb", "text": "a"}', "the id contains the character '\\t'"),
    "list.jsonl": (b'[{"id": 1, "text": "a"}]', "list.jsonl:1: a line must be one JSON object"),
    "fields.jsonl": (
        json.dumps({"id": 1, "text": "a", **{f"f{i}": i for i in range(600)}}).encode(),
        "the documents have 601 fields, such as 'f599'; at most 500 can be indexed",
    ),
    "unknown": (b"\x01\x02", "unknown: its format is recognized neither by its name nor by its"),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEXED)
def test_hostile_documents(
    name: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content, message = INDEXED[name]
    Path(name).write_bytes(content)
    result = run("index", name, "-o", "i", "--latent", "0")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    said = [line for line in result.stderr.splitlines() if "wrote" not in line]
    assert all(line.startswith("firstpage: ") for line in said)
    assert (result.returncode == 0) == ("note: " in message) == Path("i").exists()


def test_years_1_and_9999(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dates = ["0001-01-01", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00"]
    lines(Path("d.jsonl"), [{"id": d, "text": "red", "day": d} for d in dates])
    lines(Path("q.jsonl"), [{"id": "q", "text": "red"}])
    assert run("index", "d.jsonl", "-o", "i", "--latent", "0").returncode == 0
    assert run("candidates", "i", "q.jsonl", "-o", "c.run").returncode == 0
    result = run("features", "i", "q.jsonl", "c.run", "--set", "values", "-o", "d.npz")
    assert result.returncode == 0, result.stderr
    assert instance(fp.Dataset, fp.read("d.npz")).feature_names == ("day.value", "day.log")


def test_links_in_a_folder(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    Path("elsewhere.txt").write_text("red shoe")
    Path("texts/a.txt").write_text("red coat")
    Path("texts/link.txt").symlink_to("../elsewhere.txt")
    Path("texts/dead.txt").symlink_to("nowhere.txt")
    Path("texts/loop").symlink_to("../texts")
    result = run("index", "texts", "-o", "i", "--latent", "0")
    assert "note: texts: 2 files are not read;" in result.stderr
    assert "note: texts: 1 of 2 files are links, such as 'link.txt'; what they" in result.stderr


# --- hostile queries and options

CALLS = [  # arguments, exit code, and what the command says
    (["search", "shop.index", "the of and"], 0, "no document matches: the query has no words but"),
    (["search", "shop.index", ""], 0, "no document matches: the query has no words but stop words."),
    (["search", "shop.index", "zebra"], 0, "no document matches."),
    (["search", "shop.index", "red", "--depth", "0"], 2, "0 is not in the range x>=1"),
    (["search", "shop.index", "red", "--depth", "9" * 25], 0, "9. d"),
    (["search", "shop.index", "red", "--model", "model.json", "--candidates", "2", "--depth", "3"], 1,
     "the depth is 3, and the model ranks 2 candidates; choose a smaller depth or more candidates."),
    (["search", "numbers.index", "12"], 0, "\n     12\n"),
    (["search", "shop.index", "hat " * 20_001], 0, "20,001 words; only the first 20,000 count"),
    (["search", "nowhere", "red"], 1, "nowhere: no such index"),
    (["search", ".", "red"], 1, "is not an index"),
    (["search", "shop.index", "red", "--model", "shop.qrels"], 1, "not a model file"),
    (["search", "other.index", "red", "--model", "model.json"], 1, "was trained with text fields or"),
    (["candidates", "shop.index", "queries.jsonl", "--depth", "0", "-o", "x.run"], 2, "x>=1"),
    (["candidates", "shop.index", "queries.jsonl", "--depth", "9" * 9, "-o", "x.run"], 0, "3 queries"),
    (["candidates", "shop.index", "queries.jsonl", "--weight", "title=2", "--weight", "title=3", "-o",
      "x.run"], 2, "--weight names title twice."),
    (["candidates", "shop.index", "queries.jsonl", "--tag", "", "-o", "x.run"], 2,
     "'' is not a tag: a tag has 1 to 100 characters and no blanks."),
    (["rank", "model.json", "c.run", "--tag", "a b", "-o", "x.run"], 2, "'a b' is not a tag"),
    (["aggregate", "c.run", "--tag", "x" * 101, "-o", "x.run"], 2, "is not a tag: a tag has 1 to"),
    (["candidates", "shop.index", "queries.jsonl", "--tag", "mine", "-o", "x.run"], 0, "Run(mine: 3"),
    (["candidates", "shop.index", "stop.jsonl", "-o", "x.run"], 1, "no query matches a document"),
    (["candidates", "blank.index", "queries.jsonl", "-o", "x.run"], 0, "separated by tabs"),
    (["features", "less.index", "queries.jsonl", "c.run", "-o", "x.tab"], 1,
     "x.tab: its suffix is not that of a known format"),  # before anything is read
    (["features", "less.index", "queries.jsonl", "c.run", "-o", "x.npz"], 1,
     "c.run: a document is not in the index, such as 'd4'; add what is missing, or"),
    (["features", "shop.index", "queries.jsonl", "c.run", "--qrels", "shop.qrels", "-o", "x.npz"], 0,
     "note: c.run: chose "),
    (["features", "shop.index", "queries.jsonl", "stray.run", "-o", "x.npz"], 1, "have no text, such"),
    (["candidates", "shop.index", "queries.jsonl", "--tune", "--qrels", "three.rel", "-o", "x.run"], 1,
     "3 fields instead of 4"),
    (["candidates", "shop.index", "queries.jsonl", "--tune", "--qrels", "nothing.qrels", "-o", "x.run"],
     1, "nothing.qrels: a search finds no relevant document of 2 queries, so nothing can be tuned"),
    (["features", "shop.index", "queries.jsonl", "c.run", "--qrels", "nothing.qrels", "-o", "x.npz"], 1,
     "nothing.qrels: judges none of the 17 candidates; are the ids of documents the same?"),
    (["candidates", "shop.index", "queries.jsonl", "--tune", "--qrels", "stray.qrels", "-o", "x.run"],
     0, "1 of 3 queries are not judged, and 1 of 3 judged queries are not among the queries, such "
     "as '9'; if the judgments number the queries in their order, use --ordinal."),
]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(shop: Path) -> Path:
    lines(shop / "stop.jsonl", [{"id": "q1", "text": "the"}])
    fp.Index.from_documents(DOCUMENTS, shop / "other.index", language="german", latent=0)
    blank = [{**DOCUMENTS[0], "id": "a b"}]
    fp.Index.from_documents(blank, shop / "blank.index", latent=0)
    numbers = [{"id": "d1", "title": 12}]
    fp.Index.from_documents(numbers, shop / "numbers.index", fields={"title": "text"}, latent=0)
    fp.Index.from_documents(DOCUMENTS, shop / "less.index", latent=0).delete(["d4"])
    (shop / "stray.run").write_text("q9 Q0 d1 1 1.5 x\n")
    (shop / "three.rel").write_text("q1 d1 2\n")
    (shop / "nothing.qrels").write_text("q1 0 x0 1\nq2 0 x4 1\n")
    (shop / "stray.qrels").write_text("q1 0 d0 1\nq2 0 d4 1\n9 0 d1 1\n")
    return shop


@pytest.mark.parametrize(("words", "code", "message"), CALLS, ids=lambda value: str(value)[:60])
def test_hostile_calls(
    words: list[str],
    code: int,
    message: str,
    hostile: Path,
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(hostile)
    result = run(*words)
    assert message in result.stderr + result.stdout
    assert result.returncode == code
    assert "Traceback" not in result.stderr


def test_the_command_chooses_as_python_does_and_the_model_searches(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(30)]
    rows = [
        {
            "id": f"d{i}",
            "title": " ".join(rng.choice(words, 3)),
            "text": " ".join(rng.choice(words, 9)),
            "price": float(i),
        }
        for i in range(40)
    ]
    queries = [(f"q{i}", f"w{i} w{i + 1}") for i in range(8)]
    Path("q.jsonl").write_text("".join(json.dumps({"id": q, "text": t}) + "\n" for q, t in queries))
    index = fp.Index.from_documents(rows, "i", latent=0)
    candidates = index.candidates(queries)
    grades = {
        q: {d: float(n % 3) for n, d in enumerate(row)} for q, row in candidates.to_dict().items()
    }
    fp.write_qrels(fp.Qrels.from_dict(grades), "g.qrels")
    fp.write_run(candidates, "c.run")
    printed = run("features", "i", "q.jsonl", "c.run", "--qrels", "g.qrels", "-o", "d.npz")
    assert printed.stderr.count(" chose ") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        computed = fp.TextFeatures(index).dataset(queries, candidates, fp.read_qrels("g.qrels"))
        expected = fp.choose_features(computed)
        written = instance(fp.Dataset, fp.read("d.npz"))
        assert written.feature_names == expected.feature_names
        assert written.recipe == expected.recipe
        ranker = fp.ListNet().fit(written)
        assert len(fp.Searcher(index, ranker).search("w1")) > 0
    printed = run(
        "features", "i", "q.jsonl", "c.run", "--qrels", "g.qrels", "--set", "all", "-o", "a.npz"
    )
    assert " chose " not in printed.stderr
    assert instance(fp.Dataset, fp.read("a.npz")).n_features == computed.n_features


def test_tuning_stores_only_what_is_better(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": "d1", "title": "red shoe", "text": "blue"},
        {"id": "d2", "title": "blue", "text": "red red shoe"},
    ]
    index = fp.Index.from_documents(rows, "i", latent=0)
    lines(Path("q.jsonl"), [{"id": "q1", "text": "red shoe"}])
    tune = "candidates", "i", "q.jsonl", "--tune", "-o", "c.run", "--qrels"
    for name, document in (("title", "d1"), ("text", "d2"), ("stray", "other")):
        Path(f"{name}.qrels").write_text(f"q1 0 {document} 1\n")
    first = run(*tune, "title.qrels")
    stored = fp.Index("i").first_stage.scoring
    assert stored != index.first_stage.scoring
    assert (
        f"note: i: stored {stored}, with NDCG@10 1.0000 on 1 judged queries; before BM25(k1=1."
        in (first.stderr)
    )
    again = run(*tune, "title.qrels")
    assert f"note: i: keeps {stored}, with NDCG@10 1.0000 on 1 judged queries; tuning found" in (
        again.stderr
    )
    assert run(*tune, "stray.qrels").returncode == 1
    assert fp.Index("i").first_stage.scoring == stored
    assert run(*tune, "text.qrels").returncode == 0
    assert fp.Index("i").first_stage.scoring != stored
