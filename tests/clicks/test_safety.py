"""Safe rankings: decisions against their definition, and against simulated truths."""

from __future__ import annotations

import math

import numpy as np
import pytest

import firstpage as fp

USERS = fp.clicks.SimulatedUsers.named("pbm")
CURVE = {rank: float(p) for rank, p in enumerate(USERS.propensities(10), 1)}
OLD = {"fox": {"a": 3.0, "b": 2.0, "c": 1.0}, "dog": {"d": 1.0}}
NEW = {"fox": {"c": 3.0, "b": 2.0, "a": 1.0}, "cat": {"e": 1.0}}
WEIGHT = [1 / math.log2(1 + rank) for rank in (1, 2, 3)]


def log(pages: int, clicked: str) -> fp.Sessions:
    """Return pages of the old ranking of one query, all with a click on one document."""
    return fp.Sessions.from_arrays(
        query=["fox"] * 3 * pages, document=list("abc") * pages, rank=[1, 2, 3] * pages,
        clicked=[d == clicked for d in "abc"] * pages,
    )  # fmt: skip


def test_gain_and_bound_are_their_definition() -> None:
    safe = fp.clicks.safe_ranking(NEW, OLD, log(100, "c"), {1: 1.0, 2: 0.5, 3: 0.2})
    rise = 2 * WEIGHT[2] - WEIGHT[2]  # to rank 1, which would count 2 times as much
    fall = WEIGHT[2] - WEIGHT[0]
    assert safe.gain.tolist() == [pytest.approx(rise * 100 / 20)]
    variance = rise**2 * 101 / 20**2 + fall**2 * 1 / 100**2
    assert safe.lower[0] == pytest.approx(safe.gain[0] - 1.6448536 * variance**0.5)
    assert (safe.queries, safe.new.tolist(), safe.without_old) == (("fox",), [True], 1)
    served = safe.run.to_dict()
    assert served == {"fox": NEW["fox"], "dog": OLD["dog"], "cat": NEW["cat"]}
    assert "1 of 1 queries of the log (100.0% of the pages)" in str(safe)


def test_the_old_ranking_is_kept_unless_clicks_are_certain() -> None:
    known = {1: 1.0, 2: 0.5, 3: 0.2}
    for sessions, ratio in (
        (log(100, "a"), 2.0),  # the new ranking is worse
        (log(1, "c"), 2.0),  # too few pages
        (log(100, "c"), 1.0),  # no increase of exposure counts
    ):
        safe = fp.clicks.safe_ranking(NEW, OLD, sessions, known, ratio=ratio)
        assert safe.run.to_dict()["fox"] == OLD["fox"]
    unseen = {"fox": {"z": 9.0, **OLD["fox"]}}
    safe = fp.clicks.safe_ranking(NEW, unseen, log(100, "c"), known)
    assert not safe.new.any()
    assert np.isnan(safe.gain).all()  # what z earned is not known
    assert safe.to_dict()["gain"] == [None]


@pytest.mark.parametrize("users", ["pbm", "trust"])
def test_few_queries_get_a_worse_ranking(users: str) -> None:
    """Propensities are wrong for trusting users: limited exposure limits the damage."""
    rng = np.random.default_rng(3)
    grades = {
        f"q{q}": {f"d{q}-{n}": int(g) for n, g in enumerate(rng.integers(0, 5, 12))}
        for q in range(200)
    }
    old, new = (
        {q: {d: g + 1.5 * rng.normal() for d, g in row.items()} for q, row in grades.items()}
        for _ in range(2)
    )
    sessions = fp.clicks.simulate(old, grades, users, n_sessions=100_000, noise=3.0, seed=1)
    relevance = USERS.click if users == "pbm" else np.arange(5) / 4

    def value(ranking: dict[str, float], query: str) -> float:
        order = sorted(ranking, key=lambda d: -ranking[d])[:10]
        attractive = [float(relevance[grades[query][d]]) for d in order]
        return sum(a / math.log2(2 + n) for n, a in enumerate(attractive))

    worse = {}
    for ratio in (2.0, math.inf):
        safe = fp.clicks.safe_ranking(new, old, sessions, CURVE, ratio=ratio)
        gain = np.array([value(new[q], q) - value(old[q], q) for q in safe.queries])
        worse[ratio] = int((gain[safe.new] <= 0).sum()), int(safe.new.sum())
    assert (gain <= 0).sum() > 60  # of all queries
    if users == "pbm":
        assert worse[2.0][1] >= 20
        assert all(wrong <= 0.05 * accepted for wrong, accepted in worse.values())
    else:
        assert worse[math.inf][0] > 4 * worse[2.0][0]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(fp.DataError, match=r"ratio of at least 1; got 10, 0\.95 and 0\.5"):
        fp.clicks.safe_ranking(NEW, OLD, log(2, "a"), {1: 1.0}, ratio=0.5)
    with pytest.raises(fp.DataError, match="no query of sessions is in both rankings"):
        fp.clicks.safe_ranking({"x": {"a": 1.0}}, OLD, log(2, "a"), {1: 1.0, 2: 1.0, 3: 1.0})
    logged = fp.clicks.simulate(OLD, {"fox": {"a": 1}}, n_sessions=50, noise=math.inf)
    with pytest.raises(fp.DataError, match="propensities of ranks"):
        fp.clicks.safe_ranking(NEW, OLD, logged)
