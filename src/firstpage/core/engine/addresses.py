"""Engines by name: "threads", or the address of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from firstpage.core.engine.engine import Engine
from firstpage.core.engine.threads import LocalEngine
from firstpage.core.errors import DataError


@contextmanager
def open_engine(name_or_engine: Any, threads: int | None = None) -> Iterator[Engine]:
    """Yield the engine; close the connection afterwards if it was opened here."""
    engine = resolve_engine(name_or_engine, threads)
    try:
        yield engine
    finally:
        if isinstance(name_or_engine, str):
            engine.close()


def resolve_engine(name_or_engine: Any, threads: int | None = None) -> Engine:
    """Return the engine of a name.

    The name is None or "threads" for this machine, or "dask://host:port" for the Dask cluster of
    that scheduler; it may also be a Dask Client or an engine.
    """
    if name_or_engine is None or name_or_engine == "threads":
        return LocalEngine(threads)
    if isinstance(name_or_engine, str) and name_or_engine.startswith("dask://"):
        address = scheduler_address(name_or_engine)
        from firstpage.core.engine.dask_cluster import connect

        return connect(address)
    if hasattr(name_or_engine, "scheduler_info") and hasattr(name_or_engine, "submit"):
        from firstpage.core.engine.dask_cluster import DaskEngine

        client = name_or_engine
        if client.status != "running":
            raise DataError(f"the Dask Client is {client.status}; pass one that is connected.")
        return DaskEngine(client)
    if hasattr(name_or_engine, "job"):
        engine: Engine = name_or_engine
        return engine
    raise DataError(
        "engine must be 'threads', 'dask://host:port', a Dask Client or an engine; got "
        f"{name_or_engine!r}."
    )


def scheduler_address(engine: str) -> str:
    """Return the address as Dask writes it, from "dask://host:port"."""
    try:
        parts = urlsplit(engine)
        complete = parts.hostname and parts.port and engine == f"dask://{parts.netloc}"
    except ValueError:  # of a port that is not a number
        complete = False
    if not complete:
        raise DataError(
            "engine must be the host and the port of a Dask scheduler, as dask://localhost:8786; "
            f"got {engine!r}."
        )
    return f"tcp://{parts.netloc}"
