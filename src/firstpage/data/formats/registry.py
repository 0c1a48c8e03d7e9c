"""Read and write files of any format, detected by suffix and first line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firstpage.core import Advice, DataError, Progress, warn
from firstpage.core.kernels.parsing import fallback_number
from firstpage.data.categories import without_codes
from firstpage.data.dataset import Dataset
from firstpage.data.formats.letor import read_letor, write_letor
from firstpage.data.formats.tables import (
    import_polars,
    read_npz,
    read_table,
    write_npz,
    write_table,
)
from firstpage.data.formats.trec import read_qrels, read_run
from firstpage.data.formats.trec_writer import write_qrels, write_run
from firstpage.data.formats.truth_file import read_truth
from firstpage.data.io.files import check_readable, open_bytes, suffix_of
from firstpage.data.runs import Qrels, Run

FORMATS = ("letor", "qrels", "run", "parquet", "csv", "arrow", "npz", "truth")
TRUTH_SUFFIXES = (".jsonl", ".ndjson")
TABLES = ("arrow", "parquet", "csv")
SUFFIXES = {
    ".txt": "letor", ".letor": "letor", ".svm": "letor", ".svmlight": "letor", ".dat": "letor",
    ".libsvm": "letor", ".qrels": "qrels", ".qrel": "qrels", ".run": "run", ".trec": "run",
    ".res": "run", ".npz": "npz", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".parquet": "parquet", ".csv": "csv",
}  # fmt: skip


def format_of(path: str | os.PathLike[str], writing: bool = False) -> str:
    """Return the format of a file; text files are distinguished by their first line."""
    file = Path(path)
    named = SUFFIXES.get(suffix_of(file)[0])
    if writing:
        if named in ("npz", *TABLES) and suffix_of(file)[1]:
            raise DataError(f"{file}: a {named} file cannot be compressed again; drop the suffix.")
        if named is None:
            raise DataError(
                f"{file}: its suffix is not that of a known format; end it in .txt (LETOR), "
                ".qrels, .run, .parquet, .csv, .arrow or .npz.",
                Advice("Or name the format with {}.", "format", of="output"),
            )
        return named
    check_readable(file)
    if not file.is_file():
        raise DataError(
            f"{file}: is a pipe, which can be read only once, so its format must be known.",
            Advice("Name it with {}.", "format", of="data"),
        )
    if named in ("npz", *TABLES):
        return named
    if suffix_of(file)[0] in TRUTH_SUFFIXES:
        return "truth"
    with open_bytes(file) as (stream, _):
        line = _first_line(stream.read(1 << 16))
    words = line.split()
    if suffix_of(file)[0] == ".tsv" and words and not any(map(_is_number, words)):
        return "csv"  # the first line is a header
    if len(words) >= 2 and words[1].startswith(b"qid:"):
        return "letor"
    if line.count(b"\t") in (len(Qrels.fields) - 1, len(Run.fields) - 1):
        words = [field.strip() for field in line.split(b"\t")]
    if len(words) >= 5 and words[1].upper() == b"Q0":
        return "run"
    if len(words) == 4 and named != "run":
        return "qrels"
    if len(words) >= 5 and named is None:
        return "run"
    if named is None:
        raise DataError(
            f"{file}: neither its suffix nor its first line is of a known format; the formats are "
            f"{', '.join(FORMATS)}.",
            Advice("Name it with {}.", "format", of="data"),
        )
    return named


def _first_line(head: bytes) -> bytes:
    """Return the first line that is neither blank nor a comment."""
    lines = (line.strip() for line in head.splitlines())
    return next((line for line in lines if line and not line.startswith(b"#")), b"")


def _is_number(word: bytes) -> bool:
    return fallback_number(word) is not None


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    progress: Progress | None = None,
    labeled: bool = True,
    **options: Any,
) -> Any:
    """Read a file of any supported format.

    Parameters
    ----------
    path : path
        The file.
    format : {"letor", "qrels", "run", "parquet", "csv", "arrow", "npz", "truth"}, optional
        The format.  By default it is detected from the suffix and the first line.
    progress : callable, optional
        Called with the number of bytes read so far and the size of the file (LETOR only).
    labeled : bool, default True
        If False, tables and npz files need no labels, and the data can only be ranked.
    **options
        Keyword arguments of `read_letor`; of tables: `label`, `qid`, `docid`, `position` (names of
        columns) and `dtype`.  `categorical` lists the features that hold categories, by name or
        by number (from 1).

    Returns
    -------
    Dataset, Qrels or Run
        What the file contains.

    Raises
    ------
    DataError
        If the format is unknown, or the file is missing or malformed.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.npz")
    ...     fp.write(fp.Synthetic(queries=2, docs=3, features=4).dataset(), path)
    ...     fp.read(path).n_docs
    6
    """
    kind = _known_format(format) if format else format_of(path)
    if kind in ("letor", "npz"):
        categorical = options.pop("categorical", ())
        if options.pop("position", None) is not None:
            raise DataError(
                f"{path}: positions are read from a table with named columns, not from {kind}."
            )
        if kind == "npz":
            _refuse_options(path, kind, options)
            return read_npz(path, labeled).with_categories(*categorical)
        return read_letor(path, progress=progress, **options).with_categories(*categorical)
    if kind not in ("qrels", "run", "truth"):
        return read_table(path, kind=kind, labeled=labeled, **options)
    if any(options.get(name) for name in ("categorical", "position")):
        raise DataError(f"{path}: contains {kind} lines, which have no features.")
    _refuse_options(path, kind, options)
    if kind == "qrels":
        return read_qrels(path)
    if kind == "run":
        return read_run(path)
    return read_truth(path)


def _refuse_options(path: str | os.PathLike[str], kind: str, options: Mapping[str, Any]) -> None:
    """Raise an error for options of `read` that a format does not have."""
    set_options = [name for name, value in options.items() if value not in (None, (), [])]
    if set_options:
        raise DataError(
            f"{os.fspath(path)}: files of the format {kind} have no option {set_options[0]!r}; "
            "leave it out."
        )


def read_judgments(path: str | os.PathLike[str], confidences: bool = True) -> Qrels:
    """Read judgments of any kind: TREC qrels, or a truth file of the labeling application.

    `confidences` is that of `read_truth`.  Other kinds of files are refused by name.
    """
    file = Path(path)
    suffix = suffix_of(file)[0]
    if suffix in TRUTH_SUFFIXES:
        return read_truth(file, confidences)
    if suffix in (".csv", ".tsv"):
        raise DataError(
            f"{file}: judgments are read from TREC qrels and truth.jsonl, not from a table; "
            "`firstpage import quepid` converts ratings."
        )
    if SUFFIXES.get(suffix) in ("parquet", "arrow", "npz"):
        raise DataError(f"{file}: is a data file, not judgments (TREC qrels or truth.jsonl).")
    check_readable(file)
    if file.is_file():  # a pipe can be read only once
        with open_bytes(file) as (stream, _):
            line = _first_line(stream.read(1 << 16))
        if line.startswith(b"{"):
            return read_truth(file, confidences)
        if line.split()[1:2] and line.split()[1].startswith(b"qid:"):
            raise DataError(
                f"{file}: is LETOR text, which has its own labels, not judgments (TREC qrels or "
                "truth.jsonl)."
            )
    return read_qrels(file)


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise an error, before long work, if `write` could not write this file."""
    if format_of(path, writing=True) in TABLES:
        import_polars(f"Writing {os.fspath(path)}")


