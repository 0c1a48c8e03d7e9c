"""Concatenate datasets and feature arrays by rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from firstpage.core import DataError, warn
from firstpage.data.categories import merged_categories, recoded
from firstpage.data.dataset import INTERLEAVED, Dataset
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids


def concat_datasets(blocks: Sequence[Dataset]) -> Dataset:
    """Return datasets concatenated by rows; rows of a query that occurs in several are regrouped.

    Narrower datasets without feature names are padded with zero columns on the right, since LETOR
    text omits zeros.
    """
    if len(blocks) == 1:
        return blocks[0]
    for block in blocks:
        check_equal_names(blocks[0], block)
    categories = merged_categories(blocks)
    blocks = [recoded(block, categories)[0] for block in blocks]
    first = blocks[0]
    X = concat_features([pad_features(b.X, max(c.n_features for c in blocks)) for b in blocks])
    y = np.concatenate([b.y for b in blocks])
    queries = reduce(Ids.concatenate, [b.queries.compact() for b in blocks])
    lengths = np.concatenate([b.lengths for b in blocks])
    docids = None
    if any(b.docids is not None for b in blocks):
        columns = [
            Ids.from_values([""] * b.n_docs) if b.docids is None else b.docids for b in blocks
        ]
        docids = reduce(Ids.concatenate, [column.compact() for column in columns])
    order = None
    _, first_index, inverse = np.unique(queries.hashes, return_index=True, return_inverse=True)
    if len(first_index) < len(queries):
        rank = np.empty(len(first_index), np.int64)
        rank[np.argsort(first_index)] = np.arange(len(first_index))
        number = np.repeat(rank[inverse], lengths)
        queries = queries[np.sort(first_index)]
        lengths = np.bincount(number, minlength=len(first_index))
        if (np.diff(number) < 0).any():
            warn(INTERLEAVED.format(source=first.source))
            order = np.argsort(number, kind="stable")
            X, y = X[order], y[order]
            docids = None if docids is None else docids[order]
    offsets = offsets_from_lengths(lengths)
    recipe = first.recipe if all(b.recipe == first.recipe for b in blocks) else None
    if any(b.query_weights is not None or b.positions is not None for b in blocks):
        raise DataError(
            f"{first.source}: datasets with weights of queries or positions of documents cannot be "
            "concatenated."
        )
    zero_based = any(b.zero_based for b in blocks)
    joined = {"X": X, "y": y, "offsets": offsets, "queries": queries, "docids": docids}
    return replace(first, **joined, row_order=order, recipe=recipe, zero_based=zero_based)


def check_equal_names(first: Dataset, other: Dataset) -> None:
    """Raise an error if the features of two datasets have different names."""
    if other.feature_names != first.feature_names:
        raise DataError(
            f"{other.source}: its features are not named as those of {first.source}; give all "
            "data the same columns in the same order."
        )


def concat_features(blocks: Sequence[Any]) -> Any:
    """Return feature arrays of equal width concatenated by rows, dense if all are dense."""
    if all(isinstance(X, np.ndarray) for X in blocks):
        return np.concatenate(blocks)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(X) for X in blocks], format="csr"))


def pad_features(X: Any, width: int) -> Any:
    """Return features with columns of zeros appended up to `width`."""
    if X.shape[1] == width:
        return X
    if isinstance(X, np.ndarray):
        out = np.zeros((X.shape[0], width), X.dtype)
        out[:, : X.shape[1]] = X
        return out
    from scipy.sparse import csr_array

    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
