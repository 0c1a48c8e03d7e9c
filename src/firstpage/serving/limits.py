"""What a request may cost, and how one is refused: with a status and one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from firstpage.transport.limits import BodyReader, BodyTooLarge, BodyTooSlow


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


class Refusal(HTTPException):
    """A request that is not answered; `detail` is one line for its sender."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, " ".join(detail.split()), named)


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
        if self.answering >= self.limits.at_once:
            raise Refusal(
                503, f"{self.limits.at_once} requests are being answered; try again.",
                retry_after="1",
            )  # fmt: skip

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
        limits = self.limits
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > limits.bytes:
            raise _too_many_bytes(limits)
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
                        503, "too many bodies are being read; try again.", retry_after="1"
                    )
        except BodyTooLarge:
            raise _too_many_bytes(limits) from None
        except BodyTooSlow:
            raise Refusal(
                408, f"the body did not arrive within {limits.seconds:g} seconds.",
                connection="close",
            ) from None  # fmt: skip
        finally:
            self.unread -= counted
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_many_bytes(limits: Limits) -> Refusal:
    return Refusal(
        413,
        f"the body is longer than {limits.bytes:,} bytes, the limit of this server; send fewer "
        "candidates, or a binary body, or start the server with a greater --max-bytes.",
    )


def check_candidates(count: int, limits: Limits, where: str) -> None:
    """Refuse a query without candidates, or with more than the limit."""
    if count > limits.candidates:
        raise Refusal(
            413,
            f"{where} has {count:,} candidates, and this server takes {limits.candidates:,} per "
            "query; send fewer, or start the server with a greater --max-candidates.",
        )
    if not count:
        raise Refusal(422, f"{where} has no candidates.")


def check_queries(count: int, limits: Limits) -> None:
    """Refuse a batch without queries, or with more than the limit."""
    if count > limits.queries:
        raise Refusal(
            413,
            f"the batch has {count:,} queries, and this server takes {limits.queries:,} at once; "
            "send several batches, or start the server with a greater --max-queries.",
        )
    if not count:
        raise Refusal(422, "the batch has no queries.")


def check_explained(rows: int, reasons: int, limits: Limits) -> None:
    """Refuse long explanations, which take far more time and memory than scores."""
    if rows > limits.explained or reasons > limits.reasons:
        raise Refusal(
            413,
            f"{rows:,} candidates would be explained by {reasons:,} features, and this server "
            f"explains {limits.explained:,} by {limits.reasons:,} at once; ask for a smaller 'top' "
            "or 'explain'.",
        )
