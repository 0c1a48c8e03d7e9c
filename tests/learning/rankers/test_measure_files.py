"""Measure files in training: gains of LambdaMART, early stopping, boosting, tuning, metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageError, FirstpageWarning

DATA = fp.Synthetic(queries=60, docs=15, features=5, grades=4, noise=1.0, seed=4).dataset()
TRAIN, VALID, TEST = DATA[:30], DATA[30:45], DATA[45:]
USUAL = fp.dcglearn.Utility.from_dcg("exp", range(4), 10)
STEEP = fp.dcglearn.Utility.from_gains([0, 0.1, 0.2, 30], [1, 0.3, 0.1])
TREES = "trees(count=15, leaves=7)"


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    USUAL.save("usual.json")
    STEEP.save("steep.json")
    return tmp_path


# --- LambdaMART


@pytest.mark.parametrize(
    "gain", [[0, 1, 3, 7], (0.0, 1, 3, 7), np.array([0, 1, 3, 7]), USUAL, "usual.json"], ids=str
)
def test_default_gains_in_any_form_equal_those_of_lightgbm(here: Path, gain) -> None:
    usual = fp.LambdaMART(scorer=TREES).fit(TRAIN)
    ranker = fp.LambdaMART(gain=gain, scorer=TREES)
    with_gains = clone(ranker).fit(TRAIN)
    assert np.array_equal(with_gains.predict(TEST), usual.predict(TEST))
    assert with_gains.training_["label_gain"] == pytest.approx([0, 1, 3, 7])
    assert "label_gain" not in usual.training_


def test_gains_change_the_model_of_lightgbm() -> None:
    usual = fp.LambdaMART(scorer=TREES).fit(TRAIN)
    with_gains = fp.LambdaMART(gain=STEEP, scorer=TREES).fit(TRAIN)
    assert not np.allclose(with_gains.predict(TEST), usual.predict(TEST))
    assert with_gains.training_["label_gain"] == pytest.approx([0, 7 / 300, 14 / 300, 7])


@pytest.mark.parametrize("gain", [[0, 1, 3, 7], np.arange(4.0), STEEP, "steep.json"], ids=str)
def test_models_store_their_gains(here: Path, gain) -> None:
    ranker = fp.LambdaMART(gain=gain, scorer=TREES).fit(TRAIN)
    assert ranker.get_params()["gain"] is gain
    ranker.save("model.json")
    Path("steep.json").unlink()
    again = fp.load("model.json")
    assert np.array_equal(again.predict(TEST), ranker.predict(TEST))
    assert again.training_ == json.loads(json.dumps(ranker.training_))
    if isinstance(gain, str):
        assert again.gain == gain
        with pytest.raises(DataError, match=r"steep.json: no such file"):
            again.fit(TRAIN)
    else:
        refitted = clone(again).fit(TRAIN)
        assert np.array_equal(refitted.predict(TEST), ranker.predict(TEST))


@pytest.mark.parametrize(
    ("gain", "message"),
    [
        ([0, 1, 3], "gains of the labels 0 to 2, and the data hold a label 3"),
        ([0, 3, 1, 7], "gain must rise from 0 or above"),
        ([-1, 0, 1, 2], "gain must rise from 0 or above"),
        ([1, 1, 1, 1], "gain must rise from 0 or above"),
        ([0, 1, np.nan, 2], "gain must be numbers for the labels"),
        ([0], "gain must be numbers for the labels"),
        (3, "gain must be numbers for the labels"),
        ([[0, 1], [2]], "gain must be numbers for the labels"),
        ({"a": 1}, "gain must be numbers for the labels"),
        ("none.json", "none.json: no such file"),
        ("usual.json, segment=news", "there is no segment 'news'"),
        (fp.dcglearn.Utility.from_gains([0, 1], [1], grades=[0, 99_999]), "labels up to 10000"),
    ],
)
def test_invalid_gains_are_rejected(here: Path, gain, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fp.LambdaMART(gain=gain, scorer=TREES).fit(TRAIN)


def test_gains_of_labels_above_30() -> None:
    high = TRAIN.with_labels(TRAIN.y + 40)
    with pytest.raises(DataError, match="integer labels from 0 to 30"):
        fp.LambdaMART(scorer=TREES).fit(high)
    result = fp.LambdaMART(gain=np.arange(50.0), scorer=TREES).fit(high)
    assert result.score(TEST) > 0.5


# --- measures of training


def test_early_stopping_and_score_with_a_measure_file(here: Path) -> None:
    measure = "NDCG(steep.json, form=weights)@2"
    ranker = fp.ListMLE(measure=measure, scorer=TREES).fit(TRAIN, valid=VALID)
    got = fp.evaluate(ranker.predict(VALID), VALID, measures=measure)[measure]
    assert ranker.best_score_ == pytest.approx(got)
    best = max(step.measure for step in ranker.history_)  # not averaged over numbers of trees
    assert ranker.best_score_ == pytest.approx(best, abs=0.1)
    assert ranker.training_["measure"] == measure
    ranker.save("model.json")
    Path("steep.json").unlink()
    assert np.array_equal(fp.load("model.json").predict(TEST), ranker.predict(TEST))
    with pytest.raises(FirstpageError, match="no such file"):
        fp.load("model.json").score(TEST)


def test_a_utility_as_the_measure_of_a_ranker(here: Path) -> None:
    ranker = fp.ListNet(measure=STEEP).fit(TRAIN, valid=VALID)
    ranker.save("model.json")
    again = fp.load("model.json")
    assert again.score(TEST) == pytest.approx(ranker.score(TEST))
    assert again.score(TEST) == pytest.approx(
        fp.evaluate(ranker.predict(TEST), TEST, measures=STEEP).values.mean()
    )


@pytest.mark.parametrize("weak", ["features", "stumps(bins=8)"])
def test_adarank_maximizes_a_measure_file(here: Path, weak: str) -> None:
    usual = fp.AdaRank(maximize="NDCG@10", weak=weak, rounds=15).fit(TRAIN)
    from_file = fp.AdaRank(maximize="NDCG(usual.json)@10", weak=weak, rounds=15).fit(TRAIN)
    assert from_file.predict(TEST) == pytest.approx(usual.predict(TEST), abs=1e-6)
    free = fp.AdaRank(maximize="NDCG(steep.json, form=weights)", weak=weak, rounds=15).fit(TRAIN)
    assert free.score(TRAIN) > 0.5
    with pytest.raises(DataError, match="boosting needs a measure from 0 to 1"):
        fp.AdaRank(maximize="DCG(usual.json)", rounds=2).fit(TRAIN)


def test_tuning_and_cross_validation_with_a_measure_file(here: Path) -> None:
    tuned = fp.tune(
        fp.TopSlack(measure="NDCG(steep.json)@2"),
        TRAIN,
        VALID,
        {"delta": ["NDCG@3", "NDCG(steep.json)@3"]},
    )
    assert tuned.measure == "NDCG(steep.json)@2"
    assert [t.parameters["delta"] for t in tuned.trials] == ["NDCG@3", "NDCG(steep.json)@3"]
    fp.write_folds(DATA, "letor", 3)
    measures: list[Any] = ["NDCG@10", "NDCG(usual.json)@10", fp.measure("NDCG@10", of=USUAL), STEEP]
    result = fp.cross_validate(fp.ListNet(), fp.read_folds("letor"), measures)
    (values,) = result.values.values()
    assert result.measures[:2] == ("NDCG@10", "NDCG(usual.json)@10")
    assert len(result.measures) == 4
    for text in result.measures[1:3]:
        assert values[text] == pytest.approx(values["NDCG@10"])


def test_metrics_of_lightgbm_and_xgboost_with_a_measure_file(here: Path) -> None:
    USUAL.save("my usual.json")
    metric = fp.metric("NDCG(my usual.json)@10")
    data = lightgbm.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.lengths).construct()
    name, value, *up = metric(TRAIN.y, data)
    assert (name, up) == ("NDCG(my usual.json)@10", [True])
    matrix = xgboost.DMatrix(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    history: dict[str, dict[str, list[float]]] = {}
    xgboost.train(
        {"verbosity": 0},
        matrix,
        2,
        custom_metric=metric,
        evals=[(matrix, "all")],
        evals_result=history,
        verbose_eval=False,
    )
    assert len(history["all"]["NDCG(my_usual.json)@10"]) == 2  # XGBoost separates fields by blanks
    assert 0.5 < history["all"]["NDCG(my_usual.json)@10"][0] <= value == pytest.approx(1.0)


def test_increasing_discounts_cause_one_warning(here: Path) -> None:
    fp.dcglearn.Utility.from_gains([0, 1, 2, 3], [0.5, 1, 0.2]).save("rising.json")
    with pytest.warns(FirstpageWarning, match="its discounts increase") as warned:
        fp.TopMargin(delta="NDCG(rising.json)").fit(TRAIN)
    assert len([w for w in warned if "discounts increase" in str(w.message)]) == 1


def test_weights_of_an_aggregation_by_a_utility() -> None:
    rng = np.random.default_rng(0)
    systems = [TEST.y + rng.normal(size=TEST.n_docs) * scale for scale in (0.1, 5.0)]
    result = fp.aggregation.supervised_weights(systems, TEST, fp.measure("NDCG", of=STEEP))
    assert result.weights[0] > result.weights[1]
    assert fp.aggregation.supervised_weights(systems, TEST, STEEP).measure == str(fp.measure(STEEP))
