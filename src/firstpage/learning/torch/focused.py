"""The formula of FocusedNet: permutations of the top k, and logistic pairs with the rest.

It equals that of `firstpage.learning.losses.focused`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from firstpage.learning.losses.permutation import MAX_LENGTH, reach_table
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.levels import levels_of, top_k_labels, top_probability
from firstpage.learning.torch.permutations import permutation_sums

if TYPE_CHECKING:
    from torch import Tensor

MIN_SPAN = {torch.float64: 1e-9, torch.float32: 1e-5}  # of a target that has an order


def permutation_tables(k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the permutations of 0 to k documents in a strict order need.

    The probability that each of the 2^k subsets is ever left over, of shape (k + 1, 2^k); the
    entropies; and the spans between the entropies and the values at equal scores, of which those
    without an order are 0.
    """
    reach, entropies = np.zeros((k + 1, 1 << k)), np.zeros(k + 1)
    for m in range(2, k + 1):
        reach[m, : 1 << m], entropies[m] = reach_table(tuple(-float(rank) for rank in range(m)))
    reach[:, 0] = 0.0  # the empty set is left over at the end, and adds nothing
    spans = np.array([math.lgamma(m + 1) for m in range(k + 1)]) - entropies
    spans[:2] = 0.0
    return torch.from_numpy(reach), torch.from_numpy(entropies), torch.from_numpy(spans)


def top_list(
    lists: Lists, k: int, tables: tuple[Tensor, Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Return the cross entropy of the permutations of the top k, 1 at equal scores, 0 at best.

    Where the labels do not order the top strictly, it is that of the top-one probabilities.
    """
    dtype, lists = lists.scores.dtype, lists.widened()
    values, gradient = _top_list(lists, k, tables)
    return values.to(dtype), gradient.to(dtype)


def _top_list(
    lists: Lists, k: int, tables: tuple[Tensor, Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    scores = lists.scores
    if not scores.shape[-1]:
        return scores.sum(-1), scores
    inside = top_probability(lists, k)
    if tables is None:
        return _top_one(lists, inside, k)
    levels = levels_of(lists.key, lists.key.sort(dim=-1).values)
    strict = ~((levels.end - levels.start > 1) & (inside > 0)).any(-1)
    values, gradient = _permutations(lists, k, strict, tables)
    others, other_gradient = _top_one(lists, inside, k)
    return (
        torch.where(strict, values, others),
        torch.where(strict.unsqueeze(-1), gradient, other_gradient),
    )


def _permutations(
    lists: Lists, k: int, strict: Tensor, tables: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the cross entropy of the permutations of the top k of lists that order it strictly."""
    dtype = lists.scores.dtype
    labels, index = lists.key.topk(min(k, lists.key.shape[-1]), dim=-1)
    exists = labels > -math.inf
    count = exists.sum(-1) * strict  # documents of the permutations
    reach, entropy, span = (table.to(count.device, dtype)[count] for table in tables)
    factor = torch.where(span > 0, 1 / span.clamp(min=MIN_SPAN[dtype]), 0.0)
    values, gradient = permutation_sums(
        lists.scores.gather(-1, index), exists, reach[:, : 1 << index.shape[-1]]
    )
    gradient = torch.zeros_like(lists.scores).scatter(-1, index, gradient * factor.unsqueeze(-1))
    return (values - entropy) * factor, gradient


def _top_one(lists: Lists, weight: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the cross entropy of top-one probabilities of documents that may be in the top k.

    `weight` is the probability to be there.
    """
    log_weight = weight.log()
    tiny, least = torch.finfo(weight.dtype).tiny, torch.finfo(weight.dtype).min
    inside = weight > 0
    log_target = (top_k_labels(lists, k) + log_weight).clamp(min=least).log_softmax(-1)
    target = log_target.exp() * inside
    logs = (lists.scores + log_weight).clamp(min=least).log_softmax(-1)
    # Cross entropy and entropy of copies: each document stands for `weight` copies of it.
    copies = log_weight.clamp(min=least)
    entropy = -(target * (log_target - copies)).masked_fill(~inside, 0.0).sum(-1)
    at_zero = weight.sum(-1).clamp(min=tiny).log()
    span = at_zero - entropy
    least_span = MIN_SPAN[span.dtype]
    factor = torch.where(span >= least_span, 1 / span.clamp(min=least_span), 0.0)
    cross = -(target * (logs - copies)).masked_fill(~inside, 0.0).sum(-1)
    gradient = (logs.exp() * inside - target) * factor.unsqueeze(-1)
    return (cross - entropy) * factor, gradient


def supports_permutations(k: int) -> bool:
    """Return whether permutations of k documents are computed."""
    return k <= MAX_LENGTH
