"""Parquet, CSV, Arrow and npz files: one row per document.

CSV may be separated by commas, semicolons or tabs; the first line decides.

Columns: a label (`label`, `relevance`, `grade`, `target`, `y`), a query id (`qid`, `query_id`,
`query`), optionally a document id (`docid`, `doc_id`, `document`); every other column is a feature,
except identifiers (`product_id`).  Empty cells and nulls of features are missing values (NaN).
Columns of a categorical type, and columns of text, hold categories.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from firstpage.core import Advice, DataError, missing_dependency, warn
from firstpage.data.categories import (
    category_text,
    check_count,
    codes_of,
    integer_codes,
    text_codes,
)
from firstpage.data.column_names import DOCUMENT_IDS, LABEL_NAMES, QUERY_NAMES
from firstpage.data.dataset import Dataset
from firstpage.data.formats.feature_buffers import FLOAT64_COMMAND, float_type
from firstpage.data.formats.row_reader import first_line, separator_of
from firstpage.data.ids import are_distinct_integers, is_identifier, is_missing
from firstpage.data.io.files import (
    BOM,
    check_readable,
    open_bytes,
    read_all,
    suffix_of,
    write_bytes,
)
from firstpage.data.suspicious import data_warnings, warn_about

HEADER_BYTES = 1 << 20  # read to find the first line of a CSV file
TYPE_ROWS = 10_000  # rows of a CSV file that usually decide about the types of columns
RECIPE = "firstpage-recipe"  # the key of the recipe of the features in Parquet metadata
NPZ_ARRAYS = (
    "X", "data", "indices", "indptr", "shape", "y", "qid", "docid", "feature_names", "recipe",
    "categories",
)  # fmt: skip


def import_polars(why: str) -> Any:
    """Return polars; an error without it names what needs it."""
    try:
        import polars
    except ImportError as error:
        raise missing_dependency("polars", "tables", why) from error
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
    categorical: Sequence[str] = (),
    position: str | None = None,
) -> Dataset:
    """Read a Parquet, CSV (TSV) or Arrow file."""
    file = Path(path)
    check_readable(file)
    float_type(dtype)
    pl = import_polars(f"Reading {file}")
    format = _table_format(file, kind)
    read, options = (pl.read_parquet if format == "parquet" else pl.read_ipc), {}
    # A pipe can be read only once, and polars does not read .xz.
    in_memory = not file.is_file() or suffix_of(file)[1] == ".xz"
    source: Any = io.BytesIO(read_all(file)) if in_memory else file
    columns = {"label": label, "qid": qid, "docid": docid}
    if format in ("csv", "tsv"):
        header, separator = csv_header(file, source)
        _check_distinct(header, str(file))
        ids = _id_columns(header, str(file), qid, docid) if header else []
        read = partial(_read_csv, pl)
        options = {"separator": separator, "schema_overrides": dict.fromkeys(ids, pl.String)}
    try:
        frame = read(source, **options)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as a table ({first_line(error)}).") from error
    data = from_frame(
        frame,
        str(file),
        **columns,
        dtype=dtype,
        labeled=labeled,
        categorical=categorical,
        position=position,
    )
    if format == "parquet":
        metadata = pl.read_parquet_metadata(source)
        data = replace(data, recipe=_stored_recipe(metadata.get(RECIPE), file))
    warn_about(str(file), data_warnings(data))
    return data


def _id_columns(header: list[str], source: str, qid: str | None, docid: str | None) -> list[str]:
    """Return the columns of ids, which are text also where they look like numbers."""
    query = _find(header, qid, QUERY_NAMES, "query id", source)
    document = _find(header, docid, DOCUMENT_IDS, "document id", source, optional=True)
    return [query] if document is None else [query, document]


def _read_csv(pl: Any, source: Any, **options: Any) -> Any:
    """Read CSV; the types of columns follow from the first rows, or else from all."""
    try:
        return pl.read_csv(source, infer_schema_length=TYPE_ROWS, **options)
    except pl.exceptions.ComputeError:
        if isinstance(source, io.BytesIO):
            source.seek(0)
        return pl.read_csv(source, infer_schema_length=None, **options)


def _stored_recipe(text: str | None, file: Path) -> Any:
    """Return the recipe of the features that a file stores as JSON, or None."""
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise DataError(f"{file}: damaged: its recipe of the features is not JSON.") from error


def _stored_categories(text: str, file: Path) -> dict[int, tuple[str, ...]]:
    """Return the categories that a file stores as JSON."""
    try:
        return {int(c): tuple(map(str, names)) for c, names in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise DataError(f"{file}: damaged: its categories are not valid.") from error


def csv_header(file: Path, source: Any) -> tuple[list[str], str]:
    """Return the column names in the first line of a CSV file, and their separator."""
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
    """Refuse two columns of the same name."""
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            raise DataError(f"{source}: two columns are named {name!r}; rename or drop one.")
        seen.add(name)


def _table_format(file: Path, kind: str | None) -> str:
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
    categorical: Sequence[str] = (),
    position: str | None = None,
) -> Dataset:
    """Return the dataset of a polars or pandas frame or an Arrow table; options of `read_table`."""
    columns = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    _check_distinct(columns, source)
    y = _find(columns, label, LABEL_NAMES, "label", source, optional=not labeled)
    q = _find(columns, qid, QUERY_NAMES, "query id", source)
    d = _find(columns, docid, DOCUMENT_IDS, "document id", source, optional=True)
    if position is not None:
        _find(columns, position, (), "position", source)
    features = [c for c in columns if c not in (y, q, d, position)]
    features = _without_identifiers(frame, features, categorical, source)
    for name in categorical:
        if name not in features:
            raise DataError(
                f"{source}: there is no feature {name!r} (there are {_some(features)})."
            )
    special = (*LABEL_NAMES, *QUERY_NAMES, *DOCUMENT_IDS)
    suspicious = [str(c) for c in features if str(c).lower() in special]
    if suspicious:
        warn(
            f"{source}: {', '.join(map(repr, suspicious))} is read as a feature, since {y!r} is "
            f"the label, {q!r} the query and {d!r} the document; drop the column if it is not a "
            "feature."
        )
    arrays, categories = _encoded(frame, features, categorical, dtype, source)
    rows = len(frame)
    if not rows:
        raise DataError(f"{source}: contains no documents.")
    X = np.column_stack(arrays) if arrays else np.empty((rows, 0), dtype)
    ids = None if d is None else ["" if is_missing(v) else v for v in _values(frame, d)]
    names = _values(frame, q)
    missing = next((i for i, name in enumerate(names) if is_missing(name)), None)
    if missing is not None:
        raise DataError(f"{source}: row {missing + 1} has no query id.")
    labels = np.full(rows, np.nan) if y is None else _numbers(frame, y, source)
    if labeled and np.isnan(labels).any():
        raise DataError(f"{source}: row {int(np.argmax(np.isnan(labels))) + 1} has no label.")
    data = Dataset.from_arrays(X, labels, names, ids, [str(f) for f in features], source)
    data = replace(data, categories=categories)
    if position is None:
        return data
    return data.with_positions(data.to_row_order(_numbers(frame, position, source)))


def _encoded(
    frame: Any, features: Sequence[str], categorical: Sequence[str], dtype: str, source: str
) -> tuple[list[Any], dict[int, tuple[str, ...]]]:
    """Return the columns of features as numbers, and the categories of those that have some."""
    arrays: list[Any] = []
    categories: dict[int, tuple[str, ...]] = {}
    for number, name in enumerate(features):
        encoded = _category_codes(frame, name, source, name in categorical)
        if encoded is None:
            numbers = _numbers(frame, name, source)
            if are_distinct_integers(numbers):
                _warn_of_distinct(name, len(numbers), source)
            arrays.append(_cast(numbers, dtype, f"{source}: column {name!r}"))
        else:
            categories[number] = encoded[0]
            arrays.append(encoded[1].astype(dtype))
    return arrays, categories


def _without_identifiers(
    frame: Any, features: list[str], categorical: Sequence[str], source: str
) -> list[str]:
    """Return the columns that are features; a warning names those left out."""
    identifiers = [
        name
        for name in features
        if is_identifier(str(name)) and name not in categorical and not _is_declared(frame[name])
    ]
    if not identifiers:
        return features
    remaining = [name for name in features if name not in identifiers]
    warn(
        f"{source}: left out {', '.join(map(repr, identifiers))}, which by name identifies "
        f"something; the features are {_some(remaining) or 'none'}. Rename a column that holds "
        "quantities.",
        Advice("Name one that holds categories with {}.", "categorical"),
    )
    return remaining


def _warn_of_distinct(name: str, rows: int, source: str) -> None:
    warn(
        f"{source}: {name!r} has another integer in each of {rows:,} rows, and is read as a "
        "feature; drop the column if it numbers or identifies the rows."
    )


def encode_frame(
    frame: Any, source: str, named: Container[int] = ()
) -> tuple[Any, dict[int, tuple[str, ...]]]:
    """Return a polars or pandas frame with codes for its categories, and the categories by column.

    Anything else is returned unchanged.  The `named` columns are known to hold categories.
    """
    categories: dict[int, tuple[str, ...]] = {}
    if not (hasattr(frame, "columns") and hasattr(frame, "dtypes") and hasattr(frame, "shape")):
        return frame, categories
    encoded = frame
    for number, name in enumerate(frame.columns):
        encoded_column = _category_codes(frame, name, source, number in named)
        if encoded_column is None:
            continue
        categories[number], codes = encoded_column
        if hasattr(frame, "with_columns"):
            encoded = encoded.with_columns(import_polars("A frame").Series(name, codes))
        else:
            encoded = encoded.copy(deep=False) if encoded is frame else encoded
            encoded[name] = codes
    return encoded, categories


def _category_codes(
    frame: Any, name: str, source: str, named: bool
) -> tuple[tuple[str, ...], Any] | None:
    """Return the categories of a column and their codes; None for a column of numbers.

    `named` columns hold categories whatever their type.
    """
    column = frame[name]
    if getattr(column, "ndim", 1) != 1:
        return None
    kind = _kind(column)
    declared = _is_declared(column)
    text = kind.startswith(("str", "object", "large_string", "utf8"))
    if not (declared or text or named):
        return None
    where = f"{source}: column {name!r}"
    if not declared and not text:
        numbers, codes = integer_codes(_numbers(frame, name, source), where)
        return tuple(map(category_text, numbers)), codes
    values = [None if is_missing(v) else v for v in _values(frame, name)]
    if not declared and not any(isinstance(v, str) for v in values):
        return None if not named else text_codes(values, where)  # numbers stored as objects
    if declared and hasattr(column, "cat") and hasattr(column.cat, "categories"):  # pandas
        names = tuple(map(str, column.cat.categories))
        check_count(len(names), where)
        return names, codes_of(values, names)
    if kind.startswith("enum"):
        names = tuple(column.dtype.categories)
        check_count(len(names), where)
        return names, codes_of(values, names)
    if text and not named:
        _check_text(values, where)
    names, codes = text_codes(values, where)
    if text and not named:
        warn(
            f"{where} is text, and read as a categorical feature of {len(names)} categories.",
            Advice("Name it with {}, or drop it.", "categorical", [str(name)]),
        )
    return names, codes


def _is_declared(column: Any) -> bool:
    """Return whether the type of a column is categorical."""
    return _kind(column).startswith(("category", "categorical", "enum", "dictionary"))


def _kind(column: Any) -> str:
    """Return the type of a column in lower case, as its library calls it."""
    return str(getattr(column, "dtype", getattr(column, "type", ""))).lower()


def _check_text(values: Sequence[Any], where: str) -> None:
    """Refuse a column with numbers among text: likely mistakes, not categories."""
    advice = Advice("If the column holds categories, name it with {}.", "categorical")
    for other in values:
        try:
            float(other)
        except (TypeError, ValueError):
            continue
        text = next((str(v) for v in values if isinstance(v, str) and not _is_number(v)), None)
        if text is None:
            raise DataError(
                f"{where} has numbers stored as text, such as {other!r}; store them as numbers.",
                advice,
            )
        raise DataError(
            f"{where} must be numeric to be a feature or label: it has {text!r} among numbers. "
            "Leave a missing value empty.",
            advice,
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _find(
    columns: list[str],
    name: str | None,
    usual_names: Iterable[str],
    role: str,
    source: str,
    optional: bool = False,
) -> Any:
    """Return the column of this name, or else the one of a usual name."""
    if name is not None:
        if name not in columns:
            raise DataError(f"{source}: there is no column {name!r} (there are {_some(columns)}).")
        return name
    lower = {str(c).lower(): c for c in reversed(columns)} | {c: c for c in columns}
    for name in usual_names:
        if name in lower:
            return lower[name]
    if optional:
        return None
    raise DataError(
        f"{source}: no column looks like the {role} ({', '.join(usual_names)}); there are "
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
    if _kind(column).startswith(("date", "time", "duration")):
        raise DataError(
            f"{source}: column {name!r} holds dates or times; convert them to numbers first, such "
            "as days."
        )
    try:
        return np.asarray(column.to_numpy(), np.float64)
    except (TypeError, ValueError):
        try:  # nulls among numbers
            return np.array([np.nan if is_missing(v) else float(v) for v in _values(frame, name)])
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{source}: column {name!r} must be numeric to be a feature or label ({error})."
            ) from error


def _cast(values: Any, dtype: str, where: str) -> Any:
    """Return numbers of another type; refuse finite numbers that it cannot represent."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    lost = np.isinf(cast) & np.isfinite(values)
    if lost.any():
        row = int(np.argmax(lost))
        raise DataError(
            f"{where}: {values[row]:g} in row {row + 1} does not fit into {np.dtype(dtype).name}; "
            f"{FLOAT64_COMMAND}.",
            Advice("Use {}.", "dtype", "float64"),
        )
    return cast


