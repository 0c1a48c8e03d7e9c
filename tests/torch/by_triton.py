"""Compare losses by Triton kernels with those of the CPU: interpreted there, or on a GPU.

`python -m tests.torch.by_triton` runs in a process in which Triton interprets (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from tests.torch.test_losses import CASES, assert_close, host, module

SHAPES = ((3, 1), (4, 5), (3, 33))
SCALES = (0.0, 1.0, 1000.0)


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

        def check(x: Any, y: Any, expected: Any, tolerance: float = tolerance, **options: Any) -> None:
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


def main() -> None:
    tolerances = {torch.float32: 1e-6, torch.float64: 1e-12}
    with patch("firstpage.torch.host.is_used", lambda scores: False):
        for case in CASES:
            if module(case)._kernel is not None:
                for shape in SHAPES:
                    for batch in batches(*shape):
                        compare(case, batch, "cpu", tolerances)
    print("as on the CPU")


if __name__ == "__main__":
    sys.exit(main())
