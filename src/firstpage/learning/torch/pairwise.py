"""Formulas of pairwise losses: values per list, and gradients by the scores.

They equal those of `firstpage.learning.losses.pairwise`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstpage.learning.torch import device
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.levels import top_probability

if TYPE_CHECKING:
    from torch import Tensor

MAX_DEVICE_PAIRS = 1 << 22  # that a device computes at once, by operations of PyTorch


def pairwise_logistic(
    lists: Lists, k: int | None, cross: bool, average: bool
) -> tuple[Tensor, Tensor]:
    """Return the sum over pairs, u better than v, of log(1 + exp(s_v - s_u)), or their mean.

    With k, u is in the top k; in cross pairs v is not.  Without k, cross pairs are those between
    documents of positive label and the others.
    """
    scores, key, mask = lists.scores, lists.key, lists.mask
    if not key.shape[-1]:
        return scores.sum(-1), scores
    upper, lower = None, None  # probabilities to be the better and the worse document of a pair
    if k is not None:
        inside = top_probability(lists, k)
        upper = inside * (key > lists.lowest)
        lower = 1 - inside if cross else None
    elif cross:
        key = (key > 0).to(scores.dtype)
        key = key if mask is None else key.masked_fill(~mask, -1.0)
    if mask is not None:
        exists = mask.to(scores.dtype)
        lower = exists if lower is None else lower * exists
    if scores.dtype == torch.float32 and _are_many(scores) and device.is_used(scores):
        values, gradient, total = device.pairwise_logistic(scores, key, upper, lower)
    else:
        values, gradient, total = _every_pair(scores, key, upper, lower)
    if average:
        inverse = torch.where(total > 0, 1 / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)
        values, gradient = values * inverse, gradient * inverse.unsqueeze(-1)
    return values, gradient


def _are_many(scores: Tensor) -> bool:
    """Return whether there are more pairs than a device computes at once."""
    return scores.numel() * scores.shape[-1] > MAX_DEVICE_PAIRS


def _every_pair(
    scores: Tensor, key: Tensor, upper: Tensor | None, lower: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values, gradient and the summed weight of the pairs of each list."""
    index = None if upper is None else _better_documents(upper)
    better_scores, better_key = scores, key
    if index is not None:
        better_scores, better_key = scores.gather(-1, index), key.gather(-1, index)
        assert upper is not None
        upper = upper.gather(-1, index)
    weight = (better_key.unsqueeze(-1) > key.unsqueeze(-2)).to(scores.dtype)
    if upper is not None:
        weight = weight * upper.unsqueeze(-1)
    if lower is not None:
        weight = weight * lower.unsqueeze(-2)
    values, better, worse = weighted_pairs(better_scores, scores, weight)
    gradient = worse - better if index is None else worse.scatter_add(-1, index, -better)
    return values, gradient, weight.sum((-1, -2))


def weighted_pairs(better: Tensor, worse: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum of weight * log(1 + exp(worse - better)) over pairs, and the absolute
    derivatives by the scores of the better and of the worse documents.

    `weight` has the shape (lists, better, worse).
    """
    difference = worse.unsqueeze(-2) - better.unsqueeze(-1)
    small = difference.abs().neg_().exp_()
    probability = torch.where(difference > 0, 1.0, small).div_(1 + small).mul_(weight)
    loss = small.log1p_().add_(difference.clamp_(min=0)).mul_(weight)
    return loss.sum((-1, -2)), probability.sum(-1), probability.sum(-2)


def _better_documents(upper: Tensor) -> Tensor | None:
    """Return the documents that are the better ones of some pair; None if all are taken.

    Their number depends on the labels: it is not counted where a device would have to wait.
    """
    if torch.compiler.is_compiling() or not (_are_many(upper) or upper.device.type == "cpu"):
        return None
    rows = int((upper > 0).sum(-1).max())
    return None if rows == upper.shape[-1] else upper.topk(rows, sorted=False).indices