def write_table(data: Dataset, path: str | os.PathLike[str], kind: str | None = None) -> None:
    """Write a Parquet, CSV or Arrow file; the suffix or `kind` selects the format."""
    file = Path(path)
    import_polars(f"Writing {file}")
    _check_feature_names(data, file)
    try:
        frame = data.to_polars()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{file}: {error.object!r:.60} is not valid Unicode, which tables need; convert the "
            "file that it comes from to UTF-8."
        ) from None
    if _table_format(file, kind) != "csv":
        frame = _with_enums(frame, data)
    with write_bytes(file) as out:
        if _table_format(file, kind) == "parquet":
            metadata = None if data.recipe is None else {RECIPE: json.dumps(data.recipe)}
            frame.write_parquet(out, metadata=metadata)
        elif _table_format(file, kind) == "csv":
            frame.write_csv(out)
        else:
            frame.write_ipc(out)


def _check_feature_names(data: Dataset, file: Path) -> None:
    """Refuse a feature that would be read as the document id, or as another identifier."""
    names = data.feature_names or ()
    taken = [n for n in names if n.lower() in DOCUMENT_IDS]
    if data.docids is None and taken:
        raise DataError(
            f"{file}: the feature {taken[0]!r} would be read as the document id; rename it."
        )
    for column, name in enumerate(names):
        if column not in data.categories and is_identifier(name):
            raise DataError(
                f"{file}: the feature {name!r} would be read as an identifier and left out; "
                "rename it, or write .npz or LETOR text."
            )


