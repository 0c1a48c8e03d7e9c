"""Hostile input on sockets: each gets a one-line answer, nothing is logged, no slot is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.patience import PATIENCE
from tests.serving.conftest import NAMES, NPY, dataset, loaded, npy, write_model
from tests.serving.test_process import Server, post_matrix, wait_for

X = np.asarray(dataset()[0].X)
GOOD = npy(X)
MAX_CONNECTIONS = 20  # limit of the server below
CHUNKED = "Transfer-Encoding: chunked\r\n"
Segment = bytes | float  # bytes to send, or seconds to wait


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    process_server = Server(
        write_model(tmp_path_factory.mktemp("hostile") / "model.json"),
        "--poll",
        "0.05",
        "--max-connections",
        str(MAX_CONNECTIONS),
        "--max-bytes",
        "100000",
        "--max-candidates",
        "50",
    )
    yield process_server
    assert process_server.stop() == 0
    assert process_server.process.stdout is not None
    process_server.process.stdout.close()
    log = process_server.log.read_text()
    assert "Traceback" not in log
    assert len(log.splitlines()) == 1, (
        log
    )  # the line about the model, and nothing that a client caused


def head(headers: str = "", path: str = "/rank", media: str = NPY["content-type"]) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\n{headers}\r\n".encode()


def request(content: bytes = GOOD, headers: str = "") -> bytes:
    return head(f"Content-Length: {len(content)}\r\n{headers}") + content


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def exchange(server: Server, *segments: Segment, wait: float = 3) -> bytes:
    """Send segments; return all that the server sends until it closes or is silent."""
    out = b""
    with socket.create_connection(("127.0.0.1", server.port), wait) as connection:
        try:
            for segment in segments:
                if isinstance(segment, float):
                    time.sleep(segment)
                else:
                    connection.sendall(segment)
            while data := connection.recv(65536):
                out += data
        except (TimeoutError, ConnectionError):
            pass
    return out


def rank_once(server: Server) -> tuple[int, str, bytes]:
    """Send a valid request on a new connection."""
    connection = server.connect()
    try:
        return post_matrix(connection)
    finally:
        connection.close()


def statuses(out: bytes) -> list[int]:
    return [int(answer[:3]) for answer in out.split(b"HTTP/1.1 ")[1:]]


LAST = request(headers="Connection: close\r\n")
REQUESTS: dict[str, tuple[list[Any], list[int]]] = {  # segments, and the statuses of the answers
    "pipelined": ([request() * 4 + LAST], [200] * 5),
    "pipelined, then garbage": ([request() * 2 + b"\x00\xff\r\n\r\n"], [200, 200, 400]),
    "chunked": ([head(CHUNKED + "Connection: close\r\n") + chunk(GOOD) + b"0\r\n\r\n"], [200]),
    "a chunk longer than its length": ([head(CHUNKED) + b"5\r\n" + GOOD], [400]),
    "a chunk without a length": ([head(CHUNKED), 0.1, b"zz\r\n" + GOOD], [400]),
    "an invalid chunk after 415": (
        [head(CHUNKED, media="text/csv"), 0.2, b"zz\r\nx", 0.1, b"more"],
        [415],
    ),
    "an invalid chunk after 404": ([head(CHUNKED, path="/no"), 0.2, b"zz\r\nx"], [404]),
    "an invalid chunk after 413": (
        [head(CHUNKED), chunk(b"x" * 100_001), 0.2, b"zz\r\nx", 0.1, b"more"],
        [413],
    ),
    "a too short length": (
        [head(f"Content-Length: {len(GOOD) - 9}\r\n") + GOOD, b"\r\n\r\n"],
        [422, 400],
    ),
    "two lengths": ([head("Content-Length: 5\r\nContent-Length: 6\r\n")], [400]),
    "a negative length": ([head("Content-Length: -5\r\n")], [400]),
    "a very long length": ([head("Content-Length: " + "9" * 40 + "\r\n")], [400]),
    "too long, with expect": ([head("Expect: 100-continue\r\nContent-Length: 999999\r\n")], [413]),
    "expect": (
        [
            head(f"Expect: 100-continue\r\nConnection: close\r\nContent-Length: {len(GOOD)}\r\n"),
            0.1,
            GOOD,
        ],
        [100, 200],
    ),
    "not HTTP": ([b"\x16\x03\x01\x02\x00" + b"a" * 99 + b"\r\n\r\n"], [400]),
    "a websocket": (
        [
            b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
        ],
        [200],
    ),
    "many headers": ([b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 9000], [400]),
    "a long header": ([b"GET / HTTP/1.1\r\nHost: x\r\na: " + b"x" * 20_000], [400]),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_malformed_requests_have_the_expected_status(server: Server, name: str) -> None:
    segments, expected = REQUESTS[name]
    out = exchange(server, *segments)
    assert statuses(out) == expected, out
    if name == "too long, with expect":  # else later bytes may be read as the body
        assert b"\r\nconnection: close\r\n" in out
    assert rank_once(server)[0] == 200


def test_methods_have_the_expected_status(server: Server) -> None:
    for method, path, status in (
        ("HEAD", "/health", 200),
        ("HEAD", "/", 200),
        ("HEAD", "/rank", 405),
        ("OPTIONS", "/rank", 405),
        ("OPTIONS", "*", 404),
        ("TRACE", "/", 405),
        ("CONNECT", "x:1", 404),
        ("FOO", "/model", 405),
        ("GET", "/%ff%00", 404),
        ("GET", "http://x/health", 404),
    ):
        out = exchange(
            server, f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        assert statuses(out) == [status], (method, path)
        assert method != "HEAD" or out.endswith(b"\r\n\r\n")


def test_connection_is_usable_after_a_refused_body(server: Server) -> None:
    connection = server.connect()
    status, _, content = post_matrix(connection, np.ones((60, 4)))
    assert (status, b"--max-candidates" in content) == (413, True)
    assert post_matrix(connection)[0] == 200
    connection.close()


def test_half_closed_connection_is_answered(server: Server) -> None:
    for sent, expected in ((request(), [200]), (request()[:-5], [])):
        with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            out = b""
            while data := connection.recv(65536):
                out += data
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
    "a lone surrogate": b'{"query":"\\ud800","candidates":[{"features":[1,2,3,4]}]}',
    "not UTF-8": b'{"query":"\xff","candidates":[{"features":[1,2,3,4]}]}',
    "a very long id": b'{"candidates":[{"id":' + b"9" * 5000 + b',"features":[1,2,3,4]}]}',
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", ["/rank", "/batch"])
def test_hostile_json_is_refused_in_one_line(server: Server, name: str, path: str) -> None:
    content = BODIES[name] if path == "/rank" else b"[" + BODIES[name] + b"]"
    connection = server.connect()
    connection.request("POST", path, content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 422
    assert len(json.loads(response.read())["detail"]) < 300
    connection.close()


def test_large_top_and_explain_are_clipped(server: Server) -> None:
    connection = server.connect()
    for large in (2**31, 2**63, 2**64 - 1):
        sent = {"candidates": [{"features": [1, 2, 3, 4]}] * 2, "top": large, "explain": large}
        connection.request("POST", "/rank", json.dumps(sent), {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        assert (response.status, len(answer["explanations"])) == (200, 2)
    connection.close()


def open_files(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_idle_connections_are_closed_for_new_ones(server: Server) -> None:
    """Idle connections are closed first; a connection in use stays open."""
    used = server.connect()
    assert post_matrix(used)[0] == 200
    idle = [
        socket.create_connection(("127.0.0.1", server.port), 5) for _ in range(3 * MAX_CONNECTIONS)
    ]
    for connection in idle[::2]:
        with suppress(OSError):  # closed already
            connection.sendall(b"POST /rank HT")  # an incomplete head counts as idle
    fresh = server.connect()
    assert post_matrix(fresh)[0] == 200
    assert post_matrix(used)[0] == 200
    assert open_files(server) < MAX_CONNECTIONS + 15
    for connection in idle:
        connection.close()
    fresh.close()
    used.close()


def test_pipe_or_folder_as_model_file_is_refused_without_delay(model: Path) -> None:
    server = Server(model, "--poll", "0.05")
    before = rank_once(server)
    model.unlink()
    os.mkfifo(model)
    wait_for(lambda: "is not a file" in server.log.read_text(), "the refusal")
    model.unlink()
    model.mkdir()
    wait_for(lambda: server.log.read_text().count("is not a file") == 2, "the folder's refusal")
    assert rank_once(server) == before
    model.rmdir()
    other = write_model(model.with_name("other.json"), "stumps")
    model.symlink_to(other)
    wait_for(lambda: "RankBoost" in server.log.read_text(), "the new model")
    assert loaded(rank_once(server)[2]).tolist() != loaded(before[2]).tolist()
    assert server.stop() == 0
    assert server.process.stdout is not None
    server.process.stdout.close()
    assert "Traceback" not in server.log.read_text()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs signals")
def test_unread_answer_does_not_delay_shutdown(model: Path) -> None:
    server = Server(model, code="from firstpage.serving import process; process.GRACE = 1")
    rows, count = np.ones((200_000, len(NAMES)), np.float32), 200
    lengths = ",".join(["1000"] * count)
    content = npy(rows)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE)
        connection.connect(("127.0.0.1", server.port))
        path = f"/batch?answer=json&lengths={lengths}"
        connection.sendall(head(f"Content-Length: {len(content)}\r\n", path) + content)
        assert connection.recv(12).endswith(b"200")
        assert b"in_flight 2" in exchange(
            server, b"GET /metrics HTTP/1.0\r\n\r\n"
        )  # it still occupies its slot
        assert server.stop() == 0
    assert server.process.stdout is not None
    server.process.stdout.close()
    assert "Traceback" not in server.log.read_text()
