"""Budgets of judging by a machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Budget:
    """What a machine may spend: answers, money and seconds.

    A question is started only if the largest price of a question so far is left for it and for
    each question under way, so the money spent exceeds the budget at most by the first questions.

    Parameters
    ----------
    max_answers : int, optional
        Number of questions, those of earlier runs included.
    max_price : float, optional
        Money, that of earlier runs included.
    max_seconds : float, optional
        Time of this run, from the first question.
    answers, price : int and float
        What earlier runs spent.
    """

    max_answers: int | None = None
    max_price: float | None = None
    max_seconds: float | None = None
    answers: int = 0
    price: float = 0.0
    clock: Callable[[], float] = time.monotonic
    exhausted: str | None = field(default=None, init=False)  # which budget ended the run
    _largest: float = field(default=0.0, init=False, repr=False)
    _started_at: float | None = field(default=None, init=False, repr=False)
    _pending: int = field(default=0, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def start_question(self) -> bool:
        """Reserve one question; return False if the budget does not allow it."""
        with self._lock:
            if self._started_at is None:
                self._started_at = self.clock()
            self.exhausted = self.exhausted or self._exhausted()
            if self.exhausted is None:
                self._pending += 1
            return self.exhausted is None

    def _exhausted(self) -> str | None:
        assert self._started_at is not None
        if self.max_answers is not None and self.answers + self._pending >= self.max_answers:
            return f"{self.max_answers} answers"
        reserved = (self._pending + 1) * self._largest
        spent = self.price + reserved
        if self.max_price is not None and (spent > self.max_price or self.price >= self.max_price):
            return f"a price of {self.max_price:g}"
        if self.max_seconds is not None and self.clock() - self._started_at >= self.max_seconds:
            return f"{self.max_seconds:g} seconds"
        return None

    def finish_question(self, price: float, answers: int = 1) -> None:
        """Count a question that was started with its answers, and what it cost."""
        with self._lock:
            self._pending -= 1
            self.answers += answers
            self.price += price
            self._largest = max(self._largest, price)
