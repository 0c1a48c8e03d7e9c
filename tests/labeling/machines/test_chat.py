"""A model behind an endpoint: failures, limits, prompts, rubric, examples and the journal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.core.http import RateLimiter, Stopped
from firstpage.labeling.assessors import DocumentText, InvalidReplyError, QueryText
from firstpage.labeling.machines.chat import Chat
from firstpage.labeling.machines.client import ChatReply
from firstpage.labeling.machines.limits import Budget
from firstpage.labeling.machines.prompts import DEFAULT_RUBRIC, Example, Prompt, Rubric
from tests.labeling.endpoint import Stub, first_by_name, served

A, B = DocumentText("a", "apples"), DocumentText("b", "bread")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with served() as endpoint:
        endpoint.reply = first_by_name
        yield endpoint


def chat(stub: Stub, **settings: Any) -> Chat:
    return Chat(stub.url, "m", **{"backoff": 0.01, **settings})


@pytest.mark.parametrize(
    "failure", [429, 500, 503, (429, "0"), "malformed", "foreign", "cut"], ids=str
)
def test_a_failure_is_retried_and_counted(stub: Stub, failure: Any) -> None:
    stub.failures = [failure]
    answer = chat(stub).judge("q", A, B)
    assert answer.outcome == 1
    assert len(stub.requests) == answer.cost["attempts"] == 3
    assert answer.cost["seconds"] > 0


def test_a_reply_that_does_not_come_is_asked_for_again(stub: Stub) -> None:
    stub.failures = ["hang"]
    attempts = chat(stub, timeout=1.0).judge("q", A, B).cost["attempts"]
    assert attempts == len(stub.requests) >= 3  # a busy machine may miss the second again


def test_the_endpoint_says_how_long_to_wait(stub: Stub) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
    stub.failures = [(429, "0.2"), (503, later), (429, "soon")]
    chat(stub, backoff=0.0).judge("q", A, None)
    waits = [after - before for before, after in zip(stub.times, stub.times[1:], strict=False)]
    assert waits[0] >= 0.2  # a date has whole seconds, so the second wait is up to 1 s
    assert len(waits) == 3
    stub.failures = [(429, "3600")]
    with pytest.raises(DataError, match=r"asks to wait 3600 s; run the command again then"):
        chat(stub).judge("q", A, B)


def test_an_answer_that_was_cut_is_not_guessed(stub: Stub) -> None:
    stub.failures = ["length"]
    with pytest.raises(InvalidReplyError, match="cut at the endpoint's limit of tokens") as error:
        chat(stub).judge("q", A, None)
    assert error.value.cost["input_tokens"] == 100


def test_requests_are_spaced_over_all_threads(stub: Stub) -> None:
    limiter = RateLimiter(requests_per_minute=60 / 0.05)
    model = chat(stub, limiter=limiter)
    start = time.monotonic()  # requests may be delayed on their way, but never sent early
    for _ in range(2):
        model.judge("q", A, B)
    assert len(stub.times) == 4
    assert stub.times[-1] - start >= 3 * 0.05


def test_tokens_are_spaced_too() -> None:
    now = [0.0]
    limiter = RateLimiter(tokens_per_minute=600, clock=lambda: now[0])
    limiter.wait_turn()
    limiter.add_tokens(100)  # ten seconds' worth
    assert limiter._free_at == 10
    limiter.pause(5)
    assert limiter._free_at == 10
    limiter.stop()
    with pytest.raises(Stopped):
        limiter.wait_turn()


class Memory:
    """A journal in memory."""

    def __init__(self) -> None:
        self.replies: dict[tuple[int, str], ChatReply] = {}

    def get(self, part: int, request: str) -> ChatReply | None:
        return self.replies.get((part, request))

    def put(self, part: int, request: str, reply: ChatReply) -> None:
        self.replies[part, request] = reply


def test_replies_in_the_journal_are_not_asked_for_again(stub: Stub) -> None:
    journal, model = Memory(), chat(stub)
    stub.failures = [200, 401]  # the run ends between the two orders
    with pytest.raises(DataError, match="401"):
        model.judge_recorded("q", A, B, journal)
    assert len(journal.replies) == 1
    answer = model.judge_recorded("q", A, B, journal)
    assert (answer.outcome, len(stub.requests)) == (1, 3)
    assert model.judge_recorded("q", A, B, journal).cost == answer.cost
    replace(model, instructions="Other words.").judge_recorded("q", A, B, journal)
    assert len(stub.requests) == 5, "another prompt is another question"


def test_both_orders_are_in_the_cost(stub: Stub) -> None:
    stub.reply = '{"better": "A"}'
    assert chat(stub).judge("q", A, B).cost["orders"] == [1, -1]


def test_grades_follow_the_rubric(stub: Stub) -> None:
    rubric = Rubric.from_text("# scale\n0 no: Not about it.\n\n1 yes: About it.\n", "two")
    stub.reply = '{"grade": 1}'
    answer = chat(stub, rubric=rubric, guidelines="Be strict.").judge("q", A, None)
    system = stub.requests[0]["messages"][0]["content"]
    assert answer.outcome == 1
    assert '\n1 "yes": "About it."\n' in system
    assert 'Guidelines of the project: "Be strict."' in system
    assert answer.cost["rubric"].startswith("two ")
    assert answer.cost["model"] == "m"
    for invalid in ('{"grade": 2}', '{"grade": 0.5}', '{"grade": -1}', "good"):
        stub.reply = invalid
        with pytest.raises(InvalidReplyError, match="a grade from 0 to 1"):
            chat(stub, rubric=rubric).judge("q", A, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 bad", "r:1: a line of a rubric is a grade, its name, a colon"),
        (
            "0 bad: no\n2 good: yes",
            r"grades 0, 1, ... in this order, at least two; it has \[0, 2\]",
        ),
        ("", r"it has \[\]"),
    ],
)
def test_wrong_rubrics_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Rubric.from_text(text, "r")


def test_rubrics_are_read_from_files(tmp_path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(DEFAULT_RUBRIC.text)
    assert Rubric.read(path).levels == DEFAULT_RUBRIC.levels
    assert Rubric.read(path).name == "mine.txt"
    assert fp.labeling.Rubric is Rubric


EXAMPLES = tuple(
    Example(f"q{n}", f"query {n}", DocumentText("x", f"x{n}"), DocumentText("y", f"y{n}"), outcome)
    for n, outcome in enumerate([1, 1, 1, -1, 0])
)


def test_examples_come_from_other_queries_and_differ_in_their_answers(stub: Stub) -> None:
    model = chat(stub, examples=EXAMPLES, max_examples=3)
    query = QueryText("q0", "query 0")
    answer = model.judge(query, A, B)
    roles = [message["role"] for message in stub.requests[0]["messages"]]
    assert roles == ["system", *["user", "assistant"] * 3, "user"]
    texts = [message["content"] for message in stub.requests[0]["messages"]]
    assert {texts[i] for i in (2, 4, 6)} == {
        f'{{"better": "{word}"}}' for word in ("A", "B", "tie")
    }
    assert not any("x0" in text for text in texts)
    assert sorted(key[0] for key in answer.cost["examples"]) == ["q1", "q3", "q4"]
    assert all(len(key) == 3 for key in answer.cost["examples"])
    prompt = Prompt(examples=EXAMPLES, max_examples=9, ties=False)
    assert [e.outcome for e in prompt.examples_for(query, True)].count(0) == 0
    assert prompt.examples_for(query, False) == []


def test_settings_tell_all_but_the_key(stub: Stub) -> None:
    settings = chat(stub, key="secret", instructions="Own words.", prompt_name="p.txt").settings()
    text = json.dumps(settings)
    assert "secret" not in text
    assert settings["prompts"]["pairs"]["text"].startswith("Own words.")
    assert settings["model"] == "m"
    assert "perfect" in settings["prompts"]["grades"]["text"]


@pytest.mark.parametrize(
    ("limits", "questions", "reason"),
    [
        ({"max_answers": 3}, 3, "3 answers"),
        ({"max_answers": 3, "answers": 2}, 1, "3 answers"),
        ({"max_price": 1.0}, 4, "a price of 1"),
        ({"max_price": 1.0, "price": 0.9}, 1, "a price of 1"),
        ({"max_seconds": 3.5}, 4, "3.5 seconds"),
    ],
)
def test_budgets_end_a_run(limits: dict[str, Any], questions: int, reason: str) -> None:
    now = [0.0]
    budget = Budget(**limits, clock=lambda: now[0])
    count = 0
    while budget.start_question():
        budget.finish_question(0.25)
        now[0] += 1
        count += 1
    assert (count, budget.exhausted) == (questions, reason)


def test_questions_under_way_count_against_the_budget() -> None:
    budget = Budget(max_answers=2, max_price=10)
    assert [budget.start_question() for _ in range(3)] == [True, True, False]
    price = Budget(max_price=1)
    assert price.start_question()
    price.finish_question(0.4)
    assert [price.start_question() for _ in range(2)] == [True, False]


@pytest.mark.parametrize("limits", [{"requests_per_minute": 0}, {"tokens_per_minute": -1}])
def test_rates_must_be_positive(limits: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="must be positive"):
        RateLimiter(**limits)


def test_waiting_ends_when_judging_is_stopped() -> None:
    limiter = RateLimiter()
    limiter.pause(60)
    limiter.stop()
    began = time.monotonic()
    with pytest.raises(Stopped):
        limiter.wait_turn()
    assert time.monotonic() - began < 30
