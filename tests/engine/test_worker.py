"""What a worker of a cluster holds: the shards of jobs that are at work, and no others."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from firstpage.engine import dask_worker
from firstpage.engine.addresses import engine_of
from firstpage.errors import DataError

begun, go = Event(), Event()


class Slow:
    """A shard, and the task that opens it."""

    nbytes = 8

    def __init__(self, number: int) -> None:
        self.number = number

    def open(self, threads: int) -> Slow:
        return self

    def release(self) -> None: ...

    def work(self) -> object:
        begun.set()
        go.wait(10)
        return self.number


def test_a_job_that_is_broken_off_leaves_nothing_behind() -> None:
    """As by Ctrl-C: its last calls are still on their way when it is dropped."""
    found: list[object] = []
    asked = [(n, Slow(n), (Slow.work, ())) for n in range(3)]
    thread = Thread(target=lambda: found.extend(dask_worker.call("off", 100, asked)))
    thread.start()
    assert begun.wait(10)
    dask_worker.drop("off")
    go.set()
    thread.join(10)
    assert found == [0]  # what had begun was finished, the rest was not
    assert not [key for key in dask_worker._cache._stored if key[0] == "off"]
    assert not [key for key in dask_worker._busy if key[0] == "off"]
    assert dask_worker.call("on", 100, asked) == [0, 1, 2]
    assert len([key for key in dask_worker._cache._stored if key[0] == "on"]) == 3
    dask_worker.drop("on")


def test_a_client_that_is_closed_is_one_clear_line() -> None:
    class Client:
        status = "closed"
        scheduler = None

        def scheduler_info(self) -> None: ...

        def submit(self) -> None: ...

    with pytest.raises(DataError, match="the Dask Client is closed"):
        engine_of(Client())
