"""`firstpage label setup`, `stats`, `export`, `backup` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.web.store import people, tasks
from firstpage.web.store.choose import the_project
from firstpage.web.store.connect import Store
from firstpage.web.store.desk import Desk, Given
from firstpage.web.store.log import Timing


@pytest.fixture
def folder(tmp_path: Path, monkeypatch, run) -> Path:
    """A project of two people who judge the same three queries, all of it done."""
    monkeypatch.chdir(tmp_path)
    queries = [{"query": q, "text": f"about {q}"} for q in ("q1", "q2", "q3")]
    documents = [
        {"query": row["query"], "document": f"d{i}", "text": "word " * (i + 1)}
        for row in queries
        for i in range(8)
    ]
    for name, rows in (("queries", queries), ("documents", documents)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(
        "label", "setup", "labels", "--queries", "queries.jsonl", "--documents", "documents.jsonl",
        "--k", 3, "--strategy", "tournament", "--replicates", 2, "--repeats", 0.2,
        "--assessor", "ada", "--assessor", "ben", "--lead", "lena",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 queries, 24 documents" in done.stdout
    assert done.stdout.count("comes in here") == 3
    judge_all("labels", {"ada": 0, "ben": 1})
    return tmp_path


def judge_all(where: str, taste: dict[str, int]) -> None:
    """Each person prefers the longer text; ben holds d6 for better than d7."""
    store = Store(where).prepare()
    desk = Desk(store)
    for login, odd in taste.items():
        with store.read() as tx:
            person = people.by_login(tx, login)
            assert person is not None
            work = tasks.of_person(tx, the_project(tx), person.id)
        for task in work:
            state = desk.state(task.id, person)
            while state.question is not None:
                left, right = state.question.left.key, state.question.right.key
                swapped = odd and {left, right} == {"d6", "d7"}
                outcome = 1 if (left > right) != bool(swapped) else -1
                span = {"kind": "active", "ms": 2000}
                key = f"{login}-{task.id}-{state.seq}"
                given = Given(state.seq, key, left, right, outcome, timing=Timing(spans=(span,)))
                state = desk.answer(task.id, person, given)
    store.close()


def test_stats(folder: Path, run) -> None:
    text = run("label", "stats", "labels").stdout
    assert "top-k" in text.lower()
    record = json.loads(run("label", "stats", "labels", "--json").stdout)
    effort = record["effort"]["pairs"]
    assert effort["seconds_per_judgment"]["mean"] == pytest.approx(2.0)
    table = record["agreement"]["pairs"]
    assert table["overall"] == pytest.approx(27 / 28)  # all pairs but the one on which they differ
    assert {person["assessor"] for person in record["assessors"]} == {"ada", "ben"}
    assert record["repeats"]["overall"]["value"] == 1
    page = folder / "study.html"
    run("label", "stats", "labels", "-o", page)
    assert "<table" in page.read_text()


def test_export_of_truth(folder: Path, run) -> None:
    done = run("label", "export", "labels", "--what", "truth", "-o", "truth.qrels")
    assert done.returncode == 0, done.stderr
    truth = fp.read_qrels("truth.qrels").to_dict()
    assert set(truth) == {"q1", "q2", "q3"}
    assert sorted(truth["q1"].values(), reverse=True)[:4] == [3, 2, 1, 0]
    assert {doc for doc, label in truth["q1"].items() if label > 0} == {"d5", "d6", "d7"}
    run("label", "export", "labels", "--what", "truth", "--format", "jsonl", "-o", "truth.jsonl")
    rows = [json.loads(line) for line in Path("truth.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    assert all(0 <= row["set_confidence"] <= 1 for row in rows)
    run("label", "export", "labels", "--what", "log", "-o", "log.jsonl")
    assert len(Path("log.jsonl").read_text().splitlines()) > 30


def test_an_export_is_named_for_its_format(folder: Path, run) -> None:
    """.txt is LETOR in every other command, and truth is qrels by default: neither is guessed."""
    for name, what in (("truth.txt", "truth"), ("truth.csv", "truth"), ("study.pdf", "report")):
        done = run("label", "export", "labels", "--what", what, "-o", name)
        assert done.returncode == 2
        assert f"{name}: the name does not say how {what} is written" in done.stderr
        assert "--format" in done.stderr
        assert not Path(name).exists()
    assert run("label", "export", "labels", "-o", "truth.letor").returncode == 0
    done = run("label", "export", "labels", "--format", "letor", "-o", "truth.txt")
    assert done.returncode == 0
    assert Path("truth.txt").read_text() == Path("truth.letor").read_text()
    for name in ("truth", "truth.qrels.gz"):
        assert run("label", "export", "labels", "-o", name).returncode == 0
    assert fp.read_qrels("truth").to_dict() == fp.read_qrels("truth.qrels.gz").to_dict()


def test_backup_and_restore(folder: Path, run) -> None:
    assert run("label", "backup", "labels", "-o", "copy.jsonl").returncode == 0
    assert run("label", "restore", "copy.jsonl", "again").returncode == 0
    first, second = (run("label", "stats", name, "--json").stdout for name in ("labels", "again"))
    assert first == second


@pytest.mark.slow
def test_a_program_judges(run, tmp_path: Path, monkeypatch) -> None:
    """A function on the command line: its answers are in the log, each with its cost."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("taste.py").write_text(
        "def longer(query, left, right):\n    return 'left' if len(left) > len(right) else 'right'\n"
    )
    rows = [{"query": "q", "document": f"d{i}", "html": f"<p>{'x' * i}</p>"} for i in range(6)]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(
        "label",
        "setup",
        "labels",
        "--documents",
        "documents.jsonl",
        "--k",
        2,
        "--assessor",
        "robot",
    )
    done = run("label", "judge", "labels", "--assessor", "robot", "--function", "taste:longer")
    assert "1 queries" in done.stdout, done.stderr
    run("label", "export", "labels", "-o", "truth.qrels")
    assert fp.read_qrels("truth.qrels").to_dict()["q"]["d5"] == 2
    run("label", "export", "labels", "--what", "log", "-o", "log.jsonl")
    log = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    assert all(row["cost"]["seconds"] >= 0 and row["by"] == "robot" for row in log)
    again = run("label", "judge", "labels", "--assessor", "robot", "--function", "taste:longer")
    assert "0 answers" in again.stdout


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("stats", "nowhere"), 1, "holds no labelling project"),
        (("stats",), 2, "give a project, or --records"),
        (("export", "nowhere", "-o", "x"), 1, "holds no labelling project"),
        (("setup", "new", "--queries", "none.jsonl"), 1, "none.jsonl"),
        (("setup", "new", "--strategy", "heep"), 1, "Did you mean"),
        (("restore", "none", "new"), 2, "is no file"),
        (("judge", "nowhere", "--assessor", "x", "--function", "a:b"), 1, "no labelling project"),
        (("judge", "nowhere", "--assessor", "x"), 2, "--endpoint"),
        (("judge", "nowhere", "--assessor", "x", "--endpoint", "http://x"), 2, "--model"),
        (("serve", "new", "--open", "--host", "0.0.0.0"), 2, "this machine only"),
        (("stats", "--records", "none.jsonl"), 1, "none.jsonl"),
    ],
)
def test_mistakes_are_one_line(
    run, tmp_path: Path, monkeypatch, args: tuple[str, ...], code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("label", *args)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert says in done.stderr
