"""`firstpage serve` under load: a query of 100 candidates x 136 features, over real HTTP.

    python benchmarks/serve.py                  # 30 seconds a row
    python benchmarks/serve.py --seconds 300    # the bar

The server is one process, the clients another.  Requests go out on a fixed schedule, whether or not
earlier ones have been answered, and a latency counts from the scheduled moment: a server that
stalls is charged for everyone who waited.  In the last row a new model file comes every second, and
every answer must be that of the model that it names.
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
from pathlib import Path
from typing import Any

import numpy as np

from common import seconds, show, versions

CANDIDATES, FEATURES, LINES = 100, 136, 16
SOURCE = Path(__file__).parents[1] / "src"
MEDIA = {
    "npy": "application/x-npy", "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
}  # fmt: skip


class Line:
    """One kept-alive connection; as little work as possible."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> Line:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def post(self, request: bytes) -> tuple[int, str, bytes]:
        """(status, model, body)."""
        self.writer.write(request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(row.lower().split(": ", 1) for row in head[1:] if ": " in row)
        body = await self.reader.readexactly(int(fields["content-length"]))
        return int(head[0].split()[1]), fields.get("x-model", ""), body


class Load:
    """Requests at fixed times, over as many lines as are needed at once."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.request = bytes.fromhex(given["request"])
        self.free: deque[Line] = deque()
        self.times: list[float] = []
        self.errors: list[str] = []
        self.answers: dict[str, set[bytes]] = {}

    async def run(self) -> None:
        for _ in range(LINES):
            self.free.append(await Line(self.given["port"]).open())
        for _ in range(20):  # both sides warm
            line = self.free.popleft()
            await line.post(self.request)
            self.free.append(line)
        rate, many = self.given["rate"], int(self.given["rate"] * self.given["seconds"])
        start, pending = time.perf_counter() + 0.1, set[asyncio.Task[None]]()
        for number in range(many):
            due = start + number / rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            call = asyncio.create_task(self.one(due))
            pending.add(call)  # to keep those that are done would stall the loop at times
            call.add_done_callback(pending.discard)
        await asyncio.gather(*pending)

    async def one(self, due: float) -> None:
        try:
            line = self.free.popleft() if self.free else await Line(self.given["port"]).open()
            status, model, body = await line.post(self.request)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.errors.append(repr(error))
            return
        self.times.append(time.perf_counter() - due)
        self.free.append(line)
        if status != 200:
            self.errors.append(f"{status} {body[:200]!r}")
        else:
            self.answers.setdefault(model, set()).add(body)


def client() -> None:
    """The clients' process: what to do comes in, what was seen goes out."""
    load = Load(json.load(sys.stdin))
    gc.disable()  # its pauses would be charged to the server
    asyncio.run(load.run())
    answers = {model: [b.hex() for b in bodies] for model, bodies in load.answers.items()}
    json.dump({"times": load.times, "errors": load.errors, "answers": answers}, sys.stdout)


def request_of(form: str, X: np.ndarray) -> bytes:
    """A whole HTTP request."""
    if form == "npy":
        out = io.BytesIO()
        np.save(out, X)
        body = out.getvalue()
    elif form == "json":
        rows = [{"id": f"d{i}", "features": row} for i, row in enumerate(X.tolist())]
        body = json.dumps({"query": "q", "candidates": rows}).encode()
    else:
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
        sink = pa.BufferOutputStream()
        table = pa.table({"features": column})
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table)
        body = bytes(sink.getvalue())
    head = (
        f"POST /rank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {MEDIA[form]}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def models(kind: str, folder: Path) -> tuple[list[Path], np.ndarray]:
    """Two model files, and a query's features."""
    import firstpage as fp

    recipe = fp.Synthetic(queries=60, docs=CANDIDATES, features=FEATURES, grades=3)
    data, found = recipe.dataset(), []
    for number in (0, 1):
        if kind == "trees":
            ranker = fp.LambdaMART(scorer="trees(count=300, leaves=31)", seed=number)
        else:
            ranker = fp.ListMLE(normalize="minmax" if kind == "scaled" else None)
        path = folder / f"{kind}{number}.json"
        ranker.fit(data[:30] if number else data[30:]).save(path)
        found.append(path)
    return found, np.asarray(data[0].X, np.float32)


class Server:
    """`firstpage serve` in a process of its own."""

    def __init__(self, model: Path, *options: str) -> None:
        command = [sys.executable, "-m", "firstpage", "serve", str(model), "--port", "0",
                   "--poll", "0.2", *options]  # fmt: skip
        paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def measured(
    kind: str, form: str, rate: float, length: float, renew: bool
) -> tuple[dict[str, Any], int]:
    """What the clients saw, and how many models there were."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, X = models(kind, folder)
        texts = [path.read_bytes() for path in files]
        live = folder / "model.json"
        live.write_bytes(texts[0])
        server = Server(live)
        given = {
            "port": server.port, "rate": rate, "seconds": length,
            "request": request_of(form, X).hex(),
        }  # fmt: skip
        before = server.cpu()
        clients = subprocess.Popen(
            [sys.executable, __file__, "--client"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert clients.stdin is not None
        assert clients.stdout is not None
        clients.stdin.write(json.dumps(given).encode())
        clients.stdin.close()
        renewed, end = 0, time.perf_counter() + length
        while renew and time.perf_counter() < end and clients.poll() is None:
            time.sleep(1.0)
            renewed += 1
            (folder / "next.json").write_bytes(texts[renewed % 2])
            os.replace(folder / "next.json", live)
        seen = json.loads(clients.stdout.read())
        clients.wait()
        seen["cpu"] = server.cpu() - before
        server.stop()
        seen["wrong"] = wrong(files, X, seen["answers"]) if form == "npy" else 0
    return seen, renewed


def wrong(files: list[Path], X: np.ndarray, answers: dict[str, list[str]]) -> int:
    """Answers that are not the scores of the model they name."""
    from firstpage.serving.served_model import load

    known = {served.digest: served for served in map(load, files)}
    offsets = np.array([0, len(X)])
    return sum(
        not np.array_equal(
            np.load(io.BytesIO(bytes.fromhex(body))), known[model].scores(X, offsets)
        )
        for model, bodies in answers.items()
        for body in bodies
    )


def row(name: str, rate: float, found: dict[str, Any], renewed: int) -> list[str]:
    times = np.sort(found["times"])
    at = [float(np.quantile(times, share)) for share in (0.5, 0.99, 0.999)]
    each = found["cpu"] / max(len(times), 1)
    return [
        name, f"{rate:g}/s", str(len(times)), *map(seconds, [*at, float(times[-1])]),
        seconds(each), str(len(found["errors"])), str(found["wrong"]),
        str(renewed), str(len(found["answers"])),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--model", choices=["linear", "scaled", "trees"], default="linear")
    parser.add_argument("--only", choices=["npy", "json", "arrow", "renewed"], action="append")
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        return client()
    rows, failed = [], []
    for name, form, rate in (
        ("npy", "npy", 300), ("json", "json", 50), ("arrow", "arrow", 300), ("renewed", "npy", 300),
    ):  # fmt: skip
        if given.only and name not in given.only:
            continue
        found, renewed = measured(given.model, form, rate, given.seconds, name == "renewed")
        rows.append(row(name, rate, found, renewed))
        failed += [f"{name}: {error}" for error in found["errors"]]
        failed += [f"{name}: {found['wrong']} answers of another model"] * bool(found["wrong"])
    head = ["body", "rate", "answers", "p50", "p99", "p99.9", "longest", "CPU each", "errors",
            "wrong", "new files", "models seen"]  # fmt: skip
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    title = f"{CANDIDATES} candidates x {FEATURES} features, {given.model}, {given.seconds:g} s"
    packages = versions("uvicorn", "h11", "uvloop", "starlette", "msgspec")
    note = f"{packages}; load of the machine {load}"
    show(title, head, rows, note)
    for problem in failed[:20]:
        print(f"WRONG: {problem}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
