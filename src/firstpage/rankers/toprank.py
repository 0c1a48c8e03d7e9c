"""TopRank: one ranker chooses the candidates, others vote on their order (Cheng et al. 2014)."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from firstpage.aggregation.methods import SupervisedKemeny
from firstpage.aggregation.weights import normalize_weights
from firstpage.data.dataset import Dataset
from firstpage.errors import DataError
from firstpage.measures.evaluate import evaluate
from firstpage.rankers.fit.progress import Step
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.rankers.methods import made
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.scorings import Cascade, Stage
from firstpage.registry import number, split
from firstpage.types import Floats

DEEPEST = 10_000  # candidates that an order can be voted on
Part = str | Ranker
"""A name, or a ranker, which may be fitted and frozen."""
VOTERS = ("Regression", "RankSVM", "ListNet")


@dataclass(eq=False, repr=False)
class TopRank(Ranker):
    """TopSlack chooses a query's candidates; rankers vote on their order by Supervised Kemeny.

    first      the ranker whose first `depth` documents are candidates; those below stay as it has
               them.  A name, a ranker, or one already fitted
    voters     the rankers that vote: names, rankers, or fitted ones; or one text, with + between
    weights    of the voters: "auto" (their `measure` on the validation data; alike without such),
               "alike", or numbers
    credit     "extended": who is in the first half of a list beats all below; "paper": only those
               within that half, as printed
    """

    _paper = "Cheng, Sun and Xie, TopRank"
    _about = "TopSlack for the candidates, votes of others for their order"
    _grid: ClassVar = {"depth": [10, 20, 50, 100]}
    _prefers: ClassVar = False  # its parts know themselves what they need
    _copies: ClassVar = True
    _by_query: ClassVar = True

    _: KW_ONLY
    first: Any = "TopSlack"
    voters: Any = VOTERS
    depth: int = 100
    weights: Any = "auto"
    credit: Literal["paper", "extended"] = "extended"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        number(self, "depth", 1, whole=True)
        if self.depth > DEEPEST:
            raise DataError(f"depth must be at most {DEEPEST}; got {self.depth}.")
        if self.warm_start:
            raise DataError("TopRank cannot go on from a former fit: warm_start must be false.")
        SupervisedKemeny(credit=self.credit)
        if not isinstance(self.voters, Sequence) or not self.voters:
            raise DataError(f"voters must be a list of rankers; got {self.voters!r}.")
        for part in (self.first, *self._voters()):
            self._made(part)
        if isinstance(self.weights, str):
            if self.weights not in ("auto", "alike"):
                raise DataError(f"weights must be 'auto', 'alike' or numbers; got {self.weights!r}")
        else:
            normalize_weights(self.weights, len(self._voters()))

    def _voters(self) -> list[Part]:
        """A text may name several: "RankSVM + ListNet(k=10)"."""
        if isinstance(self.voters, str):
            return [text.strip() for text in re.split(r"\+(?![^()]*\))", self.voters)]
        return list(self.voters)

    def _made(self, part: Part) -> Ranker:
        """A part as an estimator: by its name, or as it is."""
        part = part.estimator if isinstance(part, FrozenEstimator) else part
        if not isinstance(part, str):
            if not isinstance(part, Ranker) or isinstance(part, TopRank):
                raise DataError(
                    f"a part of TopRank must be another ranker or its name; got {part!r}."
                )
            return part
        found, said = made(part), split(part)[1]
        ours = {name: getattr(self, name) for name in ("ties", "seed", "threads", "measure")}
        if self.k is not None and found.k is None:
            ours["k"] = self.k
        found.set_params(**{name: v for name, v in ours.items() if name not in said})
        return found

    def _learn(self, request: FitRequest) -> FitResult:
        if request.checkpoint is not None:
            raise DataError("TopRank leaves no checkpoints; leave checkpoint out.")
        if request.valid is not None and self.weights == "auto" and request.measure.lower_is_better:
            raise DataError(
                f"{request.measure} is better when lower, so voters cannot be weighed by it; "
                "choose another measure, or give weights."
            )
        start, parts, steps = time.perf_counter(), (self.first, *self._voters()), []
        stages: list[Stage] = []
        for place, part in enumerate(parts, 1):
            stages.append(self._stage(part, request))
            value = None if request.valid is None else _measured(stages[-1], request.valid, request)
            step = Step(place, float("nan"), value, False, time.perf_counter() - start)
            steps.append(step)
            if request.callback is not None and request.callback(step) and len(stages) > 1:
                break  # with the voters so far
        weights = self._weights([step.measure for step in steps[1:]])
        size = request.training.n_features
        model = Cascade(stages[0], tuple(stages[1:]), weights, self.depth, self.credit, size)
        watcher = request.watcher(lambda params, X: None, path=False)
        watcher.history = steps
        if request.valid is not None:
            value = _measured(Stage("TopRank", model), request.valid, request)
            last = Step(len(stages), float("nan"), value, True, time.perf_counter() - start)
            watcher.history = [*steps[:-1], last]
        whole = len(stages) == len(parts)
        found = request.result(watcher, model, len(stages), float("nan"), converged=whole)
        found.record["voters"] = [
            [stage.name, weight] for stage, weight in zip(stages[1:], weights.tolist(), strict=True)
        ]
        return found

    def _stage(self, part: Part, request: FitRequest) -> Stage:
        """A part, fitted unless it is already."""
        training = request.training.in_memory("TopRank")
        found = self._made(part)
        if not hasattr(found, "model_"):
            found = clone(found)
            found.fit(training.data, sample_weight=training.query_weights, valid=request.valid)
            if found.interrupted_:
                raise KeyboardInterrupt  # a half-trained part is no part
        elif training.transform is not None:
            raise DataError(
                f"{found} was trained on features as they are, and normalize={self.normalize!r} "
                "would hand it others; scale them in the parts."
            )
        known, names = getattr(found, "feature_names_in_", None), training.data.feature_names
        if known is not None and names is not None and list(known) != list(names):
            raise DataError(f"{found} was trained on other features, or on them in another order.")
        if found.model_.n_features != request.training.n_features:
            raise DataError(
                f"{found} was trained on {found.model_.n_features} features, and the data have "
                f"{request.training.n_features}."
            )
        return Stage(str(found), found.model_, getattr(found, "transform_", None))

    def _weights(self, measured: list[float | None]) -> Floats:
        if not isinstance(self.weights, str):
            return normalize_weights(list(self.weights)[: len(measured)], len(measured))
        known = [max(value, 0.0) for value in measured if value is not None]
        if self.weights == "alike" or len(known) < len(measured):
            return normalize_weights(None, len(measured))
        return normalize_weights(known, len(measured))


def _measured(stage: Stage, data: Dataset, request: FitRequest) -> float:
    scores = stage.predict(data, request.threads)
    values = evaluate(scores, data, measures=request.measure).values[0]
    return float(values.mean())
