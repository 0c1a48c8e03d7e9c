"""Requests to an OpenAI-compatible chat endpoint: retries, waiting, and parsed replies."""

from __future__ import annotations

import http.client
import io
import json
import random
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any

from firstpage.core import DataError
from firstpage.labeling.machines.limits import RateLimiter
from firstpage.labeling.machines.masking import KeyMask

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
                response.status,
                response.headers,
                body[:MAX_REPLY_BYTES],
                len(body) > MAX_REPLY_BYTES,
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
MAX_TOKENS = 10**9  # of one request; more is not a count


@dataclass(frozen=True)
class ChatReply:
    """A reply of a chat endpoint, without the API key if it repeats that.

    `seconds` is the latency of the request that was answered, `attempts` the number of requests;
    `truncated` says that the endpoint cut the reply, `counted` that it reported its tokens, and
    `refused` that the text is a refusal.
    """

    text: str
    input_tokens: int
    output_tokens: int
    seconds: float
    attempts: int = 1
    truncated: bool = False
    counted: bool = True
    refused: bool = False


class _DamagedReplyError(Exception):
    """A reply is not that of a chat endpoint; the message says what it is."""


def post_chat(
    url: str,
    key: str,
    body: Mapping[str, Any],
    *,
    timeout: float,
    max_attempts: int,
    backoff: float,
    limiter: RateLimiter,
) -> ChatReply:
    """Send a request and return its reply; retry if the endpoint is busy or its reply is damaged.

    The wait doubles from attempt to attempt and varies at random by half, so that several threads
    do not return at the same moment; an endpoint's `Retry-After` takes precedence.
    """
    request = urllib.request.Request(
        f"{url.rstrip('/')}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    mask = KeyMask(key)
    for attempt in range(1, max_attempts + 1):
        limiter.wait_turn()
        began = time.perf_counter()
        wait = backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        try:
            response = exchange(request, timeout)
            if 200 <= response.status < 300:
                reply = _chat_reply(response, mask, time.perf_counter() - began, attempt)
                limiter.add_tokens(reply.input_tokens + reply.output_tokens)
                return reply
            problem = f"answers {response.status}{_explanation(response, mask)}"
            if response.status not in RETRIED_STATUSES:
                raise DataError(mask(f"{url} {problem}"))
            if attempt < max_attempts:
                wait = _retry_after(url, response, wait)
            if response.status in BUSY_STATUSES:
                limiter.pause(wait)
        except ExchangeError as error:
            problem = mask.excerpt(str(error))
        except _DamagedReplyError as error:
            problem = f"answers {response.status} with {error}"
        if attempt < max_attempts:
            limiter.sleep(wait)
    if max_attempts < 1:
        raise DataError(f"max_attempts must be at least 1; got {max_attempts}.")
    attempts = f"{max_attempts} attempt{'s' * (max_attempts > 1)}"
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


def _chat_reply(response: HttpReply, mask: KeyMask, seconds: float, attempts: int) -> ChatReply:
    payload = _payload(response, mask)
    error = payload.get("error")
    if error:
        text = error.get("message") if isinstance(error, dict) else error
        raise _DamagedReplyError(f"an error: {mask.excerpt(str(text or error))}")
    choices = payload.get("choices")
    if not isinstance(choices, list) or not choices:
        raise _DamagedReplyError(f"no choices: {_excerpt(response, mask)}")
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _DamagedReplyError(f"a choice without a message: {_excerpt(response, mask)}")
    text, refused = _text(message)
    ending = choice.get("finish_reason")
    tokens, counted = _tokens(payload.get("usage"))
    return ChatReply(
        mask.stored(text),
        *tokens,
        seconds,
        attempts,
        ending == "length",
        counted,
        refused or ending == "content_filter",
    )


def _payload(response: HttpReply, mask: KeyMask) -> dict[str, Any]:
    """Return the JSON object of a reply."""
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise _DamagedReplyError(
            f"a reply that is compressed ({mask.excerpt(encoding)}), which was not requested"
        )
    if response.oversize:
        raise _DamagedReplyError(f"a reply of more than {MAX_REPLY_BYTES >> 20} MiB")
    if not response.body:
        raise _DamagedReplyError("an empty reply")
    try:
        payload = json.loads(response.body)
    except (ValueError, RecursionError):
        raise _DamagedReplyError(f"a reply that is not JSON: {_excerpt(response, mask)}") from None
    if not isinstance(payload, dict):
        raise _DamagedReplyError(f"a reply that is not an object: {_excerpt(response, mask)}")
    return payload


def _excerpt(response: HttpReply, mask: KeyMask) -> str:
    return repr(mask.excerpt(response.body.decode("utf-8", "replace")))


def _text(message: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text of a message, and whether it is a refusal; parts of other kinds are left out.

    Models write their reasoning into parts or fields of its own, which are not an answer.
    """
    refusal, content = message.get("refusal"), message.get("content")
    if isinstance(refusal, str) and refusal:
        return refusal, True
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str)), False
    return (content if isinstance(content, str) else ""), False


def _tokens(usage: Any) -> tuple[tuple[int, int], bool]:
    """Return the tokens that were read and written, and whether the endpoint reports them."""
    counts = [
        usage.get(name) if isinstance(usage, dict) else None
        for name in ("prompt_tokens", "completion_tokens")
    ]
    valid = [n if isinstance(n, int) and 0 <= n <= MAX_TOKENS else None for n in counts]
    return (valid[0] or 0, valid[1] or 0), None not in valid
