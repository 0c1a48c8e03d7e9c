"""Several server processes on one store and one address."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import httpx
import psutil
import pytest
from click.testing import CliRunner

from firstpage.cli import app
from tests.labeling.app.load import NO_TLS, Server, Tally, Worker, prepare, verify_store
from tests.patience import PATIENCE


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[tuple[str, Server, list[Worker]]]:
    location = str(tmp_path / "project")
    clients = prepare(location, 3, 1, documents=6, k=2, text="short")
    server = Server(location, options=("--workers", "2"))
    server.start()
    yield location, server, clients
    server.stop()


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


def workers_of(server: Server) -> list[int]:
    """Return the copies of the process that has loaded the application."""
    assert server.process is not None
    workers: list[int] = []
    for child in psutil.Process(server.process.pid).children():
        with suppress(psutil.Error):  # it has just ended
            if "forkserver" in " ".join(child.cmdline()):
                workers += [copy.pid for copy in child.children()]
    return workers


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def answer(client: httpx.Client, task: int, tally: Tally) -> None:
    state = client.get(f"/api/v1/tasks/{task}").json()
    question, key = state["question"], uuid4().hex
    body = {
        "seq": state["seq"],
        "key": key,
        "outcome": 1,
        "left": question["left"]["key"],
        "right": question["right"]["key"],
    }
    reply = client.post(f"/api/v1/tasks/{task}/answers", json=body)
    assert reply.status_code == 200, reply.text
    tally.acknowledged.append((task, state["seq"], key))


def test_processes_share_sessions_and_one_that_is_killed_is_replaced(
    shared: tuple[str, Server, list[Worker]],
) -> None:
    location, server, clients = shared
    tally = Tally()
    first = workers_of(server)
    assert len(first) == 2
    for step in range(6):  # a new connection each time, so that both processes get the session
        for worker in clients:
            with worker.client(server.address) as client:
                answer(client, worker.tasks[0], tally)
        if step == 2:
            os.kill(first[0], signal.SIGKILL)
            until(lambda: len(set(workers_of(server)) - {first[0]}) == 2)
            until(lambda: all(_answers(server) for _ in range(8)))
    assert set(workers_of(server)) != set(first)
    now = workers_of(server)
    server.stop()
    assert not any(map(running, now))
    assert verify_store(location, tally)["problems"] == []


def _answers(server: Server) -> bool:
    try:
        return httpx.get(f"{server.address}/health", verify=NO_TLS).status_code == 200
    except httpx.TransportError:
        return False


def test_workers_end_with_the_process_that_started_them(
    shared: tuple[str, Server, list[Worker]],
) -> None:
    _, server, _ = shared
    started = workers_of(server)
    server.kill()
    until(lambda: not any(map(running, started)))


def test_an_address_in_use_and_one_person_are_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        serve = ["label", "serve", str(tmp_path / "p"), "--workers", "2"]
        taken = CliRunner().invoke(app, [*serve, "--port", port])
    assert taken.exit_code != 0
    assert "cannot listen" in str(taken.exception or "") + taken.output
    single = CliRunner().invoke(app, [*serve, "--open"])
    assert single.exit_code == 2
    assert "leave out --workers" in single.output
