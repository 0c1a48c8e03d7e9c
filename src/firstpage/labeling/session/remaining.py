"""How many questions are left: an honest range, from rehearsals of the same strategy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

import numpy as np

from firstpage.labeling.strategies.adaptive import Adaptive
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import Answer, Asked, Compare, Strategy, Task

REHEARSED = 20_000  # questions in all rehearsals together, about a tenth of a second
FEWEST, MOST = 10, 100  # rehearsals
OUTSIDE = 0.05  # of them, on either side of the range


@dataclass(frozen=True)
class Moment:
    """Where a session stands: documents seen so far, questions since the last new one, and all."""

    seen: int
    since: int
    asked: int = 0


@dataclass(frozen=True)
class Rehearsal:
    """One run against made-up answers: after which question the 1st, 2nd, .. document was seen."""

    seen_at: tuple[int, ...]
    length: int

    def left(self, moment: Moment) -> int:
        """What was left of this run at such a moment."""
        if moment.seen == 0:
            return self.length
        at = self.seen_at[min(moment.seen, len(self.seen_at)) - 1]
        return self.length - at - moment.since


def questions_left(name: str, n: int, k: int, moment: Moment) -> tuple[int, int]:
    """The middle nine tenths of what was left in rehearsals that had come as far.

    A strategy with a budget knows by itself: at least, at most.
    """
    chosen = strategy(name)
    if isinstance(chosen, Adaptive):
        return chosen.left(n, k, moment.asked)
    left = [run.left(moment) for run in _rehearsals(name, n, min(k, n))]
    low, high = np.quantile([max(1, x) for x in left], (OUTSIDE, 1 - OUTSIDE))
    return int(np.floor(low)), int(np.ceil(high))


def expected_questions(name: str, n: int, k: int) -> float:
    """How many questions a strategy asks of one query, on average; all of a budget."""
    chosen = strategy(name)
    if isinstance(chosen, Adaptive):
        return float(chosen.most(n, k))
    return fmean(run.length for run in _rehearsals(name, n, min(k, n)))


def moment_of(shown: Iterable[tuple[str, ...]]) -> Moment:
    """The moment after these questions, each given by its documents."""
    seen: set[str] = set()
    number = last_new = 0
    for number, documents in enumerate(shown, 1):
        if not seen.issuperset(documents):
            seen.update(documents)
            last_new = number
    return Moment(len(seen), number - last_new, number)


def needed(how: Strategy, task: Task, answers: Sequence[Asked]) -> int | None:
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
    steps = strategy(name).questions(Task(n, k, seed))
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
