"""A made-up study, in a module so that other processes find its work."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from firstpage.errors import FirstpageWarning
from firstpage.papers.study.claims import greater
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Study, Work


def coin(rng: np.random.Generator, bias: float, log: str = "") -> list[dict]:
    """Two lines; writes down that it was called."""
    if log:
        with Path(log).open("a") as out:
            out.write(f"{bias}\n")
    value = rng.random()
    return [
        {"coin": name, "throws": n, "value": value + bias * n * (name == "ours")}
        for name in ("ours", "theirs")
        for n in (1, 2)
    ]


def asked(rng: np.random.Generator, fold: int, better: float = 0.0) -> list[dict]:
    """A value a query, some by chance, as of a ranker on a fold."""
    queries = [fold / 10 + better + 0.01 * q + 0.001 * rng.random() for q in range(fold + 1)]
    return [
        {"model": name, "measure": m, "value": float(np.mean(q)), "queries": q}
        for name, q in (("ours", queries), ("theirs", [0.5 * v for v in queries]))
        for m in ("N@1", "N@3")
    ]


def depths(rng: np.random.Generator) -> list[dict]:
    """A line over numbers and a word."""
    return [{"model": "ours", "k": k, "value": float(rng.random())} for k in ("full", 1, 10)]


def stops_at(rng: np.random.Generator, log: str, after: int) -> list[dict]:
    """Ends like a person's Ctrl-C once it was called so often."""
    path = Path(log)
    calls = len(path.read_text().split()) if path.exists() else 0
    if calls == after and not os.environ.get("GO_ON"):
        raise KeyboardInterrupt
    path.write_text("x " * (calls + 1))
    return [{"coin": "ours", "throws": 1, "value": float(rng.random())}]


def noting(rng: np.random.Generator) -> list[dict]:
    warnings.warn("a word to a person", FirstpageWarning, stacklevel=1)
    return [{"coin": "ours", "throws": 1, "value": 1.0}]


def better(cells: Cells) -> list[Claim]:
    return [
        greater(
            "ours is better", cells.at(coin="ours", throws=2), cells.at(coin="theirs", throws=2)
        )
    ]


def entry(*works: Work, name: str = "figure1", claims=better) -> Entry:
    drawing = ("", Drawing("coin", "throws", "heads", ["theirs"]))
    said = [({"coin": "ours", "throws": 2}, 0.7)]
    return Entry(
        name, "Throws <of a coin>", "Ours is better.", works, claims, [drawing], paper=said,
        held_equal="the coin's <weight>.",
    )  # fmt: skip


def study(*entries: Entry) -> Study:
    return Study(
        "made-up", "A paper", {e.name: e for e in entries}, ("firstpage.papers.study.claims",)
    )


def nothing(cells: Cells) -> list[Claim]:
    return []


def dies(rng: np.random.Generator) -> list[dict]:
    """As a process does that the system ends for want of memory."""
    os._exit(9)


def folders(rng: np.random.Generator, folder: str, beside: str | None) -> list[dict]:
    """Says which folders it was given."""
    return [{"coin": f"{Path(folder).name}, {beside and Path(beside).name}", "value": 1.0}]
