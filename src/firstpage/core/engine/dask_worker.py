"""The code that runs on the workers of a cluster: open shards, and calls to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from firstpage.core.engine.engine import Call, ShardCache, ShardTask
from firstpage.core.engine.threads import CACHE_DIVISOR, physical_memory, single_threaded_blas
from firstpage.core.errors import DataError

ShardCall = tuple[int, ShardTask[Any], Call]
"""The number of a shard, its task, and the function to call."""

_cache = ShardCache(0)
_lock = Lock()
_busy: dict[tuple[str, int], Lock] = {}
_closed: deque[str] = deque(maxlen=1000)  # jobs that are done or were interrupted


def version() -> str:
    """Return the version of this package, imported by name: the engine is below its top level."""
    return str(import_module("firstpage").__version__)


def call(job: str, cache_bytes: int | None, shard_calls: list[ShardCall]) -> list[Any]:
    """Return the results of calls to some shards, one after the other."""
    with _lock:
        _cache.limit = _default_cache_bytes() if cache_bytes is None else cache_bytes
    results = []
    for number, task, (work, args) in shard_calls:
        if job in _closed:  # it was interrupted before this task arrived
            break
        results.append(_call((job, number), task, work, args))
    return results


def _call(
    key: tuple[str, int], task: ShardTask[Any], work: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    """Call a shard, which is opened if it is not cached.  A shard runs one call at a time."""
    with _lock:
        shard_lock = _busy.setdefault(key, Lock())
    with shard_lock, single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        with _lock:
            shard = _cache.get(key)
        with named_errors():
            if shard is None:
                shard = task.open(1)  # the threads of the worker run in parallel
            result = work(shard, *args)
        shard.release()
        with _lock:
            if key[0] in _closed:
                _busy.pop(key, None)
            else:
                _cache.offer(key, shard)
    return result


@contextmanager
def named_errors() -> Iterator[None]:
    """Name the worker in errors of data: its disk may differ from that of the client."""
    try:
        yield
    except DataError as error:
        raise DataError(f"on the worker {_address()}: {error.message}", error.advice) from error
    except OSError as error:
        raise DataError(f"on the worker {_address()}: {error}") from error


def canceled() -> bool:
    """Return whether the result of the current task is not needed any more.

    That is so after the client canceled the task, and after the client was lost.
    """
    worker = _worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is None or task.state == "cancelled"


def stops_after(step: int, job: str) -> bool:
    """Return whether the tasks of a job, which finish every step together, stop after this one.

    The first task that is canceled stores the number of the next step at the scheduler, so that all
    of them stop after the same one: a task that has left would let the others wait forever.
    """
    from distributed.utils import sync

    worker, keys = _worker(), ["firstpage-last-steps", job]
    try:
        last = sync(worker.loop, worker.scheduler.get_metadata, keys=keys, default=None)
        if last is None and canceled():
            last = step + 1
            sync(worker.loop, worker.scheduler.set_metadata, keys=keys, value=last)
    except OSError:  # without a scheduler, the worker will end
        return False
    return last is not None and step >= last


def drop(job: str) -> None:
    """Close the shards of a job."""
    with _lock:
        _closed.append(job)
        _cache.drop(job)
        for key in [k for k in _busy if k[0] == job]:
            del _busy[key]


def thread_count() -> int:
    """Return the number of threads of the worker of the current task."""
    return int(_worker().state.nthreads)


def open_shard_count() -> int:
    """Return the number of open shards."""
    return len(_cache)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()


def _address() -> str:
    try:
        return str(_worker().address)
    except ValueError:  # not inside a task
        return "?"


def _default_cache_bytes() -> int:
    """Return a fraction of the memory that the worker may use."""
    try:
        limit = _worker().memory_manager.memory_limit
    except (ValueError, AttributeError):
        limit = None
    return int(limit or physical_memory()) // CACHE_DIVISOR
