"""The measure learned from judgments of lists: input, output, access."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from firstpage.cli import app
from firstpage.data.preferences.files import read_preferences
from firstpage.data.preferences.utility import read_utility
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.labeling.app.analysis.measure import (
    ListJudgment,
    ProjectMeasure,
    learn,
    learned_measure,
    list_judgments,
)
from firstpage.labeling.app.store import projects
from firstpage.labeling.app.store.texts import QueryRecord
from tests.labeling.app.graded_lists import (
    GAINS,
    graded_queries,
    grades_in,
    judge,
    judge_first,
    list_document,
    lists_project,
    outcome,
)
from tests.labeling.app.site import Site, jsonl, log_rows

API = "/api/v1/projects/books"


def current_judgments(site: Site, slug: str = "books") -> list[ListJudgment]:
    with site.store.read() as tx:
        project = projects.by_slug(tx, slug)
        assert project is not None
        return list(list_judgments(tx, project))


def current_measure(site: Site, slug: str = "books") -> ProjectMeasure:
    with site.store.read() as tx:
        project = projects.by_slug(tx, slug)
        assert project is not None
        return learned_measure(tx, project)


def test_reasons_are_not_in_words_of_python(site: Site) -> None:
    """The error advises on a parameter of Python, which pages and the API do not have."""
    lists_project(
        site,
        [
            QueryRecord(
                "q",
                "query",
                "",
                (
                    list_document("a", [1, 0]),
                    list_document("b", [500, 0]),
                ),
            )
        ],
    )
    client = site.client("ada")
    client.answer(client.state(site.task("books", "ada", 0)), 1)
    lena = site.client("lena")
    reason = lena.get(f"{API}/measure").json()["reason"]
    assert reason.endswith("and there may be at most 100.")
    page = lena.get("/p/books/measure").text
    assert "there may be at most 100." in page
    assert "grades=" not in page


def judged_project(
    site: Site, count: int = 40, assessors: tuple[str, ...] = ("ada",), **options: Any
) -> None:
    project = lists_project(site, graded_queries(count), assessors, **options)
    for login in assessors:
        judge_first(site, project, login, count)


def test_current_list_judgments(db_site: Site) -> None:
    """Undone and skipped judgments are left out, and revised ones have their new outcome."""
    lists_project(db_site, graded_queries(3), ("ada", "bo"))
    ada, bo = db_site.client("ada"), db_site.client("bo")
    first, second, third = (db_site.task("books", "ada", n) for n in range(3))
    ada.answer(ada.state(first), 2)
    ada.post(
        f"/api/v1/tasks/{first}/revise", json={"seq": 1, "key": "r", "index": 0, "outcome": -1}
    )
    ada.answer(ada.state(second), 1)
    ada.post(f"/api/v1/tasks/{second}/undo", json={"seq": 1, "key": "u"})
    ada.answer(ada.state(third), 0, skipped=True)
    bo.answer(bo.state(db_site.task("books", "bo", 1)), -2)
    judgments = current_judgments(db_site)
    assert [(c.query, c.outcome, c.assessor) for c in judgments] == [
        ("q0", -1, "ada"),
        ("q1", -2, "bo"),
    ]
    assert all(len(c.left) == len(c.right) == 5 for c in judgments)


def test_left_and_right_are_as_they_were_shown(site: Site) -> None:
    project = lists_project(site, graded_queries(6))
    grades = grades_in(site, project)
    client = site.client("ada")
    shown = []
    for number in range(6):
        state = client.state(site.task("books", "ada", number))
        keys = [state["question"][side]["key"] for side in ("left", "right")]
        shown.append(tuple(grades[f"query {number}", key] for key in keys))
        client.answer(state, 1)
    assert [(c.left, c.right) for c in current_judgments(site)] == shown
    assert len({s == tuple(sorted(s)) for s in shown}) == 2, "sides were never swapped"


def test_hidden_repeats_and_gold_questions_are_excluded(site: Site) -> None:
    lists_project(site, graded_queries(1, lists=5), setting={"repeat_rate": 0.5, "gold_rate": 0.5})
    client, task = site.client("ada"), site.task("books", "ada")
    known = jsonl({"query": "q0", "left": "l0", "right": "l1", "outcome": 2})
    site.client("lena").post(f"{API}/import", files={"gold_questions": ("g.jsonl", known)})
    client.judge(task, lambda a, b: 1)
    with site.store.read() as tx:
        kinds = [row["event"]["kind"] for row in log_rows(tx, task)]
    assert {"repeat", "gold"} < set(kinds)
    assert len(current_judgments(site)) == kinds.count("judgment") == 10


def test_the_measure_is_learned(site: Site) -> None:
    judged_project(site, 40)
    learned = current_measure(site)
    assert learned.reason is None
    assert learned.judgments == 40
    assert learned.utility is not None
    assert np.abs(learned.utility.gains - GAINS).max() < 0.2
    assert learned.comparison is not None
    assert 0.75 < learned.comparison.learned <= 1
    assert 0.75 < learned.comparison.dcg <= 1


def test_the_measure_is_cached_until_the_log_changes(db_site: Site) -> None:
    judged_project(db_site, 30)
    first = current_measure(db_site)
    assert current_measure(db_site) is first
    ada, task = db_site.client("ada"), db_site.task("books", "ada", 3)
    ada.post(f"/api/v1/tasks/{task}/undo", json={"seq": 1, "key": "u"})
    second = current_measure(db_site)
    assert (second.judgments, current_measure(db_site) is second) == (29, True)
    ada.answer(ada.state(task), 1)
    assert current_measure(db_site).judgments == 30
    qrels = b"".join(b"q0 0 l0-%d 3\n" % i for i in range(5))
    db_site.client("lena").post(f"{API}/import", files={"qrels": ("g.qrels", qrels)})
    assert (
        current_judgments(db_site)[0].left == (3,) * 5
        or current_judgments(db_site)[0].right == (3,) * 5
    )
    third = current_measure(db_site)
    assert third is not second
    assert current_measure(db_site) is third


def test_two_servers_on_one_database_learn_the_same(db_site: Site) -> None:
    judged_project(db_site, 25)
    other = Site(db_site.store, db_site.clock)
    ada = other.client("ada")
    state = ada.state(other.task("books", "ada", 0))
    ada.post(f"/api/v1/tasks/{state['task']}/undo", json={"seq": 1, "key": "u"})
    first_report, second_report = (
        site.client("lena").get(f"{API}/measure").json() for site in (db_site, other)
    )
    assert first_report == second_report
    assert first_report["judgments"] == 24


@pytest.mark.parametrize(
    ("queries", "answer", "reason"),
    [
        ([], None, "nobody has compared lists yet"),
        ([QueryRecord("q", "q", "", (list_document("a", [None]), list_document("b", [None])))], 1,
         "no item of the lists has a grade"),
        ([QueryRecord("q", "q", "", (list_document("a", [1]), list_document("b", [0])))], 0, "ties"),
        ([QueryRecord("q", "q", "", (list_document("a", [1]), list_document("b", [1])))], 1,
         "difference of grades"),
    ],
)  # fmt: skip
def test_reason_for_a_missing_measure(
    site: Site, queries: list[QueryRecord], answer: int | None, reason: str
) -> None:
    lists_project(site, queries)
    if answer is not None:
        client = site.client("ada")
        client.answer(client.state(site.task("books", "ada")), answer)
    lena = site.client("lena")
    report = lena.get(f"{API}/measure").json()
    assert reason in report["reason"]
    assert report["measure"] is None
    assert reason in lena.get("/p/books/measure").text
    refused = lena.get(f"{API}/export/measure.json")
    assert refused.status_code == 400
    assert reason in refused.json()["detail"]
    assert lena.get(f"{API}/export/preferences.jsonl").status_code == 200


def test_other_tools_have_no_measure(site: Site) -> None:
    site.project()
    lena = site.client("lena")
    assert "does not compare lists" in lena.get(f"{API}/measure").json()["reason"]
    assert lena.get("/p/books/measure").status_code == 200
    assert "/p/books/measure" not in lena.get("/p/books/dashboard").text
    assert "measure.json" not in lena.get("/p/books/dashboard").text
    assert lena.get(f"{API}/export/preferences.jsonl").text == ""


def test_a_refit_of_a_thousand_answers() -> None:
    rng = np.random.default_rng(0)
    judgments, lists = [], {}
    for number in range(1000):
        left, right = (tuple(rng.integers(0, 4, 10).tolist()) for _ in range(2))
        answer = outcome(left, right) if rng.random() < 0.85 else int(rng.integers(-2, 3))
        judgments.append(ListJudgment(f"q{number}", left, right, answer, "ada"))
        lists[number] = {"a": left, "b": right}
    learned = learn(judgments, lists)
    assert learned.pairs > 950
    assert learned.learner is not None
    assert learned.learner.validation_curve_ is not None, "C was not chosen by cross-validation"
    assert learned.comparison is not None
    assert learned.comparison.verdict == "better"
    assert learned.advice is not None
    assert learned.advice.verdict in ("stop", "unclear")


def test_exports_read_back(site: Site, tmp_path: Path) -> None:
    """The exported measure can be read, and the exported preferences give the same measure."""
    judged_project(site, 30, ("ada", "bo"))
    lena = site.client("lena")
    (tmp_path / "measure.json").write_text(lena.get(f"{API}/export/measure.json").text)
    utility = read_utility(tmp_path / "measure.json")
    assert utility.to_dict() == lena.get(f"{API}/measure").json()["measure"]
    text = lena.get(f"{API}/export/preferences.jsonl").text
    rows = [json.loads(row) for row in text.splitlines()]
    assert len(rows) == 60
    assert set(rows[0]) == {"query", "left", "right", "outcome", "assessor"}
    assert {row["assessor"] for row in rows} == {"ada", "bo"}
    (tmp_path / "preferences.jsonl").write_text(text)
    refitted = DCGLearn(5, threads=1, decreasing=True).fit(
        read_preferences(tmp_path / "preferences.jsonl")
    )
    assert np.allclose(refitted.gains_, utility.gains)


def test_unjudged_items_are_null(site: Site) -> None:
    lists = (list_document("a", [3, None, 1]), list_document("b", [None, 0]))
    lists_project(site, [QueryRecord("q", "q", "", lists)])
    client = site.client("ada")
    client.answer(client.state(site.task("books", "ada")), 1)
    (row,) = site.client("lena").get(f"{API}/export/preferences.jsonl").text.splitlines()
    record = json.loads(row)
    assert sorted([record["left"], record["right"]], key=len) == [[None, 0], [3, None, 1]]


def test_the_command_line_has_the_exports(tmp_path: Path) -> None:
    documents = [
        {"query": f"q{q}", "document": d.key, "items": d.fields["items"] if d.fields else []}
        for q, query in enumerate(graded_queries(25))
        for d in query.documents
    ]
    (tmp_path / "d.jsonl").write_bytes(jsonl(*documents))
    (tmp_path / "g.qrels").write_text("q0 0 l0-0 2\n")

    def call(*words: object) -> str:
        done = CliRunner().invoke(app, ["label", *map(str, words)])
        assert done.exit_code == 0, done.output
        return done.output

    call(
        "setup",
        tmp_path / "p",
        "--documents",
        tmp_path / "d.jsonl",
        "--tool",
        "lists",
        "--qrels",
        tmp_path / "g.qrels",
        "--list-selection",
        "diverse",
        "--assessor",
        "ada",
        "--name",
        "books",
    )
    from firstpage.labeling.app.store.connect import Store
    from tests.labeling.app.site import Clock

    site = Site(Store(tmp_path / "p", Clock()), Clock())
    with site.store.read() as tx:
        project = projects.by_slug(tx, "books")
    assert project is not None
    assert project.options.list_selection == "diverse"
    words = ["label", "setup", str(tmp_path / "other"), "--list-selection", "diverse"]
    assert "requires --tool lists" in CliRunner().invoke(app, words).output
    grades = grades_in(site, project)
    assert grades["q0", "l0"][0] == 2
    judge_first(site, project, "ada", 25)
    site.store.close()
    output = call("export", tmp_path / "p", "--content", "measure", "-o", tmp_path / "m.json")
    assert "firstpage: note: On 25 held-out preferences this measure is not shown to be" in output
    assert read_utility(tmp_path / "m.json").about["pairs"] == 25
    call("export", tmp_path / "p", "--content", "preferences", "-o", tmp_path / "p.jsonl")
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 25


def test_intervals(site: Site) -> None:
    """The page shows intervals, and the API returns them on request."""
    judged_project(site, 30)
    lena = site.client("lena")
    assert "intervals" not in lena.get(f"{API}/measure").json()
    intervals = lena.get(f"{API}/measure?intervals=true").json()["intervals"]
    assert np.array(intervals["gains"]).shape == (4, 2)
    assert np.array(intervals["discounts"]).max() <= 1 + 1e-9, "the axis is readable"
    page = lena.get("/p/books/measure").text
    assert page.count('class="band') == 2
    assert "The band is the 95 % interval" in page


def test_ignored_ranks_are_reported(site: Site) -> None:
    queries = [
        QueryRecord(
            f"q{q}",
            f"q{q}",
            "",
            (
                list_document("a", [q % 3, None, *range(3)] * 3),
                list_document("b", [(q + 1) % 3, 0, None, 2]),
            ),
        )
        for q in range(4)
    ]
    lists_project(site, queries)
    for number in range(4):
        site.client("ada").judge(site.task("books", "ada", number), lambda a, b: 1)
    notes = site.client("lena").get(f"{API}/measure").json()["notes"]
    assert "some lists have 15 positions; only the first 10 count in the measure." in notes
    assert any("of the positions have no grade and count as the worst grade" in n for n in notes)


def test_one_query_has_no_intervals(site: Site) -> None:
    project = lists_project(site, graded_queries(1, lists=4))
    judge(site.client("ada"), site.task("books", "ada"), grades_in(site, project))
    page = site.client("lena").get("/p/books/measure")
    assert page.status_code == 200
    assert "so there are no intervals" in page.text
    assert "Not compared with DCG." in page.text


def test_a_measure_that_is_not_better_than_dcg_says_so_at_the_download(
    site: Site, tmp_path: Path
) -> None:
    """Random answers: the learned measure is not better than DCG."""
    lists_project(site, graded_queries(40))
    ada, coin = site.client("ada"), np.random.default_rng(0)
    for number in range(40):
        ada.judge(site.task("books", "ada", number), lambda a, b: coin.choice([-1, 1]))
    lena = site.client("lena")
    words = "shown to be better than DCG"
    page = lena.get("/p/books/measure").text
    assert "Not shown to be better than DCG." in page
    assert words in page or "is worse than DCG" in page
    comparison = lena.get(f"{API}/measure").json()["dcg_comparison"]
    assert comparison["verdict"] == "not better"
    file = lena.get(f"{API}/export/measure.json")
    assert file.json()["about"]["dcg_comparison"] == comparison
    assert comparison["text"][1:] in file.headers["x-firstpage-note"]
    assert "There are too few judgments to tell whether more help." in page
    assert lena.get(f"{API}/measure").json()["advice"]["verdict"] == "too few"


def test_the_page_shows_the_measure_and_the_advice(site: Site) -> None:
    judged_project(site, 30, list_selection="diverse")
    lena = site.client("lena")
    page = lena.get("/p/books/measure").text
    for words in (
        "Gains of grades: 0: 0.00",
        "Discounts of positions: 1: 1.00",
        "held-out",
        "DCG, gains",
        "measure.json",
        "preferences.jsonl",
        "Asked next: the pair whose predicted preference is most uncertain",
    ):
        assert words in page, words
    assert "There are too few judgments to tell whether more help." in page
    assert "/p/books/measure" in lena.get("/p/books/dashboard").text
    report = lena.get(f"{API}/measure").json()
    assert report["choice"] == {
        "configured_method": "diverse",
        "method": "diverse",
        "fallback_reason": None,
    }
    assert report["advice"]["text"]
    assert 0 < report["rank_one_fraction"] <= 1
