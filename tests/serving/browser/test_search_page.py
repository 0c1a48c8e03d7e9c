"""The page to search and to compare: keyboard, permalinks, looks, hostile texts, feedback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from firstpage.serving import drift
from firstpage.serving.app import Serving
from firstpage.serving.event_log import EventLog
from firstpage.serving.served_index import IndexSource
from firstpage.serving.watched_model import WatchedModel
from tests.labeling.app.browser.axe import expect_accessible
from tests.serving.browser.conftest import LivePage
from tests.serving.texts import OVERRIDE, SCRIPT

PHONE = {"viewport": {"width": 360, "height": 640}, "is_mobile": True, "has_touch": True}


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_search_and_permalink(live: LivePage) -> None:
    page = live.open("/")
    expect(page.locator("#q")).to_be_focused()
    expect_accessible(page)
    page.keyboard.type("red shoes")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Results for red shoes")
    assert page.url == f"{live.url}/?q=red+shoes"
    headings = page.locator(".side > h2").all_inner_texts()
    assert headings == ["Model: ListNet", "First stage: BM25(k1=1.2, b=0.75)"]
    assert page.locator("#side0 .result").count() == page.locator("#side1 .result").count() == 10
    marks = {text.lower() for text in page.locator("mark").all_inner_texts()}
    assert marks == {"red", "shoes"}
    again = live.open("/?q=red+shoes")
    assert again.locator("main").inner_text() == page.locator("main").inner_text()


def test_the_first_page_says_what_can_be_searched(live: LivePage) -> None:
    page = live.open("/", **PHONE)
    text = page.locator("main").inner_text()
    for part in ("shop.index: 77 documents", "title, text", "BM25(k1=1.2, b=0.75)", "18 features"):
        assert part in text
    example = page.locator(".example").first
    words = example.inner_text()
    example.click()
    expect(page.locator("h1")).to_have_text(f"Results for {words}")
    assert page.locator(".result").count() > 0


def test_about_has_the_look_of_the_search(live: LivePage) -> None:
    for options in ({}, PHONE):
        page = live.open("/about", **options)
        expect(page.locator("#q")).to_be_visible()
        expect(page.locator("main")).to_contain_text("shop.index: 77 documents")
        expect(page.locator("pre").first).to_contain_text("/search?q=Shoes+for+the+winter")
        expect(page.locator("details pre")).not_to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect_accessible(page)
        page.keyboard.press("/")
        expect(page.locator("#q")).to_be_focused()


def test_the_page_of_drift(live: LivePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "INTERVAL", 0.0)
    monkeypatch.setattr(drift, "LEAST_ROWS", 1)
    live.open("/?q=red+shoes")
    for options in ({}, PHONE):
        page = live.open("/drift", **options)
        expect(page.locator("tbody tr").first).to_contain_text("Score")
        assert page.locator("tbody tr").count() > 5
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect_accessible(page)


def test_results_come_before_the_question_on_a_phone(asking: LivePage) -> None:
    page = asking.open(
        "/?q=red+shoes&depth=5", **{**PHONE, "viewport": {"width": 390, "height": 844}}
    )
    for element in ("#r0-1", ".ask button[value=left]"):
        expect(page.locator(element)).to_be_in_viewport(ratio=1)
    result, question = (page.locator(each).bounding_box() for each in ("#r0-1", ".ask"))
    assert result is not None
    assert question is not None
    assert result["y"] + result["height"] <= question["y"]
    assert question["height"] < 120
    expect_accessible(page)


def test_moves_are_marked_on_both_sides(live: LivePage) -> None:
    page = live.open("/?q=red+shoes&depth=20")
    for side, other in ((0, 1), (1, 0)):
        results = page.locator(f"#side{side} .result")
        for i in range(results.count()):
            name = results.nth(i).get_attribute("data-document")
            twin = page.locator(f"#side{other} .result").filter(
                has=page.locator(f"xpath=self::*[@data-document='{name}']")
            )
            text = results.nth(i).locator(".tag").inner_text()
            if twin.count() == 0:
                assert "▲" in text if side == 0 else "▼" in text
                continue
            by = int(twin.get_attribute("value")) - (i + 1)
            by = by if side == 0 else -by
            mark = "=" if by == 0 else f"▲ {by}" if by > 0 else f"▼ {-by}"
            assert text.startswith(mark), (side, i, text, by)


def test_keyboard(live: LivePage) -> None:
    page = live.open("/?q=red+shoes")
    page.keyboard.press("j")
    expect(page.locator("#r0-1")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#r0-2")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#r0-1")).to_be_focused()
    page.keyboard.press("l")
    expect(page.locator("#r1-1")).to_be_focused()
    assert page.locator(".twin").count() <= 1
    page.keyboard.press("ArrowLeft")
    details = page.locator("#r0-1 details").first
    page.keyboard.press("Enter")
    expect(details).to_have_attribute("open", "")
    expect(details.locator("tbody tr")).to_have_count(6)
    page.keyboard.press("Enter")
    expect(details).not_to_have_attribute("open", "")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("jk blue coat")
    assert page.locator("#q").input_value() == "jk blue coat"


def test_accessible_open_and_on_a_phone(live: LivePage) -> None:
    page = live.open("/?q=red+shoes&depth=5")
    for summary in page.locator("#r0-1 summary, #r1-2 summary").all():
        summary.click()
    expect_accessible(page)
    page.goto(f"{live.url}/?q=zzzz")
    expect(page.locator("main")).to_contain_text("No document matches this query.")
    expect_accessible(page)
    page = live.open("/?q=red+shoes&depth=5", **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = page.locator(".search button").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 344
    expect(page.locator("#r1-1")).not_to_be_in_viewport(ratio=0.5)
    page.get_by_role("link", name="First stage").tap()
    expect(page.locator("#r1-1")).to_be_in_viewport(ratio=0.5)
    expect_accessible(page)


def test_light_and_dark(live: LivePage) -> None:
    page = live.open("/?q=red+shoes", color_scheme="dark")
    back = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(back)
    page.get_by_role("button", name="Light or dark").click()
    light = page.evaluate(back)
    assert dark != light
    page.reload()
    assert page.evaluate(back) == light


def test_hostile_documents_are_only_text(live: LivePage) -> None:
    page = live.open("/?q=hostile&depth=10")
    for summary in page.locator("#side0 summary").all():
        summary.click()
    assert page.title() == "hostile · Firstpage"
    assert page.locator("main script, main img").count() == 0
    assert SCRIPT in page.locator("#side0").inner_text()
    text = page.locator("main").text_content() or ""
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert OVERRIDE.replace("\u202e", "") in text
    assert len(text) < 60_000
    assert page.locator(".cut").count() >= 4
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    for result in page.locator(".result").all():
        box = result.bounding_box()
        assert box is not None
        assert box["width"] < 700
    expect_accessible(page)
    page.goto(live.url + "/?" + "q=%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%20onfocus%3D")
    assert page.locator("main script").count() == 0
    assert page.locator("#q").input_value() == '<script>alert(1)</script>" onfocus='


def test_wrong_addresses_say_what_is_wrong(live: LivePage) -> None:
    page = live.open("/")
    for address in ("/?q=a&depth=0", "/?q=a&depth=x", "/?q=" + "a" * 1001):
        page.goto(live.url + address)
        expect(page.locator(".note.wrong")).to_be_visible()
        expect_accessible(page)


def test_a_preference(asking: LivePage, feedback: Path) -> None:
    page = asking.open("/?q=red+shoes&depth=5")
    assert page.locator(".side > h2").all_inner_texts() == ["Left page", "Right page"]
    assert page.locator(".tag").count() == 0
    expect_accessible(page)
    page.get_by_role("button", name="Left", exact=True).dblclick()
    expect(page.locator(".note.good")).to_contain_text("stored")
    expect_accessible(page)
    names = [heading.partition(":")[0] for heading in page.locator(".side > h2").all_inner_texts()]
    (row,) = rows(feedback, "preferences")
    assert names[0 if row["model_side"] == "left" else 1] == "Model"
    shown = [r.get_attribute("data-document") for r in page.locator("#side0 .result").all()]
    assert row["left"] == shown
    assert row["outcome"] == 1
    page.get_by_role("link", name="Hide the names").click()
    page.get_by_role("button", name="Right", exact=True).click()
    expect(page.locator(".note.good")).to_contain_text("the first one counts")
    assert len(rows(feedback, "preferences")) == 1


def test_sides_stay_within_a_session(asking: LivePage) -> None:
    context = asking.context()
    orders = []
    for _ in range(2):
        page = context.new_page()
        order = []
        for color in ("red", "blue", "green", "black", "white", "brown"):
            page.goto(f"{asking.url}/?q={color}+shoes&depth=1&show=names")
            order.append(page.locator(".side > h2").first.inner_text()[:5])
        orders.append(order)
    assert orders[0] == orders[1]


def test_judge_these(asking: LivePage, feedback: Path) -> None:
    page = asking.open("/?q=hostile+hat")
    page.get_by_role("button", name="Judge these").dblclick()
    expect(page.locator(".note.good")).to_contain_text("stored for judging")
    assert [row["text"] for row in rows(feedback, "queries")] == ["hostile hat"]
    names = [row["document"] for row in rows(feedback, "documents")]
    assert SCRIPT in names
    assert len(names) == len(set(names))


def test_a_page_of_another_site_cannot_store(asking: LivePage, feedback: Path) -> None:
    page = asking.open("/?q=red+shoes")
    status = page.evaluate(
        """async () => {
          const form = new URLSearchParams(new FormData(document.querySelector("form[method=post]")));
          form.set("outcome", "left");
          form.set("csrf", "0".repeat(64));
          return (await fetch("/preference", { method: "POST", body: form })).status;
        }"""
    )
    assert status == 403
    other = asking.context().new_page()
    other.set_content(
        f'<form method=post action="{asking.url}/preference"><input name=q value="red shoes">'
        "<input name=outcome value=left><button>go</button></form>"
    )
    other.get_by_role("button").click()
    expect(other.locator("h1")).to_have_text("Not stored")
    assert not rows(feedback, "preferences")


def test_the_page_logs_what_is_opened(
    shop: tuple[Path, Path], tmp_path: Path, browser: Any
) -> None:
    log = EventLog(tmp_path / "events")
    watched = WatchedModel(shop[1], source=IndexSource(shop[0]))
    watched.reload()
    live = LivePage(Serving(watched, poll=None, events=log), browser)
    page = live.open("/?q=red+shoes&depth=5")
    assert page.locator(".side").count() == 1
    expect_accessible(page)
    with page.expect_response("**/events") as answer:
        page.locator("#r0-2 summary").last.click()
    assert answer.value.json() == {"stored": 1, "known": 0}
    page.locator("#r0-2 summary").last.click()
    page.locator("#r0-2 summary").last.click()  # opened again: not sent again
    live.stop()
    assert not live.problems
    query, click = rows(tmp_path / "events", "events")
    assert query["user_query"] == "red shoes"
    assert click["query_id"] == query["query_id"]
    assert click["client_id"] == query["client_id"]
    assert click["event_attributes"] == {
        "object": {"object_id": query["query_response_hit_ids"][1]},
        "position": {"ordinal": 2},
    }
