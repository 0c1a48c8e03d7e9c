"""The event log: what is stored, that nothing acknowledged is lost, and removal."""

from __future__ import annotations

import errno
import gzip
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.serving import event_log, feedback
from firstpage.serving.app import Serving
from firstpage.serving.event_log import EventLog, erase, prune, rows_of, segments
from firstpage.serving.event_rows import OPTIONAL, check_fields, identified, read_events
from firstpage.serving.limits import Limits, Refusal
from firstpage.serving.watched_model import WatchedModel
from tests.cli.conftest import run as run  # a fixture
from tests.logs import captured_log
from tests.patience import PATIENCE
from tests.serving.conftest import TestClient
from tests.serving.test_process import SOURCE, Server

NOW = datetime.now(UTC).isoformat()
SCHEMAS = Path(os.environ.get("FIRSTPAGE_DATA", "/nowhere")) / "clicks/ubi/schema-1.3.0"
KILLS = int(os.environ.get("FIRSTPAGE_KILLS", "4"))
pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks and signals are POSIX's")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "events"


def click(name: str = "e1", rank: int = 1, **changed: Any) -> dict[str, Any]:
    position = {"object": {"object_id": f"d{rank}"}, "position": {"ordinal": rank}}
    row = {"action_name": "click", "query_id": "q1", "client_id": "ann", "timestamp": NOW}
    return {**row, "event_attributes": position, "event_id": name, **changed}


def query(name: str = "q1", **changed: Any) -> dict[str, Any]:
    row = {"query_id": name, "user_query": "red shoes", "query_response_hit_ids": ["d1", "d2"]}
    return {**row, "client_id": "ann", "timestamp": NOW, **changed}


def stored_rows(folder: Path) -> list[dict[str, Any]]:
    """Return all rows, as a reader of the files sees them."""
    paths = [*segments(folder), folder / "events.jsonl"]
    return [dict(row) for path in paths if path.exists() for row in rows_of(path)]


def served(model: Path, log: EventLog, limits: Limits | None = None) -> TestClient:
    watched = WatchedModel(model)
    watched.reload()
    return TestClient(Serving(watched, limits, poll=None, events=log))


@pytest.fixture
def client(model: Path, folder: Path) -> Iterator[TestClient]:
    with served(model, EventLog(folder)) as client:
        yield client


def test_events_are_stored_once(client: TestClient, folder: Path) -> None:
    answer = client.post("/events", json=[query(), click(), click("e2", 2)])
    assert (answer.status_code, answer.json()) == (200, {"stored": 3, "known": 0})
    again = client.post("/events", json=[click("e3", 2), click(), query(), click("e3", 2)])
    assert again.json() == {"stored": 1, "known": 3}
    assert client.post("/events", json=click("e4")).json() == {"stored": 1, "known": 0}
    assert client.post("/events", json=[]).json() == {"stored": 0, "known": 0}
    assert len(stored_rows(folder)) == 5
    text = client.get("/metrics").text
    assert "firstpage_events_stored_total 5.0" in text
    assert "firstpage_events_known_total 3.0" in text
    assert "firstpage_events_dropped_total 0.0" in text


def test_the_log_is_read_as_sessions(client: TestClient, folder: Path) -> None:
    client.post("/events", json=[query(), click("e2", 2)])
    sessions = fp.read_sessions(folder / "events.jsonl")
    assert sessions.queries == ("red shoes",)
    assert sessions.rank.tolist() == [1, 2]
    assert sessions.clicks.tolist() == [0, 1]


def test_rows_are_of_ubi() -> None:
    schemas = pytest.importorskip("jsonschema_rs")
    if not SCHEMAS.is_dir():
        pytest.skip("needs the schemas of UBI in FIRSTPAGE_DATA")
    # As published, `oneOf` refuses the action "click", which is in a list and also any string.
    first = r'"oneOf"(: \[\s+{\s+"type": "string")'
    is_event, is_query = (
        schemas.Draft202012Validator(
            json.loads(re.sub(first, r'"anyOf"\1', (SCHEMAS / name).read_text())),
            validate_formats=True,
        )
        for name in ("event.schema.json", "query.request.schema.json")
    )
    events = [
        click(),
        click(message="text"),
        click(application="shop", user_id="u", session_id="s"),
    ]
    events += [click(event_attributes={"position": {"xy": {"x": 1.5, "y": 2}}, "color": "red"})]
    queries = [query(), query(query_attributes={"page": 2}, application="shop")]
    fields = check_fields([*OPTIONAL, "event_attributes.color", "query_attributes.page"])
    for sent in (fields, frozenset[str]()):
        for rows, schema in ((events, is_event), (queries, is_query)):
            for row in read_events(json.dumps(rows).encode(), sent, 10, None):
                schema.validate(row)
    with pytest.raises(ValueError, match="position"):  # the validator can refuse
        is_event.validate(click(event_attributes={}))


