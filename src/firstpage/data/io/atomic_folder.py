"""A folder that appears in one step, when all of it is written."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from firstpage.errors import DataError
from firstpage.folders import replacing

try:
    import fcntl
except ImportError:  # not on this system: drafts of killed processes stay
    fcntl = None  # type: ignore[assignment]

YOUNG = 2.0  # seconds in which a draft may not be locked yet by who makes it


@contextmanager
def appearing(place: Path) -> Iterator[Path]:
    """A draft beside the place, which takes its name at the end; a failure leaves nothing.

    A process that is killed leaves its draft, whose name begins with a dot; the next that writes
    to the same place removes it.
    """
    lock = None
    try:
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise DataError(f"{place}: is there already; remove it, or name another folder.")
        final = place.resolve()  # a link to an empty folder stays one
        final.parent.mkdir(parents=True, exist_ok=True)
        _clean(final)
        with replacing(final) as draft:
            draft.mkdir()
            lock = _locked(draft)
            yield draft
    except OSError as error:
        raise DataError(f"{place}: cannot be written ({error.strerror or error}).") from error
    finally:
        if lock is not None:
            os.close(lock)


def _clean(final: Path) -> None:
    """Remove drafts of the same place that nobody works on any more."""
    if fcntl is None:
        return
    for old in final.parent.iterdir():
        if not old.name.startswith(f".{final.name}-") or not _is_draft(old):
            continue
        lock = _locked(old)
        if lock is not None:
            shutil.rmtree(old, ignore_errors=True)
            os.close(lock)


def _is_draft(folder: Path) -> bool:
    """Folders of arrays, and nothing else, that nobody began just now."""
    with suppress(OSError):
        names = [one.name for one in folder.iterdir()]
        ours = all(name == "shards.json" or name[:5].isdigit() for name in names)
        return ours and time.time() - folder.stat().st_mtime > YOUNG
    return False


def _locked(folder: Path) -> int | None:
    """Hold a folder while this process lives; None where another does, or nobody can."""
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
