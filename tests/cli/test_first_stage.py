"""`index --vectors`, `--first` and `--tune`, from documents to a model that searches and is exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp
from tests.search.meaning import ENCODER
from tests.search.test_first_stage import DOCUMENTS, GRADES, QUERIES, judged

pytest.importorskip("tantivy")
NAMED = ("--encoder", ENCODER)


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write documents, queries and judgments to the current folder."""
    monkeypatch.chdir(tmp_path)
    queries, qrels = judged(30)
    for name, rows in (
        ("shop", DOCUMENTS),
        ("many", [{"id": q, "text": text} for q, text in queries]),
        ("queries", [{"id": q, "text": text} for q, text in QUERIES]),
    ):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fp.write_qrels(qrels, "many.qrels")
    fp.write_qrels(fp.Qrels.from_dict(GRADES), "shop.qrels")


def index(run: Any, *options: str) -> Any:
    result = run("index", "shop.jsonl", "-o", "i", "--latent", "0", *options)
    assert result.returncode == 0, result.stderr
    return result


def test_from_documents_to_a_model(run: Any) -> None:
    assert "6 of 7 documents" in index(run, "--vectors", ENCODER).stderr
    assert "hybrid" in run("candidates", "i", "queries.jsonl", "-o", "c.run", *NAMED).stderr
    features = [
        "features",
        "i",
        "queries.jsonl",
        "c.run",
        "--qrels",
        "shop.qrels",
        "-o",
        "d.npz",
        *NAMED,
    ]
    assert run(*features).returncode == 0
    assert run("train", "ListNet", "d.npz", "-o", "m.json").returncode == 0
    found = json.loads(run("search", "i", "jacket", "--model", "m.json", "--json", *NAMED).stdout)
    assert found["first_stage"] == "hybrid"
    assert {"coat", "parka"} <= {row["id"] for row in found["results"]}
    assert all(set(row["stage_ranks"]) == {"dense"} for row in found["results"])
    text = run("search", "i", "red shoe", *NAMED).stdout
    assert "bm25 1, dense 1" in text
    exported = run("export", "m.json", "--to", "numpy", "-o", "e/")
    assert "are computed from vectors of" in exported.stderr
    other = run("index", "shop.jsonl", "-o", "other", "--latent", "0")
    assert other.returncode == 0
    refused = run("search", "other", "jacket", "--model", "m.json")
    assert (refused.returncode, "has none; add them" in refused.stderr) == (1, True)


@pytest.mark.parametrize("kind", ["bm25", "dense", "hybrid"])
def test_candidates_of_each_stage(run: Any, kind: str) -> None:
    index(run, "--vectors", ENCODER)
    assert (
        run("candidates", "i", "queries.jsonl", "--first", kind, "-o", "c.run", *NAMED).returncode
        == 0
    )
    expected = fp.Index("i", ENCODER).candidates(QUERIES, first=kind).to_dict()
    written = fp.read_run("c.run").to_dict()
    assert written.keys() == expected.keys()
    for name, documents in expected.items():
        assert written[name] == pytest.approx(documents)


def test_tuning_stores_the_fusion(run: Any) -> None:
    index(run, "--vectors", ENCODER)
    result = run(
        "candidates", "i", "many.jsonl", "--tune", "--qrels", "many.qrels", "-o", "c.run", *NAMED
    )
    assert result.returncode == 0, result.stderr
    assert "equal weights" in result.stderr  # the table
    assert fp.Index("i").first_stage.kind in ("dense", "hybrid")
    folds = ["--tune", "--qrels", "many.qrels", "--folds", "3"]
    before = fp.Index("i").first_stage
    result = run("candidates", "i", "many.jsonl", *folds, "-o", "f.run", *NAMED)
    assert result.stderr.count("fold ") == 3
    assert fp.Index("i").first_stage == before
    assert len(fp.read_run("f.run")) == 30
    words = run(
        "candidates", "i", "many.jsonl", "--first", "bm25", "--tune", "--qrels", "many.qrels",
        "-o", "w.run",
    )  # fmt: skip
    assert words.returncode in (0, 1)
    assert fp.Index("i").first_stage.kind == before.kind


def test_settings_of_searches(run: Any) -> None:
    index(run)
    result = run("index", "-o", "i", "--typos")
    assert "searches by BM25(k1=1.2, b=0.75), typos corrected" in result.stderr
    assert (
        "no document contains crimsen; crimson stands for it"
        in run("search", "i", "crimsen").stdout
    )
    found = json.loads(run("search", "i", "crimsen", "--json").stdout)
    assert found["corrected"] == {"crimsen": "crimson"}
    assert (
        "no document matches"
        in (run("index", "-o", "i", "--no-typos") and run("search", "i", "crimsen")).stdout
    )
    refused = run("index", "-o", "i", "--first", "hybrid")
    assert (refused.returncode, "has no vectors" in refused.stderr) == (1, True)
    assert run("search", "i", "red", "--first", "dense").returncode == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--first", "dense", "--k1", "1"], "--k1 requires a search by words"),
        (["--first", "dense", "--weight", "text=2"], "--weight requires a search by words"),
        (["--encoder", ENCODER], "--encoder requires an INDEX with vectors"),
    ],
)
def test_options_without_effect_are_refused(run: Any, options: list[str], message: str) -> None:
    index(run)
    result = run("candidates", "i", "queries.jsonl", *options, "-o", "c.run")
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr


def test_replace_vectors_is_not_for_new_documents(run: Any) -> None:
    index(run, "--vectors", ENCODER)
    added = "index", "shop.jsonl", "-o", "i", "--add", "--vectors", ENCODER
    result = run(*added, "--replace-vectors")
    assert result.returncode == 2
    assert "--replace-vectors requires --vectors without DOCUMENTS" in result.stderr
