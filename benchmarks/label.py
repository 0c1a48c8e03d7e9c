"""The labeling server under load: simulated assessors over real HTTP, on loopback.

    python benchmarks/label.py                     # 50 assessors, a minute, both databases
    python benchmarks/label.py --assessors 200 --minutes 5

Each assessor answers every two seconds (50 documents, k = 10).  The clients are a process of their
own, so that they do not slow the server down but by the machine they share.  In the end every
acknowledged answer must be in the log exactly once, and every log must replay.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import seconds, show, versions

PAUSE = 2.0  # seconds from one answer to the next


class Connection:
    """One kept-alive HTTP connection; as little work as possible."""

    def __init__(self, host: str, port: int, cookie: str, csrf: str) -> None:
        self.host, self.port = host, port
        self.head = (
            f"Host: {host}:{port}\r\nCookie: firstpage_login={cookie}\r\n"
            f"X-CSRF-Token: {csrf}\r\nContent-Type: application/json\r\n"
        )

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self.head}Content-Length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        reply = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in reply[1:] if ": " in line)
        content = await self.reader.readexactly(int(fields["content-length"]))
        return int(reply[0].split()[1]), json.loads(content)


class Load:
    """All assessors of one run, and what they saw."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.answers: list[float] = []
        self.opens: list[float] = []
        self.acknowledged: list[tuple[int, int, str]] = []
        self.errors: list[str] = []

    async def run(self) -> None:
        end = time.perf_counter() + self.given["seconds"]
        await asyncio.gather(*(self.assessor(worker, end) for worker in self.given["workers"]))

    async def assessor(self, worker: dict[str, Any], end: float) -> None:
        rng = random.Random(worker["number"])
        line = Connection("127.0.0.1", self.given["port"], worker["cookie"], worker["csrf"])
        await line.open()
        due = time.perf_counter() + rng.uniform(0, PAUSE)
        for task in worker["tasks"]:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            state = await self.timed(line, self.opens, "GET", f"/api/v1/tasks/{task}")
            while state is not None and state["question"] is not None:
                due = max(due + PAUSE, time.perf_counter())
                if due > end:
                    return
                await asyncio.sleep(due - time.perf_counter())
                state = await self.answer(line, state)

    async def answer(self, line: Connection, state: dict[str, Any]) -> dict[str, Any] | None:
        question, key = state["question"], uuid4().hex
        left, right = question["left"]["key"], question["right"]["key"]
        body = {
            "seq": state["seq"], "key": key, "left": left, "right": right,
            "outcome": 1 if left < right else -1,
            "spans": [{"kind": "active", "ms": 1900}],
        }  # fmt: skip
        path = f"/api/v1/tasks/{state['task']}/answers"
        after = await self.timed(line, self.answers, "POST", path, body)
        if after is not None:
            self.acknowledged.append((state["task"], state["seq"], key))
        return after

    async def timed(self, line: Connection, times: list[float], *call: Any) -> Any:
        start = time.perf_counter()
        try:
            status, found = await line.call(*call)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.errors.append(f"{call[0]} {call[1]}: {error!r}")
            return None
        times.append(time.perf_counter() - start)
        if status != 200:
            self.errors.append(f"{call[0]} {call[1]}: {status} {found}")
            return None
        return found


def client() -> None:
    """The clients' process: what to do comes in, what was seen goes out."""
    load = Load(json.load(sys.stdin))
    asyncio.run(load.run())
    json.dump(
        {
            "answers": load.answers, "opens": load.opens, "errors": load.errors,
            "acknowledged": load.acknowledged,
        },
        sys.stdout,
    )  # fmt: skip


def measured(where: str, assessors: int, minutes: float, strategy: str) -> dict[str, Any]:
    """One run on one database."""
    from tests.web.load import Server, Tally, prepare, verify_store

    many = int(minutes * 60 / PAUSE / 60) + 3  # a query takes 60 answers at least
    workers = prepare(where, assessors, many, strategy=strategy)
    server = Server(where)
    server.start()
    warm = workers[0].client(server.address)
    warm.get(f"/api/v1/tasks/{workers[0].tasks[0]}")  # the strategy's first rehearsal
    given = {
        "seconds": minutes * 60, "port": server.port, "workers": [asdict(w) for w in workers],
    }  # fmt: skip
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--client"], input=json.dumps(given).encode(),
            stdout=subprocess.PIPE, check=True, timeout=minutes * 60 + 120,
        )  # fmt: skip
    finally:
        server.stop()
    seen = json.loads(done.stdout)
    tally = Tally([tuple(a) for a in seen["acknowledged"]], seen["errors"])
    return {**seen, **verify_store(where, tally), "seconds": minutes * 60}


@contextmanager
def database(kind: str) -> Iterator[str | None]:
    from tests.web import postgres

    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "project")
    elif postgres.programs() is None:
        yield None
    else:
        with postgres.cluster() as server:
            yield postgres.new_database(server)


def row(kind: str, found: dict[str, Any]) -> list[str]:
    times = sorted(found["answers"])
    at = [times[min(len(times) - 1, int(len(times) * share))] for share in (0.5, 0.95, 0.99)]
    return [
        kind, str(len(times)), f"{len(times) / found['seconds']:.1f}", *map(seconds, at),
        seconds(times[-1]), str(len(found["errors"])), str(found["kept"]),
        str(len(found["problems"])),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assessors", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--strategy", default=None)
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        return client()
    from firstpage.labeling.session.events import DEFAULT_STRATEGY

    strategy = given.strategy or DEFAULT_STRATEGY
    kinds = ["sqlite", "postgres"] if given.database == "both" else [given.database]
    rows, problems = [], []
    for kind in kinds:
        with database(kind) as where:
            if where is None:
                print("NOT MEASURED: PostgreSQL (its programs are not installed)")
                continue
            found = measured(where, given.assessors, given.minutes, strategy)
        rows.append(row(kind, found))
        problems += [f"{kind}: {p}" for p in found["problems"]]
    head = ["database", "answers", "a second", "p50", "p95", "p99", "longest", "errors", "kept",
            "lost or wrong"]  # fmt: skip
    title = (
        f"{given.assessors} assessors, an answer every {PAUSE:.0f} s, {given.minutes:g} min, "
        f"{strategy}"
    )
    show(title, head, rows, versions("fastapi", "sqlalchemy", "uvicorn"))
    for problem in problems[:20]:
        print(f"WRONG: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
