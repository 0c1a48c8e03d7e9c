"""Comparison of click models on other pages, and their files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.clicks.models import MODELS
from tests.clicks.models.pages import random_pages


@pytest.fixture(scope="module")
def logs() -> tuple[fp.Sessions, fp.Sessions]:
    """Pages of 40 queries with clicks of a position-based model."""
    pages = random_pages(3000, queries=40)
    model = fp.clicks.PBM().fit(pages)
    rng = np.random.default_rng(0)
    model.attractiveness_.value[:] = rng.beta(1, 2, len(model.attractiveness_))
    model.parameters_["examination"] = np.array([0, 1, 0.8, 0.5, 0.4, 0.3, 0.2])
    return model.simulate(pages).split(0.4)


def test_the_true_model_is_best_and_all_are_tested(
    logs: tuple[fp.Sessions, fp.Sessions],
) -> None:
    comparison = fp.clicks.compare_models(["GlobalCTR", "RankCTR", "PBM", "DocumentCTR"], *logs)
    assert comparison.scores[0].model == "PBM"
    assert len(comparison.differences) == 6
    difference = comparison.against_best("RankCTR")
    assert difference is not None
    assert difference.p_corrected < 0.001
    assert difference.p < difference.p_corrected
    assert difference.difference == pytest.approx(
        comparison.scores[0].log_likelihood
        - next(s.log_likelihood for s in comparison.scores if s.model == "RankCTR")
    )


def test_without_pages_to_predict_there_is_no_comparison() -> None:
    pages = random_pages(2)
    with pytest.raises(fp.DataError, match="pages to predict: test on another log"):
        fp.clicks.compare_models(["PBM"], *pages.split(0.2))


def test_scores_by_hand() -> None:
    """Two queries, two ranks; click-through .5 at rank 1 and .25 at rank 2 by construction."""
    pages = fp.Sessions.from_arrays(
        query=["q", "q", "r", "r"], document=list("abcd"), rank=[1, 2, 1, 2], clicked=[1, 0, 0, 1]
    )
    model = fp.clicks.RankCTR(prior=(1, 1)).fit(pages)
    model.parameters_["examination"] = np.array([0, 0.5, 0.25])
    (score,) = fp.clicks.compare_models([model], None, pages).scores
    q, r = np.log(0.5) + np.log(0.75), np.log(0.5) + np.log(0.25)
    assert score.log_likelihood == pytest.approx((q + r) / 4)
    assert score.rank_perplexity.tolist() == pytest.approx([2, (0.75 * 0.25) ** -0.5])
    assert score.perplexity == pytest.approx(np.mean(score.rank_perplexity))
    assert score.examination.tolist() == pytest.approx([1, 0.5])
    half = 12.706204736432095 * abs(q - r) / 4  # Student's t of one degree of freedom
    assert score.log_likelihood_interval == pytest.approx(
        (score.log_likelihood - half, score.log_likelihood + half)
    )
    low, high = score.rank_intervals[1] or (0.0, 0.0)
    spread = score.rank_perplexity[1] * abs(np.log(0.75) - np.log(0.25)) / 2
    assert (high - low) / 2 == pytest.approx(12.706204736432095 * spread, rel=1e-6)


def test_intervals_cover_the_score_of_all_queries(logs: tuple[fp.Sessions, fp.Sessions]) -> None:
    """Samples of queries: 95 % intervals of log-likelihood and perplexity contain that of all."""
    model = fp.clicks.PBM().fit(logs[0])
    whole = model.simulate(random_pages(20_000, queries=400, seed=9))
    truth = fp.clicks.compare_models([model], None, whole).scores[0]
    rng, covered = np.random.default_rng(0), 0
    for _ in range(100):
        drawn = rng.choice(400, 20, replace=False)
        sample = whole.select(np.isin(whole.page_query, drawn))
        (score,) = fp.clicks.compare_models([model], None, sample).scores
        for value, interval in (
            (truth.log_likelihood, score.log_likelihood_interval),
            (truth.perplexity, score.perplexity_interval),
        ):
            assert interval is not None
            covered += interval[0] <= value <= interval[1]
    assert 180 <= covered <= 200


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_file_returns_the_model(
    name: str, logs: tuple[fp.Sessions, fp.Sessions], tmp_path: Path
) -> None:
    train, test = logs
    model = MODELS[name](prior=(1, 2)).fit(train)
    fp.clicks.save_model(model, tmp_path / "model.json.gz")
    stored = fp.clicks.load_model(tmp_path / "model.json.gz")
    assert repr(stored) == repr(model)
    assert (stored.log_likelihood(test) == model.log_likelihood(test)).all()
    assert stored.to_dict() == model.to_dict()


def test_damaged_files_are_refused_in_one_line(
    logs: tuple[fp.Sessions, fp.Sessions], tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    fp.clicks.save_model(fp.clicks.PBM(prior=(1, 1)).fit(logs[0]), path)
    data = json.loads(path.read_text())
    data["parameters"]["examination"][1] = 0.5
    path.write_text(json.dumps(data))
    with pytest.raises(fp.DataError, match="the checksum differs"):
        fp.clicks.load_model(path)
    del data["sha256"]
    data["pairs"]["attractiveness"]["value"].pop()
    path.write_text(json.dumps(data))
    with pytest.raises(fp.DataError, match=r"damaged \(the columns of pairs differ in length"):
        fp.clicks.load_model(path)
    del data["parameters"]
    path.write_text(json.dumps(data))
    with pytest.raises(fp.DataError, match=r"damaged \(.*is missing"):
        fp.clicks.load_model(path)
    path.write_text("{}")
    with pytest.raises(fp.DataError, match="not a click model of Firstpage"):
        fp.clicks.load_model(path)


def test_fits_without_a_fold_are_those_of_the_other_queries(
    logs: tuple[fp.Sessions, fp.Sessions],
) -> None:
    train, test = logs
    folds = np.arange(train.n_queries) % 3
    for name in ("PBM(prior=(2, 5))", "UBM(prior=(2, 5))", "DBN(prior=(2, 5))"):
        model = fp.clicks.click_model(name).fit(train)
        for number, other in enumerate(model.without_queries(train, folds)):
            rest = train.select(folds[train.page_query] != number)
            plain = fp.clicks.click_model(name).fit(rest)
            assert other.click_probabilities(rest) == pytest.approx(
                plain.click_probabilities(rest), abs=2e-3
            )
    comparison = fp.clicks.compare_models(["PBM", "RankCTR"], train, test, intervals=True)
    for score in comparison.scores:
        first, second = score.examination_intervals[:2]
        assert first == (1.0, 1.0)
        assert second is not None
        assert second[0] < score.examination[1] < second[1]
    assert "examination_intervals" in comparison.to_dict()["scores"][0]
