"""Parsed files, kept as `.npy` arrays that open in a millisecond by memory mapping.

An entry is a folder named after the file and all that its content depends on: the file's
place, size and time, the reading options, and the version of this format.  It is written
beside its final place and renamed, so that two processes may make it at once: one wins and
both have it.  Where nothing can be written, nothing is, and nobody is bothered.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.data.io.json_files import digest
from firstpage.folders import cache_folder, replacing
from firstpage.types import Array

FORMAT = 4
Where = bool | Literal["beside"] | str | os.PathLike[str]
"""True: the cache folder; "beside": next to the file; a path: that folder; False: nowhere."""


class Entry:
    """The place in the cache for one file read with given options."""

    def __init__(self, path: Path, where: Where, options: dict[str, Any]) -> None:
        info = path.stat()
        self._prefix = f"{path.name}.{digest([str(path.resolve()), options])[:12]}."
        if where == "beside":
            base = path.parent / ".firstpage"
        else:
            base = cache_folder() / "data" if where is True else Path(where or ".")
        state = digest([FORMAT, info.st_size, info.st_mtime_ns])
        self.folder = base / (self._prefix + state[:12])

    def load(self) -> dict[str, Array] | None:
        """The arrays, mapped read-only, or None where they are absent or not whole."""
        try:
            sizes: dict[str, int] = json.loads((self.folder / "entry.json").read_text())
            arrays = {}
            for name, size in sizes.items():
                file = self.folder / f"{name}.npy"
                if file.stat().st_size != size:
                    return None
                arrays[name] = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, AttributeError):
            return None
        return arrays

    def save(self, arrays: dict[str, Array]) -> None:
        """Keep the arrays; stale entries of the same file go."""
        with suppress(OSError):  # full or read-only disk, or another process was first
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.folder) as draft:
                draft.mkdir()
                sizes = {}
                for name, array in arrays.items():
                    np.save(draft / f"{name}.npy", array, allow_pickle=False)
                    sizes[name] = (draft / f"{name}.npy").stat().st_size
                (draft / "entry.json").write_text(json.dumps(sizes))
                for old in self.folder.parent.glob(glob.escape(self._prefix) + "*"):
                    shutil.rmtree(old, ignore_errors=True)
