"""What runs on the workers of a cluster: open shards, and calls to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from firstpage.engine.engine import Call, ShardCache, ShardTask
from firstpage.engine.threads import SHARE, memory, quiet_blas
from firstpage.errors import DataError

Asked = tuple[int, ShardTask[Any], Call]
"""The number of a shard, how to open it, and what to call."""

_cache = ShardCache(0)
_lock = Lock()
_busy: dict[tuple[str, int], Lock] = {}
_done: deque[str] = deque(maxlen=1000)  # jobs that are done or were broken off


def version() -> str:
    """Of this package; by name, for this room is below its front door."""
    return str(import_module("firstpage").__version__)


def call(job: str, keep: int | None, asked: list[Asked]) -> list[Any]:
    """Return the results of some shards, one after the other."""
    with _lock:
        _cache.limit = _capacity() if keep is None else keep
    results = []
    for number, task, (work, args) in asked:
        if job in _done:  # it was broken off, and this task is still on its way
            break
        results.append(_call((job, number), task, work, args))
    return results


def _call(
    key: tuple[str, int], task: ShardTask[Any], work: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    """Call a shard, which is opened if it is not at hand.  A shard does one thing at a time."""
    with _lock:
        mine = _busy.setdefault(key, Lock())
    with mine, quiet_blas(), np.errstate(over="ignore", invalid="ignore"):
        with _lock:
            shard = _cache.get(key)
        try:
            if shard is None:
                shard = task.open(1)  # the workers' own threads are what runs side by side
            result = work(shard, *args)
        except (DataError, OSError) as error:  # not ours: elsewhere the disk may be another
            raise DataError(f"on the worker {_address()}: {error}") from error
        shard.release()
        with _lock:
            if key[0] in _done:
                _busy.pop(key, None)
            else:
                _cache.offer(key, shard)
    return result


def drop(job: str) -> None:
    """A job is done: let go of its shards."""
    with _lock:
        _done.append(job)
        _cache.drop(job)
        for key in [k for k in _busy if k[0] == job]:
            del _busy[key]


def held() -> int:
    """Return how many shards are open."""
    return len(_cache)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()


def _address() -> str:
    try:
        return str(_worker().address)
    except ValueError:  # not inside a task
        return "?"


def _capacity() -> int:
    """Return a fraction of what the worker may use."""
    try:
        limit = _worker().memory_manager.memory_limit
    except (ValueError, AttributeError):
        limit = None
    return int(limit or memory()) // SHARE
