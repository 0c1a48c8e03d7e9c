"""Numbers and charts for leads: agreement by assessor, grades, days, systems, questions, pace."""

from __future__ import annotations

import pytest

from firstpage.labeling.app.analysis import charts, figures
from tests.labeling.app.graded_lists import graded_queries, judge_first, lists_project
from tests.labeling.app.site import Site

API = "/api/v1/projects/books"


def test_agreement_of_every_two_assessors(site: Site) -> None:
    site.project(assessors=("ada", "bo", "cy"), queries=1, documents=4)
    for login, sign in (("ada", 1), ("bo", 1), ("cy", -1)):
        better = lambda left, right, sign=sign: sign if left < right else -sign  # noqa: E731
        site.client(login).judge(site.task("books", login), better)
    with site.store.read() as tx:
        from firstpage.labeling.app.store import projects

        matrix = charts.agreement_matrices(tx, projects.find_project(tx))["pairs"]
    cells = {(c["first"], c["second"]): c["agreement"] for c in matrix["cells"]}
    assert cells["ada", "bo"] == cells["bo", "ada"] == 1
    assert cells["ada", "cy"] == cells["bo", "cy"] == 0
    drawn = charts.agreement_heat_map(matrix, "Agreement <of> assessors")
    assert drawn.count('class="heat"') == 6
    assert "Agreement &lt;of&gt; assessors" in drawn
    page = site.client("lena").get("/p/books/agreement").text
    assert page.count('class="heat"') == 6
    assert "Who agrees with whom" in page


def test_grades_of_two_assessors_are_counted_in_both_orders(site: Site) -> None:
    site.project(assessors=("ada", "bo"), queries=1, documents=3, tool="grades")
    site.client("ada").judge(site.task("books", "ada"), lambda left, _: int(left[1]))
    site.client("bo").judge(site.task("books", "bo"), lambda left, _: 2)
    with site.store.read() as tx:
        from firstpage.labeling.app.store import projects

        counts = charts.grade_counts(tx, projects.find_project(tx))
    assert counts is not None
    assert [counts[i][2] for i in range(5)] == [1, 1, 2, 0, 0]
    assert [counts[2][i] for i in range(5)] == [1, 1, 2, 0, 0]
    page = site.client("lena").get("/p/books/agreement").text
    assert "Grades of two assessors" in page


def test_wins_by_system_have_an_interval_over_queries(site: Site) -> None:
    project = lists_project(site, graded_queries(8))
    judge_first(site, project, "ada", 8)
    with site.store.read() as tx:
        rows = charts.system_wins(tx, project)
    assert {row["system"] for row in rows} == {"l0", "l1"}
    first, second = rows
    assert first["wins"] == second["losses"]
    assert first["wins"] + first["ties"] + first["losses"] == 8 == first["queries"]
    assert first["value"] == pytest.approx((first["wins"] + first["ties"] / 2) / 8)
    assert first["low"] <= first["value"] <= first["high"]
    assert first["value"] + second["value"] == pytest.approx(1)
    assert "Which system wins" in site.client("lena").get("/p/books/measure").text


def test_questions_are_counted_apart_and_probes_measure_transitivity(site: Site) -> None:
    setting = {"k": 4, "strategy": "insertion", "probe_rate": 0.5}
    site.project(queries=3, documents=6, setting=setting)
    ada, lena = site.client("ada"), site.client("lena")
    for number in range(3):
        ada.judge(site.task("books", "ada", number))
    counts = lena.get(f"{API}/questions").json()
    total = counts["all"]
    assert total["asked"] + total["implied"] + total["pruned"] == 3 * 15
    assert total["probes"]["confirmed"] == total["transitivity"]["total"] > 0
    assert total["transitivity"]["value"] == 1
    assert [row["name"] for row in counts["assessors"]] == ["Ada"]
    page = lena.get("/p/books/dashboard").text
    assert "implied pairs confirmed when asked" in page
    assert "Answers by day" in page


def test_the_expected_end_follows_from_the_pace(site: Site) -> None:
    site.project(queries=2, documents=6)
    ada, lena, task = site.client("ada"), site.client("lena"), site.task("books", "ada")
    assert lena.get(f"{API}/progress").json()["pace"] == {"per_day": 0, "end": None}
    for _ in range(4):
        ada.answer(ada.state(task))
        site.clock.pass_(hours=12)
    progress = lena.get(f"{API}/progress").json()
    assert progress["pace"]["per_day"] == pytest.approx(2)
    days = progress["all"]["expected_remaining"] / 2
    from datetime import timedelta

    end = (site.clock() + timedelta(days=days)).date().isoformat()
    assert progress["pace"]["end"] == end
    assert end in lena.get("/p/books/progress").text
    site.clock.pass_(days=10)
    assert lena.get(f"{API}/progress").json()["pace"]["end"] is None, "nobody works any more"
    assert figures.PACE_DAYS == 7


def test_people_have_the_time_of_their_last_answer(site: Site) -> None:
    site.project(queries=1)
    ada = site.client("ada")
    site.clock.pass_(hours=1)
    ada.answer(ada.state(site.task("books", "ada")))
    page = site.client("lena").get("/p/books/people").text
    assert "2026-03-01 13:00" in page
    assert "Ada" not in site.client("lena").get("/p/books/people?search=zoe").text
