"""A learned measure counts as better than DCG only where held-out pairs show it."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from firstpage.core.types import Floats
from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.evaluation.dcglearn.advisor import compare_with_dcg
from firstpage.evaluation.dcglearn.learn import DCGLearn


def judged(table: Floats, count: int, error: float, seed: int = 0) -> Preferences:
    """Return preferences between random lists by `table`, a fraction of them reversed."""
    rng = np.random.default_rng(seed)
    positions, grades = table.shape
    left, right = rng.integers(0, grades, (2, count, positions))
    rows = np.arange(positions)
    difference = table[rows, left].sum(axis=1) - table[rows, right].sum(axis=1)
    outcome = np.where(difference > 0, 1, -1) * np.where(rng.random(count) < error, -1, 1)
    return Preferences.from_grades(
        left, right, outcome, query=[f"q{i}" for i in range(count)], grades=range(grades)
    )


def test_judgments_by_dcg_give_no_better_measure() -> None:
    table = Utility.from_dcg("exp", range(4), 5).table()
    comparison = compare_with_dcg(DCGLearn(5, C=1.0).fit(judged(table, 60, 0.1)))
    assert comparison.verdict == "not better"
    assert comparison.pairs == 60
    assert "not shown to be better" in str(comparison) or "worse than" in str(comparison)
    assert json.dumps(comparison.to_dict(), allow_nan=False)


def test_judgments_by_another_measure_give_a_better_one() -> None:
    other_table = np.outer([1.0, 0.1, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0])
    comparison = compare_with_dcg(DCGLearn(5, C=1.0).fit(judged(other_table, 400, 0.05)))
    assert comparison.verdict == "better"
    assert comparison.interval[0] > 0
    assert 0 < comparison.learned - comparison.dcg < comparison.interval[1]
    assert "is better than DCG" in str(comparison)


def test_few_queries_do_not_show_a_measure_to_be_better() -> None:
    """All may favor it by luck: their bootstrap interval is above 0."""
    other_table = np.outer([1.0, 0.1, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0])
    many = judged(other_table, 400, 0.05)
    few = Preferences.from_grades(
        many.left,
        many.right,
        many.outcome,
        query=[f"q{i % 4}" for i in range(400)],
        grades=range(4),
    )
    comparison = compare_with_dcg(DCGLearn(5, C=1.0).fit(few))
    assert comparison.learned > comparison.dcg + 0.05
    assert (comparison.verdict, comparison.interval[0]) == ("not better", 0.0)


def test_dcg_is_measured_on_the_same_pairs() -> None:
    table = Utility.from_dcg("linear", range(4), 5).table()
    comparison = compare_with_dcg(DCGLearn(5, C=1.0).fit(judged(table, 80, 0.0)))
    assert (comparison.dcg, comparison.gains) == (1.0, "linear")


def test_one_query_cannot_be_held_out() -> None:
    preferences = judged(Utility.from_dcg("exp", range(4), 5).table(), 30, 0.1)
    single_query = Preferences.from_grades(
        preferences.left, preferences.right, preferences.outcome, query=["q"] * 30, grades=range(4)
    )
    comparison = compare_with_dcg(DCGLearn(5, C=1.0).fit(single_query))
    assert comparison.verdict == "unknown"
    assert comparison.to_dict()["learned"] is None
    assert "not known" in str(comparison)


def test_c_is_chosen_without_the_held_out_pairs() -> None:
    """With random answers the best of eight C is optimistic; the nested choice is not."""
    optimistic, nested = [], []
    for seed in range(12):
        preferences = judged(Utility.from_dcg("exp", range(4), 5).table(), 40, 0.5, seed)
        learner = DCGLearn(5).fit(preferences)
        assert learner.validation_curve_ is not None
        optimistic.append(learner.validation_curve_.accuracy("weights"))
        nested.append(compare_with_dcg(learner, "weights").learned)
    assert np.mean(nested) < np.mean(optimistic)
    assert abs(np.mean(nested) - 0.5) < 0.06


@pytest.mark.parametrize("seed", range(5))
def test_few_ordinary_judgments_give_no_solver_warning(seed: int) -> None:
    preferences = judged(Utility.from_dcg("exp", range(4), 10).table(), 39, 0.2, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = DCGLearn(10, decreasing=True).fit(preferences)
        compare_with_dcg(learner)
    assert learner.gap_ <= 1e-8 * learner.objective_
    assert (learner.discounts_ <= 1 + 1e-9).all()
    assert (np.diff(learner.discounts_) <= 1e-9).all()
