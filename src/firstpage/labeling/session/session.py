"""One person labels one query: a strategy run over the log of what was answered.

A session is its documents, its first setting and its events; everything else is replay.  So a
session resumes after a crash, undoes as far as one likes, and changes strategy or k on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.errors import DataError
from firstpage.labeling.session.estimate import (
    guess,
    needed,
    progress_after,
    remaining_questions,
    with_confidence,
)
from firstpage.labeling.session.events import (
    Event,
    InconsistentEventError,
    Judged,
    Kind,
    Revised,
    Setting,
    Switched,
    Undone,
    apply_event,
    check_outcome,
)
from firstpage.labeling.strategies.adaptive import Refined
from firstpage.labeling.strategies.exhaustive import EveryPairRun
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Grade,
    Question,
    Strategy,
    StrategyRun,
    TopK,
    TopKTask,
    start,
)

APART = 5  # a question is not repeated before so many others


@dataclass(frozen=True)
class Gold:
    """A question whose answer is known: 1, the left one is better, -1 or 0; or a grade."""

    left: str
    right: str | None
    outcome: int


@dataclass(frozen=True)
class Extras:
    """Which extra question is due.  It depends on the log and the seed alone, so replay agrees."""

    golds: tuple[Gold, ...] = ()

    def due(self, setting: Setting, log: Sequence[Judged]) -> tuple[str, str | None, Kind] | None:
        """The extra question to show now, if any: never the first, never two in a row."""
        if not log or log[-1].kind != "judgment" or not (setting.repeats or setting.golds):
            return None
        plain = [event for event in log if event.kind == "judgment"]
        rng = np.random.default_rng([setting.seed, len(plain), 1])
        chance = rng.random()
        if chance < setting.golds:
            return self._gold(log)
        if chance < setting.golds + setting.repeats:
            return _repeat(plain[:-APART], log, rng)
        return None

    def _gold(self, log: Sequence[Judged]) -> tuple[str, str | None, Kind] | None:
        """The first one not yet asked."""
        seen = {(event.left, event.right) for event in log if event.kind == "gold"}
        for gold in self.golds:
            if (gold.left, gold.right) not in seen:
                return gold.left, gold.right, "gold"
        return None


def _repeat(
    plain: Sequence[Judged], log: Sequence[Judged], rng: np.random.Generator
) -> tuple[str, str | None, Kind] | None:
    """One of the older judgments that was not repeated yet, with sides swapped half of the time."""
    seen = {frozenset((e.left, e.right)) for e in log if e.kind == "repeat"}
    old = [e for e in plain if frozenset((e.left, e.right)) not in seen and not e.skipped]
    if not old:
        return None
    event = old[int(rng.integers(len(old)))]
    if event.right is not None and rng.random() < 0.5:
        return event.right, event.left, "repeat"
    return event.left, event.right, "repeat"


def sides(first: str, second: str, before: Sequence[Judged], seed: int) -> tuple[str, str]:
    """Left and right: a document that was just shown keeps its side, else the seed decides.

    A document that stays where it is need not be read again.
    """
    if before and before[-1].right is not None:
        left, right = before[-1].left, before[-1].right
        if first == left or second == right:
            return first, second
        if first == right or second == left:
            return second, first
    flip = np.random.default_rng([seed, len(before)]).random() < 0.5
    return (second, first) if flip else (first, second)


@dataclass(frozen=True)
class ShownQuestion:
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
        self.setting = self._first = setting or Setting()
        self.events: list[Event] = []
        self._standing: list[Judged] = []  # judgments that are not undone
        self._since = 0  # how many of them came before the present setting
        self._prior = None if prior is None else tuple(float(x) for x in prior)
        self._features = features
        self._extras = Extras(tuple(golds))
        self._at_work: StrategyRun | None = None
        strategy(self.setting.strategy)
        self._task = self._task_after(())  # refuses what cannot be
        self.replay(events)

    @property
    def judgments(self) -> tuple[Judged, ...]:
        """Those that stand, in order."""
        return tuple(self._standing)

    @property
    def _plain(self) -> list[Judged]:
        """The judgments that the strategy asked for."""
        return [e for e in self._standing if e.kind == "judgment"]

    @property
    def question(self) -> ShownQuestion | None:
        """What is open; None when the query is done."""
        return self._shown(self._run().question, self._standing)

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The pairs that may be asked next, where any order will do; else none."""
        run = self._run()
        found = run.choices if isinstance(run, EveryPairRun) else []
        return [(self.documents[q.first], self.documents[q.second]) for q in found]

    def select_pair(self, left: str, right: str) -> None:
        """Ask this pair next, if it is one of the `choices`."""
        self._select(self._run(), left, right)

    def _select(self, run: StrategyRun, left: str, right: str | None) -> None:
        pair = self._number.get(left), self._number.get(right or "")
        if isinstance(run, EveryPairRun) and pair[0] is not None and pair[1] is not None:
            run.select((pair[0], pair[1]))

    def _shown(self, question: Question | None, log: Sequence[Judged]) -> ShownQuestion | None:
        """A question of the strategy as it is shown after this log, or the extra one before it."""
        if question is None:
            return None
        extra = self._extras.due(self.setting, log)
        if extra is not None:
            left, right, kind = extra
            return ShownQuestion(left, right, kind)
        if not isinstance(question, Compare):
            return ShownQuestion(self.documents[question.document], None)
        first, second = self.documents[question.first], self.documents[question.second]
        return ShownQuestion(*sides(first, second, log, self.setting.seed))

    @property
    def remaining(self) -> tuple[int, int]:
        """How many questions are left: nine times in ten the truth is in this range."""
        if self._run().question is None:
            return 0, 0
        extra = self.setting.refine
        if extra:
            asked = [self._asked(e) for e in self._plain[len(self._task.past) :]]
            used = needed(strategy(self.setting.strategy), self._task, asked)
            if used is not None:
                return (extra - len(asked) + used,) * 2
        shown = [(e.left,) if e.right is None else (e.left, e.right) for e in self._plain]
        low, high = remaining_questions(
            self.setting.strategy, len(self.documents), self.setting.k, progress_after(shown)
        )
        return low + extra, high + extra

    @property
    def done(self) -> bool:
        """No question is left."""
        return self._run().question is None

    @property
    def top_k(self) -> TopK | None:
        """The top k, once it is known; documents by number."""
        run = self._run()
        return run.result if run.question is None else None

    @property
    def result(self) -> TopK:
        """The top k with its confidence; before it is known, the best guess from the answers."""
        found = self.top_k
        asked = [self._asked(e) for e in self._plain]
        task = self._task_after(())
        return guess(task, asked) if found is None else with_confidence(task, asked, found)

    @property
    def order(self) -> tuple[str, ...] | None:
        """The top k by name, best first, once it is known."""
        found = self.top_k
        return None if found is None else tuple(self.documents[d] for d in found.order)

    def answer(self, outcome: int, bad: Iterable[str] = (), skipped: bool = False) -> Judged:
        """Answer what is open."""
        shown = self.question
        if shown is None:
            raise InconsistentEventError("this query is done: there is nothing to answer.")
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
        """Let one event happen; one that does not fit changes nothing."""
        if isinstance(event, Judged):
            self._fits(event)
        self._take(event)
        if isinstance(event, Judged) and event.kind == "judgment":
            self._meet(self._run(), event)
        self.events.append(event)

    def replay(self, events: Iterable[Event]) -> None:
        """Events from a log, which fitted when they happened; see `audit`."""
        for event in events:
            self._take(event)
            self._at_work = None
            self.events.append(event)

    def audit(self) -> None:
        """Go the whole way again; raises at the first event that does not fit."""
        again = Session(
            self.documents, self._first, prior=self._prior, features=self._features,
            golds=self._extras.golds,
        )  # fmt: skip
        for number, event in enumerate(self.events):
            try:
                again.apply(event)
            except DataError as error:
                raise InconsistentEventError(f"event {number} does not fit: {error}") from error

    def peek(self, outcome: int) -> ShownQuestion | None:
        """What would be open after this answer; changes nothing."""
        run, shown = self._run(), self.question
        if shown is None:
            return None
        event = shown.answered(outcome)
        question = run.question
        if event.kind == "judgment":
            question = run.peek(self._turned(event, question))
        return self._shown(question, [*self._standing, event])

    def _take(self, event: Event) -> None:
        """Apply an event; all but a judgment begin the strategy anew."""
        apply_event(self._standing, event)
        if isinstance(event, Judged):
            return
        if isinstance(event, Switched):
            strategy(event.setting.strategy)
            self.setting, self._since = event.setting, len(self._standing)
        elif isinstance(event, Revised):
            self._since = len(self._standing)
        else:
            self._since = min(self._since, len(self._standing))
        self._at_work = None

    def _fits(self, event: Judged) -> None:
        before = self.question
        self._select(self._run(), event.left, event.right)
        shown = self.question
        if shown is None or before is None:
            raise InconsistentEventError("this query is done: there is nothing to answer.")
        if (event.left, event.right, event.kind) != (shown.left, shown.right, shown.kind):
            self._select(self._run(), before.left, before.right)
            raise InconsistentEventError(
                f"the open question is {shown.left!r} against {shown.right!r} ({shown.kind}), "
                f"not {event.left!r} against {event.right!r} ({event.kind})."
            )
        check_outcome(event)

    def _run(self) -> StrategyRun:
        """The strategy where the judgments lead."""
        if self._at_work is not None:
            return self._at_work
        how = chosen(self.setting)
        if getattr(how, "memoryless", False):
            self._since = len(self._standing)  # saves finding every question again
        before, after = self._standing[: self._since], self._standing[self._since :]
        self._task = self._task_after(self._asked(e) for e in before if e.kind == "judgment")
        run = start(how, self._task)
        for event in after:
            if event.kind == "judgment":
                self._meet(run, event)
        self._at_work = run
        return run

    def _task_after(self, past: Iterable[AnsweredQuestion]) -> TopKTask:
        return TopKTask(
            len(self.documents), self.setting.k, self.setting.seed,
            self._prior, self._features, tuple(past),
        )  # fmt: skip

    def _meet(self, run: StrategyRun, event: Judged) -> None:
        """A judgment comes to the strategy."""
        self._select(run, event.left, event.right)
        run.answer(self._turned(event, run.question))

    def _turned(self, event: Judged, question: Question | None) -> Answer:
        """An answer as of the document that the strategy named first."""
        asked, answer = self._asked(event)
        if question is None or set(asked.documents) != set(question.documents):
            raise InconsistentEventError(
                f"{event.left!r} against {event.right!r} was not asked then."
            )
        return answer if asked == question else replace(answer, outcome=-answer.outcome)

    def _asked(self, event: Judged) -> AnsweredQuestion:
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
