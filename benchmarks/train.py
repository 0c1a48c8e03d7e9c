"""How fast rankers train: against peers on the same data, and against reading the features once.

    python benchmarks/train.py [--quick]

Peers train linear scorers for 30 epochs of Adam (`train_peers.py`); ours trains until it measures
at least what the peer ended with on the validation data.  CPU time of all threads; the peers'
compilation, padding and validation do not count, nor does our compilation, which happens once a
machine.  MQ2008 is looked for in FIRSTPAGE_DATA or ../shared/data.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import firstpage as fp
from common import cpu_seconds, seconds, show, versions
from firstpage.losses.listwise import PlackettLuce
from firstpage.scorers.linear import Linear
from firstpage.solvers.objective import BlockObjective
from train_peers import ridge_cpu, run_peers

QUICK = "--quick" in sys.argv
LOSSES = ("ListNet", "ListMLE", "RankNet", "RankCosine")
BIG = (200_000 if QUICK else 3_800_000, 136)  # WEB30K's size


def real_data() -> Path | None:
    """The unpacked collections, if there are any."""
    if given := os.environ.get("FIRSTPAGE_DATA"):
        return Path(given)
    packed = Path(__file__).parents[2] / "shared" / "data"
    if not (packed / "unpack").exists():
        return None
    target = Path(tempfile.gettempdir()) / "firstpage-bench-data"
    if not (target / "mq2008").is_dir():
        subprocess.run([str(packed / "unpack"), str(target)], check=True, capture_output=True)
    return target


def collections() -> dict[str, tuple[fp.Dataset, fp.Dataset]]:
    """Training and validation data by name."""
    found = {}
    if (folder := real_data()) is not None:
        fold = fp.read_folds(folder / "mq2008")[0]
        found["MQ2008 Fold1"] = (fold.train, fold.valid)
    for queries in (600,) if QUICK else (600, 6000):
        recipe = fp.Synthetic(queries=queries, docs=100, features=46, grades=3, noise=1.0, seed=0)
        data = recipe.dataset()
        data = data.with_features(np.ascontiguousarray(data.X, np.float32))
        cut = queries * 4 // 5
        found[f"synthetic {queries} x 100 x 46"] = (data[:cut], data[cut:])
    return found


def reach(name: str, train: fp.Dataset, valid: fp.Dataset, goal: float) -> tuple[float, int, float]:
    """CPU seconds, iterations and NDCG@10 of the shortest fit that reaches the goal.

    If the optimum itself stays below the goal, the whole fit is timed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = fp.ranker(name).fit(train, valid=valid)
        curve = [step.measure for step in whole.history_]
        steps = next((i for i, v in enumerate(curve, 1) if v is not None and v >= goal), None)
        made = fp.ranker(name, solver=f"lbfgs(max_iter={steps or 200})")
        cpu = cpu_seconds(lambda: made.fit(train), repeats=9)
    return cpu, steps or whole.n_iter_, made.score(valid)


def against_peers() -> None:
    for title, (train, valid) in collections().items():
        arrays = [(np.asarray(d.X), d.y, d.offsets) for d in (train, valid)]

        def ndcg(scores: Any, valid: fp.Dataset = valid) -> float:
            return fp.evaluate(np.asarray(scores, float), valid, measures="NDCG@10")["NDCG@10"]

        ridge = ridge_cpu(arrays[0])
        rows = [["scikit-learn Ridge", "", seconds(ridge), "", "", ""]]
        for loss in LOSSES:
            runs = [] if loss == "RankCosine" else run_peers(loss, *arrays, ndcg)
            runs = sorted(runs, key=lambda r: r.cpu)
            for run in runs:
                goal = run.ndcg[-1]
                cpu, steps, got = reach(loss, train, valid, goal)
                rows.append(
                    [f"{loss}: {run.peer}", f"{goal:.4f}", seconds(run.cpu), seconds(cpu),
                     f"{got:.4f} ({steps} it.)", f"{run.cpu / cpu:.1f}"]
                )  # fmt: skip
            if loss == "RankCosine" and title.startswith("MQ2008"):
                made = fp.RankCosine()
                cpu = cpu_seconds(lambda made=made, train=train: made.fit(train), repeats=9)
                rows.append(
                    ["RankCosine: no peer has it", "", "", seconds(cpu),
                     f"{made.score(valid):.4f} (optimum)", ""]
                )  # fmt: skip
        head = ["loss and peer", "its NDCG@10", "its CPU", "our CPU", "our NDCG@10", "times less"]
        show(f"{title}: CPU to reach the peer's final NDCG@10 on validation data", head, rows)


