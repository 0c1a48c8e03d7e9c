"""The base class of ranking losses as modules of PyTorch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from firstpage.core import DataError, check_number
from firstpage.learning.losses.base import Loss
from firstpage.learning.torch import host
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import (
    AttachGradient,
    Lists,
    check_batch,
    check_finite,
    check_tensors,
    padded,
    per_document,
    result_type,
)

if TYPE_CHECKING:
    from torch import Tensor

Reduction = Literal["none", "mean", "sum"]


class RankingLoss(torch.nn.Module):
    """Base class: reads a batch, computes values and gradients, and reduces them.

    Tensors on the CPU are computed by the kernels of `loss`.  Others are computed by `_formula`
    where there is one, else on the CPU too.
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
            The weight of each list: finite, and not negative.

        Returns
        -------
        Tensor
            One number, or one per list if `reduction` is "none".  It is float64 for scores of
            float64, and float32 for all others.

        Raises
        ------
        DataError
            If shapes or types do not fit, there is no list, a number is not finite, or a weight is
            negative.
        """
        check_tensors(scores=scores)
        if host.is_used(scores) and not torch.compiler.is_compiling():
            return self._by_kernels(scores, labels, mask, offsets, weights)
        flat = check_batch(scores, labels, mask, offsets, self.check)
        batch = padded(scores, labels, mask, flat)
        lists = batch.lists
        if host.is_used(scores) or not self._has_formula:
            values, gradient = host.opaque(*lists, self._seed(), self._number)
        else:
            values, gradient = self._formula(lists)
        if batch.position is not None:
            gradient = gradient.flatten()[batch.position]
        self._check_weights(weights, len(values))
        filled = None if lists.mask is None else lists.mask.any(-1)
        factor = self._factor(values, filled, weights)
        return self._reduced(scores, values, gradient, factor, batch.number)

    def _reduced(
        self, scores: Tensor, values: Tensor, gradient: Tensor, factor: Tensor | None, number: Any
    ) -> Tensor:
        """Return values times a factor, or their sum, with their gradient."""
        if factor is not None:
            values = values * factor
            gradient = gradient * per_document(factor, number)
        if self.reduction != "none":
            values = values.sum()
        return attached(scores, values, gradient, number)

    def _by_kernels(
        self, scores: Tensor, labels: Tensor, mask: Any, offsets: Any, weights: Any
    ) -> Tensor:
        """Return the loss of a batch on the CPU.

        Arrays of NumPy are reduced: for so few numbers a tensor costs more than its content.
        """
        flat = check_batch(scores, labels, mask, offsets, check=False)
        lists = host.flat_lists(scores, labels, mask, flat)
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
            out = torch.from_numpy(values).to(result_type(scores))
            number = None if flat is None else flat.number
        else:
            out, number = host.scalar(float(values.sum()), scores), None
        return attached(scores, out, host.shaped(gradient, scores, mask), number)

    def _check_weights(self, weights: Any, count: int) -> None:
        """Raise an error unless there is one weight per list, or none at all.

        Their numbers are checked on the CPU; a device would have to wait.
        """
        if weights is None:
            return
        check_tensors(weights=weights)
        if weights.shape != (count,) or weights.is_complex():
            raise DataError(
                f"weights must have one real number per list, {count}; got {tuple(weights.shape)} "
                f"of {weights.dtype}."
            )
        if torch.compiler.is_compiling() or weights.device.type != "cpu" or self.check is False:
            return
        for number, weight in enumerate(weights.tolist()):
            if not 0 <= weight < math.inf:
                raise DataError(
                    f"weights must be finite and not negative; that of list {number} is {weight}."
                )

    def _factor(
        self, values: Tensor, filled: Tensor | None, weights: Tensor | None
    ) -> Tensor | None:
        """Return the factor of every list, or of all, before they are added; None for 1.

        `filled` says which lists have a document; None if all do.
        """
        weights = None if weights is None else weights.detach().to(values)
        if self.reduction != "mean":
            return weights
        if filled is None and weights is None:
            return values.new_full((), 1 / len(values))
        if weights is None:
            assert filled is not None
            return 1 / filled.sum().clamp(min=1).to(values.dtype)
        counted = weights if filled is None else weights * filled
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
