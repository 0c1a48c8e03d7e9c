"""Losses in PyTorch against those of the CPU: values, gradients, reductions, types, compilation.

Tensors on the CPU are computed by the kernels of the package, those on a device by formulas of
PyTorch.  Here the formulas run on the CPU too.
"""

from __future__ import annotations

import copy
import pickle
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firstpage as fp
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

K = (None, 1, 2, 4, 30)
CASES: dict[str, tuple[str, dict[str, Any], Any, dict[str, Any]]] = {}


def add(name: str, loss: str, module: str, parameters: dict[str, Any]) -> None:
    text = ", ".join(f"{key}={value}" for key, value in parameters.items() if value is not None)
    CASES[f"{name}({text})"] = (loss, parameters, getattr(fp.torch, module), parameters)


for k in K:
    for average in (False, True):
        add("ListMLE", "PlackettLuce", "ListMLELoss", {"k": k, "average": average})
        add("SquaredError", "SquaredError", "SquaredErrorLoss", {"k": k, "average": average})
        for pairs in ("all", "cross"):
            options = {"k": k, "pairs": pairs, "average": average}
            add("RankNet", "PairwiseLogistic", "RankNetLoss", options)
    for temperature in (1.0, 0.5):
        with_temperature = {"k": k, "temperature": temperature}
        add("ListNet", "SoftmaxCrossEntropy", "ListNetLoss", with_temperature)
    add("RankCosine", "Cosine", "RankCosineLoss", {"k": k})
    for beta in (0.0, 0.4, 1.0):
        if k is not None:
            add("FocusedNet", "Focused", "FocusedNetLoss", {"k": k, "beta": beta})

# One of each, full and top-k, where a test is about something else.
FEW = [
    "ListMLE(average=False)", "ListMLE(k=4, average=False)", "ListNet(temperature=1.0)",
    "ListNet(k=4, temperature=1.0)", "RankNet(pairs=all, average=False)",
    "RankNet(k=4, pairs=cross, average=True)", "RankCosine()", "RankCosine(k=4)",
    "SquaredError(average=True)", "SquaredError(k=4, average=True)", "FocusedNet(k=4, beta=0.4)",
    "FocusedNet(k=30, beta=0.4)",
]  # fmt: skip


def by(implementation: str) -> Any:
    """Return a context in which losses are computed by "kernels" or by "formulas"."""
    if implementation == "kernels":
        return nullcontext()
    return patch("firstpage.learning.torch.host.is_used", lambda scores: False)


IMPLEMENTATIONS = ("kernels", "formulas")
WAYS = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)


def module(case: str, **options: Any) -> Any:
    _, _, cls, parameters = CASES[case]
    return cls(**parameters, **options)


@st.composite
def batches(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, labels and masks of lists of any length, from narrow to extreme, with ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lists, n = draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 3, 8, 15]))
    scores = rng.normal(size=(lists, n)) * draw(st.sampled_from([0.0, 0.1, 1.0, 10.0, 1000.0]))
    scores += draw(st.sampled_from([0.0, 5.0]))
    if draw(st.booleans()):
        scores = scores.round(1)
    grades = draw(st.sampled_from([1, 2, 3, 5, 1000]))
    labels = rng.integers(0, grades, (lists, n)) - draw(st.sampled_from([0, 0, 2]))
    if draw(st.booleans()):  # a truth whose top is strictly ordered
        labels = np.maximum(4 - np.argsort(rng.random((lists, n)), axis=1), 0)
    mask = rng.random((lists, n)) < draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    return scores.astype(np.float32), labels.astype(np.float32), mask


