"""Pages on which answers are looked at again: one's own judgments, machines, and the webhook."""

from __future__ import annotations

from playwright.sync_api import expect

from firstpage.labeling.app.machines import judge
from firstpage.labeling.assessors import Function
from tests.labeling.app.browser.axe import expect_accessible
from tests.labeling.app.browser.live import Live


def test_reasons_and_aspects_are_changed_on_review(live: Live) -> None:
    options = {"reasons": ["clear", "long"], "aspects": ["trust"]}
    live.project(tool="grades", documents=3, queries=1, setting={"k": 2}, options=options)
    task, ada = live.task("books", "ada"), live.client("ada")
    assert ada.answer(ada.state(task), 1, reasons=["clear"], aspects={"trust": 2}).is_success
    page = live.open(f"/tasks/{task}/judgments")
    expect_accessible(page)
    expect(page.get_by_label("clear")).to_be_checked()
    page.get_by_label("long").check()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("long")).to_be_checked()
    with page.expect_navigation():  # a change is saved, then the page is loaded again
        page.get_by_label("Trust, answer 1").select_option("Perfect")
    expect(page.locator("[data-revise]").first).to_have_attribute("data-seq", "3")
    (row,) = ada.get(f"/api/v1/tasks/{task}/judgments").json()["judgments"]
    assert (row["outcome"], row["reasons"], row["aspects"]) == (1, ["clear", "long"], {"trust": 4})
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_machines_are_compared_with_people(live: Live) -> None:
    project = live.project(assessors=("ada", "bo", "robot"), queries=3, documents=5)
    for login in ("ada", "bo"):
        for number in range(3):
            live.client(login).judge(live.task("books", login, number))
    judge(live.store, project, live.person("robot"), Function(lambda q, a, b: 1))
    page = live.open("/p/books/agreement", login="lena")
    page.get_by_role("link", name="Machines against people").click()
    expect(page.get_by_role("heading", name="robot, side by side")).to_be_visible()
    expect(page.locator("figure svg")).to_be_visible()
    expect_accessible(page)
    page.get_by_label("Margin").fill("1")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Trusted.", exact=True)).to_be_visible()
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_webhook_is_set_and_removed(live: Live) -> None:
    live.project(queries=1)
    page = live.open("/p/books/setup", login="lena")
    page.get_by_label("Address").fill("https://example.org/hook")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_text("The webhook is set.")).to_be_visible()
    assert len(page.get_by_label("Secret").input_value()) > 30
    expect_accessible(page)
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Set", exact=True)).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("The webhook is removed")).to_be_visible()
