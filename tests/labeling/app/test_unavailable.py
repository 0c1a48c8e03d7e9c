"""A database that fails: people get a sentence, nothing acknowledged is lost, and it recovers."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import pytest
from sqlalchemy import event, text

from firstpage.labeling.app import server as serve
from firstpage.labeling.app.server import FailureReport
from firstpage.labeling.app.store import connect
from firstpage.labeling.app.store.failures import DAMAGED, FULL, Busy, StoreUnavailable
from tests.labeling.app.load import Server, Tally, Worker, prepare, verify_store
from tests.labeling.app.site import Client, Site, body, jsonl

FULL_DISK = "the disk of the server is full; tell the operator"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a file system of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("NOT TESTED: a disk that is really full (needs the right to mount one)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Fill the disk of a folder; return the file that does."""
    path = folder / "filling"
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while True:
            os.write(file, bytes(4096))
    os.close(file)
    return path


def test_a_full_disk_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    """Neither while the server runs nor if it is killed meanwhile."""
    location = str(small_disk / "project")
    (worker,) = prepare(location, 1, 1, documents=12, k=6, text="short")
    server, tally = Server(location, log=tmp_path / "log"), Tally()
    server.start()
    try:
        for killed in (False, True):
            assert answer(worker, server, tally) == 200
            filling = fill(small_disk)
            statuses = [answer(worker, server, tally) for _ in range(20)]
            assert 503 in statuses
            assert set(statuses) <= {200, 503}
            if killed:
                server.kill()
            filling.unlink()
            if killed:
                server.start()
            assert answer(worker, server, tally) == 200
    finally:
        server.stop()
    assert verify_store(location, tally)["problems"] == []
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert "firstpage.db: the disk of the server is full (" in log


def answer(worker: Worker, server: Server, tally: Tally) -> int:
    """Answer the open question of a worker; return the status."""
    with worker.client(server.address) as client:
        state = client.get(f"/api/v1/tasks/{worker.tasks[0]}").json()
        sent = body(state)
        reply = client.post(f"/api/v1/tasks/{state['task']}/answers", json=sent)
    if reply.status_code == 200:
        tally.acknowledged.append((state["task"], sent["seq"], sent["key"]))
    else:
        assert FULL_DISK in reply.json()["detail"]
        assert int(reply.headers["Retry-After"]) > 0
    return reply.status_code


class PageLimit:
    """A limit on the size of a site's SQLite database."""

    def __init__(self, site: Site) -> None:
        self.engine = site.store.engine
        with site.store.read() as tx:
            self.pages = tx.value(text("PRAGMA page_count"))

    def _limit(self, raw: Any, record: object) -> None:
        raw.execute(f"PRAGMA max_page_count={self.pages}").close()

    def __enter__(self) -> None:
        self.engine.dispose()
        event.listen(self.engine, "connect", self._limit)

    def __exit__(self, *_: object) -> None:
        event.remove(self.engine, "connect", self._limit)
        self.engine.dispose()


def answer_until_full(client: Client, state: dict[str, Any]) -> dict[str, Any]:
    """Answer with long comments until the database is full; return the unanswered state."""
    for _ in range(100):
        reply = client.answer(state, comment="long " * 700)
        if reply.status_code == 503:
            assert FULL_DISK in reply.json()["detail"]
            return state
        state = reply.json()
    raise AssertionError("the database is not full")


def test_a_full_database_gives_sentences_and_recovers(site: Site) -> None:
    site.project(documents=12)
    ada, stranger = site.client("ada"), site.client()
    failures: list[StoreUnavailable] = []
    site.store.report = failures.append
    with PageLimit(site):
        state = answer_until_full(ada, ada.state(site.task("books", "ada")))
        site.clock.pass_(hours=2)  # the session is extended when it is used
        assert ada.get("/p/books").status_code == 200
        page = ada.post(
            "/account/tokens", data={"csrf": ada.headers["X-CSRF-Token"], "name": "x" * 90}
        )
        assert page.status_code in (200, 400, 503)
        big = {"title": "t" * 200, "guidelines": "long " * 30_000}
        refused = site.client("lena").patch("/api/v1/projects/books", json=big)
        assert refused.status_code == 503
        assert stranger.get("/health").status_code == 200
    assert ada.answer(state).status_code == 200
    assert failures
    assert "disk is full" in failures[0].reason


