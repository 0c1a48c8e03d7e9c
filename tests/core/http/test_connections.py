"""Limits on the time and the number of connections."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h11
import pytest
import uvicorn
from packaging.requirements import Requirement
from uvicorn.server import ServerState

from firstpage.core.http import connections, server
from firstpage.core.http.connections import WRITE_BUFFER_BYTES, ConnectionLimits, limited_protocol

LIMITS = ConnectionLimits(connections=3, head=10, idle=75, answer=20, rate=WRITE_BUFFER_BYTES)
HEAD, IDLE, ANSWER = LIMITS.head, LIMITS.idle, LIMITS.answer


class StubTransport(asyncio.Transport):
    """A transport that records what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False
        self.written = b""

    def abort(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.ended = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data


@pytest.fixture
def factory() -> Any:
    """Return a factory that opens connections at a given time."""

    async def nothing(scope: object, receive: object, send: object) -> None:
        return None

    config = uvicorn.Config(nothing, http=limited_protocol(LIMITS), log_level="error")
    config.load()
    state, clock = ServerState(), SimpleNamespace(now=0.0)
    loop: Any = SimpleNamespace(time=lambda: clock.now)

    def open_at(now: float) -> Any:
        clock.now = now
        protocol: Any = config.http_protocol_class
        connection = protocol(config, state, {}, _loop=loop)
        connection.connection_made(StubTransport())
        return connection

    return SimpleNamespace(open_at=open_at, clock=clock, state=state)


def answered(connection: Any, complete: bool = True) -> None:
    connection.cycle = SimpleNamespace(response_complete=complete)


def test_connection_without_a_request_is_closed_sooner(factory: Any) -> None:
    new, used, busy = factory.open_at(0.0), factory.open_at(0.0), factory.open_at(0.0)
    answered(used)
    answered(busy, complete=False)
    for now, ended in (
        (HEAD, (False, False, False)),
        (HEAD + 1, (True, False, False)),
        (IDLE + HEAD, (True, False, False)),
        (IDLE + HEAD + 1, (True, True, False)),
        (10_000, (True, True, False)),
    ):
        for connection in (new, used, busy):
            connection.end_if_late(now)
        assert (new.transport.ended, used.transport.ended, busy.transport.ended) == ended


def test_unread_answer_closes_the_connection(factory: Any) -> None:
    connection = factory.open_at(0.0)
    answered(connection, complete=False)
    factory.clock.now = 5.0
    connection.pause_writing()
    factory.clock.now = 15.0
    connection.resume_writing()
    connection.pause_writing()  # it received a buffer, which allows one more second
    connection.end_if_late(6 + ANSWER)
    assert not connection.transport.ended
    connection.end_if_late(7 + ANSWER)
    assert connection.transport.ended


def test_head_must_be_complete_soon_after_its_first_byte(factory: Any) -> None:
    """This also holds on a connection with an earlier request."""
    connection = factory.open_at(0.0)
    answered(connection)
    connection.end_if_late(50)
    factory.clock.now = 50.0
    connection.data_received(b"GET / HTT")
    factory.clock.now = 59.0
    connection.data_received(b"P")
    connection.end_if_late(50 + HEAD)
    assert not connection.transport.ended
    connection.end_if_late(51 + HEAD)
    assert connection.transport.ended


def test_unread_body_has_a_time_limit(factory: Any) -> None:
    connection = factory.open_at(0.0)
    answered(connection)
    connection.conn.receive_data(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\nabc")
    connection.conn.next_event()
    assert connection.conn.their_state is h11.SEND_BODY
    connection.end_if_late(HEAD)
    assert not connection.transport.ended
    connection.end_if_late(HEAD + 1)
    assert connection.transport.ended


def test_longest_idle_connection_is_closed_for_a_new_one(factory: Any) -> None:
    first, second, third = (factory.open_at(float(i)) for i in range(3))
    answered(first)
    fourth = factory.open_at(3.0)
    assert [c.transport.ended for c in (first, second, third, fourth)] == [
        False,
        True,
        False,
        False,
    ]
    for connection in (third, fourth):
        answered(connection, complete=False)
    fifth = factory.open_at(4.0)
    assert (first.transport.ended, fifth.transport.ended) == (True, False)
    answered(fifth, complete=False)
    refused = factory.open_at(5.0).transport  # all others are being answered
    assert refused.ended
    assert refused.written.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 1\r\n" in refused.written
    head, _, content = refused.written.partition(b"\r\n\r\n")
    assert head.endswith(f"Content-Length: {len(content)}".encode())
    assert len(factory.state.connections) == 3


def test_new_connection_is_not_closed_for_the_next_one(factory: Any) -> None:
    """It had no time to send a request, while all others have sent one."""
    for since in range(3):
        answered(factory.open_at(float(since)))
    fresh = factory.open_at(30.0)
    factory.open_at(30.1)
    assert not fresh.transport.ended


def test_all_connections_are_checked(factory: Any) -> None:
    connection = factory.open_at(-1e9)
    server: Any = SimpleNamespace(server_state=factory.state)
    asyncio.run(connections.end_late_connections(server))
    assert connection.transport.ended


def test_capacity_respects_the_limit_on_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    calls: list[Any] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: calls.append(pair))
    for pair, expected, limits_set in (
        ((1024, 1 << 20), 1000, [(2124, 1 << 20)]),
        ((1 << 20, 1 << 20), 1000, []),
        ((256, 1024), 512, [(1024, 1024)]),
        ((1500, 1500), 750, []),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 1000, []),
    ):
        calls.clear()
        monkeypatch.setattr(resource, "getrlimit", lambda _, pair=pair: pair)
        assert server.connection_capacity(1000) == expected
        assert calls == limits_set


def test_every_requirement_of_uvicorn_is_bounded() -> None:
    """The limits subclass its protocol, which a new version may change."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    required = {name: [r for r in extras[name] if r.startswith("uvicorn")] for name in extras}
    assert {name for name, requirements in required.items() if requirements} == {"serve", "web"}
    bounds = {
        Requirement(requirement).specifier
        for requirements in required.values()
        for requirement in requirements
    }
    assert len(bounds) == 1
    bound = bounds.pop()
    assert uvicorn.__version__ in bound
    assert "1.0" not in bound
