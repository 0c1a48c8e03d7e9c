"""Bodies of requests: so long and no longer, and none that comes too slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from math import inf
from typing import Any

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
