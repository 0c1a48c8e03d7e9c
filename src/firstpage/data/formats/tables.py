"""Parquet, CSV and Arrow files, and npz: one row a document.

CSV may be separated by commas, semicolons or tabs, as its first line is.

Columns: a label (`label`, `relevance`, `grade`, `target`, `y`), a query id (`qid`,
`query_id`, `query`), a document id if there is one (`docid`, `doc_id`, `document`), and every
other numeric column is a feature.
"""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from firstpage.data.dataset import Dataset, data_warnings, warn_about
from firstpage.data.formats.row_reader import separator_of
from firstpage.data.io.files import (
    BOM,
    check_readable,
    open_bytes,
    read_all,
    suffix_of,
    write_bytes,
)
from firstpage.errors import DataError, FirstpageWarning, need

LABEL_COLUMNS = ("label", "relevance", "grade", "target", "y")
QUERY_COLUMNS = ("qid", "query_id", "queryid", "query")
DOCUMENT_COLUMNS = ("docid", "doc_id", "document", "document_id", "docno")
HEADER_BYTES = 1 << 20  # bytes in which the first line of a CSV file ends
NPZ_ARRAYS = ("X", "data", "indices", "indptr", "shape", "y", "qid", "docid", "feature_names")


def _polars(why: str) -> Any:
    try:
        import polars
    except ImportError as error:
        raise need("polars", "tables", why) from error
    return polars


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    qid: str | None = None,
    docid: str | None = None,
    dtype: str = "float32",
    kind: str | None = None,
    labeled: bool = True,
) -> Dataset:
    """Read parquet, csv (tsv) or arrow; name the columns where they are not called as above.

    labeled  False: there need not be a label column; labels are NaN then, which only ranking takes
    """
    file = Path(path)
    check_readable(file)
    pl = _polars(f"Reading {file}")
    named = _kind(file, kind)
    read, how = (pl.read_parquet if named == "parquet" else pl.read_ipc), {}
    source: Any = file if file.is_file() else io.BytesIO(read_all(file))  # a pipe is read once
    if named in ("csv", "tsv"):
        head, separator = csv_header(file, source)
        _check_distinct(head, str(file))
        read, how = pl.read_csv, {"separator": separator}
    try:
        frame = read(source, **how)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as a table ({_first_line(error)}).") from error
    columns = {"label": label, "qid": qid, "docid": docid}
    data = from_frame(frame, str(file), **columns, dtype=dtype, labeled=labeled)
    warn_about(str(file), data_warnings(data))
    return data


def csv_header(file: Path, source: Any) -> tuple[list[str], str]:
    """Return the names in the first line of a CSV file, and what separates them."""
    if isinstance(source, io.BytesIO):
        raw = source.getvalue()[:HEADER_BYTES]
    else:
        with open_bytes(file) as (stream, _):
            raw = stream.read(HEADER_BYTES)
    lines = raw.removeprefix(BOM).decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    separator = separator_of(str(file), first)
    return next(csv.reader([first], delimiter=separator), []), separator


def _check_distinct(columns: Iterable[str], source: str) -> None:
    """Refuse two columns of one name."""
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            raise DataError(f"{source}: two columns are called {name!r}; rename or drop one.")
        seen.add(name)


def _kind(file: Path, kind: str | None) -> str:
    return kind or suffix_of(file)[0].lstrip(".")


def from_frame(
    frame: Any,
    source: str = "table",
    *,
    label: str | None = None,
    qid: str | None = None,
    docid: str | None = None,
    dtype: str = "float32",
    labeled: bool = True,
) -> Dataset:
    """From a polars or pandas frame, or an Arrow table."""
    columns = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    _check_distinct(columns, source)
    y = _find(columns, label, LABEL_COLUMNS, "label", source, optional=not labeled)
    q = _find(columns, qid, QUERY_COLUMNS, "query id", source)
    d = _find(columns, docid, DOCUMENT_COLUMNS, "document id", source, optional=True)
    features = [c for c in columns if c not in (y, q, d)]
    odd = [
        str(c)
        for c in features
        if str(c).lower() in (*LABEL_COLUMNS, *QUERY_COLUMNS, *DOCUMENT_COLUMNS)
    ]
    if odd:
        warnings.warn(
            f"{source}: reads {', '.join(map(repr, odd))} as a feature, though {y!r} is the label, "
            f"{q!r} the query and {d!r} the document; drop the column if it is none.",
            FirstpageWarning,
            stacklevel=3,
        )
    arrays = []
    for name in features:
        array = _numbers(frame, name, source)
        arrays.append(array.astype(dtype))
    rows = len(frame)
    if not rows:
        raise DataError(f"{source}: there is no document in it.")
    X = np.column_stack(arrays) if arrays else np.empty((rows, 0), dtype)
    ids = None if d is None else _values(frame, d)
    names = _values(frame, q)
    if any(name is None for name in names):
        row = next(i for i, name in enumerate(names) if name is None)
        raise DataError(f"{source}: row {row + 1} has no query id.")
    labels = np.full(rows, np.nan) if y is None else _numbers(frame, y, source)
    if labeled and np.isnan(labels).any():
        raise DataError(f"{source}: row {int(np.argmax(np.isnan(labels))) + 1} has no label.")
    return Dataset.from_arrays(X, labels, names, ids, [str(f) for f in features], source)


