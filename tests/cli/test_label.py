"""`firstpage label setup`, `stats`, `export`, `backup` as a user meets them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import firstpage as fp
from firstpage.cli import app, shared
from firstpage.errors import DataError, FirstpageError
from firstpage.web.store import invitations, people, tasks
from firstpage.web.store.connect import Store
from firstpage.web.store.judging import JudgingService, SubmittedAnswer
from firstpage.web.store.log import Timing
from firstpage.web.store.projects import find_project
from tests.labeling.endpoint import Stub, served


@pytest.mark.parametrize(
    "words",
    [
        ("demo",),
        ("label", "setup", "p"),
        ("label", "serve", "p"),
        ("label", "backup", "p", "-o", "p.db"),
        ("label", "restore", "p.db", "p"),
        ("label", "export", "p", "-o", "p.qrels"),
        ("label", "judge", "p", "--assessor", "ada", "--function", "m:f"),
        ("label", "add", "p", "--assessor", "ada"),
        ("label", "link", "p", "ada"),
        ("label", "stats", "p"),
    ],
)
def test_what_to_install_is_said_before_the_application_is_loaded(monkeypatch, words) -> None:
    monkeypatch.setattr(shared, "find_spec", lambda name: None)
    for name in [name for name in sys.modules if name.startswith("firstpage.web")]:
        monkeypatch.setitem(sys.modules, name, None)
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, FirstpageError)
    assert "pip install 'firstpage[web]'" in str(error)


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
    service = JudgingService(store)
    for login, odd in taste.items():
        with store.read() as tx:
            person = people.by_login(tx, login)
            assert person is not None
            work = tasks.of_person(tx, find_project(tx), person.id)
        for task in work:
            state = service.state(task.id, person)
            while state.question is not None:
                left, right = state.question.left.key, state.question.right.key
                swapped = odd and {left, right} == {"d6", "d7"}
                outcome = 1 if (left > right) != bool(swapped) else -1
                span = {"kind": "active", "ms": 2000}
                key = f"{login}-{task.id}-{state.seq}"
                given = SubmittedAnswer(
                    state.seq, key, left, right, outcome, timing=Timing(spans=(span,))
                )
                state = service.answer(task.id, person, given)
    store.close()


def test_stats(folder: Path, run) -> None:
    text = run("label", "stats", "labels").stdout
    assert "top-k" in text.lower()
    record = json.loads(run("label", "stats", "labels", "--json").stdout)
    effort = record["effort"]["pairs"]
    assert effort["seconds_per_judgment"]["mean"] == pytest.approx(2.0)
    assert text.index("Agreement on shared pairs") < text.index("Agreement of derived orders")
    assert 0 < record["shared_pairs"]["pairs"]["pairs"] < record["derived_orders"]["pairs"]["pairs"]
    table = record["derived_orders"]["pairs"]
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
    for name, what in (("truth.txt", "truth"), ("truth.csv", "truth"), ("study.csv", "report")):
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
        "def longer(query, left, right):\n"
        "    return 'left' if len(left.body) > len(right.body) else 'right'\n"
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
    assert "there was no open work" in again.stderr


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("stats", "nowhere"), 1, "holds no labeling project"),
        (("stats",), 2, "give a project, or --records"),
        (("export", "nowhere", "-o", "x"), 1, "holds no labeling project"),
        (("setup", "new", "--queries", "none.jsonl"), 1, "none.jsonl"),
        (("setup", "new", "--strategy", "heep"), 1, "Did you mean"),
        (("restore", "none", "new"), 2, "is no file"),
        (("judge", "nowhere", "--assessor", "x", "--function", "a:b"), 1, "no labeling project"),
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


def setup(run, *more: object, name: str = "labels", documents: int = 6) -> None:
    """A project of one query whose documents are longer from one to the next."""
    rows = [
        {"query": "q", "document": f"d{i}", "title": f"T{i}", "text": "x" * (i + 1)}
        for i in range(documents)
    ]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("label", "setup", name, "--documents", "documents.jsonl", "--k", 2, *more)
    assert done.returncode == 0, done.stderr


def asked(run, stub: Stub, *more: object):
    return run(
        "label", "judge", "labels", "--assessor", "robot", "--endpoint", stub.url, "--model", "m",
        *more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("project", "options", "note"),
    [
        ((), (), "the pair is skipped (--conflicts skip)"),
        (("--ties",), (), "a tie is recorded (--conflicts tie)"),
        ((), ("--conflicts", "first"), "the answer to the first order is recorded"),
    ],
)
def test_a_model_that_contradicts_itself(
    run, tmp_path: Path, monkeypatch, project: tuple[str, ...], options: tuple[str, ...], note: str
) -> None:
    """It always says A: in both orders, so of every pair it says both.  The run ends, not exits."""
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot", *project)
    with served() as stub:
        stub.reply = '{"better": "A"}'
        done = asked(run, stub, *options)
    assert done.returncode == 0, done.stderr
    assert note in done.stderr
    assert "1 queries" in done.stdout
    run("label", "export", "labels", "--what", "log", "-o", "log.jsonl")
    log = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    assert len(stub.asked) == 2 * len(log) > 0
    assert {row["skipped"] for row in log} == {note.startswith("the pair is skipped")}
    assert {row["outcome"] for row in log} == ({1} if "first" in note else {0})
    counted = f"{len(log)} of {len(log)} questions were skipped: the model contradicted itself"
    assert (counted in done.stderr) == note.startswith("the pair is skipped")


def test_what_a_model_did_not_read_is_told(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot")
    with served() as stub:
        stub.reply = '{"better": "A"}'
        done = asked(run, stub, "--longest", 4)
    assert "of 2 documents the model read only the first 4 characters" in done.stderr


def test_an_answer_that_cannot_be_read_is_skipped_and_many_stop(
    run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot")
    with served() as stub:
        stub.reply = lambda body: "I would rather not say" if len(stub.asked) < 3 else "A"
        done = asked(run, stub)
        assert done.returncode == 0, done.stderr
        assert "1 of " in done.stderr
        assert "questions were skipped: the answer could not be parsed" in done.stderr
        setup(run, "--assessor", "robot", name="other")
        stub.reply = "no"
        stopped = run(
            "label", "judge", "other", "--assessor", "robot", "--endpoint", stub.url, "--model", "m"
        )
    assert stopped.returncode == 1
    assert "must answer A, B or tie; it answered 'no'" in stopped.stderr


def test_people_are_added_to_a_project_that_is_there(run, tmp_path: Path, monkeypatch) -> None:
    """The hint of `label judge` can be followed, and the work is done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("keys.py").write_text(
        "def first(query, left, right):\n    return 1 if left.key < right.key else -1\n"
    )
    setup(run)
    words = ("label", "judge", "labels", "--assessor", "robot", "--function", "keys:first")
    refused = run(*words)
    assert refused.returncode == 1
    hint = "firstpage label add labels --assessor robot"
    assert hint in refused.stderr
    done = run(*hint.split()[1:])
    assert done.returncode == 0, done.stderr
    assert "robot comes in here (once)" in done.stdout
    assert "robot: 1 queries" in done.stdout
    assert "1 queries" in run(*words).stdout
    more = run("label", "add", "labels", "--assessor", "late", "--lead", "lena")
    assert "no queries for late" in more.stderr
    assert "lena comes in here (once)" in more.stdout
    assert run("label", "add", "labels").returncode == 2
    assert run("label", "add", "nowhere", "--lead", "x").returncode == 1


