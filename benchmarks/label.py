"""Latency of the labeling server under load: simulated assessors over real HTTP, on loopback.

    python benchmarks/label.py                     # 50 assessors, a minute, both databases
    python benchmarks/label.py --bar 50            # 5 minutes, p99 under 50 ms
    python benchmarks/label.py --bar 200 --database postgres   # 2 workers, p99 under 100 ms
    python benchmarks/label.py --arrivals 200 --minutes 0.3    # browsers with empty caches, in 10 s

The assessors arrive within ten seconds.  Each answers every two seconds (k = 10), by the requests
that the judging page makes in Chromium, which a test in tests/labeling/app/browser counts: one per
answer, whose reply has the next question and those of its documents that the page does not have
yet.  The clients run in a process of their own.  At the end, every acknowledged answer must be in
the log exactly once, and every log must replay.  CPU times are those of the server, of PostgreSQL
and of the clients, which share the machine's cores: their sum times the answers per second is what
the load needs of them.

With --arrivals, as many more people open the judging page with empty caches while the assessors
answer: the page, its scripts and style sheets over at most six connections each, modules when the
scripts that import them are there, then the first question.

Held equal: both databases have the same assessors, tasks, schedule and machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import re
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
BARS = {50: (1, 0.05), 200: (2, 0.1)}  # assessors: server processes, and p99 in seconds
BAR_MINUTES = 5.0
BROWSER_CONNECTIONS = 6  # to one host, as browsers have
ARRIVAL = 10.0  # seconds in which all assessors open their first query


class Connection:
    """One persistent HTTP connection with minimal overhead."""

    def __init__(self, host: str, port: int, cookie: str, csrf: str) -> None:
        self.host, self.port = host, port
        self.head = (
            f"Host: {host}:{port}\r\nCookie: firstpage_login={cookie}\r\n"
            f"X-CSRF-Token: {csrf}\r\nContent-Type: application/json\r\n"
        )

    async def open(self) -> None:
        """Connect to the server."""
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; return status and content of the response."""
        data = b"" if body is None else json.dumps(body).encode()
        status, _, content = await self.request(method, path, data)
        return status, json.loads(content)

    async def request(self, method: str, path: str, data: bytes = b"") -> tuple[int, int, bytes]:
        """Send a request; return the status, the bytes of the response, and its content."""
        head = f"{method} {path} HTTP/1.1\r\n{self.head}Content-Length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        start = await self.reader.readuntil(b"\r\n\r\n")
        reply = start.decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in reply[1:] if ": " in line)
        content = await self.reader.readexactly(int(fields["content-length"]))
        size = len(start) + len(content)
        if fields.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        return int(reply[0].split()[1]), size, content


class Browser:
    """A browser with an empty cache, which opens the judging page."""

    def __init__(self, port: int, worker: dict[str, Any]) -> None:
        self.port, self.task = port, worker["tasks"][0]
        self.worker = worker
        self.connections: asyncio.Queue[Connection | None] = asyncio.Queue()
        for _ in range(BROWSER_CONNECTIONS):
            self.connections.put_nowait(None)  # not open yet
        self.requests = self.bytes = 0
        self.urls: set[str] = set()

    async def open(self) -> None:
        """Load everything until the first question can be shown."""
        page = await self.get(f"/tasks/{self.task}")
        urls = re.findall(r'<(?:link|script)[^>]*(?:href|src)="(/static/[^"]+)"', page.decode())
        await self.load(urls)
        frame = re.search(r'data-frame="([^"]+)"', page.decode())[1]
        question = f"/api/v1/tasks/{self.task}?contents=true"
        await asyncio.gather(self.get(frame), self.get(question))
        while not self.connections.empty():
            connection = self.connections.get_nowait()
            if connection is not None:
                connection.writer.close()

    async def load(self, urls: list[str]) -> None:
        """Load files at the same time, and the modules that they import."""
        new = [url for url in dict.fromkeys(urls) if url not in self.urls]
        self.urls.update(new)
        await asyncio.gather(*map(self.load_file, new))

    async def load_file(self, url: str) -> None:
        content = await self.get(url)
        if url.endswith(".js"):
            names = re.findall(r'^import .* from "\./([^"]+)";', content.decode(), re.MULTILINE)
            await self.load([f"{url.rpartition('/')[0]}/{name}" for name in names])

    async def get(self, path: str) -> bytes:
        """Return the content of a response, on the next free connection."""
        connection = await self.connections.get()
        if connection is None:
            worker = self.worker
            connection = Connection("127.0.0.1", self.port, worker["cookie"], worker["csrf"])
            connection.head += "Accept-Encoding: gzip\r\n"
            await connection.open()
        try:
            status, size, content = await connection.request("GET", path)
        finally:
            self.connections.put_nowait(connection)
        if status != 200:
            raise OSError(f"{path}: {status}")
        self.requests, self.bytes = self.requests + 1, self.bytes + size
        return content


