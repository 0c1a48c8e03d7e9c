"""Strangers on real sockets: whatever they send, one line for them, none in the log, no place lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.patience import PATIENCE
from tests.serving.conftest import NAMES, NPY, dataset, loaded, npy, write_model
from tests.serving.test_process import Server, ask, wait_for

X = np.asarray(dataset()[0].X)
GOOD = npy(X)
MOST = 20  # connections of the server below
CHUNKED = "Transfer-Encoding: chunked\r\n"
Bytes = bytes | float  # a number: wait so long


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(
        write_model(tmp_path_factory.mktemp("strangers") / "model.json"), "--poll", "0.05",
        "--max-connections", str(MOST), "--max-bytes", "100000",
    )  # fmt: skip
    yield found
    assert found.stop() == 0
    assert found.process.stdout is not None
    found.process.stdout.close()
    log = found.log.read_text()
    assert "Traceback" not in log
    assert len(log.splitlines()) == 1, log  # the model; nothing that a stranger caused


def head(more: str = "", path: str = "/rank", media: str = NPY["content-type"]) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\n{more}\r\n".encode()


def whole(content: bytes = GOOD, more: str = "") -> bytes:
    return head(f"Content-Length: {len(content)}\r\n{more}") + content


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def said(server: Server, *pieces: Bytes, wait: float = 3) -> bytes:
    """All that comes back, until the server closes or is silent."""
    out = b""
    with socket.create_connection(("127.0.0.1", server.port), wait) as line:
        try:
            for piece in pieces:
                if isinstance(piece, float):
                    time.sleep(piece)
                else:
                    line.sendall(piece)
            while part := line.recv(65536):
                out += part
        except (TimeoutError, ConnectionError):
            pass
    return out


def once(server: Server) -> tuple[int, str, bytes]:
    """A good request of somebody else."""
    line = server.line()
    try:
        return ask(line)
    finally:
        line.close()


def statuses(out: bytes) -> list[int]:
    return [int(part[:3]) for part in out.split(b"HTTP/1.1 ")[1:]]


LAST = whole(more="Connection: close\r\n")
SENT = {  # pieces, and the statuses of the answers
    "pipelined": ([whole() * 4 + LAST], [200] * 5),
    "pipelined, then garbage": ([whole() * 2 + b"\x00\xff\r\n\r\n"], [200, 200, 400]),
    "chunked": ([head(CHUNKED + "Connection: close\r\n") + chunk(GOOD) + b"0\r\n\r\n"], [200]),
    "a chunk that is longer than it says": ([head(CHUNKED) + b"5\r\n" + GOOD], [400]),
    "a chunk of no length": ([head(CHUNKED), 0.1, b"zz\r\n" + GOOD], [400]),
    "a chunk goes wrong after 415": (
        [head(CHUNKED, media="text/csv"), 0.2, b"zz\r\nx", 0.1, b"more"], [415],
    ),
    "a chunk goes wrong after 404": ([head(CHUNKED, path="/no"), 0.2, b"zz\r\nx"], [404]),
    "a chunk goes wrong after 413": (
        [head(CHUNKED), chunk(b"x" * 100_001), 0.2, b"zz\r\nx", 0.1, b"more"], [413],
    ),
    "a shorter length": ([head(f"Content-Length: {len(GOOD) - 9}\r\n") + GOOD, b"\r\n\r\n"], [422, 400]),
    "two lengths": ([head("Content-Length: 5\r\nContent-Length: 6\r\n")], [400]),
    "less than nothing": ([head("Content-Length: -5\r\n")], [400]),
    "a length without end": ([head("Content-Length: " + "9" * 40 + "\r\n")], [400]),
    "too long, and asks first": ([head("Expect: 100-continue\r\nContent-Length: 999999\r\n")], [413]),
    "asks first": (
        [head(f"Expect: 100-continue\r\nConnection: close\r\nContent-Length: {len(GOOD)}\r\n"), 0.1, GOOD],
        [100, 200],
    ),
    "no HTTP": ([b"\x16\x03\x01\x02\x00" + b"a" * 99 + b"\r\n\r\n"], [400]),
    "a websocket": (
        [b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"],
        [200],
    ),
    "many headers": ([b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 9000], [400]),
    "a long header": ([b"GET / HTTP/1.1\r\nHost: x\r\na: " + b"x" * 20_000], [400]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SENT)
def test_what_is_sent_and_answered(server: Server, name: str) -> None:
    pieces, expected = SENT[name]
    out = said(server, *pieces)
    assert statuses(out) == expected, out
    if name == "too long, and asks first":  # else what comes next might be taken for the body
        assert b"\r\nconnection: close\r\n" in out
    assert once(server)[0] == 200


def test_methods(server: Server) -> None:
    for method, path, status in (
        ("HEAD", "/health", 200), ("HEAD", "/", 200), ("HEAD", "/rank", 405), ("OPTIONS", "/rank", 405),
        ("OPTIONS", "*", 404), ("TRACE", "/", 405), ("CONNECT", "x:1", 404), ("FOO", "/model", 405),
        ("GET", "/%ff%00", 404), ("GET", "http://x/health", 404),
    ):  # fmt: skip
        out = said(
            server, f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        assert statuses(out) == [status], (method, path)
        assert method != "HEAD" or out.endswith(b"\r\n\r\n")


def test_half_a_connection(server: Server) -> None:
    for sent, expected in ((whole(), [200]), (whole()[:-5], [])):
        with socket.create_connection(("127.0.0.1", server.port), 5) as line:
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
            out = b""
            while part := line.recv(65536):
                out += part
        assert statuses(out) == expected


def deep(count: int = 1000) -> bytes:
    return b"[" * count + b"]" * count


BODIES = {
    "a deep id": b'{"candidates":[{"id":' + deep() + b',"features":[1,2,3,4]}]}',
    "a deep feature": b'{"candidates":[{"features":[' + deep() + b",2,3,4]}]}",
    "a deep query": b'{"query":' + deep() + b"}",
    "deep": deep(30_000),
    "NaN": b'{"candidates":[{"features":[NaN,2,3,4]}]}',
    "1e400": b'{"candidates":[{"features":[1e400,2,3,4]}]}',
    "half a letter": b'{"query":"\\ud800","candidates":[{"features":[1,2,3,4]}]}',
    "no UTF-8": b'{"query":"\xff","candidates":[{"features":[1,2,3,4]}]}',
    "an id without end": b'{"candidates":[{"id":' + b"9" * 5000 + b',"features":[1,2,3,4]}]}',
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", ["/rank", "/batch"])
def test_json_of_strangers(server: Server, name: str, path: str) -> None:
    content = BODIES[name] if path == "/rank" else b"[" + BODIES[name] + b"]"
    line = server.line()
    line.request("POST", path, content, {"Content-Type": "application/json"})
    found = line.getresponse()
    assert found.status == 422
    assert len(json.loads(found.read())["detail"]) < 300
    line.close()


def test_great_wishes(server: Server) -> None:
    line = server.line()
    for great in (2**31, 2**63, 2**64 - 1):
        sent = {"candidates": [{"features": [1, 2, 3, 4]}] * 2, "top": great, "explain": great}
        line.request("POST", "/rank", json.dumps(sent), {"Content-Type": "application/json"})
        found = line.getresponse()
        told = json.loads(found.read())
        assert (found.status, len(told["explanations"])) == (200, 2)
    line.close()


def files(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_silent_connections_make_room(server: Server) -> None:
    """Who says nothing goes first; a connection in use stays."""
    used = server.line()
    assert ask(used)[0] == 200
    held = [socket.create_connection(("127.0.0.1", server.port), 5) for _ in range(3 * MOST)]
    for line in held[::2]:
        with suppress(OSError):  # closed already
            line.sendall(b"POST /rank HT")  # half a head is no more than silence
    fresh = server.line()
    assert ask(fresh)[0] == 200
    assert ask(used)[0] == 200
    assert files(server) < MOST + 15
    for line in (*held, fresh, used):
        line.close()


@pytest.mark.slow
def test_a_pipe_in_the_models_place_keeps_nobody_waiting(model: Path) -> None:
    server = Server(model, "--poll", "0.05")
    before = once(server)
    model.unlink()
    os.mkfifo(model)
    wait_for(lambda: "is not a file" in server.log.read_text(), "the refusal")
    model.unlink()
    model.mkdir()
    wait_for(lambda: server.log.read_text().count("is not a file") == 2, "the folder's refusal")
    assert once(server) == before
    model.rmdir()
    other = write_model(model.with_name("other.json"), "stumps")
    model.symlink_to(other)
    wait_for(lambda: "RankBoost" in server.log.read_text(), "the new model")
    assert loaded(once(server)[2]).tolist() != loaded(before[2]).tolist()
    assert server.stop() == 0
    assert server.process.stdout is not None
    server.process.stdout.close()
    assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs signals")
def test_an_answer_that_nobody_takes_does_not_keep_the_server_from_ending(model: Path) -> None:
    server = Server(model, code="from firstpage.serving import process; process.GRACE = 1")
    rows, count = np.ones((200_000, len(NAMES)), np.float32), 200
    lengths = ",".join(["1000"] * count)
    content = npy(rows)
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(PATIENCE)
        line.connect(("127.0.0.1", server.port))
        path = f"/batch?answer=json&lengths={lengths}"
        line.sendall(head(f"Content-Length: {len(content)}\r\n", path) + content)
        assert line.recv(12).endswith(b"200")
        assert b"in_flight 2" in said(
            server, b"GET /metrics HTTP/1.0\r\n\r\n"
        )  # it keeps its place
        assert server.stop() == 0
    assert server.process.stdout is not None
    server.process.stdout.close()
    assert "Traceback" not in server.log.read_text()
