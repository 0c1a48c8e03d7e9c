"""Networks: PyTorch fits them, NumPy scores them."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.losses.listwise import PlackettLuce
from firstpage.scorers.mlp import MLP
from firstpage.solvers.objective import BlockObjective

pytestmark = pytest.mark.torch

DATA = fp.Synthetic(queries=80, docs="uniform(2, 30)", features=6, grades=3, seed=1).dataset()
TRAIN, TEST = DATA[:60], DATA[60:]


def test_gradient_of_networks_matches_finite_differences() -> None:
    bound = MLP(hidden=3).bind(TRAIN.X)
    objective = BlockObjective(PlackettLuce(5), bound, TRAIN.truth, 24, l2=0.1)
    params = bound.initial_params(0)
    value, gradient = objective(params)
    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = rng.normal(size=len(params))
        step = 1e-2 / np.linalg.norm(direction)
        (up, _), (down, _) = (
            objective(params + step * direction),
            objective(params - step * direction),
        )
        assert (up - down) / (2 * step) == pytest.approx(gradient @ direction, rel=2e-2, abs=1e-2)
    assert np.isfinite(value)


@pytest.mark.parametrize(
    "unfitted",
    [
        fp.ListMLE(k=5, scorer="mlp(hidden=16)"),
        fp.ListNet(scorer="mlp(hidden=8)", solver="lbfgs(max_iter=40)"),
        fp.FocusedNet(k=5, scorer="mlp"),
        fp.Regression(scorer="mlp", solver="adam(rate=0.01)"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the solver used all")
def test_networks_learn_reproducibly_and_survive_files(unfitted, tmp_path) -> None:
    ranker = unfitted.fit(TRAIN, valid=TEST)
    ground = fp.evaluate(np.random.default_rng(0).random(TEST.n_docs), TEST, measures="NDCG@10")
    assert ranker.score(TEST) > ground["NDCG@10"] + 0.15
    scores = ranker.predict(TEST)
    ranker.save(tmp_path / "m.json")
    assert fp.load(tmp_path / "m.json").predict(TEST).tolist() == scores.tolist()
    assert unfitted.fit(TRAIN, valid=TEST).predict(TEST) == pytest.approx(
        scores, rel=1e-4, abs=1e-4
    )


def test_a_network_fits_what_a_linear_scorer_cannot() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (np.abs(X[:, 0]) > 1).astype(float)
    qid = np.repeat(np.arange(100), 30)
    line = fp.ListNet().fit(X, y, qid=qid).score(X, y, qid=qid)
    net = fp.ListNet(scorer="mlp(hidden=8)", solver="adam(rate=0.01)").fit(X, y, qid=qid)
    assert net.score(X, y, qid=qid) > line + 0.3
