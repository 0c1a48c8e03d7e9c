"""Ranking losses as modules of PyTorch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from firstpage.errors import DataError
from firstpage.losses.focused import focused_net
from firstpage.losses.lambdaloss import LambdaLoss as CPULambdaLoss
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy, SquaredError
from firstpage.losses.pairwise import PairwiseLogistic
from firstpage.losses.plrank import ExpectedMeasure, ExpectedMeasureTarget
from firstpage.registry import check_number
from firstpage.torch import direct, focused, host, listwise
from firstpage.torch.backend import torch
from firstpage.torch.batches import Lists, check_batch, check_finite
from firstpage.torch.device import KernelLoss
from firstpage.torch.host import FlatLists, ValueGrad
from firstpage.torch.pairwise import pairwise_logistic
from firstpage.torch.ranking_loss import RankingLoss, Reduction, attached

if TYPE_CHECKING:
    from torch import Tensor


class ListMLELoss(RankingLoss):
    """Negative log-likelihood of the true order under the Plackett-Luce model (ListMLE).

    The document at each rank is chosen among all documents not yet ranked, with a probability
    proportional to exp(score).  Documents of equal label compete for their ranks together; the
    lowest label adds nothing.  Nothing is random.  It equals ``fp.loss("PlackettLuce")``.

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
        self._kernel = KernelLoss("plackett_luce", average=self.average)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return listwise.plackett_luce(lists, self.k, self.average)

    def _host_formula(self, lists: FlatLists, seed: int) -> ValueGrad:
        return host.plackett_luce(lists, self._loss, self.k, self.average)


class ListNetLoss(RankingLoss):
    """Cross entropy of softmax distributions of labels and scores (ListNet, top-one form).

    Minus the sum over documents of softmax(labels / temperature) * log softmax(scores).  It equals
    ``fp.loss("SoftmaxCrossEntropy")``.

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
        self._kernel = KernelLoss("softmax_cross_entropy", float(temperature))

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return listwise.softmax_cross_entropy(lists, self.k, self.temperature)

    def _host_formula(self, lists: FlatLists, seed: int) -> ValueGrad:
        return host.softmax_cross_entropy(lists, self.k, self.temperature)

    def _by_kernels(
        self, scores: Tensor, labels: Tensor, mask: Any, offsets: Any, weights: Any
    ) -> Tensor:
        check_batch(scores, labels, mask, offsets, check=False)
        if any(part is not None for part in (mask, offsets, weights)) or self.reduction == "none":
            return super()._by_kernels(scores, labels, mask, offsets, weights)
        if not host.are_rows(scores, labels):
            return super()._by_kernels(scores, labels, mask, offsets, weights)
        factor = 1.0 / len(scores) if self.reduction == "mean" else 1.0
        value, gradient = host.softmax_cross_entropy_of_rows(
            scores, labels, self.k, self.temperature, factor
        )
        if self.check is not False and not math.isfinite(value):
            check_finite(scores, labels, mask)
        return attached(scores, host.scalar(value, scores), gradient, None)


class RankCosineLoss(RankingLoss):
    """Cosine distance of scores and labels (RankCosine): (1 - cosine(scores, labels)) / 2.

    It equals ``fp.loss("Cosine")``.  Adding a constant to all scores changes it.

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
        self._kernel = KernelLoss("cosine", float(floor))

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return listwise.cosine(lists, self.k, self.floor)


class SquaredErrorLoss(RankingLoss):
    """Half the squared difference of score and label, averaged over the documents of a list.

    It equals ``fp.loss("SquaredError")``.

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
        self._kernel = KernelLoss("squared_error", average=self.average)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return listwise.squared_error(lists, self.k, self.average)


class RankNetLoss(RankingLoss):
    """Logistic loss of document pairs (RankNet).

    The sum over pairs, u better than v, of log(1 + exp(s_v - s_u)).  It equals
    ``fp.loss("PairwiseLogistic")``.  Time is proportional to the documents that can be the better
    ones of a pair, times all: O(n k) with `k`, O(n^2) without.  On a device, memory is too, and
    compiled code and batches of up to four million pairs take all pairs.

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
        self._kernel = KernelLoss("pairwise_logistic", 0.0, self.average, pairs == "cross")

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return pairwise_logistic(lists, self.k, self.pairs == "cross", self.average)


