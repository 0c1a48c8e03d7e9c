"""Data that studies need: where they may lie, and what they are known by."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A data set by the folders it may lie in: the paper's own first, what stands for it last."""

    folders: tuple[str, ...]

    def find(self, base: Path | None) -> Path | None:
        """The first of its folders that is there."""
        if base is None:
            return None
        return next((base / name for name in self.folders if (base / name).is_dir()), None)


# A sample of MSLR (train.txt and test.txt) stands for both, a half each.
SOURCES: Mapping[str, Source] = {
    "web10k": Source(("MSLR-WEB10K", "mslr-web10k", "mslr-web10k-5k")),
    "web30k": Source(("MSLR-WEB30K", "mslr-web30k", "mslr-web10k-5k")),
}


def data_folder(given: Path | None) -> Path | None:
    """--data, else $FIRSTPAGE_DATA, else none."""
    if given is not None:
        return given
    named = os.environ.get("FIRSTPAGE_DATA")
    return Path(named).expanduser() if named else None


def missing(needs: list[str], base: Path | None) -> str:
    """What is not there and how to give it; empty if nothing is missing."""
    lost = [SOURCES[name] for name in needs if SOURCES[name].find(base) is None]
    if not lost:
        return ""
    names = ", ".join(f"{s.folders[0]} (or {s.folders[-1]})" for s in lost)
    where = "a folder given by --data or FIRSTPAGE_DATA" if base is None else str(base)
    return f"needs {names} in {where}"


def fingerprint(folder: Path) -> str:
    """Of the names and contents of a folder's text files."""
    told = hashlib.sha256()
    for path in sorted(folder.rglob("*.txt*")):
        told.update(str(path.relative_to(folder)).encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                told.update(block)
    return told.hexdigest()[:16]
