"""Threads of this machine.  Kernels let go of Python's lock, so that they run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from firstpage.engine.engine import Call, S, ShardCache, ShardJob, ShardTask
from firstpage.errors import DataError


def available() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve(threads: int | None) -> int:
    """None means all cores."""
    if threads is None:
        return available()
    if threads < 1:
        raise DataError(f"threads must be at least 1, or None for all cores; got {threads}.")
    return int(threads)


@contextmanager
def quiet_blas() -> Iterator[None]:
    """Linear algebra in one thread for a while.

    On matrices as small as a solver's, BLAS spends ten times longer on waking threads than on
    numbers; and how it shares sums among them would show in the last digits.
    """
    with _quiet:
        yield


@contextmanager
def limited_blas(threads: int) -> Iterator[None]:
    """Linear algebra in at most so many threads for a while."""
    if threads >= available():
        yield
    elif threads == 1:
        with _quiet:
            yield
    else:
        with _controller().limit(limits=threads, user_api="blas"):
            yield


@contextmanager
def limited_openmp(threads: int | None) -> Iterator[None]:
    """OpenMP in at most so many threads for a while, for what the calling thread begins."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads, "openmp"):  # looks for libraries that were loaded since
        yield


class _Quiet:
    """Whoever comes first turns BLAS down; who leaves last turns it up again.

    BLAS has one setting for all threads: without counting, one that leaves would turn it up for
    the others.
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


_quiet = _Quiet()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class Lanes:
    """A few lists of jobs, each run in its order, all lists at once.

    Which lane a job is in changes nothing but time: jobs write to places of their own, and what
    they wrote is added up afterwards, in one order.
    """

    def __init__(self, jobs: Sequence[Sequence[Callable[[], object]]]) -> None:
        self._lanes = [list(lane) for lane in jobs if lane]
        self._pool: ThreadPoolExecutor | None = None

    def run(self) -> None:
        if len(self._lanes) < 2:
            for lane in self._lanes:
                _run(lane)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(self._lanes) - 1)
        waiting = [self._pool.submit(_run, lane) for lane in self._lanes[1:]]
        try:
            _run(self._lanes[0])
        finally:  # whatever happens here, nobody may still write to our arrays
            for done in waiting:
                done.result()


def _run(lane: Sequence[Callable[[], object]]) -> None:
    for job in lane:
        job()


SHARE = 4  # of the memory of the machine that open shards may hold


class Local:
    """Shards on this machine.

    threads   None: all cores
    keep      bytes that open shards may hold between calls; what does not fit is opened again in
              every pass.  None: a quarter of the memory
    """

    client = None

    def __init__(self, threads: int | None = None, keep: int | None = None) -> None:
        if keep is not None and keep < 0:
            raise DataError(f"keep must not be negative; got {keep}.")
        self.threads, self.keep = threads, memory() // SHARE if keep is None else int(keep)

    def __repr__(self) -> str:
        return f"Local(threads={self.threads}, keep={self.keep})"

    def job(self, tasks: Sequence[ShardTask[S]]) -> ShardJob[S]:
        return ShardJob(len(tasks), LocalRunner(tasks, resolve(self.threads), self.keep))

    def close(self) -> None:
        """Nothing is connected."""


class LocalRunner:
    """Shard after shard, each by several threads."""

    def __init__(self, tasks: Sequence[ShardTask[Any]], threads: int, keep: int) -> None:
        self._tasks, self._threads = tasks, threads
        self._cache = ShardCache(keep)

    def run(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        return {number: self._call(number, *call) for number, call in calls.items()}

    def _call(self, number: int, work: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        key = ("", number)
        with quiet_blas(), np.errstate(over="ignore", invalid="ignore"):
            shard = self._cache.get(key)
            if shard is None:
                shard = self._tasks[number].open(self._threads)
            result = work(shard, *args)
        shard.release()
        self._cache.offer(key, shard)
        return result

    def close(self) -> None:
        self._cache.drop("")


def memory() -> int:
    """Bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
