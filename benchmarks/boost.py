"""Speed of boosted rankers: CPU time of whole fits, and growth with the number of documents.

    python benchmarks/boost.py [--quick]

No other library is compared: RankLib, the only one with these methods, is in no package registry.
Times are CPU times of all threads, without compilation, which happens once per machine.

Held equal: in each table all rankers have the same data and the same limit of rounds per row.
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
    """Return synthetic data with 46 float32 features and three grades."""
    generator = fp.Synthetic(queries=queries, docs=docs, features=46, grades=3, noise=1.0, seed=0)
    data = generator.dataset()
    return data.with_features(np.ascontiguousarray(data.X, np.float32))


def whole_fits() -> None:
    """Print the CPU time of whole fits."""
    data = synthetic(600)
    rows = []
    for name, ranker in FITS.items():
        cpu = cpu_seconds(lambda ranker=ranker: ranker.fit(data), repeats=3)
        rows.append([name, str(ranker.n_iter_), seconds(cpu)])
    title = "Whole fits, 600 queries x 100 documents x 46 features"
    show(title, ["ranker", "rounds", "CPU"], rows)


def growth() -> None:
    """Print the time of 50 rounds on data like MQ2008: 784 queries of about 19 documents."""
    rows = []
    for factor in (1, 10) if QUICK else (1, 10, 100):
        data = synthetic(784 * factor, "uniform(6, 33)")
        cells = [f"{data.n_docs:,} ({factor}x)"]
        for ranker in (
            fp.RankBoost(rounds=50, stall=None),
            fp.AdaRank(rounds=50, halvings=None, stall=None),
            fp.FocusedBoost(rounds=50, weak="stumps(bins=16)", halvings=None, stall=None),
        ):
            if factor == 1:
                ranker.fit(data)  # compiles
            cpu, wall = time.process_time(), time.perf_counter()
            ranker.fit(data)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            nanoseconds = cpu / data.n_docs / 50 * 1e9
            cells.append(f"{seconds(cpu)} ({seconds(wall)}), {nanoseconds:.0f} ns")
        rows.append(cells)
    head = ["documents", "RankBoost", "AdaRank", "FocusedBoost(bins=16)"]
    note = "CPU time (wall-clock time), and CPU time per document and round."
    show("50 rounds by number of documents, 46 features", head, rows, note)


def main() -> None:
    print(versions("firstpage", "numpy", "numba", "scikit-learn"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole_fits()
        growth()


if __name__ == "__main__":
    main()
