"""Parameters and weights chosen by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import FirstpageError
from firstpage.evaluation.aggregation.aggregation import aggregate
from firstpage.evaluation.aggregation.fusion import RRF
from firstpage.evaluation.aggregation.tuning import fold_of_query, tune_method
from tests.evaluation.aggregation.test_aggregate import QRELS, RUNS
from tests.narrow import instance, present


def test_tuning_measures_the_run_that_is_made() -> None:
    """A method of pairs reads 100 documents by default, also while it is tuned."""
    generator = np.random.default_rng(0)
    documents = [f"d{i}" for i in range(130)]
    runs = [
        {str(q): dict(zip(documents, generator.normal(size=130), strict=True)) for q in range(4)}
        for _ in range(3)
    ]
    qrels = {str(q): {d: int(generator.random() < 0.1) for d in documents} for q in range(4)}
    cases: list[dict[str, Any]] = [{}, {"depth": 10}, {"depth": 20, "same_depth": True}]
    for options in cases:
        tuned = tune_method(runs, qrels, "Copeland", what="weights", measure="AP", **options)
        made = aggregate(runs, "Copeland", **options).run
        value = fp.evaluate(made, qrels, measures="AP")["AP"]
        assert tuned.held_out.baseline.mean() == pytest.approx(value)


def test_a_run_without_judged_queries_has_the_weight_0() -> None:
    runs = [{"p": {"a": 2.0}, "q": {"a": 1.0}}, {"other": {"a": 1.0}}]
    qrels = {"p": {"a": 1}, "q": {"a": 1}}
    assert tune_method(runs, qrels, what="weights", folds=2).held_out.mean == 1.0
    assert fp.aggregation.supervised_weights(runs, qrels).weights.tolist() == [1.0, 0.0]


def test_folds_are_equal_and_do_not_overlap() -> None:
    fold = fold_of_query(23, 5, 1)
    assert sorted(np.bincount(fold).tolist()) == [4, 4, 5, 5, 5]
    assert (fold == fold_of_query(23, 5, 1)).all()
    assert (fold != fold_of_query(23, 5, 2)).any()
    assert np.bincount(fold_of_query(3, 5, 0)).tolist() == [1, 1, 1]


def test_held_out_values_are_those_of_the_setting_of_the_other_folds() -> None:
    """An oracle that evaluates every constant, and chooses by hand."""
    tuned = fp.aggregation.tune_method(RUNS, QRELS, "RRF", measure="NDCG@3", folds=4, seed=3)
    grid = instance(RRF, tuned.method).tuned["c"]
    table = np.array(
        [
            fp.evaluate(
                fp.aggregation.aggregate(RUNS, f"RRF(c={c})").run, QRELS, measures="NDCG@3"
            ).per_query("NDCG@3")
            for c in grid
        ]
    )
    fold = fold_of_query(len(QRELS), 4, 3)
    expected = np.empty(len(QRELS))
    for number in range(4):
        best = int(np.argmax(table[:, fold != number].mean(axis=1).round(12)))
        expected[fold == number] = table[best, fold == number]
        assert tuned.held_out.choices[number] == str(
            fp.aggregation.aggregate(RUNS, f"RRF(c={grid[best]})").method
        )
    assert tuned.held_out.values == pytest.approx(expected)
    assert tuned.held_out.baseline == pytest.approx(table[grid.index(60)])
    assert instance(RRF, tuned.method).c == grid[int(np.argmax(table.mean(axis=1).round(12)))]
    assert tuned.weights is None


def test_weights_favor_the_better_ranker() -> None:
    tuned = fp.aggregation.tune_method(RUNS, QRELS, "CombSUM", what="weights", folds=3)
    assert present(tuned.weights)[0] > present(tuned.weights)[1] > present(tuned.weights)[2]
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
        ({"measure": "GMAP"}, "GMAP is not a mean over queries"),
        ({"seed": -1}, "seed must be an integer of at least 0; got -1"),
        ({"folds": 0}, "folds must be an integer of at least 2"),
    ],
)
def test_invalid_tuning_is_refused(options, message: str) -> None:
    with pytest.raises(FirstpageError, match=message):
        fp.aggregation.tune_method(RUNS, QRELS, **options)


def test_judgments_of_other_documents_choose_nothing() -> None:
    strangers = {query: {"nowhere": 1} for query in QRELS.queries}
    with pytest.raises(FirstpageError, match="NDCG@10 of every run is 0 on all"):
        fp.aggregation.tune_method(RUNS, strangers)
