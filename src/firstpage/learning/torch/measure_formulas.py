"""Formulas of losses that optimize a measure, LambdaLoss and PL-Rank, by operations of PyTorch.

They equal those of `learning.losses.lambdaloss` and `learning.losses.plrank`.  Modules of PyTorch
and solvers on a device share them.  Nothing here waits for a device.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from firstpage.core.kernels.losses import ADDITIVE, CASCADE, LAMBDARANK, LOSS2, PRECISION, TABLE
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.levels import levels_of

if TYPE_CHECKING:
    from torch import Tensor


class RankForm(NamedTuple):
    """The ranks of a measure as formulas read them (see `kernels.losses.plrank`).

    Attributes
    ----------
    kind : int
        How the state depends on the documents above: ADDITIVE, CASCADE, PRECISION, or TABLE.
    weights : Tensor of shape (ranks, columns)
        The weights of the ranks that count: one column of discounts, or with TABLE the table.
    """

    kind: int
    weights: Tensor


class SortedLists(NamedTuple):
    """The documents of padded lists by descending score."""

    scores: Tensor
    exists: Tensor | None
    order: Tensor
    first: Tensor  # the first rank of the documents of equal score
    end: Tensor  # one past their last rank


def sort_lists(scores: Tensor, mask: Tensor | None) -> SortedLists:
    """Return the documents by descending score; padded ones are last."""
    key = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    descending, order = key.neg().sort(dim=-1)
    levels = levels_of(descending, descending)
    exists = None if mask is None else mask.gather(-1, order)
    return SortedLists(scores.gather(-1, order), exists, order, levels.start, levels.end)


def lambda_loss(
    lists: SortedLists,
    gains: Tensor,
    form: RankForm,
    variant: int,
    mu: float,
    doubles: Tensor,
    rows: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Return the sum over pairs, u of greater gain than v, of weight * log(1 + exp(s_v - s_u)).

    Weights are means over the orders of documents of equal score; not with CASCADE and PRECISION,
    where lists with such documents are wrong.  `doubles` has the double sums of the weights of rank
    differences, 0 for -1.  At most `rows` documents of a list can be at ranks that count.  Pairs
    are computed in the type `dtype`.
    """
    n = gains.shape[-1]
    gain, z = gains.gather(-1, lists.order), lists.scores.to(dtype)
    tied = lists.first[:, :rows].unsqueeze(-1) == lists.first.unsqueeze(-2)
    difference = (gain[:, :rows].unsqueeze(-1) - gain.unsqueeze(-2)).to(dtype)
    if form.kind == TABLE:
        weight = _table_changes(lists, gain, form, tied, dtype)
    else:
        weight = difference.abs()
        if variant == LAMBDARANK:
            weight *= _state_changes(lists, gain, form, tied, dtype)
        else:
            factor = _rank_difference_changes(lists, form, doubles, tied).to(dtype)
            if variant != LOSS2:
                factor = factor.mul_(mu).add_(_state_changes(lists, gain, form, tied, dtype))
            weight *= factor
    weight *= torch.ones(rows, n, dtype=dtype, device=z.device).triu(1)
    if lists.exists is not None:
        weight *= lists.exists.unsqueeze(-2)
    better = difference.sign_()
    x = (z.unsqueeze(-2) - z[:, :rows].unsqueeze(-1)).mul_(better)
    small = x.abs().neg_().exp_()
    derivative = torch.where(x > 0, 1.0, small).div_(1 + small).mul_(weight).mul_(better)
    loss = small.log1p_().add_(x.clamp_(min=0)).mul_(weight)
    gradient = derivative.sum(-2)
    gradient[:, :rows] -= derivative.sum(-1)
    return loss.sum((-1, -2)), torch.zeros_like(z).scatter(-1, lists.order, gradient)


def _block_means(lists: SortedLists, form: RankForm) -> tuple[Tensor, Tensor]:
    """Return, by rank and column, the mean weight of the ranks of the documents of equal score, and
    the mean difference of the weights of two of them."""
    first, end, weights = lists.first, lists.end, form.weights
    depth, columns = weights.shape
    rank = torch.arange(depth, dtype=weights.dtype, device=weights.device).unsqueeze(-1)
    both = torch.cat([weights, rank * weights], -1).cumsum(0)
    both = torch.nn.functional.pad(both, (0, 0, 1, 0))
    sums = both[end.clamp(max=depth)] - both[first.clamp(max=depth)]
    total, moment = sums[..., :columns], sums[..., columns:]
    size = (end - first).to(weights.dtype).unsqueeze(-1)
    inner = (size - 1 + 2 * first.unsqueeze(-1)) * total - 2 * moment
    return total / size, inner / (0.5 * size * (size - 1)).clamp(min=1)


