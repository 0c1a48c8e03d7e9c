"""A chat endpoint served locally over HTTP, with the failures of real ones.

`python -m tests.labeling.endpoint LOG` serves it as a process of its own: the first line of LOG is
its address, every further line the question of one request.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from firstpage.labeling.machines.prompts import short_hash

HANG = 3.0  # seconds of an endpoint that does not answer


@dataclass(frozen=True)
class Raw:
    """A reply byte for byte; with a `pause`, seconds after each byte, until the client leaves."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    pause: float = 0.0


@dataclass
class Stub:
    """An endpoint that answers with `reply`, a text or a function of the request body.

    `failures` are those of the first answers: a status code; (code, header Retry-After); "hang";
    "malformed" (no JSON), "foreign" (other JSON), "cut" (fewer bytes than announced); "length" (an
    answer that the limit of tokens ended); or `Raw`.
    """

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)  # bodies received
    keys: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    reply: Any = None
    failures: list[Any] = field(default_factory=list)
    usage: bool = True
    delay: float = 0.0
    active: int = 0
    most_active: int = 0
    completed: int = 0  # `Raw` replies that were sent to their end
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def served() -> Iterator[Stub]:
    """Serve the endpoint while the block runs."""
    server, stub = _server()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield stub
    server.shutdown()
    server.server_close()


def _server() -> tuple[ThreadingHTTPServer, Stub]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with stub.lock:
                stub.requests.append(body)
                stub.keys.append(self.headers["Authorization"])
                stub.times.append(time.monotonic())
                failure = stub.failures.pop(0) if stub.failures else 200
                stub.active += 1
                stub.most_active = max(stub.active, stub.most_active)
            time.sleep(stub.delay)
            with stub.lock:
                stub.active -= 1  # before the client can send its next request
            self.answer(body, failure)

        def answer(self, body: dict[str, Any], failure: Any) -> None:
            if failure == "hang":
                time.sleep(HANG)
                return
            if isinstance(failure, Raw):
                self.send_raw(failure)
                return
            code, wait = failure if isinstance(failure, tuple) else (failure, None)
            code = code if isinstance(code, int) else 200
            content = stub.reply(body) if callable(stub.reply) else stub.reply
            if failure == "length":
                content = content[:-4]
            choice = {
                "message": {"content": content},
                "finish_reason": "length" if failure == "length" else "stop",
            }
            message: dict[str, Any] = {"choices": [choice]}
            if stub.usage:
                message["usage"] = {"prompt_tokens": 100, "completion_tokens": 5}
            text = json.dumps(message if code == 200 else {"error": "too busy"}).encode()
            text = {"malformed": b"<html>", "foreign": b"{}"}.get(failure, text)
            self.send_response(code)
            if wait is not None:
                self.send_header("Retry-After", str(wait))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text[: len(text) // 2] if failure == "cut" else text)

        def send_raw(self, raw: Raw) -> None:
            self.send_response(raw.status)
            for name, value in (*raw.headers, ("Content-Length", str(len(raw.body)))):
                self.send_header(name, value)
            self.end_headers()
            step = 1 if raw.pause else len(raw.body) or 1
            with suppress(OSError):  # the client has closed the connection
                for start in range(0, len(raw.body), step):
                    self.wfile.write(raw.body[start : start + step])
                    time.sleep(raw.pause)
                stub.completed += 1

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub = Stub(f"http://127.0.0.1:{server.server_address[1]}/v1")
    return server, stub


def chat_body(content: Any, **message: Any) -> bytes:
    """Return the body of a reply with one message."""
    return json.dumps({"choices": [{"message": {"content": content, **message}}]}).encode()


def question_of(body: dict[str, Any]) -> str:
    """Return a short name of a request, the same as in the journal of replies."""
    return short_hash(json.dumps(body))


def first_by_name(body: dict[str, Any]) -> str:
    """Answer that the document whose text is first by name is better, in either order."""
    text = body["messages"][-1]["content"]
    question = json.loads(text)
    if "document" in question:
        return json.dumps({"grade": len(text) % 5})
    first, second = ("\n".join(question[f"document {name}"].values()).strip() for name in "AB")
    return json.dumps({"better": "AB"[first > second]})


def main(log: Path) -> None:
    """Serve forever; one line per request is written before it is answered."""
    server, stub = _server()
    lock = threading.Lock()

    def reply(body: dict[str, Any]) -> str:
        with lock, log.open("a") as file:
            file.write(question_of(body) + "\n")
        time.sleep(0.01)
        return first_by_name(body)

    stub.reply = reply
    log.write_text(stub.url + "\n")
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
