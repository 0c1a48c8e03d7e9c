"""Strategies by name: `heap`, `insertion(memory=pairs)`, `adaptive(budget=80)`."""

from __future__ import annotations

from typing import Any

from firstpage import names
from firstpage.labeling.strategies.adaptive import Adaptive
from firstpage.labeling.strategies.base import Strategy
from firstpage.labeling.strategies.every import EveryPair
from firstpage.labeling.strategies.grades import FiveGrade
from firstpage.labeling.strategies.sorting import (
    Heap,
    HeapClosure,
    HeapMemo,
    Insertion,
    QuickSort,
    SelectBest,
    Tournament,
)

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
STRATEGY_OF = {"grades": "five-grade", "lists": "pairs"}  # tools with one way to ask


def strategy(text: str | Strategy) -> Strategy:
    """The strategy that a text names; a strategy is itself."""
    if not isinstance(text, str):
        return text
    found: Strategy = names.build(text, STRATEGIES, "labelling strategy")
    return found
