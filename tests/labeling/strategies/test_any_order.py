"""Every pair in any order: the next one may be chosen from outside, and all else stays the same."""

from __future__ import annotations

import numpy as np
import pytest

from firstpage.labeling.session.events import InconsistentEventError, Judged, Setting
from firstpage.labeling.session.session import Session
from firstpage.labeling.strategies.exhaustive import EveryPair, EveryPairRun
from firstpage.labeling.strategies.strategy import Answer, Compare, GeneratorRun, TopKTask, start

DOCS = ["a", "b", "c", "d", "e"]
EVERY = Setting("pairs", k=3, seed=4)


def by_name(left: str, right: str | None) -> int:
    return 1 if left < (right or "") else -1


def answered(session: Session, rng: np.random.Generator | None = None) -> Session:
    """To the end; in an order of its own, or in any."""
    while session.question is not None:
        if rng is not None:
            session.select_pair(*session.choices[int(rng.integers(len(session.choices)))])
        shown = session.question
        session.answer(by_name(shown.left, shown.right))
    return session


@pytest.mark.parametrize("seed", range(5))
def test_the_result_is_that_of_the_own_order(seed: int) -> None:
    own = answered(Session(DOCS, EVERY))
    other = answered(Session(DOCS, EVERY), np.random.default_rng(seed))
    assert own.order == other.order == ("a", "b", "c")
    assert len(own.judgments) == len(other.judgments) == 10
    assert {frozenset((j.left, j.right)) for j in own.judgments} == {
        frozenset((j.left, j.right)) for j in other.judgments
    }


def test_it_is_replayed_and_audited() -> None:
    session = answered(Session(DOCS, EVERY), np.random.default_rng(1))
    session.audit()
    half = Session(DOCS, EVERY, session.events[:6])
    assert half.judgments == session.judgments[:6]
    assert len(half.choices) == 4
    half.undo()
    assert len(half.choices) == 5
    half.revise(0, 0)
    assert answered(half).done


def test_own_order_without_a_wish() -> None:
    """Just as the plain generator asks."""
    session, steps = Session(DOCS, EVERY), GeneratorRun(EveryPair(), TopKTask(5, 3, 4))
    for _ in range(10):
        assert isinstance(steps.question, Compare)
        assert session.choices[0] == (DOCS[steps.question.first], DOCS[steps.question.second])
        shown = session.question
        assert shown is not None
        assert {shown.left, shown.right} == set(session.choices[0])
        first = shown.left == DOCS[steps.question.first]
        session.answer(1 if first else -1)
        steps.answer(Answer(1))
    assert session.top_k == steps.result


def test_an_answer_that_does_not_fit_changes_nothing() -> None:
    session = Session(DOCS, EVERY)
    before = session.question
    other = Session(DOCS, EVERY)
    other.select_pair(*other.choices[-1])
    shown = other.question
    assert shown is not None
    assert shown.right is not None
    with pytest.raises(InconsistentEventError):
        session.apply(Judged(shown.right, shown.left, 1))
    assert session.question == before
    session.apply(Judged(shown.left, shown.right, 1))
    assert len(session.judgments) == 1
    with pytest.raises(InconsistentEventError):
        session.apply(Judged(shown.left, shown.right, 1))


def test_wishes_that_are_not_open_are_not_heard() -> None:
    session = Session(DOCS, EVERY)
    before = session.question
    session.select_pair("a", "nobody")
    session.select_pair("a", "a")
    assert session.question == before
    heap = Session(DOCS, Setting("heap", k=2))
    shown = heap.question
    heap.select_pair("d", "e")
    assert (heap.choices, heap.question) == ([], shown)


def test_bad_ones_are_never_asked_again() -> None:
    run = start(EveryPair(), TopKTask(4, 2, 0))
    assert isinstance(run, EveryPairRun)
    run.select((2, 1))
    assert isinstance(run.question, Compare)
    assert run.question.pair == (1, 2)
    bad = Answer(-1 if run.question.first == 1 else 1, frozenset({1}))
    ahead = run.peek(bad)
    assert isinstance(ahead, Compare)
    assert 1 not in ahead.documents
    run.answer(bad)
    assert run.question == ahead
    assert all(1 not in q.documents for q in run.choices)
    while run.question is not None:
        run.answer(Answer(1 if run.question.first < run.question.second else -1))
    assert run.result is not None
    assert run.result.order == (0, 2)


def test_repeats_come_as_ever() -> None:
    setting = Setting("pairs", k=3, seed=2, repeats=0.5)
    session = answered(Session(DOCS, setting))
    kinds = [judged.kind for judged in session.judgments]
    assert kinds.count("judgment") == 10
    assert kinds.count("repeat") > 0
    session.audit()