def host(
    case: str, scores: np.ndarray, labels: np.ndarray, mask: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return values and gradients of the CPU; gradients of padding are 0."""
    name, parameters, _, _ = CASES[case]
    offsets = np.concatenate([[0], np.cumsum(mask.sum(1))])
    queries = Ids.from_values(list(range(len(mask))))
    truth = Truth(labels[mask].astype(float), offsets, queries)
    values, flat = fp.extend.loss(name, **parameters).value_grad(scores[mask].astype(float), truth)
    gradient = np.zeros(mask.shape)
    gradient[mask] = flat
    return values, gradient


def assert_close(actual: Any, expected: np.ndarray, tolerance: float) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    difference = np.abs(actual.detach().double().numpy() - expected)
    assert difference.max(initial=0.0) <= tolerance * scale


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=8)
@given(batch=batches())
def test_values_and_gradients_equal_those_of_the_cpu(case: str, batch: Any) -> None:
    scores, labels, mask = batch
    values, gradient = host(case, *batch)
    loss = module(case, reduction="none")
    hidden = np.where(mask, scores, np.nan)  # padding may be anything
    targets, where = torch.tensor(np.where(mask, labels, np.inf)), torch.tensor(mask)
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
        for implementation in IMPLEMENTATIONS:
            x = torch.tensor(hidden, dtype=dtype, requires_grad=True)
            with by(implementation):
                out = loss(x, targets, where)
            assert out.dtype == dtype
            out.sum().backward()
            assert_close(out, values, tolerance)
            assert_close(x.grad, gradient, tolerance)


@pytest.mark.parametrize("case", FEW)
@settings(max_examples=10)
@given(batch=batches())
def test_flat_scores_and_unpadded_lists_give_the_same(case: str, batch: Any) -> None:
    scores, labels, mask = batch
    values, gradient = host(case, *batch)
    unpadded_values, unpadded_gradient = host(case, scores, labels, np.ones_like(mask))
    offsets = torch.tensor(np.concatenate([[0], np.cumsum(mask.sum(1))]))
    loss = module(case, reduction="none")
    for implementation in IMPLEMENTATIONS:
        flat = torch.tensor(scores[mask], requires_grad=True)
        x = torch.tensor(scores, requires_grad=True)
        with by(implementation):
            out = loss(flat, torch.tensor(labels[mask]), offsets=offsets)
            unpadded = loss(x, torch.tensor(labels.astype(np.int64)))  # integers, and no mask
        out.sum().backward()
        assert_close(out, values, 1e-6)
        assert_close(flat.grad, gradient[mask], 1e-6)
        unpadded.sum().backward()
        assert_close(unpadded, unpadded_values, 1e-6)
        assert_close(x.grad, unpadded_gradient, 1e-6)


def example(seed: int = 0, lists: int = 4, n: int = 9) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.normal(size=(lists, n)), dtype=torch.float32)
    labels = torch.tensor(rng.integers(0, 4, (lists, n)), dtype=torch.float32)
    mask = torch.tensor(rng.random((lists, n)) < 0.8)
    return scores, labels, mask


@pytest.mark.parametrize("case", FEW)
def test_gradients_equal_finite_differences(case: str) -> None:
    scores, labels, mask = example()
    loss = module(case, reduction="sum")
    x = scores.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: loss(s, labels, mask), (x,), eps=1e-6, atol=1e-6)


@WAYS
@pytest.mark.parametrize("case", FEW)
def test_reductions(case: str, implementation: str) -> None:
    with by(implementation):
        check_reductions(case)


def check_reductions(case: str) -> None:
    scores, labels, mask = example()
    mask[1] = False  # a list without documents is not counted
    each = module(case, reduction="none")(scores, labels, mask)
    assert each.shape == (4,)
    assert each[1] == 0
    total = module(case, reduction="sum")(scores, labels, mask)
    torch.testing.assert_close(total, each.sum())
    torch.testing.assert_close(module(case)(scores, labels, mask), total / 3)
    weights = torch.tensor([1.0, 5.0, 0.0, 2.0])
    weighted = module(case)(scores, labels, mask, weights=weights)
    torch.testing.assert_close(weighted, (each * weights).sum() / 3)
    nothing = module(case)(scores.requires_grad_(), labels, torch.zeros_like(mask))
    nothing.backward()
    assert nothing == 0
    assert torch.equal(scores.grad, torch.zeros_like(scores))
    flat = scores.detach()[mask].requires_grad_()
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
    module(case)(flat, labels[mask], offsets=offsets, weights=weights).backward()
    padded = scores.detach().requires_grad_()
    module(case)(padded, labels, mask, weights=weights).backward()
    torch.testing.assert_close(flat.grad, padded.grad[mask])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", FEW)
def test_lists_of_equal_length_need_no_mask(case: str, dtype: Any) -> None:
    scores, labels, mask = example()
    labels = (labels + scores.flip(0) * (labels > 1)).to(dtype)  # real labels, and ties
    for reduction in ("mean", "sum"):
        results = []
        for masks in ((), (torch.ones_like(mask),)):
            x = scores.to(dtype).requires_grad_()
            value = module(case, reduction=reduction)(x, labels, *masks)
            value.backward()
            results += [value.detach(), x.grad]
            assert value.dtype == x.grad.dtype == dtype
        torch.testing.assert_close(results[:2], results[2:], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("case", FEW)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(case: str, dtype: Any) -> None:
    """The loss of the rounded scores is exact; its gradient is rounded to the type of the scores."""
    scores, labels, mask = example()
    half = scores.to(dtype).requires_grad_()
    single = half.detach().float().requires_grad_()
    loss = module(case)
    value, expected = loss(half, labels.to(dtype), mask), loss(single, labels, mask)
    assert value.dtype == torch.float32
    assert value == expected
    value.backward()
    expected.backward()
    assert half.grad.dtype == dtype
    tolerance = torch.finfo(dtype).eps
    torch.testing.assert_close(half.grad.float(), single.grad, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", FEW)
def test_autocast_changes_nothing(case: str) -> None:
    scores, labels, mask = example()
    loss = module(case)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert loss(scores, labels, mask) == module(case)(scores, labels, mask)
    assert loss(scores, labels, mask).dtype == torch.float32


@pytest.mark.parametrize("case", FEW)
def test_a_second_derivative_is_refused(case: str) -> None:
    scores, labels, mask = example()
    x = scores.requires_grad_()
    loss = module(case)(x, labels, mask)
    with pytest.raises(fp.DataError, match="first derivatives only"):
        torch.autograd.grad(loss, x, create_graph=True)


def check_compiled(losses: list[Any], implementation: str) -> None:
    """Compile losses as one graph, and compare their values and gradients with the losses'."""
    scores, labels, mask = example()

    def values(inputs: list[Any]) -> list[Any]:
        return [loss(x, labels, mask) for loss, x in zip(losses, inputs, strict=True)]

    torch.compiler.reset()
    compiled = torch.compile(values, fullgraph=True, backend="aot_eager")
    results = []
    for function in (compiled, values):
        inputs = [scores.clone().requires_grad_() for _ in losses]
        torch.manual_seed(0)
        with by(implementation):
            out = function(inputs)
        torch.stack(out).sum().backward()
        results.append([*out, *(x.grad for x in inputs)])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)