def write(
    data: Dataset | Qrels | Run, path: str | os.PathLike[str], format: str | None = None
) -> None:
    """Write data in the format of the file's suffix.

    Parameters
    ----------
    data : Dataset, Qrels or Run
        What to write.
    path : path
        The file, which appears when it is complete.
    format : {"letor", "qrels", "run", "parquet", "csv", "arrow", "npz"}, optional
        The format, if the suffix does not say.

    Raises
    ------
    DataError
        If the format is unknown or cannot represent the data.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "judged.qrels")
    ...     fp.write(fp.Qrels.from_dict({"q": {"d": 1}}), path)
    ...     fp.read(path).to_dict()
    {'q': {'d': 1.0}}
    """
    kind = _known_format(format) if format else format_of(path, writing=True)
    if kind == "truth":
        raise DataError("truth files come from `firstpage label export`; write qrels instead.")
    if kind == "run":
        if not isinstance(data, Run):
            raise DataError(
                "a run needs scores, and these data have labels; write qrels, or rank first."
            )
        return write_run(data, path)
    if kind == "qrels":
        if isinstance(data, Run):
            raise DataError("a run has scores, not judgments; it cannot be written as qrels.")
        return write_qrels(data, path)
    if not isinstance(data, Dataset):
        raise DataError(f"{type(data).__name__} has no features, which {kind} files need.")
    if data.query_weights is not None:
        warn(f"{os.fspath(path)}: {kind} files do not store the weights of queries (confidences).")
    if data.recipe is not None and kind not in ("parquet", "npz"):
        warn(
            f"{os.fspath(path)}: {kind} files do not store how the features were computed, so a "
            "model trained on them cannot search; write parquet or npz to keep it."
        )
    if data.positions is not None:
        warn(f"{os.fspath(path)}: {kind} files do not store the positions of documents.")
    if kind == "letor":
        return write_letor(without_codes(data, os.fspath(path)), path)
    if kind == "npz":
        return write_npz(data, path)
    return write_table(data, path, kind)


def _known_format(name: str) -> str:
    if name.lower() not in FORMATS:
        raise DataError(f"unknown format {name!r}; the formats are {', '.join(FORMATS)}.")
    return name.lower()