class LoadTest:
    """All assessors of one run, their latencies and errors."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.answers: list[float] = []
        self.opens: list[float] = []
        self.acknowledged: list[tuple[int, int, str]] = []
        self.errors: list[str] = []
        self.arrivals: list[tuple[float, int, int]] = []  # seconds, requests, bytes

    async def run(self) -> None:
        """Run all assessors until the time is over."""
        end = time.perf_counter() + self.settings["seconds"]
        await asyncio.gather(
            *(self.assessor(worker, end) for worker in self.settings["workers"]),
            *(self.arrive(worker) for worker in self.settings["arriving"]),
        )
        self.cpu = time.process_time()

    async def arrive(self, worker: dict[str, Any]) -> None:
        """Open the judging page as a new visitor, within the time in which all arrive."""
        await asyncio.sleep(random.Random(worker["number"]).uniform(0, ARRIVAL))
        browser, start = Browser(self.settings["port"], worker), time.perf_counter()
        try:
            await browser.open()
        except (OSError, asyncio.IncompleteReadError) as error:
            self.errors.append(f"arrival: {error!r}")
        duration = time.perf_counter() - start
        self.arrivals.append((duration, browser.requests, browser.bytes))

    async def assessor(self, worker: dict[str, Any], end: float) -> None:
        """Answer the tasks of one assessor, one question every PAUSE seconds."""
        rng = random.Random(worker["number"])
        connection = Connection(
            "127.0.0.1", self.settings["port"], worker["cookie"], worker["csrf"]
        )
        await connection.open()
        due = time.perf_counter() + rng.uniform(0, ARRIVAL)
        for task in worker["tasks"]:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            path, known = f"/api/v1/tasks/{task}?contents=true", set()
            state = await self.timed(connection, self.opens, "GET", path)
            while state is not None and state["question"] is not None:
                due = max(due + PAUSE, time.perf_counter())
                if due > end:
                    return
                await asyncio.sleep(due - time.perf_counter())
                state = await self.answer(connection, state, known)

    async def answer(
        self, connection: Connection, state: dict[str, Any], known: set[int]
    ) -> dict[str, Any] | None:
        """Answer a question; return the next state of the task, or None after an error."""
        known.update(int(url.rpartition("/")[2]) for url in state["documents"] or ())
        question, key = state["question"], uuid4().hex
        left, right = question["left"]["key"], question["right"]["key"]
        body = {
            "seq": state["seq"], "key": key, "left": left, "right": right,
            "outcome": 1 if left < right else -1,
            "spans": [{"kind": "active", "ms": 1900}], "known": sorted(known),
        }  # fmt: skip
        path = f"/api/v1/tasks/{state['task']}/answers"
        next_state = await self.timed(connection, self.answers, "POST", path, body)
        if next_state is not None:
            self.acknowledged.append((state["task"], state["seq"], key))
        return next_state

    async def timed(self, connection: Connection, times: list[float], *call: Any) -> Any:
        """Return the content of a response, or None after an error; append its duration."""
        start = time.perf_counter()
        try:
            status, content = await connection.call(*call)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.errors.append(f"{call[0]} {call[1]}: {error!r}")
            return None
        times.append(time.perf_counter() - start)
        if status != 200:
            self.errors.append(f"{call[0]} {call[1]}: {status} {content}")
            return None
        return content


def client() -> None:
    """Run the clients: read the settings from standard input, write the results as JSON."""
    load = LoadTest(json.load(sys.stdin))
    asyncio.run(load.run())
    json.dump(
        {
            "answers": load.answers,
            "opens": load.opens,
            "errors": load.errors,
            "acknowledged": load.acknowledged,
            "cpu": load.cpu,
            "arrivals": load.arrivals,
        },
        sys.stdout,
    )


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process and its children, also ended ones, have used so far."""
    import psutil

    parent = psutil.Process(process)
    own = parent.cpu_times()
    times = [child.cpu_times() for child in parent.children(recursive=True)]
    ended = own.children_user + own.children_system
    return ended + sum(t.user + t.system for t in (own, *times))


def database_process(where: str) -> int | None:
    """Return the id of the PostgreSQL server's first process; None for SQLite."""
    if not where.startswith("postgresql"):
        return None
    import psycopg

    with psycopg.connect(where) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int((Path(row[0]) / "postmaster.pid").read_text().split()[0])


