"""Scores that are not finite are errors, which name what is too large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.learning.models.finite_values import LARGE, probe_features
from firstpage.learning.models.model_files import FILE, Model, read_model
from firstpage.learning.scorers.linear import LinearScoring

DATA = fp.Dataset.from_arrays([[1.0, 2.0], [3.0, 4.0]], [0, 1], ["a", "b"])
HUGE = DATA.with_features(DATA.X * 1e200)


def linear(*weights: float, transform: Any = None, names: Any = None) -> Model:
    return Model("ListNet", {}, LinearScoring(np.array(weights)), transform, names, {}, "m.json")


@pytest.mark.parametrize("weights", [(1e308, 1e308), (-1e308, 1e308), (1e308, -1e308)])
def test_a_model_whose_scores_overflow_is_named(weights: tuple[float, float]) -> None:
    with pytest.raises(
        fp.DataError, match=r"row [12] \(query '[ab]'\) by m.json is .* of the model"
    ):
        linear(*weights).predict(DATA)


def test_features_that_overflow_are_named() -> None:
    with pytest.raises(fp.DataError, match=r"row 1 \(query 'a'\) .*: feature 2 is 2e\+200"):
        linear(1e150, 1e150).predict(HUGE)
    named = HUGE.with_features(HUGE.X, ["bm25", "age"])
    with pytest.raises(fp.DataError, match=r": age is 2e\+200; divide"):
        linear(1e150, 1e150, names=("bm25", "age")).predict(named)


def test_a_fitted_ranker_checks_its_scores() -> None:
    ranker = fp.Regression().fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
    assert ranker.predict([[1e300]]).shape == (1,)
    ranker.model_ = LinearScoring(np.array([1e308]))
    for call in (ranker.predict, ranker.rank):
        with pytest.raises(fp.DataError, match="by Regression is inf"):
            call([[1.0], [3.0]], qid=[1, 1])


@pytest.mark.parametrize(
    "scaling",
    [
        {"shift": [0.0, float("nan")], "scale": [1.0, 1.0]},
        {"shift": [0.0, 0.0], "scale": [1.0, float("inf")]},
        {"shift": [0.0, 0.0], "scale": [1.0, 0.0]},
        {"shift": [0.0, 0.0], "scale": [1.0, -1.0]},
        {"shift": [0.0], "scale": [1.0]},
        {},
        {"shift": [0.0, 0.0], "scale": [1.0, 1.0], "impute": "mean"},
        {"shift": [0.0, 0.0], "scale": [1.0, 1.0], "impute": "mean", "fill": [float("nan"), 0.0]},
    ],
)
def test_model_files_with_invalid_scaling_are_damaged(scaling: Any, tmp_path: Path) -> None:
    contents = linear(1.0, 2.0).to_dict()
    contents["normalize"] = {"transform": "standardize", "per": "global", **scaling}
    for key in ("format", "version", "sha256"):
        del contents[key]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(FILE.with_header(contents)))
    with pytest.raises(
        fp.DataError, match=r"model.json: damaged: (the scaling|a scale) of the fea"
    ):
        read_model(path)


def test_probes_are_ordinary_features() -> None:
    X = probe_features(None, 3, 50, [1])
    assert (np.abs(X).max(), np.abs(X[:, 1]).max()) == (LARGE, 0.0)
    assert X[-1].tolist() == [LARGE, 0.0, LARGE]
    assert not X.any(axis=1).all()
    scaling = fp.Standardize("global", np.array([5.0, 0.0, 1e300]), np.array([2.0, 1.0, 1e299]))
    X = probe_features(scaling, 3, 50)
    assert set(X[:, 0].tolist()) == {-1.0, 5.0, 11.0}
    assert np.isfinite(X).all()
