"""Compare losses by Triton kernels with those of the CPU: interpreted there, or on a GPU.

`python -m tests.learning.torch.by_triton` runs in a process in which Triton interprets (TRITON_INTERPRET=1).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import firstpage as fp
from tests.learning.torch.test_losses import FEW, assert_close, host, module

SCALES = (0.0, 1.0, 1000.0)
PAIRS = [case for case in FEW if case.startswith("RankNet")]  # which have a kernel


@contextmanager
def kernels(used: bool) -> Iterator[None]:
    """Compute pairs by kernels, however few they are, or never."""
    with (
        patch("firstpage.learning.torch.device.has_kernels", lambda device: used),
        patch("firstpage.learning.torch.pairwise.MAX_DEVICE_PAIRS", 0),
    ):
        yield


def batches(lists: int, n: int) -> Any:
    """Yield scores, labels and masks: close and far apart, with ties, hidden documents and lists."""
    rng = np.random.default_rng(n)
    for scale in SCALES:
        for grades in (2, 5, 1000):
            scores = (rng.normal(size=(lists, n)) * scale + 3).astype(np.float32)
            labels = (rng.integers(0, grades, (lists, n)) - (grades == 5)).astype(np.float32)
            mask = rng.random((lists, n)) < 0.8
            mask[1] = scale > 0
            yield scores, labels, mask


def compare(case: str, batch: Any, device: str, tolerances: dict[Any, float]) -> None:
    """Compare values and gradients of padded, unpadded and flat lists."""
    scores, labels, mask = batch
    loss = module(case, reduction="none")
    everything = np.ones_like(mask)
    offsets = np.concatenate([[0], np.cumsum(mask.sum(1))])
    for dtype, tolerance in tolerances.items():

        def tensor(values: Any, dtype: Any = None) -> Any:
            return torch.tensor(values, dtype=dtype, device=device)

        def check(
            x: Any, y: Any, expected: Any, tolerance: float = tolerance, **options: Any
        ) -> None:
            x.requires_grad_()
            out = loss(x, y, **options)
            assert out.dtype == x.dtype
            out.sum().backward()
            assert_close(out.cpu(), expected[0], tolerance)
            assert_close(x.grad.cpu(), expected[1], tolerance)

        hidden, hidden_labels = np.where(mask, scores, np.nan), np.where(mask, labels, np.inf)
        expected = host(case, *batch)
        check(tensor(hidden, dtype), tensor(hidden_labels), expected, mask=tensor(mask))
        flat = expected[0], expected[1][mask]
        check(tensor(scores[mask], dtype), tensor(labels[mask]), flat, offsets=tensor(offsets))
        integers = tensor(labels.astype(np.int64))
        check(tensor(scores, dtype), integers, host(case, scores, labels, everything))


def compare_lambda_loss(measure: str, k: int | None, batch: Any, device: str) -> None:
    """Compare values and gradients of lists whose scores have ties."""
    scores, labels, mask = batch
    scores, labels = np.clip(scores, -30, 30).round(1), np.minimum(labels, 20)
    loss = fp.torch.LambdaRankLoss(k, measure=measure, reduction="none")
    expected = torch.tensor(scores, requires_grad=True)
    values = loss(expected, torch.tensor(labels), torch.tensor(mask))
    values.sum().backward()
    actual = torch.tensor(scores, requires_grad=True, device=device)
    with patch("firstpage.learning.torch.host.is_used", lambda scores: False):
        out = loss(actual, torch.tensor(labels, device=device), torch.tensor(mask, device=device))
    out.sum().backward()
    assert_close(out.cpu(), values.detach().numpy(), 1e-6)
    assert_close(actual.grad.cpu(), expected.grad.numpy(), 1e-6)


def main() -> None:
    """Compare every third batch of few documents: the interpreter is slow."""
    tolerances = {torch.float32: 1e-6, torch.float64: 1e-12}
    for batch in list(batches(3, 6))[1::3]:
        for k in (None, 2):
            compare_lambda_loss("NDCG", k, batch, "cpu")
        with patch("firstpage.learning.torch.host.is_used", lambda scores: False), kernels(True):
            for case in PAIRS:
                compare(case, batch, "cpu", tolerances)
    print("as on the CPU")


if __name__ == "__main__":
    main()
