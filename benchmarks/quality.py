"""Quality of trees: NDCG@10 of Firstpage, CatBoost, LightGBM and XGBoost on the same folds.

    python benchmarks/quality.py --data data --sets mq2008,ohsumed --seeds 0,1,2

Each set is a folder of --data with Fold1, Fold2, ..; the queries of one without such folders are
divided into five folds at random.  Values are NDCG@10 on the test data, in LETOR's convention.

Held equal: the features as they are in the files, at most 1,000 trees, early stopping by NDCG@10 on
the validation data after 50 trees without improvement (35 in Firstpage), one thread, and the effort
of tuning.  Each system has four settings, of which the validation data of a fold choose one, for
each seed: small or large trees (CatBoost 8 or 64 leaves, the others 8 or 31) and a learning rate of
0.03 or 0.1; of the linear model, four penalties.  All other parameters of the peers are their
defaults.

The range of a system is that of its means by seed.  In differences, the values of a query are
averaged over the seeds.  Intervals and p-values are computed as by `firstpage.compare`: 95 %
bootstrap over queries, and a randomization test, without a correction.  --json writes the values to
a file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import firstpage as fp
from common import peer, show, versions
from firstpage.data import Fold, concat_datasets, split_folds
from firstpage.evaluation.measures.significance import mean_intervals, p_value

DEFAULT = "trees(forests=5, leaves=8, query_fraction=0.5)"
RATE, MAX_TREES, PATIENCE, THREADS = 0.1, 1000, 50, 1
RATES, LEAVES, PENALTIES = (0.03, 0.1), (8, 31), (1e-4, 1e-3, 1e-2, 1e-1)
CONVENTION = "letor"
DETERMINISTIC = ("ListMLE(k=10), linear", "LightGBM lambdarank", "XGBoost rank:ndcg")  # one seed
Predict = Callable[[fp.Dataset], np.ndarray]
Fit = Callable[[Fold, int], Predict]  # a fold and a seed
System = list[Fit]  # one setting or several, of which the validation data choose


def ours(ranker: fp.Ranker) -> Fit:
    """Return the fit of a ranker of Firstpage."""

    def fit(fold: Fold, seed: int) -> Predict:
        from sklearn.base import clone

        unfitted = clone(ranker).set_params(seed=seed, threads=THREADS)
        return unfitted.fit(fold.train, valid=fold.valid).predict

    return fit


def trees(text: str) -> str:
    """Return a scorer with the number of trees that all systems have at most."""
    return text.replace("trees", f"trees(count={MAX_TREES})", 1).replace(")(", ", ", 1)


def catboost(**changes: object) -> Fit:
    """Return the fit of CatBoost's YetiRank with changed parameters."""
    library = peer("catboost")

    def pool(data: fp.Dataset) -> object:
        groups = np.repeat(np.arange(len(data)), data.lengths)
        return library.Pool(dense(data), data.y, group_id=groups)

    def fit(fold: Fold, seed: int) -> Predict:
        model = library.CatBoost(
            {
                "loss_function": "YetiRank",
                "eval_metric": "NDCG:top=10;type=Exp",
                "random_seed": seed,
                "iterations": MAX_TREES,
                "learning_rate": RATE,
                "thread_count": THREADS,
                "verbose": False,
                "allow_writing_files": False,
                **changes,
            }
        )
        model.fit(pool(fold.train), eval_set=pool(fold.valid), early_stopping_rounds=PATIENCE)
        return lambda data: model.predict(pool(data))

    return fit


def lightgbm(objective: str, **changes: object) -> Fit:
    """Return the fit of an objective of LightGBM with changed parameters."""
    library = peer("lightgbm")

    def fit(fold: Fold, seed: int) -> Predict:
        params = {
            "objective": objective, "metric": "ndcg", "eval_at": [10], "verbosity": -1,
            "seed": seed, "learning_rate": RATE, "num_threads": THREADS, "deterministic": True,
            "force_row_wise": True, **changes,
        }  # fmt: skip
        train, valid = (
            library.Dataset(dense(data), data.y.astype(int), group=data.lengths, params=params)
            for data in (fold.train, fold.valid)
        )
        valid.set_reference(train)
        stop = library.early_stopping(PATIENCE, verbose=False)
        booster = library.train(params, train, MAX_TREES, valid_sets=[valid], callbacks=[stop])
        return lambda data: booster.predict(dense(data), num_iteration=booster.best_iteration)

    return fit


def xgboost(**changes: object) -> Fit:
    """Return the fit of XGBoost's rank:ndcg with changed parameters."""
    library = peer("xgboost")

    def matrix(data: fp.Dataset) -> object:
        groups = np.repeat(np.arange(len(data)), data.lengths)
        return library.DMatrix(dense(data), data.y, qid=groups, nthread=THREADS)

    def fit(fold: Fold, seed: int) -> Predict:
        params = {
            "objective": "rank:ndcg", "eval_metric": "ndcg@10", "seed": seed, "nthread": THREADS,
            "tree_method": "hist", "grow_policy": "lossguide", "max_depth": 0, **changes,
        }  # fmt: skip
        booster = library.train(
            params,
            matrix(fold.train),
            MAX_TREES,
            evals=[(matrix(fold.valid), "valid")],
            early_stopping_rounds=PATIENCE,
            verbose_eval=False,
        )
        best = (0, booster.best_iteration + 1)
        return lambda data: booster.predict(matrix(data), iteration_range=best)

    return fit


def dense(data: fp.Dataset) -> np.ndarray:
    return np.asarray(data.dense().X)


