"""Choice of the next pair of lists: the most informative one, and no pair twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from firstpage.data.preferences.preferences import Preferences
from firstpage.labeling.app.analysis.measure import learned_measure
from firstpage.labeling.app.machines import judge as judged_by
from firstpage.labeling.app.store import tasks
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.texts import QueryRecord
from firstpage.labeling.assessors import Function
from tests.labeling.app.graded_lists import (
    graded_queries,
    grades_in,
    judge,
    judge_first,
    list_document,
    lists_project,
    outcome,
)
from tests.labeling.app.site import Client, Site

API = "/api/v1/projects/books"
ACTIVE = ("simple-margin", "diverse", "committee")


def next_choice(client: Client) -> Any:
    return client.get(f"{API}/next").json()


def started_project(
    site: Site, method: str, count: int = 30, first: int = 22, **options: Any
) -> tuple[Project, Any]:
    """Create a project in which ada has judged the first queries; return it and its grades."""
    project = lists_project(site, graded_queries(count, **options), list_selection=method)
    judge_first(site, project, "ada", first)
    return project, grades_in(site, project)


def predicted_margins(site: Site, project: Project, pairs: list[tuple[Any, Any]]) -> list[float]:
    """Return the margin of each pair that the current measure predicts."""
    with site.store.read() as tx:
        learned = learned_measure(tx, project)
    assert learned.learner is not None
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    pool = Preferences.from_grades(left, right, grades=learned.learner.preferences_.grades)
    return [abs(float(z)) for z in learned.learner.decision_function(pool)]


def test_the_least_certain_pair_comes_first(site: Site) -> None:
    project, grades = started_project(site, "simple-margin")
    ada = site.client("ada")
    for _ in range(3):
        with site.store.read() as tx:
            own_tasks = tasks.of_person(tx, project, site.person("ada").id)
        waiting = [t for t in own_tasks if t.state == "open"]
        apart = predicted_margins(
            site,
            project,
            [(grades[t.query_text, "l0"], grades[t.query_text, "l1"]) for t in waiting],
        )
        expected = waiting[int(np.argmin(apart))].id
        assert next_choice(ada) == {"task": expected, "method": "simple-margin"}
        assert ada.get(f"{API}/work").json()["next"] == expected
        judge(ada, expected, grades)


@pytest.mark.parametrize("method", ACTIVE)
def test_every_query_is_judged_once_with_every_method(site: Site, method: str) -> None:
    """Two people judge their own tasks in turn until none is open."""
    project = lists_project(site, graded_queries(13), ("ada", "bo"), list_selection=method)
    grades = grades_in(site, project)
    done: dict[str, list[int]] = {"ada": [], "bo": []}
    methods = set()
    for _ in range(13):
        for login, before in done.items():
            client = site.client(login)
            choice = next_choice(client)
            assert choice["task"] not in before
            methods.add(choice["method"])
            judge(
                client, choice["task"], grades
            )  # refused unless it is an open task of this person
            before.append(choice["task"])
    assert methods == {"order", method}
    assert not set(done["ada"]) & set(done["bo"])
    assert [next_choice(site.client(login))["task"] for login in done] == [None, None]


@pytest.mark.parametrize("method", ACTIVE)
def test_an_answer_changes_the_next_choice(site: Site, method: str) -> None:
    """Two servers with the same log choose the same; another answer can change the choice."""
    _, grades = started_project(site, method)
    other = Site(site.store, site.clock)
    for number in range(3):
        first_choice, second_choice = (next_choice(s.client("ada")) for s in (site, other))
        assert first_choice == second_choice
        assert first_choice["method"] == method
        judge((site, other)[number % 2].client("ada"), first_choice["task"], grades)


def test_an_undone_query_comes_first(site: Site) -> None:
    started_project(site, "simple-margin")
    ada, task = site.client("ada"), site.task("books", "ada", 4)
    ada.post(f"/api/v1/tasks/{task}/undo", json={"seq": 1, "key": "u"})
    assert next_choice(ada) == {"task": task, "method": "order"}
    ada.answer(ada.state(task), 1)
    assert next_choice(ada)["task"] != task
    assert next_choice(ada)["method"] == "simple-margin"


@pytest.mark.parametrize("method", ACTIVE)
def test_too_few_judgments_are_reported_to_leads_only(site: Site, method: str) -> None:
    started_project(site, method, count=21, first=19)
    ada, lena = site.client("ada"), site.client("lena")
    assert next_choice(ada) == {"task": site.task("books", "ada", 19), "method": "order"}
    choice = lena.get(f"{API}/measure").json()["choice"]
    assert choice == {
        "configured_method": method,
        "method": "order",
        "fallback_reason": "there are 19 informative judgments; choosing starts at 20.",
    }
    page = lena.get("/p/books/measure").text
    assert f"The chosen method, {method}, is not used: there are 19" in page


def test_without_grades_queries_come_in_working_order(site: Site) -> None:
    lists = (list_document("a", [None]), list_document("b", [None]))
    queries = [QueryRecord(f"q{n}", f"query {n}", "", lists) for n in range(22)]
    lists_project(site, queries, list_selection="diverse")
    ada = site.client("ada")
    for number in range(21):
        assert next_choice(ada)["task"] == site.task("books", "ada", number)
        ada.answer(ada.state(site.task("books", "ada", number)), 1)
    assert (
        "has a grade"
        in site.client("lena").get(f"{API}/measure").json()["choice"]["fallback_reason"]
    )


def test_uninformative_pairs_come_in_working_order(site: Site) -> None:
    alike = (list_document("l0", [1, 2]), list_document("l1", [1, 2]))
    queries = graded_queries(22) + [QueryRecord(f"a{n}", f"alike {n}", "", alike) for n in range(2)]
    project = lists_project(site, queries, list_selection="diverse")
    judge_first(site, project, "ada", 22)
    assert next_choice(site.client("ada")) == {
        "task": site.task("books", "ada", 22),
        "method": "order",
    }


def test_within_a_query_the_pairs_are_chosen_too(site: Site) -> None:
    """With several lists, the open pair with the least certain prediction is next."""
    project = lists_project(site, graded_queries(5, lists=4), list_selection="simple-margin")
    grades, ada = grades_in(site, project), site.client("ada")
    judge_first(site, project, "ada", 4)
    text, task = "query 4", site.task("books", "ada", 4)
    state, left = ada.state(task), set(combinations(("l0", "l1", "l2", "l3"), 2))
    while state["question"] is not None:
        pairs = sorted(left)
        apart = predicted_margins(
            site, project, [(grades[text, a], grades[text, b]) for a, b in pairs]
        )
        keys = tuple(state["question"][side]["key"] for side in ("left", "right"))
        shown = tuple(sorted(keys))
        assert shown in left
        assert apart[pairs.index(shown)] == pytest.approx(min(apart))
        left.remove(shown)
        state = ada.answer(state, outcome(grades[text, keys[0]], grades[text, keys[1]])).json()
    assert not left
    assert state["done"]


def test_an_answer_to_another_open_pair_is_no_conflict(site: Site) -> None:
    """A server accepts the pair that another server showed, even if it would show another pair."""
    project = lists_project(
        site, graded_queries(30, lists=3), ("ada", "bo"), list_selection="simple-margin"
    )
    ada = site.client("ada")
    judge_first(site, project, "ada", 8)
    task = site.task("books", "ada", 8)
    shown = ada.state(task)
    judge_first(site, project, "bo", 12)
    other = Site(site.store, site.clock)
    reply = other.client("ada").answer(shown, 1)
    assert reply.status_code == 200
    repeated = ada.answer({**shown, "seq": 1}, 1)
    assert repeated.status_code == 409, "an answered pair is not open"
    state = ada.state(task)
    pairs = {
        frozenset(s["question"][side]["key"] for side in ("left", "right")) for s in (shown, state)
    }
    assert len(pairs) == 2


def test_an_unknown_choice_is_refused(site: Site) -> None:
    lists_project(site, [])
    lena = site.client("lena")
    refused = lena.patch(API, json={"options": {"list_selection": "best"}})
    assert refused.status_code == 400
    assert "order, simple-margin, diverse, committee" in refused.json()["detail"]
    assert lena.patch(API, json={"options": {"list_selection": "committee"}}).status_code == 200


def test_closed_projects_and_untrained_people_have_no_next_task(site: Site) -> None:
    lists_project(site, graded_queries(2))
    site.client("lena").post(f"{API}/close")
    assert next_choice(site.client("ada"))["task"] is None


def test_the_route_reports_the_reason_to_leads(site: Site) -> None:
    lists_project(site, graded_queries(2), ("lena",), list_selection="diverse")
    choice = next_choice(site.client("lena"))
    assert choice["fallback_reason"] == "nobody has compared lists yet."


def test_programs_follow_the_choice(site: Site) -> None:
    project, _ = started_project(site, "simple-margin", count=26)
    expected = next_choice(site.client("ada"))["task"]
    query_keys: list[str] = []

    def left_is_better(query: Any, left: Any, right: Any) -> str:
        query_keys.append(query.key)
        return "left"

    done = judged_by(site.store, project, site.person("ada"), Function(left_is_better))
    assert (done.queries, len(set(query_keys))) == (4, 4)
    with site.store.read() as tx:
        first = tasks.get(tx, expected)
    assert first is not None
    assert query_keys[0] == first.query_key


def test_concurrent_answers(db_site: Site) -> None:
    """Four people on two servers answer concurrently: every pair is judged once, none is refused."""
    people = ("ada", "bo", "cy", "di")
    project = lists_project(db_site, graded_queries(3, lists=3), people, list_selection="committee")
    grades = grades_in(db_site, project)
    other = Site(db_site.store, db_site.clock)
    clients = {login: (db_site, other)[n % 2].client(login) for n, login in enumerate(people)}

    def work(login: str) -> int:
        count = 0
        while (task := next_choice(clients[login])["task"]) is not None:
            count += len(judge(clients[login], task, grades)["query"]) > 0
        return count

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, people)) == [3] * 4
    with db_site.store.read() as tx:
        rows = tasks.of_project(tx, project.id)
        assert learned_measure(tx, project).judgments == 4 * 3 * 3
    assert {(t.state, t.judgments) for t in rows} == {("done", 3)}


def test_tasks_with_other_tools_keep_their_position(site: Site) -> None:
    """In a study with several tools, lists are chosen only when a task with lists is due."""
    project, _ = started_project(site, "simple-margin", count=26)
    ada = site.person("ada")
    with site.store.write() as tx:
        open_tasks = [t for t in tasks.of_person(tx, project, ada.id) if t.state == "open"]
        early = tasks.add(tx, project, open_tasks[0].query, ada.id, "pairs", 0, 0)
    assert next_choice(site.client("ada")) == {"task": early, "method": "order"}
