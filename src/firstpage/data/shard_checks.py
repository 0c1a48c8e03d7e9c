"""What shards are checked for: that no query is in two of them, and a hash of what they hold."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids
from firstpage.errors import DataError
from firstpage.types import Words

SAMPLED = 1 << 16  # bytes of features that a fingerprint looks at


class Once:
    """Every query in one shard only: whatever sums over queries relies on it."""

    def __init__(self) -> None:
        self._known: Words = np.empty(0, np.uint64)  # hashes, sorted
        self._shards: list[tuple[str, Ids]] = []

    def add(self, data: Dataset, name: str) -> None:
        """One more shard; a query that is in an earlier one is refused, naming both."""
        hashes = data.queries.hashes
        at = np.searchsorted(self._known, hashes)
        if (np.append(self._known, np.uint64(0))[at] == hashes)[at < len(self._known)].any():
            mine = set(data.queries)
            for other, ids in self._shards:
                twice = next((query for query in ids if query in mine), None)
                if twice is not None:
                    raise DataError(
                        f"the query {twice!r} is in {other} and in {name}; the rows of a query "
                        "must all be in one shard."
                    )
        self._known = np.sort(np.concatenate([self._known, hashes]), kind="stable")
        self._shards.append((name, data.queries.compact()))


def hash_of(data: Dataset) -> str:
    """Of labels, queries and (at most 64 KB of) features."""
    found = hashlib.sha256(data.y.tobytes() + data.offsets.tobytes())
    ids = data.queries.compact()
    found.update(ids.data.tobytes() + ids.ends.tobytes())
    X: Any = data.X if isinstance(data.X, np.ndarray) else data.X.data.reshape(-1, 1)
    step = max(1, -(-X.nbytes // SAMPLED))
    found.update(np.ascontiguousarray(X[::step]).tobytes())
    return found.hexdigest()
