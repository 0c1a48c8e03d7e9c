"""Several workers: one log, one metrics page, reloads in all, and an end that loses nothing."""

from __future__ import annotations

import http.client
import json
import os
import pickle
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from firstpage.cli import serve
from firstpage.serving import workers
from firstpage.serving.access_log import AccessLog
from firstpage.serving.event_log import EventLog
from firstpage.serving.feedback import FeedbackFolder
from firstpage.serving.last_stage import LastStage
from firstpage.serving.limits import Refusal
from firstpage.serving.workers import Channel, RemoteFeedback, RemoteLog
from tests.logs import captured_log
from tests.patience import PATIENCE
from tests.serving.conftest import NPY, npy, write_model
from tests.serving.test_event_log import KILLS, click, stored_rows
from tests.serving.test_process import SOURCE, Server, X, accepts, wait_for

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and sockets are POSIX's")
HEADERS = {"content-type": "application/json"}


def ask(server: Server, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """Send a request over a connection of its own; return status, model and text of the answer."""
    connection = server.connect()
    try:
        content = body if isinstance(body, bytes) else body and json.dumps(body)
        connection.request(method, path, content, HEADERS | headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("x-model"), answer.read().decode("latin-1")
    finally:
        connection.close()


def worker_ids(server: Server) -> list[int]:
    """Return the ids of the workers: children of the process that copies them."""
    children: dict[int, list[tuple[int, str]]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
            command = path.with_name("cmdline").read_text()
        except OSError:
            continue
        parent = int(text.rsplit(")", 1)[1].split()[1])
        children.setdefault(parent, []).append((int(path.parent.name), command))
    copies = [p for p, command in children.get(server.process.pid, ()) if "forkserver" in command]
    return sorted(pid for each in copies for pid, _ in children.get(each, ()))


@pytest.fixture
def server(model: Path, tmp_path: Path) -> Iterator[Server]:
    options = ["--workers", "2", "--events", str(tmp_path / "events"), "--token", "secret"]
    options += ["--access-log", str(tmp_path / "access.log"), "--no-reload"]
    process_server = Server(model, *options)
    yield process_server
    if process_server.process.poll() is None:
        process_server.process.terminate()
        process_server.process.wait(PATIENCE)
    assert process_server.process.stdout is not None
    process_server.process.stdout.close()


def test_workers_share_a_log_the_metrics_and_reloads(
    server: Server, model: Path, tmp_path: Path
) -> None:
    for n in range(30):
        status, _, text = ask(server, "POST", "/events", click(f"e{n % 10}"))
        assert (status, json.loads(text)) == (200, {"stored": int(n < 10), "known": int(n >= 10)})
    models = Counter(ask(server, "POST", "/rank", npy(X), **NPY)[1] for _ in range(40))
    assert len(models) == 1
    (old,) = models

    write_model(tmp_path / "next.json", "scaled").replace(model)
    token = {"authorization": "Bearer secret"}
    status, _, text = ask(server, "POST", "/reload", **token)
    assert (status, json.loads(text)["changed"]) == (200, True)
    new = json.loads(text)["digest"]
    assert {ask(server, "POST", "/rank", npy(X), **NPY)[1] for _ in range(40)} == {new}

    model.write_text("{")
    status, _, text = ask(server, "POST", "/reload", **token)
    assert status == 422
    assert {ask(server, "POST", "/rank", npy(X), **NPY)[1] for _ in range(20)} == {new} != {old}

    for _ in range(4):  # of any worker
        text = ask(server, "GET", "/metrics")[2]
        assert 'firstpage_requests_total{route="/rank",status="200"} 100.0' in text
        assert 'firstpage_request_seconds_count{route="/events"} 30.0' in text
        assert "firstpage_events_stored_total 10.0" in text
        assert "firstpage_events_known_total 20.0" in text
        assert "firstpage_queries_total 100.0" in text
        assert "firstpage_model_up 1.0" in text
    assert ">100</td>" in ask(server, "GET", "/", accept="text/html")[2]
    assert server.stop() == 0
    assert len(stored_rows(tmp_path / "events")) == 10
    lines = (tmp_path / "access.log").read_text().splitlines()
    assert len(lines) == 30 + 100 + 2 + 4 + 1
    form = r'127\.0\.0\.1 - - \[[^]]+ \+0000\] "(GET|POST) /\w* HTTP/1\.1" (200|422) \d+ \d+\.\d{4}'
    assert all(re.fullmatch(form, line) for line in lines)


def test_both_workers_answer(server: Server) -> None:
    connections = [server.connect() for _ in range(30)]
    pids = worker_ids(server)
    assert len(pids) == 2
    try:
        for connection in connections:
            connection.request("GET", "/health")
            assert connection.getresponse().read()
        held = [len([p for p in Path(f"/proc/{pid}/fd").iterdir()
                     if p.exists() or p.is_symlink()]) for pid in pids]  # fmt: skip
        assert min(held) > 10
    finally:
        for connection in connections:
            connection.close()


def test_a_worker_that_is_killed_is_replaced(server: Server) -> None:
    before = worker_ids(server)
    os.kill(before[0], signal.SIGKILL)
    wait_for(
        lambda: "a worker ended (exit code -9), and is replaced" in server.log.read_text(),
        "the report",
    )
    wait_for(lambda: len(worker_ids(server)) == 2, "another worker")
    assert before[0] not in worker_ids(server)
    wait_for(lambda: server.log.read_text().count("serving ") == 3, "its model")
    assert {ask(server, "GET", "/health")[0] for _ in range(20)} == {200}
    assert server.stop() == 0


def test_sigterm_lets_requests_of_all_workers_finish(server: Server) -> None:
    content = npy(X)
    head = f"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-npy\r\nContent-Length: {len(content)}\r\n\r\n"
    streams = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(6)]
    for stream in streams:
        stream.sendall(head.encode() + content[:-10])
    wait_for(
        lambda: "in_flight 7.0" in ask(server, "GET", "/metrics")[2], "six requests that begin"
    )
    server.process.send_signal(signal.SIGTERM)
    wait_for(lambda: not accepts(server.port), "a closed socket")
    for stream in streams:
        stream.sendall(content[-10:])
        assert stream.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        stream.close()
    assert server.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("wrong", ["model", "log"])
def test_a_wrong_start_is_one_line(tmp_path: Path, model: Path, wrong: str) -> None:
    command = [sys.executable, "-m", "firstpage", "serve", str(model), "--port", "0"]
    command += ["--workers", "3"]
    if wrong == "log":
        command += ["--access-log", str(tmp_path / "none" / "file")]
    else:
        model.write_text("{")
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "firstpage: refused" not in line]
    assert [line for line in lines if "firstpage: serving" not in line] == lines[-1:]
    assert ("model.json" if wrong == "model" else "none/file: cannot be written") in lines[-1]


def test_killed_servers_and_workers_lose_nothing_and_store_nothing_twice(
    model: Path, tmp_path: Path
) -> None:
    """A worker, or the parent, is killed under load; clients send events until acknowledged."""
    folder, draw = tmp_path / "events", random.Random(5)
    acknowledged: set[str] = set()
    for life in range(KILLS):
        server = Server(model, "--workers", "2", "--events", str(folder))
        stop = threading.Event()
        pids = worker_ids(server)

        def person(number: int, server: Server, life: int, stop: threading.Event) -> None:
            connection, n = server.connect(), 0
            while not stop.is_set():
                name = f"{life}-{number}-{n}"
                try:
                    connection.request("POST", "/events", json.dumps([click(name)]), HEADERS)
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 200:
                        acknowledged.add(name)
                        n += 1
                except (OSError, http.client.HTTPException):
                    connection.close()  # and send it again, to another worker
                    time.sleep(0.01)
            connection.close()

        people = [threading.Thread(target=person, args=(i, server, life, stop)) for i in range(4)]
        for each in people:
            each.start()
        before = len(acknowledged)
        wait_for(lambda b=before: len(acknowledged) > b + draw.randrange(1, 40), "acknowledgments")
        for pid in draw.sample(pids, draw.randrange(len(pids))):  # none or one
            os.kill(pid, signal.SIGKILL)
            after = len(acknowledged)
            wait_for(lambda a=after: len(acknowledged) > a + 5, "answers of the other worker")
        server.process.kill()
        server.process.wait()
        stop.set()
        for each in people:
            each.join()
        wait_for(lambda s=server: not accepts(s.port), "the end of workers without a parent")
        assert server.process.stdout is not None
        server.process.stdout.close()
    log = EventLog(folder)
    assert log.submit([click(name) for name in acknowledged]).result(PATIENCE) == 0
    log.close()
    stored = Counter(row["event_id"] for row in stored_rows(folder))
    assert acknowledged <= set(stored)
    assert set(stored.values()) == {1}


def channels(answer: Any) -> tuple[Channel, Channel]:
    """Return both ends of a pipe: of a worker, and of its parent, which answers."""
    one, other = Pipe()
    return Channel(one, lambda *_: None), Channel(other, answer)


def test_what_workers_call_is_what_the_parent_does(tmp_path: Path) -> None:
    log, feedback = EventLog(tmp_path / "events"), FeedbackFolder(tmp_path / "feedback")
    functions: dict[str, Any] = {"submit": log.submit, "counts": log.counts}
    functions |= {name: getattr(feedback, name) for name in ("add_preference", "add_query")}
    worker, parent = channels(lambda name, args: functions[name](*args))
    remote, folder = RemoteLog(worker), RemoteFeedback(worker)
    assert remote.submit([click("a"), click("b")]).result(PATIENCE) == 2
    assert remote.submit([click("a"), click("c")]).result(PATIENCE) == 1
    assert remote.counts() == log.counts()
    assert remote.counts()["known"] == 1
    assert folder.add_preference({"id": 1})
    assert not folder.add_preference({"id": 1})
    assert folder.add_query("fox", iter([{"document": "d1"}]))
    assert not folder.add_query("fox", [])
    log.close()
    with pytest.raises(Refusal, match="too many events wait") as refused:
        remote.submit([click("d")]).result(PATIENCE)
    assert (refused.value.status_code, refused.value.headers) == (503, {"retry-after": "1"})
    with socket.socket(fileno=os.dup(parent._connection.fileno())) as pipe:
        pipe.shutdown(socket.SHUT_RDWR)  # as where the parent dies
    worker.reader.join(PATIENCE)
    for _ in range(2):
        with pytest.raises(Refusal, match="the server is being restarted"):
            remote.submit([click("e")]).result(PATIENCE)
    feedback.close()


def test_a_worker_that_cannot_start_again_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file may be damaged when a worker dies: the others go on, and the log says so once."""
    monkeypatch.setattr(workers, "RESTART_DELAY", 0.01)
    monkeypatch.setattr(workers, "POLL_INTERVAL", 0.01)
    monkeypatch.setattr("prometheus_client.multiprocess.mark_process_dead", lambda *_: None)

    class Dead:
        exitcode, pid = -9, 1

        def is_alive(self) -> bool:
            return False

    group = workers.WorkerGroup(lambda *_: None, socket.socket(), None, None)
    group._running = {Dead(): channels(lambda *_: None)[0]}  # type: ignore[dict-item]
    problems = ["damaged", "damaged", "damaged", None]

    def start() -> str | None:
        problem = problems.pop(0)
        if problem is None:
            group._stopped.set()
        return problem

    monkeypatch.setattr(group, "_start", start)
    with captured_log("firstpage.serving") as text:
        group._watch(1, str(tmp_path))
    assert problems == []
    assert text.getvalue().count("cannot start, and is tried again: damaged") == 1
    group._listener.close()


def test_a_reload_says_which_workers_do_not_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "CALL_TIMEOUT", 0.05)
    never = Future[str]()
    answers: list[Any] = [None, "damaged", never, Refusal("ended", 503)]
    group = workers.WorkerGroup(lambda *_: None, socket.socket(), None, None)
    asking: Any = object()
    group._running = {asking: channels(lambda *_: "not asked")[0]}
    group._running |= {
        object(): channels(lambda *_, value=value: value)[0]  # type: ignore[misc]
        for value in answers
    }
    assert group._reload_others(asking) == ["damaged", "it does not answer."]
    group._listener.close()


def test_a_moved_access_log_begins_again_and_a_full_disk_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "access.log"
    access = AccessLog(path)
    scope = {"client": None, "method": "B\x1b[31mD", "http_version": "1.1"}
    access.write(scope, "other", 404, 12, 0.5)
    path.rename(tmp_path / "access.log.1")
    access.write({**scope, "client": ("::1", 3), "method": "GET"}, "/rank", 200, 3, 0.25)
    assert '"- other HTTP/1.1" 404 12 0.5000' in (tmp_path / "access.log.1").read_text()
    assert path.read_text().startswith("::1 - - [")
    assert path.read_text().endswith('"GET /rank HTTP/1.1" 200 3 0.2500\n')

    class Full:
        def write(self, text: str) -> None:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            pass

    with captured_log("firstpage.serving") as text:
        monkeypatch.setattr(access._handler, "stream", Full())
        for _ in range(3):
            access.write(scope, "/rank", 200, 3, 0.25)
    assert text.getvalue().count("the access log cannot be written") == 1
    monkeypatch.undo()
    access.close()


def test_a_last_stage_reaches_a_worker_without_its_threads() -> None:
    stage = LastStage(len, 1.5)  # type: ignore[arg-type]
    again = pickle.loads(pickle.dumps(stage))
    assert (again.assessor, again.seconds) == (len, 1.5)
    made = serve._last_stage("http://127.0.0.1:9/v1#model", 0.5)  # whose client has locks
    assert made is not None
    again = pickle.loads(pickle.dumps(made))
    assert (type(again.assessor), again.seconds) == (type(made.assessor), 0.5)


def test_a_call_that_fails_in_the_parent_fails_in_the_worker() -> None:
    waiting = Future[int]()

    def answer(name: str, args: Any) -> Any:
        if name == "later":
            return waiting
        raise ValueError(name)

    worker, _ = channels(answer)
    later = worker.call("later")
    with pytest.raises(ValueError, match="wrong"):
        worker.call("wrong").result(PATIENCE)
    cancelled = worker.call("later")
    assert cancelled.cancel()  # as where a client is gone
    waiting.set_exception(Refusal("full", 507))
    with pytest.raises(Refusal, match="full"):
        later.result(PATIENCE)
    with pytest.raises(ValueError, match="next"):
        worker.call("next").result(PATIENCE)
