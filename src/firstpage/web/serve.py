"""Run the application: one process on one address, until it is stopped."""

from __future__ import annotations

import gc
import secrets
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from firstpage.transport.connections import ConnectionLimits
from firstpage.transport.server import listen, open_browser, server_for, url_host
from firstpage.web.security import ServeSettings
from firstpage.web.store import invitations, people
from firstpage.web.store.connect import Store
from firstpage.web.store.staging import remove_stale_imports

if TYPE_CHECKING:
    import uvicorn

StopCondition = Callable[[], bool]
POLL_INTERVAL, STOP_DELAY = 0.5, 3.0  # seconds
# Seconds that a thread may hold the interpreter while others wait.  An answer passes between
# threads some twenty times; during a long upload it would otherwise wait 5 ms each time.
SWITCH_INTERVAL = 0.0005
SHUTDOWN_TIMEOUT = 5  # seconds that open requests may take once the server is stopping


def serve(
    location: str | Path,
    host: str,
    port: int,
    settings: ServeSettings,
    until: StopCondition | None = None,
) -> None:
    """Open or create the project's store and serve it, until `until` returns True if given."""
    store = Store(location).prepare()
    try:
        with store.readable_errors():
            remove_stale_imports(store)
            _run(store, host, port, settings, until)
    finally:
        store.close()


def _run(
    store: Store, host: str, port: int, settings: ServeSettings, until: StopCondition | None
) -> None:
    from threadpoolctl import threadpool_limits

    from firstpage.web.app import create_app, prepare_single_user

    sys.setswitchinterval(SWITCH_INTERVAL)
    threadpool_limits(1)  # requests are the threads; small matrix products gain nothing from more
    listener = listen(host, port)
    address = f"http://{url_host(host)}:{listener.getsockname()[1]}"
    if settings.single_user:
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
        _invite_first(store, address)
    sys.stdout.flush()
    app = create_app(store, replace(settings, hosts=(*settings.hosts, host)))
    server = server_for(app, ConnectionLimits(settings.max_connections), SHUTDOWN_TIMEOUT)
    if until is not None:
        threading.Thread(target=_stop_when, args=(server, until), daemon=True).start()
    gc.freeze()  # otherwise every full collection visits all modules and blocks answers for 0.15 s
    server.run(sockets=[listener])


def _stop_when(server: uvicorn.Server, until: StopCondition) -> None:
    """Stop the server shortly after the condition holds, so that it can still send a last page."""
    while not server.should_exit:
        if until():
            time.sleep(STOP_DELAY)
            server.should_exit = True
            return
        time.sleep(POLL_INTERVAL)


def _invite_first(store: Store, address: str) -> None:
    """Print a sign-in link if no admin has a password yet: for their account, or a new one.

    Links that were printed before end.
    """
    with store.write() as tx:
        if people.has_admin(tx):
            return
        admin = people.admin_without_password(tx)
        if admin is None:
            link = invitations.invite(tx, None, "lead", None)
            action = "the first lead chooses a login and signs in here"
        else:
            link = invitations.reset_link(tx, admin, None, invitations.DAYS)
            action = f"{admin.login} signs in here"
    print(f"No lead has a password yet; {action} (once; links printed before have ended):")
    print(f"{address}{link.path}")


def check_port(host: str, port: int) -> None:
    """Raise if a port is in use, before long work that needs it at its end."""
    listen(host, port).close()
