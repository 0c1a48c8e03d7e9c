"""A worker of a cluster holds the shards of active jobs, and no others."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pytest

from firstpage.core.engine import dask_worker
from firstpage.core.engine.addresses import resolve_engine, scheduler_address
from firstpage.core.errors import DataError
from tests.patience import PATIENCE

started, proceed = Event(), Event()


class SlowShard:
    """A shard, and the task that opens it."""

    nbytes = 8

    def __init__(self, number: int) -> None:
        self.number = number

    def open(self, threads: int) -> SlowShard:
        return self

    def release(self) -> None: ...

    def work(self) -> object:
        started.set()
        proceed.wait(PATIENCE)
        return self.number


def test_an_interrupted_job_leaves_no_open_shards() -> None:
    """As after Ctrl-C, the last calls arrive when the job is dropped."""
    results: list[object] = []
    shard_calls: list[Any] = [(n, SlowShard(n), (SlowShard.work, ())) for n in range(3)]
    thread = Thread(target=lambda: results.extend(dask_worker.call("off", 100, shard_calls)))
    thread.start()
    assert started.wait(PATIENCE)
    dask_worker.drop("off")
    proceed.set()
    thread.join(PATIENCE)
    assert results == [0]  # the running call was finished, the others were not
    assert not [key for key in dask_worker._cache._stored if key[0] == "off"]
    assert not [key for key in dask_worker._busy if key[0] == "off"]
    assert dask_worker.call("on", 100, shard_calls) == [0, 1, 2]
    assert len([key for key in dask_worker._cache._stored if key[0] == "on"]) == 3
    dask_worker.drop("on")


def test_a_closed_client_is_refused() -> None:
    class Client:
        status = "closed"
        scheduler = None

        def scheduler_info(self) -> None: ...

        def submit(self) -> None: ...

    with pytest.raises(DataError, match="the Dask Client is closed"):
        resolve_engine(Client())


@pytest.mark.parametrize(
    "address",
    ["dask://", "dask://localhost", "dask://localhost:abc", "dask://localhost:99999",
     "dask://:8786", "dask://localhost:8786/status", "dask://[::1"],
)  # fmt: skip
def test_an_address_without_host_or_port_is_refused_without_a_connection(address: str) -> None:
    with pytest.raises(DataError, match="host and the port of a Dask scheduler, as dask://") as e:
        resolve_engine(address)
    assert repr(address) in str(e.value)


def test_addresses_of_schedulers() -> None:
    assert scheduler_address("dask://localhost:8786") == "tcp://localhost:8786"
    assert scheduler_address("dask://[::1]:8786") == "tcp://[::1]:8786"
