"""Run the application on one address, by one process or several, until it is stopped."""

from __future__ import annotations

import gc
import math
import multiprocessing
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

from firstpage.core import DataError
from firstpage.core.http import ConnectionLimits, bind, listen, open_browser, server_for, url_host
from firstpage.labeling.app.security import ServeSettings
from firstpage.labeling.app.store import Store, invitations, people
from firstpage.labeling.app.store.backup import check_pages
from firstpage.labeling.app.store.failures import StoreUnavailable
from firstpage.labeling.app.store.staging import remove_stale_imports
from firstpage.labeling.app.webhooks import WebhookSender

if TYPE_CHECKING:
    import uvicorn

StopCondition = Callable[[], bool]
POLL_INTERVAL, STOP_DELAY = 0.5, 3.0  # seconds
# Seconds that a thread may hold the interpreter while others wait.  An answer passes between
# threads some twenty times; during a long upload it would otherwise wait 5 ms each time.
SWITCH_INTERVAL = 0.0005
MIN_RUN = 10.0  # seconds before which a worker that fails is not replaced
CHECK_SECONDS = 2.0  # for the pages of a database, before it is served
REPORT_INTERVAL = 60.0  # seconds
SHUTDOWN_TIMEOUT = 5  # seconds that open requests may take once the server is stopping


def serve(
    location: str | Path,
    host: str,
    port: int,
    settings: ServeSettings,
    until: StopCondition | None = None,
    workers: int = 1,
) -> None:
    """Open or create the project's store and serve it, until `until` returns True if given.

    Several `workers` are processes that share the store and the address.
    """
    store = Store(location).prepare()
    try:
        with store.readable_errors():
            if store.sqlite:
                check_pages(store, Path(store.name), CHECK_SECONDS)
            remove_stale_imports(store)
            listener = listen(host, port)  # fails if another server has the address
            if workers > 1:
                port = listener.getsockname()[1]
                listener.close()
                listener = bind(host, port, shared=True)  # holds it until the workers listen
            settings = _announced(store, host, listener.getsockname()[1], settings)
            if workers == 1:
                _run(store, listener, settings, until)
    finally:
        store.close()
    if workers > 1:
        with listener:
            Workers(str(location), host, listener.getsockname()[1], settings).run(workers)


def _announced(store: Store, host: str, port: int, settings: ServeSettings) -> ServeSettings:
    """Print where the application is served, and how to sign in first; return the settings."""
    address = f"http://{url_host(host)}:{port}"
    if settings.single_user:
        from firstpage.labeling.app.app import prepare_single_user

        settings = replace(settings, token=secrets.token_urlsafe(32))
        led = prepare_single_user(store)
        url = f"{address}/open?token={settings.token}"
        print(f"Open this address in your browser (once): {url}")
        for slug in led:
            print(
                f"The project {slug!r} has its own assessors: you lead it, and they judge. Serve "
                "without --open for them, or set up a project without --assessor to judge alone."
            )
        open_browser(url)
    else:
        print(f"Serving {store.display_url} at {address}")
        _invite_first(
            store, _public_address(settings, address, port), settings.auth_header is not None
        )
    sys.stdout.flush()
    return replace(settings, hosts=(*settings.hosts, host), separate_analysis=True)


def _public_address(settings: ServeSettings, address: str, port: int) -> str:
    """Return the address by which people reach the server: that of the first `--allow-host`."""
    for name in settings.hosts:
        if name != "*":
            name = url_host(name)
            return f"https://{name}" if settings.proxy else f"http://{name}:{port}"
    return address


def _run(
    store: Store, listener: socket.socket, settings: ServeSettings, until: StopCondition | None
) -> None:
    from threadpoolctl import threadpool_limits

    from firstpage.labeling.app.app import create_app

    store.report = FailureReport(store.name)
    sys.setswitchinterval(SWITCH_INTERVAL)
    threadpool_limits(1)  # requests are the threads; small matrix products gain nothing from more
    app = create_app(store, settings)
    server = server_for(app, ConnectionLimits(settings.max_connections), SHUTDOWN_TIMEOUT)
    if until is not None:
        threading.Thread(target=_stop_when, args=(server, until), daemon=True).start()
    gc.freeze()  # otherwise every full collection visits all modules and blocks answers for 0.15 s
    with WebhookSender(store, settings.private_webhooks):
        server.run(sockets=[listener])


