"""LETOR text, also known as SVMlight with query ids: `2 qid:10 1:0.03 5:0.2 # docid = GX001`.

The reader streams: a chunk of text becomes a chunk of values, which goes straight into the
final array, so that reading needs little more memory than its result.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.data.dataset import INTERLEAVED, Dataset
from firstpage.data.formats.letor_reader import LetorReader
from firstpage.data.formats.letor_writer import write_letor
from firstpage.data.formats.remarks import remarks_of, warn_of
from firstpage.data.ids import Ids
from firstpage.data.io.cache import Entry, Where
from firstpage.errors import DataError, FirstpageWarning
from firstpage.types import Array, Progress

__all__ = ["read_letor", "write_letor"]

CACHED_FROM = 1 << 20  # smaller files parse faster than their cache entry is worth


def read_letor(
    path: str | os.PathLike[str],
    *,
    dtype: Literal["float32", "float64"] | type[np.floating] = "float32",
    sparse: bool | None = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
    cache: Where = True,
    progress: Progress | None = None,
) -> Dataset:
    """Read a LETOR file: plain, `.gz`, `.xz` or `.zst`.

    A feature that a line does not name is 0; `nan` and LETOR's `NULL` are NaN.  `sparse` None
    chooses CSR where a dense array would be mostly zeros.  Features count from 1, or from 0
    where `zero_based` says so or a feature 0 occurs.  Large files are cached (`cache`, see
    `firstpage.data.io.cache`): the next time they open at once.
    """
    file = Path(path)
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise DataError(f"dtype must be float32 or float64, and is {dtype!r}.") from None
    if n_features is not None and not isinstance(n_features, (int, np.integer)):
        raise DataError(f"n_features must be a whole number, and is {n_features!r}.")
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise DataError(f"dtype must be float32 or float64, and is {kind}.")
    options = {
        "dtype": kind.name,
        "sparse": sparse,
        "n_features": n_features,
        "zero_based": zero_based,
    }
    entry = None
    if cache is not False and file.is_file() and file.stat().st_size >= CACHED_FROM:
        entry = Entry(file, cache, options)
        if (arrays := entry.load()) is not None:
            warn_of(str(file), json.loads(arrays["remarks"].tobytes()))
            return from_arrays(arrays, str(file))
    reader = LetorReader(file, kind, sparse, n_features, zero_based)
    dataset = reader.read(progress)
    remarks = remarks_of(dataset)
    warn_of(str(file), remarks)
    if entry is not None:
        held = json.dumps([*reader.remarks, *remarks]).encode()
        entry.save(to_arrays(dataset) | {"remarks": np.frombuffer(held, np.uint8)})
    return dataset


# --- the cache's view of a dataset


def to_arrays(data: Dataset) -> dict[str, Array]:
    queries = data.queries.compact()
    arrays: dict[str, Array] = {"y": data.y, "offsets": data.offsets}
    arrays |= {"queries": queries.data, "query_ends": queries.ends}
    if data.docids is not None:
        ids = data.docids
        arrays |= {"ids": ids.data, "id_starts": ids.starts, "id_ends": ids.ends}
    if data.row_order is not None:
        arrays["row_order"] = data.row_order
    if isinstance(data.X, np.ndarray):
        return arrays | {"X": data.X}
    shape = np.array(data.X.shape)
    parts: dict[str, Any] = {
        "data": data.X.data,
        "indices": data.X.indices,
        "indptr": data.X.indptr,
    }
    return arrays | parts | {"shape": shape}


def from_arrays(arrays: dict[str, Array], source: str) -> Dataset:
    if "X" in arrays:
        X: Any = arrays["X"]
    else:
        from scipy.sparse import csr_array

        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = csr_array(parts, shape=tuple(arrays["shape"].tolist()), copy=False)
    queries = Ids.packed(arrays["queries"], arrays["query_ends"])
    ids = None
    if "ids" in arrays:  # all mapped: nothing here may take longer for more documents
        ids = Ids(arrays["ids"], arrays["id_starts"], arrays["id_ends"])
    order = arrays.get("row_order")
    if order is not None:
        warnings.warn(INTERLEAVED.format(what=source), FirstpageWarning, stacklevel=3)
    return Dataset(X, arrays["y"], arrays["offsets"], queries, ids, None, source, order)
