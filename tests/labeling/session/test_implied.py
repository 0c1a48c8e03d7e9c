"""Asked, implied and pruned pairs, and probes of implied ones, against plain closures."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstpage.core.errors import DataError
from firstpage.labeling.session.events import (
    Judgment,
    LeadVerdict,
    Setting,
    Withdrawal,
    adjudication_from_dict,
    effective_verdicts,
    from_dict,
    replay_verdicts,
    to_dict,
)
from firstpage.labeling.session.implied import (
    Closure,
    ProbeCounts,
    QuestionCounts,
    probe_counts,
    question_counts,
)
from firstpage.labeling.session.session import Session

NAMES = "abcdef"


def plain_closure(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return all (better, worse) that follow, by repeated composition."""
    while True:
        more = {(a, d) for a, b in edges for c, d in edges if b == c} | edges
        if more == edges:
            return edges
        edges = more


@pytest.mark.slow
@given(st.sets(st.sampled_from(list(combinations(NAMES, 2)))))
def test_counts_are_those_of_a_plain_closure(asked: set[tuple[str, str]]) -> None:
    judgments = [Judgment(a, b, 1) if ord(a) % 2 else Judgment(b, a, -1) for a, b in asked]
    implied = len(plain_closure(set(asked)) - asked)
    assert question_counts(NAMES, judgments) == QuestionCounts(
        len(asked), implied, 15 - len(asked) - implied
    )


def test_bad_documents_imply_their_pairs() -> None:
    judgments = [Judgment("a", "b", 1, ("b",)), Judgment("c", "d", 0, ("c", "d"))]
    # asked: ab, cd.  Known: b, c, d lose to a, e, f; b, c, d are equal.
    assert question_counts(NAMES, judgments) == QuestionCounts(2, 9 + 3 - 2, 3)


def test_skipped_questions_and_ties_imply_nothing() -> None:
    judgments = [Judgment("a", "b", 0), Judgment("b", "c", 1), Judgment("c", "d", 1, skipped=True)]
    assert question_counts("abcd", judgments) == QuestionCounts(2, 0, 4)


def test_probes_confirm_or_contradict() -> None:
    chain = [Judgment("a", "b", 1), Judgment("b", "c", 1), Judgment("c", "d", 1)]
    probes = [("a", "c", 1), ("d", "a", 1), ("b", "d", 0)]
    judgments = [*chain, *(Judgment(a, b, o, kind="probe") for a, b, o in probes)]
    assert probe_counts("abcd", judgments) == ProbeCounts(1, 1, 1)
    assert question_counts("abcd", judgments) == QuestionCounts(6, 0, 0)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000))
def test_a_session_probes_only_implied_pairs_and_replays(seed: int) -> None:
    """A probe never reaches the strategy: the result is that of a session without probes."""
    setting = Setting("insertion", k=4, seed=seed, probe_rate=0.5)
    session, plain = Session(NAMES, setting), Session(NAMES, Setting("insertion", k=4, seed=seed))
    while (question := session.question) is not None:
        assert question.right is not None
        if question.kind == "probe":
            pair = tuple(sorted((question.left, question.right)))
            assert pair in Closure(NAMES).learn(session.judgments).pairs()
        session.answer(1 if question.left < question.right else -1)
    while (question := plain.question) is not None:
        assert question.right is not None
        plain.answer(1 if question.left < question.right else -1)
    assert session.order == plain.order == ("a", "b", "c", "d")
    counts = probe_counts(NAMES, session.judgments)
    assert counts.confirmed == counts.total == sum(j.kind == "probe" for j in session.judgments)
    session.audit()
    again = Session(NAMES, setting, [from_dict(to_dict(event)) for event in session.events])
    assert again.order == session.order
    assert session.counts.asked + session.counts.implied + session.counts.pruned == 15


def test_a_setting_of_an_older_log_has_no_probes() -> None:
    old = {"event": "switched", "setting": {"strategy": "heap", "k": 3, "seed": 1}}
    assert from_dict(old).setting.probe_rate == 0  # type: ignore[union-attr]


def test_verdicts_are_replayed_and_withdrawn() -> None:
    first, second = LeadVerdict("a", "b", 1), LeadVerdict("b", "a", 1)
    other = LeadVerdict("c", None, 0, ("c",))
    log = [first, other, second, Withdrawal(2), second, Withdrawal(0)]
    read = [(adjudication_from_dict(to_dict(event)), n) for n, event in enumerate(log)]
    assert replay_verdicts(read) == [(other, 1), (second, 4)]
    with pytest.raises(DataError, match="event 2 is not an active verdict"):
        replay_verdicts([*read, (Withdrawal(2), 6)])
    assert effective_verdicts([first, other, second]) == [second, other], "the last on a pair"
