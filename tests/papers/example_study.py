"""A study for tests, in a module so that worker processes can import its functions."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from firstpage.core.errors import FirstpageWarning
from firstpage.papers.study import run
from firstpage.papers.study.claims import greater
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperProtocol,
    PaperStudy,
    Plot,
    RunPlan,
)


def coin(rng: np.random.Generator, bias: float, log: str = "") -> list[dict]:
    """Return rows of two series, and log the call."""
    if log:
        with Path(log).open("a") as out:
            out.write(f"{bias}\n")
    value = rng.random()
    return [
        {"coin": name, "throws": n, "value": value + bias * n * (name == "ours")}
        for name in ("ours", "theirs")
        for n in (1, 2)
    ]


def query_values(rng: np.random.Generator, fold: int, better: float = 0.0) -> list[dict]:
    """Return random values per query, as of a ranker on a fold."""
    queries = [fold / 10 + better + 0.01 * q + 0.001 * rng.random() for q in range(fold + 1)]
    return [
        {"model": name, "measure": m, "value": float(np.mean(q)), "queries": q}
        for name, q in (("ours", queries), ("theirs", [0.5 * v for v in queries]))
        for m in ("N@1", "N@3")
    ]


def depths(rng: np.random.Generator) -> list[dict]:
    """Return one series over numbers and a string."""
    return [{"model": "ours", "k": k, "value": float(rng.random())} for k in ("full", 1, 10)]


def interrupt_after(rng: np.random.Generator, log: str, after: int) -> list[dict]:
    """Raise KeyboardInterrupt after this number of calls."""
    path = Path(log)
    calls = len(path.read_text().split()) if path.exists() else 0
    if calls == after and not os.environ.get("CONTINUE_RUN"):
        raise KeyboardInterrupt
    path.write_text("x " * (calls + 1))
    return [{"coin": "ours", "throws": 1, "value": float(rng.random())}]


def warn(rng: np.random.Generator) -> list[dict]:
    """Warn, and return one row."""
    warnings.warn("a warning of the package", FirstpageWarning, stacklevel=1)
    return [{"coin": "ours", "throws": 1, "value": 1.0}]


def better(cells: Cells) -> list[Claim]:
    """Return the claim that the series "ours" is higher."""
    return [
        greater(
            "ours is better",
            cells.samples(coin="ours", throws=2),
            cells.samples(coin="theirs", throws=2),
        )
    ]


def entry(*experiments: Experiment, name: str = "figure1", claims=better) -> PaperEntry:
    """Return an entry with a plot and one printed value."""
    plot = ("", Plot("coin", "throws", "heads", ["theirs"]))
    printed = [({"coin": "ours", "throws": 2}, 0.7)]
    return PaperEntry(
        name,
        "Throws <of a coin>",
        "Ours is better.",
        experiments,
        claims,
        [plot],
        paper_values=printed,
        held_equal="the coin's <weight>.",
    )


def study(*entries: PaperEntry) -> PaperStudy:
    """Return a study with these entries."""
    return PaperStudy(
        "example", "A paper", {e.name: e for e in entries}, ("firstpage.papers.study.claims",)
    )


def no_claims(cells: Cells) -> list[Claim]:
    """Return no claims."""
    return []


def end_process(rng: np.random.Generator) -> list[dict]:
    """End the process at once, as the operating system does when memory runs out."""
    os._exit(9)


def folders(rng: np.random.Generator, folder: str, optional_folder: str | None) -> list[dict]:
    """Return the names of the folders."""
    return [
        {
            "coin": f"{Path(folder).name}, {optional_folder and Path(optional_folder).name}",
            "value": 1.0,
        }
    ]


def slow_coin(rng: np.random.Generator, log: str) -> list[dict]:
    """Return one row, after a while, and log the call."""
    time.sleep(0.2)
    with Path(log).open("a") as out:
        out.write("x\n")
    return [{"coin": "ours", "throws": 1, "value": float(rng.random())}]


def run_slowly(cache: str, log: str, runs: int) -> None:
    """Run a study with a slow experiment, to be killed."""
    run.cache_folder = lambda: Path(cache)  # type: ignore[attr-defined]
    slow = entry(Experiment(slow_coin, {"log": log}), claims=no_claims)
    run.run_study(study(slow), [slow], RunPlan(seeds=runs))


def full_entry() -> PaperEntry:
    """Return an entry whose experiment is thinned."""
    thin, full = Experiment(coin, {"bias": 0.1}), Experiment(coin, {"bias": 0.3})
    protocol = PaperProtocol([full], "All of it.", "all coins.")
    return replace(entry(thin), thinned="One coin of three.", paper_protocol=protocol)
