"""The timer separates active, paused and away time, without a hidden cap."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.labeling.app.browser.actions import answer, ready
from tests.labeling.app.browser.live import Live

MINUTE = 60_000


def open_judging_page(live: Live) -> tuple[Page, int]:
    """Open a judging page whose clock the test controls."""
    live.project(queries=1, documents=6)
    task = live.task("books", "ada")
    page = live.watched(live.context("ada").new_page())
    page.clock.install()
    page.goto(f"{live.url}/tasks/{task}")
    ready(page)
    return page, task


def recorded_times(live: Live, task: int) -> dict[str, int]:
    (row,) = live.logged(task)
    return {kind: row[f"{kind}_ms"] for kind in ("active", "paused", "away")}


def is_about(ms: int, minutes: float) -> bool:
    """Return whether a time is right, up to the seconds that the test itself takes."""
    return minutes * MINUTE <= ms < minutes * MINUTE + 45_000


def test_pause_hides_the_documents_and_stops_the_timer(live: Live) -> None:
    page, task = open_judging_page(live)
    page.keyboard.press("p")
    expect(page.get_by_role("heading", name="Paused")).to_be_visible()
    expect(page.locator("#left iframe:not(.hidden)")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    page.clock.fast_forward(10 * MINUTE)
    page.keyboard.press("p")
    expect(page.locator("#left iframe:not(.hidden)")).to_be_visible()
    answer(page, "ArrowLeft")
    times = recorded_times(live, task)
    assert is_about(times["paused"], 10)
    assert is_about(times["active"], 0)
    assert times["away"] == 0


def test_a_pause_over_the_weekend_loses_no_answer(live: Live) -> None:
    page, task = open_judging_page(live)
    page.keyboard.press("p")
    expect(page.get_by_role("heading", name="Paused")).to_be_visible()
    page.clock.fast_forward(60 * 60 * MINUTE)
    page.keyboard.press("p")
    answer(page, "ArrowLeft")
    expect(page.locator("#status")).to_have_text("Saved")
    (row,) = live.logged(task)
    assert row["event"]["outcome"] == 1
    assert row["paused_ms"] == 24 * 60 * MINUTE
    assert row["event"]["adjusted_times"]["clipped_spans"] == 1


def test_long_reading_counts_as_active_time(live: Live) -> None:
    page, task = open_judging_page(live)
    page.clock.fast_forward(3 * MINUTE)
    expect(page.get_by_role("heading", name="Are you still working?")).to_be_visible()
    page.keyboard.press("Escape")  # there was no answer, so the question stays open
    expect(page.get_by_role("heading", name="Are you still working?")).to_be_visible()
    page.get_by_role("button", name="Yes, I was reading").click()
    answer(page, "ArrowLeft")
    times = recorded_times(live, task)
    assert is_about(times["active"], 3)
    assert times["away"] == 0


def test_absence_counts_from_the_last_input(live: Live) -> None:
    page, task = open_judging_page(live)
    page.clock.fast_forward(MINUTE)
    page.mouse.move(300, 300)
    page.mouse.move(310, 310)
    page.clock.fast_forward(5 * MINUTE)
    page.get_by_role("button", name="No, I was away").click()
    answer(page, "ArrowLeft")
    times = recorded_times(live, task)
    assert is_about(times["active"], 1)
    assert is_about(times["away"], 5)
    (row,) = live.logged(task)
    assert [s["kind"] for s in row["spans"]] == ["active", "away", "active"]


HIDE = (
    "h => { Object.defineProperty(document, 'hidden', { value: h, configurable: true });"
    " document.dispatchEvent(new Event('visibilitychange')) }"
)


def test_a_minute_in_another_tab_opens_the_away_dialog(live: Live) -> None:
    page, task = open_judging_page(live)
    page.evaluate(HIDE, True)
    page.clock.fast_forward(MINUTE)
    page.evaluate(HIDE, False)
    page.keyboard.press("n")
    answer(page, "ArrowLeft")
    assert is_about(recorded_times(live, task)["away"], 1)


def test_a_short_switch_of_tabs_is_ignored(live: Live) -> None:
    page, task = open_judging_page(live)
    page.evaluate(f"() => {{ const hide = {HIDE}; hide(true); hide(false) }}")
    answer(page, "ArrowLeft")
    assert recorded_times(live, task)["away"] == 0


def spans_of(live: Live, task: int) -> list[Any]:
    from sqlalchemy import select

    from firstpage.labeling.app.store.tables import spans

    with live.store.read() as tx:
        return [row["spans"] for row in tx.all(select(spans).where(spans.c.task == task))]


def test_closing_the_tab_sends_its_time(live: Live) -> None:
    page, task = open_judging_page(live)
    page.clock.fast_forward(MINUTE)
    page.goto(f"{live.url}/p/books")
    expect(page.get_by_role("heading", name="My queries")).to_be_visible()
    page.wait_for_timeout(200)
    (row,) = spans_of(live, task)
    assert [s["kind"] for s in row] == ["active"]
    assert is_about(row[0]["ms"], 1)
    assert live.logged(task) == []
