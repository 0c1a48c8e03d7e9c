"""From what a user hands to `fit` to data that can be trained on, checked once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.groups import group_rows, offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.joins import partners
from firstpage.data.shards.shards import Shards
from firstpage.data.truth import Truth
from firstpage.errors import DataError, FirstpageWarning
from firstpage.kernels.scoring import zero_sum
from firstpage.losses.levels import query_sums
from firstpage.losses.loss import Loss
from firstpage.solvers.objective import Objective
from firstpage.types import Floats, Ints

MANY_COPIES = 1000  # a document on average
CHUNK = 1 << 10  # documents compared at a time
SAME = (
    "the validation data are the training data: iterations and parameters that they choose, and "
    "the score on them, are overfitted."
)
EXACT = 2**53  # whole numbers beyond it are no longer told apart


@dataclass(frozen=True, eq=False)
class Training:
    """Documents grouped by query, with weights."""

    data: Dataset
    weights: Floats | None  # of documents, where they differ inside a query: as if copied
    query_weights: Floats | None

    @property
    def n_features(self) -> int:
        return self.data.n_features

    def by_documents(self) -> Training:
        """The same, with queries that weigh by the number of their documents as well."""
        each = np.ones(self.data.n_docs) if self.weights is None else self.weights
        counts = query_sums(each, self.data.offsets)
        shares = counts if self.query_weights is None else counts * self.query_weights
        return replace(self, query_weights=shares)

    def fingerprint(self) -> dict[str, Any]:
        return self.data.fingerprint()

    def close(self) -> None:
        """Nothing is held elsewhere."""

    def varies(self) -> bool:
        return varies(self.data)

    # --- what fitting asks for

    def fitting(self, scorer: Any) -> Any:
        return scorer.fitting(self.data.X)

    def objective(
        self, loss: Loss, scorer: Any, fitting: Any, truth: Truth, l2: float,
        threads: int | None, batch: int | None,
    ) -> Objective:  # fmt: skip
        return Objective(
            loss, fitting, truth, row_bytes(self.data.X), self.weights, self.query_weights, l2,
            threads, batch,
        )  # fmt: skip

    def spread(self, objective: Any, fitting: Any, params: Floats) -> tuple[float, float]:
        """The widest range of scores in a query, and the greatest score without its sign."""
        scores = fitting.predict(params, self.data.X)
        starts = self.data.offsets[:-1][self.data.lengths > 0]
        wide = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
        return float(wide.max(initial=0.0)), float(np.abs(scores).max(initial=0.0))


def row_bytes(X: Any) -> int:
    """Of a document's features, about."""
    if isinstance(X, np.ndarray):
        return int(np.dtype(X.dtype).itemsize * X.shape[1])
    return int(12 * X.nnz / max(X.shape[0], 1))


def labels_of(y: Any, rows: int) -> Floats:
    """One finite number a document."""
    given = np.asarray(y)
    if given.dtype.kind in "cmM":
        raise DataError(f"Unknown label type: labels must be real numbers, not {given.dtype}.")
    if given.dtype.kind in "iu" and given.size and int(np.abs(given.astype(object)).max()) > EXACT:
        raise DataError(f"labels beyond 2^53 cannot be told apart; the greatest is {given.max()}.")
    try:
        labels = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"Unknown label type: labels must be numbers ({error}).") from error
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        text = "A column-vector y was passed when a 1d array was expected"
        warnings.warn(text, DataConversionWarning, stacklevel=4)
        labels = labels.ravel()
    if labels.ndim != 1:
        raise DataError(f"y should be a 1d array, one label a document; got {labels.shape}.")
    if len(labels) != rows:
        raise DataError(f"there are {len(labels)} labels for {rows} documents.")
    if not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise DataError(f"the label of row {row} is {labels[row]} (NaN or inf); it must be finite.")
    return labels


def grouped(X: Any, y: Floats, qid: Any, names: tuple[str, ...] | None) -> Dataset:
    """Rows brought together by query; their former numbers are kept in `row_order`."""
    rows = X.shape[0]
    if qid is None:
        offsets = np.array([0, rows], np.int64)
        return Dataset(X, y, offsets, Ids.of(["1"]), None, names, "X")
    queries, offsets, order = group_rows(qid, rows)
    if order is not None:
        X, y = X[order], y[order]
    return Dataset(X, y, offsets, queries, None, names, "X", order)


