"""Five grades: the absolute judgment that the top-k strategies are compared with."""

from __future__ import annotations

from dataclasses import dataclass

from firstpage.labeling.strategies.strategy import Grade, Questions, Task, TopK
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
