"""Slow clients on real sockets: they are cut off, and nobody else waits for them.

Both servers have the same guard.  The limits are a few seconds, the slow clients would need hours,
and only the order of events is checked: a busy machine is no failure.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import firstpage
from firstpage.serving.app import Serving
from firstpage.serving.limits import Limits
from firstpage.serving.watched_model import WatchedModel
from firstpage.transport.connections import ConnectionLimits
from firstpage.transport.server import listen, server_for
from firstpage.web.app import create_app
from firstpage.web.security import ServeSettings
from firstpage.web.store.connect import Store
from tests.patience import PATIENCE
from tests.serving.conftest import linear_model

SECONDS = 4.0
PIECE = 0.1  # seconds between two bytes of a slow client


@dataclass
class Kind:
    """One of the servers: how to make its application, and what to send."""

    make: Callable[[Path, float], Any]
    reads: str  # a path that takes a body from anybody
    refuses: tuple[str, int]  # a path that reads none, and its answer


def model_server(folder: Path, seconds: float) -> Any:
    watched = WatchedModel(linear_model(folder / "model.json", ["a", "b"]))
    assert watched.reload().accepted
    return Serving(watched, Limits(body_seconds=seconds), poll=None)


def labeling_server(folder: Path, seconds: float) -> Any:
    settings = ServeSettings(seconds=seconds, rate=1 << 10)
    return create_app(Store(folder / "project").prepare(), settings)


KINDS = {
    "model": Kind(model_server, "/rank", ("/nowhere", 404)),
    "labeling": Kind(labeling_server, "/api/v1/login", ("/api/v1/projects/x/import", 401)),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@contextmanager
def running(app: Any, limits: ConnectionLimits) -> Iterator[tuple[uvicorn.Server, int]]:
    """The server in a thread, and its port."""
    taken = listen("127.0.0.1", 0)
    server = server_for(app, limits, grace=1)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield server, taken.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        taken.close()
        store = getattr(getattr(app, "state", None), "store", None)
        if store is not None:
            store.close()


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def health(port: int) -> int:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        line.request("GET", "/health")
        return line.getresponse().status
    finally:
        line.close()


def post(path: str, length: int = 900_000) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


@dataclass
class SlowClient:
    """Sends some bytes at once, then one at a time, until the server has had enough."""

    port: int
    start: bytes
    answer: bytes = b""
    sent: int = 0
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        with connected(self.port) as line:
            try:
                line.sendall(self.start)
                line.settimeout(PIECE)
                while True:
                    line.sendall(b"x")
                    self.sent += 1
                    try:
                        part = line.recv(65536)
                    except TimeoutError:
                        continue
                    if not part:
                        return
                    self.answer += part
            except ConnectionError:
                return

    @property
    def status(self) -> int | None:
        return int(self.answer.split()[1]) if self.answer else None


@pytest.mark.slow
def test_slow_clients_are_cut_off_while_others_are_answered(kind: Kind, tmp_path: Path) -> None:
    limits = ConnectionLimits(head=SECONDS, idle=60)
    with running(kind.make(tmp_path, SECONDS), limits) as (_, port):
        refusing, status = kind.refuses
        silent = connected(port)
        clients = {
            "head": SlowClient(port, b"GET /health HTTP/1.1\r\nHost: localhost\r\na: "),
            "body": SlowClient(port, post(kind.reads)),
            "body that is not read": SlowClient(port, post(refusing)),
        }
        second = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        second.request("GET", "/health")
        assert second.getresponse().read()
        assert second.sock is not None
        second.sock.sendall(b"GET /heal")  # a second head on a connection, that never ends
        answered = 0
        end = time.monotonic() + PATIENCE
        while any(client.thread.is_alive() for client in clients.values()):
            assert time.monotonic() < end, "a slow client is still there"
            assert health(port) == 200
            answered += 1
            time.sleep(0.05)
        assert answered > 2
        assert {name: client.status for name, client in clients.items()} == {
            "head": None, "body": 408, "body that is not read": status,
        }  # fmt: skip
        assert clients["body"].answer.count(b"connection: close") == 1
        assert gone(silent)
        assert gone(second.sock)
        second.close()
        silent.close()


def gone(line: socket.socket) -> bool:
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.slow
def test_a_body_that_comes_steadily_may_take_longer(tmp_path: Path) -> None:
    """Of uploads, whose time depends on their size."""
    limits = ConnectionLimits(head=SECONDS)
    with running(labeling_server(tmp_path, SECONDS), limits) as (_, port):
        content = b'{"login": "a", "password": "b"}'.ljust(20_000)
        with connected(port) as line:
            line.sendall(post("/api/v1/login", len(content)))
            for at in range(0, len(content), 2000):
                line.sendall(content[at : at + 2000])
                time.sleep(SECONDS / 7)
            assert line.recv(12) == b"HTTP/1.1 401"


@pytest.mark.slow
def test_so_many_connections_and_no_more(kind: Kind, tmp_path: Path) -> None:
    most = 5
    limits = ConnectionLimits(connections=most, head=PATIENCE)
    with running(kind.make(tmp_path, PATIENCE), limits) as (server, port):
        held = [connected(port) for _ in range(4 * most)]
        assert health(port) == 200  # a silent one made room
        assert len(server.server_state.connections) <= most
        for line in held:
            line.close()
        wait_for(lambda: not server.server_state.connections)

        def under_way() -> bool:
            found: list[Any] = list(server.server_state.connections)
            return len(found) == most and not any(one.idle for one in found)

        busy = [connected(port) for _ in range(most)]
        for line in busy:
            line.sendall(post(kind.reads))
        wait_for(under_way)
        with connected(port) as line:  # nobody is silent, so nobody makes room
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 1\r\n" in answer
        for line in busy:
            line.close()
        wait_for(lambda: not server.server_state.connections)
        assert health(port) == 200


@pytest.mark.slow
def test_the_labeling_application_is_served_with_this_guard(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "firstpage", "label", "serve", str(tmp_path / "project"),
        "--port", "0", "--max-connections", "3",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(Path(firstpage.__file__).parents[1])}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as server:  # fmt: skip
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            held = [connected(port) for _ in range(12)]
            assert health(port) == 200
            assert sum(map(gone, held[:6])) == 6  # they made room for those that came after
            with connected(port) as line:
                line.sendall(b"no HTTP\r\n\r\n")
                assert line.recv(12) == b"HTTP/1.1 400"
            for line in held:
                line.close()
        finally:
            server.terminate()
        server.wait(PATIENCE)
        told = server.stderr.read()
    assert "Traceback" not in told
    assert "Invalid HTTP" not in told  # strangers write nothing to the log