def check_has_features(data: Dataset | Shards) -> None:
    """Refuse training data without features.

    The middle of the line is scikit-learn's own, which its checks of estimators look for.
    """
    if not data.n_features:
        raise DataError(
            f"{data.source} has no features to learn from: 0 feature(s) (shape=({data.n_docs}, 0)) "
            "while a minimum of 1 is required. Give every document at least one feature."
        )


def check_finite(data: Dataset) -> None:
    """Refuse missing and infinite features, and say where they are."""
    if isinstance(data.X, np.ndarray):
        if not data.X.size or zero_sum(data.X.reshape(-1)) == 0.0:
            return
        row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(data.X)))
        value = data.X[row, column]
    else:
        bad = ~np.isfinite(data.X.data)
        if not bad.any():
            return
        at = int(np.argmax(bad))
        row = int(np.searchsorted(data.X.indptr, at, side="right")) - 1
        column, value = int(data.X.indices[at]), data.X.data[at]
    query = data.queries[int(np.searchsorted(data.offsets, row, side="right")) - 1]
    name = data.feature_names[column] if data.feature_names else f"feature {column + 1}"
    place = row if data.row_order is None else int(data.row_order[row])
    raise DataError(
        f"{data.source} contains NaN or inf: {name} of row {place + 1} (query {query!r}) is "
        f"{value}. Fill or drop such values first."
    )


def warn_of_overlap(train: Dataset, valid: Dataset) -> None:
    """Warn where validation queries are in the training data: what they choose is overfitted."""
    alike = (len(train), train.n_docs, train.n_features) == (
        len(valid), valid.n_docs, valid.n_features,
    )  # fmt: skip
    if alike and train.sha256() == valid.sha256():
        warnings.warn(SAME, FirstpageWarning, stacklevel=5)
        return
    both = shared_queries(train, valid)
    if both:
        warnings.warn(
            f"{len(both)} of {len(valid)} validation queries are in the training data, too (same "
            f"id and same features; {valid.queries[both[0]]!r} is the first): iterations and "
            "parameters that they choose, and the score on them, are overfitted.",
            FirstpageWarning,
            stacklevel=5,
        )


def shared_queries(train: Dataset, valid: Dataset) -> list[int]:
    """Return the validation queries that training has under the same id with the same features."""
    partner = partners(valid.queries, train.queries)
    there = np.flatnonzero(partner >= 0)
    size = train.lengths[partner[there]]
    candidates = there[(valid.lengths[there] == size) & (size > 0)].tolist()
    return [q for q in candidates if _same_features(train[int(partner[q])], valid[q])]


def _same_features(one: Dataset, other: Dataset) -> bool:
    """Return whether two queries hold the same documents, dense ones in any order."""
    a: Any = one.X
    b: Any = other.X
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return a.shape == b.shape and not (a != b).sum()
    return np.array_equal(a, b) or np.array_equal(_sorted_rows(a), _sorted_rows(b))


def _sorted_rows(X: Any) -> Any:
    return X[np.lexsort(X.T)] if X.shape[1] else X


def varies(data: Dataset) -> bool:
    """Return whether any feature differs between two documents of a query."""
    for lo in range(0, data.n_docs - 1, CHUNK):
        rows: Any = data.X[lo : lo + CHUNK + 1]
        differs = rows[1:] != rows[:-1]
        changed = differs.any(axis=1) if isinstance(rows, np.ndarray) else np.diff(differs.indptr)
        rows_changed = lo + 1 + np.flatnonzero(changed)
        starts = data.offsets[np.searchsorted(data.offsets, rows_changed)]
        if (starts != rows_changed).any():  # not where a query begins
            return True
    return False


