"""Shards: data divided into blocks of complete queries, stored in a folder.

A folder that `write_shards` wrote has `shards.json`, the table of the shards, and a folder of
`.npy` arrays per shard, which are opened by memory mapping.  A folder of several LETOR or Parquet
files is used directly, with each file as a shard.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, Words, warn
from firstpage.data.categories import merged_categories, recoded
from firstpage.data.concat import concat_datasets, pad_features
from firstpage.data.dataset import Dataset
from firstpage.data.folds import SPLIT_NAMES
from firstpage.data.formats.letor import dataset_from_arrays
from firstpage.data.formats.letor_reader import FeatureZero
from firstpage.data.formats.registry import SUFFIXES, read
from firstpage.data.ids import Ids
from firstpage.data.io.files import suffix_of
from firstpage.data.io.json_files import JsonFormat, json_digest

LOAD_SHARDS = "load them with shards.dataset() (firstpage convert)"
DAMAGED = "incomplete or damaged; write the shards again."
SHARDS_FORMAT = JsonFormat("firstpage-shards", 1, "table of shards")
TABLE_FILE = "shards.json"
SPLITS = {name: split for split, names in SPLIT_NAMES.items() for name in names}
SPLITS |= {"dev": "valid", "eval": "test", "heldout": "test", "holdout": "test"}
SHARD_FORMATS = ("letor", "parquet")  # files that can be used directly as shards


@dataclass(frozen=True)
class Shard:
    """The entry of one shard, a folder of arrays or a file, in the table of shards."""

    name: str
    rows: int
    queries: int
    sha256: str  # of labels, query ids and some features
    sizes: dict[str, int] = field(default_factory=dict, repr=False)  # bytes of each array's file


@dataclass(frozen=True, eq=False)
class Shards:
    """The shards of a folder.

    `shards[2]` is the third shard as a memory-mapped Dataset, `len(shards)` the number of shards,
    and iteration yields all of them.  Use `read_shards` or `write_shards` to get an object.

    Parameters
    ----------
    folder : Path
        The folder.
    shards : tuple of Shard
        The entries of the shards.
    n_features : int
        The number of features.
    dtype : str
        The type of the features.
    is_sparse : bool
        Whether the features are CSR arrays.
    feature_names : tuple of str or None
        The names of the features.
    labels : tuple of (float, float)
        The smallest and the largest label.
    zero_based : bool, default False
        Whether features of LETOR files count from 0.
    categories : mapping of int to tuple of str, optional
        The categories of each column that holds categories.
    labeled : bool, default True
        Whether tables must have labels.

    Attributes
    ----------
    n_docs, n_queries : int
        The numbers of documents and queries.
    source : str
        The folder as a string.
    sha256 : str
        A digest of all shards.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> data = fp.Synthetic(queries=4, docs=5, features=3).dataset()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = fp.write_shards(data, os.path.join(folder, "shards"), rows=10)
    ...     [shard.n_docs for shard in shards]
    [10, 10]
    """

    folder: Path
    shards: tuple[Shard, ...]
    n_features: int
    dtype: str
    is_sparse: bool
    feature_names: tuple[str, ...] | None
    labels: tuple[float, float]
    zero_based: bool = False
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    labeled: bool = True

    def __len__(self) -> int:
        """Return the number of shards."""
        return len(self.shards)

    @property
    def source(self) -> str:
        """The folder as a string."""
        return str(self.folder)

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return sum(shard.rows for shard in self.shards)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return sum(shard.queries for shard in self.shards)

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        return (
            f"Shards({self.folder}: {len(self)} shards, {self.n_queries} queries, {self.n_docs} "
            f"documents, {self.n_features} features, {kind} {self.dtype})"
        )

    def __getitem__(self, number: int) -> Dataset:
        """Return a shard as a dataset."""
        if not isinstance(number, (int, np.integer)):
            raise DataError(f"shards[..] takes the number of one shard; got {number!r}.")
        return self.open(number).data

    def __iter__(self) -> Iterator[Dataset]:
        """Iterate over the shards as datasets."""
        return (self[number] for number in range(len(self)))

    def dataset(self) -> Dataset:
        """Return the data of all shards in memory.

        Returns
        -------
        Dataset
            The data, shard after shard.

        Examples
        --------
        >>> import os, tempfile
        >>> import firstpage as fp
        >>> data = fp.Synthetic(queries=4, docs=5, features=3).dataset()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = fp.write_shards(data, os.path.join(folder, "shards"), rows=10)
        ...     shards.dataset().n_docs
        20
        """
        return replace(concat_datasets(list(self)), source=self.source)

    def single(self, number: int) -> Shards:
        """Return one shard as a collection of its own, with an absolute path, for another machine.

        Parameters
        ----------
        number : int
            The index of the shard.

        Returns
        -------
        Shards
            A collection of one shard.
        """
        return replace(self, folder=self.folder.resolve(), shards=(self.shards[number],))

    def open(self, number: int, check: bool = False) -> MappedShard:
        """Open a shard, such that its memory can be released.

        Parameters
        ----------
        number : int
            The index of the shard.
        check : bool, default False
            Also check that the arrays are those that were written.  Files that are used directly
            are always checked.

        Returns
        -------
        MappedShard
            The data, and a method to release the pages.

        Raises
        ------
        DataError
            If the shard is missing, damaged or changed.
        """
        shard = self.shards[number]
        path = self.folder / shard.name
        if not self.folder.is_dir():
            raise DataError(f"{self.folder}: no such folder of shards on this machine.")
        if not shard.sizes:
            return MappedShard(self._read_file(path, shard.sha256))
        arrays = {name: map_array(path / f"{name}.npy", n) for name, n in shard.sizes.items()}
        try:
            data = replace(
                dataset_from_arrays(arrays, str(path)),
                feature_names=self.feature_names,
                categories=self.categories,
                zero_based=self.zero_based,
            )
        except (ValueError, TypeError, IndexError):
            raise DataError(f"{path}: its arrays are inconsistent: {DAMAGED}") from None
        if (data.n_features, str(data.X.dtype)) != (self.n_features, self.dtype):
            raise DataError(f"{path}: its features differ from the table: {DAMAGED}")
        if check:
            check_unchanged(data, shard.sha256, "it was written; write the shards again")
        return MappedShard(data)

    def _read_file(self, path: Path, sha256: str) -> Dataset:
        """Return the data of a file, with the features of all files."""
        data = _read_dataset(path, self.zero_based, self.labeled)
        check_unchanged(data, sha256, "its folder was read; read the shards again")
        X = pad_features(data.X, self.n_features)
        if self.is_sparse and isinstance(X, np.ndarray):
            from scipy.sparse import csr_array

            X = csr_array(X)
        return recoded(replace(data, X=X), self.categories)[0]

    @cached_property
    def sha256(self) -> str:
        """A digest of all shards, in their order."""
        return hashlib.sha256("".join(s.sha256 for s in self.shards).encode()).hexdigest()

    def fingerprint(self) -> dict[str, Any]:
        """Return what a model file records about its training data.

        Returns
        -------
        dict
            The source, the numbers of queries, documents, features and shards, and a digest.
        """
        return {
            "source": self.folder.resolve().name,
            "queries": self.n_queries,
            "documents": self.n_docs,
            "features": self.n_features,
            "sha256": self.sha256,
            "shards": len(self),
            **({"zero_based": True} if self.zero_based else {}),
        }


@dataclass(frozen=True, eq=False)
class MappedShard:
    """An opened shard: its data, whose arrays are memory-mapped or on the heap."""

    data: Dataset

    @cached_property
    def maps(self) -> list[mmap.mmap]:
        """The memory maps of the arrays."""
        maps = map(memory_map, _arrays(self.data))
        return [mapped for mapped in maps if mapped is not None]

    @cached_property
    def nbytes(self) -> int:
        """The bytes of the arrays on the heap, which `release` does not free."""
        return heap_bytes(self.data)

    def release(self) -> None:
        """Release the pages that were read, so that they do not count as memory of the process.

        They remain in the system's page cache if there is memory, so reading them again is cheap.
        """
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self.maps:
                mapped.madvise(mmap.MADV_DONTNEED)


def memory_map(array: Array) -> mmap.mmap | None:
    """Return the memory map that contains an array, None if it is on the heap."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    base = getattr(base, "obj", base)  # of a memoryview
    return base if isinstance(base, mmap.mmap) and array.size else None


