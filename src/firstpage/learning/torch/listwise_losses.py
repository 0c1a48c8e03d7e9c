"""Listwise losses as modules of PyTorch: ListMLE, ListNet, RankCosine and the squared error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstpage.core import check_number
from firstpage.learning.losses.listwise import (
    Cosine,
    PlackettLuce,
    SoftmaxCrossEntropy,
    SquaredError,
)
from firstpage.learning.torch import listwise
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.ranking_loss import RankingLoss, Reduction

if TYPE_CHECKING:
    from torch import Tensor


class ListMLELoss(RankingLoss):
    """Negative log-likelihood of the true order under the Plackett-Luce model (ListMLE).

    The document at each rank is chosen among all documents not yet ranked, with a probability
    proportional to exp(score).  Documents of equal label compete for their ranks together; the
    lowest label adds nothing.  Nothing is random.  It equals ``fp.extend.loss("PlackettLuce")``.

    Parameters
    ----------
    k : int, optional
        Read only the first k ranks.  Where equal labels cross rank k, each of their documents
        counts with the probability to be among the first k.
    average : bool, default False
        Take the mean over the ranks instead of their sum.
    reduction : {"mean", "sum", "none"}, default "mean"
        What is returned: the mean over the lists that have a document (weighted, if there are
        weights), the sum, or one value per list.
    check : bool, optional
        Whether to refuse numbers that are not finite.  By default this is done on the CPU only: on
        a device it waits for the device.  It is never done in compiled code.

    Raises
    ------
    DataError
        If a parameter is out of its range.

    References
    ----------
    Xia, Liu, Wang, Zhang and Li (2008), Listwise approach to learning to rank: theory and
    algorithm.  Xia, Liu and Li (2009), Statistical consistency of top-k ranking.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> scores = torch.zeros(1, 3, requires_grad=True)
    >>> loss = fp.torch.ListMLELoss(k=1)(scores, torch.tensor([[2.0, 1.0, 0.0]]))
    >>> round(loss.item(), 3)  # log 3: the first of three documents
    1.099
    >>> loss.backward()
    >>> scores.grad.round(decimals=2).tolist()
    [[-0.67..., 0.33..., 0.33...]]
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        average: bool = False,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        self.average = bool(average)
        self._loss = PlackettLuce(k, self.average)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return listwise.plackett_luce(lists, self.k, self.average)


class ListNetLoss(RankingLoss):
    """Cross entropy of softmax distributions of labels and scores (ListNet, top-one form).

    Minus the sum over documents of softmax(labels / temperature) * log softmax(scores).  It equals
    ``fp.extend.loss("SoftmaxCrossEntropy")``.

    Parameters
    ----------
    k : int, optional
        Replace the labels by the top-k labels k, k-1, .., 1, 0, .., 0; the mean over ties.
    temperature : float, default 1.0
        The number by which labels are divided; above 0.
    reduction : {"mean", "sum", "none"}, default "mean"
        What is returned: the mean over the lists that have a document (weighted, if there are
        weights), the sum, or one value per list.
    check : bool, optional
        Whether to refuse numbers that are not finite.  By default this is done on the CPU only: on
        a device it waits for the device.  It is never done in compiled code.

    Raises
    ------
    DataError
        If a parameter is out of its range.

    References
    ----------
    Cao, Qin, Liu, Tsai and Li (2007), Learning to rank: from pairwise approach to listwise
    approach.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> loss = fp.torch.ListNetLoss()
    >>> round(float(loss(torch.zeros(1, 3), torch.tensor([[2.0, 1.0, 0.0]]))), 3)  # log 3
    1.099
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        temperature: float = 1.0,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        self.temperature = temperature
        check_number(self, "temperature", above=0)
        self._loss = SoftmaxCrossEntropy(k, temperature)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return listwise.softmax_cross_entropy(lists, self.k, self.temperature)


class RankCosineLoss(RankingLoss):
    """Cosine distance of scores and labels (RankCosine): (1 - cosine(scores, labels)) / 2.

    It equals ``fp.extend.loss("Cosine")``.  Adding a constant to all scores changes it.

    Parameters
    ----------
    k : int, optional
        Replace the labels by the top-k labels k, k-1, .., 1, 0, .., 0; the mean over ties.
    floor : float, default 1e-6
        The least length of a vector of scores; shorter ones are divided by this.
    reduction : {"mean", "sum", "none"}, default "mean"
        What is returned: the mean over the lists that have a document (weighted, if there are
        weights), the sum, or one value per list.
    check : bool, optional
        Whether to refuse numbers that are not finite.  By default this is done on the CPU only: on
        a device it waits for the device.  It is never done in compiled code.

    Raises
    ------
    DataError
        If a parameter is out of its range.

    References
    ----------
    Qin, Zhang, Tsai, Wang, Liu and Li (2008), Query-level loss functions for information retrieval.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> loss = fp.torch.RankCosineLoss()
    >>> scores = torch.tensor([[-4.0, -2.0, 0.0]])
    >>> round(float(loss(scores, torch.tensor([[2.0, 1.0, 0.0]]))), 3)  # the opposite direction
    1.0
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        floor: float = 1e-6,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        self.floor = floor
        check_number(self, "floor", above=0)
        self._loss = Cosine(k, floor)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return listwise.cosine(lists, self.k, self.floor)


class SquaredErrorLoss(RankingLoss):
    """Half the squared difference of score and label, averaged over the documents of a list.

    It equals ``fp.extend.loss("SquaredError")``.

    Parameters
    ----------
    k : int, optional
        Replace the labels by the top-k labels k, k-1, .., 1, 0, .., 0; the mean over ties.
    average : bool, default True
        Take the mean over the documents of a list; False takes their sum.
    reduction : {"mean", "sum", "none"}, default "mean"
        What is returned: the mean over the lists that have a document (weighted, if there are
        weights), the sum, or one value per list.
    check : bool, optional
        Whether to refuse numbers that are not finite.  By default this is done on the CPU only: on
        a device it waits for the device.  It is never done in compiled code.

    Raises
    ------
    DataError
        If a parameter is out of its range.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> loss = fp.torch.SquaredErrorLoss(average=False)
    >>> float(loss(torch.zeros(1, 3), torch.tensor([[2.0, 1.0, 0.0]])))  # (4 + 1) / 2
    2.5
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        average: bool = True,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        self.average = bool(average)
        self._loss = SquaredError(k, self.average)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return listwise.squared_error(lists, self.k, self.average)
