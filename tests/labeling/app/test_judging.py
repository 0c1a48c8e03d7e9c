"""Judging through the API: questions, recorded answers, refusals."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import event, text

from firstpage.core.errors import DataError
from firstpage.labeling.app.store import assigning, log, people, projects, tasks
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.options import read_options
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.site import Client, Site, add_query, body, jsonl, log_rows
from tests.narrow import present


def test_a_query_is_judged_to_its_end(site: Site) -> None:
    site.project()
    task = site.task("books", "ada")
    ada = site.client("ada")
    before = ada.state(task)
    assert before["seq"] == 0
    assert before["question"]["kind"] == "judgment"
    assert before["query"] == {"text": "query 0", "description": "what is wanted"}
    after = ada.judge(task)
    assert after["done"]
    assert after["question"] is None
    assert after["judgments"] == after["seq"] > 3
    assert after["remaining"] == [0, 0]


def test_the_same_key_again_is_recorded_once(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    sent = body(ada.state(task))
    first = ada.post(f"/api/v1/tasks/{task}/answers", json=sent)
    repeated = ada.post(f"/api/v1/tasks/{task}/answers", json=sent)
    assert (first.status_code, repeated.status_code) == (200, 200)
    assert first.json() == repeated.json()
    assert ada.state(task)["seq"] == 1


def test_a_second_answer_to_a_question_is_a_conflict(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    old = ada.state(task)
    assert ada.answer(old).status_code == 200
    late = ada.answer(old)
    assert late.status_code == 409
    assert late.json()["state"]["seq"] == 1
    assert "already" in late.json()["detail"]
    assert ada.state(task)["seq"] == 1


def test_an_answer_to_another_question_is_a_conflict(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    shown = {state["question"][side]["key"] for side in ("left", "right")}
    other = next(f"d{i}" for i in range(6) if f"d{i}" not in shown)
    wrong = ada.post(f"/api/v1/tasks/{task}/answers", json={**body(state), "left": other})
    assert wrong.status_code == 409
    assert ada.state(task)["seq"] == 0


def post(client: Client, task: int, verb: str, **fields: Any) -> Any:
    return client.post(f"/api/v1/tasks/{task}/{verb}", json=fields)


def test_undo(db_site: Site) -> None:
    db_site.project()
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    first = ada.state(task)
    assert not first["can_undo"]
    assert post(ada, task, "undo", seq=0, key="none").status_code == 409
    second = ada.answer(first).json()
    back = post(ada, task, "undo", seq=second["seq"], key="u1")
    assert back.status_code == 200
    assert back.json()["question"] == first["question"]
    assert back.json()["judgments"] == 0
    assert back.json()["seq"] == 2, "the log keeps both"
    assert post(ada, task, "undo", seq=second["seq"], key="u1").json() == back.json()


def test_an_undone_query_is_not_done(site: Site) -> None:
    site.project(documents=3)
    ada, task = site.client("ada"), site.task("books", "ada")
    done = ada.judge(task)
    with site.store.read() as tx:
        assert present(tasks.get(tx, task)).state == "done"
    back = post(ada, task, "undo", seq=done["seq"], key="u").json()
    assert not back["done"]
    with site.store.read() as tx:
        assert present(tasks.get(tx, task)).state == "started"
        assert tx.value(text(f"SELECT result FROM tasks WHERE id = {task}")) is None


def test_revise_a_judgment(db_site: Site) -> None:
    db_site.project()
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    state = ada.answer(ada.answer(ada.state(task), 1).json(), 1).json()
    judgments = ada.get(f"/api/v1/tasks/{task}/judgments").json()["judgments"]
    assert [j["outcome"] for j in judgments] == [1, 1]
    reply = post(ada, task, "revise", seq=state["seq"], key="r", index=0, outcome=-1)
    assert reply.status_code == 200
    judgments = ada.get(f"/api/v1/tasks/{task}/judgments").json()["judgments"]
    assert [j["outcome"] for j in judgments] == [-1, 1]
    assert post(ada, task, "revise", seq=3, key="r2", index=9, outcome=1).status_code == 409


def test_only_shown_documents_can_be_marked_bad(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    assert ada.answer(state, 1, bad=["nothing"]).status_code == 400
    right = state["question"]["right"]["key"]
    after = ada.answer(state, 1, bad=[right])
    assert after.status_code == 200


@pytest.mark.parametrize(
    ("tool", "outcome", "code"),
    [("pairs", 2, 400), ("pairs", -1, 200), ("lists", 2, 200), ("lists", 3, 400),
     ("grades", 4, 200), ("grades", -1, 400)],
)  # fmt: skip
def test_outcomes_fit_the_tool(site: Site, tool: str, outcome: int, code: int) -> None:
    strategy = {"grades": "five-grade", "lists": "pairs"}.get(tool, "heap")
    site.project(tool=tool, setting={"k": 3, "strategy": strategy})
    ada, task = site.client("ada"), site.task("books", "ada")
    assert ada.answer(ada.state(task), outcome).status_code == code


def test_grades_show_one_document(site: Site) -> None:
    site.project(tool="grades")
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    assert state["tool"] == "grades"
    assert state["question"]["right"] is None
    done = ada.judge(task)
    assert done["judgments"] == 6


def test_times_are_recorded(db_site: Site) -> None:
    db_site.project()
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    spans = [
        {"kind": "active", "ms": 1500, "start": "2026-03-01T12:00:00Z"},
        {"kind": "paused", "ms": 60_000},
        {"kind": "active", "ms": 500},
    ]
    sent = {
        "shown_at": "2026-03-01T12:00:00+01:00", "answered_at": "2026-03-01T12:01:02Z",
        "spans": spans, "comment": "hard", "reason": None,
    }  # fmt: skip
    assert ada.answer(ada.state(task), 1, **sent).status_code == 200
    with db_site.store.read() as tx:
        row = log_rows(tx, task)[0]
    assert (row["active_ms"], row["paused_ms"], row["away_ms"]) == (2000, 60_000, 0)
    assert row["shown_at"] == "2026-03-01T11:00:00.000000Z"
    assert row["comment"] == "hard"
    assert len(row["spans"]) == 3


def test_time_without_an_answer_is_recorded_once(db_site: Site) -> None:
    db_site.project()
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    for _ in range(2):
        reply = post(ada, task, "spans", key="closed", spans=[{"kind": "away", "ms": 5000}])
        assert reply.status_code == 204
    with db_site.store.read() as tx:
        assert tx.value(text("SELECT sum(away_ms) FROM spans")) == 5000


def only_row(site: Site, task: int) -> dict[str, Any]:
    with site.store.read() as tx:
        (row,) = log_rows(tx, task)
    return dict(row)


def test_a_pause_of_days_is_clipped(db_site: Site) -> None:
    db_site.project()
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    spans = [{"kind": "active", "ms": 1500}, {"kind": "paused", "ms": 3 * 86_400_000}]
    reply = ada.answer(ada.state(task), 1, spans=spans, comment="after a weekend")
    assert reply.status_code == 200, reply.text
    row = only_row(db_site, task)
    assert (row["active_ms"], row["paused_ms"]) == (1500, 86_400_000)
    assert row["spans"][1]["reported_ms"] == 3 * 86_400_000
    assert row["event"]["adjusted_times"] == {"clipped_spans": 1}
    assert row["comment"] == "after a weekend"
    assert ada.state(task)["seq"] == 1, "a log with a bad document is replayed"


def test_a_wrong_device_clock_is_corrected(db_site: Site) -> None:
    db_site.project()
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    sent = {
        "shown_at": "1999-12-31T23:00:00Z", "answered_at": "1999-12-31T23:00:07Z",
        "spans": [{"kind": "active", "ms": 7000, "start": "1999-12-31T23:00:00Z"}],
    }  # fmt: skip
    reply = ada.answer(ada.state(task), 1, **sent)
    assert reply.status_code == 200, reply.text
    row = only_row(db_site, task)
    assert row["answered_at"] == "2026-03-01T12:00:00.000000Z", "the server's time is recorded"
    assert row["shown_at"] == row["spans"][0]["start"] == "2026-03-01T11:59:53.000000Z"
    assert row["active_ms"] == 7000
    assert row["event"]["adjusted_times"]["clock_offset_ms"] > 25 * 365 * 86_400_000
    exported = db_site.client("lena").get("/api/v1/projects/books/export/log.jsonl").text
    assert '"adjusted_times": {"clock_offset_ms": ' in exported


@pytest.mark.parametrize(
    ("sent", "adjusted"),
    [
        ({"answered_at": "9999-12-31T23:59:59-12:00"}, {"dropped": ["answered_at"]}),
        ({"shown_at": "yesterday, about noon, I believe; at least not later"}, {"dropped": ["shown_at"]}),
        ({"shown_at": "0001-01-01T00:00:00Z"}, {"dropped": ["shown_at"]}),
        ({"spans": [{"kind": "away", "ms": -5}]}, {"clipped_spans": 1}),
        ({"spans": [{"kind": "active", "ms": None}]}, {"clipped_spans": 1}),
        ({"spans": [{"kind": "away", "ms": 1, "start": "\x00"}]}, {"dropped": ["start"]}),
        ({"spans": [{"kind": "active", "ms": 1}] * 600}, {"merged_spans": 600}),
        ({"answered_at": "2026-03-03T12:00:00Z"}, {"clock_offset_ms": -2 * 86_400_000}),
    ],
)  # fmt: skip
def test_invalid_times_never_refuse_an_answer(
    site: Site, sent: dict[str, Any], adjusted: dict[str, Any]
) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    reply = ada.answer(ada.state(task), 1, **sent)
    assert reply.status_code == 200, reply.text
    row = only_row(site, task)
    assert row["event"]["adjusted_times"] == adjusted
    assert row["active_ms"] == (600 if "merged_spans" in adjusted else row["active_ms"])
    spent = {"key": "closed", "spans": sent.get("spans", [])}
    assert ada.post(f"/api/v1/tasks/{task}/spans", json=spent).status_code == 204


def test_a_returned_query_is_reassigned(db_site: Site) -> None:
    db_site.project(queries=1, assessors=("ada",))
    with db_site.store.write() as tx:
        project = present(projects.by_slug(tx, "books"))
        projects.join(tx, project, people.ensure(tx, "bob"), "assessor")
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    state = post(ada, task, "skip", reason="I wrote one of them").json()
    assert state["question"] is None
    assert "returned" in state["message"]
    assert (
        ada.answer(
            {**ada.state(task), "question": {"left": {"key": "d0"}, "right": {"key": "d1"}}}
        ).status_code
        == 409
    )
    work = db_site.client("bob").get("/api/v1/projects/books/work").json()
    assert len(work["tasks"]) == 1
    assert work["next"] == work["tasks"][0]["id"]
    post(ada, task, "skip", reason="again")
    with db_site.store.read() as tx:
        assert len(tasks.of_project(tx, project.id)) == 2


@pytest.mark.parametrize("state", ["draft", "closed"])
def test_answers_are_refused_unless_the_project_is_open(site: Site, state: str) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    open_, lena = ada.state(task), site.person("lena")
    with site.store.write() as tx:
        projects.set_state(tx, present(projects.by_slug(tx, "books")), state, lena)
    late = ada.answer(open_)
    assert late.status_code == 409
    assert late.json()["state"]["question"] is None
    assert ada.get("/api/v1/projects/books/work").json()["next"] is None


def test_tasks_of_a_person(site: Site) -> None:
    site.project(queries=3)
    ada = site.client("ada")
    first, second = site.task("books", "ada", 0), site.task("books", "ada", 1)
    work = ada.get("/api/v1/projects/books/work").json()
    assert [t["state"] for t in work["tasks"]] == ["open"] * 3
    assert work["next"] == first
    assert work["training"] == {"needed": False, "passed": True}
    ada.answer(ada.state(second))
    assert ada.get("/api/v1/projects/books/work").json()["next"] == second, (
        "a started task comes first"
    )
    ada.judge(second)
    assert ada.get("/api/v1/projects/books/work").json()["next"] == first


def test_hidden_questions_look_like_any_other(site: Site) -> None:
    site.project(documents=12, setting={"k": 5, "strategy": "heap", "repeat_rate": 0.5})
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    while state["question"]:
        assert state["question"]["kind"] == "judgment"
        left, right = (state["question"][s]["key"] for s in ("left", "right"))
        state = ada.answer(state, 1 if left < right else -1).json()
    with site.store.read() as tx:
        kinds = {row["event"]["kind"] for row in log_rows(tx, task)}
    assert kinds == {"judgment", "repeat"}


def test_documents_of_the_next_question_are_predicted(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    ahead = set(ada.get(f"/api/v1/tasks/{task}/prefetch").json()["documents"])
    after = ada.answer(state, 1).json()["question"]
    shown = {after[side]["url"] for side in ("left", "right")}
    before = {state["question"][side]["url"] for side in ("left", "right")}
    assert shown - before <= ahead
    assert not ahead & before


def test_a_lead_switches_the_strategy_in_mid_query(db_site: Site) -> None:
    db_site.project(documents=12)
    ada, lena, task = db_site.client("ada"), db_site.client("lena"), db_site.task("books", "ada")
    ada.answer(ada.state(task))
    reply = post(lena, task, "switch", strategy="insertion", k=2)
    assert reply.status_code == 200
    assert post(lena, task, "switch", strategy="nonsense").status_code == 400
    ada.judge(task)
    with db_site.store.read() as tx:
        rows = log_rows(tx, task)
        row = present(tasks.get(tx, task))
    assert rows[1]["event"]["event"] == "switched"
    assert row.state == "done"


def test_two_servers_on_one_database(db_site: Site) -> None:
    """Each server caches its own sessions; the log decides."""
    db_site.project()
    other = Site(
        Store(db_site.store.url.render_as_string(hide_password=False), db_site.clock), db_site.clock
    )
    task = db_site.task("books", "ada")
    client, other_client = db_site.client("ada"), other.client("ada")
    old = client.state(task)
    assert other_client.answer(old).status_code == 200
    late = client.answer(old)
    assert late.status_code == 409
    assert late.json()["state"]["seq"] == 1
    state = late.json()["state"]
    while state["question"]:
        client, other_client = other_client, client
        reply = client.answer(state)
        assert reply.status_code == 200
        state = reply.json()
    assert other_client.state(task) == client.state(task)
    other.store.close()


def test_concurrent_answers_to_one_task(db_site: Site) -> None:
    """Of many answers with the same sequence number, as by double clicks, one is recorded."""
    db_site.project()
    task = db_site.task("books", "ada")
    ada = db_site.client("ada")
    state = ada.state(task)
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda _: ada.answer(state).status_code, range(8)))
    assert sorted(codes) == [200] + [409] * 7
    sent = body(ada.state(task))
    with ThreadPoolExecutor(8) as pool:
        replies = list(
            pool.map(lambda _: ada.post(f"/api/v1/tasks/{task}/answers", json=sent), range(8))
        )
    assert {r.status_code for r in replies} == {200}
    assert ada.state(task)["seq"] == 2


def test_a_failed_write_changes_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cached session must not be ahead of the log."""
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    before = ada.state(task)

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", full)
        with pytest.raises(OSError, match="no space"):
            ada.answer(before)
    assert ada.state(task) == before
    assert ada.answer(before).status_code == 200