def test_a_link_for_somebody_who_cannot_sign_in(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    setup(run)
    run("label", "add", "labels", "--lead", "lena", "--assessor", "local")
    first, second = (run("label", "link", "labels", name) for name in ("lena", "LENA"))
    assert first.returncode == 0, first.stderr
    path = second.stdout.split(": ")[1].strip().removeprefix("http://127.0.0.1:8210/reset/")
    store = Store("labels")
    with store.read() as tx:
        offer = invitations.find_offer(tx, path, "reset")
        assert offer.login == "lena"
        with pytest.raises(DataError, match="has expired"):
            invitations.find_offer(tx, first.stdout.split("/reset/")[1].strip(), "reset")
    store.close()
    for nobody in ("mallory", "local"):
        refused = run("label", "link", "labels", nobody)
        assert refused.returncode == 1
        assert f"has no account {nobody!r} that could sign in" in refused.stderr


def test_a_function_that_fails_is_told_in_a_line(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("broken_taste.py").write_text("def broken(query, left, right):\n    return left.nothing\n")
    setup(run, "--assessor", "robot")
    words = ("label", "judge", "labels", "--assessor", "robot", "--function", "broken_taste:broken")
    done = run(*words)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "failed on query q, d" in done.stderr
    assert "AttributeError" in done.stderr
    assert "broken_taste.py:2" in done.stderr
    done = run(*words, "--conflicts", "skip")
    assert done.returncode == 2


def test_what_an_export_leaves_out_is_said(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"query": q, "document": f"d{i}", "text": "x" * (i + 1)} for q in "ab" for i in range(4)
    ]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("label", "setup", "labels", "--documents", "documents.jsonl", "--k", 2, "--ties",
        "--assessor", "ada", "--assessor", "ben", "--strategy", "heap")  # fmt: skip
    judge_all("labels", {"ada": 0})
    done = run("label", "export", "labels", "-o", "truth.qrels")
    assert "1 of 2 queries are left out: nobody has finished them." in done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    Path("level.py").write_text("def level(query, left, right):\n    return 'tie'\n")
    run("label", "judge", "labels", "--assessor", "ben", "--function", "level:level")
    done = run("label", "export", "labels", "-o", "truth.qrels")
    assert "left out" not in done.stderr
    assert "In 1 of 2 queries, documents that were judged equal" in done.stderr
    assert "judged equal" not in run("label", "export", "labels", "-o", "truth.jsonl").stderr


def test_options_without_effect_are_refused_or_told(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"query": "q", "document": f"d{i}", "text": "x", "prior": i or None} for i in range(3)]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    golds = [{"query": "q", "left": "d0", "right": "d1", "outcome": 1},
             {"query": "q", "left": "d0", "grade": 3}]  # fmt: skip
    Path("golds.jsonl").write_text("".join(json.dumps(row) + "\n" for row in golds))
    words = ("label", "setup", "labels", "--documents", "documents.jsonl")
    for more, says in (
        (("--gold-share", 0.1), "needs --golds"), (("--depth", 9), "--depth goes with --run"),
        (("--tool", "grades", "--strategy", "heap"), "--strategy goes with --tool pairs"),
        (("--tool", "grades", "--refine", 3), "--refine goes with --tool pairs"),
    ):  # fmt: skip
        done = run(*words, *more)
        assert (done.returncode, Path("labels").exists()) == (2, False), more
        assert says in done.stderr
    done = run(*words, "--golds", "golds.jsonl")
    assert done.returncode == 0, done.stderr
    assert "1 queries, 3 documents, 2 known answers" in done.stdout
    assert "2 known answers are stored and never asked; --gold-share mixes them in" in done.stderr
    assert "1 of 2 known answers do not fit the tool pairs" in done.stderr
    assert "of 1 queries (q, ..) only some documents have a prior" in done.stderr
    long = run("label", "setup", "other", "--title", "x" * 301)
    assert "at most 300 characters; got 301" in long.stderr


