"""TopRank: one ranker chooses the candidates, others vote on their order (Cheng et al. 2014)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from firstpage.aggregation.sorting import SupervisedKemeny
from firstpage.aggregation.weights import normalized
from firstpage.data.dataset import Dataset
from firstpage.errors import DataError
from firstpage.measures.base import Measure
from firstpage.measures.evaluate import evaluate
from firstpage.names import number
from firstpage.rankers.base import Ranker
from firstpage.rankers.cascade import Cascade
from firstpage.rankers.fitting import Fitted, Job, fitted, watcher_of
from firstpage.rankers.methods import made
from firstpage.rankers.scorings import Stage
from firstpage.rankers.watcher import Step
from firstpage.types import Floats

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
        SupervisedKemeny(credit=self.credit)
        if not isinstance(self.voters, Sequence) or not self.voters:
            raise DataError(f"voters must be a list of rankers; got {self.voters!r}.")
        for part in (self.first, *self._voters()):
            self._made(part)
        if isinstance(self.weights, str):
            if self.weights not in ("auto", "alike"):
                raise DataError(f"weights must be 'auto', 'alike' or numbers; got {self.weights!r}")
        else:
            normalized(self.weights, len(self._voters()))

    def _voters(self) -> list[Any]:
        """A text may name several: "RankSVM + ListNet(k=10)"."""
        if isinstance(self.voters, str):
            return [text.strip() for text in self.voters.split("+")]
        return list(self.voters)

    def _made(self, part: Any) -> Any:
        """A part as an estimator: by its name, or as it is."""
        if isinstance(part, FrozenEstimator):
            return part.estimator
        if not isinstance(part, str):
            if not isinstance(part, Ranker):
                raise DataError(f"a part of TopRank must be a ranker or its name; got {part!r}.")
            return part
        found = made(part)
        if self.k is not None and found.k is None:
            found.set_params(k=self.k)
        return found.set_params(
            ties=self.ties, seed=self.seed, threads=self.threads, measure=self.measure
        )

    def _learn(self, job: Job) -> Fitted:
        start, parts, steps = time.perf_counter(), (self.first, *self._voters()), []
        stages: list[Stage] = []
        for place, part in enumerate(parts, 1):
            stages.append(self._stage(part, job))
            value = None if job.valid is None else _measured(stages[-1], job.valid, job.measure)
            step = Step(place, float("nan"), value, False, time.perf_counter() - start)
            steps.append(step)
            if job.callback is not None:
                job.callback(step)
        weights = self._weights([step.measure for step in steps[1:]])
        size = job.training.data.n_features
        model = Cascade(stages[0], tuple(stages[1:]), weights, self.depth, self.credit, size)
        watcher = watcher_of(job, lambda params, X: np.empty(0), False)
        watcher.history = steps
        if job.valid is not None:
            whole = Stage("TopRank", model)
            value = _measured(whole, job.valid, job.measure)
            last = Step(len(parts), float("nan"), value, True, time.perf_counter() - start)
            watcher.history = [*steps[:-1], last]
        found = fitted(job, watcher, model, None, len(parts), float("nan"), True, False)
        found.record["voters"] = {
            stage.name: weight for stage, weight in zip(stages[1:], weights.tolist(), strict=True)
        }
        return found

    def _stage(self, part: Any, job: Job) -> Stage:
        """A part, fitted unless it is already."""
        found = self._made(part)
        if not hasattr(found, "model_"):
            found = clone(found)
            found.fit(job.training.data, sample_weight=job.training.query_weights, valid=job.valid)
        if found.model_.n_features != job.training.data.n_features:
            raise DataError(
                f"{found} was trained on {found.model_.n_features} features, and the data have "
                f"{job.training.data.n_features}."
            )
        return Stage(str(found), found.model_, getattr(found, "transform_", None))

    def _weights(self, measured: list[float | None]) -> Floats:
        if not isinstance(self.weights, str):
            return normalized(self.weights, len(measured))
        known = [value for value in measured if value is not None]
        if self.weights == "alike" or len(known) < len(measured):
            return normalized(None, len(measured))
        return normalized(known, len(measured))


def _measured(stage: Stage, data: Dataset, measure: Measure) -> float:
    values = evaluate(stage.predict(data), data, measures=measure).values[0]
    return float(values.mean())
