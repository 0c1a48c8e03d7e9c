"""Run the application: one process on one address, until it is stopped."""

from __future__ import annotations

import gc
import os
import secrets
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from firstpage.transport.connections import ConnectionLimits
from firstpage.transport.server import listen, server_for, url_host
from firstpage.web.security import ServeSettings
from firstpage.web.store import invitations, people
from firstpage.web.store.connect import Store
from firstpage.web.store.staging import clean

if TYPE_CHECKING:
    import uvicorn

Until = Callable[[], bool]
LOOK, LINGER = 0.5, 3.0  # seconds between looks, and after the last
# Seconds that a thread may keep the interpreter while others wait.  An answer passes between
# threads some twenty times; beside one that reads a long upload it would wait 5 ms each time.
SWITCH = 0.0005
LAST = 5  # seconds that requests may take to end once the server is told to stop


def serve(
    where: str | Path, host: str, port: int, settings: ServeSettings, until: Until | None = None
) -> None:
    """Open or make the project's store and serve it; where `until` is given, till it says so."""
    store = Store(where).prepare()
    try:
        with store.told():
            clean(store)
            _run(store, host, port, settings, until)
    finally:
        store.close()


def _run(store: Store, host: str, port: int, settings: ServeSettings, until: Until | None) -> None:
    """Until somebody stops it."""
    from threadpoolctl import threadpool_limits

    from firstpage.web.app import create_app, ready_for_one

    sys.setswitchinterval(SWITCH)
    threadpool_limits(1)  # requests are the threads; small products gain nothing from more
    taken = listen(host, port)
    address = f"http://{url_host(host)}:{taken.getsockname()[1]}"
    if settings.open:
        settings = replace(settings, token=secrets.token_urlsafe(32))
        ready_for_one(store)
        entrance = f"{address}/open?token={settings.token}"
        print(f"Open this address in your browser (once): {entrance}")
        _show(entrance)
    else:
        print(f"Serving {store.shown} at {address}")
        _invite_first(store, address)
    sys.stdout.flush()
    app = create_app(store, replace(settings, hosts=(*settings.hosts, host)))
    server = server_for(app, ConnectionLimits(settings.connections), LAST)
    if until is not None:
        threading.Thread(target=_stop, args=(server, until), daemon=True).start()
    gc.freeze()  # else each full collection walks all modules, 0.15 s in which nobody is answered
    server.run(sockets=[taken])


def _stop(server: uvicorn.Server, until: Until) -> None:
    """Let the server go a moment after its work is done: the last page is still to be shown."""
    while not server.should_exit:
        if until():
            time.sleep(LINGER)
            server.should_exit = True
            return
        time.sleep(LOOK)


def _show(address: str) -> None:
    """Open the browser for a person at a screen, once the server can answer."""
    screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if screen and sys.stdout.isatty():
        threading.Timer(1.0, webbrowser.open, [address]).start()


def _invite_first(store: Store, address: str) -> None:
    """Print a link to come in where no admin has a password yet: for their account, or a new one.

    It ends the links that were printed before.
    """
    with store.write() as tx:
        if people.an_admin(tx):
            return
        admin = people.waiting_admin(tx)
        if admin is None:
            link = invitations.invite(tx, None, "lead", None)
            who = "the first lead chooses a login and comes in here"
        else:
            link = invitations.reset_link(tx, admin, None, invitations.DAYS)
            who = f"{admin.login} comes in here"
    print(f"No lead has a password yet; {who} (once; links printed before have ended):")
    print(f"{address}{link.path}")


def check_port(host: str, port: int) -> None:
    """Refuse a port that is taken, before long work whose end needs it."""
    listen(host, port).close()
