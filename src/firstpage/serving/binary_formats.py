"""Request bodies in NumPy's format (never pickles) and in Arrow's stream format.

NumPy: one matrix, a row per candidate.  Arrow: a column per feature, or one column `features` of
fixed-size lists; there may be a column `id`, and a batch has a column `query`.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from firstpage.core import Array, Floats, Ints
from firstpage.data import offsets_from_lengths
from firstpage.serving.limits import Limits, Refusal
from firstpage.serving.rank_request import RankRequest, RawRequest, check_ids, short, unknown_notes

NPY, ARROW = "application/x-npy", "application/vnd.apache.arrow.stream"
MAX_HEADER = 4096  # bytes; the header of a matrix usually has 120
MAGIC = b"\x93NUMPY"
LENGTH, COMPRESSION = 0, 3  # fields of a record batch in Arrow's Message.fbs


def has_arrow() -> bool:
    return find_spec("pyarrow") is not None


def read_npy(raw: RawRequest) -> RankRequest:
    """Return one query, or the queries whose numbers of rows ?lengths=100,50 gives."""
    if raw.categories:
        name = raw.names[next(iter(raw.categories))]
        raise Refusal(f"the model reads categories ({name!r}); send JSON or Arrow.")
    X = _npy_matrix(raw.body, len(raw.names))
    if not raw.batch:
        raw.limits.check_candidates(len(X), "the matrix")
        return RankRequest(X, offsets_from_lengths([len(X)]), **raw.options)
    counts = raw.params.get("lengths", "").split(",")
    if not all(count.isascii() and count.isdigit() and len(count) < 10 for count in counts):
        raise Refusal(
            "a batch in this format needs the number of rows of each query: add ?lengths=100,50 or "
            "the header X-Lengths."
        )
    lengths = [int(count) for count in counts]
    raw.limits.check_queries(len(lengths))
    for number, length in enumerate(lengths):
        raw.limits.check_candidates(length, f"query {number}")
    if sum(lengths) != len(X):
        raise Refusal(f"the lengths add up to {sum(lengths)}, but the matrix has {len(X)} rows.")
    return RankRequest(X, offsets_from_lengths(lengths), **raw.options)


def write_npy(values: Array) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, values, version=(1, 0), allow_pickle=False)
    return out.getvalue()


def _npy_matrix(body: bytes, width: int) -> Array:
    """Return a view of the body as a matrix; its header and length are checked first."""
    if body[:6] != MAGIC or len(body) < 12:
        raise Refusal("the body is not a .npy file (numpy.save writes one).")
    is_long = body[6] != 1
    size = int.from_bytes(body[8 : 12 if is_long else 10], "little")
    start = (12 if is_long else 10) + size
    if size > MAX_HEADER or start > len(body):
        raise Refusal(f"the header of the .npy body is invalid, or longer than {MAX_HEADER} bytes.")
    shape, is_fortran, dtype = _npy_header(body[:start])
    if dtype not in (np.dtype("<f4"), np.dtype("<f8")):
        raise Refusal(
            f"the matrix is of type {str(dtype)[:60]}; send float32 or float64 (little-endian)."
        )
    if len(shape) != 2:
        raise Refusal(
            f"the array has the shape {short(shape)}; send a matrix with a row per candidate."
        )
    if shape[1] != width:
        raise Refusal(f"the matrix has {short(shape[1])} features, but the model has {width}.")
    if shape[0] * width * dtype.itemsize != len(body) - start:
        raise Refusal(
            f"the header says {short(shape[0])} x {width}, but the body has another length."
        )
    values: Array = np.frombuffer(body, dtype, offset=start)
    if is_fortran:
        return np.ascontiguousarray(values.reshape(shape[::-1]).T)
    return values.reshape(shape)


@lru_cache(256)
def _npy_header(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return (shape, Fortran order, type); cached, as clients repeat the same few headers."""
    stream = io.BytesIO(head)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version} is not supported")
        read = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
        shape, is_fortran, dtype = getattr(np.lib.format, read)(stream, max_header_size=MAX_HEADER)
        if any(type(size) is not int or size < 0 for size in shape):
            raise ValueError("the shape must be non-negative integers")
        return shape, is_fortran, dtype
    except Exception as error:  # a forged header may raise anything in the parser
        line = (str(error).splitlines() or [""])[0][:120]
        raise Refusal(f"the header of the .npy body cannot be read ({line}).") from None


