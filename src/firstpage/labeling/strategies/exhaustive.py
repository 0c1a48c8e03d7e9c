"""Strategies that ask about everything: each document for a grade, or every pair once.

Every pair comes in any order: it is the one strategy whose next question the caller may choose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from firstpage.labeling.strategies.sorting import Comparisons, Knowledge, Memory, Sorting
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    GeneratorRun,
    Grade,
    Question,
    Questions,
    TopK,
    TopKTask,
)
from firstpage.registry import number

GRADES = ("bad", "fair", "good", "excellent", "perfect")


@dataclass(frozen=True)
class FiveGrade:
    """Every document gets a grade, 0 to `levels` - 1; the top k are the best grades.

    Inside a grade the order is that of showing; a document that was skipped comes last.
    """

    levels: int = 5

    def __post_init__(self) -> None:
        number(self, "levels", low=2, whole=True)

    def questions(self, task: TopKTask) -> Questions:
        """One question a document."""
        grades = {
            q.document: -1 if a.skipped else a.outcome for q, a in task.past if isinstance(q, Grade)
        }
        shown = task.shuffled()
        for document in shown:
            if document not in grades:
                answer = yield Grade(document)
                grades[document] = -1 if answer.skipped else answer.outcome
        order = sorted(shown, key=lambda d: -grades[d])[: task.top]
        bad = frozenset(d for d, grade in grades.items() if grade == 0)
        return TopK.from_order(order, task.n, bad=bad, tied=_equal(order, grades))


def _equal(order: list[int], grades: dict[int, int]) -> tuple[tuple[int, ...], ...]:
    """Groups of two and more of one grade; documents without a grade are in none."""
    groups: dict[int, list[int]] = {}
    for document in order:
        if grades[document] >= 0:
            groups.setdefault(grades[document], []).append(document)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


@dataclass(frozen=True)
class EveryPair(Sorting):
    """Every pair once; the order is that of wins.  For few things, such as whole result lists."""

    memory: Memory = "pairs"

    def start(self, task: TopKTask) -> EveryPairRun | GeneratorRun:
        """In any order, where each pair is asked once whatever the others say."""
        return EveryPairRun(self, task) if self.memory == "pairs" else GeneratorRun(self, task)

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return every_pair(task.shuffled(), task.top)


def every_pair(items: list[int], k: int) -> Comparisons[list[int]]:
    """Who wins most comes first; equals stay as they came."""
    wins = dict.fromkeys(items, 0)
    for first, second in combinations(items, 2):
        outcome = yield Compare(first, second)
        wins[first] += outcome
        wins[second] -= outcome
    return sorted(items, key=lambda item: -wins[item])[:k]


class EveryPairRun:
    """`EveryPair` at work: in its own order, unless it is turned to another pair that is open."""

    def __init__(self, how: EveryPair, task: TopKTask) -> None:
        self._how, self._task = how, task
        self._known = Knowledge(task.n, how.memory, task.past)
        every = (Compare(*pair) for pair in combinations(task.shuffled(), 2))
        self._left = {q.pair: q for q in every if self._known.outcome(q) is None}
        self._wish: Compare | None = None
        self._asked: list[AnsweredQuestion] = []

    @property
    def question(self) -> Compare | None:
        return self._wish or next(iter(self._left.values()), None)

    @property
    def result(self) -> TopK | None:
        """By the strategy itself, to which all answers are then the past."""
        if self._left:
            return None
        past = (*self._task.past, *self._asked)
        return GeneratorRun(self._how, replace(self._task, past=past)).result

    @property
    def choices(self) -> list[Compare]:
        """All pairs that are open, in the strategy's own order."""
        return list(self._left.values())

    def select(self, pair: tuple[int, int]) -> None:
        """Ask this one next, if it is open."""
        self._wish = self._left.get((min(pair), max(pair)), self._wish)

    def answer(self, answer: Answer) -> None:
        """Answer what is open."""
        asked = self.question
        assert asked is not None
        self._asked.append((asked, answer))
        self._wish = None
        del self._left[asked.pair]
        if answer.bad:
            self._known.learn(asked, answer)
            self._left = {p: q for p, q in self._left.items() if self._known.outcome(q) is None}

    def peek(self, answer: Answer) -> Question | None:
        """What would be open after this answer, without another wish."""
        asked = self.question
        left = (q for q in self._left.values() if q != asked)
        return next((q for q in left if answer.bad.isdisjoint(q.documents)), None)
