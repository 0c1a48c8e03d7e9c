"""Every pair once, in any order: the one strategy whose next question somebody else may choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from firstpage.labeling.strategies.knowledge import Comparisons, Knowledge, Memory
from firstpage.labeling.strategies.run import Steps
from firstpage.labeling.strategies.sorting import Sorting
from firstpage.labeling.strategies.strategy import Answer, Asked, Compare, Question, Task, TopK


@dataclass(frozen=True)
class EveryPair(Sorting):
    """Every pair once; the order is that of wins.  For few things, such as whole result lists."""

    memory: Memory = "pairs"

    def begin(self, task: Task) -> AnyOrder | Steps:
        """In any order, where each pair is asked once whatever the others say."""
        return AnyOrder(self, task) if self.memory == "pairs" else Steps(self, task)

    def _algorithm(self, task: Task) -> Comparisons[list[int]]:
        return every_pair(task.shuffled(), task.top)


def every_pair(items: list[int], k: int) -> Comparisons[list[int]]:
    """Who wins most comes first; equals stay as they came."""
    wins = dict.fromkeys(items, 0)
    for first, second in combinations(items, 2):
        outcome = yield Compare(first, second)
        wins[first] += outcome
        wins[second] -= outcome
    return sorted(items, key=lambda item: -wins[item])[:k]


class AnyOrder:
    """`EveryPair` at work: in its own order, unless it is turned to another pair that is open."""

    def __init__(self, how: EveryPair, task: Task) -> None:
        self._how, self._task = how, task
        self._known = Knowledge(task.n, how.memory, task.past)
        every = (Compare(*pair) for pair in combinations(task.shuffled(), 2))
        self._left = {q.pair: q for q in every if self._known.outcome(q) is None}
        self._wish: Compare | None = None
        self._asked: list[Asked] = []

    @property
    def open(self) -> Compare | None:
        return self._wish or next(iter(self._left.values()), None)

    @property
    def found(self) -> TopK | None:
        """By the strategy itself, to which all answers are then the past."""
        if self._left:
            return None
        past = (*self._task.past, *self._asked)
        return Steps(self._how, replace(self._task, past=past)).found

    @property
    def choices(self) -> list[Compare]:
        """All pairs that are open, in the strategy's own order."""
        return list(self._left.values())

    def turn(self, pair: tuple[int, int]) -> None:
        """Ask this one next, if it is open."""
        self._wish = self._left.get((min(pair), max(pair)), self._wish)

    def answer(self, answer: Answer) -> None:
        """Answer what is open."""
        asked = self.open
        assert asked is not None
        self._asked.append((asked, answer))
        self._wish = None
        del self._left[asked.pair]
        if answer.bad:
            self._known.learn(asked, answer)
            self._left = {p: q for p, q in self._left.items() if self._known.outcome(q) is None}

    def ahead(self, answer: Answer) -> Question | None:
        """What would be open after this answer, without another wish."""
        asked = self.open
        left = (q for q in self._left.values() if q != asked)
        return next((q for q in left if answer.bad.isdisjoint(q.documents)), None)
