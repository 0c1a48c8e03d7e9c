"""Requests to an OpenAI-compatible chat endpoint: retries, waiting, and parsed replies."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from firstpage.errors import DataError
from firstpage.labeling.machines.exchange import (
    MAX_REPLY_BYTES,
    ExchangeError,
    HttpReply,
    exchange,
)
from firstpage.labeling.machines.limits import RateLimiter
from firstpage.labeling.machines.masking import KeyMask

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
    url: str, key: str, body: Mapping[str, Any], *, timeout: float, max_attempts: int,
    backoff: float, limiter: RateLimiter,
) -> ChatReply:  # fmt: skip
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
        mask.stored(text), *tokens, seconds, attempts, ending == "length", counted,
        refused or ending == "content_filter",
    )  # fmt: skip


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
