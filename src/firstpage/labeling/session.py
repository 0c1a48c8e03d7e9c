"""One person labels one query: a strategy run over the log of what was answered.

A session is its documents, its first setting and its events; everything else is replay.  So a
session resumes after a crash, undoes as far as one likes, and changes strategy or k on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from firstpage.errors import DataError
from firstpage.labeling.events import (
    STRONGEST,
    Event,
    Judged,
    Kind,
    Revised,
    Setting,
    Switched,
    Undone,
)
from firstpage.labeling.extras import Extras, Gold
from firstpage.labeling.guess import guess, with_confidence
from firstpage.labeling.left import moment_of, needed, questions_left
from firstpage.labeling.sides import sides
from firstpage.labeling.strategies.base import (
    Answer,
    Asked,
    Compare,
    Grade,
    Question,
    Questions,
    Strategy,
    Task,
    TopK,
)
from firstpage.labeling.strategies.names import strategy
from firstpage.labeling.strategies.refined import Refined


class OutOfStep(DataError):
    """An answer to something else than what is open."""


@dataclass(frozen=True)
class Shown:
    """What an assessor sees; `right` is None where one document is graded."""

    left: str
    right: str | None
    kind: Kind = "judgment"

    def answered(self, outcome: int, bad: Iterable[str] = (), skipped: bool = False) -> Judged:
        """The judgment of this question."""
        return Judged(self.left, self.right, outcome, tuple(bad), self.kind, skipped)


class Session:
    """Questions and answers about one query.

    `prior` and `features` belong to the documents, in their order.
    """

    def __init__(
        self,
        documents: Sequence[str],
        setting: Setting | None = None,
        events: Iterable[Event] = (),
        *,
        prior: Sequence[float] | None = None,
        features: Any = None,
        golds: Sequence[Gold] = (),
    ) -> None:
        self.documents = tuple(documents)
        self._number = {name: i for i, name in enumerate(self.documents)}
        if len(self._number) < len(self.documents):
            twice = next(d for d in self.documents if self.documents.count(d) > 1)
            raise DataError(f"document {twice!r} is there twice; give each document once.")
        self.setting = setting or Setting()
        self.events: list[Event] = []
        self._standing: list[Judged] = []  # judgments that are not undone
        self._since = 0  # how many of them came before the present setting
        self._prior = None if prior is None else tuple(float(x) for x in prior)
        self._features = features
        self._extras = Extras(tuple(golds))
        self._steps: Questions | None = None
        self._open: Question | None = None
        self._found: TopK | None = None
        self._fresh = False
        Task(len(self.documents), self.setting.k, prior=self._prior)  # refuses what cannot be
        strategy(self.setting.strategy)
        for event in events:
            self.apply(event)

    @property
    def judgments(self) -> tuple[Judged, ...]:
        """Those that stand, in order."""
        return tuple(self._standing)

    @property
    def _plain(self) -> list[Judged]:
        """The judgments that the strategy asked for."""
        return [e for e in self._standing if e.kind == "judgment"]

    @property
    def question(self) -> Shown | None:
        """What is open; None when the query is done."""
        self._run()
        if self._open is None:
            return None
        extra = self._extras.due(self.setting, self._standing)
        if extra is not None:
            left, right, kind = extra
            return Shown(left, right, kind)
        if not isinstance(self._open, Compare):
            return Shown(self.documents[self._open.document], None)
        first, second = self.documents[self._open.first], self.documents[self._open.second]
        return Shown(*sides(first, second, self._standing, self.setting.seed))

    @property
    def left(self) -> tuple[int, int]:
        """How many questions are left: nine times in ten the truth is in this range."""
        self._run()
        if self._open is None:
            return 0, 0
        extra = self.setting.refine
        if extra:
            asked = [self._asked(e) for e in self._plain[len(self._task.past) :]]
            used = needed(strategy(self.setting.strategy), self._task, asked)
            if used is not None:
                return (extra - len(asked) + used,) * 2
        shown = [(e.left,) if e.right is None else (e.left, e.right) for e in self._plain]
        low, high = questions_left(
            self.setting.strategy, len(self.documents), self.setting.k, moment_of(shown)
        )
        return low + extra, high + extra

    @property
    def done(self) -> bool:
        """No question is left."""
        self._run()
        return self._open is None

    @property
    def found(self) -> TopK | None:
        """The top k, once it is known; documents by number."""
        self._run()
        return self._found

    @property
    def result(self) -> TopK:
        """The top k with its confidence; before it is known, the best guess from the answers."""
        self._run()
        asked = [self._asked(e) for e in self._plain]
        task = replace(self._task, past=())
        return (
            guess(task, asked) if self._found is None else with_confidence(task, asked, self._found)
        )

    @property
    def order(self) -> tuple[str, ...] | None:
        """The top k by name, best first, once it is known."""
        found = self.found
        return None if found is None else tuple(self.documents[d] for d in found.order)

    def answer(self, outcome: int, bad: Iterable[str] = (), skipped: bool = False) -> Judged:
        """Answer what is open."""
        shown = self.question
        if shown is None:
            raise OutOfStep("this query is done: there is nothing to answer.")
        event = shown.answered(outcome, bad, skipped)
        self.apply(event)
        return event

    def undo(self) -> None:
        """Take back the last judgment that stands."""
        self.apply(Undone())

    def revise(self, at: int, outcome: int, bad: Iterable[str] = ()) -> None:
        """Give the judgment at this place (of `judgments`) another answer."""
        self.apply(Revised(at, outcome, tuple(bad)))

    def switch(self, **changes: Any) -> None:
        """Go on with another strategy, k or seed; what was answered stays known."""
        self.apply(Switched(replace(self.setting, **changes)))

    def apply(self, event: Event) -> None:
        """Let one event happen, live or from the log; one that does not fit changes nothing."""
        if isinstance(event, Judged):
            self._judge(event)
        elif isinstance(event, Undone):
            if not self._standing:
                raise OutOfStep("there is nothing to undo.")
            self._standing.pop()
            self._since = min(self._since, len(self._standing))
            self._fresh = False
        elif isinstance(event, Revised):
            self._revise(event)
        else:
            strategy(event.setting.strategy)
            self.setting, self._since, self._fresh = event.setting, len(self._standing), False
        self.events.append(event)

    def peek(self, outcome: int) -> Shown | None:
        """What would be open after this answer; changes nothing."""
        shown = self.question
        if shown is None:
            return None
        other = Session(
            self.documents, self.setting, prior=self._prior, features=self._features,
            golds=self._extras.golds,
        )  # fmt: skip
        other._standing, other._since = list(self._standing), self._since
        other.apply(shown.answered(outcome))
        return other.question

    def _judge(self, event: Judged) -> None:
        shown = self.question
        if shown is None:
            raise OutOfStep("this query is done: there is nothing to answer.")
        if (event.left, event.right, event.kind) != (shown.left, shown.right, shown.kind):
            raise OutOfStep(
                f"the open question is {shown.left!r} against {shown.right!r} ({shown.kind}), "
                f"not {event.left!r} against {event.right!r} ({event.kind})."
            )
        _check(event)
        self._standing.append(event)
        if event.kind == "judgment":
            self._send(event)

    def _revise(self, event: Revised) -> None:
        if not 0 <= event.at < len(self._standing):
            raise OutOfStep(f"there is no judgment {event.at}; {len(self._standing)} stand.")
        changed = replace(
            self._standing[event.at], outcome=event.outcome, bad=event.bad, skipped=False
        )
        _check(changed)
        self._standing[event.at] = changed
        self._since, self._fresh = len(self._standing), False

    def _run(self) -> None:
        """Bring the strategy to where the judgments lead."""
        if self._fresh:
            return
        if getattr(chosen(self.setting), "memoryless", False):
            self._since = len(self._standing)  # saves finding every question again
        past = [self._asked(e) for e in self._standing[: self._since] if e.kind == "judgment"]
        self._begin(past)
        for event in self._standing[self._since :]:
            if event.kind == "judgment":
                self._send(event)

    def _begin(self, past: list[Asked]) -> None:
        task = Task(
            len(self.documents), self.setting.k, self.setting.seed,
            self._prior, self._features, tuple(past),
        )  # fmt: skip
        self._task = task
        self._steps = chosen(self.setting).questions(task)
        self._fresh, self._found = True, None
        self._advance(lambda steps: next(steps))

    def _send(self, event: Judged) -> None:
        """Hand an answer to the strategy, as of the document that it named first."""
        question, answer = self._asked(event)
        if isinstance(question, Compare) and question != self._open:
            answer = replace(answer, outcome=-answer.outcome)
        self._advance(lambda steps: steps.send(answer))

    def _advance(self, step: Callable[[Questions], Question]) -> None:
        assert self._steps is not None
        try:
            self._open = step(self._steps)
        except StopIteration as end:
            self._open, self._found = None, end.value

    def _asked(self, event: Judged) -> Asked:
        """A judgment by the numbers of its documents."""
        left = self._number[event.left]
        bad = frozenset(self._number[name] for name in event.bad)
        if event.right is None:
            return Grade(left), Answer(event.outcome, bad, event.skipped)
        sign = (event.outcome > 0) - (event.outcome < 0)
        return Compare(left, self._number[event.right]), Answer(sign, bad, event.skipped)


def chosen(setting: Setting) -> Strategy:
    """The strategy that a setting means."""
    base = strategy(setting.strategy)
    return Refined(base, setting.refine) if setting.refine else base


def _check(event: Judged) -> None:
    if event.right is not None and abs(event.outcome) > STRONGEST:
        raise DataError(f"the outcome of a comparison is -2 to 2; got {event.outcome!r}.")
    for name in event.bad:
        if name not in (event.left, event.right):
            raise DataError(f"{name!r} cannot be called bad: it is not shown.")
