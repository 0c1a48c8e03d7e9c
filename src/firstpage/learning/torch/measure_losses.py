"""Losses that optimize a measure as modules of PyTorch: LambdaLoss and PL-Rank."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from firstpage.core import check_number
from firstpage.evaluation.measures import MeasureLike
from firstpage.learning.losses.lambdaloss import VARIANTS, LambdaLoss
from firstpage.learning.losses.plrank import ExpectedMeasure, ExpectedMeasureTarget
from firstpage.learning.torch import direct, host
from firstpage.learning.torch.backend import torch
from firstpage.learning.torch.batches import Lists
from firstpage.learning.torch.host import FlatLists, ValueGrad
from firstpage.learning.torch.ranking_loss import RankingLoss, Reduction

if TYPE_CHECKING:
    from torch import Tensor

MAX_SEED = 1 << 62


class LambdaRankLoss(RankingLoss):
    """Logistic loss of document pairs, weighted by the change of a measure.

    Its variants are known as LambdaRank, NDCG-Loss2 and NDCG-Loss2++.

    The sum over pairs, u of greater gain than v, of weight * log(1 + exp(s_v - s_u)).  The weights
    are computed from the current ranks, and are constants in the gradient.  Where scores are equal,
    they are means over all orders of the tied documents.  It equals
    ``fp.extend.loss("LambdaLoss")``.

    Parameters
    ----------
    k : int, optional
        Count only the first k ranks; None counts all ranks of the measure.
    measure : str or Measure, default "NDCG@10"
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
    >>> loss = fp.torch.LambdaRankLoss(measure="P@1")
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))), 3)  # log 2
    0.693
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        measure: MeasureLike = "NDCG@10",
        variant: Literal["lambdarank", "loss2", "loss2++"] = "lambdarank",
        mu: float = 10.0,
        reduction: Reduction = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__(k, reduction, check)
        self.measure = direct.read_measure(measure, "LambdaRankLoss")
        self.variant, self.mu = variant, mu
        check_number(self, "mu", 0)
        self._loss = LambdaLoss(measure, k, variant, mu)
        self._has_formula = direct.is_additive(self.measure)

    def _formula(self, lists: Lists) -> tuple[Tensor, Tensor]:
        return direct.lambda_loss(lists, self.measure, self.k, VARIANTS[self.variant], self.mu)


class PLRankLoss(RankingLoss):
    """How far the expected measure of random rankings is below that of the true order (PL-Rank).

    Rankings are drawn from the Plackett-Luce model: the document at each rank is chosen among all
    documents not yet ranked, with a probability proportional to exp(score).  Value and gradient are
    estimates without bias, from other rankings in every call; ``torch.manual_seed`` repeats them.
    The estimate is that of ``fp.extend.loss("ExpectedMeasure")``.  On a device, documents whose
    scores are more than a million below the best one of their list count as a million below it.

    Parameters
    ----------
    k : int, optional
        Count only the first k ranks; None counts all ranks of the measure.
    measure : str or Measure, default "NDCG@10"
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
        measure: MeasureLike = "NDCG@10",
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