def heap_bytes(data: Dataset) -> int:
    """Return the bytes of the arrays of a dataset that are not memory-mapped."""
    return sum(array.nbytes for array in _arrays(data) if memory_map(array) is None)


def _arrays(data: Dataset) -> list[Array]:
    X = data.X
    features = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    ids = [data.queries] if data.docids is None else [data.queries, data.docids]
    return [
        *features,
        data.y,
        data.offsets,
        *(array for column in ids for array in (column.data, column.starts, column.ends)),
    ]


def read_shards(
    folder: str | os.PathLike[str], zero_based: bool = False, labeled: bool = True
) -> Shards:
    """Return the shards of a folder: those of `write_shards`, or its LETOR or Parquet files.

    Parameters
    ----------
    folder : path
        A folder that `write_shards` wrote, or one with LETOR or Parquet files of one data set.
    zero_based : bool, default False
        Whether the features of LETOR files count from 0 even if no file has a feature 0.
        `write_shards` stores how they count.
    labeled : bool, default True
        If False, Parquet files need no labels, and the data can only be ranked.

    Returns
    -------
    Shards
        The shards; their data are read when they are needed.

    Raises
    ------
    DataError
        If there are no shards in the folder, or they are damaged or do not belong together.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = fp.Synthetic(queries=4, docs=5).dataset()
    ...     fp.write_letor(data[:2], os.path.join(folder, "a.txt"))
    ...     fp.write_letor(data[2:], os.path.join(folder, "b.txt"))
    ...     fp.read_shards(folder).n_queries
    4
    """
    path = Path(folder)
    if not path.is_dir():
        raise DataError(f"{path}: no such folder." if not path.exists() else NOT_A_FOLDER % path)
    if (path / TABLE_FILE).is_file():
        return _read_table(path)
    files = data_files(path)
    if files:
        return _shards_of_files(path, files, zero_based, labeled)
    if has_arrays(path):
        raise DataError(f"{path}: {TABLE_FILE} is missing: {DAMAGED}")
    raise DataError(
        f"{path}: is not a folder of shards: it has neither {TABLE_FILE} nor LETOR or Parquet "
        "files that belong together."
    )


