"""How fast boosting is: whole fits, and as data grow.

    python benchmarks/boost.py [--quick]

No peer is compared: RankLib, the only one with the same methods, comes from no package registry
that a benchmark can install from.  CPU time of all threads, without our compilation, which happens
once per machine.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import firstpage as fp
from common import cpu_seconds, seconds, show, versions

QUICK = "--quick" in sys.argv
FITS = {
    "RankBoost, 300 rounds": fp.RankBoost(rounds=300, stall=None),
    "RankBoost, 300 rounds, features": fp.RankBoost(rounds=300, stall=None, weak="features"),
    "AdaRank, 500 rounds, every step taken": fp.AdaRank(rounds=500, halvings=None, stall=None),
    "AdaRank, up to 500 rounds": fp.AdaRank(rounds=500),
    "AdaRank.MAP, up to 500 rounds": fp.AdaRank(maximize="AP", rounds=500),
    "FocusedBoost, up to 300 rounds": fp.FocusedBoost(rounds=300),
}


def synthetic(queries: int, docs: int | str = 100) -> fp.Dataset:
    recipe = fp.Synthetic(queries=queries, docs=docs, features=46, grades=3, noise=1.0, seed=0)
    data = recipe.dataset()
    return data.with_features(np.ascontiguousarray(data.X, np.float32))


def whole_fits() -> None:
    data = synthetic(600)
    rows = []
    for name, made in FITS.items():
        cpu = cpu_seconds(lambda made=made: made.fit(data), repeats=3)
        rows.append([name, str(made.n_iter_), seconds(cpu)])
    show("Whole fits", ["600 x 100 x 46", "rounds", "CPU"], rows)


def growth() -> None:
    """CPU and wall time of 50 rounds on data like MQ2008: 784 queries of some 19 documents."""
    rows = []
    for times in (1, 10) if QUICK else (1, 10, 100):
        data = synthetic(784 * times, "uniform(6, 33)")
        cells = [f"{times}x: {data.n_docs:,}"]
        for made in (
            fp.RankBoost(rounds=50, stall=None),
            fp.AdaRank(rounds=50, halvings=None, stall=None),
            fp.FocusedBoost(rounds=50, weak="stumps(bins=16)", halvings=None, stall=None),
        ):
            if times == 1:
                made.fit(data)
            cpu, wall = time.process_time(), time.perf_counter()
            made.fit(data)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            each = cpu / data.n_docs / 50 * 1e9
            cells.append(f"{seconds(cpu)} ({seconds(wall)}), {each:.0f} ns")
        rows.append(cells)
    head = ["documents", "RankBoost", "AdaRank", "FocusedBoost(bins=16)"]
    note = "CPU (wall), CPU nanoseconds per document and round."
    show("50 rounds as data grow, 46 features", head, rows, note)


def main() -> None:
    print(versions("firstpage", "numpy", "numba", "scikit-learn"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole_fits()
        growth()


if __name__ == "__main__":
    main()
