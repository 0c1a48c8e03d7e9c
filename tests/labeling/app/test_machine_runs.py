"""Judging by an endpoint: concurrency, budgets, the journal, examples, and kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from firstpage.cli import app
from firstpage.core.errors import DataError
from firstpage.labeling.app.analysis.machines import document_lengths, project_calibration
from firstpage.labeling.app.machine_examples import agreed_examples
from firstpage.labeling.app.machines import judge, query_texts
from firstpage.labeling.app.store import archive, machine_replies, tables
from firstpage.labeling.app.store.adjudication import decide
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.tables import audit, events, tasks
from firstpage.labeling.app.store.tables import machine_replies as replies_table
from firstpage.labeling.machines.chat import Chat
from firstpage.labeling.machines.limits import Budget
from firstpage.labeling.session.events import LeadVerdict
from tests.labeling.endpoint import Stub, first_by_name, question_of, served
from tests.patience import PATIENCE


@pytest.fixture
def stub() -> Iterator[Stub]:
    with served() as endpoint:
        endpoint.reply = first_by_name
        yield endpoint


def distinct_questions(site: Any, queries: int) -> Any:
    """Return a project whose strategy asks for no pair twice."""
    return site.project(queries=queries, documents=4, setting={"k": 3, "strategy": "tournament"})


def rows_of(site: Any, table: Any) -> list[Any]:
    with site.store.read() as tx:
        return list(tx.all(select(table)))


def test_queries_are_judged_at_the_same_time(site, stub: Stub) -> None:
    project = site.project(assessors=("ada",), queries=4, documents=4)
    stub.delay = 0.02
    model = Chat(stub.url, "m", prices=(1.0, 1.0), backoff=0.01)
    stub.failures = [429, 500, "cut"]
    report = judge(site.store, project, site.person("ada"), model, concurrency=4)
    assert report.queries == 4
    assert 1 < stub.most_active <= 4
    assert report.attempts == len(stub.requests) == 2 * report.answers + 3
    assert len(report.latencies) == report.answers == len(rows_of(site, events))
    assert report.to_dict()["price_per_question"] == pytest.approx(210 / 1e6)
    assert rows_of(site, replies_table) == []
    cost = rows_of(site, events)[0]["cost"]
    assert {"model", "prompt", "seconds", "price", "attempts", "orders"} <= set(cost)


def test_prompts_and_rubric_are_in_the_audit_log_once(site, stub: Stub) -> None:
    project = site.project(assessors=("ada",), queries=1, documents=3, tool="grades")
    for name in ("default", "default", "mine"):
        judge(site.store, project, site.person("ada"), Chat(stub.url, "m", prompt_name=name))
    noted = [row for row in rows_of(site, audit) if row["action"] == "machine settings"]
    assert [row["details"]["prompt_name"] for row in noted] == ["default", "mine"]
    assert "perfect" in noted[0]["details"]["prompts"]["grades"]["text"]
    assert rows_of(site, events)[0]["cost"]["rubric"].startswith("default ")


def test_budgets_end_the_run_and_a_larger_one_continues_it(site, stub: Stub) -> None:
    project, ada = distinct_questions(site, 3), site.person("ada")
    model = Chat(stub.url, "m", prices=(1.0, 0.0))
    first = judge(site.store, project, ada, model, concurrency=2, budget=Budget(max_answers=3))
    assert (first.answers, first.exhausted) == (3, "3 answers")
    again = judge(site.store, project, ada, model, budget=Budget(max_answers=3))
    assert (again.answers, again.exhausted) == (0, "3 answers"), "earlier runs count"
    spent = 3 * 200 / 1e6
    paid = judge(site.store, project, ada, model, budget=Budget(max_price=spent + 450 / 1e6))
    assert (paid.answers, paid.exhausted is not None) == (2, True)
    rest = judge(site.store, project, ada, model)
    assert rest.exhausted is None
    asked = [question_of(body) for body in stub.requests]
    assert len(asked) == len(set(asked)) == 2 * len(rows_of(site, events))


def test_a_key_that_the_model_repeats_is_not_stored(site, stub: Stub) -> None:
    project = site.project(assessors=("ada",), queries=1, documents=3)
    key = "sk-Jx82kd/3Ulw"
    encoded = b64encode(f"Bearer {key}".encode()).decode()
    stub.reply = lambda body: f"{key} {encoded[:20]} " + first_by_name(body)
    report = judge(site.store, project, site.person("ada"), Chat(stub.url, "m", key=key))
    assert report.answers > 0
    stored = str([rows_of(site, table) for table in tables.metadata.sorted_tables])
    assert '[key] QmVhcmVyIH[key] {"better"' in stored.replace("\\", "")
    assert key not in stored
    assert encoded[10:20] not in stored


def test_a_skipped_question_has_the_reason(site, stub: Stub) -> None:
    project = distinct_questions(site, 1)
    stub.reply = lambda body: first_by_name(body) * (1 if len(stub.requests) > 2 else 2)
    report = judge(site.store, project, site.person("ada"), Chat(stub.url, "m"))
    reason = "the model gave several answers in one reply"
    assert report.skipped == {reason: 1}
    row = rows_of(site, events)[0]
    assert (row["event"]["skipped"], row["comment"]) == (True, reason)
    assert row["cost"]["replies"][0].count('"better"') == 2


def test_a_price_cannot_be_limited_without_tokens(site, stub: Stub) -> None:
    project = site.project(assessors=("ada",), queries=1, documents=4)
    stub.usage = False
    model = Chat(stub.url, "m", prices=(1.0, 0.0))
    with pytest.raises(DataError, match="does not report its tokens"):
        judge(site.store, project, site.person("ada"), model, budget=Budget(max_price=1))


def test_an_error_in_one_thread_ends_the_run_and_loses_nothing(site, stub: Stub) -> None:
    project, ada = distinct_questions(site, 4), site.person("ada")
    stub.failures = [200] * 5 + [401]
    with pytest.raises(DataError, match="answers 401"):
        judge(site.store, project, ada, Chat(stub.url, "m"), concurrency=3)
    done = {question_of(body) for body in stub.requests}
    with site.store.read() as tx:
        recorded = machine_replies.spent(tx, project.id, ada.id)[0]
        waiting = machine_replies.pending(tx, project.id)
    assert 2 * recorded + waiting >= 5
    count = len(stub.requests)
    judge(site.store, project, ada, Chat(stub.url, "m"), concurrency=3)
    later = [question_of(body) for body in stub.requests[count:]]
    assert len(later) == len(set(later))
    assert len(done & set(later)) == len(done) - 2 * recorded - waiting, "only what failed"


def test_a_hidden_repeat_is_asked_again(site, stub: Stub) -> None:
    """The journal belongs to one question: self-consistency is measured, not copied."""
    project = site.project(
        assessors=("ada",),
        queries=1,
        documents=6,
        setting={"k": 3, "repeat_rate": 0.5, "strategy": "tournament"},
    )
    report = judge(site.store, project, site.person("ada"), Chat(stub.url, "m"))
    asked = [question_of(body) for body in stub.requests]
    kinds = [row["event"]["kind"] for row in rows_of(site, events)]
    assert kinds.count("repeat") > 0
    assert len(asked) == 2 * report.answers > len(set(asked))


def test_verdicts_are_the_first_examples(site) -> None:
    project = site.project(assessors=("ada",), queries=2, documents=3)
    site.client("ada").judge(site.task("books", "ada", 0))
    lead, verdict = site.person("lena"), LeadVerdict("d2", "d0", 1)
    with site.store.write() as tx:
        decide(tx, project, "q0", "pairs", verdict, "d2 answers it", "k", lead)
    with site.store.read() as tx:
        (example,) = agreed_examples(tx, project, project.tools)
    assert example.right is not None
    assert (example.left.key, example.right.key, example.outcome) == ("d0", "d2", -1)


def test_examples_are_questions_on_which_people_agree(site, stub: Stub) -> None:
    project = site.project(
        assessors=("ada", "ben", "robot"), queries=3, documents=4, options={"replicates": 3}
    )
    with site.store.read() as tx, pytest.raises(DataError, match="at least 2 people agree"):
        agreed_examples(tx, project, project.tools)
    for login in ("ada", "ben"):
        for number in range(3):
            site.client(login).judge(site.task("books", login, number))
    with site.store.read() as tx:
        examples = agreed_examples(tx, project, project.tools)
    assert {example.query_key for example in examples} == {"q0", "q1", "q2"}
    assert all(e.left.key < e.right.key and e.left.body for e in examples if e.right)
    model = Chat(stub.url, "m", examples=examples, max_examples=2)
    judge(site.store, project, site.person("robot"), model)
    for row in rows_of(site, events):
        if row["cost"] is not None:
            assert len(row["cost"]["examples"]) == 2
    with site.store.read() as tx:
        assert agreed_examples(tx, project, project.tools) == examples, "machines do not count"
        report = project_calibration(tx, project, 0.05)[0]
    assert (report.left_out, report.questions) == (3, 0), "it has seen the answers"


def test_a_machine_is_calibrated_against_the_people_of_its_project(site, stub: Stub) -> None:
    project = site.project(
        assessors=("ada", "ben", "robot"), queries=3, documents=4, options={"replicates": 3}
    )
    with site.store.read() as tx, pytest.raises(DataError, match="no program has judged"):
        project_calibration(tx, project, 0.05)
    for login in ("ada", "ben"):
        for number in range(3):
            site.client(login).judge(site.task("books", login, number))
    judge(site.store, project, site.person("robot"), Chat(stub.url, "m"))
    with site.store.read() as tx:
        (report,) = project_calibration(tx, project, 0.05)
        with pytest.raises(DataError, match=r"'ada' has no answers by a program .* robot"):
            project_calibration(tx, project, 0.05, ["ada"])
    assert (report.machine, report.tool) == ("robot", "pairs")
    assert report.agreement.value == report.reference.value == 1.0
    assert report.position is not None
    assert report.position.consistent.value == 1.0
    assert report.questions > 0
    lena = site.client("lena")
    (machine,) = lena.get("/api/v1/projects/books/machines?margin=1").json()["machines"]
    assert (machine["machine"], machine["trust"]) == ("robot", "trusted")
    page = lena.get("/p/books/machines?margin=1").text
    assert machine["name"] == "Robot"
    assert (
        "agrees with people about as often as people do with each other: 1.00 against 1.00" in page
    )
    for part in ("Robot, side by side", "Trusted.", "worth in human judgments", "<svg"):
        assert part in page
    assert site.client("ada").get("/api/v1/projects/books/machines").status_code == 403


def test_archived_texts_have_no_lengths(site) -> None:
    project = site.project(queries=2, documents=4)
    lena = site.person("lena")
    with site.store.write() as tx:
        archive.archive_queries(tx, project, ["q0"], lena)
        archive.change_documents(tx, project, "q1", ["d3"], "archive", lena)
    with site.store.read() as tx:
        lengths = document_lengths(tx, project)
    assert set(lengths) == {("q1", "d0"), ("q1", "d1"), ("q1", "d2")}


def test_a_killed_run_asks_no_stored_reply_again(tmp_path: Path) -> None:
    """Kill the command twice; no reply in the log or the journal is asked for again."""
    log, store = tmp_path / "requests.log", tmp_path / "labels"
    rows = [
        {"query": f"q{q}", "document": f"d{d}", "text": f"text {d} of {q}"}
        for q in range(6)
        for d in range(6)
    ]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    setup = ["label", "setup", str(store), "--documents", str(tmp_path / "documents.jsonl")]
    setup += ["--k", "2", "--strategy", "tournament", "--assessor", "robot"]
    assert CliRunner().invoke(app, setup).exit_code == 0
    command = [sys.executable, "-c", "from firstpage.cli import main; main()"]
    server = subprocess.Popen([sys.executable, "-m", "tests.labeling.endpoint", str(log)])
    try:
        _wait_for(lambda: log.exists() and log.read_text().endswith("\n"))
        url = log.read_text().split()[0]
        words = ["label", "judge", str(store), "--assessor", "robot", "--endpoint", url]
        words += ["--model", "m", "--concurrency", "3"]
        for kill in range(2):
            count = len(log.read_text().split())
            stored = _stored(store)
            run = subprocess.Popen([*command, *words], stderr=subprocess.DEVNULL)
            _wait_for(
                lambda count=count, kill=kill, run=run: (
                    run.poll() is not None or len(log.read_text().split()) >= count + 3 + 2 * kill
                )
            )
            run.send_signal(signal.SIGKILL)
            run.wait()
            assert not stored & set(log.read_text().split()[count:])
        stored, count = _stored(store), len(log.read_text().split())
        subprocess.run([*command, *words], check=True)
        asked = log.read_text().split()
        assert not stored & set(asked[count:])
        assert _stored(store) == set(asked[1:])
        assert len(asked) - 1 - len(set(asked[1:])) <= 2 * 3, "only what was under way"
    finally:
        server.terminate()
        server.wait()


def _wait_for(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def _stored(folder: Path) -> set[str]:
    """Return the requests whose replies are durable: those of the log, and those of the journal."""
    store, model = Store(folder), Chat("http://localhost/v1", "m", ties=False)
    with store.read() as tx:
        stored = {row["request"] for row in tx.all(select(replies_table))}
        texts = {row["id"]: query_texts(tx, row["query"]) for row in tx.all(select(tasks))}
        for row in tx.all(select(events)):
            query, documents = texts[row["task"]]
            left, right = (documents[row["event"][side]] for side in ("left", "right"))
            for pair in ((left, right), (right, left)):
                messages = model.prompt.messages(query, *pair)
                stored.add(question_of({"model": "m", "temperature": 0, "messages": messages}))
    store.close()
    return stored
