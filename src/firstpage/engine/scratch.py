"""Large arrays that need not be in memory: files that are gone when nobody uses them."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from firstpage.errors import DataError
from firstpage.types import Array

SMALL = 1 << 20  # bytes that are not worth a file


class Scratch:
    """Room on disk, in the folder for temporary files (`TMPDIR`); it goes with the process."""

    def __init__(self) -> None:
        self.maps: list[mmap.mmap] = []

    def room(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array to write to, mapped from a file that has no name any more."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape)) * kind.itemsize
        if size <= SMALL:
            return np.empty(shape, kind)
        try:
            with tempfile.TemporaryFile(prefix="firstpage-") as file:
                _reserve(file.fileno(), size)
                held = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise DataError(
                f"{tempfile.gettempdir()}: no room for {size / 2**20:.0f} MB of scratch "
                f"({error.strerror}); set TMPDIR to a folder with more."
            ) from error
        self.maps.append(held)
        return np.frombuffer(held, kind).reshape(shape)

    def release(self) -> None:
        """Let go of the pages that are in memory; they are read again when needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for one in self.maps:
                one.madvise(mmap.MADV_DONTNEED)


def _reserve(file: int, size: int) -> None:
    """All of it now: a disk that is full later would end the process while it writes."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)
