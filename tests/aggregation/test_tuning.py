"""Parameters and weights chosen by cross-validation."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.aggregation.tuning import fold_of_query
from firstpage.errors import FirstpageError
from tests.aggregation.test_aggregate import QRELS, RUNS


def test_folds_are_equal_and_do_not_overlap() -> None:
    fold = fold_of_query(23, 5, 1)
    assert sorted(np.bincount(fold).tolist()) == [4, 4, 5, 5, 5]
    assert (fold == fold_of_query(23, 5, 1)).all()
    assert (fold != fold_of_query(23, 5, 2)).any()
    assert np.bincount(fold_of_query(3, 5, 0)).tolist() == [1, 1, 1]


def test_held_out_values_are_those_of_the_setting_of_the_other_folds() -> None:
    """An oracle that evaluates every constant, and chooses by hand."""
    tuned = fp.aggregation.tune_method(RUNS, QRELS, "RRF", measure="NDCG@3", folds=4, seed=3)
    grid = type(tuned.method).tuned["c"]
    table = np.array([
        fp.evaluate(
            fp.aggregation.aggregate(RUNS, f"RRF(c={c})").run, QRELS, measures="NDCG@3"
        ).per_query("NDCG@3")
        for c in grid
    ])  # fmt: skip
    fold = fold_of_query(len(QRELS), 4, 3)
    expected = np.empty(len(QRELS))
    for number in range(4):
        best = int(np.argmax(table[:, fold != number].mean(axis=1).round(12)))
        expected[fold == number] = table[best, fold == number]
        assert tuned.held_out.choices[number] == str(fp.aggregation.aggregate(
            RUNS, f"RRF(c={grid[best]})").method)  # fmt: skip
    assert tuned.held_out.values == pytest.approx(expected)
    assert tuned.held_out.baseline == pytest.approx(table[grid.index(60)])
    assert tuned.method.c == grid[int(np.argmax(table.mean(axis=1).round(12)))]
    assert tuned.weights is None


def test_weights_favor_the_better_ranker() -> None:
    tuned = fp.aggregation.tune_method(RUNS, QRELS, "CombSUM", what="weights", folds=3)
    assert tuned.weights[0] > tuned.weights[1] > tuned.weights[2]
    held_out = tuned.held_out
    low, high = held_out.interval
    assert low <= held_out.gain <= high
    assert "with the weights" in str(tuned)
    assert held_out.to_dict()["gain"] == pytest.approx(held_out.mean - held_out.baseline.mean())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "Copeland"}, "Copeland has no parameters to tune"),
        ({"what": "depth"}, "parameters, weights or all"),
        ({"grid": {"k": [1]}}, "RRF has no parameter 'k'"),
        ({"measure": "WKT@5"}, "better when lower"),
        ({"folds": 0}, "folds must be an integer of at least 2"),
    ],
)
def test_invalid_tuning_is_refused(options, message: str) -> None:
    with pytest.raises(FirstpageError, match=message):
        fp.aggregation.tune_method(RUNS, QRELS, **options)
