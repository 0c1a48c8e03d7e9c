"""Vectors of an OpenAI-compatible embeddings endpoint: `https://host/v1/embeddings#model`.

The key is read from the environment and sent to that address alone.  A budget of tokens, also of
the environment, ends a run before it is exceeded; the vectors that were stored before remain.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from firstpage.core import Array, DataError
from firstpage.core.http import (
    DamagedReply,
    HttpReply,
    KeyMask,
    RateLimiter,
    Retries,
    check_key,
    json_payload,
    post_json,
    reply_excerpt,
)
from firstpage.search.encoders.encoder import Encoder, with_prefix
from firstpage.search.encoders.model_files import settings_digest
from firstpage.search.encoders.options import EncoderOptions

KEYS = ("FIRSTPAGE_EMBEDDINGS_KEY", "OPENAI_API_KEY")  # environment variables; the first one counts
BUDGET = "FIRSTPAGE_EMBEDDINGS_TOKENS"  # environment variable: tokens that a process may send
BATCH_TEXTS, BATCH_CHARACTERS = 64, 100_000  # of one request
REQUESTS = 4  # at a time
DOCUMENTS = Retries(timeout=120.0, max_attempts=6, backoff=1.0, max_bytes=64 << 20)
QUERIES = Retries(timeout=10.0, max_attempts=2, backoff=0.2, max_bytes=64 << 20)  # a person waits
CHARACTERS_PER_TOKEN = 3  # to estimate the tokens of a request


def endpoint_encoder(name: str, base: str, options: EncoderOptions) -> Encoder:
    """Return the encoder of an address with the name of a model; one text is sent to it."""
    options.refuse_all_but(name, "query", "document")
    url, _, model = base.partition("#")
    if not model or not urlsplit(url).hostname:
        raise DataError(
            f"encoder {name}: write an endpoint with its model, such as "
            "http://127.0.0.1:8080/v1/embeddings#model."
        )
    if urlsplit(url).password is not None:
        raise DataError(
            f"an encoder's address must not contain a password; set {KEYS[0]} to the key."
        )
    key = next((os.environ[each] for each in KEYS if os.environ.get(each)), "")
    check_key(key)
    endpoint = EmbeddingsEndpoint(url, model, key, TokenBudget.of_environment())
    dimensions = endpoint.vectors(["dimensions"], QUERIES).shape[1]
    prefixes = (options.query or "", options.document or "")
    digest = settings_digest(
        kind="endpoint", url=url, model=model, prefixes=prefixes, dimensions=dimensions
    )
    return Encoder(
        name,
        digest,
        dimensions,
        with_prefix(prefixes[0], lambda texts: endpoint.vectors(texts, QUERIES)),
        with_prefix(prefixes[1], lambda texts: endpoint.vectors(texts, DOCUMENTS)),
    )


@dataclass
class TokenBudget:
    """Counts the tokens of a process; None is no limit."""

    limit: int | None = None
    spent: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of_environment(cls) -> TokenBudget:
        """Return the budget that the environment sets."""
        text = os.environ.get(BUDGET, "")
        if text and not (text.isascii() and text.isdecimal()):
            raise DataError(f"{BUDGET} must be a number of tokens; got {text!r}.")
        return cls(int(text) if text else None)

    def reserve(self, url: str, tokens: int) -> None:
        """Count the estimated tokens of a request; raise if they exceed the budget."""
        with self._lock:
            if self.limit is not None and self.spent + tokens > self.limit:
                raise DataError(
                    f"{url}: the budget of {self.limit:,} tokens ({BUDGET}) does not suffice: "
                    f"{self.spent:,} are spent, and the next request needs about {tokens:,}. Raise "
                    "it and run the command again."
                )
            self.spent += tokens

    def correct(self, estimate: int, tokens: int) -> None:
        """Replace the estimate of a request by the tokens that the endpoint counted."""
        with self._lock:
            self.spent += tokens - estimate


@dataclass(frozen=True)
class EmbeddingsEndpoint:
    """Sends texts in batches, several at a time; all threads wait if the endpoint asks for it."""

    url: str
    model: str
    key: str = field(repr=False)
    budget: TokenBudget = field(default_factory=TokenBudget)
    limiter: RateLimiter = field(default_factory=RateLimiter, repr=False)

    def vectors(self, texts: Sequence[str], retries: Retries) -> Array:
        """Return one vector per text; raise if one request fails for good."""
        batches = list(_batches(texts))
        if len(batches) == 1:
            parts = [self._request(batches[0], retries)]
        else:
            with ThreadPoolExecutor(min(REQUESTS, len(batches))) as pool:
                futures = [pool.submit(self._request, batch, retries) for batch in batches]
                try:
                    parts = [future.result() for future in futures]
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        widths = {part.shape[1] for part in parts}
        if len(widths) > 1:
            raise DataError(f"{self.url}: vectors of {sorted(widths)} dimensions in one run.")
        return np.concatenate(parts)

    def _request(self, texts: Sequence[str], retries: Retries) -> Array:
        estimate = sum(map(len, texts)) // CHARACTERS_PER_TOKEN + len(texts)
        self.budget.reserve(self.url, estimate)

        def read(response: HttpReply, mask: KeyMask, seconds: float, attempts: int) -> Array:
            payload = json_payload(response, mask)
            vectors = _vectors(payload, response, mask, len(texts))
            self.budget.correct(estimate, _tokens(payload, estimate))
            return vectors

        body = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        return post_json(self.url, "", self.key, body, read, retries, self.limiter)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == BATCH_TEXTS or size + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _vectors(payload: dict[str, Any], response: HttpReply, mask: KeyMask, count: int) -> Array:
    """Return the vectors of a reply in the order of the texts."""
    rows = payload.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DamagedReply(f"no vectors: {reply_excerpt(response, mask)}")
    if len(rows) != count:
        raise DamagedReply(f"{len(rows)} vectors for {count} texts")
    numbers = [row.get("index", position) for position, row in enumerate(rows)]
    if sorted(numbers, key=repr) != sorted(range(count), key=repr):
        raise DamagedReply(f"vectors with the numbers {numbers[:5]}.. instead of 0 to {count - 1}")
    order = sorted(range(count), key=numbers.__getitem__)
    try:
        vectors = np.array([rows[row]["embedding"] for row in order], np.float32)
    except (KeyError, ValueError, TypeError, OverflowError):
        raise DamagedReply("vectors that are not lists of numbers of equal length") from None
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise DamagedReply("vectors that are not lists of numbers of equal length")
    if not np.isfinite(vectors).all():
        raise DamagedReply("a vector that contains NaN or infinity")
    if not vectors.any(axis=1).all():
        raise DamagedReply("a vector of zeros")
    return vectors


def _tokens(payload: dict[str, Any], estimate: int) -> int:
    usage = payload.get("usage")
    tokens = usage.get("total_tokens", usage.get("prompt_tokens")) if isinstance(usage, dict) else 0
    return tokens if type(tokens) is int and tokens > 0 else estimate