def test_stats_say_what_was_skipped_and_refuse_what_they_would_ignore(
    run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("unsure.py").write_text("def unsure(query, left, right):\n    return 'skip'\n")
    setup(run, "--assessor", "robot")
    run("label", "judge", "labels", "--assessor", "robot", "--function", "unsure:unsure")
    assert "questions were skipped, and are in no figure" in run("label", "stats", "labels").stderr
    Path("r.jsonl").write_text("")
    assert run("label", "stats", "labels", "--results", "r.jsonl").returncode == 2
    assert run("label", "stats", "--records", "r.jsonl", "--name", "x").returncode == 2


def test_a_program_that_skips_everything_leaves_no_truth(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("never.py").write_text("def never(query, left, right):\n    return 'skip'\n")
    setup(run, "--assessor", "robot")
    done = run("label", "export", "labels", "-o", "truth.qrels")
    assert "No query is finished yet" in done.stderr
    done = run("label", "judge", "labels", "--assessor", "robot", "--function", "never:never")
    assert "1 queries, 0 answers, " in done.stdout, done.stderr
    assert "0 answers, 0 skipped" not in done.stdout
    for name in ("truth.qrels", "truth.jsonl", "truth.letor"):
        done = run("label", "export", "labels", "-o", name)
        assert done.returncode == 0, done.stderr
        assert Path(name).read_text() == ""
        assert f"{name} is empty" in done.stderr
        assert "1 of 1 queries are left out, since everything was skipped: 'q'." in done.stderr


def test_judgments_of_unfinished_queries_are_no_empty_log(run, tmp_path: Path, monkeypatch) -> None:
    """The log has judgments, so 'nothing is judged yet' would be wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("tired.py").write_text(
        "asked = []\n"
        "def tired(query, left, right):\n"
        "    asked.append(query)\n"
        "    return 'left' if len(asked) < 4 else 1 / 0\n"
    )
    setup(run, "--assessor", "robot")
    run("label", "judge", "labels", "--assessor", "robot", "--function", "tired:tired")
    done = run("label", "export", "labels", "-o", "truth.qrels")
    assert "truth.qrels is empty." in done.stderr
    assert "No query is finished yet; all 1 are left out." in done.stderr
    assert "nothing is judged yet" not in done.stderr


def test_ties_of_conflicts_need_a_project_with_ties(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot")
    with served() as stub:
        done = asked(run, stub, "--conflicts", "tie")
    assert done.returncode == 2
    assert "has no ties" in done.stderr
    assert not stub.asked
