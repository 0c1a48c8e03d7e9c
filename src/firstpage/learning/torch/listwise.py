"""Formulas of listwise losses: values per list, and gradients by the scores.

They equal those of `learning.losses.listwise`.  Every formula returns values of shape (lists,) and
gradients of shape (lists, documents).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.levels import probabilities, top_documents, top_k_labels

if TYPE_CHECKING:
    from torch import Tensor

Result = tuple["Tensor", "Tensor"]
MAX_SELECTED = 16  # documents up to which selecting the top is faster than sorting
MAX_EXP_RANGE = {torch.float32: 60.0, torch.float64: 600.0}  # of exponentials that can be added


def is_narrow(z: Tensor, mask: Tensor | None) -> bool:
    """Return whether sums of exp(z) neither underflow nor have to be checked on a device.

    Sums of exponentials are faster than those of logarithms.  `z` has the maximum 0.
    """
    if torch.compiler.is_compiling() or z.device.type != "cpu":
        return False
    lowest = z if mask is None else z.masked_fill(~mask, 0.0)
    return bool(float(lowest.min()) > -MAX_EXP_RANGE[z.dtype])


def plackett_luce(lists: Lists, k: int | None, average: bool) -> Result:
    """Negative log-likelihood of the order under the Plackett-Luce model.

    sum over levels of  mass * log(sum of exp(score) in and below it)  -  sum of p * score
    """
    dtype, lists = lists.scores.dtype, lists.widened()
    if not lists.key.shape[-1]:
        values, gradient = lists.scores.sum(-1), lists.scores
    elif k is not None and k <= min(MAX_SELECTED, lists.key.shape[-1]):
        values, gradient = _selected_plackett_luce(lists, k, average)
    else:
        values, gradient = _sorted_plackett_luce(lists, k, average)
    return values.to(dtype), gradient.to(dtype)


def _sorted_plackett_luce(lists: Lists, k: int | None, average: bool) -> Result:
    """Sort all documents: O(n log n)."""
    z, _ = lists.centered()
    labels, order = lists.key.sort(dim=-1)  # ascending: sums run from the lowest label upward
    lowest = labels[:, :1] if lists.mask is None else lists.lowest
    p = (labels > lowest).to(z.dtype)
    n = labels.shape[-1]
    if k is not None and k < n:
        p = p * probabilities(labels, labels[:, -k].unsqueeze(-1), k, z.dtype)
    position = torch.arange(1, n + 1, device=z.device, dtype=z.dtype)
    change = labels[:, 1:] != labels[:, :-1]
    before = torch.zeros_like(z)  # documents of lower labels
    before[:, 1:] = change * position[:-1]
    mass = p * (position - before.cummax(-1).values)
    mass[:, :-1] *= change  # the mass of a level belongs to its last document
    narrow = is_narrow(z, lists.mask)
    z = z.gather(-1, order)
    if average:
        inverse = 1 / p.sum(-1, keepdim=True).clamp(min=1)
        p, mass = p * inverse, mass * inverse
    if narrow:
        e = z.exp()
        total = e.cumsum(-1)
        if lists.mask is not None:
            total.clamp_(min=torch.finfo(z.dtype).tiny)
        logs = total.log()
        gradient = e * (mass / total).flip(-1).cumsum(-1).flip(-1) - p
    else:
        logs = z.logcumsumexp(-1).clamp(min=torch.finfo(z.dtype).min)
        inverse = (mass.log() - logs).flip(-1).logcumsumexp(-1).flip(-1)
        gradient = (z + inverse).exp() - p
    if lists.mask is not None:
        z = z.clamp(min=torch.finfo(z.dtype).min)
    values = (mass * logs).sub_(p * z).sum(-1)
    return values, torch.empty_like(gradient).scatter_(-1, order, gradient)


def _selected_plackett_luce(lists: Lists, k: int, average: bool) -> Result:
    """Select the first k documents, and add what is not above each of them: O(n k).

    The k selected documents stand for the first k ranks: those of the level that crosses rank k
    are as many as its ranks are.
    """
    z, _ = lists.centered()
    key, lowest = lists.key, lists.lowest
    labels = key.topk(k, dim=-1).values
    p = probabilities(key, labels[:, -1:], k, z.dtype) * (key > lowest)
    mass = (labels > lowest).to(z.dtype)
    if average:
        inverse = 1 / mass.sum(-1, keepdim=True).clamp(min=1)
        p, mass = p * inverse, mass * inverse
    below = key.unsqueeze(-2) <= labels.unsqueeze(-1)  # documents that compete for each rank
    if is_narrow(z, lists.mask):
        e, weight = z.exp(), below.to(z.dtype)
        total = (weight * e.unsqueeze(-2)).sum(-1)
        if lists.mask is not None:
            total.clamp_(min=torch.finfo(z.dtype).tiny)
        logs = total.log()
        inverse = (weight * (mass / total).unsqueeze(-1)).sum(-2)
        gradient = e * inverse - p
    else:
        least = torch.finfo(z.dtype).min
        logs = z.unsqueeze(-2).masked_fill(~below, -math.inf).logsumexp(-1).clamp(min=least)
        inverse = (mass.log() - logs).unsqueeze(-1).masked_fill(~below, -math.inf).logsumexp(-2)
        gradient = (z + inverse).exp() - p
    if lists.mask is not None:
        z = z.clamp(min=torch.finfo(z.dtype).min)
    return (mass * logs).sum(-1) - (p * z).sum(-1), gradient


def relevance(lists: Lists, k: int | None) -> Tensor:
    """Return what scores are compared with: the labels, or the top-k labels."""
    if k is None:
        return lists.labels
    return top_k_labels(top_documents(lists.key, k, lists.scores.dtype), k)


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
