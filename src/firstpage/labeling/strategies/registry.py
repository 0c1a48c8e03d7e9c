"""Strategies by name: `heap`, `insertion(memory=pairs)`, `adaptive(budget=80)`."""

from __future__ import annotations

from typing import Any

from firstpage.errors import DataError
from firstpage.labeling.strategies.adaptive import Adaptive
from firstpage.labeling.strategies.exhaustive import EveryPair, FiveGrade
from firstpage.labeling.strategies.sorting import (
    Heap,
    HeapClosure,
    HeapMemo,
    Insertion,
    QuickSort,
    SelectBest,
    Tournament,
)
from firstpage.labeling.strategies.strategy import Strategy
from firstpage.registry import Registry

STRATEGIES: dict[str, type[Any]] = {
    "adaptive": Adaptive,
    "heap": Heap,
    "heap-memo": HeapMemo,
    "heap-closure": HeapClosure,
    "tournament": Tournament,
    "insertion": Insertion,
    "quick-sort": QuickSort,
    "select-best": SelectBest,
    "five-grade": FiveGrade,
    "pairs": EveryPair,
}
REGISTRY = Registry("labeling strategy", STRATEGIES)
STRATEGY_OF = {"grades": "five-grade", "lists": "pairs"}  # tools with one way to ask


def strategy(text: str | Strategy) -> Strategy:
    """The strategy that a text names; a strategy is itself."""
    if not isinstance(text, str):
        return text
    found: Strategy = REGISTRY.create(text)
    return found


# Documents per query.  A belief about n documents is three matrices of n x n numbers, updated by
# every answer and fitted anew at a query's end: 500 documents take seconds then, 10,000 gigabytes.
# Every pair of n is n (n - 1) / 2 questions; a grade per document costs next to nothing.
MAX_COMPARED, MAX_PAIRED, MAX_GRADED = 500, 100, 5000


def max_documents(text: str | Strategy, refine: int = 0) -> int:
    """Return how many documents of one query a strategy takes; `refine` compares some after it."""
    chosen = strategy(text)
    if isinstance(chosen, EveryPair):
        return MAX_PAIRED
    return MAX_GRADED if isinstance(chosen, FiveGrade) and not refine else MAX_COMPARED


def check_documents(query: str, count: int, text: str | Strategy, refine: int = 0) -> None:
    """Refuse a query with more documents than its strategy takes."""
    most = max_documents(text, refine)
    if count <= most:
        return
    chosen = strategy(text)
    what = "lists" if isinstance(chosen, EveryPair) else "documents"
    advice = f"pool to a smaller depth (--depth {most}, or the best {most:,} by a score)"
    if isinstance(chosen, EveryPair):
        advice = f"keep {most} lists of it"
    elif most < MAX_GRADED:
        advice += f", or grade them (--tool grades takes {MAX_GRADED:,})"
    raise DataError(
        f"query {query!r} has {count:,} {what}, and {text} takes at most {most:,} per query; "
        f"{advice}."
    )
