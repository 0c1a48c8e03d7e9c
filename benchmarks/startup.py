"""CPU and wall-clock time of small commands as processes, with linked kernels and with Numba.

    python benchmarks/startup.py [repeats]

Budget on a quiet machine: `--help` and `--version` .2 s, `evaluate` of a small file .5 s, `train`
1 s more than `import sklearn.base`.  Every command runs once before it is timed, so that compiled
code and bytecode are stored.  Three imports alone are timed too: NumPy and click are the least that
a command takes, scikit-learn the least that training takes, and Numba decides whether the linker of
compiled kernels is needed.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import firstpage as fp
from common import show, versions
from firstpage.data.formats import to_qrels, to_run

IMPORTS = ("numpy, click", "sklearn.base", "numba")
COMMANDS = {  # the same command with Numba, or not
    "--help": False,
    "--version": False,
    "evaluate data.txt --scores data.scores": True,
    "evaluate data.qrels data.run": True,
    "evaluate data.txt --model model.json": True,
    "rank model.json data.txt -o ranked.scores": True,
    "train ListNet data.txt -o trained.json": True,
}


def write_files(folder: Path) -> None:
    """Write 50 queries x 20 documents x 10 features, judgments, scores, a run and a model."""
    data = fp.Synthetic(queries=50, docs=20, features=10, seed=0).dataset()
    fp.write(data, folder / "data.txt")
    fp.write_qrels(to_qrels(data), folder / "data.qrels")
    fp.write_scores(data.X[:, 0], folder / "data.scores")
    fp.write_run(to_run(data, data.X[:, 0]), folder / "data.run")
    fp.ListNet().fit(data).save(folder / "model.json")


def timed(arguments: list[str], folder: Path, kernels: str) -> tuple[float, float]:
    """Return the CPU time and the wall-clock time of a Python process."""
    environment = {**os.environ, "FIRSTPAGE_KERNELS": kernels}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, check=True, capture_output=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def row(name: str, arguments: list[str], folder: Path, kernels: str, repeats: int) -> list[str]:
    """Return a row of the table: medians and the least CPU time, after a run that is not timed."""
    cpu, wall = zip(
        *(timed(arguments, folder, kernels) for _ in range(repeats + 1)),
        strict=True,
    )
    values = (statistics.median(cpu[1:]), min(cpu[1:]), statistics.median(wall[1:]))
    return [name, kernels, *(f"{value:.2f} s" for value in values)]


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(versions("numpy", "numba", "llvmlite", "click"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        rows = [
            row(f"import {names}", ["-c", f"import {names}"], folder, "", repeats)
            for names in IMPORTS
        ]
        for line, uses_kernels in COMMANDS.items():
            for kernels in ("linked", "numba") if uses_kernels else ("linked",):
                arguments = ["-m", "firstpage", *line.split()]
                rows.append(row(line, arguments, folder, kernels, repeats))
    head = ["command", "kernels", "CPU, median", "CPU, least", "wall, median"]
    show("Small commands as processes", head, rows)


if __name__ == "__main__":
    main()
