"""Quality and time of linear scorers, shallow and deep networks, and attention, on LETOR folds.

    python benchmarks/networks.py DATA/mq2008 [--ranker ListNet] [--seeds 2] [--only WORD]

DATA/mq2008 has the folders Fold1 to Fold5 with train.txt, vali.txt and test.txt.

Held equal: the loss, the data, Adam with its default rate, at most 100 epochs with batches of 32
queries, validation by NDCG@10 with a patience of 20 epochs, one thread.  Only the linear scorer
is fitted by the default solver, to the optimum.  Values are means over folds and seeds of NDCG@10
on the test queries; the seconds are the CPU time of one fit, so that other programs of the machine
do not count.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import firstpage as fp
from common import show, versions

SCORERS = {
    "linear": "linear",
    "one layer": "mlp(hidden=64)",
    "two layers": "network(layers=(128, 64))",
    "two layers, layer norm, dropout": "network(layers=(128, 64), norm=layer, dropout=0.3)",
    "two layers, log1p": "network(layers=(128, 64), input=log1p+standardize)",
    "one layer, 1 attention block": "network(layers=(64,), dropout=0.3, attention=(1, 2, 128))",
    "one layer, 2 attention blocks": "network(layers=(64,), dropout=0.3, attention=(2, 2, 128))",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--ranker", default="ListNet")
    parser.add_argument("--only", default="", help="scorers whose name contains this")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--folds", type=int, default=5)
    args = parser.parse_args()
    print(versions("torch", "numpy"))
    folds = [
        [fp.read(args.data / f"Fold{fold}" / f"{name}.txt") for name in ("train", "vali", "test")]
        for fold in range(1, args.folds + 1)
    ]
    rows = []
    for name, scorer in SCORERS.items():
        if args.only not in name:
            continue
        scores, seconds, epochs = [], [], []
        for train, valid, test in folds:
            for seed in range(1 if scorer == "linear" else args.seeds):
                solver = "auto" if scorer == "linear" else "adam(max_iter=100)"
                ranker = fp.ranker(args.ranker, scorer=scorer, solver=solver, seed=seed)
                ranker.set_params(threads=1, patience=None if scorer == "linear" else 20)
                start = time.process_time()
                ranker.fit(train, valid=valid)
                seconds.append(time.process_time() - start)
                scores.append(ranker.score(test))
                epochs.append(ranker.best_iteration_ or ranker.n_iter_)
        params = np.size(ranker.params_)
        rows.append(
            [
                name,
                f"{params:,}",
                f"{np.mean(scores):.4f}",
                f"{np.median(epochs):.0f}",
                f"{np.median(seconds):.1f}",
            ]
        )
        print(rows[-1], flush=True)
    show(
        f"{args.ranker} on {args.data.name}",
        ["scorer", "parameters", "NDCG@10", "epoch", "seconds"],
        rows,
    )


if __name__ == "__main__":
    main()
