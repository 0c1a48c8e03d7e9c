"""A whole query by keyboard, in each of the three tools."""

from __future__ import annotations

from playwright.sync_api import expect

from firstpage.labeling.app.store import texts
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.browser.actions import answer, better_by_title, ready, shown
from tests.labeling.app.browser.live import Live


def test_side_by_side_by_keyboard(live: Live) -> None:
    live.project(queries=1, documents=6)
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    expect(page.get_by_role("heading", name="query 0")).to_be_visible()
    expect(page.locator("#description")).to_have_text("what is wanted")
    for _ in range(60):
        ready(page)
        answer(page, better_by_title(page))
        if page.url.endswith("/done"):
            break
    expect(page.get_by_role("heading", name="This query is done")).to_be_visible()
    log = live.logged(task)
    assert log, "nothing was recorded"
    for row in log:
        best = min(row["event"]["left"], row["event"]["right"])
        assert row["event"]["outcome"] == (1 if best == row["event"]["left"] else -1)
        assert row["active_ms"] > 0
        assert row["shown_at"] < row["answered_at"]


def test_a_document_that_stays_is_not_reloaded(live: Live) -> None:
    """It stays in the same frame on the same side, with its scroll position."""
    texts = tuple(DocumentRecord(f"d{i}", f"Title {i}", body="word " * 4000) for i in range(6))
    live.add_project(
        "books",
        [QueryRecord("q0", "query 0", "", texts)],
        setting={"k": 3, "strategy": "tournament"},
    )
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    unchanged = 0
    for _ in range(5):
        ready(page)
        before = {side: shown(page, side) for side in ("left", "right")}
        page.evaluate(
            "for (const f of document.querySelectorAll('iframe:not(.hidden)')) {"
            " f.mark = 'same'; f.contentWindow.scrollTo(0, 321) }"
        )
        answer(page, "ArrowLeft")
        if page.url.endswith("/done"):
            break
        for side, title in before.items():
            if shown(page, side) == title:
                unchanged += 1
                marks = page.evaluate(
                    "s => { const f = document.querySelector(`#${s} iframe:not(.hidden)`);"
                    " return [f.mark, f.contentWindow.scrollY] }",
                    side,
                )
                assert marks == ["same", 321]
    assert unchanged, "no document stayed, so the test checked nothing"


def test_an_answer_takes_one_request(live: Live) -> None:
    """The reply has the next question with its documents, each of which is sent once."""
    live.project(queries=1, documents=8)
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    ready(page)
    requests: list[str] = []
    sent: list[str] = []
    page.on("request", lambda r: requests.append(r.url.rpartition("/")[2]))
    page.on("response", lambda r: sent.extend(r.json()["documents"] or ()))
    for _ in range(6):
        answer(page, "ArrowLeft")
        shown = page.frame_locator("#left iframe:not(.hidden)")
        expect(shown.locator("p").first).to_be_visible()
    from_network = [name for name in requests if not name.startswith("frame-")]
    assert from_network == ["answers"] * 6
    assert len(sent) == len(set(sent)) > 0


def test_marking_bad_documents_by_keyboard(live: Live) -> None:
    live.project(queries=1, documents=8, options={"ties": True})
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("button", name="Left is bad")).to_be_visible()
    expect(page.locator("#question")).to_contain_text("Which document is bad")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Left is better")).to_be_visible()
    answer(page, "ArrowUp", "ArrowLeft")
    answer(page, "b", "ArrowRight")
    answer(page, "b", "b")
    answer(page, "ArrowDown")
    events = [row["event"] for row in live.logged(task)]
    assert [e["outcome"] for e in events] == [-1, 1, 0, 0]
    assert [list(e["bad"]) for e in events] == [
        [events[0]["left"]],
        [events[1]["right"]],
        [events[2]["left"], events[2]["right"]],
        [],
    ]


def test_five_grades_by_keyboard(live: Live) -> None:
    live.project(queries=1, documents=5, tool="grades")
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    for key in "51423":
        answer(page, key)
    expect(page.get_by_role("heading", name="This query is done")).to_be_visible()
    assert [row["event"]["outcome"] for row in live.logged(task)] == [4, 0, 3, 1, 2]
    assert {row["event"]["right"] for row in live.logged(task)} == {None}


def test_two_lists_by_keyboard(live: Live) -> None:
    lists = tuple(
        DocumentRecord(
            f"l{i}",
            f"List {i}",
            "list",
            fields={"items": [{"title": f"Result {i}.{j}", "text": "words"} for j in range(4)]},
        )
        for i in range(4)
    )
    live.add_project(
        "books", [QueryRecord("q0", "green tea", "how to brew it", lists)], tool="lists"
    )
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    expect(
        page.frame_locator("#left iframe:not(.hidden)").get_by_text("Result", exact=False).first
    ).to_be_visible()
    for key in "123451":
        answer(page, key)
        if page.url.endswith("/done"):
            break
    expect(page.get_by_role("heading", name="This query is done")).to_be_visible()
    outcomes = [row["event"]["outcome"] for row in live.logged(task)]
    assert outcomes == [2, 1, 0, -1, -2, 2][: len(outcomes)]
    assert len(outcomes) >= 2


