"""corankco's KwikSort and BioConsert, and ranx's fuse, on the lists of benchmarks/aggregate.py.

They run in this environment, or in another one whose interpreter PEER_PYTHONS names.  Both are
timed in the way that costs them least: corankco's datasets and ranx's runs are built before the
timing, and untimed calls compile everything first.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

WARMUP_QUERIES = 3  # which are not timed


def corankco_results(lists: np.ndarray) -> dict[str, Any] | None:
    """Return orders and times of corankco, or None if it is not installed anywhere.

    `lists` has the axes query, ranker and document, the best document first.  The result is
    {"version": .., "KwikSort": {"cpu": seconds per query, "orders": ..}, "BioConsert": ..}.
    """
    return peer_results("run", lists=lists)


def ranx_results(documents: np.ndarray, scores: np.ndarray) -> dict[str, Any] | None:
    """Return the CPU seconds of ranx's fuse by method, or None if it is not installed anywhere.

    Both arrays have the axes ranker, query and document, the best document first.
    """
    return peer_results("fuse", documents=documents, scores=scores)


def peer_results(job: str, **arrays: np.ndarray) -> dict[str, Any] | None:
    """Return the results of a job of this module, here or in another environment."""
    try:
        return JOBS[job](**arrays)
    except ImportError:
        pass
    for python in filter(None, os.environ.get("PEER_PYTHONS", "").split(os.pathsep)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "arrays.npz"
            np.savez(path, **arrays)
            command = [python, __file__, job, str(path)]
            completed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results = json.loads(completed.stdout.splitlines()[-1])
        if results is not None:
            return results
    return None


FUSIONS = {  # our method and normalization: those of ranx, with its parameters
    ("RRF", None): ("rrf", None, {"k": 60}), ("RBC", None): ("rbc", None, {"phi": 0.9}),
    ("CombSUM", "min-max"): ("sum", "min-max", {}), ("CombMNZ", "z"): ("mnz", "zmuv", {}),
}  # fmt: skip


def fuse(documents: np.ndarray, scores: np.ndarray, repeats: int = 3) -> dict[str, Any]:
    """Return the CPU seconds of each fusion by ranx, which must be installed here."""
    from importlib.metadata import version

    from ranx import Run
    from ranx import fuse as ranx_fuse

    runs = []
    for ids, values in zip(documents.tolist(), scores.tolist(), strict=True):
        pairs = zip(ids, values, strict=True)
        lists = [{f"doc{d}": s for d, s in zip(*query, strict=True)} for query in pairs]
        runs.append(Run({f"q{q}": scored for q, scored in enumerate(lists)}))
    results: dict[str, Any] = {"version": version("ranx")}
    for method, norm, parameters in FUSIONS.values():
        times = []
        for _ in range(repeats + 1):
            start = time.process_time()
            ranx_fuse(runs, norm=norm, method=method, params=dict(parameters))
            times.append(time.process_time() - start)
        results[method] = statistics.median(times[1:])  # the first call compiles
    return results


def run(lists: np.ndarray) -> dict[str, Any]:
    """Return orders and times of corankco, which must be installed here."""
    from importlib.metadata import version

    from corankco.algorithms.bioconsert import BioConsert
    from corankco.algorithms.kwiksort import KwikSortRandom
    from corankco.dataset import Dataset
    from corankco.scoringscheme import ScoringScheme

    random.seed(0)  # of the pivots of KwikSort
    scheme = ScoringScheme.get_unifying_scoring_scheme()
    data = [Dataset.from_raw_list([[{int(d)} for d in o] for o in query]) for query in lists]
    results: dict[str, Any] = {"version": version("corankco")}
    for name, algorithm in (("KwikSort", KwikSortRandom()), ("BioConsert", BioConsert())):
        times, orders = [], []
        for dataset in [*data[:WARMUP_QUERIES], *data]:
            start = time.process_time()
            consensus = algorithm.compute_consensus_rankings(dataset, scheme, True)
            times.append(time.process_time() - start)
            buckets = consensus.consensus_rankings[0].buckets
            orders.append([int(str(document)) for bucket in buckets for document in bucket])
        results[name] = {
            "cpu": statistics.median(times[WARMUP_QUERIES:]),
            "orders": orders[WARMUP_QUERIES:],
        }
    return results


JOBS = {"run": run, "fuse": fuse}


def main(job: str, path: str) -> None:
    try:
        results = JOBS[job](**np.load(path))
    except ImportError:
        results = None
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
