"""Tuning on validation data, and cross-validation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.learning.rankers.selection.tuning import paper_grid
from tests.narrow import present

DATA = fp.Synthetic(queries=60, docs=15, features=5, grades=3, noise=1.0, seed=3).dataset()
TRAIN, VALID = DATA[:40], DATA[40:]


def test_tuning_returns_the_best_setting_on_validation_data() -> None:
    seen = []
    result = fp.tune(fp.FocusedNet(k=5), TRAIN, VALID, progress=lambda *a: seen.append(a))
    assert [t.parameters["beta"] for t in result.trials] == [round(i / 20, 2) for i in range(21)]
    assert (
        result.score
        == max(t.score for t in result.trials)
        == pytest.approx(result.best.score(VALID))
    )
    assert result.best.beta == result.parameters["beta"]
    assert seen[-1][:2] == (21, 21)
    assert set(result.table()[0]) == {"beta", "NDCG@10", "iterations", "seconds"}


def test_default_grids_are_those_of_the_papers() -> None:
    assert [s.rate for s in paper_grid(fp.RankNet(solver="gd"))["solver"]] == [
        1e-5,
        1e-4,
        1e-3,
        1e-2,
        1e-1,
    ]
    assert paper_grid(fp.ListMLE(solver="SGD"))["solver"][-1].rate == 0.1
    assert "l2" in paper_grid(fp.ListNet())


def test_custom_grid_with_a_measure_that_is_better_when_lower() -> None:
    ranker = fp.ListMLE(measure="WKT@5")
    result = fp.tune(ranker, TRAIN, VALID, {"l2": [1e-3, 100.0], "k": [3, None]})
    assert len(result.trials) == 4
    assert result.score == min(t.score for t in result.trials)


def test_optuna_searches_between_the_ends_of_the_grid() -> None:
    result = fp.tune(
        fp.ListNet(),
        TRAIN,
        VALID,
        {"l2": [1e-6, 10.0], "k": [1, 2, 9], "normalize": [None, "minmax"]},
        method="optuna",
        trials=6,
    )
    assert len(result.trials) == 6
    assert all(1e-6 <= t.parameters["l2"] <= 10 for t in result.trials)
    assert {t.parameters["normalize"] for t in result.trials} <= {None, "minmax"}
    again = fp.tune(
        fp.ListNet(),
        TRAIN,
        VALID,
        {"l2": [1e-6, 10.0], "k": [1, 2, 9], "normalize": [None, "minmax"]},
        method="optuna",
        trials=6,
    )
    assert [t.parameters for t in again.trials] == [t.parameters for t in result.trials]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"grid": {"x": [1]}}, "no parameter 'x'"),
        ({"grid": {"l2": []}}, "no value of 'l2'"),
        ({"method": "guess"}, "'grid' or 'optuna'"),
    ],
)
def test_invalid_arguments_of_tune_are_rejected(how, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fp.tune(fp.ListNet(), TRAIN, VALID, **how)


def test_validation_data_without_preferences_choose_nothing() -> None:
    equal = VALID.with_labels(np.ones(VALID.n_docs))
    message = "no query of the validation data has documents with different labels"
    with pytest.raises(DataError, match=message):
        fp.tune(fp.ListNet(), TRAIN, equal)
    with pytest.warns(fp.FirstpageWarning, match=message):
        fp.ListNet().fit(TRAIN, valid=equal)


def test_an_interrupt_keeps_the_best_trial() -> None:
    def stop(number: int, total: int, trial) -> None:
        if number == 2:
            raise KeyboardInterrupt

    result = fp.tune(fp.ListNet(), TRAIN, VALID, progress=stop)
    assert len(result.trials) == 2


def test_cross_validation_equals_explicit_fits(tmp_path) -> None:
    fp.write_folds(DATA, tmp_path, 5)
    folds = fp.read_folds(tmp_path)
    result = fp.cross_validate(
        [fp.ListNet(), fp.ListMLE(k=3, ties="random")], folds, ["NDCG@5", "AP"], seeds=(0, 1)
    )
    by_hand = [
        fp.evaluate(fp.ListNet().fit(f.train).predict(f.test), f.test, measures="NDCG@5")["NDCG@5"]
        for f in folds
    ]
    name, other = result.values
    assert result.mean(name, "NDCG@5") == pytest.approx(np.mean(by_hand))
    assert result.seed_deviation(name, "NDCG@5") == 0
    assert present(result.seed_deviation(other, "NDCG@5")) > 0
    assert result.standard_error(name, "NDCG@5") > 0
    assert len(result.queries) == 60
    tuned = fp.cross_validate(
        {"x": fp.ListNet()}, folds[:2], ["AP"], tuned=True, grid={"l2": [0.1, 1.0]}
    )
    assert [row["fold"] for row in tuned.chosen["x"]] == [1, 2]
    assert tuned.to_dict()["results"][0]["ranker"] == "x"


def test_published_numbers_are_reached_on_ohsumed(real_data) -> None:
    """Published values in LETOR's convention, mean over folds and five seeds."""
    folds = fp.read_folds(real_data / "ohsumed")
    unfitted = {
        "ListNet": fp.ListNet(normalize="minmax"),
        "ListMLE": fp.ListMLE(normalize="minmax"),
        "top-10 ListMLE": fp.ListMLE(k=10, normalize="minmax"),
    }
    shown = ["NDCG@1", "NDCG@3", "NDCG@10"]
    result = fp.cross_validate(unfitted, folds, shown, "letor", seeds=range(5))
    bars = {
        "ListNet": (0.523 - 0.01, 0.478 - 0.01, 0.449 - 0.01),
        "ListMLE": (0.548 - 0.03, 0.473 - 0.02, 0.446 - 0.02),
        "top-10 ListMLE": (0.558 - 0.03, 0.473 - 0.02, 0.444 - 0.02),
    }
    for name, expected in bars.items():
        for measure, bar in zip(shown, expected, strict=True):
            assert result.mean(name, measure) >= bar, (name, measure, result.mean(name, measure))


RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


@pytest.mark.filterwarnings("ignore:the validation data are the training data")
def test_an_interrupt_in_a_fit_stops_tuning() -> None:
    data = fp.Dataset.from_arrays(X, Y, QID)
    fits = []

    class Once(fp.ListNet):
        def fit(self, *args, **more):
            def stop(step) -> None:
                fits.append(1)
                raise KeyboardInterrupt

            return super().fit(*args, **more, progress=stop)

    with pytest.warns(UserWarning, match="interrupted"):
        result = fp.tune(Once(), data, data)
    assert result.interrupted
    assert len(fits) == 1


@pytest.mark.filterwarnings("ignore:the validation data are the training data")
@pytest.mark.filterwarnings("ignore:training diverged in iteration")
def test_a_diverging_rate_does_not_affect_other_trials() -> None:
    data = fp.Dataset.from_arrays(1000 * X, Y, QID)
    with np.errstate(all="ignore"):
        result = fp.tune(fp.Regression(solver="gd"), data, data)
        assert len(result.trials) == 5  # the best iteration before it diverged is kept
        far = fp.Dataset.from_arrays(1e200 * X, Y, QID)
        with pytest.raises(DataError, match="lower the rate"):
            fp.tune(fp.Regression(solver="gd"), far, far)


def test_all_settings_are_compared_by_one_measure() -> None:
    result = fp.tune(fp.PLRank(seed=0), TRAIN[:10], VALID, grid={"k": [1, 10]})
    expected = [
        fp.evaluate(fp.PLRank(seed=0, k=k).fit(TRAIN[:10], valid=VALID), VALID, measures="NDCG@10")
        for k in (1, 10)
    ]
    assert [t.score for t in result.trials] == [pytest.approx(e["NDCG@10"]) for e in expected]
    with pytest.raises(DataError, match="values of different measures cannot be compared"):
        fp.tune(fp.ListNet(), TRAIN, VALID, grid={"measure": ["NDCG@10", "DCG@10"]})


def test_weights_of_validation_queries_do_not_weight_the_measure() -> None:
    weights = np.zeros(len(VALID))
    weights[0] = 1
    weighted = replace(VALID, query_weights=weights)
    ranker = fp.ListNet().fit(TRAIN, valid=weighted)
    assert ranker.score(weighted) == pytest.approx(ranker.best_score_)
    assert ranker.score(weighted) == pytest.approx(ranker.score(VALID))


@pytest.mark.parametrize("name", ["ListNet", "RankSVM", "LambdaMART"])
def test_trees_are_tuned_by_their_own_parameters(name: str) -> None:
    ranker = fp.ranker(f"{name}(scorer=trees(count=3, min_docs=4))")
    trees = paper_grid(ranker)["scorer"]
    assert [(t.rate, t.count, t.min_docs) for t in trees] == [(0.03, 3, 4), (0.1, 3, 4)]
    assert list(paper_grid(fp.FocusedSVM(scorer="trees"))) == ["beta"]
