"""Tests of `firstpage dcglearn compare`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.formats.trec import to_run
from firstpage.data.preferences.utility import Utility
from tests.narrow import dense

RECIPE = fp.Synthetic(queries=20, docs="uniform(6, 15)", features=4, grades=3)
DATA = RECIPE.dataset()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    fp.write_letor(DATA, tmp_path / "data.txt")
    fp.write_qrels(DATA, tmp_path / "data.qrels")
    good, rng = RECIPE.true_utility(dense(DATA.X)), np.random.default_rng(0)
    for name, noise in (("good", 0.5), ("fair", 1.0), ("poor", 9.0)):
        scores = good + noise * rng.normal(size=DATA.n_docs)
        fp.write_scores(scores, tmp_path / f"{name}.scores")
        fp.write_run(to_run(DATA, scores, name), tmp_path / f"{name}.run")
    Utility.from_gains([0, 1, 5], [1, 0.6, 0.3]).save(tmp_path / "measure.json")
    return tmp_path


def test_text_reports_agreement_and_certificates(run, files) -> None:
    code, out, err = run(
        "dcglearn",
        "compare",
        "DCG@5",
        f"NDCG({files / 'measure.json'})@3",
        "--qrels",
        files / "data.qrels",
        files / "good.run",
        files / "fair.run",
        files / "poor.run",
    )
    assert (code, err) == (0, "")
    assert "20 queries, 3 systems" in out
    assert "% of 60 pairs of lists" in out
    assert out.count(" beats ") == 3
    assert "For any compatible gains and discounts: " in out


def test_json_is_equal_for_runs_and_scores(run, files) -> None:
    options = ("--json", "--baseline", "good", "--within", "1.2", "--max-boxes", "10")
    inputs = [
        (files / "data.txt", "--scores", files / "good.scores", "--scores", files / "poor.scores"),
        ("--qrels", files / "data.qrels", "--run", files / "good.run", "--run", files / "poor.run"),
    ]
    records = [
        json.loads(
            run("dcglearn", "compare", "NDCG@5", "DCG(gain=linear)@3", *arguments, *options)[1]
        )
        for arguments in inputs
    ]
    assert records[0]["agreement"] == records[1]["agreement"]
    verdict = records[0]["verdicts"][0]
    assert verdict["better"] == "good.scores"
    assert verdict["within"]["state"] == "proven"
    expected = fp.evaluate(fp.read_scores(files / "good.scores"), DATA, measures="NDCG@5")["NDCG@5"]
    assert records[0]["means"][0]["good.scores"] == pytest.approx(expected)


def test_page_is_self_contained(run, files) -> None:
    code, _, _ = run(
        "dcglearn",
        "compare",
        "DCG@5",
        "NDCG@5",
        files / "data.txt",
        "--scores",
        files / "good.scores",
        "--scores",
        files / "fair.scores",
        "-o",
        files / "page.html",
    )
    assert code == 0
    page = (files / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    for part in ("Agreement", "grade 2 or more", "Systems"):
        assert part in page


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["NDCG@5"], 2, "name two measures"),
        (["NDCG@5", "AP", "data.txt", "--scores", "good.scores"], 1, "only DCG and NDCG"),
        (["NDCG@5", "DCG@5", "data.txt", "--scores", "good.scores"], 2, "give at least two rankings"),
        (["NDCG@5", "DCG@5", "data.txt"], 2, "all as --scores or all as runs"),
        (["DCG(gain=[0, 1])@5", "DCG@5", "data.txt", "--scores", "good.scores", "--scores", "fair.scores"], 1, "have a grade 2"),
        (["DCG@5", "DCG@5", "--qrels", "data.qrels", "good.run", "other.run"], 1, "share no query"),
        (["DCG@5", "DCG@5", "--qrels", "half.qrels", "one.run", "two.run"], 1, "share no judged query"),
        (["DCG@5", "DCG@5", "data.txt", "--scores", "good.scores", "--scores", "fair.scores", "--within", "0.5"], 1, "at least 1"),
        (["DCG@5", "DCG@5", "data.txt", "--scores", "good.scores", "--scores", "fair.scores", "--baseline", "x"], 1, "no system 'x'"),
        (["DCG@5", "DCG@5", "data.txt", "--scores", "good.scores", "--scores", "fair.scores", "-o", "x.csv"], 2, ".html"),
    ],
)  # fmt: skip
def test_errors_are_one_line(run, files, monkeypatch, args, code, message) -> None:
    monkeypatch.chdir(files)
    Path("other.run").write_text("elsewhere Q0 d1 1 1.0 x\n")
    Path("half.qrels").write_text("a 0 d1 1\nb 0 d1 1\n")
    Path("one.run").write_text("a Q0 d1 1 1.0 x\n")
    Path("two.run").write_text("b Q0 d1 1 1.0 x\n")
    result = run("dcglearn", "compare", *args)
    assert result.returncode == code
    assert message in result.stderr
    assert result.stdout == ""
    if code == 1:
        assert len([x for x in result.stderr.splitlines() if "firstpage: note: " not in x]) == 1


def test_rankings_are_read_as_by_compare(run, files, monkeypatch) -> None:
    monkeypatch.chdir(files)
    base = ("dcglearn", "compare", "DCG@5", "NDCG@5", "data.qrels")
    by_pattern = json.loads(run(*base, "*.run", "--baseline", "good", "--json")[1])
    assert set(by_pattern["means"][0]) == {"good", "fair", "poor"}
    named = json.loads(run(*base, *(f"{n}.run" for n in ("fair", "good", "poor")), "--json")[1])
    assert named["means"] == by_pattern["means"]
    lines = Path("good.run").read_text().splitlines(keepends=True)
    Path("twice.run").write_text("".join([*lines, lines[0]]))
    twice = (*base, "twice.run", "fair.run", "--json")
    assert "twice" in run(*twice).stderr
    first = json.loads(run(*twice, "--duplicates", "first")[1])
    assert first["means"][0]["good"] == by_pattern["means"][0]["good"]


def test_cutoff_beyond_all_lists_equals_evaluate(files, monkeypatch) -> None:
    """Ranks without a document add nothing to a measure."""
    monkeypatch.chdir(files)
    data = fp.read_letor("data.txt")
    systems = {name: fp.read_scores(f"{name}.scores") for name in ("good", "fair")}
    coherence = fp.dcglearn.coherence(systems, data, "NDCG@50", "DCG@50")
    for name, scores in systems.items():
        evaluation = fp.evaluate(scores, data, measures=["NDCG@50", "DCG@50"])
        assert coherence.means[0][name] == pytest.approx(evaluation["NDCG@50"])
        assert coherence.means[1][name] == pytest.approx(evaluation["DCG@50"])
