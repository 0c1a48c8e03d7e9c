"""The boosting rankers: RankBoost, AdaRank, FocusedBoost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from firstpage.core import DataError, Floats, check_number, warn
from firstpage.core.engine import Engine
from firstpage.evaluation.measures import NDCG, Measure, MeasureLike, reads_scale, with_scale
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.losses.listwise import relevance
from firstpage.learning.losses.pairwise import PairSelection, PairwiseExponential
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.checkpoint import Checkpoint
from firstpage.learning.rankers.fit.composition import Procedure
from firstpage.learning.rankers.fit.estimator import LearnsFrom
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.rankers.fit.training_data import InMemory
from firstpage.learning.solvers.boosting.boosting import (
    BoostingResult,
    BoostingRules,
    BoostingState,
    InMemoryBoostingState,
    boost,
)
from firstpage.learning.solvers.boosting.pools import QueryMeasure, WeakRankerPool
from firstpage.learning.solvers.boosting.statistics import (
    ListTerm,
    PairTerm,
    WeightedTerms,
)
from firstpage.learning.solvers.boosting.weak_rankers import WeakRankers, weak_rankers
from firstpage.learning.solvers.solver import SolverState as SolverState

On = Literal["list", "top"]
Edge = Literal["printed", "adjusted"]
MAX_HALVINGS = 50  # after which a step is negligible
NOTHING_LEARNED = (
    "nothing was learned: no weak ranker is better than chance. Either no query of the training "
    "data has preferences that this ranker uses, or no feature distinguishes its documents."
)


@dataclass(eq=False, repr=False)
class Boosting(Ranker):
    """Base class of rankers that add one weak ranker per round.

    Parameters
    ----------
    weak : str or WeakRankers, default "stumps"
        The weak rankers: "stumps", "stumps(bins=32)" or "features".
    rounds : int, default 300
        The maximum number of rounds.
    halvings : int or None, default 2
        How often a step that does not decrease the training loss is halved before its weak ranker
        is set aside for a while.  None takes every step, as in the papers.
    stall : int or None, default 50
        Stop after this many consecutive weak rankers without a decrease of the training loss.
        None does not stop.
    """

    _weights_by_copying: ClassVar = True
    _supports_shards: ClassVar = True

    _: KW_ONLY
    weak: str | WeakRankers = "stumps"
    rounds: int = 300
    halvings: int | None = 2
    stall: int | None = 50

    def _boosted(self, *parts: tuple[float, Part], tol: float = 0.0) -> Boosted:
        """Return the boosting of parts of the loss, with weights that sum to 1."""
        check_number(self, "rounds", 1, integer=True)
        for name, minimum in (("halvings", 0), ("stall", 1)):
            if getattr(self, name) is not None:
                check_number(self, name, minimum, integer=True)
        if self.halvings is not None and self.halvings > MAX_HALVINGS:
            raise DataError(f"halvings must be at most {MAX_HALVINGS}; got {self.halvings}.")
        rules = BoostingRules(int(self.rounds), self.halvings, self.stall, tol)
        return Boosted(self.k, weak_rankers(self.weak), rules, parts)


@dataclass(eq=False, repr=False)
class RankBoost(Boosting):
    """Boosting with the pairwise exponential loss.

    Minimizes the mean over a query's pairs, u better than v, of exp(s_v - s_u).  With `k`, only
    pairs whose better document is in the top k count.

    Parameters
    ----------
    pairs : {"all", "cross"}, default "all"
        With `k`: "cross" restricts the pairs to those between the top k and the rest.
    tol : float, default 0.0
        Stop when a round decreases the loss by less than this fraction.
    label_margin : bool, default False
        Multiply s_u - s_v by y_u - y_v, the difference of the labels, as printed for FocusedBoost.
        With `k`, labels are k, k-1, .., 1 for the top k positions and 0 for the others.  The
        largest difference is scaled to 1, which changes the scale of the scores alone.

    References
    ----------
    Freund, Iyer, Schapire and Singer, "An efficient boosting algorithm for combining
    preferences", JMLR 2003.
    Top-k pairs: Lan et al., "Is top-k sufficient for ranking?", CIKM 2013.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.RankBoost(weak="features").fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Freund et al., JMLR 2003; top-k: Lan et al., CIKM 2013"
    _about = "boosting of the pairwise exponential loss"
    _weights_by_copying: ClassVar = False  # pairs have weights
    _grid: ClassVar = {"tol": [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]}

    _: KW_ONLY
    pairs: PairSelection = "all"
    tol: float = 0.0
    label_margin: bool = False

    def compose(self, learns_from: LearnsFrom = "labels") -> Boosted:
        check_number(self, "tol", 0)
        loss = PairwiseExponential(self.k, self.pairs, average=True, label_margin=self.label_margin)
        return self._boosted((1.0, PairPart(loss)), tol=float(self.tol))


