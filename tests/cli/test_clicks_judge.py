"""`firstpage clicks judge`: from a log to judgments that the other commands read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from tests.clicks.judgments.logs import position_log


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    log, rates = position_log(1500, queries=6, documents=7)
    lines = ["query,document,rank,clicked,page"]
    for row, page in enumerate(log.page):
        query, document = log.queries[log.page_query[page]], log.documents[log.document[row]]
        lines.append(f"{query},{document},{log.rank[row]},{int(log.clicked[row])},{page}")
    Path("log.csv").write_text("\n".join(lines) + "\n")
    truth = {
        f"q{q}": {
            f"d{d}": int(np.searchsorted([0.15, 0.3, 0.5], rate)) for d, rate in enumerate(row)
        }
        for q, row in enumerate(rates)
    }
    fp.write_qrels(fp.Qrels.from_dict(truth), "human.qrels")
    for name, noise in (("good", 0.05), ("bad", 1.0)):
        scores = rates + np.random.default_rng(1).normal(0, noise, rates.shape)
        table = {f"q{q}": {f"d{d}": s for d, s in enumerate(row)} for q, row in enumerate(scores)}
        fp.write_run(fp.Run.from_dict(table, name), f"{name}.run")
    letor = [
        f"0 qid:q{q} 1:{rate + 0.1:.3f} 2:{d} # docid = d{d}"
        for q, row in enumerate(rates)
        for d, rate in enumerate(row)
    ]
    Path("train.txt").write_text("\n".join(letor) + "\n")
    return tmp_path


def test_the_other_commands_read_the_judgments(run, files: Path) -> None:
    done = run("clicks", "judge", "log.csv", "-o", "clicks.qrels")
    assert done.returncode == 0
    assert "42 judgments of 6 queries by coec" in done.stdout
    assert "firstpage evaluate RUN --qrels clicks.qrels" in done.stderr
    log = fp.read_sessions("log.csv")
    assert fp.read_qrels("clicks.qrels").to_dict() == fp.clicks.judge(log).qrels().to_dict()
    judged = ("--qrels", "clicks.qrels", "-m", "NDCG@5")
    values = {}
    for name in ("good", "bad"):
        record = json.loads(run("evaluate", f"{name}.run", *judged, "--json").stdout)
        values[name] = record["measures"]["NDCG@5"]
    assert values["good"] > values["bad"] + 0.1
    compared = run("compare", "good.run", "bad.run", *judged)
    assert (compared.returncode, "NDCG@5" in compared.stdout) == (0, True)


def test_training_reads_grades_and_confidences(run, files: Path) -> None:
    assert run("clicks", "judge", "log.csv", "--method", "sdbn", "-o", "c.jsonl").returncode == 0
    truth = fp.read_truth("c.jsonl")
    assert truth.query_weights is not None
    assert (truth.query_weights > 0).all()
    assert (truth.query_weights < 1).all()
    trained = run("train", "ListNet", "train.txt", "--qrels", "c.jsonl", "-o", "model.json")
    assert trained.returncode == 0
    ranked = run("rank", "model.json", "train.txt", "-o", "ranked.run")
    assert ranked.returncode == 0
    human = fp.read_qrels("human.qrels")
    value = fp.evaluate(fp.read_run("ranked.run"), human, measures="Tau")["Tau"]
    assert value > 0.5  # the first feature is the rate


def test_agreement_with_people_and_the_page(run, files: Path) -> None:
    options = ("--against", "human.qrels", "--html", "page.html")
    done = run("clicks", "judge", "log.csv", *options)
    assert done.returncode == 0
    for text in ("weighted kappa of the grades", "Kendall's tau", "NDCG@10 of a random order"):
        assert text in done.stdout
    page = Path("page.html").read_text()
    assert "Agreement with people" in page
    assert page.count("<svg") == 1
    record = json.loads(run("clicks", "judge", "log.csv", *options, "--json").stdout)
    assert record["agreement"]["tau"][0] > 0.3
    assert record["agreement"]["documents"] == record["judgments"] == 42


def test_undecided_documents_become_a_run(run, files: Path) -> None:
    done = run("clicks", "judge", "log.csv", "--to-label", "undecided.run", "--depth", 3)
    assert "firstpage label setup PROJECT --run undecided.run" in done.stderr
    undecided = fp.read_run("undecided.run")
    log = fp.read_sessions("log.csv")
    assert undecided.to_dict() == fp.clicks.judge(log, depth=3).undecided().to_dict()
    everything = ("--confidence", "0.01", "--to-label", "none.run")
    decided = run("clicks", "judge", "log.csv", *everything)
    assert "there is nothing to label" in decided.stderr
    assert not Path("none.run").exists()


def test_undecided_pages_join_a_labeling_project(run, files: Path) -> None:
    pytest.importorskip("sqlalchemy")
    texts = [json.dumps({"id": f"d{d}", "text": f"text of d{d}"}) for d in range(7)]
    Path("texts.jsonl").write_text("\n".join(texts) + "\n")
    first = fp.Run.from_dict({"q0": {"d0": 2.0, "d1": 1.0}})
    fp.write_run(first, "first.run")
    texts_of = ("--collection", "texts.jsonl")
    people = ("--lead", "lena", "--assessor", "ada")
    setup = run("label", "setup", "shop", "--run", "first.run", *texts_of, *people)
    assert setup.returncode == 0, setup.stderr
    send = ("clicks", "judge", "log.csv", "--confidence", "0.99", "--send-to", "shop")
    done = run(*send, *texts_of)
    assert done.returncode == 0, done.stderr
    assert "shop: 1 of 6 queries are there already" in done.stderr
    assert "shop: added 5 queries" in done.stdout
    assert "ada: 6 queries" in done.stdout
    listed = run("label", "queries", "shop").stdout
    assert all(f"q{q}" in listed for q in range(6))
    assert "6 of 6 queries are there already" in run(*send, *texts_of).stderr
    assert "--send-to needs --collection" in run(*send).stderr
    assert "has no labeling project" in run(*send[:-1], "elsewhere", *texts_of).stderr


def test_models_and_propensities(run, files: Path) -> None:
    log = fp.read_sessions("log.csv")
    model = fp.clicks.UBM().fit(log)
    fp.clicks.save_model(model, "model.json")
    propensities = run("clicks", "propensities", "log.csv", "-o", "p.json")
    assert propensities.returncode == 0
    cases: dict[str, tuple[tuple[str, ...], Any]] = {
        "ubm": (("--method", "ubm"), model),
        "stored": (("--model", "model.json"), model),
        "propensities": (("--propensities", "p.json"), fp.clicks.Propensities.load("p.json")),
    }
    for options, method in cases.values():
        done = run("clicks", "judge", "log.csv", *options, "-o", "c.qrels")
        assert done.returncode == 0, done.stderr
        expected = fp.clicks.judge(log, method).qrels().to_dict()
        assert fp.read_qrels("c.qrels").to_dict() == expected
    both = run("clicks", "judge", "log.csv", "--model", "model.json", "--propensities", "p.json")
    assert "--model or --propensities, not both" in both.stderr
    idle = run("clicks", "judge", "log.csv", "--model", "model.json", "--method", "ctr")
    assert "--method requires neither --model nor --propensities" in idle.stderr


def test_spellings_and_levels(run, files: Path) -> None:
    text = Path("log.csv").read_text().replace("q1,", "Red Shoes,").replace("q2,", "red shoe,")
    Path("log.csv").write_text(text)
    options = ("-o", "c.qrels", "--levels", "0.5,1.5", "--min-confidence", "0.6")
    assert run("clicks", "judge", "log.csv", "--group-queries", "stems", *options).returncode == 0
    qrels = fp.read_qrels("c.qrels").to_dict()
    assert qrels["Red Shoes"] == qrels["red shoe"]
    assert {grade for grades in qrels.values() for grade in grades.values()} <= {0.0, 1.0, 2.0}
    separate = run("clicks", "judge", "log.csv", "--group-queries", "case", *options)
    assert "left out" in separate.stderr
    qrels = fp.read_qrels("c.qrels").to_dict()
    assert qrels["Red Shoes"] != qrels["red shoe"]


def test_mistakes_are_one_line(run, files: Path) -> None:
    cases = [
        (("--levels", "a,b"), 1, "--levels takes numbers"),
        (("--levels", "2,1"), 1, "levels must be positive and ascending"),
        (("--quantile", "2"), 1, "quantile must be between 0 and 1"),
        (("--min-confidence", "0.5"), 2, "--min-confidence requires -o"),
        (("-o", "clicks.pdf"), 2, "-o"),
        (("--against", "good.run"), 1, "good.run"),
    ]
    for options, code, text in cases:
        done = run("clicks", "judge", "log.csv", *options)
        assert (done.returncode, text in done.stderr) == (code, True), done.stderr
        assert "Traceback" not in done.stderr
    fp.write_qrels(fp.Qrels.from_dict({"z": {"d0": 1}}), "other.qrels")
    other = run("clicks", "judge", "log.csv", "--against", "other.qrels")
    assert "no displayed document is judged by people" in other.stderr
