"""Images of documents: found by name; their type is determined by their first bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from firstpage.core import DataError

MAX_BYTES = 10 << 20
MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass
class Pictures:
    """The images that documents name; `by_digest` has the media type and data of each."""

    find: Callable[[str], bytes | None] = lambda name: None
    by_digest: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def digest(self, location: str, name: str) -> str:
        """Return the digest of an image; raise if it is missing, too large or of unknown type."""
        data = self.find(name)
        if data is None:
            raise DataError(f"{location}: the image {name!r} is missing; add its file.")
        if len(data) > MAX_BYTES:
            raise DataError(
                f"{location}: the image {name!r} has more than {MAX_BYTES:,} bytes; shrink it."
            )
        digest = hashlib.sha256(data).hexdigest()
        self.by_digest[digest] = (_media_type(location, name, data), data)
        return digest


def from_folder(folder: Path) -> Pictures:
    """Return the images inside a folder; names that lead outside are not found."""
    root = folder.resolve()

    def find(name: str) -> bytes | None:
        path = (root / name).resolve()
        if not path.is_relative_to(root) or not path.is_file():
            return None
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)

    return Pictures(find)


def from_uploads(files: Mapping[str, IO[bytes]]) -> Pictures:
    """Return the images of a form, by file name."""

    def find(name: str) -> bytes | None:
        if name not in files:
            return None
        files[name].seek(0)
        return files[name].read(MAX_BYTES + 1)

    return Pictures(find)


def _media_type(location: str, name: str, data: bytes) -> str:
    for magic, kind in MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise DataError(f"{location}: {name!r} is not a PNG, JPEG, GIF or WebP image; convert it.")
