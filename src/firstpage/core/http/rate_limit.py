"""Rates of requests and tokens that an endpoint allows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from firstpage.core.errors import DataError

MINUTE = 60.0


class Stopped(Exception):
    """Judging was stopped while a request waited for its turn."""


@dataclass
class RateLimiter:
    """Spaces the requests of all threads, so that an endpoint's rates are not exceeded.

    Parameters
    ----------
    requests_per_minute, tokens_per_minute : float, optional
        The rates; None for no limit.  Tokens are counted when a reply is received.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    clock: Callable[[], float] = time.monotonic
    _free_at: float = field(default=0.0, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            rate = getattr(self, name)
            if rate is not None and not rate > 0:
                raise DataError(f"{name} must be positive; got {rate!r}.")

    def wait_turn(self) -> None:
        """Wait until the next request may be sent; raise `Stopped` if judging is stopped."""
        while True:
            with self._lock:
                now = self.clock()
                if now >= self._free_at:
                    if self.requests_per_minute is not None:
                        self._free_at = now + MINUTE / self.requests_per_minute
                    break
                delay = self._free_at - now
            self.sleep(delay)
        if self._stopped.is_set():
            raise Stopped

    def add_tokens(self, count: int) -> None:
        """Count the tokens of a reply; later requests wait accordingly."""
        if self.tokens_per_minute is not None:
            with self._lock:
                start = max(self._free_at, self.clock())
                self._free_at = start + MINUTE * count / self.tokens_per_minute

    def pause(self, seconds: float) -> None:
        """Let all threads wait, since the endpoint asked for it."""
        with self._lock:
            self._free_at = max(self._free_at, self.clock() + seconds)

    def sleep(self, seconds: float) -> None:
        """Wait; return early with `Stopped` if judging is stopped."""
        if self._stopped.wait(seconds):
            raise Stopped

    def stop(self) -> None:
        """End all waiting."""
        self._stopped.set()
