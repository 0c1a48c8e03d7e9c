"""Rankers that read their own rankings: PLRank, LambdaRank, YetiRank, CoordinateAscent."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from firstpage.core import Floats, check_number, warn
from firstpage.evaluation.measures import MeasureLike
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.losses.lambdaloss import LambdaLoss, Variant
from firstpage.learning.losses.measure_forms import check_supported
from firstpage.learning.losses.neighbors import SampledNeighbors
from firstpage.learning.losses.plrank import ExpectedMeasure
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.composition import Composition, Procedure
from firstpage.learning.rankers.fit.estimator import LearnsFrom
from firstpage.learning.rankers.fit.request import NOTHING_LEARNED, FitRequest, FitResult
from firstpage.learning.rankers.smooth import Smooth
from firstpage.learning.scorers.linear import BoundLinear, LinearScoring
from firstpage.learning.solvers.coordinate import CoordinateSearch, MeasuredLines
from firstpage.learning.solvers.solver import Resume, SolverResult


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
    measure : str or Measure, optional
        The measure that is maximized, and that of `score` and of validation: NDCG, DCG, P, Recall,
        RBP, ERR, RR, Success, AP, kNDCG, kERR, or a measure file as in "NDCG(measure.json)@5".
        None is NDCG@k, or NDCG@10 without k.
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

    k: int | None = 10
    _: KW_ONLY
    measure: MeasureLike | None = None
    samples: int = 20
    l2: float = 0.0001

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        check_supported(parse_measure(self.validation_measure()), type(self).__name__)
        check_number(self, "samples", 1, integer=True)
        loss = ExpectedMeasure(self.validation_measure(), self.k, self.samples, self.seed)
        return self.composed(loss)


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
    measure : str or Measure, optional
        The measure that is maximized, and that of `score` and of validation: NDCG, DCG, P, Recall,
        RBP, ERR, RR, Success, AP, kNDCG, kERR, or a measure file as in "NDCG(measure.json)@5".
        None is NDCG@k, or NDCG@10 without k.
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

    _: KW_ONLY
    measure: MeasureLike | None = None
    variant: Variant = "lambdarank"
    mu: float = 10.0
    l2: float = 0.001

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        check_supported(parse_measure(self.validation_measure()), type(self).__name__)
        check_number(self, "mu", 0)
        return self.composed(LambdaLoss(self.validation_measure(), self.k, self.variant, self.mu))


@dataclass(eq=False, repr=False)
class YetiRank(Smooth):
    """Pairwise logistic loss of neighbors in rankings drawn from a Plackett-Luce model.

    In every pass over the data, rankings are drawn: the document at each position is chosen among
    those not yet ranked with a probability proportional to exp(score).  Only neighbors are
    compared.  The pair at positions x and x + 1 has the weight decay^(x - 1), multiplied by the
    difference of labels.  Equal labels make no pair, so that ties need no order.  Trees learn best
    from it; linear weights are fitted by Adam.

    Parameters
    ----------
    k : int, optional
        Count only pairs whose upper document is at one of the first k positions of the ranking.
        None counts all; `decay` makes those further down unimportant.
    samples : int, default 1
        The number of rankings that are drawn per query and pass, or per tree.
    decay : float, default 0.85
        The weight of a position as a fraction of that above it; above 0, at most 1.
    l2 : float, default 0.001
        The weight of the penalty l2 / 2 * |w|^2, which is added to the mean loss per query.

    References
    ----------
    Gulin, Kuralenok and Pavlov, "Winning the transfer learning track of Yahoo!'s learning to rank
    challenge with YetiRank", JMLR W&CP 14, 2011.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.YetiRank().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Gulin, Kuralenok and Pavlov, JMLR W&CP 14, 2011"
    _about = "pairwise logistic loss of neighbors in random rankings"
    _grid: ClassVar = {"l2": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]}
    _weights_by_copying: ClassVar = True  # a ranking has each document once

    _: KW_ONLY
    samples: int = 1
    decay: float = 0.85
    l2: float = 0.001

    def compose(self, learns_from: LearnsFrom = "labels") -> Composition:
        check_number(self, "samples", 1, integer=True)
        check_number(self, "decay", above=0)
        return self.composed(SampledNeighbors(self.k, self.samples, self.decay, self.seed))


