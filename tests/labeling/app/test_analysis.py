"""Analysis of judgments: records, truth, agreement, exports."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, get_args

import pytest

from firstpage.data.formats.letor import read_letor
from firstpage.data.formats.trec import read_qrels
from firstpage.labeling.app.analysis.records import records, results
from firstpage.labeling.app.analysis.truth import truths
from firstpage.labeling.app.api.analysis import ExportName
from firstpage.labeling.app.exports import make
from firstpage.labeling.app.store import projects
from firstpage.labeling.session.events import from_dict, setting_from_dict
from firstpage.labeling.session.session import Session
from firstpage.labeling.statistics.records import Record
from tests.labeling.app.site import Site, jsonl
from tests.narrow import present

API = "/api/v1/projects/books"


def judged_project(site: Site, **options: Any) -> None:
    """Two people judge two queries of six documents; d0 is best."""
    site.project(assessors=("ada", "bob"), **options)
    for login in ("ada", "bob"):
        for number in (0, 1):
            site.client(login).judge(site.task("books", login, number))


def test_records_are_the_current_judgments(db_site: Site) -> None:
    db_site.project()
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    first = ada.state(task)
    second = ada.answer(first, 1, spans=[{"kind": "active", "ms": 2500}]).json()
    third = ada.answer(second, -1).json()
    ada.post(f"/api/v1/tasks/{task}/undo", json={"seq": third["seq"], "key": "u"})
    ada.post(f"/api/v1/tasks/{task}/revise", json={"seq": 3, "key": "r", "index": 0, "outcome": -1})
    with db_site.store.read() as tx:
        rows = records(tx, present(projects.by_slug(tx, "books")))
    assert len(rows) == 1
    question = first["question"]
    expected = Record(
        "q0",
        "ada",
        "pairs",
        question["left"]["key"],
        question["right"]["key"],
        -1,
        active=2.5,
        answered_at=db_site.clock().timestamp(),
    )
    assert rows[0] == expected


def test_the_truth_of_one_assessor(db_site: Site) -> None:
    db_site.project(queries=1)
    db_site.client("ada").judge(db_site.task("books", "ada"))
    with db_site.store.read() as tx:
        labels = truths(tx, present(projects.by_slug(tx, "books")))
    assert len(labels) == 1
    assert labels[0].order == ("d0", "d1", "d2")
    assert labels[0].labels == {"d0": 3, "d1": 2, "d2": 1, "d3": 0, "d4": 0, "d5": 0}
    assert labels[0].assessors == 1


@pytest.mark.parametrize("tool", ["pairs", "grades"])
def test_the_consensus_of_several(site: Site, tool: str) -> None:
    judged_project(site, tool=tool)
    consensus = site.client("lena").get(f"{API}/consensus").json()["truths"]
    assert [t["query"] for t in consensus] == ["q0", "q1"]
    for truth in consensus:
        assert truth["assessors"] == 2
        assert truth["order"] == ["d0", "d1", "d2"]
        assert len(truth["confidence"]) == 3
        assert 0 < truth["set_confidence"] <= 1
        assert truth["membership"]["d0"] > truth["membership"]["d5"]


def test_documents_that_most_assessors_mark_bad_come_last(site: Site) -> None:
    site.project(assessors=("ada", "bob"), queries=1, documents=4)
    for login in ("ada", "bob"):
        client, task = site.client(login), site.task("books", login)
        state = client.state(task)
        while state["question"]:
            left, right = (state["question"][s]["key"] for s in ("left", "right"))
            bad = [key for key in (left, right) if key == "d0"]
            better = (-1 if left == "d0" else 1) if bad else 1 if left < right else -1
            state = client.answer(state, better, bad=bad).json()
    truth = site.client("lena").get(f"{API}/consensus").json()["truths"][0]
    assert truth["bad"] == ["d0"]
    assert truth["order"] == ["d1", "d2", "d3"]


def test_results_feed_the_study(db_site: Site) -> None:
    judged_project(db_site)
    with db_site.store.read() as tx:
        labels = results(tx, present(projects.by_slug(tx, "books")))
    assert labels["q0", "ada", "pairs"] == {
        "d0": 3.0,
        "d1": 2.0,
        "d2": 1.0,
        "d3": 0.0,
        "d4": 0.0,
        "d5": 0.0,
    }
    lena = db_site.client("lena")
    agreement = lena.get(f"{API}/agreement").json()
    assert list(agreement)[:2] == ["shared_pairs", "derived_orders"]
    assert agreement["shared_pairs"]["pairs"]["overall"] == 1
    assert agreement["shared_pairs"]["pairs"]["pairs"] > 0
    assert agreement["derived_orders"]["pairs"]["overall"] == 1
    page = lena.get("/p/books/agreement").text
    assert page.index("Shared pairs (asked of two people)") < page.index(">Derived orders")
    assert {a["assessor"] for a in agreement["assessors"]} == {"ada", "bob"}
    assert lena.get(f"{API}/effort").json()["tool"]["pairs"]["judgments"] > 10
    assert lena.get(f"{API}/disagreements").json()["queries"][0]["worth_discussing"] is False


def test_disagreements_are_reported(site: Site) -> None:
    site.project(assessors=("ada", "bob"), queries=1)
    site.client("ada").judge(site.task("books", "ada"))
    site.client("bob").judge(site.task("books", "bob"), lambda a, b: -1 if a < b else 1)
    worst = site.client("lena").get(f"{API}/disagreements").json()["queries"][0]
    assert worst["worth_discussing"]
    assert worst["disputed"]


def test_a_skipped_grade_is_no_grade(site: Site) -> None:
    """It is not counted as the lowest grade either, for example in a study."""
    site.project(tool="grades", queries=1, documents=3, setting={"k": 3, "strategy": "five-grade"})
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    first = state["question"]["left"]["key"]
    state = ada.answer(state, 0, skipped=True).json()
    while state["question"]:
        state = ada.answer(state, 3).json()
    with site.store.read() as tx:
        labels = results(tx, present(projects.by_slug(tx, "books")))["q0", "ada", "grades"]
    assert set(labels.values()) == {3.0}
    assert first not in labels
    assert site.client("lena").get(f"{API}/effort").json()["skipped"] == 1


@pytest.mark.parametrize(("given", "median"), [((4, 1, 3), 3), ((4, 1), 1), ((2,), 2)])
def test_grades_of_several_people_are_combined_by_the_lower_median(
    site: Site, given: tuple[int, ...], median: int
) -> None:
    team = ("ada", "bob", "cy")[: len(given)]
    site.project(tool="grades", assessors=team, queries=1, documents=2, setting={"k": 1})
    for login, grade in zip(team, given, strict=True):
        client = site.client(login)
        state = client.state(site.task("books", login))
        while state["question"]:
            state = client.answer(
                state, grade if state["question"]["left"]["key"] == "d1" else 0
            ).json()
    lena = site.client("lena")
    assert lena.get(f"{API}/export/truth.qrels").text == f"q0 0 d0 0\nq0 0 d1 {median}\n"
    (truth,) = lena.get(f"{API}/consensus").json()["truths"]
    assert (truth["tool"], truth["order"]) == ("grades", ["d1"])


def test_the_truth_page_lists_omissions(site: Site) -> None:
    site.project(queries=2)
    lena = site.client("lena")
    site.client("ada").judge(site.task("books", "ada"))
    words = "1 of 2 queries are left out: nobody has finished them."
    assert words in lena.get("/p/books/truth").text
    assert words in lena.get(f"{API}/export/truth.qrels").headers["x-firstpage-note"]
    site.client("ada").judge(site.task("books", "ada", 1))
    assert "left out" not in lena.get("/p/books/truth").text


def test_texts_that_are_too_long_are_refused(site: Site) -> None:
    site.project()
    lena = site.client("lena")
    form = {"csrf": lena.headers["X-CSRF-Token"], "title": "t", "guidelines": "x" * 200_001}
    refused = lena.post("/p/books/setup", data=form, follow_redirects=False)
    assert refused.status_code == 400
    assert "at most 200,000 characters; got 200,001" in refused.text
    refused = lena.post("/p/books/setup", data={**form, "guidelines": "", "title": "x" * 301})
    assert "at most 300 characters" in refused.text


def test_analysis_of_an_empty_project(site: Site) -> None:
    site.project("books", queries=0)
    lena = site.client("lena")
    for name in ("progress", "effort", "agreement", "disagreements", "consensus"):
        assert lena.get(f"{API}/{name}").status_code == 200, name
    for name in (
        "truth.letor",
        "truth.qrels",
        "truth.jsonl",
        "log.jsonl",
        "log.csv",
        "report.html",
        "assignment.json",
    ):
        assert lena.get(f"{API}/export/{name}").status_code == 200, name


def test_progress(site: Site) -> None:
    site.project(assessors=("ada", "bob"))
    site.client("ada").judge(site.task("books", "ada"))
    progress = site.client("lena").get(f"{API}/progress").json()
    assert progress["all"]["tasks"] == 4
    assert progress["all"]["done"] == 1
    by_name = {row["name"]: row for row in progress["assessors"]}
    assert (by_name["Ada"]["done"], by_name["Bob"]["done"]) == (1, 0)
    assert by_name["Bob"]["expected_remaining"] > by_name["Ada"]["expected_remaining"] > 0
    assert [row["query"] for row in progress["queries"]] == ["q0", "q1"]


def test_exports_read_back(site: Site, tmp_path: Any) -> None:
    judged_project(site)
    lena = site.client("lena")

    def download(name: str) -> str:
        reply = lena.get(f"{API}/export/{name}")
        assert f"books-{name}" in reply.headers["content-disposition"]
        (tmp_path / name).write_text(reply.text)
        return reply.text

    download("truth.qrels")
    assert read_qrels(tmp_path / "truth.qrels").to_dict()["q0"]["d0"] == 3
    download("truth.letor")
    data = read_letor(tmp_path / "truth.letor")
    assert data.n_docs == 12
    assert next(iter(present(data.docids))) == "d0"
    lines = [json.loads(line) for line in download("truth.jsonl").splitlines()]
    assert lines[0]["order"] == ["d0", "d1", "d2"]
    assert {"tied", "bad", "confidence"} <= set(lines[0])
    log = [json.loads(line) for line in download("log.jsonl").splitlines()]
    assert {row["assessor"] for row in log} == {"ada", "bob"}
    assert len(log) == len(list(csv.reader(io.StringIO(download("log.csv"))))) - 1
    assert {t["assessor"] for t in json.loads(download("assignment.json"))["tasks"]} == {
        "ada",
        "bob",
    }
    assert "Agreement" in download("report.html")


def test_csv_cells_are_not_formulas(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    comments = [f"{start}cmd|' /C calc'!A0" for start in "=+-@\t\r"]
    for comment in comments:
        ada.answer(ada.state(task), -1, comment=comment)
    text = site.client("lena").get(f"{API}/export/log.csv").text
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["comment"] for row in rows] == [f"'{comment}" for comment in comments]
    assert {row["outcome"] for row in rows} == {"-1"}, "numbers stay numbers"


def test_every_text_cell_is_escaped() -> None:
    row = dict.fromkeys(make.LOG_COLUMNS) | {"left": "=1", "bad": ["=1"], "outcome": -1}
    (cells,) = csv.DictReader(io.StringIO("".join(make.log_csv([row]))))
    assert (cells["left"], cells["bad"], cells["outcome"]) == ("'=1", '["=1"]', "-1")
    assert cells["right"] == ""


def test_a_session_can_be_replayed_from_the_exported_log(site: Site) -> None:
    site.project(queries=1, setting={"k": 3, "strategy": "insertion", "seed": 5})
    site.client("ada").judge(site.task("books", "ada"))
    text = site.client("lena").get(f"{API}/export/log.jsonl").text
    rows = [json.loads(line) for line in text.splitlines()]
    session = Session([f"d{i}" for i in range(6)], setting_from_dict(rows[0]["initial_setting"]))
    for row in rows:
        session.apply(from_dict(row))
    assert session.order == ("d0", "d1", "d2")


def test_labels_after_a_switch_to_a_smaller_k(site: Site) -> None:
    site.project(queries=1)
    task = site.task("books", "ada")
    site.client("lena").post(f"/api/v1/tasks/{task}/switch", json={"k": 2})
    site.client("ada").judge(task)
    truth = site.client("lena").get(f"{API}/consensus").json()["truths"][0]
    assert truth["k"] == 2
    assert sorted(truth["labels"].values(), reverse=True)[:3] == [2, 1, 0]


def test_ties_are_exported_with_the_truth(site: Site) -> None:
    site.project(
        queries=1,
        documents=4,
        assessors=("ada", "bob"),
        options={"ties": True},
        setting={"k": 3, "strategy": "adaptive(budget=12)"},
    )
    for login in ("ada", "bob"):
        site.client(login).judge(site.task("books", login), lambda left, right: 0)
    truth = site.client("lena").get(f"{API}/consensus").json()["truths"][0]
    assert len(truth["tied"][0]) >= 2


def test_unmeasured_time_does_not_count(site: Site) -> None:
    site.project(queries=1)
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.answer(ada.state(task), spans=[{"kind": "active", "ms": 2000}]).json()
    ada.answer(state)
    effort = site.client("lena").get(f"{API}/effort").json()["tool"]["pairs"]
    assert effort["judgments"] == 2
    assert effort["seconds_per_judgment"]["mean"] == 2


def test_clipped_times_are_excluded_from_effort(site: Site) -> None:
    site.project(queries=1)
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.answer(ada.state(task), 1, spans=[{"kind": "active", "ms": 4000}]).json()
    ada.answer(state, 1, spans=[{"kind": "active", "ms": 3 * 86_400_000}])
    lena = site.client("lena")
    effort = lena.get(f"{API}/effort").json()["tool"]["pairs"]
    assert effort["seconds_per_judgment"]["mean"] == 4
    assert (effort["judgments"], effort["adjusted_times"]) == (2, 1)
    page = lena.get("/p/books/dashboard").text
    assert "1 judgments are not in these times" in page
    assert "86400" not in page


def test_known_answers_count_in_their_direction(site: Site) -> None:
    """In a project of lists, 1 and 2 are both correct where 2 is known."""
    site.project(
        tool="lists", queries=1, documents=5, setting={"k": 3, "gold_rate": 0.5}, opened=False
    )
    lena, ada = site.client("lena"), site.client("ada")
    rows = [
        {"query": "q0", "left": f"d{i}", "right": "d4", "outcome": n}
        for i, n in ((0, 2), (1, 1), (2, -2))
    ]
    files = {"gold_questions": ("g.jsonl", jsonl(*rows))}
    assert lena.post(f"{API}/import", files=files).status_code == 200
    lena.post(f"{API}/open")
    ada.judge(site.task("books", "ada"), lambda left, right: 1 if left < right else -2)
    with site.store.read() as tx:
        project = projects.find_project(tx, "books")
        known = {r.left: (r.outcome, r.expected) for r in records(tx, project) if r.kind == "gold"}
    assert known == {"d0": (1, 1), "d1": (1, 1), "d2": (1, -1)}


def test_the_api_has_every_export() -> None:
    assert set(get_args(ExportName)) == set(make.EXPORTS)
