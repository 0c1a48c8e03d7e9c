"""LETOR text block by block: whole queries, so many rows at a time, never all in memory."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.files import Progress
from firstpage.data.letor_reader import LetorReader
from firstpage.data.stacked import stacked
from firstpage.errors import DataError


def letor_blocks(
    path: Path, rows: int, progress: Progress | None = None, sparse: bool | None = None,
    first: int | None = None,
) -> Generator[Dataset, None, int]:  # fmt: skip
    """Datasets of about so many rows; the query at a block's end is kept for the next.

    Whether features are sparse, and whether they count from 0 or 1 (`first`), is decided by the
    first block, or by the file before; later ones are read alike.  A block has the features that
    were seen so far: later ones may have more.  At the end the number of the first feature is told.
    """
    reader = LetorReader(path, np.dtype("float32"), sparse, None, True if first == 0 else None)
    rest: Dataset | None = None
    for _ in reader.chunks(progress):
        if reader.rows < rows or len(reader.segments) < 2:
            continue
        name = list(reader.queries)[reader.segments[-1][0]].decode("utf-8", "surrogateescape")
        block = _taken(reader, rest)
        first = _same_first(reader, first)
        unfinished = list(block.queries).index(name)
        rest = block[[unfinished]]
        last = unfinished == len(block) - 1  # as in any file that is sorted: nothing is copied
        yield block[:-1] if last else block[np.arange(len(block)) != unfinished]
        reader.sparse = block.is_sparse
    if reader.rows:
        rest = _taken(reader, rest)
        first = _same_first(reader, first)
    if rest is None or first is None:
        raise DataError(f"{path}: there is no document in it.")
    yield rest
    return first


def _taken(reader: LetorReader, rest: Dataset | None) -> Dataset:
    found = reader.take()
    return found if rest is None else stacked([rest, found])


def _same_first(reader: LetorReader, first: int | None) -> int:
    if first is not None and reader.first != first:
        raise DataError(
            f"{reader.path}: a feature 0 comes late, when others were taken to count from 1; "
            "number features from 1."
        )
    return reader.first
