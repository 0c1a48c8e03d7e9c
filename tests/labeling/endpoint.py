"""A chat endpoint that is a real server on this machine, for tests of programs as assessors."""

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
    """An endpoint that answers as `reply` says; what it was asked is kept."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    reply: Any = None
    failures: list[int] = field(default_factory=list)  # codes to answer first


@contextmanager
def served() -> Iterator[Stub]:
    """The endpoint, up while the block runs."""

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
