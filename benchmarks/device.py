"""Passes and whole fits on a GPU, beside the time in which it could copy the features.

WEB30K's size: 31,531 queries, 3,771,125 documents, 136 features, five grades.  To be run where the
GPU is: python benchmarks/device.py [--rows N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import firstpage as fp
from firstpage.losses.listwise import PlackettLuce
from firstpage.losses.pairwise import PairwiseLogistic
from firstpage.scorers.linear import Linear
from firstpage.solvers.gpu.libraries import torch
from firstpage.solvers.gpu.objective import device_objective
from firstpage.solvers.objective import BlockObjective

QUERIES, ROWS, FEATURES = 31_531, 3_771_125, 136
GRADES = (0.52, 0.32, 0.13, 0.02, 0.01)  # about as in MSLR


def web30k(rows: int) -> fp.Dataset:
    """Lists as long as there; labels by a utility that the features tell in part."""
    rng = np.random.default_rng(0)
    queries = max(1, QUERIES * rows // ROWS)
    lengths = np.clip(rng.lognormal(4.5, 0.75, queries), 1, 1251)
    lengths = np.maximum(1, lengths * rows / lengths.sum()).astype(np.int64)
    n = int(lengths.sum())
    X = rng.standard_normal((n, FEATURES), np.float32)
    utility = X[:, :40] @ rng.normal(size=40).astype(np.float32) + 6 * rng.standard_normal(n)
    y = np.searchsorted(np.quantile(utility, np.cumsum(GRADES)[:-1]), utility)
    return fp.Dataset.from_arrays(X, y, np.repeat(np.arange(queries), lengths))


def timed(run: Callable[[], object], repeats: int = 20) -> float:
    """Milliseconds on the device, the median."""
    t = torch()
    for _ in range(3):
        run()
    found = []
    for _ in range(repeats):
        a, b = t.cuda.Event(enable_timing=True), t.cuda.Event(enable_timing=True)
        a.record()
        run()
        b.record()
        t.cuda.synchronize()
        found.append(a.elapsed_time(b))
    return median(found)


def copied(data: fp.Dataset) -> float:
    """Milliseconds to copy the features inside the device: they are read and written."""
    X = torch().tensor(data.X, device="cuda")
    other = torch().empty_like(X)
    return timed(lambda: other.copy_(X))


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--rows", type=int, default=ROWS)
    rows = given.parse_args().rows
    data, t = web30k(rows), torch()
    print(f"{t.cuda.get_device_name()}: {len(data):,} queries, {data.n_docs:,} documents")
    read = copied(data) / 2
    speed = data.X.nbytes * 1e-9 / read
    print(f"features are read at copy speed in {read:.3f} ms ({speed:.2f} TB/s)")
    strict = data.with_labels(data.truth.top_k(10, seed=0))
    cases = [
        ("ListMLE(k=10), grades", PlackettLuce(10), data),
        ("ListMLE, top-10 truth", PlackettLuce(), strict),
        ("RankNet T x F, top-10 truth", PairwiseLogistic(10, pairs="cross"), strict),
        ("RankNet T x F, grades", PairwiseLogistic(10, pairs="cross"), data),
        ("RankNet, all pairs of grades", PairwiseLogistic(), data),
    ]
    for name, loss, kind in cases:
        host = BlockObjective(loss, Linear().bind(kind.X), kind.truth, 4 * FEATURES)
        there = device_objective(host, kind.truth, "cuda")
        w = t.randn(FEATURES, device="cuda") * 0.1
        one = timed(lambda there=there, w=w: there._pass(w))
        params = w.double().cpu().numpy()
        value, slope = there(params)
        started = time.perf_counter()
        wanted = host(params)
        on_cpu = time.perf_counter() - started
        apart = (
            abs(value / wanted[0] - 1),
            np.abs(slope - wanted[1]).max() / np.abs(wanted[1]).max(),
        )
        print(
            f"{name}: a pass {one:.3f} ms = {one / read:.2f} x the read; from the CPU's numbers "
            f"(a pass of {on_cpu:.2f} s): value {apart[0]:.1e}, slope {apart[1]:.1e}"
        )
    for made in (fp.ListMLE(k=10, device="cuda"), fp.RankNet(k=10, device="cuda")):
        for again in ("first", "again"):
            started = time.perf_counter()
            made.fit(data)
            spent = time.perf_counter() - started
            print(f"{made}.fit, {again}: {spent:.2f} s, {made.n_iter_} iterations")
    small = data[: len(data) // 20]
    here = fp.ListMLE(k=10).fit(small).predict(small)
    apart = np.abs(fp.ListMLE(k=10, device="cuda").fit(small).predict(small) - here).max()
    print(
        f"scores of a fit on a twentieth, device and CPU: {apart:.1e} apart of {np.ptp(here):.1f}"
    )


if __name__ == "__main__":
    main()
