"""What a request may cost, and how one is refused: with a status and one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from firstpage.transport.connections import BodyReader, BodyTooLarge, BodyTooSlow


class Refusal(HTTPException):
    """A request that is not answered; `detail` is one line for its sender."""

    def __init__(self, detail: str, status: int = 422, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, " ".join(detail.split()), named)


@dataclass(frozen=True)
class Limits:
    """Everything that a client could otherwise make the server spend.

    candidates   per query
    queries      per batch
    bytes        per request body
    at_once      requests being answered at the same time
    connections  open at the same time, silent ones included
    explained    candidates explained in one answer
    reasons      features named in one answer
    seconds      within which a body must have arrived
    """

    candidates: int = 1000
    queries: int = 1000
    bytes: int = 8 << 20
    at_once: int = 64
    connections: int = 1000
    explained: int = 10_000
    reasons: int = 200_000
    seconds: float = 10.0

    def check_candidates(self, count: int, where: str) -> None:
        """Refuse a query without candidates, or with more than the limit."""
        self._check(count, self.candidates, where, "candidates", "per query; send fewer")

    def check_queries(self, count: int) -> None:
        """Refuse a batch without queries, or with more than the limit."""
        self._check(count, self.queries, "the batch", "queries", "at once; send several batches")

    def _check(self, count: int, limit: int, where: str, what: str, remedy: str) -> None:
        if count > limit:
            raise Refusal(
                f"{where} has {count:,} {what}, and this server takes {limit:,} {remedy}, or start "
                f"the server with a greater --max-{what}.",
                413,
            )
        if not count:
            raise Refusal(f"{where} has no {what}.")

    def check_explained(self, rows: int, reasons: int) -> None:
        """Refuse long explanations, which take far more time and memory than scores."""
        if rows > self.explained or reasons > self.reasons:
            raise Refusal(
                f"{rows:,} candidates would be explained by {reasons:,} features, and this server "
                f"explains {self.explained:,} by {self.reasons:,} at once; ask for a smaller 'top' "
                "or 'explain'.",
                413,
            )

    def too_many_bytes(self) -> Refusal:
        return Refusal(
            f"the body is longer than {self.bytes:,} bytes, the limit of this server; send fewer "
            "candidates, or a binary body, or start the server with a greater --max-bytes.",
            413,
        )


class Admission:
    """Reads bodies and takes requests up, as many as the limits allow.

    answering  requests whose bodies are complete, until the client has taken the answer
    unread     bytes received of bodies that are not complete yet
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.answering = 0
        self.unread = 0

    def check(self) -> None:
        """Refuse a request while as many as may be are being answered."""
        limit = self.limits.at_once
        if self.answering >= limit:
            raise Refusal(f"{limit} requests are being answered; try again.", 503, retry_after="1")

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold one of the slots; taken after the body is complete, so slow clients hold none."""
        self.check()
        self.answering += 1
        try:
            yield
        finally:
            self.answering -= 1

    async def body(self, headers: Headers, receive: Receive) -> bytes:
        """Return the whole body; its bytes are counted while they arrive."""
        limits, length = self.limits, headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > limits.bytes:
            raise limits.too_many_bytes()
        reader, chunks, counted = BodyReader(receive, limits.bytes, limits.seconds), [], 0
        try:
            while not reader.complete:
                message = await reader.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunks.append(message.get("body", b""))
                self.unread += reader.read - counted
                counted = reader.read
                if not reader.complete and self.unread > limits.at_once * limits.bytes:
                    raise Refusal(
                        "too many bodies are being read; try again.", 503, retry_after="1"
                    )
        except BodyTooLarge:
            raise limits.too_many_bytes() from None
        except BodyTooSlow:
            late = f"the body did not arrive within {limits.seconds:g} seconds."
            raise Refusal(late, 408, connection="close") from None
        finally:
            self.unread -= counted
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
