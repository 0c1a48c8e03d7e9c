"""Time and memory of training on shards, by number of documents, threads and Dask workers.

    python benchmarks/scale.py [--rows 100000,1000000] [--folder DIR] [--passes 5] [--no-dask]

Documents have 136 float32 features, 100 documents per query, and labels in full order.  A pass
computes the value and the gradient of RankNet on the pairs of the first 10 documents and the rest;
training repeats it.  Each size is written to --folder (544 bytes per document: 5.4 GB for
10,000,000), measured and removed.  Workers are processes with one thread each.  Memory is the
growth of the resident and of the unique memory of a process (RSS, USS) over the passes.  Data
larger than the memory of the machine are read from disk in each pass: 27 GB with
`--rows 50000000 --no-dask`.

Held equal: the rows of one size have the same shards, loss and parameters; shards are open before
the timing.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import firstpage as fp
from common import seconds, show, versions
from firstpage.core.engine import DaskEngine, Engine, LocalEngine
from firstpage.learning.losses import PairwiseLogistic
from firstpage.learning.rankers import ShardedData
from firstpage.learning.scorers import Linear
from firstpage.learning.solvers import LBFGS

FEATURES, DOCS, SHARDS = 136, 100, 20
LOSS = PairwiseLogistic(k=10, pairs="cross")


def write_shards(rows: int, folder: Path) -> fp.Shards:
    """Write synthetic documents block by block."""
    generator = fp.Synthetic(
        queries=rows // DOCS, docs=DOCS, features=FEATURES, labels="order", noise=1.0, seed=0
    )
    return fp.write_shards(generator.blocks(500), folder, rows=max(DOCS, rows // SHARDS))


def identity(truth: Any) -> Any:
    """Return the truth unchanged; workers import this function."""
    return truth


def time_passes(shards: fp.Shards, engine: Engine, count: int) -> tuple[float, Callable[[], None]]:
    """Return the median seconds of a pass over open shards, and a function that closes them."""
    data, scorer = ShardedData.from_shards(shards, engine, None, identity, True), Linear()
    objective = data.objective(LOSS, scorer, data.bind(scorer), 0.01, LBFGS(), None)
    w = np.random.default_rng(0).normal(size=FEATURES) / 10
    objective(w)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        objective(w)
        times.append(time.perf_counter() - start)
    return statistics.median(times), data.close


def process_memory() -> tuple[int, int]:
    """Return the resident and the unique memory of this process in bytes."""
    import psutil

    memory = psutil.Process().memory_full_info()
    return int(memory.rss), int(memory.uss)


def time_on_workers(shards: fp.Shards, workers: int, count: int) -> tuple[float, str]:
    """Return the median seconds of a pass on Dask workers, and the growth of their memory."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit="2GB",
        ) as cluster,
        Client(cluster) as client,
    ):
        engine = DaskEngine(client)
        engine._check()  # loads the package before memory is measured
        client.run(_import_package)
        before = list(client.run(process_memory).values())
        duration, close = time_passes(shards, engine, count)
        after = list(client.run(process_memory).values())
        close()
    return duration, _growth(before, after)


def _growth(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> str:
    """Return the largest growth of RSS and USS of a process."""
    largest = [max(a[i] - b[i] for a, b in zip(after, before, strict=True)) for i in (0, 1)]
    return " / ".join(f"{n / 2**20:.0f} MB" for n in largest)


def _import_package() -> None:
    import firstpage.learning.rankers.sharded.data  # noqa: F401


def measure(rows: int, folder: Path, count: int, dask: bool) -> list[list[str]]:
    """Return a row per engine for one number of documents."""
    start = time.perf_counter()
    shards = write_shards(rows, folder)
    write_time = time.perf_counter() - start
    size = f"{rows:,}"
    table = [[size, f"write {rows * FEATURES * 4 / 2**30:.2f} GB", seconds(write_time), "", ""]]
    single_thread = 0.0
    for threads in (1, 2):
        before = process_memory()
        duration, close = time_passes(shards, LocalEngine(threads), count)
        memory = _growth([before], [process_memory()])
        close()
        single_thread = single_thread or duration
        engine = f"this process, {threads} thread{'s' * (threads > 1)}"
        speedup = f"{single_thread / duration:.2f}"
        table.append([size, engine, seconds(duration), speedup, memory])
    single_worker = 0.0
    for workers in (1, 2) if dask else ():
        duration, memory = time_on_workers(shards, workers, count)
        single_worker = single_worker or duration
        table.append(
            [
                size,
                f"Dask, {workers} worker{'s' * (workers > 1)}",
                seconds(duration),
                f"{single_worker / duration:.2f}",
                memory,
            ]
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="100000,1000000")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--no-dask", action="store_true")
    options = parser.parse_args()
    table: list[list[str]] = []
    for rows in map(int, options.rows.split(",")):
        folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="firstpage-scale-")) / "shards"
        try:
            table += measure(rows, folder, options.passes, not options.no_dask)
        finally:
            shutil.rmtree(folder.parent, ignore_errors=True)
    show(
        "A pass over shards: RankNet, pairs of the top 10 and the rest",
        ["documents", "engine", "wall-clock time", "speedup", "growth of RSS / USS"],
        table,
        versions("numpy", "distributed"),
    )


if __name__ == "__main__":
    main()
