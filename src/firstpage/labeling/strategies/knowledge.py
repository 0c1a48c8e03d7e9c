"""What need not be asked: answers given before, what follows from them, documents called bad."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from typing import Literal, TypeVar

from firstpage.labeling.strategies.strategy import Answer, Asked, Compare

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

    def __init__(self, n: int, memory: Memory = None, past: Iterable[Asked] = ()) -> None:
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
