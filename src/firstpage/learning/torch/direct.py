"""Losses that optimize a measure on a device: LambdaLoss and PL-Rank of padded lists.

Gains are computed from the labels, for measures that add gains times discounts: NDCG, DCG, P,
Recall and RBP.  Other measures have no formula here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstpage.core import MeasureError
from firstpage.core.kernels.losses import ADDITIVE, LAMBDARANK
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
from firstpage.learning.torch import measure_formulas as formulas
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.measure_formulas import RankForm, sort_lists

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
    lists: Lists, measure: Measure, k: int | None, variant: int, mu: float
) -> tuple[Tensor, Tensor]:
    """Return LambdaLoss of padded lists."""
    dtype, lists = lists.scores.dtype, lists.widened()
    scores, n = lists.scores, lists.scores.shape[-1]
    if n < 2:
        return scores.sum(-1).to(dtype) * 0, torch.zeros_like(scores, dtype=dtype)
    table, depth = discount_table(measure, n + 1, scores.device)
    depth = min(depth, n, n if k is None else k)
    gains = list_gains(measure, lists)
    if variant == LAMBDARANK and n <= device.MAX_DOCUMENTS and device.is_used(scores):
        return device.lambda_loss(scores.to(dtype), gains, lists.mask, table[:-1], depth)
    doubles = table.diff().abs().cumsum(-1).cumsum(-1)
    doubles = torch.nn.functional.pad(doubles, (2, 0))
    form = RankForm(ADDITIVE, table[:depth].unsqueeze(-1))
    by_score = sort_lists(scores, lists.mask)
    return formulas.lambda_loss(by_score, gains, form, variant, mu, doubles, n, dtype)


MAX_RANGE = 1e6  # of scores of PL-Rank: documents this far below the best are as far below it


def expected_measure(
    lists: Lists, measure: Measure, k: int | None, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    """Return how far the expected measure of Plackett-Luce rankings is below that of the labels.

    Rankings are drawn by `uniforms`, of shape (lists, samples, documents).
    """
    dtype, lists = lists.scores.dtype, lists.widened()
    n = lists.scores.shape[-1]
    if not n:
        return lists.scores.sum(-1).to(dtype), lists.scores.to(dtype)
    table, depth = discount_table(measure, n, lists.scores.device)
    table = table[: min(depth, n if k is None else k)]
    gains, (z, _) = list_gains(measure, lists), lists.centered()
    uniforms = uniforms.clamp(min=torch.finfo(uniforms.dtype).tiny)
    form = RankForm(ADDITIVE, table.unsqueeze(-1))
    z = z.clamp(min=-MAX_RANGE)
    values, gradient = formulas.expected_measure(z, gains, lists.mask, form, uniforms)
    best = (gains.topk(len(table)).values * table).sum(-1)
    return (best - values).to(dtype), -gradient.to(dtype)
