"""A strategy at work: the open question, answers one by one, and a look ahead."""

from __future__ import annotations

from typing import Protocol

from firstpage.labeling.strategies.strategy import Answer, Question, Strategy, Task, TopK


class Run(Protocol):
    """What a session needs of a strategy at work; `found` once nothing is open."""

    @property
    def open(self) -> Question | None: ...

    @property
    def found(self) -> TopK | None: ...

    def answer(self, answer: Answer) -> None:
        """Answer what is open."""
        ...

    def ahead(self, answer: Answer) -> Question | None:
        """What would be open after this answer."""
        ...


class Steps:
    """Any strategy: its generator, and the answers that led where it stands."""

    def __init__(self, how: Strategy, task: Task) -> None:
        self._how, self._task = how, task
        self._given: list[Answer] = []
        self._steps = how.questions(task)
        self.open: Question | None = None
        self.found: TopK | None = None
        self._go(None)

    def answer(self, answer: Answer) -> None:
        """Answer what is open."""
        self._given.append(answer)
        self._go(answer)

    def ahead(self, answer: Answer) -> Question | None:
        """A generator cannot be copied, so the way is gone again."""
        other = Steps(self._how, self._task)
        for given in [*self._given, answer]:
            other.answer(given)
        return other.open

    def _go(self, answer: Answer | None) -> None:
        try:
            self.open = next(self._steps) if answer is None else self._steps.send(answer)
        except StopIteration as end:
            self.open, self.found = None, end.value


def begin(how: Strategy, task: Task) -> Run:
    """Set a strategy to work; one that can look ahead by itself does so."""
    started: Run = how.begin(task) if hasattr(how, "begin") else Steps(how, task)
    return started
