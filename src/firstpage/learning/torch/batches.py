"""Batches of lists: checks, padding, and gradients that a formula computes with its values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from firstpage.core import DataError
from firstpage.learning.torch.backend import torch

if TYPE_CHECKING:
    from torch import Tensor


class Lists(NamedTuple):
    """A padded batch as formulas read it.

    Attributes
    ----------
    scores : Tensor of shape (lists, length)
        Scores, without history; padded ones are finite.
    key : Tensor of shape (lists, length)
        Labels, of which padded ones are -inf.
    mask : Tensor of bool or None
        Which documents exist; None if all do.
    """

    scores: Tensor
    key: Tensor
    mask: Tensor | None

    @property
    def labels(self) -> Tensor:
        """Labels in the type of the scores; padded ones are 0."""
        labels = self.key if self.mask is None else self.key.masked_fill(~self.mask, 0.0)
        return labels.to(self.scores.dtype)

    @property
    def lowest(self) -> Tensor:
        """The smallest label of each list; inf for a list without documents."""
        if self.mask is None:
            return self.key.amin(-1, keepdim=True)
        return self.key.masked_fill(~self.mask, math.inf).amin(-1, keepdim=True)

    @property
    def lengths(self) -> Tensor:
        """The number of documents of each list, in the type of the scores."""
        if self.mask is None:
            return self.scores.new_full(self.scores.shape[:1], self.scores.shape[1])
        return self.mask.sum(-1).to(self.scores.dtype)

    def widened(self) -> Lists:
        """Return the lists with scores of float64, where the device has them.

        Differences of exponents are rounded otherwise, and shift probabilities by more than 1e-6.
        """
        wide = self.scores if self.scores.device.type == "mps" else self.scores.double()
        return self._replace(scores=wide)

    def centered(self) -> tuple[Tensor, Tensor]:
        """Return scores minus the greatest one of their list, and that one; padding is -inf."""
        if self.mask is None:
            top = self.scores.amax(-1, keepdim=True)
            return self.scores - top, top
        scores = self.scores.masked_fill(~self.mask, -math.inf)
        top = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
        return scores - top, top


class Batch(NamedTuple):
    """The lists of a call, and how to return to the shape of its scores."""

    lists: Lists
    position: Tensor | None  # of each flat score in the padded batch, row by row; None if padded
    number: Tensor | None  # of the list of each flat score


class FlatOffsets(NamedTuple):
    """Where flat lists begin and end."""

    ends: Tensor  # (lists + 1,): int64, on the device of the scores
    shortest: int
    longest: int

    @property
    def number(self) -> Tensor:
        """The number of the list of each document."""
        return torch.repeat_interleave(self.ends.diff())


def read_batch(
    scores: Any, labels: Any, mask: Any = None, offsets: Any = None, check: bool | None = None
) -> Batch:
    """Check a batch and return it padded, in the type in which it is computed."""
    return padded(scores, labels, mask, check_batch(scores, labels, mask, offsets, check))


def padded(scores: Any, labels: Any, mask: Any, offsets: FlatOffsets | None) -> Batch:
    """Return a checked batch padded, in the type in which it is computed."""
    if offsets is None:
        return Batch(_lists(scores, labels, mask), None, None)
    return _padded(scores, labels, offsets)


def result_type(scores: Any) -> torch.dtype:
    """Return the type of values: float64 for scores of float64, else float32."""
    return torch.float64 if scores.dtype == torch.float64 else torch.float32


def check_batch(
    scores: Any, labels: Any, mask: Any = None, offsets: Any = None, check: bool | None = None
) -> FlatOffsets | None:
    """Raise an error for a batch that cannot be read; return the offsets of flat scores or None."""
    check_tensors(scores=scores, labels=labels)
    if not scores.is_floating_point():
        raise DataError(f"scores must be floating-point numbers; got {scores.dtype}.")
    if labels.is_complex() or scores.is_complex():
        raise DataError("scores and labels must be real numbers.")
    if scores.device != labels.device:
        raise DataError(f"scores are on {scores.device}, labels on {labels.device}.")
    if scores.shape != labels.shape:
        raise DataError(
            f"scores and labels differ in shape: {_shape(scores)} and {_shape(labels)}."
        )
    flat = None
    if offsets is not None:
        flat = _check_offsets(scores, mask, offsets)
    elif scores.dim() != 2:
        raise DataError(
            f"scores must have the shape (lists, documents), or one dimension with offsets; "
            f"got {_shape(scores)}."
        )
    elif not scores.shape[0]:
        raise DataError("the batch is empty: there is no list.")
    elif mask is not None:
        _check_mask(scores, mask)
    if _checked(check, scores):
        check_finite(scores, labels, mask)
    return flat


def _check_mask(scores: Any, mask: Any) -> None:
    check_tensors(mask=mask)
    if mask.shape != scores.shape:
        raise DataError(f"scores and mask differ in shape: {_shape(scores)} and {_shape(mask)}.")
    if mask.dtype != torch.bool:
        raise DataError(f"mask must be bool, True where there is a document; got {mask.dtype}.")
    if mask.device != scores.device:
        raise DataError(f"scores are on {scores.device}, the mask on {mask.device}.")


def _check_offsets(scores: Any, mask: Any, offsets: Any) -> FlatOffsets:
    if mask is not None:
        raise DataError("pass either mask (padded lists) or offsets (flat scores), not both.")
    if scores.dim() != 1:
        raise DataError(f"with offsets, scores must have one dimension; got {_shape(scores)}.")
    check_tensors(offsets=offsets)
    if offsets.dim() != 1 or offsets.is_floating_point() or offsets.dtype == torch.bool:
        raise DataError("offsets must be integers in one dimension, one more than lists.")
    if len(offsets) < 2:
        raise DataError("the batch is empty: there is no list.")
    offsets = offsets.to(torch.int64)  # differences of unsigned numbers cannot be negative
    lengths = offsets.diff()  # on the device of the offsets: those on the CPU need no GPU
    ends = [offsets[0], offsets[-1], lengths.min(), lengths.max()]
    first, last, shortest, longest = torch.stack(ends).tolist()
    if first != 0 or last != len(scores) or shortest < 0:
        raise DataError(
            f"offsets must ascend from 0 to the number of scores, {len(scores)}; they are from "
            f"{first} to {last}{', and descend in between' if shortest < 0 else ''}."
        )
    return FlatOffsets(offsets.to(scores.device), shortest, longest)


def _padded(scores: Any, labels: Any, offsets: FlatOffsets) -> Batch:
    """Return flat scores as padded lists."""
    lengths, longest = offsets.ends.diff(), offsets.longest
    rows = torch.arange(longest, device=scores.device)
    mask = rows < lengths.unsqueeze(-1)
    number = torch.repeat_interleave(lengths, output_size=len(scores))
    position = torch.arange(len(scores), device=scores.device) - offsets.ends[number]
    position = number * longest + position

    def in_rows(values: Any) -> Any:
        out = values.new_zeros(len(lengths) * longest)
        return out.index_copy_(0, position, values).view(len(lengths), longest)

    return Batch(_lists(in_rows(scores.detach()), in_rows(labels), mask), position, number)


def _lists(scores: Any, labels: Any, mask: Any) -> Lists:
    """Return a batch in the types in which it is computed: float64 for float64, else float32.

    Labels are not rounded: rounding would tie them.
    """
    scores = scores.detach()
    scores = scores if scores.dtype == torch.float64 else scores.float()
    labels = labels.detach()
    if not labels.is_floating_point() and labels.device.type != "mps":
        labels = labels.double()
    elif labels.dtype != torch.float64:
        labels = labels.float()
    if mask is not None:
        scores, labels = scores.masked_fill(~mask, 0.0), labels.masked_fill(~mask, -math.inf)
    return Lists(scores, labels, mask)


def _checked(check: bool | None, scores: Any) -> bool:
    """Return whether numbers are checked: on the CPU by default, as others would have to wait."""
    if torch.compiler.is_compiling():
        return False
    return scores.device.type == "cpu" if check is None else check


def check_finite(scores: Any, labels: Any, mask: Any) -> None:
    """Raise an error for scores or labels that are not finite, outside the padding."""
    scores, labels = scores.detach(), labels.detach()
    if math.isfinite(float(scores.sum())) and math.isfinite(float(labels.sum())):
        return
    for name, values in (("score", scores), ("label", labels)):
        bad = ~torch.isfinite(values)
        if mask is not None:
            bad &= mask
        if bool(bad.any()):
            where = bad.nonzero()[0].tolist()
            value = float(values[tuple(where)])
            at = f"list {where[0]}, document {where[1]}" if len(where) == 2 else f"row {where[0]}"
            hint = "" if mask is not None else "; hide padding by mask="
            raise DataError(f"a {name} is {value} ({at}); {name}s must be finite numbers{hint}.")


def check_tensors(**values: Any) -> None:
    """Raise an error for what is not a tensor."""
    for name, value in values.items():
        if not isinstance(value, torch.Tensor):
            raise DataError(f"{name} must be a torch.Tensor; got {type(value).__name__}.")
        if value.layout != torch.strided:
            raise DataError(f"{name} must be a dense tensor; got {value.layout}.")


def _shape(tensor: Any) -> str:
    return str(tuple(tensor.shape))


def per_document(values: Any, number: Any) -> Any:
    """Return one number per list as one per document, or a single number as it is.

    `number` is that of the list of each flat score; None for padded lists.
    """
    if not values.dim():
        return values
    return values.unsqueeze(-1) if number is None else values[number]


class AttachGradient(torch.autograd.Function):
    """Values of lists, or their sum, whose gradient by the scores is known already."""

    @staticmethod
    def forward(ctx: Any, scores: Any, values: Any, gradient: Any, number: Any) -> Any:
        ctx.save_for_backward(gradient, number)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, output: Any) -> Any:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # create_graph=True
            raise DataError("ranking losses have first derivatives only: omit create_graph=True.")
        gradient, number = ctx.saved_tensors
        return gradient * per_document(output, number), None, None, None