def _with_enums(frame: Any, data: Dataset) -> Any:
    """Return a frame whose categorical columns know all categories, in their order."""
    pl = import_polars("Creating a table")
    first = len(frame.columns) - data.n_features
    return frame.with_columns(
        pl.col(frame.columns[first + column]).cast(pl.Enum(names))
        for column, names in data.categories.items()
    )


# --- npz


def read_npz(path: str | os.PathLike[str], labeled: bool = True) -> Dataset:
    """Read arrays X (or data, indices, indptr, shape), y, qid, and optionally docid, feature_names.

    With `labeled` False, y may be missing; labels are then NaN, and the data can only be ranked.
    """
    file = Path(path)
    check_readable(file)
    try:
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        raise DataError(f"{file}: cannot be read as npz ({first_line(error)}).") from error
    if not labeled and "y" not in arrays and "qid" in arrays:
        arrays["y"] = np.full(len(arrays["qid"]), np.nan)
    missing = [name for name in ("y", "qid") if name not in arrays]
    if "X" in arrays:
        X: Any = arrays["X"]
    elif {"data", "indices", "indptr", "shape"} <= set(arrays):
        from scipy.sparse import csr_array

        csr = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = csr_array(csr, shape=tuple(arrays["shape"].tolist()))
    else:
        missing.insert(0, "X")
    unknown = [name for name in arrays if name not in NPZ_ARRAYS]
    if unknown:
        warn(f"{file}: ignores the arrays {', '.join(unknown)}; it reads {', '.join(NPZ_ARRAYS)}.")
    if missing:
        raise DataError(f"{file}: lacks {', '.join(missing)}; it has {', '.join(arrays)}.")
    if not len(arrays["y"]):
        raise DataError(f"{file}: contains no documents.")
    names = arrays["feature_names"].tolist() if "feature_names" in arrays else None
    data = Dataset.from_arrays(X, arrays["y"], arrays["qid"], arrays.get("docid"), names, str(file))
    if "recipe" in arrays:
        data = replace(data, recipe=_stored_recipe(str(arrays["recipe"]), file))
    if "categories" in arrays:
        data = replace(data, categories=_stored_categories(str(arrays["categories"]), file))
    warn_about(str(file), data_warnings(data))
    return data


def write_npz(data: Dataset, path: str | os.PathLike[str]) -> None:
    """Write all arrays to one npz file."""
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
    if data.recipe is not None:
        arrays["recipe"] = np.array(json.dumps(data.recipe))
    if data.categories:
        arrays["categories"] = np.array(json.dumps({str(c): n for c, n in data.categories.items()}))
    with write_bytes(Path(path)) as out:
        np.savez(out, **arrays)
