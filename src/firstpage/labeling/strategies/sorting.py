"""Strategies that are sorting algorithms: they trust every answer.

Each is a plain algorithm over `Compare(a, b)`, which receives 1 (a is better), 0 or -1; a tie
means "not better" wherever a decision is due.  What need not be asked is left out around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Literal, TypeVar

from firstpage.errors import DataError
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Questions,
    TopK,
    TopKTask,
    tied_runs,
)

Memory = Literal["pairs", "closure"] | None
Result = TypeVar("Result")
Comparisons = Generator[Compare, int, Result]  # yields pairs, receives outcomes


class Knowledge:
    """Answers so far, and what they say about a pair.

    `memory`: None asks every pair as often as the algorithm wants; "pairs" never twice;
    "closure" also takes a > c from a > b and b > c, over strict answers alone, since ties are not
    transitive.  An answer that would close a circle stands for its own pair only.  Whatever the
    memory: one bad document loses against one that is not, two are equal; and each answer from
    before the strategy began serves once.
    """

    def __init__(
        self, n: int, memory: Memory = None, past: Iterable[AnsweredQuestion] = ()
    ) -> None:
        self.memory = memory
        self.bad: frozenset[int] = frozenset()
        self.implied = 0  # questions that a memory or the closure answered
        self.pruned = 0  # questions that "bad" answered
        self._direct: dict[tuple[int, int], int] = {}
        self._skipped: set[tuple[int, int]] = set()
        self._before: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        self._above = [0] * n  # bits: documents known to be better
        self._below = [0] * n
        for question, answer in past:
            if isinstance(question, Compare):
                self.learn(question, answer)
                if not answer.skipped:
                    self._before[question.pair].append(_from_low(question, answer.outcome))

    @property
    def ties(self) -> set[tuple[int, int]]:
        """Pairs whose last answer was that neither is better; a skipped pair is no tie."""
        return {pair for pair, outcome in self._direct.items() if outcome == 0}

    def learn(self, question: Compare, answer: Answer) -> None:
        """Keep an answer; a skipped pair is only not asked again."""
        self.bad |= answer.bad
        if answer.skipped:
            self._skipped.add(question.pair)
            return
        self._direct[question.pair] = _from_low(question, answer.outcome)
        if answer.outcome == 0 or self.memory != "closure":
            return
        high, low = question.first, question.second
        if answer.outcome < 0:
            high, low = low, high
        if high == low or self._above[high] >> low & 1:
            return  # it contradicts what is known
        over, under = self._above[high] | 1 << high, self._below[low] | 1 << low
        for document in _bits(under):
            self._above[document] |= over
        for document in _bits(over):
            self._below[document] |= under

    def outcome(self, question: Compare) -> int | None:
        """What is known of a pair: 1, 0 or -1 as of its first document; None: ask."""
        before = self._before.get(question.pair)
        if before:
            self.implied += 1
            return _from_low(question, before.popleft())
        if self.memory is not None and question.pair in self._direct:
            self.implied += 1
            return _from_low(question, self._direct[question.pair])
        if self.memory is not None and question.pair in self._skipped:
            self.implied += 1
            return 0
        if self._above[question.second] >> question.first & 1:
            self.implied += 1
            return 1
        if self._below[question.second] >> question.first & 1:
            self.implied += 1
            return -1
        if question.first in self.bad or question.second in self.bad:
            self.pruned += 1
            return (question.second in self.bad) - (question.first in self.bad)
        return None


def thrifty(algorithm: Comparisons[Result], known: Knowledge) -> Generator[Compare, Answer, Result]:
    """Run an algorithm, asking only what is not known."""
    try:
        question = next(algorithm)
        while True:
            outcome = known.outcome(question)
            if outcome is None:
                answer = yield question
                known.learn(question, answer)
                outcome = answer.outcome
            question = algorithm.send(outcome)
    except StopIteration as end:
        found: Result = end.value
        return found


def _from_low(question: Compare, outcome: int) -> int:
    """The outcome as of the pair's smaller number; its own inverse."""
    return outcome if question.first <= question.second else -outcome


def _bits(word: int) -> Iterable[int]:
    while word:
        low = word & -word
        yield low.bit_length() - 1
        word ^= low


Entry = tuple[int, int, int]  # of a knock-out: documents at or below it, its turn, the document
MEMORIES = (None, "pairs", "closure")


@dataclass(frozen=True)
class Sorting(ABC):
    """What sorting strategies share: the memory, ties and bad documents in the result."""

    memory: Memory = "closure"

    def __post_init__(self) -> None:
        if self.memory not in MEMORIES:
            raise DataError(f"memory is none, pairs or closure; got {self.memory!r}.")

    def questions(self, task: TopKTask) -> Questions:
        """Ask until the top k is known."""
        known = Knowledge(task.n, self.memory, task.past)
        order = yield from thrifty(self._algorithm(task), known)
        order.sort(key=known.bad.__contains__)  # stable: bad ones last
        return TopK.from_order(order, task.n, bad=known.bad, tied=tied_runs(order, known.ties))

    @abstractmethod
    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        """The algorithm on this task's documents; it returns the top k, best first."""


@dataclass(frozen=True)
class Heap(Sorting):
    """The paper's Algorithm 1: a min-heap of the best k, whose root meets every other document.

    With memory=None exactly as printed (Niu et al. 2012): 150.8 questions on average for 10 of
    50 documents; "pairs" asks no pair twice (135.8), "closure" nothing that follows (130.4).
    """

    memory: Memory = None

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return heap(task.shuffled(), task.top)


