"""Connections: so many and no more, and none that is kept open for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from firstpage.serving.limits import Limits

if TYPE_CHECKING:
    import uvicorn

FIRST = 10  # seconds in which a new connection must have asked something
IDLE = 75  # that a connection may be silent; longer than clients keep theirs, mostly
USED = 1  # that a connection which was answered is left alone, however many others come
TAKEN = 20  # in which an answer must have been taken


def guarded(limits: Limits) -> type[asyncio.Protocol]:
    """HTTP by h11, and who has waited for how long.

    Not by httptools, also where it is installed: it takes headers without end.
    """
    from h11 import LocalProtocolError
    from uvicorn.protocols.http.h11_impl import H11Protocol

    base: Any = H11Protocol

    class Guarded(base):  # type: ignore[misc]
        since = 0.0  # when it was opened, or answered last
        stuck: float | None = None  # since when the client has had an answer to take

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.since = self.loop.time()
            if len(self.connections) > limits.connections:
                self.make_room()

        def on_response_complete(self) -> None:
            self.since, self.stuck = self.loop.time(), None
            super().on_response_complete()

        def pause_writing(self) -> None:
            if self.stuck is None:
                self.stuck = self.loop.time()
            super().pause_writing()

        def send_400_response(self, msg: str) -> None:
            try:
                super().send_400_response(msg)
            except LocalProtocolError:  # it has had its answer; only then the body went wrong
                self.transport.abort()

        @property
        def silent(self) -> bool:
            """Nothing is being answered here."""
            return self.cycle is None or self.cycle.response_complete

        def make_room(self) -> None:
            others = [one for one in self.connections if one.silent and one is not self]
            longest_silent(others, self.loop.time(), self).end()

        def look(self, now: float) -> None:
            most = FIRST if self.cycle is None else IDLE + FIRST
            silent = self.silent and now - self.since > most
            if silent or (self.stuck is not None and now - self.stuck > TAKEN):
                self.end()

        def end(self) -> None:
            self.connections.discard(self)
            self.transport.abort()

    return Guarded


def longest_silent(connections: Iterable[Any], now: float, other: Any) -> Any:
    """Whoever has been silent longest; who never asked anything counts ten times as long."""

    def silence(one: Any) -> float:
        waited = float(now - one.since)
        return 10 * waited if one.cycle is None else waited - USED

    return max(connections, key=silence, default=other)


async def look_at_all(server: uvicorn.Server) -> None:
    """Once a second."""
    now = asyncio.get_running_loop().time()
    for connection in list(server.server_state.connections):
        connection.look(now)  # type: ignore[union-attr]
