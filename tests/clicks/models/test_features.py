"""Click models whose attractiveness follows features of documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core import ParameterError

QUERIES, DOCUMENTS, PAGES = 60, 20, 6000
WEIGHTS = np.array([1.2, -0.8, 0.0])
STRENGTH = 12.0
EXAMINED = np.array([1.0, 0.6, 0.4, 0.25, 0.15])


def features_and_logs(seed: int = 0) -> tuple[fp.Dataset, fp.Sessions, fp.Sessions]:
    """Return features, and logs of the first and of the last ten documents of each query."""
    rng = np.random.default_rng(seed)
    x = rng.normal(3.0, 2.0, (QUERIES * DOCUMENTS, 3))
    mean = 1 / (1 + np.exp(1.5 - (x - 3) / 2 @ WEIGHTS))
    rates = rng.beta(STRENGTH * mean, STRENGTH * (1 - mean)).reshape(QUERIES, DOCUMENTS)
    query, document = np.divmod(np.arange(len(x)), DOCUMENTS)
    ids = [f"d{n}" for n in document]
    qid = [f"q{n}" for n in query]
    data = fp.Dataset.from_arrays(x, np.zeros(len(x)), qid, docid=ids)
    logs = []
    for first in (0, DOCUMENTS // 2):
        of_page = rng.integers(0, QUERIES, PAGES)
        shown = first + rng.random((PAGES, DOCUMENTS // 2)).argsort(axis=1)[:, : len(EXAMINED)]
        clicked = rng.random(shown.shape) < EXAMINED * rates[of_page[:, None], shown]
        logs.append(
            fp.Sessions.from_arrays(
                query=[f"q{q}" for q in np.repeat(of_page, len(EXAMINED))],
                document=[f"d{d}" for d in shown.ravel()],
                rank=np.tile(np.arange(1, len(EXAMINED) + 1), PAGES),
                clicked=clicked.ravel(),
                page=np.repeat(np.arange(PAGES), len(EXAMINED)),
            )
        )
    return data, logs[0], logs[1]


@pytest.mark.parametrize("name", ["PBM", "UBM", "DBN"])
def test_documents_never_seen_are_predicted_better_than_by_the_global_prior(name: str) -> None:
    data, seen, unseen = features_and_logs()
    model = fp.clicks.click_model(name).fit(seen)
    by_features = replace(model, features=data).fit(seen)
    gain = by_features.log_likelihood(unseen).mean() - model.log_likelihood(unseen).mean()
    assert gain > 0.01


def test_weights_and_strength_are_recovered() -> None:
    data, seen, _ = features_and_logs(seed=1)
    model = fp.clicks.PBM(features=data).fit(seen)
    weights = model.parameters_["features"]
    assert weights[2:] * 2 == pytest.approx(WEIGHTS, abs=0.15)
    assert sum(model.priors_["attractiveness"]) == pytest.approx(STRENGTH, rel=0.4)
    shuffled = replace(data, X=data.X[np.random.default_rng(2).permutation(len(data.X))])
    noise = fp.clicks.PBM(features=shuffled).fit(seen).parameters_["features"]
    assert np.abs(noise[2:] * 2).max() < 0.3
    assert "features='data'" in model.name


def test_a_stored_model_takes_its_features_again(tmp_path: Path) -> None:
    data, seen, unseen = features_and_logs()
    model = fp.clicks.PBM(features=data).fit(seen)
    fp.clicks.save_model(model, tmp_path / "model.json")
    again = fp.clicks.load_model(tmp_path / "model.json")
    assert again.click_probabilities(seen) == pytest.approx(model.click_probabilities(seen))
    with pytest.warns(fp.FirstpageWarning, match="set its features"):
        again.click_probabilities(unseen)
    again.features = data
    assert again.click_probabilities(unseen) == pytest.approx(model.click_probabilities(unseen))
    again.features = replace(data, X=data.X[:, :2])
    with pytest.raises(fp.DataError, match=r"has 2 features; PBM.* was fitted to 3"):
        again.click_probabilities(unseen)


def test_wrong_features_are_refused_in_one_line() -> None:
    data, seen, _ = features_and_logs()
    wrong: list[tuple[Any, str]] = [
        ({"features": "data.txt"}, "must be a Dataset with the ids"),
        ({"features": replace(data, docids=None)}, "must be a Dataset with the ids"),
        ({"features": data, "prior": (1, 1)}, "features are for an estimated prior"),
    ]
    for options, message in wrong:
        with pytest.raises(ParameterError, match=message):
            fp.clicks.PBM(**options)
    with pytest.raises(ParameterError, match="RankCTR: features are for"):
        fp.clicks.RankCTR(features=data)
    other = fp.Dataset.from_arrays([[1.0]], [0], ["x"], docid=["y"])
    with pytest.raises(
        fp.DataError, match=r"none of the documents of sessions; .* same names, as 'd"
    ):
        fp.clicks.PBM(features=other).fit(seen)
    holes = replace(data, X=np.full(data.X.shape, np.nan))
    with pytest.raises(fp.DataError, match="missing features; impute them"):
        fp.clicks.PBM(features=holes).fit(seen)
