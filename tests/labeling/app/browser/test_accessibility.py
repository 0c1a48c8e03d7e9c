"""Accessibility (axe-core) of every page in light and dark, on a phone, and right to left."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from firstpage.labeling.app.store import invitations
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.browser.actions import answer, ready
from tests.labeling.app.browser.axe import expect_accessible
from tests.labeling.app.browser.live import Live

PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 640},
    "is_mobile": True,
    "has_touch": True,
}
LEAD = [  # the others are in `MORE_PAGES` of `test_layout`, with more content
    "/",
    "/projects/new",
    "/account",
    *(
        f"/p/books/{name}"
        for name in (
            "agreement",
            "report",
            "audit",
            "comments",
            "setup",
            "setup/data",
            "setup/judging",
            "setup/people",
            "guidelines",
            "adjudicate",
            "machines",
            "queries",
        )
    ),
]


def judged_project(live: Live) -> None:
    """Create a project in which two people have finished a query, so that every table has rows."""
    live.project(
        assessors=("ada", "bo"),
        queries=1,
        documents=5,
        options={"ties": True},
        setting={"k": 2, "strategy": "heap-closure"},
    )
    live.client("ada").judge(live.task("books", "ada"), lambda a, b: 1 if a < b else -1)
    live.client("bo").judge(live.task("books", "bo"), lambda a, b: -1 if a < b else 1)


@pytest.mark.parametrize("half", [0, 1])
def test_pages_of_a_lead_are_accessible_and_fit_a_phone(live: Live, half: int) -> None:
    judged_project(live)
    page = live.open("/", login="lena")
    for path in [*LEAD, f"/p/books/people/{live.person('ada').id}"][half::2]:
        page.goto(live.url + path)
        expect(page.locator("h1")).to_have_count(1)
        expect_accessible(page)
        page.set_viewport_size({"width": 360, "height": 640})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        page.set_viewport_size({"width": 1280, "height": 800})


def test_pages_of_an_assessor_are_accessible(live: Live) -> None:
    judged_project(live)
    task = live.task("books", "ada")
    page = live.open("/p/books")
    expect_accessible(page)
    for path in (f"/tasks/{task}/done", f"/tasks/{task}/judgments", "/p/nowhere"):
        page.goto(live.url + path)
        expect_accessible(page)


def test_sign_in_pages_are_accessible(live: Live) -> None:
    project = live.project()
    lead, ada = live.person("lena"), live.person("ada")
    with live.store.write() as tx:
        links = [
            invitations.invite(tx, project, "assessor", lead),
            invitations.reset_link(tx, ada, lead),
        ]
    page = live.open("/login", login=None)
    expect_accessible(page)
    for link in links:
        page.goto(live.url + link.path)
        expect_accessible(page)


@pytest.mark.parametrize("tool", ["pairs", "grades", "lists"])
def test_judging_is_accessible(live: Live, tool: str) -> None:
    live.project(queries=1, tool=tool, options={"ties": True})
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    ready(page)
    expect_accessible(page)
    for key, name in (("?", "help"), ("s", "skip"), ("c", "comment"), ("p", "pause")):
        page.keyboard.press(key)
        expect(page.locator(f"dialog#{name}")).to_be_visible()
        if tool == "pairs":
            expect_accessible(page)
        page.keyboard.press("Escape")
        expect(page.locator(f"dialog#{name}")).to_be_hidden()


def test_judging_on_a_phone(live: Live) -> None:
    """Everything fits, documents are switched by swiping or tapping, and buttons can be reached."""
    live.project(queries=1, options={"ties": True})
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}", **PHONE)
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    left, right = page.locator(".pane.left"), page.locator(".pane.right")
    expect(left).to_be_in_viewport(ratio=0.9)
    page.get_by_role("button", name="Show right").tap()
    expect(right).to_be_in_viewport(ratio=0.9)
    for button in page.locator(".answers button:visible").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        assert box["y"] + box["height"] <= 640
    before = page.locator("#announce").inner_text()
    page.locator("[data-action=left]").tap()
    expect(page.locator("#announce")).not_to_have_text(before)
    assert [row["event"]["outcome"] for row in live.logged(task)] == [1]
    expect_accessible(page)


def test_right_to_left_documents(live: Live) -> None:
    """Each text has its own direction, and the left document stays left."""
    hebrew = "שלום עולם, תה ירוק הוא משקה"
    documents = (
        DocumentRecord("d0", "כותרת", body=hebrew),
        DocumentRecord("d1", "Title", body="plain words"),
        DocumentRecord("d2", "كتاب", body="كتاب عن الشاي"),
    )
    live.add_project("books", [QueryRecord("q0", hebrew, "", documents)], setting={"k": 2})
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    ready(page)
    direction = "e => getComputedStyle(e).direction"
    assert page.locator("#query").evaluate(direction) == "rtl"
    matches = set()
    while not page.url.endswith("/done"):
        ready(page)
        boxes = [page.locator(f".pane.{s}").bounding_box() for s in ("left", "right")]
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[0]["x"] < boxes[1]["x"]
        for side in ("left", "right"):
            text = page.frame_locator(f"#{side} iframe:not(.hidden)").locator("p").first
            is_latin = "plain" in text.inner_text()
            matches.add(text.evaluate(direction) == ("ltr" if is_latin else "rtl"))
        answer(page, "ArrowLeft")
    assert matches == {True}


def test_light_and_dark_theme(live: Live) -> None:
    live.project(queries=1)
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    ready(page)
    back = "() => getComputedStyle(document.body).backgroundColor"
    inside = "() => getComputedStyle(document.querySelector('#left iframe:not(.hidden)').contentDocument.documentElement).colorScheme"
    light = page.evaluate(back)
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(back) != light
    assert page.evaluate(inside) == "dark"
    page.reload()
    ready(page)
    assert page.evaluate(back) != light
    assert page.evaluate(inside) == "dark"
