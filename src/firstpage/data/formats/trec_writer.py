"""Write TREC files: judgments and runs, a query at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from firstpage.core import DataError, warn
from firstpage.core.kernels import find_separator
from firstpage.data.dataset import Dataset
from firstpage.data.formats.trec import TAB, to_qrels
from firstpage.data.groups import duplicate_rows
from firstpage.data.ids import BLANKS, check_identifier, encode_text
from firstpage.data.io.files import write_bytes
from firstpage.data.runs import Column, Qrels, Run


def write_qrels(qrels: Qrels | Dataset, path: str | os.PathLike[str]) -> None:
    """Write judgments: lines of `query 0 document grade`.

    Fields are separated by blanks, or by tabs if an id contains a blank; a warning says that
    trec_eval does not read such a file.

    Parameters
    ----------
    qrels : Qrels or Dataset
        The judgments, or a dataset whose labels are judgments; documents without ids are named
        `query-position`, with a warning.
    path : path
        The file; the suffix selects the compression, `-` is standard output.

    Raises
    ------
    DataError
        If an id is empty or contains a tab or a line end, or a document occurs twice in a query.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "test.qrels")
    ...     fp.write_qrels(fp.Qrels.from_dict({"q1": {"a": 2}}), path)
    ...     len(fp.read_qrels(path))
    1
    """
    table = qrels if isinstance(qrels, Column) else to_qrels(qrels)
    with write_bytes(Path(path)) as out:
        for text in qrels_text(table, path):
            out.write(encode_text(text))


def qrels_text(table: Column, target: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of each query of judgments; `target` is what messages call the file."""
    separator = field_separator(table, target)
    ends = table.offsets.tolist()
    for query, lo, hi in zip(table.queries, ends, ends[1:], strict=False):
        rows = zip(table.docids[slice(lo, hi)], table.values[lo:hi].tolist(), strict=True)
        lines = (separator.join((query, "0", doc, _grade_text(v))) + "\n" for doc, v in rows)
        yield "".join(lines)


def write_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run: lines of `query Q0 document rank score tag`, best score first.

    Documents of equal score are written by descending id, trec_eval's order.  Fields are separated
    by blanks, or by tabs if an id contains a blank; a warning says that trec_eval does not read
    such a file.

    Parameters
    ----------
    run : Run
        The run.
    path : path
        The file; the suffix selects the compression, `-` is standard output.

    Raises
    ------
    DataError
        If an id is empty or contains a tab or a line end, the tag contains a blank, or a document
        occurs twice in a query.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "bm25.run")
    ...     fp.write_run(fp.Run.from_dict({"q1": {"a": 2.5}}, name="bm25"), path)
    ...     fp.read_run(path).name
    'bm25'
    """
    ends = run.offsets.tolist()
    tag = run.name or "firstpage"
    separator = field_separator(run, path)
    check_identifier(tag, "tag", "a TREC file")
    with write_bytes(Path(path)) as out:
        for query, lo, hi in zip(run.queries, ends, ends[1:], strict=False):
            rows = zip(run.values[lo:hi].tolist(), run.docids[slice(lo, hi)], strict=True)
            lines = (
                separator.join((query, "Q0", doc, str(rank), repr(score), tag)) + "\n"
                for rank, (score, doc) in enumerate(sorted(rows, reverse=True), 1)
            )
            out.write(encode_text("".join(lines)))


def field_separator(table: Column, target: str | os.PathLike[str]) -> str:
    """Return a blank, or a tab if an id contains a blank, with a warning.

    Raises an error for what a TREC file cannot represent: repeated documents, and ids that would
    not be read back unchanged.
    """
    duplicates = duplicate_rows(
        table.docids.hashes, table.offsets, np.ones(len(table.values), bool)
    )
    if len(duplicates):
        row = int(duplicates[0])
        query = table.queries[int(np.searchsorted(table.offsets, row, side="right")) - 1]
        raise DataError(
            f"{table.source or table.name}: document {table.docids[row]!r} occurs twice in query "
            f"{query!r}, which a TREC file does not allow; drop one."
        )
    example = ""
    for names, kind in ((table.queries, "query id"), (table.docids, "document id")):
        filled = bool((names.ends > names.starts).all())
        if filled and find_separator(names.data, names.starts, names.ends, TAB) < 0:
            continue
        for name in names:
            if not name or name != name.strip(BLANKS) or any(c in "\t\n\r" for c in name):
                raise DataError(
                    f"the {kind} {name!r} cannot be written to a TREC file (it is empty, or has a "
                    "tab, a line end or a blank at its start or end)."
                )
            if not example and any(c in BLANKS for c in name):
                example = f"the {kind} {name!r}"
    if not example:
        return " "
    warn(
        f"{os.fspath(target)}: {example} contains a blank, so the fields are separated by tabs; "
        "trec_eval does not read such a file."
    )
    return "\t"


def _grade_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
