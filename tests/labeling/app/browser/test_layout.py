"""Every page fits every window: nothing is cut off, and what scrolls shows it and can be reached."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from firstpage.labeling.app.store import invitations, people, projects
from firstpage.labeling.app.store.connect import Store
from tests.labeling.app.browser.actions import ready
from tests.labeling.app.browser.axe import expect_accessible, expect_large_targets
from tests.labeling.app.browser.filled import LEAD_PAGES, PROJECTS, fill
from tests.labeling.app.browser.live import Live, new_live

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
# A phone, and the narrowest windows of the wider layouts of forms.css and judge.css, in which there
# is the least space; long words are also checked on a wide screen.
WIDTHS = (390, 641, 1024)
JUDGING_WIDTHS = (390, 577, 737, 1024)
WIDE = 1920
ONE_LINE = 1024  # from this width on, the navigation is a single line

# Elements that reach out of the window or of their box, and scrolling boxes without a name, a place in
# the order of the keyboard, or a sign that there is more.
PROBLEMS = """() => {
  const width = document.documentElement.clientWidth, problems = [];
  const name = (e) => `${e.localName}.${e.className} “${(e.textContent ?? "").trim().replace(/\\s+/g, " ").slice(0, 30)}”`;
  const scrolls = (e) => /auto|scroll/.test(getComputedStyle(e).overflowX);
  const region = (e) => { for (let a = e.parentElement; a; a = a.parentElement) if (scrolls(a)) return a };
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 0) problems.push(`the page is ${over} px too wide`);
  for (const e of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!e.checkVisibility({ visibilityProperty: true }) || !box.width || e.closest(".sr, .skip, svg")) continue;
    if (e.matches("input, select, option, textarea, iframe, br") || region(e)) continue;
    if (box.left < -1 || box.right > width + 1) problems.push(`${name(e)} reaches out of the window`);
    if (e.scrollWidth <= e.clientWidth + 1 || style.display === "inline") continue;
    if (e.matches("main.documents")) continue;  // swiped on a phone; buttons show which one is in view
    if (!scrolls(e)) {
      if (!(style.textOverflow === "ellipsis" && e.title)) problems.push(`${name(e)} is cut off`);
      continue;
    }
    if (e.tabIndex < 0) problems.push(`${name(e)} scrolls, but cannot be focused`);
    const label = e.ariaLabel || e.getAttribute("aria-labelledby") || e.querySelector("figcaption");
    if (!label) problems.push(`${name(e)} scrolls, but has no name`);
    if (style.backgroundImage === "none") problems.push(`${name(e)} scrolls without a sign`);
  }
  return problems;
}"""
LINES = "() => new Set([...document.querySelectorAll('nav[aria-label=Project] a')].map((a) => a.offsetTop)).size"
# Both in the next frame, by one message to the browser.
LAYOUT = f"() => new Promise(requestAnimationFrame).then(() => [({PROBLEMS})(), ({LINES})()])"


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory, fresh: Path) -> Iterator[Live]:
    """Yield a server with all projects, which no test changes."""
    folder = tmp_path_factory.mktemp("filled") / "project"
    shutil.copytree(fresh, folder)
    store = Store(folder)
    live = new_live(store, browser)
    fill(live)
    yield live
    live.stop()
    live.close()


def problems(page: Page, widths: tuple[int, ...] = WIDTHS) -> list[str]:
    """Return what is wrong with the layout of a page, at every width."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        texts, lines = page.evaluate(LAYOUT)
        found += [f"{page.url} at {width} px: {text}" for text in texts]
        if width >= ONE_LINE and lines > 1:
            found.append(f"{page.url} at {width} px: the navigation has {lines} lines")
    return found


@pytest.mark.parametrize("slug", PROJECTS)
def test_pages_of_a_lead_fit(site: Live, slug: str) -> None:
    page = site.open("/", login="lena")
    found, widths = [], (*WIDTHS, WIDE) if slug == "long" else WIDTHS
    extra = ["measure"] if slug == "lists" else []
    for name in [*LEAD_PAGES, *extra]:
        page.goto(f"{site.url}/p/{slug}/{name}")
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        found += problems(page, widths)
        link = page.locator(f"main a[href^='/p/{slug}/{name}/']").first
        if name in ("answers", "queries", "people") and link.count():
            page.goto(site.url + str(link.get_attribute("href")))
            found += problems(page, widths)
    assert not found, "\n".join(found)


