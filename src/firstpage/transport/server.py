"""The listening socket, and the server of an application with limits on its connections."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firstpage.errors import DataError
from firstpage.transport.connections import ConnectionLimits, end_late_connections, guarded

if TYPE_CHECKING:
    import uvicorn


BACKLOG = 1024  # connections that may wait to be accepted
OTHER_FILES = 100  # open besides connections


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only on sockets that say they are TCP; else answers wait 40 ms
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise DataError(
            f"cannot listen on {host} port {port} ({error.strerror}); choose another --port."
        ) from error
    return listener


def connection_capacity(wanted: int) -> int:
    """Raise the system's limit on open files as far as needed; return the connections it allows."""
    try:
        import resource
    except ImportError:  # a system without such a limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = wanted + BACKLOG + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        need = min(need, hard)
    if soft == resource.RLIM_INFINITY or soft >= need:
        need = max(need, soft)
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))
    return min(wanted, max(need - BACKLOG - OTHER_FILES, need // 2))


def shown(host: str) -> str:
    """Return a host as an address has it."""
    return f"[{host}]" if ":" in host else host


def server_for(app: Any, limits: ConnectionLimits, grace: int) -> uvicorn.Server:
    """Return a server with these limits, whose log no client can write to.

    grace  seconds that requests may take to end once it is told to stop
    """
    import uvicorn

    limits = replace(limits, connections=connection_capacity(limits.connections))
    config = uvicorn.Config(
        app, http=guarded(limits), backlog=BACKLOG, log_level="error", access_log=False,
        proxy_headers=False, server_header=False, ws="none", timeout_keep_alive=int(limits.idle),
        timeout_graceful_shutdown=grace,
    )  # fmt: skip
    server = uvicorn.Server(config)
    config.callback_notify, config.timeout_notify = lambda: end_late_connections(server), 0
    return server
