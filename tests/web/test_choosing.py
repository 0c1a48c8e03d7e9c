"""Choice of the next pair of lists: the most informative one, and never one twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from firstpage.data.preferences.preferences import Preferences
from firstpage.labeling.assessors import Function
from firstpage.web.analysis.measure import learned_measure
from firstpage.web.machines import judge as judged_by
from firstpage.web.store import tasks
from firstpage.web.store.projects import Project
from firstpage.web.store.texts import QueryRecord
from tests.web.compare import (
    graded_queries,
    grades_in,
    judge,
    list_document,
    lists_project,
    outcome,
)
from tests.web.site import Client, Site

API = "/api/v1/projects/books"
ACTIVE = ("simple-margin", "diverse", "committee")


def follow(client: Client) -> Any:
    return client.get(f"{API}/next").json()


def begun(
    site: Site, choose: str, count: int = 30, first: int = 22, **more: Any
) -> tuple[Project, Any]:
    """Ada has judged the first queries; enough to choose by."""
    project = lists_project(site, graded_queries(count, **more), choose=choose)
    grades = grades_in(site, project)
    client = site.client("ada")
    for number in range(first):
        judge(client, site.task("books", "ada", number), grades)
    return project, grades


def unsure(site: Site, project: Project, pairs: list[tuple[Any, Any]]) -> list[float]:
    """How far apart the measure by now sees each pair."""
    with site.store.read() as tx:
        found = learned_measure(tx, project)
    assert found.learner is not None
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    pool = Preferences.from_grades(left, right, grades=found.learner.preferences_.grades)
    return [abs(float(z)) for z in found.learner.decision_function(pool)]


@pytest.mark.slow
def test_the_least_certain_pair_comes_first(site: Site) -> None:
    project, grades = begun(site, "simple-margin")
    ada = site.client("ada")
    for _ in range(3):
        with site.store.read() as tx:
            mine = tasks.of_person(tx, project, site.person("ada").id)
        waiting = [t for t in mine if t.state == "open"]
        apart = unsure(
            site,
            project,
            [(grades[t.query_text, "l0"], grades[t.query_text, "l1"]) for t in waiting],
        )
        want = waiting[int(np.argmin(apart))].id
        assert follow(ada) == {"task": want, "by": "simple-margin"}
        assert ada.get(f"{API}/work").json()["next"] == want
        judge(ada, want, grades)


@pytest.mark.slow
@pytest.mark.parametrize("choose", ACTIVE)
def test_every_query_is_judged_once_with_every_method(site: Site, choose: str) -> None:
    """Two people, each with their own tasks; in turn, until nothing is open."""
    project = lists_project(site, graded_queries(13), ("ada", "bo"), choose=choose)
    grades = grades_in(site, project)
    done: dict[str, list[int]] = {"ada": [], "bo": []}
    ways = set()
    for _ in range(13):
        for login, before in done.items():
            client = site.client(login)
            found = follow(client)
            assert found["task"] not in before
            ways.add(found["by"])
            judge(client, found["task"], grades)  # refused unless it is theirs and open
            before.append(found["task"])
    assert ways == {"order", choose}
    assert not set(done["ada"]) & set(done["bo"])
    assert [follow(site.client(login))["task"] for login in done] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("choose", ACTIVE)
def test_an_answer_changes_the_next_choice(site: Site, choose: str) -> None:
    """The same two servers after the same log choose the same; another answer may change it."""
    _, grades = begun(site, choose)
    other = Site(site.store, site.clock)
    for number in range(3):
        one, two = (follow(s.client("ada")) for s in (site, other))
        assert one == two
        assert one["by"] == choose
        judge((site, other)[number % 2].client("ada"), one["task"], grades)


@pytest.mark.slow
def test_an_undone_query_comes_first(site: Site) -> None:
    begun(site, "simple-margin")
    ada, task = site.client("ada"), site.task("books", "ada", 4)
    ada.post(f"/api/v1/tasks/{task}/undo", json={"seq": 1, "key": "u"})
    assert follow(ada) == {"task": task, "by": "order"}
    ada.answer(ada.state(task), 1)
    assert follow(ada)["task"] != task
    assert follow(ada)["by"] == "simple-margin"


@pytest.mark.slow
@pytest.mark.parametrize("choose", ACTIVE)
def test_too_few_judgments_are_reported_to_leads_only(site: Site, choose: str) -> None:
    begun(site, choose, count=21, first=19)
    ada, lena = site.client("ada"), site.client("lena")
    assert follow(ada) == {"task": site.task("books", "ada", 19), "by": "order"}
    told = lena.get(f"{API}/measure").json()["choice"]
    assert told == {
        "wish": choose, "by": "order",
        "why": "there are 19 informative judgments; choosing starts at 20.",
    }  # fmt: skip
    page = lena.get("/p/books/measure").text
    assert f"The chosen method, {choose}, is not used: there are 19" in page


@pytest.mark.slow
def test_without_grades_queries_come_in_working_order(site: Site) -> None:
    lists = (list_document("a", [None]), list_document("b", [None]))
    queries = [QueryRecord(f"q{n}", f"query {n}", "", lists) for n in range(22)]
    lists_project(site, queries, choose="diverse")
    ada = site.client("ada")
    for number in range(21):
        assert follow(ada)["task"] == site.task("books", "ada", number)
        ada.answer(ada.state(site.task("books", "ada", number)), 1)
    assert "has a grade" in site.client("lena").get(f"{API}/measure").json()["choice"]["why"]


@pytest.mark.slow
def test_uninformative_pairs_come_in_working_order(site: Site) -> None:
    alike = (list_document("l0", [1, 2]), list_document("l1", [1, 2]))
    queries = graded_queries(22) + [QueryRecord(f"a{n}", f"alike {n}", "", alike) for n in range(2)]
    project = lists_project(site, queries, choose="diverse")
    grades, ada = grades_in(site, project), site.client("ada")
    for number in range(22):
        judge(ada, site.task("books", "ada", number), grades)
    assert follow(ada) == {"task": site.task("books", "ada", 22), "by": "order"}


@pytest.mark.slow
def test_within_a_query_the_pairs_are_chosen_too(site: Site) -> None:
    """Several lists: the open pair that is least sure, by what was just answered."""
    project = lists_project(site, graded_queries(5, lists=4), choose="simple-margin")
    grades, ada = grades_in(site, project), site.client("ada")
    for number in range(4):
        judge(ada, site.task("books", "ada", number), grades)
    text, task = "query 4", site.task("books", "ada", 4)
    state, left = ada.state(task), set(combinations(("l0", "l1", "l2", "l3"), 2))
    while state["question"] is not None:
        pairs = sorted(left)
        apart = unsure(site, project, [(grades[text, a], grades[text, b]) for a, b in pairs])
        keys = tuple(state["question"][side]["key"] for side in ("left", "right"))
        shown = tuple(sorted(keys))
        assert shown in left
        assert apart[pairs.index(shown)] == pytest.approx(min(apart))
        left.remove(shown)
        state = ada.answer(state, outcome(grades[text, keys[0]], grades[text, keys[1]])).json()
    assert not left
    assert state["done"]


@pytest.mark.slow
def test_an_answer_to_another_open_pair_is_no_conflict(site: Site) -> None:
    """What one server shows, another takes, though it would show another pair by now."""
    project = lists_project(
        site, graded_queries(30, lists=3), ("ada", "bo"), choose="simple-margin"
    )
    grades = grades_in(site, project)
    ada, bo = site.client("ada"), site.client("bo")
    for number in range(8):
        judge(ada, site.task("books", "ada", number), grades)
    task = site.task("books", "ada", 8)
    seen = ada.state(task)
    for number in range(12):
        judge(bo, site.task("books", "bo", number), grades)
    other = Site(site.store, site.clock)
    reply = other.client("ada").answer(seen, 1)
    assert reply.status_code == 200
    twice = ada.answer({**seen, "seq": 1}, 1)
    assert twice.status_code == 409, "a pair that is answered is not open"
    state = ada.state(task)
    asked = {frozenset(s["question"][side]["key"] for side in ("left", "right"))
             for s in (seen, state)}  # fmt: skip
    assert len(asked) == 2


def test_an_unknown_choice_is_refused(site: Site) -> None:
    lists_project(site, [])
    lena = site.client("lena")
    refused = lena.patch(API, json={"options": {"choose": "best"}})
    assert refused.status_code == 400
    assert "order, simple-margin, diverse, committee" in refused.json()["detail"]
    assert lena.patch(API, json={"options": {"choose": "committee"}}).status_code == 200


def test_closed_projects_and_untrained_people_have_no_next_task(site: Site) -> None:
    lists_project(site, graded_queries(2))
    site.client("lena").post(f"{API}/close")
    assert follow(site.client("ada"))["task"] is None


def test_the_route_reports_the_reason_to_leads(site: Site) -> None:
    lists_project(site, graded_queries(2), ("lena",), choose="diverse")
    found = follow(site.client("lena"))
    assert found["why"] == "nobody has compared lists yet."


@pytest.mark.slow
def test_programs_follow_the_choice(site: Site) -> None:
    project, _ = begun(site, "simple-margin", count=26)
    want = follow(site.client("ada"))["task"]
    seen: list[str] = []

    def left_is_better(query: Any, left: Any, right: Any) -> str:
        seen.append(query.key)
        return "left"

    done = judged_by(site.store, project, site.person("ada"), Function(left_is_better))
    assert (done.queries, len(set(seen))) == (4, 4)
    with site.store.read() as tx:
        first = tasks.get(tx, want)
    assert first is not None
    assert seen[0] == first.query_key


@pytest.mark.slow
@pytest.mark.parametrize("choose", ["diverse", "committee"])
def test_concurrent_answers(both: Site, choose: str) -> None:
    """Four people on two servers, each as fast as they can: everything once, nothing refused."""
    people = ("ada", "bo", "cy", "di")
    project = lists_project(both, graded_queries(4, lists=3), people, choose=choose)
    grades = grades_in(both, project)
    other = Site(both.store, both.clock)
    clients = {login: (both, other)[n % 2].client(login) for n, login in enumerate(people)}

    def work(login: str) -> int:
        count = 0
        while (task := follow(clients[login])["task"]) is not None:
            count += len(judge(clients[login], task, grades)["query"]) > 0
        return count

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, people)) == [4] * 4
    with both.store.read() as tx:
        found = tasks.of_project(tx, project.id)
        assert learned_measure(tx, project).judgments == 4 * 4 * 3
    assert {(t.state, t.asked) for t in found} == {("done", 3)}


@pytest.mark.slow
def test_tasks_with_other_tools_keep_their_position(site: Site) -> None:
    """In a study with several tools, the choice is among the lists that are due."""
    project, _ = begun(site, "simple-margin", count=26)
    ada = site.person("ada")
    with site.store.write() as tx:
        mine = [t for t in tasks.of_person(tx, project, ada.id) if t.state == "open"]
        early = tasks.add(tx, project, mine[0].query, ada.id, "pairs", 0, 0)
    assert follow(site.client("ada")) == {"task": early, "by": "order"}