def with_weights(data: Dataset, given: Any) -> Training:
    """Weights of documents or of queries.

    One number a query weighs the query.  One a document does so too where all documents of a
    query have the same; where they differ, a document of weight 2 counts as two copies.
    """
    if given is None:
        return Training(data, None, None)
    weight = np.asarray(given, np.float64)
    if weight.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar; the shape is {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError("weights must be finite and not negative.")
    lengths = data.lengths
    if len(weight) == len(data) and len(weight) != data.n_docs:
        return Training(data, None, _some(weight))
    if len(weight) != data.n_docs:
        raise DataError(
            f"there are {len(weight)} weights; give one a document ({data.n_docs}) or one a "
            f"query ({len(data)})."
        )
    weight = data.arranged(weight)
    filled = lengths > 0
    starts = data.offsets[:-1][filled]
    low, high = np.zeros(len(data)), np.zeros(len(data))
    low[filled], high[filled] = (
        np.minimum.reduceat(weight, starts),
        np.maximum.reduceat(weight, starts),
    )
    even = low == high
    if even.all():
        return Training(data, None, _some(high))
    inside: Floats = np.where(np.repeat(even, lengths), 1.0, weight)
    return Training(data, inside, _some(np.where(even, high, 1.0)))


def without_empty(training: Training) -> Training:
    """Queries without documents dropped."""
    data, shares = training.data, training.query_weights
    filled = data.lengths > 0
    if filled.all():
        return training
    offsets = np.append(data.offsets[:-1][filled], data.n_docs)  # the rows stay as they are
    kept = replace(data, offsets=offsets, queries=data.queries[np.flatnonzero(filled)])
    return Training(kept, training.weights, None if shares is None else shares[filled])


def without_flat(training: Training) -> Training:
    """Queries that prefer nothing to anything weigh nothing, unless there are no others."""
    data = training.data
    heavy = np.ones(data.n_docs) if training.weights is None else training.weights
    starts = data.offsets[:-1]
    high = np.maximum.reduceat(np.where(heavy > 0, data.y, -np.inf), starts)
    low = np.minimum.reduceat(np.where(heavy > 0, data.y, np.inf), starts)
    telling = high > low
    if telling.all():
        return training
    shares = np.ones(len(data)) if training.query_weights is None else training.query_weights
    shares = np.where(telling, shares, 0.0)
    return replace(training, query_weights=shares) if shares.sum() > 0 else training


def heavy_queries(training: Training) -> Training:
    """Queries that weigh nothing left out."""
    shares = training.query_weights
    if shares is None or (shares > 0).all():
        return training
    kept = shares > 0
    rows = np.repeat(kept, training.data.lengths)
    weights = None if training.weights is None else training.weights[rows]
    return Training(training.data[kept], weights, shares[kept])


def with_copies(training: Training, who: str) -> Training:
    """Documents of weight 2 written down twice, those of weight 0 not at all.

    For rankers that cannot weigh a document; queries keep their weights.
    """
    weights, data = training.weights, training.data
    if weights is None:
        return training
    if (weights != np.round(weights)).any():
        some = weights[np.argmax(weights != np.round(weights))]
        raise DataError(
            f"{who} cannot weigh a document but by copying it: weights that differ inside a query "
            f"must be whole numbers, and one is {some:g}. Weights of queries may be any."
        )
    if weights.sum() > MANY_COPIES * len(weights):
        raise DataError(
            f"{who} weighs documents by copying them, and {weights.sum():.3g} copies of "
            f"{len(weights)} documents are too many. Scale the weights down."
        )
    copies = weights.astype(np.int64)
    rows = np.repeat(np.arange(len(copies)), copies)
    reached = offsets_from_lengths(copies)
    copied = replace(
        data,
        X=data.X[rows],
        y=data.y[rows],
        offsets=reached[data.offsets],
        docids=None if data.docids is None else data.docids[rows],
        row_order=None,
    )
    return Training(copied, None, training.query_weights)


def _some(weights: Floats) -> Floats:
    if not weights.sum() > 0:
        raise DataError("all weights are zero; there is nothing to learn from.")
    return weights


def restored(values: Floats, order: Ints | None) -> Floats:
    """Values of regrouped rows in the order in which the rows were given."""
    if order is None:
        return values
    out = np.empty_like(values)
    out[order] = values
    return out
