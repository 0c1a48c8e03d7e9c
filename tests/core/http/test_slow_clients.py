"""Slow clients on sockets are disconnected, and do not delay others.

Both servers have the same limits: a few seconds, where the slow clients would need hours.  Only the
order of events is checked, so that the tests pass on a busy machine.
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
from firstpage.core.http.connections import ConnectionLimits
from firstpage.core.http.server import listen, server_for
from firstpage.labeling.app.app import create_app
from firstpage.labeling.app.security import ServeSettings
from firstpage.labeling.app.store.connect import Store
from firstpage.serving.app import Serving
from firstpage.serving.limits import Limits
from firstpage.serving.watched_model import WatchedModel
from tests.patience import PATIENCE
from tests.serving.conftest import linear_model

SECONDS = 4.0
BYTE_INTERVAL = 0.1  # seconds between two bytes of a slow client


@dataclass
class ServerKind:
    """A server: how to create its application, and what to send."""

    make: Callable[[Path, float], Any]
    reads: str  # a path that reads a body without authentication
    refuses: tuple[str, int]  # a path that does not read the body, and its status


def model_server(folder: Path, seconds: float) -> Any:
    watched = WatchedModel(linear_model(folder / "model.json", ["a", "b"]))
    assert watched.reload().accepted
    return Serving(watched, Limits(body_seconds=seconds), poll=None)


def labeling_server(folder: Path, seconds: float) -> Any:
    settings = ServeSettings(body_timeout=seconds, min_body_rate=1 << 10)
    return create_app(Store(folder / "project").prepare(), settings)


KINDS = {
    "model": ServerKind(model_server, "/rank", ("/nowhere", 404)),
    "labeling": ServerKind(labeling_server, "/api/v1/login", ("/api/v1/projects/x/import", 401)),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> ServerKind:
    return KINDS[request.param]


@contextmanager
def running(app: Any, limits: ConnectionLimits) -> Iterator[tuple[uvicorn.Server, int]]:
    """Run the server in a thread; yield it and its port."""
    listener = listen("127.0.0.1", 0)
    server = server_for(app, limits, grace=1)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield server, listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()
        store = getattr(getattr(app, "state", None), "store", None)
        if store is not None:
            store.close()


def wait_for(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.02)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def health(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    finally:
        connection.close()


def post(path: str, length: int = 900_000) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


@dataclass
class SlowClient:
    """Sends some bytes, then one at a time, until the server disconnects."""

    port: int
    start: bytes
    answer: bytes = b""
    sent: int = 0
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        with connected(self.port) as connection:
            try:
                connection.sendall(self.start)
                connection.settimeout(BYTE_INTERVAL)
                while True:
                    connection.sendall(b"x")
                    self.sent += 1
                    try:
                        data = connection.recv(65536)
                    except TimeoutError:
                        continue
                    if not data:
                        return
                    self.answer += data
            except ConnectionError:
                return

    @property
    def status(self) -> int | None:
        return int(self.answer.split()[1]) if self.answer else None


def test_slow_clients_are_disconnected_while_others_are_answered(
    kind: ServerKind, tmp_path: Path
) -> None:
    limits = ConnectionLimits(head=SECONDS, idle=60)
    with running(kind.make(tmp_path, SECONDS), limits) as (_, port):
        refusing, status = kind.refuses
        idle_client = connected(port)
        clients = {
            "head": SlowClient(port, b"GET /health HTTP/1.1\r\nHost: localhost\r\na: "),
            "body": SlowClient(port, post(kind.reads)),
            "body that is not read": SlowClient(port, post(refusing)),
        }
        second = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        second.request("GET", "/health")
        assert second.getresponse().read()
        assert second.sock is not None
        second.sock.sendall(b"GET /heal")  # a second head on the connection, which never ends
        answered = 0
        end = time.monotonic() + PATIENCE
        while any(client.thread.is_alive() for client in clients.values()):
            assert time.monotonic() < end, "a slow client is still there"
            assert health(port) == 200
            answered += 1
            time.sleep(0.05)
        assert answered > 2
        assert {name: client.status for name, client in clients.items()} == {
            "head": None,
            "body": 408,
            "body that is not read": status,
        }
        assert clients["body"].answer.count(b"connection: close") == 1
        assert is_closed(idle_client)
        assert is_closed(second.sock)
        second.close()
        idle_client.close()


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_steady_upload_may_take_longer(tmp_path: Path) -> None:
    """The time limit of an upload grows with its size."""
    limits = ConnectionLimits(head=SECONDS)
    with running(labeling_server(tmp_path, SECONDS), limits) as (_, port):
        content = b'{"login": "a", "password": "b"}'.ljust(20_000)
        with connected(port) as connection:
            connection.sendall(post("/api/v1/login", len(content)))
            for at in range(0, len(content), 2000):
                connection.sendall(content[at : at + 2000])
                time.sleep(SECONDS / 7)
            assert connection.recv(12) == b"HTTP/1.1 401"


def test_number_of_connections_is_limited(kind: ServerKind, tmp_path: Path) -> None:
    max_connections = 5
    limits = ConnectionLimits(connections=max_connections, head=PATIENCE)
    with running(kind.make(tmp_path, PATIENCE), limits) as (server, port):
        idle_clients = [connected(port) for _ in range(4 * max_connections)]
        assert health(port) == 200  # an idle one was closed
        assert len(server.server_state.connections) <= max_connections
        for connection in idle_clients:
            connection.close()
        wait_for(lambda: not server.server_state.connections)

        def under_way() -> bool:
            open_connections: list[Any] = list(server.server_state.connections)
            return len(open_connections) == max_connections and not any(
                connection.idle for connection in open_connections
            )

        busy = [connected(port) for _ in range(max_connections)]
        for connection in busy:
            connection.sendall(post(kind.reads))
        wait_for(under_way)
        with connected(port) as connection:  # none is idle, so none is closed
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 1\r\n" in answer
        for connection in busy:
            connection.close()
        wait_for(lambda: not server.server_state.connections)
        assert health(port) == 200


def test_labeling_application_has_the_same_limits(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "firstpage", "label", "serve", str(tmp_path / "project"),
        "--port", "0", "--max-connections", "3",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(Path(firstpage.__file__).parents[1])}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            idle_clients = [connected(port) for _ in range(12)]
            assert health(port) == 200
            assert sum(map(is_closed, idle_clients[:6])) == 6  # closed for later ones
            with connected(port) as connection:
                connection.sendall(b"no HTTP\r\n\r\n")
                assert connection.recv(12) == b"HTTP/1.1 400"
            for connection in idle_clients:
                connection.close()
        finally:
            server.terminate()
        server.wait(PATIENCE)
        log = server.stderr.read()
    assert "Traceback" not in log
    assert "Invalid HTTP" not in log  # clients cannot write to the log
