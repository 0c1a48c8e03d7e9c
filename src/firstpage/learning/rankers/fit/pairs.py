"""The pairs of a fit: votes by ids or by rows, joined to training and validation data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firstpage.core import DataError, Floats, Ints, warn
from firstpage.data import Dataset
from firstpage.data.preferences import MAX_WEIGHT, PreferencePairs, RowPairs

SHAPE = (
    "pairs must be PreferencePairs (fp.read_pairs), or an array with a row per vote: the row of X "
    "that is preferred, the other row, and optionally a weight"
)


def join_pairs(
    pairs: object, training: Dataset, valid: Dataset | None
) -> tuple[RowPairs, RowPairs | None]:
    """Return the votes on documents of the training data and of the validation data.

    Votes by ids that neither has are left out with a warning.  Votes by rows are on the training
    data.  It is an error if there is no vote on either of them.
    """
    if not isinstance(pairs, PreferencePairs):
        rows = _row_pairs(pairs, training)
        if valid is not None:
            raise DataError(
                "pairs of rows are those of X, so validation data need pairs by ids: "
                "PreferencePairs and Datasets with document ids."
            )
        return rows, None
    joined, matched = pairs.to_rows(training)
    names, of_valid = [training.source], None
    either = matched
    if valid is not None:
        of_valid, matched_valid = pairs.to_rows(valid)
        either = matched | matched_valid
        names.append(valid.source)
    note = pairs.unmatched(either, names)
    if note is not None:
        warn(note)
    for found, data in ((joined, training), (of_valid, valid)):
        if found is not None and data is not None and not len(found):
            raise DataError(
                f"{pairs.source}: no pair of positive weight is of documents of {data.source}."
            )
    return joined, of_valid


def _row_pairs(pairs: object, data: Dataset) -> RowPairs:
    """Return votes on rows, given as an array, as pairs of grouped rows."""
    try:
        array = np.asarray(pairs, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{SHAPE}.") from None
    if array.size == 0:
        raise DataError("pairs is empty; there is nothing to learn from.")
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise DataError(f"{SHAPE}; the shape is {array.shape}.")
    rows = array[:, :2]
    bad = np.flatnonzero(
        (rows != np.floor(rows)).any(1) | (rows < 0).any(1) | (rows >= data.n_docs).any(1)
    )
    if len(bad):
        raise DataError(
            f"pair {bad[0]} is of the rows {_numbers(rows[bad[0]])}; X has the rows 0 to "
            f"{data.n_docs - 1}."
        )
    weight: Floats = array[:, 2] if array.shape[1] == 3 else np.ones(len(array))
    bad = np.flatnonzero(~((weight >= 0) & (weight <= MAX_WEIGHT)))
    if len(bad):
        raise DataError(
            f"the weight of pair {bad[0]} is {weight[bad[0]]:g}; it must be a number from 0 to "
            f"{MAX_WEIGHT:g}."
        )
    first, second = (_grouped(data, rows[:, side].astype(np.int64)) for side in (0, 1))
    same = np.flatnonzero(first == second)
    if len(same):
        raise DataError(f"pair {same[0]} compares row {int(rows[same[0], 0])} with itself.")
    queries = [np.searchsorted(data.offsets, side, side="right") for side in (first, second)]
    crossing = np.flatnonzero(queries[0] != queries[1])
    if len(crossing):
        raise DataError(
            f"pair {crossing[0]} compares the rows {_numbers(rows[crossing[0]])} of two queries."
        )
    joined = RowPairs.from_votes(data.offsets, first, second, weight, np.zeros(len(weight), bool))
    if not len(joined):
        raise DataError("all pairs have weight 0; there is nothing to learn from.")
    return joined


def _grouped(data: Dataset, rows: Ints) -> Ints:
    """Return the numbers of original rows after grouping by query."""
    if data.row_order is None:
        return rows
    inverse = np.empty(data.n_docs, np.int64)
    inverse[data.row_order] = np.arange(data.n_docs)
    return inverse[rows]


def _numbers(rows: Sequence[float] | Floats) -> str:
    return " and ".join(f"{row:g}" for row in rows)
