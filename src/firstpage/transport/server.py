"""A server for an application, with the limits on its connections."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firstpage.transport.connections import ConnectionLimits, guarded, look_at_all
from firstpage.transport.sockets import BACKLOG, room

if TYPE_CHECKING:
    import uvicorn


def server_for(app: Any, limits: ConnectionLimits, last: int) -> uvicorn.Server:
    """Return a server that writes nothing to the log which a stranger can cause.

    last  seconds that requests may take to end once it is told to stop
    """
    import uvicorn

    limits = replace(limits, connections=room(limits.connections))
    config = uvicorn.Config(
        app, http=guarded(limits), backlog=BACKLOG, log_level="error", access_log=False,
        proxy_headers=False, server_header=False, ws="none", timeout_keep_alive=int(limits.idle),
        timeout_graceful_shutdown=last,
    )  # fmt: skip
    server = uvicorn.Server(config)
    config.callback_notify, config.timeout_notify = lambda: look_at_all(server), 0
    return server
