"""Shards in the memory of a Dask cluster's workers, as the columns that other libraries take."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from firstpage.engine.cluster import DaskEngine, library
from firstpage.errors import DataError
from firstpage.rankers.pieces import Piece, Spec
from firstpage.rankers.spread import Spread
from firstpage.types import Array, Floats

Check = Callable[[Floats, Array], None]
"""(labels, lengths of lists) -> nothing, or an error that says what cannot be learned from."""


class Loaded(NamedTuple):
    """A shard in memory; `lengths` are those of the lists, weights those of documents."""

    features: Any
    labels: Floats
    lengths: Array
    weights: Floats


class Columns:
    """Every shard read by a worker, and kept there as long as this is.

    plain   labels as they are, and not as the ranker reads them
    """

    def __init__(
        self, place: DaskEngine, training: Spread, plain: bool, check: Check | None
    ) -> None:
        self._client, self._training = place.client, training
        workers = place.workers()
        found = [
            self._client.submit(
                loaded, spec, plain, check, workers=[workers[n % len(workers)]],
                allow_other_workers=True, pure=False,
            )
            for n, spec in enumerate(training.specs())
        ]  # fmt: skip
        library().wait(found)
        sizes = self._client.gather(self._client.map(sizes_of, found, pure=False))
        self._parts = [(part, size) for part, size in zip(found, sizes, strict=True) if size[0]]

    def features(self) -> Any:
        """A row a document."""
        import dask.array as da

        width, kind = self._training.n_features, self._training.shards.dtype
        return da.concatenate([
            da.from_delayed(part, (rows, width), kind) for part, (rows, _) in self._each("features")
        ])  # fmt: skip

    def column(self, name: str) -> Any:
        """`labels`, `lengths` or `weights`."""
        import dask.array as da

        which, kind = (1, np.int64) if name == "lengths" else (0, np.float64)
        return da.concatenate([
            da.from_delayed(part, (size[which],), kind) for part, size in self._each(name)
        ])  # fmt: skip

    def _each(self, name: str) -> list[tuple[Any, tuple[int, int]]]:
        import dask

        parts, sizes = zip(*self._parts, strict=True)
        found = self._client.map(operator.attrgetter(name), parts, pure=False)
        return [(dask.delayed(one), size) for one, size in zip(found, sizes, strict=True)]


def loaded(spec: Spec, plain: bool, check: Check | None) -> Loaded:
    """On a worker: read a shard, scaled, without empty queries."""
    piece = Piece(spec, 1)
    labels = piece.data.y if plain else piece.truth.labels
    if len(np.unique(labels)) != len(np.unique(labels.astype(np.float32))):
        raise DataError(
            f"{piece.data.source}: LightGBM keeps labels in 32 bits, and some of these would be "
            "alike; take coarser ones."
        )
    if check is not None:
        check(labels, piece.data.lengths)
    X: Any = piece.data.X
    if isinstance(X, np.ndarray):
        X = np.array(X)  # not a view of what is mapped
    else:
        from scipy.sparse import csr_matrix

        X = csr_matrix(X)
    weights = np.repeat(piece.shares, piece.data.lengths)
    found = Loaded(X, np.array(labels), np.asarray(piece.data.lengths), weights)
    piece.release()
    return found


def sizes_of(shard: Loaded) -> tuple[int, int]:
    """Documents and queries."""
    return len(shard.labels), len(shard.lengths)
