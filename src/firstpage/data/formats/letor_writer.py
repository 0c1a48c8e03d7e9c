"""Datasets to LETOR text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.ids import encoded
from firstpage.data.io.files import write_bytes
from firstpage.errors import DataError

BLANKS = " \t\n\r\x0b\x0c"


def write_letor(data: Dataset | Iterable[Dataset], path: str | os.PathLike[str]) -> None:
    """Write LETOR text that reads back to the same numbers; compressed by its suffix.

    Takes one dataset, or many one after the other, so that any size can be streamed.
    """
    with write_bytes(Path(path)) as out:
        for part in [data] if isinstance(data, Dataset) else data:
            for query in part:
                out.write(encoded(_letor_lines(query)))


def _letor_lines(query: Dataset) -> str:
    name = query.queries[0]
    check_name(name, "query id", "a LETOR file", BLANKS + "#")
    if not np.isfinite(query.y).all():
        raise DataError(f"a label of query {name!r} is missing or infinite; it cannot be written.")
    lines = []
    ids = list(query.docids) if query.docids is not None else None
    for row in range(query.n_docs):
        columns, values = _row(query.X, row)
        if ids is not None and ids[row]:
            check_name(ids[row], "document id", "a LETOR file")
        # A numpy float prints with as many digits as its own type needs, not more.
        texts = values.astype("U32") if values.dtype == np.float32 else map(repr, values.tolist())
        features = " ".join(f"{c + 1}:{_short(t)}" for c, t in zip(columns, texts, strict=True))
        if row == 0 and (not len(columns) or columns[-1] < query.n_features - 1):
            features += f" {query.n_features}:0"  # so that empty last columns come back
        comment = f" #docid = {ids[row]}" if ids is not None and ids[row] else ""
        lines.append(f"{_number(query.y[row])} qid:{name} {features}".rstrip() + comment + "\n")
    return "".join(lines)


def check_name(name: str, what: str, where: str, separators: str = BLANKS) -> None:
    """Refuse an identifier that would be read back as something else."""
    if not name or any(c in separators for c in name):
        raise DataError(
            f"the {what} {name!r} cannot stand in {where} (it is empty or would split)."
        )


def _row(X: Any, row: int) -> tuple[Sequence[int], Any]:
    """Columns and values of one document; a sparse one names only what it has."""
    if isinstance(X, np.ndarray):
        return range(X.shape[1]), X[row]
    lo, hi = X.indptr[row], X.indptr[row + 1]
    return X.indices[lo:hi], X.data[lo:hi]


def _short(text: str) -> str:
    return text[:-2] if text.endswith(".0") else text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
