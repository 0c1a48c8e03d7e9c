"""How training grows with data and with workers: shards on disk, out of core and on Dask.

    python benchmarks/scale.py [--rows 100000,1000000] [--folder DIR] [--passes 5] [--no-dask]

Documents of 136 features in float32, 100 a query, in full order; a pass is the value and slope of
RankNet on the pairs between the first 10 and the rest, which is what training repeats.  Each size
is written to --folder (544 bytes a document: 5.4 GB for 10,000,000), measured and removed.  Workers
are processes of one thread each; memory is what a process holds after the passes, resident and its
own alone (RSS, USS), beside what it held before it saw data.  With data larger than the machine's
memory a pass is read from disk: `--rows 50000000 --no-dask` is 27 GB.
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
from firstpage.engine.dask_cluster import DaskEngine
from firstpage.engine.engine import Engine
from firstpage.engine.threads import LocalEngine
from firstpage.losses.pairwise import PairwiseLogistic
from firstpage.rankers.sharded.data import ShardedData
from firstpage.scorers.linear import Linear
from firstpage.solvers.lbfgs import LBFGS

FEATURES, DOCS, SHARDS = 136, 100, 20
LOSS = PairwiseLogistic(k=10, pairs="cross")


def made(rows: int, folder: Path) -> fp.Shards:
    """A collection of a known utility, written block by block."""
    recipe = fp.Synthetic(
        queries=rows // DOCS, docs=DOCS, features=FEATURES, labels="order", noise=1.0, seed=0
    )
    return fp.write_shards(recipe.blocks(500), folder, rows=max(DOCS, rows // SHARDS))


def identity(truth: Any) -> Any:
    return truth


def passes(shards: fp.Shards, engine: Engine, count: int) -> tuple[float, Callable[[], None]]:
    """Median seconds of a pass, when all shards are open; and a way to let go of them."""
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


def held() -> tuple[int, int]:
    import psutil

    found = psutil.Process().memory_full_info()
    return int(found.rss), int(found.uss)


def on_workers(shards: fp.Shards, workers: int, count: int) -> tuple[float, str]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
            memory_limit="2GB",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        engine = DaskEngine(client)
        engine._check()  # so that the package is loaded before memory is looked at
        client.run(_loaded)
        before = list(client.run(held).values())
        took, close = passes(shards, engine, count)
        after = list(client.run(held).values())
        close()
    return took, _grown(before, after)


def _grown(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> str:
    most = [max(a[i] - b[i] for a, b in zip(after, before, strict=True)) for i in (0, 1)]
    return " / ".join(f"{n / 2**20:.0f} MB" for n in most)


def _loaded() -> None:
    import firstpage.rankers.sharded.data  # noqa: F401


def measured(rows: int, folder: Path, count: int, dask: bool) -> list[list[str]]:
    start = time.perf_counter()
    shards = made(rows, folder)
    wrote = time.perf_counter() - start
    size = f"{rows:,}"
    lines = [[size, f"written ({rows * FEATURES * 4 / 2**30:.2f} GB)", seconds(wrote), "", ""]]
    single = 0.0
    for threads in (1, 2):
        before = held()
        took, close = passes(shards, LocalEngine(threads), count)
        memory = _grown([before], [held()])
        close()
        single = single or took
        lines.append([size, f"this process, threads={threads}", seconds(took),
                      f"{single / took:.2f} x", memory])  # fmt: skip
    one = 0.0
    for workers in (1, 2) if dask else ():
        took, memory = on_workers(shards, workers, count)
        one = one or took
        lines.append([size, f"Dask, {workers} worker{'s' * (workers > 1)}", seconds(took),
                      f"{one / took:.2f} x", memory])  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="100000,1000000")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--no-dask", action="store_true")
    given = parser.parse_args()
    lines: list[list[str]] = []
    for rows in map(int, given.rows.split(",")):
        folder = Path(tempfile.mkdtemp(dir=given.folder, prefix="firstpage-scale-")) / "shards"
        try:
            lines += measured(rows, folder, given.passes, not given.no_dask)
        finally:
            shutil.rmtree(folder.parent, ignore_errors=True)
    show(
        "A pass over shards: RankNet, top 10 x rest",
        ["documents", "where", "time", "speed-up", "RSS / USS grown by"],
        lines,
        versions("numpy", "distributed"),
    )


if __name__ == "__main__":
    main()
