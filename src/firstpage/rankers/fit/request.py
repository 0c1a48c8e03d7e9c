"""What is asked of a fit, and what it gives back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firstpage.data.dataset import Dataset
from firstpage.data.truth import Truth
from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.loss import Loss
from firstpage.measures.measure import Measure
from firstpage.rankers.fit.checkpoint import Checkpoint
from firstpage.rankers.fit.progress import PATIENCE, Step, Watcher
from firstpage.rankers.fit.record import fit_record, versions
from firstpage.rankers.fit.training_data import Training
from firstpage.rankers.sharded.data import IN_MEMORY, Spread
from firstpage.scorers.scorer import Scoring
from firstpage.types import Floats

NOTHING = (
    "all scores are alike: no query of the training data has preferences that this ranker reads, "
    "or no feature tells its documents apart."
)


@dataclass(frozen=True, eq=False)
class FitRequest:
    """What to learn from and how to go about it, checked."""

    training: Training | Spread
    truth: Truth  # empty where the documents are in shards, and their truth with them
    valid: Dataset | None
    measure: Measure
    patience: int | None
    seed: int
    threads: int | None
    start: Floats | None
    callback: Callable[[Step], object] | None
    verbose: bool
    memory: Any = None  # what an earlier fit on the same data left
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Composition:
    """What a ranker is composed of."""

    loss: Loss
    scorer: Any
    solver: Any
    l2: float


@dataclass(frozen=True, eq=False)
class FitResult:
    """What fitting found: a model, and the training record that model files carry."""

    model: Scoring
    record: dict[str, Any]
    memory: Any = None

    @property
    def params(self) -> Floats | None:
        """What a fit can go on from."""
        return getattr(self.model, "params", None)


def in_memory(
    request: FitRequest, who: str, instead: str = "a ranker with linear weights"
) -> Training:
    """The training data, of those who cannot do with shards."""
    if isinstance(request.training, Spread):
        raise DataError(IN_MEMORY.format(who, instead))
    return request.training


def warn_if_constant(request: FitRequest) -> bool:
    """Warn where no feature differs between documents of a query: nothing can be learned."""
    constant = not request.training.varies()
    if constant:
        warnings.warn(NOTHING, FirstpageWarning, stacklevel=5)
    return constant


def watcher_for(request: FitRequest, score: Any, path: bool) -> Watcher:
    keep = request.valid is not None and (path or request.patience is not None)
    return Watcher(
        request.measure,
        request.valid,
        score,
        keep,
        request.patience or PATIENCE,
        request.callback,
        request.verbose,
    )


def fit_result(
    request: FitRequest,
    watcher: Watcher,
    model: Scoring,
    iterations: int,
    value: float,
    converged: bool,
    interrupted: bool,
    gap: float | None = None,
) -> FitResult:
    """Return the model with the record of its training."""
    best = watcher.best if watcher.keep or interrupted else None
    record = {
        "data": request.training.fingerprint(),
        "validation": None if request.valid is None else request.valid.fingerprint(),
        "measure": str(request.measure),
        **fit_record(iterations, value, converged, interrupted, best, watcher.history, gap),
        "seed": request.seed,
        "versions": dict(versions()),
    }
    return FitResult(model, record)
