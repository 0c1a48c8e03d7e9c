"""Losses of tensors on a GPU, by the Triton kernels of `firstpage.learning.gpu.label_batches`.

One launch computes values and gradients of all lists, padded or flat.  Formulas of PyTorch remain
for compiled code, for devices without Triton, and for what the kernels do not take.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from firstpage.learning.gpu import has_kernels
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import FlatOffsets, result_type

if TYPE_CHECKING:
    from torch import Tensor

MAX_DOCUMENTS = 4096  # that a program holds
MAX_K = 64  # levels that are taken one after the other
MIN_TILE = 16  # documents
DOCUMENTS_PER_WARP = 256
DOCUMENTS_PER_PAIR_WARP = 32
MAX_WARPS = 8
PAIR_CELLS = 4096  # pairs that a program computes at once
WORKSPACES = {"plackett_luce": 1, "pairwise_logistic": 3}  # numbers per document


class KernelLoss(NamedTuple):
    """A loss of `firstpage.learning.gpu.label_batches` and its parameters."""

    name: str
    parameter: float = 0.0
    average: bool = False
    cross: bool = False


def is_used(scores: Tensor, offsets: FlatOffsets | None = None, k: int | None = None) -> bool:
    """Return whether the kernels compute such lists."""
    if torch.compiler.is_compiling() or not has_kernels(scores.device.type):
        return False
    longest = scores.shape[1] if offsets is None else offsets.longest
    return longest <= MAX_DOCUMENTS and (k is None or k <= MAX_K)


def evaluate(
    loss: KernelLoss,
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None,
    offsets: FlatOffsets | None,
    k: int | None,
    divisor: int,
) -> tuple[Tensor, Tensor]:
    """Return values and gradients divided by a number, in the shape of the lists."""
    from firstpage.learning.gpu import label_batches

    scores = scores.detach().to(result_type(scores)).contiguous()
    labels = _readable(labels.detach().contiguous())
    if offsets is None:
        (count, width), ends = scores.shape, scores
        longest = width
    else:
        count, width, ends, longest = len(offsets.ends) - 1, 0, offsets.ends, offsets.longest
    size = _tile(longest)
    gradient, values = torch.empty_like(scores), scores.new_empty(count)
    keys = workspace = scores
    if loss.name in WORKSPACES and scores.numel():
        dtype = scores.dtype if loss.name == "pairwise_logistic" else torch.float64
        keys = scores.new_empty(scores.numel(), dtype=torch.float64)
        workspace = scores.new_empty(WORKSPACES[loss.name] * scores.numel(), dtype=dtype)
    with _on(scores.device):
        label_batches.each_list[(count,)](
            scores,
            labels,
            scores if mask is None else _readable(mask.contiguous()),
            ends,
            keys,
            workspace,
            gradient,
            values,
            width,
            longest if k is None else k,
            divisor,
            size,
            max(PAIR_CELLS // size, 1),
            mask is not None,
            offsets is not None,
            loss.parameter,
            loss.average,
            loss.cross,
            k is not None,
            getattr(label_batches, loss.name),
            num_warps=_warps(size, loss.name == "pairwise_logistic"),
        )
    return values, gradient


def lambda_loss(
    scores: Tensor, gains: Tensor, mask: Tensor | None, discounts: Tensor, depth: int
) -> tuple[Tensor, Tensor]:
    """Return LambdaLoss of padded lists: the variant "lambdarank".

    `discounts` has one number per document.  Ranks after `depth` do not count.
    """
    from firstpage.learning.gpu import label_batches

    scores, gains = scores.contiguous(), gains.contiguous()
    count, width = scores.shape
    discounts = discounts[:depth]
    sums, moments = discounts.new_zeros(2, width + 1)
    sums[1 : depth + 1] = discounts.cumsum(0)
    moments[1 : depth + 1] = (discounts * torch.arange(depth, device=scores.device)).cumsum(0)
    sums[depth + 1 :], moments[depth + 1 :] = sums[depth], moments[depth]
    size = _tile(width)
    gradient, values = torch.empty_like(scores), scores.new_empty(count)
    keys = scores.new_empty(scores.numel(), dtype=torch.float64)
    workspace = scores.new_empty(7 * scores.numel())
    with _on(scores.device):
        label_batches.each_lambda_list[(count,)](
            scores,
            gains,
            scores if mask is None else _readable(mask.contiguous()),
            sums,
            moments,
            keys,
            workspace,
            gradient,
            values,
            width,
            depth,
            size,
            max(PAIR_CELLS // size, 1),
            mask is not None,
            num_warps=_warps(size, pairs=True),
        )
    return values, gradient


def _tile(longest: int) -> int:
    """Return the number of documents that a program holds: a power of 2."""
    return max(MIN_TILE, 1 << max(longest - 1, 0).bit_length())


def _warps(size: int, pairs: bool) -> int:
    return min(
        max(size // (DOCUMENTS_PER_PAIR_WARP if pairs else DOCUMENTS_PER_WARP), 1), MAX_WARPS
    )


def _readable(values: Tensor) -> Tensor:
    """Return numbers of a type that kernels read."""
    if values.dtype == torch.bool:
        return values.view(torch.uint8)
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def _on(device: Any) -> AbstractContextManager[Any]:
    """Return a context in which kernels are launched on the device."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)