def read_arrow(raw: RawRequest) -> RankRequest:
    """Return one query, or the queries of the column `query`."""
    table = _arrow_table(raw.body, raw.limits)
    ids, queries = _labels(table, "id"), None
    lengths = [table.num_rows]
    if raw.batch:
        labels = _labels(table, "query")
        if labels is None:
            raise Refusal("a batch in Arrow needs a column 'query'.")
        queries, lengths = _query_lengths(labels)
        raw.limits.check_queries(len(queries))
    offsets = offsets_from_lengths(lengths)
    for number, length in enumerate(lengths):
        where = "the table" if queries is None else f"query {short(queries[number])}"
        raw.limits.check_candidates(length, where)
        if ids is not None:
            check_ids(ids[offsets[number] : offsets[number + 1]], where)
    unknown: dict[int, int] = {}
    X = _arrow_matrix(table, raw, unknown)
    notes = unknown_notes(unknown, raw.names)
    return RankRequest(X, offsets, ids, queries, **raw.options, notes=notes)


def write_arrow(request: RankRequest, scores: Floats, ranks: Ints) -> bytes:
    """Return the rows in their order: query and id if sent, score, and rank (the best is 1).

    With `top`, these are only the best rows of each query.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {}
    if request.queries is not None:
        lengths = np.diff(request.offsets).tolist()
        pairs = zip(request.queries, lengths, strict=True)
        columns["query"] = _column([query for query, length in pairs for _ in range(length)])
    if request.ids is not None:
        columns["id"] = _column(request.ids)
    table = pa.table({**columns, "score": scores, "rank": ranks})
    if request.top is not None:
        table = table.filter(ranks <= request.top)
    if request.notes:
        table = table.replace_schema_metadata({"notes": "; ".join(request.notes)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def _column(values: Sequence[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except OverflowError:  # integers become int64 unless a type is set
        return pa.array(values, pa.uint64())


def _arrow_table(body: bytes, limits: Limits) -> Any:
    """Return the table, after a check that no message expands to more than was sent."""
    import pyarrow as pa

    max_rows = limits.candidates * limits.queries
    try:
        rows = 0
        for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(body)):
            if message.type == "dictionary":
                raise Refusal("dictionary columns are not supported; send plain columns.")
            if message.type == "record batch":
                rows += _batch_rows(bytes(message.metadata))
        if rows > max_rows:
            raise Refusal(
                f"the table has {rows:,} rows; the limit of this server is {max_rows:,}.", 413
            )
        table = pa.ipc.open_stream(pa.BufferReader(body)).read_all()
        table.validate(full=True)
        if len(set(table.column_names)) < table.num_columns:
            raise Refusal("the table has two columns with the same name.")
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        line = (str(error).splitlines() or [""])[0][:120]
        raise Refusal(f"the body is not an Arrow stream ({line}).") from None
    return table


def _batch_rows(metadata: bytes) -> int:
    """Return the number of rows of a record batch from its header; refuse compressed ones."""
    message = struct.unpack_from("<I", metadata)[0]
    header = _flatbuffer_field(metadata, message, 2)
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    if _flatbuffer_field(metadata, batch, COMPRESSION):
        raise Refusal("compressed Arrow streams are not supported; send them uncompressed.")
    position = _flatbuffer_field(metadata, batch, LENGTH)
    rows = int(struct.unpack_from("<q", metadata, position)[0]) if position else 0
    if rows < 0:
        raise ValueError("a batch has a negative number of rows")
    return rows


def _flatbuffer_field(data: bytes, table: int, number: int) -> int:
    """Return the position of a field of a flatbuffer table; 0 where it is absent."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if not 0 <= vtable < len(data):
        raise IndexError("a message is invalid")
    slot = 4 + 2 * number
    if slot >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    offset = int(struct.unpack_from("<H", data, vtable + slot)[0])
    return table + offset if offset else 0


