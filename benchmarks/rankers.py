"""What every ranker costs with its defaults: CPU seconds of a fit, and the size of its model file.

    python benchmarks/rankers.py [FOLDER] [--normalize minmax]

One fold of a LETOR folder, fitted on its training data with its validation data, second fit of
two: the first one compiles.  Without a folder: made-up data of about MQ2008's size.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import firstpage as fp
from common import cpu_seconds, seconds, show, versions
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.registry import RANKERS, ranker

TREES = "ListMLE(k=10, scorer=trees)"


def cost(made: Ranker, train: fp.Dataset, valid: fp.Dataset) -> tuple[float, int]:
    """CPU seconds, and bytes."""
    spent = cpu_seconds(lambda: made.fit(train, valid=valid), repeats=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        made.save(path)
        return spent, path.stat().st_size


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("folder", nargs="?")
    asked.add_argument("--normalize")
    given = asked.parse_args()
    if given.folder:
        fold = fp.read_folds(given.folder)[0]
        train, valid = fold.train, fold.valid
    else:
        data = fp.Synthetic(queries=620, docs="uniform(5, 35)", features=46, grades=3).dataset()
        train, valid = data[:470], data[470:]
    warnings.simplefilter("ignore")
    rows = []
    for name in [*RANKERS, TREES]:
        spent, size = cost(ranker(name, normalize=given.normalize, threads=1), train, valid)
        rows.append([name, seconds(spent), f"{size / 1024:.1f} KiB"])
    title = f"{len(train)} training queries, {train.n_docs} documents; {versions('lightgbm')}"
    show(title, ["ranker", "CPU of a fit", "model file"], rows)


if __name__ == "__main__":
    main()
