"""Checks that features and scores are finite, of the data to rank and of probes."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import numpy as np

from firstpage.core import Array, DataError, Floats
from firstpage.core.kernels import zero_if_finite
from firstpage.data import Dataset, Transform
from firstpage.learning.scorers.scorer import Scoring

LARGE = 1e18  # absolute value of a feature; only larger ones excuse a score that overflows
PROBES = 50  # documents, as one query
SCALES = 3.0  # between a probed feature and the mean or minimum by which the model scales
EXTREME = 0.2  # fraction of the probed values that are not 0
IMPUTE = (
    "Trees accept missing values (scorer='trees'); other rankers fill them: impute='median', "
    "'mean', 'zero' or a number (--set impute=median)."
)
REMEDY = "train again, with normalize='standard' or smaller features"


def check_finite(data: Dataset, missing: bool = False) -> None:
    """Raise an error for infinite features, and unless `missing` for NaN; it names the first."""
    if isinstance(data.X, np.ndarray):
        if not data.X.size or zero_if_finite(data.X.reshape(-1)) == 0.0:
            return
        bad = np.isinf(data.X) if missing else ~np.isfinite(data.X)
        if not bad.any():
            return
        row, column = (int(i[0]) for i in np.nonzero(bad))
        value = data.X[row, column]
    else:
        bad = np.isinf(data.X.data) if missing else ~np.isfinite(data.X.data)
        if not bad.any():
            return
        entry = int(np.argmax(bad))
        row = int(np.searchsorted(data.X.indptr, entry, side="right")) - 1
        column, value = int(data.X.indices[entry]), data.X.data[entry]
    query = data.queries[int(np.searchsorted(data.offsets, row, side="right")) - 1]
    name = data.feature_names[column] if data.feature_names else f"feature {column + 1}"
    original = row if data.row_order is None else int(data.row_order[row])
    raise DataError(
        f"{data.source} contains NaN or inf: {name} of row {original + 1} (query {query!r}) is "
        f"{value}. {IMPUTE if np.isnan(value) else 'Fill or drop such values first.'}"
    )


def probe_features(
    transform: Transform | None, n_features: int, rows: int, categories: Collection[int] = ()
) -> Floats:
    """Return features for which a usable model has finite scores.

    Most values are 0, some are `LARGE`, and so is the entire last row.  For a model that scales by
    statistics of its training data, they are around these statistics instead.  Columns with
    categories are 0, the first category.
    """
    rng = np.random.default_rng(0)
    probability = (EXTREME / 2, 1 - EXTREME, EXTREME / 2)
    signs = rng.choice([-1.0, 0.0, 1.0], (rows, n_features), p=probability)
    signs[-1:] = 1.0
    X: Floats = LARGE * signs
    if transform is not None and transform.shift is not None and transform.scale is not None:
        with np.errstate(over="ignore"):
            X = np.nan_to_num(transform.shift + SCALES * signs * transform.scale)
    X[:, list(categories)] = 0.0
    return X


def check_leaves(scoring: Scoring, source: str) -> None:
    """Refuse trees whose leaves, or the sums of them, are not finite."""
    if "trees" in scoring.export_kinds:
        with suppress(DataError):  # trees that only their library scores
            forest = scoring.forest(source)
            if not np.isfinite(forest.largest_score):
                raise unusable(scoring, source)


def check_probes(
    scoring: Scoring, transform: Transform | None, source: str, categories: Collection[int] = ()
) -> None:
    """Refuse a model whose scores for features of ordinary size are not finite."""
    check_leaves(scoring, source)
    X = probe_features(transform, scoring.n_features, PROBES, categories)
    offsets = np.array([0, PROBES])
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = X if transform is None else transform.transform(X, offsets)
        scores = scoring.predict(scaled, None, offsets)
    if not np.isfinite(scores).all():
        raise unusable(scoring, source)


def unusable(scoring: Scoring, source: str, where: str = "") -> DataError:
    """Return the error of a model whose scores overflow for features of ordinary size."""
    reason = "its weights, leaves or scales are too large"
    if scoring.coefficients is not None:
        largest = float(np.abs(scoring.coefficients[0]).max(initial=0.0))
        reason = f"its largest weight is {largest:.3g}"
    return DataError(f"{source}: computes scores that are not finite{where}: {reason}; {REMEDY}.")


def largest_feature(row: Array) -> tuple[int, float]:
    """Return the column and the value of the feature with the largest absolute value."""
    column = int(np.argmax(np.abs(np.nan_to_num(row))))
    return column, float(row[column])


def check_scores(scores: Floats, data: Dataset, model: str) -> None:
    """Raise an error for a score that is not finite; it names the row, and what is too large."""
    if zero_if_finite(scores) == 0.0:
        return
    row = int(np.argmin(np.isfinite(scores)))
    features = data.X[[row]]
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    column, value = largest_feature(dense[0])
    query = data.queries[int(np.searchsorted(data.offsets, row, side="right")) - 1]
    number = row + 1 if data.row_order is None else int(data.row_order[row]) + 1
    reason = f"the weights, leaves or scales of the model are too large; {REMEDY}"
    if abs(value) > LARGE:
        name = data.feature_names[column] if data.feature_names else f"feature {column + 1}"
        reason = f"{name} is {value:.3g}; divide such features before training"
    raise DataError(
        f"{data.source}: the score of row {number} (query {query!r}) by {model} is {scores[row]}: "
        f"{reason}."
    )