def test_only_what_is_named_is_stored() -> None:
    attributes = {"color": "red", "size": 4, "position": {"ordinal": 1, "y": 3}}
    row = click(user_id="u7", message="hello", event_attributes=attributes)
    (kept,) = read_events(json.dumps(row).encode(), frozenset(["event_attributes.size"]), 10, None)
    assert set(kept) == {"action_name", "query_id", "timestamp", "event_id", "event_attributes"}
    assert kept["event_attributes"] == {"size": 4, "position": {"ordinal": 1}}
    with pytest.raises(
        DataError, match="'usr' is not a field of the event log; the fields are app"
    ):
        check_fields(["usr"])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (3, "event 1 must be an object; got 3."),
        ({}, "event 1: object missing required field"),
        (click(action_name=7), "event 1: 'action_name': expected `str`, got `int`."),
        (
            click(timestamp="2026-01-01T00:00:00"),
            "'timestamp': expected `datetime` with a timezone",
        ),
        (click(timestamp="2999-01-01T00:00:00Z"), "'timestamp' is more than a day ahead"),
        (click(queryid="q"), "event 1 has an unknown field 'queryid'; the fields are"),
        (click(query_id="q" * 101), "'query_id': expected `str` of length <= 100"),
        (
            click(event_attributes={"object": {"object_id": "d"}}),
            "missing required field `position`",
        ),
        (click(event_attributes={"position": {}}), "must have either 'ordinal' or 'xy'"),
        (query(query_attributes={"a": "x" * 70_000}), "and the limit is 65,536."),
    ],
)
def test_what_is_not_of_ubi_is_refused(
    client: TestClient, folder: Path, row: Any, problem: str
) -> None:
    if "limit is 65" in problem:
        with pytest.raises(Refusal, match="limit is 65,536"):
            identified(dict(row), "event 1")
        return
    answer = client.post("/events", json=[row])
    assert answer.status_code == 422
    assert problem in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]
    assert not stored_rows(folder)


def test_requests_beyond_the_limits_are_refused(model: Path, folder: Path) -> None:
    with served(model, EventLog(folder), Limits(queries=2, bytes=2000)) as client:
        assert client.post("/events", json=[click()] * 3).status_code == 413
        assert client.post("/events", content=b"x" * 3000).status_code == 413
        assert client.post("/events", content=b"{").status_code == 422
        repeated = client.post("/events", content=b'{"message": "a", "message": "b"}')
        assert repeated.status_code == 422
        assert "ambiguous" in repeated.json()["detail"]
        assert client.post("/events?a=1", json=click()).status_code == 422
        text = {"content-type": "text/plain"}
        assert client.post("/events", content=b"{}", headers=text).status_code == 415
        assert not stored_rows(folder)
        assert "/events" in client.get("/openapi.json").json()["paths"]


