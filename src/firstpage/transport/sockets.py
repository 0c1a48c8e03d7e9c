"""The socket that a server listens on, taken before anything is said of it."""

from __future__ import annotations

import socket

from firstpage.errors import DataError

BACKLOG = 1024  # connections that may wait to be taken
OTHERS = 100  # files that are open besides connections


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


def room(wanted: int) -> int:
    """How many connections there can be under the system's limit on open files, which is raised as
    far as it may be; all that wait may be taken at once."""
    try:
        import resource
    except ImportError:  # a system without such a limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = wanted + BACKLOG + OTHERS
    if hard != resource.RLIM_INFINITY:
        need = min(need, hard)
    if soft == resource.RLIM_INFINITY or soft >= need:
        need = max(need, soft)
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))
    return min(wanted, max(need - BACKLOG - OTHERS, need // 2))


def shown(host: str) -> str:
    """As an address has it."""
    return f"[{host}]" if ":" in host else host
