"""Keys scroll before they answer, nothing is cut off, and every window shows documents."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from firstpage.web.store.texts import DocumentRecord, QueryRecord
from tests.web.browser.hands import answer, ready
from tests.web.browser.live import Live
from tests.web.browser.test_looks import checked

LONG = "\n\n".join(f"Paragraph {n} of a long document about tea." for n in range(60))
NARRATIVE = (
    "A relevant document says how hot the water is or how long the tea steeps.\n\n"
    "Shops and price comparisons are not relevant, even if they mention brewing in passing. "
    "Pages about black tea are relevant only if they say that the same holds for green tea. "
    "Documents in which the steps are shown in pictures alone are fair at best. The last words count."
)
TITLE = "Brewing green tea at home: " + "water, leaves, pots and time, " * 8 + "and the end"
ZOOM = {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}
LANDSCAPE = {"viewport": {"width": 844, "height": 390}, "is_mobile": True, "has_touch": True}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
NARROWEST = {"viewport": {"width": 320, "height": 256}, "device_scale_factor": 4}


def opened(
    live: Live, *, body: str = LONG, kind: str = "text", title: str = "", description: str = "",
    tool: str = "pairs", **how: Any,
) -> tuple[Page, int]:  # fmt: skip
    """A question about documents that are all alike."""
    documents = tuple(
        DocumentRecord(f"d{i}", title or f"Title {i}", kind, body=body) for i in range(6)
    )
    live.own(
        "books", [QueryRecord("q0", "how to brew green tea", description, documents)], tool=tool,
        setting={"k": 3}, options={"ties": True},
    )  # fmt: skip
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}", **how)
    ready(page)
    return page, task


def inside(page: Page, side: str = "left") -> Locator:
    return page.frame_locator(f"#{side} iframe:not(.hidden)").locator("body")


def scrolled(page: Page, side: str = "left", way: str = "scrollY") -> float:
    found = page.evaluate(
        "([s, way]) => document.querySelector(`#${s} iframe:not(.hidden)`).contentWindow[way]",
        [side, way],
    )
    return float(found)


def to_the_end(page: Page) -> None:
    page.evaluate(
        "for (const f of document.querySelectorAll('iframe:not(.hidden)')) f.contentWindow.scrollTo(0, 99999)"
    )


def nothing_answered(live: Live, page: Page, task: int) -> None:
    page.wait_for_timeout(200)
    assert live.logged(task) == []
    expect(page.get_by_role("button", name="Left is better")).to_be_visible()


def test_the_down_key_scrolls_a_document_and_never_answers(live: Live) -> None:
    page, task = opened(live)
    inside(page).click(position={"x": 40, "y": 40})
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "() => document.querySelector('#left iframe:not(.hidden)').contentWindow.scrollY > 0"
    )
    assert scrolled(page, "right") == 0
    to_the_end(page)
    for key in ("ArrowDown", "ArrowDown", "End", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("#status")).to_contain_text("E: equally good")
    to_the_top = "document.querySelector('#left iframe:not(.hidden)').contentWindow.scrollTo(0, 0)"
    page.evaluate(to_the_top)
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    nothing_answered(live, page, task)


def test_up_and_down_scroll_the_document_under_the_pointer(live: Live) -> None:
    page, task = opened(live)
    page.mouse.move(900, 450)
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert scrolled(page, "right") > 100
    assert scrolled(page, "left") == 0
    page.keyboard.press("ArrowUp")
    to_the_end(page)
    page.keyboard.press("ArrowDown")
    expect(page.locator("#status")).to_contain_text("↑ ↓ scroll here")
    nothing_answered(live, page, task)


def test_without_a_pointer_both_documents_scroll(live: Live) -> None:
    page, task = opened(live)
    for _ in range(6):
        page.keyboard.down("ArrowDown")
    page.keyboard.up("ArrowDown")
    assert scrolled(page, "left") == scrolled(page, "right") > 200
    page.keyboard.press("b")
    page.keyboard.press("ArrowUp")  # looks again before saying which is bad
    page.keyboard.press("Escape")
    nothing_answered(live, page, task)


def test_letter_keys_answer_even_if_documents_scroll(live: Live) -> None:
    page, task = opened(live)
    assert page.get_by_role("button", name="Equally good").locator("kbd").inner_text() == "E"
    assert page.get_by_role("button", name="Bad").locator("kbd").inner_text() == "B"
    inside(page).click(position={"x": 40, "y": 40})
    answer(page, "e")
    answer(page, "b", "b")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [0, 0]
    assert [len(row["event"]["bad"]) for row in live.logged(task)] == [0, 2]


def test_a_short_document_that_was_clicked_is_not_answered_by_down(live: Live) -> None:
    page, task = opened(live, body="short")
    inside(page).click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    nothing_answered(live, page, task)
    page.keyboard.press("Escape")
    answer(page, "ArrowDown")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [0]


def test_a_wide_document_is_scrolled_sideways(live: Live) -> None:
    wide = "<p>words</p><div style='width: 3000px; background: #eee'>a wide table</div>"
    page, task = opened(live, body=wide, kind="html")
    inside(page).click(position={"x": 40, "y": 20})
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => document.querySelector('#left iframe:not(.hidden)').contentWindow.scrollX > 0"
    )
    page.evaluate(
        "document.querySelector('#left iframe:not(.hidden)').contentWindow.scrollTo(9999, 0)"
    )
    page.keyboard.press("ArrowRight")
    expect(page.locator("#status")).to_contain_text("Esc")
    nothing_answered(live, page, task)
    page.keyboard.press("Escape")
    answer(page, "ArrowRight")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [-1]


def test_space_scrolls_after_a_click_on_a_button(live: Live) -> None:
    """The button that was clicked must not be pressed again by the space bar."""
    page, task = opened(live)
    page.get_by_role("button", name="Left is better").click()
    expect(page.locator("#progress")).to_contain_text("1 judged")
    ready(page)
    page.keyboard.press("Space")
    assert scrolled(page, "left") > 100
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_timeout(200)
    assert len(live.logged(task)) == 1


def test_a_cue_shows_text_below_the_frame(live: Live) -> None:
    page, task = opened(live)
    cue = page.locator(".pane.left .below")
    expect(cue).to_be_visible()
    expect(cue).to_contain_text("More below")
    cue.click()
    assert scrolled(page, "left") > 100
    assert scrolled(page, "right") == 0
    to_the_end(page)
    expect(cue).to_be_hidden()
    assert live.logged(task) == []


def test_a_document_that_fits_has_no_cue(live: Live) -> None:
    page, _ = opened(live, body="short")
    expect(page.locator(".pane.left .below")).to_be_hidden()


def whole(locator: Locator) -> bool:
    """Nothing of its text is cut off."""
    return bool(locator.evaluate("e => e.clientHeight > 0 && e.scrollHeight <= e.clientHeight + 1"))


@pytest.mark.parametrize("how", [{}, PHONE, LANDSCAPE, ZOOM])
def test_the_description_is_unfolded_first_and_folded_later(
    live: Live, how: dict[str, Any]
) -> None:
    page, _ = opened(live, description=NARRATIVE, **how)
    description = page.locator("#description")
    expect(description).to_contain_text("The last words count.")
    assert whole(description)
    answer(page, "ArrowLeft")
    assert description.is_visible()
    assert not whole(description)
    page.keyboard.press("d")
    assert whole(description)
    answer(page, "ArrowLeft")
    assert whole(description), "who unfolds it keeps it"
    button = page.get_by_role("button", name="of the description")
    button.click()
    assert not whole(description)
    expect(button).to_contain_text("More")
    expect(button).to_have_attribute("aria-expanded", "false")
    if not how:
        expect(button.locator("kbd")).to_have_text("D")


def test_a_short_description_needs_no_button(live: Live) -> None:
    page, _ = opened(live, description="how hot, how long")
    answer(page, "ArrowLeft")
    assert whole(page.locator("#description"))
    expect(page.get_by_role("button", name="of the description")).to_be_hidden()


@pytest.mark.parametrize("how", [{}, PHONE, LANDSCAPE])
def test_long_titles_can_be_unfolded(live: Live, how: dict[str, Any]) -> None:
    page, _ = opened(live, title=TITLE, **how)
    title = page.locator("#left-title")
    assert not whole(title)
    page.keyboard.press("t")
    assert whole(title)
    expect(title).to_contain_text("and the end")
    answer(page, "ArrowLeft")
    assert whole(title)
    page.get_by_role("button", name="of the left title").click()
    assert not whole(title)


VISIBLE = """side => {
  const frame = document.querySelector(`#${side} iframe:not(.hidden)`).getBoundingClientRect();
  const bar = document.querySelector('.answers .big:not([hidden])').getBoundingClientRect();
  const sticks = getComputedStyle(document.querySelector('.answers .big:not([hidden])')).position === 'sticky'
    || getComputedStyle(document.querySelector('.answers')).position === 'sticky';
  const end = sticks ? Math.min(innerHeight, bar.top) : innerHeight;
  return [Math.min(frame.bottom, end) - Math.max(frame.top, 0), Math.min(frame.right, innerWidth) - Math.max(frame.left, 0)];
}"""


@pytest.mark.parametrize("tool", ["pairs", "grades", "lists"])
@pytest.mark.parametrize(
    ("how", "least"),
    [({}, 300), (PHONE, 300), (LANDSCAPE, 150), (ZOOM, 150)],
    ids=["desktop", "phone", "landscape", "zoom"],
)
def test_documents_are_visible_in_every_window_size(
    live: Live, how: dict[str, Any], least: int, tool: str
) -> None:
    """WCAG 1.4.4 and 1.4.10: text to read, no sideways scrolling, every button in reach."""
    page, _ = opened(live, description=NARRATIVE, title=TITLE, tool=tool, **how)
    answer(page, "1" if tool != "pairs" else "ArrowLeft")
    page.wait_for_timeout(100)
    for side in ("left",) if tool == "grades" else ("left", "right"):
        if how is PHONE and tool != "grades":
            page.locator(f"[data-view={side}]").tap()
            page.wait_for_timeout(300)
        high, wide = page.evaluate(VISIBLE, side)
        assert high >= least, (side, high)
        assert wide >= 250, (side, wide)
    reachable(page)


def reachable(page: Page) -> None:
    """No sideways scrolling of the page; every button can be brought into view and is not covered."""
    width = page.evaluate("innerWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for button in page.locator(".answers button[data-action]:visible").all():
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        button.click(trial=True)


def test_at_400_percent_zoom_everything_is_reachable(live: Live) -> None:
    page, task = opened(live, description=NARRATIVE, title=TITLE, **NARROWEST)
    answer(page, "ArrowLeft")
    reachable(page)
    page.locator("#left").scroll_into_view_if_needed()
    high, _ = page.evaluate(VISIBLE, "left")
    assert high >= 110
    page.get_by_role("button", name="Left is better").click()
    expect(page.locator("#progress")).to_contain_text("2 judged")
    assert len(live.logged(task)) == 2


def test_a_cue_shows_documents_below_the_window(live: Live) -> None:
    page, task = opened(live, description=NARRATIVE * 3, **ZOOM)
    cue = page.get_by_role("button", name="Documents below")
    expect(cue).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.scrollingElement.scrollTop > 0")
    cue.click()
    expect(cue).to_be_hidden()
    high, _ = page.evaluate(VISIBLE, "left")
    assert high >= 150
    assert live.logged(task) == []


def test_the_folded_page_is_accessible(live: Live) -> None:
    page, _ = opened(live, description=NARRATIVE, title=TITLE)
    checked(page)
    page.keyboard.press("t")
    page.keyboard.press("g")
    checked(page)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_contain_text("only if nothing can be scrolled")
    for key in ("←", "→", "E", "↓", "B", "↑", "Esc", "D", "T", "G", "U", "S", "C", "P", "?"):
        expect(page.locator("#help kbd", has_text=key).first).to_be_visible()
