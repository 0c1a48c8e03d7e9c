"""`firstpage train --clicks`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import firstpage as fp


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with documents, their log of clicks, and propensities."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    grades = np.clip(np.round(X[:, 0] + 1), 0, 4)
    qid, docid = np.repeat(np.arange(20).astype(str), 15), [str(n) for n in range(300)]
    data = fp.Dataset.from_arrays(X, grades, qid, docid=docid)
    run = fp.Run.from_arrays(qid, docid, X[:, 1])
    qrels = fp.Qrels.from_arrays(qid, docid, grades)
    sessions = fp.clicks.simulate(run, qrels, n_sessions=4000, noise=3.0, seed=1)
    fp.write_letor(data, tmp_path / "data.txt")
    rows = zip(qid, docid, grades, strict=True)
    lines = [f"{query} 0 {document} {grade:.0f}\n" for query, document, grade in rows]
    (tmp_path / "people.qrels").write_text("".join(lines))
    fp.clicks.write_sessions(sessions, tmp_path / "log.parquet")
    fp.clicks.estimate_propensities(sessions).save(tmp_path / "p.json")
    return tmp_path


@pytest.mark.parametrize("ranker", ["RankNet", "RankSVM", "ListNet"])
def test_clicks_train_a_model_that_evaluates_well(run, files: Path, ranker: str) -> None:
    model = files / "model.json"
    done = run(
        "train", ranker, files / "data.txt", "--clicks", files / "log.parquet", "--propensities",
        files / "p.json", "--correction", "policy-aware", "-o", model,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "of equal weight" in done.stderr
    assert ("votes on" in done.stdout) == (ranker != "ListNet")
    data = fp.read(files / "data.txt")
    assert fp.evaluate(fp.load(model).predict(data), data, measures="NDCG@10")["NDCG@10"] > 0.9


def test_trust_bias_of_clicks_propensities_corrects_clicks(run, files: Path) -> None:
    pytest.importorskip("polars")
    bias, estimate = files / "bias.json", ["clicks", "propensities", files / "log.parquet"]
    done = run(*estimate, "--trust", "--trust-to", bias)  # the documents vary too little
    assert done.returncode == 1
    assert not bias.exists()
    assert "trust bias is identified at no rank but the reference" in done.stderr
    done = run(*estimate, "--trust", "--qrels", files / "people.qrels", "--trust-to", bias)
    assert done.returncode == 0, done.stderr
    arguments = [files / "data.txt", "--clicks", files / "log.parquet", "-o", files / "m.json"]
    done = run("train", "ListNet", *arguments, "--propensities", bias, "--clip", "0.1")
    assert done.returncode == 0, done.stderr
    assert "corrected by empirical-bayes" in done.stderr
    assert "Mean propensities below 0.1 are raised" in done.stderr


def test_a_click_model_corrects_clicks(run, files: Path) -> None:
    pytest.importorskip("polars")
    log, model = files / "log.parquet", files / "model.json"
    done = run("clicks", "fit", log, "-m", "PBM", "-m", "RankCTR", "-o", model)
    assert done.returncode == 0, done.stderr
    arguments = [files / "data.txt", "--clicks", log, "--propensities", model]
    done = run("train", "ListNet", *arguments, "-o", files / "m.json")
    assert done.returncode == 0, done.stderr
    assert "corrected by empirical-bayes" in done.stderr
    data = fp.read(files / "data.txt")
    scores = fp.load(files / "m.json").predict(data)
    assert fp.evaluate(scores, data, measures="NDCG@10")["NDCG@10"] > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--propensities", "data.txt"], "not a propensity table file"),
        (["--qrels", "data.txt"], "--clicks replaces the labels of TRAIN; drop --qrels."),
        (["--valid", "data.txt"], "learns clicks as pairs, which --valid does not have"),
        (["--clip", "2"], "clip is above 0 and at most 1; got 2"),
    ],
)
def test_clicks_refuse_in_one_line(run, files: Path, options: list[str], message: str) -> None:
    options = [str(files / o) if o == "data.txt" else o for o in options]
    done = run("train", "RankSVM", files / "data.txt", "--clicks", files / "log.parquet",
               "-o", files / "m.json", *options)  # fmt: skip
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (files / "m.json").exists()


def test_options_of_clicks_require_clicks(run, files: Path) -> None:
    done = run("train", "ListNet", files / "data.txt", "--clip", "0.1", "-o", files / "m.json")
    assert "--clip requires --clicks" in done.stderr
