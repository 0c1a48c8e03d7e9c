"""An embeddings endpoint served locally, with the failures of real ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(text: str) -> list[float]:
    """The vector of a text: how often it has each letter."""
    return [float(text.count(letter)) for letter in LETTERS]


@dataclass
class Stub:
    """Answers with the letters of each text; `failures` replace the first answers.

    A failure is a status, (status, Retry-After), "cut", or a function that changes the reply.
    """

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    failures: list[Any] = field(default_factory=list)
    refused: str = ""  # a text that is answered 400
    usage: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    def texts(self) -> list[str]:
        """All texts that were received."""
        return [text for request in self.requests for text in request["input"]]


@contextmanager
def served() -> Iterator[Stub]:
    """Serve the endpoint while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with stub.lock:
                stub.requests.append(body)
                stub.keys.append(self.headers["Authorization"])
                failure = stub.failures.pop(0) if stub.failures else 200
            if stub.refused and any(stub.refused in text for text in body["input"]):
                failure = 400
            rows = [
                {"index": n, "embedding": letters(text)} for n, text in enumerate(body["input"])
            ]
            content: Any = {"data": rows[::-1]}
            if stub.usage:
                content["usage"] = {"total_tokens": 10 * len(rows)}
            code, wait = failure if isinstance(failure, tuple) else (failure, None)
            if callable(failure):
                content = failure(content)
            code = code if isinstance(code, int) else 200
            if code != 200:
                content = {"error": {"message": f"no, said {self.headers['Authorization']}"}}
            text = json.dumps(content).encode()
            self.send_response(code)
            if wait is not None:
                self.send_header("Retry-After", str(wait))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text[: len(text) // 2] if failure == "cut" else text)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub = Stub(f"http://127.0.0.1:{server.server_address[1]}/v1/embeddings")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield stub
    server.shutdown()
    server.server_close()