def test_a_network_that_sends_too_much_is_refused(model: Path, folder: Path) -> None:
    with served(model, EventLog(folder), Limits(events=3)) as client:
        answers = [client.post("/events", json=[click(f"a{n}"), click(f"b{n}")]) for n in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
        assert "too much traffic at once; try again in" in answers[-1].json()["detail"]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        text = client.get("/metrics").text
        assert 'firstpage_requests_total{route="/events",status="429"} 2.0' in text
    assert len(stored_rows(folder)) == 4


def test_what_was_not_sent_may_be_sent_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    limit = feedback.RateLimit(60, 600)
    limit.check("a", 80)  # once more than the limit, after which the network waits
    with pytest.raises(Refusal) as refused:
        limit.check("a")
    assert refused.value.headers == {"retry-after": "21"}
    limit.check("b")
    now[0] += 20.5
    with pytest.raises(Refusal):
        limit.check("a")
    now[0] += 0.6
    limit.check("a")
    now[0] += 10_000  # no more than the limit is saved
    limit.check("a", 60)
    with pytest.raises(Refusal):
        limit.check("a")
    monkeypatch.setattr(feedback, "MAX_NETWORKS", 3)
    now[0] += 61
    for name in "cdefg":
        limit.check(name)
    assert len(limit._available) < 8


def test_there_is_no_route_without_a_log(model: Path) -> None:
    watched = WatchedModel(model)
    watched.reload()
    with TestClient(Serving(watched, poll=None)) as client:
        assert client.post("/events", json=click()).status_code == 404


def test_many_requests_share_a_wait_for_the_disk(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, started, go, sync = EventLog(folder), threading.Event(), threading.Event(), os.fsync

    def slow(descriptor: int) -> None:
        started.set()
        assert go.wait(PATIENCE)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    first = log.submit([click("first")])
    assert started.wait(PATIENCE)
    others = [log.submit([click(f"e{n % 40}")]) for n in range(50)]
    assert not any(each.done() for each in (first, *others))  # nothing is acknowledged yet
    go.set()
    assert first.result(PATIENCE) == 1
    assert sum(each.result(PATIENCE) for each in others) == 40
    log.close()
    assert (log.commits, log.stored, log.known) == (2, 41, 10)
    assert len(stored_rows(folder)) == 41


def test_rows_that_nobody_waits_for_share_a_commit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "DELAY", PATIENCE)
    log = EventLog(folder)
    waiting = [log.submit([query(f"q{n}", event_id=f"q{n}")], urgent=False) for n in range(5)]
    assert not any(each.done() for each in waiting)
    assert log.submit([click()]).result(PATIENCE) == 1
    assert [each.result(0) for each in waiting] == [1] * 5
    assert (log.commits, log.stored) == (1, 6)
    log.close()
    monkeypatch.setattr(event_log, "DELAY", 0.01)
    log = EventLog(folder)
    assert log.submit([query(event_id="later")], urgent=False).result(PATIENCE) == 1
    log.submit([query(event_id="last")], urgent=False)
    log.close()
    assert [row["event_id"] for row in stored_rows(folder)][-2:] == ["later", "last"]


def test_what_waits_for_the_disk_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_PENDING", 2)
    log = EventLog(folder)
    with pytest.raises(Refusal, match="too many events wait for the disk"):
        log.submit([click("a"), click("b"), click("c")])
    log.close()
    assert log.dropped == 3


def test_a_full_disk_refuses_events(
    model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with served(model, EventLog(folder)) as client:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            answer = client.post("/events", json=click())
            assert answer.status_code == 507
            assert "the events cannot be stored (No space left" in answer.json()["detail"]
        assert not stored_rows(folder)
        assert client.post("/events", json=click()).json()["stored"] == 1
    log = EventLog(folder, log_bytes=10)
    with pytest.raises(Refusal, match="the event log is full"):
        log.submit([click("new")]).result(PATIENCE)
    log.close()


def test_a_full_disk_stops_neither_the_server_nor_removal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    log = EventLog(folder, segment_bytes=400)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with captured_log("firstpage.serving") as text, monkeypatch.context() as patch:
        patch.setattr(gzip.GzipFile, "write", full)
        for number in range(6):
            log.submit([click(f"e{number}", timestamp=old)]).result(PATIENCE)
        log.close()
        assert "a segment cannot be compressed (No space left on device)" in text.getvalue()
        assert not list(folder.glob("*.part"))
        assert {path.suffix for path in segments(folder)} == {".jsonl"}
        log = EventLog(folder)  # starts, and knows what is in segments that are not compressed
        again = [click("e0", timestamp=old), click("e6", timestamp=old), click("new")]
        assert log.submit(again).result(PATIENCE) == 2
        log.close()
        with pytest.raises(DataError, match=r"rows cannot be removed \(No space left on device"):
            prune(folder, 30)  # the last segment has a new row, so that it is written again
    prune(folder, 30)
    assert [row["event_id"] for row in stored_rows(folder)] == ["new"]
    assert not [path for path in segments(folder) if path.suffix == ".jsonl"]


def test_a_full_disk_is_logged_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = EventLog(folder)
    with captured_log("firstpage.serving") as text:
        for time_of_day in ("morning", "evening"):
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", full)
                for number in range(5):
                    with pytest.raises(Refusal, match="the events cannot be stored"):
                        log.submit([click(f"{time_of_day} {number}")]).result(PATIENCE)
            assert log.submit([click(time_of_day)]).result(PATIENCE) == 1
        assert text.getvalue().count("cannot be written") == 2
    log.close()


def test_segments_are_compressed_and_their_ids_known(folder: Path) -> None:
    log = EventLog(folder, segment_bytes=1000)
    for number in range(60):
        log.submit([click(f"e{number}")]).result(PATIENCE)
    log.close()
    names = [path.name for path in segments(folder)]
    assert len(names) > 3
    assert all(name.endswith(".jsonl.gz") for name in names)
    assert [row["event_id"] for row in stored_rows(folder)] == [f"e{n}" for n in range(60)]
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    log = EventLog(folder)
    assert log.submit([click("e0"), click("e59"), click("new")]).result(PATIENCE) == 1
    log.close()


def test_an_interrupted_compression_is_completed(folder: Path) -> None:
    EventLog(folder).close()
    (folder / "events-00000001.jsonl").write_text(json.dumps(click("a")) + "\n")
    (folder / "events-00000001.jsonl.gz.part").write_bytes(b"\x1f\x8b half")
    (folder / "events-00000002.jsonl").write_text(json.dumps(click("b")) + "\n")
    with gzip.open(folder / "events-00000002.jsonl.gz", "wt") as file:
        file.write(json.dumps(click("b")) + "\n")
    log = EventLog(folder)
    assert log.submit([click("a"), click("b")]).result(PATIENCE) == 0
    log.close()
    assert [row["event_id"] for row in stored_rows(folder)] == ["a", "b"]
    assert len(list(folder.iterdir())) == 3


def test_a_damaged_segment_is_refused(folder: Path) -> None:
    folder.mkdir()
    (folder / "events-00000001.jsonl.gz").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"00000001\.jsonl\.gz: is not a segment of the event log"):
        EventLog(folder)
    (folder / "events-00000001.jsonl.gz").unlink()
    first = EventLog(folder)
    with pytest.raises(DataError, match="another server writes its events here"):
        EventLog(folder)
    first.close()


KILLED = """
import os, random, signal, sys, threading
from pathlib import Path
from firstpage.serving.event_log import EventLog

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
for life in range(kills):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        log = EventLog(folder, segment_bytes=5_000)
        def person(number):
            for n in range(1_000_000):
                name = f"{life}-{number}-{n}"
                row = {"event_id": name, "action_name": "click", "text": "x" * random.randrange(500)}
                log.submit([row]).result()
                os.write(writer, f"{name}\\n".encode())
                log.submit([row]).result()
        for number in range(4):
            threading.Thread(target=person, args=(number,), daemon=True).start()
        threading.Event().wait()
    os.close(writer)
    text = b""
    wanted = random.randrange(1, 300)
    while len(text) < wanted:
        text += os.read(reader, 4096)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reader, 4096):
        text += more
    os.close(reader)
    sys.stdout.write(text.decode())
"""


def test_a_killed_writer_loses_nothing_and_stores_nothing_twice(folder: Path) -> None:
    """A process is killed 200 times while four threads write, rotation and compression included."""
    command = [sys.executable, "-c", KILLED, str(folder), "200"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    acknowledged = done.stdout.split()
    assert len({name.split("-")[0] for name in acknowledged}) == 200
    EventLog(folder).close()
    stored = Counter(row["event_id"] for row in stored_rows(folder))
    assert set(acknowledged) <= set(stored)
    assert set(stored.values()) == {1}
    assert len(segments(folder)) > 3


def test_a_killed_server_loses_nothing_and_stores_nothing_twice(model: Path, folder: Path) -> None:
    """Clients send every event again until it is acknowledged, as they should."""
    acknowledged: set[str] = set()
    draw = random.Random(3)
    for life in range(KILLS):
        server = Server(model, "--events", str(folder))
        wanted = len(acknowledged) + draw.randrange(1, 60)

        def person(number: int, server: Server, life: int, wanted: int) -> None:
            connection = server.connect()
            try:
                for n in range(100_000):
                    body = json.dumps(
                        [click(f"{life}-{number}-{n}"), click(f"{life}-{number}-{n}+")]
                    )
                    connection.request(
                        "POST", "/events", body, {"content-type": "application/json"}
                    )
                    response = connection.getresponse()
                    response.read()
                    if response.status == 200:
                        acknowledged.update([f"{life}-{number}-{n}", f"{life}-{number}-{n}+"])
                    if len(acknowledged) >= wanted:
                        server.process.send_signal(signal.SIGKILL)
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()

        people = [threading.Thread(target=person, args=(i, server, life, wanted)) for i in range(4)]
        for each in people:
            each.start()
        for each in people:
            each.join()
        server.process.wait()
        assert server.process.stdout is not None
        server.process.stdout.close()
    log = EventLog(folder)
    assert log.submit([click(name) for name in acknowledged]).result(PATIENCE) == 0
    log.close()
    stored = Counter(row["event_id"] for row in stored_rows(folder))
    assert acknowledged <= set(stored)
    assert set(stored.values()) == {1}


def test_after_a_loss_of_power_the_log_has_what_was_acknowledged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that keeps exactly what was synced, and half of a line, has every acknowledged row."""
    synced, sync = [0], os.fsync

    def record(descriptor: int) -> None:
        sync(descriptor)
        synced.append(os.fstat(descriptor).st_size)

    log = EventLog(folder)
    monkeypatch.setattr(os, "fsync", record)
    for number in range(5):
        log.submit([click(f"e{number}")]).result(PATIENCE)
        kept = (folder / "events.jsonl").read_bytes()[: synced[-1]] + b'{"event_id": "e9", "ac'
        after = folder.parent / f"after{number}"
        after.mkdir()
        (after / "events.jsonl").write_bytes(kept)
        EventLog(after).close()
        names = [row["event_id"] for row in stored_rows(after)]
        assert names == [f"e{n}" for n in range(number + 1)]
    log.close()


def removable(folder: Path) -> EventLog:
    log = EventLog(folder, segment_bytes=1500)
    old = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    for number in range(10):
        person, name = ("ann", "bob")[number % 2], f"q{number}"
        time = old if number < 4 else NOW
        log.submit(
            [
                identified(query(name, client_id=person, timestamp=time)),
                click(f"e{number}", query_id=name, client_id=person, timestamp=time),
                click(f"f{number}", query_id=name, client_id="", timestamp=time),
            ]
        ).result(PATIENCE)
    return log


@pytest.mark.parametrize("served_meanwhile", [False, True])
def test_old_rows_and_rows_of_a_person_are_removed(folder: Path, served_meanwhile: bool) -> None:
    log = removable(folder)
    if not served_meanwhile:
        log.close()
    assert prune(folder, 30) == 12
    assert prune(folder, 30) == 0
    assert {row["query_id"] for row in stored_rows(folder)} == {f"q{n}" for n in range(4, 10)}
    assert erase(folder, ["ann"]) == 9
    assert {row["query_id"] for row in stored_rows(folder)} == {"q5", "q7", "q9"}
    assert len(stored_rows(folder)) == 9
    if served_meanwhile:
        assert log.submit([click("later", query_id="q20")]).result(PATIENCE) == 1
        log.close()
    EventLog(folder).close()
    assert erase(folder, ["bob"]) == 9
    assert len(stored_rows(folder)) == served_meanwhile


def test_rows_of_a_fast_clock_are_counted_or_removed(folder: Path, run: Any) -> None:
    """A server whose clock was wrong dates rows years ahead: nobody knows their age."""
    log, ahead = EventLog(folder), (datetime.now(UTC) + timedelta(days=900)).isoformat()
    rows = [click("now"), click("a", timestamp=ahead), click("b", timestamp=ahead)]
    assert log.submit(rows).result(PATIENCE) == 3
    log.close()
    done = run("experiment", "prune", folder, "--days", 30)
    assert done.returncode == 0
    assert "2 rows have times more than a day ahead" in done.stderr
    assert len(stored_rows(folder)) == 3
    done = run("experiment", "prune", folder, "--days", 30, "--ahead")
    assert done.stdout.startswith("removed 2 rows")
    assert done.stderr == ""
    assert [row["event_id"] for row in stored_rows(folder)] == ["now"]


def test_removal_names_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="has no event log"):
        prune(tmp_path, 30)
    release = feedback.occupy(tmp_path, "events")
    (tmp_path / "events.jsonl").touch()
    monkeypatch.setattr(event_log, "PATIENCE", 0.1)
    with pytest.raises(DataError, match="the server that writes it does not answer"):
        prune(tmp_path, 30)
    release()
