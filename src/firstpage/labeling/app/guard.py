"""Middleware that checks host, origin and size of requests, and adds headers to responses.

It is plain ASGI, since the size of a body must be checked while it is received.
"""

from __future__ import annotations

from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firstpage.core.http import (
    HEADERS,
    BodyReader,
    BodyTooLarge,
    BodyTooSlow,
    allowed_hosts,
    error_response,
    guest_cookie,
    site_refusal,
)
from firstpage.labeling.app.programs import ForgedHeader, ProxyHeader, parse_networks, record_forged
from firstpage.labeling.app.security import GUEST, ServeSettings

UPLOAD_SUFFIXES = ("/import",)  # of paths to which files may be sent


class RequestGuard:
    """The outermost middleware of the application."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app = app
        self.settings = settings
        self.hosts = allowed_hosts(settings.hosts)
        self.sign_in_header = (
            ProxyHeader(settings.auth_header, parse_networks(settings.auth_from))
            if settings.auth_header
            else None
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        connected = scope.get("client")
        if self.settings.proxy:
            scope = _behind_proxy(scope)
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers) or await self._signed_in(scope, headers, connected)
        sender = _with_headers(scope, send)
        if refusal is not None:
            await refusal(scope, receive, sender)
            return
        body = BodyReader(
            receive, self._limit(scope), self.settings.body_timeout, self.settings.min_body_rate
        )

        async def send_unless_failed(message: Message) -> None:
            if body.failure is None:  # otherwise the response to a truncated body is wrong
                await sender(message)

        with suppress(BodyTooLarge, BodyTooSlow, ClientDisconnect):
            await self.app(scope, body.receive, send_unless_failed)
        if isinstance(body.failure, BodyTooLarge):
            await _too_large(body.max_bytes, headers)(scope, receive, sender)
        elif body.failure is not None:
            await _too_slow(body, headers)(scope, receive, sender)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request that is refused; None if it is accepted."""
        refused = site_refusal(scope["method"], headers, self.hosts)
        if refused is not None:
            return error_response(*refused)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self._limit(scope):
            return _too_large(self._limit(scope), headers)
        return None

    async def _signed_in(
        self, scope: Scope, headers: Headers, connected: tuple[str, int] | None
    ) -> Response | None:
        """Note whom the proxy has authenticated; return the response to a forged header."""
        if self.sign_in_header is None:
            return None
        try:
            user = self.sign_in_header.user(connected, headers)
        except ForgedHeader as error:
            address = connected[0][:64] if connected else "unknown"
            if self.sign_in_header.should_log(address):
                await run_in_threadpool(record_forged, scope["app"].state.store, address)
            return _response(403, str(error), "Use the address that you were given.", headers)
        if user is not None:
            scope.setdefault("state", {})["remote_user"] = user
        return None

    def _limit(self, scope: Scope) -> int:
        uploads = scope["path"].rstrip("/").endswith(UPLOAD_SUFFIXES)
        return self.settings.max_upload if uploads else self.settings.max_body


def _too_large(limit: int, headers: Headers) -> Response:
    detail = f"The request is too large; at most {limit:,} bytes are accepted."
    return _response(413, detail, "Go back and choose a smaller file.", headers)


def _too_slow(body: BodyReader, headers: Headers) -> Response:
    detail = f"The request was too slow: {body.bytes_read:,} bytes in {body.waited:.0f} seconds."
    response = _response(408, detail, "Go back and try again over a faster connection.", headers)
    response.headers["connection"] = "close"
    return response


def _response(status: int, detail: str, advice: str, headers: Headers) -> Response:
    """Return an error as text for a browser, or as JSON for a program."""
    if "text/html" in headers.get("accept", ""):
        return PlainTextResponse(f"{detail} {advice}", status)
    return error_response(status, detail)


def _with_headers(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds the default headers and the guest cookie to a response."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if scope["scheme"] == "https":  # according to the proxy; the server itself speaks HTTP
                headers.setdefault("strict-transport-security", "max-age=31536000")
            guest = scope.get("state", {}).get("guest")
            if guest:
                headers.append("set-cookie", guest_cookie(GUEST, guest, scope["scheme"] == "https"))
        await send(message)

    return send_with_headers


def _behind_proxy(scope: Scope) -> Scope:
    """Return the scope with the address and scheme that the proxy added last."""
    headers = Headers(scope=scope)
    client = headers.get("x-forwarded-for", "").split(",")[-1].strip()
    scheme = headers.get("x-forwarded-proto", "").split(",")[-1].strip().lower()
    changed = dict(scope)
    if client:
        changed["client"] = (client, 0)
    if scheme in ("http", "https"):
        changed["scheme"] = scheme
    return changed
