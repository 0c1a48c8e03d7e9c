"""Labels as losses read them: levels of equal label, and the probability to be in the top k.

Where a level crosses rank k, each of its documents is in the top k with the same probability.  That
is the mean over all ways to break the tie, as in `learning.losses.levels`.  Padding has the label
-inf.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from firstpage.learning.torch.backend import torch

if TYPE_CHECKING:
    from torch import Tensor


class Top(NamedTuple):
    """The first k documents by label, and the level that crosses rank k (the boundary)."""

    labels: Tensor  # (lists, k): the greatest labels, descending
    index: Tensor  # their documents
    inside: Tensor  # which of them are above the boundary
    above: Tensor  # (lists, 1): how many documents are above the boundary
    crosses: Tensor  # (lists, 1): whether there is a boundary; not if a list ends before rank k
    at_boundary: Tensor  # (lists, documents): which documents have its label
    count: Tensor  # (lists, 1): how many have it, at least 1

    def spread(self, inside: Tensor, boundary: Tensor, rest: Tensor) -> Tensor:
        """Return one number per document, in the order of the scores.

        `inside` has one per document of `labels`, the others one per list.
        """
        boundary = torch.where(self.crosses, boundary, rest)
        out = torch.where(self.at_boundary, boundary, rest)
        return out.scatter_(-1, self.index, torch.where(self.inside, inside, boundary))


def top_documents(key: Tensor, k: int, dtype: torch.dtype) -> Top:
    """Return the first k documents of each list; counts are of type `dtype`."""
    labels, index = key.topk(min(k, key.shape[-1]), dim=-1)
    boundary = labels[:, -1:]
    inside = labels > boundary
    at_boundary = key == boundary
    above = inside.sum(-1, keepdim=True).to(dtype)
    count = at_boundary.sum(-1, keepdim=True).to(dtype)
    return Top(labels, index, inside, above, boundary > -math.inf, at_boundary, count)


def top_probability(top: Top, k: int) -> Tensor:
    """Return the probability that a document of the boundary is in the top k, per list."""
    return (k - top.above).clamp(max=top.count) / top.count


def probabilities(key: Tensor, boundary: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """Return the probability of each document to be in the top k; `boundary` is the label there."""
    above, at_boundary = key > boundary, key == boundary
    free = k - above.sum(-1, keepdim=True, dtype=dtype)
    count = at_boundary.sum(-1, keepdim=True, dtype=dtype)
    return torch.where(above, 1.0, at_boundary * (free / count))


def level_bounds(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and the last position of the level of each of these sorted labels."""
    n = labels.shape[-1]
    position = torch.arange(n, device=labels.device).expand(labels.shape)
    change = labels[:, 1:] != labels[:, :-1]
    first, last = position.clone(), position.clone()
    first[:, 1:].masked_fill_(~change, 0)
    last[:, :-1].masked_fill_(~change, n)
    return first.cummax(-1).values, last.flip(-1).cummin(-1).values.flip(-1)


def top_k_labels(top: Top, k: int) -> Tensor:
    """Return the top-k label of every document: k + 1 - rank, at least 0; the mean over ties."""
    first, last = level_bounds(top.labels)
    inside = k - (first + last).to(top.above.dtype) / 2
    left = k - top.above
    after = (left - top.count).clamp(min=0)
    boundary = (left * (left + 1) - after * (after + 1)) / 2 / top.count
    return top.spread(inside, boundary, torch.zeros_like(boundary))
