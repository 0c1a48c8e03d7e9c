"""Simulated users: frequencies of clicks against their definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import firstpage as fp

RUN = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
QRELS = {"q": {"a": 1, "b": 4, "c": 2}}


def patterns(sessions: fp.Sessions) -> dict[tuple[bool, ...], float]:
    """Return the frequency of each pattern of clicks on three results."""
    clicked = sessions.clicked.reshape(-1, 3)
    return {
        bits: float((clicked == bits).all(axis=1).mean())
        for bits in itertools.product([False, True], repeat=3)
    }


@pytest.mark.parametrize("name", ["pbm", "trust", "perfect", "navigational", "informational"])
def test_patterns_of_clicks_have_the_probabilities_of_the_model(name: str) -> None:
    users = fp.clicks.SimulatedUsers.named(name)
    sessions = fp.clicks.simulate(RUN, QRELS, name, n_sessions=40_000, seed=5)
    grades = [1, 4, 2]
    click = [np.atleast_2d(users.click)[min(r, len(np.atleast_2d(users.click)) - 1), g]
             for r, g in enumerate(grades)]  # fmt: skip
    for bits, frequency in patterns(sessions).items():
        expected, going = 1.0, 1.0  # `going` is the probability that the user is still there
        if users.examination is not None:
            p = [users.examination[r] * click[r] for r in range(3)]
            expected = math.prod(p[r] if bit else 1 - p[r] for r, bit in enumerate(bits))
        else:
            expected = 0.0
            for stops in itertools.product([False, True], repeat=3):
                going, chance = True, 1.0
                for r, (bit, stop) in enumerate(zip(bits, stops, strict=True)):
                    if not going:
                        chance *= (not bit) * (not stop)
                    elif bit:
                        s = users.stop[grades[r]]
                        chance *= click[r] * (s if stop else 1 - s)
                        going = not stop
                    else:
                        chance *= (1 - click[r]) * (not stop)
                expected += chance
        assert frequency == pytest.approx(expected, abs=0.012)


def test_published_settings() -> None:
    users = fp.clicks.SimulatedUsers.named("trust")
    beta = users.click[:5, 0] * users.examination[:5]
    alpha = users.click[:5, -1] * users.examination[:5] - beta
    assert beta.round(2).tolist() == [0.65, 0.26, 0.15, 0.11, 0.08]
    assert alpha.round(2).tolist() == [0.35, 0.53, 0.55, 0.54, 0.52]
    assert fp.clicks.SimulatedUsers.named("pbm").propensities(12).round(2).tolist() == [
        1.0, 0.9, 0.71, 0.5, 0.41, 0.29, 0.16, 0.15, 0.12, 0.09, 0.0, 0.0
    ]  # fmt: skip
    with pytest.raises(fp.DataError, match="depends on the documents"):
        fp.clicks.SimulatedUsers.named("perfect").propensities(3)


def test_grades_are_spread_over_those_of_the_model() -> None:
    users = fp.clicks.SimulatedUsers([0.0, 0.5, 1.0], [1.0] * 3)
    sessions = fp.clicks.simulate(RUN, {"q": {"b": 1}}, users, n_sessions=50)
    rates = [sessions.clicked[sessions.rank == rank].mean() for rank in (1, 2, 3)]
    assert rates == [0.0, 1.0, 0.0]


def test_noise_swaps_documents_and_infinite_noise_logs_propensities() -> None:
    plain = fp.clicks.simulate(RUN, QRELS, n_sessions=50)
    assert plain.document.reshape(-1, 3).tolist() == [[0, 1, 2]] * 50
    assert plain.propensity is None
    noisy = fp.clicks.simulate(RUN, QRELS, n_sessions=4000, noise=1.0, seed=1)
    first = np.bincount(noisy.document[noisy.rank == 1], minlength=3) / 4000
    assert first[0] > first[1] > first[2] > 0
    drawn = fp.clicks.simulate(RUN, QRELS, n_sessions=4000, noise=math.inf, seed=1, depth=2)
    first = np.bincount(drawn.document[drawn.rank == 1], minlength=3) / 4000
    assert first.tolist() == pytest.approx([0.5, 0.5, 0.0], abs=0.03)
    assert drawn.propensity is not None
    assert set(drawn.propensity) == {0.5}


def test_traffic_and_seed() -> None:
    run, qrels = RUN | {"r": {"a": 1.0}}, QRELS | {"r": {"a": 1}}
    some = fp.clicks.simulate(run, qrels, traffic=[3, 1], n_sessions=4000, seed=2)
    assert (some.page_query == 0).mean() == pytest.approx(0.75, abs=0.03)
    assert some.n_impressions == 3 * (some.page_query == 0).sum() + (some.page_query == 1).sum()
    again = fp.clicks.simulate(run, qrels, traffic=[3, 1], n_sessions=4000, seed=2)
    other = fp.clicks.simulate(run, qrels, traffic=[3, 1], n_sessions=4000, seed=3)
    assert (some.clicks == again.clicks).all()
    assert not np.array_equal(some.page_query, other.page_query)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "nobody"}, "users are one of pbm, trust"),
        ({"n_sessions": 0}, "at least 1"),
        ({"noise": math.nan}, "noise >= 0"),
        ({"traffic": [1.0, 2.0]}, "traffic needs one non-negative number per query"),
        ({"qrels": {"q": {"a": 0}}}, "a document with a grade above 0"),
    ],
)
def test_impossible_settings_are_one_line(options: dict, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.clicks.simulate(**{"run": RUN, "qrels": QRELS, **options})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (([0.1, 1.0],), "either examination or stop"),
        (([0.1, 1.2], [1.0]), "click of simulated users must be probabilities"),
        (([0.1, 1.0], None, [0.5]), "one value per grade"),
    ],
)
def test_user_models_are_checked(values: tuple, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.clicks.SimulatedUsers(*values)