def _state_changes(
    lists: SortedLists, gain: Tensor, form: RankForm, tied: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the absolute change of the measure, per difference of gains, if two documents exchange
    their ranks."""
    rows, n = tied.shape[-2:]
    if form.kind == ADDITIVE:
        means, inner = _block_means(lists, form)
        mean = means[..., 0].to(dtype)
        apart = (mean[:, :rows].unsqueeze(-1) - mean.unsqueeze(-2)).abs_()
        return torch.where(tied, inner[:, :rows].abs_().to(dtype), apart)
    depth = min(n, len(form.weights))
    discount = torch.nn.functional.pad(form.weights[:depth, 0], (0, n + 1 - depth))
    step = discount[:-1] - discount[1:]  # from rank r to r + 1
    if form.kind == PRECISION:
        passed = step * (1 + gain.cumsum(-1))  # below rank r
        sums = passed.cumsum(-1) - passed
        lost = (sums + gain * discount[:-1])[:, :rows].unsqueeze(-1)
        change = sums.unsqueeze(-2) - lost + gain[:, :rows].unsqueeze(-1) * discount[:-1]
        return change.abs_().to(dtype)
    rank = torch.arange(n, device=gain.device)
    own = rank[:rows].unsqueeze(-1)
    state = torch.where(rank == own, 1.0, 1 - gain.unsqueeze(-2)).cumprod(-1)  # without document i
    passed = step * state * (rank >= own)
    return (passed.cumsum(-1) - passed).abs_().to(dtype)


def _table_changes(
    lists: SortedLists, column: Tensor, form: RankForm, tied: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the absolute change of the measure if two documents exchange their ranks."""
    rows = tied.shape[-2]
    mean, inner = _block_means(lists, form)
    number = column.long()
    above = number[:, :rows].unsqueeze(-1).expand(tied.shape)
    other = number.unsqueeze(-2).expand(tied.shape)

    def difference(of: Tensor) -> Tensor:
        """Return the weights of both columns at the block of the upper document, subtracted."""
        return of.gather(2, above) - of.gather(2, other)

    below = mean.gather(2, above.transpose(1, 2)).transpose(1, 2)
    below = below - mean.gather(2, number.unsqueeze(-1)).transpose(1, 2)
    apart = difference(mean[:, :rows]) - below
    return torch.where(tied, difference(inner[:, :rows]), apart).abs_().to(dtype)


def _rank_difference_changes(
    lists: SortedLists, form: RankForm, doubles: Tensor, tied: Tensor
) -> Tensor:
    """Return the mean change of the discount between rank differences |i - j| and |i - j| + 1."""
    rows, depth = tied.shape[-2], len(form.weights)
    a, end = (t[:, :rows].unsqueeze(-1) for t in (lists.first, lists.end))
    b, b_end = lists.first.unsqueeze(-2), lists.end.unsqueeze(-2)
    counted = end.clamp(max=depth)

    def at(index: Tensor) -> Tensor:
        """Return double sums; where an index is out of range, the pair does not count."""
        return doubles[index.clamp(0, len(doubles) - 1)]

    total = at(b_end - a) - at(b_end - counted) - (at(b - a) - at(b - counted))
    size = end - a
    apart = total / (size * (b_end - b))
    inner = (at(size) - at(size - (counted - a))) / (0.5 * size * (size - 1)).clamp(min=1)
    return torch.where(tied, inner, apart) * (a < depth)


def expected_measure(
    scores: Tensor, gains: Tensor, mask: Tensor | None, form: RankForm, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    """Return an estimate of the expected measure of Plackett-Luce rankings, and its gradient.

    Rankings are drawn by `uniforms`, of shape (lists, samples, documents); see
    `kernels.losses.plrank.expected_measure` for the estimate.  Numbers per rank of a ranking have
    the shape (columns, lists, samples, ranks).
    """
    n, kind = scores.shape[-1], form.kind
    weights = form.weights[:n].T.unsqueeze(1).unsqueeze(1)
    columns, depth = weights.shape[0], weights.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        lengths = mask.sum(-1, keepdim=True)
        weights = weights * (torch.arange(depth, device=mask.device) < lengths).unsqueeze(1)
    arrival = uniforms.log().neg().log() - scores.unsqueeze(-2)
    order = arrival.argsort(-1) if depth == n else arrival.topk(depth, largest=False).indices
    features, center, baseline = _features(gains, mask, form)
    logs, p = _log_sums(scores, features.log(), order)
    relative = features - center
    ranked = _of_rankings(relative, order.expand(columns, *order.shape))
    values = (baseline.unsqueeze(-1) * weights).sum((0, -1)).mean(-1)
    if kind == CASCADE:
        weights = weights * _above((1 - ranked).cumprod(-1), 1.0)
    elif kind == PRECISION:
        weights = weights * (1 + _above(ranked.cumsum(-1), 0.0))
    own = _over_columns(ranked * weights)
    means = _over_columns(((logs[1:] - logs[0]).exp() - center.unsqueeze(-1)) * weights)
    later = own.flip(-1).cumsum(-1).flip(-1) - own  # the rewards below each rank
    sums = _decayed(torch.cat([weights.expand_as(ranked), (means + later).unsqueeze(0)]), logs[0])
    sums, risk = sums[:-1], sums[-1]
    gradient = later + p * (_over_columns(ranked * sums) - risk)
    below = gradient
    if depth < n:
        p = (scores.unsqueeze(-2) - logs[0, ..., -1:]).exp()
        below = p * (_over_columns(relative.unsqueeze(-2) * sums[..., -1:]) - risk[..., -1:])
    gradient = below.scatter(-1, order, gradient)
    return values + means.sum(-1).mean(-1), gradient.mean(-2)


def _features(gains: Tensor, mask: Tensor | None, form: RankForm) -> tuple[Tensor, Tensor, Tensor]:
    """Return what documents add per weight of a column, not negative; what it is relative to; and
    the mean of what documents add, or 0 where states depend on the documents above."""
    if form.kind == TABLE:
        columns = form.weights.shape[1]
        features = torch.nn.functional.one_hot(gains.long(), columns).to(form.weights)
        features, least = features.movedim(-1, 0), gains.new_zeros(1, 1)
    else:
        least = gains.amin(-1, keepdim=True)
        features = (gains - least).unsqueeze(0)
    if form.kind in (CASCADE, PRECISION):
        return features, -least.unsqueeze(0), torch.zeros_like(least).unsqueeze(0)
    if mask is None:
        center = features.mean(-1, keepdim=True)
    else:
        center = (features * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)
    return features, center, center + least


def _over_columns(values: Tensor) -> Tensor:
    return values[0] if len(values) == 1 else values.sum(0)


def _of_rankings(values: Tensor, order: Tensor) -> Tensor:
    """Return the values of the documents of each ranking."""
    return values.unsqueeze(-2).expand(*order.shape[:-1], values.shape[-1]).gather(-1, order)


def _log_sums(scores: Tensor, log_features: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logs of the sums over the documents from each rank of a ranking on, of exp(score)
    and of exp(score) * feature; and the probability of each ranked document, given those above."""
    terms = torch.cat([scores.unsqueeze(0), scores + log_features])
    index = order.expand(len(terms), *order.shape)
    ranked = _of_rankings(terms, index)
    upward, depth = ranked.flip(-1), order.shape[-1]
    if depth < scores.shape[-1]:
        rest = terms.unsqueeze(-2).expand(*index.shape[:-1], scores.shape[-1])
        rest = rest.scatter(-1, index, torch.finfo(terms.dtype).min)
        upward = torch.cat([rest.logsumexp(-1, keepdim=True), upward], -1)
    logs = upward.logcumsumexp(-1).flip(-1)[..., :depth]
    return logs, (ranked[0] - logs[0]).exp()


def _decayed(values: Tensor, logs: Tensor) -> Tensor:
    """Return the sums over the ranks up to each one, x, of value[y] * exp(logs[x] - logs[y]).

    Logarithms of positive and negative values are added apart.
    """
    terms = torch.stack([values, -values]).clamp_(min=0).log_() - logs
    sums = (terms.logcumsumexp(-1) + logs).exp_()
    return sums[0] - sums[1]


def _above(values: Tensor, first: float) -> Tensor:
    """Return at each rank the value of the rank above; at the first one `first`."""
    return torch.nn.functional.pad(values[..., :-1], (1, 0), value=first)
