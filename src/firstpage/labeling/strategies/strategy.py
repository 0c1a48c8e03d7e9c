"""What a strategy is, and a run of one: an algorithm that yields questions and receives answers.

Documents are the numbers 0 .. n-1 in here; sessions know their names.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from firstpage.errors import DataError
from firstpage.types import Floats


@dataclass(frozen=True, slots=True)
class Compare:
    """Which of two documents is better?"""

    first: int
    second: int

    @property
    def documents(self) -> tuple[int, ...]:
        """Those that are shown."""
        return self.first, self.second

    @property
    def pair(self) -> tuple[int, int]:
        """The same for both orders."""
        return min(self.first, self.second), max(self.first, self.second)


@dataclass(frozen=True, slots=True)
class Grade:
    """How good is this document?"""

    document: int

    @property
    def documents(self) -> tuple[int, ...]:
        """The one that is shown."""
        return (self.document,)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an assessor says.

    `outcome` of a comparison: 1 the first is better, -1 the second, 0 neither.  Of a grade: the
    grade, bigger is better.  `skipped`: the assessor would not say; a strategy goes on as after a
    tie (a grade: as after the lowest), and nobody counts it as a judgment; its outcome is 0.
    """

    outcome: int
    bad: frozenset[int] = frozenset()  # documents called clearly irrelevant
    skipped: bool = False

    def __post_init__(self) -> None:
        if self.skipped:
            object.__setattr__(self, "outcome", 0)


Question = Compare | Grade
Groups = tuple[tuple[int, ...], ...]
AnsweredQuestion = tuple[Question, Answer]


@dataclass(frozen=True)
class TopKTask:
    """One query to label: which `k` of `n` documents are the best, in which order?

    `prior`: a score for each document, bigger is better, by which somebody believes them ordered.
    `past`: what was answered before this strategy began, in that order.
    """

    n: int
    k: int
    seed: int = 0
    prior: tuple[float, ...] | None = None
    features: Floats | None = None
    past: tuple[AnsweredQuestion, ...] = ()

    def __post_init__(self) -> None:
        if self.n < 1:
            raise DataError("a query without documents has nothing to label; leave it out.")
        if self.k < 1:
            raise DataError(f"k must be a whole number from 1 on; got {self.k!r}.")
        if self.prior is not None and len(self.prior) != self.n:
            raise DataError(f"the prior has {len(self.prior)} scores for {self.n} documents.")
        if self.prior is not None and not np.isfinite(self.prior).all():
            raise DataError("the prior holds a score that is missing or infinite.")

    @property
    def top(self) -> int:
        """How many documents the result orders: k, or all there are."""
        return min(self.k, self.n)

    def shuffled(self) -> list[int]:
        """The documents in an order that depends on the seed alone, not on k."""
        return [int(i) for i in np.random.default_rng(self.seed).permutation(self.n)]

    def by_prior(self) -> list[int]:
        """The documents from the one believed best on; without a prior, shuffled."""
        found = self.shuffled()
        if self.prior is not None:
            prior = self.prior
            found.sort(key=lambda d: -prior[d])
        return found


@dataclass(frozen=True)
class TopK:
    """The ordered top k: `order`, best first, and the `rest`, which is not ordered.

    `bad` documents in `order` come last there.  `tied`: groups inside `order` whose members the
    assessor would not tell apart; their order is arbitrary.  `confidence`: for each place of
    `order`, the chance that this document belongs there; `set_confidence`: that these k, in
    whatever order, are the best; `membership`: for every document, the chance to be among them.
    """

    order: tuple[int, ...]
    rest: tuple[int, ...]
    bad: frozenset[int] = frozenset()
    tied: tuple[tuple[int, ...], ...] = ()
    confidence: tuple[float, ...] | None = None
    set_confidence: float | None = None
    membership: tuple[float, ...] | None = None

    @classmethod
    def from_order(cls, order: Sequence[int], n: int, **more: object) -> TopK:
        """The rest is what `order` does not have."""
        kept = set(order)
        rest = tuple(d for d in range(n) if d not in kept)
        return cls(tuple(order), rest, **more)  # type: ignore[arg-type]

    def labels(self, k: int) -> list[int]:
        """k for the best document, one less for each next, 0 for the rest."""
        found = [0] * (len(self.order) + len(self.rest))
        for place, document in enumerate(self.order):
            found[document] = k - place
        return found


def tied_runs(order: Sequence[int], ties: Container[tuple[int, int]]) -> Groups:
    """Neighbors of `order` that were called equal, as groups of two and more."""
    groups: list[list[int]] = []
    for before, after in pairwise(order):
        if (min(before, after), max(before, after)) in ties:
            if groups and groups[-1][-1] == before:
                groups[-1].append(after)
            else:
                groups.append([before, after])
    return tuple(map(tuple, groups))


Questions = Generator[Question, Answer, TopK]


class Strategy(Protocol):
    """A way to find the top k."""

    def questions(self, task: TopKTask) -> Questions:
        """Ask until the top k is known."""
        ...


class StrategyRun(Protocol):
    """What a session needs of a strategy at work; `found` once nothing is open."""

    @property
    def question(self) -> Question | None: ...

    @property
    def result(self) -> TopK | None: ...

    def answer(self, answer: Answer) -> None:
        """Answer what is open."""
        ...

    def peek(self, answer: Answer) -> Question | None:
        """What would be open after this answer."""
        ...


class GeneratorRun:
    """Any strategy: its generator, and the answers that led where it stands."""

    def __init__(self, how: Strategy, task: TopKTask) -> None:
        self._how, self._task = how, task
        self._given: list[Answer] = []
        self._steps = how.questions(task)
        self.question: Question | None = None
        self.result: TopK | None = None
        self._go(None)

    def answer(self, answer: Answer) -> None:
        """Answer what is open."""
        self._given.append(answer)
        self._go(answer)

    def peek(self, answer: Answer) -> Question | None:
        """A generator cannot be copied, so the way is gone again."""
        other = GeneratorRun(self._how, self._task)
        for given in [*self._given, answer]:
            other.answer(given)
        return other.question

    def _go(self, answer: Answer | None) -> None:
        try:
            self.question = next(self._steps) if answer is None else self._steps.send(answer)
        except StopIteration as end:
            self.question, self.result = None, end.value


def start(how: Strategy, task: TopKTask) -> StrategyRun:
    """Set a strategy to work; one that can look ahead by itself does so."""
    started: StrategyRun = how.start(task) if hasattr(how, "start") else GeneratorRun(how, task)
    return started
