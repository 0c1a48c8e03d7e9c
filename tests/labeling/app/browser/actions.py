"""Actions of an assessor on the judging page, and forms."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

OPEN = "[data-action=skip][aria-disabled=false]"  # an answer is accepted


def submit(page: Page, button: str) -> None:
    """Send a form and wait for the next page: a click before it arrives would cancel the form."""
    with page.expect_navigation():
        page.get_by_role("button", name=button).click()


def ready(page: Page) -> None:
    """Wait until a question is open; guidelines before the first question are closed."""
    start = page.locator("#guide.first button.main")
    expect(start.or_(page.locator(OPEN)).first).to_be_visible()
    if start.is_visible():
        start.press("Enter")
    expect(page.locator("#announce")).to_contain_text("Question")
    expect(page.locator(OPEN)).to_be_visible()


def answer(page: Page, *keys: str) -> None:
    """Press the keys, and wait until the next question is shown or the page is left."""
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
    """Return the key for the side with the smaller number in its title: Title 0 is best."""
    left, right = (int(re.findall(r"\d+", shown(page, side))[-1]) for side in ("left", "right"))
    return "ArrowLeft" if left < right else "ArrowRight"
