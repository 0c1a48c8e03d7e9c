"""Time of passes and whole fits on a GPU, relative to the time of reading the features.

    python benchmarks/device.py [--rows N]

Synthetic data have the size of WEB30K: 31,531 queries, 3,771,125 documents, 136 features and five
grades.

Held equal: GPU and CPU compute the same objective at the same parameters; each line reports the
relative difference of value and gradient.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import firstpage as fp
from firstpage.learning.losses import PairwiseLogistic, PlackettLuce
from firstpage.learning.scorers import Linear
from firstpage.learning.solvers import BlockObjective, device_objective, torch

QUERIES, ROWS, FEATURES = 31_531, 3_771_125, 136
GRADE_FRACTIONS = (0.52, 0.32, 0.13, 0.02, 0.01)  # about those of MSLR


def web30k(rows: int) -> fp.Dataset:
    """Return lists with lengths like those of WEB30K; labels are noisy functions of features."""
    rng = np.random.default_rng(0)
    queries = max(1, QUERIES * rows // ROWS)
    lengths = np.clip(rng.lognormal(4.5, 0.75, queries), 1, 1251)
    lengths = np.maximum(1, lengths * rows / lengths.sum()).astype(np.int64)
    n = int(lengths.sum())
    X = rng.standard_normal((n, FEATURES), np.float32)
    utility = X[:, :40] @ rng.normal(size=40).astype(np.float32) + 6 * rng.standard_normal(n)
    y = np.searchsorted(np.quantile(utility, np.cumsum(GRADE_FRACTIONS)[:-1]), utility)
    return fp.Dataset.from_arrays(X, y, np.repeat(np.arange(queries), lengths))


def device_time(run: Callable[[], object], repeats: int = 20) -> float:
    """Return the median time on the device in milliseconds."""
    t = torch()
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        start, end = t.cuda.Event(enable_timing=True), t.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        t.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return median(times)


def copy_time(data: fp.Dataset) -> float:
    """Return the milliseconds of a copy of the features on the device (a read and a write)."""
    X = torch().tensor(data.X, device="cuda")
    other = torch().empty_like(X)
    return device_time(lambda: other.copy_(X))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    rows = parser.parse_args().rows
    data, t = web30k(rows), torch()
    print(f"{t.cuda.get_device_name()}: {len(data):,} queries, {data.n_docs:,} documents")
    read_time = copy_time(data) / 2
    speed = data.X.nbytes * 1e-9 / read_time
    print(f"reading the features takes {read_time:.3f} ms ({speed:.2f} TB/s)")
    top_10 = data.with_labels(data.truth.top_k(10, seed=0))
    cases = [
        ("ListMLE(k=10), grades", PlackettLuce(10), data),
        ("ListMLE, top-10 truth", PlackettLuce(), top_10),
        ("RankNet, top 10 x rest, top-10 truth", PairwiseLogistic(10, pairs="cross"), top_10),
        ("RankNet, top 10 x rest, grades", PairwiseLogistic(10, pairs="cross"), data),
        ("RankNet, all pairs of grades", PairwiseLogistic(), data),
    ]
    for name, loss, labeled in cases:
        on_cpu = BlockObjective(loss, Linear().bind(labeled.X), labeled.truth, 4 * FEATURES)
        on_gpu = device_objective(on_cpu, labeled.truth, "cuda")
        w = t.randn(FEATURES, device="cuda") * 0.1
        pass_time = device_time(lambda f=on_gpu, w=w: f._pass(w))
        params = w.double().cpu().numpy()
        value, gradient = on_gpu(params)
        start = time.perf_counter()
        cpu_value, cpu_gradient = on_cpu(params)
        cpu_time = time.perf_counter() - start
        value_error = abs(value / cpu_value - 1)
        gradient_error = np.abs(gradient - cpu_gradient).max() / np.abs(cpu_gradient).max()
        print(
            f"{name}: a pass takes {pass_time:.3f} ms, {pass_time / read_time:.2f} times a read; "
            f"relative difference from the CPU (a pass of {cpu_time:.2f} s): value "
            f"{value_error:.1e}, gradient {gradient_error:.1e}"
        )
    for ranker in (fp.ListMLE(k=10, device="cuda"), fp.RankNet(k=10, device="cuda")):
        for fit in ("first fit", "second fit"):
            start = time.perf_counter()
            ranker.fit(data)
            duration = time.perf_counter() - start
            print(f"{ranker}, {fit}: {duration:.2f} s, {ranker.n_iter_} iterations")
    small = data[: len(data) // 20]
    cpu_scores = fp.ListMLE(k=10).fit(small).predict(small)
    gpu_scores = fp.ListMLE(k=10, device="cuda").fit(small).predict(small)
    difference = np.abs(gpu_scores - cpu_scores).max()
    print(
        "scores of fits on a twentieth of the queries: GPU and CPU differ by at most "
        f"{difference:.1e} in a range of {np.ptp(cpu_scores):.1f}"
    )


if __name__ == "__main__":
    main()
