"""Write LETOR text: checks, and the arrays that the kernel formats block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from firstpage.core import DataError, Ints, Words
from firstpage.core.kernels import formatting
from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids, encode_text

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

BLOCK_BYTES = 1 << 20  # of text that is formatted at once, at most (or one line)
BEFORE_QUERY = np.frombuffer(b" qid:", np.uint8)
BEFORE_ID = np.frombuffer(b" #docid = ", np.uint8)


def check_writable(data: Dataset) -> None:
    """Refuse labels and identifiers that would not be read back unchanged."""
    not_finite = np.flatnonzero(~np.isfinite(data.y))
    if len(not_finite) == len(data.y) > 0:
        raise DataError(
            "the data has no labels, which LETOR text needs; join judgments, or write .parquet."
        )
    if len(not_finite):
        query = int(np.searchsorted(data.offsets, not_finite[0], "right")) - 1
        raise DataError(
            f"a label of query {data.queries[query]!r} is missing or infinite; it cannot be "
            "written."
        )
    names, ids = data.queries, data.docids
    suspects = np.flatnonzero(names.starts == names.ends)[:1].tolist()
    suspects.append(formatting.find_separator(names.data, names.starts, names.ends, ord("#")))
    for query in suspects:
        if query >= 0:
            raise _not_writable(names[query], "query id", "a blank or #")
    if ids is not None:  # an empty one is left out
        row = formatting.find_separator(ids.data, ids.starts, ids.ends, ord("\n"))
        if row >= 0:
            raise _not_writable(ids[row], "document id", "a blank")


def _not_writable(name: str, kind: str, separator: str) -> DataError:
    reason = f"it has {separator}" if name else "it is empty"
    return DataError(
        f"the {kind} {name!r} cannot be written to a LETOR file ({reason}); write .parquet or "
        ".npz instead."
    )


def header_text(names: Sequence[str]) -> bytes:
    """Return lines `#1: name` that name the features, as Terrier writes them."""
    for name in names:
        if name != name.strip() or not name or "\n" in name or "\r" in name:
            raise _not_writable(name, "feature name", "a line end, or a blank at its start or end")
    return encode_text("".join(f"#{number}: {name}\n" for number, name in enumerate(names, 1)))


def letor_text(data: Dataset) -> Iterator[memoryview]:
    """Yield the lines of a dataset, UTF-8 encoded, in blocks of about `BLOCK_BYTES`."""
    distinct, numbers = np.unique(data.y, return_inverse=True)
    labels = Ids.from_values(map(_label_text, distinct.tolist()))[numbers]
    queries = data.queries.repeat(data.lengths)
    ids = data.docids
    if ids is None:
        ids = Ids.from_packed(np.empty(0, np.uint8), np.zeros(data.n_docs, np.int64))
    # The first line of a query names the last feature, which preserves the number of features.
    is_first = np.zeros(data.n_docs, np.uint8)
    is_first[data.offsets[:-1]] = 1
    sizes = _max_line_bytes(data, (labels, queries, ids))
    ends = np.cumsum(sizes)
    start = 0
    while start < data.n_docs:
        written = int(ends[start] - sizes[start])
        stop = max(start + 1, int(np.searchsorted(ends, written + BLOCK_BYTES, "right")))
        rows = slice(start, stop)
        out = np.empty(int(ends[stop - 1]) - written, np.uint8)
        size = formatting.format_letor(
            **_feature_arrays(data.X, start, stop),
            powers=formatting.powers_of_ten(),
            is_first=is_first[rows],
            width=data.n_features,
            label_text=labels.data,
            label_starts=labels.starts[rows],
            label_ends=labels.ends[rows],
            query_text=queries.data,
            query_starts=queries.starts[rows],
            query_ends=queries.ends[rows],
            id_text=ids.data,
            id_starts=ids.starts[rows],
            id_ends=ids.ends[rows],
            before_query=BEFORE_QUERY,
            before_id=BEFORE_ID,
            out=out,
        )
        yield out[:size].data
        start = stop


def _max_line_bytes(data: Dataset, texts: tuple[Ids, ...]) -> Ints:
    """Return an upper bound of the length of each line."""
    if isinstance(data.X, np.ndarray):
        features = np.full(data.n_docs, data.n_features)
    else:
        features = np.diff(data.X.indptr).astype(np.int64)
    feature_bytes = formatting.MAX_NUMBER_BYTES + len(f" {data.n_features}:")
    sizes = (features + 1) * feature_bytes + len(BEFORE_QUERY) + len(BEFORE_ID) + len("\n")
    return sizes + sum(text.ends - text.starts for text in texts)


class _FeatureArrays(TypedDict):
    """Features as `format_letor` takes them.

    They are the bits of the values, the numbers of bits of significand and exponent, the columns,
    and per row where its columns and its values start.
    """

    words: Words
    significand_bits: int
    exponent_bits: int
    columns: Ints
    column_starts: Ints
    row_starts: Ints


def _feature_arrays(X: Features, start: int, stop: int) -> _FeatureArrays:
    """Return the features of rows start:stop."""
    if isinstance(X, np.ndarray):
        width = X.shape[1]
        values = np.ascontiguousarray(X[start:stop]).reshape(-1)
        columns, column_starts = np.arange(width), np.zeros(stop - start, np.int64)
        row_starts = np.arange(stop - start + 1) * width
    else:
        lo, hi = int(X.indptr[start]), int(X.indptr[stop])
        values, columns = X.data[lo:hi], X.indices[lo:hi].astype(np.int64)
        row_starts = X.indptr[start : stop + 1].astype(np.int64) - lo
        column_starts = row_starts[:-1]
    if values.dtype == np.float32:
        words, bits = values.view(np.uint32).astype(np.uint64), (23, 8)
    else:
        words, bits = np.ascontiguousarray(values, np.float64).view(np.uint64), (52, 11)
    return {
        "words": words,
        "significand_bits": bits[0],
        "exponent_bits": bits[1],
        "columns": columns,
        "column_starts": column_starts,
        "row_starts": row_starts,
    }


def _label_text(label: float) -> str:
    return str(int(label)) if label.is_integer() else repr(label)
