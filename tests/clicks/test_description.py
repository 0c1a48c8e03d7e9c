"""What `describe` says of a log."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import beta

import firstpage as fp
from firstpage.clicks.description import ratio_interval


def log(pages_per_query: list[int], ranks: int = 3, seed: int = 0) -> fp.Sessions:
    """Return pages in random order of three documents, clicked by rank."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(len(pages_per_query)), pages_per_query)
    pages = len(query)
    return fp.Sessions.from_arrays(
        query=np.repeat(query, ranks),
        document=np.argsort(rng.random((pages, ranks)), axis=1).ravel(),
        rank=np.tile(np.arange(1, ranks + 1), pages),
        clicked=(rng.random((pages, ranks)) < 0.5 / np.arange(1, ranks + 1)).ravel(),
        page=np.repeat(np.arange(pages), ranks),
    )


def test_counts_traffic_and_rates() -> None:
    s = log([1, 5, 20, 150])
    d = fp.clicks.describe(s)
    assert d.counts == {
        "sessions": 176, "pages": 176, "impressions": 528, "clicks": int(s.clicks.sum()),
        "queries": 4, "documents": 3, "pairs": 12,
    }  # fmt: skip
    assert [(row["pages_per_query"], row["queries"]) for row in d.traffic] == [
        ("1", 1), ("2 to 9", 1), ("10 to 99", 1), ("100 to 999", 1), ("1,000 or more", 0),
    ]  # fmt: skip
    assert d.traffic[2]["fraction_of_pages"] == pytest.approx(20 / 176)
    for row in d.ranks:
        at = s.rank == row["rank"]
        assert (row["impressions"], row["clicked"]) == (176, s.clicked[at].sum())
        assert row["low"] < row["rate"] < row["high"]
        assert row["queries"] == 4


def test_documents_at_several_ranks_and_what_is_thin() -> None:
    s = fp.Sessions.from_arrays(
        query=["q"] * 40, document=["a", "b", "b", "c"] * 10, rank=[1, 2] * 20,
        clicked=[1, 0] * 20, page=np.repeat(np.arange(20), 2),
    )  # fmt: skip
    d = fp.clicks.describe(s)
    assert d.moved == {"pairs": pytest.approx(1 / 3), "impressions": 0.5}
    assert d.thin == ("intervals by query need at least 10 queries.", *d.thin[1:])
    fixed = fp.clicks.describe(s.select(np.arange(0, 20, 2)))
    assert fixed.moved["pairs"] == 0
    assert "rank and document can hardly be told apart" in fixed.thin[-1]
    sparse = fp.clicks.describe(log([1] * 30))
    assert sparse.thin[0].startswith("30 of 30 queries have fewer than 10 pages (100.0% of all")
    assert sparse.thin[1].startswith(
        "87 of 87 pairs" if sparse.counts["pairs"] == 87 else "90 of 90"
    )


def test_views() -> None:
    d = fp.clicks.describe(log([30] * 12))
    assert "click-through" in str(d)
    assert json.loads(json.dumps(d.to_dict()))["ranks"][0]["rank"] == 1
    assert d.plot().svg.startswith("<svg")
    assert d.to_csv().splitlines()[0] == "rank,impressions,clicked,rate,low,high,queries"
    assert d.thin == ()


def test_intervals_without_clusters_are_wide_enough() -> None:
    """Queries with equal rates: about the exact binomial interval, a little wider by Student's t."""
    rng = np.random.default_rng(1)
    shown = np.full(200, 20.0)
    clicked = rng.binomial(20, 0.1, 200).astype(float)
    low, high = ratio_interval(clicked, shown)
    k, n = clicked.sum(), shown.sum()
    exact = beta.ppf(0.025, k, n - k + 1), beta.ppf(0.975, k + 1, n - k)
    assert (low, high) == pytest.approx(exact, abs=0.003)


def test_intervals_cover_the_rate_where_queries_differ() -> None:
    rng = np.random.default_rng(2)
    a, b = 2.0, 8.0
    covered = naive = 0
    for _ in range(1000):
        shown = rng.integers(5, 100, 60).astype(float)
        clicked = rng.binomial(shown.astype(int), rng.beta(a, b, 60)).astype(float)
        low, high = ratio_interval(clicked, shown)
        covered += low <= a / (a + b) <= high
        rate = clicked.sum() / shown.sum()
        naive += abs(rate - 0.2) <= 1.96 * np.sqrt(rate * (1 - rate) / shown.sum())
    assert 920 <= covered <= 980
    assert naive < 700


def test_intervals_at_the_edges() -> None:
    assert ratio_interval(np.array([3.0]), np.array([9.0])) == (0, 1)
    low, high = ratio_interval(np.zeros(50), np.full(50, 10.0))
    assert low == 0
    assert 0.01 < high < 0.2


def test_nothing_is_not_described() -> None:
    sessions = fp.Sessions.from_arrays(query=["q"], document=["a"], rank=[1], clicked=[1])
    with pytest.raises(fp.DataError, match="no impressions to describe"):
        fp.clicks.describe(sessions.select([]))