def _find(
    columns: list[str],
    given: str | None,
    usual: Iterable[str],
    what: str,
    source: str,
    optional: bool = False,
) -> Any:
    if given is not None:
        if given not in columns:
            raise DataError(f"{source}: there is no column {given!r} (there are {_some(columns)}).")
        return given
    lower = {str(c).lower(): c for c in columns}
    for name in usual:
        if name in lower:
            return lower[name]
    if optional:
        return None
    raise DataError(
        f"{source}: no column looks like the {what} ({', '.join(usual)}); there are "
        f"{_some(columns)}."
    )


def _some(columns: list[str]) -> str:
    return ", ".join(map(str, columns[:8])) + (", .." if len(columns) > 8 else "")


def _values(frame: Any, name: str) -> list[Any]:
    column = frame[name]
    values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return values


def _numbers(frame: Any, name: str, source: str) -> Any:
    column = frame[name]
    try:
        return np.asarray(column.to_numpy(), np.float64)
    except (TypeError, ValueError):
        try:  # nulls among numbers
            return np.array([np.nan if v is None else float(v) for v in _values(frame, name)])
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{source}: column {name!r} must be numeric to be a feature or label ({error})."
            ) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


def to_frame(data: Dataset) -> Any:
    """One row a document: label, qid, docid if there is one, then the features."""
    pl = _polars("Making a table")
    columns: dict[str, Any] = {"label": data.y, "qid": pl.Series(data.qid.tolist())}
    if data.docid is not None:
        columns["docid"] = pl.Series(data.docid.tolist())
    X = np.asarray(data.dense().X)
    taken = {"label", "qid", "docid"} & set(data.feature_names or ())
    if taken:
        raise DataError(f"a feature cannot be called {', '.join(sorted(taken))} in a table.")
    names = data.feature_names or [f"f{i + 1}" for i in range(data.n_features)]
    columns |= {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(names)}
    return pl.DataFrame(columns)


def write_table(data: Dataset, path: str | os.PathLike[str], kind: str | None = None) -> None:
    """Parquet, CSV or Arrow, by the suffix or as `kind` says."""
    file = Path(path)
    frame = to_frame(data)
    with write_bytes(file) as out:
        if _kind(file, kind) == "parquet":
            frame.write_parquet(out)
        elif _kind(file, kind) == "csv":
            frame.write_csv(out)
        else:
            frame.write_ipc(out)


# --- npz


def read_npz(path: str | os.PathLike[str], labeled: bool = True) -> Dataset:
    """Arrays X (or data/indices/indptr/shape), y, qid and perhaps docid, feature_names.

    labeled  False: y may be missing; labels are NaN then, which only ranking takes
    """
    file = Path(path)
    check_readable(file)
    try:
        with np.load(file, allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        raise DataError(f"{file}: cannot be read as npz ({_first_line(error)}).") from error
    if not labeled and "y" not in held and "qid" in held:
        held["y"] = np.full(len(held["qid"]), np.nan)
    lacking = [name for name in ("y", "qid") if name not in held]
    if "X" in held:
        X: Any = held["X"]
    elif {"data", "indices", "indptr", "shape"} <= set(held):
        from scipy.sparse import csr_array

        parts = (held["data"], held["indices"], held["indptr"])
        X = csr_array(parts, shape=tuple(held["shape"].tolist()))
    else:
        lacking.insert(0, "X")
    odd = [name for name in held if name not in NPZ_ARRAYS]
    if odd:
        warnings.warn(
            f"{file}: leaves out {', '.join(odd)}; data are {', '.join(NPZ_ARRAYS)}.",
            FirstpageWarning,
            stacklevel=3,
        )
    if lacking:
        raise DataError(f"{file}: lacks {', '.join(lacking)}; it has {', '.join(held)}.")
    if not len(held["y"]):
        raise DataError(f"{file}: there is no document in it.")
    names = held["feature_names"].tolist() if "feature_names" in held else None
    data = Dataset.from_arrays(X, held["y"], held["qid"], held.get("docid"), names, str(file))
    warn_about(str(file), data_warnings(data))
    return data


def write_npz(data: Dataset, path: str | os.PathLike[str]) -> None:
    """All arrays in one file."""
    arrays: dict[str, Any] = {"y": data.y, "qid": np.array(data.qid.tolist())}
    if isinstance(data.X, np.ndarray):
        arrays["X"] = data.X
    else:
        arrays |= {"data": data.X.data, "indices": data.X.indices, "indptr": data.X.indptr}
        arrays["shape"] = np.array(data.X.shape)
    if data.docid is not None:
        arrays["docid"] = np.array(data.docid.tolist(), str)
    if data.feature_names is not None:
        arrays["feature_names"] = np.array(data.feature_names, str)
    with write_bytes(Path(path)) as out:
        np.savez(out, **arrays)
