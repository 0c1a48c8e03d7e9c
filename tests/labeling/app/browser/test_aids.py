"""Aids for reading: query words, wrapped lines, differences, images, links, and the first task."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from firstpage.search.analyzer import Analyzer
from tests.labeling.app.browser.actions import answer, ready
from tests.labeling.app.browser.axe import expect_accessible
from tests.labeling.app.browser.live import Live

QUERY = "How to brew teas: <b>50%</b> (.*)"
TEXT = (
    "Brewing tea is easy.  Warm the pot, and add one spoon of leaves\n"
    "per cup of water; brewed tea stains.  Steamy steaks do not matter\n"
    "here.\n\n{end} <mark>not a tag</mark> &amp; <script>alert(1)</script>"
)
ENDS = ("Wait for three minutes.", "Wait for eight minutes or more.")
WORDS = [
    "generously",
    "relational",
    "hopping",
    "hoped",
    "flies",
    "dogs",
    "caresses",
    "agreed",
    "sized",
    "happy",
    "crying",
    "university",
    "organization",
    "electricity",
    "rational",
    "lazily",
    "gently",
    "proceed",
    "added",
    "pasted",
    "intervals",
    "internally",
    "organized",
    "universal",
    "communities",
    "yelling",
    "being",
    "news",
    "skies",
    "dying",
    "bus",
    "toys",
    "enjoying",
    "knightly",
    "radically",
    "hesitancy",
    "digitizer",
    "decisiveness",
    "sensibility",
    "geology",
    "triplicate",
    "formative",
    "goodness",
    "allowance",
    "inference",
    "adoption",
    "rolled",
    "controlled",
    "rate",
    "cease",
    "1990s",
]


def picture() -> str:
    """Return a PNG of 40 x 20 pixels as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        size = struct.pack(">I", len(data))
        return size + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + b"\x80" * 40 for _ in range(20)))
    header = struct.pack(">IIBBBBB", 40, 20, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def open_question(
    live: Live, documents: tuple[DocumentRecord, ...], tool: str = "pairs", **options: Any
) -> Page:
    live.add_project(
        "books", [QueryRecord("q0", QUERY, "", documents)], tool=tool, setting={"k": 1}
    )
    page = live.open(f"/tasks/{live.task('books', 'ada')}", **options)
    ready(page)
    return page


def marked(page: Page, name: str, side: str = "left") -> list[str]:
    """Return the marked texts of the shown document."""
    texts: list[str] = page.evaluate(
        """([side, name]) => {
          const view = document.querySelector(`#${side} iframe:not(.hidden)`).contentWindow;
          return Array.from(view.CSS.highlights.get(name) ?? [], String);
        }""",
        [side, name],
    )
    return texts


def body_html(page: Page, side: str = "left") -> str:
    html: str = page.evaluate(
        "s => document.querySelector(`#${s} iframe:not(.hidden)`).contentDocument.body.innerHTML",
        side,
    )
    return html


def test_marks_and_joined_lines(live: Live) -> None:
    """Marks change no document, whatever it contains; every switch is remembered."""
    documents = tuple(
        DocumentRecord(f"d{i}", f"Title {i}", body=TEXT.format(end=end))
        for i, end in enumerate(ENDS)
    )
    page = open_question(live, documents)
    before = body_html(page)
    assert marked(page, "query") == ["Brewing", "tea", "brewed", "tea"]
    sides = {
        "minutes" if "eight" not in s else "or": s
        for s in (body_html(page), body_html(page, "right"))
    }
    assert len(sides) == 2
    differing = {tuple(marked(page, "difference", side)) for side in ("left", "right")}
    assert differing == {("three",), ("eight", "or more")}
    expect(page.locator("#differ")).to_be_visible()
    frame = page.frame_locator("#left iframe:not(.hidden)")
    wrap = frame.locator("br.wrap")
    assert wrap.count() == 2
    assert wrap.first.evaluate("e => getComputedStyle(e).display") == "none"
    assert "leaves per cup" in frame.locator("p").first.inner_text()
    for key in "hjx":
        page.keyboard.press(key)
    assert [marked(page, name) for name in ("query", "difference")] == [[], []]
    assert "leaves\nper cup" in frame.locator("p").first.inner_text()
    expect(page.locator("#differ")).to_be_hidden()
    assert body_html(page) == before, "marks never change a document"
    page.reload()
    ready(page)
    assert marked(page, "query") == []
    page.keyboard.press("v")
    expect_accessible(page)
    page.keyboard.press("Space")  # the first box has the focus
    page.keyboard.press("Escape")
    assert marked(page, "query") == ["Brewing", "tea", "brewed", "tea"]
    stems = page.evaluate(
        """async (words) => {
          const folder = document.querySelector("script[src$='judge.js']").src.replace("judge.js", "");
          const { stem } = await import(`${folder}words.js`);
          return words.map(stem);
        }""",
        WORDS,
    )
    expected = Analyzer("english", stop_words=False).terms_of(WORDS)
    assert dict(zip(WORDS, stems, strict=True)) == expected


RESULTS = {
    "teapot": "How to brew tea in a pot",
    "kettle": "Kettles that keep water at 80 degrees for green tea",
    "kettles": "Kettles that keep water at 90 degrees for black tea",
    "history": "A history of brewing in seven countries",
    "shops": "Where leaves are sold this autumn",
}


def result_list(key: str, results: str, kind: str) -> DocumentRecord:
    """Return a list of results, as items or as a page of HTML."""
    items = [{"title": f"About {name[0]}", "text": RESULTS[name]} for name in results.split()]
    if kind == "list":
        return DocumentRecord(key, f"List {key}", "list", fields={"items": items})
    blocks = "".join(f"<div><h3>{i['title']}</h3><p>{i['text']}</p></div>" for i in items)
    return DocumentRecord(key, f"List {key}", "html", blocks)


@pytest.mark.parametrize("kind", ["list", "html"])
def test_equal_results_of_two_lists_are_not_marked_as_different(live: Live, kind: str) -> None:
    """Results may be in another order, and others may stand between them."""
    lists = ("teapot kettle history", "history shops teapot")
    documents = tuple(result_list(f"l{i}", names, kind) for i, names in enumerate(lists))
    page = open_question(live, documents, "lists")
    for side in ("left", "right"):
        assert marked(page, "difference", side) == []
        assert {"brew", "tea", "brewing"} <= set(marked(page, "query", side))
    expect(page.locator("#differ")).to_be_hidden()


@pytest.mark.parametrize("kind", ["list", "html"])
def test_only_words_of_near_duplicate_results_are_marked(live: Live, kind: str) -> None:
    lists = ("teapot kettle history", "history kettles shops")
    documents = tuple(result_list(f"l{i}", names, kind) for i, names in enumerate(lists))
    page = open_question(live, documents, "lists")
    differing = {tuple(marked(page, "difference", side)) for side in ("left", "right")}
    assert differing == {("80", "green"), ("90", "black")}
    expect(page.locator("#differ")).to_contain_text("Some results of the lists are near-duplicates")
    expect_accessible(page)


PRIORITIES = """side => {
  const view = document.querySelector(`#${side} iframe:not(.hidden)`).contentWindow;
  return ["query", "difference"].map((name) => view.CSS.highlights.get(name).priority);
}"""


@pytest.mark.parametrize("kind", ["text", "html"])
def test_query_words_stay_marked_inside_a_difference(live: Live, kind: str) -> None:
    """The mark of a query word lies over that of a difference, also if it is switched again."""
    common = "Warm the pot first and add one spoon of leaves for each cup of water; then"
    bodies = (f"{common} brew the tea.", f"{common} wait.")
    documents = tuple(
        DocumentRecord(f"d{i}", "Title", kind, f"<p>{body}</p>" if kind == "html" else body)
        for i, body in enumerate(bodies)
    )
    page = open_question(live, documents)
    side = "left" if "brew" in body_html(page) else "right"
    for _ in range(2):
        assert marked(page, "difference", side) == ["brew the tea"]
        assert marked(page, "query", side) == ["brew", "tea"]
        query, difference = page.evaluate(PRIORITIES, side)
        assert query > difference
        page.keyboard.press("x")
        page.keyboard.press("x")


def test_moved_paragraphs_are_not_marked_as_different(live: Live) -> None:
    paragraphs = ["Warm the pot and add one spoon of leaves.", "Pour the water when it is hot."]
    bodies = (
        "\n\n".join([*paragraphs, "Steep it for three minutes."]),
        "\n\n".join([*paragraphs[::-1], "Steep it for eight minutes."]),
    )
    documents = tuple(DocumentRecord(f"d{i}", "Title", body=b) for i, b in enumerate(bodies))
    page = open_question(live, documents)
    differing = {tuple(marked(page, "difference", side)) for side in ("left", "right")}
    assert differing == {("three",), ("eight",)}


def test_values_that_are_swapped_are_marked(live: Live) -> None:
    """A value means something else beside another name, also if both documents have it."""
    common = {"name": "A kettle of steel for the kitchen", "color": "gray", "made in": "Spain"}
    fields = (common | {"price": 20, "liters": 10}, common | {"price": 10, "liters": 20})
    documents = tuple(
        DocumentRecord(f"d{i}", "Kettle", "card", fields=values) for i, values in enumerate(fields)
    )
    page = open_question(live, documents)
    for side in ("left", "right"):
        assert {"10", "20"} & set(" ".join(marked(page, "difference", side)).split())


def test_images_and_links(live: Live) -> None:
    html = (
        f'<p>tea <img src="{picture()}" alt="a pot"> '
        '<a href="https://tea.example/?a=1&b=2" title="x">link</a></p>'
        "<style>p { color: teal } mark { display: none }</style>"
    )
    documents = tuple(DocumentRecord(f"d{i}", f"Title {i}", "html", html) for i in range(2))
    page = open_question(live, documents)
    frame = page.frame_locator("#left iframe:not(.hidden)")
    link = frame.get_by_text("link")
    assert link.get_attribute("href") is None
    assert link.get_attribute("title") == "https://tea.example/?a=1&b=2"
    assert "underline" in link.evaluate("e => getComputedStyle(e).textDecoration")
    link.click()
    assert marked(page, "query") == ["tea"]
    page.keyboard.press("Escape")
    page.keyboard.press("z")
    zoomed = page.locator("#zoom img")
    expect(zoomed).to_be_visible()
    expect(page.locator("#zoom-status")).to_contain_text("Image 1 of 2")
    fit = zoomed.bounding_box()
    page.keyboard.press("+")
    larger = zoomed.bounding_box()
    assert fit is not None
    assert larger is not None
    assert larger["width"] > fit["width"] > 40
    page.keyboard.press("n")
    expect(page.locator("#zoom-status")).to_contain_text("Image 2 of 2")
    page.keyboard.press("Escape")
    expect(page.locator("#zoom")).to_be_hidden()
    frame.locator("img").click()
    expect(zoomed).to_be_visible()
    page.get_by_role("button", name="Close").click()
    answer(page, "ArrowLeft")
    assert len(live.logged(live.task("books", "ada"))) == 1
    assert json.dumps(live.complaints) == "[]"


def test_the_guided_first_task(live: Live) -> None:
    documents = tuple(DocumentRecord(f"d{i}", f"Title {i}", body="x") for i in range(3))
    live.add_project("books", [QueryRecord("q0", QUERY, "", documents)], setting={"k": 1})
    account = live.open("/account")
    account.get_by_label("Name").fill("nightly")
    account.get_by_role("button", name="Create token").click()
    expect(account.get_by_label("New API token")).to_have_value(re.compile("^firstpage_"))
    expect_accessible(account)
    page = live.open("/p/books")
    expect_accessible(page)
    page.get_by_role("link", name="Start the tour").click()
    expect(page.locator("#notice")).to_contain_text("none of your answers here is stored")
    for key, marks in (("ArrowLeft", False), ("ArrowLeft", False), ("ArrowLeft", True)):
        ready(page)
        assert bool(marked(page, "difference")) is marks
        assert marked(page, "query")
        page.keyboard.press(key)
        expect(page.locator("#explain")).to_be_visible()
        correct = page.locator("#explain").get_attribute("data-correct")
        page.locator("#explain button").press("Enter")
        expect(page.locator("#explain")).to_be_hidden()
        assert correct in ("true", "false")
    expect(page.get_by_text("That was the tour.")).to_be_visible()
    expect(page.get_by_text("New here?")).to_have_count(0)
    assert live.logged(live.task("books", "ada")) == []


def test_own_grades_aspects_and_reasons(live: Live) -> None:
    """Keys and colors of the project's grades; aspects come first; reasons go with the answer."""
    documents = tuple(DocumentRecord(f"d{i}", f"Title {i}", body="x") for i in range(3))
    grades = [{"name": "Off topic", "color": "#b3261e"}, {"name": "Fine", "key": "f"}]
    options = {"grades": grades, "aspects": ["trust"], "reasons": ["recent", "complete"]}
    live.add_project(
        "books",
        [QueryRecord("q0", QUERY, "", documents)],
        tool="grades",
        setting={"k": 1},
        options=options,
    )
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    ready(page)
    expect_accessible(page)
    button = page.get_by_role("button", name="Off topic")
    color = button.evaluate("e => getComputedStyle(e).borderBlockEndColor")
    assert color == "rgb(179, 38, 30)"
    page.keyboard.press("f")
    expect(page.locator("#status")).to_have_text("First grade: trust")
    page.get_by_role("button", name="complete").click()
    page.keyboard.press("Space")  # the first choice of the aspect has the focus
    page.keyboard.press("ArrowRight")
    answer(page, "f")
    expect(page.get_by_role("button", name="complete")).to_have_attribute("aria-pressed", "false")
    assert page.locator(".aspects input:checked").count() == 0
    page.get_by_role("radio", name="Off topic").check()
    answer(page, "1")
    events = [row["event"] for row in live.logged(live.task("books", "ada"))]
    assert [(e["outcome"], e["aspects"], e.get("reasons")) for e in events] == [
        (1, {"trust": 1}, ["complete"]),
        (0, {"trust": 0}, None),
    ]
