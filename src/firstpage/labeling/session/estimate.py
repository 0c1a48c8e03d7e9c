"""The top k as far as answers tell: before a strategy is done, and how sure one may be after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from firstpage.labeling.belief.posterior_ranks import standing
from firstpage.labeling.strategies.adaptive import State
from firstpage.labeling.strategies.strategy import Asked, Grade, Task, TopK


def guess(task: Task, asked: Sequence[Asked]) -> TopK:
    """The best guess from these answers and those before them; nothing more is asked."""
    if any(isinstance(question, Grade) for question, _ in asked):
        return _by_grade(task, asked)
    return _state(task, asked).top_k(task)


def with_confidence(task: Task, asked: Sequence[Asked], found: TopK) -> TopK:
    """A strategy's own top k, with the chances that all answers together give it.

    Grades say nothing about errors, so a top k of grades stays as it is.
    """
    if found.confidence is not None or any(isinstance(q, Grade) for q, _ in asked):
        return found
    state = _state(task, asked)
    order = np.array([d for d in found.order if d not in found.bad], np.int64)
    sure = standing(state.belief, task.top, state.good, order=order)
    bad = len(found.order) - len(order)
    membership = sure.membership.copy()
    membership[list(found.order[len(order) :])] = 1.0
    return replace(
        found,
        confidence=(*map(float, sure.confidence), *[1.0] * bad),
        set_confidence=sure.set_confidence,
        membership=tuple(map(float, membership)),
    )


def _state(task: Task, asked: Sequence[Asked]) -> State:
    return State.of(replace(task, past=(*task.past, *asked)))


def _by_grade(task: Task, asked: Sequence[Asked]) -> TopK:
    """Documents by grade; one without a grade lies in the middle of them."""
    grades = {q.document: a.outcome for q, a in asked if isinstance(q, Grade) and not a.skipped}
    middle = float(np.median(list(grades.values()))) if grades else 0.0
    order = sorted(task.shuffled(), key=lambda d: -grades.get(d, middle))
    return TopK.of(order[: task.top], task.n)
