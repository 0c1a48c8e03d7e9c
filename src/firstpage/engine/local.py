"""This machine: one part after the other, each with all threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from firstpage.engine.base import Kept, Make
from firstpage.engine.threads import quiet_blas, resolve
from firstpage.errors import DataError

SHARE = 4  # of the memory of the machine that parts may hold


class Local:
    """Parts on this machine.

    threads   None: all cores
    keep      bytes that parts may hold between calls; what does not fit is made again in every
              pass.  None: a quarter of the memory
    """

    def __init__(self, threads: int | None = None, keep: int | None = None) -> None:
        if keep is not None and keep < 0:
            raise DataError(f"keep must not be negative; got {keep}.")
        self.threads, self.keep = threads, memory() // SHARE if keep is None else int(keep)

    def __repr__(self) -> str:
        return f"Local(threads={self.threads}, keep={self.keep})"

    def parts(self, make: Make, specs: Sequence[Any]) -> LocalParts:
        return LocalParts(make, specs, resolve(self.threads), self.keep)


class LocalParts:
    def __init__(self, make: Make, specs: Sequence[Any], threads: int, keep: int) -> None:
        self._make, self._specs, self._threads = make, list(specs), threads
        self._kept = Kept(keep)

    def __len__(self) -> int:
        return len(self._specs)

    def each(self, method: str, *args: Any, own: Sequence[Any] | None = None) -> list[Any]:
        found: list[Any] = []
        for number in range(len(self)):
            if own is not None and own[number] is None:
                found.append(None)
                continue
            mine = () if own is None else (own[number],)
            found.append(self._call(number, method, *args, *mine))
        return found

    def _call(self, number: int, method: str, *args: Any) -> Any:
        key = ("", number)
        with quiet_blas(), np.errstate(over="ignore", invalid="ignore"):
            part = self._kept.get(key) or self._make(self._specs[number], self._threads)
            found = getattr(part, method)(*args)
        part.release()
        self._kept.offer(key, part)
        return found

    def close(self) -> None:
        self._kept.drop("")


def memory() -> int:
    """Bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
