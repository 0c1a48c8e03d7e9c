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
from firstpage.rankers.fit.record import fingerprint, fit_record, versions
from firstpage.rankers.fit.training_data import Training
from firstpage.rankers.sharded.data import IN_MEMORY, Spread
from firstpage.scorers.scorer import Scoring
from firstpage.types import Floats

NOTHING = (
    "all scores are alike: no query of the training data has preferences that this ranker reads, "
    "or no feature tells its documents apart."
)


@dataclass(frozen=True, eq=False)
class Job:
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
class Parts:
    """What a ranker is composed of."""

    loss: Loss
    scorer: Any
    solver: Any
    l2: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """What fitting found: a model, and the training record that model files carry."""

    model: Scoring
    record: dict[str, Any]
    memory: Any = None

    @property
    def params(self) -> Floats | None:
        """What a fit can go on from."""
        return getattr(self.model, "params", None)


def in_memory(job: Job, who: str, instead: str = "a ranker with linear weights") -> Training:
    """The training data, of those who cannot do with shards."""
    if isinstance(job.training, Spread):
        raise DataError(IN_MEMORY.format(who, instead))
    return job.training


def warn_if_constant(job: Job) -> bool:
    """Warn where no feature differs between documents of a query: nothing can be learned."""
    constant = not job.training.varies()
    if constant:
        warnings.warn(NOTHING, FirstpageWarning, stacklevel=5)
    return constant


def watcher_of(job: Job, score: Any, path: bool) -> Watcher:
    keep = job.valid is not None and (path or job.patience is not None)
    return Watcher(
        job.measure, job.valid, score, keep, job.patience or PATIENCE, job.callback, job.verbose
    )


def fitted(
    job: Job,
    watcher: Watcher,
    model: Scoring,
    iterations: int,
    value: float,
    converged: bool,
    interrupted: bool,
    gap: float | None = None,
) -> Fitted:
    """Return the model with the record of its training."""
    best = watcher.best if watcher.keep or interrupted else None
    record = {
        "data": job.training.fingerprint(),
        "validation": None if job.valid is None else fingerprint(job.valid),
        "measure": str(job.measure),
        **fit_record(iterations, value, converged, interrupted, best, watcher.history, gap),
        "seed": job.seed,
        "versions": dict(versions()),
    }
    return Fitted(model, record)
