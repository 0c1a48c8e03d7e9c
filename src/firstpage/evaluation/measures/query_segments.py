"""Segments of queries: by a column of a table, by cut points of a number, or by thirds of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from firstpage.core import DataError, Ints, warn
from firstpage.data import Ids
from firstpage.data.formats import QueryTable

MAX_SEGMENTS = 50
SPLIT = re.compile(r"(.+?)\s*\(([^()]*)\)")
THIRDS = ("head", "torso", "tail")


def as_query_table(table: Any) -> QueryTable:
    """Return a table of queries: read from a file, or made from a data frame."""
    if isinstance(table, QueryTable):
        return table
    if isinstance(table, (str, os.PathLike)):
        return QueryTable.read(table)
    return QueryTable.from_frame(table)


def named_segments(by: Any, table: Any = None) -> tuple[str, Mapping[str, Any]]:
    """Return the name of the segments, and the segment of each query.

    `by` is a dict of them, or the text of a column of the table: `language`, `traffic(10, 100)`
    or `traffic(head)`.
    """
    if isinstance(by, Mapping):
        return "segment", by
    if table is None:
        raise DataError(f"by={by!r} is a column of a table of queries; give query_table too.")
    return segments_of(as_query_table(table), by)


def weights_by_query(weights: Any, table: Any = None) -> Mapping[str, float]:
    """Return the weight of each query: as given, or a column of the table."""
    if not isinstance(weights, str):
        checked: Mapping[str, float] = weights
        return checked
    if table is None:
        raise DataError(
            f"weights={weights!r} is a column of a table of queries; give query_table too."
        )
    return as_query_table(table).numbers(weights)


def segment_columns(
    queries: Ids, segments: Mapping[str, Any], name: str, least: int = 1
) -> dict[str, Ints]:
    """Return the numbers of the queries of each segment, in the order of their first queries.

    Queries without a segment are left out, with a warning; so are segments of fewer than `least`
    queries.
    """
    by_id = {str(query): segment for query, segment in segments.items()}
    labels = [_label(by_id.get(query)) for query in queries]
    without = [query for query, label in zip(queries, labels, strict=True) if not label]
    if without:
        warn(
            f"{len(without)} of {len(queries)} queries have no {name} and are in no segment, such "
            f"as {without[0]!r}."
        )
    different = list(dict.fromkeys(filter(None, labels)))
    if not different:
        raise DataError(f"no query has a {name}.")
    if len(different) > MAX_SEGMENTS:
        raise DataError(
            f"{name} has {len(different)} different values; at most {MAX_SEGMENTS} segments are "
            f"compared. Give cut points of a number, as in '{name}(10, 100)'."
        )
    if all(segment in THIRDS for segment in different):
        different.sort(key=THIRDS.index)
    texts = np.array(labels)
    columns = {segment: np.flatnonzero(texts == segment) for segment in different}
    for segment in [segment for segment, rows in columns.items() if len(rows) < least]:
        warn(f"{name} {segment!r} has one query and is left out.")
        del columns[segment]
    if not columns:
        raise DataError(f"every {name} has fewer than {least} queries.")
    return columns


def _label(value: Any) -> str:
    """Return the name of a segment; "" for a missing value of a table or data frame."""
    missing = value is None or value != value or str(value) == "<NA>"
    return "" if missing else str(value)


def segments_of(table: QueryTable, text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the segment of each query: `language`, `traffic(10, 100)` or
    `traffic(head)`.

    Cut points divide the numbers of a column; `head` divides the queries into head, torso and
    tail, which have a third of the sum of the column each.
    """
    match = SPLIT.fullmatch(text.strip())
    if match is None or text in table.columns:
        return text, table.column(text)
    name, inside = match[1], match[2].strip()
    numbers = table.numbers(name)
    if inside == "head":
        return name, _thirds(numbers)
    try:
        cuts = sorted(float(word) for word in inside.split(","))
        if not np.isfinite(cuts).all():
            raise ValueError
    except ValueError:
        raise DataError(
            f"{text!r}: give cut points, as in '{name}(10, 100)', or '{name}(head)'."
        ) from None
    labels = [f"below {cuts[0]:g}"]
    labels += [f"{low:g} to {high:g}" for low, high in pairwise(cuts)]
    labels.append(f"from {cuts[-1]:g}")
    places = np.searchsorted(cuts, list(numbers.values()), side="right")
    return name, {query: labels[p] for query, p in zip(numbers, places.tolist(), strict=True)}


def _thirds(numbers: Mapping[str, float]) -> dict[str, str]:
    """Return head, torso or tail: the queries with the first, second and last third of the sum."""
    queries = sorted(numbers, key=lambda query: -numbers[query])
    sizes = np.array([numbers[query] for query in queries])
    if not np.isfinite(sizes).all() or (sizes < 0).any() or not sizes.sum() > 0:
        raise DataError("head, torso and tail need numbers of at least 0, and not only 0.")
    before = (np.cumsum(sizes) - sizes) / sizes.sum()
    index = np.minimum((before * 3 + 1e-12).astype(int), 2)
    return {query: THIRDS[i] for query, i in zip(queries, index.tolist(), strict=True)}
