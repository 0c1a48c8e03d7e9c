"""Clients that send a whole body before they read receive the answer that refuses it."""

from __future__ import annotations

import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from firstpage.core.http import connections
from firstpage.core.http.connections import ConnectionLimits
from tests.core.http.test_slow_clients import KINDS, ServerKind, running, wait_for
from tests.logs import captured_log

BODY = bytes(20 << 20)  # beyond the limits of both servers, and beyond the buffers of sockets
SECONDS = 30.0
CONNECTION = ("close", "keep-alive")


@pytest.fixture(params=KINDS, scope="module")
def kind(request: pytest.FixtureRequest) -> ServerKind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def port(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    app = kind.make(tmp_path_factory.mktemp("server"), SECONDS)
    with running(app, ConnectionLimits()) as (_, port):
        yield port


def pieces() -> Iterator[bytes]:
    for first in range(0, len(BODY), 1 << 16):
        yield BODY[first : first + (1 << 16)]


@pytest.mark.parametrize("chunked", [False, True])
def test_urllib_reads_413(kind: ServerKind, port: int, chunked: bool) -> None:
    headers = {"Content-Type": "application/json"}
    data = pieces() if chunked else BODY
    request = urllib.request.Request(f"http://127.0.0.1:{port}{kind.reads}", data, headers)
    with pytest.raises(urllib.error.HTTPError, match="413") as error:
        urllib.request.urlopen(request, timeout=SECONDS)
    assert b"detail" in error.value.read()
    error.value.close()


@pytest.mark.parametrize("connection", CONNECTION)
def test_http_client_reads_413(kind: ServerKind, port: int, connection: str) -> None:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    for _ in range(2):  # on the same connection, if it is kept
        headers = {"Content-Type": "application/json", "Connection": connection}
        client.request("POST", kind.reads, BODY, headers)
        response = client.getresponse()
        assert (response.status, b"detail" in response.read()) == (413, True)
    client.close()


def test_a_body_to_a_wrong_address_is_answered(kind: ServerKind, port: int) -> None:
    path, status = kind.refuses
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", BODY)
    with pytest.raises(urllib.error.HTTPError, match=str(status)) as error:
        urllib.request.urlopen(request, timeout=SECONDS)
    error.value.close()


def head(path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_what_is_read_after_the_answer_is_bounded(
    kind: ServerKind, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer ends at once, and a client that goes on sending is disconnected."""
    monkeypatch.setattr(connections, "MAX_DISCARDED", 1 << 20)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
        client.sendall(head(kind.reads, 1 << 40))
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 413")
        sent = 0
        with suppress(BrokenPipeError, ConnectionResetError):
            while sent < 1 << 30:
                sent += client.send(BODY)
        assert sent < 1 << 30


def test_a_client_that_sends_nothing_after_the_answer_is_disconnected(
    kind: ServerKind, tmp_path: Path
) -> None:
    app = kind.make(tmp_path, SECONDS)
    with (
        running(app, ConnectionLimits(head=1.0)) as (server, port),
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client,
    ):
        client.sendall(head(kind.reads, 1 << 40))
        answer = b""
        while received := client.recv(1 << 16):
            answer += received
        assert answer.startswith(b"HTTP/1.1 413")
        wait_for(lambda: not server.server_state.connections)


def test_the_server_stops_without_waiting_for_bodies_that_were_answered(
    kind: ServerKind, tmp_path: Path
) -> None:
    with captured_log("uvicorn.error") as log:
        with (
            running(kind.make(tmp_path, SECONDS), ConnectionLimits()) as (server, port),
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client,
        ):
            client.sendall(head(kind.reads, 1 << 40))
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 413")
            server.should_exit = True
            with suppress(ConnectionResetError):
                while client.recv(1 << 16):
                    pass
            wait_for(lambda: not server.server_state.connections)
        assert "graceful shutdown exceeded" not in log.getvalue()
