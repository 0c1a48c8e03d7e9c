"""Networks: scores and gradients by PyTorch, and the fitted model, which needs only NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from firstpage.errors import DataError
from firstpage.registry import ParameterError
from firstpage.scorers import mlp
from firstpage.scorers.mlp import MLP, MLPScoring, layers, torch_threads
from tests.scorers.checks import check_gradient, forward

RNG = np.random.default_rng(0)
X = RNG.normal(2.0, 3.0, size=(90, 4))
X[:, 3] = 7.0  # a constant feature is only shifted
GOOD = {
    "kind": "mlp",
    "mean": [1.0, 2.0],
    "deviation": [0.5, 4.0],
    "W": [[1.0, -2.0, 0.5], [0.25, 1.0, -1.0]],
    "b": [0.5, 0.0, -1.0],
    "v": [1.0, -1.0, 2.0],
    "c": 0.125,
}


def formula(x: np.ndarray, params: np.ndarray) -> float:
    """Return the score of one document by the formula."""
    deviation = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    z = (x - X.mean(axis=0)) / deviation
    W, b, v, c = layers(params, 4, 3)
    return float(c) + sum(v[h] * max(0.0, sum(z * W[:, h]) + b[h]) for h in range(3))


@pytest.mark.torch
@pytest.mark.parametrize("form", [X, X.astype(np.float32), csr_array(X)], ids=["64", "32", "csr"])
def test_scores_match_the_formula(form) -> None:
    bound = MLP(hidden=3).bind(form)
    params = bound.initial_params(5)
    expected = [formula(x, params) for x in X]
    assert forward(bound, params, 0, 90) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert forward(bound, params, 20, 31) == pytest.approx(expected[20:31], rel=1e-4, abs=1e-5)
    assert bound.predict(params, form) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.torch
def test_gradient_matches_finite_differences() -> None:
    bound = MLP(hidden=3).bind(X)
    check_gradient(bound, bound.initial_params(0), 1e-2, 2e-2)


@pytest.mark.torch
def test_initial_parameters_depend_on_the_seed() -> None:
    bound = MLP(hidden=3).bind(X)
    first = bound.initial_params(1)
    assert len(first) == bound.size == (4 + 2) * 3 + 1
    assert first.tolist() == bound.initial_params(1).tolist() != bound.initial_params(2).tolist()
    assert bound.preconditioner([np.array([0, 90])], np.ones(90), 0.1) is None
    assert bound.scoring(first).params == pytest.approx(first, rel=1e-6)


@pytest.mark.torch
def test_threads_are_limited_inside_the_context() -> None:
    import torch

    before = torch.get_num_threads()
    with torch_threads(1):
        assert torch.get_num_threads() == 1
    with torch_threads(None):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before


def test_many_rows_are_scored_in_chunks(monkeypatch) -> None:
    scoring = MLPScoring.from_dict(GOOD)
    rows = RNG.normal(size=(50, 2))
    scores, contributions = scoring.predict(rows), scoring.contributions(rows)
    monkeypatch.setattr(mlp, "SCORED_ROWS", 7)
    monkeypatch.setattr(mlp, "EXPLAINED_ROWS", 7)
    assert scoring.predict(rows) == pytest.approx(scores, rel=1e-12)
    assert scoring.contributions(rows).values == pytest.approx(contributions.values, rel=1e-12)


def test_contributions_are_gradients_times_differences_from_the_mean() -> None:
    scoring = MLPScoring.from_dict(GOOD)
    rows, step = RNG.normal(size=(40, 2)), 1e-6
    values = scoring.contributions(rows).values
    for feature in (0, 1):
        shift = step * np.eye(2)[feature]
        gradient = (scoring.predict(rows + shift) - scoring.predict(rows - shift)) / (2 * step)
        difference = rows[:, feature] - scoring.mean[feature]
        assert values[:, feature] == pytest.approx(gradient * difference, abs=1e-6)


@pytest.mark.torch
def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(DataError, match=r"device 'nowhere' cannot be used") as error:
        MLP(device="nowhere").bind(X)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("hidden", [0, -1, 2.5, "x"])
def test_the_number_of_hidden_units_is_a_positive_integer(hidden) -> None:
    with pytest.raises(ParameterError, match="hidden of MLP must be an integer of at least 1"):
        MLP(hidden=hidden)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": [0.5, 0.0]}, "do not match"),
        ({"W": [[1.0, -2.0, 0.5]]}, "do not match"),
        ({"v": [1.0, float("nan"), 2.0]}, "do not match"),
        ({"deviation": [0.0, 4.0]}, "is not above 0"),
        ({"c": float("inf")}, "its output bias is not finite"),
    ],
)
def test_invalid_networks_are_refused(change: dict, message: str) -> None:
    assert MLPScoring.from_dict(GOOD).to_dict() == GOOD
    with pytest.raises(DataError, match=message):
        MLPScoring.from_dict({**GOOD, **change})