@dataclass(eq=False, repr=False)
class CoordinateAscent(Ranker):
    """Linear weights that maximize a measure, one weight at a time.

    Along one weight the order of a query changes only where the scores of two documents cross.  A
    line search computes the measure in every interval between these steps and takes the best one:
    it is exact, except for measures that are not listed below, of which 64 intervals are measured.
    An iteration visits all weights in a random order.

    Parameters
    ----------
    k : int, optional
        Count only the top k positions of `measure`.  None counts all that it reads.
    measure : str or Measure, optional
        The measure that is maximized, and that of `score` and of validation.  Searches are exact
        for NDCG, DCG, P, Recall, RBP, ERR, RR, Success, AP, kNDCG, kERR and measure files.  None is
        NDCG@k, or NDCG@10 without k.
    restarts : int, default 2
        The number of searches from random weights, after the one from equal weights.
    max_iter : int, default 25
        The maximum number of iterations per search.
    tol : float, default 0.001
        End a search when an iteration improves the measure by less than this.

    References
    ----------
    Metzler and Croft, "Linear feature-based models for information retrieval", Information
    Retrieval 2007.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.CoordinateAscent(measure="RR").fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Metzler and Croft, Information Retrieval 2007; RankLib"
    _about = "linear weights that maximize a measure, one at a time"
    _grid: ClassVar = {"tol": [1e-4, 1e-3, 1e-2]}
    _shard_alternative: ClassVar = "LambdaRank, which maximizes a measure over shards"
    _weights_by_copying: ClassVar = True  # a measure counts each document once

    _: KW_ONLY
    measure: MeasureLike | None = None
    restarts: int = 2
    max_iter: int = 25
    tol: float = 0.001

    def compose(self, learns_from: LearnsFrom = "labels") -> Procedure:
        check_number(self, "restarts", 0, integer=True)
        check_number(self, "max_iter", 1, integer=True)
        check_number(self, "tol", 0)
        search = CoordinateSearch(
            int(self.restarts), int(self.max_iter), float(self.tol), int(self.seed)
        )
        return MeasureSearch(type(self).__name__, self.k, search)


@dataclass(frozen=True, eq=False)
class MeasureSearch(Procedure):
    """A search of linear weights in memory, for a ranker of this name."""

    name: str
    k: int | None
    search: CoordinateSearch

    def fit(self, request: FitRequest) -> FitResult:
        training = request.training.in_memory(self.name).positive_queries()
        constant = request.warn_if_constant()
        lines = MeasuredLines(
            training.data.X,
            training.truth,
            request.label_measure,
            self.k,
            training.each_query(),
            request.threads,
        )
        search = replace(self.search, restarts=0) if constant else self.search
        watcher = request.watcher(lambda params, X: BoundLinear(X).predict(params, X), path=True)
        start = _equal_weights(lines) if request.start is None else np.asarray(request.start)
        if not constant and not lines.informative:
            warn(NOTHING_LEARNED)
        if constant or not lines.informative:
            start = np.zeros(lines.size)
        interrupted = False
        try:
            if request.checkpoint is None:
                solved = search.minimize(lines, start, watcher, Resume())
            else:
                checkpoint: Any = request.checkpoint  # typed for objectives with a gradient
                solved = checkpoint.minimize(search, lines, start, watcher, None)
        except KeyboardInterrupt:
            if not watcher.history:
                raise
            interrupted, (params, value) = True, lines.best
            iterations = watcher.history[-1].iteration
            solved = SolverResult(params, -value, iterations, "interrupted", converged=False)
        kept = watcher.best is not None and (watcher.keep_best or interrupted)
        params = watcher.best_params if kept else solved.params
        return request.result(
            watcher,
            LinearScoring(params),
            solved.iterations,
            solved.value,
            converged=solved.converged,
            interrupted=interrupted,
        )


def _equal_weights(lines: MeasuredLines) -> Floats:
    """Return the weights at which all features have the same influence, of sum 1."""
    deviations = np.array([_deviation(lines.column(feature)) for feature in range(lines.size)])
    weights: Floats = np.divide(1.0, deviations, out=np.zeros(lines.size), where=deviations > 0)
    return weights / (weights.sum() or 1.0)


def _deviation(values: Floats) -> float:
    """Return the standard deviation, also where squares overflow."""
    with np.errstate(over="ignore"):
        deviation = float(values.std())
    if np.isfinite(deviation):
        return deviation
    largest = float(np.abs(values).max())
    return float((values / largest).std()) * largest
