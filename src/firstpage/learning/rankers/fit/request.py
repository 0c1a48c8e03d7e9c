"""The request and the result of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firstpage.core import DataError, Floats, warn
from firstpage.data import Dataset
from firstpage.data.preferences import RowPairs
from firstpage.evaluation.measures import Measure
from firstpage.learning.rankers.fit.checkpoint import Checkpoint
from firstpage.learning.rankers.fit.pair_measures import NEEDS_PAIRS, AnyMeasure, PairMeasure
from firstpage.learning.rankers.fit.progress import (
    DEFAULT_PATIENCE,
    Record,
    Score,
    Step,
    Watcher,
    fit_record,
    versions,
)
from firstpage.learning.rankers.fit.training_data import TrainingData
from firstpage.learning.scorers.scorer import Scoring

NOTHING_LEARNED = (
    "all scores are equal: no query of the training data has preferences that this ranker uses, or "
    "no feature distinguishes its documents."
)
NO_PREFERENCES = (
    "no query of the training data has documents with different labels: the scores are arbitrary."
)


@dataclass(frozen=True, eq=False)
class FitRequest:
    """The data and the options of a fit, checked."""

    training: TrainingData
    valid: Dataset | None
    measure: AnyMeasure
    patience: int | None
    seed: int
    threads: int | None
    start: Floats | None
    progress: Callable[[Step], object] | None
    verbose: bool
    memory: Any = None  # of an earlier fit on the same data
    checkpoint: Checkpoint | None = None
    valid_pairs: RowPairs | None = None  # votes on the validation documents

    @property
    def label_measure(self) -> Measure:
        """The measure, of rankers that read labels."""
        if isinstance(self.measure, PairMeasure):
            raise DataError(NEEDS_PAIRS.format(self.measure))
        return self.measure

    def warn_if_constant(self) -> bool:
        """Warn and return True if no feature differs between documents of a query."""
        constant = not self.training.varies()
        if constant:
            warn(NOTHING_LEARNED)
        return constant

    def watcher(self, score: Score, path: bool) -> Watcher:
        """Return the watcher, to be called after each iteration.

        With `path`, the best iteration is kept even without `patience`.
        """
        keep_best = self.valid is not None and (path or self.patience is not None)
        patience = self.patience or DEFAULT_PATIENCE
        return Watcher(
            self.measure,
            self.valid,
            score,
            keep_best,
            patience,
            self.progress,
            self.verbose,
            valid_pairs=self.valid_pairs,
        )

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
        gap_note: str | None = None,
        memory: object = None,
    ) -> FitResult:
        """Return the model with the record of its training."""
        best = watcher.best if watcher.keep_best or interrupted else None
        record = {
            "data": self.training.fingerprint(),
            "validation": None if self.valid is None else self.valid.fingerprint(),
            **self._pair_record(),
            "measure": str(self.measure),
            **fit_record(
                iterations, value, converged, interrupted, best, watcher.history, gap, gap_note
            ),
            "seed": self.seed,
            "versions": dict(versions()),
        }
        return FitResult(model, record, memory)

    def _pair_record(self) -> Record:
        """Return the record of the pairs that were trained and validated on, if any."""
        pairs, valid = self.training.pairs, self.valid_pairs
        if pairs is None:
            return {}
        record = {"pairs": pairs.fingerprint()}
        return record if valid is None else {**record, "validation_pairs": valid.fingerprint()}


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted model with its training record; `memory` is for later fits on the same data."""

    model: Scoring
    record: Record
    memory: Any = None
