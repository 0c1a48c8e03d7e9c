"""A lead settles a dispute in the browser, and reads the pages on a phone."""

from __future__ import annotations

from playwright.sync_api import expect

from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.browser.live import Live
from tests.labeling.app.site import add_query
from tests.labeling.app.test_adjudication import swapped

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
LONG = "Donaudampfschifffahrtsgesellschaftskapitän" * 3


def disputed(live: Live) -> None:
    """Create two queries; two assessors disagree about the first two documents of one."""
    live.project(assessors=("ada", "bo"), queries=1, documents=5)
    live.client("ada").judge(live.task("books", "ada"))
    live.client("bo").judge(live.task("books", "bo"), swapped)


def test_a_dispute_is_settled_and_undone(live: Live) -> None:
    disputed(live)
    page = live.open("/p/books/adjudicate", login="lena")
    first = page.locator("details.dispute").first
    expect(first).to_contain_text("Ada")
    expect(first).to_contain_text("Bo")
    bodies = {
        first.frame_locator(f"section:nth-of-type({n}) iframe").locator("body").inner_text()
        for n in (1, 2)
    }
    assert all("Body" in body for body in bodies), "both documents are shown"
    assert len(bodies) == 2
    first.get_by_label("Right is better").check()
    first.get_by_label("Reason").fill("It answers <b>all</b> of the question.")
    first.get_by_role("button", name="Settle").click()
    expect(page.get_by_text("The verdict is recorded")).to_be_visible()
    verdicts = page.get_by_role("region", name="Verdicts")
    expect(verdicts).to_contain_text("It answers <b>all</b> of the question.")
    verdicts.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("The verdict is undone")).to_be_visible()
    page.locator("details.dispute").first.get_by_role("link", name="is better").first.click()
    expect(page.get_by_role("heading", name="Others on the same question")).to_be_visible()
    expect(page.locator("iframe")).to_have_count(2)


def test_answers_are_filtered_in_the_browser(live: Live) -> None:
    disputed(live)
    page = live.open("/p/books/answers", login="lena")
    page.get_by_label("Assessor", exact=True).select_option("bo")
    page.get_by_label("another assessor disagrees").check()
    page.get_by_role("button", name="Filter").click()
    rows = page.get_by_role("region", name="Answers").locator("tbody tr")
    expect(rows.first).to_contain_text("disputed")
    assert {"Title 0", "Title 1"} == set(rows.first.locator("[dir=auto]").all_inner_texts()[1:])
    rows.first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="query 0")).to_be_visible()


def test_pages_of_a_lead_fit_a_phone(live: Live) -> None:
    """The page itself never scrolls sideways, also with long words; tables scroll in their box."""
    disputed(live)
    project = live.project(
        "films", assessors=("ada",), queries=0, opened=True, setting={"k": 2, "strategy": "heap"}
    )
    with live.store.write() as tx:
        documents = tuple(DocumentRecord(f"{LONG}{i}", LONG, body=LONG) for i in range(3))
        add_query(tx, project.id, QueryRecord(LONG[:150], LONG, LONG, documents), 0)
    page = live.open("/", login="lena", **PHONE)
    for path in ("books/adjudicate", "books/agreement", "films/queries"):  # all: test_layout
        page.goto(f"{live.url}/p/{path}")
        wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, f"{path} is {wide} px too wide"
    page.goto(f"{live.url}/p/books/people/{live.person('ada').id}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(f"{live.url}/p/books/answers")
    page.get_by_role("region", name="Answers").get_by_role("link").first.click()
    expect(page.locator("iframe").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
