"""What shards are checked for: no query in two of them, and arrays that are those written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids
from firstpage.errors import DataError
from firstpage.types import Array, Words

AGAIN = "half-written, or damaged; write the shards again."


class Once:
    """Every query in one shard (file, block) only: whatever sums over queries relies on it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._known: Words = np.empty(0, np.uint64)  # hashes, sorted
        self._added: list[tuple[str, Ids]] = []

    def add(self, data: Dataset, name: str) -> None:
        """One more shard, file or block; a query of another is refused, naming both."""
        hashes = data.queries.hashes
        at = np.searchsorted(self._known, hashes)
        if (np.append(self._known, np.uint64(0))[at] == hashes)[at < len(self._known)].any():
            mine = set(data.queries)
            for other, ids in self._added:
                if other == name:
                    continue
                twice = next((query for query in ids if query in mine), None)
                if twice is not None:
                    raise DataError(
                        f"the query {twice!r} is in {other} and in {name}; the rows of a query "
                        f"must all be in one {self._what}."
                    )
        self._known = np.sort(np.concatenate([self._known, hashes]), kind="stable")
        self._added.append((name, data.queries.compact()))


def has_arrays(folder: Path) -> bool:
    """Whether features lie there as in shards, be there a table or not."""
    return any(folder.glob("[0-9]*/X.npy")) or any(folder.glob("[0-9]*/indptr.npy"))


def mapped(file: Path, size: int) -> Array:
    """An array of a shard, mapped; a file that is missing, cut short or no array is refused."""
    found = file.stat().st_size if file.is_file() else None
    if found != size:
        what = "is missing" if found is None else f"has {found} bytes instead of {size}"
        raise DataError(f"{file}: {what}: {AGAIN}")
    try:
        array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError):
        raise DataError(f"{file}: holds no array: {AGAIN}") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}).") from error
    return array


def check_same(data: Dataset, sha256: str) -> None:
    """Refuse arrays of the right size that are not those which were written.

    Labels and queries are looked at whole, of features what the hash looks at; and that sparse
    ones lie in the matrix, for kernels trust them.
    """
    same = data.sha256(with_names=True) == sha256
    if same and not isinstance(data.X, np.ndarray):
        ends, columns = data.X.indptr, data.X.indices
        same = bool(ends[0] == 0 and ends[-1] == len(columns) and (np.diff(ends) >= 0).all())
        same &= not len(columns) or (columns.min() >= 0 and columns.max() < data.n_features)
    if not same:
        raise DataError(f"{data.source}: changed since it was written; write the shards again.")
