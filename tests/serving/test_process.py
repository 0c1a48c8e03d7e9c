"""A real server in a process of its own: new models under load, signals, sockets."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from firstpage.cli import serve
from firstpage.errors import MissingDependency
from firstpage.serving.served_model import load
from tests.patience import PATIENCE
from tests.serving.conftest import NPY, dataset, loaded, npy, write_model

SOURCE = Path(__file__).parents[2] / "src"
X = np.asarray(dataset()[0].X)


class Server:
    """`code` runs before it."""

    def __init__(self, model: Path, *more: str, code: str = "") -> None:
        start = f"{code}\nfrom firstpage.cli import main\nmain()"
        command = [sys.executable, "-c", start, "serve", str(model), "--port", "0", *more]
        self.log = model.parent / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Serving "), self.log.read_text()
        self.port = int(line.rsplit(":", 1)[1])

    def line(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@pytest.fixture
def server(model: Path) -> Iterator[Server]:
    found = Server(model, "--poll", "0.05", "--max-candidates", "50")
    yield found
    if found.process.poll() is None:
        found.process.kill()
        found.process.wait()
    assert found.process.stdout is not None
    found.process.stdout.close()


def wait_for(done, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def ask(line: http.client.HTTPConnection, X: np.ndarray = X) -> tuple[int, str, bytes]:
    line.request("POST", "/rank", npy(X), NPY)
    found = line.getresponse()
    return found.status, found.headers.get("x-model", ""), found.read()


@pytest.mark.slow
def test_new_models_under_load_drop_no_request(server: Server, model: Path) -> None:
    """Every answer is 200, on one connection each, with the scores of the model that it names."""
    seen: list[tuple[int, str, bytes]] = []
    failed: list[Exception] = []
    stop = threading.Event()

    def asks() -> None:
        line = server.line()
        try:
            while not stop.is_set():
                seen.append(ask(line))
        except Exception as error:
            failed.append(error)
        finally:
            line.close()

    asking = [threading.Thread(target=asks) for _ in range(3)]
    for thread in asking:
        thread.start()
    known = {}
    try:
        for kind in ("lightgbm", "linear", "scaled", "broken", "stumps"):
            fresh = model.with_name("next.json")
            if kind == "broken":
                fresh.write_bytes(b'{"format": "firstpage-model"')
                os.replace(fresh, model)
                wait_for(lambda: "refused" in server.log.read_text(), "the refusal")
                continue
            found = load(write_model(fresh, kind))
            known[found.digest] = found
            os.replace(fresh, model)
            first = len(seen)
            wait_for(
                lambda at=first, digest=found.digest: any(d == digest for _, d, _ in seen[at:]),
                f"{kind} in service",
            )
    finally:
        stop.set()
        for thread in asking:
            thread.join()
    assert not failed
    assert {status for status, _, _ in seen} == {200}
    expected = {d: s.scores(X, np.array([0, len(X)])).tolist() for d, s in known.items()}
    checked = [loaded(content).tolist() == expected[d] for _, d, content in seen if d in expected]
    assert len(checked) > 20
    assert all(checked)
    assert server.stop() == 0


@pytest.mark.slow
def test_sigterm_lets_a_request_end(server: Server) -> None:
    content = npy(X)
    head = (
        f"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-npy\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as line:
        line.sendall(head + content[:50])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        line.sendall(content[50:])
        answer = b""
        while part := line.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(loaded(answer.split(b"\r\n\r\n", 1)[1])) == len(X)
    assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.log.read_text()


def test_a_refused_body_leaves_the_connection_in_use(server: Server) -> None:
    line = server.line()
    status, _, content = ask(line, np.ones((60, 4)))
    assert (status, b"--max-candidates" in content) == (413, True)
    assert ask(line)[0] == 200
    line.close()


@pytest.mark.slow
def test_sigint_and_hangup(server: Server, model: Path) -> None:
    write_model(model, "stumps")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "RankBoost" in server.log.read_text(), "the new model")
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("package", ["uvicorn", "starlette", "msgspec", "prometheus_client"])
def test_a_package_that_is_not_installed_is_named(
    package: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == package else name)
    failure = CliRunner().invoke(serve.command, [str(model)]).exception
    assert isinstance(failure, MissingDependency)
    assert f"'{package}'" in str(failure)
    assert "firstpage[serve]" in str(failure)


@pytest.mark.slow
def test_what_cannot_be_served_is_one_line(tmp_path: Path, server: Server) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    for path, more in ((bad, ()), (tmp_path / "none.json", ()), (tmp_path / "model.json", ("--port", str(server.port)))):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "firstpage", "serve", str(path), *more],
            capture_output=True, text=True, timeout=PATIENCE,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )  # fmt: skip
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("firstpage: error: ")
        assert "Traceback" not in done.stderr
