"""Any loss of the package, or one of a user's own, as a module of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from firstpage.core import DataError, warn
from firstpage.data import Truth
from firstpage.learning.losses.base import FunctionLoss, Loss
from firstpage.learning.losses.finite_differences import with_different_labels
from firstpage.learning.losses.registry import loss as read_loss
from firstpage.learning.torch import host
from firstpage.learning.torch.host import FlatLists, ValueGrad
from firstpage.learning.torch.ranking_loss import RankingLoss, Reduction


class AnyLoss(RankingLoss):
    """Any loss of `fp.extend.loss`, or one of your own.

    Values and gradients are those of its ``value_grad``, on the CPU in float64.  Scores on a device
    are copied to the CPU, and the gradient back.  ``torch.compile`` takes the loss as one
    operation.  Lists without documents have the value 0, and the loss does not see them.

    Parameters
    ----------
    loss : str, Loss or callable
        The name of a loss with its parameters, as in "PairwiseExponential(k=10)"; "module:Name";
        a Loss; or a function of the scores and the labels of one list, which returns the value and
        its gradient.
    reduction : {"mean", "sum", "none"}, default "mean"
        What is returned: the mean over the lists that have a document (weighted, if there are
        weights), the sum, or one value per list.
    check : bool, optional
        Whether to refuse numbers that are not finite.  By default this is done on the CPU only: on
        a device it waits for the device.  It is never done in compiled code.

    Raises
    ------
    ParameterError
        If there is no such loss, or it has no such parameter.
    DataError
        If the loss draws at random: `PLRankLoss` does so in PyTorch.

    See Also
    --------
    firstpage.extend.register_loss : Give a loss of your own a name.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> loss = fp.torch.AnyLoss("PairwiseHinge")
    >>> scores = torch.zeros(1, 3, requires_grad=True)
    >>> loss(scores, torch.tensor([[2.0, 1.0, 0.0]])).backward()
    >>> scores.grad.tolist()
    [[-2.0, 0.0, 2.0]]
    """

    _has_formula = False

    def __init__(
        self,
        loss: str | Loss | Callable[..., Any],
        *,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(None, reduction, check)
        self._loss = read_loss(loss)
        self._derivatives_checked = self._informative_checked = False
        if not self._loss.traits.deterministic:
            raise DataError(
                f"{self._loss} draws at random, and would draw the same in every call: use "
                "PLRankLoss."
            )
        if isinstance(self._loss, FunctionLoss):
            warn(
                f"the loss {self._loss} is a Python function that is called for every list: slow "
                "with many lists. A Loss with value_grad is called once per batch."
            )

    def _host_formula(self, lists: FlatLists, seed: int) -> ValueGrad:
        if not self._informative_checked:
            self._check_derivatives(lists.truth)
        if lists.shortest > 0:
            return super()._host_formula(lists, seed)
        filled = np.diff(lists.offsets) > 0
        values, gradient = np.zeros(lists.size), np.zeros_like(lists.scores)
        if filled.any():
            ends = np.unique(lists.offsets)
            shorter = lists._replace(offsets=ends)
            values[filled], gradient = host.evaluate(self._loss.target(shorter.truth), shorter)
        return values, gradient

    def _check_derivatives(self, truth: Truth) -> None:
        """Check the first batch, and the first with different labels in a list.

        Where all labels of a list are equal, the value of many losses does not change.
        """
        informative = len(with_different_labels(truth)) > 0
        if informative or not self._derivatives_checked:
            self._loss.target(truth).check_derivatives()
        self._derivatives_checked, self._informative_checked = True, informative

    def extra_repr(self) -> str:
        """Return the parameters, as PyTorch prints them.

        Returns
        -------
        str
            Names and values, separated by commas.
        """
        return f"{str(self._loss)!r}, reduction={self.reduction!r}, check={self.check!r}"
