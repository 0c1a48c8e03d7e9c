"""A folder of files of preferences, which are not read at once: each is worked on where it is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from firstpage.data.files import suffix_of
from firstpage.errors import DataError

KINDS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".npz")


@dataclass(frozen=True)
class PreferenceFiles:
    """Files of preferences, in their order: a shard each."""

    paths: tuple[Path, ...]
    source: str

    def __len__(self) -> int:
        """The number of files."""
        return len(self.paths)

    @classmethod
    def of(cls, given: str | os.PathLike[str] | Iterable[Path]) -> PreferenceFiles:
        """Those of a folder, by name; or those that are listed."""
        if not isinstance(given, (str, os.PathLike)):
            paths = tuple(Path(path) for path in given)
            return cls(paths, str(paths[0].parent) if paths else "no files")
        place = Path(given)
        if not place.is_dir():
            raise DataError(f"{place}: no such folder of preferences.")
        found = tuple(
            sorted(f for f in place.iterdir() if f.is_file() and not f.name.startswith("."))
        )
        other = [f.name for f in found if suffix_of(f)[0] not in KINDS]
        if other:
            raise DataError(
                f"{place}: {other[0]} is no file of preferences; they end in {', '.join(KINDS)}, "
                "and nothing else may be among them."
            )
        if not found:
            raise DataError(f"{place}: holds no file of preferences ({', '.join(KINDS)}).")
        return cls(found, str(place))
