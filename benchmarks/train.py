"""Speed of training linear rankers, compared with other libraries and with reading the features.

    python benchmarks/train.py [--quick]

The other libraries (peers) train for 30 epochs of Adam (`train_peers.py`).  Firstpage trains until
its NDCG@10 on the validation data is at least the final value of the peer.  MQ2008 is read from
FIRSTPAGE_DATA or ../shared/data.

Held equal: training and validation data, the loss, linear scores, and the NDCG@10 to reach.  Times
are CPU times of all threads; compilation, and the padding and validation of the peers, are not
timed.  Not equal: the solver, which is each library's own choice.
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
from firstpage.learning.losses import PlackettLuce
from firstpage.learning.rankers.fit.parameters import truth_order
from firstpage.learning.scorers import Linear
from firstpage.learning.solvers import BlockObjective
from train_peers import ridge_cpu, run_peers

QUICK = "--quick" in sys.argv
LOSSES = ("ListNet", "ListMLE", "RankNet", "RankCosine")
LARGE = (200_000 if QUICK else 3_800_000, 136)  # documents and features, as in WEB30K


def real_data() -> Path | None:
    """Return the folder with the LETOR data sets, or None if there is none."""
    if folder := os.environ.get("FIRSTPAGE_DATA"):
        return Path(folder)
    packed = Path(__file__).parents[2] / "shared" / "data"
    if not (packed / "unpack").exists():
        return None
    target = Path(tempfile.gettempdir()) / "firstpage-bench-data"
    if not (target / "mq2008").is_dir():
        subprocess.run([str(packed / "unpack"), str(target)], check=True, capture_output=True)
    return target


def collections() -> dict[str, tuple[fp.Dataset, fp.Dataset]]:
    """Return training and validation data by name."""
    datasets = {}
    if (folder := real_data()) is not None:
        fold = fp.read_folds(folder / "mq2008")[0]
        datasets["MQ2008 Fold1"] = (fold.train, fold.valid)
    for queries in (600,) if QUICK else (600, 6000):
        generator = fp.Synthetic(
            queries=queries, docs=100, features=46, grades=3, noise=1.0, seed=0
        )
        data = generator.dataset()
        data = data.with_features(np.ascontiguousarray(data.X, np.float32))
        cut = queries * 4 // 5
        datasets[f"synthetic {queries} x 100 x 46"] = (data[:cut], data[cut:])
    return datasets


def shortest_fit(
    name: str, train: fp.Dataset, valid: fp.Dataset, target: float
) -> tuple[float, int, float]:
    """Return CPU seconds, iterations and NDCG@10 of the shortest fit that reaches the target.

    If the optimum itself is below the target, the whole fit is timed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full_fit = fp.ranker(name).fit(train, valid=valid)
        curve = [step.measure for step in full_fit.history_]
        steps = next((i for i, v in enumerate(curve, 1) if v is not None and v >= target), None)
        ranker = fp.ranker(name, solver=f"lbfgs(max_iter={steps or 200})")
        cpu = cpu_seconds(lambda: ranker.fit(train), repeats=9)
    return cpu, steps or full_fit.n_iter_, ranker.score(valid)


def compare_with_peers() -> None:
    """Print the CPU time to reach the final NDCG@10 of each peer."""
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
                target = run.ndcg[-1]
                cpu, steps, reached = shortest_fit(loss, train, valid, target)
                rows.append(
                    [
                        f"{loss}: {run.peer}",
                        f"{target:.4f}",
                        seconds(run.cpu),
                        seconds(cpu),
                        f"{reached:.4f} ({steps} iterations)",
                        f"{run.cpu / cpu:.1f}",
                    ]
                )
            if loss == "RankCosine" and title.startswith("MQ2008"):
                ranker = fp.RankCosine()
                cpu = cpu_seconds(lambda r=ranker, train=train: r.fit(train), repeats=9)
                rows.append(
                    [
                        "RankCosine: no peer has it",
                        "",
                        "",
                        seconds(cpu),
                        f"{ranker.score(valid):.4f} (optimum)",
                        "",
                    ]
                )
        head = [
            "loss and peer",
            "NDCG@10 of the peer",
            "CPU of the peer",
            "CPU of Firstpage",
            "NDCG@10 of Firstpage",
            "ratio",
        ]
        show(
            f"{title}: CPU time to reach the final NDCG@10 of the peer on validation data",
            head,
            rows,
        )


