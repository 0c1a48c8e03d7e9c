"""The gate of sign-in: password hashes run on two threads of their own, and few may wait.

A hash takes 64 MB and some hundredths of a second by design.  Were each request to compute its
own, anybody could take the memory and the threads that judging needs.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from firstpage.errors import FirstpageError
from firstpage.web.store.attempts import Source

P = ParamSpec("P")
T = TypeVar("T")

HASHES = 2  # at the same time
PLACES = 32  # for those who hash and those who wait
RESERVED = 8  # of them for known devices, so that strangers cannot fill all
PER_SOURCE = 8  # places of one network or device


class Crowded(FirstpageError):
    """Too many are signing in at this moment."""


class Gate:
    """Runs sign-in work of one application, each piece as a whole on one of `HASHES` threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(HASHES, "sign-in")
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    async def run(
        self, source: Source, work: Callable[P, T], *given: P.args, **more: P.kwargs
    ) -> T:
        """Return what `work` returns; refused at once where no place is free."""
        self._enter(source)
        try:
            future = self._threads.submit(work, *given, **more)
        except BaseException:
            self._leave(source)
            raise
        future.add_done_callback(lambda _: self._leave(source))
        return await asyncio.wrap_future(future)

    def _enter(self, source: Source) -> None:
        with self._lock:
            places = PLACES if source.known else PLACES - RESERVED
            if self._taken.total() >= places or self._taken[source.name] >= PER_SOURCE:
                raise Crowded("Many people are signing in; please try again in a moment.")
            self._taken[source.name] += 1

    def _leave(self, source: Source) -> None:
        with self._lock:
            self._taken[source.name] -= 1
            self._taken += Counter()  # forget those at zero
