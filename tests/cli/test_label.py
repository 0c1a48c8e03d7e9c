"""Tests of `firstpage label setup`, `stats`, `export`, `judge`, `add`, `link` and `backup`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import firstpage as fp
from firstpage.cli import app
from firstpage.core import errors
from firstpage.core.errors import DataError, FirstpageError, install_command
from firstpage.labeling.app.store import invitations, people, tasks
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.judging import JudgingService, SubmittedAnswer
from firstpage.labeling.app.store.log import Timing
from firstpage.labeling.app.store.projects import find_project
from tests.labeling.endpoint import Stub, served
from tests.narrow import present

pytestmark = pytest.mark.usefixtures("shared_statements")


@pytest.mark.parametrize(
    "words",
    [
        ("label", "setup", "p"),
        ("label", "serve", "p"),
        ("label", "backup", "p", "-o", "p.db"),
        ("label", "restore", "p.db", "p"),
        ("label", "export", "p", "-o", "p.qrels"),
        ("label", "judge", "p", "--assessor", "ada", "--function", "m:f"),
        ("label", "add", "p", "--assessor", "ada"),
        ("label", "link", "p", "ada"),
        ("label", "stats", "p"),
        ("label", "settings", "p"),
        ("label", "tokens", "p"),
        ("label", "webhook", "p"),
        ("label", "import", "p", __file__),
    ],
)
def test_missing_package_is_reported_before_the_application_is_loaded(monkeypatch, words) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    for name, module in [*sys.modules.items()]:  # a face imports nothing of what is behind it
        if name.startswith("firstpage.labeling.app.") and not hasattr(module, "__path__"):
            monkeypatch.setitem(sys.modules, name, None)
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, FirstpageError), repr(error)
    assert install_command("web") in str(error)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch, run) -> Path:
    """Return a project in which two people have judged the same three queries."""
    monkeypatch.chdir(tmp_path)
    queries = [{"query": q, "text": f"about {q}"} for q in ("q1", "q2", "q3")]
    documents = [
        {"query": row["query"], "document": f"d{i}", "text": "word " * (i + 1)}
        for row in queries
        for i in range(8)
    ]
    for name, rows in (("queries", queries), ("documents", documents)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run(
        "label",
        "setup",
        "labels",
        "--queries",
        "queries.jsonl",
        "--documents",
        "documents.jsonl",
        "--k",
        3,
        "--strategy",
        "tournament",
        "--replicates",
        2,
        "--repeat-rate",
        0.2,
        "--assessor",
        "ada",
        "--assessor",
        "ben",
        "--lead",
        "lena",
    )
    assert result.returncode == 0, result.stderr
    assert "3 queries, 24 documents" in result.stdout
    assert result.stdout.count("signs in here") == 3
    judge_all("labels", {"ada": 0, "ben": 1})
    return tmp_path


def judge_all(where: str, taste: dict[str, int]) -> None:
    """Judge everything: each person prefers the longer text, but ben prefers d6 to d7."""
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
                left, right = state.question.left.key, present(state.question.right).key
                swapped = odd and {left, right} == {"d6", "d7"}
                outcome = 1 if (left > right) != bool(swapped) else -1
                span = {"kind": "active", "ms": 2000}
                key = f"{login}-{task.id}-{state.seq}"
                answer = SubmittedAnswer(
                    state.seq, key, left, right, outcome, timing=Timing(spans=(span,))
                )
                state = service.answer(task.id, person, answer)
    store.close()


def test_the_rates_of_extra_questions_are_stored(tmp_path: Path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"query": "q", "document": f"d{i}", "text": "word"} for i in range(3)]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run(
        "label",
        "setup",
        "labels",
        "--documents",
        "documents.jsonl",
        "--probe-rate",
        0.1,
        "--repeat-rate",
        0.2,
    )
    assert result.returncode == 0, result.stderr
    store = Store("labels")
    with store.read() as tx:
        setting = find_project(tx).setting
    store.close()
    assert (setting.probe_rate, setting.repeat_rate, setting.gold_rate) == (0.1, 0.2, 0)


def test_stats_report_effort_and_agreement(folder: Path, run) -> None:
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
    counts = record["questions"]
    assert counts["asked"] > 0
    assert f"{counts['asked']:,} pairs were asked, " in run("label", "stats", "labels").stderr
    page = folder / "study.html"
    run("label", "stats", "labels", "-o", page)
    assert "<table" in page.read_text()


def test_export_writes_the_ground_truth(folder: Path, run) -> None:
    result = run("label", "export", "labels", "--content", "truth", "-o", "truth.qrels")
    assert result.returncode == 0, result.stderr
    truth = fp.read_qrels("truth.qrels").to_dict()
    assert set(truth) == {"q1", "q2", "q3"}
    assert sorted(truth["q1"].values(), reverse=True)[:4] == [3, 2, 1, 0]
    assert {doc for doc, label in truth["q1"].items() if label > 0} == {"d5", "d6", "d7"}
    run("label", "export", "labels", "--content", "truth", "--format", "jsonl", "-o", "truth.jsonl")
    rows = [json.loads(line) for line in Path("truth.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    assert all(0 <= row["set_confidence"] <= 1 for row in rows)
    run("label", "export", "labels", "--content", "log", "-o", "log.jsonl")
    assert len(Path("log.jsonl").read_text().splitlines()) > 30


def test_export_refuses_a_suffix_of_another_format(folder: Path, run) -> None:
    """A .txt file is LETOR in other commands, and truth is qrels by default; neither is guessed."""
    for name, what in (("truth.txt", "truth"), ("truth.csv", "truth"), ("study.csv", "report")):
        result = run("label", "export", "labels", "--content", what, "-o", name)
        assert result.returncode == 2
        assert f"{name}: no format of {what} has this suffix" in result.stderr
        assert "--format" in result.stderr
        assert not Path(name).exists()
    assert run("label", "export", "labels", "-o", "truth.letor").returncode == 0
    result = run("label", "export", "labels", "--format", "letor", "-o", "truth.txt")
    assert result.returncode == 0
    assert Path("truth.txt").read_text() == Path("truth.letor").read_text()
    for name in ("truth", "truth.qrels.gz"):
        assert run("label", "export", "labels", "-o", name).returncode == 0
    assert fp.read_qrels("truth").to_dict() == fp.read_qrels("truth.qrels.gz").to_dict()


def test_restored_backup_has_the_same_content(folder: Path, run) -> None:
    assert run("label", "backup", "labels", "-o", "copy.jsonl").returncode == 0
    assert run("label", "restore", "copy.jsonl", "again").returncode == 0
    first, second = (run("label", "stats", name, "--json").stdout for name in ("labels", "again"))
    assert first == second


def test_function_judges_the_open_queries(run, tmp_path: Path, monkeypatch) -> None:
    """The answers of a function are in the log, each with its cost."""
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
    result = run("label", "judge", "labels", "--assessor", "robot", "--function", "taste:longer")
    assert "1 queries" in result.stdout, result.stderr
    run("label", "export", "labels", "-o", "truth.qrels")
    assert fp.read_qrels("truth.qrels").to_dict()["q"]["d5"] == 2
    run("label", "export", "labels", "--content", "log", "-o", "log.jsonl")
    log = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    assert all(row["cost"]["seconds"] >= 0 and row["recorded_by"] == "robot" for row in log)
    again = run("label", "judge", "labels", "--assessor", "robot", "--function", "taste:longer")
    assert "0 answers" in again.stdout
    assert "there were no open queries" in again.stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("stats", "nowhere"), 1, "has no labeling project"),
        (("stats",), 2, "give a project, or --records"),
        (("export", "nowhere", "-o", "x"), 1, "has no labeling project"),
        (("setup", "new", "--queries", "none.jsonl"), 1, "none.jsonl"),
        (("setup", "new", "--strategy", "heep"), 1, "Did you mean"),
        (("restore", "none", "new"), 2, "is not a file"),
        (("judge", "nowhere", "--assessor", "x", "--function", "a:b"), 1, "no labeling project"),
        (("judge", "nowhere", "--assessor", "x"), 2, "--endpoint"),
        (("judge", "nowhere", "--assessor", "x", "--endpoint", "http://x"), 2, "--model"),
        (("serve", "new", "--open", "--host", "0.0.0.0"), 2, "this machine only"),
        (("stats", "--records", "none.jsonl"), 1, "none.jsonl"),
    ],
)
def test_errors_are_one_line(
    run, tmp_path: Path, monkeypatch, args: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("label", *args)
    assert (result.returncode, "Traceback" in result.stderr) == (code, False), result.stderr
    assert message in result.stderr


def setup(run, *more: object, name: str = "labels", documents: int = 6) -> None:
    """Create a project of one query whose documents have increasing lengths."""
    rows = [
        {"query": "q", "document": f"d{i}", "title": f"T{i}", "text": "x" * (i + 1)}
        for i in range(documents)
    ]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("label", "setup", name, "--documents", "documents.jsonl", "--k", 2, *more)
    assert result.returncode == 0, result.stderr


def test_setup_says_how_to_go_on(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = '{"query": "q", "document": "d", "text": "x"}\n'
    Path("documents.jsonl").write_text(rows)
    alone = run("label", "setup", "my labels", "--documents", "documents.jsonl")
    assert "to judge yourself: firstpage label serve 'my labels' --open" in alone.stderr
    team = run("label", "setup", "team", "--documents", "documents.jsonl", "--assessor", "ada")
    assert "to judge yourself" not in team.stderr
    Path("q.txt").write_text("red shoes\n")
    typed = ("label", "setup", "new", "--queries", "q.txt", "--documents", "documents.jsonl")
    assert "`--query-format lines` reads a query per line" in run(*typed).stderr


def judge_by_model(run, stub: Stub, *more: object):
    return run(
        "label",
        "judge",
        "labels",
        "--assessor",
        "robot",
        "--endpoint",
        stub.url,
        "--model",
        "m",
        *more,
    )


@pytest.mark.parametrize(
    ("project", "options", "note"),
    [
        ((), (), "the pair is skipped (--conflicts skip)"),
        (("--ties",), (), "a tie is recorded (--conflicts tie)"),
        ((), ("--conflicts", "first"), "the answer to the first order is recorded"),
    ],
)
def test_conflicting_answers_of_a_model_are_recorded_as_chosen(
    run, tmp_path: Path, monkeypatch, project: tuple[str, ...], options: tuple[str, ...], note: str
) -> None:
    """The model always answers A, in both orders, so its answers to every pair differ."""
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot", *project)
    with served() as stub:
        stub.reply = '{"better": "A"}'
        result = judge_by_model(run, stub, *options)
    assert result.returncode == 0, result.stderr
    assert note in result.stderr
    assert "1 queries" in result.stdout
    run("label", "export", "labels", "--content", "log", "-o", "log.jsonl")
    log = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    assert len(stub.requests) == 2 * len(log) > 0
    assert {row["skipped"] for row in log} == {note.startswith("the pair is skipped")}
    assert {row["outcome"] for row in log} == ({1} if "first" in note else {0})
    counted = f"{len(log)} of {len(log)} questions were skipped: the model contradicted itself"
    assert (counted in result.stderr) == note.startswith("the pair is skipped")


def test_truncated_documents_print_a_note(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot")
    with served() as stub:
        stub.reply = '{"better": "A"}'
        result = judge_by_model(run, stub, "--max-chars", 4)
    assert (
        "the model read only the first 4 characters (--max-chars) of 2 documents" in result.stderr
    )


def test_unreadable_answers_are_skipped_and_many_stop_the_run(
    run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot")
    with served() as stub:
        stub.reply = lambda body: "I would rather not say" if len(stub.requests) < 3 else "A"
        result = judge_by_model(run, stub)
        assert result.returncode == 0, result.stderr
        assert "1 of " in result.stderr
        assert "questions were skipped: the answer could not be parsed" in result.stderr
        setup(run, "--assessor", "robot", name="other")
        stub.reply = "no"
        stopped = run(
            "label", "judge", "other", "--assessor", "robot", "--endpoint", stub.url, "--model", "m"
        )
    assert stopped.returncode == 1
    assert "must answer A, B or tie; it answered 'no'" in stopped.stderr


def test_people_are_added_to_an_existing_project(run, tmp_path: Path, monkeypatch) -> None:
    """The command in the error of `label judge` can be run, and then the work is done."""
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
    result = run(*hint.split()[1:])
    assert result.returncode == 0, result.stderr
    assert "robot signs in here (once)" in result.stdout
    assert "robot: 1 query" in result.stdout
    assert "1 queries" in run(*words).stdout
    more = run("label", "add", "labels", "--assessor", "late", "--lead", "lena")
    assert "no queries for late" in more.stderr
    assert "lena signs in here (once)" in more.stdout
    assert run("label", "add", "labels").returncode == 2
    assert run("label", "add", "nowhere", "--lead", "x").returncode == 1


def test_link_sets_a_new_password(run, tmp_path: Path, monkeypatch) -> None:
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
    for login in ("mallory", "local"):
        refused = run("label", "link", "labels", login)
        assert refused.returncode == 1
        assert f"has no account {login!r} that can sign in" in refused.stderr


def test_failing_function_is_reported_in_one_line(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("broken_taste.py").write_text("def broken(query, left, right):\n    return left.nothing\n")
    setup(run, "--assessor", "robot")
    words = ("label", "judge", "labels", "--assessor", "robot", "--function", "broken_taste:broken")
    result = run(*words)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "failed on query q, d" in result.stderr
    assert "AttributeError" in result.stderr
    assert "broken_taste.py:2" in result.stderr
    result = run(*words, "--conflicts", "skip")
    assert result.returncode == 2


def test_export_prints_what_it_omits(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"query": q, "document": f"d{i}", "text": "x" * (i + 1)} for q in "ab" for i in range(4)
    ]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(
        "label",
        "setup",
        "labels",
        "--documents",
        "documents.jsonl",
        "--k",
        2,
        "--ties",
        "--assessor",
        "ada",
        "--assessor",
        "ben",
        "--strategy",
        "heap",
    )
    judge_all("labels", {"ada": 0})
    result = run("label", "export", "labels", "-o", "truth.qrels")
    assert "1 of 2 queries are left out: nobody has finished them." in result.stderr
    monkeypatch.syspath_prepend(tmp_path)
    Path("level.py").write_text("def level(query, left, right):\n    return 'tie'\n")
    run("label", "judge", "labels", "--assessor", "ben", "--function", "level:level")
    result = run("label", "export", "labels", "-o", "truth.qrels")
    assert "left out" not in result.stderr
    assert "documents were judged equal to another one and share its label" in result.stderr
    assert "as do all documents of 1 of these queries" in result.stderr


def test_options_and_inputs_without_effect_are_refused_or_noted(
    run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"query": "q", "document": f"d{i}", "text": "x", "prior": i or None} for i in range(3)]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    gold_questions = [{"query": "q", "left": "d0", "right": "d1", "outcome": 1},
             {"query": "q", "left": "d0", "grade": 3}]  # fmt: skip
    Path("gold_questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in gold_questions)
    )
    words = ("label", "setup", "labels", "--documents", "documents.jsonl")
    for more, message in (
        (("--gold-rate", 0.1), "needs --gold-questions"),
        (("--depth", 9), "--depth requires --run"),
        (("--tool", "grades", "--strategy", "heap"), "--strategy requires --tool pairs"),
        (("--tool", "grades", "--refine", 3), "--refine requires --tool pairs"),
        (("--tool", "grades", "--probe-rate", 0.1), "--probe-rate requires --tool pairs"),
    ):
        result = run(*words, *more)
        assert (result.returncode, Path("labels").exists()) == (2, False), more
        assert message in result.stderr
    result = run(*words, "--gold-questions", "gold_questions.jsonl")
    assert result.returncode == 0, result.stderr
    assert "1 query, 3 documents, 2 known answers" in result.stdout
    assert "2 known answers are stored and never asked; --gold-rate mixes them in" in result.stderr
    assert "1 of 2 known answers do not fit the tool pairs" in result.stderr
    assert "in 1 queries (such as q) only some documents have a prior" in result.stderr
    long = run("label", "setup", "other", "--title", "x" * 301)
    assert "at most 300 characters; got 301" in long.stderr


def test_stats_note_skipped_questions_and_refuse_unused_options(
    run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("unsure.py").write_text("def unsure(query, left, right):\n    return 'skip'\n")
    setup(run, "--assessor", "robot")
    run("label", "judge", "labels", "--assessor", "robot", "--function", "unsure:unsure")
    assert (
        "questions were skipped; no figure includes them" in run("label", "stats", "labels").stderr
    )
    Path("r.jsonl").write_text("")
    assert run("label", "stats", "labels", "--results", "r.jsonl").returncode == 2
    assert run("label", "stats", "--records", "r.jsonl", "--name", "x").returncode == 2


def test_function_that_skips_all_questions_yields_no_ground_truth(
    run, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("never.py").write_text("def never(query, left, right):\n    return 'skip'\n")
    setup(run, "--assessor", "robot")
    result = run("label", "export", "labels", "-o", "truth.qrels")
    assert "No query is finished yet" in result.stderr
    result = run("label", "judge", "labels", "--assessor", "robot", "--function", "never:never")
    assert "1 queries, 0 answers, " in result.stdout, result.stderr
    assert "0 answers, 0 skipped" not in result.stdout
    for name in ("truth.qrels", "truth.jsonl", "truth.letor"):
        result = run("label", "export", "labels", "-o", name)
        assert result.returncode == 0, result.stderr
        assert Path(name).read_text() == ""
        assert f"{name} is empty" in result.stderr
        assert "1 of 1 queries are left out, since everything was skipped: 'q'." in result.stderr


def test_log_of_unfinished_queries_is_not_empty(run, tmp_path: Path, monkeypatch) -> None:
    """The log has judgments, so the note 'nothing has been judged yet' would be wrong."""
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
    result = run("label", "export", "labels", "-o", "truth.qrels")
    assert "truth.qrels is empty." in result.stderr
    assert "No query is finished yet; all 1 are left out." in result.stderr
    assert "nothing has been judged yet" not in result.stderr


def test_conflicts_are_about_both_orders(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot")
    with served() as stub:
        refused = judge_by_model(run, stub, "--orders", "random", "--conflicts", "skip")
        assert refused.returncode == 2
        assert "--conflicts is about pairs asked in both orders" in refused.stderr
        assert not stub.requests
        stub.reply = '{"better": "A"}'
        result = judge_by_model(run, stub, "--orders", "random")
    assert result.returncode == 0
    assert "both orders" not in result.stderr
    orders = [re.findall('"T\\d"', body["messages"][-1]["content"]) for body in stub.requests]
    assert orders
    assert not any(pair[::-1] == orders[i + 1] for i, pair in enumerate(orders[:-1]))


def test_conflicts_tie_needs_a_project_with_ties(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    setup(run, "--assessor", "robot")
    with served() as stub:
        result = judge_by_model(run, stub, "--conflicts", "tie")
    assert result.returncode == 2
    assert "has no ties" in result.stderr
    assert not stub.requests
