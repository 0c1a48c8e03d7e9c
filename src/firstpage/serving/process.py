"""Run the service: one process on one address, until it is stopped."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from firstpage.errors import DataError
from firstpage.serving.app import Serving
from firstpage.serving.binary_formats import has_arrow
from firstpage.serving.limits import Limits
from firstpage.serving.watched_model import WatchedModel, printable
from firstpage.transport.connections import ConnectionLimits
from firstpage.transport.server import listen, server_for, shown

if TYPE_CHECKING:
    import uvicorn

SWITCH_INTERVAL = 0.0001  # seconds that a thread which loads a model may keep requests waiting
GRACE = 10  # seconds that requests may take to end once the server is told to stop


def serve(
    path: Path, host: str, port: int, limits: Limits, *, poll: float | None = 1.0,
    token: str | None = None, wait: bool = False, allow_new_features: bool = False,
) -> None:  # fmt: skip
    """Serve a model file.  Without a good one this ends at once, unless told to `wait` for it."""
    from prometheus_client import disable_created_metrics
    from threadpoolctl import threadpool_limits

    _set_up_log()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a query is too small to be shared out
    watched = WatchedModel(path, allow_new_features=allow_new_features)
    if not watched.reload().accepted and not wait:
        raise DataError(str(watched.refused))
    if has_arrow():
        import pyarrow.ipc  # noqa: F401 (now, so that no request waits for it)
    threadpool_limits(1)
    sys.setswitchinterval(SWITCH_INTERVAL)
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a series per counter, unused
    listener = listen(host, port)
    app = Serving(watched, limits, poll=poll, token=token)
    server = server_for(app, ConnectionLimits(limits.connections), GRACE)
    if threading.current_thread() is threading.main_thread():
        _handle_signals(server, watched)
    print(
        f"Serving {printable(str(path))} at http://{shown(host)}:{listener.getsockname()[1]}",
        flush=True,
    )
    gc.collect()
    gc.freeze()  # what is loaded stays; looking through it again would take longer than a request
    server.run(sockets=[listener])


def _handle_signals(server: uvicorn.Server, watched: WatchedModel) -> None:
    """Stop on SIGTERM and SIGINT, reload on SIGHUP, from before the first line is printed on.

    While it runs, the server has handlers of its own, and at its end it raises the signal that
    stopped it again: a clean end for this process.
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
    """Log what happens to the model to standard error, and nothing that a client can cause."""
    for kind in (RuntimeWarning, SyntaxWarning):  # of numbers too large, of forged headers
        warnings.simplefilter("ignore", kind)
    warnings.filterwarnings("ignore", module="numpy")
    log = logging.getLogger("firstpage.serving")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s firstpage: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