def measure(
    where: str,
    assessors: int,
    minutes: float,
    strategy: str,
    workers: int,
    documents: int,
    arrivals: int,
) -> dict[str, Any]:
    """Return the results of one run on one database."""
    from tests.labeling.app.load import Server, Tally, prepare, verify_store

    queries = int(minutes * 60 / PAUSE / 60) + 3  # a query takes at least 60 answers
    clients = prepare(where, assessors + arrivals, queries, documents, strategy=strategy)
    connections = 1000 + BROWSER_CONNECTIONS * arrivals
    server = Server(
        where, options=("--workers", str(workers), "--max-connections", str(connections))
    )
    try:
        server.start()
        warmup = clients[0].client(server.address)
        warmup.get(f"/api/v1/tasks/{clients[0].tasks[0]}")  # loads the strategy
        settings = {
            "seconds": minutes * 60,
            "port": server.port,
            "workers": [asdict(c) for c in clients[:assessors]],
            "arriving": [asdict(c) for c in clients[assessors:]],
        }
        processes = {"server": server.process.pid, "database": database_process(where)}
        before = {name: cpu_seconds(pid) for name, pid in processes.items() if pid is not None}
        completed = subprocess.run(
            [sys.executable, __file__, "--client"],
            input=json.dumps(settings).encode(),
            stdout=subprocess.PIPE,
            check=True,
            timeout=minutes * 60 + 120,
        )
        cpu = {name: cpu_seconds(processes[name]) - start for name, start in before.items()}
    finally:
        server.stop()
    results = json.loads(completed.stdout)
    tally = Tally([tuple(a) for a in results["acknowledged"]], results["errors"])
    cpu["clients"] = results["cpu"]
    return {**results, **verify_store(where, tally), "seconds": minutes * 60, "cpu": cpu}


@contextmanager
def database(kind: str) -> Iterator[str | None]:
    """Yield the address of an empty database, or None if its programs are not installed."""
    from tests.labeling.app import postgres

    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "project")
    elif postgres.programs() is None:
        yield None
    else:
        with postgres.cluster() as server:
            yield postgres.new_database(server)


def quantile(results: dict[str, Any], fraction: float) -> float:
    """Return a quantile of the seconds that answers took."""
    times = sorted(results["answers"])
    return times[min(len(times) - 1, int(len(times) * fraction))]


def table_row(kind: str, results: dict[str, Any]) -> list[str]:
    """Return a row of the table."""
    count, cpu = len(results["answers"]), results["cpu"]
    rate = count / results["seconds"]
    load = sum(cpu.values()) / results["seconds"] / (os.cpu_count() or 1)
    latencies = [quantile(results, fraction) for fraction in (0.5, 0.95, 0.99, 1)]
    return [
        kind,
        str(count),
        f"{rate:.1f}",
        *map(seconds, latencies),
        *(seconds(cpu[name] / count) if name in cpu else "" for name in CPU_OF),
        f"{load:.2f}",
        str(len(results["errors"])),
        str(results["kept"]),
        str(len(results["problems"])),
    ]


def arrivals_row(kind: str, arrivals: list[list[float]]) -> list[str]:
    """Return a row of the table of first pages."""
    times = sorted(duration for duration, _, _ in arrivals)
    quantiles = [times[min(len(times) - 1, int(len(times) * f))] for f in (0.5, 0.99, 1)]
    requests, size = (sum(row[i] for row in arrivals) / len(arrivals) for i in (1, 2))
    return [kind, f"{requests:.0f}", f"{size / 1000:.0f} kB", *map(seconds, quantiles)]


ARRIVALS_HEAD = ["database", "requests", "bytes", "p50", "p99", "maximum"]
CPU_OF = ("server", "database", "clients")
HEAD = [
    "database", "answers", "per second", "p50", "p95", "p99", "maximum",
    *(f"CPU per answer, {name}" for name in CPU_OF), "of the cores",
    "errors", "stored", "lost or duplicated",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assessors", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=1, help="server processes")
    parser.add_argument("--documents", type=int, default=50, help="per query")
    parser.add_argument("--strategy", default=None)
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--bar", type=int, choices=list(BARS), help="check a bar, in five minutes")
    parser.add_argument("--arrivals", type=int, default=0, help="browsers with empty caches")
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return client()
    from firstpage.labeling import DEFAULT_STRATEGY

    limit = None
    if options.bar is not None:
        options.assessors, options.minutes = options.bar, BAR_MINUTES
        options.workers, limit = BARS[options.bar]
    strategy = options.strategy or DEFAULT_STRATEGY
    kinds = ["sqlite", "postgres"] if options.database == "both" else [options.database]
    rows, arrived, problems = [], [], []
    for kind in kinds:
        with database(kind) as where:
            if where is None:
                print("PostgreSQL is not installed, and not measured.")
                continue
            results = measure(
                where,
                options.assessors,
                options.minutes,
                strategy,
                options.workers,
                options.documents,
                options.arrivals,
            )
        rows.append(table_row(kind, results))
        if options.arrivals:
            arrived.append(arrivals_row(kind, results["arrivals"]))
        problems += [f"{kind}: {p}" for p in results["problems"]]
        if limit is not None and quantile(results, 0.99) >= limit:
            problems.append(f"{kind}: p99 is not under {seconds(limit)}")
    title = (
        f"{options.assessors} assessors, an answer every {PAUSE:.0f} s, {options.minutes:g} min, "
        f"{strategy}, {options.documents:,} documents per query, "
        f"{options.workers} server process{'es' if options.workers > 1 else ''}"
    )
    show(title, HEAD, rows, versions("starlette", "msgspec", "sqlalchemy", "uvicorn"))
    if arrived:
        show(f"{options.arrivals} first pages in {ARRIVAL:.0f} s", ARRIVALS_HEAD, arrived, "")
    for problem in problems[:20]:
        print(f"Problem: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