@dataclass(eq=False, repr=False)
class AdaRank(Boosting):
    """Boosting of a measure: each round favors the queries that still measure badly.

    Parameters
    ----------
    maximize : str or Measure, optional
        The measure; None stands for NDCG@10, or NDCG@k with `k`.
    on : {"list", "top"}, default "list"
        With `k`, the labels are k, .., 1 for the top k positions and 0 for the others; "top"
        measures the documents of the top k only.
    weak : str or WeakRankers, default "features"
        The weak rankers: "features", "features(signs=plus)" or "stumps".

    References
    ----------
    Xu and Li, "AdaRank: a boosting algorithm for information retrieval", SIGIR 2007.
    Within the top k: Niu, Guo, Lan and Cheng, SIGIR 2012.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.AdaRank().fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Xu and Li, SIGIR 2007; within the top k: Niu et al., SIGIR 2012"
    _about = "boosting of a measure (AdaRank.MAP, AdaRank.NDCG)"
    _grid: ClassVar = {"weak": ["features", "features(signs=plus)", "stumps"]}

    _: KW_ONLY
    maximize: MeasureLike | None = None
    on: On = "list"
    weak: str | WeakRankers = "features"

    def compose(self, learns_from: LearnsFrom = "labels") -> Boosted:
        if self.on not in ("list", "top"):
            raise DataError(f"on must be 'list' or 'top'; got {self.on!r}.")
        if self.on == "top" and self.k is None:
            raise DataError("on='top' needs k, the depth of the top.")
        if self.maximize is None:
            return self._boosted((1.0, ListPart(NDCG(cutoff=self.k or 10), self.k, self.on)))
        return self._boosted((1.0, ListPart(parse_measure(self.maximize), self.k, self.on)))


@dataclass(eq=False, repr=False)
class FocusedBoost(Boosting):
    """AdaRank within the top k, RankBoost between the top k and the rest.

    Each round chooses the weak ranker that maximizes beta * list + (1 - beta) * pair, where list is
    NDCG@k of the documents of the top k alone, and pair is the edge on the pairs between the top k
    and the rest.

    Parameters
    ----------
    k : int, default 10
        The depth of the top.
    beta : float, default 0.5
        The weight of the order within the top k, from 0 to 1.
    edge : {"printed", "adjusted"}, default "printed"
        "printed" uses NDCG@k itself, as in the paper.  It is far above 0 for a random order, so
        the steps are too long for the pairs.  "adjusted" uses NDCG@k adjusted for chance, which is
        0 for equal scores and 1 for the best order.
    label_margin : bool, default False
        Multiply the score difference of a pair by the label k, k-1, .., 1 of its document in the
        top k, divided by k, as printed but for the divisor, which changes only the scale.

    References
    ----------
    Niu, Guo, Lan and Cheng, "Top-k learning to rank: labeling, ranking and evaluation",
    SIGIR 2012.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.FocusedBoost(k=2, weak="features").fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Niu, Guo, Lan and Cheng, SIGIR 2012"
    _about = "AdaRank within the top k, RankBoost between the top k and the rest"
    _grid: ClassVar = {"beta": [round(0.05 * i, 2) for i in range(21)]}

    k: int | None = 10
    beta: float = 0.5
    _: KW_ONLY
    edge: Edge = "printed"
    label_margin: bool = False

    def compose(self, learns_from: LearnsFrom = "labels") -> Boosted:
        check_number(self, "beta", 0)
        if self.beta > 1:
            raise DataError(f"beta must be from 0 to 1; got {self.beta}.")
        if self.k is None:
            raise DataError("FocusedBoost needs k, the depth of the top that it focuses on.")
        if self.edge not in ("printed", "adjusted"):
            raise DataError(f"edge must be 'printed' or 'adjusted'; got {self.edge!r}.")
        within_top = ListPart(NDCG(cutoff=self.k), self.k, "top", self.edge == "adjusted")
        loss = PairwiseExponential(self.k, "cross", average=True, label_margin=self.label_margin)
        parts = (self.beta, within_top), (1 - self.beta, PairPart(loss))
        return self._boosted(*((weight, part) for weight, part in parts if weight > 0))


@dataclass(frozen=True)
class ListPart:
    """A measure of complete lists, or of the documents of the top k."""

    measure: Measure
    k: int | None
    on: On
    adjusted: bool = False

    def term(self, training: InMemory, pool: WeakRankerPool) -> ListTerm:
        """Return the term of these data."""
        truth = training.truth
        labels = relevance(truth, None, self.k)
        rows = np.flatnonzero(labels > 0) if self.on == "top" else None
        query_measure = QueryMeasure(self.measure, replace(truth, labels=labels), rows)
        return ListTerm(query_measure, pool, training.each_query(), self.adjusted)