def add_training(site: Site, pass_fraction: float = 0.7) -> None:
    rows = [
        {
            "text": "cats",
            "left": f"about cats {i}",
            "right": {"html": "<p>dogs</p>"},
            "outcome": "left",
            "explanation": "It is about cats.",
        }
        for i in range(2)
    ]
    lena = site.client("lena")
    lena.patch("/api/v1/projects/books", json={"options": {"training_pass": pass_fraction}})
    reply = lena.post(
        "/api/v1/projects/books/import", files={"training": ("t.jsonl", jsonl(*rows))}
    )
    assert reply.json()["training"] == 2, reply.text


def test_practice_comes_first(db_site: Site) -> None:
    db_site.project()
    add_training(db_site)
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    assert "practice" in ada.state(task)["message"]
    assert ada.get("/api/v1/projects/books/work").json()["next"] is None
    state = ada.get("/api/v1/projects/books/training").json()
    assert state["question"]["kind"] == "training"
    assert ada.get(state["question"]["right"]["url"]).status_code == 200

    def lesson(outcome: int) -> dict[str, Any]:
        state = ada.get("/api/v1/projects/books/training").json()
        sent = body(state, outcome)
        reply = ada.post("/api/v1/projects/books/training", json=sent)
        assert reply.status_code == 200
        repeated = ada.post("/api/v1/projects/books/training", json=sent).json()
        assert repeated == reply.json(), "the same key is answered in the same way"
        return reply.json()

    wrong = lesson(-1)
    assert (wrong["correct"], wrong["explanation"]) == (False, "It is about cats.")
    assert lesson(1)["correct"]
    assert "try again" in ada.get("/api/v1/projects/books/training").json()["message"]
    lesson(1)
    assert lesson(1)["done"]
    assert ada.get("/api/v1/projects/books/work").json()["training"] == {
        "needed": True,
        "passed": True,
    }
    assert ada.answer(ada.state(task)).status_code == 200


