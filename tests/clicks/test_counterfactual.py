"""Estimates of new rankings from old clicks: plain references, coverage, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import firstpage as fp

USERS = fp.clicks.SimulatedUsers.named("pbm")
CURVE = {rank: float(p) for rank, p in enumerate(USERS.examination / USERS.examination[0], 1)}
GRADES = np.random.default_rng(7).choice(5, (20, 12), p=[0.4, 0.2, 0.2, 0.1, 0.1])
GRADES[0, 0] = 4
QRELS = {f"q{q}": {f"d{q}-{i}": int(g) for i, g in enumerate(row)} for q, row in enumerate(GRADES)}


def ranking(noise: float, name: str) -> fp.Run:
    """Return a run in order of noisy grades."""
    scores = GRADES + noise * np.random.default_rng(len(name)).normal(size=GRADES.shape)
    table = {q: dict(zip(QRELS[q], row.tolist(), strict=True)) for q, row in zip(QRELS, scores)}  # noqa: B905
    return fp.Run.from_dict(table, name=name)


OLD, NEW = ranking(2.0, "old"), ranking(0.3, "the new one")


@cache
def log_of(pages: int = 2000, seed: int = 0, noise: float = 6.0) -> fp.Sessions:
    """Return a log of the old ranking with noise, in which each page is of another user."""
    sessions = fp.clicks.simulate(
        OLD, QRELS, n_sessions=pages, noise=noise, seed=seed, depth=12 if noise == math.inf else 10
    )
    user = np.arange(pages, dtype=np.int32)
    return replace(sessions, user=user, users=tuple(map(str, range(pages))))


def first(run: fp.Run, query: str, depth: int = 10) -> list[str]:
    """Return the first documents of a run."""
    scores = run.to_dict()[query]
    return sorted(scores, key=lambda document: -scores[document])[:depth]


def plain(run: fp.Run, sessions: fp.Sessions, method: str, discount: Any) -> float:
    """Return an estimate with propensities, impression by impression."""
    new = {q: {d: n for n, d in enumerate(first(run, q), 1)} for q in QRELS}
    seen: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    pages = np.bincount(sessions.page_query, minlength=sessions.n_queries)
    for row in range(sessions.n_impressions):
        query = sessions.queries[sessions.page_query[sessions.page[row]]]
        key = query, sessions.documents[sessions.document[row]]
        seen.setdefault(key, []).append(
            (CURVE[int(sessions.rank[row])], bool(sessions.clicked[row]))
        )
    total = 0.0
    for number, query in enumerate(sessions.queries):
        for document, rank in new[query].items():
            rows = seen.get((query, document), [])
            if method == "ips":
                total += discount(rank) * sum(clicked / p for p, clicked in rows)
            elif rows:
                rate = sum(clicked for _, clicked in rows) / sum(p for p, _ in rows)
                total += discount(rank) * pages[number] * rate
    return total / sessions.n_pages


@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")
@pytest.mark.parametrize("method", ["ips", "policy-aware"])
def test_estimates_are_the_plain_sums(method: Any) -> None:
    sessions = log_of(300)
    result = fp.evaluate_clicks(NEW, sessions, CURVE, method=method)
    assert result["Clicks@10"] == pytest.approx(plain(NEW, sessions, method, CURVE.get))
    assert result["DCG@10"] == pytest.approx(
        plain(NEW, sessions, method, lambda rank: 1 / math.log2(1 + rank))
    )


@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")  # unseen by accident
@pytest.mark.parametrize("method", ["policy-aware", "dr", "snips-logged", "ips-logged"])
def test_intervals_cover_what_users_would_have_clicked(method: str) -> None:
    name: Any
    name, _, logged = method.partition("-") if "logged" in method else (method, "", "")
    depth = 5 if logged else 10
    curve = USERS.examination[:depth]
    truth = np.mean([
        sum(c * USERS.click[QRELS[q][d]] for c, d in zip(curve, first(NEW, q, depth), strict=True))
        for q in QRELS
    ])  # fmt: skip
    rewards = {q: {d: 0.1 + 0.1 * g for d, g in row.items()} for q, row in QRELS.items()}
    covered = 0
    for seed in range(100):
        sessions = log_of(2000, seed, math.inf if logged else 6.0)
        result = fp.evaluate_clicks(
            NEW, sessions, None if logged else {r: float(c) for r, c in enumerate(curve, 1)},
            method=name, by="user", measures=f"Clicks@{depth}",
            rewards=rewards if name == "dr" else None,
        )  # fmt: skip
        low, high = result.intervals[f"Clicks@{depth}"]
        covered += low <= truth <= high
    assert 89 <= covered <= 100


def test_pages_of_one_result_are_rows_of_a_bandit() -> None:
    rng = np.random.default_rng(3)
    shown, clicked = rng.integers(3, size=600), rng.random(600) < 0.3
    user, propensity = rng.integers(40, size=600), np.array([0.5, 0.3, 0.2])
    sessions = fp.Sessions.from_arrays(
        query=["q"] * 600, document=shown, page=range(600), rank=[1] * 600, clicked=clicked,
        user=user, propensity=propensity[shown],
    )  # fmt: skip
    weight = np.where(shown == 1, 1 / propensity[shown], 0)
    rewards = [0.2, 0.4, 0.1]
    for method in ("ips", "snips", "dr", "dm"):
        uses = method in ("dr", "dm")
        table = {"q": {str(n): value for n, value in enumerate(rewards)}}
        mine = fp.evaluate_clicks(
            {"q": {"1": 2.0, "0": 1.0, "2": 0.0}}, sessions, measures="Clicks@1", method=method,
            by="user", rewards=table if uses else None,
        )  # fmt: skip
        expected = fp.clicks.off_policy(
            clicked, weight, method=method, predicted=np.array(rewards)[shown],
            expected=np.full(600, 0.4), group=user,
        )  # fmt: skip
        assert mine["Clicks@1"] == pytest.approx(expected.value)
        assert mine.errors["Clicks@1"] == pytest.approx(expected.error, abs=1e-15)
        if method != "dm":
            assert mine.effective["Clicks@1"] == pytest.approx(expected.effective_rows)


def test_estimates_of_one_log_are_compared() -> None:
    log = fp.clicks.ClickLog(log_of(4000), CURVE)
    results = [fp.evaluate_clicks(run, log) for run in (OLD, NEW)]
    comparison = fp.compare(results, baseline="old", test="t")
    difference = comparison.differences[0]
    assert difference.system == "the new one"
    assert difference.difference == pytest.approx(results[1]["Clicks@10"] - results[0]["Clicks@10"])
    assert difference.p < 0.05
    assert "effective impressions" in str(results[0])
    assert results[0].to_dict()["method"] == "policy-aware"
    other = fp.evaluate_clicks(NEW, log_of(4000, seed=9), CURVE, name="other")
    with pytest.raises(fp.DataError, match=r"other has another weight of query q\d+: another log"):
        fp.compare([results[0], other])
    with pytest.raises(fp.DataError, match="has other measures than old"):
        fp.compare([results[0], fp.evaluate_clicks(NEW, log, measures="Clicks@5")])


def test_a_log_without_support_is_refused() -> None:
    sessions = log_of(300, noise=0.0)
    unseen = {query: {f"new-{n}": -n for n in range(10)} | dict.fromkeys(row, -20.0)
              for query, row in QRELS.items()}  # fmt: skip
    with pytest.raises(fp.DataError, match=r"100.0% of the weight of Clicks@10 .*does not support"):
        fp.evaluate_clicks(unseen, sessions, CURVE)
    with pytest.raises(fp.DataError, match="has none of the queries"):
        fp.evaluate_clicks({"other": {"a": 1.0}}, sessions, CURVE)


@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")
def test_what_is_left_out_is_said() -> None:
    sessions = log_of(3000)
    with pytest.warns(fp.FirstpageWarning, match="lacks queries of the log; .* are left out"):
        fp.evaluate_clicks(NEW.select_queries(np.arange(15)), sessions, CURVE)
    with pytest.warns(fp.FirstpageWarning, match="at ranks without a propensity"):
        fp.evaluate_clicks(
            NEW, sessions, {r: p for r, p in CURVE.items() if r < 8}, measures="DCG@5"
        )
    with pytest.warns(fp.FirstpageWarning, match="effective impressions of"):
        fp.evaluate_clicks(NEW, sessions.select(range(60)), CURVE, measures="DCG@2", method="snips")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"propensities": None}, "has no logged propensities; give those of ranks"),
        ({"propensities": {**CURVE, 3: 0.0}}, "rank 3 must be above 0; 40 impressions"),
        ({"propensities": {1: 1.0, 2: 0.5}}, "needs the propensity of rank 3: not known"),
        ({"measures": "NDCG@10"}, "clicks estimate Clicks@k and DCG@k"),
        ({"method": "magic"}, "the method is one of policy-aware"),
        ({"method": "dr"}, "rewards are for dr and dm"),
        ({"rewards": {"q0": {}}}, "rewards are for dr and dm"),
        ({"rewards": {"q0": {"d0-0": 0.1}}, "method": "dm"}, "the rewards lack 159 of 160"),
        ({"by": "session"}, "intervals are by query or user"),
        ({"clip": -1}, "clip must be above 0"),
    ],
)
@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")
def test_mistakes_are_one_line(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"propensities": CURVE, **changed}
    with pytest.raises(fp.DataError, match=message):
        fp.evaluate_clicks(OLD, log_of(40, noise=0.0), **given)
