"""LambdaLoss and PL-Rank in PyTorch against the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firstpage as fp
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from tests.learning.losses.test_plrank import learned_measures
from tests.learning.torch.test_losses import (
    IMPLEMENTATIONS,
    assert_close,
    batches,
    by,
    check_compiled,
    example,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

MEASURES = [
    "NDCG@3", "NDCG", "DCG@4", "P@3", "Recall@3", "RBP", "NDCG(gain=linear)@5",
    "NDCG(discount=letor)@2",
]  # fmt: skip
OTHERS = [  # without a formula: on a device, these are computed on the CPU
    "AP", "AP@3", "AP(rel=2)", "RR", "RR@2", "Success@2", "ERR(max=20)@3", "kNDCG@3", "kERR@3",
    *learned_measures(),
]  # fmt: skip
MASK64 = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15


def truth_of(labels: np.ndarray, mask: np.ndarray) -> Truth:
    offsets = np.concatenate([[0], np.cumsum(mask.sum(1))])
    return Truth(labels[mask].astype(float), offsets, Ids.from_values(list(range(len(mask)))))


def readable(batch: Any, measure: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the batch with labels that the measure reads.

    Gains of DCG are powers of 2, measure files have the grades 0 to 3, and kNDCG and kERR need a
    strict order of the top.
    """
    scores, labels, mask = batch
    if str(measure).startswith("k"):
        labels = np.maximum(4 - np.argsort(np.argsort(-labels + scores / 1e6, axis=1), axis=1), 0)
    greatest = 20 if isinstance(measure, str) else 3
    return scores, np.clip(labels, -2 if isinstance(measure, str) else 0, greatest), mask


LAMBDA_CASES = [
    *((variant, measure) for variant in ("lambdarank", "loss2", "loss2++") for measure in MEASURES),
    *(("lambdarank", measure) for measure in OTHERS),
]


def assert_equal_on_the_cpu(
    module: Any, batch: tuple[np.ndarray, ...], values: np.ndarray, gradient: np.ndarray
) -> None:
    """Compare values and gradients of a module, by kernels and by formulas, with the loss's."""
    scores, labels, mask = batch
    where = torch.tensor(mask)
    for implementation in IMPLEMENTATIONS:
        x = torch.tensor(np.where(mask, scores, np.nan), requires_grad=True)
        with by(implementation):
            out = module(x, torch.tensor(labels), where)
        out.sum().backward()
        assert_close(out, values, 1e-6)
        assert_close(x.grad[where], gradient, 1e-6)
        assert not x.grad[~where].any()


@pytest.mark.parametrize(("variant", "measure"), LAMBDA_CASES)
@settings(max_examples=10)
@given(batch=batches(), k=st.sampled_from([None, 1, 2, 30]))
def test_lambda_loss_equals_that_of_the_cpu(
    variant: Any, measure: str, batch: Any, k: int | None
) -> None:
    scores, labels, mask = readable(batch, measure)
    loss = fp.extend.loss("LambdaLoss", measure=measure, k=k, variant=variant)
    values, flat = loss.value_grad(scores[mask].astype(float), truth_of(labels, mask))
    module = fp.torch.LambdaRankLoss(k, measure=measure, variant=variant, reduction="none")
    assert_equal_on_the_cpu(module, (scores, labels, mask), values, flat)


def mixed(state: int) -> int:
    z = state & MASK64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK64
    return z ^ (z >> 31)


def noise_of_the_cpu(mask: np.ndarray, samples: int) -> np.ndarray:
    """Return the uniform numbers that the first evaluation of the CPU draws with seed 0."""
    uniforms = np.full((len(mask), samples, mask.shape[1]), 0.5)
    call = mixed(mixed(STEP))
    for q, row in enumerate(mask):
        key = mixed(call + q)
        for sample in range(samples):
            key = mixed(key + STEP)
            state = key
            for i in np.flatnonzero(row):
                state += STEP
                uniforms[q, sample, i] = ((mixed(state) >> 11) + 0.5) * 2.0**-53
    return uniforms