API = "/api/v1/projects/books"


def test_practice_is_correct_in_the_direction_of_its_answer(site: Site) -> None:
    """By whatever amount; skipping a question is not an answer, also where the answer is 0."""
    site.project(tool="lists", queries=1)
    rows = [{"text": "q", "left": "A", "right": "B", "outcome": n} for n in (2, -1, 0, 0)]
    files = {"training": ("t.jsonl", jsonl(*rows))}
    assert site.client("lena").post(f"{API}/import", files=files).status_code == 200
    ada = site.client("ada")
    correct = []
    for outcome, skipped in ((1, False), (-2, False), (0, True), (0, False)):
        sent = body(ada.get(f"{API}/training").json(), outcome, skipped=skipped)
        correct.append(ada.post(f"{API}/training", json=sent).json()["correct"])
    assert correct == [True, True, False, True]


def test_departed_assessors_cannot_judge(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.answer(ada.state(task)).json()
    site.client("lena").delete(f"{API}/people/{site.person('ada').id}")
    assert ada.answer(state).status_code == 404
    assert ada.get(f"/api/v1/tasks/{task}").status_code == 404
    assert ada.post(f"/api/v1/tasks/{task}/skip", json={"reason": "x"}).status_code == 404


def test_a_query_with_one_document_is_done_at_once(site: Site) -> None:
    project, lena = site.project(queries=1), site.person("lena")
    with site.store.write() as tx:
        add_query(tx, project.id, QueryRecord("one", "one", documents=(DocumentRecord("only"),)), 1)
        assigning.assign_tasks(tx, project, lena)
        ada = people.by_login(tx, "ada")
        assert ada is not None
        states = {t.query_key: t.state for t in tasks.of_person(tx, project, ada.id)}
    assert states["one"] == "done"
    truths = site.client("lena").get(f"{API}/consensus").json()["truths"]
    assert [t["order"] for t in truths if t["query"] == "one"] == [["only"]]


def test_a_strategy_must_match_the_tool(site: Site) -> None:
    with site.store.write() as tx, pytest.raises(DataError, match="use it with the tool 'grades'"):
        projects.create(tx, "shop", setting={"strategy": "five-grade"})
    site.project()
    task = site.task("books", "ada")
    switch = {"strategy": "five-grade"}
    reply = site.client("lena").post(f"/api/v1/tasks/{task}/switch", json=switch)
    assert reply.status_code == 400
    site.project("graded", tool="grades", setting={"k": 2, "strategy": "five-grade"})


@pytest.mark.parametrize(
    ("tool", "strategy", "other"),
    [
        ("grades", "five-grade", "heap"),
        ("lists", "pairs", "five-grade"),
        ("lists", "pairs", "heap"),
    ],
)
def test_a_fixed_strategy_is_not_switched(site: Site, tool: str, strategy: str, other: str) -> None:
    site.project(tool=tool)
    task, lena = site.task("books", "ada"), site.client("lena")
    refused = post(lena, task, "switch", strategy=other)
    assert refused.status_code == 400
    assert f"the tool '{tool}' has the strategy {strategy}" in refused.json()["detail"]
    assert post(lena, task, "switch", k=2, strategy=strategy).status_code == 200
    assert site.client("ada").judge(task)["done"]


@pytest.mark.parametrize("setting", [{"strategy": ["x"]}, {"strategy": 5}, {"strategy": None}])
def test_a_strategy_must_be_a_string(site: Site, setting: dict[str, Any]) -> None:
    site.person("lena", admin=True)
    reply = site.client("lena").post("/api/v1/projects", json={"slug": "x", "setting": setting})
    assert reply.status_code in (400, 422)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 1}, "a project has no option 'speed' (it has: ties, bad, away_after, "),
        ({"ties": 1}, "the option ties must be true or false; got 1."),
        ({"rtl": "yes"}, "the option rtl must be true or false; got 'yes'."),
        ({"away_after": 4}, "the option away_after must be seconds from 5 to 86400; got 4."),
        ({"away_after": True}, "the option away_after must be seconds from 5 to 86400; got True."),
        ({"training_pass": "1"}, "the option training_pass must be a fraction from 0 to 1; got '1'."),
        ({"seconds_per_judgment": math.nan}, "the option seconds_per_judgment must be seconds from 0.1 to 3600; got nan."),
        ({"replicates": 1.5}, "the option replicates must be an integer from 1 to 1000; got 1.5."),
        ({"replicates": None}, "the option replicates must be an integer from 1 to 1000; got None."),
        ({"folds": 0}, "the option folds must be an integer from 1 to 100000; got 0."),
        ({"list_selection": "best"}, "the option list_selection must be one of order, simple-margin, diverse, "),
        ({"tools": ["pairs", []]}, "the option tools must be a list of pairs, grades, lists, each once;"),
        ({"tools": ["pairs", "pairs"]}, "the option tools must be a list of pairs, grades, lists, each"),
        ({"tools": []}, "the option tools must be a list of pairs, grades, lists, each once; got []."),
    ],
)  # fmt: skip
def test_invalid_options_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as error:
        read_options(options)
    assert str(error.value).startswith(message)


