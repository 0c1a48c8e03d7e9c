"""What every request passes first: host, origin, size; and what every response carries.

Plain ASGI, since a body's size must be watched while it streams in.
"""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firstpage.transport.connections import BodyReader, BodyTooLarge, BodyTooSlow
from firstpage.web.security import FORGED, GUEST, ServeSettings

LOCAL = ("localhost", "127.0.0.1", "::1")
SAFE = ("GET", "HEAD", "OPTIONS")
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-dns-prefetch-control": "off",
    "cache-control": "no-store",
}
UPLOADS = ("/import",)  # paths that end so may send files


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app = app
        self.settings = settings
        self.hosts = {host.lower() for host in (*LOCAL, *settings.hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.settings.proxy:
            scope = _behind_proxy(scope)
        headers = Headers(scope=scope)
        refused = self._refused(scope, headers)
        sender = _dressed(scope, send)
        if refused is not None:
            await refused(scope, receive, sender)
            return
        body = BodyReader(receive, self._limit(scope), self.settings.seconds, self.settings.rate)

        async def watched(message: Message) -> None:
            if body.failure is None:  # else what is said of a body that we cut off is not true
                await sender(message)

        with suppress(BodyTooLarge, BodyTooSlow, ClientDisconnect):
            await self.app(scope, body.receive, watched)
        if isinstance(body.failure, BodyTooLarge):
            await _too_large(body.max_bytes, headers)(scope, receive, sender)
        elif body.failure is not None:
            await _too_slow(body, headers)(scope, receive, sender)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        """An answer where a request goes no further."""
        if "*" not in self.hosts and _name(headers.get("host", "")) not in self.hosts:
            return JSONResponse(
                {"detail": "This server does not answer to that name; see --allow-host."}, 421
            )
        if scope["method"] not in SAFE and not _own_origin(scope, headers):
            return JSONResponse({"detail": FORGED}, 403)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self._limit(scope):
            return _too_large(self._limit(scope), headers)
        return None

    def _limit(self, scope: Scope) -> int:
        uploads = scope["path"].rstrip("/").endswith(UPLOADS)
        return self.settings.upload if uploads else self.settings.body


def _too_large(limit: int, headers: Headers) -> Response:
    detail = f"This is too large; at most {limit:,} bytes are taken."
    return _refusal(413, detail, "Go back, and take a smaller file.", headers)


def _too_slow(body: BodyReader, headers: Headers) -> Response:
    detail = f"This came too slowly: {body.bytes_read:,} bytes in {body.waited:.0f} seconds."
    found = _refusal(408, detail, "Go back, and try again over a faster connection.", headers)
    found.headers["connection"] = "close"
    return found


def _refusal(status: int, detail: str, advice: str, headers: Headers) -> Response:
    """In words for a person whose form it was, in JSON for a program."""
    if "text/html" in headers.get("accept", ""):
        return PlainTextResponse(f"{detail} {advice}", status)
    return JSONResponse({"detail": detail}, status)


def _dressed(scope: Scope, send: Send) -> Send:
    """Adds our headers where a response has none of its own, and the guest's cookie."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if scope["scheme"] == "https":  # as the proxy says; we speak HTTP
                headers.setdefault("strict-transport-security", "max-age=31536000")
            guest = scope.get("state", {}).get("guest")
            if guest:
                headers.append("set-cookie", _guest_cookie(guest, scope["scheme"] == "https"))
        await send(message)

    return dressed


def _guest_cookie(guest: str, secure: bool) -> str:
    return f"{GUEST}={guest}; Path=/; HttpOnly; SameSite=lax{'; Secure' if secure else ''}"


def _own_origin(scope: Scope, headers: Headers) -> bool:
    """Does a change come from our own pages, as far as the browser tells?"""
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True  # no browser, or an old one; the token decides
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


def _name(host: str) -> str:
    """A Host header's name without port; empty where it cannot be read."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _behind_proxy(scope: Scope) -> Scope:
    """The address and scheme that the proxy added: the last, since clients may send others."""
    headers = Headers(scope=scope)
    client = headers.get("x-forwarded-for", "").split(",")[-1].strip()
    scheme = headers.get("x-forwarded-proto", "").split(",")[-1].strip().lower()
    changed = dict(scope)
    if client:
        changed["client"] = (client, 0)
    if scheme in ("http", "https"):
        changed["scheme"] = scheme
    return changed
