"""Requests to the endpoints of models: keys that are not repeated, retries, deadlines, replies."""

from __future__ import annotations

import http.client
import io
import json
import random
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any, TypeVar

from firstpage.core.errors import DataError
from firstpage.core.http.key_mask import KeyMask
from firstpage.core.http.rate_limit import RateLimiter

Reply = TypeVar("Reply")
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


def exchange(
    request: urllib.request.Request, timeout: float, max_bytes: int | None = None
) -> HttpReply:
    """Return the reply to a request, whatever its status; raise if it is not complete in time."""
    max_bytes = MAX_REPLY_BYTES if max_bytes is None else max_bytes
    try:
        with _opener().open(request, timeout=timeout) as response:
            body = response.read(max_bytes + 1)
            return HttpReply(
                response.status, response.headers, body[:max_bytes], len(body) > max_bytes
            )
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


RETRIED_STATUSES = (408, 409, 429, 500, 502, 503, 504, 529)
BUSY_STATUSES = (429, 503, 529)  # all threads wait, not only the one that was answered
MAX_RETRY_AFTER = 120.0  # seconds that an endpoint may ask to wait


class DamagedReply(Exception):
    """A reply is not that of such an endpoint; the message says what it is."""


@dataclass(frozen=True)
class Retries:
    """How long a reply may take, how many requests are sent for it, and the first wait between.

    The wait doubles from attempt to attempt and varies at random by half, so that several threads
    do not return at the same moment; an endpoint's `Retry-After` takes precedence.
    """

    timeout: float
    max_attempts: int
    backoff: float
    max_bytes: int | None = None  # of a reply; None: `MAX_REPLY_BYTES`


def post_json(
    url: str,
    path: str,
    key: str,
    body: Mapping[str, Any],
    read: Callable[[HttpReply, KeyMask, float, int], Reply],
    retries: Retries,
    limiter: RateLimiter,
    scheme: str = "Bearer",
) -> Reply:
    """Send a request and return what `read` makes of the reply, its seconds and attempts.

    The request is sent again if the endpoint is busy, or `read` raises `DamagedReply`.  `url` is
    what messages call the endpoint, `scheme` that of the key; without scheme and key, none is sent.
    """
    headers = {"Content-Type": "application/json"}
    if scheme or key:
        headers["Authorization"] = f"{scheme} {key}"
    request = urllib.request.Request(f"{url.rstrip('/')}{path}", json.dumps(body).encode(), headers)
    mask = KeyMask(key)
    for attempt in range(1, retries.max_attempts + 1):
        limiter.wait_turn()
        began = time.perf_counter()
        wait = retries.backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        try:
            response = exchange(request, retries.timeout, retries.max_bytes)
            if 200 <= response.status < 300:
                return read(response, mask, time.perf_counter() - began, attempt)
            problem = f"answers {response.status}{_explanation(response, mask)}"
            if response.status not in RETRIED_STATUSES:
                raise DataError(mask(f"{url} {problem}"))
            if attempt < retries.max_attempts:
                wait = _retry_after(url, response, wait)
            if response.status in BUSY_STATUSES:
                limiter.pause(wait)
        except ExchangeError as error:
            problem = mask.excerpt(str(error))
        except DamagedReply as error:
            problem = f"answers {response.status} with {error}"
        if attempt < retries.max_attempts:
            limiter.sleep(wait)
    if retries.max_attempts < 1:
        raise DataError(f"max_attempts must be at least 1; got {retries.max_attempts}.")
    attempts = f"{retries.max_attempts} attempt{'s' * (retries.max_attempts > 1)}"
    raise DataError(mask(f"{url} {problem} (after {attempts})."))


def _explanation(response: HttpReply, mask: KeyMask) -> str:
    """Return what an error says, as a part of a sentence."""
    if 300 <= response.status < 400:
        target = mask.excerpt(response.headers.get("Location", ""))
        return (
            f" and redirects to {target!r}; redirects are not followed, since the API key would be "
            "sent there. Give the address to which it redirects if you trust it."
        )
    text = mask.excerpt(response.body.decode("utf-8", "replace"))
    return f": {text}" if text else " without an explanation."


def _retry_after(url: str, response: HttpReply, default: float) -> float:
    """Return the seconds that the endpoint asks to wait: a number, or a date."""
    text = response.headers.get("Retry-After")
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return default
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (aware - datetime.now(UTC)).total_seconds()
    if seconds > MAX_RETRY_AFTER:
        raise DataError(
            f"{url} answers {response.status} and asks to wait {seconds:.0f} s; run the command "
            "again then. Nothing is lost."
        )
    return seconds if seconds >= 0 else 0.0  # not a number: 0


def json_payload(response: HttpReply, mask: KeyMask) -> dict[str, Any]:
    """Return the JSON object of a reply; raise if that is an error."""
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise DamagedReply(
            f"a reply that is compressed ({mask.excerpt(encoding)}), which was not requested"
        )
    if response.oversize:
        raise DamagedReply(f"a reply of more than {len(response.body) >> 20} MiB")
    if not response.body:
        raise DamagedReply("an empty reply")
    try:
        payload = json.loads(response.body)
    except (ValueError, RecursionError):
        raise DamagedReply(f"a reply that is not JSON: {reply_excerpt(response, mask)}") from None
    if not isinstance(payload, dict):
        raise DamagedReply(f"a reply that is not an object: {reply_excerpt(response, mask)}")
    if error := payload.get("error"):
        text = error.get("message") if isinstance(error, dict) else error
        raise DamagedReply(f"an error: {mask.excerpt(str(text or error))}")
    return payload


def reply_excerpt(response: HttpReply, mask: KeyMask) -> str:
    """Return the beginning of a reply, quoted, for messages."""
    return repr(mask.excerpt(response.body.decode("utf-8", "replace")))
