"""The boosting rankers: RankBoost, AdaRank, FocusedBoost."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.listwise import relevance
from firstpage.losses.pairwise import Pairs, PairwiseExponential
from firstpage.measures.graded import NDCG
from firstpage.measures.measure import Measure
from firstpage.measures.registry import measure as parse_measure
from firstpage.rankers.fit.checkpoint import Checkpoint
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.rankers.fit.training_data import InMemory
from firstpage.rankers.ranker import Ranker
from firstpage.registry import check_number
from firstpage.solvers.boosting.boosting import Boosted, Rules, State, _State, boost
from firstpage.solvers.boosting.pools import Judge, Pool
from firstpage.solvers.boosting.statistics import ListTerm, PairTerm, Term, WeightedTerms
from firstpage.solvers.boosting.weak_rankers import Weak, weak
from firstpage.solvers.solver import State as SolverState
from firstpage.types import Floats

On = Literal["list", "top"]
Edge = Literal["printed", "adjusted"]
HALVINGS = 50  # after which a step is nothing
NOTHING = (
    "nothing was learned: no weak ranker is better than chance. Either no query of the training "
    "data has preferences that this ranker reads, or no feature tells its documents apart."
)


@dataclass(eq=False, repr=False)
class Boosting(Ranker):
    """Rankers that add up weak rankers, one a round.

    weak       what is added up: "stumps", "stumps(bins=32)" or "features"
    rounds     at most
    halvings   how often a step that does not lower the training loss is halved before its weak
               ranker is set aside for a while; None: every step is taken, as in the papers
    stall      stop after so many weak rankers in succession in vain; None: do not
    """

    _weights_by_copying: ClassVar = True
    _supports_shards: ClassVar = True

    _: KW_ONLY
    weak: str | Weak = "stumps"
    rounds: int = 300
    halvings: int | None = 2
    stall: int | None = 50

    def _terms(self, training: InMemory, pool: Pool) -> WeightedTerms:
        """The terms of the loss, with weights that sum to 1."""
        raise AssertionError(f"{type(self).__name__} has no terms")

    def _begin(self, pool: Pool, terms: WeightedTerms, scores: Floats) -> State:
        """Return the state that rounds go on from."""
        return _State(pool, terms, scores)

    def _rules(self) -> Rules:
        return Rules(int(self.rounds), self.halvings, self.stall)

    def _learn(self, request: FitRequest) -> FitResult:
        found = _resumed(request.checkpoint)
        state = request.training.boosting_state(self, request.start, found.chosen, request.threads)
        return _watched(request, state, self._rules(), found)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        weak(self.weak)
        check_number(self, "rounds", 1, integer=True)
        for name, low in (("halvings", 0), ("stall", 1)):
            if getattr(self, name) is not None:
                check_number(self, name, low, integer=True)
        if self.halvings is not None and self.halvings > HALVINGS:
            raise DataError(f"halvings must be at most {HALVINGS}; got {self.halvings}.")


@dataclass(eq=False, repr=False)
class RankBoost(Boosting):
    """Weak rankers that put right the pairs still in the wrong order (Freund et al. 2003).

    Minimizes the mean over a query's pairs, u better than v, of exp(s_v - s_u).  With k, pairs
    whose better document is among the first k places; `pairs="cross"` only those between the first
    k and the rest.  `tol` stops when the loss falls by less than this share in a round.
    """

    _paper = "Freund et al., JMLR 2003; top-k: Lan et al., CIKM 2013"
    _about = "boosted weak rankers on pairs"
    _weights_by_copying: ClassVar = False  # pairs of copies are weighed
    _grid: ClassVar = {"tol": [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]}

    _: KW_ONLY
    pairs: Pairs = "all"
    tol: float = 0.0

    def _terms(self, training: InMemory, pool: Pool) -> WeightedTerms:
        return [(1.0, pair_term(training, self.k, self.pairs))]

    def _rules(self) -> Rules:
        return replace(super()._rules(), tol=float(self.tol))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "tol", 0)
        PairwiseExponential(self.k, self.pairs)


@dataclass(eq=False, repr=False)
class AdaRank(Boosting):
    """Weak rankers that do well on the queries that still measure badly (Xu and Li 2007).

    maximize   the measure; None: NDCG@10, or NDCG@k with k
    on         with k: the labels k .. 1, 0 of the whole "list", or of the documents of the "top" k
               alone
    """

    _paper = "Xu and Li, SIGIR 2007; in the top: Niu et al., SIGIR 2012"
    _about = "boosted weak rankers on a measure (AdaRank.MAP, AdaRank.NDCG)"
    _grid: ClassVar = {"weak": ["features", "features(signs=plus)", "stumps"]}

    _: KW_ONLY
    maximize: str | None = None
    on: On = "list"
    weak: str | Weak = "features"

    def _terms(self, training: InMemory, pool: Pool) -> WeightedTerms:
        which = NDCG(cutoff=self.k or 10) if self.maximize is None else parse_measure(self.maximize)
        return [(1.0, list_term(training, pool, which, self.k, self.on))]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.on not in ("list", "top"):
            raise DataError(f"on must be 'list' or 'top'; got {self.on!r}.")
        if self.on == "top" and self.k is None:
            raise DataError("on='top' needs k, the depth of the top.")
        if self.maximize is not None:
            parse_measure(self.maximize)


@dataclass(eq=False, repr=False)
class FocusedBoost(Boosting):
    """Order inside the top k by AdaRank, the top k above the rest by RankBoost (Niu et al. 2012).

    Each round takes the weak ranker of the greatest beta * list + (1 - beta) * pair: NDCG@k of the
    top's documents alone, and what it does for the pairs between the top k and the rest.

    edge   "printed": the list part is NDCG@k itself, which is far above 0 for a random order, so
           that steps are too long for the pairs; "adjusted": NDCG@k adjusted for chance, 0 for
           equal scores and 1 at best, and its loss from 1 to 0, as those of the pairs are
    """

    _paper = "Niu, Guo, Lan and Cheng, SIGIR 2012"
    _about = "AdaRank inside the top k, RankBoost between the top k and the rest"
    _grid: ClassVar = {"beta": [round(0.05 * i, 2) for i in range(21)]}

    k: int | None = 10
    beta: float = 0.5
    _: KW_ONLY
    edge: Edge = "printed"

    def _terms(self, training: InMemory, pool: Pool) -> WeightedTerms:
        terms: list[tuple[float, Term]] = []
        if self.beta > 0:
            which, adjusted = NDCG(cutoff=self.k), self.edge == "adjusted"
            inside = list_term(training, pool, which, self.k, "top", adjusted)
            terms.append((self.beta, inside))
        if self.beta < 1:
            terms.append((1 - self.beta, pair_term(training, self.k, "cross")))
        return terms

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "beta", 0)
        if self.beta > 1:
            raise DataError(f"beta must be from 0 to 1; got {self.beta}.")
        if self.k is None:
            raise DataError("FocusedBoost needs k, the depth of the top that it focuses on.")
        if self.edge not in ("printed", "adjusted"):
            raise DataError(f"edge must be 'printed' or 'adjusted'; got {self.edge!r}.")


def list_term(
    training: InMemory, pool: Pool, which: Measure, k: int | None, on: On, adjusted: bool = False
) -> ListTerm:
    """Return what a measure says of whole lists, or of the documents of the top k alone."""
    truth = training.truth
    labels = truth.labels if k is None else relevance(truth, None, k)
    rows = np.flatnonzero(labels > 0) if on == "top" else None
    judge = Judge(which, replace(truth, labels=labels), rows)
    return ListTerm(judge, pool, training.each_query(), adjusted)


def pair_term(training: InMemory, k: int | None, pairs: Pairs) -> PairTerm:
    loss = PairwiseExponential(k, pairs, average=True)
    return PairTerm(loss, training.truth, training.weights, training.each_query())


def _resumed(checkpoint: Checkpoint | None) -> Boosted:
    """What was chosen before a former fit broke off."""
    if checkpoint is None or checkpoint.state is None:
        return Boosted()
    state = checkpoint.state
    return Boosted(
        [(int(h), float(step)) for h, step in state["chosen"]], state["losses"], state["before"],
        aside=state["aside"], vain=state["vain"],
    )  # fmt: skip


def _state_of(found: Boosted) -> Callable[[], SolverState]:
    """Where it stands now, told later: the next round may break off in the middle."""
    done, aside, vain = len(found.chosen), found.aside, found.vain
    return lambda: {
        "iterations": done, "chosen": found.chosen[:done], "losses": found.losses[:done],
        "before": found.before, "aside": aside, "vain": vain,
    }  # fmt: skip


def _watched(request: FitRequest, state: State, rules: Rules, found: Boosted) -> FitResult:
    """Boost under a watcher; keep the rounds that measure best, or lose least on training data."""
    pool = state.pool
    X: Any = None if request.valid is None else request.valid.X
    valid = None if X is None else pool.scoring([], request.start).predict(X)
    if X is not None and not isinstance(X, np.ndarray):
        X = X.tocsc()  # weak rankers read it column by column
    watcher = request.watcher(lambda params, X: valid, path=True)

    def told(at: int, chosen: int, step: float, loss: float) -> bool:
        if valid is not None:
            valid[:] += step * pool.values(chosen, X)
        stop = watcher(at, loss, at)
        if request.checkpoint is not None and len(found.chosen) == at and not stop:
            request.checkpoint.keep(_state_of(found))
        return stop

    for at, ((chosen, step), loss) in enumerate(zip(found.chosen, found.losses, strict=True), 1):
        told(at, chosen, step, loss)  # once more: the watcher has not seen them
    interrupted = False
    try:
        boost(state, rules, found, told)
    except KeyboardInterrupt:
        if not watcher.history:
            raise
        interrupted = True
    kept = watcher.best.iteration if watcher.best is not None else found.best
    model = pool.scoring(found.chosen[:kept], request.start)
    loss = found.losses[kept - 1] if kept else found.before
    if not found.chosen and request.start is None:
        warnings.warn(NOTHING, FirstpageWarning, stacklevel=4)
    return request.result(
        watcher, model, len(watcher.history), loss, converged=found.finished,
        interrupted=interrupted,
    )  # fmt: skip
