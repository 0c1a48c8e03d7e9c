"""Losses of the package and of a user's own as modules of PyTorch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from tests.learning.rankers.own_module import LabelSquares, label_squares
from tests.learning.rankers.test_own import Wrong
from tests.learning.torch.test_losses import example

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

OWN = "tests.learning.rankers.own_module"
SQUARES = fp.torch.SquaredErrorLoss(average=False)


def gradient(loss: Any, *batch: Any, **options: Any) -> tuple[Any, Any]:
    scores = batch[0].clone().requires_grad_()
    value = loss(scores, *batch[1:], **options)
    value.backward()
    return value.detach(), scores.grad


@pytest.mark.parametrize(
    "loss", [LabelSquares(), f"{OWN}:LabelSquares(scale=1)", "SquaredError(average=False)"]
)
def test_values_and_gradients_are_those_of_the_loss(loss: Any) -> None:
    scores, labels, mask = example()
    mask[2] = False  # a list without documents
    module = fp.torch.AnyLoss(loss)
    for arguments in ((scores, labels, mask), (scores, labels)):
        for actual, expected in zip(
            gradient(module, *arguments), gradient(SQUARES, *arguments), strict=True
        ):
            torch.testing.assert_close(actual, expected)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
    _, flat = gradient(module, scores[mask], labels[mask], offsets=offsets)
    torch.testing.assert_close(flat, gradient(SQUARES, scores, labels, mask)[1][mask])
    assert module(scores, labels, torch.zeros_like(mask)) == 0


def test_a_wrong_gradient_is_an_error() -> None:
    scores, labels, mask = example()
    module = fp.torch.AnyLoss(Wrong(factor=-1.0))
    with pytest.raises(fp.DataError, match=r"is wrong: .*reverse its sign"):
        module(scores, labels, mask)


def test_a_wrong_gradient_is_an_error_in_the_first_batch_with_different_labels() -> None:
    class ReversedPairs(fp.extend.Loss):
        def value_grad(self, scores: Any, truth: Any) -> Any:  # type: ignore[override]
            values, gradient = fp.extend.loss("PairwiseLogistic").value_grad(scores, truth)
            return values, -gradient

    scores, labels, _ = example()
    module = fp.torch.AnyLoss(ReversedPairs())
    module(scores, torch.ones_like(labels))
    with pytest.raises(fp.DataError, match="reverse its sign"):
        module(scores, labels)


def test_a_function_is_said_to_be_slow() -> None:
    scores, labels, mask = example()
    with pytest.warns(fp.FirstpageWarning, match="is a Python function that is called for every"):
        module = fp.torch.AnyLoss(label_squares)
    torch.testing.assert_close(module(scores, labels, mask), SQUARES(scores, labels, mask))


def test_a_model_of_pytorch_is_trained_by_a_loss_of_ones_own() -> None:
    torch.manual_seed(0)
    features = torch.randn(16, 8, 3)
    labels = features @ torch.tensor([1.0, -2.0, 0.5])
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss = fp.torch.AnyLoss(LabelSquares())
    for _ in range(60):
        optimizer.zero_grad()
        value = loss(model(features).squeeze(-1), labels)
        value.backward()
        optimizer.step()
    np.testing.assert_allclose(model.weight.detach(), [[1.0, -2.0, 0.5]], atol=1e-2)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by PyTorch
def test_compiled_without_graph_breaks() -> None:
    loss = fp.torch.AnyLoss(LabelSquares())
    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for actual, expected in zip(
        gradient(compiled, *example()), gradient(loss, *example()), strict=True
    ):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("gone:Loss", "the module 'gone' cannot be imported"),
        (f"{OWN}:Absent", "has no loss 'Absent'"),
        ("ExpectedMeasure", "draws at random"),
        (3, "a loss must be its name"),
    ],
)
def test_refusals(loss: Any, message: str) -> None:
    with pytest.raises(fp.FirstpageError, match=re.escape(message)) as raised:
        fp.torch.AnyLoss(loss)
    assert "\n" not in str(raised.value)


def test_a_broken_loss_is_one_line() -> None:
    class Broken(LabelSquares):
        def value_grad(self, scores: Any, truth: Any, weights: Any = None) -> Any:
            return np.zeros(len(truth)), np.zeros(2)

    scores, labels, mask = example()
    with pytest.raises(fp.DataError, match="must return one derivative per document"):
        fp.torch.AnyLoss(Broken())(scores, labels, mask)


def test_modules_print_their_loss() -> None:
    assert repr(fp.torch.AnyLoss("SquaredError")) == (
        "AnyLoss('SquaredError(k=None, average=True)', reduction='mean', check=None)"
    )
