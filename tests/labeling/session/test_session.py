"""Sessions are replay: resume, undo, revise, switch and audit are exact."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from firstpage.core.errors import DataError
from firstpage.labeling.session.events import (
    Event,
    InconsistentEventError,
    Judgment,
    Revision,
    Setting,
    SettingChange,
    Undo,
    from_dict,
    replay,
    setting_from_dict,
    to_dict,
)
from firstpage.labeling.session.extra_questions import MIN_REPEAT_DISTANCE, Gold
from firstpage.labeling.session.session import Session, ShownQuestion

NAMES = [f"d{i}" for i in range(20)]
STRATEGIES = ["heap", "heap-memo", "heap-closure", "tournament", "insertion", "quick-sort", "pairs"]


def better(shown: ShownQuestion) -> int:
    """Return the correct outcome: the greater number is better; a grade grows with the number."""
    if shown.right is None:
        return int(shown.left[1:]) // 4
    return (int(shown.left[1:]) > int(shown.right[1:])) * 2 - 1


def finish(session: Session) -> Session:
    while shown := session.question:
        session.answer(better(shown))
    return session


def copy(session: Session, first: Setting) -> Session:
    """Return a session replayed from the log, through JSON."""
    lines = [json.dumps(to_dict(event)) for event in session.events]
    return Session(session.documents, first, [from_dict(json.loads(line)) for line in lines])


EXACT = {"pools": "pools(last=20)", "duels": "duels(budget=600)"}  # as all pairs are asked


@pytest.mark.parametrize("name", [EXACT.get(name, name) for name in STRATEGIES])
def test_a_session_finds_the_top_k(name: str) -> None:
    session = finish(Session(NAMES, Setting(name, k=5)))
    assert session.order == ("d19", "d18", "d17", "d16", "d15")
    assert session.done
    assert session.remaining == (0, 0)
    assert session.top_k is not None


def test_sessions_with_grades_and_with_lists() -> None:
    session = finish(Session(NAMES, Setting("five-grade", k=3)))
    assert len(session.judgments) == 20
    lists = Session(["ours", "theirs"], Setting("pairs", k=2))
    shown = lists.question
    assert shown is not None
    lists.answer(2 if shown.left == "theirs" else -2)  # much better
    assert lists.order == ("theirs", "ours")


class Sessions(RuleBasedStateMachine):
    """After any sequence of events, the log alone gives the same session."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Setting("heap", k=4, repeat_rate=0.2)
        self.session = Session(NAMES, self.first)

    @precondition(lambda self: not self.session.done)
    @rule(outcome=st.integers(-1, 1), bad=st.booleans(), skipped=st.booleans())
    def answer(self, outcome: int, bad: bool, skipped: bool) -> None:
        shown = self.session.question
        assert shown is not None
        self.session.answer(outcome, [shown.left] if bad else [], skipped)

    @precondition(lambda self: self.session.judgments)
    @rule()
    def undo(self) -> None:
        before = self.session.judgments
        self.session.undo()
        assert self.session.judgments == before[:-1]

    @precondition(lambda self: self.session.judgments)
    @rule(data=st.data(), outcome=st.integers(-1, 1))
    def revise(self, data: st.DataObject, outcome: int) -> None:
        at = data.draw(st.integers(0, len(self.session.judgments) - 1))
        self.session.revise(at, outcome)
        assert self.session.judgments[at].outcome == outcome

    @rule(
        name=st.sampled_from([*STRATEGIES, "adaptive(budget=25)"]),
        k=st.sampled_from([1, 4, 9, 25]),
        seed=st.integers(0, 3),
    )
    def switch(self, name: str, k: int, seed: int) -> None:
        self.session.switch(strategy=name, k=k, seed=seed)

    @invariant()
    def replay_agrees(self) -> None:
        again = copy(self.session, self.first)
        assert again.question == self.session.question
        assert again.judgments == self.session.judgments
        assert again.order == self.session.order
        assert again.remaining == self.session.remaining
        active = replay((event, n) for n, event in enumerate(self.session.events))
        assert tuple(judged for judged, _ in active) == self.session.judgments


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=12, stateful_step_count=25)


