"""Computations for leads, in a process of their own, so that assessors do not wait for them.

A result is kept until the project changes.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar, cast

from sqlalchemy import func, select

from firstpage.labeling.app.analysis.measure import texts_version
from firstpage.labeling.app.store import Project, Store, Tx, projects
from firstpage.labeling.app.store.failures import StoreUnavailable
from firstpage.labeling.app.store.tables import events, spans, tasks

Result = TypeVar("Result")
Analysis = Callable[..., Any]  # of a transaction, a project, and further arguments
MAX_RESULTS = 200
NICENESS = 5  # of the process: judging comes first


class Analyst:
    """Computes and caches analyses of projects.

    Parameters
    ----------
    store : Store
        The database.
    separate : bool, default False
        Whether to compute in another process, which is started when it is first needed.
    """

    def __init__(self, store: Store, separate: bool = False) -> None:
        self._store = store
        self._process = AnalysisProcess(store) if separate else None
        self._results: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def compute(
        self, analysis: Callable[..., Result], project: Project, *arguments: Hashable
    ) -> Result:
        """Return ``analysis(tx, project, *arguments)``, from the cache if nothing has changed."""
        key = analysis, project.id, arguments
        with self._store.read() as tx:
            version = project_version(tx, project)
        with self._lock:
            entry = self._results.get(key)
            if entry is not None and entry[0] == version:
                self._results.move_to_end(key)
                return cast(Result, entry[1])
        if self._process is None:
            with self._store.read() as tx:
                result = analysis(tx, project, *arguments)
        else:
            result = self._process.compute(analysis, project, arguments)
        with self._lock:
            self._results[key] = version, result
            while len(self._results) > MAX_RESULTS:
                self._results.popitem(last=False)
        return result


class AnalysisProcess:
    """One process that computes one analysis at a time; it ends with the server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.Lock()
        self._connection: Connection | None = None

    def compute(self, analysis: Analysis, project: Project, arguments: tuple[Hashable, ...]) -> Any:
        """Return the result of an analysis, or raise its error; a killed process is replaced."""
        with self._turn:
            try:
                result = self._request(analysis, project, arguments)
            except (EOFError, OSError):
                self._connection = None
                result = self._request(analysis, project, arguments)
        if isinstance(result, StoreUnavailable):  # its process has no report
            self._store.report(result)
        if isinstance(result, Exception):
            raise result
        return result

    def _request(self, *request: Any) -> Any:
        if self._connection is None:
            self._connection, other = multiprocessing.Pipe()
            context = multiprocessing.get_context("spawn")
            location = self._store.url.render_as_string(hide_password=False)
            context.Process(target=_answer_requests, args=(location, other), daemon=True).start()
            other.close()  # so that the end of the process ends the connection
        self._connection.send(request)
        return self._connection.recv()


def _answer_requests(location: str, connection: Connection) -> None:
    """Compute what the server asks for, until it ends."""
    with suppress(OSError, AttributeError):  # a system without priorities
        os.nice(NICENESS)
    store = Store(location)
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            analysis, project, arguments = connection.recv()
            try:
                with store.read() as tx:
                    result = analysis(tx, project, *arguments)
            except Exception as error:
                result = error
            connection.send(result)


def project_version(tx: Tx, project: Project) -> Hashable:
    """Return a value that changes with every answer, import, assignment, setting and member."""
    own_tasks = tasks.c.project == project.id
    counts = [
        tx.first(
            select(func.max(table.c.id).label("last"), func.count().label("n"))
            .select_from(table.join(tasks, tasks.c.id == table.c.task))
            .where(own_tasks)
        )
        for table in (events, spans)
    ]
    states = tx.all(
        select(tasks.c.state, func.count().label("n"), func.max(tasks.c.id).label("last"))
        .where(own_tasks)
        .group_by(tasks.c.state)
        .order_by(tasks.c.state)
    )
    members = [tuple(row.values()) for row in projects.members(tx, project)]
    return (
        tuple(None if row is None else tuple(row.values()) for row in counts),
        tuple(tuple(row.values()) for row in states),
        tuple(members),
        texts_version(tx, project),
        repr(project),
    )
