"""Latency of `firstpage serve` under load: 100 candidates x 136 features per request, real HTTP.

    python benchmarks/serve.py                  # 30 seconds per row
    python benchmarks/serve.py --seconds 300

The server is one process, the clients another.  Requests are sent on a fixed schedule, whether or
not earlier ones have been answered, and latency counts from the scheduled time.  In the last row a
new model file appears every second, and every response must have the scores of the model that it
names.

    python benchmarks/serve.py --only experiment --seconds 120

sends four servers a request in turn, so that all meet the same load of the machine: one ranks, one
also logs each query, and two also show an experiment of two models, by A/B test or interleaved.

    python benchmarks/serve.py --only workers --seconds 10

sends as many requests as 16 connections can, to a server of one worker and to one of two.

Held equal: server, model, query and machine.  Not equal: the rate, which is lower for JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from common import seconds, show, versions

CANDIDATES, FEATURES, CONNECTIONS = 100, 136, 16
SOURCE = Path(__file__).parents[1] / "src"
MEDIA_TYPES = {
    "npy": "application/x-npy",
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
}


class Connection:
    """One persistent HTTP connection with minimal overhead."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> Connection:
        """Connect to the server."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def post(self, request: bytes) -> tuple[int, str, bytes]:
        """Send a request; return status, model and body of the response."""
        self.writer.write(request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(row.lower().split(": ", 1) for row in head[1:] if ": " in row)
        body = await self.reader.readexactly(int(fields["content-length"]))
        return int(head[0].split()[1]), fields.get("x-model", ""), body


class LoadTest:
    """Requests at scheduled times, over as many connections as are needed at once."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.requests = [bytes.fromhex(request) for request in settings["requests"]]
        self.idle: deque[Connection] = deque()
        self.times: list[float] = []
        self.errors: list[str] = []
        self.responses: dict[str, set[bytes]] = {}  # bodies by model

    async def run(self) -> None:
        """Send all requests and wait for the responses."""
        for _ in range(CONNECTIONS):
            self.idle.append(await Connection(self.settings["port"]).open())
        for number in range(20):  # warm-up
            connection = self.idle.popleft()
            await connection.post(self.requests[number % len(self.requests)])
            self.idle.append(connection)
        rate = self.settings["rate"]
        if rate is None:
            end = time.perf_counter() + self.settings["seconds"]
            await asyncio.gather(*[self.send_all(end) for _ in range(CONNECTIONS)])
            return
        count = int(rate * self.settings["seconds"])
        start, pending = time.perf_counter() + 0.1, set[asyncio.Task[None]]()
        for number in range(count):
            due = start + number / rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            task = asyncio.create_task(self.send(due, self.requests[number % len(self.requests)]))
            pending.add(task)  # finished tasks are dropped: a long set would delay the loop
            task.add_done_callback(pending.discard)
        await asyncio.gather(*pending)

    async def send_all(self, end: float) -> None:
        """Send requests one after the other until a time."""
        while (now := time.perf_counter()) < end:
            await self.send(now, self.requests[0])

    async def send(self, due: float, request: bytes) -> None:
        """Send a request that was due at this time."""
        try:
            if self.idle:
                connection = self.idle.popleft()
            else:
                connection = await Connection(self.settings["port"]).open()
            status, model, body = await connection.post(request)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.errors.append(repr(error))
            return
        self.times.append(time.perf_counter() - due)
        self.idle.append(connection)
        if status != 200:
            self.errors.append(f"{status} {body[:200]!r}")
        elif self.settings["collect_responses"]:
            self.responses.setdefault(model, set()).add(body)


def client() -> None:
    """Run the clients: read the settings from standard input, write the results as JSON."""
    load = LoadTest(json.load(sys.stdin))
    gc.disable()  # its pauses would count as latency of the server
    asyncio.run(load.run())
    responses = {model: [b.hex() for b in bodies] for model, bodies in load.responses.items()}
    json.dump({"times": load.times, "errors": load.errors, "responses": responses}, sys.stdout)


