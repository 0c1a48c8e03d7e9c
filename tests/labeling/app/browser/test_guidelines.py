"""Guidance of a first-time assessor: the question, and guidelines before and beside it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from firstpage.labeling.app.store import projects
from tests.labeling.app.browser.actions import answer, ready
from tests.labeling.app.browser.axe import expect_accessible
from tests.labeling.app.browser.live import Live
from tests.labeling.app.browser.test_reading import LANDSCAPE, PHONE
from tests.labeling.app.site import jsonl

GUIDELINES = """# What counts as good

A good page **tells the temperature**; see [the handbook](https://handbook.example/tea).

- shops are bad
- recipes are good

| grade | means |
| --- | ---: |
| good | tells how |

<script>parent.broken = 1</script>
[not a link](javascript:alert(1)) ![far away](https://pictures.example/leaf.png)
"""


def project(live: Live, guidelines: str = GUIDELINES, **options: Any) -> int:
    project = live.project(documents=6, **{"queries": 1, **options})
    lead = live.person("lena")
    with live.store.write() as tx:
        projects.change(tx, project, {"guidelines": guidelines}, lead)
    return live.task("books", "ada")


def expect_rendered(page: Page, selector: str) -> None:
    """Check that Markdown is rendered as HTML in the style of the site, without scripts."""
    text = page.locator(selector)
    expect(text.get_by_role("heading", name="What counts as good")).to_be_visible()
    expect(text.locator("strong")).to_have_text("tells the temperature")
    expect(text.get_by_role("listitem")).to_have_count(2)
    expect(text.get_by_role("cell", name="tells how")).to_be_visible()
    link = text.get_by_role("link", name="the handbook")
    expect(link).to_have_attribute("href", "https://handbook.example/tea")
    expect(link).to_have_attribute("target", "_blank")
    expect(text.get_by_role("link", name="far away")).to_be_visible()
    expect(text).to_contain_text("<script>parent.broken = 1</script>")
    assert text.locator("script, img, [style], [href^=javascript]").count() == 0


@pytest.mark.parametrize("options", [{}, LANDSCAPE], ids=["desktop", "phone"])
def test_guidelines_come_before_the_first_judgment(live: Live, options: dict[str, Any]) -> None:
    task = project(live)
    page = live.open(f"/tasks/{task}", **options)
    guide = page.get_by_role("dialog", name="Guidelines")
    start = page.get_by_role("button", name="Start judging")
    sizes: list[Any] = [page.viewport_size]
    if options:
        sizes = [LANDSCAPE["viewport"], PHONE["viewport"]]
    for size in sizes:
        page.set_viewport_size(size)
        expect(guide).to_be_visible()
        expect_rendered(page, "#guide .prose")
        expect_accessible(page)
        expect(start).to_be_in_viewport()
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(200)
    assert live.logged(task) == [], "nothing is answered before"
    start.click()
    expect(guide).to_be_hidden()
    ready(page)
    answer(page, "ArrowLeft")
    (row,) = live.logged(task)
    assert row["event"]["outcome"] == 1
    page.reload()
    expect(page.locator("#announce")).to_contain_text("Question")
    expect(guide).to_be_hidden()


def test_guidelines_are_shown_beside_the_documents(live: Live) -> None:
    """One key shows them, keys still answer, and the same key or Escape hides them."""
    task = project(live)
    page = live.open(f"/tasks/{task}")
    ready(page)
    guide = page.locator("#guide")
    page.keyboard.press("g")
    expect(guide).to_be_visible()
    expect_rendered(page, "#guide .prose")
    panel, right = guide.bounding_box(), page.locator(".pane.right").bounding_box()
    assert panel is not None
    assert right is not None
    assert right["x"] + right["width"] <= panel["x"], "they cover no document"
    answer(page, "ArrowRight")
    expect(guide).to_be_visible()
    guide.locator(".prose").click()
    page.keyboard.press("ArrowRight")  # keys inside the text do not answer
    page.wait_for_timeout(200)
    assert len(live.logged(task)) == 1
    page.keyboard.press("Escape")
    expect(guide).to_be_hidden()
    page.get_by_role("button", name="Guidelines").click()
    expect(guide).to_be_visible()
    page.keyboard.press("g")
    expect(guide).to_be_hidden()


def test_guidelines_cover_the_documents_on_a_phone(live: Live) -> None:
    task = project(live)
    page = live.open(f"/tasks/{task}", **PHONE)
    ready(page)
    page.get_by_role("button", name="Guidelines").tap()
    expect(page.locator("#guide")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Close").tap()
    expect(page.locator("#guide")).to_be_hidden()
    assert live.logged(task) == []


def test_guidelines_page(live: Live) -> None:
    project(live)
    page = live.open("/p/books/guidelines")
    expect_rendered(page, ".prose")
    expect(page.locator("h1")).to_have_count(1)
    expect_accessible(page)


def test_the_question_is_above_the_documents(live: Live) -> None:
    page = live.watched(live.context("ada").new_page())
    for tool, question, general in (
        ("pairs", "Which document answers the query better?", "Choose the document that answers"),
        ("grades", "How well does this document answer the query?", "from “Bad” to “Perfect”"),
        ("lists", "Which list of results answers the query better?", "Choose the list"),
    ):
        live.project(tool, documents=6, queries=1, tool=tool)
        page.goto(f"{live.url}/tasks/{live.task(tool, 'ada')}")
        expect(page.locator("#guide")).to_contain_text(general)
        expect(page.locator("#guide")).to_contain_text(question)
        ready(page)
        heading = page.locator("#question")
        expect(heading).to_have_text(question)
        box, documents = heading.bounding_box(), page.locator("#main").bounding_box()
        assert box is not None
        assert documents is not None
        assert box["y"] + box["height"] <= documents["y"]
        assert question in page.locator("#announce").inner_text()


def test_practice_starts_with_the_guidelines(live: Live) -> None:
    """Practice stores no comments, so there is no button for them."""
    project(live)
    row = {"text": "cats", "left": "about cats", "right": "dogs", "outcome": "left", "explanation": "Cats."}  # fmt: skip
    lena = live.client("lena")
    lena.headers["Host"] = "127.0.0.1"
    response = lena.post(
        "/api/v1/projects/books/import", files={"training": ("t.jsonl", jsonl(row))}
    )
    assert response.status_code == 200, response.text
    page = live.open("/p/books/training")
    expect(page.locator("#guide")).to_be_visible()
    page.get_by_role("button", name="Start practice").click()
    ready(page)
    expect(page.get_by_role("button", name="Comment")).to_have_count(0)
    page.keyboard.press("c")
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("you passed the practice")).to_be_visible()
    page.get_by_role("link", name="Start", exact=True).click()
    expect(page.locator("#announce")).to_contain_text("Question")
    expect(page.locator("#guide")).to_be_hidden()
