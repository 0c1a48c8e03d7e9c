"""JSON files of Firstpage: a header with format, version and checksum, and the content.

Model files, measure files and checkpoints share the reader and its errors.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstpage.core import DataError
from firstpage.data.io.files import read_all, write_bytes


class RepeatedKey(DataError):
    """A JSON object has a key twice."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, as `object_pairs_hook` of `json.loads`; refuse a key that is repeated,
    of which only the last value would count."""
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for n, key in enumerate(keys) if key in keys[:n])
        raise RepeatedKey(f"the key {repeated!r} occurs twice in one JSON object.")
    return row


@dataclass(frozen=True)
class JsonFormat:
    """A JSON file format: its identifier in files and the newest version that can be read.

    `description` is what error messages call such a file.
    """

    format: str
    version: int
    description: str

    def with_header(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content preceded by format, version and checksum."""
        header = {"format": self.format, "version": self.version, "sha256": json_digest(content)}
        return {**header, **content}

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return header and content of a file; refuse newer, foreign and damaged ones."""
        name = os.fspath(path)
        stored = self._parsed(name)
        if not isinstance(stored, dict) or stored.get("format") != self.format:
            raise DataError(
                f"{name}: not a {self.description} of Firstpage (its format is not "
                f"{self.format!r})."
            )
        version = stored.get("version")
        if type(version) is not int or version < 1:
            raise DataError(f"{name}: damaged: its version is {version!r}.")
        if version > self.version:
            raise DataError(
                f"{name}: written by a newer Firstpage (file version {version}, this one reads up "
                f"to {self.version}). Upgrade Firstpage to read it."
            )
        return stored

    def _parsed(self, name: str) -> Any:
        try:
            return json.loads(read_all(Path(name)), object_pairs_hook=unique_keys)
        except RepeatedKey as error:
            raise DataError(f"{name}: {error}") from None
        except DataError:
            raise
        except (ValueError, RecursionError) as error:
            line, reason = getattr(error, "lineno", 1), str(error).splitlines()[0]
            raise DataError(
                f"{name}:{line}: not a {self.description} file, or a damaged one ({reason})."
            ) from None
        except OSError as error:
            raise DataError(f"{name}: cannot be read ({error.strerror}).") from None


def json_digest(value: Any) -> str:
    """Return the SHA-256 digest of a value as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def write_json(value: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a JSON file atomically: after a crash there is the old file or the new one."""
    with write_bytes(Path(path), sync=True) as out:
        out.write(json.dumps(value, indent=1, allow_nan=False).encode() + b"\n")
