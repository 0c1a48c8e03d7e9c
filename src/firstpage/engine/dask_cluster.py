"""A Dask cluster: one task per thread and call, each shard open on one worker while that lives.

Nothing but tasks, arguments and results travels: workers read shards themselves, so the folder must
be on a disk that all of them see.  A shard that is not open, as after its worker was killed, is
opened again from its task by the worker that gets the call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from uuid import uuid4

from firstpage.engine.dask_worker import call, drop, version
from firstpage.engine.engine import Call, EngineError, S, ShardJob, ShardTask
from firstpage.errors import FirstpageError, missing_dependency

TIMEOUT = 10.0  # seconds in which a scheduler must answer (again)
PATIENCE = 60.0  # seconds to wait for a worker to come (back)
GLANCE = 2.0  # seconds between looks whether anybody is still there
NEWCOMERS = 5.0  # seconds between looks at who is new
LOST = (OSError, asyncio.CancelledError, CancelledError)  # what Dask raises without its scheduler


def connected(address: str) -> DaskEngine:
    """The engine of a scheduler's address."""
    distributed = library()
    _hush()
    try:
        client = distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address}; start one with `dask scheduler`, and workers "
            f"with `dask worker {address}`."
        ) from error
    return DaskEngine(client, mine=True)


def _hush() -> None:
    """What matters is raised, in one line; Dask would log the rest of it as well."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


def library() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise missing_dependency("distributed", "dask", "A cluster") from error
    return distributed


class DaskEngine:
    """Shards on the workers of a Dask cluster.

    keep   bytes that open shards may hold on a worker between calls; None: a quarter of its memory
    """

    def __init__(self, client: Any, keep: int | None = None, mine: bool = False) -> None:
        self.client, self.keep, self._mine = client, keep, mine
        self.address = str(client.scheduler.address)
        self._checked = False

    def __repr__(self) -> str:
        return f"DaskEngine({self.address})"

    def job(self, tasks: Sequence[ShardTask[S]]) -> ShardJob[S]:
        self.workers()
        return ShardJob(len(tasks), DaskRunner(self, tasks))

    def workers(self) -> list[str]:
        """Who is there to work, checked once."""
        if not self._checked:
            self._check()
            self._checked = True
        return sorted(str(worker) for worker, threads in self.client.nthreads().items() if threads)

    def _check(self) -> None:
        """Workers must be there, and know what we know."""
        distributed = library()
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
            found = self.client.run(version)
        except (TimeoutError, distributed.TimeoutError) as error:
            raise EngineError(
                f"the scheduler at {self.address} has no workers; start some with `dask worker "
                f"{self.address}`."
            ) from error
        except (ImportError, AttributeError) as error:
            raise EngineError(
                f"a worker of {self.address} cannot load firstpage ({error}); install version "
                f"{version()} there."
            ) from error
        except LOST as error:
            raise self.lost() from error
        for worker, theirs in found.items():
            if theirs != version():
                raise EngineError(
                    f"the worker {worker} has firstpage {theirs}, and this is {version()}; "
                    "install the same version everywhere."
                )

    def lost(self) -> EngineError:
        return EngineError(
            f"the scheduler at {self.address} went away. Start it again and fit again; with a "
            "checkpoint (checkpoint=.., --checkpoint) the fit goes on from where it was."
        )

    def close(self) -> None:
        """Hang up, if the connection is ours."""
        if self._mine:
            with suppress(Exception):
                self.client.close(timeout=1)


class DaskRunner:
    """Calls to the shards of one job, and which worker has which."""

    def __init__(self, engine: DaskEngine, tasks: Sequence[ShardTask[Any]]) -> None:
        self._engine, self._client = engine, engine.client
        self._tasks = tasks
        self._job = uuid4().hex
        self._owner: dict[int, str] = {}
        self._workers: dict[str, int] = {}
        self._looked = -NEWCOMERS

    def run(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        try:
            return self._results(calls)
        except FirstpageError:
            raise
        except LOST as error:
            raise self._engine.lost() from error

    def _results(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Return all results, from one Dask task per thread of each worker.

        A task may go to another worker than meant, where that is gone: Dask sees to it.
        """
        if time.monotonic() - self._looked > NEWCOMERS:
            self._assign()
        groups, futures = self._given(calls)
        while not self._wait(futures):
            self._assign()
            groups, futures = self._given(calls)
        try:
            found = self._client.gather(futures)
        except library().KilledWorker as error:
            raise self._killed() from error
        numbers = [n for _, group in groups for n in group]
        return dict(zip(numbers, (one for answer in found for one in answer), strict=True))

    def _given(self, calls: Mapping[int, Call]) -> tuple[list[Any], list[Any]]:
        groups = self._groups(list(calls))
        return groups, [self._submit(worker, group, calls) for worker, group in groups]

    def _groups(self, numbers: list[int]) -> list[tuple[str, list[int]]]:
        """Return shards by worker, dealt to its threads.

        Not more tasks than threads: Dask would give what waits to a worker that is idle, and
        one that has not got a shard takes long to open it.
        """
        found = []
        for worker, threads in self._workers.items():
            mine = [n for n in numbers if self._owner[n] == worker]
            found += [(worker, mine[lane::threads]) for lane in range(min(threads, len(mine)))]
        return found

    def _submit(self, worker: str, group: list[int], calls: Mapping[int, Call]) -> Any:
        import dask

        asked = [(n, self._tasks[n], calls[n]) for n in group]
        # Scores that are to be measured may be large, and are sent once: nobody need be warned.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._client.submit(
                call, self._job, self._engine.keep, asked, workers=[worker],
                allow_other_workers=True, pure=False, key=f"firstpage-{uuid4().hex}",
            )  # fmt: skip

    def _wait(self, futures: list[Any]) -> bool:
        """For all; but not for ever for workers that do not come.

        False where nobody is left of those who were there: tasks that Dask has found no worker
        for wait for one of the old address for ever, whoever else comes.
        """
        distributed = library()
        while True:
            try:
                with self._client.as_current():
                    distributed.wait(futures, timeout=GLANCE)
                return True
            except (TimeoutError, distributed.TimeoutError):
                if not self._workers.keys() & self._present().keys():
                    return False

    def _assign(self) -> None:
        """Give every shard to a present worker; it stays with its own, unless others have fewer."""
        workers = self._present()
        threads = sum(workers.values())
        room = {w: -(-len(self._tasks) * n // threads) for w, n in workers.items()}
        owner: dict[int, str] = {}
        for n, worker in self._owner.items():
            if room.get(worker, 0) > 0:
                owner[n] = worker
                room[worker] -= 1
        for n in range(len(self._tasks)):
            if n not in owner:
                owner[n] = max(room, key=lambda w: (room[w] / workers[w], w))
                room[owner[n]] -= 1
        self._owner, self._workers, self._looked = owner, workers, time.monotonic()

    def _present(self) -> dict[str, int]:
        """Workers and their threads; waits for one to come, for a while."""
        until = time.monotonic() + PATIENCE
        while True:
            found = {str(w): int(n) for w, n in self._client.nthreads().items() if n > 0}
            if found:
                return dict(sorted(found.items()))
            if time.monotonic() > until:
                raise EngineError(
                    f"all workers of the scheduler at {self._engine.address} are gone; start some "
                    f"with `dask worker {self._engine.address}`."
                )
            time.sleep(GLANCE)

    def _killed(self) -> EngineError:
        return EngineError(
            f"one worker after another of {self._engine.address} died at the same task, as for "
            "lack of memory; give workers more, or write smaller shards (`firstpage shard --rows`)."
        )

    def close(self) -> None:
        """Workers are told; whether they still listen does not matter."""
        with suppress(Exception):
            if self._client.status == "running":
                self._client.run(drop, self._job, on_error="ignore")
