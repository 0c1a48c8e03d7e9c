"""A labeling session: one assessor, one query, a strategy run over the log of answers.

A session consists of its documents, its first setting and its events; everything else is computed
by replay.  So a session resumes after a crash, undoes any number of judgments, and changes
strategy or k at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.core import DataError
from firstpage.labeling.session.estimate import (
    answers_used,
    progress_after,
    provisional_top_k,
    remaining_questions,
    with_confidence,
)
from firstpage.labeling.session.events import (
    Event,
    InconsistentEventError,
    Judgment,
    Kind,
    Revision,
    Setting,
    SettingChange,
    Undo,
    apply_event,
    check_outcome,
)
from firstpage.labeling.session.extra_questions import Extras, Gold
from firstpage.labeling.session.implied import QuestionCounts, question_counts
from firstpage.labeling.strategies.adaptive import Refined
from firstpage.labeling.strategies.exhaustive import AnyOrderRun, EveryPairRun
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

COMPLETE = "this query is complete: there is no question to answer."


def sides(first: str, second: str, log: Sequence[Judgment], seed: int) -> tuple[str, str]:
    """Return the two documents as (left, right).

    A document of the previous question keeps its side, so that it need not be read again;
    otherwise the seed decides.
    """
    if log and log[-1].right is not None:
        left, right = log[-1].left, log[-1].right
        if first == left or second == right:
            return first, second
        if first == right or second == left:
            return second, first
    flip = np.random.default_rng([seed, len(log)]).random() < 0.5
    return (second, first) if flip else (first, second)


@dataclass(frozen=True)
class ShownQuestion:
    """A question as the assessor sees it, and why it is asked; `right` is None for a grade."""

    left: str
    right: str | None
    kind: Kind = "judgment"

    def judgment(self, outcome: int, bad: Iterable[str] = (), skipped: bool = False) -> Judgment:
        """Return the event that answers this question."""
        return Judgment(self.left, self.right, outcome, tuple(bad), self.kind, skipped)


class Session:
    """Questions and answers about one query.

    A session asks one question at a time until the strategy knows the top k. Its state follows
    from its documents, its first setting and its events: a session that is created again with
    the same `events` continues where the first one stopped.

    Parameters
    ----------
    documents : sequence of str
        Names of the query's documents, each once.
    setting : Setting, optional
        Strategy, k and quality controls; ``Setting()`` by default.
    events : iterable of Event, default ()
        Events of an earlier session with the same documents and setting, to be replayed.
    prior : sequence of float, optional
        Score per document, higher is better, such as that of a current ranker. Strategies that
        can use it ask fewer questions.
    features : array of shape (n_documents, n_features), optional
        Feature vectors; the adaptive strategy expects similar documents to be similarly good.
    gold_questions : sequence of Gold, default ()
        Questions with known answers that ``Setting.gold_rate`` mixes in.

    Attributes
    ----------
    documents : tuple of str
        The documents.
    setting : Setting
        The current setting.
    events : list of Event
        All events in order: the log to be stored.

    Raises
    ------
    DataError
        If a document occurs twice, there are no documents, the strategy is unknown, or `prior`
        has another length than `documents`.

    References
    ----------
    S. Niu, J. Guo, Y. Lan and X. Cheng (2012). Top-k Learning to Rank: Labeling, Ranking and
    Evaluation. SIGIR, section 3.

    Examples
    --------
    >>> import firstpage as fp
    >>> session = fp.labeling.Session(["a", "b", "c", "d"], fp.labeling.Setting("tournament", k=2))
    >>> while (question := session.question) is not None:
    ...     _ = session.answer(1 if question.left < question.right else -1)
    >>> session.order
    ('a', 'b')
    """

    def __init__(
        self,
        documents: Sequence[str],
        setting: Setting | None = None,
        events: Iterable[Event] = (),
        *,
        prior: Sequence[float] | None = None,
        features: Any = None,
        gold_questions: Sequence[Gold] = (),
    ) -> None:
        self.documents = tuple(documents)
        self._index = {name: i for i, name in enumerate(self.documents)}
        if len(self._index) < len(self.documents):
            duplicate = next(d for d in self.documents if self.documents.count(d) > 1)
            raise DataError(f"document {duplicate!r} occurs twice; give each document once.")
        self.setting = self._first_setting = setting or Setting()
        self.events: list[Event] = []
        self._active: list[Judgment] = []  # judgments that are not undone
        self._past_count = 0  # how many of them precede the current setting
        self._prior = None if prior is None else tuple(float(x) for x in prior)
        self._features = features
        self._extras = Extras(tuple(gold_questions), self.documents)
        self._current_run: StrategyRun | None = None
        strategy(self.setting.strategy)
        self._task = self._task_after(())  # raises for invalid documents, k or prior
        self.replay(events)

    @property
    def judgments(self) -> tuple[Judgment, ...]:
        """The active judgments (not undone, as revised), in order."""
        return tuple(self._active)

    @property
    def _strategy_judgments(self) -> list[Judgment]:
        """The active judgments without repeats, gold questions and probes."""
        return [e for e in self._active if e.kind == "judgment"]

    @property
    def question(self) -> ShownQuestion | None:
        """The open question; None when the query is complete."""
        return self._shown(self._run().question, self._active)

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The pairs that may be asked next, where the strategy allows any order; else empty."""
        run = self._run()
        questions = run.choices if isinstance(run, EveryPairRun) else []
        names = self.documents
        return [(names[q.first], names[q.second]) for q in questions if isinstance(q, Compare)]

    def select_pair(self, left: str, right: str) -> None:
        """Ask this pair next; without effect unless it is one of `choices`.

        Parameters
        ----------
        left, right : str
            The two documents, in any order.
        """
        self._select(self._run(), left, right)

    def _select(self, run: StrategyRun, left: str, right: str | None) -> None:
        names = (left,) if right is None else (left, right)
        if isinstance(run, AnyOrderRun) and self._index.keys() >= {*names}:
            run.select(*(self._index[name] for name in names))

    def _shown(self, question: Question | None, log: Sequence[Judgment]) -> ShownQuestion | None:
        """Return the strategy's question as shown after this log, or the extra one before it."""
        if question is None:
            return None
        extra = self._extras.due(self.setting, log)
        if extra is not None and extra[2] == "probe" and isinstance(self._run(), EveryPairRun):
            extra = None  # no pair is implied where every pair is asked
        if extra is not None:
            left, right, kind = extra
            return ShownQuestion(left, right, kind)
        if not isinstance(question, Compare):
            return ShownQuestion(self.documents[question.document], None)
        first, second = self.documents[question.first], self.documents[question.second]
        return ShownQuestion(*sides(first, second, log, self.setting.seed))

    @property
    def remaining(self) -> tuple[int, int]:
        """A range (low, high) that contains the number of remaining questions nine times in ten."""
        if self._run().question is None:
            return 0, 0
        extra = self.setting.refine
        if extra:
            answers = [self._answered(e) for e in self._strategy_judgments[len(self._task.past) :]]
            used = answers_used(strategy(self.setting.strategy), self._task, answers)
            if used is not None:
                return (extra - len(answers) + used,) * 2
        shown = [
            (e.left,) if e.right is None else (e.left, e.right) for e in self._strategy_judgments
        ]
        low, high = remaining_questions(
            self.setting.strategy, len(self.documents), self.setting.k, progress_after(shown)
        )
        return low + extra, high + extra

    @property
    def counts(self) -> QuestionCounts:
        """The pairs that were asked, that are implied by the answers, and that were not needed."""
        return question_counts(self.documents, self._active)

    @property
    def done(self) -> bool:
        """Whether the query is complete."""
        return self._run().question is None

    @property
    def top_k(self) -> TopK | None:
        """The strategy's top k, documents by index; None while questions remain."""
        run = self._run()
        return run.result if run.question is None else None

    @property
    def result(self) -> TopK:
        """The top k with its confidence; while questions remain, the best estimate so far."""
        top_k = self.top_k
        answers = [self._answered(e) for e in self._strategy_judgments]
        task = self._task_after(())
        if top_k is None:
            return provisional_top_k(task, answers)
        return with_confidence(task, answers, top_k)

    @property
    def order(self) -> tuple[str, ...] | None:
        """The names of the top k documents, best first; None while questions remain."""
        top_k = self.top_k
        return None if top_k is None else tuple(self.documents[d] for d in top_k.order)

    def answer(self, outcome: int, bad: Iterable[str] = (), skipped: bool = False) -> Judgment:
        """Answer the open question.

        Parameters
        ----------
        outcome : int
            1 if the left document is better, -1 if the right one is, 0 if neither is; 2 and -2
            mean much better. For a grade, the grade.
        bad : iterable of str, default ()
            Documents of the question that are clearly irrelevant.
        skipped : bool, default False
            Whether the assessor skips the question.

        Returns
        -------
        Judgment
            The event that was appended to `events`.

        Raises
        ------
        InconsistentEventError
            If the query is complete.
        DataError
            If the outcome is out of range or a bad document is not shown.
        """
        question = self.question
        if question is None:
            raise InconsistentEventError(COMPLETE)
        event = question.judgment(outcome, bad, skipped)
        self.apply(event)
        return event

    def undo(self) -> None:
        """Remove the last active judgment.

        Raises
        ------
        InconsistentEventError
            If there is no active judgment.
        """
        self.apply(Undo())

    def revise(self, index: int, outcome: int, bad: Iterable[str] = ()) -> None:
        """Change the answer of an active judgment.

        Parameters
        ----------
        index : int
            Index of the judgment in `judgments`.
        outcome : int
            The new outcome or grade.
        bad : iterable of str, default ()
            Documents of the question that are clearly irrelevant.

        Raises
        ------
        InconsistentEventError
            If there is no such judgment.
        """
        self.apply(Revision(index, outcome, tuple(bad)))

    def switch(self, **changes: Any) -> None:
        """Continue with a changed setting; all answers stay known.

        Parameters
        ----------
        **changes
            Fields of `Setting`, such as ``strategy="insertion"`` or ``k=3``.

        Raises
        ------
        DataError
            If the new setting is not valid.
        """
        self.apply(SettingChange(replace(self.setting, **changes)))

    def apply(self, event: Event) -> None:
        """Apply an event; an inconsistent event raises an error and changes nothing.

        Parameters
        ----------
        event : Event
            A judgment, an undo, a revision or a change of the setting.

        Raises
        ------
        InconsistentEventError
            If the event does not fit the log.
        """
        if isinstance(event, Judgment):
            self._check_open(event)
        self._apply_to_judgments(event)
        if isinstance(event, Judgment) and event.kind == "judgment":
            self._advance(self._run(), event)
        self.events.append(event)

    def replay(self, events: Iterable[Event]) -> None:
        """Append events of a stored log without checking them; `audit` checks.

        Parameters
        ----------
        events : iterable of Event
            Events that were valid when they were logged.
        """
        for event in events:
            self._apply_to_judgments(event)
            self._current_run = None
            self.events.append(event)

    def audit(self) -> None:
        """Check all events by applying them one by one to a new session.

        Raises
        ------
        InconsistentEventError
            At the first event that does not fit the log before it.
        """
        replayed = Session(
            self.documents,
            self._first_setting,
            prior=self._prior,
            features=self._features,
            gold_questions=self._extras.gold_questions,
        )
        for number, event in enumerate(self.events):
            try:
                replayed.apply(event)
            except DataError as error:
                raise InconsistentEventError(
                    f"event {number} does not fit the log: {error}"
                ) from error

    def peek(self, outcome: int) -> ShownQuestion | None:
        """Return the question that would follow this answer; the session does not change.

        Parameters
        ----------
        outcome : int
            The supposed outcome of the open question.

        Returns
        -------
        ShownQuestion or None
            The next question; None if the query would be complete.
        """
        run, shown = self._run(), self.question
        if shown is None:
            return None
        event = shown.judgment(outcome)
        question = run.question
        if event.kind == "judgment":
            question = run.peek(self._oriented_answer(event, question))
        return self._shown(question, [*self._active, event])

    def _apply_to_judgments(self, event: Event) -> None:
        """Update the active judgments; every event but a judgment restarts the strategy."""
        apply_event(self._active, event)
        if isinstance(event, Judgment):
            return
        if isinstance(event, SettingChange):
            strategy(event.setting.strategy)
            self.setting, self._past_count = event.setting, len(self._active)
        elif isinstance(event, Revision):
            self._past_count = len(self._active)
        else:
            self._past_count = min(self._past_count, len(self._active))
        self._current_run = None

    def _check_open(self, event: Judgment) -> None:
        """Raise an error unless the judgment answers a question that may be asked now."""
        before = self.question
        self._select(self._run(), event.left, event.right)
        shown = self.question
        if shown is None or before is None:
            raise InconsistentEventError(COMPLETE)
        if (event.left, event.right, event.kind) != (shown.left, shown.right, shown.kind):
            self._select(self._run(), before.left, before.right)
            raise InconsistentEventError(
                f"the open question is {shown.left!r} against {shown.right!r} ({shown.kind}), "
                f"not {event.left!r} against {event.right!r} ({event.kind})."
            )
        check_outcome(event)

    def _run(self) -> StrategyRun:
        """Return the run of the strategy after all active judgments."""
        if self._current_run is not None:
            return self._current_run
        current = strategy_of(self.setting)
        if getattr(current, "memoryless", False):
            self._past_count = len(self._active)  # avoids computing every question again
        past, answers = self._active[: self._past_count], self._active[self._past_count :]
        self._task = self._task_after(self._answered(e) for e in past if e.kind == "judgment")
        run = start(current, self._task)
        for event in answers:
            if event.kind == "judgment":
                self._advance(run, event)
        self._current_run = run
        return run

    def _task_after(self, past: Iterable[AnsweredQuestion]) -> TopKTask:
        return TopKTask(
            len(self.documents),
            self.setting.k,
            self.setting.seed,
            self._prior,
            self._features,
            tuple(past),
        )

    def _advance(self, run: StrategyRun, event: Judgment) -> None:
        """Pass a judgment to the run of the strategy."""
        self._select(run, event.left, event.right)
        run.answer(self._oriented_answer(event, run.question))

    def _oriented_answer(self, event: Judgment, question: Question | None) -> Answer:
        """Return the answer from the view of the document that the strategy named first."""
        answered, answer = self._answered(event)
        if question is None or set(answered.documents) != set(question.documents):
            raise InconsistentEventError(
                f"{event.left!r} against {event.right!r} was not the open question."
            )
        return answer if answered == question else replace(answer, outcome=-answer.outcome)

    def _answered(self, event: Judgment) -> AnsweredQuestion:
        """Return a judgment as question and answer, documents by index."""
        left = self._index[event.left]
        bad = frozenset(self._index[name] for name in event.bad)
        if event.right is None:
            return Grade(left), Answer(event.outcome, bad, event.skipped)
        sign = (event.outcome > 0) - (event.outcome < 0)
        return Compare(left, self._index[event.right]), Answer(sign, bad, event.skipped)


def strategy_of(setting: Setting) -> Strategy:
    """Return the strategy of a setting, with its extra comparisons near rank k."""
    base = strategy(setting.strategy)
    return Refined(base, setting.refine) if setting.refine else base
