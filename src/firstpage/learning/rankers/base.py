"""The base class of all rankers: parameters, scikit-learn's interface, scoring."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from firstpage.core import DataError, Floats, Ints, Tabular, inherit_sections
from firstpage.core.engine import open_engine
from firstpage.data import Dataset, sort_groups
from firstpage.data.shards import Shards
from firstpage.evaluation.measures import MeasureLike, predict_shards
from firstpage.learning.models.explanation import explain
from firstpage.learning.models.finite_values import check_scores
from firstpage.learning.models.model_files import save
from firstpage.learning.models.scorings import Stage, scores_of
from firstpage.learning.rankers.fit.checks import check_qid, group_by_query
from firstpage.learning.rankers.fit.composition import Procedure
from firstpage.learning.rankers.fit.estimator import (
    Documents,
    Grid,
    LearnsFrom,
    QueryIds,
    StepCallback,
    Ties,
    Validation,
    Votes,
    reads_missing,
)
from firstpage.learning.rankers.fit.inputs import columns_of, validated
from firstpage.learning.rankers.fit.pair_measures import any_measure
from firstpage.learning.rankers.fit.parameters import composition_of
from firstpage.learning.rankers.fit.preparation import (
    ENGINE_NEEDS_SHARDS,
    OWN_LABELS,
    check_arguments,
    from_memory,
    from_shards,
    from_votes,
    qid_of_groups,
)
from firstpage.learning.rankers.fit.progress import ATTRIBUTES
from firstpage.learning.rankers.fit.run import run_fit
from firstpage.learning.rankers.fit.scoring import mean_measure, mean_of_votes

NEEDS_LISTS = "this network attends to the other documents of a query; call predict(X, qid=..)."


@dataclass(eq=False, repr=False)
class Ranker(BaseEstimator, Tabular):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of all rankers: a scikit-learn estimator for documents grouped by query.

    The parameters are the fields of a dataclass, whose `__init__` only stores them.  As a data
    frame (`to_pandas`, `to_polars`) a fitted ranker has one row per feature: its name and its
    importance, as `fp.explain` computes it.

    Parameters
    ----------
    k : int, optional
        Train for the top k positions only.  None trains for the complete order.
    ties : {"share", "random", "resample"}, default "share"
        How equal labels are treated at the cut-off k: they share the positions, or a random
        order that depends on `seed` breaks the ties: the labels are then k, k - 1, .., 1 in this
        order, and 0 below it, also for rankers that maximize a measure.  "resample" draws another
        order in every epoch of a stochastic solver, solver="sgd" or "adam".  Both need k, except
        in ListMLE, which orders complete lists.
    normalize : str, optional
        Scale the features per query, "minmax" or "standard", or with the statistics of all
        training documents, "global minmax" or "global standard".  The scaling becomes a part of
        the model.  Statistics ignore missing values, which stay missing.
    impute : {"median", "mean", "zero"} or float, optional
        Fill missing features (NaN) with a statistic of the training documents, 0 or a number,
        before they are scaled; it becomes a part of the model.  None accepts missing features
        with trees only.
    measure : str or Measure, default "NDCG@10"
        The measure of `score` and of validation, such as "AP" or "kERR@5".  Fits on pairs are
        validated by "PairAccuracy", which the default stands for, or by "PairLogLoss".
    patience : int, optional
        With validation data: keep the best iteration, and stop after this many iterations
        without improvement.  None does so, with 50, for gradient descent, networks and boosting,
        and with 35 for the trees of a loss; other solvers run to the optimum.  Each of several
        forests has its own best iteration, and trees of a loss average their scores around it.
    seed : int, default 0
        Seed of everything random: broken ties, initial weights, the order of the queries.
    threads : int, optional
        The maximum number of threads in training, validation and prediction; None uses all
        cores.  Results do not depend on it.
    warm_start : bool, default False
        Start the next `fit` from the parameters of the previous one; refused with trees.
    verbose : bool, default False
        Print one line per iteration to standard error.

    Attributes
    ----------
    model_ : Scoring
        The fitted scoring function.
    coef_ : ndarray of shape (n_features,)
        The weights of the features; only of linear models.
    intercept_ : float
        The intercept; only of linear models.
    params_ : ndarray or None
        The parameters that `warm_start` starts from; None where the model has no such vector.
    transform_ : MinMax, Standardize or Impute
        The scaling and the imputation of the features; only with `normalize` or `impute`.
    n_features_in_ : int
        The number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        The names of the features; only where the training data have names.
    categories_ : dict of int to tuple of str
        The categories of each column that holds categories; only where there are any.
    n_iter_ : int
        The number of iterations.
    objective_ : float
        The final value of the training objective; NaN where it is unknown.
    converged_ : bool
        Whether the solver reached its tolerance or finished all its rounds.
    interrupted_ : bool
        Whether Ctrl-C ended the training; the best model so far was kept.
    best_iteration_ : int or None
        The iteration that was kept; None where validation data did not choose it.
    best_score_ : float or None
        The value of `measure` on the validation data; None without validation data.
    gap_ : float
        The relative distance to the optimum, at most; NaN where it is unknown.
    gap_note_ : str or None
        Why `gap_` is unknown, or what it refers to.
    history_ : list of Step
        One entry per iteration: loss and validation measure.
    training_ : dict
        The training record of the model file: data, versions, and the values above.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Synthetic(queries=20, docs=10, features=3, seed=0).dataset()
    >>> ranker = fp.ranker("ListMLE(k=5)").fit(data)
    >>> isinstance(ranker, fp.Ranker), ranker.predict(data).shape
    (True, (200,))
    """

    _paper = ""  # the reference, for listings
    _about = ""  # one line, for listings
    _grid: ClassVar[Grid] = {}  # the values that the papers search
    _orders_all: ClassVar[bool] = False  # whether it learns from a full order without k
    needs_preferences: ClassVar[bool] = True  # queries with equal labels are uninformative
    _weights_by_copying: ClassVar[bool] = False  # documents can only be weighted by copying them
    _learns_from_votes: ClassVar[bool] = False
    _uses_positions: ClassVar[bool] = False  # corrects for the positions of the training data
    _supports_shards: ClassVar[bool] = False
    _shard_alternative: ClassVar[str] = "a ranker with linear weights"  # where they are refused

    _memory = None  # what the last fit computed about its data, for `reuse`

    k: int | None = None
    _: KW_ONLY
    ties: Ties = "share"
    normalize: str | None = None
    impute: str | float | None = None
    measure: MeasureLike | None = "NDCG@10"
    patience: int | None = None
    seed: int = 0
    threads: int | None = None
    warm_start: bool = False
    verbose: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_sections(cls)

    def compose(self, learns_from: LearnsFrom = "labels") -> Procedure:
        """Return how the ranker learns; raise an error for a parameter of the ranker's own.

        Parameters
        ----------
        learns_from : {"labels", "votes", "trees"}, default "labels"
            What the loss reads: labels, votes on pairs, or labels by trees, which sum over
            documents.

        Returns
        -------
        Procedure
            The loss, scorer, solver, penalty and device of the ranker, or a procedure of its own.
        """
        raise AssertionError(f"{type(self).__name__} does not learn")

    def _frame_columns(self) -> dict[str, Any]:
        """Return the features and their importances."""
        check_is_fitted(self, "model_")
        explanation = explain(self)
        return {"feature": list(explanation.names), "importance": explanation.values}

    def fit(
        self,
        X: Documents,
        y: ArrayLike | None = None,
        *,
        qid: QueryIds | None = None,
        pairs: Votes | None = None,
        sample_weight: ArrayLike | None = None,
        valid: Validation | None = None,
        progress: StepCallback | None = None,
        engine: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        position: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Train on a Dataset, on arrays, or on Shards.

        Parameters
        ----------
        X : Dataset, Shards, array, sparse matrix or data frame
            The training data.  A Dataset and Shards have labels and query ids of their own.
        y : array of shape (n_docs,), optional
            One label per row of X, higher is better.
        qid : array of shape (n_docs,), optional
            The query id of each row, in any order.  None takes all rows for one query, with a
            warning.
        pairs : PreferencePairs or array of shape (n_votes, 2) or (n_votes, 3), optional
            Votes on pairs of documents, which RankNet, RankSVM and FocusedNet train on instead of
            labels.  PreferencePairs are joined to X and to `valid` by query and document ids; an
            array has the rows of X that are preferred, the other rows, and optionally weights.
        sample_weight : array, optional
            One weight per query, or one per document; multiplied with the `query_weights` of a
            Dataset.
        valid : Dataset or tuple (X, y, qid), optional
            Validation data.
        progress : callable, optional
            Called with a `Step` after every iteration; training stops where it returns True.
        engine : str or Client, optional
            For Shards, where to compute: "threads", "dask://host:port" or a Dask client.
        checkpoint : path, optional
            A file that stores the state of the fit until it is done.  A fit that finds it
            continues from there.
        position : array of int of shape (n_docs,), optional
            The position at which each row of X was shown, such as 1, 2, ..; a Dataset may have its
            own.  LambdaMART corrects clicks for it, and other rankers refuse it.
        group : array of int of shape (n_queries,), optional
            Instead of `qid`, as in LightGBM and XGBoost: the number of rows of each query, where
            the rows of a query follow each other.

        Returns
        -------
        Ranker
            The ranker itself, fitted.

        Raises
        ------
        DataError
            If a parameter, the data or the checkpoint is invalid.  An earlier fit is kept.

        Examples
        --------
        >>> import firstpage as fp
        >>> ranker = fp.Regression().fit([[1.0], [2.0], [4.0]], [0, 1, 2], qid=[7, 7, 7])
        >>> ranker.n_features_in_
        1
        """
        before = dict(self.__dict__)
        try:
            if group is not None:
                qid = qid_of_groups(X, qid, group)
            check_arguments(self, X, pairs, engine, position, y, qid, sample_weight)
            procedure = composition_of(self, "labels" if pairs is None else "votes")
            if isinstance(X, Shards):
                with open_engine(engine, self.threads) as shard_engine:
                    procedure.check_engine(shard_engine)
                    shards = from_shards(self, X, shard_engine)
                    run_fit(self, procedure, shards, valid, progress, checkpoint)
            elif pairs is not None:
                labeled = procedure.reads_labels
                voted = from_votes(self, X, y, qid, sample_weight, pairs, valid, labeled)
                training, valid, votes = voted
                run_fit(self, procedure, training, valid, progress, checkpoint, votes)
            else:
                training = from_memory(self, X, y, qid, sample_weight, position)
                run_fit(self, procedure, training, valid, progress, checkpoint)
        except BaseException:  # a fit that fails keeps the previous model
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def predict(self, X: Documents, *, qid: QueryIds | None = None, engine: Any = None) -> Floats:
        """Return one score per document; higher is better.

        Parameters
        ----------
        X : Dataset, Shards, array, sparse matrix or data frame
            The documents, with the features of the training data.
        qid : array of shape (n_docs,), optional
            The query id of each row.  Models that scale features per query, networks with
            attention, and TopRank need it; a Dataset has its own.
        engine : str or Client, optional
            For Shards, where to compute, as in `fit`.

        Returns
        -------
        ndarray of shape (n_docs,)
            The scores, in the order of the rows; those of Shards in the order of their files.

        Raises
        ------
        DataError
            If the features are not those of the model, are infinite, or are missing and the
            model cannot read that; if a score is not finite.

        Examples
        --------
        >>> import firstpage as fp
        >>> ranker = fp.Regression().fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
        >>> ranker.predict([[5.0], [4.0]]).round(3).tolist()
        [4.0, 3.0]
        """
        check_is_fitted(self, "model_")
        if isinstance(X, Shards):
            if qid is not None:
                raise DataError(OWN_LABELS)
            with open_engine(engine, self.threads) as shard_engine:
                return predict_shards(self.stage_for(X), X, shard_engine)
        if engine is not None:
            raise DataError(ENGINE_NEEDS_SHARDS)
        if isinstance(X, Dataset) and qid is not None:
            raise DataError("a Dataset has query ids of its own; drop qid.")
        scaled = hasattr(self, "transform_") and self.transform_.per == "query"
        if scaled and qid is None and not isinstance(X, Dataset):
            raise DataError("this model scales features per query; call predict(X, qid=..).")
        by_query = self.model_.by_query
        if by_query and self.model_.network and qid is None and not isinstance(X, Dataset):
            raise DataError(NEEDS_LISTS)
        query_ids = qid if scaled or by_query else None
        data = validated(self, X, None, query_ids, reset=False, labeled=False)
        if qid is not None and query_ids is None:
            check_qid(qid, data.n_docs)
        if data.n_features != self.model_.n_features:
            raise DataError(
                f"X has {data.n_features} features; the model has {self.model_.n_features}."
            )
        scaled_data = self.transform_.apply(data) if hasattr(self, "transform_") else data
        scores = scores_of(self.model_, scaled_data, self.threads)
        check_scores(scores, data, type(self).__name__)
        return scores if isinstance(X, Dataset) else data.to_file_order(scores)

    def stage_for(self, data: Dataset | Shards) -> Stage:
        """Return the scorer of these data, with their columns matched to the model's features.

        Parameters
        ----------
        data : Dataset or Shards
            The data to score; any subset of their documents can be scored.

        Returns
        -------
        Stage
            The model with its scaling and its column match.

        Raises
        ------
        DataError
            If the features of the data are not those of the model.
        """
        check_is_fitted(self, "model_")
        transform = getattr(self, "transform_", None)
        return Stage(type(self).__name__, self.model_, transform, columns_of(self, data))

    def rank(self, X: Documents, *, qid: QueryIds | None = None) -> Ints:
        """Return the row numbers of each query's documents, best first.

        Parameters
        ----------
        X : Dataset, array, sparse matrix or data frame
            The documents.
        qid : array of shape (n_docs,), optional
            The query id of each row; a Dataset has its own.

        Returns
        -------
        ndarray of shape (n_docs,)
            Row numbers, query after query in the order of their first appearance.

        Raises
        ------
        DataError
            If X are Shards, or as in `predict`.

        Examples
        --------
        >>> import firstpage as fp
        >>> ranker = fp.Regression().fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
        >>> ranker.rank([[5.0], [4.0], [6.0]], qid=[1, 1, 1]).tolist()
        [2, 0, 1]
        """
        if isinstance(X, Shards):
            raise DataError("rank takes one shard at a time: rank(shards[0]), ..")
        scores = self.predict(X, qid=qid)
        if isinstance(X, Dataset):
            return sort_groups(scores, X.offsets)[0]
        data = group_by_query(np.zeros((len(scores), 1)), scores, qid, None)
        order = sort_groups(np.asarray(data.y), data.offsets)[0]
        return order if data.row_order is None else data.row_order[order]

    def score(
        self,
        X: Documents,
        y: ArrayLike | None = None,
        *,
        qid: QueryIds | None = None,
        sample_weight: ArrayLike | None = None,
        pairs: Votes | None = None,
    ) -> float:
        """Return the mean of `measure` over the queries; greater is better.

        Parameters
        ----------
        X : Dataset, Shards, array, sparse matrix or data frame
            The documents.
        y : array of shape (n_docs,), optional
            One label per row of X; a Dataset and Shards have their own.
        qid : array of shape (n_docs,), optional
            The query id of each row; needed for arrays, unless `fit` had a single query.
        sample_weight : array, optional
            One weight per query, or one per document.
        pairs : PreferencePairs, optional
            Votes on pairs of the documents of a Dataset; the mean is then over these votes, of the
            measure PairAccuracy or PairLogLoss.

        Returns
        -------
        float
            The mean, negated for measures that are better when lower.

        Raises
        ------
        DataError
            As in `predict`, if labels or weights are invalid, or if qid is missing.

        Examples
        --------
        >>> import firstpage as fp
        >>> X, y, qid = [[1.0], [2.0], [3.0]], [0, 1, 2], [7, 7, 7]
        >>> fp.Regression().fit(X, y, qid=qid).score(X, y, qid=qid)
        1.0
        """
        if pairs is not None:
            return mean_of_votes(self, X, y, sample_weight, pairs)
        return mean_measure(self, any_measure(self.validation_measure()), X, y, qid, sample_weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a JSON file, which `firstpage.load` reads.

        Parameters
        ----------
        path : path
            The file; it is replaced atomically.

        Raises
        ------
        DataError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import firstpage as fp
        >>> ranker = fp.Regression().fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[7, 7, 7])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ranker.save(f"{folder}/model.json")
        ...     fp.load(f"{folder}/model.json").n_features_in_
        1
        """
        check_is_fitted(self, "model_")
        save(self, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = reads_missing(self)
        return tags

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES and "model_" in self.__dict__:
            raise AttributeError(
                f"{name} is not in the model file, which an older Firstpage or another program "
                "wrote; fit again to get it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def validation_measure(self) -> MeasureLike:
        """Return the measure of `score` and of validation; None is NDCG at k, or at 10."""
        return f"NDCG@{self.k or 10}" if self.measure is None else self.measure

    def check_parameters(self, learns_from: LearnsFrom = "labels") -> None:
        """Raise an error for an invalid parameter.

        Parameters
        ----------
        learns_from : {"labels", "votes"}, default "labels"
            What a fit would learn from.
        """
        composition_of(self, learns_from)
