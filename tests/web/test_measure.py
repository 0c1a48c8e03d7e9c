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
from firstpage.dcglearn.learn import DCGLearn
from firstpage.web.analysis.measure import (
    ListJudgment,
    ProjectMeasure,
    learn,
    learned_measure,
    list_judgments,
)
from firstpage.web.store import projects
from firstpage.web.store.texts import QueryRecord
from tests.web.compare import (
    GAINS,
    graded_queries,
    grades_in,
    judge,
    list_document,
    lists_project,
    outcome,
)
from tests.web.site import Site, jsonl, log_rows

API = "/api/v1/projects/books"


def stand(site: Site, slug: str = "books") -> list[ListJudgment]:
    with site.store.read() as tx:
        project = projects.by_slug(tx, slug)
        assert project is not None
        return list(list_judgments(tx, project))


def now(site: Site, slug: str = "books") -> ProjectMeasure:
    with site.store.read() as tx:
        project = projects.by_slug(tx, slug)
        assert project is not None
        return learned_measure(tx, project)


def judged(site: Site, count: int = 40, assessors: tuple[str, ...] = ("ada",), **more: Any) -> None:
    project = lists_project(site, graded_queries(count), assessors, **more)
    grades = grades_in(site, project)
    for login in assessors:
        client = site.client(login)
        for number in range(count):
            judge(client, site.task("books", login, number), grades)


@pytest.mark.slow
def test_current_list_judgments(both: Site) -> None:
    """Undone and skipped judgments are out, revised ones as revised; of all assessors."""
    lists_project(both, graded_queries(3), ("ada", "bo"))
    ada, bo = both.client("ada"), both.client("bo")
    first, second, third = (both.task("books", "ada", n) for n in range(3))
    ada.answer(ada.state(first), 2)
    ada.post(f"/api/v1/tasks/{first}/revise", json={"seq": 1, "key": "r", "at": 0, "outcome": -1})
    ada.answer(ada.state(second), 1)
    ada.post(f"/api/v1/tasks/{second}/undo", json={"seq": 1, "key": "u"})
    ada.answer(ada.state(third), 0, skipped=True)
    bo.answer(bo.state(both.task("books", "bo", 1)), -2)
    found = stand(both)
    assert [(c.query, c.outcome, c.assessor) for c in found] == [
        ("q0", -1, "ada"),
        ("q1", -2, "bo"),
    ]
    assert all(len(c.left) == len(c.right) == 5 for c in found)


@pytest.mark.slow
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
    assert [(c.left, c.right) for c in stand(site)] == shown
    assert len({s == tuple(sorted(s)) for s in shown}) == 2, "sides were never swapped"


@pytest.mark.slow
def test_hidden_repeats_and_gold_questions_are_excluded(site: Site) -> None:
    lists_project(site, graded_queries(1, lists=5), setting={"repeats": 0.5, "golds": 0.5})
    client, task = site.client("ada"), site.task("books", "ada")
    known = jsonl({"query": "q0", "left": "l0", "right": "l1", "outcome": 2})
    site.client("lena").post(f"{API}/import", files={"golds": ("g.jsonl", known)})
    client.judge(task, lambda a, b: 1)
    with site.store.read() as tx:
        kinds = [row["event"]["kind"] for row in log_rows(tx, task)]
    assert {"repeat", "gold"} < set(kinds)
    assert len(stand(site)) == kinds.count("judgment") == 10


@pytest.mark.slow
def test_the_measure_is_learned(site: Site) -> None:
    judged(site, 40)
    found = now(site)
    assert found.why is None
    assert found.judgments == 40
    assert found.utility is not None
    assert np.abs(found.utility.gains - GAINS).max() < 0.2
    assert found.comparison is not None
    assert 0.75 < found.comparison.learned <= 1
    assert 0.75 < found.comparison.dcg <= 1


