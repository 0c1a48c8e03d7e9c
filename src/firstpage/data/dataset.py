"""Dataset: features, labels and names of documents, grouped by query.  Immutable."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage.data.groups import (
    check_offsets,
    duplicate_rows,
    group_rows,
    offsets_from_lengths,
    query_rows,
)
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from firstpage.errors import DataError, FirstpageWarning
from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Features = Array | csr_array


HASHED_BYTES = 1 << 16  # bytes of features that a digest covers
INTERLEAVED = "{what}: the rows of some queries do not stand together; they were regrouped."


@dataclass(frozen=True, eq=False)
class Dataset:
    """Documents of many queries.  Query q owns the rows offsets[q]:offsets[q+1].

    `X` is a C-ordered float32 or float64 array, possibly memory-mapped, or a CSR array.  Labels
    are float64, bigger is better.  `row_order` is there where rows had to be regrouped: the number
    that each row had in its file.  `dataset[3]`, `dataset[2:8]`, `dataset[[5, 1]]` and
    `dataset[mask]` pick queries; slices of neighboring queries share memory.
    """

    X: Features
    y: Floats
    offsets: Ints
    queries: Ids
    docids: Ids | None = None
    feature_names: tuple[str, ...] | None = None
    source: str = field(default="data", repr=False)
    row_order: Ints | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        rows = self.X.shape[0]
        if not len(self.y) == rows == int(self.offsets[-1]):
            raise DataError(
                f"{self.source}: {rows} rows of features, {len(self.y)} labels and "
                f"{int(self.offsets[-1])} documents in queries; the three must be equal."
            )
        check_offsets(self.offsets, self.queries, rows, self.source)
        if self.docids is not None and len(self.docids) != rows:
            raise DataError(f"{self.source}: {len(self.docids)} document ids for {rows} documents.")
        names = self.feature_names
        if names is not None and (len(names) != self.n_features or len(set(names)) < len(names)):
            raise DataError(
                f"{self.source}: {self.n_features} features need as many different names; got "
                f"{len(names)}."
            )
        for name in ("X", "y", "offsets"):  # views: the caller's own arrays stay as they are
            object.__setattr__(self, name, _read_only(getattr(self, name)))

    # --- making one

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        qid: Any,
        docid: Iterable[object] | None = None,
        feature_names: Iterable[str] | None = None,
        source: str = "data",
    ) -> Dataset:
        """From one label and one query id a row; interleaved queries are regrouped."""
        features = _as_features(X, source)
        labels = _as_labels(y, source)
        queries, offsets, order = group_rows(qid, features.shape[0])
        ids = None if docid is None else Ids.from_values(docid)
        if ids is not None and len(ids) != features.shape[0]:
            raise DataError(f"{source}: {len(ids)} document ids for {features.shape[0]} documents.")
        if order is not None and len(labels) == len(order):
            warnings.warn(INTERLEAVED.format(what=source), FirstpageWarning, stacklevel=2)
            features, labels = features[order], labels[order]
            ids = None if ids is None else ids[order]
        names = None if feature_names is None else tuple(feature_names)
        return cls(features, labels, offsets, queries, ids, names, source, order)

    # --- looking at it

    def __len__(self) -> int:
        """The number of queries."""
        return len(self.queries)

    @property
    def n_docs(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        return not isinstance(self.X, np.ndarray)

    @property
    def lengths(self) -> Ints:
        """Documents per query."""
        return np.diff(self.offsets)

    @cached_property
    def qid(self) -> Array:
        """The query id of every row: whole numbers as int64, else strings."""
        return np.repeat(self.queries.to_array(), self.lengths)

    @cached_property
    def docid(self) -> Array | None:
        """The document id of every row as strings, or None."""
        return None if self.docids is None else np.array(list(self.docids), object)

    @property
    def truth(self) -> Truth:
        """The labels as a ground truth that can be converted (`top_k`, `full_order`, ..)."""
        return Truth(self.y, self.offsets, self.queries)

    def sha256(self, *, with_names: bool = False) -> str:
        """Return a digest of labels, (at most 64 KB of) features and, if asked, query ids."""
        digest = hashlib.sha256(self.y.tobytes() + self.offsets.tobytes())
        if with_names:
            ids = self.queries.compact()
            digest.update(ids.data.tobytes() + ids.ends.tobytes())
        X: Any = self.X if isinstance(self.X, np.ndarray) else self.X.data.reshape(-1, 1)
        step = max(1, -(-X.nbytes // HASHED_BYTES))
        digest.update(np.ascontiguousarray(X[::step]).tobytes())
        return digest.hexdigest()

    def fingerprint(self) -> dict[str, Any]:
        """What a model file says of its training data."""
        return {
            "source": self.source.replace("\\", "/").rsplit("/", 1)[-1],
            "queries": len(self),
            "documents": self.n_docs,
            "features": self.n_features,
            "sha256": self.sha256(),
        }

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        return (
            f"Dataset({self.source}: {len(self)} queries, {self.n_docs} documents, "
            f"{self.n_features} features, {kind} {self.X.dtype})"
        )

    # --- picking queries

    def __getitem__(self, which: int | np.integer | slice | Iterable[Any]) -> Dataset:
        if isinstance(which, (int, np.integer)):
            index = int(which) + (len(self) if which < 0 else 0)
            if not 0 <= index < len(self):
                raise IndexError(f"query {which} of {len(self)}")
            which = slice(index, index + 1)
        if isinstance(which, slice):
            start, stop, step = which.indices(len(self))
            if step == 1:
                return self._neighbors(start, max(start, stop))
            which = range(start, stop, step)
        picked = np.asarray(which if hasattr(which, "__array__") else list(which))
        if picked.dtype == bool:
            if len(picked) != len(self):
                raise DataError(f"the mask has {len(picked)} entries for {len(self)} queries.")
            picked = np.flatnonzero(picked)
        if len(picked) and picked.dtype.kind not in "iu":
            raise DataError(f"queries are picked by whole numbers or a mask; got {picked.dtype}.")
        picked = picked.astype(np.int64)
        if ((picked < -len(self)) | (picked >= len(self))).any():
            raise IndexError(f"there are {len(self)} queries, numbered from 0")
        return self._picked(np.where(picked < 0, picked + len(self), picked))

    def __iter__(self) -> Iterator[Dataset]:
        return (self[q] for q in range(len(self)))

    def _neighbors(self, start: int, stop: int) -> Dataset:
        lo, hi = int(self.offsets[start]), int(self.offsets[stop])
        return replace(
            self,
            X=self.X[lo:hi],
            y=self.y[lo:hi],
            offsets=self.offsets[start : stop + 1] - lo,
            queries=self.queries[start:stop],
            docids=None if self.docids is None else self.docids[lo:hi],
            row_order=None,
        )

    def _picked(self, queries: Ints) -> Dataset:
        rows = query_rows(self.offsets, queries)
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            offsets=offsets_from_lengths(self.lengths[queries]),
            queries=self.queries[queries],
            docids=None if self.docids is None else self.docids[rows],
            row_order=None,
        )

    def query(self, name: object) -> Dataset:
        """The one query of this id."""
        wanted = str(name)
        for number, query in enumerate(self.queries):
            if query == wanted:
                return self[number]
        raise DataError(f"{self.source}: there is no query {wanted!r}.")

    def to_row_order(self, values: Any) -> Array:
        """Values given in the order of the file, such as a file of scores, in the order of rows."""
        array = np.asarray(values)
        return array if self.row_order is None else array[self.row_order]

    # --- changing it: always a new dataset

    def with_labels(self, y: Any) -> Dataset:
        """The same documents under another truth."""
        labels = np.array(y.labels if hasattr(y, "labels") else y, np.float64)
        return replace(self, y=labels)

    def with_features(self, X: Any, feature_names: Iterable[str] | None = None) -> Dataset:
        """The same documents under other features."""
        names = None if feature_names is None else tuple(feature_names)
        return replace(self, X=_as_features(X, self.source), feature_names=names)

    def dense(self) -> Dataset:
        """With a dense feature array."""
        return replace(self, X=self.X.toarray()) if self.is_sparse else self  # type: ignore[union-attr]


def _read_only(array: Any) -> Any:
    """A view that cannot be written through."""
    if isinstance(array, np.ndarray):
        view = array.view(np.ndarray)  # slices of a memmap are slow to make
        view.setflags(write=False)
        return view
    from scipy.sparse import csr_array

    parts = tuple(_read_only(a) for a in (array.data, array.indices, array.indptr))
    return csr_array(parts, shape=array.shape, copy=False)


def _as_labels(y: Any, source: str) -> Floats:
    try:
        return np.array(y, np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise DataError(f"{source}: labels must be numbers ({error}).") from error


def _as_features(X: Any, source: str) -> Features:
    """A C-ordered float array or CSR array, without a copy where it already is one."""
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        return csr_array(X) if X.dtype.kind == "f" else csr_array(X, dtype=np.float32)
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(f"{source}: features must be two-dimensional, and have {array.ndim}.")
    if array.dtype not in (np.float32, np.float64):
        if array.dtype.kind == "c":
            raise DataError(f"{source}: features must be real numbers, not complex ones.")
        try:
            array = array.astype(np.float64 if array.dtype.kind in "iufb" else float)
        except (TypeError, ValueError) as error:
            raise DataError(f"{source}: features must be numbers ({error}).") from error
    return np.ascontiguousarray(array)


def concat_datasets(blocks: Sequence[Dataset]) -> Dataset:
    """One below the other; rows of a query that is in several are brought together.

    Narrower ones are filled with zeros on the right, as text leaves those out.
    """
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    X = concat_features([pad_features(b.X, max(c.n_features for c in blocks)) for b in blocks])
    y = np.concatenate([b.y for b in blocks])
    queries = reduce(Ids.concatenate, [b.queries.compact() for b in blocks])
    lengths = np.concatenate([b.lengths for b in blocks])
    docids = None
    if all(b.docids is not None for b in blocks):
        docids = reduce(
            Ids.concatenate, [b.docids.compact() for b in blocks if b.docids is not None]
        )
    _, where, inverse = np.unique(queries.hashes, return_index=True, return_inverse=True)
    if len(where) < len(queries):
        place = np.empty(len(where), np.int64)
        place[np.argsort(where)] = np.arange(len(where))
        number = np.repeat(place[inverse], lengths)
        queries, lengths = queries[np.sort(where)], np.bincount(number, minlength=len(where))
        if (np.diff(number) < 0).any():
            warnings.warn(INTERLEAVED.format(what=first.source), FirstpageWarning, stacklevel=3)
            order = np.argsort(number, kind="stable")
            X, y = X[order], y[order]
            docids = None if docids is None else docids[order]
    offsets = offsets_from_lengths(lengths)
    return Dataset(X, y, offsets, queries, docids, first.feature_names, first.source)


def concat_features(parts: Sequence[Any]) -> Any:
    """Feature arrays of one width, dense where all are."""
    if all(isinstance(X, np.ndarray) for X in parts):
        return np.concatenate(parts)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(X) for X in parts], format="csr"))


def pad_features(X: Any, width: int) -> Any:
    """With columns of zeros on the right."""
    if X.shape[1] == width:
        return X
    if isinstance(X, np.ndarray):
        out = np.zeros((X.shape[0], width), X.dtype)
        out[:, : X.shape[1]] = X
        return out
    from scipy.sparse import csr_array

    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


# --- what looks wrong in data that were read: one warning each, in every reader

MIN_QUERIES_TO_WARN = 10  # queries: fewer may well have one document each
SINGLE_DOCUMENT_FRACTION = 0.9  # of the queries


def data_warnings(data: Dataset) -> list[str]:
    """Return what looks wrong in the data, a sentence each, without the name of the file."""
    found = []
    if data.docids is not None:
        named = data.docids.ends > data.docids.starts
        repeated = duplicate_rows(data.docids.hashes, data.offsets, named)
        if len(repeated):
            row = int(repeated[0])
            query = data.queries[int(np.searchsorted(data.offsets, row, side="right")) - 1]
            found.append(
                f"holds {len(repeated)} second or later copies of documents in their queries, and "
                f"every copy counts; the first is {data.docids[row]!r} in query {query!r}. Drop "
                "them if they are not meant."
            )
    single = int((data.lengths == 1).sum())
    if len(data) >= MIN_QUERIES_TO_WARN and single >= SINGLE_DOCUMENT_FRACTION * len(data):
        found.append(
            f"{single} of {len(data)} queries have one document, where nothing can be ranked; are "
            "the ids of queries and documents swapped?"
        )
    return found


def warn_about(source: str, remarks: Iterable[str], stacklevel: int = 3) -> None:
    """Warn of each remark on a file."""
    for remark in remarks:
        warnings.warn(f"{source}: {remark}", FirstpageWarning, stacklevel=stacklevel + 1)
