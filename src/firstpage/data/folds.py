"""LETOR and MSLR folders: Fold1 .. Fold5, each with training, validation and test data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import DataError, Ints
from firstpage.data.dataset import Dataset
from firstpage.data.formats.letor import read_letor, write_letor

# LETOR 4 and MSLR name their files train, vali and test; LETOR 3 trainingset and so on.
SPLIT_NAMES = {
    "train": ("train", "trainingset", "training"),
    "valid": ("vali", "validationset", "validation", "valid"),
    "test": ("test", "testset"),
}
SUFFIXES = ("", ".txt", ".gz", ".xz", ".zst", ".txt.gz", ".txt.xz", ".txt.zst")


@dataclass(frozen=True)
class Fold:
    """Training, validation and test data of one fold; files are read on first access.

    Parameters
    ----------
    number : int
        The number of the fold, from 1.
    paths : dict of str to Path
        The files of the splits "train", "valid" (if there is one) and "test".
    options : dict
        Keyword arguments for `read_letor`.
    datasets : dict of str to Dataset
        The splits that are in memory.

    Attributes
    ----------
    train : Dataset
        The training data.
    valid : Dataset
        The validation data; a DataError is raised if the fold has none.
    test : Dataset
        The test data.

    Examples
    --------
    >>> import tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fp.write_folds(fp.Synthetic(queries=6, docs=3).dataset(), folder, count=3)
    ...     fold = fp.read_folds(folder)[0]
    ...     len(fold.train), len(fold.valid), len(fold.test)
    (2, 2, 2)
    """

    number: int
    paths: dict[str, Path] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    datasets: dict[str, Dataset] = field(default_factory=dict, repr=False)

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits that the fold has, of "train", "valid" and "test"."""
        return tuple(name for name in SPLIT_NAMES if name in self.datasets or name in self.paths)

    def _split(self, name: str) -> Dataset:
        if name not in self.datasets:
            self.datasets[name] = read_letor(self.paths[name], **self.options)
        return self.datasets[name]

    @property
    def train(self) -> Dataset:
        """The training data."""
        return self._split("train")

    @property
    def valid(self) -> Dataset:
        """The validation data."""
        if "valid" not in self.splits:
            raise DataError(f"fold {self.number} has no validation data.")
        return self._split("valid")

    @property
    def test(self) -> Dataset:
        """The test data."""
        return self._split("test")


def read_folds(folder: str | os.PathLike[str], **options: Any) -> list[Fold]:
    """Return the folds of a LETOR or MSLR folder.

    A folder with train.txt and test.txt but without Fold1 is a single fold.

    Parameters
    ----------
    folder : path
        A folder with Fold1, Fold2, .. in it, each with train.txt, vali.txt and test.txt, plain or
        compressed; LETOR 3's names are recognized too.
    **options
        Keyword arguments for `read_letor`.

    Returns
    -------
    list of Fold
        The folds by number.  Their files are read when they are needed.

    Raises
    ------
    DataError
        If the folder does not exist or has no such files.

    Examples
    --------
    >>> import tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fp.write_folds(fp.Synthetic(queries=5, docs=3).dataset(), folder)
    ...     [fold.number for fold in fp.read_folds(folder)]
    [1, 2, 3, 4, 5]
    """
    base = Path(folder)
    if base.is_file():
        raise DataError(
            f"{base}: is a file, not a folder of folds; `firstpage convert {base} FOLDER "
            "--folds 5` splits it into folds."
        )
    if not base.is_dir():
        raise DataError(f"{base}: no such folder.")
    folds = [_fold(number, path, options) for number, path in sorted(_fold_folders(base))]
    if folds:
        return folds
    if _split_file(base, "train") is not None:
        return [_fold(1, base, options)]
    raise DataError(
        f"{base}: contains neither Fold1, Fold2, .. nor train.txt and test.txt (LETOR and MSLR)."
    )


