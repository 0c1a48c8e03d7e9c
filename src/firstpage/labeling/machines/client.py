"""Requests to an OpenAI-compatible chat endpoint: retries, waiting, and parsed replies."""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from firstpage.errors import DataError
from firstpage.labeling.machines.limits import RateLimiter

RETRIED_STATUSES = (408, 409, 429, 500, 502, 503, 504, 529)
BUSY_STATUSES = (429, 503, 529)  # all threads wait, not only the one that was answered
MAX_RETRY_AFTER = 120.0  # seconds that an endpoint may ask to wait
MAX_REPLY_BYTES = 4 << 20


@dataclass(frozen=True)
class ChatReply:
    """A reply of a chat endpoint.

    `seconds` is the latency of the request that was answered, `attempts` the number of requests;
    `truncated` says that the endpoint cut the reply, and `counted` that it reported its tokens.
    """

    text: str
    input_tokens: int
    output_tokens: int
    seconds: float
    attempts: int = 1
    truncated: bool = False
    counted: bool = True


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
    for attempt in range(1, max_attempts + 1):
        limiter.wait_turn()
        began = time.perf_counter()
        wait = backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                payload = json.loads(response.read(MAX_REPLY_BYTES))
            reply = _chat_reply(payload, time.perf_counter() - began, attempt)
            limiter.add_tokens(reply.input_tokens + reply.output_tokens)
            return reply
        except urllib.error.HTTPError as error:
            if attempt == max_attempts or error.code not in RETRIED_STATUSES:
                text = error.read(300).decode("utf-8", "replace")
                raise DataError(f"{url} answers {error.code}: {' '.join(text.split())}") from None
            wait = _retry_after(url, error, wait)
            if error.code in BUSY_STATUSES:
                limiter.pause(wait)
        except (OSError, ValueError, http.client.HTTPException) as error:
            if attempt == max_attempts:
                reason = str(error) or type(error).__name__
                raise DataError(
                    f"{url} cannot be reached: {reason} (after {attempt} attempts)."
                ) from None
        limiter.sleep(wait)
    raise DataError(f"max_attempts must be at least 1; got {max_attempts}.")


def _retry_after(url: str, error: urllib.error.HTTPError, default: float) -> float:
    """Return the seconds that the endpoint asks to wait: a number, or a date."""
    text = error.headers.get("Retry-After")
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
            f"{url} answers {error.code} and asks to wait {seconds:.0f} s; run the command again "
            "then. Nothing is lost."
        ) from None
    return max(seconds, 0.0)


def _chat_reply(response: Any, seconds: float, attempts: int) -> ChatReply:
    try:
        choice = response["choices"][0]
        text = choice["message"]["content"] or ""
        usage = response.get("usage") or {}
        tokens = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
        truncated = choice.get("finish_reason") == "length"
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise ValueError("its reply is not that of a chat endpoint") from None
    return ChatReply(str(text), *tokens, seconds, attempts, truncated, bool(usage))
