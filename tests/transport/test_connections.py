"""How long a connection may be open for nothing, and how many there may be."""

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

from firstpage.transport import connections, server
from firstpage.transport.connections import WRITE_BUFFER_BYTES, ConnectionLimits, limited_protocol

LIMITS = ConnectionLimits(connections=3, head=10, idle=75, answer=20, rate=WRITE_BUFFER_BYTES)
HEAD, IDLE, ANSWER = LIMITS.head, LIMITS.idle, LIMITS.answer


class Line(asyncio.Transport):
    """A transport that goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False
        self.written = b""

    def abort(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.ended = True

    def write(self, data: bytes) -> None:
        self.written += data


@pytest.fixture
def opened() -> Any:
    """Opens connections at a time that is given."""

    async def nothing(scope: object, receive: object, send: object) -> None:
        return None

    config = uvicorn.Config(nothing, http=limited_protocol(LIMITS), log_level="error")
    config.load()
    state, clock = ServerState(), SimpleNamespace(now=0.0)
    loop: Any = SimpleNamespace(time=lambda: clock.now)

    def make(now: float) -> Any:
        clock.now = now
        found: Any = config.http_protocol_class(config, state, {}, _loop=loop)
        found.connection_made(Line())
        return found

    return SimpleNamespace(make=make, clock=clock, state=state)


def answered(connection: Any, complete: bool = True) -> None:
    connection.cycle = SimpleNamespace(response_complete=complete)


def test_who_never_asks_is_closed_sooner_than_who_did(opened: Any) -> None:
    new, used, busy = opened.make(0.0), opened.make(0.0), opened.make(0.0)
    answered(used)
    answered(busy, complete=False)
    for now, ended in (
        (HEAD, (False, False, False)), (HEAD + 1, (True, False, False)),
        (IDLE + HEAD, (True, False, False)), (IDLE + HEAD + 1, (True, True, False)),
        (10_000, (True, True, False)),
    ):  # fmt: skip
        for one in (new, used, busy):
            one.end_if_late(now)
        assert (new.transport.ended, used.transport.ended, busy.transport.ended) == ended


def test_an_answer_must_be_taken(opened: Any) -> None:
    one = opened.make(0.0)
    answered(one, complete=False)
    opened.clock.now = 5.0
    one.pause_writing()
    opened.clock.now = 15.0
    one.resume_writing()
    one.pause_writing()  # it took a buffer, which is worth a second
    one.end_if_late(6 + ANSWER)
    assert not one.transport.ended
    one.end_if_late(7 + ANSWER)
    assert one.transport.ended


def test_a_head_must_come_soon_after_its_first_byte(opened: Any) -> None:
    """On a connection that was answered before, too."""
    one = opened.make(0.0)
    answered(one)
    one.end_if_late(50)
    opened.clock.now = 50.0
    one.data_received(b"GET / HTT")
    opened.clock.now = 59.0
    one.data_received(b"P")
    one.end_if_late(50 + HEAD)
    assert not one.transport.ended
    one.end_if_late(51 + HEAD)
    assert one.transport.ended


def test_a_body_that_nobody_reads_does_not_go_on_for_ever(opened: Any) -> None:
    one = opened.make(0.0)
    answered(one)
    one.conn.receive_data(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\nabc")
    one.conn.next_event()
    assert one.conn.their_state is h11.SEND_BODY
    one.end_if_late(HEAD)
    assert not one.transport.ended
    one.end_if_late(HEAD + 1)
    assert one.transport.ended


def test_room_is_made_by_who_waits_longest(opened: Any) -> None:
    first, second, third = (opened.make(float(i)) for i in range(3))
    answered(first)
    fourth = opened.make(3.0)
    assert [c.transport.ended for c in (first, second, third, fourth)] == [
        False,
        True,
        False,
        False,
    ]
    for one in (third, fourth):
        answered(one, complete=False)
    fifth = opened.make(4.0)
    assert (first.transport.ended, fifth.transport.ended) == (True, False)
    answered(fifth, complete=False)
    refused = opened.make(5.0).transport  # all others are being answered
    assert refused.ended
    assert refused.written.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 1\r\n" in refused.written
    head, _, said = refused.written.partition(b"\r\n\r\n")
    assert head.endswith(f"Content-Length: {len(said)}".encode())
    assert len(opened.state.connections) == 3


def test_who_only_just_came_is_not_sent_away_for_the_next(opened: Any) -> None:
    """Although it has not had the time to ask, and all others did so once."""
    for since in range(3):
        answered(opened.make(float(since)))
    fresh = opened.make(30.0)
    opened.make(30.1)
    assert not fresh.transport.ended


def test_all_are_looked_at(opened: Any) -> None:
    one = opened.make(-1e9)
    server: Any = SimpleNamespace(server_state=opened.state)
    asyncio.run(connections.end_late_connections(server))
    assert one.transport.ended


def test_room_under_the_limit_on_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    raised: list[Any] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: raised.append(pair))
    for pair, expected, asked in (
        ((1024, 1 << 20), 1000, [(2124, 1 << 20)]), ((1 << 20, 1 << 20), 1000, []),
        ((256, 1024), 512, [(1024, 1024)]), ((1500, 1500), 750, []),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 1000, []),
    ):  # fmt: skip
        raised.clear()
        monkeypatch.setattr(resource, "getrlimit", lambda _, pair=pair: pair)
        assert server.connection_capacity(1000) == expected
        assert raised == asked


def test_uvicorn_is_bounded_wherever_it_is_required() -> None:
    """The guard subclasses its protocol, which a new version may change."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = {name: [r for r in extras[name] if r.startswith("uvicorn")] for name in extras}
    assert {name for name, found in wanted.items() if found} == {"serve", "web"}
    bounds = {Requirement(each).specifier for found in wanted.values() for each in found}
    assert len(bounds) == 1
    bound = bounds.pop()
    assert uvicorn.__version__ in bound
    assert "1.0" not in bound
