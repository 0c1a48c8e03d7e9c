"""Analysis of experiments: by hand, without a difference, with one, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.clicks.interleaving import INTERLEAVING

DAY = 86_400_000
OLD, NEW = [*range(10)], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]


def log(pages: list[dict[str, Any]], **told: Any) -> fp.Sessions:
    """Return sessions of pages: user, query, documents, clicks, and what an experiment tells."""
    columns: dict[str, list[Any]] = {
        n: [] for n in ("page", "query", "document", "clicked", "user", "time", "arm", "value")
    }
    records = []
    base = {"experiment": "try", "digest": "1", "method": "team-draft", "arms": ["old", "new"]}
    for number, page in enumerate(pages):
        record = base | told | page.get("told", {})
        size = len(page["documents"])
        teams = record.get("teams") or [record.get("arm", -1)] * size
        records.append(json.dumps(record))
        rows = {
            "page": number, "query": page.get("query", "fox"), "user": page["user"],
            "time": page.get("day", 0) * DAY + number,
        }  # fmt: skip
        for name, value in rows.items():
            columns[name] += [value] * size
        columns["document"] += page["documents"]
        columns["clicked"] += page["clicks"]
        columns["value"] += page.get("values", page["clicks"])
        columns["arm"] += [{0: "old", 1: "new"}.get(team, "") for team in teams]
    table = {text: n for n, text in enumerate(dict.fromkeys(records))}
    codes = np.array([table[text] for text in records], np.int32)
    return replace(fp.Sessions.from_arrays(**columns), experiment=codes, experiments=tuple(table))


def visit(user: str, clicks: list[int], teams: list[int], **more: Any) -> dict[str, Any]:
    told = {"teams": teams} | more.pop("told", {})
    documents = [f"d{n}" for n in range(len(clicks))]
    return {"user": user, "documents": documents, "clicks": clicks, "told": told, **more}


def simulated(method: Any, probability: Any, seed: int, n_pages: int = 400) -> fp.Sessions:
    """Return a log whose clicks have probabilities by document and rank."""
    rng = np.random.default_rng(seed)
    pages = []
    for number in range(n_pages):
        shown = fp.clicks.interleave([OLD, NEW], method, 6, key=str(number), seed=seed)
        p = [probability(d) / (1 + rank) for rank, d in enumerate(shown.documents)]
        clicks = (rng.random(6) < p).astype(int).tolist()
        told = {**shown.to_dict()}
        documents = [f"d{d}" for d in shown.documents]
        day = number * 5 // n_pages
        pages.append({"user": f"u{number}", "documents": documents, "clicks": clicks,
                      "told": told, "day": day})  # fmt: skip
    return log(pages)


def test_wins_losses_and_ties_by_hand() -> None:
    sessions = log(
        [
            visit("a", [1, 1, 1], [1, 0, 1]),  # new: 2 to 1
            visit("a", [1, 0, 0], [0, 1, 0], query="hen"),  # old
            visit("b", [0, 0, 0], [1, 0, 1]),  # tie
            visit("b", [1, 1, 1], [1, 0, -1], day=1),  # the same list again: still a tie
            visit("c", [0, 1, 0], [0, 1, -1], day=2),  # new
        ]
    )
    analysis = fp.clicks.analyze(sessions)
    (row,) = analysis.comparisons
    assert (row["wins"], row["losses"], row["ties"]) == (2, 1, 1)
    assert (row["credit"], row["of_first"]) == (4.0, 3.0)
    assert row["by"]["query"] == {"wins": 1, "losses": 1, "ties": 0}
    assert row["by"]["visitor"] == {"wins": 1, "losses": 0, "ties": 2}
    assert [(day["date"], day["wins"], day["losses"]) for day in analysis.days] == [
        ("1970-01-01", 1, 1), ("1970-01-03", 2, 1),
    ]  # fmt: skip
    low, high = fp.clicks.win_sequence([2], [1])
    assert (row["low"], row["high"]) == (float(low[0]), float(high[0]))
    assert analysis.counts == {"pages": 5, "comparisons": 4, "visitors": 3, "clicks": 8}
    assert "new is not decided against old: it has 66.7% of the 3 comparisons" in str(analysis)
    assert "first results are old 2, new 2" in analysis.checks["sample_ratio"]["text"]
    assert "<svg" in analysis.drawing()
    json.dumps(analysis.to_dict())


def test_values_of_actions_count_instead_of_clicks() -> None:
    sessions = log([visit("a", [1, 1, 0], [1, 0, 0], values=[1, 3, 0])])
    assert fp.clicks.analyze(sessions).comparisons[0]["ties"] == 1
    assert fp.clicks.analyze(sessions, value="values").comparisons[0]["losses"] == 1


@pytest.mark.parametrize("method", [name for name in INTERLEAVING if name != "balanced"])
def test_without_a_difference_hardly_any_log_is_decided(method: Any) -> None:
    decided = [
        fp.clicks.analyze(simulated(method, lambda _: 0.5, seed, 250)).comparisons[0]["winner"]
        for seed in range(15)
    ]
    assert sum(winner is not None for winner in decided) <= 3


@pytest.mark.parametrize("method", INTERLEAVING)
def test_a_difference_is_decided_for_the_better_ranking(method: Any) -> None:
    analysis = fp.clicks.analyze(simulated(method, lambda d: 0.9 * (d >= 7), 1, 1500))
    estimate = analysis.comparisons[0]["estimate"]
    assert estimate > analysis.comparisons[0]["null"]
    if method != "pairwise":  # the bound of its credit is wide
        assert analysis.comparisons[0]["winner"] == "new"
    assert ("balanced" in analysis.checks) == (method == "balanced")


def ab(user: str, arm: int, clicks: list[int], **more: Any) -> dict[str, Any]:
    return visit(user, clicks, [], told={"arm": arm, "method": "ab"}, **more)


def test_a_b_counts_visitors_by_their_first_session() -> None:
    pages = [ab(f"u{n}", n % 2, [n % 4 == 1, 0]) for n in range(80)]
    pages += [ab("u0", 0, [1, 1], day=3)]  # later: not counted
    analysis = fp.clicks.analyze(log(pages, method="ab"))
    (row,) = analysis.comparisons
    assert (row["wins"], row["losses"], row["ties"]) == (20, 0, 60)
    assert row["winner"] == "new"
    assert analysis.counts["comparisons"] == 80
    assert not analysis.checks["carry_over"]["suspect"]


def test_shares_are_what_no_difference_is() -> None:
    pages = [ab(f"u{n}", int(n % 10 > 0), [1]) for n in range(300)]
    for page in pages:
        page["told"]["shares"] = [1, 9]
    analysis = fp.clicks.analyze(log(pages))
    assert analysis.comparisons[0]["null"] == pytest.approx(0.9)
    assert analysis.comparisons[0]["winner"] is None
    assert not analysis.checks["sample_ratio"]["suspect"]


def test_checks_are_suspect_where_something_is_wrong() -> None:
    pages = [ab(f"u{n}", int(n % 10 > 0), [1]) for n in range(300)]
    pages += [ab("u1", 0, [0])]
    pages += [ab("bot", 1, [1], query=f"q{n}") for n in range(101)]
    checks = fp.clicks.analyze(log(pages)).checks
    assert checks["sample_ratio"]["p"] < 1e-6
    assert {name for name, row in checks.items() if row["suspect"]} == set(checks)
    assert "1 visitors saw several rankings" in checks["carry_over"]["text"]


def test_carry_over_of_interleaving() -> None:
    first = [visit(f"u{n}", [1, 0], [1, 0]) for n in range(40)]
    later = [visit(f"u{n}", [1, 0], [0, 1], query="hen") for n in range(40)]
    check = fp.clicks.analyze(log(first + later)).checks["carry_over"]
    assert check["suspect"]
    assert "new wins 100.0% of first and 0.0% of later" in check["text"]


def test_a_clock_that_was_set_back_is_noted() -> None:
    pages = [visit(f"u{n}", [1, 0], [1, 0], day=2 - n // 20) for n in range(40)]
    analysis = fp.clicks.analyze(log(pages))
    check = analysis.checks["clock"]
    assert check["suspect"]
    assert "times go back by 86,400 seconds in the log" in check["text"]
    assert [row["date"] for row in analysis.days] == ["1970-01-02", "1970-01-03"]
    row = analysis.comparisons[0]
    assert (row["wins"], row["losses"]) == (40, 0)  # whatever the clock says
    forward = [visit(f"u{n}", [1, 0], [1, 0], day=n // 20) for n in range(40)]
    assert "clock" not in fp.clicks.analyze(log(forward)).checks


def test_segments_of_queries() -> None:
    pages = [visit(f"u{n}", [1, 0], [n % 2, 1 - n % 2], query="often") for n in range(6)]
    pages += [visit("v", [1, 0], [1, 0], query="seldom")]
    table = fp.clicks.analyze(log(pages)).segments
    assert [(r["segment"], r["wins"], r["losses"]) for r in table] == [
        ("frequent queries", 3, 3), ("rare queries", 1, 0),
    ]  # fmt: skip
    named = fp.clicks.analyze(log(pages), segments={"often": "head"}).segments
    assert [r["segment"] for r in named] == ["head", "others"]


def test_what_cannot_be_analyzed_is_refused() -> None:
    pages = [visit("a", [1], [1]), visit("b", [1], [0], told={"digest": "2"})]
    with pytest.raises(fp.DataError, match=r"several of digest \(the rankings changed.*1, 2"):
        fp.clicks.analyze(log(pages))
    assert fp.clicks.analyze(log(pages), digest="2").comparisons[0]["losses"] == 1
    with pytest.raises(fp.DataError, match="has no digest '3'; there are 1, 2"):
        fp.clicks.analyze(log(pages), digest="3")
    other = [visit("a", [1], [1]), visit("b", [1], [0], told={"experiment": "x"})]
    with pytest.raises(fp.DataError, match="several of experiment: try, x; choose one"):
        fp.clicks.analyze(log(other))
    mixed = [visit("a", [1], [1]), ab("b", 1, [1])]
    with pytest.raises(fp.DataError, match="differ in method or arms"):
        fp.clicks.analyze(log(mixed))
    with pytest.raises(fp.DataError, match="two or more arms"):
        fp.clicks.analyze(log(pages[:1], arms=["old"]))
    with pytest.raises(fp.DataError, match="has no values of actions"):
        fp.clicks.analyze(replace(log(pages[:1]), value=None), value="values")
