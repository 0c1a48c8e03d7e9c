"""Is a learned measure better than DCG?  Said only where held-out pairs show it."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.advice import against_dcg
from firstpage.dcglearn.learn import DCGLearn
from firstpage.types import Floats


def judged(table: Floats, count: int, error: float, seed: int = 0) -> Preferences:
    """Random lists, of which people prefer one by `table`; a part of the answers is reversed."""
    rng = np.random.default_rng(seed)
    places, grades = table.shape
    left, right = rng.integers(0, grades, (2, count, places))
    at = np.arange(places)
    apart = table[at, left].sum(axis=1) - table[at, right].sum(axis=1)
    outcome = np.where(apart > 0, 1, -1) * np.where(rng.random(count) < error, -1, 1)
    return Preferences.from_grades(
        left, right, outcome, query=[f"q{i}" for i in range(count)], grades=range(grades)
    )


def test_people_who_agree_with_dcg_teach_nothing_better() -> None:
    table = Utility.from_dcg("exp", range(4), 5).table()
    found = against_dcg(DCGLearn(5, C=1.0).fit(judged(table, 60, 0.1)))
    assert found.verdict == "not better"
    assert found.pairs == 60
    assert "not shown to be better" in str(found) or "worse than" in str(found)
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_people_of_another_taste_do() -> None:
    taste = np.outer([1.0, 0.1, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0])
    found = against_dcg(DCGLearn(5, C=1.0).fit(judged(taste, 400, 0.05)))
    assert found.verdict == "better"
    assert found.interval[0] > 0
    assert 0 < found.learned - found.dcg < found.interval[1]
    assert "is better than DCG" in str(found)


def test_agreement_of_dcg_is_counted_on_the_same_pairs() -> None:
    table = Utility.from_dcg("linear", range(4), 5).table()
    found = against_dcg(DCGLearn(5, C=1.0).fit(judged(table, 80, 0.0)))
    assert (found.dcg, found.kind) == (1.0, "linear")


def test_one_query_has_nothing_to_hold_out() -> None:
    given = judged(Utility.from_dcg("exp", range(4), 5).table(), 30, 0.1)
    alone = Preferences.from_grades(
        given.left, given.right, given.outcome, query=["q"] * 30, grades=range(4)
    )
    found = against_dcg(DCGLearn(5, C=1.0).fit(alone))
    assert found.verdict == "unknown"
    assert found.to_dict()["learned"] is None
    assert "not known" in str(found)


@pytest.mark.slow
def test_c_is_chosen_without_the_pairs_held_out() -> None:
    """Answers by coin: the best of eight C on the same pairs flatters, the choice inside does not."""
    flattered, honest = [], []
    for seed in range(12):
        given = judged(Utility.from_dcg("exp", range(4), 5).table(), 40, 0.5, seed)
        learner = DCGLearn(5).fit(given)
        assert learner.path_ is not None
        flattered.append(learner.path_.accuracy("weights"))
        honest.append(against_dcg(learner, "weights").learned)
    assert np.mean(honest) < np.mean(flattered)
    assert abs(np.mean(honest) - 0.5) < 0.06


@pytest.mark.parametrize("seed", range(5))
def test_few_ordinary_judgments_give_no_warning_of_the_solver(seed: int) -> None:
    given = judged(Utility.from_dcg("exp", range(4), 10).table(), 39, 0.2, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = DCGLearn(10, decreasing=True).fit(given)
        against_dcg(learner)
    assert learner.gap_ <= 1e-8 * learner.objective_
    assert (learner.discounts_ <= 1 + 1e-9).all()
    assert (np.diff(learner.discounts_) <= 1e-9).all()
