"""Estimates during a session: the number of remaining questions, and a provisional top k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

import numpy as np

from firstpage.labeling.belief.posterior_ranks import rank_posterior
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

REHEARSAL_QUESTIONS = 20_000  # in all rehearsals together: about a tenth of a second
MIN_REHEARSALS, MAX_REHEARSALS = 10, 100
TAIL = 0.05  # fraction of rehearsals below the range, and above it


@dataclass(frozen=True)
class SessionProgress:
    """Documents seen, questions since the last new one, and questions answered so far."""

    documents_seen: int
    since_new: int
    questions: int = 0


@dataclass(frozen=True)
class Rehearsal:
    """A simulated run of a strategy against an assessor who never errs.

    `first_shown` has the number of the question that showed the first, second, ... new document.
    """

    first_shown: tuple[int, ...]
    length: int

    def remaining(self, progress: SessionProgress) -> int:
        """Return how many questions this run had left at the same progress."""
        if progress.documents_seen == 0:
            return self.length
        last_new = self.first_shown[min(progress.documents_seen, len(self.first_shown)) - 1]
        return self.length - last_new - progress.since_new


def remaining_questions(name: str, n: int, k: int, progress: SessionProgress) -> tuple[int, int]:
    """Return a 90 % range of the number of remaining questions, from rehearsals.

    A strategy with a budget returns its own lower and upper bound.
    """
    chosen = strategy(name)
    if isinstance(chosen, Adaptive):
        return chosen.remaining(n, k, progress.questions)
    counts = [run.remaining(progress) for run in _rehearsals(name, n, min(k, n))]
    low, high = np.quantile([max(1, count) for count in counts], (TAIL, 1 - TAIL))
    return int(np.floor(low)), int(np.ceil(high))


def expected_questions(name: str, n: int, k: int) -> float:
    """Return the mean number of questions per query; for a strategy with a budget, the budget."""
    chosen = strategy(name)
    if isinstance(chosen, Adaptive):
        return float(chosen.max_questions(n, k))
    return fmean(run.length for run in _rehearsals(name, n, min(k, n)))


def progress_after(questions: Iterable[tuple[str, ...]]) -> SessionProgress:
    """Return the progress after these questions, each given by its documents."""
    seen: set[str] = set()
    number = last_new = 0
    for number, documents in enumerate(questions, 1):
        if not seen.issuperset(documents):
            seen.update(documents)
            last_new = number
    return SessionProgress(len(seen), number - last_new, number)


def answers_used(
    strategy: Strategy, task: TopKTask, answers: Sequence[AnsweredQuestion]
) -> int | None:
    """Return after how many of these answers the strategy finished; None if it has not."""
    questions = strategy.questions(task)
    used = 0
    try:
        question = next(questions)
        for answered, answer in answers:
            swapped = isinstance(answered, Compare) and answered != question
            used += 1
            question = questions.send(
                replace(answer, outcome=-answer.outcome) if swapped else answer
            )
    except StopIteration:
        return used
    return None


@lru_cache(maxsize=256)
def _rehearsals(name: str, n: int, k: int) -> tuple[Rehearsal, ...]:
    runs: list[Rehearsal] = []
    questions = 0
    while len(runs) < MIN_REHEARSALS or (
        len(runs) < MAX_REHEARSALS and questions < REHEARSAL_QUESTIONS
    ):
        runs.append(_rehearse(name, n, k, seed=len(runs)))
        questions += runs[-1].length
    return tuple(runs)


def _rehearse(name: str, n: int, k: int, seed: int) -> Rehearsal:
    """Run a strategy once; document 0 is the best, since strategies shuffle the documents."""
    questions = strategy(name).questions(TopKTask(n, k, seed))
    first_is_better, second_is_better = Answer(1), Answer(-1)
    seen: set[int] = set()
    first_shown: list[int] = []
    number = 0
    try:
        question = next(questions)
        while True:
            number += 1
            for document in question.documents:
                if document not in seen:
                    seen.add(document)
                    first_shown.append(number)
            swapped = isinstance(question, Compare) and question.first > question.second
            question = questions.send(second_is_better if swapped else first_is_better)
    except StopIteration:
        return Rehearsal(tuple(first_shown), number)


def provisional_top_k(task: TopKTask, answers: Sequence[AnsweredQuestion]) -> TopK:
    """Return the best estimate of the top k from the answers so far."""
    if any(isinstance(question, Grade) for question, _ in answers):
        return _top_k_by_grade(task, answers)
    return _belief_state(task, answers).top_k(task)


def with_confidence(task: TopKTask, answers: Sequence[AnsweredQuestion], top_k: TopK) -> TopK:
    """Return a strategy's top k with the posterior probabilities given all answers.

    Grades carry no error model, so a top k from grades is returned unchanged.
    """
    if top_k.confidence is not None or any(isinstance(q, Grade) for q, _ in answers):
        return top_k
    state = _belief_state(task, answers)
    order = np.array([d for d in top_k.order if d not in top_k.bad], np.int64)
    posterior = rank_posterior(state.belief, task.top, state.good, order=order)
    n_bad = len(top_k.order) - len(order)
    membership = posterior.membership.copy()
    membership[list(top_k.order[len(order) :])] = 1.0
    return replace(
        top_k,
        confidence=(*map(float, posterior.confidence), *[1.0] * n_bad),
        set_confidence=posterior.set_confidence,
        membership=tuple(map(float, membership)),
    )


def _belief_state(task: TopKTask, answers: Sequence[AnsweredQuestion]) -> BeliefState:
    return BeliefState.from_task(replace(task, past=(*task.past, *answers)))


def _top_k_by_grade(task: TopKTask, answers: Sequence[AnsweredQuestion]) -> TopK:
    """Return the documents by grade; a document without a grade gets the median grade."""
    grades = {q.document: a.outcome for q, a in answers if isinstance(q, Grade) and not a.skipped}
    middle = float(np.median(list(grades.values()))) if grades else 0.0
    order = sorted(task.shuffled(), key=lambda d: -grades.get(d, middle))
    return TopK.from_order(order[: task.top], task.n)
