"""Actions of an assessor on the judging page."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

OPEN = "[data-action=skip][aria-disabled=false]"  # an answer can be given


def ready(page: Page) -> None:
    """A question is open: its documents can be read.  Guidelines before the first one are read."""
    start = page.locator("#guide.first button.main")
    expect(start.or_(page.locator(OPEN)).first).to_be_visible()
    if start.is_visible():
        start.press("Enter")
    expect(page.locator("#announce")).to_contain_text("Question")
    expect(page.locator(OPEN)).to_be_visible()


def answer(page: Page, *keys: str) -> None:
    """Press, and wait until the next question stands or the page is left."""
    ready(page)
    before = page.locator("#main").get_attribute("data-question")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_function(
        f"before => location.pathname.endsWith('/done') || (document.querySelector('{OPEN}')"
        " && document.querySelector('#main').dataset.question !== before)",
        arg=before,
    )


def shown(page: Page, side: str) -> str:
    frame = page.locator(f"#{side} iframe:not(.hidden)")
    return frame.get_attribute("title") or ""


def better_by_title(page: Page) -> str:
    """Title 0 is best: the key of the side with the smaller number."""
    left, right = (int(re.findall(r"\d+", shown(page, side))[-1]) for side in ("left", "right"))
    return "ArrowLeft" if left < right else "ArrowRight"
