"""The listening socket, and a server with limits on its connections."""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firstpage.core.errors import DataError
from firstpage.core.http.connections import ConnectionLimits, end_late_connections, limited_protocol

if TYPE_CHECKING:
    import uvicorn


BACKLOG = 1024  # connections that may wait to be accepted
OTHER_FILES = 100  # open files other than connections


def listen(host: str, port: int, shared: bool = False) -> socket.socket:
    """Return a listening socket; port 0 takes any free port.

    Several processes can listen on one address if all of them set `shared`; the system distributes
    connections evenly.
    """
    listener = bind(host, port, shared)
    listener.listen(BACKLOG)
    return listener


def bind(host: str, port: int, shared: bool = False) -> socket.socket:
    """Return a socket that holds an address, without listening; see `listen`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given; without it answers wait 40 ms
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = error.strerror if isinstance(error, OSError) else "ports are at most 65535"
        raise DataError(
            f"cannot listen on {host} port {port} ({reason}); choose another --port."
        ) from error
    return bound


def connection_capacity(requested: int) -> int:
    """Raise the limit on open files as needed; return the number of connections it allows."""
    try:
        import resource
    except ImportError:  # a system without such a limit
        return requested
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = requested + BACKLOG + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        needed = max(needed, soft)
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return min(requested, max(needed - BACKLOG - OTHER_FILES, needed // 2))


def url_host(host: str) -> str:
    """Return a host as it is written in a URL: IPv6 addresses are in brackets."""
    return f"[{host}]" if ":" in host else host


def server_for(app: Any, limits: ConnectionLimits, grace: int) -> uvicorn.Server:
    """Return a server with these limits, to whose log clients cannot write.

    Requests have `grace` seconds to end after the server is asked to stop.
    """
    import uvicorn

    limits = replace(limits, connections=connection_capacity(limits.connections))
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits),
        backlog=BACKLOG,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=int(limits.idle),
        timeout_graceful_shutdown=grace,
    )
    server = uvicorn.Server(config)
    config.callback_notify, config.timeout_notify = lambda: end_late_connections(server), 0
    return server


def open_browser(url: str) -> None:
    """Open the browser if there is a display and a terminal, once the server can answer."""
    display = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if display and sys.stdout.isatty():
        threading.Timer(1.0, webbrowser.open, [url]).start()
