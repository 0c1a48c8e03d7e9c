"""Limits on connections and bodies: how many there may be, and how long a client may take.

This is the only module that relies on the inside of uvicorn: it subclasses the protocol by h11, and
pyproject.toml bounds uvicorn's versions for that reason.
"""

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
    """A body is longer than it may be, whatever length its head declared."""


class BodyTooSlow(Exception):
    """A body did not arrive in the time that it may take."""


class BodyReader:
    """Receives a body, counting its bytes and the time that the client made the server wait.

    size     bytes at most
    seconds  that the server waits, beside the bytes received so far over `rate`
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
BUFFER = 48 << 10  # bytes that the client has taken each time asyncio resumes writing
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 39\r\n\r\n"
    b"too many connections; please try again\n"
)


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections there may be, and how long a client may take.

    connections  open at the same time, silent ones included
    head         seconds for the head of a request, and for a body that is not read
    idle         seconds that a connection may be silent between requests
    answer       seconds for taking an answer, beside its size over `rate`
    rate         bytes per second at which a client must take an answer
    """

    connections: int = 1000
    head: float = 10.0
    idle: float = 75.0  # longer than most clients keep theirs
    answer: float = 20.0
    rate: float = 16 << 10


def guarded(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol by h11, with these limits.

    Not by httptools, even where it is installed: it accepts headers without end.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    base: Any = H11Protocol

    class Guarded(base):  # type: ignore[misc]
        silent_since = 0.0  # when it was opened, or answered last
        head_since: float | None = None  # when the first byte of an incomplete head came
        blocked_since: float | None = None  # since when the client has had an answer to take
        bytes_taken = 0  # of that answer, at least

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.silent_since = self.loop.time()
            if len(self.connections) > limits.connections:
                self.evict()

        def data_received(self, data: bytes) -> None:
            if self.silent and self.head_since is None:
                self.head_since = self.loop.time()
            super().data_received(data)
            if not self.silent:
                self.head_since = None

        def on_response_complete(self) -> None:
            self.silent_since = self.loop.time()
            self.head_since = self.blocked_since = None
            super().on_response_complete()

        def pause_writing(self) -> None:
            if self.blocked_since is None:
                self.blocked_since, self.bytes_taken = self.loop.time(), 0
            super().pause_writing()

        def resume_writing(self) -> None:
            self.bytes_taken += BUFFER
            super().resume_writing()

        def send_400_response(self, msg: str) -> None:
            try:
                super().send_400_response(msg)
            except h11.LocalProtocolError:  # the body went wrong after the answer was sent
                self.transport.abort()

        @property
        def silent(self) -> bool:
            """Whether nothing is being answered here."""
            return self.cycle is None or self.cycle.response_complete

        def evict(self) -> None:
            """End the connection that was silent longest; where none is, refuse this one."""
            others = [other for other in self.connections if other.silent and other is not self]
            if others:
                longest_silent(others, self.loop.time()).end()
            else:
                self.connections.discard(self)
                self.transport.write(FULL)
                self.transport.close()

        def end_if_late(self, now: float) -> None:
            if self.is_late(now):
                self.end()

        def is_late(self, now: float) -> bool:
            """Whether the client has taken longer than it may."""
            if self.blocked_since is not None:
                allowed = limits.answer + self.bytes_taken / limits.rate
                return now - self.blocked_since > allowed
            if not self.silent:
                return False
            if self.head_since is not None and now - self.head_since > limits.head:
                return True
            if self.cycle is None or self.conn.their_state is h11.SEND_BODY:
                return now - self.silent_since > limits.head
            return now - self.silent_since > limits.idle + limits.head

        def end(self) -> None:
            self.connections.discard(self)
            self.transport.abort()

    return Guarded


def longest_silent(connections: Iterable[Any], now: float) -> Any:
    """Return the connection silent longest; one without any request counts ten times as long."""

    def silence(connection: Any) -> float:
        waited = float(now - connection.silent_since)
        return 10 * waited if connection.cycle is None else waited - ANSWERED_GRACE

    return max(connections, key=silence)


async def end_late_connections(server: uvicorn.Server) -> None:
    """End the connections whose clients took too long; called once a second."""
    now = asyncio.get_running_loop().time()
    for connection in list(server.server_state.connections):
        connection.end_if_late(now)  # type: ignore[union-attr]
