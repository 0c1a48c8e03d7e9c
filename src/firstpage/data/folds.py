"""LETOR and MSLR folders: Fold1 .. Fold5, each with training, validation and test data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.formats.letor import read_letor, write_letor
from firstpage.errors import DataError

# Both habits: LETOR 4 and MSLR say train, vali, test; LETOR 3 says trainingset and so on.
SPLIT_NAMES = {
    "train": ("train", "trainingset", "training"),
    "valid": ("vali", "validationset", "validation", "valid"),
    "test": ("test", "testset"),
}
SUFFIXES = ("", ".txt", ".gz", ".xz", ".zst", ".txt.gz", ".txt.xz", ".txt.zst")


@dataclass(frozen=True)
class Fold:
    """One fold; its parts are read when they are looked at."""

    number: int
    paths: dict[str, Path]
    options: dict[str, Any]

    @cached_property
    def train(self) -> Dataset:
        return read_letor(self.paths["train"], **self.options)

    @cached_property
    def valid(self) -> Dataset:
        if "valid" not in self.paths:
            raise DataError(f"fold {self.number} has no validation data.")
        return read_letor(self.paths["valid"], **self.options)

    @cached_property
    def test(self) -> Dataset:
        return read_letor(self.paths["test"], **self.options)


def read_folds(folder: str | os.PathLike[str], **options: Any) -> list[Fold]:
    """The folds of a folder, in order.  Options go to `read_letor`.

    A folder with train and test but no Fold1 is one fold of its own.
    """
    base = Path(folder)
    if base.is_file():
        raise DataError(
            f"{base}: is one file, and folds are a folder; `firstpage convert {base} FOLDER "
            "--folds 5` cuts it into folds."
        )
    if not base.is_dir():
        raise DataError(f"{base}: no such folder.")
    folds = [_fold(number, path, options) for number, path in sorted(_fold_folders(base))]
    if folds:
        return folds
    if _part(base, "train") is not None:
        return [_fold(1, base, options)]
    raise DataError(
        f"{base}: holds neither Fold1, Fold2, .. nor train.txt and test.txt (LETOR and MSLR)."
    )


def write_folds(
    data: Dataset, folder: str | os.PathLike[str], count: int = 5, seed: int | None = None
) -> None:
    """Split a collection by query into LETOR folders: Fold1 .. with train, vali and test.

    As in LETOR, the queries are cut into `count` parts, shuffled first if there is a seed; each
    fold tests on one part, validates on the one before it, and trains on the others.
    """
    if not 3 <= count <= len(data):
        raise DataError(
            f"{count} folds cannot be: there must be at least 3, and no more than the "
            f"{len(data)} queries."
        )
    order = np.arange(len(data))
    if seed is not None:
        order = np.random.default_rng(seed).permutation(len(data))
    parts = np.array_split(order, count)
    for number in range(count):
        rotated = [parts[(number + i) % count] for i in range(count)]
        place = Path(folder) / f"Fold{number + 1}"
        place.mkdir(parents=True, exist_ok=True)
        write_letor(data[np.concatenate(rotated[:-2])], place / "train.txt")
        write_letor(data[rotated[-2]], place / "vali.txt")
        write_letor(data[rotated[-1]], place / "test.txt")


def _fold_folders(base: Path) -> Iterator[tuple[int, Path]]:
    for path in base.iterdir():
        match = re.fullmatch(r"fold[ _-]?(\d+)", path.name, re.IGNORECASE)
        if match and path.is_dir():
            yield int(match[1]), path


def _fold(number: int, folder: Path, options: dict[str, Any]) -> Fold:
    paths = {}
    for part in SPLIT_NAMES:
        path = _part(folder, part)
        if path is not None:
            paths[part] = path
        elif part != "valid":  # some collections have none; asking for it then fails
            wanted = " or ".join(f"{name}.txt" for name in SPLIT_NAMES[part][:2])
            raise DataError(f"{folder}: lacks {wanted}.")
    return Fold(number, paths, options)


def _part(folder: Path, part: str) -> Path | None:
    files = {path.name.lower(): path for path in folder.iterdir() if path.is_file()}
    for name in SPLIT_NAMES[part]:
        for ending in SUFFIXES:
            if name + ending in files:
                return files[name + ending]
    return None
