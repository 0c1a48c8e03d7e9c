"""The server as a process: reloads under load, signals and sockets."""

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
from firstpage.core import errors
from firstpage.core.errors import MissingDependency
from firstpage.serving.served_model import load
from tests.patience import PATIENCE
from tests.serving.conftest import NPY, dataset, loaded, npy, write_model

SOURCE = Path(__file__).parents[2] / "src"
X = np.asarray(dataset()[0].X)


class Server:
    """A `firstpage serve` process; `code` is run before it starts."""

    def __init__(self, model: Path, *options: str, code: str = "") -> None:
        start = f"{code}\nfrom firstpage.cli import main\nmain()"
        command = [sys.executable, "-c", start, "serve", str(model), "--port", "0", *options]
        self.log = model.parent / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Serving "), self.log.read_text()
        self.port = int(line.rsplit(":", 1)[1])

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@pytest.fixture
def server(model: Path) -> Iterator[Server]:
    process_server = Server(model, "--poll", "0.05")
    yield process_server
    if process_server.process.poll() is None:
        process_server.process.kill()
        process_server.process.wait()
    assert process_server.process.stdout is not None
    process_server.process.stdout.close()


def wait_for(is_done, description: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < end, description
        time.sleep(0.02)


def post_matrix(
    connection: http.client.HTTPConnection, X: np.ndarray = X
) -> tuple[int, str, bytes]:
    connection.request("POST", "/rank", npy(X), NPY)
    response = connection.getresponse()
    return response.status, response.headers.get("x-model", ""), response.read()


def test_reloads_under_load_drop_no_request(server: Server, model: Path) -> None:
    """Every answer is 200, and has the scores of the model whose digest it names."""
    answers: list[tuple[int, str, bytes]] = []
    failed: list[Exception] = []
    stop = threading.Event()

    def send_requests() -> None:
        connection = server.connect()
        try:
            while not stop.is_set():
                answers.append(post_matrix(connection))
                time.sleep(0.003)  # the server needs the processor to load a model
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=send_requests) for _ in range(3)]
    for thread in threads:
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
            served = load(write_model(fresh, kind))
            known[served.digest] = served
            os.replace(fresh, model)
            first = len(answers)
            wait_for(
                lambda start=first, digest=served.digest: any(
                    d == digest for _, d, _ in answers[start:]
                ),
                f"{kind} in service",
            )
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed
    assert {status for status, _, _ in answers} == {200}
    expected = {d: s.scores(X, np.array([0, len(X)])).tolist() for d, s in known.items()}
    checked = [
        loaded(content).tolist() == expected[d] for _, d, content in answers if d in expected
    ]
    assert len(checked) > 20
    assert all(checked)
    assert server.stop() == 0


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def test_sigterm_lets_a_request_finish(server: Server) -> None:
    content = npy(X)
    head = (
        f"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-npy\r\n"
        f"Content-Length: {len(content)}\r\nExpect: 100-continue\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.sendall(head)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"  # the request has begun
        connection.sendall(content[:50])
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not accepts(server.port), "the end of the listener")
        connection.sendall(content[50:])
        answer = b""
        while data := connection.recv(65536):
            answer += data
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(loaded(answer.split(b"\r\n\r\n", 1)[1])) == len(X)
    assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.log.read_text()


def test_sighup_reloads_and_sigint_stops(server: Server, model: Path) -> None:
    write_model(model, "stumps")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "RankBoost" in server.log.read_text(), "the new model")
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize(
    "package", ["uvicorn", "starlette", "jinja2", "msgspec", "prometheus_client"]
)
def test_missing_package_is_named(
    package: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == package else name)
    failure = CliRunner().invoke(serve.command, [str(model)]).exception
    assert isinstance(failure, MissingDependency)
    assert f"'{package}'" in str(failure)
    assert "[serve]" in str(failure)


EVERY_MISTAKE = """
import sys
from firstpage.cli import main

for words in (line.split() for line in sys.stdin):
    sys.argv = ["firstpage", "serve", *words]
    try:
        main()
    except SystemExit as stop:
        print(f"exit {stop.code}", file=sys.stderr)
"""


def test_startup_errors_are_one_line(tmp_path: Path, model: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        result = subprocess.run(
            [sys.executable, "-c", EVERY_MISTAKE],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            input=f"{bad}\n{tmp_path / 'none.json'}\n{model} --port {port}\n",
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
    assert "Traceback" not in result.stderr
    *reports, rest = result.stderr.split("exit 1\n")
    assert (len(reports), rest) == (3, "")
    for report, culprit in zip(reports, ("bad.json", "none.json", str(port)), strict=True):
        last = report.strip().splitlines()[-1]
        assert last.startswith("firstpage: error: ")
        assert culprit in last
