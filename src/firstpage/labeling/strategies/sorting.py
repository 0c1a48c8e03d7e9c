"""Sorting strategies: comparison sorts and selections that take every answer as correct.

Each is a plain algorithm over `Compare(a, b)`, which receives 1 (a is better), 0 or -1; a tie
means "not better" at every decision.  A wrapper answers the comparisons that are already known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Literal, TypeVar

from firstpage.core import DataError
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Questions,
    TopKTask,
)
from firstpage.labeling.strategies.ties import Outcomes, top_k_of

Memory = Literal["pairs", "closure"] | None
Result = TypeVar("Result")
Comparisons = Generator[Compare, int, Result]  # yields pairs, receives outcomes


class KnownOutcomes:
    """The answers so far, and the outcomes of pairs that follow from them.

    With memory None every comparison is asked as often as the algorithm makes it; with "pairs"
    no pair is asked twice; with "closure" a > b and b > c also imply a > c, over strict answers
    only, since ties are not transitive.  An answer that contradicts the closure counts for its own
    pair only.  With every memory, a bad document loses to one that is not bad, two bad documents
    are equal, and each answer from before the strategy started is used once, as is each skip.
    """

    def __init__(
        self, n: int, memory: Memory = None, past: Iterable[AnsweredQuestion] = ()
    ) -> None:
        self.memory = memory
        self.bad: frozenset[int] = frozenset()
        self._direct: dict[tuple[int, int], int] = {}
        self._skipped: set[tuple[int, int]] = set()
        self._past: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        self._above = [0] * n  # bit sets: documents known to be better
        self._below = [0] * n
        for question, answer in past:
            if isinstance(question, Compare):
                self.learn(question, answer)
                outcome = 0 if answer.skipped else _from_low(question, answer.outcome)
                self._past[question.pair].append(outcome)

    @property
    def outcomes(self) -> Outcomes:
        """The last answer of each pair, for its smaller document; a skipped pair has none."""
        return self._direct

    @property
    def worse(self) -> tuple[int, ...]:
        """Per document, the bit set of those known to be worse; with the memory "closure"."""
        return tuple(self._below)

    def learn(self, question: Compare, answer: Answer) -> None:
        """Record an answer; a skipped pair is recorded as not to be asked again."""
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
            return  # the answer contradicts the closure
        over, under = self._above[high] | 1 << high, self._below[low] | 1 << low
        for document in _bits(under):
            self._above[document] |= over
        for document in _bits(over):
            self._below[document] |= under

    def outcome(self, question: Compare) -> int | None:
        """Return the known outcome for the first document: 1, 0 or -1; None if it must be asked."""
        first, second, pair = question.first, question.second, question.pair
        past = self._past.get(pair)
        if past:
            return _from_low(question, past.popleft())
        if self.memory is not None and pair in self._direct:
            return _from_low(question, self._direct[pair])
        if self.memory is not None and pair in self._skipped:
            return 0
        if self._above[second] >> first & 1:
            return 1
        if self._below[second] >> first & 1:
            return -1
        if first in self.bad or second in self.bad:
            return (second in self.bad) - (first in self.bad)
        return None


def ask_unknown(
    algorithm: Comparisons[Result], known: KnownOutcomes
) -> Generator[Compare, Answer, Result]:
    """Run an algorithm and yield only the comparisons whose outcome is not known."""
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
        result: Result = end.value
        return result


def _from_low(question: Compare, outcome: int) -> int:
    """Return the outcome for the smaller document of the pair; the function is its own inverse."""
    return outcome if question.first <= question.second else -outcome


def _bits(word: int) -> Iterable[int]:
    """Yield the positions of the bits that are set."""
    while word:
        low = word & -word
        yield low.bit_length() - 1
        word ^= low


Entry = tuple[int, int, int]  # in a knockout tree: size of the subtree, arrival number, document
MEMORIES = (None, "pairs", "closure")


@dataclass(frozen=True)
class Sorting(ABC):
    """Base of the sorting strategies: handles the memory, ties and bad documents.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default "closure"
        Which comparisons are answered without asking.
    """

    memory: Memory = "closure"

    def __post_init__(self) -> None:
        if self.memory not in MEMORIES:
            raise DataError(f"memory must be none, pairs or closure; got {self.memory!r}.")

    def questions(self, task: TopKTask) -> Questions:
        """Yield comparisons and receive answers; return the top k."""
        known = KnownOutcomes(task.n, self.memory, task.past)
        order = yield from ask_unknown(self._algorithm(task), known)
        order.sort(key=known.bad.__contains__)  # stable: bad documents last
        return top_k_of(order, task.n, known.outcomes, known.bad)

    @abstractmethod
    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        """Return the algorithm on this task's documents; it returns the top k, best first."""


