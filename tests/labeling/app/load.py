"""A real server in its own process, simulated assessors, and a check of the results.

The soak test and the benchmark share this.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import func, select

from firstpage.labeling.app.security import COOKIE
from firstpage.labeling.app.store import log, logins, people, projects, tasks, texts
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.tables import events
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from firstpage.labeling.session.session import Session
from tests.labeling.app.site import add_query
from tests.patience import PATIENCE

SOURCE = Path(__file__).parents[3] / "src"
NO_TLS = False  # `verify` of a client: it reads no certificates, which takes 50 ms


@dataclass(frozen=True)
class Worker:
    """A signed-in assessor: session cookie, CSRF token, tasks."""

    number: int
    cookie: str
    csrf: str
    tasks: tuple[int, ...]

    def client(self, address: str) -> httpx.Client:
        return httpx.Client(
            base_url=address,
            cookies={COOKIE: self.cookie},
            headers={"X-CSRF-Token": self.csrf},
            timeout=PATIENCE,
            verify=NO_TLS,
        )


def prepare(
    location: str,
    workers: int,
    queries: int,
    documents: int = 50,
    k: int = 10,
    strategy: str = "heap-closure",
    text: str = "A document. " * 40,
) -> list[Worker]:
    """Create a project in which every query is assigned to every assessor."""
    store = Store(location).prepare()
    with store.write() as tx:
        lead = people.ensure(tx, "lead")
        project = projects.create(tx, "load", setting={"k": k, "strategy": strategy}, by=lead)
        rows = []
        for number in range(queries):
            docs = tuple(
                DocumentRecord(f"d{i:03}", f"Title {i}", body=text) for i in range(documents)
            )
            rows.append(
                add_query(
                    tx, project.id, QueryRecord(f"q{number}", f"query {number}", "", docs), number
                )
            )
        clients = []
        for number in range(workers):
            person = people.create(tx, f"worker{number}")
            projects.join(tx, project, person, "assessor")
            own_tasks = tuple(
                tasks.add(tx, project, row, person.id, "pairs", number, at)
                for at, row in enumerate(rows)
            )
            token, login = logins.start(tx, person)
            clients.append(Worker(number, token, login.csrf, own_tasks))
        projects.set_state(tx, project, "open", lead)
    store.close()
    return clients


@dataclass
class Server:
    """`firstpage label serve` on a free port; it may be killed and started again."""

    location: str
    port: int = 0
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    log: Path | None = None  # the file to which the server's output is appended

    def __post_init__(self) -> None:
        if not self.port:
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                self.port = listener.getsockname()[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, patience: float = 60.0) -> None:
        """Start the server, and wait until it answers."""
        command = [
            sys.executable,
            "-m",
            "firstpage",
            "label",
            "serve",
            self.location,
            *self.options,
        ]
        path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
        with open(self.log or os.devnull, "ab") as output:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)],
                stdout=output,
                stderr=None if self.log is None else output,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
        self.starts += 1
        end = time.monotonic() + patience
        while time.monotonic() < end:
            assert self.process.poll() is None, "the server does not start"
            try:
                with socket.create_connection(("127.0.0.1", self.port)):
                    break
            except OSError:
                time.sleep(0.05)
        else:
            raise AssertionError("the server does not start")
        httpx.get(f"{self.address}/api/v1/me", timeout=patience, verify=NO_TLS)

    def kill(self) -> None:
        """Kill the server as a power failure would: without warning or cleanup."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=PATIENCE)


@dataclass
class Tally:
    """The acknowledged events as (task, seq, key)."""

    acknowledged: list[tuple[int, int, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def verify_store(location: str, tally: Tally) -> dict[str, Any]:
    """Check that every acknowledged event is stored once, and that logs have no gaps and replay."""
    store = Store(location)
    problems = list(tally.wrong)
    with store.read() as tx:
        rows = tx.all(select(events.c.task, events.c.seq, events.c.key))
        stored = {(r["task"], r["key"]): r["seq"] for r in rows}
        if len(stored) < len(rows):
            problems.append("a key is in the log twice")
        for task, seq, key in tally.acknowledged:
            if stored.get((task, key)) != seq:
                problems.append(
                    f"task {task}: {key} was acknowledged as {seq}, kept as "
                    f"{stored.get((task, key))}"
                )
        if len(set(tally.acknowledged)) < len(tally.acknowledged):
            problems.append("an answer was acknowledged twice as different ones")
        replayed = 0
        for row in tx.all(
            select(
                events.c.task, func.count().label("n"), func.max(events.c.seq).label("last")
            ).group_by(events.c.task)
        ):
            if row["last"] + 1 != row["n"]:
                problems.append(f"task {row['task']}: the log has gaps")
            stored_task = tasks.get(tx, row["task"])
            assert stored_task is not None
            keys = [d["key"] for d in texts.documents_of(tx, stored_task.query)]
            session = Session(keys, stored_task.setting, log.since(tx, stored_task.id))
            done = stored_task.state == "done"
            if len(session.judgments) != stored_task.judgments or session.done != done:
                problems.append(f"task {stored_task.id}: the log says otherwise than the task")
            replayed += 1
    store.close()
    return {
        "acknowledged": len(tally.acknowledged),
        "kept": len(rows),
        "tasks": replayed,
        "problems": problems,
    }
