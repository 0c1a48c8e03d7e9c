"""Pictures of documents: found by name, told by their first bytes, never by what they claim."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from firstpage.errors import DataError

LARGEST = 10 << 20
MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass
class Pictures:
    """Those that documents name: `kept` by digest, each with its type and data."""

    find: Callable[[str], bytes | None] = lambda name: None
    kept: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def digest(self, where: str, name: str) -> str:
        """The digest of a picture; refuses one that is absent, too large or of no known kind."""
        data = self.find(name)
        if data is None:
            raise DataError(f"{where}: the picture {name!r} is not among the images given.")
        if len(data) > LARGEST:
            raise DataError(f"{where}: the picture {name!r} is over {LARGEST:,} bytes; shrink it.")
        found = hashlib.sha256(data).hexdigest()
        self.kept[found] = (_kind(where, name, data), data)
        return found


def from_folder(folder: Path) -> Pictures:
    """Files inside a folder, and nowhere else."""
    root = folder.resolve()

    def find(name: str) -> bytes | None:
        path = (root / name).resolve()
        if not path.is_relative_to(root) or not path.is_file():
            return None
        with open(path, "rb") as file:
            return file.read(LARGEST + 1)

    return Pictures(find)


def from_uploads(files: Mapping[str, IO[bytes]]) -> Pictures:
    """Files that came with a form, by name."""

    def find(name: str) -> bytes | None:
        if name not in files:
            return None
        files[name].seek(0)
        return files[name].read(LARGEST + 1)

    return Pictures(find)


def _kind(where: str, name: str, data: bytes) -> str:
    for magic, kind in MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise DataError(f"{where}: {name!r} is no PNG, JPEG, GIF or WebP picture; convert it.")
