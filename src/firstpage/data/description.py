"""Describe a collection: counts, histograms of labels and list lengths, suspicious features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from firstpage.core import Array, Bools, DataError, Floats, Ints
from firstpage.core.kernels import hash_ids
from firstpage.data.dataset import Dataset
from firstpage.data.groups import duplicate_rows
from firstpage.data.runs import Column, Run

BAR_WIDTH = 32  # characters of the longest bar
BINS = 8


@dataclass(frozen=True)
class Description:
    """Summary statistics of a collection; `str(description)` draws them for a terminal.

    Feature numbers count from 1, as in LETOR files.

    Attributes
    ----------
    source : str
        Where the data come from.
    kind : {"dataset", "qrels", "run"}
        What was described.
    queries, documents : int
        The numbers of queries and documents.
    labels : dict of str to int
        The number of documents of each label, or of each range of labels; empty for a run.
    lengths : dict of str to float
        Minimum, median, mean and maximum of the documents per query.
    length_bins : list of (str, int)
        The number of queries in each range of lengths.
    queries_without_relevant : int
        Queries without a label above 0.
    single_document_queries : int
        Queries with one document.
    features : int
        The number of features; 0 for judgments and runs.
    dtype : str
        The type of the features.
    density : float or None
        The fraction of stored values, if the features are sparse.
    constant_features : tuple of int
        Features with one value over all documents.
    nan_features, infinite_features : tuple of int
        Features with missing or infinite values.
    constant_in_every_query : tuple of int
        Features that vary between queries only, and so cannot rank.
    missing_values : dict of str to int
        The number of documents that lack a feature, by its name or number, where there are any.
    categories : dict of str to int
        The number of categories, by feature that holds categories.
    repeated_ids : int
        Document ids that repeat an earlier one of their query.
    repeated_rows : int
        Documents that repeat the features of an earlier one of their query.

    Examples
    --------
    >>> import firstpage as fp
    >>> description = fp.describe(fp.Qrels.from_dict({"q": {"a": 1, "b": 0}}))
    >>> description.documents, description.labels
    (2, {'0': 1, '1': 1})
    """

    source: str
    kind: str
    queries: int
    documents: int
    labels: dict[str, int]
    lengths: dict[str, float]
    length_bins: list[tuple[str, int]]
    queries_without_relevant: int
    single_document_queries: int
    features: int = 0
    dtype: str = ""
    density: float | None = None
    constant_features: tuple[int, ...] = ()
    nan_features: tuple[int, ...] = ()
    infinite_features: tuple[int, ...] = ()
    constant_in_every_query: tuple[int, ...] = ()
    missing_values: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    repeated_ids: int = 0
    repeated_rows: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as JSON-serializable values, as `--json` prints them."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def __str__(self) -> str:
        n = self.lengths
        lines = [
            f"{self.source}  ({self.kind})",
            f"  queries    {self.queries:>10,}",
            f"  documents  {self.documents:>10,}   per query: {n['min']:g} to {n['max']:g}, "
            f"median {n['median']:g}, mean {n['mean']:.1f}",
        ]
        if self.features:
            density = "" if self.density is None else f", {100 * self.density:.2f} % filled"
            lines.append(f"  features   {self.features:>10,}   {self.dtype}{density}")
        lines += ["", "  documents per query", *_bars(self.length_bins)]
        if self.labels:
            lines += ["", "  labels", *_bars(list(self.labels.items()))]
        notes = self._notes()
        return "\n".join(lines + ([""] + [f"  {note}" for note in notes] if notes else []))

    def _notes(self) -> list[str]:
        notes = []
        if self.queries_without_relevant:
            notes.append(f"{self.queries_without_relevant} queries have no label above 0")
        if self.single_document_queries:
            notes.append(f"{self.single_document_queries} queries have only one document")
        for name, numbers in (
            ("constant over all documents", self.constant_features),
            ("constant inside every query (they cannot rank)", self.constant_in_every_query),
            ("with infinite values", self.infinite_features),
        ):
            if numbers:
                notes.append(f"{len(numbers)} features {name}: {_shortened(numbers)}")
        if self.missing_values:
            shown = [f"{name} ({count:,})" for name, count in self.missing_values.items()]
            notes.append(
                f"{len(shown)} features with missing values (NaN), and in how many documents: "
                f"{_shortened(shown)}"
            )
        if self.categories:
            shown = [f"{name} ({count:,})" for name, count in self.categories.items()]
            notes.append(f"{len(shown)} features of categories: {_shortened(shown)}")
        if self.repeated_ids:
            notes.append(f"{self.repeated_ids} document ids occur more than once in their query")
        if self.repeated_rows:
            notes.append(
                f"{self.repeated_rows} documents repeat the features of another in their query"
            )
        return notes


def _shortened(items: Sequence[object]) -> str:
    """Return at most twelve items as text."""
    return ", ".join(map(str, items[:12])) + (", .." if len(items) > 12 else "")


def _bars(rows: list[tuple[str, int]]) -> list[str]:
    """Return lines of label, count and bar; bars are drawn in eighths of a character."""
    largest = max((count for _, count in rows), default=0) or 1
    width = max((len(label) for label, _ in rows), default=0)
    lines = []
    for label, count in rows:
        eighths = round(8 * BAR_WIDTH * count / largest)
        bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
        lines.append(f"  {label:>{width + 2}} {count:>10,}  {bar or ('▏' if count else '')}")
    return lines


def describe(data: Dataset | Column) -> Description:
    """Return summary statistics of a dataset, judgments or a run.

    Parameters
    ----------
    data : Dataset, Qrels or Run
        The collection.

    Returns
    -------
    Description
        Counts, histograms and suspicious features; print it for a report.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays([[1.0, 2.0], [1.0, 3.0]], [0, 1], ["q", "q"])
    >>> fp.describe(data).constant_features
    (1,)
    """
    if not isinstance(data, (Dataset, Column)):
        raise DataError(f"describe takes a Dataset, Qrels or Run; got {type(data).__name__}.")
    offsets = data.offsets
    values = data.y if isinstance(data, Dataset) else data.values
    lengths = np.diff(offsets)
    is_run = isinstance(data, Run)
    kind = type(data).__name__.lower()
    best = np.full(len(lengths), -np.inf)
    np.maximum.at(best, np.repeat(np.arange(len(lengths)), lengths), values)
    statistics: dict[str, Any] = {
        "source": data.source or kind,
        "kind": kind,
        "queries": len(lengths),
        "documents": len(values),
        "labels": {} if is_run else _label_counts(values),
        "lengths": {
            "min": float(lengths.min()) if len(lengths) else 0.0,
            "median": float(np.median(lengths)) if len(lengths) else 0.0,
            "mean": float(lengths.mean()) if len(lengths) else 0.0,
            "max": float(lengths.max(initial=0)),
        },
        "length_bins": _bins(lengths),
        "queries_without_relevant": 0 if is_run else int((best <= 0).sum()),
        "single_document_queries": int((lengths == 1).sum()),
    }
    ids = data.docids
    if ids is not None:
        named = ids.ends > ids.starts
        statistics["repeated_ids"] = len(duplicate_rows(ids.hashes, offsets, named))
    if isinstance(data, Dataset):
        statistics |= _features(data)
    return Description(**statistics)


def _label_counts(labels: Floats) -> dict[str, int]:
    values, counts = np.unique(labels, return_counts=True)
    if len(values) <= 24:
        return {f"{v:g}": int(c) for v, c in zip(values, counts, strict=True)}
    counts, edges = np.histogram(labels, BINS)
    return {
        f"{a:.4g} to {b:.4g}": int(c) for a, b, c in zip(edges[:-1], edges[1:], counts, strict=True)
    }


def _bins(lengths: Ints) -> list[tuple[str, int]]:
    """Return the number of lists per length range, in about `BINS` ranges of integer bounds."""
    if not len(lengths):
        return []
    low, high = int(lengths.min()), int(lengths.max())
    step = max(1, -(-(high - low + 1) // BINS))
    counts = np.bincount((lengths - low) // step)
    bins = []
    for first, count in zip(range(low, high + 1, step), counts.tolist(), strict=True):
        last = min(first + step - 1, high)
        bins.append((str(first) if first == last else f"{first}-{last}", count))
    return bins


def _features(data: Dataset) -> dict[str, Any]:
    """Return the statistics of the features."""
    X = data.X
    statistics: dict[str, Any] = {"features": data.n_features, "dtype": str(X.dtype)}
    names = data.feature_names or tuple(str(i + 1) for i in range(data.n_features))
    statistics["categories"] = {names[c]: len(n) for c, n in sorted(data.categories.items())}
    if not isinstance(X, np.ndarray):
        statistics["density"] = X.nnz / max(1, X.shape[0] * X.shape[1])
        missing = np.bincount(X.indices[np.isnan(X.data)], minlength=data.n_features)
        statistics["nan_features"] = _numbers(missing > 0)
        statistics["missing_values"] = _counts(names, missing)
        statistics["infinite_features"] = _numbers(np.bincount(X.indices[np.isinf(X.data)]) > 0)
        return statistics
    low, high, missing, inf = _column_ranges(X)
    nan = missing > 0
    statistics["missing_values"] = _counts(names, missing)
    statistics["constant_features"] = _numbers((low == high) & ~nan)
    statistics["nan_features"], statistics["infinite_features"] = _numbers(nan), _numbers(inf)
    varies = np.zeros(data.n_features, bool)
    for lo, hi in zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True):
        if hi - lo > 1 and not varies.all():
            varies |= (X[lo:hi] != X[lo]).any(axis=0)
    statistics["constant_in_every_query"] = _numbers(~varies & (low != high) & ~nan)
    rows = np.ascontiguousarray(X)
    size = rows.itemsize * data.n_features
    starts = np.arange(data.n_docs, dtype=np.int64) * size
    hashes = np.empty(data.n_docs, np.uint64)
    hash_ids(rows.reshape(-1).view(np.uint8), starts, starts + size, hashes)
    statistics["repeated_rows"] = len(
        duplicate_rows(hashes, data.offsets, np.ones(data.n_docs, bool))
    )
    return statistics


def _counts(names: Sequence[str], counts: Ints) -> dict[str, int]:
    """Return the counts above 0 by name."""
    return {name: n for name, n in zip(names, counts.tolist(), strict=True) if n}


def _column_ranges(X: Array) -> tuple[Array, Array, Ints, Bools]:
    """Return minimum, maximum and count of NaN of each column, and whether infinity occurs."""
    d = X.shape[1]
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    nan, inf = np.zeros(d, np.int64), np.zeros(d, bool)
    for start in range(0, len(X), 1 << 14):
        rows = X[start : start + (1 << 14)]
        nan += np.isnan(rows).sum(axis=0)
        inf |= np.isinf(rows).any(axis=0)
        low, high = np.fmin(low, np.fmin.reduce(rows)), np.fmax(high, np.fmax.reduce(rows))
    return low, high, nan, inf


def _numbers(mask: Bools) -> tuple[int, ...]:
    """Return the numbers of the marked features, from 1."""
    return tuple((np.flatnonzero(mask) + 1).tolist())
