"""Documents that occur twice in a query of a run: the first line or the best score counts."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from firstpage.core import DataError, warn
from firstpage.data.formats.trec_columns import Run
from firstpage.data.groups import duplicate_rows

Duplicates = Literal["refuse", "first", "best"]


def resolve_duplicates(run: Run, duplicates: Duplicates) -> Run:
    """Return a run in which a document occurs once per query, with a warning about the others.

    "refuse" returns the run as it is: joining it with judgments raises an error.
    """
    if duplicates not in get_args(Duplicates):
        raise DataError(f"duplicates must be refuse, first or best; got {duplicates!r}.")
    if duplicates == "refuse":
        return run
    order = np.arange(len(run.values))
    if duplicates == "best":  # among equal scores, the first line
        query = np.repeat(np.arange(len(run)), np.diff(run.offsets))
        order = np.lexsort((-run.values, query))
    repeated = order[
        duplicate_rows(run.docids.hashes[order], run.offsets, np.ones(len(order), bool))
    ]
    if not len(repeated):
        return run
    row = int(repeated.min())
    query_id = run.queries[int(np.searchsorted(run.offsets, row, side="right")) - 1]
    counts = "that of the first line" if duplicates == "first" else "the best score"
    warn(
        f"{run.source or run.name or 'the run'}: {len(repeated):,} lines repeat a document of "
        f"their query, such as {run.docids[row]!r} in query {query_id!r}{_at_line(run, row)}; "
        f"{counts} counts."
    )
    remaining = np.ones(len(run.values), bool)
    remaining[repeated] = False
    return run.select_rows(remaining)


def _at_line(run: Run, row: int) -> str:
    line = run.line_of(row)
    return "" if line is None else f" (line {line})"
