"""Where Firstpage may store what it can make again, and how files and folders are replaced."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def cache_folder() -> Path:
    """`$FIRSTPAGE_CACHE`, else the platform's cache folder.  It may not exist yet."""
    if given := os.environ.get("FIRSTPAGE_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "firstpage"


@contextmanager
def replacing(path: Path, *, sync: bool = False) -> Iterator[Path]:
    """Yield a path beside `path`, for a file or folder that takes its name in one step at the end.

    Other processes see the old one or the whole new one; a failure leaves nothing behind.  With
    `sync` a file also outlives a loss of power: it is on the disk before it takes the name.
    """
    draft = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield draft
        if sync:
            _flush(draft)
        os.replace(draft, path)
        if sync:
            _flush(path.parent)
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, where the system can tell."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