def test_options_are_stored_unchanged(site: Site) -> None:
    """Other options have their defaults, and 120 does not become 120.0."""
    site.project(options={"away_after": 60, "tools": ("pairs", "lists")})
    shown = site.client("lena").get("/api/v1/projects/books").json()["options"]
    assert shown == {
        "ties": False,
        "bad": True,
        "away_after": 60,
        "training_pass": 0.7,
        "replicates": 1,
        "tools": ["pairs", "lists"],
        "folds": None,
        "rtl": None,
        "seconds_per_judgment": None,
        "list_selection": "order",
        "grades": None,
        "aspects": None,
        "reasons": None,
        "verdict_weight": 10,
    }
    assert isinstance(shown["away_after"], int)


@pytest.mark.parametrize(
    ("outcome", "bad", "fine"),
    [
        (0, [], False), (1, ["left"], False), (-1, ["left"], True), (1, ["right"], True),
        (0, ["left", "right"], True), (1, ["left", "right"], False),
    ],
)  # fmt: skip
def test_answers_without_a_button_are_refused(
    site: Site, outcome: int, bad: list[str], fine: bool
) -> None:
    """Ties are refused where there is no button for them, and a bad document cannot be better."""
    site.project(options={"ties": False})
    ada = site.client("ada")
    state = ada.state(site.task("books", "ada"))
    keys = [state["question"][side]["key"] for side in bad]
    assert ada.answer(state, outcome, bad=keys).status_code == (200 if fine else 400)


@pytest.mark.parametrize(("tool", "outcome"), [("grades", 4), ("lists", 2), ("lists", -1)])
def test_bad_is_marked_only_side_by_side(site: Site, tool: str, outcome: int) -> None:
    site.project(tool=tool)
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    bad = [state["question"]["left"]["key"]]
    refused = ada.answer(state, outcome, bad=bad)
    assert f"cannot be marked bad with the tool '{tool}'" in refused.json()["detail"]
    assert ada.answer(state, outcome).status_code == 200
    revised = post(ada, task, "revise", seq=1, key="r", index=0, outcome=outcome, bad=bad)
    assert revised.status_code == 400


def test_an_answer_takes_few_statements(db_site: Site) -> None:
    """Each is a round trip to PostgreSQL; more of them made answers wait for one another."""
    db_site.project()
    ada = db_site.client("ada")
    state = ada.state(db_site.task("books", "ada"))
    state = ada.answer(state).json()
    statements: list[str] = []

    @event.listens_for(db_site.store.engine, "before_cursor_execute")
    def count(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            statements.append(statement.split()[0])

    assert ada.answer(state).status_code == 200
    assert statements[:2] == ["SELECT", "SELECT"], "login and task"
    assert statements[2:] == ["UPDATE", "INSERT"]
