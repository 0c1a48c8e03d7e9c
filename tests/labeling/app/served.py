"""A `Site` served on a real port in this process, behind a proxy that sets client addresses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn

from firstpage.labeling.app.security import COOKIE
from firstpage.labeling.app.store import logins
from tests.labeling.app.load import NO_TLS
from tests.labeling.app.site import Site
from tests.patience import PATIENCE


@contextmanager
def served(site: Site) -> Iterator[str]:
    """Serve the site while the block runs; yield its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    server = uvicorn.Server(uvicorn.Config(site.app, log_level="error", ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()


def browser(address: str, network: str, site: Site | None = None, login: str = "") -> httpx.Client:
    """Return a client from a network, signed in if there is a login."""
    client = httpx.Client(
        base_url=address, headers={"X-Forwarded-For": network}, timeout=PATIENCE, verify=NO_TLS
    )
    if site is not None and login:
        person = site.person(login)
        with site.store.write() as tx:
            token, session = logins.start(tx, person)
        client.cookies.set(COOKIE, token)
        client.headers["X-CSRF-Token"] = session.csrf
    return client