@dataclass(frozen=True)
class Heap(Sorting):
    """Heap selection: a min-heap of the best k, whose root meets every other document.

    This is Algorithm 1 of the paper, exactly as printed when `memory` is None. It asks
    O(n log k) questions; on average 150.8 for the top 10 of 50 documents.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default None
        Which comparisons are not asked. None: every comparison of the algorithm is asked.
        "pairs": no pair is asked twice (135.8 questions for 10 of 50). "closure": nothing is
        asked that follows from strict answers by transitivity (130.4 questions).

    References
    ----------
    S. Niu, J. Guo, Y. Lan and X. Cheng (2012). Top-k Learning to Rank: Labeling, Ranking and
    Evaluation. SIGIR, Algorithm 1.

    Examples
    --------
    >>> from firstpage.labeling.simulation.simulate import simulate
    >>> [result] = simulate("heap", k=10, runs=200)
    >>> bool(145 < result.question_counts.mean() < 157)
    True
    """

    memory: Memory = None

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return heap(task.shuffled(), task.top)


@dataclass(frozen=True)
class HeapMemo(Heap):
    """Heap selection that asks no pair twice: 135.8 questions on average for 10 of 50 documents.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default "pairs"
        Which comparisons are not asked; see `Heap`.

    Examples
    --------
    >>> from firstpage.labeling.strategies.registry import strategy
    >>> strategy("heap-memo").memory
    'pairs'
    """

    memory: Memory = "pairs"


@dataclass(frozen=True)
class HeapClosure(Heap):
    """Heap selection that asks nothing implied by transitivity: 130.4 questions for 10 of 50.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default "closure"
        Which comparisons are not asked; see `Heap`.

    Examples
    --------
    >>> from firstpage.labeling.strategies.registry import strategy
    >>> strategy("heap-closure").memory
    'closure'
    """

    memory: Memory = "closure"


@dataclass(frozen=True)
class Tournament(Sorting):
    """Knockout tournament: each next document is sought among those who lost only to winners.

    Asks about n - 1 + (k - 1) log2(n) questions: 91 for the top 10 of 50 documents, where no
    strategy can guarantee fewer than 90.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default "closure"
        Which comparisons are not asked; see `Heap`.

    Examples
    --------
    >>> import firstpage as fp
    >>> session = fp.labeling.Session(list("abcdefgh"), fp.labeling.Setting("tournament", k=1))
    >>> while (question := session.question) is not None:
    ...     _ = session.answer(1 if question.left < question.right else -1)
    >>> session.order, len(session.judgments)
    (('a',), 7)
    """

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return tournament(task.shuffled(), task.top)


@dataclass(frozen=True)
class Insertion(Sorting):
    """Binary insertion into the sorted top k; a document first meets the one at rank k.

    Asks 115.6 questions on average for the top 10 of 50 documents. With a prior, documents come
    in its order and their rank is sought from the bottom up, so that a good prior saves most
    questions.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default "closure"
        Which comparisons are not asked; see `Heap`.

    Examples
    --------
    >>> import firstpage as fp
    >>> prior = [8, 7, 6, 5, 4, 3, 2, 1]
    >>> setting = fp.labeling.Setting("insertion", k=2)
    >>> session = fp.labeling.Session(list("abcdefgh"), setting, prior=prior)
    >>> while (question := session.question) is not None:
    ...     _ = session.answer(1 if question.left < question.right else -1)
    >>> session.order, len(session.judgments)
    (('a', 'b'), 7)
    """

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return insertion(task.by_prior(), task.top, gallop=task.prior is not None)


@dataclass(frozen=True)
class QuickSort(Sorting):
    """Quicksort with random pivots: O(n log n) questions, whatever k is.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default "closure"
        Which comparisons are not asked; see `Heap`.
    full : bool, default True
        Whether all documents are sorted; if False, documents below rank k are not.

    References
    ----------
    N. Ailon and M. Mohri (2008). An Efficient Reduction of Ranking to Classification. COLT.

    Examples
    --------
    >>> from firstpage.labeling.strategies.registry import strategy
    >>> strategy("quick-sort(full=false)").full
    False
    """

    full: bool = True

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return quick_sort(task.shuffled(), task.top, self.full)