def write_folds(
    data: Dataset, folder: str | os.PathLike[str], count: int = 5, seed: int | None = None
) -> None:
    """Split a collection by query into LETOR folders: Fold1 .. with train, vali and test files.

    As in LETOR, the queries are divided into `count` subsets; each fold tests on one subset,
    validates on the one before it, and trains on the others.

    Parameters
    ----------
    data : Dataset
        The collection.
    folder : path
        Where to write; it is created if needed.
    count : int, default 5
        The number of folds: at least 3, and at most the number of queries.
    seed : int, optional
        Shuffle the queries first.  By default they are divided in their order.

    Raises
    ------
    DataError
        If there are too few or too many folds.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fp.write_folds(fp.Synthetic(queries=5, docs=3).dataset(), folder, count=3, seed=1)
    ...     sorted(os.listdir(folder))
    ['Fold1', 'Fold2', 'Fold3']
    """
    folds = split_folds(data, count, seed)
    _refuse_earlier_folds(Path(folder), count)
    for fold in folds:
        path = Path(folder) / f"Fold{fold.number}"
        path.mkdir(parents=True, exist_ok=True)
        write_letor(fold.train, path / "train.txt")
        write_letor(fold.valid, path / "vali.txt")
        write_letor(fold.test, path / "test.txt")


def _refuse_earlier_folds(folder: Path, count: int) -> None:
    """Raise an error if folds of an earlier split would remain beside the new ones."""
    names = {f"Fold{number}" for number in range(1, count + 1)}
    for path in sorted(folder.glob("Fold*")):
        if path.name not in names:
            raise DataError(
                f"{folder}: has {path.name} of another split; remove it, or write elsewhere."
            )


def split_folds(data: Dataset, count: int = 5, seed: int | None = None) -> list[Fold]:
    """Split a collection by query into folds in memory, as `write_folds` does in files.

    Parameters
    ----------
    data : Dataset
        The collection.
    count : int, default 5
        The number of folds: at least 3, and at most the number of queries.
    seed : int, optional
        Shuffle the queries first.  By default they are divided in their order.

    Returns
    -------
    list of Fold
        The folds; each tests on one subset, validates on the one before it, and trains on the
        others.

    Raises
    ------
    DataError
        If there are too few or too many folds.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.split_folds(fp.Synthetic(queries=5, docs=3).dataset(), count=5)[0].test.n_docs
    3
    """
    if not isinstance(data, Dataset):
        raise DataError(f"split_folds takes a Dataset; got {type(data).__name__}.")
    folds = []
    for number, subsets in enumerate(fold_subsets(len(data), count, seed), 1):
        parts = (np.concatenate(subsets[:-2]), subsets[-2], subsets[-1])
        datasets = {name: data[part] for name, part in zip(SPLIT_NAMES, parts, strict=True)}
        folds.append(Fold(number, datasets=datasets))
    return folds


def fold_subsets(n_queries: int, count: int, seed: int | None) -> Iterator[list[Ints]]:
    """Yield the subsets of queries of each fold: for training, then validation, then test."""
    if not 3 <= count <= n_queries:
        raise DataError(
            f"{count} folds are not possible: there must be at least 3, and at most as many as the "
            f"{n_queries} queries."
        )
    order = np.arange(n_queries)
    if seed is not None:
        order = np.random.default_rng(seed).permutation(n_queries)
    subsets = np.array_split(order, count)
    for number in range(count):
        yield [subsets[(number + i) % count] for i in range(count)]


def _fold_folders(base: Path) -> Iterator[tuple[int, Path]]:
    for path in base.iterdir():
        match = re.fullmatch(r"fold[ _-]?(\d+)", path.name, re.IGNORECASE)
        if match and path.is_dir():
            yield int(match[1]), path


def _fold(number: int, folder: Path, options: dict[str, Any]) -> Fold:
    paths = {}
    for split in SPLIT_NAMES:
        path = _split_file(folder, split)
        if path is not None:
            paths[split] = path
        elif split != "valid":  # some collections have none; accessing it then fails
            expected = " or ".join(f"{name}.txt" for name in SPLIT_NAMES[split][:2])
            raise DataError(f"{folder}: lacks {expected}.")
    return Fold(number, paths, options)


def _split_file(folder: Path, split: str) -> Path | None:
    files = {path.name.lower(): path for path in folder.iterdir() if path.is_file()}
    for name in SPLIT_NAMES[split]:
        for suffix in SUFFIXES:
            if name + suffix in files:
                return files[name + suffix]
    return None
