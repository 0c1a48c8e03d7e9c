"""Networks on a GPU: scores, gradients and fits are those of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.learning.losses.listwise import PlackettLuce
from firstpage.learning.scorers.network import Network
from firstpage.learning.solvers.gpu.objective import NetworkObjective, device_objective
from firstpage.learning.solvers.objective import BlockObjective

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

DATA = fp.Synthetic(queries=60, docs="uniform(1, 90)", features=8, grades=3, seed=1).dataset()
TRAIN, VALID = DATA[:45], DATA[45:]
CASES: dict[str, dict[str, Any]] = {
    "deep": {"layers": (32, 16), "activation": "gelu", "norm": "layer"},
    "log1p": {"layers": (16,), "activation": "silu", "input": "log1p+standardize"},
    "attention": {"layers": (16,), "attention": (2, 4)},
}


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_the_cpu(case: str) -> None:
    bound = Network(**CASES[case], device="cuda").bind(TRAIN.X, TRAIN.offsets)
    params = bound.initial_params(0)
    expected = bound.scoring(params).predict(VALID.X, offsets=VALID.offsets)
    scale = np.abs(expected).max()
    assert bound.predict(params, VALID.X, VALID.offsets) == pytest.approx(
        expected, abs=1e-5 * scale
    )


@pytest.mark.parametrize("case", CASES)
def test_objectives_are_those_of_the_cpu(case: str) -> None:
    weights = np.arange(1.0, len(TRAIN) + 1)
    values = []
    for device in ("cpu", "cuda"):
        bound = Network(**CASES[case], device=device).bind(TRAIN.X, TRAIN.offsets)
        host = BlockObjective(
            PlackettLuce(5), bound, TRAIN.truth, 32, None, weights, 0.1, 1, batch=16
        )
        objective: Any = host if device == "cpu" else device_objective(host, TRAIN.truth, device)
        assert device == "cpu" or isinstance(objective, NetworkObjective)
        params = bound.initial_params(0)
        values.append((objective(params), objective.block(1, params)))
    for (value, gradient), (expected, expected_gradient) in zip(*reversed(values), strict=True):
        assert value == pytest.approx(expected, rel=1e-5)
        scale = np.abs(expected_gradient).max()
        assert gradient == pytest.approx(expected_gradient, rel=1e-3, abs=1e-4 * scale)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cls", [fp.ListMLE, fp.LambdaRank])
def test_fits_work_and_the_models_need_no_device(cls, case: str, tmp_path) -> None:
    scorer = Network(**CASES[case], dropout=0.1)
    solver = "adam(rate=0.01, max_iter=15)"
    ranker = cls(k=5, scorer=scorer, solver=solver, device="cuda").fit(TRAIN, valid=VALID)
    random = fp.evaluate(np.random.default_rng(0).random(VALID.n_docs), VALID, measures="NDCG@10")
    assert ranker.score(VALID) > random["NDCG@10"] + 0.1
    assert ranker.score(VALID) == pytest.approx(ranker.best_score_, abs=1e-3)
    ranker.save(tmp_path / "model.json")
    scores = fp.load(tmp_path / "model.json").predict(VALID)
    assert scores.tolist() == ranker.predict(VALID).tolist()


def test_dropout_on_the_device_is_seeded() -> None:
    scores = []
    for seed in (0, 0, 1):
        bound = Network((64,), dropout=0.5, device="cuda").bind(TRAIN.X, TRAIN.offsets, seed)
        bound.load(bound.initial_params(0))
        out = np.empty(TRAIN.n_docs)
        bound.bind_slice(0, TRAIN.n_docs, out, out, np.empty(bound.size))[0]()
        scores.append(out.tolist())
    assert scores[0] == scores[1] != scores[2]
