"""Losses of document pairs as modules of PyTorch: RankNet, and FocusedNet with its top lists."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from firstpage.core import DataError, check_number
from firstpage.learning.losses.focused import focused_net
from firstpage.learning.losses.pairwise import PairwiseLogistic
from firstpage.learning.torch import focused
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.pairwise import pairwise_logistic
from firstpage.learning.torch.ranking_loss import RankingLoss, Reduction

if TYPE_CHECKING:
    from torch import Tensor


class RankNetLoss(RankingLoss):
    """Logistic loss of document pairs (RankNet).

    The sum over pairs, u better than v, of log(1 + exp(s_v - s_u)).  It equals
    ``fp.extend.loss("PairwiseLogistic")``.  Time is proportional to the documents that can be the
    better ones of a pair, times all: O(n k) with `k`, O(n^2) without.  On a device, memory is too,
    except that a kernel computes more than four million pairs of float32 on CUDA.

    Parameters
    ----------
    k : int, optional
        Take only pairs whose better document is among the first k.  Where equal labels cross rank
        k, each of their documents counts with the probability to be among the first k.
    pairs : {"all", "cross"}, default "all"
        "all" takes all of these pairs; "cross" only those whose better document is among the first
        k and whose worse one is not.  Without `k`, cross pairs are those between documents of
        positive label and the others.
    average : bool, default False
        Take the mean over the pairs of a list instead of their sum.
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
    Burges et al. (2005), Learning to rank using gradient descent.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> loss = fp.torch.RankNetLoss()
    >>> round(float(loss(torch.zeros(1, 3), torch.tensor([[2.0, 1.0, 0.0]]))), 3)  # 3 log 2
    2.079
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        pairs: Literal["all", "cross"] = "all",
        average: bool = False,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        if pairs not in ("all", "cross"):
            raise DataError(f"pairs must be 'all' or 'cross'; got {pairs!r}.")
        self.pairs, self.average = pairs, bool(average)
        self._loss = PairwiseLogistic(k, pairs, self.average)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return pairwise_logistic(lists, self.k, self.pairs == "cross", self.average)


class FocusedNetLoss(RankingLoss):
    """The order inside the top k, and the top k above the rest (FocusedNet).

    beta * cross entropy of the permutations of the top k + (1 - beta) * logistic loss of the pairs
    of the top k with the rest.  Both are 1 where all scores are equal, and 0 at best.  Where labels
    are tied inside the top k, or k is above 12, top-one probabilities replace the permutations.  It
    equals ``fp.extend.loss("Focused")``.

    Parameters
    ----------
    k : int, default 10
        The depth of the top.
    beta : float, default 0.5
        The weight of the order inside the top, from 0 to 1.
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
    Niu, Guo, Lan and Cheng (2012), Top-k learning to rank: labeling, ranking and evaluation.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> loss = fp.torch.FocusedNetLoss(k=2)
    >>> round(float(loss(torch.zeros(1, 4), torch.tensor([[2.0, 1.0, 0.0, 0.0]]))), 3)
    1.0
    """

    def __init__(
        self,
        k: int = 10,
        *,
        beta: float = 0.5,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        check_number(self, "k", 1, integer=True)
        self.beta = beta
        check_number(self, "beta", 0)
        if beta > 1:
            raise DataError(f"beta must be from 0 to 1; got {beta}.")
        self._loss = focused_net(k, beta)
        tables: tuple[Any, ...] = (None, None, None)
        if beta > 0 and focused.supports_permutations(k):
            tables = focused.permutation_tables(k)
        for name, table in zip(("reach", "entropy", "span"), tables, strict=True):
            self.register_buffer(name, table, persistent=False)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        assert self.k is not None
        values, gradient = lists.scores.new_zeros(()), lists.scores.new_zeros(())
        if self.beta > 0:
            tables = None if self.reach is None else (self.reach, self.entropy, self.span)
            part, part_gradient = focused.top_list(lists, self.k, tables)
            values, gradient = self.beta * part, self.beta * part_gradient
        if self.beta < 1:
            weight = (1 - self.beta) / math.log(2)
            part, part_gradient = pairwise_logistic(lists, self.k, cross=True, average=True)
            values, gradient = values + weight * part, gradient + weight * part_gradient
        return values, gradient
