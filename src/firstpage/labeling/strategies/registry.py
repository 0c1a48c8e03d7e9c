"""Strategies by name: `heap`, `insertion(memory=pairs)`, `adaptive(budget=80)`."""

from __future__ import annotations

from typing import Any

from firstpage.core import DataError, Registry
from firstpage.labeling.strategies.adaptive import Adaptive
from firstpage.labeling.strategies.duels import Duels
from firstpage.labeling.strategies.exhaustive import EveryPair, FiveGrade
from firstpage.labeling.strategies.pools import Pools
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

STRATEGIES: dict[str, type[Any]] = {
    "adaptive": Adaptive,
    "heap": Heap,
    "heap-memo": HeapMemo,
    "heap-closure": HeapClosure,
    "tournament": Tournament,
    "insertion": Insertion,
    "quick-sort": QuickSort,
    "select-best": SelectBest,
    "pools": Pools,
    "duels": Duels,
    "five-grade": FiveGrade,
    "pairs": EveryPair,
}
REGISTRY = Registry("labeling strategy", STRATEGIES)
STRATEGY_OF = {"grades": "five-grade", "lists": "pairs"}  # tools with a fixed strategy


def strategy(text: str | Strategy) -> Strategy:
    """Return the strategy with this name; a strategy is returned as it is.

    Parameters
    ----------
    text : str or Strategy
        Name, with parameters in parentheses where needed: ``"heap"``, ``"adaptive(budget=80)"``.

    Returns
    -------
    Strategy
        The strategy.

    Raises
    ------
    FirstpageError
        If the name or a parameter is unknown, or a value is out of range.

    Examples
    --------
    >>> from firstpage.labeling.strategies.registry import strategy
    >>> strategy("adaptive(budget=80)").budget
    80
    """
    if not isinstance(text, str):
        return text
    created: Strategy = REGISTRY.create(text)
    return created


# The maximum number of documents per query.  The cost of a comparison hardly depends on it
# (`firstpage.labeling.belief`).  Every pair of n documents is n (n - 1) / 2 questions.  A grade per
# document costs almost nothing, but comparisons that refine m grades count m (m - 1) / 2 pairs.
MAX_COMPARED, MAX_PAIRED, MAX_GRADED, MAX_REFINED = 10_000, 100, 5000, 500


def max_documents(text: str | Strategy, refine: int = 0) -> int:
    """Return the maximum number of documents per query; `refine` adds comparisons to grades."""
    chosen = strategy(text)
    if isinstance(chosen, EveryPair):
        return MAX_PAIRED
    if isinstance(chosen, FiveGrade):
        return MAX_REFINED if refine else MAX_GRADED
    return MAX_COMPARED


def check_documents(query: str, count: int, text: str | Strategy, refine: int = 0) -> None:
    """Raise a DataError if a query has more documents than its strategy allows."""
    limit = max_documents(text, refine)
    if count <= limit:
        return
    chosen = strategy(text)
    noun = "lists" if isinstance(chosen, EveryPair) else "documents"
    advice = f"pool to a smaller depth (--depth {limit}, or the best {limit:,} by a score)"
    if isinstance(chosen, EveryPair):
        advice = f"keep {limit} lists of it"
    elif limit < MAX_COMPARED:
        advice += f", or compare them (--tool pairs takes {MAX_COMPARED:,})"
    raise DataError(
        f"query {query!r} has {count:,} {noun}, and {text} takes at most {limit:,} per query; "
        f"{advice}."
    )
