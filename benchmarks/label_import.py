"""Latency of answers while a lead imports documents into the same labeling server, on loopback.

    python benchmarks/label_import.py                        # SQLite, then PostgreSQL
    python benchmarks/label_import.py --documents 3000 --characters 20000

Two assessors answer every 50 ms, first without and then during one import.  Target: on a machine
without other jobs, no answer takes longer than 100 ms.

Held equal: server, database, assessors and their rate; the rows of a database differ in the import.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx

from common import seconds, show, versions
from label import database

SECONDS_ALONE, PAUSE = 5.0, 0.05  # before the import, and between two answers


class AnswerLog:
    """Start and duration of every answer, until `stop` is set."""

    def __init__(self, address: str) -> None:
        self.address, self.stop = address, threading.Event()
        self.durations: list[tuple[float, float]] = []  # start, seconds

    def answer_tasks(self, worker: object) -> None:
        """Answer the tasks of one assessor."""
        with worker.client(self.address) as client:  # type: ignore[attr-defined]
            for task in worker.tasks:  # type: ignore[attr-defined]
                state = client.get(f"/api/v1/tasks/{task}").json()
                while state["question"] is not None:
                    if self.stop.wait(PAUSE):
                        return
                    left, right = (state["question"][side]["key"] for side in ("left", "right"))
                    body = {"seq": state["seq"], "key": uuid4().hex, "left": left, "right": right,
                            "outcome": 1 if left < right else -1}  # fmt: skip
                    start = time.perf_counter()
                    reply = client.post(f"/api/v1/tasks/{task}/answers", json=body)
                    self.durations.append((start, time.perf_counter() - start))
                    state = reply.raise_for_status().json()


def measure(where: str, documents: int, characters: int) -> list[list[str]]:
    """Return a row of latencies without and during an import into the database `where`."""
    from tests.labeling.app.load import Server, prepare

    from firstpage.labeling.app import COOKIE
    from firstpage.labeling.app.store import Store, logins, people, projects

    workers = prepare(where, 2, queries=200, documents=14, k=5)
    store = Store(where)
    with store.write() as tx:
        lead = people.ensure(tx, "lead")
        projects.create(tx, "import", by=lead)
        token, login = logins.start(tx, lead)
    store.close()
    rows = (
        {"query": f"q{i // 100}", "document": f"d{i}", "text": "word " * (characters // 5)}
        for i in range(documents)
    )
    upload = "".join(json.dumps(row) + "\n" for row in rows).encode()
    server = Server(where)
    server.start()
    log = AnswerLog(server.address)
    threads = [threading.Thread(target=log.answer_tasks, args=(w,), daemon=True) for w in workers]
    try:
        for thread in threads:
            thread.start()
        time.sleep(SECONDS_ALONE)
        import_start = time.perf_counter()
        with httpx.Client(
            base_url=server.address,
            cookies={COOKIE: token},
            timeout=300,
            headers={"X-CSRF-Token": login.csrf},
        ) as client:
            files = {"documents": ("documents.jsonl", upload)}
            client.post("/api/v1/projects/import/import", files=files).raise_for_status()
        import_end = time.perf_counter()
    finally:
        log.stop.set()
        for thread in threads:
            thread.join(10)
        server.stop()
    duration = seconds(import_end - import_start)
    name = f"during an import of {len(upload) / 1e6:.0f} MB in {duration}"
    before = [t for start, t in log.durations if start < import_start]
    during = [t for start, t in log.durations if import_start <= start <= import_end]
    return [_row("before the import", before), _row(name, during)]


def _row(name: str, times: list[float]) -> list[str]:
    times = sorted(times)
    p50, p99 = (times[int(len(times) * quantile)] for quantile in (0.5, 0.99))
    return [name, str(len(times)), seconds(p50), seconds(p99), seconds(times[-1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--characters", type=int, default=2_000)
    options = parser.parse_args()
    rows = []
    for kind in ("sqlite", "postgres"):
        with database(kind) as where:
            if where is not None:
                measurements = measure(where, options.documents, options.characters)
                rows += [[kind, *row] for row in measurements]
    head = ["database", "period", "answers", "p50", "p99", "maximum"]
    show("Latency of answers", head, rows, versions("sqlalchemy", "uvicorn"))


if __name__ == "__main__":
    main()