@dataclass(frozen=True)
class HeapMemo(Heap):
    """The heap, never asking a pair twice."""

    memory: Memory = "pairs"


@dataclass(frozen=True)
class HeapClosure(Heap):
    """The heap, asking nothing that follows from strict answers."""

    memory: Memory = "closure"


@dataclass(frozen=True)
class Tournament(Sorting):
    """A knock-out: the best wins it, and each next is sought among those who lost to winners only.

    It asks about n - 1 + (k - 1) log2(n) questions: 91 for 10 of 50, where none can promise
    fewer than 90.
    """

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return tournament(task.shuffled(), task.top)


@dataclass(frozen=True)
class Insertion(Sorting):
    """Binary insertion into the sorted top k; a document is first held against the k-th.

    With a prior, documents come in its order and their place is sought from the bottom up, so
    that a good prior saves most questions.
    """

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return insertion(task.by_prior(), task.top, gallop=task.prior is not None)


@dataclass(frozen=True)
class QuickSort(Sorting):
    """Sort all documents by random pivots (Ailon 2008): n log n questions, whatever k is.

    `whole=False` leaves out what lies below the k-th place.
    """

    whole: bool = True

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return quick_sort(task.shuffled(), task.top, self.whole)


@dataclass(frozen=True)
class SelectBest(Sorting):
    """Find the best of all, then the best of the others, k times (after Song et al. 2011)."""

    memory: Memory = None

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return select_best(task.shuffled(), task.top)


def heap(items: list[int], k: int) -> Comparisons[list[int]]:
    """heap[0] is the least relevant of the k best so far; every question is "is a less than b?"."""
    kept = items[:k]
    for at in reversed(range(k // 2)):
        yield from _sift(kept, at, k)
    for item in items[k:]:
        if (yield Compare(kept[0], item)) < 0:
            kept[0] = item
            yield from _sift(kept, 0, k)
    worst_first = []
    for size in reversed(range(k)):
        worst_first.append(kept[0])
        kept[0] = kept[size]
        yield from _sift(kept, 0, size)
    return worst_first[::-1]


def _sift(kept: list[int], at: int, size: int) -> Comparisons[None]:
    """Let kept[at] sink below every child that is less relevant; two questions a level."""
    while (child := 2 * at + 1) < size:
        if child + 1 < size and (yield Compare(kept[child + 1], kept[child])) < 0:
            child += 1
        if (yield Compare(kept[child], kept[at])) >= 0:
            return
        kept[at], kept[child] = kept[child], kept[at]
        at = child


def tournament(items: list[int], k: int) -> Comparisons[list[int]]:
    """Rounds of two; the winner's direct losers are the candidates for the next place.

    Candidates with the fewest documents below them meet first, as in Huffman's code, which keeps
    the tree shallow whatever n is.
    """
    beaten: dict[int, list[Entry]] = {item: [] for item in items}
    roots: list[Entry] = [(1, turn, item) for turn, item in enumerate(items)]
    turns = count(len(items))  # among equals, who waits longest comes first
    order: list[int] = []
    while len(order) < k:
        heapify(roots)
        while len(roots) > 1:
            first, second = heappop(roots), heappop(roots)
            winner, loser = first, second
            if (yield Compare(first[2], second[2])) < 0:
                winner, loser = second, first
            beaten[winner[2]].append(loser)
            heappush(roots, (winner[0] + loser[0], next(turns), winner[2]))
        order.append(roots[0][2])
        roots = beaten[order[-1]]
    return order


def insertion(items: list[int], k: int, gallop: bool = False) -> Comparisons[list[int]]:
    """Keep the best k sorted, best first; each item is held against the last of them first."""
    kept: list[int] = []
    for item in items:
        low, high = 0, len(kept)
        if len(kept) == k:
            if (yield Compare(item, kept[-1])) <= 0:
                continue
            high -= 1
        step = 1
        while gallop and low < high:  # the place is near the end if the prior is any good
            probe = max(high - step, low)
            if (yield Compare(item, kept[probe])) <= 0:
                low = probe + 1
                break
            high, step = probe, step * 2
        while low < high:
            middle = (low + high) // 2
            if (yield Compare(item, kept[middle])) > 0:
                high = middle
            else:
                low = middle + 1
        kept.insert(low, item)
        del kept[k:]
    return kept


def quick_sort(items: list[int], k: int, whole: bool) -> Comparisons[list[int]]:
    """Parts still to sort wait on a stack, the best on top."""
    order: list[int] = []
    waiting = [items]
    while waiting and (whole or len(order) < k):
        part = waiting.pop()
        if len(part) < 2:
            order += part
            continue
        pivot = part[0]
        better: list[int] = []
        worse: list[int] = []
        for item in part[1:]:
            outcome = yield Compare(item, pivot)
            (better if outcome > 0 else worse).append(item)
        waiting += [worse, [pivot], better]
    return order[:k]


def select_best(items: list[int], k: int) -> Comparisons[list[int]]:
    """k passes over what is left."""
    left = list(items)
    order = []
    for _ in range(k):
        best = 0
        for at in range(1, len(left)):
            if (yield Compare(left[at], left[best])) > 0:
                best = at
        order.append(left.pop(best))
    return order
