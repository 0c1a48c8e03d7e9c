"""Programs as assessors: functions, and a chat endpoint served locally."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.assessors import DocumentText, Function, label
from firstpage.labeling.machines.chat import Chat
from firstpage.labeling.session.events import Setting, from_dict
from firstpage.labeling.session.session import Session
from tests.labeling.endpoint import Stub, served
from tests.narrow import present

A, B = DocumentText("a", "pears", "first"), DocumentText("b", "pears and apples", "second")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with served() as endpoint:
        yield endpoint


def longer(body: dict[str, Any]) -> str:
    """Reply that the longer document is better, on whichever side it is."""
    question = json.loads(body["messages"][1]["content"])
    first, second = (len(question[f"document {name}"]["text"]) for name in "AB")
    return json.dumps({"better": "tie" if first == second else "AB"[second > first]})


def test_a_pair_is_asked_in_both_orders_and_both_replies_are_charged(stub: Stub) -> None:
    stub.reply = longer
    answer = Chat(stub.url, "m", key="secret", prices=(2.0, 10.0)).judge("fruit", A, B)
    assert answer.outcome == -1
    assert len(stub.requests) == 2
    texts = [body["messages"][1]["content"] for body in stub.requests]
    assert texts[0].index("apples") > texts[0].index("document B")
    assert texts[1].index("apples") < texts[1].index("document B")
    assert "fruit" in texts[0]
    assert answer.cost["input_tokens"] == 200
    assert answer.cost["price"] == pytest.approx((200 * 2 + 10 * 10) / 1e6)
    assert set(stub.keys) == {"Bearer secret"}
    assert "secret" not in repr(Chat(stub.url, "m", key="secret"))


def test_a_model_that_always_prefers_one_side_gives_a_tie(stub: Stub) -> None:
    stub.reply = '{"better": "A"}'
    assert Chat(stub.url, "m").judge("fruit", A, B).outcome == 0


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [('```json\n{"better": "tie"}\n```', 0), (" tie. ", 0), ('{ "better" : "Tie" }', 0)],
)
def test_replies_are_parsed_with_surrounding_text(stub: Stub, reply: str, outcome: int) -> None:
    stub.reply = reply
    assert Chat(stub.url, "m").judge("q", A, B).outcome == outcome


def test_grades_are_parsed_and_checked(stub: Stub) -> None:
    stub.reply = '{"grade": 3}'
    assert Chat(stub.url, "m").judge("q", A, None).outcome == 3
    stub.reply = '{"grade": 9}'
    with pytest.raises(DataError, match="grade from 0 to 4"):
        Chat(stub.url, "m").judge("q", A, None)


def test_a_busy_endpoint_is_retried(stub: Stub) -> None:
    stub.reply, stub.failures = longer, [429, 503]
    assert Chat(stub.url, "m", backoff=0.01).judge("q", A, B).outcome == -1
    assert len(stub.requests) == 4


@pytest.mark.parametrize(
    ("failures", "reply", "message"),
    [
        ([401], "", "answers 401: .*too busy"),
        ([500] * 9, "", "answers 500"),
        ([], "I would rather not say", "A, B or tie"),
    ],
)
def test_a_failing_endpoint_raises_an_error(
    stub: Stub, failures: list[int], reply: str, message: str
) -> None:
    stub.reply, stub.failures = reply, failures
    with pytest.raises(DataError, match=message):
        Chat(stub.url, "m", backoff=0.01, max_attempts=2).judge("q", A, B)


def test_an_unreachable_or_invalid_address_raises_an_error() -> None:
    with pytest.raises(DataError, match="cannot be reached"):
        Chat("http://127.0.0.1:9/v1", "m", backoff=0.01, max_attempts=2).judge("q", A, B)
    with pytest.raises(DataError, match="http or https"):
        Chat("file:///etc/passwd", "m")


def test_long_texts_are_truncated_and_named_in_the_cost(stub: Stub) -> None:
    stub.reply = '{"better": "tie"}'
    Chat(stub.url, "m", max_chars=10).judge("q", DocumentText("a", "x" * 99), B)
    assert "x" * 10 in stub.requests[0]["messages"][1]["content"]
    assert "x" * 11 not in stub.requests[0]["messages"][1]["content"]
    cost = Chat(stub.url, "m", max_chars=10).judge("q", DocumentText("a", "x" * 99), A).cost
    assert cost["truncated"] == ["a"]


def test_a_model_labels_a_query_to_the_end(stub: Stub) -> None:
    """The log has every answer with its cost, and replays to the same order."""
    stub.reply = longer
    texts = {f"d{i}": DocumentText(f"d{i}", "word " * (i + 1)) for i in range(6)}
    setting = Setting("tournament", k=3)
    session = Session(list(texts), setting)
    chat = Chat(stub.url, "m")
    log = [record for _, record in label(session, chat, "words", texts.__getitem__)]
    assert session.order == ("d5", "d4", "d3")
    assert len(stub.requests) == 2 * len(log)
    assert all(record["cost"]["input_tokens"] == 200 for record in log)
    again = Session(list(texts), setting, [from_dict(record) for record in log])
    assert again.order == session.order


def test_a_function_labels_pairs_and_grades() -> None:
    best = Function(
        lambda query, left, right: 1 if len(left.body) > len(present(right).body) else -1
    )
    session = Session(["x", "xxx", "xx"], Setting("heap", k=2))
    list(label(session, best, "q", {"x": "x", "xxx": "xxx", "xx": "xx"}))
    assert session.order == ("xxx", "xx")
    assert Function(lambda q, a, b: 4).judge("q", A, None).outcome == 4
    assert Function(lambda q, a, b: 6, grades=7).judge("q", A, None).outcome == 6
    with pytest.raises(DataError, match="a grade from 0 to 2"):
        Function(lambda q, a, b: 3, grades=3).judge("q", A, None)
    session = Session(["x", "xxx", "xx"], Setting("heap", k=2))
    assert (
        len(list(label(session, best, "q", lambda key: DocumentText(key, key), max_answers=1))) == 1
    )


def test_contradictory_replies_follow_the_conflicts_option(stub: Stub) -> None:
    stub.reply = '{"better": "A"}'
    skipped = Chat(stub.url, "m", conflicts="skip").judge("fruit", A, B)
    assert (skipped.outcome, skipped.skipped) == (
        0,
        "the model contradicted itself when the order was swapped",
    )
    assert skipped.cost["input_tokens"] == 200, "skipped questions are charged too"
    assert Chat(stub.url, "m", conflicts="first").judge("fruit", A, B).outcome == 1
    with pytest.raises(DataError, match="one of tie, skip, first; got 'coin'"):
        Chat(stub.url, "m", conflicts="coin")  # type: ignore[arg-type]


def test_one_random_order_is_half_the_cost(stub: Stub) -> None:
    """The order depends on the pair and the query only; a preference for a position cancels."""
    stub.reply = '{"better": "A"}'
    chat = Chat(stub.url, "m", orders="random")
    queries = [f"query {i}" for i in range(60)]
    answers = [chat.judge(query, A, B) for query in queries]
    assert len(stub.requests) == len(queries)
    assert {answer.cost["input_tokens"] for answer in answers} == {100}
    outcomes = [answer.outcome for answer in answers]
    assert 15 < outcomes.count(1) < 45
    assert outcomes == [-chat.judge(query, B, A).outcome for query in queries]
    shown = [answer.cost["shown_first"] for answer in answers]
    assert shown == [A.key if outcome == 1 else B.key for outcome in outcomes]
    with pytest.raises(DataError, match="one of both, random; got 'one'"):
        Chat(stub.url, "m", orders="one")  # type: ignore[arg-type]


def test_the_prompt_offers_ties_only_if_allowed(stub: Stub) -> None:
    stub.reply = longer
    for ties in (True, False):
        Chat(stub.url, "m", ties=ties).judge("fruit", A, B)
    texts = [body["messages"][0]["content"] for body in stub.requests]
    assert ["tie" in text for text in texts] == [True, True, False, False]


def test_a_skipped_question_is_recorded_as_skipped(stub: Stub) -> None:
    stub.reply = '{"better": "A"}'
    session = Session(["x", "y"], Setting("tournament", k=1))
    chat = Chat(stub.url, "m", conflicts="skip")
    ((judged, _),) = label(session, chat, "q", {"x": "x", "y": "y"})
    assert judged.skipped
    skipping = Function(lambda q, a, b: "skip")
    assert skipping.judge("q", A, B).skipped
    assert (
        Function(lambda q, a, b: 2).judge("q", DocumentText("a", "", kind="list"), B).outcome == 2
    )


@pytest.mark.parametrize(
    ("word", "outcome", "bad"),
    [
        ("left bad", -1, ("a",)),
        (" Right  BAD", 1, ("b",)),
        ("both bad", 0, ("a", "b")),
        ("left", 1, ()),
        ("tie", 0, ()),
    ],
)
def test_a_function_may_flag_documents_as_bad(
    word: str, outcome: int, bad: tuple[str, ...]
) -> None:
    answer = Function(lambda q, a, b: word).judge("q", A, B)
    assert (answer.outcome, answer.bad) == (outcome, bad)


def test_a_bad_document_is_last_and_not_asked_about_again() -> None:
    texts = {f"d{i}": "spam" if i in (1, 4) else "x" * (i + 1) for i in range(6)}

    def taste(query: str, a: DocumentText, b: DocumentText) -> str:
        spam = [a.body == "spam", b.body == "spam"]
        if any(spam):
            return "both bad" if all(spam) else "left bad" if spam[0] else "right bad"
        return "left" if len(a.body) > len(b.body) else "right"

    session = Session(list(texts), Setting("tournament", k=6))
    log = [judgment for judgment, _ in label(session, Function(taste), "q", texts)]
    assert session.order is not None
    assert session.order[:4] == ("d5", "d3", "d2", "d0")
    assert set(session.order[4:]) == {"d1", "d4"}
    assert session.result is not None
    assert session.result.bad == {1, 4}
    for number, judgment in enumerate(log):
        for name in judgment.bad:
            later = {document for j in log[number + 1 :] for document in (j.left, j.right)}
            assert name not in later


@pytest.mark.parametrize(
    ("left", "right", "word", "message"),
    [
        (A, None, "left bad", "a grade from 0 to 4, or skip; it answered 'left bad'"),
        (DocumentText("l", "", kind="list"), B, "both bad", "or an integer from -2 to 2, or skip"),
        (A, B, "bad", "left bad, right bad or both bad, or skip; it answered 'bad'"),
    ],
)
def test_bad_is_refused_where_it_has_no_meaning(
    left: DocumentText, right: DocumentText | None, word: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Function(lambda q, a, b: word).judge("q", left, right)


@pytest.mark.parametrize("value", ["neither", 5, -2, 2, True, False, 0.7, None])
def test_a_function_with_an_invalid_answer_raises_an_error(value: Any) -> None:
    with pytest.raises(DataError, match="must answer left, right"):
        Function(lambda q, a, b: value).judge("q", A, B)
