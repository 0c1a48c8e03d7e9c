"""Run the server: one process on one address, until it is stopped."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from firstpage.core import DataError
from firstpage.core.http import ConnectionLimits, listen, open_browser, server_for, url_host
from firstpage.serving.app import Serving
from firstpage.serving.binary_formats import has_arrow
from firstpage.serving.event_log import EventLog
from firstpage.serving.event_rows import STORED
from firstpage.serving.experiments import LiveExperiment
from firstpage.serving.feedback import FeedbackFolder
from firstpage.serving.limits import Limits
from firstpage.serving.served_index import IndexSource
from firstpage.serving.watched_model import WatchedModel, printable

if TYPE_CHECKING:
    import uvicorn

SWITCH_INTERVAL = 0.0001  # seconds for which a thread that loads a model may delay requests
GRACE = 10  # seconds that requests have to end after the server is asked to stop


def serve(
    path: Path,
    host: str,
    port: int,
    limits: Limits,
    *,
    poll: float | None = 1.0,
    token: str | None = None,
    wait: bool = False,
    allow_new_features: bool = False,
    source: IndexSource | None = None,
    hosts: Sequence[str] = (),
    open_page: bool = False,
    feedback: Path | None = None,
    events: Path | None = None,
    experiment: Path | None = None,
) -> None:
    """Serve a model file; without a valid one raise an error, or with `wait` wait for it.

    With the `source` of an index, its texts are searched too; `hosts` are then further names of the
    server, `open_page` opens the page in a browser, and the page asks for `feedback`, which is
    stored in this folder.  Queries and events are stored in the folder `events`; the
    file `experiment` has the settings of an experiment on them.
    """
    from prometheus_client import disable_created_metrics
    from threadpoolctl import threadpool_limits

    _set_up_log()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a query is too small for several threads
    watched = WatchedModel(path, allow_new_features=allow_new_features, source=source)
    if not watched.reload().accepted and not wait:
        raise DataError(str(watched.refused))
    if has_arrow():
        import pyarrow.ipc  # noqa: F401 (imported now, so that no request waits for it)
    threadpool_limits(1)
    sys.setswitchinterval(SWITCH_INTERVAL)
    disable_created_metrics()  # type: ignore[no-untyped-call]  # an unused series per counter
    running = None
    if experiment is not None:
        running = LiveExperiment(experiment, source)
        if watched.model is not None:
            running.models(watched.model)
    listener = listen(host, port)
    app = Serving(
        watched,
        limits,
        poll=poll,
        token=token,
        hosts=(*hosts, host),
        feedback=None if feedback is None else FeedbackFolder(feedback),
        events=None if events is None else EventLog(events, running.fields if running else STORED),
        experiment=running,
    )
    server = server_for(app, ConnectionLimits(limits.connections), GRACE)
    if threading.current_thread() is threading.main_thread():
        _handle_signals(server, watched)
    address = f"http://{url_host(host)}:{listener.getsockname()[1]}"
    print(f"Serving {printable(str(path))} at {address}", flush=True)
    if open_page:
        open_browser(address)
    gc.collect()
    gc.freeze()  # a collection of all loaded objects would take longer than a request
    server.run(sockets=[listener])


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