@given(steps=st.integers(0, 25), back=st.integers(1, 25), name=st.sampled_from(STRATEGIES))
def test_undo_restores_the_earlier_question(steps: int, back: int, name: str) -> None:
    session = Session(NAMES, Setting(name, k=5))
    shown = []
    for _ in range(steps):
        if session.question is None:
            break
        shown.append(session.question)
        session.answer(better(shown[-1]))
    back = min(back, len(shown))
    for _ in range(back):
        session.undo()
    assert session.question == (shown[len(shown) - back] if back else session.question)
    assert finish(session).order == ("d19", "d18", "d17", "d16", "d15")


@given(
    steps=st.integers(1, 30), name=st.sampled_from(STRATEGIES), other=st.sampled_from(STRATEGIES)
)
def test_switching_back_restores_the_question(steps: int, name: str, other: str) -> None:
    """Switching to another strategy and back, without an answer between, keeps the question."""
    session = Session(NAMES, Setting(name, k=5))
    for _ in range(steps):
        if shown := session.question:
            session.answer(better(shown))
    question_before, answered_before = session.question, len(session.judgments)
    session.switch(strategy=other)
    session.switch(strategy=name)
    shown = session.question
    assert (shown is None) == (question_before is None)
    if shown and question_before:
        assert {shown.left, shown.right} == {question_before.left, question_before.right}
    finish(session)
    assert session.order == ("d19", "d18", "d17", "d16", "d15")
    assert len(session.judgments) == len(finish(Session(NAMES, Setting(name, k=5))).judgments)
    assert answered_before <= len(session.judgments)


def test_switching_k_keeps_the_answers() -> None:
    session = finish(Session(NAMES, Setting("tournament", k=10)))
    n_judgments = len(session.judgments)
    session.switch(k=3)
    assert session.order == ("d19", "d18", "d17")
    assert len(session.judgments) == n_judgments
    session.switch(k=12)
    assert not session.done
    assert len(finish(session).order or ()) == 12


def test_revising_changes_the_result_with_few_new_questions() -> None:
    session = finish(Session(NAMES, Setting("heap-closure", k=5)))
    n_judgments = len(session.judgments)
    at = next(i for i, e in enumerate(session.judgments) if {e.left, e.right} == {"d19", "d18"})
    old = session.judgments[at]
    session.revise(at, -old.outcome)
    finish(session)
    assert session.order is not None
    assert session.order[:2] == ("d18", "d19")
    assert len(session.judgments) <= n_judgments + 5


def test_a_document_keeps_its_side() -> None:
    session = Session(NAMES, Setting("heap", k=5, seed=3))
    before: ShownQuestion | None = None
    repeated = lefts = new = 0
    while shown := session.question:
        if before is not None:
            for name in (before.left, before.right):
                if name in (shown.left, shown.right):
                    repeated += 1
                    assert (name == before.left) == (name == shown.left)
            if not {before.left, before.right} & {shown.left, shown.right}:
                new += 1
                lefts += int((shown.left or "")[1:]) > int((shown.right or "")[1:])
        session.answer(better(shown))
        before = shown
    assert repeated > 20
    assert 0 < lefts < new, "new pairs come on both sides"


@pytest.mark.parametrize("name", ["insertion", "adaptive", "five-grade"])
def test_peek_changes_nothing(name: str) -> None:
    session = Session(NAMES, Setting(name, k=5, repeat_rate=0.3))
    for _ in range(15):
        shown, events = session.question, list(session.events)
        assert shown is not None
        ahead = session.peek(better(shown))
        assert (session.question, session.events) == (shown, events)
        session.answer(better(shown))
        assert session.question == ahead


def test_audit_finds_an_inconsistent_event() -> None:
    for name in ("heap", "adaptive"):
        session = Session(NAMES, Setting(name, k=5))
        for _ in range(9):
            session.answer(better(session.question))  # type: ignore[arg-type]
        session.undo()
        session.audit()
        events = list(session.events)
        assert isinstance(events[4], Judgment)
        events[4] = replace(events[4], left="d0", right="d1")
        forged = Session(NAMES, Setting(name, k=5), events)
        with pytest.raises(InconsistentEventError, match="event 4 does not fit"):
            forged.audit()
    with pytest.raises(InconsistentEventError, match="was not the open question"):
        Session(NAMES, Setting("heap", k=5), [Judgment("d0", "d1", 1)] * 3).question  # noqa: B018


