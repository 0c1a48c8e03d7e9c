"""Validation of the arguments of `fit` and `predict`: arrays and frames by scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from firstpage.core import DataError, warn
from firstpage.data import Categories, ColumnMatch, Dataset, match_columns, recoded, warn_of_unknown
from firstpage.data.formats import encode_frame
from firstpage.data.shards import Shards
from firstpage.learning.models.finite_values import check_finite
from firstpage.learning.rankers.fit.checks import (
    check_categories,
    check_labels,
    group_by_query,
    warn_of_empty_features,
    warn_of_identifiers,
)

PASS_QID = (
    "pass qid. Searches of scikit-learn pass it after "
    "sklearn.set_config(enable_metadata_routing=True) and "
    "ranker.set_fit_request(qid=True).set_score_request(qid=True)."
)


class HasFeatures(Protocol):
    """Data, shards or a model with features."""

    @property
    def n_features(self) -> int: ...
    @property
    def feature_names(self) -> tuple[str, ...] | None: ...
    @property
    def categories(self) -> Categories: ...


class ValidatingEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator that validates its input and remembers the features of the training data."""

    n_features_in_: int
    categories_: Categories

    def _reads_missing(self) -> bool:
        """Return whether features may be missing (NaN)."""
        return False

    def _reads_categories(self) -> bool:
        """Return whether features may be categories."""
        return False

    def _check_features(self, data: Dataset, fitting: bool) -> None:
        """Raise an error for features that the ranker cannot read."""
        check_categories(data, self._reads_categories(), type(self).__name__)
        check_finite(data, self._reads_missing())
        if fitting:
            warn_of_identifiers(data)
        if fitting and self._reads_categories():  # trees; `impute` refuses or fills
            warn_of_empty_features(data)

    def _dataset(
        self, X: object, y: object, qid: Iterable[object] | None, reset: bool, labeled: bool = True
    ) -> Dataset:
        """Return the arguments as a checked Dataset; `reset` remembers the features."""
        if isinstance(X, Dataset):
            if y is not None or qid is not None:
                raise DataError("a Dataset has labels and query ids of its own; drop y and qid.")
            if labeled and not X.n_docs:
                raise DataError(f"{X.source} has no documents to learn from.")
            if labeled and not np.isfinite(X.y).all():
                raise DataError(
                    f"{X.source} has documents without a label; training needs a label for each."
                )
            if reset:
                self._remember_features(X)
            # Weights and positions are those of the rows of a Dataset, not of the file.
            data = replace(X, row_order=None) if reset else self._columns(X).apply(X)
            self._check_features(data, reset)
            return data
        if isinstance(X, (str, os.PathLike)):
            raise DataError(
                f"X is a path, {os.fspath(X)!r}; read a file by fp.read, and a folder of shards by "
                "fp.read_shards."
            )
        if y is None and labeled:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        known = () if reset else getattr(self, "categories_", ())
        X, categories = encode_frame(X, "X", known)
        checked = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            ensure_min_features=0,
        )
        if not isinstance(checked, np.ndarray):
            from scipy.sparse import csr_array

            checked = csr_array(checked)
        names = tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        labels = check_labels(y, checked.shape[0]) if labeled else np.zeros(checked.shape[0])
        if labeled and qid is None:
            warn(
                f"qid is not given: all {len(labels)} documents are taken for one query; {PASS_QID}"
            )
        data = replace(group_by_query(checked, labels, qid, names), categories=categories)
        if reset:
            self._remember_categories(data)
        else:
            data, unknown = recoded(data, getattr(self, "categories_", {}))
            warn_of_unknown(data, unknown, f"this {type(self).__name__}")
        self._check_features(data, reset)
        return data

    def _remember_features(self, data: HasFeatures) -> None:
        """Store the features of training data, or of a model file, as those of the ranker."""
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._remember_categories(data)

    def _remember_categories(self, data: HasFeatures) -> None:
        """Store the categories of the features, if any."""
        self.__dict__.pop("categories_", None)
        if data.categories:
            self.categories_ = dict(data.categories)

    def _columns(self, data: Dataset | Shards) -> ColumnMatch:
        """Match the columns of the data to the features of training, or raise an error."""
        known = getattr(self, "feature_names_in_", None)
        names = None if known is None else known.tolist()
        target, known_categories = f"this {type(self).__name__}", getattr(self, "categories_", {})
        return match_columns(data, names, self.n_features_in_, target, categories=known_categories)

    def _validation(self, valid: object, labeled: bool = True) -> Dataset:
        """Return the validation data as a checked Dataset."""
        if isinstance(valid, Dataset):
            if not valid.n_docs:
                raise DataError("the validation data have no documents.")
            return self._dataset(valid, None, None, reset=False, labeled=labeled)
        if not isinstance(valid, (tuple, list)) or not 2 <= len(valid) <= 3:
            raise DataError("valid must be a Dataset, or a tuple (X, y, qid).")
        X, y, qid = (*valid, None)[:3]
        return self._dataset(X, y, qid, reset=False)
