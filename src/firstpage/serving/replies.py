"""What goes back over the connection, and what a request says of its body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from firstpage.serving import arrow_body, npy_body
from firstpage.serving.answers import FORMS, JSON
from firstpage.serving.limits import Refusal

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = dict[bytes, bytes]
PIECE = 1 << 16  # bytes that are sent without asking whether anybody takes them


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    media: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


async def send_reply(reply: Reply, send: Send) -> None:
    """Long answers go out in pieces, so that one nobody takes keeps its place among the requests
    under way, and is not heaped up beside them."""
    body = reply.body
    headers = [
        (b"content-type", reply.media.encode()),
        (b"content-length", str(len(body)).encode()),
        *((name.encode(), value.encode()) for name, value in reply.headers.items()),
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if len(body) > PIECE:
        last = (len(body) - 1) // PIECE * PIECE
        for at in range(0, last, PIECE):
            piece = body[at : at + PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        body = body[last:]
    await send({"type": "http.response.body", "body": body})


def media_of(headers: Headers) -> str:
    """The body's format, if we read it."""
    said = headers.get(b"content-type", JSON.encode()).decode("latin-1")
    media = said.split(";")[0].strip().lower()
    if media not in FORMS:
        raise Refusal(415, f"{media[:60]!r} is not read here; send {', '.join(FORMS)}.")
    if media == arrow_body.MEDIA and not arrow_body.available():
        raise Refusal(415, f"this server has no pyarrow; send {JSON} or {npy_body.MEDIA}.")
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise Refusal(415, "compressed bodies are not read here.")
    return media
