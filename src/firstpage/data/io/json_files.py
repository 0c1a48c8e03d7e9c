"""Files of ours in JSON: what they are, of which version, and a checksum of what they hold.

Model files and measure files are read and refused alike.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstpage.data.io.files import read_all, write_bytes
from firstpage.errors import DataError


@dataclass(frozen=True)
class JsonFormat:
    """A kind of file: its mark, the newest version that is read, and what people call it."""

    format: str
    version: int
    what: str

    def with_header(self, held: Mapping[str, Any]) -> dict[str, Any]:
        """All that a file says: what it is, a checksum, and what it holds."""
        mark = {"format": self.format, "version": self.version, "sha256": json_digest(held)}
        return {**mark, **held}

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """What a file says; a newer, foreign or damaged one is refused."""
        name = os.fspath(path)
        held = self._parsed(name)
        if not isinstance(held, dict) or held.get("format") != self.format:
            raise DataError(
                f"{name}: not a {self.what} of Firstpage (its format is not {self.format!r})."
            )
        version = held.get("version")
        if type(version) is not int or version < 1:
            raise DataError(f"{name}: damaged: its version is {version!r}.")
        if version > self.version:
            raise DataError(
                f"{name}: written by a newer Firstpage (file version {version}, this one reads up "
                f"to {self.version}). Upgrade Firstpage to read it."
            )
        return held

    def _parsed(self, name: str) -> Any:
        try:
            return json.loads(read_all(Path(name)))
        except DataError:
            raise
        except (ValueError, RecursionError) as error:
            line, said = getattr(error, "lineno", 1), str(error).splitlines()[0]
            raise DataError(
                f"{name}:{line}: not a {self.what} file, or a damaged one ({said})."
            ) from None
        except OSError as error:
            raise DataError(f"{name}: cannot be read ({error.strerror}).") from None


def json_digest(held: Any) -> str:
    """Return the SHA-256 of a value as JSON: a flipped digit is noticed."""
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


def write_json(held: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """In one step: a killed process, or a loss of power, leaves the old file or the new."""
    with write_bytes(Path(path), sync=True) as out:
        out.write(json.dumps(held, indent=1, allow_nan=False).encode() + b"\n")
