"""The formula of permutations of a few documents, by operations of PyTorch.

It equals that of `learning.losses.permutation`.  FocusedNet as a module of PyTorch and solvers on a
device share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstpage.learning.torch.backend import torch

if TYPE_CHECKING:
    from torch import Tensor


def permutation_sums(scores: Tensor, exists: Tensor | None, reach: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum over subsets of reach * log(sum of exp(score)), minus the sum of all scores;
    and its gradient.

    Every document is ranked once.  `reach` has the probability that each of the 2^m subsets of a
    list is ever the set of documents not yet ranked, and 0 for the empty subset and those with a
    document that does not exist.  A subset is one of the first half of the documents and one of the
    others, so that no tensor has a number per document of each subset.
    """
    least, m = torch.finfo(scores.dtype).min, scores.shape[-1]
    if exists is not None:
        scores = scores.masked_fill(~exists, least)
    z = scores - scores.amax(-1, keepdim=True)
    half, rest = (m + 1) // 2, 1 << (m // 2)
    halves = torch.nn.functional.pad(z, (0, 2 * half - m), value=least).unflatten(-1, (2, half))
    subsets = torch.arange(1 << half, device=z.device).unsqueeze(-1)
    outside = (subsets >> torch.arange(half, device=z.device)) & 1 == 0
    terms = halves.unsqueeze(-2).masked_fill(outside, least)
    logs = terms.logsumexp(-1)
    fractions = (terms - logs.unsqueeze(-1)).exp_()  # of each document in the sum of each subset
    first, others = logs[:, 0].unsqueeze(-2), logs[:, 1, :rest].unsqueeze(-1)
    sums = torch.logaddexp(first, others)
    reach = reach.view(sums.shape)
    values = (reach * sums).sum((-1, -2))
    first_reach = (reach * (first - sums).exp_()).sum(-2, keepdim=True)
    other_reach = (reach * (others - sums).exp_()).sum(-1).unsqueeze(-2)
    derivatives = [first_reach @ fractions[:, 0], other_reach @ fractions[:, 1, :rest]]
    gradient = torch.cat(derivatives, -1).squeeze(-2)[:, :m] - 1
    if exists is None:
        return values - z.sum(-1), gradient
    return values - (z * exists).sum(-1), gradient * exists