def anonymous() -> int:
    """Bytes of memory that are this process's own, without what is mapped from files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def one_pass() -> None:
    """A whole pass of top-10 ListMLE over memory-mapped features, beside reading them once."""
    n, d = BIG
    lengths = np.full(n // 120, 120)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    with tempfile.TemporaryDirectory() as folder:
        X = np.lib.format.open_memmap(Path(folder) / "X.npy", "w+", np.float32, (n, d))
        rng = np.random.default_rng(0)
        for lo in range(0, n, 100_000):
            X[lo : lo + 100_000] = rng.random((min(100_000, n - lo), d), np.float32)
        X.flush()
        X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        y = rng.choice(5, n, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(np.float64)
        data = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(len(lengths)), lengths))
        rows = []
        reads = [_timed(lambda: float(X.sum())) for _ in range(5)]
        wall, cpu = (statistics.median(v) for v in zip(*reads, strict=True))
        rows.append(["one read: X.sum()", seconds(wall), "1.00", seconds(cpu), "1.00", ""])
        for threads in (1, None):
            before = anonymous()
            made = BlockObjective(
                PlackettLuce(10), Linear().bind(data.X), data.truth, 4 * d, threads=threads
            )
            w = np.full(d, 0.01)
            made(w)
            held = (anonymous() - before + data.y.nbytes + data.offsets.nbytes) / X.nbytes
            times = [_timed(lambda made=made, w=w: made(w)) for _ in range(5)]
            a, b = (statistics.median(v) for v in zip(*times, strict=True))
            name = f"one pass of top-10 ListMLE, {'all' if threads is None else threads} thread(s)"
            rows.append(
                [name, seconds(a), f"{a / wall:.2f}", seconds(b), f"{b / cpu:.2f}", f"{held:.1%}"]
            )
    head = ["", "wall", "reads", "CPU", "reads", "memory beside X"]
    title = f"{n:,} documents x {d} float32 features, memory-mapped ({n * d * 4 / 1e9:.2f} GB)"
    show(title, head, rows)


def _timed(job: Any) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - wall, time.process_time() - cpu


def growth() -> None:
    """Nanoseconds a document of a pass, at 1x, 10x and 100x."""
    rows = []
    for name in (
        "ListNet",
        "ListMLE(k=10)",
        "RankNet",
        "RankNet(k=10)",
        "FocusedNet(k=10, ties=random)",
    ):
        cells = [name]
        for queries in (60, 600) if QUICK else (60, 600, 6000):
            data = fp.Synthetic(queries=queries, docs=100, features=46, grades=3, seed=0).dataset()
            X = np.ascontiguousarray(data.X, np.float32)
            ranker = fp.ranker(name)
            made = BlockObjective(
                ranker._loss(), Linear().bind(X), ranker._truth(data.truth), 4 * 46, threads=1
            )
            cpu = cpu_seconds(lambda made=made: made(np.full(46, 0.01)), 9)
            cells.append(f"{cpu / data.n_docs * 1e9:.0f}")
        rows.append(cells)
    sizes = ("6,000", "60,000") if QUICK else ("6,000", "60,000", "600,000")
    show(
        "CPU nanoseconds a document and pass, by documents (lists of 100)",
        ["", *sizes],
        rows,
    )


def main() -> None:
    print(versions("firstpage", "numpy", "numba", "scipy", "scikit-learn", "rax", "jax"))
    against_peers()
    growth()
    one_pass()


if __name__ == "__main__":
    main()