@pytest.mark.parametrize("name", ["heap", "heap-closure", "tournament", "insertion", "five-grade"])
def test_the_range_of_remaining_questions_has_its_coverage(name: str) -> None:
    """The range contains the true number at about nine steps in ten."""
    inside, widths = [], []
    for seed in range(25):
        order = np.random.default_rng(seed).permutation(30)
        session = Session(NAMES + [f"d{i}" for i in range(20, 30)], Setting(name, k=8, seed=seed))
        ranges = []
        while shown := session.question:
            ranges.append(session.remaining)
            a = order[int(shown.left[1:])]
            b = order[int(shown.right[1:])] if shown.right else 0
            session.answer(int(np.sign(a - b)) if shown.right else 1)
        for i, (low, high) in enumerate(ranges):
            inside.append(low <= len(ranges) - i <= high)
            widths.append(high - low)
    assert np.mean(inside) > 0.85
    assert np.mean(widths) < 30


def test_repeats_and_gold_questions_do_not_change_the_result() -> None:
    gold_questions = [Gold("d1", "d2", -1), Gold("x", "y", 1)]
    plain = finish(Session(NAMES, Setting("heap", k=5)))
    mixed = Session(
        NAMES, Setting("heap", k=5, repeat_rate=0.3, gold_rate=0.2), gold_questions=gold_questions
    )
    log: list[ShownQuestion] = []
    while shown := mixed.question:
        log.append(shown)
        mixed.answer(better(shown) if shown.kind != "gold" else 1)
    kinds = [shown.kind for shown in log]
    assert kinds[0] == "judgment"
    assert kinds.count("repeat") > 3
    assert kinds.count("gold") == 2
    assert all("judgment" in pair for pair in pairwise(kinds))
    assert mixed.order == plain.order
    swapped = 0
    for i, shown in enumerate(log):
        if shown.kind == "repeat":
            earlier = [s for s in log[:i] if s.kind == "judgment"]
            pairs = [{s.left, s.right} for s in earlier]
            at = max(j for j, pair in enumerate(pairs) if pair == {shown.left, shown.right})
            swapped += earlier[at].left == shown.right
            assert {shown.left, shown.right} in pairs[:-MIN_REPEAT_DISTANCE]
    assert 0 < swapped < kinds.count("repeat")


def judged(session: Session, **changes: Any) -> Judgment:
    shown = session.question
    assert shown is not None
    record = {**to_dict(shown.judgment(1)), **changes}
    event = from_dict(record)
    assert isinstance(event, Judgment)
    return event


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (lambda s: judged(s, left="d3", right="d4"), "the open question is"),
        (lambda s: judged(s, kind="gold"), "the open question is"),
        (lambda s: judged(s, bad=["elsewhere"]), "not shown"),
        (lambda s: Judgment("a", "b", 3), "open question"),
        (lambda s: Undo(), "nothing to undo"),
        (lambda s: Revision(0, 1), "no judgment 0"),
        (lambda s: SettingChange(Setting("hep")), "Did you mean"),
    ],
)
def test_an_inconsistent_event_changes_nothing(event, message: str) -> None:
    session = Session(NAMES, Setting("heap"))
    before = session.question
    with pytest.raises(DataError, match=message):
        session.apply(event(session))
    assert session.events == []
    assert session.question == before


def test_replay_returns_active_judgments_with_their_sources() -> None:
    first, second, third = (Judgment(a, b, 1) for a, b in ("ab", "bc", "cd"))
    log: list[Event] = [
        first,
        second,
        Undo(),
        third,
        Revision(0, -1, ("b",)),
        SettingChange(Setting("heap")),
    ]
    active = replay((event, number) for number, event in enumerate(log))
    assert active == [(replace(first, outcome=-1, bad=("b",)), 0), (third, 3)]
    for event in (Revision(2, 1), Revision(-1, 1), Revision(0, 3), Revision(0, 1, ("z",))):
        with pytest.raises(DataError):
            replay((e, None) for e in [*log, event])