def systems() -> dict[str, System]:
    """Return the systems by name, the default first, and the peers that are installed."""
    grid = [(leaves, rate) for leaves in LEAVES for rate in RATES]
    forests = "trees(forests=5, leaves={}, query_fraction=0.5, rate={})"
    named = {
        "ListNet, five forests": [
            ours(fp.ListNet(scorer=trees(forests.format(*setting)))) for setting in grid
        ],
        "ListMLE(k=10), linear": [
            ours(fp.ListMLE(k=10, normalize="minmax", l2=l2)) for l2 in PENALTIES
        ],
    }
    if peer("catboost"):  # trees of equal splits per level: 8 or 64 leaves
        named["CatBoost YetiRank"] = [
            catboost(depth=depth, learning_rate=rate) for depth in (3, 6) for rate in RATES
        ]
    if peer("lightgbm"):
        for objective in ("rank_xendcg", "lambdarank"):
            named[f"LightGBM {objective}"] = [
                lightgbm(objective, num_leaves=leaves, learning_rate=rate) for leaves, rate in grid
            ]
    if peer("xgboost"):
        named["XGBoost rank:ndcg"] = [xgboost(max_leaves=leaves, eta=rate) for leaves, rate in grid]
    return named


def folds_of(folder: Path) -> list[Fold]:
    """Return the folds of a folder, or five random ones of all its queries."""
    folds = fp.read_folds(folder)
    if len(folds) > 1:
        return folds
    splits = [getattr(folds[0], name) for name in folds[0].splits]
    return split_folds(concat_datasets(splits), 5, 0)


def ndcg(predict: Predict, data: fp.Dataset) -> np.ndarray:
    """Return NDCG@10 of each query."""
    result = fp.evaluate(predict(data), data, measures="NDCG@10", convention=CONVENTION, ci=False)
    return result.per_query("NDCG@10")


def best_setting(system: System, fold: Fold, seed: int) -> tuple[np.ndarray, float]:
    """Return the test NDCG@10 of the best setting on validation data, and the CPU of all fits."""
    start = time.process_time()
    fits = [fit(fold, seed) for fit in system]
    seconds = time.process_time() - start
    best = max(fits, key=lambda predict: ndcg(predict, fold.valid).mean())
    return ndcg(best, fold.test), seconds


def measure(
    folds: list[Fold], seeds: list[int], named: dict[str, System], label: str
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return NDCG@10 by seed and query, and the mean CPU seconds of a fit, by system."""
    for fold in folds:
        _ = fold.train.X, fold.valid.X, fold.test.X  # reading is not timed
    values: dict[str, np.ndarray] = {}
    cpu: dict[str, float] = {}
    for name, system in named.items():
        used = seeds[:1] if name in DETERMINISTIC else seeds
        results = [[best_setting(system, fold, seed) for fold in folds] for seed in used]
        values[name] = np.array([np.concatenate([each for each, _ in row]) for row in results])
        times = [seconds / len(system) for row in results for _, seconds in row]
        cpu[name] = float(np.mean(times))
        print(f"{label} {name} {_by_seed(values[name])}", file=sys.stderr, flush=True)
    return values, cpu


def _by_seed(values: np.ndarray) -> str:
    return " ".join(f"{mean:.4f}" for mean in values.mean(axis=1))


def difference(first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    """Return the mean difference of two systems, its interval and its p-value."""
    by_query = first.mean(axis=0) - second.mean(axis=0)
    low, high = mean_intervals(by_query[None, :], 0)[0]
    p = p_value(by_query, "randomization", 100_000, 0)
    return {
        "difference": float(by_query.mean()),
        "low": float(low),
        "high": float(high),
        "p": float(p),
    }


def system_records(values: dict[str, np.ndarray], cpu: dict[str, float]) -> list[dict]:
    """Return the means of each system by seed, and the difference of the first system from it."""
    first = next(iter(values))
    return [
        {
            "system": name,
            "by seed": [float(mean) for mean in each.mean(axis=1)],
            "cpu": cpu[name],
            **({} if name == first else difference(values[first], each)),
        }
        for name, each in values.items()
    ]


def show_systems(records: list[dict], title: str) -> None:
    rows = [
        [
            each["system"],
            f"{np.mean(each['by seed']):.4f}",
            f"{min(each['by seed']):.4f} to {max(each['by seed']):.4f}",
            *_texts(each),
            f"{each['cpu']:.2f}",
        ]
        for each in records
    ]
    show(
        title,
        ["system", "NDCG@10", "by seed", "first minus it", "95 % interval", "p", "CPU s"],
        rows,
        "CPU seconds are those of one fit with early stopping, averaged over the settings.",
    )


def _texts(record: dict) -> list[str]:
    """Return a difference, its interval and its p-value as text."""
    if "p" not in record:
        return ["", "", ""]
    interval = f"{record['low']:+.4f} to {record['high']:+.4f}"
    return [f"{record['difference']:+.4f}", interval, f"{record['p']:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--sets", default="mq2008,ohsumed,mslr-web10k-5k")
    parser.add_argument("--folds", type=int, default=5, help="how many folds to run")
    parser.add_argument("--seeds", default="0,1,2", help="seeds, as in 0,1,2")
    parser.add_argument("--json", type=Path, help="write the values to this file")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    named = systems()
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    record = {}
    for name in chosen.sets.split(","):
        folds = folds_of(chosen.data / name)[: chosen.folds]
        values, cpu = measure(folds, seeds, named, name)
        queries = next(iter(values.values())).shape[1]
        title = f"{name}: NDCG@10, {len(folds)} folds, {queries} queries, seeds {seeds}"
        record[name] = system_records(values, cpu)
        show_systems(record[name], title)
    print(versions("numpy", "lightgbm", "xgboost-cpu", "catboost"))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
