"""Linear scores: values, gradients and preconditioners, against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from firstpage.core.errors import DataError
from firstpage.learning.scorers import linear
from firstpage.learning.scorers.linear import Linear, LinearScoring
from tests.learning.scorers.checks import check_gradient, forward

RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(203, 7)) * (RNG.random((203, 7)) < 0.6)
FORMS: dict[str, Any] = {
    "float64": DENSE,
    "float32": DENSE.astype(np.float32),
    "sparse": csr_array(DENSE),
}
WEIGHTS = RNG.normal(size=7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("lo", "hi"), [(0, 203), (17, 64), (5, 5)])
def test_scores_are_products_of_features_and_weights(form: str, lo: int, hi: int) -> None:
    tolerance = 1e-5 if form == "float32" else 1e-12
    scores = forward(Linear().bind(FORMS[form]), WEIGHTS, lo, hi)
    assert scores == pytest.approx(DENSE[lo:hi] @ WEIGHTS, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("form", FORMS)
def test_gradient_matches_finite_differences(form: str) -> None:
    bound = Linear().bind(FORMS[form])
    check_gradient(bound, WEIGHTS, 1e-3, 1e-3 if form == "float32" else 1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_model_scores_each_row_by_itself_in_float64(form: str) -> None:
    scoring = LinearScoring(WEIGHTS, 0.25)
    X = FORMS[form]
    expected = np.asarray(X.todense() if form == "sparse" else X, np.float64) @ WEIGHTS + 0.25
    scores = scoring.predict(X)
    assert scores == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert scoring.predict(X[3:9]).tolist() == scores[3:9].tolist()
    assert Linear().bind(X).predict(WEIGHTS, X).tolist() == (
        LinearScoring(WEIGHTS).predict(X).tolist()
    )


def test_a_fit_starts_at_zero() -> None:
    assert Linear().bind(DENSE).initial_params(3).tolist() == [0.0] * 7


@pytest.mark.parametrize("form", ["float64", "sparse"])
def test_the_preconditioner_makes_the_curvature_inside_queries_the_identity(form: str) -> None:
    ends = [np.array([0, 40, 90]), np.array([90, 150])]
    weights, l2 = RNG.random(150), 0.5
    T = Linear().bind(FORMS[form]).preconditioner(ends, weights, l2)
    assert T is not None
    curvature = l2 * np.eye(7)
    for lo, hi in ((0, 40), (40, 90), (90, 150)):
        w, rows = weights[lo:hi], DENSE[lo:hi]
        centered = rows - np.average(rows, axis=0, weights=w)
        curvature += centered.T @ (w[:, None] * centered)
    assert T.T @ curvature @ T == pytest.approx(np.eye(7), abs=5e-3)


@pytest.mark.parametrize("form", ["float64", "sparse"])
def test_many_features_are_scaled_by_their_root_mean_square(form: str, monkeypatch) -> None:
    monkeypatch.setattr(linear, "MAX_COVARIANCE_FEATURES", 6)
    bound = Linear().bind(FORMS[form])
    scales = bound.preconditioner([np.array([0, 203])], np.ones(203), 0.1)
    assert bound.squares() == pytest.approx((DENSE**2).sum(axis=0))
    assert scales == pytest.approx(1 / np.sqrt((DENSE**2).mean(axis=0) + 0.1))


def test_constant_features_have_no_preconditioner() -> None:
    constant = Linear().bind(np.ones((6, 2)))
    assert constant.preconditioner([np.array([0, 3, 6])], np.ones(6), 0.0) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [[1.0, 2.0]]}, "not one finite number per feature"),
        ({"weights": [1.0, float("nan")]}, "not one finite number per feature"),
        ({"intercept": float("inf")}, "the intercept is not finite"),
    ],
)
def test_invalid_weights_are_refused(change: dict, message: str) -> None:
    good = {"kind": "linear", "weights": [1.0, -2.5], "intercept": 0.5}
    assert LinearScoring.from_dict(good).to_dict() == good
    with pytest.raises(DataError, match=message):
        LinearScoring.from_dict({**good, **change})
