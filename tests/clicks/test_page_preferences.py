"""Preferences out of clicks: probabilities, and gains and discounts that are recovered."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp


def test_weights_are_posterior_probabilities() -> None:
    """Two lists: 3 clicks on 10 pages, 9 on 20 pages; a third has the grades of the first."""
    lists = [("ab", 3, 5), ("xb", 0, 5), ("ba", 9, 20)]
    rows = [(shown, n < clicks) for shown, clicks, pages in lists for n in range(pages)]
    sessions = fp.Sessions.from_arrays(
        query=["fox"] * 2 * len(rows), document=[d for shown, _ in rows for d in shown],
        rank=[1, 2] * len(rows), clicked=[c for _, clicked in rows for c in (clicked, False)],
    )  # fmt: skip
    qrels = fp.Qrels.from_dict({"fox": {"a": 2, "b": 0, "x": 2}})
    pairs = fp.clicks.preferences(sessions, qrels)
    assert pairs.grades == (0, 1, 2)
    draws = np.random.default_rng(0).gamma([3.5, 9.5], [1 / 10, 1 / 20], (400_000, 2))
    second_is_better = float((draws[:, 1] > draws[:, 0]).mean())
    sides = {tuple(pairs.left[0][:2]): -1, tuple(pairs.right[0][:2]): 1}
    assert len(pairs) == 1
    assert set(sides) == {(0, 2), (2, 0)}
    assert pairs.weight[0] == pytest.approx(2 * second_is_better - 1, abs=5e-3)
    preferred = pairs.left[0] if pairs.outcome[0] > 0 else pairs.right[0]
    assert tuple(preferred[:2]) == (0, 2)
    assert list(pairs.query or []) == ["fox"]


@pytest.mark.filterwarnings("ignore:.*contradicted:firstpage.FirstpageWarning")
@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 0.16), (1.0, 0.1)])
def test_gains_and_discounts_of_users_are_recovered(noise: float, tolerance: float) -> None:
    """An A/B test of two rankings, and one in which each page is also shuffled a little."""
    rng = np.random.default_rng(0)
    grades = {
        f"q{q}": {f"d{q}-{n}": int(g) for n, g in enumerate(row)}
        for q, row in enumerate(rng.integers(0, 5, (800, 12)))
    }
    arms = [
        {q: {d: float(rng.normal()) for d in row} for q, row in grades.items()} for _ in range(2)
    ]
    logs = [
        fp.clicks.simulate(arm, grades, n_sessions=60_000, noise=noise, seed=seed)
        for seed, arm in enumerate(arms)
    ]
    sessions = fp.clicks.concatenate(*logs)
    pairs = fp.clicks.preferences(sessions, fp.Qrels.from_dict(grades))
    learned = fp.dcglearn.DCGLearn(K=10, C=1.0).fit(pairs)
    users = fp.clicks.SimulatedUsers.named("pbm")
    gains = (users.click - users.click[0]) / (users.click[-1] - users.click[0])
    assert np.abs(learned.gains_ - gains).max() < tolerance
    assert np.abs(learned.discounts_ - users.propensities(10)).max() < tolerance


def test_logs_that_compare_nothing_are_refused() -> None:
    sessions = fp.Sessions.from_arrays(
        query=["fox"] * 4, document=["a", "b"] * 2, rank=[1, 2] * 2, clicked=[1, 0, 0, 0]
    )
    with pytest.raises(fp.DataError, match="no query has pages with different lists of grades"):
        fp.clicks.preferences(sessions, fp.Qrels.from_dict({"fox": {"a": 1}}))
    with pytest.raises(fp.DataError, match="none of the documents of sessions"):
        fp.clicks.preferences(sessions, fp.Qrels.from_dict({"fox": {"z": 1}}))
    with pytest.raises(fp.DataError, match="the grades must be integers"):
        fp.clicks.preferences(sessions, fp.Qrels.from_dict({"fox": {"a": 0.5}}))
    with pytest.raises(fp.DataError, match="grades from 0 to 200 exceed the limit"):
        fp.clicks.preferences(sessions, fp.Qrels.from_dict({"fox": {"a": 200}}))
    with pytest.raises(fp.DataError, match="lists at least 2; got 10 and 1"):
        fp.clicks.preferences(sessions, fp.Qrels.from_dict({"fox": {"a": 1}}), lists=1)
