"""Formulas of losses that optimize a measure: LambdaLoss and PL-Rank.

They equal those of `learning.losses.lambdaloss` and `learning.losses.plrank` for measures that
add gains times discounts: NDCG, DCG, P, Recall and RBP.  Other measures have no formula here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from firstpage.core import MeasureError
from firstpage.evaluation.measures import (
    DCG,
    ERR,
    NDCG,
    RBP,
    Measure,
    MeasureLike,
    P,
    Recall,
    kernel_cutoff,
)
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.losses.measure_forms import DEFAULT, check_supported
from firstpage.learning.torch import device
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.levels import levels_of

if TYPE_CHECKING:
    from torch import Tensor


def is_additive(measure: Measure) -> bool:
    """Return whether the formulas here compute the measure: it adds gains times discounts."""
    if type(measure) in (NDCG, DCG):
        return getattr(measure, "gain", None) in (None, "exp", "linear")
    return type(measure) in (P, Recall, RBP)


def read_measure(measure: MeasureLike, user: str) -> Measure:
    """Return a measure that a loss can maximize in batches, or raise an error."""
    parsed = parse_measure(measure)
    check_supported(parsed, user)
    check_known_maximum(parsed)
    return parsed


def check_known_maximum(measure: Measure) -> None:
    """Raise an error for an ERR that depends on the lists of the whole data."""
    if isinstance(measure, ERR) and measure.max is None:
        raise MeasureError(
            f"{measure} depends on the greatest label of all lists, which is not known in a batch: "
            "name it, as in ERR(max=4)@10."
        )


def discount_table(measure: Measure, size: int, device: torch.device) -> tuple[Tensor, int]:
    """Return the discounts of `size` ranks, and the number of ranks that count."""
    cutoff = min(kernel_cutoff(getattr(measure, "cutoff", None)), size)
    dtype = torch.float32 if device.type == "mps" else torch.float64
    rank = torch.arange(1, size + 1, dtype=dtype, device=device)
    if isinstance(measure, (NDCG, DCG)):
        if (measure.discount or DEFAULT.discount) == "letor":
            return 1 / rank.clamp(min=2).log2(), cutoff
        return 1 / (1 + rank).log2(), cutoff
    if isinstance(measure, RBP):
        return (1 - measure.p) * measure.p ** (rank - 1), cutoff
    inside = (rank <= cutoff).to(dtype)
    if type(measure) is P:
        return inside / float(measure.cutoff or 1), cutoff
    return inside, cutoff


def list_gains(measure: Measure, lists: Lists) -> Tensor:
    """Return the gain of every document, divided by the ideal value where the measure is."""
    labels, n = lists.labels, lists.key.shape[-1]
    if isinstance(measure, (NDCG, DCG)):
        positive = labels.clamp(min=0)
        if (measure.gain or DEFAULT.gain) == "linear":
            gains = positive
        else:  # labels of an NDCG are shifted, so that large ones do not overflow
            top = positive.amax(-1, keepdim=True) if isinstance(measure, NDCG) else 0.0
            gains = torch.exp2(positive - top) - torch.exp2(torch.zeros_like(positive) - top)
        if not isinstance(measure, NDCG):
            return gains
        table, cutoff = discount_table(measure, n, labels.device)
        best = gains.topk(cutoff, dim=-1).values
        ideal = (best * table[:cutoff]).sum(-1, keepdim=True)
        return torch.where(ideal > 0, gains / torch.where(ideal > 0, ideal, 1.0), 0.0)
    assert isinstance(measure, (P, Recall, RBP))
    level = measure.relevance_level(DEFAULT)
    gains = (lists.key >= level).to(labels.dtype)
    if type(measure) is Recall:
        gains = gains / gains.sum(-1, keepdim=True).clamp(min=1)
    return gains


def lambda_loss(
    lists: Lists, measure: Measure, k: int | None, variant: str, mu: float
) -> tuple[Tensor, Tensor]:
    """Return the sum over pairs, u of greater gain than v, of weight * log(1 + exp(s_v - s_u)).

    Weights are means over the orders of documents of equal score.
    """
    dtype, lists = lists.scores.dtype, lists.widened()
    scores, n = lists.scores, lists.scores.shape[-1]
    if n < 2:
        return scores.sum(-1).to(dtype) * 0, torch.zeros_like(scores, dtype=dtype)
    table, depth = discount_table(measure, n + 1, scores.device)
    depth = min(depth, n, n if k is None else k)
    gains = list_gains(measure, lists)
    if variant == "lambdarank" and n <= device.MAX_DOCUMENTS and device.is_used(scores):
        return device.lambda_loss(scores.to(dtype), gains, lists.mask, table[:-1], depth)
    key = scores if lists.mask is None else scores.masked_fill(~lists.mask, -math.inf)
    descending, order = key.neg().sort(dim=-1)
    levels = levels_of(descending, descending)
    first, last = levels.start, levels.end - 1
    exists = None if lists.mask is None else lists.mask.gather(-1, order)
    rows = _ranks_that_count(first, depth)
    # Pairs of a document that can be at a rank that counts, and one that is ranked below it.
    gain, z = gains.gather(-1, order).to(dtype), scores.gather(-1, order).to(dtype)
    difference = gain[:, :rows].unsqueeze(-1) - gain.unsqueeze(-2)
    block = _Blocks(first, last, rows, depth, _has_ties(first, last, exists))
    factor = None
    if variant != "loss2":
        factor = _discount_changes(block, table, depth, dtype)
    if variant != "lambdarank":
        changes = _rank_difference_changes(block, table).to(dtype)
        factor = changes if factor is None else factor + mu * changes
    weight = difference.abs() * factor
    weight *= torch.ones(rows, n, dtype=dtype, device=z.device).triu(1)
    if exists is not None:
        weight *= exists.unsqueeze(-2)
    better = difference.sign_()
    x = (z.unsqueeze(-2) - z[:, :rows].unsqueeze(-1)).mul_(better)
    small = x.abs().neg_().exp_()
    derivative = torch.where(x > 0, 1.0, small).div_(1 + small).mul_(weight).mul_(better)
    loss = small.log1p_().add_(x.clamp_(min=0)).mul_(weight)
    gradient = derivative.sum(-2)
    gradient[:, :rows] -= derivative.sum(-1)
    return loss.sum((-1, -2)), torch.zeros_like(z).scatter(-1, order, gradient)


MAX_RANGE = 600.0  # of scores of PL-Rank: documents this far below the best are as far below it


def expected_measure(
    lists: Lists, measure: Measure, k: int | None, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    """Return how far the expected measure of Plackett-Luce rankings is below that of the labels.

    Rankings are drawn by `uniforms`, of shape (lists, samples, documents).  See
    `firstpage.core.kernels.losses.plrank.expected_measure` for the estimate.
    """
    dtype, lists = lists.scores.dtype, lists.widened()
    n = lists.scores.shape[-1]
    if not n:
        return lists.scores.sum(-1).to(dtype), lists.scores.to(dtype)
    table, depth = discount_table(measure, n, lists.scores.device)
    depth = min(depth, n if k is None else k)
    rank = torch.arange(depth, device=table.device)
    discount = table[:depth] * (rank < lists.lengths.view(-1, 1, 1))
    gains = list_gains(measure, lists)
    z, _ = lists.centered()
    z = z.clamp(min=-MAX_RANGE)
    arrival = (-uniforms.clamp(min=torch.finfo(uniforms.dtype).tiny).log()).log() - z.unsqueeze(-2)
    mean_gain = gains.sum(-1) / lists.lengths.clamp(min=1)
    e, centered = z.exp(), gains - mean_gain.unsqueeze(-1)
    if lists.mask is not None:
        arrival = arrival.masked_fill(~lists.mask.unsqueeze(-2), math.inf)
        e, centered = e * lists.mask, centered * lists.mask
    order = arrival.argsort(-1) if depth == n else arrival.topk(depth, largest=False).indices
    # Of the ranks that count, and of all documents below them together.
    e_ranked, e_below = _ranked(e, order)
    gain_ranked = centered.unsqueeze(-2).expand(arrival.shape).gather(-1, order)
    _, below_gain = _ranked(e * centered, order)
    remaining = (_suffix_sums(e_ranked) + e_below).clamp(min=torch.finfo(e.dtype).tiny)
    means = (_suffix_sums(e_ranked * gain_ranked) + below_gain) / remaining * discount
    reward = _suffix_sums(gain_ranked * discount)
    later = torch.cat([reward[..., 1:], torch.zeros_like(reward[..., :1])], -1)
    risk = ((means + later) / remaining).cumsum(-1)
    weight = (discount / remaining).cumsum(-1)
    ranked = -(later + e_ranked * (gain_ranked * weight - risk))
    below = ranked  # of which nothing remains if all ranks count
    if depth < n:
        below = -e.unsqueeze(-2) * (centered.unsqueeze(-2) * weight[..., -1:] - risk[..., -1:])
    gradient = below.scatter(-1, order, ranked).mean(-2)
    constant = mean_gain * discount.sum((-1, -2))
    best = (gains.topk(depth).values * table[:depth]).sum(-1)
    values = best - constant - means.sum(-1).mean(-1)
    return values.to(dtype), gradient.to(dtype)


def _ranked(values: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """Return values of the documents of each ranking, and the sum over those that are in none.

    Nothing is subtracted from a total: a small sum would be lost.
    """
    every = values.unsqueeze(-2).expand(*order.shape[:-1], values.shape[-1])
    if order.shape == every.shape:
        return every.gather(-1, order), values.new_zeros(())
    return every.gather(-1, order), every.scatter(-1, order, 0.0).sum(-1, keepdim=True)


def _suffix_sums(values: Tensor) -> Tensor:
    return values.flip(-1).cumsum(-1).flip(-1)


class _Blocks:
    """Ranks of the documents of equal score: of the upper document of a pair, and of the lower."""

    def __init__(self, first: Tensor, last: Tensor, rows: int, depth: int, ties: bool) -> None:
        self.first, self.last = first, last
        self.upper_first = first[:, :rows].unsqueeze(-1)
        self.upper_last = last[:, :rows].unsqueeze(-1)
        self.lower_first, self.lower_last = first.unsqueeze(-2), last.unsqueeze(-2)
        self.rows, self.depth = rows, depth
        self.same = self.upper_first == self.lower_first if ties else None
        self.counts = self.upper_first < depth  # whether the upper one can be at a counted rank


def _has_ties(first: Tensor, last: Tensor, exists: Tensor | None) -> bool:
    """Return whether documents have equal scores; True where a device would have to wait."""
    if torch.compiler.is_compiling() or first.device.type != "cpu":
        return True
    tied = first != last
    return bool((tied if exists is None else tied & exists).any())


def _ranks_that_count(first: Tensor, depth: int) -> int:
    """Return how many documents can be at the ranks that count; at most all where unknown."""
    n = first.shape[-1]
    if depth >= n or torch.compiler.is_compiling() or first.device.type != "cpu":
        return n
    return int((first < depth).sum(-1).max())


def _discount_changes(block: _Blocks, table: Tensor, depth: int, dtype: torch.dtype) -> Tensor:
    """Return the mean absolute change of the discount if two documents exchange their ranks."""
    rank = torch.arange(block.first.shape[-1], dtype=table.dtype, device=table.device)
    discount = table[:-1] * (rank < depth)
    zero = torch.zeros_like(discount[:1])
    sums = torch.cat([zero, discount.cumsum(-1)])
    moments = torch.cat([zero, (rank * discount).cumsum(-1)])
    first, last = block.first, block.last
    total, moment = sums[last + 1] - sums[first], moments[last + 1] - moments[first]
    size = (last - first + 1).to(table.dtype)
    mean = total / size
    rows = block.rows
    mean = mean.to(dtype)
    apart = (mean[:, :rows].unsqueeze(-1) - mean.unsqueeze(-2)).abs_()
    if block.same is None:
        return apart
    inner = ((size - 1 + 2 * first) * total - 2 * moment) / (0.5 * size * (size - 1)).clamp(min=1)
    return torch.where(block.same, inner[:, :rows].abs().to(dtype).unsqueeze(-1), apart)


def _rank_difference_changes(block: _Blocks, table: Tensor) -> Tensor:
    """Return the mean change of the discount between rank differences |i - j| and |i - j| + 1."""
    steps = table.diff().abs()
    sums = torch.cat([torch.zeros_like(steps[:2]), steps.cumsum(-1).cumsum(-1)])
    a, b0, b1 = block.upper_first, block.lower_first, block.lower_last
    counted = block.upper_last.clamp(max=block.depth - 1)
    size = (block.upper_last - a + 1).to(table.dtype)

    def at(index: Tensor) -> Tensor:
        return sums[index.clamp(min=0)]

    total = at(b1 - a + 1) - at(b1 - counted) - (at(b0 - a) - at(b0 - 1 - counted))
    apart = total / (size * (b1 - b0 + 1))
    if block.same is None:
        return apart * block.counts
    whole = block.upper_last - a + 1
    inner = (at(whole) - at(whole - (counted - a + 1))) / (0.5 * size * (size - 1)).clamp(min=1)
    return torch.where(block.same, inner, apart) * block.counts
