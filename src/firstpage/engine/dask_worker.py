"""What runs on the workers of a cluster: parts at hand, and calls to them."""

from __future__ import annotations

from collections import deque
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from firstpage.engine.engine import Kept, Make
from firstpage.engine.threads import SHARE, memory, quiet_blas
from firstpage.errors import DataError

Asked = tuple[int, Any, tuple[Any, ...]]
"""The number of a part, its spec, and what to call: the method and its arguments."""

_kept = Kept(0)
_lock = Lock()
_busy: dict[tuple[str, int], Lock] = {}
_done: deque[str] = deque(maxlen=1000)  # jobs of which nobody wants to know more


def version() -> str:
    """Of this package; by name, for this room is below its front door."""
    return str(import_module("firstpage").__version__)


def call(job: str, make: Make, keep: int | None, asked: list[Asked]) -> list[Any]:
    """What parts answer, one after the other."""
    with _lock:
        _kept.limit = _room() if keep is None else keep
    found = []
    for number, spec, given in asked:
        if job in _done:  # it was broken off, and this task is still on its way
            break
        found.append(_call((job, number), make, spec, given))
    return found


def _call(key: tuple[str, int], make: Make, spec: Any, given: tuple[Any, ...]) -> Any:
    """Call a part, which is made if it is not at hand.  A part does one thing at a time."""
    with _lock:
        mine = _busy.setdefault(key, Lock())
    with mine, quiet_blas(), np.errstate(over="ignore", invalid="ignore"):
        with _lock:
            part = _kept.get(key)
        try:
            if part is None:
                part = make(spec, 1)  # the workers' own threads are what runs side by side
            found = getattr(part, given[0])(*given[1:])
        except (DataError, OSError) as error:  # not ours: elsewhere the disk may be another
            raise DataError(f"on the worker {_address()}: {error}") from error
        part.release()
        with _lock:
            if key[0] in _done:
                _busy.pop(key, None)
            else:
                _kept.offer(key, part)
    return found


def drop(job: str) -> None:
    """A job is done: let go of its parts."""
    with _lock:
        _done.append(job)
        _kept.drop(job)
        for key in [k for k in _busy if k[0] == job]:
            del _busy[key]


def held() -> int:
    """How many parts are at hand."""
    return len(_kept)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()


def _address() -> str:
    try:
        return str(_worker().address)
    except ValueError:  # not inside a task
        return "?"


def _room() -> int:
    """A share of what the worker may use."""
    try:
        limit = _worker().memory_manager.memory_limit
    except (ValueError, AttributeError):
        limit = None
    return int(limit or memory()) // SHARE
