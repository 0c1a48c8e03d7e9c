"""Shards: data cut into pieces of whole queries, that lie in a folder and never all in memory.

A folder that `write_shards` made holds `shards.json`, which says what there is, and a folder of
`.npy` arrays for each shard, which open at once by memory mapping.  A folder of several LETOR or
Parquet files is taken as it is, each file for a shard.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.folds import SPLIT_NAMES
from firstpage.data.formats.letor import dataset_from_arrays
from firstpage.data.formats.letor_reader import FeatureZero
from firstpage.data.formats.registry import SUFFIXES, read
from firstpage.data.ids import Ids
from firstpage.data.io.files import suffix_of
from firstpage.data.io.json_files import JsonFormat, json_digest
from firstpage.errors import DataError, FirstpageWarning
from firstpage.types import Array, Words

DAMAGED = "half-written, or damaged; write the shards again."
SHARDS_FORMAT = JsonFormat("firstpage-shards", 1, "table of shards")
TABLE_FILE = "shards.json"
SPLITS = {name: split for split, names in SPLIT_NAMES.items() for name in names}
SPLITS |= {"dev": "valid", "eval": "test", "heldout": "test", "holdout": "test"}
SHARD_FORMATS = ("letor", "parquet")  # files that are shards without being written anew


@dataclass(frozen=True)
class Shard:
    """One piece: a folder of arrays, or a file; and what it holds."""

    name: str
    rows: int
    queries: int
    sha256: str  # of labels, queries and some features
    sizes: dict[str, int] = field(default_factory=dict, repr=False)  # bytes of each array's file


@dataclass(frozen=True, eq=False)
class Shards:
    """All pieces of a folder.  `shards[2]` is the third as a Dataset, memory-mapped.

    labels   the least and the greatest
    """

    folder: Path
    shards: tuple[Shard, ...]
    n_features: int
    dtype: str
    is_sparse: bool
    feature_names: tuple[str, ...] | None
    labels: tuple[float, float]
    zero_based: bool = False  # of LETOR files that are taken as they are

    def __len__(self) -> int:
        """The number of shards."""
        return len(self.shards)

    @property
    def source(self) -> str:
        return str(self.folder)

    @property
    def n_docs(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def n_queries(self) -> int:
        return sum(shard.queries for shard in self.shards)

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        return (
            f"Shards({self.folder}: {len(self)} shards, {self.n_queries} queries, {self.n_docs} "
            f"documents, {self.n_features} features, {kind} {self.dtype})"
        )

    def __getitem__(self, number: int) -> Dataset:
        return self.open(number).data

    def __iter__(self) -> Iterator[Dataset]:
        return (self[number] for number in range(len(self)))

    def single(self, number: int) -> Shards:
        """One shard, as if there were no others, by its full path: what is sent to machines."""
        return replace(self, folder=self.folder.resolve(), shards=(self.shards[number],))

    def open(self, number: int, check: bool = False) -> OpenShard:
        """A shard, and a way to let go of its pages; `check` that it is the one written."""
        shard = self.shards[number]
        place = self.folder / shard.name
        if not self.folder.is_dir():
            raise DataError(f"{self.folder}: no such folder of shards on this machine.")
        if not shard.sizes:
            return OpenShard(self._file(place))
        arrays = {name: map_array(place / f"{name}.npy", n) for name, n in shard.sizes.items()}
        maps = [a._mmap for a in arrays.values() if isinstance(a, np.memmap) and a.size]  # type: ignore[attr-defined]
        try:
            data = replace(
                dataset_from_arrays(arrays, str(place)), feature_names=self.feature_names
            )
        except (ValueError, TypeError, IndexError):
            raise DataError(f"{place}: its arrays do not fit together: {DAMAGED}") from None
        if (data.n_features, str(data.X.dtype)) != (self.n_features, self.dtype):
            raise DataError(f"{place}: its features are not those of the table: {DAMAGED}")
        if check:
            check_unchanged(data, shard.sha256)
        return OpenShard(data, maps)

    def _file(self, path: Path) -> Dataset:
        options: dict[str, Any] = {"dtype": self.dtype}
        if _kind(path) == "letor":
            options |= {"sparse": self.is_sparse, "n_features": self.n_features}
            options["zero_based"] = self.zero_based
        return _dataset(path, **options)

    @cached_property
    def sha256(self) -> str:
        """Of all shards, in their order."""
        return hashlib.sha256("".join(s.sha256 for s in self.shards).encode()).hexdigest()

    def fingerprint(self) -> dict[str, Any]:
        """What a model file says of its training data."""
        return {
            "source": self.folder.resolve().name,
            "queries": self.n_queries,
            "documents": self.n_docs,
            "features": self.n_features,
            "sha256": self.sha256,
            "shards": len(self),
        }


@dataclass(frozen=True, eq=False)
class OpenShard:
    """A shard at work."""

    data: Dataset
    maps: list[mmap.mmap] = field(default_factory=list, repr=False)

    def release(self) -> None:
        """Let the system take back pages that were read: a process shall not seem to own them.

        They stay in the system's cache while there is room, so reading them again is cheap.
        """
        if hasattr(mmap, "MADV_DONTNEED"):
            for one in self.maps:
                one.madvise(mmap.MADV_DONTNEED)


def read_shards(folder: str | os.PathLike[str]) -> Shards:
    """The shards of a folder: those of `write_shards`, or its LETOR or Parquet files."""
    place = Path(folder)
    if not place.is_dir():
        raise DataError(f"{place}: no such folder." if not place.exists() else NOT_A_FOLDER % place)
    if (place / TABLE_FILE).is_file():
        return _table(place)
    files = data_files(place)
    if files:
        return _files(place, files)
    if has_arrays(place):
        raise DataError(
            f"{place}: {TABLE_FILE} is missing: half-written, or damaged; write it again."
        )
    raise DataError(
        f"{place}: no folder of shards: neither {TABLE_FILE} nor LETOR or Parquet files that belong "
        "together are in it."
    )


NOT_A_FOLDER = "%s: is a file, not a folder of shards; `firstpage shard` makes one of it."


def is_shard_folder(path: str | os.PathLike[str]) -> bool:
    """Whether this is meant as one: with a table, arrays, or data files side by side."""
    place = Path(path)
    return place.is_dir() and (
        (place / TABLE_FILE).is_file()
        or has_arrays(place)
        or any(f.is_file() and _kind(f) in SHARD_FORMATS for f in place.iterdir())
    )


def data_files(folder: Path) -> list[Path]:
    """LETOR and Parquet files, by name; files of different splits are refused, not mixed."""
    found = sorted(f for f in folder.iterdir() if f.is_file() and _kind(f) in SHARD_FORMATS)
    splits: dict[str, str] = {}
    for file in found:
        splits.setdefault(_split(file), file.name)
    if len(splits) > 1:
        first = found[0].name if "train" not in splits else splits["train"]
        raise DataError(
            f"{folder}: is a folder of different splits, which are not one data set: "
            f"{', '.join(splits.values())}. Name one file, such as {folder / first}; "
            "`firstpage crossval` trains and tests over the splits of a folder."
        )
    return found


def _split(path: Path) -> str:
    """`train`, `vali` or `test`, where a word of the name says so."""
    words = re.split(r"[^a-z]+", path.name.lower())
    return next((SPLITS[word] for word in words if word in SPLITS), "")


def _kind(path: Path) -> str | None:
    return None if path.name.startswith(".") else SUFFIXES.get(suffix_of(path)[0])


def _table(place: Path) -> Shards:
    path = place / TABLE_FILE
    held = SHARDS_FORMAT.read(path)
    held = {k: v for k, v in held.items() if k not in ("format", "version")}
    if json_digest({k: v for k, v in held.items() if k != "sha256"}) != held.get("sha256"):
        raise DataError(f"{path}: damaged: its contents do not match its checksum.")
    names = held["feature_names"]
    low, high = held["labels"]
    return Shards(
        place, tuple(Shard(**one) for one in held["shards"]), int(held["features"]),
        str(held["dtype"]), bool(held["sparse"]), None if names is None else tuple(names),
        (float(low), float(high)),
    )  # fmt: skip


# --- files as they are


def _dataset(path: Path, **options: Any) -> Dataset:
    data = read(path, **options)
    if not isinstance(data, Dataset):
        raise DataError(f"{path}: has no features, which a shard must have.")
    return data


def _files(place: Path, files: list[Path]) -> Shards:
    """Features count from 0 in all files where one of them has a feature 0, else from 1."""
    try:
        return _looked(place, files, False)
    except FeatureZero:
        return _looked(place, files, True)


def _looked(place: Path, files: list[Path], zero_based: bool) -> Shards:
    """Every file is read once, to know what there is; the readers' cache makes the next cheap."""
    found, names, dtype, sparse = [], None, "float32", False
    widths: dict[str, int] = {}
    width, low, high = 0, np.inf, -np.inf
    once = UniqueQueries("file")
    for number, path in enumerate(files):
        options = {"zero_based": zero_based} if _kind(path) == "letor" else {}
        data = _dataset(path, **options)
        if not data.n_docs:
            raise DataError(f"{path}: there is no document in it.")
        once.add(data, path.name)
        if number and data.feature_names != names:
            raise DataError(f"{path}: its features are not those of {files[0].name}.")
        names, sparse = data.feature_names, sparse or data.is_sparse
        width = max(width, data.n_features)
        low, high = min(low, float(data.y.min())), max(high, float(data.y.max()))
        found.append(Shard(path.name, data.n_docs, len(data), data.sha256(with_names=True)))
        widths[path.name] = data.n_features
    warn_about_widths(str(place), widths)
    return Shards(place, tuple(found), width, dtype, sparse, names, (low, high), zero_based)


def warn_about_widths(place: str, widths: dict[str, int]) -> None:
    """Warn where files of one data set have different numbers of features: zeros are filled in."""
    most = max(widths.values(), default=0)
    narrow = [f"{name} ({width})" for name, width in widths.items() if width < most]
    if narrow:
        shown = ", ".join(narrow[:5]) + ", .." * (len(narrow) > 5)
        warnings.warn(
            f"{place}: has {most} features; those that a file lacks are taken for 0: {shown}.",
            FirstpageWarning,
            stacklevel=5,
        )


# --- what shards are checked for: no query in two of them, and arrays that are those written


class UniqueQueries:
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


def map_array(file: Path, size: int) -> Array:
    """An array of a shard, mapped; a file that is missing, cut short or no array is refused."""
    found = file.stat().st_size if file.is_file() else None
    if found != size:
        what = "is missing" if found is None else f"has {found} bytes instead of {size}"
        raise DataError(f"{file}: {what}: {DAMAGED}")
    try:
        array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError):
        raise DataError(f"{file}: holds no array: {DAMAGED}") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}).") from error
    return array


def check_unchanged(data: Dataset, sha256: str) -> None:
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
