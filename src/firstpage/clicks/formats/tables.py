"""Tables: CSV and Parquet with a row per impression, or a row per page with lists."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.clicks.formats.collector import READ, LogCollector, columns_of, no_column
from firstpage.clicks.formats.lines import reason_of
from firstpage.clicks.formats.page_rows import PageRows
from firstpage.clicks.sessions import PAGE_FIELDS, TABLES, Sessions
from firstpage.core import DataError, location, missing_dependency
from firstpage.data.formats import read_file_cells, row_reader
from firstpage.data.io import BOM, open_bytes, read_all, suffix_of, write_bytes

SLICE_ROWS = 1_000_000  # rows of a Parquet file that are read at a time
DECISIONS = "firstpage-decisions"  # their key in the metadata of Parquet
OPEN_BANDIT = {"item_id", "position", "click", "propensity_score"}


def read(path: Path, collector: LogCollector, form: str = "table") -> None:
    """Add the impressions of a table."""
    pl = _polars(path)
    source: Any = io.BytesIO(read_all(path)) if suffix_of(path)[1] else path
    is_parquet = suffix_of(path)[0] == ".parquet"
    try:
        parquet = _parquet(pl, source, collector)  # reads nothing before the first slice
        for rows in parquet if is_parquet else _csv(pl, path, source, collector):
            if form == "openbandit" or set(rows.columns) >= OPEN_BANDIT:
                rows = _open_bandit(pl, rows, path)
            _add(pl, rows, path, collector)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise DataError(f"{path}: cannot be read as a table ({reason}).") from error
    collector.end_of_file()


def _add(pl: Any, rows: Any, path: Path, collector: LogCollector) -> None:
    """Add a slice of rows, whose columns are found by name."""
    asked = collector.options.columns
    roles = columns_of(rows.columns, asked)
    for column in asked.values():
        if column not in rows.columns:
            there = ", ".join(rows.columns[:12])
            raise DataError(f"{path}: there is no column {column!r} (there are {there}).")
    frame = rows.select(**{role: pl.col(name) for role, name in roles.items()})
    if "document" in roles and _has_lists(pl, frame["document"]):
        pages = PageRows(collector, str(path))
        for number, row in enumerate(frame.iter_rows(named=True), 1):
            try:
                pages.add_row(row)
            except (TypeError, ValueError, KeyError) as error:
                collector.broken(f"{path}: row {number}", reason_of(error))
        pages.finish()
    elif len(rows):
        if "document" not in roles:
            raise no_column(str(path), "document", rows.columns)
        collector.add({column.name: column for column in frame}, str(path))


def _has_lists(pl: Any, column: Any) -> bool:
    """Return whether a column has lists: of a list type, or in brackets or with vertical bars."""
    if column.dtype != pl.String:
        return isinstance(column.dtype, pl.List)
    first = column.drop_nulls().head(1)
    return bool(len(first) and (first[0].startswith("[") or "|" in first[0]))


def _parquet(pl: Any, source: Any, collector: LogCollector) -> Iterator[Any]:
    """Yield a Parquet file in slices, with the columns that are read."""
    scanned = pl.scan_parquet(source)
    names = scanned.collect_schema().names()
    used = list(columns_of(names, collector.options.columns).values())
    earlier = json.loads(pl.read_parquet_metadata(source).get(DECISIONS, "{}"))
    for decision, cases in earlier.items():
        collector.count(decision, cases)
    total = int(scanned.select(pl.len()).collect().item())
    for start in range(0, total, SLICE_ROWS):
        yield scanned.select(used or names).slice(start, SLICE_ROWS).collect()
        if collector.options.progress is not None:
            collector.options.progress(min(start + SLICE_ROWS, total), total)


def _csv(pl: Any, path: Path, source: Any, collector: LogCollector) -> Iterator[Any]:
    """Yield a table of text; where a line is broken, it is read line by line."""
    with open_bytes(path) as (stream, _):
        first = stream.readline().removeprefix(BOM).decode("utf-8", "replace")
    header = first.replace("\r", " ").strip("\n ")
    separator = row_reader.separator_of(str(path), header)
    names = next(csv.reader([header], delimiter=separator), [])
    repeated = next((name for name in names if name and names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"{path}:1: the column {repeated!r} occurs twice; rename or remove one.")
    try:
        yield pl.read_csv(source, separator=separator, infer_schema=False)
    except pl.exceptions.ComputeError:
        complete = []
        for line, cells in islice(read_file_cells(path), 1, None):
            if len(cells) == len(names):
                complete.append(cells)
            else:
                reason = f"has {len(cells)} cells; the header has {len(names)}."
                collector.broken(location(path, line), reason)
        yield pl.DataFrame(complete, schema=dict.fromkeys(names, pl.String), orient="row")


def _open_bandit(pl: Any, rows: Any, path: Path) -> Any:
    """Return a log of Open Bandit: each row is a page of one item; the file names the query."""
    unread = [name for name in rows.columns if name.startswith("user")]
    return rows.drop(unread).with_columns(
        pl.lit(path.stem).alias("query"), pl.int_range(pl.len()).cast(pl.String).alias("page")
    )


def _polars(path: Path, action: str = "Reading") -> Any:
    try:
        import polars
    except ImportError as error:
        raise missing_dependency("polars", "tables", f"{action} {path}") from error
    return polars


def write_sessions(sessions: Sessions, path: str | os.PathLike[str]) -> None:
    """Write sessions to a Parquet file with a row per impression, which `read_sessions` reads.

    Parameters
    ----------
    sessions : Sessions
        The sessions.
    path : path
        The file, whose name ends in .parquet.

    Raises
    ------
    DataError
        If the file has another suffix.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(query=["q"], document=["a"], rank=[1], clicked=[1])
    >>> fp.clicks.write_sessions(sessions, "sessions.parquet")
    >>> fp.read_sessions("sessions.parquet")
    Sessions(1 page, 1 impression, 1 click, 1 query, 1 document)
    """
    file = Path(path)
    if file.suffix != ".parquet":
        raise DataError(f"{file}: sessions are written to a .parquet file.")
    pl = _polars(file, "Writing")
    page = sessions.page
    columns: dict[str, Any] = {"page": page, "session": sessions.session[page]}
    for name, table in TABLES.items():
        codes, names = getattr(sessions, name), getattr(sessions, table)
        if codes is not None:
            codes = codes[page] if name in PAGE_FIELDS else codes
            numbers = pl.Series(np.where(codes < 0, len(names), codes).astype(np.uint32))
            known = pl.Series([*names, None], dtype=pl.String)
            columns[name.removeprefix("page_")] = known.gather(numbers).cast(pl.Categorical)
    for name in ("rank", "clicks", "first_click", "value", "propensity"):
        if getattr(sessions, name) is not None:
            columns[name] = getattr(sessions, name)
    if sessions.time is not None:
        time = pl.Series(sessions.time[page])
        columns["time"] = time.set(time < 0, None)
    decisions = {name: n for name, n in sessions.decisions.items() if name not in READ}
    metadata = {DECISIONS: json.dumps(decisions)}
    with write_bytes(file) as out:
        pl.DataFrame(columns).write_parquet(out, metadata=metadata)
