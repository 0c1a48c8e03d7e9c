"""The interface of engines: shards stay open where they are, and functions are sent to them.

A shard is opened from a small description of where its data are (a task), never from the data
themselves.  The result of a call depends on the task and the arguments alone: what an open shard
stores between calls is a cache.  So a shard that was lost with its worker can be opened again on
another one, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple

import numpy as np

from firstpage.core.errors import FirstpageError
from firstpage.core.types import Array


class EngineError(FirstpageError):
    """The machines of an engine are not available, or were lost."""


class CachedShard(Protocol):
    """An open shard: its data, and what is cached between calls."""

    @property
    def nbytes(self) -> int:
        """About the memory in use."""
        ...

    def release(self) -> None:
        """Release the pages of mapped files, after a call."""
        ...


S = TypeVar("S", bound=CachedShard)
S_co = TypeVar("S_co", bound=CachedShard, covariant=True)
R = TypeVar("R")
Args = TypeVarTuple("Args")
Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function that workers can import, and its arguments after the shard."""


class ShardTask(Protocol[S_co]):
    """A small description of one shard and of the work on it, which is sent to workers."""

    def open(self, threads: int) -> S_co:
        """Open the shard, for calls that use this number of threads."""
        ...


class Runner(Protocol):
    """Opens the shards of one job and calls them, on this machine or on a cluster."""

    def run(self, calls: Mapping[int, Call]) -> Mapping[int, Any]:
        """Return the result of each call by the number of its shard."""
        ...

    def close(self) -> None:
        """Close the shards."""
        ...


@dataclass(frozen=True, eq=False)
class ShardJob(Generic[S]):
    """The shards of one job, numbered from 0.

    Results are combined in the order of the shards: which machine has which shard changes nothing,
    not even the last bit.
    """

    count: int
    runner: Runner

    def __len__(self) -> int:
        return self.count

    def map(self, work: Callable[[S, *Args], R], *args: *Args) -> list[R]:
        """Return `work(shard, *args)` for every shard."""
        results = self.runner.run(dict.fromkeys(range(len(self)), (work, args)))
        return [results[number] for number in range(len(self))]

    def map_own(self, work: Callable[..., R], own: Sequence[object], *args: object) -> list[R]:
        """Return `work(shard, *args, own[shard])` for all shards of an own argument not None."""
        calls = {n: (work, (*args, own[n])) for n in range(len(self)) if own[n] is not None}
        results = self.runner.run(calls)
        return [results[number] for number in calls]

    def sum(self, work: Callable[[S, *Args], R], *args: *Args) -> R:
        """Return the sum over shards; tuples are summed element by element."""
        total: R = reduce(_sum, self.map(work, *args), 0)  # type: ignore[assignment]
        return total

    def max(self, work: Callable[[S, *Args], R], *args: *Args) -> R:
        """Return the maximum over shards; of tuples, element by element."""
        return reduce(_max, self.map(work, *args))

    def concat(self, work: Callable[[S, *Args], Array], *args: *Args) -> Array:
        """Return the concatenated arrays of all shards."""
        return np.concatenate(self.map(work, *args)) if len(self) else np.empty(0)

    def close(self) -> None:
        """Close the shards."""
        self.runner.close()


def _sum(total: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        totals = total if isinstance(total, tuple) else (0,) * len(value)
        return tuple(map(_sum, totals, value))
    return total + value


def _max(maximum: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_max, maximum, value))
    return np.maximum(maximum, value)


class Engine(Protocol):
    """Where work on shards runs."""

    client: Any  # the Dask client of a cluster; None: this machine

    def job(self, tasks: Sequence[ShardTask[S]]) -> ShardJob[S]:
        """Return a job over the shards of these tasks."""
        ...

    def close(self) -> None:
        """Disconnect."""
        ...


@dataclass
class ShardCache:
    """Open shards, up to a limit of memory.

    Passes visit all shards in turn, so a shard that does not fit beside the others is opened again
    each time: to drop another one for it would only mean to open that one again instead.  Shards of
    other jobs are dropped first, those of the oldest job before all.
    """

    limit: int
    _stored: dict[tuple[str, int], tuple[Any, int]] = field(default_factory=dict)

    def get(self, key: tuple[str, int]) -> Any:
        """Return the shard of this (job, number), or None."""
        return self._stored.get(key, (None, 0))[0]

    def offer(self, key: tuple[str, int], shard: CachedShard) -> bool:
        """Store a shard after use if it fits, by its current size; return whether it was stored."""
        size = int(shard.nbytes)
        self._stored.pop(key, None)
        used = sum(n for _, n in self._stored.values())
        for other in [k for k in self._stored if k[0] != key[0]]:
            if used + size <= self.limit:
                break
            used -= self._stored.pop(other)[1]
        if used + size > self.limit:
            return False
        self._stored[key] = shard, size
        return True

    def drop(self, job: str) -> None:
        """Remove the shards of a job."""
        for key in [k for k in self._stored if k[0] == job]:
            del self._stored[key]

    def __len__(self) -> int:
        return len(self._stored)
