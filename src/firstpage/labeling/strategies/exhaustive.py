"""Exhaustive strategies: a grade per document, or a comparison per pair of documents.

Both allow any order of their questions: the caller may choose the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from firstpage.core import check_number
from firstpage.labeling.strategies.sorting import Comparisons, KnownOutcomes, Memory, Sorting
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    GeneratorRun,
    Grade,
    Question,
    Questions,
    Strategy,
    TopK,
    TopKTask,
)

GRADES = ("bad", "fair", "good", "excellent", "perfect")


@dataclass(frozen=True)
class FiveGrade:
    """Absolute grading: every document gets a grade; the top k are the best grades.

    Asks n questions for n documents. Documents of equal grade stay in the order in which they
    were shown; skipped documents come last.

    Parameters
    ----------
    levels : int, default 5
        Number of grades; a grade is an integer from 0 to ``levels - 1``.

    References
    ----------
    S. Niu, J. Guo, Y. Lan and X. Cheng (2012). Top-k Learning to Rank: Labeling, Ranking and
    Evaluation. SIGIR, section 4.1 (the five-grade judgment method).

    Examples
    --------
    >>> import firstpage as fp
    >>> session = fp.labeling.Session(["a", "b", "c"], fp.labeling.Setting("five-grade", k=1))
    >>> while (question := session.question) is not None:
    ...     _ = session.answer({"a": 0, "b": 4, "c": 2}[question.left])
    >>> session.order
    ('b',)
    """

    levels: int = 5

    def __post_init__(self) -> None:
        check_number(self, "levels", minimum=2, integer=True)

    def start(self, task: TopKTask) -> AnyOrderRun:
        """Return a run in any order."""
        graded = {question.document for question, _ in task.past if isinstance(question, Grade)}
        return AnyOrderRun(self, task, (Grade(d) for d in task.shuffled() if d not in graded))

    def questions(self, task: TopKTask) -> Questions:
        """Yield a `Grade` per document; return the top k."""
        grades = {
            q.document: -1 if a.skipped else a.outcome for q, a in task.past if isinstance(q, Grade)
        }
        documents = task.shuffled()
        for document in documents:
            if document not in grades:
                answer = yield Grade(document)
                grades[document] = -1 if answer.skipped else answer.outcome
        return _top_k_of_grades(sorted(documents, key=lambda d: -grades[d]), task, grades)


def _top_k_of_grades(documents: list[int], task: TopKTask, grades: dict[int, int]) -> TopK:
    """Return the first k documents; those of one grade are equal, also outside of the top k.

    Skipped documents have a negative grade and are equal to no other.
    """
    order = documents[: task.top]
    levels: dict[int, list[int]] = {grades[d]: [] for d in order if grades[d] >= 0}
    for document in documents:
        if grades[document] in levels:
            levels[grades[document]].append(document)
    least = min(levels, default=0)
    last = levels.get(least, [])
    graded = sum(grade >= 0 for grade in grades.values())
    crosses = not set(last).issubset(order) or 1 < len(last) == graded
    lowest = not any(0 <= grade < least for grade in grades.values())
    return TopK.from_order(
        order,
        task.n,
        bad=frozenset(d for d, grade in grades.items() if grade == 0),
        tied=tuple(tuple(level) for level in levels.values() if len(level) > 1),
        undecided=frozenset(last if crosses and lowest else ()),
    )


@dataclass(frozen=True)
class EveryPair(Sorting):
    """Round robin: every pair once, documents ordered by wins minus losses.

    Asks n (n - 1) / 2 questions for n documents, in any order. Meant for few documents, such as
    whole result lists.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default "pairs"
        Which questions are not asked; see `Heap`.

    Examples
    --------
    >>> import firstpage as fp
    >>> session = fp.labeling.Session(["a", "b", "c"], fp.labeling.Setting("pairs", k=1))
    >>> len(session.choices)
    3
    """

    memory: Memory = "pairs"

    def start(self, task: TopKTask) -> EveryPairRun | GeneratorRun:
        """Return a run in any order, where every pair is asked whatever the other answers are."""
        return EveryPairRun(self, task) if self.memory == "pairs" else GeneratorRun(self, task)

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        return every_pair(task.shuffled(), task.top)


def every_pair(items: list[int], k: int) -> Comparisons[list[int]]:
    """Return the k items with the most wins minus losses; ties keep the order of `items`."""
    wins = dict.fromkeys(items, 0)
    for first, second in combinations(items, 2):
        outcome = yield Compare(first, second)
        wins[first] += outcome
        wins[second] -= outcome
    return sorted(items, key=lambda item: -wins[item])[:k]


class AnyOrderRun:
    """A run in any order: questions come in its own order unless the caller selects another one."""

    def __init__(self, strategy: Strategy, task: TopKTask, questions: Iterable[Question]) -> None:
        self._strategy, self._task = strategy, task
        self._open = {tuple(sorted(q.documents)): q for q in questions}
        self._selected: Question | None = None
        self._answered: list[AnsweredQuestion] = []

    @property
    def question(self) -> Question | None:
        return self._selected or next(iter(self._open.values()), None)

    @property
    def result(self) -> TopK | None:
        """The strategy's top k given all answers; None while questions are open."""
        if self._open:
            return None
        past = (*self._task.past, *self._answered)
        return GeneratorRun(self._strategy, replace(self._task, past=past)).result

    @property
    def choices(self) -> list[Question]:
        """All open questions, in the strategy's own order."""
        return list(self._open.values())

    def select(self, *documents: int) -> None:
        """Ask about these documents next; without effect unless that is open."""
        self._selected = self._open.get(tuple(sorted(documents)), self._selected)

    def answer(self, answer: Answer) -> None:
        """Answer the open question."""
        question = self.question
        assert question is not None
        self._answered.append((question, answer))
        self._selected = None
        del self._open[tuple(sorted(question.documents))]

    def peek(self, answer: Answer) -> Question | None:
        """Return the question that would follow this answer, unless another one is selected."""
        current = self.question
        others = (q for q in self._open.values() if q != current)
        return next((q for q in others if answer.bad.isdisjoint(q.documents)), None)


class EveryPairRun(AnyOrderRun):
    """A run of `EveryPair`: pairs with a bad document are not asked."""

    def __init__(self, strategy: EveryPair, task: TopKTask) -> None:
        self._known = KnownOutcomes(task.n, strategy.memory, task.past)
        questions = (Compare(*pair) for pair in combinations(task.shuffled(), 2))
        super().__init__(strategy, task, (q for q in questions if self._known.outcome(q) is None))

    def answer(self, answer: Answer) -> None:
        """Answer the open question, and remove pairs that a bad document decides."""
        question = self.question
        super().answer(answer)
        if answer.bad and isinstance(question, Compare):
            self._known.learn(question, answer)
            self._open = {
                documents: q
                for documents, q in self._open.items()
                if isinstance(q, Compare) and self._known.outcome(q) is None
            }
