"""An engine on a Dask cluster: one Dask task per thread and call.

Each shard is open on one worker as long as that is alive.  Only tasks, arguments and results are
sent: workers read shards themselves, so the folder must be on a disk that all of them can read.  A
shard that is not open, as after its worker was killed, is opened again by the worker that gets the
call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from uuid import uuid4

from firstpage.core.engine.dask_worker import call, drop, version
from firstpage.core.engine.engine import Call, EngineError, S, ShardJob, ShardTask
from firstpage.core.errors import Advice, FirstpageError, missing_dependency

CONNECT_TIMEOUT = 10.0  # seconds in which a scheduler must answer
WORKER_TIMEOUT = 60.0  # seconds to wait for a worker
POLL_INTERVAL = 2.0  # seconds between checks that workers are alive
REASSIGN_INTERVAL = 5.0  # seconds between checks for new workers
CONNECTION_ERRORS = (OSError, asyncio.CancelledError, CancelledError)  # of a lost scheduler
RESUME = Advice("With {} the fit resumes where it was.", "checkpoint")


def connect(address: str) -> DaskEngine:
    """Return an engine that is connected to the scheduler at an address."""
    distributed = import_distributed()
    _silence_dask()
    try:
        client = distributed.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address}; start one with `dask scheduler`, and workers "
            f"with `dask worker {address}`."
        ) from error
    return DaskEngine(client, owns_client=True)


def _silence_dask() -> None:
    """Turn Dask's logging off: errors are raised, in one line."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


def import_distributed() -> Any:
    """Return the module; raise an error that says how to install it if it is missing."""
    try:
        import distributed
    except ImportError as error:
        raise missing_dependency("distributed", "dask", "A cluster") from error
    return distributed


class DaskEngine:
    """An engine whose shards are open on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        A connected client.
    cache_bytes : int, optional
        The memory that open shards may use on a worker between calls; None: a quarter of the
        worker's memory.
    owns_client : bool, default False
        Whether `close` also closes the client.

    Raises
    ------
    EngineError
        On use, if there are no workers, if they have another version, or if the scheduler is lost.
    """

    def __init__(
        self, client: Any, cache_bytes: int | None = None, owns_client: bool = False
    ) -> None:
        self.client, self.cache_bytes, self._owns_client = client, cache_bytes, owns_client
        self.address = str(client.scheduler.address)
        self._checked = False

    def __repr__(self) -> str:
        return f"DaskEngine({self.address})"

    def job(self, tasks: Sequence[ShardTask[S]]) -> ShardJob[S]:
        """Return a job over shards, which workers open when they are called."""
        self.workers()
        return ShardJob(len(tasks), DaskRunner(self, tasks))

    def workers(self) -> list[str]:
        """Return the addresses of the workers, whose versions are checked once."""
        if not self._checked:
            self._check()
            self._checked = True
        return sorted(str(worker) for worker, threads in self.client.nthreads().items() if threads)

    def _check(self) -> None:
        """Raise an error if there are no workers, or if they have another version."""
        distributed = import_distributed()
        try:
            self.client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
            versions = self.client.run(version)
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
        except CONNECTION_ERRORS as error:
            raise self.lost() from error
        for worker, worker_version in versions.items():
            if worker_version != version():
                raise EngineError(
                    f"the worker {worker} has firstpage {worker_version}, and this is {version()}; "
                    "install the same version on all machines."
                )

    def lost(self, advice: Advice | None = None) -> EngineError:
        """Return the error for a lost connection to the scheduler."""
        return EngineError(
            f"the connection to the scheduler at {self.address} was lost. Start it again and fit "
            "again.",
            advice,
        )

    def worker_lost(self) -> EngineError:
        """Return the error for a lost worker that no other can replace."""
        return EngineError(
            f"a worker of {self.address} was lost, and the others cannot continue without it; fit "
            "again."
        )

    def workers_killed(self) -> EngineError:
        """Return the error for a task at which several workers died."""
        return EngineError(
            f"several workers of {self.address} died at the same task, probably for lack of "
            "memory; give workers more, or write smaller shards (`firstpage shard --rows`)."
        )

    def close(self) -> None:
        """Close the client, if the engine owns it."""
        if self._owns_client:
            # A lost scheduler may raise anything, and nothing depends on the answer.
            with suppress(Exception):
                self.client.close(timeout=1)


