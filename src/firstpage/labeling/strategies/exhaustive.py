"""Strategies that ask about everything: each document for a grade, or every pair once.

Every pair comes in any order: it is the one strategy whose next question the caller may choose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from firstpage.labeling.strategies.sorting import Comparisons, Knowledge, Memory, Sorting
from firstpage.labeling.strategies.strategy import (
    Answer,
    Asked,
    Compare,
    Grade,
    Question,
    Questions,
    Steps,
    Task,
    TopK,
)
from firstpage.registry import check_number

GRADES = ("bad", "fair", "good", "excellent", "perfect")


@dataclass(frozen=True)
class FiveGrade:
    """Every document gets a grade, 0 to `levels` - 1; the top k are the best grades.

    Inside a grade the order is that of showing; a document that was skipped comes last.
    """

    levels: int = 5

    def __post_init__(self) -> None:
        check_number(self, "levels", minimum=2, integer=True)

    def questions(self, task: Task) -> Questions:
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
        return TopK.of(order, task.n, bad=bad, tied=_equal(order, grades))


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
