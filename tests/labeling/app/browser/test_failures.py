"""Undo, reload, two tabs, network failures, a lost login: every judgment is stored once."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from firstpage.labeling.app.store import logins, tasks
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.browser.actions import answer, ready, shown
from tests.labeling.app.browser.live import Live
from tests.narrow import present


def open_judging_page(live: Live) -> tuple[Page, int]:
    live.project(queries=1, documents=6)
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    return page, task


def go_offline(page: Page) -> None:
    """Take a page offline, and wait until it knows: on a busy machine a key may come first."""
    page.context.set_offline(True)
    page.wait_for_function("() => !navigator.onLine")


def leave_offline(page: Page) -> None:
    """Close a page that is offline, which sends nothing more: leaving it may take it online first."""
    page.evaluate("() => { window.fetch = () => new Promise(() => {}); }")
    page.goto("about:blank")
    page.close()


def pair(page: Page) -> tuple[str, str]:
    return shown(page, "left"), shown(page, "right")


def test_undo_shows_the_question_again(live: Live) -> None:
    page, task = open_judging_page(live)
    first = pair(page)
    page.keyboard.press("u")
    expect(page.locator("#status")).to_have_text("There is nothing to undo.")
    answer(page, "ArrowLeft")
    second = pair(page)
    answer(page, "ArrowRight")
    answer(page, "u")
    assert pair(page) == second
    answer(page, "u")
    assert pair(page) == first
    expect(page.locator("#progress")).to_contain_text("0 judged")
    assert [row["event"]["event"] for row in live.logged(task)] == [
        "judged",
        "judged",
        "undone",
        "undone",
    ]


def comment(page: Page, text: str) -> None:
    ready(page)
    page.keyboard.press("c")
    page.locator("#comment-text").fill(text)
    page.get_by_role("button", name="Save").click()


def test_escape_keeps_a_typed_comment(live: Live) -> None:
    page, task = open_judging_page(live)
    ready(page)
    page.keyboard.press("c")
    page.locator("#comment-text").fill("half a thought")
    page.keyboard.press("Escape")
    ready(page)
    page.keyboard.press("c")
    expect(page.locator("#comment-text")).to_have_value("half a thought")
    page.locator("#comment-text").fill("not this")
    page.get_by_role("button", name="Cancel").click()
    answer(page, "ArrowLeft")
    (row,) = live.logged(task)
    assert row["comment"] == "half a thought"


def test_undo_is_confirmed_and_keeps_comments(live: Live) -> None:
    """A comment belongs to its question, also to the one that was open before the undo."""
    page, task = open_judging_page(live)
    comment(page, "about the first")
    answer(page, "ArrowLeft")
    comment(page, "about the second")
    answer(page, "u")
    expect(page.locator("#status")).to_have_text("Undone")
    expect(page.locator("[data-action=comment]")).to_have_attribute("aria-pressed", "true")
    answer(page, "ArrowLeft")
    page.reload()
    answer(page, "ArrowRight")
    answer(page, "ArrowRight")
    comments = [row["comment"] for row in live.logged(task) if row["event"]["event"] == "judged"]
    assert comments == ["about the first", "about the first", "about the second", None]


def test_a_comment_stays_with_its_question_after_a_conflict(live: Live) -> None:
    page, task = open_judging_page(live)
    other = live.watched(page.context.new_page())
    other.goto(page.url)
    comment(other, "about the first")
    answer(page, "ArrowLeft")
    other.keyboard.press("ArrowRight")
    expect(other.locator("#notice")).to_contain_text("already answered")
    expect(other.locator("#notice")).to_contain_text("“about the first”")
    expect(other.locator("[data-action=comment]")).to_have_attribute("aria-pressed", "false")
    answer(other, "ArrowRight")
    assert [row["comment"] for row in live.logged(task)] == [None, None]


def test_judging_resumes_after_reload_and_on_another_device(live: Live) -> None:
    page, task = open_judging_page(live)
    answer(page, "ArrowLeft")
    answer(page, "ArrowRight")
    expected = pair(page)
    page.reload()
    ready(page)
    assert pair(page) == expected
    expect(page.locator("#progress")).to_contain_text("2 judged")
    other = live.open(f"/tasks/{task}")
    ready(other)
    assert pair(other) == expected


def test_a_second_tab_gets_a_conflict_message(live: Live) -> None:
    page, task = open_judging_page(live)
    other = live.watched(page.context.new_page())
    other.goto(page.url)
    ready(other)
    answer(page, "ArrowLeft")
    other.keyboard.press("ArrowRight")
    expect(other.locator("#notice")).to_contain_text("already answered")
    ready(other)
    assert pair(other) == pair(page)
    assert len(live.logged(task)) == 1
    answer(other, "ArrowRight")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [1, -1]


def test_a_double_click_answers_once(live: Live) -> None:
    page, task = open_judging_page(live)
    page.get_by_role("button", name="Left is better").dblclick()
    page.keyboard.down("ArrowLeft")
    for _ in range(5):
        page.keyboard.down("ArrowLeft")  # held down: the browser repeats the event
    page.keyboard.up("ArrowLeft")
    expect(page.locator("#status")).to_have_text("Saved")
    ready(page)
    page.wait_for_timeout(150)
    assert 1 <= len(live.logged(task)) <= 2
    assert [row["seq"] for row in live.logged(task)] == list(range(len(live.logged(task))))


def test_network_failures_lose_no_answer(live: Live) -> None:
    page, task = open_judging_page(live)
    go_offline(page)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#status")).to_have_text("Not saved yet")
    expect(page.locator("#notice")).to_contain_text("Your answer is saved")
    assert live.logged(task) == []
    page.keyboard.press("ArrowRight")  # no other answer is accepted meanwhile
    page.context.set_offline(False)
    expect(page.locator("#status")).to_have_text("Saved")
    expect(page.locator("#notice")).to_be_hidden()
    assert [row["event"]["outcome"] for row in live.logged(task)] == [1]
    assert page.evaluate("Object.keys(localStorage).filter(k => k.includes('outbox')).length") == 0


def test_a_document_that_failed_to_load_is_requested_again(live: Live) -> None:
    live.project(queries=1, documents=6)
    page = live.watched(live.context("ada").new_page())
    tried: set[str] = set()

    def stumble(route: Route) -> None:
        if route.request.url in tried:
            route.continue_()
        else:
            tried.add(route.request.url)
            route.abort()

    page.route("**/documents/*", stumble)
    page.goto(f"{live.url}/tasks/{live.task('books', 'ada')}")
    ready(page)
    expect(page.frame_locator("#left iframe:not(.hidden)").locator("p").first).to_be_visible()
    assert tried


def test_an_outdated_stored_answer_is_dropped_with_a_message(live: Live) -> None:
    """The question was answered elsewhere in the meantime."""
    page, task = open_judging_page(live)
    go_offline(page)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#status")).to_have_text("Not saved yet")
    leave_offline(page)
    answer(live.open(f"/tasks/{task}"), "ArrowRight")
    reopened = live.watched(live.contexts[0].new_page())
    reopened.context.set_offline(False)
    reopened.goto(f"{live.url}/tasks/{task}")
    ready(reopened)
    expect(reopened.locator("#notice")).to_contain_text("already answered")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [-1]


def test_a_lost_response_does_not_record_an_answer_twice(live: Live) -> None:
    """The server recorded the answer but the response is lost: the same key is sent again."""
    page, task = open_judging_page(live)
    dropped: list[int] = []

    def drop(route: Route) -> None:
        if dropped:
            route.continue_()
        else:
            dropped.append(route.fetch().status)
            route.abort()

    page.route("**/answers", drop)
    answer(page, "ArrowLeft")
    assert dropped == [200]
    assert len(live.logged(task)) == 1


def test_an_unsent_answer_of_a_closed_tab_is_sent_later(live: Live) -> None:
    page, task = open_judging_page(live)
    go_offline(page)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#status")).to_have_text("Not saved yet")
    leave_offline(page)
    reopened = live.watched(live.contexts[0].new_page())
    reopened.context.set_offline(False)
    reopened.goto(f"{live.url}/p/books")  # on another page
    reopened.wait_for_function("() => !Object.keys(localStorage).some(k => k.includes('outbox'))")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [-1]


def test_a_refused_answer_of_a_closed_tab_is_reported_on_any_page(live: Live) -> None:
    page, task = open_judging_page(live)
    go_offline(page)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#status")).to_have_text("Not saved yet")
    leave_offline(page)
    answer(live.open(f"/tasks/{task}"), "ArrowLeft")  # meanwhile, on another device
    reopened = live.watched(live.contexts[0].new_page())
    reopened.context.set_offline(False)
    reopened.goto(f"{live.url}/p/books")
    expect(reopened.get_by_role("alert")).to_contain_text("from an earlier visit was not saved")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [1]


def test_returning_a_query_without_a_connection_says_so(live: Live) -> None:
    page, task = open_judging_page(live)
    go_offline(page)
    for _ in range(2):
        page.keyboard.press("s")
        page.get_by_role("button", name="Return the whole query").click()
        expect(page.locator("#notice")).to_contain_text("The query was not returned")
    page.context.set_offline(False)
    answer(page, "ArrowLeft")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [1]


def test_returning_a_query_after_the_session_ended_says_so(live: Live) -> None:
    page, task = open_judging_page(live)
    person = live.person("ada")
    with live.store.write() as tx:
        logins.end_all(tx, person.id)
    page.keyboard.press("s")
    page.get_by_role("button", name="Return the whole query").click()
    expect(page.locator("#notice")).to_contain_text("your last action was not saved")
    expect(page.get_by_role("link", name="sign in, then repeat it")).to_be_visible()
    with live.store.read() as tx:
        assert present(tasks.get(tx, task)).state == "open"


def test_a_changed_answer_is_recorded_once_if_the_response_is_lost(live: Live) -> None:
    page, task = open_judging_page(live)
    answer(page, "ArrowLeft")
    page.goto(f"{live.url}/tasks/{task}/judgments")
    dropped: list[int] = []

    def drop(route: Route) -> None:
        if dropped:
            route.continue_()
        else:
            dropped.append(route.fetch().status)
            route.abort()

    page.route("**/revise", drop)
    with page.expect_navigation():
        page.get_by_label("Answer 1", exact=True).select_option("-1")
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert dropped == [200]
    events = [row["event"]["event"] for row in live.logged(task)]
    assert events == ["judged", "revised"]


def test_a_change_without_a_connection_is_sent_later(live: Live) -> None:
    """Also from another page, which says that it waits."""
    page, task = open_judging_page(live)
    answer(page, "ArrowLeft")
    page.goto(f"{live.url}/tasks/{task}/judgments")
    page.route("**/revise", lambda route: route.abort())
    page.get_by_label("Answer 1", exact=True).select_option("-1")
    expect(page.locator("#save-status")).to_contain_text("Not saved yet")
    page.goto(f"{live.url}/p/books")
    expect(page.get_by_text("will be sent automatically")).to_be_visible()
    page.unroute("**/revise")
    page.wait_for_function("() => !Object.keys(localStorage).some(k => k.includes('outbox'))")
    expect(page.get_by_text("will be sent automatically")).to_have_count(0)
    assert [row["event"]["event"] for row in live.logged(task)] == ["judged", "revised"]


def test_signing_out_while_judging_keeps_the_answer(live: Live) -> None:
    page, task = open_judging_page(live)
    person = live.person("ada")
    with live.store.write() as tx:
        logins.end_all(tx, person.id)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#notice")).to_contain_text("You were signed out")
    with live.store.write() as tx:
        token, _ = logins.start(tx, person)
    page.context.add_cookies([{"name": "firstpage_login", "value": token, "url": live.url}])
    page.get_by_role("link", name="sign in to send it").click()
    ready(page)
    expect(page.locator("#progress")).to_contain_text("1 judged")
    assert [row["event"]["outcome"] for row in live.logged(task)] == [1]
    # A document that was prefetched while nobody was signed in is refused, and loaded again.
    live.complaints[:] = [text for text in live.complaints if "frame-ancestors" not in text]


def test_reviewing_and_changing_an_answer(live: Live) -> None:
    page, task = open_judging_page(live)
    answer(page, "ArrowLeft")
    answer(page, "ArrowLeft")
    page.goto(f"{live.url}/tasks/{task}/judgments")
    box = page.get_by_label("Answer 1", exact=True)
    expect(box).to_have_value("1")
    with page.expect_navigation():
        box.select_option("-1:left")
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("Answer 1", exact=True)).to_have_value("-1:left")
    last = live.logged(task)[-1]["event"]
    assert (last["event"], last["index"], last["outcome"]) == ("revised", 0, -1)
    page.get_by_role("link", name="Continue judging").click()
    ready(page)


WHOLE = """select => {
  const free = select.cloneNode(true);  // with as much room as its words need
  free.style.inlineSize = "max-content";
  document.body.append(free);
  const needed = free.offsetWidth;
  free.remove();
  return select.offsetWidth >= needed;
}"""


def test_answers_in_the_review_are_distinguishable(live: Live) -> None:
    """`Left is better` and `Left is bad` are fully visible beside long titles."""
    title = "A long title of a document about green tea and how to brew it at home, " * 2
    documents = tuple(DocumentRecord(f"d{i}", title, body="text") for i in range(6))
    live.add_project("books", [QueryRecord("q0", "query 0", "", documents)], setting={"k": 3})
    ada, task = live.client("ada"), live.task("books", "ada")
    ada.headers["Host"] = "127.0.0.1"
    state = ada.state(task)
    state = ada.answer(state, -1, bad=[state["question"]["left"]["key"]]).json()
    ada.answer(state, 1)
    page = live.open(f"/tasks/{task}/judgments")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for box, text in zip(
            page.locator("select").all(), ("Left is bad", "Left is better"), strict=True
        ):
            assert box.evaluate("s => s.selectedOptions[0].text") == text
            assert box.evaluate(WHOLE)
            shown = box.bounding_box()
            assert shown is not None
            assert shown["x"] + shown["width"] <= width


def test_a_closed_project_shows_a_message(live: Live) -> None:
    from firstpage.labeling.app.store import projects

    page, task = open_judging_page(live)
    lead = live.person("lena")
    with live.store.write() as tx:
        project = projects.by_slug(tx, "books")
        assert project is not None
        projects.set_state(tx, project, "closed", lead)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#notice")).to_contain_text("closed")
    assert live.logged(task) == []
