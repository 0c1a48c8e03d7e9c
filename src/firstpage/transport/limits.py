"""Connections: so many and no more, and none that is kept open for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import uvicorn


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class BodyTooLarge(Exception):
    """A body is longer than it may be, whatever its length was said to be."""


class BodyTooSlow(Exception):
    """A body did not come in the time that it may take."""


class BodyReader:
    """Receives a body, counting its bytes and the time that the client made us wait.

    size     bytes at most
    seconds  that we wait for it, beside what it has so far over `rate`
    rate     bytes per second; inf: the whole body in these seconds
    """

    def __init__(self, receive: Receive, size: int, seconds: float, rate: float = inf) -> None:
        self._receive = receive
        self.size, self.seconds, self.rate = size, seconds, rate
        self.read = 0
        self.waited = 0.0
        self.complete = False
        self.failure: BodyTooLarge | BodyTooSlow | None = None

    async def receive(self) -> Message:
        """Return the next message; after the body's end, whatever comes whenever it comes."""
        if self.complete:
            return await self._receive()
        message = await self._next()
        self.read += len(message.get("body", b""))
        self.complete = not message.get("more_body", False)
        if self.read > self.size:
            self.failure = BodyTooLarge()
            raise self.failure
        return message

    async def _next(self) -> Message:
        clock = asyncio.get_running_loop().time
        start = clock()
        try:
            async with asyncio.timeout(self.seconds + self.read / self.rate - self.waited):
                return await self._receive()
        except TimeoutError:
            self.failure = BodyTooSlow()
            raise self.failure from None
        finally:
            self.waited += clock() - start


ANSWERED_GRACE = 1  # seconds that an answered connection is left alone, however many others come
BUFFER = 48 << 10  # bytes that the client has taken each time asyncio lets us write again
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 39\r\n\r\n"
    b"too many connections; please try again\n"
)


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections there may be, and how long a client may take.

    connections  open at the same time, silent ones included
    head         seconds in which the head of a request must have come, and a body that is not read
    idle         seconds that a connection may be silent between requests
    answer       seconds in which an answer must have been taken, beside its size over `rate`
    rate         bytes per second at which a client takes an answer at least
    """

    connections: int = 1000
    head: float = 10.0
    idle: float = 75.0  # longer than clients keep theirs, mostly
    answer: float = 20.0
    rate: float = 16 << 10


def guarded(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol by h11, with these limits.

    Not by httptools, also where it is installed: it takes headers without end.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    base: Any = H11Protocol

    class Guarded(base):  # type: ignore[misc]
        since = 0.0  # when it was opened, or answered last
        begun: float | None = None  # when the first byte of a head came that is not whole yet
        stuck: float | None = None  # since when the client has had an answer to take
        taken = 0  # bytes of that answer that it took since, at least

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.since = self.loop.time()
            if len(self.connections) > limits.connections:
                self.make_room()

        def data_received(self, data: bytes) -> None:
            if self.silent and self.begun is None:
                self.begun = self.loop.time()
            super().data_received(data)
            if not self.silent:
                self.begun = None

        def on_response_complete(self) -> None:
            self.since, self.begun, self.stuck = self.loop.time(), None, None
            super().on_response_complete()

        def pause_writing(self) -> None:
            if self.stuck is None:
                self.stuck, self.taken = self.loop.time(), 0
            super().pause_writing()

        def resume_writing(self) -> None:
            self.taken += BUFFER
            super().resume_writing()

        def send_400_response(self, msg: str) -> None:
            try:
                super().send_400_response(msg)
            except h11.LocalProtocolError:  # it has had its answer; only then the body went wrong
                self.transport.abort()

        @property
        def silent(self) -> bool:
            """Nothing is being answered here."""
            return self.cycle is None or self.cycle.response_complete

        def make_room(self) -> None:
            others = [one for one in self.connections if one.silent and one is not self]
            if others:
                longest_silent(others, self.loop.time()).end()
            else:
                self.connections.discard(self)
                self.transport.write(FULL)
                self.transport.close()

        def look(self, now: float) -> None:
            if self.late(now):
                self.end()

        def late(self, now: float) -> bool:
            """Whether the client has taken longer than it may."""
            if self.stuck is not None:
                return now - self.stuck > limits.answer + self.taken / limits.rate
            if not self.silent:
                return False
            if self.begun is not None and now - self.begun > limits.head:
                return True
            if self.cycle is None or self.conn.their_state is h11.SEND_BODY:
                return now - self.since > limits.head
            return now - self.since > limits.idle + limits.head

        def end(self) -> None:
            self.connections.discard(self)
            self.transport.abort()

    return Guarded


def longest_silent(connections: Iterable[Any], now: float) -> Any:
    """Return who has been silent longest; who never asked anything counts ten times as long."""

    def silence(one: Any) -> float:
        waited = float(now - one.since)
        return 10 * waited if one.cycle is None else waited - ANSWERED_GRACE

    return max(connections, key=silence)


async def look_at_all(server: uvicorn.Server) -> None:
    """End the connections that are late; called once a second."""
    now = asyncio.get_running_loop().time()
    for connection in list(server.server_state.connections):
        connection.look(now)  # type: ignore[union-attr]
