"""Dataset: an immutable collection of documents grouped by query."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, Table, Tabular, warn
from firstpage.data.categories import (
    as_positions,
    check_categories,
    decoded,
    encode_columns,
    find_feature,
)
from firstpage.data.groups import (
    check_offsets,
    check_query_weights,
    group_rows,
    offsets_from_lengths,
    query_rows,
)
from firstpage.data.ids import Ids
from firstpage.data.joins import join_labels
from firstpage.data.rows import take_rows
from firstpage.data.runs import Qrels
from firstpage.data.truth import Truth

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Features: TypeAlias = "Array | csr_array"

HASHED_BYTES = 1 << 16  # bytes of features that a digest covers, at most
INTERLEAVED = "{source}: the rows of some queries are not contiguous; they were regrouped."


@dataclass(frozen=True, eq=False)
class Dataset(Tabular):
    """Features, labels and ids of documents, grouped by query.

    Query `q` owns the rows `offsets[q]:offsets[q + 1]`.  A dataset is immutable: every method
    that changes something returns a new one.  `dataset[3]`, `dataset[2:8]`, `dataset[[5, 1]]` and
    `dataset[mask]` select queries; a slice of adjacent queries shares memory with the dataset.
    `len(dataset)` is the number of queries.  Use `Dataset.from_arrays` to build one from arrays.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_docs, n_features)
        Features: a C-ordered float32 or float64 array, possibly memory-mapped, or a CSR array.
    y : ndarray of shape (n_docs,)
        Labels (float64); larger is better.
    offsets : ndarray of shape (n_queries + 1,)
        Where each query begins, and where the last one ends.
    queries : Ids
        The id of each query.
    docids : Ids, optional
        The id of each document.
    feature_names : tuple of str, optional
        The name of each feature; names must be distinct.
    source : str, default "data"
        What error messages call the data, usually the file they were read from.
    row_order : ndarray of shape (n_docs,), optional
        The original row number of each row, if rows had to be regrouped by query.
    recipe : mapping, optional
        How the features were computed from texts (`TextFeatures.recipe`); model files store it.
    query_weights : ndarray of shape (n_queries,), optional
        The weight of each query in training, such as the confidence of its judgments.  Measures
        do not use it, and files do not store it.
    categories : mapping of int to tuple of str, optional
        The categories of each column (counted from 0) that holds categories instead of numbers.
        `X` then contains their indices, and NaN where the category is missing.
    positions : ndarray of shape (n_docs,), optional
        The position at which each document was shown when its label was clicked; `LambdaMART`
        corrects for it.  Files do not store it.
    zero_based : bool, default False
        Whether the features of the LETOR file counted from 0.

    Attributes
    ----------
    n_docs : int
        The number of documents.
    n_features : int
        The number of features.
    is_sparse : bool
        Whether the features are a CSR array.
    n_missing : int
        The number of missing features (NaN).
    lengths : ndarray of shape (n_queries,)
        The number of documents of each query.
    qid : ndarray of shape (n_docs,)
        The query id of each row: int64 if all ids are integers, else strings.
    docid : ndarray of shape (n_docs,) or None
        The document id of each row as a string.
    truth : Truth
        The labels as a ground truth that can be converted.

    Raises
    ------
    DataError
        If the lengths of the arrays do not agree.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays([[0.1, 1], [0.7, 0], [0.3, 1]], [0, 2, 1], ["a", "a", "b"])
    >>> data
    Dataset(data: 2 queries, 3 documents, 2 features, dense float64)
    >>> data[0].y.tolist()
    [0.0, 2.0]
    """

    X: Features
    y: Floats
    offsets: Ints
    queries: Ids
    docids: Ids | None = None
    feature_names: tuple[str, ...] | None = None
    source: str = field(default="data", repr=False)
    row_order: Ints | None = field(default=None, repr=False)
    recipe: Mapping[str, Any] | None = field(default=None, repr=False)
    query_weights: Floats | None = field(default=None, repr=False)
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict, repr=False)
    positions: Ints | None = field(default=None, repr=False)
    zero_based: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        rows = self.X.shape[0]
        if not len(self.y) == rows == int(self.offsets[-1]):
            raise DataError(
                f"{self.source}: {rows} rows of features, {len(self.y)} labels and "
                f"{int(self.offsets[-1])} documents in queries; the three must be equal."
            )
        check_offsets(self.offsets, self.queries, rows, self.source)
        check_query_weights(self.query_weights, len(self.queries), self.source)
        if self.docids is not None and len(self.docids) != rows:
            raise DataError(f"{self.source}: {len(self.docids)} document ids for {rows} documents.")
        names = self.feature_names
        if names is not None and (len(names) != self.n_features or len(set(names)) < len(names)):
            raise DataError(
                f"{self.source}: {self.n_features} features need as many distinct names; got "
                f"{len(names)}."
            )
        if self.categories:
            check_categories(self)
        if self.positions is not None and len(self.positions) != rows:
            raise DataError(f"{self.source}: {len(self.positions)} positions for {rows} documents.")
        for name in ("X", "y", "offsets"):  # views: the caller's arrays stay writable
            object.__setattr__(self, name, _read_only(getattr(self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without what is computed from the labels; a copy is read-only too."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    # --- construction

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
        """Return a dataset of arrays with one entry per document.

        Rows of one query need not be contiguous: they are regrouped, with a warning.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n_docs, n_features)
            Features.  Arrays other than float32 and float64 are converted to float64.
        y : array_like of shape (n_docs,)
            Labels; larger is better.
        qid : array_like of shape (n_docs,)
            The query id of each document: strings or numbers.
        docid : iterable of length n_docs, optional
            Document ids.
        feature_names : iterable of str, optional
            Names of the features.
        source : str, default "data"
            What error messages call the data.

        Returns
        -------
        Dataset
            The documents grouped by query, in order of first appearance.

        Raises
        ------
        DataError
            If lengths do not agree, or features or labels are not numbers.

        Examples
        --------
        >>> import firstpage as fp
        >>> data = fp.Dataset.from_arrays([[1.0], [2.0]], [0, 1], [7, 7], docid=["d1", "d2"])
        >>> data.docid.tolist()
        ['d1', 'd2']
        """
        features = _as_features(X, source)
        labels = _as_labels(y, source)
        queries, offsets, order = group_rows(qid, features.shape[0])
        ids = None if docid is None else Ids.from_values(docid)
        if ids is not None and len(ids) != features.shape[0]:
            raise DataError(f"{source}: {len(ids)} document ids for {features.shape[0]} documents.")
        if order is not None and len(labels) == len(order):
            warn(INTERLEAVED.format(source=source))
            features, labels = features[order], labels[order]
            ids = None if ids is None else ids[order]
        names = None if feature_names is None else tuple(feature_names)
        return cls(features, labels, offsets, queries, ids, names, source, order)

    # --- properties

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.queries)

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return int(self.offsets[-1])

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a CSR array."""
        return not isinstance(self.X, np.ndarray)

    @cached_property
    def n_missing(self) -> int:
        """The number of missing features (NaN)."""
        X: Any = self.X if isinstance(self.X, np.ndarray) else self.X.data.reshape(-1, 1)
        blocks = range(0, len(X), 1 << 16)
        return sum(int(np.isnan(X[lo : lo + (1 << 16)]).sum()) for lo in blocks)

    @property
    def lengths(self) -> Ints:
        """The number of documents of each query."""
        return np.diff(self.offsets)

    @cached_property
    def qid(self) -> Array:
        """The query id of each row: int64 if all ids are integers, else strings."""
        return np.repeat(self.queries.to_array(), self.lengths)

    @cached_property
    def docid(self) -> Array | None:
        """The document id of each row as a string, or None."""
        return None if self.docids is None else np.array(list(self.docids), object)

    @cached_property
    def truth(self) -> Truth:
        """The labels as a ground truth that can be converted (`top_k`, `full_order`, ..)."""
        return Truth(self.y, self.offsets, self.queries)

    def sha256(self, *, with_names: bool = False) -> str:
        """Return a SHA-256 digest of the labels and of a sample of the features.

        Parameters
        ----------
        with_names : bool, default False
            Also cover the query ids.

        Returns
        -------
        str
            The digest in hexadecimal.
        """
        digest = hashlib.sha256(self.y.tobytes() + self.offsets.tobytes())
        if with_names:
            ids = self.queries.compact()
            digest.update(ids.data.tobytes() + ids.ends.tobytes())
        X: Any = self.X
        for array in (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr):
            step = max(1, -(-array.nbytes // HASHED_BYTES))
            digest.update(np.ascontiguousarray(array[::step]).tobytes())
        return digest.hexdigest()

    def fingerprint(self) -> dict[str, Any]:
        """Return what a model file records about its training data.

        Returns
        -------
        dict
            The source, the numbers of queries, documents and features, and a digest.
        """
        return {
            "source": self.source.replace("\\", "/").rsplit("/", 1)[-1],
            "queries": len(self),
            "documents": self.n_docs,
            "features": self.n_features,
            "sha256": self.sha256(),
            **({"missing": missing} if (missing := self.n_missing) else {}),
            **({"zero_based": True} if self.zero_based else {}),
            **({} if self.recipe is None else {"recipe": dict(self.recipe)}),
        }

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        return (
            f"Dataset({self.source}: {len(self)} queries, {self.n_docs} documents, "
            f"{self.n_features} features, {kind} {self.X.dtype})"
        )

    def _frame_columns(self) -> dict[str, Any]:
        """Return label, qid, docid (if there are any) and features, one row per document."""
        columns: dict[str, Any] = {"label": self.y, "qid": self.qid.tolist()}
        if self.docid is not None:
            columns["docid"] = self.docid.tolist()
        reserved = {"label", "qid", "docid"} & set(self.feature_names or ())
        if reserved:
            raise DataError(f"a feature cannot be named {', '.join(sorted(reserved))} in a table.")
        X = np.asarray(self.dense().X)
        names = self.feature_names or [f"f{i + 1}" for i in range(self.n_features)]
        return columns | {
            name: decoded(X[:, i], self.categories[i])
            if i in self.categories
            else np.ascontiguousarray(X[:, i])
            for i, name in enumerate(names)
        }

    def summary_table(self) -> Table:
        """Return the numbers of queries, documents and features."""
        kind = f"{'CSR' if self.is_sparse else 'dense'} {self.X.dtype}"
        counts = [str(len(self)), str(self.n_docs), str(self.n_features), kind]
        return Table(["queries", "documents", "features", "storage"], [counts], self.source)

    # --- selecting queries

    def __getitem__(self, key: int | np.integer | slice | Iterable[Any]) -> Dataset:
        """Return the selected queries: an index, a slice, indices or a boolean mask."""
        if isinstance(key, (int, np.integer)):
            index = int(key) + (len(self) if key < 0 else 0)
            if not 0 <= index < len(self):
                raise IndexError(f"query {key} is out of range for {len(self)} queries")
            key = slice(index, index + 1)
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            key = range(start, stop, step)
        indices = np.asarray(key if hasattr(key, "__array__") else list(key))
        if indices.dtype == bool:
            if len(indices) != len(self):
                raise DataError(f"the mask has {len(indices)} entries for {len(self)} queries.")
            indices = np.flatnonzero(indices)
        if len(indices) and indices.dtype.kind not in "iu":
            raise DataError(f"queries are selected by integers or a mask; got {indices.dtype}.")
        indices = indices.astype(np.int64)
        if ((indices < -len(self)) | (indices >= len(self))).any():
            raise IndexError(f"a query index is out of range for {len(self)} queries")
        return self._take(np.where(indices < 0, indices + len(self), indices))

    def __iter__(self) -> Iterator[Dataset]:
        """Iterate over the queries, each a dataset of its own."""
        return (self[q] for q in range(len(self)))

    def _slice(self, start: int, stop: int) -> Dataset:
        """Return adjacent queries, sharing memory."""
        lo, hi = int(self.offsets[start]), int(self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - lo
        return take_rows(self, slice(lo, hi), slice(start, stop), offsets)

    def _take(self, queries: Ints) -> Dataset:
        """Return a copy of the queries of these numbers, in this order."""
        rows = query_rows(self.offsets, queries)
        return take_rows(self, rows, queries, offsets_from_lengths(self.lengths[queries]))

    def query(self, name: object) -> Dataset:
        """Return the query of this id.

        Parameters
        ----------
        name : object
            The query id, compared as a string.

        Returns
        -------
        Dataset
            The documents of that query.

        Raises
        ------
        DataError
            If there is no such query.
        """
        text = str(name)
        for number, query in enumerate(self.queries):
            if query == text:
                return self[number]
        raise DataError(f"{self.source}: there is no query {text!r}.")

    def to_row_order(self, values: Any) -> Array:
        """Return values that follow the file's line order in the order of the rows.

        The two orders differ only if the rows had to be regrouped by query.

        Parameters
        ----------
        values : array_like of shape (n_docs,)
            Values in the order of the file, such as those of a score file.

        Returns
        -------
        ndarray of shape (n_docs,)
            The values in the order of the rows of this dataset.
        """
        array = np.asarray(values)
        return array if self.row_order is None else array[self.row_order]

    def to_file_order(self, values: Any) -> Array:
        """Return values of the rows in the line order of the file: the inverse of `to_row_order`.

        Parameters
        ----------
        values : array_like of shape (n_docs,)
            Values in the order of the rows, such as scores.

        Returns
        -------
        ndarray of shape (n_docs,)
            The values in the order of the file.
        """
        array = np.asarray(values)
        if self.row_order is None:
            return array
        out = np.empty_like(array)
        out[self.row_order] = array
        return out

    # --- modified copies

    def with_labels(self, y: Any) -> Dataset:
        """Return the same documents with other labels.

        Parameters
        ----------
        y : array_like of shape (n_docs,) or Truth
            The new labels.

        Returns
        -------
        Dataset
            A dataset that shares the features.

        Examples
        --------
        >>> import firstpage as fp
        >>> data = fp.Dataset.from_arrays([[1.0], [2.0]], [0, 3], ["q", "q"])
        >>> data.with_labels(data.truth.binary(2)).y.tolist()
        [0.0, 1.0]
        """
        labels = np.array(y.labels if hasattr(y, "labels") else y, np.float64)
        return replace(self, y=labels)

    def with_qrels(self, qrels: Qrels, unjudged: Literal["zero", "drop"] = "zero") -> Dataset:
        """Return the documents with the labels of judgments, joined by query and document id.

        A warning says how many pairs matched, what happened to unjudged documents, and how many
        judged pairs have no features; there is none if every document is judged and every judged
        pair has features.

        Parameters
        ----------
        qrels : Qrels
            The judgments: grades, an ordered top k, or any other labels.  Their `query_weights`
            become those of the dataset.
        unjudged : {"zero", "drop"}, default "zero"
            Documents without a judgment get the label 0, as in trec_eval, or are left out, with
            queries that then have no documents.

        Returns
        -------
        Dataset
            The documents, with the same features, names, recipe and source.  With "zero" it
            shares the features.

        Raises
        ------
        DataError
            If documents have no ids, a document occurs twice in a query, a label is infinite, or
            no document is judged.

        Examples
        --------
        >>> import firstpage as fp
        >>> data = fp.Dataset.from_arrays([[1.0], [2.0]], [0, 0], ["q", "q"], ["a", "b"])
        >>> data.with_qrels(fp.Qrels.from_dict({"q": {"b": 2, "a": 1}})).y.tolist()
        [1.0, 2.0]
        """
        (data,), report = join_labels([self], qrels, unjudged)
        if not report.complete:
            warn(str(report))
        return data

    def with_features(self, X: Any, feature_names: Iterable[str] | None = None) -> Dataset:
        """Return the same documents with other features.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n_docs, n_features)
            The new features.
        feature_names : iterable of str, optional
            Their names.

        Returns
        -------
        Dataset
            A dataset that shares the labels.
        """
        names = None if feature_names is None else tuple(feature_names)
        recipe = self.recipe if names == self.feature_names else None
        features = _as_features(X, self.source)
        return replace(self, X=features, feature_names=names, recipe=recipe, categories={})

    def with_categories(self, *features: str | int) -> Dataset:
        """Return the data with some numeric columns read as categories.

        Parameters
        ----------
        *features : str or int
            The columns: names of features, or numbers that count from 1 as in LETOR files.  Their
            values must be integers, or NaN where the category is missing.

        Returns
        -------
        Dataset
            A dataset whose `categories` has these columns.

        Raises
        ------
        DataError
            If there is no such column, or it has other numbers or too many categories.

        Examples
        --------
        >>> import firstpage as fp
        >>> data = fp.Dataset.from_arrays([[7.0, 0.1], [3.0, 0.2]], [0, 1], ["q", "q"])
        >>> dict(data.with_categories(1).categories)
        {0: ('3', '7')}
        """
        columns = [find_feature(self, feature) for feature in features]
        return encode_columns(self, [c for c in columns if c not in self.categories])

    def with_positions(self, positions: Any) -> Dataset:
        """Return the data with the positions at which documents were shown.

        Parameters
        ----------
        positions : array_like of int of shape (n_docs,)
            One position per document, in the order of the rows.

        Returns
        -------
        Dataset
            A dataset that shares the features.

        Raises
        ------
        DataError
            If a position is not an integer, or there is not one per document.
        """
        return replace(self, positions=as_positions(positions, self.source))

    def dense(self) -> Dataset:
        """Return the same documents with a dense feature array.

        Returns
        -------
        Dataset
            This object if it is dense already.
        """
        return replace(self, X=self.X.toarray()) if self.is_sparse else self  # type: ignore[union-attr]


def _read_only(array: Any) -> Any:
    """Return a view that cannot be written through."""
    if isinstance(array, np.ndarray):
        view = array.view(np.ndarray)  # slicing a memmap object is slow
        view.setflags(write=False)
        return view
    from scipy.sparse import csr_array

    arrays = tuple(_read_only(a) for a in (array.data, array.indices, array.indptr))
    return csr_array(arrays, shape=array.shape, copy=False)


def _as_labels(y: Any, source: str) -> Floats:
    try:
        return np.array(y, np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise DataError(f"{source}: labels must be numbers ({error}).") from error


def _as_features(X: Any, source: str) -> Features:
    """Return a C-ordered float array or a CSR array, without a copy where it already is one."""
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        return csr_array(X) if X.dtype.kind == "f" else csr_array(X, dtype=np.float64)
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(
            f"{source}: features must be a two-dimensional array; got {array.ndim} dimensions."
        )
    if array.dtype not in (np.float32, np.float64):
        if array.dtype.kind == "c":
            raise DataError(f"{source}: features must be real numbers, not complex ones.")
        try:
            array = array.astype(np.float64 if array.dtype.kind in "iufb" else float)
        except (TypeError, ValueError) as error:
            raise DataError(f"{source}: features must be numbers ({error}).") from error
    return np.ascontiguousarray(array)
