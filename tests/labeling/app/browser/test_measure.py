"""Two lists by keyboard, with the next pair chosen by the measure; and the page Measure."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from firstpage.data.preferences.utility import read_utility
from firstpage.labeling.app.store import tasks
from tests.labeling.app.browser.actions import answer, ready, submit
from tests.labeling.app.browser.axe import expect_accessible
from tests.labeling.app.browser.live import Live
from tests.labeling.app.graded_lists import (
    graded_queries,
    grades_in,
    judge_first,
    lists_project,
    outcome,
)

KEYS = {2: "1", 1: "2", 0: "3", -1: "4", -2: "5"}


def key_for(page: Page, grades: dict[tuple[str, str], tuple[int | None, ...]]) -> str:
    """Return the key that a simulated assessor presses for the open question."""
    text = page.locator("#query").inner_text()
    sides = [
        page.locator(f"#{side}-title").inner_text().removeprefix("List ")
        for side in ("left", "right")
    ]
    return KEYS[outcome(*(grades[text, key] for key in sides))]


def judge_by_keyboard(page: Page, grades: dict[tuple[str, str], tuple[int | None, ...]]) -> None:
    """Judge one query after the other with number keys."""
    while not page.url.endswith("/done"):
        ready(page)
        answer(page, key_for(page, grades))
    expect(page.get_by_role("heading", name="This query is done")).to_be_visible()


def test_lists_with_active_choice_by_keyboard(live: Live) -> None:
    """After 18 judgments of another person: first in working order, then by the chosen method."""
    project = lists_project(live, graded_queries(24), ("ada", "bo"), list_selection="diverse")
    grades = grades_in(live, project)
    judge_first(live, project, "bo", 18)
    judge_first(live, project, "ada", 16)
    page = live.open("/p/books")
    page.get_by_role("link", name="Start", exact=True).focus()
    page.keyboard.press("Enter")
    ready(page)
    inside = (
        page.content()
        + page.frame_locator("#left iframe:not(.hidden)").locator("body").inner_text()
    )
    assert "grade" not in inside
    judge_by_keyboard(page, grades)
    assert "You have no more open queries" in page.inner_text("main")
    with live.store.read() as tx:
        own_tasks = tasks.of_person(tx, project, live.person("ada").id)
    assert {(t.state, t.judgments) for t in own_tasks} == {("done", 1)}
    order = sorted((t for t in own_tasks[16:]), key=lambda t: t.started or "")
    assert [t.id for t in order] != [t.id for t in own_tasks[16:]], "they are in working order"


def test_the_measure_page(live: Live, tmp_path: Path) -> None:
    project = lists_project(live, graded_queries(30), list_selection="committee")
    page = live.open("/p/books/dashboard", login="lena")
    page.get_by_role("navigation", name="Project").get_by_role("link", name="Measure").click()
    expect(page.get_by_text("No measure yet: nobody has compared lists yet.")).to_be_visible()
    expect_accessible(page)
    judge_first(live, project, "ada", 25)
    page.reload()
    expect(page.get_by_role("img", name="Gains of grades")).to_be_visible()
    expect(page.get_by_role("img", name="Discounts of positions")).to_be_visible()
    expect(page.get_by_role("row", name="learned")).to_contain_text("%")
    expect(page.locator("#dcg-comparison")).to_contain_text("Not shown to be better than DCG.")
    expect(page.locator("svg .band")).to_have_count(2)
    expect(page.locator("svg .error")).to_have_count(9)
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1280, "height": 800})
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download measure.json").click()
    assert read_utility(coming.value.path()).grades == (0, 1, 2, 3)
    page.get_by_role("link", name="Change the method").click()
    page.get_by_label("Choice of the next lists").select_option("simple-margin")
    submit(page, "Save and continue")
    page.goto(f"{live.url}/p/books/measure")
    expect(
        page.get_by_text("Asked next: the pair with the smallest predicted difference")
    ).to_be_visible()


def test_graded_lists_are_imported_by_hand(live: Live, tmp_path: Path) -> None:
    live.project(queries=0, tool="lists", opened=False)
    rows = tmp_path / "lists.jsonl"
    rows.write_text('{"query": "q", "document": "a", "items": [{"id": "x", "title": "X"}]}\n')
    (tmp_path / "g.qrels").write_text("q 0 x 3\n")
    page = live.open("/p/books/setup/data", login="lena")
    page.get_by_label("Documents", exact=True).set_input_files(rows)
    page.get_by_label("Grades", exact=True).set_input_files(tmp_path / "g.qrels")
    expect(page.locator("#preview")).to_contain_text("1 grade.")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="1 query, 1 documents")).to_be_visible()
