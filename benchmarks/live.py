"""The whole walk of an experiment: BM25 against a learned ranking, then a model of the clicks.

    firstpage demo -o shop
    python benchmarks/live.py shop                  # 500 users per experiment
    python benchmarks/live.py shop --users 50

Two servers run one after the other.  Simulated users search on their pages over HTTP, and click by
a click model that is fitted to a log.  Everything else is a command, which is printed with its
output: docs/experiments.md shows them.
"""

from __future__ import annotations

import argparse
import html
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import firstpage as fp

SOURCE = Path(__file__).parents[1] / "src"
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]),
}
QUERIES_PER_USER = 3
SHOWN = re.compile(r'class="result" value="(\d+)" tabindex="-1" data-document="([^"]*)"')


@dataclass
class SeenPage:
    """What a user has seen: the query and its id, the documents and the cookie."""

    cookie: str
    text: str
    query_id: str
    documents: list[str]


class Visitors:
    """Users of the search page of a server.

    Parameters
    ----------
    port : int
        The port of the server on this machine.
    """

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def search(self, texts: list[str], count: int, seed: int) -> list[SeenPage]:
        """Let users search for some of the texts; return the pages that they see."""
        rng, pages = np.random.default_rng(seed), []
        for _ in range(count):
            cookie = ""
            for number in rng.choice(len(texts), QUERIES_PER_USER).tolist():
                address = f"/?q={re.sub('[^a-zA-Z0-9]+', '+', texts[number])}"
                headers, page = self._request("GET", address, cookie)
                cookie = cookie or headers.get("set-cookie", "").split(";")[0]
                query = re.search(r'data-query="([^"]+)"', page)
                documents = [html.unescape(name) for _, name in SHOWN.findall(page)]
                if query is not None:
                    pages.append(SeenPage(cookie, texts[number], query[1], documents))
        return pages

    def click(self, pages: list[SeenPage], model: Any, seed: int) -> int:
        """Click by a fitted model on the pages, as their script does; return the clicks."""
        sizes = [len(page.documents) for page in pages]
        shown = fp.Sessions.from_arrays(
            query=np.repeat([page.text for page in pages], sizes),
            document=[name for page in pages for name in page.documents],
            page=np.repeat(np.arange(len(pages)), sizes),
            clicked=np.zeros(sum(sizes)),
        )
        clicked = np.split(model.simulate(shown, seed).clicked, shown.offsets[1:-1])
        total = 0
        for page, flags in zip(pages, clicked, strict=True):
            for rank in (np.flatnonzero(flags) + 1).tolist():
                place = {"object_id": page.documents[rank - 1]}
                event = {
                    "action_name": "click",
                    "query_id": page.query_id,
                    "event_id": f"{page.query_id}/{rank}",
                    "timestamp": datetime.now(UTC).isoformat(),
                    "event_attributes": {"object": place, "position": {"ordinal": rank}},
                }
                self._request("POST", "/events", page.cookie, json.dumps(event))
                total += 1
        return total

    def _request(
        self, method: str, address: str, cookie: str, body: str | None = None
    ) -> tuple[Any, str]:
        """Send a request; return headers and body of a successful answer."""
        headers = {"Cookie": cookie} if cookie else {}
        headers |= {"Content-Type": "application/json"} if body else {}
        self.connection.request(method, address, body, headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise SystemExit(f"{method} {address}: {answer.status} {text[:200]}")
        return answer.headers, text


def fitted_users(texts: dict[str, str], run: Any, qrels: Any) -> Any:
    """Return a click model that is fitted to a log of users who know the grades."""

    def named(mapping: Any) -> dict[str, Any]:
        return {texts[query]: row for query, row in mapping.to_dict().items() if query in texts}

    log = fp.clicks.simulate(
        named(run), named(qrels), "navigational", n_sessions=40_000, noise=np.inf, depth=10
    )
    return fp.clicks.PBM().fit(log)


def command(folder: Path, words: str) -> str:
    """Run a command of Firstpage in a folder, and print it with its output."""
    print(f"$ firstpage {words}", flush=True)
    arguments = [part for word in words.split() for part in _expanded(folder, word)]
    done = subprocess.run(
        [sys.executable, "-m", "firstpage", *arguments],
        capture_output=True, text=True, cwd=folder, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    print(done.stdout, end="", flush=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def _expanded(folder: Path, word: str) -> list[str]:
    """Return the files of a pattern, as a shell does."""
    if "*" not in word:
        return [word]
    return sorted(str(path.relative_to(folder)) for path in folder.glob(word))


def experiment(folder: Path, name: str, arms: list[dict[str, str]], users: int, model: Any) -> str:
    """Serve an experiment to simulated users; return its analysis."""
    settings = {"name": name, "arms": arms}
    (folder / "experiment.json").write_text(json.dumps(settings))
    print(f"$ cat experiment.json\n{json.dumps(settings)}")
    words = "serve model.json --index words.index --candidates 30 --events events"
    print(f"$ firstpage {words} --experiment experiment.json")
    arguments = [*words.split(), "--experiment", "experiment.json", "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, "-m", "firstpage", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder, env=ENVIRONMENT,
    )  # fmt: skip
    assert server.stdout is not None
    visitors = Visitors(int(server.stdout.readline().rsplit(":", 1)[1]))
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    begin = time.perf_counter()
    pages = visitors.search([row["text"] for row in rows], users, len(arms[0]["name"]))
    clicks = visitors.click(pages, model, len(name))
    seconds = time.perf_counter() - begin
    print(f"# {users} users saw {len(pages)} pages and clicked {clicks} times ({seconds:.0f} s)")
    visitors.connection.close()
    server.send_signal(signal.SIGTERM)
    server.wait(30)
    log = "events/events*.jsonl*"
    return command(folder, f"experiment analyze {log} --experiment {name} --html {name}.html")


def walk(demo: Path, folder: Path, users: int) -> None:
    """Run both experiments on the collection of a demo."""
    for name in ("documents.jsonl", "queries.jsonl", "answers.qrels"):
        shutil.copy(demo / name, folder / name)
    command(folder, "index documents.jsonl -o words.index")
    command(folder, "candidates words.index queries.jsonl --depth 30 -o candidates.run")
    lines = (folder / "queries.jsonl").read_text().splitlines(keepends=True)
    (folder / "labeled.jsonl").write_text("".join(lines[::4]))  # a quarter trains the first model
    print("$ sed -n '1~4p' queries.jsonl > labeled.jsonl")
    command(folder, "candidates words.index labeled.jsonl --depth 30 -o labeled.run")
    chosen = "--set short,values"
    command(
        folder,
        f"features words.index labeled.jsonl labeled.run {chosen} --qrels answers.qrels "
        "-o labeled.npz",
    )
    command(folder, f"features words.index queries.jsonl candidates.run {chosen} -o all.npz")
    command(folder, "train ListNet labeled.npz --normalize minmax -o model.json")
    texts = {
        row["id"]: row["text"]
        for row in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())
    }
    run, qrels = fp.read_run(folder / "candidates.run"), fp.read_qrels(folder / "answers.qrels")
    model = fitted_users(texts, run, qrels)
    arms = [{"name": "words", "ranking": "first stage"}, {"name": "learned"}]
    experiment(folder, "first", arms, users, model)
    command(folder, "clicks describe events/events*.jsonl* --save clicks.parquet")
    command(folder, "clicks propensities clicks.parquet -o propensities.json")
    command(
        folder,
        "train ListNet all.npz --clicks clicks.parquet --queries queries.jsonl "
        "--propensities propensities.json --normalize minmax -o clicked.json",
    )
    print("$ cp model.json previous.json; mv clicked.json model.json")
    shutil.copy(folder / "model.json", folder / "previous.json")
    os.replace(folder / "clicked.json", folder / "model.json")
    arms = [{"name": "learned", "model": "previous.json"}, {"name": "clicked"}]
    experiment(folder, "second", arms, users, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demo", type=Path, help="the folder of `firstpage demo`")
    parser.add_argument("--users", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        walk(options.demo, Path(folder), options.users)


if __name__ == "__main__":
    main()
