"""`objective_` is the objective of the model, and never below its optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import firstpage as fp

RECIPE = fp.Synthetic(queries=30, docs=15, features=4, grades=3, noise=0.5, seed=0)
DATA = RECIPE.dataset()
TRAIN, VALID = DATA[:20], DATA[20:]
WEIGHTS = np.random.default_rng(0).uniform(0.2, 3, len(TRAIN))
pytestmark = pytest.mark.filterwarnings("ignore:the optimum is w = 0")
SMOOTH = [fp.RankNet(), fp.ListNet(), fp.ListMLE(k=5), fp.FocusedNet(k=5)]
HINGES = [fp.RankSVM(), fp.SVMMAP(), fp.FocusedSVM(k=5)]
REFERENCES: list[Any] = ["fixed", "mean"]
STRUCTURAL = [
    cls(reference=reference, delta=delta)
    for reference in REFERENCES
    for delta in ("NDCG", "P@5")
    for cls in (fp.TopMargin, fp.TopSlack)
]


def objective(ranker: Any, weights: Any = None) -> float:
    """Return the objective of a fitted ranker, from its loss with an exact search."""
    loss = ranker.compose().loss
    values = loss.value_grad(TRAIN.X @ ranker.coef_, TRAIN.truth)[0]
    penalty = ranker.compose().penalty / 2 * float(ranker.coef_ @ ranker.coef_)
    return float(np.average(values, weights=weights)) + penalty


@pytest.mark.parametrize("unfitted", [*SMOOTH, *HINGES, *STRUCTURAL], ids=str)
def test_the_objective_is_that_of_the_model(unfitted: Any) -> None:
    cases: list[dict[str, Any]] = [{}, {"sample_weight": WEIGHTS}, {"valid": VALID}]
    for options in cases:
        ranker = clone(unfitted).set_params(patience=3 if "valid" in options else None)
        ranker.fit(TRAIN, **options)
        exact = objective(ranker, options.get("sample_weight"))
        assert ranker.objective_ >= exact * (1 - 1e-6), options
        assert ranker.objective_ <= exact * (1 + 1e-6), options


@pytest.mark.parametrize("solver", ["gd(max_iter=10)", "lbfgs"])
def test_the_objective_is_that_of_the_iteration_that_validation_chose(solver: str) -> None:
    ranker = fp.RankNet(solver=solver, patience=1).fit(TRAIN, valid=VALID)
    assert ranker.best_iteration_ is not None
    assert ranker.best_iteration_ < len(ranker.history_)
    assert ranker.objective_ == pytest.approx(objective(ranker), rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("unfitted", [*HINGES, *STRUCTURAL], ids=str)
def test_no_objective_is_below_the_optimum(unfitted: Any, C: float) -> None:
    """Neither cold nor from the planes and the weights of another C; the gap bounds the optimum."""
    parameters = {"solver": "cutting plane(tol=1e-5)", "C": C}
    tight = clone(unfitted).set_params(**parameters).fit(TRAIN)
    optimum = tight.objective_ * (1 - tight.gap_)
    warm = clone(unfitted).set_params(C=C / 3, warm_start=True).fit(TRAIN).set_params(C=C)
    for ranker in (clone(unfitted).set_params(C=C), warm):
        ranker.fit(TRAIN)
        assert ranker.objective_ >= optimum * (1 - 1e-9)
        assert ranker.objective_ * (1 - ranker.gap_) <= tight.objective_ * (1 + 1e-9)