NOT_A_FOLDER = "%s: is a file, not a folder of shards; `firstpage shard` converts it."


def is_shard_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is meant as shards: a folder with a table, arrays or data files."""
    folder = Path(path)
    return folder.is_dir() and (
        (folder / TABLE_FILE).is_file()
        or has_arrays(folder)
        or any(f.is_file() and _format_by_suffix(f) in SHARD_FORMATS for f in folder.iterdir())
    )


def data_files(folder: Path) -> list[Path]:
    """Return the LETOR and Parquet files of a folder by name; refuse files of different splits."""
    files = sorted(
        f for f in folder.iterdir() if f.is_file() and _format_by_suffix(f) in SHARD_FORMATS
    )
    splits: dict[str, str] = {}
    for file in files:
        splits.setdefault(_split(file), file.name)
    if len(splits) > 1:
        first = files[0].name if "train" not in splits else splits["train"]
        raise DataError(
            f"{folder}: contains different splits, which are not one data set: "
            f"{', '.join(splits.values())}. Name one file, such as {folder / first}; "
            "`firstpage crossval` trains and tests over the splits of a folder."
        )
    return files


def _split(path: Path) -> str:
    """Return `train`, `valid` or `test` if a word of the file name says so, else ""."""
    words = re.split(r"[^a-z]+", path.name.lower())
    return next((SPLITS[word] for word in words if word in SPLITS), "")


def _format_by_suffix(path: Path) -> str | None:
    return None if path.name.startswith(".") else SUFFIXES.get(suffix_of(path)[0])


def _read_table(folder: Path) -> Shards:
    path = folder / TABLE_FILE
    stored = SHARDS_FORMAT.read(path)
    stored = {k: v for k, v in stored.items() if k not in ("format", "version")}
    if json_digest({k: v for k, v in stored.items() if k != "sha256"}) != stored.get("sha256"):
        raise DataError(f"{path}: damaged: its contents do not match its checksum.")
    names = stored["feature_names"]
    low, high = stored["labels"]
    return Shards(
        folder,
        tuple(Shard(**entry) for entry in stored["shards"]),
        int(stored["features"]),
        str(stored["dtype"]),
        bool(stored["sparse"]),
        None if names is None else tuple(names),
        (float(low), float(high)),
        bool(stored.get("zero_based", False)),
        categories={int(c): tuple(n) for c, n in stored.get("categories", {}).items()},
    )


# --- files used directly


def _read_dataset(path: Path, zero_based: bool, labeled: bool) -> Dataset:
    options: dict[str, Any] = (
        {"zero_based": zero_based} if _format_by_suffix(path) == "letor" else {}
    )
    data = read(path, labeled=labeled, **options)
    if not isinstance(data, Dataset):
        raise DataError(f"{path}: has no features, which a shard must have.")
    return data


def _shards_of_files(folder: Path, files: list[Path], zero_based: bool, labeled: bool) -> Shards:
    """Return files as shards; features count from 0 in all of them if one has a feature 0."""
    try:
        return _scan_files(folder, files, zero_based, labeled)
    except FeatureZero:
        return _scan_files(folder, files, True, labeled)


def _scan_files(folder: Path, files: list[Path], zero_based: bool, labeled: bool) -> Shards:
    """Read every file once to describe it; the reader's cache makes the next read cheap."""
    shards, names, dtype, sparse = [], None, "float32", False
    widths: dict[str, int] = {}
    width, low, high = 0, np.inf, -np.inf
    unique_queries = UniqueQueries("file")
    blocks: list[Dataset] = []  # without documents, for their categories
    for number, path in enumerate(files):
        data = _read_dataset(path, zero_based, labeled)
        if not data.n_docs:
            raise DataError(f"{path}: contains no documents.")
        unique_queries.add(data, path.name)
        if number and data.feature_names != names:
            raise DataError(f"{path}: its features are not those of {files[0].name}.")
        names, sparse = data.feature_names, sparse or data.is_sparse
        blocks.append(data[:0])
        width = max(width, data.n_features)
        low, high = min(low, float(data.y.min())), max(high, float(data.y.max()))
        shards.append(Shard(path.name, data.n_docs, len(data), data.sha256(with_names=True)))
        widths[path.name] = data.n_features
    warn_about_widths(str(folder), widths)
    return Shards(
        folder,
        tuple(shards),
        width,
        dtype,
        sparse,
        names,
        (low, high),
        zero_based,
        merged_categories(blocks),
        labeled,
    )


