"""Fits of click models: EM never decreases, known parameters are recovered, golden values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.clicks.models import MODELS
from firstpage.clicks.models.priors import estimate_beta
from tests.clicks.models.pages import random_pages

NAMES = sorted(MODELS)
GOLDEN = {
    "RankCTR": (-0.38552, 1.48796),
    "DocumentCTR": (-0.36251, 1.44786),
    "DCM(counting=True)": (-0.37762, 1.44165),
    "SimplifiedDBN(counting=True)": (-0.37129, 1.43593),
    "PBM(iterations=50, anchored=False)": (-0.35248, 1.43366),
    "UBM(iterations=50, anchored=False)": (-0.32405, 1.43417),
}
TRUTH = {
    "PBM": {"examination": [0.0, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1]},
    "DCM": {"continuation": [0.0, 0.9, 0.7, 0.6, 0.5, 0.4, 0.5]},
    "DBN": {"continuation": [0.8]},
    "CCM": {"continuation": [0.9, 0.7, 0.2]},
}


@pytest.mark.parametrize("prior", [None, (1, 1), (0.3, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_steps_never_decrease_the_objective(name: str, prior: tuple[float, float] | None) -> None:
    model = MODELS[name](prior=prior, iterations=30).fit(random_pages(200))
    assert len(model.objectives_) == 30
    rounding = 1e-14 * abs(model.objectives_[0])
    assert np.diff(model.objectives_).min() > -max(rounding, 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_acceleration_ends_at_least_as_high_as_many_plain_steps(name: str) -> None:
    pages = random_pages(200)
    plain = MODELS[name](prior=(1, 1), iterations=400).fit(pages)
    fast = MODELS[name](prior=(1, 1), tolerance=1e-10).fit(pages)
    assert fast.objectives_[-1] > plain.objectives_[-1] - 1e-4
    assert fast.converged_


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_known_parameters_are_recovered(name: str) -> None:
    """20,000 simulated pages give the parameters of ranks and most of attractiveness."""
    pages = random_pages(20_000, documents=12, seed=1)
    model = MODELS[name](prior=(1, 1), iterations=1).fit(pages)  # of any parameters
    rng = np.random.default_rng(2)
    table = model.attractiveness_
    table.value[:] = rng.beta(2, 3, len(table))
    if hasattr(model, "satisfaction_"):
        model.satisfaction_.value[:] = rng.beta(2, 3, len(table))
    for family, values in TRUTH[name].items():
        model.parameters_[family] = np.array(values)
    again = MODELS[name]().fit(model.simulate(pages, seed=3))
    for family, values in TRUTH[name].items():
        first = 1 if len(values) > 3 else 0  # there is no rank 0
        last = -1 if name == "DCM" else None  # nothing follows the last rank
        estimate = again.parameters_[family][first:last]
        np.testing.assert_allclose(estimate, values[first:last], atol=0.05)
    error = again.attractiveness_.value - table.value
    assert np.sqrt(np.mean(error**2)) < 0.03
    low, high = again.attractiveness_.interval()
    assert np.mean((low <= table.value) & (table.value <= high)) > 0.8


def test_equal_pages_count_as_often_as_they_occur() -> None:
    pages = random_pages(50)
    twice = fp.clicks.concatenate(pages, pages)
    for name in NAMES:
        one = MODELS[name](prior=(1, 2)).fit(pages)
        two = MODELS[name](prior=(2, 4)).fit(twice)
        assert two.log_likelihood_ == pytest.approx(2 * one.log_likelihood_, rel=1e-6)


def test_pages_without_impressions_count_nothing() -> None:
    pages = random_pages(50)
    empty = replace(
        pages,
        offsets=np.append(pages.offsets, pages.offsets[-1]),
        page_query=np.append(pages.page_query, np.int32(0)),
        session=np.append(pages.session, np.int32(50)),
    )
    for name in NAMES:
        one, two = (MODELS[name](prior=(1, 2)).fit(s) for s in (pages, empty))
        assert two.log_likelihood_ == one.log_likelihood_
        assert (two.log_likelihood(empty) == one.log_likelihood(pages)).all()
        assert not len(one.log_likelihood(pages.select(np.zeros(0, int))))
    with pytest.raises(fp.DataError, match="no impressions to fit a click model"):
        fp.clicks.PBM().fit(pages.select(np.zeros(0, int)))


@pytest.mark.parametrize("name", NAMES)
def test_logs_that_tell_nothing_of_satisfaction_are_fitted(name: str) -> None:
    """Without clicks, or with one result per page, no user was seen to go on after a click."""
    pages = random_pages(40)
    unclicked = replace(pages, clicks=np.zeros_like(pages.clicks))
    short = fp.Sessions.from_arrays(
        query=["q", "r"] * 9, document=["a"] * 18, rank=[1] * 18, clicked=[0, 1, 1] * 6
    )
    for log in (unclicked, short):
        model = MODELS[name]().fit(log)
        assert np.isfinite(model.log_likelihood(log)).all()
        assert all(np.isfinite(values).all() for values in model.parameters_.values())


def test_the_prior_is_that_of_simulated_documents() -> None:
    rng = np.random.default_rng(0)
    p, n = rng.beta(1.5, 6, 30_000), rng.integers(1, 40, 30_000).astype(float)
    a, b = estimate_beta(rng.binomial(n.astype(int), p).astype(float), n)
    assert (a, b) == pytest.approx((1.5, 6), rel=0.04)
    equal = estimate_beta(rng.binomial(30, 0.2, 2000).astype(float), np.full(2000, 30.0))
    assert sum(equal) > 500  # all documents alike: only the prior counts


def test_a_prior_is_kept_and_an_unknown_document_gets_its_mean() -> None:
    model = fp.clicks.DocumentCTR(prior=(1, 3)).fit(random_pages(20))
    unknown = fp.Sessions.from_arrays(query=["new"], document=["x"], rank=[1], clicked=[0])
    assert model.click_probabilities(unknown).tolist() == [0.25]
    assert model.priors_["attractiveness"] == (1.0, 3.0)


def test_simulation_is_that_of_the_seed_and_of_the_model() -> None:
    pages = random_pages(2000)
    for name in NAMES:
        model = MODELS[name]().fit(pages)
        clicks = model.simulate(pages, seed=5).clicks
        assert (clicks == model.simulate(pages, seed=5).clicks).all()
        assert (clicks != model.simulate(pages, seed=6).clicks).any()
        expected = np.bincount(pages.rank, model.click_probabilities(pages))[1:]
        found = np.bincount(pages.rank, clicks)[1:]
        np.testing.assert_allclose(found, expected, atol=5 * np.sqrt(expected.max()))


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(fp.DataError, match="prior must be two positive numbers"):
        fp.clicks.PBM(prior=(0, 1))
    with pytest.raises(fp.DataError, match="prior must be two positive numbers"):
        fp.clicks.PBM(prior=(np.inf, 1))
    pages = random_pages(2)
    with pytest.raises(fp.DataError, match="seed must be a non-negative integer; got -1"):
        fp.clicks.PBM(prior=(1, 1)).fit(pages).simulate(pages, seed=-1)
    with pytest.raises(fp.DataError, match="iterations of UBM must be an integer of at least 1"):
        fp.clicks.UBM(iterations=0)
    with pytest.raises(fp.DataError, match=r"no click model 'UMB'\. Did you mean 'UBM'"):
        fp.clicks.click_model("UMB")
    with pytest.raises(fp.DataError, match="PBM is not fitted"):
        fp.clicks.PBM().log_likelihood(random_pages(2))


def test_large_ranks_and_mixed_layouts_are_not_silent() -> None:
    arrays = {"query": ["q"] * 2, "document": ["a", "b"], "clicked": [1, 0]}
    with pytest.raises(fp.DataError, match="the largest rank is 5,000"):
        fp.clicks.UBM().fit(fp.Sessions.from_arrays(rank=[1, 5000], **arrays))
    deep = fp.Sessions.from_arrays(rank=[1, 5000], **arrays)
    for name in ("GlobalCTR", "RankCTR", "DocumentCTR", "PBM", "DCM"):
        p = fp.clicks.click_model(f"{name}(prior=(1, 1))").fit(deep).click_probabilities(deep)
        assert p[0] >= p[1] > 0
    model = fp.clicks.PBM(prior=(1, 1)).fit(fp.Sessions.from_arrays(rank=[1, 2], **arrays))
    with pytest.warns(fp.FirstpageWarning, match="1 impressions are at ranks below 2"):
        model.click_probabilities(fp.Sessions.from_arrays(rank=[1, 3], **arrays))
    mixed = fp.Sessions.from_arrays(rank=[1, 1], page=[0, 1], layout=["list", "grid"], **arrays)
    with pytest.warns(fp.FirstpageWarning, match="several layouts"):
        fp.clicks.RankCTR().fit(mixed)


@pytest.fixture(scope="session")
def yandex(real_data: Path) -> tuple[fp.Sessions, fp.Sessions]:
    folder = real_data / "clicks" / "yandex"
    if not folder.is_dir():
        pytest.skip("no logs of clicks in the real data")
    train, test = (fp.read_sessions(folder / f"{name}Sample") for name in ("train", "test"))
    return train, test


def test_golden_values_of_another_program(yandex: tuple[fp.Sessions, fp.Sessions]) -> None:
    """The values that PyClick prints for these files, to all five digits."""
    models = [
        f"{text[:-1]}, prior=(1, 1))" if "(" in text else f"{text}(prior=(1, 1))" for text in GOLDEN
    ]
    comparison = fp.clicks.compare_models(models, *yandex)
    found = {
        score.model.partition("(")[0]: (score.log_likelihood, score.perplexity)
        for score in comparison.scores
    }
    for text, expected in GOLDEN.items():
        assert found[text.partition("(")[0]] == pytest.approx(expected, abs=6e-6), text


def test_estimated_priors_predict_real_clicks_better(
    yandex: tuple[fp.Sessions, fp.Sessions],
) -> None:
    for name in ("DocumentCTR", "DCM", "SimplifiedDBN", "DBN", "PBM", "UBM", "CCM"):
        uniform = MODELS[name](prior=(1, 1))
        comparison = fp.clicks.compare_models([name, uniform], *yandex)
        assert comparison.scores[0].model == name
