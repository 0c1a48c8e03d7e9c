"""Limits on the cost of a request; a request beyond them is refused with a status and one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from firstpage.core.http import BodyReader, BodyTooLarge, BodyTooSlow


class Refusal(HTTPException):
    """A request that is refused; `detail` is one line for the client."""

    def __init__(self, detail: str, status: int = 422, **headers: str) -> None:
        response_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, " ".join(detail.split()), response_headers)


@dataclass(frozen=True)
class Limits:
    """Limits on what a client can make the server spend.

    Attributes
    ----------
    candidates : int
        Candidates per query.
    text : int
        Characters of a typed query.
    queries : int
        Queries per batch.
    events : int
        Queries and events per minute that a network sends to the event log; from all, ten times as
        many.
    bytes : int
        Bytes per request body.
    concurrent_requests : int
        Requests being answered at the same time.
    connections : int
        Connections open at the same time, idle ones included.
    explained_candidates : int
        Candidates that one answer explains.
    explanation_terms : int
        Features that the explanations of one answer name.
    body_seconds : float
        Time within which a body must arrive.
    """

    candidates: int = 1000
    text: int = 1000
    queries: int = 1000
    events: int = 60_000
    bytes: int = 8 << 20
    concurrent_requests: int = 64
    connections: int = 1000
    explained_candidates: int = 10_000
    explanation_terms: int = 200_000
    body_seconds: float = 10.0

    def check_candidates(self, count: int, where: str) -> None:
        """Refuse a query with no candidates, or with more than the limit."""
        self._check(count, self.candidates, where, "candidates", "per query; send fewer")

    def check_text(self, text: str) -> None:
        """Refuse a typed query that is empty or longer than the limit."""
        if len(text) > self.text:
            raise Refusal(
                f"the query has {len(text):,} characters, and the limit is {self.text:,}.", 413
            )
        if not text.strip():
            raise Refusal("the query is empty; type some words.")

    def check_queries(self, count: int) -> None:
        """Refuse a batch with no queries, or with more than the limit."""
        self._check(count, self.queries, "the batch", "queries", "per batch; send several batches")

    def _check(self, count: int, limit: int, where: str, noun: str, remedy: str) -> None:
        if count > limit:
            raise Refusal(
                f"{where} has {count:,} {noun}, and the limit is {limit:,} {remedy}, or start the "
                f"server with a greater --max-{noun}.",
                413,
            )
        if not count:
            raise Refusal(f"{where} has no {noun}.")

    def check_explanations(self, rows: int, terms: int) -> None:
        """Refuse long explanations, which take much more time and memory than scores."""
        if rows > self.explained_candidates or terms > self.explanation_terms:
            raise Refusal(
                f"{rows:,} candidates would be explained by {terms:,} features, and this server "
                f"explains {self.explained_candidates:,} by {self.explanation_terms:,} per answer; "
                "send a smaller 'top' or 'explain'.",
                413,
            )

    def body_too_large(self) -> Refusal:
        """Return the refusal of a body that is longer than the limit."""
        return Refusal(
            f"the body is longer than {self.bytes:,} bytes, the limit of this server; send fewer "
            "candidates, or a binary body, or start the server with a greater --max-bytes.",
            413,
        )


class RequestLimiter:
    """Reads bodies and admits requests, as many as the limits allow.

    `answering` counts requests whose answers the client has not yet received completely,
    `pending_bytes` the bytes of bodies that are not complete yet.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.answering = 0
        self.pending_bytes = 0

    def check(self) -> None:
        """Refuse a request while the limit of concurrent requests is reached."""
        limit = self.limits.concurrent_requests
        if self.answering >= limit:
            raise Refusal(f"{limit} requests are being answered; try again.", 503, retry_after="1")

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Occupy a slot, after the body is complete, so that slow clients occupy none."""
        self.check()
        self.answering += 1
        try:
            yield
        finally:
            self.answering -= 1

    async def read_body(
        self, headers: Headers, receive: Receive, max_bytes: int | None = None
    ) -> bytes:
        """Return the body, of at most `max_bytes`; its bytes are counted while they arrive."""
        limits, length = self.limits, headers.get("content-length", "0")
        if max_bytes is not None:
            limits = replace(limits, bytes=max_bytes)
        if not length.isdecimal() or len(length) > 18 or int(length) > limits.bytes:
            raise limits.body_too_large()
        reader, chunks, counted = BodyReader(receive, limits.bytes, limits.body_seconds), [], 0
        try:
            while not reader.complete:
                message = await reader.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunks.append(message.get("body", b""))
                self.pending_bytes += reader.bytes_read - counted
                counted = reader.bytes_read
                if (
                    not reader.complete
                    and self.pending_bytes > limits.concurrent_requests * self.limits.bytes
                ):
                    raise Refusal(
                        "too many bodies are being read; try again.", 503, retry_after="1"
                    )
        except BodyTooLarge:
            raise limits.body_too_large() from None
        except BodyTooSlow:
            detail = f"the body did not arrive within {limits.body_seconds:g} seconds."
            raise Refusal(detail, 408, connection="close") from None
        finally:
            self.pending_bytes -= counted
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
