"""Validate the documents that a ranker is given, and match them to those it was trained on."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from firstpage.core import DataError, warn
from firstpage.data import Categories, ColumnMatch, Dataset, match_columns, recoded, warn_of_unknown
from firstpage.data.formats import encode_frame
from firstpage.data.shards import Shards
from firstpage.learning.models.finite_values import check_finite
from firstpage.learning.models.model_files import Model
from firstpage.learning.rankers.fit.checks import (
    check_categories,
    check_labels,
    group_by_query,
    warn_of_empty_features,
    warn_of_identifiers,
)
from firstpage.learning.rankers.fit.estimator import (
    Estimator,
    Matrix,
    QueryIds,
    Validation,
    grows_trees,
    reads_missing,
)

PASS_QID = (
    "pass qid. Searches of scikit-learn pass it after "
    "sklearn.set_config(enable_metadata_routing=True) and "
    "ranker.set_fit_request(qid=True).set_score_request(qid=True)."
)


def validated(
    ranker: Estimator,
    X: Dataset | Matrix,
    y: ArrayLike | None,
    qid: QueryIds | None,
    reset: bool,
    labeled: bool = True,
) -> Dataset:
    """Return the arguments as a checked Dataset; `reset` remembers the features in the ranker."""
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
            remember_features(ranker, X)
        # Weights and positions are those of the rows of a Dataset, not of the file.
        data = replace(X, row_order=None) if reset else columns_of(ranker, X).apply(X)
    else:
        data = _from_rows(ranker, X, y, qid, reset, labeled)
    _check_features(ranker, data, reset)
    return data


def _from_rows(
    ranker: Estimator,
    X: Matrix,
    y: ArrayLike | None,
    qid: QueryIds | None,
    reset: bool,
    labeled: bool,
) -> Dataset:
    """Return rows as a Dataset, validated by scikit-learn and grouped by query."""
    name = type(ranker).__name__
    if isinstance(X, (str, os.PathLike)):
        raise DataError(
            f"X is a path, {os.fspath(X)!r}; read a file by fp.read, and a folder of shards by "
            "fp.read_shards."
        )
    if y is None and labeled:
        raise ValueError(
            f"This {name} estimator requires y to be passed, but the target y is None."
        )
    X, categories = encode_frame(X, "X", () if reset else getattr(ranker, "categories_", ()))
    checked: Any = validate_data(
        ranker,
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
    names = feature_names(ranker)
    labels = check_labels(y, checked.shape[0]) if labeled else np.zeros(checked.shape[0])
    if labeled and qid is None:
        warn(f"qid is not given: all {len(labels)} documents are taken for one query; {PASS_QID}")
    data = replace(group_by_query(checked, labels, qid, names), categories=categories)
    if reset:
        _remember_categories(ranker, categories)
        return data
    data, unknown = recoded(data, getattr(ranker, "categories_", {}))
    warn_of_unknown(data, unknown, f"this {name}")
    return data


def _check_features(ranker: Estimator, data: Dataset, fitting: bool) -> None:
    """Raise an error for features that the ranker cannot read."""
    trees = grows_trees(ranker)
    if data.categories:
        check_categories(data, trees, type(ranker).__name__)
    check_finite(data, reads_missing(ranker))
    if fitting and data.feature_names:
        warn_of_identifiers(data)
    if fitting and trees:  # `impute` refuses or fills
        warn_of_empty_features(data)


def feature_names(ranker: Estimator) -> tuple[str, ...] | None:
    """Return the names of the features that the ranker was trained on; None if it knows none."""
    return tuple(ranker.feature_names_in_) if hasattr(ranker, "feature_names_in_") else None


def remember_features(ranker: Any, data: Dataset | Shards | Model) -> None:
    """Store the features of training data, or of a model file, as those of the ranker."""
    ranker.n_features_in_ = data.n_features
    if data.feature_names is not None:
        ranker.feature_names_in_ = np.array(data.feature_names, object)
    elif hasattr(ranker, "feature_names_in_"):
        del ranker.feature_names_in_
    _remember_categories(ranker, data.categories)


def _remember_categories(ranker: Any, categories: Categories) -> None:
    """Store the categories of the features, if any."""
    ranker.__dict__.pop("categories_", None)
    if categories:
        ranker.categories_ = dict(categories)


def columns_of(ranker: Estimator, data: Dataset | Shards) -> ColumnMatch:
    """Match the columns of the data to the features of training, or raise an error."""
    names, target = feature_names(ranker), f"this {type(ranker).__name__}"
    categories = getattr(ranker, "categories_", {})
    known = None if names is None else list(names)
    return match_columns(data, known, ranker.n_features_in_, target, categories=categories)


def validation_data(ranker: Estimator, valid: Validation, labeled: bool = True) -> Dataset:
    """Return the validation data as a checked Dataset."""
    if isinstance(valid, Dataset):
        if not valid.n_docs:
            raise DataError("the validation data have no documents.")
        return validated(ranker, valid, None, None, reset=False, labeled=labeled)
    if not isinstance(valid, (tuple, list)) or not 2 <= len(valid) <= 3:
        raise DataError("valid must be a Dataset, or a tuple (X, y, qid).")
    X, y, qid = (*valid, None)[:3]
    return validated(ranker, X, y, qid, reset=False)
