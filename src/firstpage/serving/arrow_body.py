"""Arrow's stream format: a column a feature, or one column `features` of lists of fixed size.

`id` and, in a batch, `query` are columns beside them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.serving.asked import Asked, short, wishes_of_address
from firstpage.serving.limits import Limits, Refusal, check_candidates, check_queries
from firstpage.types import Array, Floats, Ints

MEDIA = "application/vnd.apache.arrow.stream"
LENGTH, COMPRESSION = 0, 3  # fields of a record batch in Arrow's Message.fbs


def available() -> bool:
    return find_spec("pyarrow") is not None


def read(
    body: bytes, given: Mapping[str, str], names: tuple[str, ...], limits: Limits, batch: bool
) -> Asked:
    """One query, or the queries of the column `query`."""
    table = _table(body, limits)
    ids, queries = _texts(table, "id"), None
    lengths = [table.num_rows]
    if batch:
        labels = _texts(table, "query")
        if labels is None:
            raise Refusal(422, "a batch in Arrow needs a column 'query'.")
        queries, lengths = _runs(labels)
        check_queries(len(queries), limits)
    for number, length in enumerate(lengths):
        where = "the table" if queries is None else f"query {short(queries[number])}"
        check_candidates(length, limits, where)
    X = _features(table, names)
    return Asked(X, offsets_from_lengths(lengths), ids, queries, wishes_of_address(given))


def written(asked: Asked, scores: Floats, ranks: Ints) -> bytes:
    """Rows as they came: query and id where given, score, rank from 1 on."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    if asked.queries is not None:
        lengths = np.diff(asked.offsets).tolist()
        pairs = zip(asked.queries, lengths, strict=True)
        columns["query"] = _column([query for query, length in pairs for _ in range(length)])
    if asked.ids is not None:
        columns["id"] = _column(asked.ids)
    table = pa.table({**columns, "score": scores, "rank": ranks})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def _column(values: Sequence[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except OverflowError:  # it takes whole numbers for int64 unless told otherwise
        return pa.array(values, pa.uint64())


def _table(body: bytes, limits: Limits) -> Any:
    """Read only after every message was looked at: nothing may unfold to more than was sent."""
    import pyarrow as pa

    most = limits.candidates * limits.queries
    try:
        rows = 0
        for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(body)):
            if message.type == "dictionary":
                raise Refusal(422, "dictionary columns are not taken; send plain ones.")
            if message.type == "record batch":
                rows += _rows(bytes(message.metadata))
        if rows > most:
            raise Refusal(413, f"the table has {rows:,} rows; at most {most:,} are taken.")
        table = pa.ipc.open_stream(pa.BufferReader(body)).read_all()
        table.validate(full=True)
        if len(set(table.column_names)) < table.num_columns:
            raise Refusal(422, "the table has two columns with the same name.")
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        said = (str(error).splitlines() or [""])[0][:120]
        raise Refusal(422, f"the body is no Arrow stream ({said}).") from None
    return table


def _rows(metadata: bytes) -> int:
    """Rows of a record batch, from its header; compressed ones are refused."""
    message = struct.unpack_from("<I", metadata)[0]
    header = _field(metadata, message, 2)
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    if _field(metadata, batch, COMPRESSION):
        raise Refusal(422, "compressed Arrow streams are not taken; send it uncompressed.")
    at = _field(metadata, batch, LENGTH)
    rows = int(struct.unpack_from("<q", metadata, at)[0]) if at else 0
    if rows < 0:
        raise ValueError("a batch of fewer than no rows")
    return rows


def _field(held: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer table lies; 0 where it is absent."""
    virtual = table - struct.unpack_from("<i", held, table)[0]
    if not 0 <= virtual < len(held):
        raise IndexError("a message is broken")
    slot = 4 + 2 * number
    if slot >= struct.unpack_from("<H", held, virtual)[0]:
        return 0
    offset = int(struct.unpack_from("<H", held, virtual + slot)[0])
    return table + offset if offset else 0


def _texts(table: Any, name: str) -> list[Any] | None:
    """A column of texts or whole numbers, if it is there."""
    import pyarrow.types as kinds

    if name not in table.column_names:
        return None
    column = table.column(name)
    plain = kinds.is_string(column.type) or kinds.is_large_string(column.type)
    if not (plain or kinds.is_integer(column.type)) or column.null_count:
        raise Refusal(422, f"the column {name!r} must hold texts or whole numbers, no nulls.")
    found: list[Any] = column.to_pylist()
    return found


def _runs(labels: list[Any]) -> tuple[list[Any], list[int]]:
    """Queries and their lengths; the rows of a query must stand together."""
    queries: list[Any] = []
    lengths: list[int] = []
    for label in labels:
        if queries and queries[-1] == label:
            lengths[-1] += 1
        else:
            queries.append(label)
            lengths.append(1)
    if len(set(queries)) < len(queries):
        raise Refusal(422, "the rows of a query must stand together; sort by 'query'.")
    return queries, lengths


def _features(table: Any, names: tuple[str, ...]) -> Array:
    import pyarrow.types as kinds

    if "features" in table.column_names and "features" not in names:
        column = table.column("features").combine_chunks()
        if not kinds.is_fixed_size_list(column.type) or column.type.list_size != len(names):
            raise Refusal(422, f"the column 'features' must hold lists of fixed size {len(names)}.")
        if column.null_count:
            raise Refusal(422, "the column 'features' has nulls.")
        return _numbers(column.flatten(), "features").reshape(-1, len(names))
    held = set(table.column_names)
    lost = [name for name in names if name not in held]
    if lost:
        raise Refusal(422, f"the table lacks the feature {short(lost[0])}.")
    columns = [_numbers(table.column(name), name) for name in names]
    return np.ascontiguousarray(np.column_stack(columns))


def _numbers(column: Any, name: str) -> Array:
    import pyarrow.types as kinds

    kind = column.type
    if column.null_count or not (kinds.is_floating(kind) or kinds.is_integer(kind)):
        raise Refusal(422, f"the column {short(name)} must hold numbers, no nulls.")
    found: Array = column.to_numpy()
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
