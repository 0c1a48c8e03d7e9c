"""What an engine is: shards that stay open where they are, and work that goes to all of them.

A shard is opened from a small description of where its data lie (a task), never from the data
themselves.  What a call returns depends on the task and the arguments alone: whatever an open shard
stores between calls is a cache.  So a shard that was lost with its worker is opened again somewhere
else, and the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple

import numpy as np

from firstpage.errors import FirstpageError
from firstpage.types import Array


class EngineError(FirstpageError):
    """The machines that were to work are not there, or went away."""


class OpenShard(Protocol):
    """A shard at work: its data, and what is cached between calls."""

    @property
    def nbytes(self) -> int:
        """About what it holds in memory."""
        ...

    def release(self) -> None:
        """After a call: let go of pages of mapped files."""
        ...


S = TypeVar("S", bound=OpenShard)
S_co = TypeVar("S_co", bound=OpenShard, covariant=True)
R = TypeVar("R")
Args = TypeVarTuple("Args")
Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function that a worker can import, and its arguments after the shard."""


class ShardTask(Protocol[S_co]):
    """A small description of one shard and of the work on it; it travels to the machines."""

    def open(self, threads: int) -> S_co: ...


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

    Results are combined in the order of shards: which machine works on which shard changes
    nothing, not even the last bit.
    """

    count: int
    runner: Runner

    def __len__(self) -> int:
        return self.count

    def map(self, work: Callable[[S, *Args], R], *args: *Args) -> list[R]:
        """Return `work(shard, *args)` of every shard."""
        results = self.runner.run(dict.fromkeys(range(len(self)), (work, args)))
        return [results[number] for number in range(len(self))]

    def map_own(self, work: Callable[..., R], own: Sequence[object], *args: object) -> list[R]:
        """Return `work(shard, *args, own[shard])` of every shard whose own argument is not None."""
        calls = {n: (work, (*args, own[n])) for n in range(len(self)) if own[n] is not None}
        results = self.runner.run(calls)
        return [results[number] for number in calls]

    def sum(self, work: Callable[[S, *Args], R], *args: *Args) -> R:
        """Return the sum over shards, of tuples term by term."""
        total: R = reduce(_sum, self.map(work, *args), 0)  # type: ignore[assignment]
        return total

    def max(self, work: Callable[[S, *Args], R], *args: *Args) -> R:
        """Return the greatest value over shards, of tuples term by term."""
        return reduce(_max, self.map(work, *args))

    def concat(self, work: Callable[[S, *Args], Array], *args: *Args) -> Array:
        """Return the arrays of all shards, one after the other."""
        return np.concatenate(self.map(work, *args)) if len(self) else np.empty(0)

    def close(self) -> None:
        self.runner.close()


def _sum(total: Any, one: Any) -> Any:
    if isinstance(one, tuple):
        totals = total if isinstance(total, tuple) else (0,) * len(one)
        return tuple(map(_sum, totals, one))
    return total + one


def _max(most: Any, one: Any) -> Any:
    return tuple(map(_max, most, one)) if isinstance(one, tuple) else np.maximum(most, one)


class Engine(Protocol):
    """Where work runs.

    client   the Dask client of a cluster; None: this machine
    """

    client: Any

    def job(self, tasks: Sequence[ShardTask[S]]) -> ShardJob[S]: ...

    def close(self) -> None:
        """Disconnect."""
        ...


@dataclass
class ShardCache:
    """Open shards that are stored because they fit.

    Passes go through all shards in turn.  So one that does not fit beside the others is opened anew
    each time: to drop another for it would only mean to open that one anew instead.  Shards of
    other jobs go first, the oldest job before all.
    """

    limit: int
    _stored: dict[tuple[str, int], tuple[Any, int]] = field(default_factory=dict)

    def get(self, key: tuple[str, int]) -> Any:
        return self._stored.get(key, (None, 0))[0]

    def offer(self, key: tuple[str, int], shard: OpenShard) -> bool:
        """After use: store it if it fits, by the size that it has now."""
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
        for key in [k for k in self._stored if k[0] == job]:
            del self._stored[key]

    def __len__(self) -> int:
        return len(self._stored)
