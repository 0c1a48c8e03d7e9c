"""Run the server: one process on one address, or several, until it is stopped."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from firstpage.core import DataError
from firstpage.core.http import ConnectionLimits, listen, open_browser, server_for, url_host
from firstpage.serving.access_log import AccessLog
from firstpage.serving.app import Serving
from firstpage.serving.binary_formats import has_arrow
from firstpage.serving.event_log import EventLog
from firstpage.serving.event_rows import STORED
from firstpage.serving.experiments import LiveExperiment
from firstpage.serving.feedback import FeedbackFolder
from firstpage.serving.limits import Limits
from firstpage.serving.served_index import IndexSource
from firstpage.serving.watched_model import WatchedModel, printable
from firstpage.serving.workers import Channel, RemoteFeedback, RemoteLog, WorkerGroup

if TYPE_CHECKING:
    import uvicorn

SWITCH_INTERVAL = 0.0001  # seconds for which a thread that loads a model may delay requests
GRACE = 10  # seconds that requests have to end after the server is asked to stop
# Parameters of glibc's mallopt, and values in bytes: what is below them goes back to the allocator.
KEPT_MEMORY = {-1: 1 << 26, -3: 1 << 25}  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD


@dataclass(frozen=True)
class ServerSettings:
    """What `firstpage serve` is told; see `Serving` and the options of the command."""

    path: Path
    limits: Limits
    poll: float | None = 1.0
    token: str | None = None
    wait: bool = False
    allow_new_features: bool = False
    source: IndexSource | None = None
    hosts: Sequence[str] = ()
    feedback: Path | None = None
    events: Path | None = None
    experiment: Path | None = None
    access_log: Path | None = None


def serve(
    settings: ServerSettings, host: str, port: int, workers: int = 1, open_page: bool = False
) -> None:
    """Serve a model file; without a valid one raise an error, or with `wait` wait for it.

    With the `source` of an index, its texts are searched too; `hosts` are then further names of the
    server, `open_page` opens the page in a browser, and the page asks for `feedback`, which is
    stored in this folder.  Queries and events are stored in the folder `events`; the
    file `experiment` has the settings of an experiment on them.  Several `workers` are processes
    that share the address.
    """
    _set_up_log()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a query is too small for several threads
    settings = replace(settings, hosts=(*settings.hosts, host))
    app = _Application(settings) if workers == 1 else None
    with ExitStack() as resources:
        listener = resources.enter_context(listen(host, port))
        address = f"http://{url_host(host)}:{listener.getsockname()[1]}"
        events = feedback = None
        if settings.feedback is not None:
            feedback = resources.enter_context(closing(FeedbackFolder(settings.feedback)))
        if settings.events is not None:
            fields = STORED if app is None or app.experiment is None else app.experiment.fields
            events = resources.enter_context(closing(EventLog(settings.events, fields)))

        def announce() -> None:
            print(f"Serving {printable(str(settings.path))} at {address}", flush=True)
            if open_page:
                open_browser(address)

        if app is not None:
            app.run(listener, feedback, events, announce)
        else:
            processes = WorkerGroup(partial(_work, settings), listener, events, feedback)
            processes.run(workers, announce, GRACE + 2)


class _Application:
    """The model and the experiment of a process."""

    def __init__(self, settings: ServerSettings) -> None:
        from prometheus_client import disable_created_metrics
        from threadpoolctl import threadpool_limits

        self.settings, source = settings, settings.source
        self.watched = WatchedModel(
            settings.path, allow_new_features=settings.allow_new_features, source=source
        )
        if not self.watched.reload().accepted and not settings.wait:
            raise DataError(str(self.watched.refused))
        if has_arrow():
            import pyarrow.ipc  # noqa: F401 (imported now, so that no request waits for it)
        threadpool_limits(1)
        sys.setswitchinterval(SWITCH_INTERVAL)
        disable_created_metrics()  # type: ignore[no-untyped-call]  # an unused series per counter
        self.experiment = self.access = None
        if settings.experiment is not None:
            self.experiment = LiveExperiment(settings.experiment, source)
            if self.watched.model is not None:
                self.experiment.models(self.watched.model)
        if settings.access_log is not None:
            self.access = AccessLog(settings.access_log)

    def run(
        self,
        listener: socket.socket,
        feedback: FeedbackFolder | RemoteFeedback | None,
        events: EventLog | RemoteLog | None,
        announce: Callable[[], object],
        parent: Channel | None = None,
    ) -> None:
        """Serve on a socket, until the server is stopped."""
        settings = self.settings
        app = Serving(
            self.watched,
            settings.limits,
            poll=settings.poll,
            token=settings.token,
            hosts=settings.hosts,
            feedback=feedback,
            events=events,
            experiment=self.experiment,
            access=self.access,
            parent=parent,
        )
        server = server_for(app, ConnectionLimits(settings.limits.connections), GRACE)
        if threading.current_thread() is threading.main_thread():
            _handle_signals(server, self.watched)
        announce()
        _keep_freed_memory()
        gc.collect()
        gc.freeze()  # a collection of all loaded objects would take longer than a request
        server.run(sockets=[listener])


def _keep_freed_memory() -> None:
    """Let requests use the memory of those before; its pages would cost 0.8 ms each time."""
    with suppress(AttributeError, OSError, TypeError):  # where the allocator is not glibc's
        for parameter, size in KEPT_MEMORY.items():
            ctypes.CDLL(None).mallopt(parameter, size)


def _work(settings: ServerSettings, listener: socket.socket, connection: Connection) -> None:
    """Serve as one of several workers."""
    _set_up_log()
    reloads, app = ThreadPoolExecutor(1), None

    def reload(*_: object) -> Future[str | None]:
        return reloads.submit(lambda: app and (app.watched.reload(), app.watched.refused)[1])

    parent = Channel(connection, reload, ended=lambda: os._exit(1))
    try:
        app = _Application(settings)
    except DataError as error:
        parent.call("started", str(error)).result()
        return
    feedback = None if settings.feedback is None else RemoteFeedback(parent)
    fields = STORED if app.experiment is None else app.experiment.fields
    events = None if settings.events is None else RemoteLog(parent, fields)
    app.run(listener, feedback, events, lambda: parent.call("started", None), parent)


def _handle_signals(server: uvicorn.Server, watched: WatchedModel) -> None:
    """Stop on SIGTERM and SIGINT, and reload on SIGHUP, also before the server runs.

    While it runs, uvicorn has its own handlers; after it stops, it raises the signal again, which
    these handlers turn into a clean exit.
    """

    def stop(*_: object) -> None:
        server.should_exit = True

    def reload(*_: object) -> None:
        threading.Thread(target=watched.reload, daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, reload)


def _set_up_log() -> None:
    """Log changes of the model to standard error, and nothing that a client can cause."""
    for category in (RuntimeWarning, SyntaxWarning):  # overflows, forged headers
        warnings.simplefilter("ignore", category)
    warnings.filterwarnings("ignore", module="numpy")
    log = logging.getLogger("firstpage.serving")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s firstpage: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
