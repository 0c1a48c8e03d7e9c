"""Files with one score a line, in the order of the documents they belong to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from firstpage.data.io.files import read_all, write_bytes
from firstpage.errors import DataError, at
from firstpage.kernels.parsing import letor as kernel
from firstpage.kernels.parsing.numbers import powers, spelled_number
from firstpage.types import Bytes, Floats


def read_scores(path: str | os.PathLike[str], expected: int | None = None) -> Floats:
    """One number a line; blank lines and what follows a # do not count.

    `expected` is how many documents there are; another number of scores is an error.
    """
    file = Path(path)
    raw = read_all(file)
    text = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", np.uint8)
    values = np.empty(int(np.count_nonzero(text == 10)))
    hards = np.empty(3 * len(values), np.int64)
    state = np.zeros(3, np.int64)
    cell = np.zeros(1, np.uint64)
    code = kernel.parse_scores(
        text, len(text), *powers(), cell, cell.view(np.float64), values, hards, state
    )
    rows, hard, trouble = state.tolist()
    if code:
        raise _not_a_number(file, text, trouble)
    for row, start, end in hards[:hard].reshape(-1, 3).tolist():
        value = spelled_number(bytes(text[start:end]))
        if value is None:
            raise _not_a_number(file, text, start)
        values[row] = value
    if expected is not None and rows != expected:
        raise DataError(f"{file}: {rows} scores for {expected} documents; give one a document.")
    bad = np.isnan(values[:rows])
    if bad.any():
        raise DataError(f"{file}: the score of document {int(np.argmax(bad)) + 1} is NaN.")
    return values[:rows].copy()


def _not_a_number(file: Path, text: Bytes, pos: int) -> DataError:
    before = bytes(text[:pos])
    line, column = before.count(b"\n") + 1, pos - before.rfind(b"\n")
    got = bytes(text[pos : pos + 60]).split(b"\n")[0].decode("utf-8", "replace").strip()
    return DataError(
        f"{at(file, line, column)}: a line must hold one number, the score; {got!r} is not one."
    )


def write_scores(scores: Iterable[float], path: str | os.PathLike[str]) -> None:
    """One number a line, with all its digits."""
    with write_bytes(Path(path)) as out:
        out.write("".join(f"{float(s)!r}\n" for s in scores).encode())
