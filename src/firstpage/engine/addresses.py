"""Where to work, by name: "threads", or the address of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from firstpage.engine.engine import Engine
from firstpage.engine.threads import Local
from firstpage.errors import DataError


@contextmanager
def working(given: Any, threads: int | None = None) -> Iterator[Engine]:
    """The engine that is meant, for a while; a connection that was made for it is closed."""
    engine = engine_of(given, threads)
    try:
        yield engine
    finally:
        if isinstance(given, str):
            engine.close()


def engine_of(given: Any, threads: int | None = None) -> Engine:
    """The engine that is meant.

    given   None or "threads": this machine; "dask://host:port": the Dask cluster of that scheduler;
            a Dask Client; or an engine
    """
    if given is None or given == "threads":
        return Local(threads)
    if isinstance(given, str) and given.startswith("dask://"):
        from firstpage.engine.dask_cluster import connected

        return connected("tcp://" + given.removeprefix("dask://"))
    if hasattr(given, "scheduler_info") and hasattr(given, "submit"):
        from firstpage.engine.dask_cluster import DaskEngine

        if given.status != "running":
            raise DataError(f"the Dask Client is {given.status}; give one that is connected.")
        return DaskEngine(given)
    if hasattr(given, "job"):
        found: Engine = given
        return found
    raise DataError(
        f"engine must be 'threads', 'dask://host:port', a Dask Client or an engine; got {given!r}."
    )
