"""Several datasets as one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from firstpage.data.dataset import INTERLEAVED, Dataset
from firstpage.data.ids import Ids
from firstpage.errors import FirstpageWarning


def stacked(blocks: Sequence[Dataset]) -> Dataset:
    """One below the other; rows of a query that is in several are brought together.

    Narrower ones are filled with zeros on the right, as text leaves those out.
    """
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    X = stacked_rows([widened(b.X, max(c.n_features for c in blocks)) for b in blocks])
    y = np.concatenate([b.y for b in blocks])
    queries = reduce(Ids.chained, [b.queries.compact() for b in blocks])
    lengths = np.concatenate([b.lengths for b in blocks])
    docids = None
    if all(b.docids is not None for b in blocks):
        docids = reduce(Ids.chained, [b.docids.compact() for b in blocks if b.docids is not None])
    _, where, inverse = np.unique(queries.hashes, return_index=True, return_inverse=True)
    if len(where) < len(queries):
        place = np.empty(len(where), np.int64)
        place[np.argsort(where)] = np.arange(len(where))
        number = np.repeat(place[inverse], lengths)
        queries, lengths = queries[np.sort(where)], np.bincount(number, minlength=len(where))
        if (np.diff(number) < 0).any():
            warnings.warn(INTERLEAVED.format(what=first.source), FirstpageWarning, stacklevel=3)
            order = np.argsort(number, kind="stable")
            X, y = X[order], y[order]
            docids = None if docids is None else docids[order]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Dataset(X, y, offsets, queries, docids, first.feature_names, first.source)


def stacked_rows(parts: Sequence[Any]) -> Any:
    """Feature arrays of one width, dense where all are."""
    if all(isinstance(X, np.ndarray) for X in parts):
        return np.concatenate(parts)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(X) for X in parts], format="csr"))


def widened(X: Any, width: int) -> Any:
    """With columns of zeros on the right."""
    if X.shape[1] == width:
        return X
    if isinstance(X, np.ndarray):
        out = np.zeros((X.shape[0], width), X.dtype)
        out[:, : X.shape[1]] = X
        return out
    from scipy.sparse import csr_array

    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
