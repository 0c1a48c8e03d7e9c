"""Cost of every ranker with its defaults: CPU time of a fit, and size of the model file.

    python benchmarks/rankers.py [FOLDER] [--normalize minmax] [--json FILE]

Data are the first fold of a LETOR folder, or synthetic data of about the size of MQ2008.  The
second of two fits is timed, because the first one compiles.

Held equal: training and validation data, normalization, and one thread.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from pathlib import Path

import firstpage as fp
from common import cpu_seconds, seconds, show, versions
from firstpage.learning.rankers import RANKERS, Ranker, ranker

TREES = "ListMLE(k=10, scorer=trees)"


def fit_cost(model: Ranker, train: fp.Dataset, valid: fp.Dataset) -> tuple[float, int]:
    """Return the CPU seconds of a fit, and the size of the model file in bytes."""
    cpu = cpu_seconds(lambda: model.fit(train, valid=valid), repeats=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        return cpu, path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--normalize")
    parser.add_argument("--json", type=Path, help="write CPU seconds and bytes to this file")
    options = parser.parse_args()
    if options.folder:
        fold = fp.read_folds(options.folder)[0]
        train, valid = fold.train, fold.valid
    else:
        data = fp.Synthetic(queries=620, docs="uniform(5, 35)", features=46, grades=3).dataset()
        train, valid = data[:470], data[470:]
    warnings.simplefilter("ignore")
    costs = {
        name: fit_cost(ranker(name, normalize=options.normalize, threads=1), train, valid)
        for name in [*RANKERS, TREES]
    }
    rows = [[name, seconds(cpu), f"{size / 1024:.1f} KiB"] for name, (cpu, size) in costs.items()]
    title = f"{len(train)} training queries, {train.n_docs} documents; {versions('lightgbm')}"
    show(title, ["ranker", "CPU of a fit", "model file"], rows)
    if options.json is not None:
        options.json.write_text(json.dumps(costs))


if __name__ == "__main__":
    main()