def two_lists(number: int) -> QueryRecord:
    lists = tuple(
        DocumentRecord(f"l{i}", f"List {i}", "list", fields={"items": [{"title": f"Result {i}"}]})
        for i in range(2)
    )
    return QueryRecord(f"q{number}", f"query {number}", "", lists)


def test_after_two_lists_comes_the_next_query(live: Live) -> None:
    """There is no page in between, and the last answer can still be undone."""
    live.add_project("books", [two_lists(n) for n in range(3)], tool="lists")
    tasks = [live.task("books", "ada", n) for n in range(3)]
    page = live.open(f"/tasks/{tasks[0]}")
    visited: list[str] = []
    page.on("framenavigated", lambda frame: visited.append(frame.url))
    answer(page, "1")
    expect(page.locator("#query")).to_have_text("query 1")
    expect(page.locator("#status")).to_have_text("Saved")
    ready(page)
    page.keyboard.press("u")
    expect(page.locator("#query")).to_have_text("query 0")
    expect(page.locator("#status")).to_have_text("Undone")
    for key in "543":
        answer(page, key)
    expect(page.get_by_role("heading", name="This query is done")).to_be_visible()
    expect(page.get_by_text("You have no more open queries")).to_be_visible()
    assert sum(url.endswith("/done") for url in visited) == 1
    outcomes = [[row["event"].get("outcome") for row in live.logged(task)] for task in tasks]
    assert outcomes == [[2, None, -2], [-1], [0]]


def test_keys_work_from_inside_a_document(live: Live) -> None:
    live.project(queries=1, documents=6)
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    page.frame_locator("#right iframe:not(.hidden)").locator("body").click()
    assert page.evaluate("document.activeElement.tagName") == "IFRAME"
    answer(page, "ArrowRight")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [-1]


def test_judging_with_buttons_only(live: Live) -> None:
    """Tab and Enter suffice, as with a screen reader; the focus stays on the button."""
    live.project(queries=1, documents=6)
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    ready(page)
    button = page.get_by_role("button", name="Left is better")
    button.focus()
    for number in (1, 2):
        page.keyboard.press("Enter")
        expect(page.locator("#progress")).to_contain_text(f"{number} judged")
        expect(button).to_be_focused()
        ready(page)  # earlier presses are ignored as accidental


def test_skip_with_a_reason_and_comment(live: Live) -> None:
    live.project(queries=1, documents=6)
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    page.keyboard.press("c")
    page.get_by_label("It is stored with your answer").fill("both are old ← b u p")
    page.get_by_role("button", name="Save").click()
    ready(page)
    page.keyboard.press("s")
    page.get_by_label("A document does not display").check()
    page.get_by_role("button", name="Skip this question").click()
    expect(page.locator("#progress")).to_contain_text("1 judged")
    (row,) = live.logged(task)
    assert row["event"]["skipped"]
    assert row["comment"] == "does not display\nboth are old ← b u p"


def test_return_the_whole_query(live: Live) -> None:
    live.project(queries=1, documents=6)
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    ready(page)
    page.keyboard.press("s")
    page.get_by_role("button", name="Return the whole query").click()
    expect(page.get_by_text("returned")).to_be_visible()


def test_single_keys_can_be_switched_off(live: Live) -> None:
    live.project(queries=1, documents=6)
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    page.keyboard.press("?")
    page.get_by_label("Use single-key shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(200)
    assert live.logged(task) == []
    page.get_by_role("button", name="Left is better").click()
    expect(page.locator("#progress")).to_contain_text("1 judged")


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)


def test_cards_pictures_and_html(live: Live) -> None:
    """Each kind of document is drawn in its frame."""
    with live.store.write() as tx:
        texts.add_image(tx, "abc", "image/png", PIXEL)
    documents = (
        DocumentRecord(
            "card", "Kettle", "card", fields={"price": "29.90", "color": "red"}, image="abc"
        ),
        DocumentRecord("picture", "A picture", "image", image="abc"),
        DocumentRecord(
            "page", "A page", "html", "<h2>Heading</h2><p style='color: #123456'>words</p>"
        ),
    )
    live.add_project("books", [QueryRecord("q0", "kettle", "", documents)], tool="grades")
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    titles = set()
    while not page.url.endswith("/done"):
        ready(page)
        frame = page.frame_locator("#left iframe:not(.hidden)")
        title = page.locator("#left-title").inner_text()
        titles.add(title)
        if title == "A page":
            expect(frame.get_by_role("heading", name="Heading")).to_be_visible()
            expect(frame.get_by_text("words")).to_have_css("color", "rgb(18, 52, 86)")
        else:
            assert frame.locator("img").evaluate("i => i.complete && i.naturalWidth") == 1
        if title == "Kettle":
            expect(frame.get_by_text("29.90")).to_be_visible()
        answer(page, "3")
    assert titles == {"Kettle", "A picture", "A page"}
