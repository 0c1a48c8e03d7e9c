"""What endpoints send instead of an answer: bounded, explained, and without the key."""

from __future__ import annotations

import base64
import gzip
import json
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.errors import DataError
from firstpage.core.http import endpoint_client as exchange
from firstpage.core.http.key_mask import MASK, KeyMask
from firstpage.labeling.assessors import DocumentText, InvalidReplyError
from firstpage.labeling.machines.chat import Chat
from tests.labeling.endpoint import Raw, Stub, chat_body, served

A, B = DocumentText("a", "apples"), DocumentText("b", "bread")
KEY = "sk-Proj/9f+Q~x7Lm2"


@pytest.fixture
def stub() -> Iterator[Stub]:
    with served() as endpoint:
        endpoint.reply = '{"grade": 2}'
        yield endpoint


def ask(stub: Stub, failure: Any = None, **settings: Any) -> Any:
    """Ask for a grade once; `failure` is what the endpoint sends."""
    stub.failures = [] if failure is None else [failure] * 3
    settings = {"backoff": 0.01, "max_attempts": 1, "key": KEY, **settings}
    return Chat(stub.url, "m", **settings).judge("q", A, None)


def problem(stub: Stub, failure: Any, **settings: Any) -> str:
    with pytest.raises(DataError) as error:
        ask(stub, failure, **settings)
    text = str(error.value)
    assert text.isprintable(), text
    assert KEY not in text
    return text


@pytest.mark.parametrize("dripping", ["body", "header"])
def test_the_timeout_bounds_the_whole_reply(stub: Stub, dripping: str) -> None:
    """Every byte arrives well within the timeout, all of them do not."""
    body = chat_body('{"grade": 2}')
    if dripping == "header":
        headers = (("X-Slow", "\r\n ".join("x" * 40)),)
        failure = Raw(body, headers=headers, pause=0.02)
    else:
        failure = Raw(body, pause=0.02)
    assert len(body) * 0.02 > 1
    text = problem(stub, failure, timeout=0.5)
    assert "sent no complete reply within 0.5 s (after 1 attempt)" in text
    assert stub.completed == 0


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            Raw(b"<html>\x1b[31m Sign in\r\n here</html>"),
            "answers 200 with a reply that is not JSON: '<html>[31m Sign in here</html>'",
        ),
        (Raw(b'"text"'), "answers 200 with a reply that is not an object: '\"text\"'"),
        (Raw(b"", 204), "answers 204 with an empty reply"),
        (Raw('{"x": "é"}'.encode("latin-1")), "a reply that is not JSON"),
        (Raw(b"[" * 100_000), "a reply that is not JSON"),
        (Raw(b'{"choices": []}'), "answers 200 with no choices: '{\"choices\": []}'"),
        (Raw(b'{"choices": [{}]}'), "a choice without a message"),
        (Raw(b'{"error": {"message": "no such model", "code": 404}}'), "an error: no such model"),
        (Raw(b'{"error": "overloaded"}'), "answers 200 with an error: overloaded"),
        (
            Raw(gzip.compress(b" " * 10**7), headers=(("Content-Encoding", "gzip"),)),
            "a reply that is compressed (gzip), which was not requested",
        ),
        (Raw(b"", 401), "answers 401 without an explanation"),
        (Raw(b"no \x1b[2Jaccess\n\n", 403), "answers 403: no [2Jaccess"),
    ],
)  # fmt: skip
def test_an_unusable_reply_is_described(stub: Stub, failure: Raw, message: str) -> None:
    assert message in problem(stub, failure)