@dataclass(frozen=True)
class PairPart:
    """The pairwise exponential loss; margins are scaled to at most 1, as edges must be."""

    loss: PairwiseExponential

    def term(self, training: InMemory, pool: WeakRankerPool) -> PairTerm:
        """Return the term of these data."""
        scale = 1.0
        if self.loss.label_margin:
            labels, k = training.truth.labels, self.loss.k
            largest = k if k is not None else float(np.ptp(labels)) if len(labels) else 0.0
            scale = 1.0 / (largest or 1.0)
        weights = training.weights, training.each_query()
        return PairTerm(self.loss, training.truth, *weights, scale)


Part = ListPart | PairPart


@dataclass(frozen=True, eq=False)
class Boosted(Procedure):
    """Boosting by weak rankers, of parts of a loss whose weights sum to 1."""

    k: int | None
    weak: WeakRankers
    rules: BoostingRules
    parts: tuple[tuple[float, Part], ...]
    state: Callable[[WeakRankerPool, WeightedTerms, Floats], BoostingState] = InMemoryBoostingState

    def terms(self, training: InMemory, pool: WeakRankerPool) -> WeightedTerms:
        """Return the terms of the loss."""
        return [(weight, part.term(training, pool)) for weight, part in self.parts]

    def with_scale(self, greatest: Callable[[], float]) -> Boosted:
        """Return the boosting of a part of data with this greatest label."""
        parts = [
            (weight, replace(part, measure=with_scale(part.measure, greatest())))
            if isinstance(part, ListPart) and reads_scale(part.measure)
            else (weight, part)
            for weight, part in self.parts
        ]
        return replace(self, parts=tuple(parts))

    def check_engine(self, engine: Engine) -> None:
        for _, part in self.parts:
            if isinstance(part, PairPart) and part.loss.label_margin and part.loss.k is None:
                raise DataError(
                    "label_margin=True scales by the largest label, which no shard knows alone; "
                    "give k."
                )

    def fit(self, request: FitRequest) -> FitResult:
        ensemble = _resume(request.checkpoint)
        state = request.training.boosting_state(
            self, request.start, ensemble.chosen, request.threads
        )
        return _boost(request, state, self.rules, ensemble)


def _resume(checkpoint: Checkpoint | None) -> BoostingResult:
    """Return the weak rankers that an unfinished fit has chosen; none without a checkpoint."""
    if checkpoint is None or checkpoint.state is None:
        return BoostingResult()
    state = checkpoint.state
    chosen = [(int(number), float(step)) for number, step in state["chosen"]]
    return BoostingResult(
        chosen,
        state["losses"],
        state["initial_loss"],
        excluded=state["excluded"],
        stalled_rounds=state["stalled_rounds"],
    )


def _checkpoint_state(ensemble: BoostingResult) -> Callable[[], SolverState]:
    """Return a function that gives the present state, even when called during a later round."""
    rounds, excluded, stalled_rounds = (
        len(ensemble.chosen),
        ensemble.excluded,
        ensemble.stalled_rounds,
    )
    return lambda: {
        "iterations": rounds,
        "chosen": ensemble.chosen[:rounds],
        "losses": ensemble.losses[:rounds],
        "initial_loss": ensemble.initial_loss,
        "excluded": excluded,
        "stalled_rounds": stalled_rounds,
    }


def _boost(
    request: FitRequest, state: BoostingState, rules: BoostingRules, ensemble: BoostingResult
) -> FitResult:
    """Boost, and keep the rounds with the best validation measure or the least training loss."""
    pool = state.pool
    X: Any = None if request.valid is None else request.valid.X
    valid_scores = None if X is None else pool.scoring([], request.start).predict(X)
    if X is not None and not isinstance(X, np.ndarray):
        X = X.tocsc()  # weak rankers read it column by column
    watcher = request.watcher(lambda params, X: valid_scores, path=True)

    def watch(iteration: int, chosen: int, step: float, loss: float) -> bool:
        if valid_scores is not None:
            valid_scores[:] += step * pool.values(chosen, X)
        stop = watcher(iteration, loss, iteration)
        if request.checkpoint is not None and len(ensemble.chosen) == iteration and not stop:
            request.checkpoint.store(_checkpoint_state(ensemble))
        return stop

    earlier = zip(ensemble.chosen, ensemble.losses, strict=True)
    for iteration, ((chosen, step), loss) in enumerate(earlier, 1):
        watch(iteration, chosen, step, loss)  # rounds of the checkpoint, for the history
    interrupted = False
    try:
        boost(state, rules, ensemble, watch)
    except KeyboardInterrupt:
        if not watcher.history:
            raise
        interrupted = True
    rounds = watcher.best.iteration if watcher.best is not None else ensemble.best
    model = pool.scoring(ensemble.chosen[:rounds], request.start)
    loss = ensemble.losses[rounds - 1] if rounds else ensemble.initial_loss
    if not ensemble.chosen and request.start is None:
        warn(NOTHING_LEARNED)
    return request.result(
        watcher,
        model,
        len(watcher.history),
        loss,
        converged=ensemble.finished,
        interrupted=interrupted,
    )
