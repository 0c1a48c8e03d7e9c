"""A chat endpoint served locally, for tests of programs as assessors."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Stub:
    """An endpoint that answers with `reply`, a text or a function of the request body."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)  # bodies received
    keys: list[str] = field(default_factory=list)
    reply: Any = None
    failures: list[int] = field(default_factory=list)  # status codes of the first answers


@contextmanager
def served() -> Iterator[Stub]:
    """Serve the endpoint while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stub.requests.append(body)
            stub.keys.append(self.headers["Authorization"])
            code = stub.failures.pop(0) if stub.failures else 200
            content = stub.reply(body) if callable(stub.reply) else stub.reply
            usage = {"prompt_tokens": 100, "completion_tokens": 5}
            message = {"choices": [{"message": {"content": content}}], "usage": usage}
            text = json.dumps(message if code == 200 else {"error": "too busy"}).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub = Stub(f"http://127.0.0.1:{server.server_address[1]}/v1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield stub
    server.shutdown()
    server.server_close()
