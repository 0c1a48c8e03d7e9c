"""Rankers that maximize a measure directly: PLRank, LambdaRank."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from firstpage.errors import DataError
from firstpage.losses.lambdaloss import LambdaLoss, Variant
from firstpage.losses.loss import Loss
from firstpage.losses.measure_forms import check_supported
from firstpage.losses.plrank import ExpectedMeasure
from firstpage.measures.registry import measure as parse_measure
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.rankers.smooth import Smooth
from firstpage.registry import check_number

NO_CHECKPOINTS = (
    "PLRank draws other rankings in every pass, and does not support checkpoints; leave checkpoint "
    "out."
)


@dataclass(eq=False, repr=False)
class PLRank(Smooth):
    """Expected measure of rankings drawn from a Plackett-Luce model.

    Maximizes the mean over queries of the expectation of `measure`, where the document at each
    position is drawn among those not yet ranked with a probability proportional to exp(score).  The
    gradient is an estimate without bias from a few rankings per query, which are drawn anew in
    every pass over the data.  Therefore linear weights are fitted by Adam, not by L-BFGS.

    Parameters
    ----------
    k : int, default 10
        Count only the top k positions of `measure`.  None counts all that it reads.
    measure : str, default "NDCG@10"
        The measure that is maximized, and that of `score` and of validation: NDCG, DCG, P, Recall,
        RBP, ERR, RR, Success, AP, kNDCG, kERR, or a measure file as in "NDCG(measure.json)@5".
    samples : int, default 20
        The number of rankings that are drawn per query and pass.
    l2 : float, default 0.0001
        The weight of the penalty l2 / 2 * |w|^2, which is added to the mean loss per query.

    References
    ----------
    Oosterhuis, "Computationally efficient optimization of Plackett-Luce ranking models for
    relevance and fairness", SIGIR 2021 (PL-Rank-2).
    Oosterhuis, "Learning-to-rank at the speed of sampling", SIGIR 2022 (PL-Rank-3).

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.PLRank(measure="ERR").fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Oosterhuis, SIGIR 2021 and 2022"
    _about = "expected measure of rankings drawn from a Plackett-Luce model"
    _grid: ClassVar = {"l2": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]}
    _weights_by_copying: ClassVar = True  # a measure counts each document once
    _supports_shards: ClassVar = False

    k: int | None = 10
    _: KW_ONLY
    samples: int = 20
    l2: float = 0.0001

    def _loss(self) -> Loss:
        return ExpectedMeasure(self.measure, self.k, self.samples, self.seed)

    def _learn(self, request: FitRequest) -> FitResult:
        if request.checkpoint is not None:
            raise DataError(NO_CHECKPOINTS)
        return super()._learn(request)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_supported(parse_measure(self.measure), type(self).__name__)
        check_number(self, "samples", 1, integer=True)


@dataclass(eq=False, repr=False)
class LambdaRank(Smooth):
    """Pairwise logistic loss, weighted by the change of a measure.

    Minimizes the sum over the pairs of a query, u of greater gain than v, of
    weight * log(1 + exp(s_v - s_u)), where the weight is by how much `measure` changes if u and v
    exchange their current positions.  Ties have the mean weight over all orders of the tied
    documents; trees begin with all scores tied.  Pairs below the cut-off of the measure are left
    out.  Since the weights jump where positions change, linear weights are fitted by Adam.

    Parameters
    ----------
    k : int, optional
        Count only the top k positions of `measure`.  None counts all that it reads.
    measure : str, default "NDCG@10"
        The measure that is maximized, and that of `score` and of validation: NDCG, DCG, P, Recall,
        RBP, ERR, RR, Success, AP, kNDCG, kERR, or a measure file as in "NDCG(measure.json)@5".
    variant : {"lambdarank", "loss2", "loss2++"}, default "lambdarank"
        "lambdarank" weights a pair by the change of the measure; "loss2" by the difference of
        gains and the number of positions between both documents, which bounds NDCG; "loss2++" by
        the first plus `mu` times the second.  The last two need gains and discounts, as of NDCG.
    mu : float, default 10.0
        See "loss2++".
    l2 : float, default 0.001
        The weight of the penalty l2 / 2 * |w|^2, which is added to the mean loss per query.

    References
    ----------
    Burges, Ragno and Le, "Learning to rank with nonsmooth cost functions", NIPS 2006.
    Wang et al., "The LambdaLoss framework for ranking metric optimization", CIKM 2018.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.LambdaRank(measure="AP").fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Burges, Ragno and Le, NIPS 2006; LambdaLoss: Wang et al., CIKM 2018"
    _about = "pairwise logistic loss, weighted by the change of a measure"
    _grid: ClassVar = {"l2": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]}
    _weights_by_copying: ClassVar = True  # a measure counts each document once
    _supports_shards: ClassVar = False

    _: KW_ONLY
    variant: Variant = "lambdarank"
    mu: float = 10.0
    l2: float = 0.001

    def _loss(self) -> Loss:
        return LambdaLoss(self.measure, self.k, self.variant, self.mu)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_supported(parse_measure(self.measure), type(self).__name__)
        check_number(self, "mu", 0)
        self._loss()