def anonymous_memory() -> int:
    """Return the resident memory of this process in bytes, without memory-mapped files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def one_pass() -> None:
    """Print the time of a pass of top-10 ListMLE over memory-mapped features, and of one read."""
    n, d = LARGE
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
            before = anonymous_memory()
            objective = BlockObjective(
                PlackettLuce(10), Linear().bind(data.X), data.truth, 4 * d, threads=threads
            )
            w = np.full(d, 0.01)
            objective(w)
            memory = (anonymous_memory() - before + data.y.nbytes + data.offsets.nbytes) / X.nbytes
            times = [_timed(lambda f=objective, w=w: f(w)) for _ in range(5)]
            a, b = (statistics.median(v) for v in zip(*times, strict=True))
            name = f"one pass of top-10 ListMLE, {'all' if threads is None else threads} thread(s)"
            rows.append(
                [name, seconds(a), f"{a / wall:.2f}", seconds(b), f"{b / cpu:.2f}", f"{memory:.1%}"]
            )
    head = [
        "",
        "wall",
        "relative to one read",
        "CPU",
        "relative to one read",
        "memory besides X, relative to X",
    ]
    title = f"{n:,} documents x {d} float32 features, memory-mapped ({n * d * 4 / 1e9:.2f} GB)"
    show(title, head, rows)


def _timed(job: Any) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of a job."""
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - wall, time.process_time() - cpu


def growth() -> None:
    """Print CPU nanoseconds per document and pass for three sizes."""
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
            objective = BlockObjective(
                ranker.compose().loss,
                Linear().bind(X),
                truth_order(ranker)(data.truth),
                4 * 46,
                threads=1,
            )
            cpu = cpu_seconds(lambda f=objective: f(np.full(46, 0.01)), 9)
            cells.append(f"{cpu / data.n_docs * 1e9:.0f}")
        rows.append(cells)
    sizes = ("6,000", "60,000") if QUICK else ("6,000", "60,000", "600,000")
    show(
        "CPU nanoseconds per document and pass, by number of documents (lists of 100)",
        ["ranker", *sizes],
        rows,
    )


def list_growth() -> None:
    """Print CPU nanoseconds per document and sampled ranking (LambdaRank: and pass) for one query
    of growing length; scores are random, so that no documents are tied."""
    lengths = (100, 1_000, 10_000) if QUICK else (100, 1_000, 10_000, 100_000)
    rankers = [
        fp.PLRank(k=10),
        fp.PLRank(k=10, measure="ERR"),
        fp.PLRank(k=None, measure="NDCG"),
        fp.LambdaRank(k=10),
        fp.LambdaRank(k=10, measure="AP"),
    ]
    rows = []
    for ranker in rankers:
        cells = [str(ranker)]
        loss = ranker.compose().loss
        for n in lengths:
            rng = np.random.default_rng(0)
            labels = rng.choice(5, n, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(float)
            truth = fp.Dataset.from_arrays(np.zeros((n, 1)), labels, np.ones(n)).truth
            scores, values, grad = rng.normal(size=n), np.empty(1), np.empty(n)
            run = loss.target(truth).bind_slice(0, 1, scores, values, grad)
            repeats = max(200_000 // n // getattr(loss, "samples", 1), 1)
            cpu = cpu_seconds(lambda f=run, r=repeats: [f() for _ in range(r)], 3) / repeats
            cells.append(f"{cpu / n / getattr(loss, 'samples', 1) * 1e9:.1f}")
        rows.append(cells)
    show(
        "CPU nanoseconds per document, sampled ranking and pass, by length of the list",
        ["ranker", *(f"{n:,}" for n in lengths)],
        rows,
    )


def main() -> None:
    print(versions("firstpage", "numpy", "numba", "scipy", "scikit-learn", "rax", "jax"))
    compare_with_peers()
    growth()
    list_growth()
    one_pass()


if __name__ == "__main__":
    main()
