"""A whole result list is rated on one page."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.labeling.app.browser.axe import expect_accessible
from tests.labeling.app.browser.live import Live


def test_a_result_list_is_rated_on_one_page(live: Live) -> None:
    live.project(tool="grades", documents=5, queries=1, setting={"k": 2})
    task = live.task("books", "ada")
    page = live.open("/p/books")
    page.get_by_role("link", name="on one page").click()
    items = page.locator(".rate-list > li")
    expect(items).to_have_count(5)
    expect(page.locator("#rated")).to_have_text("0 of 5 graded")
    expect(page.get_by_role("button", name="Grade all others")).to_be_hidden()
    frame = items.nth(3).frame_locator("iframe")
    expect(frame.get_by_text("Body 3 of 0")).to_be_visible()
    expect(frame.get_by_role("heading")).to_have_count(0)  # the title is above the frame
    expect_accessible(page)
    for number, grade in ((3, "Perfect"), (0, "Good"), (3, "Fair")):  # the last one is a change
        items.nth(number).get_by_role("button", name=grade, exact=True).click()
        pressed = items.nth(number).locator("[aria-pressed=true]")
        expect(pressed).to_have_text(grade)
    expect(page.locator("#save-status")).to_have_text("Saved")
    page.reload()
    expect(page.locator("#rated")).to_have_text("2 of 5 graded")
    expect(items.nth(3).locator("[aria-pressed=true]")).to_have_text("Fair")
    page.get_by_role("button", name="Grade all others “Bad”").click()
    expect(page.locator("#rated")).to_have_text("5 of 5 graded")
    expect(page.locator("#save-status")).to_have_text("Saved")
    page.get_by_role("link", name="Finish").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    rows = live.client("ada").get(f"/api/v1/tasks/{task}/judgments").json()["judgments"]
    keys = [row["left"]["key"] for row in rows]
    assert dict(zip(keys, (row["outcome"] for row in rows), strict=True)) == {
        "d3": 1, "d0": 2, "d1": 0, "d2": 0, "d4": 0,
    }  # fmt: skip
    assert keys[:2] == ["d3", "d0"]
    assert all(row["active_ms"] > 0 for row in live.logged(task)[:2])


def test_a_conflict_stops_the_page(live: Live) -> None:
    """A grade from another window: nothing more is saved until the page is loaded again."""
    live.project(tool="grades", documents=3, queries=1, setting={"k": 2})
    task, ada = live.task("books", "ada"), live.client("ada")
    page = live.open(f"/tasks/{task}/list")
    assert ada.answer(ada.state(task), 3).is_success
    items = page.locator(".rate-list > li")
    items.nth(0).get_by_role("button", name="Perfect").click()
    expect(page.locator("#save-status")).to_contain_text("Not saved")
    expect(items.nth(0).locator("[aria-pressed=true]")).to_have_count(0)
    page.get_by_role("link", name="Reload the page to continue.").click()
    expect(page.locator("#rated")).to_have_text("1 of 3 graded")
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
