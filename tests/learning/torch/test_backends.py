"""Every implementation of a loss against its plain reference: one table for all of them.

A loss has a compiled kernel, which trains on the CPU and also computes batches there; a formula of
PyTorch; and a Triton kernel that trains on a GPU.  Where a formula is fast enough it trains on a GPU
too, and there is no Triton kernel; such formulas run here on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.truth import Truth
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.focused import focused_net
from firstpage.learning.losses.lambdaloss import LambdaLoss
from firstpage.learning.losses.listwise import (
    Cosine,
    PlackettLuce,
    SoftmaxCrossEntropy,
    SquaredError,
)
from firstpage.learning.losses.pairwise import PairwiseLogistic
from tests.learning.losses import reference as plain
from tests.learning.losses.test_family import FAMILY, KINDS, PERMUTATIONS, Reference, sample

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from firstpage.learning.solvers.gpu.objective import DeviceLosses  # noqa: E402
from tests.learning.torch import by_triton  # noqa: E402

MODULES: dict[type[Loss], Any] = {
    PlackettLuce: fp.torch.ListMLELoss,
    SoftmaxCrossEntropy: fp.torch.ListNetLoss,
    Cosine: fp.torch.RankCosineLoss,
    SquaredError: fp.torch.SquaredErrorLoss,
    PairwiseLogistic: fp.torch.RankNetLoss,
    LambdaLoss: fp.torch.LambdaRankLoss,
}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
TABLE = [(loss, reference) for loss, reference in FAMILY if type(loss) in MODULES]
SCORES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "near": lambda scores: scores,
    "tied": np.round,
    "far apart": lambda scores: 500 * scores,
}
Result = tuple[np.ndarray, np.ndarray]


def of_training(loss: Loss, truth: Truth, scores: np.ndarray, weights: Any) -> Result:
    return loss.value_grad(scores, truth, weights)


def of_batches(loss: Loss, truth: Truth, scores: np.ndarray, device: str = "cpu") -> Result:
    """Return the result of a module of PyTorch, in the type of the scores."""
    parameters = {name: p for name, p in vars(loss).items() if name != "parsed_measure"}
    return of_module(MODULES[type(loss)](**parameters, reduction="none"), truth, scores, device)


def of_module(module: Any, truth: Truth, scores: np.ndarray, device: str) -> Result:
    x = torch.tensor(scores, requires_grad=True, device=device)
    labels, offsets = (torch.tensor(a, device=device) for a in (truth.labels, truth.offsets))
    values = module(x, labels, offsets=offsets)
    values.sum().backward()
    assert x.grad is not None
    return values.detach().cpu().numpy(), x.grad.cpu().numpy()


def by_formulas() -> Any:
    """Return a context in which formulas compute tensors on the CPU."""
    return patch("firstpage.learning.torch.host.is_used", lambda scores: False)


def of_formulas(loss: Loss, truth: Truth, scores: np.ndarray) -> Result:
    with by_formulas():
        return of_batches(loss, truth, scores)


def of_solvers_on_a_device(
    loss: Loss, truth: Truth, scores: np.ndarray, weights: Any, device: str = "cuda"
) -> Result:
    order, terms = truth.by_label[0], loss.target(truth, weights).terms()
    assert terms is not None
    losses = DeviceLosses(terms, truth.offsets, order, device)
    sorted_scores = torch.tensor(scores[order], device=device, dtype=torch.float32)
    values, sorted_gradient = losses.run(0, len(truth), sorted_scores)
    gradient = np.empty(len(scores))
    gradient[order] = sorted_gradient.double().cpu().numpy()
    return values.cpu().numpy(), gradient


def of_reference(reference: Reference, truth: Truth, scores: np.ndarray, weights: Any) -> Result:
    """Return the values of the reference and its gradient by central differences."""
    w = np.ones(len(scores)) if weights is None else weights
    values, gradient, step = np.zeros(len(truth)), np.zeros(len(scores)), 1e-5
    for q, (lo, hi) in enumerate(zip(truth.offsets[:-1], truth.offsets[1:], strict=True)):

        def value(s: np.ndarray, lo: int = lo, hi: int = hi) -> float:
            return reference(s, truth.labels[lo:hi], w[lo:hi])

        if hi > lo:
            values[q] = value(scores[lo:hi])
            for i, moved in enumerate(np.eye(hi - lo) * step):
                difference = value(scores[lo:hi] + moved) - value(scores[lo:hi] - moved)
                gradient[lo + i] = difference / (2 * step)
    return values, gradient


def check(actual: Result, expected: Result, rtol: float) -> None:
    for name, a, b in zip(("values", "gradient"), actual, expected, strict=True):
        scale = max(1.0, float(np.abs(b).max(initial=0.0)))
        tolerance = rtol if name == "values" else max(rtol, 1e-6)  # of differences
        assert a == pytest.approx(b, rel=rtol, abs=tolerance * scale), name


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("loss", "reference"), TABLE, ids=[str(loss) for loss, _ in TABLE])
def test_all_implementations_equal_the_reference(loss, reference, kind: str, scores: str) -> None:
    truth, near = sample(kind)
    s = SCORES[scores](near).astype(np.float32).astype(np.float64)  # no implementation rounds them
    expected = of_reference(reference, truth, s, None)
    check(of_training(loss, truth, s, None), expected, 1e-9)
    check(of_batches(loss, truth, s), expected, 1e-9)
    check(of_formulas(loss, truth, s), expected, 1e-9)
    weights = np.random.default_rng(1).integers(0, 4, len(s)).astype(float)
    weighted = of_reference(reference, truth, s, weights)
    check(of_training(loss, truth, s, weights), weighted, 1e-9)
    if torch.cuda.is_available():
        check(of_batches(loss, truth, s, "cuda"), expected, 1e-9)
        with by_triton.kernels(True):
            check(of_batches(loss, truth, s.astype(np.float32), "cuda"), expected, 1e-5)
        check(of_solvers_on_a_device(loss, truth, s, None), expected, 2e-5)
        check(of_solvers_on_a_device(loss, truth, s, weights), weighted, 2e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_permutations_equal_the_reference(kind: str, scores: str, device: str) -> None:
    truth, near = sample(kind)
    s = SCORES[scores](near).astype(np.float32).astype(np.float64)
    for loss, reference in PERMUTATIONS:
        expected = of_training(loss, truth, s, None)
        if (
            kind == KINDS[0]
        ):  # sums over 720 permutations per difference; others: losses/test_family
            check(expected, of_reference(reference, truth, s, None), 1e-9)
        check(of_solvers_on_a_device(loss, truth, s, None, device), expected, 1e-6)
    for k, beta in ((3, 0.4), (3, 1.0), (6, 1.0)):
        expected = of_training(focused_net(k, beta), truth, s, None)
        if kind == "full order":

            def value(s: np.ndarray, y: Any, w: Any, k: int = k, beta: float = beta) -> float:
                return plain.focused_net(s, y, w, k, beta)

            check(expected, of_reference(value, truth, s, None), 1e-9)
        module = fp.torch.FocusedNetLoss(k, beta=beta, reduction="none")
        with by_formulas():
            check(of_module(module, truth, s, device), expected, 1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["lambdarank", "loss2", "loss2++"])
def test_lambda_losses_equal_those_of_training(
    variant: Any, kind: str, scores: str, device: str
) -> None:
    truth, near = sample(kind)
    s = SCORES[scores](near).astype(np.float32).astype(np.float64)
    for measure in ("NDCG@3", "NDCG", "P@2"):
        loss = LambdaLoss(measure, k=5, variant=variant, mu=2.0)
        expected = of_training(loss, truth, s, None)
        check(of_solvers_on_a_device(loss, truth, s, None, device), expected, 1e-6)
        with by_formulas():
            check(of_batches(loss, truth, s, device), expected, 1e-9)
