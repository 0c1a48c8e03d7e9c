"""What an assessor's hands do on the judging page."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect


def ready(page: Page) -> None:
    """A question is open: its documents can be read."""
    expect(page.locator("#announce")).to_contain_text("Question")
    expect(page.locator("[data-action=skip]")).to_have_attribute("aria-disabled", "false")


def answer(page: Page, *keys: str) -> None:
    """Press, and wait until the next question stands or the page is left."""
    ready(page)
    before = page.locator("#announce").inner_text()
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_function(
        "before => location.pathname.endsWith('/done') || (document.querySelector('#announce')?.textContent !== before"
        " && document.querySelector('[data-action=skip]')?.getAttribute('aria-disabled') === 'false')",
        arg=before,
    )


def shown(page: Page, side: str) -> str:
    frame = page.locator(f"#{side} iframe:not(.veiled)")
    return frame.get_attribute("title") or ""


def better_by_title(page: Page) -> str:
    """Title 0 is best: the key of the side with the smaller number."""
    left, right = (int(re.findall(r"\d+", shown(page, side))[-1]) for side in ("left", "right"))
    return "ArrowLeft" if left < right else "ArrowRight"
