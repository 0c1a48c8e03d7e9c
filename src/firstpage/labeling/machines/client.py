"""Requests to an OpenAI-compatible chat endpoint, and parsed replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firstpage.core.http import (
    DamagedReply,
    HttpReply,
    KeyMask,
    RateLimiter,
    Retries,
    json_payload,
    post_json,
    reply_excerpt,
)

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


def post_chat(
    url: str, key: str, body: Mapping[str, Any], *, retries: Retries, limiter: RateLimiter
) -> ChatReply:
    """Send a request and return its reply; try again if the endpoint is busy."""
    reply = post_json(url, "/chat/completions", key, body, _chat_reply, retries, limiter)
    limiter.add_tokens(reply.input_tokens + reply.output_tokens)
    return reply


def _chat_reply(response: HttpReply, mask: KeyMask, seconds: float, attempts: int) -> ChatReply:
    payload = json_payload(response, mask)
    choices = payload.get("choices")
    if not isinstance(choices, list) or not choices:
        raise DamagedReply(f"no choices: {reply_excerpt(response, mask)}")
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise DamagedReply(f"a choice without a message: {reply_excerpt(response, mask)}")
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
