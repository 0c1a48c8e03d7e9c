"""One request to an endpoint: bounded in time and size, without redirects or decompression."""

from __future__ import annotations

import http.client
import io
import socket
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from functools import cache, partial
from typing import Any

MAX_REPLY_BYTES = 4 << 20


class ExchangeError(Exception):
    """There is no complete reply; the message says why."""


@dataclass(frozen=True)
class HttpReply:
    """The status, headers and body of a reply; `oversize` says that the body was cut."""

    status: int
    headers: Message
    body: bytes
    oversize: bool


def exchange(request: urllib.request.Request, timeout: float) -> HttpReply:
    """Return the reply to a request, whatever its status; raise if it is not complete in time."""
    try:
        with _opener().open(request, timeout=timeout) as response:
            body = response.read(MAX_REPLY_BYTES + 1)
            return HttpReply(
                response.status, response.headers, body[:MAX_REPLY_BYTES],
                len(body) > MAX_REPLY_BYTES,
            )  # fmt: skip
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ExchangeError(_reason(error, timeout)) from None


def _reason(error: Exception, timeout: float) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"sent no complete reply within {timeout:g} s"
    if isinstance(cause, http.client.IncompleteRead):
        return "ended the connection before its reply was complete"
    if isinstance(cause, http.client.BadStatusLine | http.client.UnknownProtocol):
        return f"does not answer by HTTP: {cause}"
    return f"cannot be reached: {cause or type(cause).__name__}"


class _DeadlineReader(io.RawIOBase):
    """Reads a socket until a deadline, however slowly the bytes arrive."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._raw = sock.makefile("rb", buffering=0)
        self._sock, self._deadline = sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_seconds_until(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **settings: Any) -> None:
        super().__init__(sock, *args, **settings)
        self.fp.close()
        self.fp = io.BufferedReader(_DeadlineReader(sock, deadline))


class _Connection(http.client.HTTPConnection):
    """A connection that must be over when its timeout has passed."""

    def __init__(self, host: str, *, timeout: float, **settings: Any) -> None:
        super().__init__(host, timeout=timeout, **settings)
        self.deadline = time.monotonic() + timeout
        self.response_class = partial(_Response, deadline=self.deadline)  # type: ignore[assignment]

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(_seconds_until(self.deadline))  # for sending


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    pass


def _seconds_until(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_Connection, request)  # type: ignore[arg-type]


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_SecureConnection, request)  # type: ignore[arg-type]


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Returns every reply: redirects, which would send the key to another host, are an error."""

    def http_response(self, request: urllib.request.Request, response: Any) -> Any:
        return response

    https_response = http_response


@cache
def _opener() -> urllib.request.OpenerDirector:
    """Return the opener of all requests; it uses the proxies of the environment."""
    return urllib.request.build_opener(_Http, _Https, _AnyStatus)
