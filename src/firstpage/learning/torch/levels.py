"""Labels as losses read them: ranks of equal labels, and the probability to be in the top k.

Where equal labels cross rank k, each of their documents is in the top k with the same probability.
That is the mean over all ways to break the tie, as in `learning.losses.levels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import Lists

if TYPE_CHECKING:
    from torch import Tensor


class Levels(NamedTuple):
    """Where the level of each document is in ascending order of the labels."""

    start: Tensor  # its first position
    end: Tensor  # one past its last position

    def ranks(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return how many documents are above each one, and how many have its label."""
        return (self.start.shape[-1] - self.end).to(dtype), (self.end - self.start).to(dtype)


def levels_of(keys: Tensor, ascending: Tensor) -> Levels:
    """Return the levels of keys, of which `ascending` has the same ones in ascending order."""
    keys = keys.contiguous()
    return Levels(
        torch.searchsorted(ascending, keys), torch.searchsorted(ascending, keys, right=True)
    )


def probability_in_top(levels: Levels, k: int, dtype: torch.dtype) -> Tensor:
    """Return the probability to be in the top k, if equal keys are put in random order."""
    above, equal = levels.ranks(dtype)
    return (k - above).clamp(min=0).minimum(equal) / equal


def top_probability(lists: Lists, k: int) -> Tensor:
    """Return the probability of each document to be in the top k; padding has 0."""
    levels = levels_of(lists.key, lists.key.sort(dim=-1).values)
    probability = probability_in_top(levels, k, lists.scores.dtype)
    return probability if lists.mask is None else probability * lists.mask


def top_k_labels(lists: Lists, k: int) -> Tensor:
    """Return the top-k label of every document: k + 1 - rank, at least 0; the mean over ties."""
    levels = levels_of(lists.key, lists.key.sort(dim=-1).values)
    above, equal = levels.ranks(lists.scores.dtype)
    remaining = (k - above).clamp(min=0)
    after = (remaining - equal).clamp(min=0)
    labels = (remaining * (remaining + 1) - after * (after + 1)) / (2 * equal)
    return labels if lists.mask is None else labels * lists.mask