def warn_about_widths(source: str, widths: dict[str, int]) -> None:
    """Warn if files of one data set have different numbers of features: zeros are filled in."""
    largest = max(widths.values(), default=0)
    narrow = [f"{name} ({width})" for name, width in widths.items() if width < largest]
    if narrow:
        shown = ", ".join(narrow[:5]) + ", .." * (len(narrow) > 5)
        warn(f"{source}: has {largest} features; those that a file lacks are read as 0: {shown}.")


# --- checks: no query in two shards, and arrays that are those written


class UniqueQueries:
    """Checks that every query is in one shard (file, block) only, as sums over queries require."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._hashes: Words = np.empty(0, np.uint64)  # sorted
        self._added: list[tuple[str, Ids]] = []

    def add(self, data: Dataset, name: str) -> None:
        """Add a shard, file or block; raise if another one has one of its queries."""
        hashes = data.queries.hashes
        slots = np.searchsorted(self._hashes, hashes)
        equal = np.append(self._hashes, np.uint64(0))[slots] == hashes
        if equal[slots < len(self._hashes)].any():
            queries = set(data.queries)
            for other, ids in self._added:
                if other == name:
                    continue
                shared = next((query for query in ids if query in queries), None)
                if shared is not None:
                    raise DataError(
                        f"the query {shared!r} is in {other} and in {name}; the rows of a query "
                        f"must all be in one {self._unit}."
                    )
        self._hashes = np.sort(np.concatenate([self._hashes, hashes]), kind="stable")
        self._added.append((name, data.queries.compact()))


def has_arrays(folder: Path) -> bool:
    """Return whether a folder contains arrays of shards, with or without a table."""
    return any(folder.glob("[0-9]*/X.npy")) or any(folder.glob("[0-9]*/indptr.npy"))


def map_array(file: Path, size: int) -> Array:
    """Return a memory-mapped array; refuse a file that is missing, truncated or no array."""
    actual = file.stat().st_size if file.is_file() else None
    if actual != size:
        problem = "is missing" if actual is None else f"has {actual} bytes instead of {size}"
        raise DataError(f"{file}: {problem}: {DAMAGED}")
    try:
        array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError):
        raise DataError(f"{file}: is not an array: {DAMAGED}") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}).") from error
    return array


def check_unchanged(data: Dataset, sha256: str, since: str) -> None:
    """Refuse arrays of the right size that are not those that were written, and changed files.

    The digest covers all labels and query ids and some features; the indices of sparse features
    are checked as well, since kernels rely on them.
    """
    unchanged = data.sha256(with_names=True) == sha256
    if unchanged and not isinstance(data.X, np.ndarray):
        ends, columns = data.X.indptr, data.X.indices
        unchanged = bool(ends[0] == 0 and ends[-1] == len(columns) and (np.diff(ends) >= 0).all())
        unchanged &= not len(columns) or (columns.min() >= 0 and columns.max() < data.n_features)
    if not unchanged:
        raise DataError(f"{data.source}: changed since {since}.")