@pytest.mark.parametrize("measure", [*MEASURES, *OTHERS])
@settings(max_examples=10)
@given(batch=batches(), k=st.sampled_from([None, 1, 2, 30]))
def test_pl_rank_equals_that_of_the_cpu_for_the_same_noise(
    measure: str, batch: Any, k: int | None
) -> None:
    scores, labels, mask = readable(batch, measure)
    scores = np.clip(scores, -1e5, 1e5)  # modules count greater differences as a million
    loss = fp.extend.loss("ExpectedMeasure", measure=measure, k=k, samples=3)
    values, flat = loss.value_grad(scores[mask].astype(float), truth_of(labels, mask))
    module = fp.torch.PLRankLoss(k, measure=measure, samples=3, reduction="none")
    changed: Any = module
    changed._uniforms = lambda lists: torch.tensor(noise_of_the_cpu(mask, 3))
    changed._seed = lambda: torch.tensor(0)
    assert_equal_on_the_cpu(module, (scores, labels, mask), values, flat)


def test_pl_rank_is_repeated_by_the_seed_of_pytorch_alone() -> None:
    scores, labels, mask = example()
    loss = fp.torch.PLRankLoss(samples=2)
    torch.manual_seed(3)
    first, second = loss(scores, labels, mask), loss(scores, labels, mask)
    torch.manual_seed(3)
    assert loss(scores, labels, mask) == first
    assert first != second


@pytest.mark.parametrize("name", ["LambdaRankLoss", "PLRankLoss"])
def test_measures_that_are_refused(name: str) -> None:
    with pytest.raises(fp.DataError, match="cannot maximize"):
        getattr(fp.torch, name)(measure="KendallTau")
    with pytest.raises(fp.MeasureError, match="greatest label of all lists"):
        getattr(fp.torch, name)(measure="ERR@10")
    with pytest.raises(fp.MeasureError):
        getattr(fp.torch, name)(measure="NDGC@10")


def test_parameters() -> None:
    with pytest.raises(fp.DataError, match="variant must be"):
        fp.torch.LambdaRankLoss(variant="loss3")  # type: ignore[arg-type]
    with pytest.raises(fp.FirstpageError, match="mu of LambdaRankLoss"):
        fp.torch.LambdaRankLoss(mu=-1)
    with pytest.raises(fp.FirstpageError, match="samples of PLRankLoss"):
        fp.torch.PLRankLoss(samples=0)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by PyTorch
def test_compiled_without_graph_breaks() -> None:
    losses = [
        cls(k, measure=measure)
        for cls in (fp.torch.LambdaRankLoss, fp.torch.PLRankLoss)
        for k, measure in ((None, "NDCG@10"), (2, "AP"))
    ]
    for implementation in IMPLEMENTATIONS:
        check_compiled(losses, implementation)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("measure", ["NDCG@3", "NDCG", "AP", "RR", "ERR(max=3)@5"])
@pytest.mark.parametrize("variant", ["lambdarank", "loss2++"])
def test_lambda_loss_on_a_gpu(measure: str, variant: Any) -> None:
    if variant != "lambdarank" and not measure.startswith("NDCG"):
        return
    scores, labels, mask = example(lists=8, n=20)
    results = []
    for device in ("cpu", "cuda"):
        leaf = scores.detach().clone().to(device).requires_grad_()
        loss = fp.torch.LambdaRankLoss(measure=measure, variant=variant)
        value = loss(leaf, labels.to(device), mask.to(device))
        value.backward()
        results.append((value.detach().cpu(), leaf.grad.cpu()))
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("measure", ["NDCG@3", "AP"])
def test_the_expectation_of_pl_rank_on_a_gpu(measure: str) -> None:
    """Samples differ from those of the CPU; their means do not."""
    scores, labels, mask = example()
    loss = fp.torch.PLRankLoss(measure=measure, samples=20_000)
    values = [loss(scores.to(d), labels.to(d), mask.to(d)).cpu() for d in ("cpu", "cuda")]
    torch.testing.assert_close(*values, rtol=0, atol=0.01)
