"""Runs joined by query and document: all documents of each query once, in base order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from firstpage.core import DataError, Floats, Ints
from firstpage.core.kernels import base_points, merge_ids, order_ties_by_id, renumber, tabulate_runs
from firstpage.data import Column, Ids, Run, offsets_from_lengths, sort_groups
from firstpage.evaluation.aggregation.weights import normalize_weights

BaseOrder: TypeAlias = Run | int | None


@dataclass(frozen=True, eq=False)
class MergedRuns:
    """The documents of several runs, grouped by query and in base order.

    Attributes
    ----------
    queries, offsets, docids
        The queries and their documents.
    bounds : ndarray of shape (n_queries, n_columns, 2)
        Where the rows of each query begin and end in each column; columns are runs, a base run that
        does not vote first.
    order : ndarray of shape (n_rows,)
        The rows of all columns from best to worst, within each query of a column.
    keys : ndarray of shape (n_rows,)
        The scores of the rows in that order.
    numbers : ndarray of shape (n_rows,)
        The number of each row's document in its query.
    voters : ndarray of shape (n_columns,)
        The index of the ranker of each column, or -1.
    """

    queries: Ids
    offsets: Ints
    docids: Ids
    bounds: Ints
    order: Ints
    keys: Floats
    numbers: Ints
    voters: Ints

    def tables(self, heads: Ints, with_scores: bool) -> tuple[Ints, Floats | None]:
        """Return positions and scores of the candidates: the first documents of each query.

        `heads` are the offsets of the candidates.  Documents that a ranker does not list have the
        position ABSENT and the score NaN.
        """
        shape = (int(self.voters.max()) + 1, int(heads[-1]))
        positions, scores = np.empty(shape, np.int64), np.empty(shape if with_scores else (0, 0))
        tabulate_runs(
            self.bounds, self.order, self.keys, self.numbers, self.voters, heads, positions, scores
        )
        return positions, scores if with_scores else None


def merge_runs(runs: Sequence[Run], base: BaseOrder, weights: Iterable[float] | None) -> MergedRuns:
    """Join runs by query and document; queries in order of appearance, documents in base order.

    The base order has the documents of the base run first, if there is one, then all others by
    reciprocal rank fusion with these weights, and equal ones by id, descending.
    """
    if not runs or not all(isinstance(run, Column) for run in runs):
        raise DataError("give at least one run (a Run, as read_run returns it) to aggregate.")
    base_index, extra = _base_run(runs, base)
    column_weights = np.concatenate([np.zeros(len(extra)), normalize_weights(weights, len(runs))])
    columns: list[Column] = [*extra, *runs]
    base_first = sorted(range(len(columns)), key=lambda a: a != base_index)
    queries, bounds = _query_bounds(columns, base_first)
    ids = _concatenate([column.docids for column in columns])
    order, keys = _ranked_rows(columns)
    size = len(order)
    numbers, first = np.empty(size, np.int64), np.empty(size, np.int64)
    offsets = np.empty(len(queries) + 1, np.int64)
    most = max(int((bounds[:, :, 1] - bounds[:, :, 0]).sum(axis=1).max(initial=0)), 1)
    table = np.empty(1 << max(4, (2 * most - 1).bit_length()), np.uint64)
    workspace = np.empty(3 * most, np.int64)
    row = merge_ids(
        data=ids.data,
        starts=ids.starts,
        ends=ids.ends,
        hashes=ids.hashes,
        bounds=bounds,
        order=order,
        table=table,
        workspace=workspace,
        numbers=numbers,
        first=first,
        offsets=offsets,
    )
    if row >= 0:
        raise _duplicate_error(columns, ids, row)
    points = np.empty(offsets[-1])
    base_column = -1 if base_index is None else base_index
    base_points(
        bounds=bounds,
        order=order,
        keys=keys,
        numbers=numbers,
        weights=column_weights,
        base=base_column,
        offsets=offsets,
        points=points,
    )
    in_base, points = sort_groups(points, offsets)
    first = first[: offsets[-1]]
    rows = np.empty_like(first)  # a workspace at first
    order_ties_by_id(
        keys=points,
        offsets=offsets,
        order=in_base,
        data=ids.data,
        starts=ids.starts[first],
        ends=ids.ends[first],
        workspace=rows,
    )
    renumber(
        order=in_base,
        bounds=bounds,
        offsets=offsets,
        first=first,
        workspace=workspace,
        numbers=numbers,
        ordered_first=rows,
    )
    voters = np.arange(len(columns)) - len(extra)
    return MergedRuns(queries, offsets, ids[rows], bounds, order, keys, numbers, voters)


def _base_run(runs: Sequence[Run], base: BaseOrder) -> tuple[int | None, list[Run]]:
    """Return the index of the base run, and a base run that does not vote and precedes the runs."""
    if isinstance(base, Column):
        return 0, [base]
    if base is None:
        return None, []
    if not isinstance(base, (int, np.integer)) or not 0 <= base < len(runs):
        raise DataError(f"base must be a run, or an index from 0 to {len(runs) - 1}; got {base!r}.")
    return int(base), []


def _query_bounds(columns: Sequence[Column], sequence: Sequence[int]) -> tuple[Ids, Ints]:
    """Return the queries of all columns, by appearance in this sequence, and their rows."""
    queries = columns[sequence[0]].queries
    numbers = {name: q for q, name in enumerate(queries)}
    rows: dict[int, Ints] = {}
    for a in sequence:
        size, names = len(numbers), list(columns[a].queries)
        rows[a] = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        if len(numbers) > size:
            new = columns[a].queries[np.flatnonzero(rows[a] >= size)]
            queries = Ids.concatenate(queries, new.compact())
    bounds = np.zeros((len(queries), len(columns), 2), np.int64)
    begin = 0
    for a, column in enumerate(columns):
        bounds[rows[a], a, 0] = begin + column.offsets[:-1]
        bounds[rows[a], a, 1] = begin + column.offsets[1:]
        begin += len(column.values)
    return queries, bounds


def _concatenate(ids: Sequence[Ids]) -> Ids:
    """Return the identifiers of all columns, one column after the other."""
    shifts = offsets_from_lengths([len(part.data) for part in ids])
    rows = offsets_from_lengths([len(part) for part in ids])
    starts, ends = np.empty(rows[-1], np.int64), np.empty(rows[-1], np.int64)
    for number, part in enumerate(ids):
        here = slice(rows[number], rows[number + 1])
        np.add(part.starts, shifts[number], out=starts[here])
        np.add(part.ends, shifts[number], out=ends[here])
    return Ids(
        np.concatenate([part.data for part in ids]),
        starts,
        ends,
        np.concatenate([part.hashes for part in ids]),
    )


def _ranked_rows(columns: Sequence[Column]) -> tuple[Ints, Floats]:
    """Return the rows of all columns from best to worst in each query, and their scores."""
    begins = offsets_from_lengths([len(column.values) for column in columns])
    order = np.arange(begins[-1])
    keys = np.concatenate([column.values for column in columns])
    for column, begin, end in zip(columns, begins, begins[1:], strict=False):
        values = column.values
        descending = np.ones(len(values) + 1, bool)
        descending[1:-1] = values[1:] <= values[:-1]
        descending[column.offsets] = True
        if not descending.all():  # unlike most files
            rows, keys[begin:end] = sort_groups(values, column.offsets)
            order[begin:end] = rows + begin
    return order, keys


def _duplicate_error(columns: Sequence[Column], ids: Ids, row: int) -> DataError:
    """Return the error about a document that occurs twice in a query of a run."""
    begins = offsets_from_lengths([len(column.values) for column in columns])
    a = int(np.searchsorted(begins, row, side="right")) - 1
    column = columns[a]
    query = int(np.searchsorted(column.offsets, row - begins[a], side="right")) - 1
    return DataError(
        f"{column.source or 'the run'}: document {ids[row]!r} occurs twice in query "
        f"{column.queries[query]!r}."
    )
