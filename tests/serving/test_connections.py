"""How long a connection may be open for nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import uvicorn
from uvicorn.server import ServerState

from firstpage.serving import connections, served, sockets
from firstpage.serving.answers import Slow, answer
from firstpage.serving.connections import FIRST, IDLE, TAKEN, guarded
from firstpage.serving.limits import Limits
from tests.serving.conftest import NPY, arrow, body, clients, dataset, npy, write_model

X = np.asarray(dataset()[0].X)


class Line(asyncio.Transport):
    """A transport that goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False

    def abort(self) -> None:
        self.ended = True


@pytest.fixture
def opened() -> Any:
    """Opens connections at a time that is given."""

    async def nothing(scope: object, receive: object, send: object) -> None:
        return None

    config = uvicorn.Config(nothing, http=guarded(Limits(connections=3)), log_level="error")
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
        (FIRST, (False, False, False)), (FIRST + 1, (True, False, False)),
        (IDLE + FIRST, (True, False, False)), (IDLE + FIRST + 1, (True, True, False)),
        (10_000, (True, True, False)),
    ):  # fmt: skip
        for one in (new, used, busy):
            one.look(now)
        assert (new.transport.ended, used.transport.ended, busy.transport.ended) == ended


def test_an_answer_must_be_taken(opened: Any) -> None:
    one = opened.make(0.0)
    answered(one, complete=False)
    opened.clock.now = 5.0
    one.pause_writing()
    opened.clock.now = 15.0
    one.resume_writing()
    one.pause_writing()  # it takes a little now and then
    one.look(5 + TAKEN)
    assert not one.transport.ended
    one.look(6 + TAKEN)
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
    assert opened.make(5.0).transport.ended  # all others are being answered
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
    asyncio.run(connections.look_at_all(server))
    assert one.transport.ended


def test_room_under_the_limit_on_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    raised: list[Any] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: raised.append(pair))
    for limits, expected, asked in (
        ((1024, 1 << 20), 1000, [(2124, 1 << 20)]), ((1 << 20, 1 << 20), 1000, []),
        ((256, 1024), 512, [(1024, 1024)]), ((1500, 1500), 750, []),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 1000, []),
    ):  # fmt: skip
        raised.clear()
        monkeypatch.setattr(resource, "getrlimit", lambda _, pair=limits: pair)
        assert sockets.room(1000) == expected
        assert raised == asked


@pytest.mark.slow
def test_much_work_is_done_beside_the_loop(tmp_path: Path) -> None:
    linear = served.load(write_model(tmp_path / "linear.json"))
    trees = served.load(write_model(tmp_path / "trees.json", "lightgbm"))
    few, many = npy(X), npy(np.ones((6000, 4)))
    lengths = {"lengths": ",".join(["1000"] * 6)}
    explained = {"answer": "json", "explain": "2"}
    media = NPY["content-type"]
    for model, content, given, batch, slow in (
        (linear, few, {}, False, False), (linear, few, explained, False, False),
        (trees, few, {}, False, False), (trees, few, explained, False, True),
        (linear, many, lengths, True, True), (linear, many, {**lengths, **explained, "top": "1"}, True, True),
    ):  # fmt: skip
        work = (model, Limits(), media, content, given, batch)
        if slow:
            with pytest.raises(Slow):
                answer(*work, beside=False)
            assert answer(*work).queries == (6 if batch else 1)
        else:
            assert answer(*work, beside=False).candidates == len(X)
    for client in clients(tmp_path / "trees.json"):
        hidden = (
            b'{"\\u0065xplain": 1,' + client.build_request("POST", "/", json=body(X)).content[1:]
        )
        told = client.post("/rank", content=hidden).json()
        assert len(told["explanations"]) == len(X)


def test_explanations_have_a_limit(model: Path) -> None:
    for client in clients(model, Limits(explained=20, reasons=30)):
        queries = [body(X)] * 4
        for wishes, status in (
            ({}, 200), ({"explain": 1}, 413), ({"explain": 1, "top": 5}, 200),
            ({"explain": 2, "top": 5}, 413), ({"explain": 9, "top": 1}, 200),
        ):  # fmt: skip
            found = client.post("/batch", json={"queries": queries, **wishes})
            assert found.status_code == status, found.text
        assert "'top'" in client.post("/batch", json={"queries": queries, "explain": 1}).text


def test_headers_of_matrices_that_lie(client: Any) -> None:
    data = np.ones((1, 4)).tobytes()
    for shape in (
        "(True, 4)",
        "(-1, -4)",
        "(1, 4.0)",
        "(1" + "0" * 3000 + ", 4)",
        "None",
        "(1,) * 9",
    ):
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
        found = client.post("/rank", content=head + data, headers=NPY)
        assert found.status_code == 422
        assert len(found.json()["detail"]) < 200


def test_arrow_with_great_ids(client: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    great = pa.array([2**64 - 1, 0, 5], pa.uint64())
    names = ("bm25", "pagerank", "clicks", "age")
    sent = arrow(id=great, query=great, **{name: np.ones(3) for name in names})
    for path in ("/rank", "/batch"):
        found = client.post(
            path, content=sent, headers={"content-type": "application/vnd.apache.arrow.stream"}
        )
        table = pa.ipc.open_stream(found.content).read_all()
        assert table["id"].to_pylist() == great.to_pylist()


def test_a_model_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(tmp_path / "model.json")
    assert served.load(path).names
    monkeypatch.setattr(served, "LARGEST", 100)
    with pytest.raises(served.DataError, match="larger"):
        served.load(path)


def test_a_file_that_is_swapped_to_and_fro_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes before and after are not enough: between them another file lay there."""
    path = write_model(tmp_path / "model.json")
    real = served.read_model

    def swapped(at: Path) -> Any:
        path.rename(tmp_path / "aside")
        write_model(path, "stumps")
        found = real(at)
        (tmp_path / "aside").rename(path)
        return found

    monkeypatch.setattr(served, "read_model", swapped)
    with pytest.raises(served.DataError, match="changed while it was read"):
        served.load(path)
