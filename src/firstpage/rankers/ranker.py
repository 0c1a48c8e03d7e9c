"""What all rankers share: scikit-learn's interface, checking, fitting, scoring."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from firstpage.data.dataset import Dataset
from firstpage.data.groups import sort_groups
from firstpage.data.shards.shards import Shards
from firstpage.data.transforms import TRANSFORMS, Per
from firstpage.data.truth import Truth
from firstpage.engine.addresses import working
from firstpage.engine.engine import Engine
from firstpage.engine.threads import Local
from firstpage.errors import DataError, FirstpageWarning
from firstpage.measures.evaluate import evaluate
from firstpage.measures.registry import measure as parse_measure
from firstpage.measures.sharded import predicted_shards
from firstpage.rankers.fit.checkpoint import Checkpoint, belongs
from firstpage.rankers.fit.checks import check_has_features, grouped, labels_of, restored
from firstpage.rankers.fit.inputs import Given
from firstpage.rankers.fit.progress import Step
from firstpage.rankers.fit.record import ATTRIBUTES, Record, fitted_attributes
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.rankers.fit.training_data import InMemory, TrainingData, Transform, with_weights
from firstpage.rankers.model_files import plain_parameter, save
from firstpage.rankers.scorings import Stage, scores_of
from firstpage.rankers.sharded.data import IN_MEMORY, Sharded
from firstpage.rankers.trees.growth import Objective
from firstpage.registry import lookup, number
from firstpage.scorers.scorer import Scoring
from firstpage.types import Floats, Ints

if TYPE_CHECKING:
    from sklearn.utils import Tags

Ties = Literal["share", "random"]
Callback = Callable[[Step], object]
Path = str | os.PathLike[str]
Grid = dict[str, list[Any]]
"""Values to try, by parameter."""
OWN_LABELS = "Shards have labels and queries of their own, which all weigh alike."
NORMALIZERS: dict[str, tuple[str, Per]] = {
    "minmax": ("minmax", "query"), "standard": ("standardize", "query"),
    "standardize": ("standardize", "query"), "global minmax": ("minmax", "global"),
    "global standard": ("standardize", "global"),
}  # fmt: skip


@dataclass(eq=False, repr=False)
class Ranker(Given):
    """Base of all rankers: scikit-learn's interface, checking, fitting, scoring.

    Parameters are the fields of a dataclass, whose `__init__` stores them and does nothing else.

    k          train for the first k places alone; None: for the whole order
    ties       what equal labels do at the k-th place: "share" it, or break by a "random" order
    normalize  scale features query by query, "minmax" or "standard", or by the numbers of all
               training documents, "global minmax" or "global standard"; kept in the model
    measure    what `score` and validation measure
    patience   with validation data: keep the best iteration, stop after so many without a better.
               None: so for descents, networks, trees and boosting; others go on to the optimum
    threads    at most so many, in fitting, validation and prediction; None: all cores.  Results do
               not depend on it
    """

    _paper = ""  # where it comes from
    _about = ""  # one line
    _grid: ClassVar[Grid] = {}  # what the papers try
    _prefers: ClassVar[bool] = True  # whether queries without a preference say nothing
    _by_query: ClassVar[bool] = False  # whether a score depends on the query's other documents
    _copies: ClassVar[bool] = False  # whether a document can be weighed but by copying it
    _sharded: ClassVar[bool] = False  # whether it learns from shards as well

    k: int | None = None
    _: KW_ONLY
    ties: Ties = "share"
    normalize: str | None = None
    measure: str = "NDCG@10"
    patience: int | None = None
    seed: int = 0
    threads: int | None = None
    warm_start: bool = False
    verbose: bool = False

    _memory = None  # what the last fit found out about its data, for `_follow`
    _inherited = None  # that of another ranker on the same data

    # --- what subclasses say

    def _learn(self, request: FitRequest) -> FitResult:
        """Find the model; every subclass has its own way."""
        raise AssertionError(f"{type(self).__name__} does not learn")

    def _follow(self, other: Ranker) -> None:
        """Before a fit: begin with what `other`, fitted on the same data, has found out."""

    def _check_engine(self, engine: Engine) -> None:
        """Before shards are looked through: refuse an engine that it cannot learn by."""

    def _paper_grid(self) -> Grid:
        """Return what the papers search."""
        return dict(self._grid)

    def _tree_objective(self) -> Objective:
        """Return the ranker's loss for LightGBM and XGBoost."""
        raise DataError(f"{type(self).__name__} has no loss that trees could be grown from.")

    def _truth(self, truth: Truth) -> Truth:
        """The truth to train on; a random order breaks ties only if asked to."""
        return truth.top_k(self.k, self.seed) if self.ties == "random" and self.k else truth

    # --- scikit-learn's interface

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        valid: Any = None,
        callback: Callable[[Step], object] | None = None,
        engine: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from documents X with labels y of queries qid, from a Dataset, or from Shards.

        sample_weight  one a query, or one a document (see docs/train.md)
        valid          validation data: a Dataset, or (X, y, qid)
        callback       called with a `Step` after every iteration; returning True stops
        engine         for Shards, where to work: "threads", "dask://host:port" or a Dask Client
        checkpoint     a file: where the fit stands is kept there until it is done, and a fit that
                       finds it goes on from there
        """
        before = dict(self.__dict__)
        try:
            self._check_parameters()
            if isinstance(X, Shards):
                self._check_shards(X, y, qid, sample_weight)
                with working(engine, self.threads) as place:
                    self._fit(self._from_shards(X, place), valid, callback, checkpoint)
            elif engine is not None:
                raise DataError("engine goes with Shards (fp.read_shards); X is in memory.")
            else:
                self._fit(self._in_memory(X, y, qid, sample_weight), valid, callback, checkpoint)
        except BaseException:  # a fit that fails leaves what was learned before as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _in_memory(
        self, X: object, y: object, qid: Iterable[object] | None, sample_weight: object
    ) -> InMemory:
        """Return what was given as data to train on."""
        data = self._dataset(X, y, qid, reset=True)
        check_has_features(data)
        training = with_weights(data, sample_weight)
        if self._copies:
            training = training.with_copies(type(self).__name__)
        training = replace(training.without_empty(), convert=self._truth)
        if self._prefers:
            training = training.without_uninformative()
        transform = self._normalizer()
        if transform is None:
            return training
        return training.transformed(transform.fit(training.data))

    def _check_shards(self, shards: Shards, *own: object) -> None:
        if not self._sharded:
            raise DataError(IN_MEMORY.format(type(self).__name__, "a ranker with linear weights"))
        if any(given is not None for given in own):
            raise DataError(OWN_LABELS)
        check_has_features(shards)

    def _from_shards(self, shards: Shards, engine: Engine) -> Sharded:
        """Return shards as data to train on, after one look through them."""
        self._remember_features(shards)
        self._check_engine(engine)
        transform = self._normalizer()
        if transform is not None:
            transform = transform.fit(shards)
        return Sharded.of(shards, engine, transform, clone(self)._truth, self._prefers)

    def _fit(
        self,
        training: TrainingData,
        valid: object,
        callback: Callback | None,
        checkpoint: Path | None,
    ) -> None:
        """Learn, and set the fitted attributes; whatever breaks it off leaves a checkpoint."""
        with closing(training):
            request = self._request(training, valid, callback)
            if checkpoint is None:
                self._take(self._learn(request), training)
                return
            with self._checkpoint(checkpoint, request) as written:
                self._take(self._learn(replace(request, checkpoint=written)), training)
                if not self.interrupted_:
                    written.done()

    def _request(
        self, training: TrainingData, valid: object, callback: Callback | None
    ) -> FitRequest:
        checked = None
        if valid is not None:
            checked = self._validation(valid)
            if training.transform is not None:
                checked = training.transform.apply(checked)
            training.warn_of_overlap(checked)
        return FitRequest(
            training=training,
            valid=checked,
            measure=parse_measure(self.measure),
            patience=self.patience,
            seed=int(self.seed),
            threads=self.threads,
            start=self.__dict__.get("params_") if self.warm_start else None,
            callback=callback,
            verbose=bool(self.verbose),
            memory=self.__dict__.pop("_inherited", None),
        )

    def _checkpoint(self, path: Path, request: FitRequest) -> Checkpoint:
        """Return the checkpoint of this fit, which holds what an earlier attempt left."""
        given = self.get_params(deep=False).items()
        parameters = {name: plain_parameter(value) for name, value in given}
        name = type(self).__name__
        return Checkpoint(
            path, belongs(name, parameters, request.training, request.valid, request.start)
        )

    def predict(self, X: Any, *, qid: Any = None, engine: Any = None) -> Floats:
        """One score a document, higher is better.

        Models that scale features query by query need `qid` (a Dataset brings its own).  Shards
        are scored where `engine` says, as in `fit`.
        """
        check_is_fitted(self, "model_")
        if isinstance(X, Shards):
            with working(engine, self.threads) as place:
                return predicted_shards(self.stage_for(X), X, place)
        scaled = hasattr(self, "transform_") and self.transform_.per == "query"
        if scaled and qid is None and not isinstance(X, Dataset):
            raise DataError(
                "this model scales features query by query; give predict(X, qid=..) as well."
            )
        grouped_by = qid if scaled or self._by_query else None
        data = self._dataset(X, None, grouped_by, reset=False, labeled=False)
        if data.n_features != self.model_.n_features:
            raise DataError(
                f"X has {data.n_features} features, and the model {self.model_.n_features}."
            )
        scores = scores_of(self.model_, self._prepared(data), self.threads)
        return restored(scores, self._order(X, data))

    def stage_for(self, data: Dataset | Shards) -> Stage:
        """Return what scores these data, or parts of them; data of other features are refused."""
        check_is_fitted(self, "model_")
        transform = getattr(self, "transform_", None)
        return Stage(type(self).__name__, self.model_, transform, self._columns(data))

    def rank(self, X: Any, *, qid: Any = None) -> Ints:
        """Row numbers, query after query in order of appearance, the best document first."""
        if isinstance(X, Shards):
            raise DataError("rank takes one shard at a time: rank(shards[0]), ..")
        scores = self.predict(X, qid=qid)
        if isinstance(X, Dataset):
            return sort_groups(scores, X.offsets)[0]
        data = grouped(np.zeros((len(scores), 1)), scores, qid, None)
        order = sort_groups(np.asarray(data.y), data.offsets)[0]
        return order if data.row_order is None else data.row_order[order]

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """The mean of `measure` over queries, so that greater is better; weighted if asked to."""
        if isinstance(X, Shards):
            asked = parse_measure(self.measure)
            place = Local(self.threads)
            found = float(evaluate(self, X, measures=asked, engine=place).values[0].mean())
            return -found if asked.lower_is_better else found
        scores = self.predict(X, qid=qid)
        if isinstance(X, Dataset):
            data = X
        else:
            rows = len(scores)
            data = grouped(np.zeros((rows, 1)), labels_of(y, rows), qid, None)
            scores = scores if data.row_order is None else scores[data.row_order]
        which = parse_measure(self.measure)
        values = evaluate(scores, data, measures=which).values[0]
        weights = with_weights(data, sample_weight).query_weights
        mean = float(np.average(values, weights=weights))
        return -mean if which.lower_is_better else mean

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON (`firstpage.load` reads it)."""
        check_is_fitted(self, "model_")
        save(self, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    # --- in between

    def _check_parameters(self) -> None:
        for name in ("k", "patience", "threads"):
            if getattr(self, name) is not None:
                number(self, name, 1, whole=True)
        number(self, "seed", 0, whole=True)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "bool" and not isinstance(value, (bool, np.bool_)):
                raise DataError(f"{field.name} must be true or false; got {value!r}.")
        if self.ties not in ("share", "random"):
            raise DataError(f"ties must be 'share' or 'random'; got {self.ties!r}.")
        parse_measure(self.measure)

    def _normalizer(self) -> Transform | None:
        if self.normalize in (None, "none"):
            return None
        name, per = lookup(str(self.normalize), NORMALIZERS, "normalization")
        return TRANSFORMS[name](per)  # type: ignore[return-value]

    def _prepared(self, data: Dataset) -> Dataset:
        return self.transform_.apply(data) if hasattr(self, "transform_") else data

    def _order(self, X: object, data: Dataset) -> Ints | None:
        return None if isinstance(X, Dataset) else data.row_order

    def _take(self, found: FitResult, training: TrainingData) -> None:
        """Take over what a fit found."""
        self._set_fitted(found.model, found.record, training.transform)
        self._memory = found.memory
        if self.interrupted_:
            warnings.warn(
                f"training was interrupted; the best model so far is kept (iteration "
                f"{self.best_iteration_ or self.n_iter_}).",
                FirstpageWarning,
                stacklevel=3,
            )

    def _set_fitted(self, model: Scoring, record: Record, transform: Transform | None) -> None:
        """Set the fitted attributes, of a fit and of a model file alike."""
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
                "wrote; fit again to have it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