def _labels(table: Any, name: str) -> list[Any] | None:
    """Return a column of strings or integers as a list; None if the table lacks it."""
    import pyarrow.types as arrow_types

    if name not in table.column_names:
        return None
    column = table.column(name)
    is_string = arrow_types.is_string(column.type) or arrow_types.is_large_string(column.type)
    if not (is_string or arrow_types.is_integer(column.type)) or column.null_count:
        raise Refusal(f"the column {name!r} must contain strings or integers, and no nulls.")
    labels: list[Any] = column.to_pylist()
    return labels


def _query_lengths(labels: list[Any]) -> tuple[list[Any], list[int]]:
    """Return the queries and their numbers of rows, which must be adjacent per query."""
    queries: list[Any] = []
    lengths: list[int] = []
    for label in labels:
        if queries and queries[-1] == label:
            lengths[-1] += 1
        else:
            queries.append(label)
            lengths.append(1)
    if len(set(queries)) < len(queries):
        raise Refusal("the rows of a query must be adjacent; sort by 'query'.")
    return queries, lengths


def _arrow_matrix(table: Any, raw: RawRequest, unknown: dict[int, int]) -> Array:
    """Return the features in the order of the model; count unknown categories by column."""
    import pyarrow.types as arrow_types

    names = raw.names
    columns = set(table.column_names)
    if "features" in columns and "features" not in names:
        if raw.categories:
            raise Refusal("the model reads categories; send a column per feature.")
        column = table.column("features").combine_chunks()
        if not arrow_types.is_fixed_size_list(column.type) or column.type.list_size != len(names):
            raise Refusal(
                f"the column 'features' must contain fixed-size lists of {len(names)} numbers."
            )
        if column.null_count:
            raise Refusal("the column 'features' has nulls.")
        return _numbers(column.flatten(), "features", raw.missing).reshape(-1, len(names))
    missing = [name for name in names if name not in columns]
    if missing:
        raise Refusal(f"the table lacks the feature {short(missing[0])}.")
    arrays = []
    for number, name in enumerate(names):
        if number in raw.categories:
            codes = _codes(table, name, raw.categories[number])
            nulls = table.column(name).null_count
            if codes is None:
                raise Refusal(f"the column {short(name)} must contain strings or integers.")
            unknown[number] = int(np.isnan(codes).sum()) - nulls
            arrays.append(codes)
        else:
            arrays.append(_numbers(table.column(name), name, raw.missing))
    return np.ascontiguousarray(np.column_stack(arrays))


def _codes(table: Any, name: str, known: Mapping[str, float]) -> Array | None:
    """Return the codes of a column of categories; None for a column of another type."""
    import pyarrow.types as arrow_types

    kind = table.column(name).type
    if not (
        arrow_types.is_string(kind)
        or arrow_types.is_large_string(kind)
        or arrow_types.is_integer(kind)
    ):
        return None
    values = table.column(name).to_pylist()
    return np.array([np.nan if v is None else known.get(str(v), np.nan) for v in values])


def _numbers(column: Any, name: str, missing: bool) -> Array:
    import pyarrow.types as arrow_types

    kind, refused = column.type, column.null_count and not missing
    if refused or not (arrow_types.is_floating(kind) or arrow_types.is_integer(kind)):
        nulls = "" if missing else ", and no nulls"
        raise Refusal(f"the column {short(name)} must contain numbers{nulls}.")
    values: Array = column.to_numpy(zero_copy_only=False)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
