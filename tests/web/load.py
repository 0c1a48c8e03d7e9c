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

from firstpage.labeling.session.session import Session
from firstpage.web.security import COOKIE
from firstpage.web.store import log, logins, people, projects, tasks, texts
from firstpage.web.store.connect import Store
from firstpage.web.store.tables import events
from firstpage.web.store.texts import DocumentRecord, QueryRecord
from tests.patience import PATIENCE
from tests.web.site import add_query

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Worker:
    """Somebody who is logged in: cookie, token for changes, tasks."""

    number: int
    cookie: str
    csrf: str
    tasks: tuple[int, ...]

    def client(self, address: str) -> httpx.Client:
        return httpx.Client(
            base_url=address, cookies={COOKIE: self.cookie},
            headers={"X-CSRF-Token": self.csrf}, timeout=PATIENCE,
        )  # fmt: skip


def prepare(
    where: str, workers: int, queries: int, documents: int = 50, k: int = 10,
    strategy: str = "heap-closure", text: str = "A document. " * 40,
) -> list[Worker]:  # fmt: skip
    """A project in which everyone has every query."""
    store = Store(where).prepare()
    with store.write() as tx:
        lead = people.ensure(tx, "lead")
        made = projects.create(tx, "load", setting={"k": k, "strategy": strategy}, by=lead)
        rows = []
        for number in range(queries):
            docs = tuple(
                DocumentRecord(f"d{i:03}", f"Title {i}", body=text) for i in range(documents)
            )
            rows.append(
                add_query(
                    tx, made.id, QueryRecord(f"q{number}", f"query {number}", "", docs), number
                )
            )
        found = []
        for number in range(workers):
            person = people.create(tx, f"worker{number}")
            projects.join(tx, made, person, "assessor")
            mine = tuple(
                tasks.add(tx, made, row, person.id, "pairs", number, at)
                for at, row in enumerate(rows)
            )
            token, login = logins.start(tx, person)
            found.append(Worker(number, token, login.csrf, mine))
        projects.set_state(tx, made, "open", lead)
    store.close()
    return found


@dataclass
class Server:
    """`firstpage label serve` on a port of its own; may be killed and started again."""

    where: str
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def __post_init__(self) -> None:
        if not self.port:
            with socket.socket() as found:
                found.bind(("127.0.0.1", 0))
                self.port = found.getsockname()[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, patience: float = 60.0) -> None:
        """Up, and answering."""
        command = [sys.executable, "-m", "firstpage", "label", "serve", self.where]
        path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)], stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
        )  # fmt: skip
        self.starts += 1
        end = time.monotonic() + patience
        while time.monotonic() < end:
            assert self.process.poll() is None, "the server does not start"
            try:
                httpx.get(f"{self.address}/api/v1/me", timeout=5)
                return
            except httpx.TransportError:
                time.sleep(0.02)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        """As the power goes: no warning, no tidying up."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=PATIENCE)


@dataclass
class Tally:
    """What the server acknowledged: (task, seq, key)."""

    acknowledged: list[tuple[int, int, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def reckon(where: str, tally: Tally) -> dict[str, Any]:
    """Every acknowledged event is there once, logs have no gaps, and they replay."""
    store = Store(where)
    problems = list(tally.wrong)
    with store.read() as tx:
        rows = tx.all(select(events.c.task, events.c.seq, events.c.key))
        kept = {(r["task"], r["key"]): r["seq"] for r in rows}
        if len(kept) < len(rows):
            problems.append("a key is in the log twice")
        for task, seq, key in tally.acknowledged:
            if kept.get((task, key)) != seq:
                problems.append(f"task {task}: {key} was acknowledged as {seq}, kept as "
                                f"{kept.get((task, key))}")  # fmt: skip
        if len(set(tally.acknowledged)) < len(tally.acknowledged):
            problems.append("an answer was acknowledged twice as different ones")
        replayed = 0
        for row in tx.all(
            select(events.c.task, func.count().label("n"), func.max(events.c.seq).label("last"))
            .group_by(events.c.task)
        ):  # fmt: skip
            if row["last"] + 1 != row["n"]:
                problems.append(f"task {row['task']}: the log has gaps")
            task = tasks.get(tx, row["task"])
            assert task is not None
            keys = [d["key"] for d in texts.documents_of(tx, task.query)]
            session = Session(keys, task.setting, log.since(tx, task.id))
            if len(session.judgments) != task.asked or session.done != (task.state == "done"):
                problems.append(f"task {task.id}: the log says otherwise than the task")
            replayed += 1
    store.close()
    return {
        "acknowledged": len(tally.acknowledged), "kept": len(rows), "tasks": replayed,
        "problems": problems,
    }  # fmt: skip
