"""EveryPair in any order: the caller may choose the next pair, and the result stays the same."""

from __future__ import annotations

import numpy as np
import pytest

from firstpage.labeling.session.events import InconsistentEventError, Judgment, Setting
from firstpage.labeling.session.session import Session
from firstpage.labeling.strategies.exhaustive import EveryPair, EveryPairRun
from firstpage.labeling.strategies.strategy import Answer, Compare, GeneratorRun, TopKTask, start

DOCS = ["a", "b", "c", "d", "e"]
SETTING = Setting("pairs", k=3, seed=4)


def by_name(left: str, right: str | None) -> int:
    return 1 if left < (right or "") else -1


def complete(session: Session, rng: np.random.Generator | None = None) -> Session:
    """Complete a session in its own order, or in a random one."""
    while session.question is not None:
        if rng is not None:
            session.select_pair(*session.choices[int(rng.integers(len(session.choices)))])
        shown = session.question
        session.answer(by_name(shown.left, shown.right))
    return session


@pytest.mark.parametrize("seed", range(5))
def test_the_result_does_not_depend_on_the_order_of_pairs(seed: int) -> None:
    plain = complete(Session(DOCS, SETTING))
    shuffled = complete(Session(DOCS, SETTING), np.random.default_rng(seed))
    assert plain.order == shuffled.order == ("a", "b", "c")
    assert len(plain.judgments) == len(shuffled.judgments) == 10
    assert {frozenset((j.left, j.right)) for j in plain.judgments} == {
        frozenset((j.left, j.right)) for j in shuffled.judgments
    }


def test_a_session_in_any_order_replays_and_passes_its_audit() -> None:
    session = complete(Session(DOCS, SETTING), np.random.default_rng(1))
    session.audit()
    half = Session(DOCS, SETTING, session.events[:6])
    assert half.judgments == session.judgments[:6]
    assert len(half.choices) == 4
    half.undo()
    assert len(half.choices) == 5
    half.revise(0, 0)
    assert complete(half).done


def test_without_a_selection_pairs_come_in_the_own_order() -> None:
    """The questions are those of the generator."""
    session, run = Session(DOCS, SETTING), GeneratorRun(EveryPair(), TopKTask(5, 3, 4))
    for _ in range(10):
        assert isinstance(run.question, Compare)
        assert session.choices[0] == (DOCS[run.question.first], DOCS[run.question.second])
        shown = session.question
        assert shown is not None
        assert {shown.left, shown.right} == set(session.choices[0])
        first = shown.left == DOCS[run.question.first]
        session.answer(1 if first else -1)
        run.answer(Answer(1))
    assert session.top_k == run.result


def test_an_inconsistent_answer_changes_nothing() -> None:
    session = Session(DOCS, SETTING)
    before = session.question
    other = Session(DOCS, SETTING)
    other.select_pair(*other.choices[-1])
    shown = other.question
    assert shown is not None
    assert shown.right is not None
    with pytest.raises(InconsistentEventError):
        session.apply(Judgment(shown.right, shown.left, 1))
    assert session.question == before
    session.apply(Judgment(shown.left, shown.right, 1))
    assert len(session.judgments) == 1
    with pytest.raises(InconsistentEventError):
        session.apply(Judgment(shown.left, shown.right, 1))


def test_selecting_a_pair_that_is_not_open_has_no_effect() -> None:
    session = Session(DOCS, SETTING)
    before = session.question
    session.select_pair("a", "nobody")
    session.select_pair("a", "a")
    assert session.question == before
    heap = Session(DOCS, Setting("heap", k=2))
    shown = heap.question
    heap.select_pair("d", "e")
    assert (heap.choices, heap.question) == ([], shown)


def test_pairs_with_a_bad_document_are_not_asked() -> None:
    run = start(EveryPair(), TopKTask(4, 2, 0))
    assert isinstance(run, EveryPairRun)
    run.select(2, 1)
    assert isinstance(run.question, Compare)
    assert run.question.pair == (1, 2)
    bad = Answer(-1 if run.question.first == 1 else 1, frozenset({1}))
    following = run.peek(bad)
    assert isinstance(following, Compare)
    assert 1 not in following.documents
    run.answer(bad)
    assert run.question == following
    assert all(1 not in q.documents for q in run.choices)
    while run.question is not None:
        run.answer(Answer(1 if run.question.first < run.question.second else -1))
    assert run.result is not None
    assert run.result.order == (0, 2)


def test_repeats_are_mixed_in() -> None:
    setting = Setting("pairs", k=3, seed=2, repeat_rate=0.5)
    session = complete(Session(DOCS, setting))
    kinds = [judged.kind for judged in session.judgments]
    assert kinds.count("judgment") == 10
    assert kinds.count("repeat") > 0
    session.audit()


def test_documents_are_graded_in_any_order() -> None:
    """The log of grades in another order than the session's own replays; the result is the same."""
    grades = {"a": 4, "b": 2, "c": 0, "d": 3, "e": 1}
    setting = Setting("five-grade", k=3, seed=4)
    session = Session(DOCS, setting)
    for name in reversed(DOCS):
        session.apply(Judgment(name, None, grades[name]))
    assert session.order == ("a", "d", "b")
    assert [judgment.left for judgment in session.judgments] == DOCS[::-1]
    session.audit()
    again = Session(DOCS, setting, session.events)
    assert again.order == session.order
    with pytest.raises(InconsistentEventError, match="complete"):
        again.apply(Judgment("a", None, 1))


def test_a_graded_document_is_not_asked_again() -> None:
    session = Session(DOCS, Setting("five-grade", k=3, seed=4))
    session.apply(Judgment("d", None, 3))
    with pytest.raises(InconsistentEventError, match="not 'd'"):
        session.apply(Judgment("d", None, 1))
    shown = session.question
    assert shown is not None
    assert shown.left != "d"
    session.undo()
    session.apply(Judgment("d", None, 1))
    assert [judgment.outcome for judgment in session.judgments] == [1]
