"""Kill the labeling server at random moments, under load, many times: no judgment may be lost.

    python tests/soak/kill_server.py --kills 200 --database sqlite

Clients answer over HTTP as fast as they can.  When the server dies under them they send the same
answer, under the same key, to the next one.  In the end every acknowledged answer must be in the
log exactly once, and every log must replay.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import httpx

from tests.labeling.app import postgres
from tests.labeling.app.load import Server, Tally, Worker, prepare, verify_store

UNDO = 0.05  # fraction of the steps


class Answering(threading.Thread):
    """An assessor who retries until the server answers."""

    def __init__(self, worker: Worker, address: str, stop: threading.Event, tally: Tally) -> None:
        super().__init__(daemon=True)
        self.worker, self.address, self.stop_, self.tally = worker, address, stop, tally
        self.rng = random.Random(worker.number)

    def run(self) -> None:
        with self.worker.client(self.address) as client:
            for task in self.worker.tasks:
                state = self.call(client, "GET", f"/api/v1/tasks/{task}", None)
                while state is not None and state["question"] is not None:
                    state = self.step(client, state)
                if self.stop_.is_set():
                    return

    def step(self, client: httpx.Client, state: dict[str, Any]) -> dict[str, Any] | None:
        """Answer, or sometimes undo; return the next state."""
        body: dict[str, Any] = {"seq": state["seq"], "key": uuid4().hex}
        verb = "answers"
        if state["can_undo"] and self.rng.random() < UNDO:
            verb = "undo"
        else:
            question = state["question"]
            left, right = question["left"]["key"], question["right"]["key"]
            body |= {"left": left, "right": right, "outcome": 1 if left < right else -1}
        after = self.call(client, "POST", f"/api/v1/tasks/{state['task']}/{verb}", body)
        if after is not None:
            self.tally.acknowledged.append((state["task"], body["seq"], body["key"]))
        return after

    def call(
        self, client: httpx.Client, method: str, path: str, body: dict[str, Any] | None
    ) -> dict[str, Any] | None:
        """Repeat a request until it is answered; return None when the time is over."""
        while not self.stop_.is_set():
            try:
                reply = client.request(method, path, json=body)
            except httpx.TransportError:
                time.sleep(0.1)  # the server needs the processor to start
                continue
            if reply.status_code == 200:
                state: dict[str, Any] = reply.json()
                return state
            self.tally.wrong.append(f"{method} {path}: {reply.status_code} {reply.text[:200]}")
            return None
        return None


def soak(
    location: str,
    kills: int,
    workers: int = 8,
    seed: int = 0,
    max_wait: float = 1.0,
    minutes: float = 1e6,
    between: int = 0,
) -> dict[str, Any]:
    """Kill the server this many times; return the counts of events, and all problems.

    A kill comes at a random moment, after at least `between` more acknowledged answers.
    """
    people = prepare(location, workers, queries=max(20, 2 * kills), documents=14, k=5)
    server, stop, tally = Server(location), threading.Event(), Tally()
    rng, end = random.Random(seed), time.monotonic() + 60 * minutes
    server.start()
    threads = [Answering(worker, server.address, stop, tally) for worker in people]
    for thread in threads:
        thread.start()
    try:
        for number in range(kills):
            if time.monotonic() > end:
                kills = number
                break
            target = len(tally.acknowledged) + between
            time.sleep(rng.uniform(0.05, max_wait))
            while len(tally.acknowledged) < target and not tally.wrong and time.monotonic() < end:
                time.sleep(0.01)
            server.kill()
            server.start()
            if (number + 1) % 10 == 0:
                print(f"{number + 1} kills, {len(tally.acknowledged)} acknowledged", flush=True)
        time.sleep(0.5)
    except KeyboardInterrupt:  # interrupted by the user; the events so far are checked
        kills = number
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=60)
        server.stop()
    return {"kills": kills, **verify_store(location, tally)}


@contextmanager
def database(kind: str) -> Iterator[str]:
    """Yield the location of an empty store, which is deleted afterwards."""
    if kind == "postgres":
        with postgres.cluster() as server:
            yield postgres.new_database(server)
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "project")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6, help="Stop killing after this time.")
    args = parser.parse_args()
    with database(args.database) as location:
        report = soak(location, args.kills, args.workers, args.seed, minutes=args.minutes)
    problems = report.pop("problems")
    print(f"{args.database}: " + ", ".join(f"{name} {value}" for name, value in report.items()))
    for problem in problems[:20]:
        print(f"WRONG: {problem}")
    if problems or not report["acknowledged"]:
        sys.exit(1)
    print("no judgment was lost, none is there twice, every log replays")


if __name__ == "__main__":
    main()
