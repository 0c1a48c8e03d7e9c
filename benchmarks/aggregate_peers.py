"""Rank aggregation, the peer's side: corankco's KwikSort and BioConsert on given lists.

Used by benchmarks/aggregate.py, here or in an environment of its own that PEER_PYTHONS names.
corankco gets what costs it least: each query's lists as its own Dataset, made before the clock
starts; one ranking asked for; everything compiled by queries that do not count.
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

WARM = 3  # queries before the clock starts


def peers(lists: np.ndarray) -> dict[str, Any] | None:
    """What corankco makes of lists (queries x rankers x documents, best first), if it is anywhere.

    {"version": .., "KwikSort": {"cpu": seconds a query, "orders": ..}, "BioConsert": ..}
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
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        if found is not None:
            return found
    return None


def run(lists: np.ndarray) -> dict[str, Any]:
    from importlib.metadata import version

    from corankco.algorithms.bioconsert import BioConsert
    from corankco.algorithms.kwiksort import KwikSortRandom
    from corankco.dataset import Dataset
    from corankco.scoringscheme import ScoringScheme

    random.seed(0)  # KwikSort's pivots
    scheme = ScoringScheme.get_unifying_scoring_scheme()
    data = [Dataset.from_raw_list([[{int(d)} for d in o] for o in query]) for query in lists]
    found: dict[str, Any] = {"version": version("corankco")}
    for name, algorithm in (("KwikSort", KwikSortRandom()), ("BioConsert", BioConsert())):
        times, orders = [], []
        for dataset in [*data[:WARM], *data]:
            start = time.process_time()
            consensus = algorithm.compute_consensus_rankings(dataset, scheme, True)
            times.append(time.process_time() - start)
            buckets = consensus.consensus_rankings[0].buckets
            orders.append([int(str(document)) for bucket in buckets for document in bucket])
        found[name] = {"cpu": statistics.median(times[WARM:]), "orders": orders[WARM:]}
    return found


def main(path: str) -> None:
    try:
        found = run(np.load(path))
    except ImportError:
        found = None
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