@dataclass(frozen=True)
class SelectBest(Sorting):
    """Repeated selection: find the best of all, then the best of the others, k times.

    Asks k (2n - k - 1) / 2 questions with `memory` None: 445 for the top 10 of 50 documents.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default None
        Which comparisons are not asked; see `Heap`.

    References
    ----------
    R. Song, Q. Guo, R. Zhang, G. Xin, J.-R. Wen, Y. Yu and H.-W. Hon (2011). Select-the-Best-Ones:
    A new way to judge relative relevance. Information Processing & Management 47(1).

    Examples
    --------
    >>> from firstpage.labeling.simulation.simulate import simulate
    >>> [result] = simulate("select-best", k=10, runs=2)
    >>> result.question_counts.tolist()
    [445.0, 445.0]
    """

    memory: Memory = None

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return select_best(task.shuffled(), task.top)


def heap(items: list[int], k: int) -> Comparisons[list[int]]:
    """Return the top k; heap[0] is the least relevant of the best k so far.

    Every question is "is a less relevant than b?".
    """
    nodes = items[:k]
    for at in reversed(range(k // 2)):
        yield from _sift_down(nodes, at, k)
    for item in items[k:]:
        if (yield Compare(nodes[0], item)) < 0:
            nodes[0] = item
            yield from _sift_down(nodes, 0, k)
    worst_first = []
    for size in reversed(range(k)):
        worst_first.append(nodes[0])
        nodes[0] = nodes[size]
        yield from _sift_down(nodes, 0, size)
    return worst_first[::-1]


def _sift_down(nodes: list[int], at: int, size: int) -> Comparisons[None]:
    """Move nodes[at] below every child that is less relevant; two questions per level."""
    while (child := 2 * at + 1) < size:
        if child + 1 < size and (yield Compare(nodes[child + 1], nodes[child])) < 0:
            child += 1
        if (yield Compare(nodes[child], nodes[at])) >= 0:
            return
        nodes[at], nodes[child] = nodes[child], nodes[at]
        at = child


def tournament(items: list[int], k: int) -> Comparisons[list[int]]:
    """Return the top k of a knockout; the winner's direct losers compete for the next rank.

    Candidates with the smallest subtrees meet first, as in Huffman coding, which keeps the tree
    shallow whatever n is.
    """
    beaten: dict[int, list[Entry]] = {item: [] for item in items}
    roots: list[Entry] = [(1, arrival, item) for arrival, item in enumerate(items)]
    arrivals = count(len(items))  # among subtrees of equal size, the oldest comes first
    order: list[int] = []
    while len(order) < k:
        heapify(roots)
        while len(roots) > 1:
            first, second = heappop(roots), heappop(roots)
            winner, loser = first, second
            if (yield Compare(first[2], second[2])) < 0:
                winner, loser = second, first
            beaten[winner[2]].append(loser)
            heappush(roots, (winner[0] + loser[0], next(arrivals), winner[2]))
        order.append(roots[0][2])
        roots = beaten[order[-1]]
    return order


def insertion(items: list[int], k: int, gallop: bool = False) -> Comparisons[list[int]]:
    """Return the top k, kept sorted; each item first meets the last of the best k so far.

    With `gallop` the rank of an item is sought from the bottom in steps of doubling size.
    """
    best: list[int] = []
    for item in items:
        low, high = 0, len(best)
        if len(best) == k:
            if (yield Compare(item, best[-1])) <= 0:
                continue
            high -= 1
        step = 1
        while gallop and low < high:  # with a good prior the rank is near the end
            probe = max(high - step, low)
            if (yield Compare(item, best[probe])) <= 0:
                low = probe + 1
                break
            high, step = probe, step * 2
        while low < high:
            middle = (low + high) // 2
            if (yield Compare(item, best[middle])) > 0:
                high = middle
            else:
                low = middle + 1
        best.insert(low, item)
        del best[k:]
    return best


def quick_sort(items: list[int], k: int, full: bool) -> Comparisons[list[int]]:
    """Return the top k by quicksort; unsorted partitions wait on a stack, the best on top."""
    order: list[int] = []
    stack = [items]
    while stack and (full or len(order) < k):
        partition = stack.pop()
        if len(partition) < 2:
            order += partition
            continue
        pivot = partition[0]
        better: list[int] = []
        worse: list[int] = []
        for item in partition[1:]:
            outcome = yield Compare(item, pivot)
            (better if outcome > 0 else worse).append(item)
        stack += [worse, [pivot], better]
    return order[:k]


def select_best(items: list[int], k: int) -> Comparisons[list[int]]:
    """Return the top k by k passes over the remaining items."""
    remaining = list(items)
    order = []
    for _ in range(k):
        best = 0
        for at in range(1, len(remaining)):
            if (yield Compare(remaining[at], remaining[best])) > 0:
                best = at
        order.append(remaining.pop(best))
    return order