def print_error(line: str) -> None:
    """Print a line to standard error, which may be a file on a full disk."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


@dataclass
class FailureReport:
    """Prints failures of a database, one of a kind per `REPORT_INTERVAL`, for the operator."""

    name: str
    printed: dict[str, float] = field(default_factory=dict)

    def __call__(self, failure: StoreUnavailable) -> None:
        now, kind = time.monotonic(), str(failure)  # details are in the reason only
        if failure.reason and now - self.printed.get(kind, -math.inf) >= REPORT_INTERVAL:
            self.printed[kind] = now
            print_error(f"{self.name}: {failure.reason}; {failure.remedy}.")


@dataclass(frozen=True)
class Workers:
    """Processes that serve one store on one address; one that dies is started again."""

    location: str
    host: str
    port: int
    settings: ServeSettings

    def run(self, count: int) -> None:
        """Start the workers, and keep them running until this process is asked to stop."""
        stopped = threading.Event()
        for kind in (signal.SIGINT, signal.SIGTERM):
            signal.signal(kind, lambda *_: stopped.set())
        processes = [self._started() for _ in range(count)]
        started = time.monotonic()
        try:
            while not stopped.wait(POLL_INTERVAL):
                for number, process in enumerate(processes):
                    if process.is_alive():
                        continue
                    ended = f"a server process ended (exit code {process.exitcode})"
                    failed = (process.exitcode or 0) > 0  # below 0 it was killed
                    if failed and time.monotonic() - started < MIN_RUN:
                        raise DataError(f"{ended} soon after it was started; see its error above.")
                    print_error(f"{ended}; another one is started.")
                    processes[number], started = self._started(), time.monotonic()
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join(SHUTDOWN_TIMEOUT + STOP_DELAY)

    def _started(self) -> BaseProcess:
        # One process loads the application; workers are copies of it, which takes milliseconds
        # instead of seconds, and share its memory.
        copies = multiprocessing.get_context("forkserver")
        copies.set_forkserver_preload([_run.__module__, "firstpage.labeling.app.app"])
        process = copies.Process(target=self.serve)
        process.start()
        return process

    def serve(self) -> None:
        """Serve as one of the workers, until the process that started them ends."""
        parent = multiprocessing.parent_process()
        assert parent is not None
        store = Store(self.location)
        try:
            listener = listen(self.host, self.port, shared=True)
            _run(store, listener, self.settings, lambda: not parent.is_alive())
        finally:
            store.close()


def _stop_when(server: uvicorn.Server, until: StopCondition) -> None:
    """Stop the server shortly after the condition holds, so that it can still send a last page."""
    while not server.should_exit:
        if until():
            time.sleep(STOP_DELAY)
            server.should_exit = True
            return
        time.sleep(POLL_INTERVAL)


def _invite_first(store: Store, address: str, by_proxy: bool = False) -> None:
    """Print a sign-in link if no admin has a password yet: for their account, or a new one.

    Links that were printed before work until one is used.  An admin whom a proxy signs in needs no
    link.
    """
    with store.write() as tx:
        if people.has_admin(tx):
            return
        admin = people.admin_without_password(tx)
        if by_proxy and admin is not None:
            return
        if admin is None:
            link = invitations.invite(tx, None, "lead", None)
            action = "the first lead chooses a login and signs in here"
        else:
            link = invitations.first_password_link(tx, admin)
            action = f"{admin.login} signs in here"
    print(f"No lead has a password yet; {action} (once):")
    print(f"{address}{link.path}")


def check_port(host: str, port: int) -> None:
    """Raise if a port is in use, before long work that needs it at its end."""
    listen(host, port).close()
