"""The adaptive strategy: a belief about utilities, and always the question that tells most.

`Refined` spends such questions near the k-th place after another strategy is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace
from math import ceil, log2
from typing import ClassVar

import numpy as np

from firstpage.errors import DataError
from firstpage.labeling.belief.choice import Pair, next_pair
from firstpage.labeling.belief.posterior_ranks import standing, surer_than
from firstpage.labeling.belief.utilities import TRUST, Rivals, Utilities
from firstpage.labeling.strategies.strategy import (
    Answer,
    Asked,
    Compare,
    Question,
    Questions,
    Strategy,
    Task,
    TopK,
    tied_runs,
)
from firstpage.registry import check_number
from firstpage.types import Floats, Ints

GENEROUS = 1.5  # default budget, in questions of a knock-out with answers that never err


@dataclass
class State:
    """What is known on the way; everything follows from the task and the answers."""

    rivals: Rivals
    turn: Ints  # a random rank of each document, to break ties
    asked: Counter[Pair] = field(default_factory=Counter)
    last: Pair | None = None
    bad: frozenset[int] = frozenset()
    ties: frozenset[Pair] = frozenset()  # pairs last called equal

    @classmethod
    def of(cls, task: Task, trust: float = TRUST) -> State:
        """The state at the beginning, past answers taken in."""
        turn = np.argsort(task.shuffled()).astype(np.int64)
        state = cls(Rivals.of(task.n, task.prior, task.features, trust), turn)
        state.learn_all(task.past)
        return state

    def learn_all(self, answers: Iterable[Asked]) -> None:
        """Take in what was answered before."""
        for question, answer in answers:
            if isinstance(question, Compare):
                self.learn(question, answer)

    def learn(self, question: Compare, answer: Answer) -> None:
        """Take in one answer; one that was skipped is only not asked again soon.

        An answer about a bad document says that the other is better, which is known without it.
        """
        self.bad |= answer.bad
        self.asked[question.pair] += 1
        self.last = question.pair
        told = not (answer.skipped or answer.bad) and question.first != question.second
        if told:
            same = {question.pair}
            self.ties = self.ties - same if answer.outcome else self.ties | same
            self.rivals = self.rivals.after(question.first, question.second, answer.outcome)

    @property
    def good(self) -> Ints:
        """Documents that nobody called bad."""
        return np.array([d for d in range(len(self.turn)) if d not in self.bad], np.int64)

    @property
    def belief(self) -> Utilities:
        """The utilities as they are believed now."""
        return self.rivals.best

    def next(self, k: int) -> Compare | None:
        """The question that tells most; None when none is left."""
        pair = next_pair(self.rivals.curious, k, self.good, self.turn, self.asked, self.last)
        return None if pair is None else Compare(*pair)

    def sure(self, k: int, confidence: float | None) -> bool:
        """Whether the set is known well enough."""
        good = self.good
        if confidence is None or len(good) <= k:
            return False
        return surer_than(confidence, self.belief, k, good)

    def top_k(self, task: Task) -> TopK:
        """The result: good documents by mean utility; bad ones fill up, by the same."""
        found = standing(self.belief, task.top, self.good)
        order = [int(d) for d in found.order]
        fill = sorted(self.bad, key=lambda d: (-float(self.belief.mean[d]), int(self.turn[d])))
        missing = task.top - len(order)
        return TopK.of(
            order + fill[:missing],
            task.n,
            bad=self.bad,
            tied=tied_runs(order, self.ties),
            confidence=(*(float(c) for c in found.confidence), *[1.0] * missing),
            set_confidence=found.set_confidence,
            membership=self._membership(found.membership, fill[:missing]),
        )

    def _membership(self, chances: Floats, filled: list[int]) -> tuple[float, ...]:
        chances = chances.copy()
        chances[filled] = 1.0
        return tuple(float(c) for c in chances)


@dataclass(frozen=True)
class Adaptive:
    """Asks what most reduces the uncertainty about which documents are the top k, in which order.

    It stops after `budget` questions in all, those before it included (None: half as many again
    as a knock-out would need), or once it is surer of the set than `confidence`.  A prior order
    counts with correlation `trust`.
    """

    memoryless: ClassVar[bool] = True  # answers in `task.past` lead where they led when given

    budget: int | None = None
    confidence: float | None = 0.95
    trust: float = TRUST

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_number(self, "budget", minimum=0, integer=True)
        for name in ("confidence", "trust"):
            value = getattr(self, name)
            if name == "confidence" and value is None:
                continue
            check_number(self, name, minimum=0.0)
            if value >= 1:
                raise DataError(f"{name} must be below 1; got {value!r}.")

    def questions(self, task: Task) -> Questions:
        """Ask until the budget is spent or the set is known well enough."""
        at_work = self.begin(task)
        while at_work.open is not None:
            at_work.answer((yield at_work.open))
        return at_work.found

    def begin(self, task: Task) -> Thought:
        """Set to work, with a look ahead that costs one answer instead of all."""
        return Thought(self, task)

    def most(self, n: int, k: int) -> int:
        """The budget."""
        if self.budget is not None:
            return self.budget
        k = min(k, n)
        return ceil(GENEROUS * (n - 1 + (k - 1) * log2(max(n, 2)))) if n > 1 else 0

    def left(self, n: int, k: int, asked: int) -> tuple[int, int]:
        """How many questions are left after so many: at least, at most."""
        high = max(self.most(n, k) - asked, 0)
        return (min(1, high) if self.confidence is not None else high), high


class Thought:
    """The strategy at work."""

    def __init__(self, how: Adaptive, task: Task) -> None:
        self._how, self._task = how, task
        self._state = State.of(task, how.trust)
        self.open = self._next(self._state)

    @property
    def found(self) -> TopK:
        """The top k as it is believed now."""
        return self._state.top_k(self._task)

    def answer(self, answer: Answer) -> None:
        """Answer what is open."""
        assert self.open is not None
        self._state.learn(self.open, answer)
        self.open = self._next(self._state)

    def ahead(self, answer: Answer) -> Compare | None:
        """What would be open after this answer."""
        assert self.open is not None
        state = replace(self._state, asked=Counter(self._state.asked))
        state.learn(self.open, answer)
        return self._next(state)

    def _next(self, state: State) -> Compare | None:
        how, task = self._how, self._task
        spent = state.asked.total() >= how.most(task.n, task.k)
        if spent or state.sure(task.top, how.confidence):
            return None
        return state.next(task.top)


@dataclass(frozen=True)
class Refined:
    """`base` finds a top k; `extra` questions then go where they tell most, repeats included.

    The result is what fits all answers best, so an early slip can be mended.
    """

    base: Strategy
    extra: int = 20

    def __post_init__(self) -> None:
        check_number(self, "extra", minimum=0, integer=True)

    def questions(self, task: Task) -> Questions:
        """Those of the base, then the extra ones."""
        asked: list[Asked] = []
        found = yield from noting(self.base.questions(task), asked)
        if not self.extra:
            return found
        past = (*task.past, *asked)
        more = Adaptive(budget=len(past) + self.extra, confidence=None)
        return (yield from more.questions(replace(task, past=past)))


def noting(questions: Questions, asked: list[Asked]) -> Generator[Question, Answer, TopK]:
    """The same questions; what is answered goes into `asked`."""
    try:
        question = next(questions)
        while True:
            answer = yield question
            asked.append((question, answer))
            question = questions.send(answer)
    except StopIteration as end:
        found: TopK = end.value
        return found
