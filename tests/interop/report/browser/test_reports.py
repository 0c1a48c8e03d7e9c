"""Pages of reports in a browser: accessible, with contents that lead somewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.dcglearn import Utility
from firstpage.interop.report.measure import utility_page
from firstpage.interop.report.rankers import explanation_page
from firstpage.interop.report.results import render
from firstpage.learning.models.explanation import explain
from tests.demo.finished import Once, finished_demo
from tests.labeling.app.browser.axe import expect_accessible

DATA = fp.Synthetic(queries=20, docs=8, features=5, grades=3, seed=1).dataset()
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


def comparison() -> str:
    rng = np.random.default_rng(0)
    systems = {name: DATA.y + rng.normal(0, noise, DATA.n_docs) for noise, name in enumerate("abc")}
    return render(fp.compare(systems, DATA, measures=["NDCG@5", "AP"], rounds=200), "html", "data")


def evaluation() -> str:
    return render(fp.evaluate(DATA.y, DATA, measures=["NDCG@5", "AP"]), "html", "data")


def explanation() -> str:
    return explanation_page(explain(fp.ListNet().fit(DATA)), 5)


def measure() -> str:
    return utility_page(Utility.from_gains(gains=[0, 1, 2], discounts=[1, 0.5]), "m")


@pytest.mark.parametrize("report", [comparison, evaluation, explanation, measure])
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_reports_are_accessible(
    report: Callable[[], str], size: dict[str, int], browser: Any
) -> None:
    page = browser.new_page(viewport=size)
    page.set_content(report())
    expect_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_the_report_of_the_demo_is_accessible(
    size: dict[str, int], browser: Any, once: Once
) -> None:
    page = browser.new_page(viewport=size)
    page.set_content((finished_demo(once)[0] / "report.html").read_text())
    expect_accessible(page)
    page.close()


def test_contents_lead_to_the_sections(browser: Any) -> None:
    page = browser.new_page(viewport=DESKTOP)
    page.set_content(comparison())
    links = page.locator(".contents a")
    assert links.all_inner_texts() == page.locator("h2").all_inner_texts()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Means"
    for number in range(links.count()):
        target = links.nth(number).get_attribute("href")
        assert page.locator(f"h2{target}").inner_text() == links.nth(number).inner_text()
    links.last.click()
    assert page.locator("h2").last.is_visible()
    assert page.evaluate("document.querySelector('.contents').getBoundingClientRect().top >= 0")
    page.emulate_media(media="print")
    assert page.locator(".contents").evaluate("e => getComputedStyle(e).position") == "static"
    page.close()