def test_a_long_reply_is_refused(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MAX_REPLY_BYTES", 100)
    assert "answers 200 with a reply of more than" in problem(stub, Raw(chat_body("x" * 200)))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_with_the_key(stub: Stub, status: int) -> None:
    with served() as elsewhere:
        elsewhere.reply = '{"grade": 2}'
        target = f"{elsewhere.url}/chat/completions?key={KEY}"
        text = problem(stub, Raw(b"", status, (("Location", target),)))
    assert elsewhere.requests == []
    assert f"answers {status} and redirects to '{elsewhere.url}/chat/completions?key=" in text
    assert "redirects are not followed" in text


@pytest.mark.parametrize(
    ("content", "message", "grade"),
    [
        ('Both are short.\n```json\n{"grade": 3, "why": "{x}"}\n```', {}, 3),
        ('<think>{"grade": 1} or {"grade": 4}?</think>\n{"grade": 2}', {}, 2),
        ('maybe {"grade": 1}\n</think>{"grade": "2"}', {}, 2),
        ([{"type": "thinking", "thinking": "4"}, {"type": "text", "text": '{"grade": 1}'}], {}, 1),
        ('{"grade": 1}', {"reasoning_content": '{"grade": 4}'}, 1),
        ("a set {a, b}, so {\"Grade\": 0}", {}, 0),
        ("**4**", {}, 4),
        ('{"answer": {"grade": 2.0}}', {}, 2),
    ],
)  # fmt: skip
def test_answers_are_found_among_other_text(
    stub: Stub, content: Any, message: dict[str, Any], grade: int
) -> None:
    assert ask(stub, Raw(chat_body(content, **message))).outcome == grade


SEVERAL = "the model gave several answers in one reply"
UNREADABLE = "the answer could not be parsed"


@pytest.mark.parametrize(
    ("content", "message", "reason"),
    [
        ('{"grade": 1} {"grade": 2}', {}, SEVERAL),
        ('{"grade": 1}\n{"grade": 1}', {}, SEVERAL),
        ('{"why": "x"} {"grade": 1}', {}, SEVERAL),
        ('{"grade": 1, "grade": 2}', {}, SEVERAL),
        ('{"grade": 1, "other": {"grade": 2}}', {}, SEVERAL),
        ("{'grade': 1} {\"grade\": 2}", {}, SEVERAL),
        ('{"answer": [{"grade": 1}]}', {}, UNREADABLE),
        ("{" * 5000, {}, UNREADABLE),
        ("{" * 4_000_000, {}, UNREADABLE),
        ('{"":' * 5000, {}, UNREADABLE),
        ("-1", {}, UNREADABLE),
        ('{"grade": true}', {}, UNREADABLE),
        ("<think>{\"grade\": 1}", {}, UNREADABLE),
        (None, {}, UNREADABLE),
        (None, {"refusal": 'I cannot: {"grade": 1}'}, "the model refused to answer"),
    ],
)  # fmt: skip
def test_a_reply_without_exactly_one_answer_is_none(
    stub: Stub, content: Any, message: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidReplyError, match="must answer a grade from 0 to 4") as error:
        ask(stub, Raw(chat_body(content, **message)))
    assert error.value.reason == reason


def test_a_filtered_reply_is_a_refusal(stub: Stub) -> None:
    choice = {"message": {"content": '{"grade": 1}'}, "finish_reason": "content_filter"}
    with pytest.raises(InvalidReplyError) as error:
        ask(stub, Raw(json.dumps({"choices": [choice]}).encode()))
    assert error.value.reason == "the model refused to answer"


@pytest.mark.parametrize("count", ["1e999", "-5", '"7"', "null", "10000000000000000000000"])
def test_tokens_that_are_no_count_are_not_charged(stub: Stub, count: str) -> None:
    usage = b', "usage": {"prompt_tokens": %s, "completion_tokens": 5}}' % count.encode()
    answer = ask(stub, Raw(chat_body('{"grade": 1}')[:-1] + usage), prices=(1.0, 0.0))
    assert (answer.cost["price"], answer.cost["uncounted"]) == (0.0, True)


ENCODED = [
    KEY,
    urllib.parse.quote(KEY, safe=""),
    urllib.parse.quote(urllib.parse.quote(KEY, safe="")).lower(),
    KEY.replace("-", "%2d"),
    json.dumps(KEY).replace("/", "\\/").strip('"'),
    "".join(f"\\u{ord(c):04X}" for c in KEY),
    "".join(f"&#{ord(c)};" for c in KEY),
    base64.b64encode(KEY.encode()).decode(),
    base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
    base64.b64encode(f"user:{KEY}:end".encode()).decode(),
    KEY.encode().hex().upper(),
    KEY[:10],
]


@pytest.mark.parametrize("echo", ENCODED)
def test_a_key_that_is_repeated_is_masked_everywhere(stub: Stub, echo: str) -> None:
    assert KeyMask(KEY)(f"x{echo}y").startswith("x"), "the text around it stays"
    answer = ask(stub, Raw(chat_body(f'{{"grade": 1, "key": "{echo}"}}'.replace("\\", "\\\\"))))
    failures = (
        Raw(f"unknown key {echo}".encode(), 401),
        Raw(f"<p>{echo}</p>".encode()),
        Raw(json.dumps({"error": {"message": f"bad key {echo}"}}).encode()),
        Raw(b"", 302, (("Location", f"http://example.org/?key={echo}"),)),
    )
    for text in (str(answer.cost["replies"]), *(problem(stub, failure) for failure in failures)):
        assert MASK in text
        assert echo.lower() not in text.lower()


@given(
    st.text(alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=8),
    st.text(),
    st.text(),
)
def test_no_key_survives(key: str, before: str, after: str) -> None:
    mask = KeyMask(key)
    assert key not in mask(before + key + after)
    assert key not in mask.excerpt(before + key + after)


def test_a_key_at_the_end_of_an_excerpt_is_masked_before_it_is_cut() -> None:
    shown = KeyMask(KEY).excerpt("x" * 190 + KEY)
    assert shown == "x" * 190 + MASK


def test_short_keys_do_not_mask_answers() -> None:
    assert KeyMask("")("any text") == "any text"
    for placeholder in ("A", "EMPTY", "ollama", "better"):
        assert KeyMask(placeholder)('{"better": "A"}') == '{"better": "A"}'


@pytest.mark.parametrize("key", ["secret\n", "sec ret", "sécret", "a\x00b"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(DataError, match="printable ASCII characters") as error:
        Chat("http://localhost/v1", "m", key=key)
    assert key.strip() not in str(error.value)


@pytest.mark.parametrize(
    "url",
    ["https://user:pass@h/v1", "https://h/v1?key=abc", "https://h/v1#x"],
)  # fmt: skip
def test_an_address_with_a_password_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(DataError, match="contain no password") as error:
        Chat(url, "m")
    assert url not in str(error.value)


@pytest.mark.parametrize(
    "url", ["http://", "http://h:x/v1", "ftp://h", "http://h:99999", "http://h /"]
)
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(DataError, match="must be an http or https address") as error:
        Chat(url.replace("//", "//user:pass@"), "m")
    assert "pass" not in str(error.value)
