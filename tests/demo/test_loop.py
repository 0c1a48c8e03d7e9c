"""The whole demo: its files, its figures, its commands."""

from __future__ import annotations

import re
import shlex
import shutil
from html import unescape
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.demo import loop
from firstpage.demo.labeling import K
from firstpage.demo.output import FILES, INDEX, KIND, slug
from firstpage.demo.project import SimulatedAssessor, SimulatedEditor
from firstpage.demo.rankings import RANKERS
from firstpage.labeling.app.app import LOCAL, prepare_single_user
from firstpage.labeling.app.machines import judge
from firstpage.labeling.app.store import people
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.projects import find_project
from tests.demo.small import QUESTIONS
from tests.narrow import instance, present

RUN_FILES = [f"runs/{slug(name)}.run" for name in ("BM25", *RANKERS, "aggregate")]


@pytest.fixture(scope="module")
def figures(done: Path) -> dict:
    return KIND.read(done / "demo.json")["figures"]


def test_all_files_are_written(done: Path) -> None:
    for name in FILES:
        assert (done / name).stat().st_size, name
    assert len(fp.read_qrels(done / "answers.qrels")) == QUESTIONS
    assert {run.name for run in (done / "runs").iterdir()} >= {
        "bm25.run",
        "ranksvm.run",
        "aggregate.run",
    }


def test_labels_are_those_of_the_assessors(done: Path) -> None:
    labels, answers = (fp.read_qrels(done / f"{n}.qrels").to_dict() for n in ("labels", "answers"))
    data = instance(fp.Dataset, fp.read(done / "features.npz"))
    candidates = fp.read_run(done / "candidates.run").to_dict()
    assert {q: set(docs) for q, docs in labels.items()} == {
        q: set(docs) for q, docs in candidates.items()
    }
    rows = zip(data.qid.astype(str), list(present(data.docids)), data.y.tolist(), strict=True)
    assert all(labels[q][d] == y for q, d, y in rows)
    assert {label for grades in labels.values() for label in grades.values()} == set(range(K + 1))
    found = {(q, d) for q, grades in labels.items() for d, y in grades.items() if y}
    correct = {(q, d) for q, grades in answers.items() for d in grades}
    assert found & correct
    assert found - correct  # assessors err


@pytest.mark.filterwarnings("ignore:.*are unjudged")
def test_figures_match_an_evaluation_of_the_files(done: Path, figures: dict) -> None:
    qrels = fp.read_qrels(done / "answers.qrels")
    systems = figures["comparison"]["systems"]
    first_stages = ["BM25", "hybrid"] if fp.Index(done / INDEX).vectors is not None else ["BM25"]
    assert list(systems) == [*first_stages, *RANKERS]
    steps = [(step["system"], step["against"]) for step in figures["steps"]]
    best = figures["best"]
    expected = [("hybrid", "BM25"), (best, "hybrid"), (best, "BM25")]
    assert steps == (expected if len(first_stages) > 1 else [])
    for name in systems:
        run = fp.read_run(done / "runs" / f"{slug(name)}.run")
        evaluation = fp.evaluate(run, qrels, measures=["NDCG@5", "RR"])
        assert evaluation["NDCG@5"] == pytest.approx(systems[name]["NDCG@5"])
        by_learned = fp.evaluate(
            run,
            qrels,
            measures=fp.measure("NDCG@5", of=fp.dcglearn.read_utility(done / "measure.json")),
        )
        reported = figures["measure"]["comparison"]["systems"][name]
        assert by_learned.values.mean() == pytest.approx(next(iter(reported.values())))
    best = max(RANKERS, key=lambda n: systems[n]["NDCG@5"])
    assert figures["best"] == best


