"""Another strategy, then more questions where the k-th place is least certain."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

from firstpage.labeling.strategies.adaptive import Adaptive
from firstpage.labeling.strategies.strategy import (
    Answer,
    Asked,
    Question,
    Questions,
    Strategy,
    Task,
    TopK,
)
from firstpage.registry import number


@dataclass(frozen=True)
class Refined:
    """`base` finds a top k; `extra` questions then go where they tell most, repeats included.

    The result is what fits all answers best, so an early slip can be mended.
    """

    base: Strategy
    extra: int = 20

    def __post_init__(self) -> None:
        number(self, "extra", low=0, whole=True)

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
