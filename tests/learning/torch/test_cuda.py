"""Losses on a GPU, by Triton kernels and by formulas, against those of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import firstpage as fp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from tests.interpreted_kernels import check_interpreted  # noqa: E402
from tests.learning.torch import by_triton  # noqa: E402
from tests.learning.torch.test_direct import MEASURES  # noqa: E402
from tests.learning.torch.test_losses import CASES, FEW, example, host, module  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def by(implementation: str) -> Any:
    """Return a context in which losses on a GPU are computed by "kernels" or by "formulas"."""
    return by_triton.kernels(implementation == "kernels")


def test_interpreted_kernels_match_the_cpu() -> None:
    check_interpreted("tests.learning.torch.by_triton")


def test_the_kernel_of_lambda_loss_compiles_for_a_gpu() -> None:
    pytest.importorskip("triton", reason="no Triton: its kernels are not tested")
    from firstpage.learning.gpu.lambda_lists import each_lambda_list

    kinds = dict.fromkeys(["S", "W", "G", "V"], "*fp32") | {"M": "*u8", "n": "i32", "depth": "i32"}
    kinds |= dict.fromkeys(["GAINS", "SUMS", "MOMENTS", "K"], "*fp64")
    check_compiled(each_lambda_list, kinds, {"N": 128, "PAIRS": 4, "MASKED": True})


def check_compiled(kernel: Any, kinds: dict[str, str], fixed: dict[str, Any]) -> None:
    import triton
    from triton.backends.compiler import GPUTarget

    names = kernel.arg_names
    source = triton.compiler.ASTSource(
        fn=kernel,
        signature={n: "constexpr" if n in fixed else kinds[n] for n in names},
        constexprs={(names.index(n),): v for n, v in fixed.items()},
    )
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1})
    assert ".visible .entry" in built.asm["ptx"]


@needs_gpu
@pytest.mark.parametrize("implementation", ["kernels", "formulas"])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_equal_those_of_the_cpu(case: str, implementation: str) -> None:
    with by(implementation):
        for batch in by_triton.batches(4, 5):
            by_triton.compare(case, batch, "cuda", {torch.float32: 1e-6, torch.float64: 1e-12})
        for batch in by_triton.batches(5, 130):
            by_triton.compare(case, batch, "cuda", {torch.float32: 1e-6})


@needs_gpu
@pytest.mark.parametrize("implementation", ["kernels", "formulas"])
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("k", [None, 2])
def test_lambda_loss_equals_that_of_the_cpu(
    measure: str, k: int | None, implementation: str
) -> None:
    with by(implementation):
        for shape in ((4, 5), (5, 130)):
            for batch in by_triton.batches(*shape):
                by_triton.compare_lambda_loss(measure, k, batch, "cuda")


@needs_gpu
@pytest.mark.parametrize("case", FEW)
def test_long_lists(case: str) -> None:
    rng = np.random.default_rng(0)
    for n in (1000, 2500):
        labels = rng.integers(0, 5, (3, n)).astype(np.float32)
        scores, mask = rng.normal(size=(3, n)).astype(np.float32), rng.random((3, n)) < 0.9
        by_triton.compare(case, (scores, labels, mask), "cuda", {torch.float32: 1e-6})


@needs_gpu
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("case", FEW)
def test_reductions_weights_and_types(case: str, reduction: str) -> None:
    scores, labels, mask = example()
    mask[1] = False
    weights = torch.tensor([1.0, 5.0, 0.0, 2.0])
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
    batches = [
        (scores, labels, {}),
        (scores, labels, {"mask": mask}),
        (scores, labels > 1, {"mask": mask, "weights": weights}),
        (scores[mask], labels[mask], {"offsets": ends}),
        (scores[mask], labels[mask], {"offsets": ends, "weights": weights}),
        (scores[0], labels[0].to(torch.int32), {"offsets": torch.tensor([0, 4, 9])}),
        (scores.T, labels.T, {"mask": mask.T}),
        (scores.to(torch.bfloat16), labels.to(torch.bfloat16), {"mask": mask}),
    ]
    loss = module(case, reduction=reduction)
    for x, y, options in batches:
        on_cpu, on_gpu = x.clone().requires_grad_(), x.cuda().requires_grad_()
        expected = loss(on_cpu, y, **options)
        actual = loss.cuda()(on_gpu, y.cuda(), **{n: v.cuda() for n, v in options.items()})
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-6)
        expected.backward()
        actual.backward()
        assert on_gpu.grad.dtype == x.dtype
        torch.testing.assert_close(on_gpu.grad.cpu(), on_cpu.grad, rtol=1e-2, atol=1e-6)


@needs_gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by PyTorch
@pytest.mark.parametrize("case", FEW)
def test_compiled_without_graph_breaks(case: str) -> None:
    scores, labels, mask = (x.cuda() for x in example())
    loss = module(case).cuda()
    x, y = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    torch.compiler.reset()
    value = torch.compile(loss, fullgraph=True)(x, labels, mask)
    value.backward()
    loss(y, labels, mask).backward()
    torch.testing.assert_close(value, loss(y, labels, mask), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-5, atol=1e-6)


@needs_gpu
def test_numbers_that_are_not_finite() -> None:
    scores = torch.tensor([[0.0, float("nan"), 1.0]], device="cuda")
    labels = torch.tensor([[0.0, 1.0, 2.0]], device="cuda")
    with pytest.raises(fp.DataError, match=r"a score is nan \(list 0, document 1\)"):
        fp.torch.ListMLELoss(check=True)(scores, labels)
    for name in ("ListMLELoss", "ListNetLoss", "RankNetLoss", "RankCosineLoss", "SquaredErrorLoss"):
        for k in (None, 2):
            assert getattr(fp.torch, name)(k)(scores, labels).isnan(), (name, k)
    mask = torch.tensor([[True, False, True]], device="cuda")
    value, _ = host("ListMLE(average=False)", *(x.cpu().numpy() for x in (scores, labels, mask)))
    assert float(fp.torch.ListMLELoss()(scores, labels, mask)) == pytest.approx(float(value[0]))