@pytest.mark.slow
def test_the_measure_is_cached_until_the_log_changes(both: Site) -> None:
    judged(both, 30)
    first = now(both)
    assert now(both) is first
    ada, task = both.client("ada"), both.task("books", "ada", 3)
    ada.post(f"/api/v1/tasks/{task}/undo", json={"seq": 1, "key": "u"})
    second = now(both)
    assert (second.judgments, now(both) is second) == (29, True)
    ada.answer(ada.state(task), 1)
    assert now(both).judgments == 30
    qrels = b"".join(b"q0 0 l0-%d 3\n" % i for i in range(5))
    both.client("lena").post(f"{API}/import", files={"qrels": ("g.qrels", qrels)})
    assert stand(both)[0].left == (3,) * 5 or stand(both)[0].right == (3,) * 5
    third = now(both)
    assert third is not second
    assert now(both) is third


@pytest.mark.slow
def test_two_servers_on_one_database_learn_the_same(both: Site) -> None:
    judged(both, 25)
    other = Site(both.store, both.clock)
    ada = other.client("ada")
    state = ada.state(other.task("books", "ada", 0))
    ada.post(f"/api/v1/tasks/{state['task']}/undo", json={"seq": 1, "key": "u"})
    mine, theirs = (site.client("lena").get(f"{API}/measure").json() for site in (both, other))
    assert mine == theirs
    assert mine["judgments"] == 24


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queries", "answer", "why"),
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
    site: Site, queries: list[QueryRecord], answer: int | None, why: str
) -> None:
    lists_project(site, queries)
    if answer is not None:
        client = site.client("ada")
        client.answer(client.state(site.task("books", "ada")), answer)
    lena = site.client("lena")
    found = lena.get(f"{API}/measure").json()
    assert why in found["why"]
    assert found["measure"] is None
    assert why in lena.get("/p/books/measure").text
    refused = lena.get(f"{API}/export/measure.json")
    assert refused.status_code == 400
    assert why in refused.json()["detail"]
    assert lena.get(f"{API}/export/preferences.jsonl").status_code == 200


@pytest.mark.slow
def test_other_tools_have_no_measure(site: Site) -> None:
    site.project()
    lena = site.client("lena")
    assert "does not compare lists" in lena.get(f"{API}/measure").json()["why"]
    assert lena.get("/p/books/measure").status_code == 200
    assert "/p/books/measure" not in lena.get("/p/books/dashboard").text
    assert "measure.json" not in lena.get("/p/books/dashboard").text
    assert lena.get(f"{API}/export/preferences.jsonl").text == ""


def test_a_refit_of_a_thousand_answers() -> None:
    rng = np.random.default_rng(0)
    found, lists = [], {}
    for number in range(1000):
        left, right = (tuple(rng.integers(0, 4, 10).tolist()) for _ in range(2))
        said = outcome(left, right) if rng.random() < 0.85 else int(rng.integers(-2, 3))
        found.append(ListJudgment(f"q{number}", left, right, said, "ada"))
        lists[number] = {"a": left, "b": right}
    made = learn(found, lists)
    assert made.pairs > 950
    assert made.learner is not None
    assert made.learner.validation_curve_ is not None, "C was not chosen by cross-validation"
    assert made.comparison is not None
    assert made.comparison.verdict == "better"
    assert made.advice is not None
    assert made.advice.verdict in ("stop", "unclear")


@pytest.mark.slow
def test_exports_read_back(site: Site, tmp_path: Path) -> None:
    """The file is a measure; the preferences teach the same again."""
    judged(site, 30, ("ada", "bo"))
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
    again = DCGLearn(5, threads=1, decreasing=True).fit(
        read_preferences(tmp_path / "preferences.jsonl")
    )
    assert np.allclose(again.gains_, utility.gains)