def test_correct_first_results_are_counted(done: Path, figures: dict) -> None:
    qrels = fp.read_qrels(done / "answers.qrels").to_dict()
    runs = fp.read_run(done / "runs" / "ranksvm.run").to_dict()
    correct = sum(max(docs, key=lambda d: docs[d]) in qrels[q] for q, docs in runs.items())
    assert figures["first_correct"]["RankSVM"] == correct


def test_the_application_has_all_tasks_and_judgments(done: Path, figures: dict) -> None:
    from firstpage.labeling.app.analysis.figures import progress
    from firstpage.labeling.app.store.projects import by_slug

    store = Store(done)
    with store.read() as tx:
        questions, pages = (
            progress(tx, present(by_slug(tx, slug))) for slug in ("questions", "pages")
        )
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
    assert not re.search(r'src=|href="[^#]', text)
    assert f"{figures['first_correct'][figures['best']]} of {figures['questions']}" in text
    assert text.count("<svg") > 5
    assert f"firstpage label serve {done} --open shows them" in text
    assert "demo --serve" not in text  # it would judge everything again


def judge_all(folder: Path, answers: dict) -> None:
    """Judge all questions of a project as its single user, as after `label serve --open`."""
    store = Store(folder)
    prepare_single_user(store)
    with store.read() as tx:
        project, you = find_project(tx), people.by_login(tx, LOCAL)
    assert you is not None
    simulated = {"pairs": SimulatedAssessor, "lists": SimulatedEditor}[project.tool]
    judge(store, project, you, simulated(7, project.tool, answers))
    store.close()


def test_the_commands_write_the_same_files(
    done: Path, printed: str, figures: dict, tmp_path: Path, monkeypatch, run
) -> None:
    """Every command that the demo prints runs, and does what the demo did."""
    shutil.copytree(done, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    text = unescape((done / "report.html").read_text())
    flat = re.sub(r" \\\n +", " ", printed)
    groups = (*figures["commands"].values(), *figures["own_commands"].values())
    commands = [command for group in groups for command in group]
    assert len(commands) > 20
    for command in commands:
        assert f"<pre>{command}</pre>" in text
        assert f"$ {command}\n" in flat
        words = shlex.split(command.replace(str(done), "demo"))[1:]
        if words[:2] == ["label", "serve"]:
            judge_all(Path(words[2]), fp.read_qrels("demo/answers.qrels").to_dict())
        else:
            result = run(*words)
            assert result.returncode == 0, (command, result.stderr)
    for name in ("candidates.run", "labels.qrels", "preferences.jsonl", "model.json", *RUN_FILES):
        assert (tmp_path / "demo" / name).read_text() == (done / name).read_text(), name
    assert fp.load("mine/model.json")
    labels = [fp.read_qrels(f"{folder}/labels.qrels").to_dict() for folder in ("mine", "demo")]
    assert labels[0].keys() == labels[1].keys()
    assert labels[0] != labels[1]  # of another assessor
    trained = [
        instance(fp.Dataset, fp.read(f"{folder}/features.npz")).y.tolist()
        for folder in ("mine", "demo")
    ]
    assert trained[0] != trained[1]
    assert fp.dcglearn.read_utility("mine-pages/measure.json")


def test_steps_are_printed_with_their_durations(printed: str, done: Path) -> None:
    assert [int(n) for n in re.findall(r"^(\d)\. ", printed, re.M)] == list(range(1, 9))
    assert len(re.findall(r"^   \d+\.\d s$", printed, re.M)) == 8
    assert f"Open {done / 'report.html'}" in printed
    assert all(len(line) < 110 or str(done) in line for line in printed.splitlines())
    last = printed.splitlines()[-1]
    assert last.startswith(
        f"To search: firstpage serve {done}/model.json --index {done}/python.index"
    )
    assert last.endswith(" --open")


def test_an_interrupt_prints_one_line(small, tmp_path: Path, run, monkeypatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "label_questions", interrupt)
    result = run("demo", "-o", tmp_path)
    assert (result.returncode, result.stderr.strip()) == (130, "firstpage: stopped.")
