"""What is asked of a fit, and what it gives back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firstpage.data.dataset import Dataset
from firstpage.errors import FirstpageWarning
from firstpage.losses.loss import Loss
from firstpage.measures.measure import Measure
from firstpage.rankers.fit.checkpoint import Checkpoint
from firstpage.rankers.fit.progress import PATIENCE, Score, Step, Watcher
from firstpage.rankers.fit.record import Record, fit_record, versions
from firstpage.rankers.fit.training_data import Scorer, TrainingData
from firstpage.scorers.scorer import Scoring
from firstpage.scorers.trees import Trees
from firstpage.solvers.solver import AnySolver
from firstpage.types import Floats

NOTHING = (
    "all scores are alike: no query of the training data has preferences that this ranker reads, "
    "or no feature tells its documents apart."
)


@dataclass(frozen=True)
class Composition:
    """What a ranker is composed of.

    scorer   parameters that a solver moves; None: `trees` grow instead
    solver   by name; "auto" suits the loss and the scorer
    """

    loss: Loss
    scorer: Scorer | None
    trees: Trees | None
    solver: str | AnySolver
    l2: float


@dataclass(frozen=True, eq=False)
class FitRequest:
    """What to learn from and how to go about it, checked."""

    training: TrainingData
    valid: Dataset | None
    measure: Measure
    patience: int | None
    seed: int
    threads: int | None
    start: Floats | None
    progress: Callable[[Step], object] | None
    verbose: bool
    memory: Any = None  # what an earlier fit on the same data left
    checkpoint: Checkpoint | None = None

    def warn_if_constant(self) -> bool:
        """Warn where no feature differs between documents of a query: nothing can be learned."""
        constant = not self.training.varies()
        if constant:
            warnings.warn(NOTHING, FirstpageWarning, stacklevel=5)
        return constant

    def watcher(self, score: Score, path: bool) -> Watcher:
        """Return what is called after each iteration.

        path   whether to keep the best iteration, even without `patience`
        """
        keep = self.valid is not None and (path or self.patience is not None)
        patience = self.patience or PATIENCE
        return Watcher(self.measure, self.valid, score, keep, patience, self.progress, self.verbose)

    def result(
        self,
        watcher: Watcher,
        model: Scoring,
        iterations: int,
        value: float,
        *,
        converged: bool,
        interrupted: bool = False,
        gap: float | None = None,
        memory: object = None,
    ) -> FitResult:
        """Return the model with the record of its training."""
        best = watcher.best if watcher.keep or interrupted else None
        record = {
            "data": self.training.fingerprint(),
            "validation": None if self.valid is None else self.valid.fingerprint(),
            "measure": str(self.measure),
            **fit_record(iterations, value, converged, interrupted, best, watcher.history, gap),
            "seed": self.seed,
            "versions": dict(versions()),
        }
        return FitResult(model, record, memory)


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a fit found: a model, and the training record that model files carry."""

    model: Scoring
    record: Record
    memory: Any = None
