"""The cache folder, and atomic replacement of files and folders."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from firstpage.core.errors import FirstpageError, warn

VARIABLE = "FIRSTPAGE_CACHE"


def cache_folder() -> Path:
    """Return `$FIRSTPAGE_CACHE`, else the platform's cache folder, which may not exist yet.

    A user without a home folder gets a private folder among the temporary files.
    """
    if folder := os.environ.get(VARIABLE):
        try:
            return Path(folder).expanduser()
        except RuntimeError as error:
            raise FirstpageError(
                f"{VARIABLE}={folder!r}: this home folder is unknown; set it to a full path."
            ) from error
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "firstpage"
    except RuntimeError:
        return _temporary_cache(base)


@cache
def _temporary_cache(base: str) -> Path:
    """Return a temporary folder that only this user can access, and warn once."""
    import tempfile

    reason = f"there is no home folder for the cache ({base})"
    try:
        folder = Path(tempfile.gettempdir()) / f"firstpage-{os.getuid()}"
        with suppress(FileExistsError):
            folder.mkdir(stat.S_IRWXU)
        status = folder.lstat()
    except OSError as error:
        raise FirstpageError(
            f"{reason}, and no temporary one ({error.strerror}); set {VARIABLE} to a folder."
        ) from error
    others = status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or others:
        raise FirstpageError(
            f"{reason}, and {folder} is not a private folder of yours; set {VARIABLE} to a folder."
        )
    warn(f"{reason}; it is {folder} now. Set {VARIABLE} to a folder that is kept.")
    return folder


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
            sync_to_disk(temporary)
        os.replace(temporary, path)
        if sync:
            sync_to_disk(path.parent)
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


def sync_to_disk(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk where the system supports it."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