def start_clients(settings: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start a process that sends requests with these settings."""
    clients = subprocess.Popen(
        [sys.executable, __file__, "--client"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert clients.stdin is not None
    clients.stdin.write(json.dumps(settings).encode())
    clients.stdin.close()
    return clients


def results_of(clients: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for the clients; return their results."""
    assert clients.stdout is not None
    results: dict[str, Any] = json.loads(clients.stdout.read())
    clients.wait()
    return results


def http_request(body_format: str, X: np.ndarray, **user: str | int) -> bytes:
    """Return a whole HTTP request with the features of a query, in JSON also with its user."""
    if body_format == "npy":
        out = io.BytesIO()
        np.save(out, X)
        body = out.getvalue()
    elif body_format == "json":
        rows = [{"id": f"d{i}", "features": row} for i, row in enumerate(X.tolist())]
        body = json.dumps({"query": "q", **user, "candidates": rows}).encode()
    else:
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
        sink = pa.BufferOutputStream()
        table = pa.table({"features": column})
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table)
        body = bytes(sink.getvalue())
    head = (
        f"POST /rank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {MEDIA_TYPES[body_format]}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def write_models(kind: str, folder: Path) -> tuple[list[Path], np.ndarray]:
    """Write two model files; return them and the features of a query."""
    import firstpage as fp

    generator = fp.Synthetic(queries=60, docs=CANDIDATES, features=FEATURES, grades=3)
    data, paths = generator.dataset(), []
    for number in (0, 1):
        if kind == "trees":
            ranker = fp.LambdaMART(scorer="trees(count=300, leaves=31)", seed=number)
        else:
            ranker = fp.ListMLE(normalize="minmax" if kind == "scaled" else None)
        path = folder / f"{kind}{number}.json"
        ranker.fit(data[:30] if number else data[30:]).save(path)
        paths.append(path)
    return paths, np.asarray(data[0].X, np.float32)


class Server:
    """`firstpage serve` in a process of its own."""

    def __init__(self, model: Path, *options: str) -> None:
        command = [sys.executable, "-m", "firstpage", "serve", str(model), "--port", "0",
                   "--poll", "0.2", *options]  # fmt: skip
        paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def cpu_seconds(self) -> float:
        """Return the CPU time of the server and its workers so far."""
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = path.read_text().rsplit(")", 1)[1].split()
                if int(fields[3]) == self.process.pid:  # its session
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End the server and wait for it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def measure(
    kind: str, body_format: str, rate: float, duration: float, replace_model: bool
) -> tuple[dict[str, Any], int]:
    """Return the results of the clients, and how often the model file was replaced."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, X = write_models(kind, folder)
        contents = [path.read_bytes() for path in files]
        live = folder / "model.json"
        live.write_bytes(contents[0])
        server = Server(live)
        settings = {
            "port": server.port, "rate": rate, "seconds": duration,
            "requests": [http_request(body_format, X).hex()], "collect_responses": True,
        }  # fmt: skip
        before = server.cpu_seconds()
        clients = start_clients(settings)
        replacements, end = 0, time.perf_counter() + duration
        while replace_model and time.perf_counter() < end and clients.poll() is None:
            time.sleep(1.0)
            replacements += 1
            (folder / "next.json").write_bytes(contents[replacements % 2])
            os.replace(folder / "next.json", live)
        results = results_of(clients)
        results["cpu"] = server.cpu_seconds() - before
        server.stop()
        results["wrong"] = 0
        if body_format == "npy":
            results["wrong"] = count_wrong(files, X, results["responses"])
    return results, replacements


async def ask_in_turn(
    servers: dict[str, Server], requests: dict[str, list[bytes]], duration: float
) -> tuple[dict[str, list[float]], list[str]]:
    """Send each server a request after the other, in random order; return times and failures."""
    connections = {name: await Connection(server.port).open() for name, server in servers.items()}
    times: dict[str, list[float]] = {name: [] for name in servers}
    failures, rng = list[str](), np.random.default_rng(0)
    end = time.perf_counter() + duration
    while (start := time.perf_counter()) < end:
        for name in rng.permutation(list(servers)).tolist():
            begin = time.perf_counter()
            status, _, body = await connections[name].post(requests[name][len(times[name]) % 8])
            times[name].append(time.perf_counter() - begin)
            failures += [f"{name}: {status} {body[:200]!r}"] * (status != 200)
        await asyncio.sleep(max(0.0, start + 0.02 - time.perf_counter()))
    return times, failures


def show_experiment(kind: str, duration: float) -> list[str]:
    """Print what logging and experiments add, by servers that answer in turn; return failures."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        (model, other), X = write_models(kind, folder)
        arms = [{"name": "current"}, {"name": "next", "model": other.name}]
        servers = {"json": Server(model), "logged": Server(model, "--events", str(folder / "log"))}
        for method in ("ab", "team-draft"):
            path = folder / f"{method}.json"
            path.write_text(json.dumps({"name": "cost", "arms": arms, "method": method}))
            options = ["--events", str(folder / method), "--experiment", str(path)]
            servers[method] = Server(model, *options)
        for server in servers.values():
            running.callback(server.stop)
        users = [http_request("json", X, top=10, client=f"user {n}") for n in range(8)]
        requests = dict.fromkeys(servers, users) | {"json": [http_request("json", X, top=10)] * 8}
        asyncio.run(ask_in_turn(servers, requests, 2.0))  # warm-up
        before = {name: server.cpu_seconds() for name, server in servers.items()}
        gc.disable()
        times, failures = asyncio.run(ask_in_turn(servers, requests, duration))
        gc.enable()
        rows, rng, plain = [], np.random.default_rng(1), np.array(times["json"])
        draws = rng.integers(len(plain), size=(1000, len(plain)))
        cpu_of_plain = (servers["json"].cpu_seconds() - before["json"]) / len(plain)
        for name, server in servers.items():
            own = np.array(times[name])
            cpu = (server.cpu_seconds() - before[name]) / len(own)
            shown = [name, str(len(own)), f"{1000 * cpu:.2f} ms", f"{cpu / cpu_of_plain:.3f}"]
            for q in (0.5, 0.99):
                many = np.quantile(own[draws], q, axis=1) / np.quantile(plain[draws], q, axis=1)
                low, high = np.quantile(many, (0.025, 0.975))
                ratio = np.quantile(own, q) / np.quantile(plain, q)
                shown += [
                    seconds(float(np.quantile(own, q))),
                    f"{ratio:.3f} [{low:.3f}, {high:.3f}]",
                ]
            rows.append(shown)
    head = ["server", "responses", "CPU", "/ json", "p50", "/ json, 95% interval", "p99",
            "/ json, 95% interval"]  # fmt: skip
    show(f"Experiments, servers in turn, {duration:g} s", head, rows, versions("msgspec"))
    return failures


def show_split(kind: str) -> None:
    """Print the CPU time of a request without HTTP, by what the server does for it."""
    from firstpage.serving import load
    from firstpage.serving.event_log import EventLog
    from firstpage.serving.experiments import LiveExperiment, Traffic
    from firstpage.serving.limits import Limits
    from firstpage.serving.rank_request import RawRequest
    from firstpage.serving.ranking import rank

    with tempfile.TemporaryDirectory() as name, ExitStack() as logs:
        folder = Path(name)
        (path, other), X = write_models(kind, folder)
        arms = [{"name": "current"}, {"name": "next", "model": other.name}]
        model, second, offsets = load(path), load(other), np.array([0, len(X)])
        bodies = [
            http_request("json", X, top=10, **user).partition(b"\r\n\r\n")[2]
            for user in ({}, {"client": "user 1"})
        ]
        raws = [RawRequest("application/json", b, {}, False, model.names, Limits()) for b in bodies]
        jobs: dict[str, Any] = {"json": lambda: rank(model, raws[0])}
        wide = X.astype(np.float64)
        jobs["the second model alone"] = lambda: np.argsort(-second.scores(wide, offsets)).tolist()
        for method in (None, "ab", "team-draft"):
            log, experiment = EventLog(folder / f"log {method}"), None
            logs.callback(log.close)
            if method is not None:
                settings = folder / f"{method}.json"
                settings.write_text(json.dumps({"name": "c", "arms": arms, "method": method}))
                experiment = LiveExperiment(settings)
            traffic = Traffic(log, experiment)
            jobs[method or "logged"] = partial(rank, model, raws[1], traffic)
        least = dict.fromkeys(jobs, np.inf)
        for _ in range(400):
            for name, job in jobs.items():
                start = time.thread_time()
                job()
                least[name] = min(least[name], time.thread_time() - start)
        rows = [[name, f"{1000 * value:.2f} ms"] for name, value in least.items()]
    show("CPU time of a request without HTTP, least of 400", ["request", "CPU"], rows)


def show_workers(kind: str, duration: float) -> list[str]:
    """Print the most requests per second that one worker and two answer; return failures."""
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        (model, _), X = write_models(kind, Path(folder))
        for count in (1, 2):
            server = Server(model, "--workers", str(count))
            for body_format in ("npy", "json"):
                before = server.cpu_seconds()
                settings = {
                    "port": server.port, "rate": None, "seconds": duration,
                    "requests": [http_request(body_format, X).hex()], "collect_responses": False,
                }  # fmt: skip
                results = results_of(start_clients(settings))
                times, cpu = results["times"], server.cpu_seconds() - before
                p50, p99 = (float(np.quantile(times, q)) for q in (0.5, 0.99))
                rows.append([str(count), body_format, f"{len(times) / duration:.0f}/s",
                             *map(seconds, (p50, p99)), f"{1000 * cpu / len(times):.2f} ms",
                             f"{cpu / duration:.2f}"])  # fmt: skip
                failures += results["errors"]
            server.stop()
    head = ["workers", "body", "responses", "p50", "p99", "CPU per response", "busy cores"]
    show(f"As many requests as {CONNECTIONS} connections send, {duration:g} s", head, rows)
    return failures


def count_wrong(files: list[Path], X: np.ndarray, responses: dict[str, list[str]]) -> int:
    """Return the number of responses without the scores of the model that they name."""
    from firstpage.serving import load

    models = {served.digest: served for served in map(load, files)}
    offsets = np.array([0, len(X)])
    return sum(
        not np.array_equal(
            np.load(io.BytesIO(bytes.fromhex(body))), models[model].scores(X, offsets)
        )
        for model, bodies in responses.items()
        for body in bodies
    )


def table_row(name: str, rate: float, results: dict[str, Any], replacements: int) -> list[str]:
    """Return a row of the table."""
    times = np.sort(results["times"])
    percentiles = [float(np.quantile(times, q)) for q in (0.5, 0.99, 0.999)]
    cpu = results["cpu"] / max(len(times), 1)
    return [
        name,
        f"{rate:g}/s",
        str(len(times)),
        *map(seconds, [*percentiles, float(times[-1])]),
        seconds(cpu),
        str(len(results["errors"])),
        str(results["wrong"]),
        str(replacements),
        str(len(results["responses"])),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--model", choices=["linear", "scaled", "trees"], default="linear")
    names = ["npy", "json", "arrow", "replaced", "experiment", "workers"]
    parser.add_argument("--only", action="append", choices=names)
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return client()
    rows, failures = [], []
    for name, body_format, rate in (
        ("npy", "npy", 300),
        ("json", "json", 50),
        ("arrow", "arrow", 300),
        ("replaced", "npy", 300),
    ):
        if options.only and name not in options.only:
            continue
        results, replacements = measure(
            options.model, body_format, rate, options.seconds, name == "replaced"
        )
        rows.append(table_row(name, rate, results, replacements))
        failures += [f"{name}: {error}" for error in results["errors"]]
        if results["wrong"]:
            failures.append(f"{name}: {results['wrong']} responses of another model")
    if not options.only or "experiment" in options.only:
        show_split(options.model)
        failures += show_experiment(options.model, options.seconds)
    if not options.only or "workers" in options.only:
        failures += show_workers(options.model, options.seconds)
    head = ["body", "rate", "responses", "p50", "p99", "p99.9", "maximum", "CPU per response",
            "errors", "wrong", "model files", "models used"]  # fmt: skip
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    title = f"{CANDIDATES} candidates x {FEATURES} features, {options.model}, {options.seconds:g} s"
    packages = versions("uvicorn", "h11", "uvloop", "starlette", "msgspec")
    note = f"{packages}; load average {load}"
    if rows:
        show(title, head, rows, note)
    for failure in failures[:20]:
        print(f"Failure: {failure}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
