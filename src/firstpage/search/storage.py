"""Files of an index: arrays to which documents are appended, folders of the engine, the lock."""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

from firstpage.core import Array, DataError
from firstpage.data import Ids

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the only writer of an index; the system releases that of a killed one."""
    with reporting(folder):
        handle = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    try:
        if handle is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                own = os.path.samestat(os.fstat(handle), os.stat(folder))  # not moved meanwhile
            except OSError:
                own = False
            if not own:
                raise DataError(f"{folder}: another process writes to this index; wait for it.")
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def reporting(folder: Path) -> Iterator[None]:
    """Report errors of the system, such as a full disk, in one line."""
    try:
        yield
    except OSError as error:
        name = error.filename or folder
        raise DataError(f"{name}: cannot write there ({error.strerror or error}).") from error


class AppendFile:
    """A file of numbers of one type, written after the `size` that are committed."""

    def __init__(self, path: Path, dtype: type, size: int) -> None:
        self._stream: IO[bytes] = open(path, "r+b" if path.exists() else "w+b")  # noqa: SIM115
        self._stream.truncate(size * np.dtype(dtype).itemsize)
        self._stream.seek(0, os.SEEK_END)
        self._dtype = dtype
        self.size = size

    def append(self, values: Array) -> None:
        """Append numbers."""
        self._stream.write(np.ascontiguousarray(values, self._dtype).tobytes())
        self.size += values.size

    def flush(self) -> None:
        """Make what was appended visible to readers of the file."""
        self._stream.flush()

    def close(self) -> None:
        """Flush the file to disk and close it."""
        if not self._stream.closed:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()

    def discard(self) -> None:
        """Close the file, whatever becomes of the numbers that were appended."""
        with suppress(OSError):
            self._stream.close()


def mapped(path: Path, dtype: type, shape: tuple[int, ...]) -> Array:
    """Return the beginning of a file as an array; refuse a file that is shorter."""
    size = int(np.prod(shape))
    if not size:
        return np.empty(shape, dtype)
    if not path.exists() or path.stat().st_size < size * np.dtype(dtype).itemsize:
        raise damaged(path, "it is missing or too short")
    return np.asarray(np.memmap(path, dtype, "r", shape=shape))


def mapped_ends(path: Path, shape: tuple[int, ...], total: int) -> Array:
    """Return where consecutive parts of `total` numbers end; refuse what cannot be that."""
    ends = mapped(path, np.int64, shape)
    flat = ends.ravel()
    if flat.size and (flat[0] < 0 or flat[-1] != total or (np.diff(flat) < 0).any()):
        raise damaged(path, "its numbers are impossible")
    return ends


def mapped_ids(folder: Path, name: str, count: int, n_bytes: int) -> Ids:
    """Return a column of strings that is stored as bytes and ends."""
    data = mapped(folder / f"{name}.bytes", np.uint8, (n_bytes,))
    return Ids.from_packed(data, mapped_ends(folder / f"{name}.ends", (count,), n_bytes))


def load_arrays(path: Path, shapes: dict[str, tuple[int, ...] | None]) -> list[Array]:
    """Return the arrays of an npz file in this order; refuse a damaged file and other shapes."""
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = [stored[name] for name in shapes]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise damaged(path, str(error).partition("\n")[0]) from error
    for array, shape in zip(arrays, shapes.values(), strict=True):
        if shape is not None and array.shape != shape:
            raise damaged(path, f"it has the shape {array.shape}, not {shape}")
    return arrays


def damaged(path: Path, reason: str) -> DataError:
    """Return the error of a file that cannot be read."""
    return DataError(f"{path}: damaged ({reason}); build the index again.")


def link_folder(source: Path, target: Path) -> None:
    """Copy a folder of the engine: its segments, which never change, as links where possible."""
    target.mkdir()
    for file in source.iterdir():
        if file.suffix == ".json":
            shutil.copy2(file, target)
        elif file.suffix != ".lock":
            try:
                os.link(file, target / file.name)
            except OSError:
                shutil.copy2(file, target)


def generations(folder: Path) -> dict[Path, int]:
    """Return the files and folders of an index that belong to a generation, and which."""
    numbers = {e: e.name.partition("-")[2].partition(".")[0] for e in folder.iterdir()}
    return {entry: int(number) for entry, number in numbers.items() if number.isdigit()}
