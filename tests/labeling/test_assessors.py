"""Programs as assessors: functions, and a chat endpoint that is a real server on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from firstpage.errors import DataError
from firstpage.labeling.assessors import Chat, Function, Text
from firstpage.labeling.events import Setting, from_dict
from firstpage.labeling.machine import label
from firstpage.labeling.session import Session

A, B = Text("a", "pears", "first"), Text("b", "pears and apples", "second")


@dataclass
class Stub:
    """An endpoint that answers as `reply` says; what it was asked is kept."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    reply: Any = None
    failures: list[int] = field(default_factory=list)  # codes to answer first


@pytest.fixture
def stub() -> Iterator[Stub]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.asked.append(body)
            found.keys.append(self.headers["Authorization"])
            code = found.failures.pop(0) if found.failures else 200
            said = found.reply(body) if callable(found.reply) else found.reply
            usage = {"prompt_tokens": 100, "completion_tokens": 5}
            message = {"choices": [{"message": {"content": said}}], "usage": usage}
            text = json.dumps(message if code == 200 else {"error": "too busy"}).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Stub(f"http://127.0.0.1:{server.server_address[1]}/v1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()


def longer(body: dict[str, Any]) -> str:
    """A model that likes long documents, whichever side they are on."""
    text = body["messages"][1]["content"]
    first, second = text.split("Document B:")
    first = first.split("Document A:")[1]
    name = "tie" if len(first.strip()) == len(second.strip()) else "AB"[len(second) > len(first)]
    return json.dumps({"better": name})


def test_both_orders_are_asked_and_paid(stub: Stub) -> None:
    stub.reply = longer
    verdict = Chat(stub.url, "m", key="secret", prices=(2.0, 10.0)).judge("fruit", A, B)
    assert verdict.outcome == -1
    assert len(stub.asked) == 2
    texts = [body["messages"][1]["content"] for body in stub.asked]
    assert texts[0].index("apples") > texts[0].index("Document B")
    assert texts[1].index("apples") < texts[1].index("Document B")
    assert "fruit" in texts[0]
    assert verdict.cost["tokens_in"] == 200
    assert verdict.cost["money"] == pytest.approx((200 * 2 + 10 * 10) / 1e6)
    assert set(stub.keys) == {"Bearer secret"}
    assert "secret" not in repr(Chat(stub.url, "m", key="secret"))


def test_a_side_that_always_wins_is_a_tie(stub: Stub) -> None:
    stub.reply = '{"better": "A"}'
    assert Chat(stub.url, "m").judge("fruit", A, B).outcome == 0


@pytest.mark.parametrize(
    ("said", "outcome"),
    [('```json\n{"better": "tie"}\n```', 0), (" tie. ", 0), ('{ "better" : "Tie" }', 0)],
)
def test_forms_of_an_answer(stub: Stub, said: str, outcome: int) -> None:
    stub.reply = said
    assert Chat(stub.url, "m").judge("q", A, B).outcome == outcome


def test_grades(stub: Stub) -> None:
    stub.reply = '{"grade": 3}'
    assert Chat(stub.url, "m").judge("q", A, None).outcome == 3
    stub.reply = '{"grade": 9}'
    with pytest.raises(DataError, match="grade from 0 to 4"):
        Chat(stub.url, "m").judge("q", A, None)


def test_a_busy_endpoint_is_tried_again(stub: Stub) -> None:
    stub.reply, stub.failures = longer, [429, 503]
    assert Chat(stub.url, "m", pause=0.01).judge("q", A, B).outcome == -1
    assert len(stub.asked) == 4


@pytest.mark.parametrize(
    ("failures", "reply", "says"),
    [
        ([401], "", "answers 401: .*too busy"),
        ([500] * 9, "", "answers 500"),
        ([], "I would rather not say", "A, B or tie"),
    ],
)
def test_an_endpoint_that_fails(stub: Stub, failures: list[int], reply: str, says: str) -> None:
    stub.reply, stub.failures = reply, failures
    with pytest.raises(DataError, match=says):
        Chat(stub.url, "m", pause=0.01, tries=2).judge("q", A, B)


def test_nobody_there() -> None:
    with pytest.raises(DataError, match="cannot be reached"):
        Chat("http://127.0.0.1:9/v1", "m", pause=0.01, tries=2).judge("q", A, B)
    with pytest.raises(DataError, match="http or https"):
        Chat("file:///etc/passwd", "m")


def test_long_texts_are_cut(stub: Stub) -> None:
    stub.reply = '{"better": "tie"}'
    Chat(stub.url, "m", longest=10).judge("q", Text("a", "x" * 99), B)
    assert "x" * 10 in stub.asked[0]["messages"][1]["content"]
    assert "x" * 11 not in stub.asked[0]["messages"][1]["content"]


def test_a_model_labels_a_whole_query(stub: Stub) -> None:
    """The log has every answer with its cost, and replays to the same order."""
    stub.reply = longer
    texts = {f"d{i}": Text(f"d{i}", "word " * (i + 1)) for i in range(6)}
    setting = Setting("tournament", k=3)
    session = Session(list(texts), setting)
    chat = Chat(stub.url, "m")
    log = [record for _, record in label(session, chat, "words", texts.__getitem__)]
    assert session.order == ("d5", "d4", "d3")
    assert len(stub.asked) == 2 * len(log)
    assert all(record["cost"]["tokens_in"] == 200 for record in log)
    again = Session(list(texts), setting, [from_dict(record) for record in log])
    assert again.order == session.order


def test_functions() -> None:
    best = Function(lambda query, left, right: "left" if len(left) > len(right or "") else "right")
    session = Session(["x", "xxx", "xx"], Setting("heap", k=2))
    list(label(session, best, "q", {"x": "x", "xxx": "xxx", "xx": "xx"}))
    assert session.order == ("xxx", "xx")
    assert Function(lambda q, a, b: 4).judge("q", A, None).outcome == 4
    session = Session(["x", "xxx", "xx"], Setting("heap", k=2))
    assert len(list(label(session, best, "q", lambda key: Text(key, key), most=1))) == 1


@pytest.mark.parametrize("said", ["neither", 5, -2])
def test_a_function_that_says_something_else(said: Any) -> None:
    with pytest.raises(DataError, match="must answer left, right"):
        Function(lambda q, a, b: said).judge("q", A, B)
