"""Run a fit: from training data to a request, from the result to fitted attributes."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from typing import Any

from firstpage.core import DataError, warn
from firstpage.data import Dataset, Transform
from firstpage.data.preferences import RowPairs
from firstpage.learning.models.distributions import distributions_of
from firstpage.learning.models.model_files import parameter_to_json
from firstpage.learning.rankers.fit.checkpoint import Checkpoint, fit_identity
from firstpage.learning.rankers.fit.checks import has_preferences
from firstpage.learning.rankers.fit.composition import Procedure
from firstpage.learning.rankers.fit.estimator import Estimator, StepCallback, Validation
from firstpage.learning.rankers.fit.inputs import validation_data
from firstpage.learning.rankers.fit.pair_measures import (
    NEEDS_PAIRS,
    PairMeasure,
    any_measure,
    pair_measure,
)
from firstpage.learning.rankers.fit.progress import ATTRIBUTES, Record, fitted_attributes
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.rankers.fit.training_data import InMemory, TrainingData
from firstpage.learning.scorers.scorer import Scoring

FilePath = str | os.PathLike[str]
UNINFORMATIVE = (
    "{}: no query of the validation data has documents with different labels, so they choose no "
    "number of iterations."
)


def run_fit(
    ranker: Estimator,
    procedure: Procedure,
    training: TrainingData,
    valid: Validation | None,
    progress: StepCallback | None,
    checkpoint: FilePath | None,
    valid_pairs: RowPairs | None = None,
) -> None:
    """Train, and set the fitted attributes; an unfinished fit leaves a checkpoint."""
    with closing(training):
        request = _request(ranker, training, valid, progress, valid_pairs)
        if checkpoint is None:
            _store(ranker, procedure.fit(request), training)
            return
        with _checkpoint(ranker, checkpoint, request) as written:
            result = procedure.fit(replace(request, checkpoint=written))
            _store(ranker, result, training)
            if not ranker.interrupted_:
                written.done()


def _request(
    ranker: Estimator,
    training: TrainingData,
    valid: Validation | None,
    progress: StepCallback | None,
    valid_pairs: RowPairs | None,
) -> FitRequest:
    """Return the data and the options of a fit, checked."""
    measure, checked = any_measure(ranker.validation_measure()), None
    if valid_pairs is not None:
        measure = pair_measure(ranker.validation_measure())
    elif isinstance(measure, PairMeasure) and valid is not None:
        raise DataError(NEEDS_PAIRS.format(measure))
    if valid is not None:
        if valid_pairs is None:
            checked = validation_data(ranker, valid)
        else:  # which `from_votes` has checked
            assert isinstance(valid, Dataset)
            checked = valid
        if training.transform is not None:
            checked = training.transform.apply(checked)
        training.warn_of_overlap(checked)
        if valid_pairs is None and not has_preferences(checked):
            warn(UNINFORMATIVE.format(checked.source))
    return FitRequest(
        training=training,
        valid=checked,
        measure=measure,
        patience=ranker.patience,
        seed=int(ranker.seed),
        threads=ranker.threads,
        start=ranker.__dict__.get("params_") if ranker.warm_start else None,
        progress=progress,
        verbose=bool(ranker.verbose),
        memory=ranker.__dict__.pop("_inherited", None),
        valid_pairs=valid_pairs,
    )


def _checkpoint(ranker: Estimator, path: FilePath, request: FitRequest) -> Checkpoint:
    """Return the checkpoint of this fit, with the state that an earlier attempt stored."""
    parameters = {
        name: parameter_to_json(value) for name, value in ranker.get_params(deep=False).items()
    }
    data = request.training, request.valid, request.start, request.valid_pairs
    return Checkpoint(path, fit_identity(type(ranker).__name__, parameters, *data))


def _store(ranker: Estimator, result: FitResult, training: TrainingData) -> None:
    """Set the fitted attributes from the result of a fit."""
    if isinstance(training, InMemory):
        described = distributions_of(training.data, result.model, ranker.threads)
        if described is not None:
            result.record["distributions"] = described
    set_fitted(ranker, result.model, result.record, training.transform)
    ranker._memory = result.memory
    if ranker.interrupted_:
        kept = result.record["best_iteration"] or result.record["iterations"]
        warn(f"training was interrupted; the best model so far is kept (iteration {kept}).")


def set_fitted(ranker: Any, model: Scoring, record: Record, transform: Transform | None) -> None:
    """Set the fitted attributes, after a fit or from a model file."""
    for name in (*ATTRIBUTES, "coef_", "intercept_", "transform_"):
        ranker.__dict__.pop(name, None)
    ranker.model_, ranker.training_, ranker.params_ = model, record, model.params
    if transform is not None:
        ranker.transform_ = transform
    if model.coefficients is not None:
        ranker.coef_, ranker.intercept_ = model.coefficients
    ranker.__dict__.update(fitted_attributes(record))


def reuse(ranker: Any, fitted: Any) -> None:
    """Reuse in the next fit the cutting planes of a ranker on the same data, which differs in C."""
    if type(ranker) is not type(fitted) or not hasattr(ranker, "C"):
        return
    parameters, others = (each.get_params(deep=False) for each in (ranker, fitted))
    if {**parameters, "C": None} == {**others, "C": None}:
        ranker._inherited = fitted._memory
