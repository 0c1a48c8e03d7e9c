"""From the arguments of `fit` to the fitted attributes: training data, requests, results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import clone

from firstpage.core import DataError, Floats, Ints, lookup, warn
from firstpage.core.engine import Engine
from firstpage.data import TRANSFORMS, Dataset, Impute, Per, Transform, Truth, as_positions
from firstpage.data.preferences import RowPairs
from firstpage.data.shards import LOAD_SHARDS, Shards
from firstpage.learning.models.model_files import parameter_to_json
from firstpage.learning.rankers.fit.checkpoint import Checkpoint, fit_identity
from firstpage.learning.rankers.fit.checks import (
    check_categories,
    check_has_features,
    has_preferences,
)
from firstpage.learning.rankers.fit.inputs import ValidatingEstimator
from firstpage.learning.rankers.fit.pair_measures import (
    NEEDS_PAIRS,
    PairMeasure,
    any_measure,
    pair_measure,
)
from firstpage.learning.rankers.fit.pairs import join_pairs
from firstpage.learning.rankers.fit.progress import ATTRIBUTES, Record, Step, fitted_attributes
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.rankers.fit.training_data import InMemory, TrainingData, with_weights
from firstpage.learning.rankers.sharded.data import IN_MEMORY, ShardedData
from firstpage.learning.scorers.scorer import Scoring

StepCallback = Callable[[Step], object]
FilePath = str | os.PathLike[str]
OWN_LABELS = (
    "Shards have their own labels and query ids, and no weights; drop y, qid and sample_weight."
)
ENGINE_NEEDS_SHARDS = "engine requires Shards (fp.read_shards); X is in memory."
PAIRS_IN_MEMORY = f"pairs are joined to data in memory, not to shards; {LOAD_SHARDS}."
LABELS_UNUSED = "{} trains on the pairs alone; drop y."
UNINFORMATIVE = (
    "{}: no query of the validation data has documents with different labels, so they choose no "
    "number of iterations."
)
NO_POSITIONS = "{} does not use the positions of documents; LambdaMART does."
NORMALIZERS: dict[str, tuple[str, Per]] = {
    "minmax": ("minmax", "query"), "standard": ("standardize", "query"),
    "standardize": ("standardize", "query"), "global minmax": ("minmax", "global"),
    "global standard": ("standardize", "global"),
}  # fmt: skip


def qid_of_groups(X: Any, qid: object, group: object) -> Ints:
    """Return a query id per row, given the number of rows of each query."""
    if isinstance(X, (Dataset, Shards)):
        raise DataError(f"a {type(X).__name__} has query ids of its own; drop group.")
    if qid is not None:
        raise DataError("qid and group say the same; give the ids of the rows, or the sizes.")
    sizes = np.asarray(group)
    whole = sizes.dtype.kind in "iu" or (sizes.dtype.kind == "f" and bool((sizes % 1 == 0).all()))
    if sizes.ndim != 1 or not whole or (sizes < 1).any():
        raise DataError("group must be the numbers of rows of the queries, each at least 1.")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if int(sizes.sum()) != rows:
        hint = " If these are the query ids of the rows, pass qid." if len(sizes) == rows else ""
        raise DataError(
            f"the sizes in group sum to {int(sizes.sum())}, and X has {rows} rows.{hint}"
        )
    return np.repeat(np.arange(len(sizes)), sizes.astype(np.int64))


class TrainableEstimator(ValidatingEstimator):
    """An estimator that turns arguments into training data, and results into fitted attributes.

    Subclasses define the parameters below, and how to learn from a request.
    """

    needs_preferences: ClassVar[bool] = True  # queries with equal labels are uninformative
    _weights_by_copying: ClassVar[bool] = False  # documents can only be weighted by copying them
    _supports_shards: ClassVar[bool] = False
    _shard_alternative: ClassVar[str] = "a ranker with linear weights"  # where they are refused
    _uses_positions: ClassVar[bool] = False  # corrects for the positions of the training data

    k: int | None
    ties: str
    normalize: str | None
    impute: str | float | None
    measure: str | None
    patience: int | None
    seed: int
    threads: int | None
    warm_start: bool
    verbose: bool

    _memory = None  # what the last fit computed about its data, for `_reuse`
    _inherited = None  # the memory of another ranker on the same data

    # --- defined by subclasses

    def _learn(self, request: FitRequest) -> FitResult:
        """Return the fitted model; every subclass defines it."""
        raise AssertionError(f"{type(self).__name__} does not learn")

    def check_pairs(self) -> None:
        """Raise an error unless the ranker can train on pairs with its parameters."""
        raise DataError(
            f"{type(self).__name__} needs labels; RankNet, RankSVM and FocusedNet train on pairs."
        )

    def reads_labels(self) -> bool:
        """Return whether a fit on pairs reads labels too."""
        return False

    def _check_engine(self, engine: Engine) -> None:
        """Raise an error for an engine that the ranker cannot train with."""

    def _truth(self, truth: Truth) -> Truth:
        """Return the truth to train on: with ties="random", equal labels in a random order."""
        return truth.top_k(self.k, self.seed) if self.ties == "random" and self.k else truth

    def measure_name(self) -> str:
        """Return the measure of `score` and of validation; None is NDCG at k, or at 10."""
        return f"NDCG@{self.k or 10}" if self.measure is None else self.measure

    def _transform(self) -> Transform | None:
        """Return the scaling of `normalize` and the imputation of `impute`, not fitted."""
        if self.normalize in (None, "none"):
            return None if self.impute is None else Impute(impute=self.impute)
        name, per = lookup(str(self.normalize), NORMALIZERS, "normalization")
        return TRANSFORMS[name](per, impute=self.impute)  # type: ignore[return-value]

    def _grows_trees(self) -> bool:
        """Return whether the scorer is trees, which read missing values and categories."""
        return False

    def _reads_missing(self) -> bool:
        return self.impute is not None or self._grows_trees()

    def _reads_categories(self) -> bool:
        return self._grows_trees()

    # --- from arguments to a request

    def _fit_pairs(
        self,
        X: object,
        y: object,
        qid: Iterable[object] | None,
        sample_weight: object,
        pairs: object,
        valid: object,
        progress: StepCallback | None,
        checkpoint: FilePath | None,
    ) -> None:
        """Train on votes on pairs, and set the fitted attributes."""
        self.check_pairs()
        labeled = self.reads_labels()
        if y is not None and not labeled:
            raise DataError(LABELS_UNUSED.format(type(self).__name__))
        data = self._dataset(X, y, qid, reset=True, labeled=labeled)
        check_has_features(data)
        checked = None if valid is None else self._validation(valid, labeled=False)
        training = with_weights(data if labeled else _without_missing_labels(data), sample_weight)
        training = replace(training.without_empty(), convert=self._truth)
        own, of_valid = join_pairs(pairs, training.data, checked)
        scaled = self._transformed(training.with_pairs(own, labeled))
        self._fit(scaled, checked, progress, checkpoint, of_valid)

    def _in_memory(
        self,
        X: object,
        y: object,
        qid: Iterable[object] | None,
        sample_weight: object,
        position: object,
    ) -> InMemory:
        """Return the arguments of `fit` as training data, checked, weighted and scaled."""
        data = self._dataset(X, y, qid, reset=True)
        if position is not None:
            data = data.with_positions(data.to_row_order(as_positions(position, "position")))
        check_has_features(data)
        if data.positions is not None and not self._uses_positions:
            warn(NO_POSITIONS.format(type(self).__name__))
        training = with_weights(data, sample_weight)
        if self._weights_by_copying:
            training = training.with_copies(type(self).__name__)
        training = replace(training.without_empty(), convert=self._truth)
        if self.needs_preferences:
            training = training.without_uninformative()
        return self._transformed(training)

    def _check_position(self, X: object, position: object) -> None:
        """Raise an error for positions that the ranker does not use, or that data bring along."""
        if position is None:
            return
        if not self._uses_positions:
            raise DataError(NO_POSITIONS.format(type(self).__name__))
        if isinstance(X, (Dataset, Shards)):
            raise DataError("a Dataset has positions of its own: data.with_positions(..).")

    def _transformed(self, training: InMemory) -> InMemory:
        """Return training data with scaled features."""
        transform = self._transform()
        if transform is None:
            return training
        return training.transformed(transform.fit(training.data))

    def _check_shards(self, shards: Shards, *arguments: object) -> None:
        """Raise an error unless the ranker can train on these shards."""
        if not self._supports_shards:
            raise DataError(IN_MEMORY.format(type(self).__name__, self._shard_alternative))
        if any(argument is not None for argument in arguments):
            raise DataError(OWN_LABELS)
        check_has_features(shards)

    def _from_shards(self, shards: Shards, engine: Engine) -> ShardedData:
        """Return shards as training data, after one pass over them."""
        self._remember_features(shards)
        self._check_engine(engine)
        check_categories(shards, self._reads_categories(), type(self).__name__)
        transform = self._transform()
        if transform is not None:
            transform = transform.fit(shards)
        convert = clone(self)._truth
        return ShardedData.from_shards(
            shards, engine, transform, convert, self.needs_preferences, self._reads_missing()
        )

    def _fit(
        self,
        training: TrainingData,
        valid: object,
        progress: StepCallback | None,
        checkpoint: FilePath | None,
        valid_pairs: RowPairs | None = None,
    ) -> None:
        """Train, and set the fitted attributes; an unfinished fit leaves a checkpoint."""
        with closing(training):
            request = self._request(training, valid, progress, valid_pairs)
            if checkpoint is None:
                self._store(self._learn(request), training)
                return
            with self._checkpoint(checkpoint, request) as written:
                self._store(self._learn(replace(request, checkpoint=written)), training)
                if not self.interrupted_:
                    written.done()

    def _request(
        self,
        training: TrainingData,
        valid: object,
        progress: StepCallback | None,
        valid_pairs: RowPairs | None = None,
    ) -> FitRequest:
        """Return the data and the options of a fit, checked."""
        checked, measure = None, any_measure(self.measure_name())
        if valid_pairs is not None:
            measure = pair_measure(self.measure_name())
        elif isinstance(measure, PairMeasure) and valid is not None:
            raise DataError(NEEDS_PAIRS.format(measure))
        if valid is not None:
            checked = self._validation(valid) if valid_pairs is None else cast(Dataset, valid)
            if training.transform is not None:
                checked = training.transform.apply(checked)
            training.warn_of_overlap(checked)
            if valid_pairs is None and not has_preferences(checked):
                warn(UNINFORMATIVE.format(checked.source))
        return FitRequest(
            training=training,
            valid=checked,
            measure=measure,
            patience=self.patience,
            seed=int(self.seed),
            threads=self.threads,
            start=self.__dict__.get("params_") if self.warm_start else None,
            progress=progress,
            verbose=bool(self.verbose),
            memory=self.__dict__.pop("_inherited", None),
            valid_pairs=valid_pairs,
        )

    def _checkpoint(self, path: FilePath, request: FitRequest) -> Checkpoint:
        """Return the checkpoint of this fit, with the state that an earlier attempt stored."""
        parameters = {
            name: parameter_to_json(value) for name, value in self.get_params(deep=False).items()
        }
        return Checkpoint(
            path,
            fit_identity(
                type(self).__name__,
                parameters,
                request.training,
                request.valid,
                request.start,
                request.valid_pairs,
            ),
        )

    # --- from a result to fitted attributes

    def _store(self, result: FitResult, training: TrainingData) -> None:
        """Set the fitted attributes from the result of a fit."""
        self._set_fitted(result.model, result.record, training.transform)
        self._memory = result.memory
        if self.interrupted_:
            warn(
                f"training was interrupted; the best model so far is kept (iteration "
                f"{self.best_iteration_ or self.n_iter_})."
            )

    def _set_fitted(self, model: Scoring, record: Record, transform: Transform | None) -> None:
        """Set the fitted attributes, after a fit or from a model file."""
        for name in (*ATTRIBUTES, "coef_", "intercept_", "transform_"):
            self.__dict__.pop(name, None)
        self.model_, self.training_ = model, record
        self.params_: Floats | None = model.params
        if transform is not None:
            self.transform_ = transform
        if model.coefficients is not None:
            self.coef_, self.intercept_ = model.coefficients
        self.__dict__.update(fitted_attributes(record))

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES and "model_" in self.__dict__:
            raise AttributeError(
                f"{name} is not in the model file, which an older Firstpage or another program "
                "wrote; fit again to get it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _without_missing_labels(data: Dataset) -> Dataset:
    """Return data whose labels are all 0 if some are missing: only pairs are read."""
    return data if np.isfinite(data.y).all() else replace(data, y=np.zeros(data.n_docs))