def test_a_complete_session_takes_no_answer() -> None:
    session = finish(Session(["a1", "a2"], Setting("heap")))
    with pytest.raises(InconsistentEventError, match="no question to answer"):
        session.answer(1)
    assert session.peek(1) is None


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: Session(["a", "b", "a"]), "'a' occurs twice"),
        (lambda: Session([]), "cannot be labeled"),
        (lambda: Setting(k=0), "k of Setting must be"),
        (lambda: Setting(repeat_rate=0.9), "between 0 and 0.5"),
        (lambda: Setting(seed=-1), "seed of Setting must be"),
        (lambda: from_dict({"event": "danced"}), "one of judged"),
        (lambda: from_dict({"event": "judged", "left": "a"}), "needs the key 'outcome'"),
        (
            lambda: from_dict({"event": "judged", "left": "a", "right": "b", "outcome": 7}),
            "-2 to 2",
        ),
        (lambda: from_dict({"event": "judged", "left": "a", "outcome": "1"}), "must be an integer"),
        (lambda: from_dict({"event": "judged", "left": "a", "outcome": 1, "kind": "x"}), "kind"),
        (lambda: from_dict({"event": "revised", "outcome": 1}), "needs the key 'index'"),
        (lambda: setting_from_dict({"stragety": "heap"}), "no key 'stragety'"),
        (lambda: Session(NAMES, prior=[1.0]), "1 scores for 20"),
    ],
)
def test_invalid_input_raises_an_error(bad, message: str) -> None:
    with pytest.raises(DataError, match=message):
        bad()


@pytest.mark.parametrize("name", ["adaptive(budget=40)", "adaptive"])
def test_adaptive_sessions_replay_exactly(name: str) -> None:
    """The log alone gives the same open question after every answer, and the same top k."""
    setting = Setting(name, k=5, repeat_rate=0.1)
    session = Session(NAMES, setting)
    while shown := session.question:
        session.answer(better(shown))
        if len(session.events) % 9 == 0:
            assert copy(session, setting).question == session.question
    assert copy(session, setting).order == session.order
    assert session.result.confidence is not None
    if "40" in name:
        assert len([e for e in session.judgments if e.kind == "judgment"]) <= 40
    assert len(set(session.order or ()) & {"d19", "d18", "d17", "d16", "d15"}) >= 4


def test_refinement_asks_exactly_the_extra_questions() -> None:
    plain = finish(Session(NAMES, Setting("tournament", k=5)))
    session = Session(NAMES, Setting("tournament", k=5, refine=12))
    ranges = []
    while shown := session.question:
        ranges.append(session.remaining)
        session.answer(better(shown))
    assert len(session.judgments) == len(plain.judgments) + 12
    assert ranges[-12:] == [(i, i) for i in range(12, 0, -1)]
    assert session.order == plain.order


def test_a_result_has_a_confidence_at_any_time() -> None:
    session = Session(NAMES, Setting("heap", k=5))
    assert len(session.result.order) == 5, "before the first answer too"
    for _ in range(30):
        session.answer(better(session.question))  # type: ignore[arg-type]
    early = session.result
    late = finish(session).result
    assert session.top_k is not None
    assert late.order == session.top_k.order
    assert late.confidence is not None
    assert early.confidence is not None
    assert late.set_confidence is not None
    assert early.set_confidence is not None
    assert 0 <= early.set_confidence < late.set_confidence <= 1
    assert sum(late.membership or ()) == pytest.approx(5)


def test_switching_to_adaptive_uses_all_earlier_answers() -> None:
    session = Session(NAMES, Setting("insertion", k=5))
    for _ in range(25):
        session.answer(better(session.question))  # type: ignore[arg-type]
    session.switch(strategy="adaptive(budget=45)")
    finish(session)
    assert len(session.judgments) <= 45
    assert len(set(session.order or ()) & {"d19", "d18", "d17", "d16", "d15"}) >= 4
