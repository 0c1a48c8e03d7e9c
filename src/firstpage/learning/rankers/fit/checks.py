"""Checks of labels, features and validation data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from firstpage.core import Array, DataError, Floats, warn
from firstpage.data import Dataset, Ids, group_rows, is_identifier, listed_features, match_queries
from firstpage.data.shards import Shards

if TYPE_CHECKING:
    from firstpage.data import Features

CHUNK = 1 << 10  # documents per comparison
MAX_EXACT = 2**53  # beyond it, distinct integers may be equal as floats
SAME_DATA = (
    "the validation data are the training data: iterations and parameters that are chosen on them, "
    "and the score on them, are overfitted."
)


def check_labels(y: object, rows: int) -> Floats:
    """Return labels as floats, one finite number per document; raise DataError otherwise."""
    array = np.asarray(y)
    if array.dtype.kind in "cmM":
        raise DataError(f"Unknown label type: labels must be real numbers, not {array.dtype}.")
    if (
        array.dtype.kind in "iu"
        and array.size
        and int(np.abs(array.astype(object)).max()) > MAX_EXACT
    ):
        raise DataError(
            f"labels beyond 2^53 cannot be distinguished; the greatest is {array.max()}."
        )
    try:
        labels = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"Unknown label type: labels must be numbers ({error}).") from error
    if labels.ndim == 2 and labels.shape[1] == 1:
        text = "A column-vector y was passed when a 1d array was expected"
        warn(text, category=DataConversionWarning)
        labels = labels.ravel()
    if labels.ndim != 1:
        raise DataError(f"y should be a 1d array, one label per document; got {labels.shape}.")
    if len(labels) != rows:
        raise DataError(f"there are {len(labels)} labels for {rows} documents.")
    if not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise DataError(f"the label of row {row} is {labels[row]} (NaN or inf); it must be finite.")
    return labels


def group_by_query(
    X: Features, y: Floats, qid: Iterable[object] | None, names: tuple[str, ...] | None
) -> Dataset:
    """Return the rows grouped by query; `row_order` holds their original numbers."""
    rows = X.shape[0]
    if qid is None:
        offsets = np.array([0, rows], np.int64)
        return Dataset(X, y, offsets, Ids.from_values(["1"]), None, names, "X")
    queries, offsets, order = group_rows(qid, rows)
    if order is not None:
        X, y = X[order], y[order]
    return Dataset(X, y, offsets, queries, None, names, "X", order)


def check_qid(qid: Any, rows: int) -> None:
    """Raise an error unless there is one query id per row."""
    if len(qid) != rows:
        group_rows(qid, rows)


def check_has_features(data: Dataset | Shards) -> None:
    """Raise an error for training data without features.

    The message contains the one of scikit-learn, which its estimator checks expect.
    """
    if not data.n_features:
        raise DataError(
            f"{data.source} has no features to learn from: 0 feature(s) (shape=({data.n_docs}, 0)) "
            "while a minimum of 1 is required. Give every document at least one feature."
        )


CATEGORIES = (
    "{}: {} holds categories, and {} reads numbers only; use trees (scorer='trees'), or drop the "
    "feature."
)


def check_categories(data: Dataset | Shards, accepted: bool, target: str) -> None:
    """Raise an error for categorical features, unless they are accepted."""
    if data.categories and not accepted:
        raise DataError(
            CATEGORIES.format(data.source, listed_features(data, data.categories), target)
        )


def warn_of_empty_features(data: Dataset) -> None:
    """Warn about features that are missing in all documents, from which nothing is learned."""
    X = data.X
    if not isinstance(X, np.ndarray) or not data.n_docs or not np.isnan(X[0]).any():
        return
    empty = np.flatnonzero(np.isnan(X[0]))
    empty = empty[np.isnan(X[:, empty]).all(axis=0)]
    if len(empty):
        warn(
            f"{data.source}: {listed_features(data, empty.tolist())} is missing in all documents; "
            "nothing can be learned from it."
        )


def warn_of_identifiers(data: Dataset) -> None:
    """Warn about features with names of identifiers that are read as quantities."""
    names = [
        column
        for column, name in enumerate(data.feature_names or ())
        if is_identifier(name) and column not in data.categories
    ]
    if names:
        warn(
            f"{data.source}: {listed_features(data, names)} is learned from as a quantity, though "
            "it is named like an identifier; drop it, or make it categorical if it holds "
            "categories."
        )


def has_preferences(data: Dataset) -> bool:
    """Return whether a query has documents with different labels."""
    query = np.repeat(np.arange(len(data)), data.lengths)
    return bool(((np.diff(data.y) != 0) & (np.diff(query) == 0)).any())


def warn_of_overlap(train: Dataset, valid: Dataset) -> None:
    """Warn if validation queries are in the training data."""
    same_shape = (len(train), train.n_docs, train.n_features) == (
        len(valid),
        valid.n_docs,
        valid.n_features,
    )
    if same_shape and train.sha256() == valid.sha256():
        warn(SAME_DATA)
        return
    warn_of_shared_queries(shared_queries(train, valid), valid)


def warn_of_shared_queries(shared: Sequence[int], valid: Dataset) -> None:
    """Warn if there are validation queries that are in the training data."""
    if shared:
        warn(
            f"{len(shared)} of {len(valid)} validation queries are also in the training data (same "
            f"id and same features; {valid.queries[shared[0]]!r} is the first): iterations and "
            "parameters that are chosen on them, and the score on them, are overfitted."
        )


def shared_queries(train: Dataset, valid: Dataset) -> list[int]:
    """Return the validation queries with the id and the features of a training query."""
    partner = match_queries(valid.queries, train.queries)
    matched = np.flatnonzero(partner >= 0)
    size = train.lengths[partner[matched]]
    candidates = matched[(valid.lengths[matched] == size) & (size > 0)].tolist()
    return [q for q in candidates if _same_features(train[int(partner[q])], valid[q])]


def _same_features(first: Dataset, second: Dataset) -> bool:
    """Return whether two queries have the same documents, in any order if dense."""
    a: Any = first.X
    b: Any = second.X
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return a.shape == b.shape and not (a != b).sum()
    if np.array_equal(a, b, equal_nan=True):
        return True
    return np.array_equal(_sorted_rows(a), _sorted_rows(b), equal_nan=True)


def _sorted_rows(X: Array) -> Array:
    return X[np.lexsort(X.T)] if X.shape[1] else X


def varies(data: Dataset) -> bool:
    """Return whether any feature differs between two documents of a query."""
    for lo in range(0, data.n_docs - 1, CHUNK):
        rows: Any = data.X[lo : lo + CHUNK + 1]
        differs = rows[1:] != rows[:-1]
        if isinstance(rows, np.ndarray):  # two missing values are equal
            differs &= ~(np.isnan(rows[1:]) & np.isnan(rows[:-1]))
        changed = differs.any(axis=1) if isinstance(rows, np.ndarray) else np.diff(differs.indptr)
        rows_changed = lo + 1 + np.flatnonzero(changed)
        starts = data.offsets[np.searchsorted(data.offsets, rows_changed)]
        if (starts != rows_changed).any():  # not where a query begins
            return True
    return False
