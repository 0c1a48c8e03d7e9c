"""Limits on connections and request bodies: how many there may be, and how long a client may take.

This is the only module that depends on internals of uvicorn: it subclasses the h11 protocol, and
pyproject.toml bounds the versions of uvicorn for that reason.
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
    """A body is longer than the limit, whatever its Content-Length."""


class BodyTooSlow(Exception):
    """A body did not arrive within the time limit."""


class BodyReader:
    """Receives a body, counting its bytes and the time that the server waits for the client.

    Parameters
    ----------
    receive : callable
        The ASGI function that returns the next message.
    max_bytes : int
        The greatest length of a body.
    seconds : float
        How long the server waits, in addition to the bytes received so far divided by `rate`.
    rate : float
        Bytes per second; inf: the time limit does not grow with the length of the body.
    """

    def __init__(self, receive: Receive, max_bytes: int, seconds: float, rate: float = inf) -> None:
        self._receive = receive
        self.max_bytes, self.seconds, self.rate = max_bytes, seconds, rate
        self.bytes_read = 0
        self.waited = 0.0
        self.complete = False
        self.failure: BodyTooLarge | BodyTooSlow | None = None

    async def receive(self) -> Message:
        """Return the next message; after the end of the body there is no time limit."""
        if self.complete:
            return await self._receive()
        message = await self._next()
        self.bytes_read += len(message.get("body", b""))
        self.complete = not message.get("more_body", False)
        if self.bytes_read > self.max_bytes:
            self.failure = BodyTooLarge()
            raise self.failure
        return message

    async def _next(self) -> Message:
        clock = asyncio.get_running_loop().time
        start = clock()
        try:
            async with asyncio.timeout(self.seconds + self.bytes_read / self.rate - self.waited):
                return await self._receive()
        except TimeoutError:
            self.failure = BodyTooSlow()
            raise self.failure from None
        finally:
            self.waited += clock() - start


MAX_DISCARDED = 256 << 20  # bytes of a body that are read after its answer, and discarded
ANSWERED_GRACE = 1  # seconds for which an answered connection is not closed in favor of others
WRITE_BUFFER_BYTES = 48 << 10  # received by the client each time asyncio resumes writing
FULL_RESPONSE = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 39\r\n\r\n"
    b"too many connections; please try again\n"
)


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits on the number of connections, and on the time that a client may take.

    Attributes
    ----------
    connections : int
        Connections open at the same time, idle ones included.
    head : float
        Seconds for the head of a request, and for a body that is not read.
    idle : float
        Seconds that a connection may be idle between requests.
    answer : float
        Seconds for receiving an answer, in addition to its size divided by `rate`.
    rate : float
        Bytes per second at which a client must receive an answer.
    """

    connections: int = 1000
    head: float = 10.0
    idle: float = 75.0  # longer than most clients keep a connection
    answer: float = 20.0
    rate: float = 16 << 10


class LingeringTransport:
    """A transport whose `close` waits for a client that is still sending its body.

    Most clients read the answer after they have sent everything.  If the connection were closed
    before, the system would discard the answer and report a connection reset.

    Parameters
    ----------
    transport : asyncio.Transport
        The transport of a connection.
    is_sending : callable
        Returns whether the client has not sent its entire body.
    """

    def __init__(self, transport: asyncio.Transport, is_sending: Callable[[], bool]) -> None:
        self._transport, self._is_sending = transport, is_sending
        self.lingers = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Return whether `close` was called."""
        return self.lingers or self._transport.is_closing()

    def close(self) -> None:
        """End the answer; close the connection unless the client is sending."""
        if self.lingers or not self._is_sending():
            self._transport.close()
            return
        self.lingers = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()


def limited_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return uvicorn's h11 protocol with these limits.

    The httptools protocol is never used: it accepts headers of any length.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    base: Any = H11Protocol

    class LimitedProtocol(base):  # type: ignore[misc]
        idle_since = 0.0  # when it was opened, or last answered
        head_since: float | None = None  # when the first byte of an incomplete head came
        blocked_since: float | None = None  # since when the client has had an answer to receive
        bytes_received = 0  # lower bound on the bytes of that answer that the client has received
        discarded = 0  # bytes received of a body that was answered before its end

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(LingeringTransport(transport, self.is_sending))
            self.idle_since = self.loop.time()
            if len(self.connections) > limits.connections:
                self.evict()

        def data_received(self, data: bytes) -> None:
            if self.idle and self.head_since is None:
                self.head_since = self.loop.time()
            if self.idle and self.is_sending():
                self.discarded += len(data)
                if self.discarded > MAX_DISCARDED:
                    return self.end()
            if self.transport.lingers:
                return
            super().data_received(data)
            if not self.idle:
                self.head_since = None

        def on_response_complete(self) -> None:
            self.idle_since, self.discarded = self.loop.time(), 0
            self.head_since = self.blocked_since = None
            super().on_response_complete()

        def pause_writing(self) -> None:
            if self.blocked_since is None:
                self.blocked_since, self.bytes_received = self.loop.time(), 0
            super().pause_writing()

        def resume_writing(self) -> None:
            self.bytes_received += WRITE_BUFFER_BYTES
            super().resume_writing()

        def send_400_response(self, msg: str) -> None:
            try:
                super().send_400_response(msg)
            except h11.LocalProtocolError:  # the body became invalid after the answer was sent
                self.transport.abort()

        def is_sending(self) -> bool:
            """Return whether the client has begun a body and not ended it."""
            return self.cycle is not None and self.conn.their_state is h11.SEND_BODY

        @property
        def idle(self) -> bool:
            """Whether no request is being answered."""
            return self.cycle is None or self.cycle.response_complete

        def evict(self) -> None:
            """Close the connection that was idle longest; where none is idle, refuse this one."""
            others = [other for other in self.connections if other.idle and other is not self]
            if others:
                longest_idle(others, self.loop.time()).end()
            else:
                self.connections.discard(self)
                self.transport.write(FULL_RESPONSE)
                self.transport.close()

        def end_if_late(self, now: float) -> None:
            """Close the connection if the client has exceeded a time limit."""
            if self.is_late(now):
                self.end()

        def is_late(self, now: float) -> bool:
            """Return whether the client has exceeded a time limit."""
            if self.blocked_since is not None:
                allowed = limits.answer + self.bytes_received / limits.rate
                return now - self.blocked_since > allowed
            if not self.idle:
                return False
            if self.head_since is not None and now - self.head_since > limits.head:
                return True
            if self.cycle is None or self.is_sending():
                return now - self.idle_since > limits.head
            return now - self.idle_since > limits.idle + limits.head

        def shutdown(self) -> None:
            if self.idle and self.is_sending():  # of a body that was answered
                self.end()
            else:
                super().shutdown()

        def end(self) -> None:
            """Close the connection at once."""
            self.connections.discard(self)
            self.transport.abort()

    return LimitedProtocol


def longest_idle(connections: Iterable[Any], now: float) -> Any:
    """Return the connection idle longest; time without any request counts ten times."""

    def idle_seconds(connection: Any) -> float:
        waited = float(now - connection.idle_since)
        return 10 * waited if connection.cycle is None else waited - ANSWERED_GRACE

    return max(connections, key=idle_seconds)


async def end_late_connections(server: uvicorn.Server) -> None:
    """Close the connections whose clients exceed a time limit; called once per second."""
    now = asyncio.get_running_loop().time()
    for connection in list(server.server_state.connections):
        connection.end_if_late(now)  # type: ignore[union-attr]
