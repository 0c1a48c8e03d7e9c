"""PL-Rank and LambdaLoss by PyTorch, against the kernels of the CPU, with the same random numbers.

They run on the CPU, and on a GPU where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.lambdaloss import LambdaLoss
from firstpage.learning.losses.plrank import ExpectedMeasure
from firstpage.learning.scorers.linear import Linear
from firstpage.learning.scorers.mlp import MLP
from firstpage.learning.solvers.gpu.objective import (
    DeviceLosses,
    LinearObjective,
    NetworkObjective,
    device_objective,
)
from firstpage.learning.solvers.objective import BlockObjective
from tests.learning.losses.test_plrank import MEASURES, learned_measures

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
DATA = fp.Synthetic(queries=40, docs="uniform(2, 30)", features=6, grades=4, seed=1).dataset()
RTOL = 1e-6  # of float32


def sample(lengths: list[int], seed: int = 0) -> tuple[Truth, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    queries = Ids.from_values([str(q) for q in range(len(lengths))])
    return Truth(rng.integers(0, 4, rows).astype(float), offsets, queries), rng.normal(size=rows)


def check(loss: Loss, truth: Truth, scores: np.ndarray, device: str) -> None:
    """Compare values and gradients of slices of queries, in several evaluations."""
    scores = scores.astype(np.float32)
    order = truth.by_label[0]
    terms = loss.target(truth).terms()
    assert terms is not None
    losses = DeviceLosses(terms, truth.offsets, order, device)
    slices = [(0, len(truth)), (1, len(truth) - 1)]  # an evaluation of these queries each
    for evaluation, (lo, hi) in enumerate(slices):
        a, b = int(truth.offsets[lo]), int(truth.offsets[hi])
        expected, gradient = np.empty(hi - lo), np.empty(b - a)
        host = loss.target(truth)
        host.set_evaluation(evaluation)
        host.bind_slice(lo, hi, scores[a:b].astype(np.float64), expected, gradient)()
        got, grad = losses.run(lo, hi, torch.tensor(scores[order][a:b], device=device))
        on_host = np.empty(len(scores))
        on_host[order[a:b]] = grad.double().cpu().numpy()
        assert got.cpu().numpy() == pytest.approx(expected, rel=RTOL, abs=1e-9)
        scale = np.abs(gradient).max(initial=0.0)
        assert on_host[a:b] == pytest.approx(gradient, rel=RTOL, abs=RTOL * scale + 1e-12)


SCORES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "no ties": lambda scores: scores,
    "some ties": np.round,
    "all tied": np.zeros_like,
    "far apart": lambda scores: 300 * scores,
    "huge": lambda scores: np.sign(scores) * 1e30,
}
LENGTHS = [6, 1, 0, 5, 2, 30, 8, 33, 3]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("measure", [*MEASURES, *learned_measures()], ids=str)
def test_expected_measures_are_those_of_the_cpu(measure, device: str) -> None:
    truth, scores = sample(LENGTHS)
    for change in SCORES.values():
        check(ExpectedMeasure(measure, samples=3, seed=5), truth, change(scores), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("measure", [*MEASURES, *learned_measures()], ids=str)
def test_lambda_losses_are_those_of_the_cpu(measure, device: str) -> None:
    truth, scores = sample(LENGTHS)
    for change in SCORES.values():
        check(LambdaLoss(measure), truth, change(scores), device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("variant", ["loss2", "loss2++"])
@pytest.mark.parametrize("measure", ["NDCG@3", "NDCG", "P@2"])
def test_variants_are_those_of_the_cpu(measure: str, variant: Any, device: str) -> None:
    truth, scores = sample(LENGTHS)
    for change in SCORES.values():
        check(LambdaLoss(measure, variant=variant, mu=3.0), truth, change(scores), device)


@pytest.mark.parametrize("loss", [ExpectedMeasure("ERR", samples=2), LambdaLoss("NDCG@10")])
def test_small_chunks_change_nothing(loss: Loss, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.learning.solvers.gpu.measure_terms.MAX_ELEMENTS", 100)
    monkeypatch.setattr("firstpage.learning.solvers.gpu.measure_terms.MAX_PAIRS", 200)
    truth, scores = sample(LENGTHS)
    check(loss, truth, scores, "cpu")
    check(loss, truth, 0 * scores, "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", [ExpectedMeasure("NDCG@5", samples=4), LambdaLoss("AP")])
def test_objectives_are_those_of_the_cpu(loss: Loss, device: str) -> None:
    params = np.random.default_rng(0).normal(size=DATA.n_features)
    weights = np.arange(1.0, len(DATA) + 1)
    for scorer, kind in ((Linear(), LinearObjective), (MLP(4, device=device), NetworkObjective)):
        bound = scorer.bind(DATA.X)
        at = params if kind is LinearObjective else bound.initial_params(0)
        hosts = [
            BlockObjective(loss, bound, DATA.truth, 24, None, weights, 0.1, 1, batch=16)
            for _ in range(2)
        ]
        on_device = device_objective(hosts[0], DATA.truth, device)
        assert isinstance(on_device, kind)
        for got, expected in (
            (on_device(at), hosts[1](at)),
            (on_device.block(1, at), hosts[1].block(1, at)),
            (on_device.block(1, at), hosts[1].block(1, at)),
        ):
            assert got[0] == pytest.approx(expected[0], rel=1e-5)
            scale = np.abs(expected[1]).max()
            assert got[1] == pytest.approx(expected[1], rel=1e-4, abs=1e-4 * scale)


@pytest.mark.parametrize("device", DEVICES[1:] or [pytest.param("cuda", marks=pytest.mark.skip)])
@pytest.mark.parametrize("cls", [fp.PLRank, fp.LambdaRank])
@pytest.mark.parametrize("scorer", ["linear", "mlp(hidden=8)"])
def test_fits_on_a_gpu_are_about_those_on_the_cpu(cls, scorer: str, device: str) -> None:
    cpu = cls(scorer=scorer).fit(DATA)
    gpu = cls(scorer=scorer, device=device).fit(DATA)
    again = cls(scorer=scorer, device=device).fit(DATA)
    assert gpu.params_.tolist() == again.params_.tolist()
    assert gpu.score(DATA) == pytest.approx(cpu.score(DATA), abs=0.02)
    assert gpu.objective_ == pytest.approx(cpu.objective_, rel=0.05)
