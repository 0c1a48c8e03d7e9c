"""Vectors of documents that were computed elsewhere: files of NumPy and Parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, missing_dependency, warn
from firstpage.search.documents import ID_KEYS
from firstpage.search.encoders import Encoder
from firstpage.search.sources import key_among

LENGTH_TOLERANCE = 0.01  # by which lengths of vectors may differ, relatively, without a remark
PRECOMPUTED = "file"  # of the encoder of precomputed vectors
SUFFIXES = (".npy", ".npz", ".parquet")


class PrecomputedVectors:
    """Vectors of documents that were computed elsewhere.

    Of a document with several vectors, the first one is that of the whole text.

    Parameters
    ----------
    ids : sequence of str
        The document of each vector; those of its passages repeat its id.
    vectors : array of shape (n_vectors, dimensions)
        The vectors, which are scaled to length 1.
    source : str, default "the table of vectors"
        What messages call them.
    encoder : Encoder, optional
        The encoder that computed them, which then encodes queries and new documents.  Without one,
        the index knows none.

    Raises
    ------
    DataError
        If there are no vectors, their number is not that of the ids, or one is zero or not finite.
    """

    def __init__(
        self,
        ids: Sequence[str],
        vectors: Array,
        source: str = "the table of vectors",
        encoder: Encoder | None = None,
    ) -> None:
        self.encoder = encoder
        self.source = source
        self.ids = [str(name) for name in ids]
        try:
            self.vectors = np.asarray(vectors, np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{source}: the vectors are not numbers of one shape.") from error
        if self.vectors.ndim != 2 or not self.vectors.size:
            raise DataError(f"{source}: has no table of vectors; its shape is {np.shape(vectors)}.")
        if len(self.ids) != len(self.vectors):
            raise DataError(
                f"{source}: there are {len(self.vectors):,} vectors, but {len(self.ids):,} ids."
            )
        if encoder is not None and encoder.dimensions != self.dimensions:
            raise DataError(
                f"{source}: has vectors of {self.dimensions} dimensions; those of the encoder "
                f"{encoder.name!r} have {encoder.dimensions}."
            )
        self._check_values()
        self.positions: dict[str, list[int]] = {}
        for position, name in enumerate(self.ids):
            self.positions.setdefault(name, []).append(position)

    def _check_values(self) -> None:
        squares = np.einsum("ij,ij->i", self.vectors, self.vectors, dtype=np.float64)
        lengths = np.sqrt(squares)
        for bad, what in ((~np.isfinite(lengths), "not finite"), (lengths == 0, "zero")):
            if bad.any():
                raise DataError(
                    f"{self.source}: {np.count_nonzero(bad):,} vectors are {what}, such as that of "
                    f"{self.ids[int(bad.argmax())]!r}; correct them or leave them out."
                )
        if lengths.max() > (1 + LENGTH_TOLERANCE) * lengths.min():
            warn(
                f"{self.source}: vectors have lengths from {lengths.min():.3g} to "
                f"{lengths.max():.3g}; they are scaled to length 1, since similarity is the cosine."
            )

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""
        return int(self.vectors.shape[1])

    @property
    def name(self) -> str:
        """The name of the encoder."""
        return PRECOMPUTED if self.encoder is None else self.encoder.name

    @cached_property
    def digest(self) -> str:
        """The digest of the encoder; of ids and vectors, if it is not known."""
        if self.encoder is not None:
            return self.encoder.digest
        digest = hashlib.sha256(json.dumps(self.ids).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.vectors).data)
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return what the index records."""
        return {"name": self.name, "digest": self.digest, "dimensions": self.dimensions}

    def of_document(self, name: str) -> Array | None:
        """Return the vectors of a document, or None if there are none."""
        positions = self.positions.get(name)
        return None if positions is None else self.vectors[positions]


def is_vector_file(name: str) -> bool:
    """Return whether a name is that of a file of vectors, by its suffix."""
    return Path(name).suffix.lower() in SUFFIXES


def read_precomputed(
    path: str | os.PathLike[str],
    ids: str | os.PathLike[str] | None = None,
    encoder: Encoder | None = None,
) -> PrecomputedVectors:
    """Return the vectors of a file: npy with a file of ids, npz, or Parquet."""
    file = Path(path)
    if not file.exists():
        raise DataError(f"{file}: no such file.")
    suffix = file.suffix.lower()
    if (suffix == ".npy") != (ids is not None):
        raise DataError(
            f"{file}: an .npy file needs a file with the id of each vector, one per line."
            if ids is None
            else f"{file}: has ids of its own; only an .npy file needs a file of ids."
        )
    try:
        if suffix == ".parquet":
            return PrecomputedVectors(*_parquet_columns(file), str(file), encoder)
        if suffix == ".npz":
            return PrecomputedVectors(*_npz_arrays(file), str(file), encoder)
        stored = np.load(file, allow_pickle=False, mmap_mode="r")
        lines = Path(ids or "").read_text("utf-8").splitlines()
    except (OSError, ValueError, EOFError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{file}: its vectors cannot be read ({reason}).") from error
    return PrecomputedVectors([line.strip() for line in lines], stored, str(file), encoder)


def _npz_arrays(file: Path) -> tuple[Sequence[str], Array]:
    """Return the ids and the vectors of an npz file: its arrays with one axis and with two."""
    with np.load(file, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    of_axes = {n: [array for array in arrays.values() if array.ndim == n] for n in (1, 2)}
    if [len(each) for each in of_axes.values()] != [1, 1]:
        listed = ", ".join(f"{name}{array.shape}" for name, array in arrays.items())
        raise DataError(
            f"{file}: needs one array of ids and one table of vectors; it has {listed or 'none'}."
        )
    return of_axes[1][0].tolist(), of_axes[2][0]


def _parquet_columns(file: Path) -> tuple[Sequence[str], Array]:
    """Return the ids and the vectors of a Parquet file: the column of an id, and that of lists."""
    try:
        import polars
    except ImportError as error:
        raise missing_dependency("polars", "tables", f"Reading {file}") from error
    try:
        table = polars.read_parquet(file, glob=False)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{file}: cannot be read as Parquet ({reason}).") from error
    id_column = key_among(table.columns, ID_KEYS)
    lists = [
        name
        for name, dtype in table.schema.items()
        if dtype.base_type() in (polars.List, polars.Array)
    ]
    if id_column is None or len(lists) != 1:
        raise DataError(
            f"{file}: needs a column of ids, such as 'id', and one column of vectors, which are "
            f"lists of numbers; it has {', '.join(map(repr, table.columns))}."
        )
    rows = table[lists[0]].to_list()
    lengths = {len(row or ()) for row in rows}
    if len(lengths) > 1:
        raise DataError(f"{file}: vectors have different lengths, such as {sorted(lengths)[:2]}.")
    return table[id_column].cast(polars.String).to_list(), np.array(rows)
