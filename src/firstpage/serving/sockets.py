"""The socket that a server listens on, taken before anything is said of it."""

from __future__ import annotations

import socket

from firstpage.errors import DataError


def listen(host: str, port: int) -> socket.socket:
    """0 takes any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only on sockets that say they are TCP; else answers wait 40 ms
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(1024)
    except OSError as error:
        found.close()
        raise DataError(
            f"cannot listen on {host} port {port} ({error.strerror}); choose another --port."
        ) from error
    return found


def shown(host: str) -> str:
    """As an address has it."""
    return f"[{host}]" if ":" in host else host