@pytest.mark.slow
def test_unjudged_items_are_null(site: Site) -> None:
    lists = (list_document("a", [3, None, 1]), list_document("b", [None, 0]))
    lists_project(site, [QueryRecord("q", "q", "", lists)])
    client = site.client("ada")
    client.answer(client.state(site.task("books", "ada")), 1)
    (row,) = site.client("lena").get(f"{API}/export/preferences.jsonl").text.splitlines()
    found = json.loads(row)
    assert sorted([found["left"], found["right"]], key=len) == [[None, 0], [3, None, 1]]


@pytest.mark.slow
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

    call("setup", tmp_path / "p", "--documents", tmp_path / "d.jsonl", "--tool", "lists",
         "--qrels", tmp_path / "g.qrels", "--choose", "diverse", "--assessor", "ada",
         "--name", "books")  # fmt: skip
    from firstpage.web.store.connect import Store
    from tests.web.site import Clock

    site = Site(Store(tmp_path / "p", Clock()), Clock())
    with site.store.read() as tx:
        project = projects.by_slug(tx, "books")
    assert project is not None
    assert project.options.choose == "diverse"
    words = ["label", "setup", str(tmp_path / "other"), "--choose", "diverse"]
    assert "goes with --tool lists" in CliRunner().invoke(app, words).output
    grades = grades_in(site, project)
    assert grades["q0", "l0"][0] == 2
    for number in range(25):
        judge(site.client("ada"), site.task("books", "ada", number), grades)
    site.store.close()
    said = call("export", tmp_path / "p", "--what", "measure", "-o", tmp_path / "m.json")
    assert "firstpage: note: On 25 held-out preferences this measure is not shown to be" in said
    assert read_utility(tmp_path / "m.json").about["pairs"] == 25
    call("export", tmp_path / "p", "--what", "preferences", "-o", tmp_path / "p.jsonl")
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 25


@pytest.mark.slow
def test_intervals(site: Site) -> None:
    """The page draws them; a program asks for them."""
    judged(site, 30)
    lena = site.client("lena")
    assert "intervals" not in lena.get(f"{API}/measure").json()
    found = lena.get(f"{API}/measure?intervals=true").json()["intervals"]
    assert np.array(found["gains"]).shape == (4, 2)
    assert np.array(found["discounts"]).max() <= 1 + 1e-9, "on an axis that can be read"
    page = lena.get("/p/books/measure").text
    assert page.count('class="band') == 2
    assert "The band is the 95 % interval" in page


def test_ignored_ranks_are_reported(site: Site) -> None:
    queries = [
        QueryRecord(f"q{q}", f"q{q}", "", (
            list_document("a", [q % 3, None, *range(3)] * 3),
            list_document("b", [(q + 1) % 3, 0, None, 2]),
        ))
        for q in range(4)
    ]  # fmt: skip
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


@pytest.mark.slow
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
    found = lena.get(f"{API}/measure").json()["against_dcg"]
    assert found["verdict"] == "not better"
    file = lena.get(f"{API}/export/measure.json")
    assert file.json()["about"]["against_dcg"] == found
    assert found["text"][1:] in file.headers["x-firstpage-note"]
    assert "There are too few judgments to tell whether more help." in page
    assert lena.get(f"{API}/measure").json()["advice"]["verdict"] == "too few"


@pytest.mark.slow
def test_the_page_shows_the_measure_and_the_advice(site: Site) -> None:
    judged(site, 30, choose="diverse")
    lena = site.client("lena")
    page = lena.get("/p/books/measure").text
    for words in (
        "Gains of grades: 0: 0.00", "Discounts of positions: 1: 1.00", "held-out", "DCG, gains",
        "measure.json", "preferences.jsonl", "Asked next: the pair whose predicted preference is most uncertain",
    ):  # fmt: skip
        assert words in page, words
    assert "There are too few judgments to tell whether more help." in page
    assert "/p/books/measure" in lena.get("/p/books/dashboard").text
    told = lena.get(f"{API}/measure").json()
    assert told["choice"] == {"wish": "diverse", "by": "diverse", "why": None}
    assert told["advice"]["text"]
    assert 0 < told["rank_one_share"] <= 1
