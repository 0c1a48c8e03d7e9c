"""Keys scroll before they answer, nothing is cut off, and every window shows documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.browser.actions import answer, ready
from tests.labeling.app.browser.axe import expect_accessible
from tests.labeling.app.browser.live import Live

LONG = "\n\n".join(f"Paragraph {n} of a long document about tea." for n in range(60))
NARRATIVE = (
    "A relevant document says how hot the water is or how long the tea steeps.\n\n"
    "Shops and price comparisons are not relevant, even if they mention brewing in passing. "
    "Pages about black tea are relevant only if they say that the same holds for green tea. "
    "Documents in which the steps are shown in pictures alone are fair at best. The last words count."
)
TITLE = "Brewing green tea at home: " + "water, leaves, pots and time, " * 8 + "and the end"
ZOOM: dict[str, Any] = {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}
LANDSCAPE = {"viewport": {"width": 844, "height": 390}, "is_mobile": True, "has_touch": True}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
}
NARROWEST: dict[str, Any] = {"viewport": {"width": 320, "height": 256}, "device_scale_factor": 4}


def open_judging_page(
    live: Live,
    *,
    body: str = LONG,
    kind: str = "text",
    title: str = "",
    description: str = "",
    tool: str = "pairs",
    **options: Any,
) -> tuple[Page, int]:
    """Open a question about documents with the same text."""
    documents = tuple(
        DocumentRecord(f"d{i}", title or f"Title {i}", kind, body=body) for i in range(6)
    )
    live.add_project(
        "books",
        [QueryRecord("q0", "how to brew green tea", description, documents)],
        tool=tool,
        setting={"k": 3},
        options={"ties": True},
    )
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}", **options)
    ready(page)
    return page, task


def document_body(page: Page, side: str = "left") -> Locator:
    return page.frame_locator(f"#{side} iframe:not(.hidden)").locator("body")


def scrolled(page: Page, side: str = "left", axis: str = "scrollY") -> float:
    offset = page.evaluate(
        "([s, way]) => document.querySelector(`#${s} iframe:not(.hidden)`).contentWindow[way]",
        [side, axis],
    )
    return float(offset)


def scroll_to_the_end(page: Page) -> None:
    page.evaluate(
        "for (const f of document.querySelectorAll('iframe:not(.hidden)')) f.contentWindow.scrollTo(0, 99999)"
    )


def expect_no_answer(live: Live, page: Page, task: int) -> None:
    page.wait_for_timeout(200)
    assert live.logged(task) == []
    expect(page.get_by_role("button", name="Left is better")).to_be_visible()


def test_the_down_key_scrolls_a_document_and_never_answers(live: Live) -> None:
    page, task = open_judging_page(live)
    document_body(page).click(position={"x": 40, "y": 40})
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "() => document.querySelector('#left iframe:not(.hidden)').contentWindow.scrollY > 0"
    )
    assert scrolled(page, "right") == 0
    scroll_to_the_end(page)
    for key in ("ArrowDown", "ArrowDown", "End", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("#status")).to_contain_text("E: equally good")
    to_the_top = "document.querySelector('#left iframe:not(.hidden)').contentWindow.scrollTo(0, 0)"
    page.evaluate(to_the_top)
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    expect_no_answer(live, page, task)


def test_up_and_down_scroll_the_document_under_the_pointer(live: Live) -> None:
    page, task = open_judging_page(live)
    page.mouse.move(900, 450)
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert scrolled(page, "right") > 100
    assert scrolled(page, "left") == 0
    page.keyboard.press("ArrowUp")
    scroll_to_the_end(page)
    page.keyboard.press("ArrowDown")
    expect(page.locator("#status")).to_contain_text("↑ ↓ scroll here")
    expect_no_answer(live, page, task)


def test_without_a_pointer_both_documents_scroll(live: Live) -> None:
    page, task = open_judging_page(live)
    for _ in range(6):
        page.keyboard.down("ArrowDown")
    page.keyboard.up("ArrowDown")
    assert scrolled(page, "left") == scrolled(page, "right") > 200
    page.keyboard.press("b")
    page.keyboard.press("ArrowUp")  # scroll before choosing the bad document
    page.keyboard.press("Escape")
    expect_no_answer(live, page, task)


def test_letter_keys_answer_even_if_documents_scroll(live: Live) -> None:
    page, task = open_judging_page(live)
    assert page.get_by_role("button", name="Equally good").locator("kbd").inner_text() == "E"
    assert page.get_by_role("button", name="Bad").locator("kbd").inner_text() == "B"
    document_body(page).click(position={"x": 40, "y": 40})
    answer(page, "e")
    answer(page, "b", "b")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [0, 0]
    assert [len(row["event"]["bad"]) for row in live.logged(task)] == [0, 2]


def test_short_texts_need_no_cue_and_a_click_keeps_down_from_answering(live: Live) -> None:
    page, task = open_judging_page(live, body="short", description="how hot, how long")
    expect(page.locator(".pane.left .below")).to_be_hidden()
    document_body(page).click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect_no_answer(live, page, task)
    page.keyboard.press("Escape")
    answer(page, "ArrowDown")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [0]
    assert fully_visible(page.locator("#description"))
    expect(page.get_by_role("button", name="of the description")).to_be_hidden()


def test_a_wide_document_is_scrolled_sideways(live: Live) -> None:
    wide = "<p>words</p><div style='width: 3000px; background: #eee'>a wide table</div>"
    page, task = open_judging_page(live, body=wide, kind="html")
    document_body(page).click(position={"x": 40, "y": 20})
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => document.querySelector('#left iframe:not(.hidden)').contentWindow.scrollX > 0"
    )
    page.evaluate(
        "document.querySelector('#left iframe:not(.hidden)').contentWindow.scrollTo(9999, 0)"
    )
    page.keyboard.press("ArrowRight")
    expect(page.locator("#status")).to_contain_text("Esc")
    expect_no_answer(live, page, task)
    page.keyboard.press("Escape")
    answer(page, "ArrowRight")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [-1]


def test_space_scrolls_after_a_click_on_a_button(live: Live) -> None:
    """The button that was clicked must not be pressed again by the space bar."""
    page, task = open_judging_page(live)
    page.get_by_role("button", name="Left is better").click()
    expect(page.locator("#progress")).to_contain_text("1 judged")
    ready(page)
    page.keyboard.press("Space")
    assert scrolled(page, "left") > 100
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_timeout(200)
    assert len(live.logged(task)) == 1


def test_a_cue_shows_text_below_the_frame(live: Live) -> None:
    page, task = open_judging_page(live)
    cue = page.locator(".pane.left .below")
    expect(cue).to_be_visible()
    expect(cue).to_contain_text("More below")
    cue.click()
    assert scrolled(page, "left") > 100
    assert scrolled(page, "right") == 0
    scroll_to_the_end(page)
    expect(cue).to_be_hidden()
    assert live.logged(task) == []


def fully_visible(locator: Locator) -> bool:
    """Return whether the whole text of an element is visible."""
    return bool(locator.evaluate("e => e.clientHeight > 0 && e.scrollHeight <= e.clientHeight + 1"))


VISIBLE = """side => {
  const frame = document.querySelector(`#${side} iframe:not(.hidden)`).getBoundingClientRect();
  const bar = document.querySelector('.answers .big:not([hidden])').getBoundingClientRect();
  const sticks = getComputedStyle(document.querySelector('.answers .big:not([hidden])')).position === 'sticky'
    || getComputedStyle(document.querySelector('.answers')).position === 'sticky';
  const end = sticks ? Math.min(innerHeight, bar.top) : innerHeight;
  return [Math.min(frame.bottom, end) - Math.max(frame.top, 0), Math.min(frame.right, innerWidth) - Math.max(frame.left, 0)];
}"""


@dataclass(frozen=True)
class Windows:
    """Sizes of a window on one device, the first one last: a page opens in it.

    `least` is the number of pixels of a document that must be visible.
    """

    options: dict[str, Any]
    sizes: tuple[tuple[int, int, int], ...]

    def resized(self, page: Page) -> Iterator[int]:
        """Resize the window of a page to each size in turn; yield `least`."""
        for width, height, least in self.sizes:
            page.set_viewport_size({"width": width, "height": height})
            for _ in range(2):  # the page has handled the event
                page.evaluate("() => new Promise(requestAnimationFrame)")
            yield least


WINDOWS = pytest.mark.parametrize(
    "windows",
    [
        Windows({}, ((640, 400, 150), (1280, 800, 300))),  # 200 % zoom
        Windows(PHONE, ((844, 390, 150), (390, 844, 300))),  # landscape
    ],
    ids=["desktop", "phone"],
)


def expect_visible(page: Page, least: int, *sides: str) -> None:
    """WCAG 1.4.4 and 1.4.10: readable text, no horizontal scrolling, every button reachable."""
    for side in sides:
        tab = page.locator(f"[data-view={side}]")
        if tab.is_visible():
            tab.tap()
            page.wait_for_timeout(300)
        high, wide = page.evaluate(VISIBLE, side)
        assert high >= least, (side, high)
        assert wide >= 250, (side, wide)
    reachable(page)


@WINDOWS
def test_long_texts_fold_and_documents_stay_visible(live: Live, windows: Windows) -> None:
    page, _ = open_judging_page(live, description=NARRATIVE, title=TITLE, **windows.options)
    description, title = page.locator("#description"), page.locator("#left-title")
    expect(description).to_contain_text("The last words count.")
    for _ in windows.resized(page):
        assert fully_visible(description)
        assert not fully_visible(title)
    page.keyboard.press("t")
    expect(title).to_contain_text("and the end")
    for _ in windows.resized(page):
        assert fully_visible(title)
    answer(page, "ArrowLeft")
    assert fully_visible(title)
    page.get_by_role("button", name="of the left title").click()
    for least in windows.resized(page):
        assert not fully_visible(title)
        assert description.is_visible()
        assert not fully_visible(description)
        expect_visible(page, least, "left", "right")
    page.keyboard.press("d")
    for _ in windows.resized(page):
        assert fully_visible(description)
    answer(page, "ArrowLeft")
    assert fully_visible(description), "it stays unfolded after the assessor unfolded it"
    button = page.get_by_role("button", name="of the description")
    button.click()
    for _ in windows.resized(page):
        assert not fully_visible(description)
    expect(button).to_contain_text("More")
    expect(button).to_have_attribute("aria-expanded", "false")
    if not windows.options:
        expect(button.locator("kbd")).to_have_text("D")


@WINDOWS
@pytest.mark.parametrize("tool", ["grades", "lists"])
def test_documents_of_other_tools_are_visible_in_every_window_size(
    live: Live, windows: Windows, tool: str
) -> None:
    page, _ = open_judging_page(
        live, description=NARRATIVE, title=TITLE, tool=tool, **windows.options
    )
    answer(page, "1")
    for least in windows.resized(page):
        page.wait_for_timeout(100)
        expect_visible(page, least, *(("left",) if tool == "grades" else ("left", "right")))


def reachable(page: Page) -> None:
    """Check that the page does not scroll horizontally and every button can be brought into view."""
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
    page, task = open_judging_page(live, description=NARRATIVE, title=TITLE, **NARROWEST)
    answer(page, "ArrowLeft")
    reachable(page)
    page.locator("#left").scroll_into_view_if_needed()
    high, _ = page.evaluate(VISIBLE, "left")
    assert high >= 110
    page.get_by_role("button", name="Left is better").click()
    expect(page.locator("#progress")).to_contain_text("2 judged")
    assert len(live.logged(task)) == 2


def test_a_cue_shows_documents_below_the_window(live: Live) -> None:
    page, task = open_judging_page(live, description=NARRATIVE * 3, **ZOOM)
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
    page, _ = open_judging_page(live, description=NARRATIVE, title=TITLE)
    page.keyboard.press("t")
    page.keyboard.press("g")
    expect_accessible(page)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_contain_text("only if nothing can be scrolled")
    for key in ("←", "→", "E", "↓", "B", "↑", "Esc", "D", "T", "G", "U", "S", "C", "P", "?"):
        expect(page.locator("#help kbd", has_text=key).first).to_be_visible()
