"""The whole demo: its files, its figures, its commands."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.demo import loop, report
from firstpage.demo.labeling import K
from firstpage.demo.output import FILES, KIND
from firstpage.demo.rankings import RANKERS
from tests.demo.small import QUESTIONS


@pytest.fixture(scope="module")
def figures(done: Path) -> dict:
    return KIND.read(done / "demo.json")["figures"]


def test_all_files_are_written(done: Path) -> None:
    for name in FILES:
        assert (done / name).stat().st_size, name
    assert {run.name for run in (done / "runs").iterdir()} >= {
        "ranksvm.run",
        "all-four-together.run",
    }


def test_judged_file_has_the_labels_of_the_assessors(done: Path) -> None:
    data = fp.read_letor(done / "judged.txt")
    correct = fp.read_letor(done / "collection.txt")
    keys = np.array(list(data.docids))
    for line in (done / "truth.jsonl").read_text().splitlines():
        truth = json.loads(line)
        q = list(data.queries).index(truth["query"])
        rows = slice(*data.offsets[q : q + 2])
        labels = dict(zip(keys[rows], data.y[rows], strict=True))
        assert labels == {k: 0 if k in truth["bad"] else v for k, v in truth["labels"].items()}
        assert set(truth["order"]) <= set(labels)
    assert set(np.unique(data.y)) <= set(range(K + 1))
    assert not np.array_equal(data.y > 0, correct.y > 0)  # assessors err


def test_figures_match_an_evaluation_of_the_files(done: Path, figures: dict) -> None:
    qrels = fp.read_qrels(done / "collection.qrels")
    for name in RANKERS:
        run = fp.read_run(done / "runs" / f"{name.lower().replace('(k=', '-k-').strip(')')}.run")
        evaluation = fp.evaluate(run, qrels, measures=["NDCG@5", "RR"])
        reported = figures["comparison"]["systems"][name]
        assert evaluation["NDCG@5"] == pytest.approx(reported["NDCG@5"])
        by_learned = fp.evaluate(
            run,
            qrels,
            measures=fp.measure("NDCG@5", of=fp.dcglearn.read_utility(done / "measure.json")),
        )
        reported = figures["measure"]["comparison"]["systems"][name]
        assert by_learned.values.mean() == pytest.approx(next(iter(reported.values())))
    best = max(RANKERS, key=lambda n: figures["comparison"]["systems"][n]["NDCG@5"])
    assert figures["best"] == best


def test_correct_first_results_are_counted(done: Path, figures: dict) -> None:
    qrels = fp.read_qrels(done / "collection.qrels").to_dict()
    runs = fp.read_run(done / "runs" / "ranksvm.run").to_dict()
    correct = sum(qrels[q][max(docs, key=lambda d: docs[d])] > 0 for q, docs in runs.items())
    assert figures["first_correct"]["RankSVM"] == correct


def test_the_application_has_all_tasks_and_judgments(done: Path, figures: dict) -> None:
    from firstpage.web.analysis.figures import progress
    from firstpage.web.store.connect import Store
    from firstpage.web.store.projects import by_slug

    store = Store(done)
    with store.read() as tx:
        questions, pages = (progress(tx, by_slug(tx, slug)) for slug in ("questions", "pages"))
    store.close()
    assert (
        questions["all"]["done"]
        == questions["all"]["tasks"]
        == QUESTIONS + figures["labels"]["judged_by_two"]
    )
    assert questions["all"]["judgments"] == figures["labels"]["judgments"]
    assert pages["all"]["judgments"] == figures["measure"]["judgments"]
    assert figures["labels"]["minutes"] * 60 / figures["labels"]["judgments"] == pytest.approx(
        5.51, rel=0.2
    )


def test_the_report_has_no_external_resources(done: Path, figures: dict) -> None:
    text = (done / "report.html").read_text()
    assert "<script" not in text
    assert not re.search(r"(src|href)=", text)
    assert f"{figures['first_correct'][figures['best']]} of {figures['questions']}" in text
    assert text.count("<svg") > 5


@pytest.mark.slow
def test_the_commands_of_the_report_run(
    done: Path, figures: dict, tmp_path: Path, monkeypatch, run
) -> None:
    """The commands run in the folder as the report prints them."""
    shutil.copytree(done, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    text = unescape((done / "report.html").read_text())
    for _, commands in report.demo_commands(figures["baseline"], figures["best"])[1:]:
        for command in commands:
            assert f"<pre>{command}</pre>" in text
            result = run(*shlex.split(command)[1:])
            assert result.returncode == 0, (command, result.stderr)
    assert fp.load("mine.json")
    assert len(fp.read_run("mine.run")) == figures["questions"]


def test_steps_are_printed_with_their_durations(printed: str, done: Path) -> None:
    assert [int(n) for n in re.findall(r"^(\d)\. ", printed, re.M)] == list(range(1, 8))
    assert len(re.findall(r"^   \d+\.\d s$", printed, re.M)) == 7
    assert f"Open {done / 'report.html'}" in printed
    assert max(map(len, printed.splitlines())) < 110 or str(done) in max(
        printed.splitlines(), key=len
    )


@pytest.mark.slow
def test_a_second_run_in_the_same_folder_replaces_only_its_files(
    small, done: Path, tmp_path: Path, run
) -> None:
    shutil.copytree(done, tmp_path / "copy")
    (tmp_path / "copy" / "notes.txt").write_text("mine")
    (tmp_path / "copy" / "truth.jsonl").write_text("old")
    assert run("demo", "-o", tmp_path / "copy").returncode == 0
    assert (tmp_path / "copy" / "truth.jsonl").read_text() == (done / "truth.jsonl").read_text()
    assert (tmp_path / "copy" / "notes.txt").read_text() == "mine"


def test_an_interrupt_prints_one_line(small, tmp_path: Path, run, monkeypatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "label_questions", interrupt)
    result = run("demo", "-o", tmp_path)
    assert (result.returncode, result.stderr.strip()) == (130, "firstpage: stopped.")