class FocusedNetLoss(RankingLoss):
    """The order inside the top k, and the top k above the rest (FocusedNet).

    beta * cross entropy of the permutations of the top k + (1 - beta) * logistic loss of the pairs
    of the top k with the rest.  Both are 1 where all scores are equal, and 0 at best.  Where labels
    are tied inside the top k, or k is above 12, top-one probabilities replace the permutations.  It
    equals ``fp.loss("Focused")``.

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
        for name, table in zip(("_reach", "_entropy", "_span"), tables, strict=True):
            self.register_buffer(name, table, persistent=False)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        assert self.k is not None
        values, gradient = lists.scores.new_zeros(()), lists.scores.new_zeros(())
        if self.beta > 0:
            tables = None if self._reach is None else (self._reach, self._entropy, self._span)
            part, part_gradient = focused.top_list(lists, self.k, tables)
            values, gradient = self.beta * part, self.beta * part_gradient
        if self.beta < 1:
            weight = (1 - self.beta) / math.log(2)
            part, part_gradient = pairwise_logistic(lists, self.k, cross=True, average=True)
            values, gradient = values + weight * part, gradient + weight * part_gradient
        return values, gradient


class LambdaLoss(RankingLoss):
    """Logistic loss of document pairs, weighted by the change of a measure.

    Its variants are known as LambdaRank, NDCG-Loss2 and NDCG-Loss2++.

    The sum over pairs, u of greater gain than v, of weight * log(1 + exp(s_v - s_u)).  The weights
    are computed from the current ranks, and are constants in the gradient.  Where scores are equal,
    they are means over all orders of the tied documents.  It equals ``fp.loss("LambdaLoss")``.

    Parameters
    ----------
    k : int, optional
        Count only the first k ranks; None counts all ranks of the measure.
    measure : str, default "NDCG@10"
        The measure: NDCG, DCG, P, Recall, RBP, ERR, RR, Success, AP, kNDCG, kERR, or DCG and NDCG
        of a measure file.  ERR needs its greatest label, as in "ERR(max=4)@10".
    variant : {"lambdarank", "loss2", "loss2++"}, default "lambdarank"
        The weight of a pair.  "lambdarank": the absolute change of the measure if both documents
        exchange their ranks i and j.  "loss2": the difference of gains times
        discount(|i - j|) - discount(|i - j| + 1).  "loss2++": the first plus `mu` times the second.
    mu : float, default 10.0
        See "loss2++".
    reduction : {"mean", "sum", "none"}, default "mean"
        What is returned: the mean over the lists that have a document (weighted, if there are
        weights), the sum, or one value per list.
    check : bool, optional
        Whether to refuse numbers that are not finite.  By default this is done on the CPU only: on
        a device it waits for the device.  It is never done in compiled code.

    Raises
    ------
    DataError
        If the measure is none of these, or a parameter is out of its range.

    References
    ----------
    Burges, Ragno and Le (2006), Learning to rank with nonsmooth cost functions.  Wang, Li,
    Golbandi, Bendersky and Najork (2018), The LambdaLoss framework for ranking metric optimization.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> loss = fp.torch.LambdaLoss(measure="P@1")
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))), 3)  # log 2
    0.693
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        measure: str = "NDCG@10",
        variant: Literal["lambdarank", "loss2", "loss2++"] = "lambdarank",
        mu: float = 10.0,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        self.measure = direct.read_measure(measure, "LambdaLoss")
        self.variant, self.mu = variant, mu
        self._loss = CPULambdaLoss(measure, k, variant, mu)
        self._has_formula = direct.is_additive(self.measure)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return direct.lambda_loss(lists, self.measure, self.k, self.variant, self.mu)


MAX_SEED = 1 << 62


class PLRankLoss(RankingLoss):
    """How far the expected measure of random rankings is below that of the true order (PL-Rank).

    Rankings are drawn from the Plackett-Luce model: the document at each rank is chosen among all
    documents not yet ranked, with a probability proportional to exp(score).  Value and gradient are
    estimates without bias, from other rankings in every call; ``torch.manual_seed`` repeats them.
    The estimate is that of ``fp.loss("ExpectedMeasure")``.  On a device, documents whose scores
    are more than 600 below the best one of their list count as 600 below it.

    Parameters
    ----------
    k : int, optional
        Count only the first k ranks; None counts all ranks of the measure.
    measure : str, default "NDCG@10"
        The measure: NDCG, DCG, P, Recall, RBP, ERR, RR, Success, AP, kNDCG, kERR, or DCG and NDCG
        of a measure file.  ERR needs its greatest label, as in "ERR(max=4)@10".
    samples : int, default 20
        The number of rankings per list and call.
    reduction : {"mean", "sum", "none"}, default "mean"
        What is returned: the mean over the lists that have a document (weighted, if there are
        weights), the sum, or one value per list.
    check : bool, optional
        Whether to refuse numbers that are not finite.  By default this is done on the CPU only: on
        a device it waits for the device.  It is never done in compiled code.

    Raises
    ------
    DataError
        If the measure is none of these, or a parameter is out of its range.

    References
    ----------
    Oosterhuis (2021), Computationally efficient optimization of Plackett-Luce ranking models for
    relevance and fairness.  Oosterhuis (2022), Learning-to-rank at the speed of sampling.

    Examples
    --------
    >>> import torch
    >>> import firstpage as fp
    >>> loss = fp.torch.PLRankLoss(measure="P@1", samples=10)
    >>> round(float(loss(torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 0.0]]))), 3)  # 1 - 1/3
    0.667
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        measure: str = "NDCG@10",
        samples: int = 20,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        self.measure = direct.read_measure(measure, "PLRankLoss")
        self.samples = samples
        check_number(self, "samples", 1, integer=True)
        self._loss = ExpectedMeasure(measure, k, samples)
        self._has_formula = direct.is_additive(self.measure)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return direct.expected_measure(lists, self.measure, self.k, self._uniforms(lists))

    def _host_formula(self, lists: FlatLists, seed: int) -> ValueGrad:
        target = self._loss.target(lists.truth)
        assert isinstance(target, ExpectedMeasureTarget)
        return host.evaluate(replace(target, seed=seed), lists)

    def _seed(self) -> Tensor:
        return torch.randint(MAX_SEED, ())

    def _uniforms(self, lists: Lists) -> Tensor:
        """Return random numbers from 0 to 1, one per list, sample and document."""
        count, n = lists.scores.shape
        dtype = torch.float32 if lists.scores.device.type == "mps" else torch.float64
        return torch.rand(count, self.samples, n, dtype=dtype, device=lists.scores.device)
