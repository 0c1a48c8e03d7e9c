"""Threads of this machine.  Kernels release Python's global lock, so that they run in parallel."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from firstpage.core.engine.engine import Call, S, ShardCache, ShardJob, ShardTask
from firstpage.core.errors import DataError


def available() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve(threads: int | None) -> int:
    """Return the number of threads; None means all cores."""
    if threads is None:
        return available()
    if threads < 1:
        raise DataError(f"threads must be at least 1, or None for all cores; got {threads}.")
    return int(threads)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Run BLAS in one thread in the context.

    On matrices as small as a solver's, BLAS spends ten times longer on waking threads than on
    arithmetic, and how it splits sums among threads would change the last digits.
    """
    with _single_thread:
        yield


@contextmanager
def limited_blas(threads: int) -> Iterator[None]:
    """Run BLAS in at most this number of threads in the context."""
    if threads >= available():
        yield
    elif threads == 1:
        with _single_thread:
            yield
    else:
        with _controller().limit(limits=threads, user_api="blas"):
            yield


@contextmanager
def limited_openmp(threads: int | None) -> Iterator[None]:
    """Run OpenMP in at most this number of threads in the context, for the calling thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads, "openmp"):  # also finds libraries that were loaded since
        yield


class _SingleThread:
    """Limits BLAS when the first thread enters, and restores it when the last one leaves.

    BLAS has one setting for the process: without counting, the first thread that leaves would
    restore it for the others.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()
                self._limit = None


_single_thread = _SingleThread()


def _controller() -> Any:
    """Return a controller of the BLAS of NumPy, and of SciPy's own once it is loaded."""
    return _controller_of("scipy.linalg" in sys.modules)


@cache
def _controller_of(with_scipy: bool) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # knows the libraries that are loaded now


class Lanes:
    """A few lists of functions, each run in its order by one thread, all lists at once.

    The lane of a function changes nothing but time: functions write to arrays of their own, which
    are summed afterwards in a fixed order.
    """

    def __init__(self, lanes: Sequence[Sequence[Callable[[], object]]]) -> None:
        self._lanes = [list(lane) for lane in lanes if lane]
        self._pool: ThreadPoolExecutor | None = None

    def run(self) -> None:
        """Run all functions, and wait for them."""
        if len(self._lanes) < 2:
            for lane in self._lanes:
                _run(lane)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(self._lanes) - 1)
        futures = [self._pool.submit(_run, lane) for lane in self._lanes[1:]]
        try:
            _run(self._lanes[0])
        finally:  # also after an error, no thread may still write to the arrays
            for future in futures:
                future.result()


def _run(lane: Sequence[Callable[[], object]]) -> None:
    for function in lane:
        function()


CACHE_DIVISOR = 4  # by default open shards may use a quarter of the memory


class LocalEngine:
    """An engine whose shards are open on this machine.

    Parameters
    ----------
    threads : int, optional
        The number of threads; None: all cores.
    cache_bytes : int, optional
        The memory that open shards may use between calls; shards that do not fit are opened again
        in every pass.  None: a quarter of the memory.

    Raises
    ------
    DataError
        If `cache_bytes` is negative.

    Examples
    --------
    >>> from firstpage.core.engine.threads import LocalEngine
    >>> LocalEngine(threads=2, cache_bytes=1 << 20)
    LocalEngine(threads=2, cache_bytes=1048576)
    """

    client = None

    def __init__(self, threads: int | None = None, cache_bytes: int | None = None) -> None:
        if cache_bytes is not None and cache_bytes < 0:
            raise DataError(f"cache_bytes must be at least 0; got {cache_bytes}.")
        if cache_bytes is None:
            cache_bytes = physical_memory() // CACHE_DIVISOR
        self.threads, self.cache_bytes = threads, int(cache_bytes)

    def __repr__(self) -> str:
        return f"LocalEngine(threads={self.threads}, cache_bytes={self.cache_bytes})"

    def job(self, tasks: Sequence[ShardTask[S]]) -> ShardJob[S]:
        """Return a job over shards, which are opened when they are called."""
        return ShardJob(len(tasks), LocalRunner(tasks, resolve(self.threads), self.cache_bytes))

    def close(self) -> None:
        """Do nothing: there is no connection."""


class LocalRunner:
    """Calls shard after shard, each with several threads."""

    def __init__(self, tasks: Sequence[ShardTask[Any]], threads: int, cache_bytes: int) -> None:
        self._tasks, self._threads = tasks, threads
        self._cache = ShardCache(cache_bytes)

    def run(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        return {number: self._call(number, *call) for number, call in calls.items()}

    def _call(self, number: int, work: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        key = ("", number)
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            shard = self._cache.get(key)
            if shard is None:
                shard = self._tasks[number].open(self._threads)
            result = work(shard, *args)
        shard.release()
        self._cache.offer(key, shard)
        return result

    def close(self) -> None:
        self._cache.drop("")


def physical_memory() -> int:
    """Return the bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
