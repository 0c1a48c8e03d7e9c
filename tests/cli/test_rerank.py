"""`firstpage rerank`: from a run to a better one, its labels, and one line on bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp

pytest.importorskip("tantivy")

DOCUMENTS = [
    {"id": f"d{n}", "title": f"tea {n}", "text": "green tea " * (n + 1), "price": n}
    for n in range(8)
]
TASTE = """
def longest(query, documents):
    return [d.key for d in sorted(documents, key=lambda d: -len(d.body))]

def nobody(query, documents):
    return "nobody"

def broken(query, documents):
    return 1 / 0
"""
RERANK = ("rerank", "first.run", "shop.jsonl", "queries.jsonl", "-o", "better.run", "--k", "3")


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "taste", None)  # removed again by the next line
    monkeypatch.delitem(sys.modules, "taste")
    Path("shop.jsonl").write_text("".join(json.dumps(row) + "\n" for row in DOCUMENTS))
    Path("queries.jsonl").write_text('{"id": "q", "text": "tea"}\n{"id": "r", "text": "green"}\n')
    Path("taste.py").write_text(TASTE)
    scores = {f"d{n}": 8.0 - n for n in range(8)}
    fp.write_run(fp.Run.from_dict({"q": scores, "r": scores}, "first"), "first.run")


def test_a_run_is_reranked_and_its_answers_train(run: Any) -> None:
    options = ("--assessor", "taste:longest", "--cache", "replies.jsonl", "--labels", "votes.csv")
    first = run(*RERANK, *options)
    assert first.returncode == 0, first.stderr
    assert "(0 from the cache)" in first.stdout
    better = Path("better.run").read_text()
    assert [line.split()[2] for line in better.splitlines()[:3]] == ["d7", "d6", "d5"]
    again = run(*RERANK, *options, "--json")
    queries = json.loads(again.stdout)["queries"]
    assert [each["cached"] for each in queries] == [each["calls"] for each in queries]
    assert Path("better.run").read_text() == better
    assert run("evaluate", "--run", "better.run", "--pairs", "votes.csv").returncode == 0
    run("index", "shop.jsonl", "-o", "shop.index")
    indexed = run(*RERANK[:2], "shop.index", *RERANK[3:], *options)
    assert indexed.returncode == 0
    assert Path("better.run").read_text() == better
    assert (
        run("features", "shop.index", "queries.jsonl", "better.run", "-o", "d.npz").returncode == 0
    )
    trained = run("train", "RankNet", "d.npz", "--pairs", "votes.csv", "-o", "m.json")
    assert trained.returncode == 0, trained.stderr


def test_replies_that_are_no_answer_are_reported(run: Any) -> None:
    result = run(*RERANK, "--assessor", "taste:nobody", "--calls", "4")
    assert "8 of 8 replies were malformed" in result.stderr
    assert "queries stopped at: 4 calls (2)" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--assessor", "taste:broken"), "taste:broken failed on query q, 8 documents: ZeroDiv"),
        (("--assessor", "nothing"), "there is no such folder"),
        (("--assessor", "http://localhost/v1"), "name the model after #"),
        (("--assessor", "http://127.0.0.1:9/v1#m", "--attempts", "1"), "cannot be reached"),
        (("--assessor", "taste:longest", "--timeout", "3"), "--timeout requires an endpoint"),
        (("--assessor", "taste:longest", "--max-price", "3"), "--max-price requires --prices"),
        (("--assessor", "taste:longest", "--size", "30"), "from 2 to 26 documents"),
        (("--assessor", "taste:longest", "--cache", "shop.jsonl"), "is also read"),
        (("--assessor", "taste:longest", "--labels", "votes.qrels"), "must end in .csv"),
    ],
)
def test_bad_options_are_one_line(run: Any, options: tuple[str, ...], message: str) -> None:
    result = run(*RERANK, *options)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_document_without_text_is_named(run: Any) -> None:
    rows = Path("shop.jsonl").read_text().splitlines(keepends=True)
    Path("shop.jsonl").write_text("".join(rows[1:]))
    result = run(*RERANK, "--assessor", "taste:longest")
    assert "shop.jsonl: has no document 'd0', which the run has for 'q'" in result.stderr