ASSESSORS = {"tea": "cy", "long": "x" * 60, "rtl": "ada", "large": "ada", "lists": "bo"}


@pytest.mark.parametrize(("slug", "login"), ASSESSORS.items())
def test_pages_of_an_assessor_fit(site: Live, slug: str, login: str) -> None:
    task = site.task(slug, login)
    page = site.open("/", login=login)
    found = []
    start, query = f"/p/{slug}", f"/tasks/{task}"
    for path in (start, f"{start}/guidelines", query, f"{query}/judgments", f"{query}/done"):
        page.goto(site.url + path)
        if page.url.endswith(query):
            ready(page)
        found += problems(page, JUDGING_WIDTHS)
    page.goto(f"{site.url}/account")
    found += problems(page)
    assert not found, "\n".join(found)


def test_pages_before_signing_in_fit(site: Live) -> None:
    lead = site.person("lena")
    with site.store.write() as tx:
        project, guest = projects.by_slug(tx, "long"), people.by_login(tx, "x" * 60)
        assert project is not None
        assert guest is not None
        links = [
            invitations.invite(tx, project, "assessor", lead),
            invitations.reset_link(tx, guest, lead),
        ]
    page = site.open("/login", login=None)
    found = problems(page)
    for path in (*(link.path for link in links), "/nowhere"):
        page.goto(site.url + path)
        found += problems(page)
    assert not found, "\n".join(found)


PLACES = """() => [...document.querySelectorAll("header.top :is(a, button)")]
  .filter((e) => e.checkVisibility())
  .map((e) => e.getBoundingClientRect())
  .map((box) => [Math.round((box.top + box.bottom) / 60), box.left])"""


@pytest.mark.parametrize("width", [*WIDTHS, WIDE])
def test_the_keyboard_follows_the_reading_order_of_the_top(site: Live, width: int) -> None:
    page = site.open("/p/lists/dashboard", "lena", viewport={"width": width, "height": 800})
    places = page.evaluate(PLACES)
    assert len(places) >= 5
    assert places == sorted(places)


def test_the_menu_of_a_phone_is_used_by_keyboard(site: Live) -> None:
    """It opens and closes with keys, takes the focus in order, and is large enough for a thumb."""
    page = site.open("/p/lists/dashboard", login="lena", **PHONE)
    menu = page.get_by_role("button", name="Menu")
    links = page.get_by_role("navigation", name="Project").get_by_role("link")
    expect(links).to_have_count(0)
    menu.focus()
    page.keyboard.press("Enter")
    expect(links).to_have_count(11)
    expect(page.get_by_role("link", name="Dashboard")).to_have_attribute("aria-current", "page")
    assert all((link.bounding_box() or {"height": 0})["height"] >= 40 for link in links.all())
    expect_accessible(page)
    page.keyboard.press("Tab")
    expect(links.first).to_be_focused()
    page.keyboard.press("Escape")
    expect(links).to_have_count(0)
    expect(menu).to_be_focused()
    menu.tap()
    page.get_by_role("link", name="Agreement").tap()
    expect(page.get_by_role("heading", name="Agreement", exact=True)).to_be_visible()


MORE_PAGES = (
    "/p/lists/measure", "/p/lists/dashboard", "/p/empty/dashboard", "/p/empty/setup/assignment",
    "/p/large/setup/assignment", "/p/rtl/truth", "/p/tea/answers", "/p/tea/people", "/links",
    "/audit",
)  # fmt: skip


def test_more_pages_are_accessible(site: Live) -> None:
    """Besides those of `test_accessibility`; also the sizes of targets on a phone."""
    site.person("root", admin=True)
    lead, admin = site.open("/", login="lena"), site.open("/", login="root")
    for path in MORE_PAGES:
        page = lead if path.startswith("/p/") else admin
        page.goto(site.url + path)
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        expect(page.locator("h1")).to_have_count(1)
        expect_accessible(page)
        page.set_viewport_size({"width": 390, "height": 844})
        expect_large_targets(page)
        page.set_viewport_size({"width": 1280, "height": 844})
