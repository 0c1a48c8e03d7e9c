"""The base class of ranking losses as modules of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from firstpage.errors import DataError
from firstpage.losses.loss import Loss
from firstpage.registry import check_number
from firstpage.torch import host
from firstpage.torch.backend import torch
from firstpage.torch.batches import (
    AttachGradient,
    Lists,
    check_batch,
    check_finite,
    per_document,
    read_batch,
)

if TYPE_CHECKING:
    from torch import Tensor

Reduction = Literal["none", "mean", "sum"]


class RankingLoss(torch.nn.Module):
    """Base class: reads a batch, computes values and gradients, and reduces them.

    Tensors on the CPU are computed by the kernels of `loss`, others by `_formula` where there is
    one, else on the CPU too.
    """

    _has_formula = True

    def __init__(self, k: int | None, reduction: Reduction, check: bool | None) -> None:
        super().__init__()
        self.k, self.reduction, self.check = k, reduction, check
        self._loss: Loss  # the same loss of the CPU; every subclass sets it
        self._number = host.register_formula(self)
        if k is not None:
            check_number(self, "k", 1, integer=True)
        if reduction not in get_args(Reduction):
            raise DataError(f"reduction must be 'none', 'mean' or 'sum'; got {reduction!r}.")

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        offsets: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch of lists.

        Parameters
        ----------
        scores : Tensor of shape (lists, documents), or (documents,) with `offsets`
            Scores of float32, float64, bfloat16 or float16.
        labels : Tensor of the same shape
            Labels; larger is better, equal labels are not ordered.
        mask : Tensor of bool of the same shape, optional
            Where there is a document; the rest is padding, whose scores and labels may be anything.
        offsets : Tensor of int of shape (lists + 1,), optional
            With flat scores: list q has the documents offsets[q]:offsets[q + 1].
        weights : Tensor of shape (lists,), optional
            The weight of each list; none is negative.

        Returns
        -------
        Tensor
            One number, or one per list if `reduction` is "none".  It is float64 for scores of
            float64, and float32 for all others.

        Raises
        ------
        DataError
            If shapes or types do not fit, there is no list, or a number is not finite.
        """
        if host.is_used(scores) and not torch.compiler.is_compiling():
            return self._by_kernels(scores, labels, mask, offsets, weights)
        batch = read_batch(scores, labels, mask, offsets, self.check)
        lists = batch.lists
        if host.is_used(scores) or not self._has_formula:
            values, gradient = host.opaque(*lists, self._seed(), self._number)
        else:
            values, gradient = self._formula(lists)
        if batch.position is not None:
            gradient = gradient.flatten()[batch.position]
        self._check_weights(weights, len(values))
        factor = self._factor(values, lists.mask, weights)
        if factor is not None:
            values = values * factor
            gradient = gradient * per_document(factor, batch.number)
        if self.reduction != "none":
            values = values.sum()
        return attached(scores, values, gradient, batch.number)

    def _by_kernels(
        self, scores: Tensor, labels: Tensor, mask: Any, offsets: Any, weights: Any
    ) -> Tensor:
        """Return the loss of a batch on the CPU.

        Arrays of NumPy are reduced: for so few numbers a tensor costs more than its content.
        """
        offsets = check_batch(scores, labels, mask, offsets, check=False)
        lists = host.flat_lists(scores, labels, mask, offsets)
        if self.check is not False and not lists.is_finite:
            check_finite(scores, labels, mask)
        self._check_weights(weights, lists.size)
        seed = self._seed()
        values, gradient = self._host_formula(lists, 0 if seed is None else int(seed))
        list_weights = None if weights is None else host.array(weights)
        factor = lists.mean_factor(list_weights) if self.reduction == "mean" else list_weights
        if factor is not None:
            values = values * factor
            each = factor if isinstance(factor, float) else factor.repeat(np.diff(lists.offsets))
            gradient = gradient * each
        if self.reduction == "none":
            out = torch.from_numpy(values).to(host.result_type(scores))
            number = None if offsets is None else lists.number
        else:
            out, number = host.scalar(float(values.sum()), scores), None
        return attached(scores, out, host.shaped(gradient, scores, mask), number)

    def _check_weights(self, weights: Any, count: int) -> None:
        """Raise an error unless there is one weight per list, or none at all."""
        if weights is None or (isinstance(weights, torch.Tensor) and weights.shape == (count,)):
            return
        shape = tuple(weights.shape) if isinstance(weights, torch.Tensor) else "no tensor"
        raise DataError(f"weights must have one number per list, {count}; got {shape}.")

    def _factor(self, values: Tensor, mask: Tensor | None, weights: Tensor | None) -> Tensor | None:
        """Return the factor of every list, or of all, before they are added; None for 1."""
        weights = None if weights is None else weights.detach().to(values)
        if self.reduction != "mean":
            return weights
        if mask is None and weights is None:
            return values.new_full((), 1 / len(values))
        counted = torch.ones_like(values) if weights is None else weights
        if mask is not None:
            counted = counted * mask.any(-1)
        count = counted.sum()
        return counted / torch.where(count > 0, count, 1.0)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        """Return one value per list, and the gradient by the scores, by operations of PyTorch."""
        raise AssertionError(f"{type(self).__name__} has no formula")  # see _has_formula

    def _host_formula(self, lists: host.FlatLists, seed: int) -> host.ValueGrad:
        """Return one value per list, and the gradient by the scores, by kernels of the CPU."""
        return host.evaluate(self._loss.target(lists.truth), lists)

    def _seed(self) -> Tensor | None:
        """Return the seed of one call, for losses that draw at random."""
        return None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._number = host.register_formula(self)  # a copy is another module

    def extra_repr(self) -> str:
        """Return the parameters, as PyTorch prints them.

        Returns
        -------
        str
            Names and values, separated by commas.
        """
        names = [name for name in vars(self) if not name.startswith("_") and name != "training"]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


def attached(scores: Tensor, values: Tensor, gradient: Tensor, number: Tensor | None) -> Tensor:
    """Return values whose gradient by the scores is this one; see `per_document` for `number`."""
    if not (scores.requires_grad and torch.is_grad_enabled()):
        return values
    out: Tensor = AttachGradient.apply(scores.to(values.dtype), values, gradient, number)
    return out
