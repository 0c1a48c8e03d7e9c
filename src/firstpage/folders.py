"""The cache folder, and atomic replacement of files and folders."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def cache_folder() -> Path:
    """Return `$FIRSTPAGE_CACHE`, else the platform's cache folder, which may not exist yet."""
    if folder := os.environ.get("FIRSTPAGE_CACHE"):
        return Path(folder).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "firstpage"


@contextmanager
def atomic_replace(path: Path, *, sync: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what is written there replaces `path` atomically.

    Other processes see the old or the complete new file or folder; a failure leaves nothing
    behind.  With `sync`, a file also survives a power loss: it is flushed to disk before the
    rename.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield temporary
        if sync:
            _flush(temporary)
        os.replace(temporary, path)
        if sync:
            _flush(path.parent)
    finally:
        remove(temporary)


def remove_abandoned(path: Path) -> None:
    """Remove what killed processes left of `atomic_replace(path)`; only for its one writer."""
    for temporary in path.parent.glob(f".{glob.escape(path.name)}-*"):
        remove(temporary)


def remove(path: Path) -> None:
    """Remove a file or folder if it exists and that is possible; readers keep what they mapped."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk where the system supports it."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
