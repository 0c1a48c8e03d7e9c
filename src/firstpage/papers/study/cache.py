"""Finished runs on disk: what was done once is not done again, also after a kill.

A run is a small JSON file, written beside its place and renamed.  Its folder is named after the
code and the versions that made it, its name after everything else the numbers depend on.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from firstpage.folders import cache_folder

FORMAT = 1
OLD = 30 * 86400.0  # seconds after which what other code made is thrown away
LIBRARIES = ("numpy", "scipy", "numba")


@dataclass(frozen=True)
class Shelf:
    """The place of one study's runs, made by one state of the code."""

    folder: Path

    def path(self, key: Sequence[Any]) -> Path:
        text = json.dumps(key, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def load(self, key: Sequence[Any]) -> dict[str, Any] | None:
        """What is kept under a key; None where there is nothing, or something damaged."""
        try:
            kept = json.loads(self.path(key).read_text())
        except (OSError, ValueError):
            return None
        return kept if _whole(kept) else None

    def save(self, key: Sequence[Any], value: dict[str, Any]) -> None:
        """Keep a run; where nothing can be written, nothing is, and nobody is bothered."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=self.folder, prefix=".", suffix=".part", delete=False
            ) as out:
                json.dump(value, out)
            os.replace(out.name, self.path(key))


def _whole(kept: Any) -> bool:
    """Rows, at least one, each with a number."""
    rows = kept.get("rows") if isinstance(kept, dict) else None
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(isinstance(row, dict) and isinstance(row.get("value"), int | float) for row in rows)
    )


def shelf(study: str, rooms: Sequence[str]) -> Shelf:
    """The shelf for the code as it stands."""
    base = cache_folder() / "studies" / study
    found = Shelf(base / code_digest(rooms))
    _sweep(base, found.folder)
    return found


def versions() -> dict[str, str]:
    """Of what the numbers come from."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def code_digest(rooms: Sequence[str]) -> str:
    """Changes with the sources of these packages and modules, and with the libraries' versions."""
    told = hashlib.sha256(json.dumps([FORMAT, versions()], sort_keys=True).encode())
    for room in rooms:
        module = import_module(room)
        assert module.__file__ is not None
        file = Path(module.__file__)
        for source in sorted(file.parent.rglob("*.py")) if file.stem == "__init__" else [file]:
            told.update(source.name.encode() + b"\0" + source.read_bytes())
    return told.hexdigest()[:16]


def _sweep(base: Path, own: Path) -> None:
    """Runs of other code go when they are old."""
    with suppress(OSError):
        for folder in base.iterdir():
            if folder != own and time.time() - folder.stat().st_mtime > OLD:
                shutil.rmtree(folder, ignore_errors=True)