@WAYS
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by PyTorch
def test_compiled_without_graph_breaks(implementation: str) -> None:
    check_compiled([module(case) for case in FEW if "k=4" in case], implementation)


def test_modules_print_their_parameters_and_have_no_state() -> None:
    loss = fp.torch.FocusedNetLoss(k=5, beta=0.25)
    assert repr(loss) == "FocusedNetLoss(k=5, reduction='mean', check=None, beta=0.25)"
    assert loss.state_dict() == {}
    assert fp.torch.ListMLELoss().to(torch.float64).state_dict() == {}


def test_copies_and_stored_modules_compute_the_same() -> None:
    loss, (scores, labels, mask) = fp.torch.PLRankLoss(3, measure="AP"), example()
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert other._number != loss._number
        torch.manual_seed(0)
        expected = loss(scores, labels, mask)
        torch.manual_seed(0)
        assert other(scores, labels, mask) == expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", FEW)
def test_values_and_gradients_on_a_gpu(case: str) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(8, 20, generator=generator)
    labels = torch.randint(0, 4, (8, 20), generator=generator).float()
    mask = torch.rand(8, 20, generator=generator) < 0.8
    results = []
    for device in ("cpu", "cuda"):
        leaf = scores.detach().clone().to(device).requires_grad_()
        value = module(case)(leaf, labels.to(device), mask.to(device))
        value.backward()
        results.append((value.detach().cpu(), leaf.grad.cpu()))
    (value, gradient), (gpu_value, gpu_gradient) = results
    torch.testing.assert_close(gpu_value, value, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gpu_gradient, gradient, rtol=1e-5, atol=1e-6)
