"""corankco's KwikSort and BioConsert on the lists of benchmarks/aggregate.py.

They run in this environment, or in another one whose interpreter PEER_PYTHONS names.  corankco is
timed in the way that costs it least: each query is a Dataset built before the timing, one ranking
is requested, and untimed queries compile everything first.
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
    try:
        return run(lists)
    except ImportError:
        pass
    for python in filter(None, os.environ.get("PEER_PYTHONS", "").split(os.pathsep)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lists.npy"
            np.save(path, lists)
            command = [python, __file__, str(path)]
            completed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results = json.loads(completed.stdout.splitlines()[-1])
        if results is not None:
            return results
    return None


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


def main(path: str) -> None:
    try:
        results = run(np.load(path))
    except ImportError:
        results = None
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
