"""Estimates along a session: how many questions remain, and the top k as far as answers tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

import numpy as np

from firstpage.labeling.belief.posterior_ranks import standing
from firstpage.labeling.strategies.adaptive import Adaptive, BeliefState
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Grade,
    Strategy,
    TopK,
    TopKTask,
)

REHEARSED = 20_000  # questions in all rehearsals together, about a tenth of a second
FEWEST, MOST = 10, 100  # rehearsals
OUTSIDE = 0.05  # of them, on either side of the range


@dataclass(frozen=True)
class SessionProgress:
    """Where a session stands: documents seen so far, questions since the last new one, and all."""

    seen: int
    since: int
    asked: int = 0


@dataclass(frozen=True)
class Rehearsal:
    """One run against made-up answers: after which question the 1st, 2nd, .. document was seen."""

    seen_at: tuple[int, ...]
    length: int

    def left(self, moment: SessionProgress) -> int:
        """What was left of this run at such a moment."""
        if moment.seen == 0:
            return self.length
        at = self.seen_at[min(moment.seen, len(self.seen_at)) - 1]
        return self.length - at - moment.since


def remaining_questions(name: str, n: int, k: int, moment: SessionProgress) -> tuple[int, int]:
    """The middle nine tenths of what was left in rehearsals that had come as far.

    A strategy with a budget knows by itself: at least, at most.
    """
    chosen = strategy(name)
    if isinstance(chosen, Adaptive):
        return chosen.remaining(n, k, moment.asked)
    left = [run.left(moment) for run in _rehearsals(name, n, min(k, n))]
    low, high = np.quantile([max(1, x) for x in left], (OUTSIDE, 1 - OUTSIDE))
    return int(np.floor(low)), int(np.ceil(high))


def expected_questions(name: str, n: int, k: int) -> float:
    """How many questions a strategy asks of one query, on average; all of a budget."""
    chosen = strategy(name)
    if isinstance(chosen, Adaptive):
        return float(chosen.max_questions(n, k))
    return fmean(run.length for run in _rehearsals(name, n, min(k, n)))


def progress_after(shown: Iterable[tuple[str, ...]]) -> SessionProgress:
    """The moment after these questions, each given by its documents."""
    seen: set[str] = set()
    number = last_new = 0
    for number, documents in enumerate(shown, 1):
        if not seen.issuperset(documents):
            seen.update(documents)
            last_new = number
    return SessionProgress(len(seen), number - last_new, number)


def needed(how: Strategy, task: TopKTask, answers: Sequence[AnsweredQuestion]) -> int | None:
    """After how many of these answers a strategy was done; None if it is not."""
    steps = how.questions(task)
    used = 0
    try:
        question = next(steps)
        for asked, answer in answers:
            turned = isinstance(asked, Compare) and asked != question
            used += 1
            question = steps.send(replace(answer, outcome=-answer.outcome) if turned else answer)
    except StopIteration:
        return used
    return None


@lru_cache(maxsize=256)
def _rehearsals(name: str, n: int, k: int) -> tuple[Rehearsal, ...]:
    runs: list[Rehearsal] = []
    asked = 0
    while len(runs) < FEWEST or (len(runs) < MOST and asked < REHEARSED):
        runs.append(_rehearse(name, n, k, seed=len(runs)))
        asked += runs[-1].length
    return tuple(runs)


def _rehearse(name: str, n: int, k: int, seed: int) -> Rehearsal:
    """Answer by an order of the documents; strategies shuffle them, so any order will do."""
    steps = strategy(name).questions(TopKTask(n, k, seed))
    seen: set[int] = set()
    seen_at: list[int] = []
    number = 0
    try:
        question = next(steps)
        while True:
            number += 1
            new = set(question.documents) - seen
            seen |= new
            seen_at += [number] * len(new)
            better = not isinstance(question, Compare) or question.first < question.second
            question = steps.send(Answer(1 if better else -1))
    except StopIteration:
        return Rehearsal(tuple(seen_at), number)


def guess(task: TopKTask, asked: Sequence[AnsweredQuestion]) -> TopK:
    """The best guess from these answers and those before them; nothing more is asked."""
    if any(isinstance(question, Grade) for question, _ in asked):
        return _by_grade(task, asked)
    return _state(task, asked).top_k(task)


def with_confidence(task: TopKTask, asked: Sequence[AnsweredQuestion], found: TopK) -> TopK:
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


def _state(task: TopKTask, asked: Sequence[AnsweredQuestion]) -> BeliefState:
    return BeliefState.from_task(replace(task, past=(*task.past, *asked)))


def _by_grade(task: TopKTask, asked: Sequence[AnsweredQuestion]) -> TopK:
    """Documents by grade; one without a grade lies in the middle of them."""
    grades = {q.document: a.outcome for q, a in asked if isinstance(q, Grade) and not a.skipped}
    middle = float(np.median(list(grades.values()))) if grades else 0.0
    order = sorted(task.shuffled(), key=lambda d: -grades.get(d, middle))
    return TopK.from_order(order[: task.top], task.n)
