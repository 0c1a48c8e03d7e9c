"""Check a page with axe-core."""

from __future__ import annotations

from functools import cache
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# Only the violations are returned: copying the whole report takes a fifth of the time.
RUN = "(options) => axe.run(options).then((report) => report.violations)"

RULES = {"target-size": {"enabled": True}}  # of WCAG 2.2; not a default of axe
# Frames are documents of others; style sheets and media, which are loaded again, serve no rule here.
OPTIONS = {"resultTypes": ["violations"], "iframes": False, "preload": False}
# axe cannot compute contrasts over the shadows of boxes that scroll.
PLAIN = """() => {
  for (const e of document.querySelectorAll(".scroll, .drawing, pre")) e.style.backgroundImage = "none";
}"""


@cache
def axe_script() -> str:
    return str(Axe().axe_script)


def expect_accessible(page: Page) -> None:
    """Check that axe finds no violation, and in dark mode no contrast that is too low."""
    _check(page, {"light": None, "dark": ["color-contrast"]})


def expect_large_targets(page: Page) -> None:
    """Check that axe finds no target that is too small for a finger."""
    _check(page, {"light": ["target-size"]})


def _check(page: Page, rules_by_scheme: dict[str, list[str] | None]) -> None:
    """Check the rules of each color scheme, None for all."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(axe_script())
    page.evaluate(PLAIN)
    for scheme, rules in rules_by_scheme.items():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        options: dict[str, Any] = {**OPTIONS, "rules": RULES}
        violations = page.evaluate(RUN, {**options, "runOnly": rules} if rules else options)
        assert not violations, [
            (page.url, scheme, v["id"], [n["html"][:160] for n in v["nodes"][:3]])
            for v in violations
        ]
