"""Losses of many pairs of documents on a GPU, by Triton kernels.

Operations of PyTorch would store every pair.  They compute all other losses, which the kernels did
not make 1.5 times as fast in a step of training; and these ones in compiled code and on devices
without Triton.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from firstpage.learning.gpu import has_kernels
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.levels import levels_of

if TYPE_CHECKING:
    from torch import Tensor

MAX_DOCUMENTS = 4096  # of a list of LambdaLoss, which a program holds
MIN_TILE = 16  # documents
DOCUMENTS_PER_WARP = 32
MAX_WARPS = 8
PAIR_CELLS = 4096  # pairs that a program computes at once


def is_used(scores: Tensor) -> bool:
    """Return whether kernels can compute these scores."""
    return not torch.compiler.is_compiling() and has_kernels(scores.device.type)


def pairwise_logistic(
    scores: Tensor, key: Tensor, upper: Tensor | None, lower: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values, gradient and summed weight of the pairs of a document and one of a lower key.

    A pair has the weight upper * lower; None is 1.  Lists are sorted as in training.
    """
    from firstpage.learning.gpu.list_kernels import KINDS, each_query

    loss, _, tile = KINDS["pairs"]
    (count, n), device = scores.shape, scores.device
    descending, order = key.neg().sort(dim=-1)
    end = levels_of(descending, descending).end
    better, worse = (
        torch.ones_like(scores) if weight is None else weight.gather(-1, order)
        for weight in (upper, lower)
    )
    weight_below = worse.flip(-1).cumsum(-1).flip(-1)
    weight_below = torch.nn.functional.pad(weight_below, (0, 1)).gather(-1, end)
    better = better * (weight_below > 0)
    sorted_scores = scores.gather(-1, order)
    sorted_gradient, workspace = torch.empty_like(scores), torch.empty_like(scores)
    values = scores.new_empty(count, dtype=torch.float64)
    with _on(device):
        each_query[(count,)](
            sorted_scores,
            sorted_gradient,
            better,
            end.to(scores.dtype),
            worse,
            workspace,
            torch.arange(count + 1, device=device) * n,
            (better > 0).sum(-1).to(torch.int32),
            scores,  # the loss has no factor
            values,
            0,
            tile,
            loss,
        )
    gradient = torch.empty_like(scores).scatter_(-1, order, sorted_gradient)
    return values.to(scores.dtype), gradient, (better * weight_below).sum(-1)


def lambda_loss(
    scores: Tensor, gains: Tensor, mask: Tensor | None, discounts: Tensor, depth: int
) -> tuple[Tensor, Tensor]:
    """Return LambdaLoss of padded lists: the variant "lambdarank".

    `discounts` has one number per document.  Ranks after `depth` do not count.
    """
    from firstpage.learning.gpu.lambda_lists import each_lambda_list

    scores, gains = scores.contiguous(), gains.contiguous()
    count, width = scores.shape
    discounts = discounts[:depth]
    sums, moments = discounts.new_zeros(2, width + 1)
    sums[1 : depth + 1] = discounts.cumsum(0)
    moments[1 : depth + 1] = (discounts * torch.arange(depth, device=scores.device)).cumsum(0)
    sums[depth + 1 :], moments[depth + 1 :] = sums[depth], moments[depth]
    size = max(MIN_TILE, 1 << (width - 1).bit_length())  # documents that a program holds
    gradient, values = torch.empty_like(scores), scores.new_empty(count)
    keys = scores.new_empty(scores.numel(), dtype=torch.float64)
    workspace = scores.new_empty(7 * scores.numel())
    with _on(scores.device):
        each_lambda_list[(count,)](
            scores,
            gains,
            scores if mask is None else mask.contiguous().view(torch.uint8),
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
            num_warps=min(max(size // DOCUMENTS_PER_WARP, 1), MAX_WARPS),
        )
    return values, gradient


def _on(device: Any) -> AbstractContextManager[Any]:
    """Return a context in which kernels are launched on the device."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)
