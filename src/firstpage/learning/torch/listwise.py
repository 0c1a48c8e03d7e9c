"""Formulas of listwise losses: values per list, and gradients by the scores.

They equal those of `learning.losses.listwise`.  Every formula returns values of shape (lists,) and
gradients of shape (lists, documents).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.levels import levels_of, probability_in_top, top_k_labels

if TYPE_CHECKING:
    from torch import Tensor

Result = tuple["Tensor", "Tensor"]


def plackett_luce(lists: Lists, k: int | None, average: bool) -> Result:
    """Negative log-likelihood of the order under the Plackett-Luce model.

    The sum over documents of p * (log(sum of exp(score) in and below its level) - score), where p
    is the probability to be in the top k, and 0 for the lowest label.
    """
    dtype, lists = lists.scores.dtype, lists.widened()
    if not lists.key.shape[-1]:
        return lists.scores.sum(-1).to(dtype), lists.scores.to(dtype)
    z, _ = lists.centered()
    keys, order = lists.key.sort(dim=-1)  # ascending: sums run from the lowest label upward
    levels = levels_of(keys, keys)
    p = (keys > lists.lowest).to(z.dtype)
    if k is not None:
        p = p * probability_in_top(levels, k, z.dtype)
    if average:
        p = p / p.sum(-1, keepdim=True).clamp(min=1)
    least = torch.finfo(z.dtype).min
    z = z.gather(-1, order)
    logs = z.logcumsumexp(-1).gather(-1, levels.end - 1).clamp(min=least)
    inverse = (p.log() - logs).flip(-1).logcumsumexp(-1).flip(-1).gather(-1, levels.start)
    gradient = (z + inverse).exp() - p
    values = (p * (logs - z.clamp(min=least))).sum(-1)
    return values.to(dtype), torch.empty_like(gradient).scatter_(-1, order, gradient).to(dtype)


def relevance(lists: Lists, k: int | None) -> Tensor:
    """Return what scores are compared with: the labels, or the top-k labels."""
    return lists.labels if k is None else top_k_labels(lists, k)


def softmax_cross_entropy(lists: Lists, k: int | None, temperature: float) -> Result:
    """Return minus the sum of softmax(labels / temperature) * log softmax(scores)."""
    if not lists.key.shape[-1]:
        return lists.scores.sum(-1), lists.scores
    psi = relevance(lists, k)
    psi = psi if temperature == 1 else psi / temperature
    if lists.mask is None:
        target = psi.softmax(-1)
        logs = lists.scores.log_softmax(-1)
        return -(target * logs).sum(-1), logs.exp().sub_(target)
    least = torch.finfo(psi.dtype).min
    target = psi.masked_fill(~lists.mask, least).softmax(-1)
    logs = lists.scores.masked_fill(~lists.mask, least).log_softmax(-1)
    gradient = (logs.exp() - target).masked_fill(~lists.mask, 0.0)
    return -(target * logs).masked_fill(~lists.mask, 0.0).sum(-1), gradient


def cosine(lists: Lists, k: int | None, floor: float) -> Result:
    """Return (1 - cosine(scores, labels)) / 2; vectors shorter than `floor` count as that long."""
    if not lists.key.shape[-1]:
        return lists.scores.sum(-1), lists.scores
    scores, psi = lists.scores, relevance(lists, k)
    largest = psi.abs().amax(-1, keepdim=True)
    psi = psi / torch.where(largest > 0, largest, 1.0)
    norm = (psi * psi).sum(-1, keepdim=True).sqrt()
    unit = psi / norm.clamp(min=0.5)  # a psi that is not 0 has a norm of at least 1
    scale = scores.abs().amax(-1, keepdim=True)
    scale = torch.where(scale > 0, scale, 1.0)  # squares of 1e20 would overflow
    scaled = scores / scale
    length = ((scaled * scaled).sum(-1, keepdim=True).sqrt() * scale).clamp(min=floor)
    value = (scaled * unit).sum(-1, keepdim=True) * (scale / length)
    radial = torch.where(length > floor, value, 0.0)
    known = (largest > 0).to(scores.dtype)
    gradient = (radial * (scores / length) - unit) * (0.5 * known / length)
    if lists.mask is not None:
        gradient = gradient.masked_fill(~lists.mask, 0.0)
    return (0.5 * known * (1 - value)).squeeze(-1), gradient


def squared_error(lists: Lists, k: int | None, average: bool) -> Result:
    """Return half the squared differences of scores and labels: their mean, or their sum."""
    if not lists.key.shape[-1]:
        return lists.scores.sum(-1), lists.scores
    error = lists.scores - relevance(lists, k)
    if lists.mask is not None:
        error = error.masked_fill(~lists.mask, 0.0)
    squares = 0.5 * (error * error).sum(-1)
    if not average:
        return squares, error
    inverse = 1 / lists.lengths.clamp(min=1)
    return squares * inverse, error * inverse.unsqueeze(-1)
