"""TopRank: one ranker chooses candidates, others vote on their order (Cheng et al. 2014)."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from sklearn.base import clone

from firstpage.core import DataError, Floats, check_number, parse_call
from firstpage.data import Dataset
from firstpage.evaluation.aggregation import SupervisedKemeny, normalize_weights
from firstpage.evaluation.measures import evaluate
from firstpage.learning.models.scorings import Stage, VoterCascade
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.checkpoint import Checkpoint
from firstpage.learning.rankers.fit.composition import Procedure
from firstpage.learning.rankers.fit.estimator import LearnsFrom
from firstpage.learning.rankers.fit.progress import Step
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.rankers.methods import create_ranker

MAX_CANDIDATES = 10_000  # per query
Component: TypeAlias = str | Ranker
"""The name of a ranker, or a ranker, which may be fitted and frozen."""
VOTERS = ("Regression", "RankSVM", "ListNet")


@dataclass(eq=False, repr=False)
class TopRank(Ranker):
    """A cascade: one ranker chooses each query's candidates, others vote on their order.

    The candidates are ordered by Supervised Kemeny aggregation of the voters' rankings; documents
    that are not candidates stay below, in the order of the first ranker.

    Parameters
    ----------
    first : str or Ranker, default "TopSlack"
        The ranker whose top `depth` documents are the candidates: a name, a ranker, or a fitted
        one.
    voters : list of str or Ranker, or str
        The rankers that vote, named or given as `first`; one string may name several, as in
        "RankSVM + ListNet(k=10)".  By default Regression, RankSVM and ListNet.
    depth : int, default 100
        The number of candidates per query.
    weights : {"auto", "equal"} or list of float, default "auto"
        The weights of the voters: their `measure` on the validation data (equal without
        validation data), equal weights, or numbers.
    credit : {"extended", "paper"}, default "extended"
        "extended": a document at the first `k_agg` positions of a list beats all documents below
        it; "paper": only those within these positions, as printed.
    same_depth : bool, default False
        Use one depth for all queries, as printed: at most the number of documents of the shortest
        training query.
    k_agg : int, optional
        The number of first positions of a voter's list that give credit; by default half of the
        candidates, rounded up.

    References
    ----------
    Cheng, Sun and Xie, "TopRank: a novel top-k ranking method based on rank aggregation", 2014.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 2, 1, 0], [1, 1, 1, 2, 2]
    >>> ranker = fp.TopRank(first="Regression", voters=["RankSVM"], depth=3).fit(X, y, qid=qid)
    >>> ranker.rank([[5.0], [6.0], [7.0]], qid=[3, 3, 3]).tolist()
    [2, 1, 0]
    """

    _paper = "Cheng, Sun and Xie, TopRank"
    _about = "TopSlack chooses candidates, other rankers vote on their order"
    _grid: ClassVar = {"depth": [10, 20, 50, 100]}
    needs_preferences: ClassVar = False  # its components decide
    _weights_by_copying: ClassVar = True

    _: KW_ONLY
    first: Any = "TopSlack"
    voters: Any = VOTERS
    depth: int = 100
    weights: Any = "auto"
    credit: Literal["paper", "extended"] = "extended"
    same_depth: bool = False
    k_agg: int | None = None

    def compose(self, learns_from: LearnsFrom = "labels") -> CascadeFit:
        check_number(self, "depth", 1, integer=True)
        if self.depth > MAX_CANDIDATES:
            raise DataError(f"depth must be at most {MAX_CANDIDATES}; got {self.depth}.")
        if self.warm_start:
            raise DataError("TopRank cannot continue an earlier fit: warm_start must be false.")
        if self.k_agg is not None:
            check_number(self, "k_agg", 1, integer=True)
        SupervisedKemeny(credit=self.credit)
        if not isinstance(self.voters, Sequence) or not self.voters:
            raise DataError(f"voters must be a list of rankers; got {self.voters!r}.")
        components = tuple(self._ranker(each) for each in (self.first, *self._voters()))
        if isinstance(self.weights, str):
            if self.weights not in ("auto", "equal"):
                raise DataError(f"weights must be 'auto', 'equal' or numbers; got {self.weights!r}")
        else:
            normalize_weights(self.weights, len(components) - 1)
        depths = self.depth, self.same_depth
        return CascadeFit(components, self.weights, *depths, self.credit, self.k_agg)

    def _voters(self) -> list[Component]:
        """Return the voters; a string such as "RankSVM + ListNet(k=10)" names several."""
        if isinstance(self.voters, str):
            return [text.strip() for text in re.split(r"\+(?![^()]*\))", self.voters)]
        return list(self.voters)

    def _ranker(self, component: Component) -> Ranker:
        """Return a component as a ranker, made from its name where it is a string."""
        if type(component).__name__ == "FrozenEstimator":
            component = component.estimator  # type: ignore[union-attr]
        if not isinstance(component, str):
            if not isinstance(component, Ranker) or isinstance(component, TopRank):
                raise DataError(
                    f"a component of TopRank must be another ranker or its name; got {component!r}."
                )
            return component
        ranker, explicit = create_ranker(component), parse_call(component)[1]
        defaults = {name: getattr(self, name) for name in ("ties", "seed", "threads", "measure")}
        if self.k is not None and ranker.k is None:
            defaults["k"] = self.k
        ranker.set_params(**{name: v for name, v in defaults.items() if name not in explicit})
        return ranker


@dataclass(frozen=True, eq=False)
class CascadeFit(Procedure):
    """The components of a cascade, fitted one after the other; the first chooses candidates."""

    components: tuple[Ranker, ...]
    weights: Any
    depth: int
    same_depth: bool
    credit: Literal["paper", "extended"]
    k_agg: int | None

    def fit(self, request: FitRequest) -> FitResult:
        if request.valid is not None and self.weights == "auto" and request.measure.lower_is_better:
            raise DataError(
                f"{request.measure} is better when lower, so it cannot weight the voters; choose "
                "another measure, or give weights."
            )
        start, steps = time.perf_counter(), list[Step]()
        stages: list[Stage] = []
        stored = _stored_stages(request.checkpoint)
        for number, component in enumerate(self.components, 1):
            known = stored[number - 1] if number <= len(stored) else None
            stages.append(self._stage(component, request, known))
            if request.checkpoint is not None and number > len(stored):
                _store_stages(request.checkpoint, stages)
            value = None if request.valid is None else _measured(stages[-1], request.valid, request)
            step = Step(number, float("nan"), value, False, time.perf_counter() - start)
            steps.append(step)
            if request.progress is not None and request.progress(step) and len(stages) > 1:
                break  # with the voters so far
        weights = self._weights([step.measure for step in steps[1:]])
        n_features = request.training.n_features
        model = VoterCascade(
            stages[0],
            tuple(stages[1:]),
            weights,
            self._depth(request),
            self.credit,
            self.k_agg,
            n_features,
        )
        watcher = request.watcher(lambda params, X: None, path=False)
        watcher.history = steps
        if request.valid is not None:
            value = _measured(Stage("TopRank", model), request.valid, request)
            last = Step(len(stages), float("nan"), value, True, time.perf_counter() - start)
            watcher.history = [*steps[:-1], last]
        complete = len(stages) == len(self.components)
        result = request.result(watcher, model, len(stages), float("nan"), converged=complete)
        result.record["voters"] = [
            [stage.name, weight] for stage, weight in zip(stages[1:], weights.tolist(), strict=True)
        ]
        return result

    def _depth(self, request: FitRequest) -> int:
        """Return the number of candidates per query."""
        if not self.same_depth:
            return self.depth
        lengths = request.training.in_memory("TopRank").data.lengths
        return min(self.depth, int(lengths[lengths > 0].min(initial=self.depth)))

    def _stage(self, ranker: Ranker, request: FitRequest, known: Stage | None) -> Stage:
        """Return a component as a stage of the model; fit it unless it is fitted.

        `known` is the stage that an earlier, unfinished fit has stored.
        """
        training = request.training.in_memory("TopRank")
        if not hasattr(ranker, "model_"):
            if known is not None:
                return known
            ranker = clone(ranker)
            ranker.fit(training.data, sample_weight=training.query_weights, valid=request.valid)
            if ranker.interrupted_:
                raise KeyboardInterrupt  # a component must be trained completely
        elif training.transform is not None:
            raise DataError(
                f"{ranker} was trained on unscaled features, and normalize= or impute= of TopRank "
                "would scale them; set it in the components instead."
            )
        known, names = getattr(ranker, "feature_names_in_", None), training.data.feature_names
        if known is not None and names is not None and list(known) != list(names):
            raise DataError(f"{ranker} was trained on other features, or on them in another order.")
        if ranker.model_.n_features != request.training.n_features:
            raise DataError(
                f"{ranker} was trained on {ranker.model_.n_features} features, and the data have "
                f"{request.training.n_features}."
            )
        return Stage(str(ranker), ranker.model_, getattr(ranker, "transform_", None))

    def _weights(self, measured: list[float | None]) -> Floats:
        """Return the weights of the voters, which sum to 1."""
        if not isinstance(self.weights, str):
            return normalize_weights(list(self.weights)[: len(measured)], len(measured))
        known = [max(value, 0.0) for value in measured if value is not None]
        if self.weights == "equal" or len(known) < len(measured):
            return normalize_weights(None, len(measured))
        return normalize_weights(known, len(measured))


def _stored_stages(checkpoint: Checkpoint | None) -> list[Stage]:
    """Return the stages that an unfinished fit has stored; none without a checkpoint."""
    if checkpoint is None or checkpoint.state is None:
        return []
    return [Stage.from_dict(stage) for stage in checkpoint.state["stages"]]


def _store_stages(checkpoint: Checkpoint, stages: Sequence[Stage]) -> None:
    """Write the stages that are fitted: each of them may have taken long."""
    stored = [stage.to_dict() for stage in stages]
    checkpoint.store(lambda: {"iterations": len(stored), "stages": stored})
    checkpoint.write()


def _measured(stage: Stage, data: Dataset, request: FitRequest) -> float:
    """Return the mean of the fit's measure on validation data."""
    scores = stage.predict(data, request.threads)
    values = evaluate(scores, data, measures=request.label_measure).values[0]
    return float(values.mean())