@pytest.mark.parametrize("path", ["/p/books", "/", "/login"])
def test_a_page_without_a_database_is_a_sentence(
    site: Site, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    site.project()
    ada = site.client("ada")
    database = Path(str(site.store.url.database))
    site.store.close()
    for name in (database, *database.parent.glob("*-wal")):
        name.write_bytes(b"\xff" * 8192)
    page = ada.get(path)
    assert page.status_code == 503
    assert "is not a database; tell the operator" in page.text
    assert "</html>" in page.text


def test_an_upload_to_a_full_disk(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large upload is written to a temporary file while it is received."""

    class FullFile(SpooledTemporaryFile[bytes]):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    site.project()
    lena = site.client("lena")
    monkeypatch.setattr("starlette.formparsers.SpooledTemporaryFile", FullFile)
    rows = jsonl({"query": "q", "document": "d", "text": "x"})
    reply = lena.post("/api/v1/projects/books/import", files={"documents": ("d.jsonl", rows)})
    assert reply.status_code == 503, reply.text
    assert FULL_DISK in reply.json()["detail"]


def postgres_only(site: Site) -> None:
    if site.store.sqlite:
        pytest.skip("error classes of PostgreSQL")


@pytest.mark.parametrize(("state", "words"), [
    ("53100", "disk of the server is full"), ("53200", "too little memory"),
    ("57P01", "does not answer"), ("58030", "cannot be read or written"), ("XX001", "damaged"),
    ("40P01", "busy"), ("53300", "busy"),
])  # fmt: skip
def test_error_classes_of_postgresql(db_site: Site, state: str, words: str) -> None:
    postgres_only(db_site)
    fails = text(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $$")
    with pytest.raises(StoreUnavailable, match=words), db_site.store.write() as tx:
        tx.connection.execute(fails)
    with db_site.store.holding_connection(), db_site.store.read() as tx:
        assert tx.value(text("SELECT 1")) == 1


def test_a_database_that_became_read_only_recovers(db_site: Site) -> None:
    """As after a failover: open connections still lead to the former primary server."""
    postgres_only(db_site)
    db_site.project()
    ada = db_site.client("ada")
    state = ada.state(db_site.task("books", "ada"))
    read_only(db_site, "on")
    db_site.store.close()
    assert ada.answer(state).status_code == 503
    read_only(db_site, "off")
    assert ada.answer(state).status_code == 200


def test_a_database_that_went_away_comes_back(db_site: Site) -> None:
    """As during a restart: all connections end, and there is no other."""
    postgres_only(db_site)
    db_site.project()
    ada = db_site.client("ada")
    state = ada.state(db_site.task("books", "ada"))
    name = db_site.store.url.database
    administer(db_site, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    administer(
        db_site,
        f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'",
    )
    for _ in range(2):
        reply = ada.answer(state)
        assert reply.status_code == 503
        assert "does not answer" in reply.json()["detail"]
    administer(db_site, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    assert ada.answer(state).json()["judgments"] == 1


def read_only(site: Site, value: str) -> None:
    """Set whether new connections to a site's database can only read."""
    setting = "default_transaction_read_only"
    administer(site, f'ALTER DATABASE "{site.store.url.database}" SET {setting} = {value}')


def administer(site: Site, statement: str) -> None:
    """Execute a statement in another database of the server."""
    import psycopg

    url = site.store.url.set(drivername="postgresql", database="postgres")
    with psycopg.connect(url.render_as_string(), autocommit=True) as connection:
        connection.execute(statement)


def test_a_stopped_postgresql_is_a_sentence() -> None:
    store = connect.Store("postgresql://ada:secret@127.0.0.1:1/nothing")
    with pytest.raises(StoreUnavailable, match="does not answer; tell the operator"), store.read():
        pass


def test_failures_pass_between_processes() -> None:
    """The process that computes for leads returns its errors to the server."""
    for error in (Busy(), FULL.error("no space")):
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), copy.reason, copy.remedy) == (str(error), error.reason, error.remedy)


def test_the_operator_reads_of_a_failure_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = FailureReport("/srv/firstpage.db")
    for failure in (Busy(), FULL.error("no space"), FULL.error("no space")):
        report(failure)
    expected = "/srv/firstpage.db: the disk of the server is full (no space); free some space"
    assert capsys.readouterr().err.count(expected) == 1
    for failure in (FULL.error("another detail"), DAMAGED.error("page 3"), DAMAGED.error("page 4")):
        report(failure)
    printed = capsys.readouterr().err
    assert printed.count("the database is damaged (page 3)") == printed.count("\n") == 1
    monkeypatch.setattr(serve, "REPORT_INTERVAL", 0.0)
    report(FULL.error("no space"))
    assert expected in capsys.readouterr().err