class DaskRunner:
    """Calls the shards of one job, each on the worker that has it open."""

    def __init__(self, engine: DaskEngine, tasks: Sequence[ShardTask[Any]]) -> None:
        self._engine, self._client = engine, engine.client
        self._tasks = tasks
        self._job = uuid4().hex
        self._owner: dict[int, str] = {}
        self._workers: dict[str, int] = {}
        self._assigned_at = -REASSIGN_INTERVAL

    def run(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        try:
            return self._results(calls)
        except FirstpageError:
            raise
        except CONNECTION_ERRORS as error:
            raise self._engine.lost(RESUME) from error

    def _results(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Return all results, from one Dask task per thread of each worker.

        If a worker is gone, Dask runs its task on another one.
        """
        if time.monotonic() - self._assigned_at > REASSIGN_INTERVAL:
            self._assign()
        groups, futures = self._submit_all(calls)
        while not self._wait(futures):
            self._assign()
            groups, futures = self._submit_all(calls)
        try:
            per_task = self._client.gather(futures)
        except import_distributed().KilledWorker as error:
            raise self._engine.workers_killed() from error
        numbers = [n for _, group in groups for n in group]
        return dict(
            zip(numbers, (result for results in per_task for result in results), strict=True)
        )

    def _submit_all(self, calls: Mapping[int, Call]) -> tuple[list[Any], list[Any]]:
        groups = self._groups(list(calls))
        return groups, [self._submit(worker, group, calls) for worker, group in groups]

    def _groups(self, numbers: list[int]) -> list[tuple[str, list[int]]]:
        """Return the shards of each worker, distributed over its threads.

        There are not more tasks than threads: Dask would move waiting tasks to an idle worker,
        which would first have to open the shard.
        """
        groups = []
        for worker, threads in self._workers.items():
            owned = [n for n in numbers if self._owner[n] == worker]
            groups += [(worker, owned[lane::threads]) for lane in range(min(threads, len(owned)))]
        return groups

    def _submit(self, worker: str, group: list[int], calls: Mapping[int, Call]) -> Any:
        import dask

        shard_calls = [(n, self._tasks[n], calls[n]) for n in group]
        # Scores to evaluate may be large and are sent once: Dask's warning does not apply.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._client.submit(
                call,
                self._job,
                self._engine.cache_bytes,
                shard_calls,
                workers=[worker],
                allow_other_workers=True,
                pure=False,
                key=f"firstpage-{uuid4().hex}",
            )

    def _wait(self, futures: list[Any]) -> bool:
        """Wait for all results; return False if all the workers of the tasks are gone.

        Dask would keep such tasks for a worker of the old address, even if others come.
        """
        distributed = import_distributed()
        while True:
            try:
                with self._client.as_current():
                    distributed.wait(futures, timeout=POLL_INTERVAL)
                return True
            except (TimeoutError, distributed.TimeoutError):
                if not self._workers.keys() & self._present().keys():
                    return False

    def _assign(self) -> None:
        """Assign every shard to a worker; it stays with its own, unless others have fewer."""
        workers = self._present()
        threads = sum(workers.values())
        capacity = {w: -(-len(self._tasks) * n // threads) for w, n in workers.items()}
        owner: dict[int, str] = {}
        for n, worker in self._owner.items():
            if capacity.get(worker, 0) > 0:
                owner[n] = worker
                capacity[worker] -= 1
        for n in range(len(self._tasks)):
            if n not in owner:
                owner[n] = max(capacity, key=lambda w: (capacity[w] / workers[w], w))
                capacity[owner[n]] -= 1
        self._owner, self._workers, self._assigned_at = owner, workers, time.monotonic()

    def _present(self) -> dict[str, int]:
        """Return the workers and their threads; wait up to WORKER_TIMEOUT for one."""
        deadline = time.monotonic() + WORKER_TIMEOUT
        while True:
            workers = {str(w): int(n) for w, n in self._client.nthreads().items() if n > 0}
            if workers:
                return dict(sorted(workers.items()))
            if time.monotonic() > deadline:
                raise EngineError(
                    f"all workers of the scheduler at {self._engine.address} are gone; start some "
                    f"with `dask worker {self._engine.address}`."
                )
            time.sleep(POLL_INTERVAL)

    def close(self) -> None:
        """Let the workers close the shards; workers that do not answer are ignored."""
        with suppress(Exception):  # the job is over; lost workers have dropped their shards
            if self._client.status == "running":
                self._client.run(drop, self._job, on_error="ignore")


class PinnedTasks:
    """Tasks that depend on each other, each on a worker of its own; a context.

    No other worker can run a task: if one is lost, `results` raises an error.  Tasks that still run
    when the context ends are canceled, and can see it by `dask_worker.canceled`.
    """

    def __init__(self, engine: DaskEngine) -> None:
        self._engine, self._client = engine, engine.client
        self._workers: set[str] = set()
        self._futures: list[Any] = []

    def __enter__(self) -> PinnedTasks:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(Exception):  # nothing runs on a lost cluster
            if self._client.status == "running":
                self._client.cancel(self._futures)

    def submit(self, worker: str, function: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a function on a worker; arguments may be or hold futures."""
        self._workers.add(worker)
        future = self._client.submit(function, *args, workers=[worker], pure=False)
        self._futures.append(future)
        return future

    def results(self, futures: Sequence[Any]) -> list[Any]:
        """Return the results; raise an error as soon as a task fails or a worker is lost."""
        distributed = import_distributed()
        pending = set(futures)
        try:
            while pending:
                with suppress(TimeoutError, distributed.TimeoutError), self._client.as_current():
                    _, pending = distributed.wait(pending, POLL_INTERVAL, "FIRST_COMPLETED")
                for failed in [future for future in futures if future.status == "error"]:
                    failed.result()
                if pending and not self._workers <= self._client.nthreads().keys():
                    raise self._engine.worker_lost()
            return list(self._client.gather(list(futures)))
        except distributed.KilledWorker as error:
            raise self._engine.workers_killed() from error
        except FirstpageError:
            raise
        except CONNECTION_ERRORS as error:
            raise self._engine.lost() from error
