"""Quality of trees: NDCG@10 of Firstpage, CatBoost, LightGBM and XGBoost on the same folds.

    python benchmarks/quality.py --data data --sets mq2008,ohsumed,mslr-web10k-5k
    python benchmarks/quality.py --data data --seeds 0,1,2 --ablation default
    python benchmarks/quality.py --data data --seeds 0,1,2 --ablation peers

Each set is a folder of --data with Fold1, Fold2, ..; the queries of one without such folders are
divided into five folds at random.  Values are NDCG@10 on the test data, in LETOR's convention.

Held equal: the features as they are in the files, a learning rate of 0.1, at most 1,000 trees,
early stopping by NDCG@10 on the validation data after 50 trees without improvement, one thread.
All other parameters of the peers are their defaults.  CatBoost also runs with its default
rate, 0.03.

--ablation default compares variants of the default that differ in one thing: the fraction of the
features and of the queries that a tree learns from, the number of forests, noise in the scores,
leaves, early stopping, the loss.  Patience is 50 trees, also of five forests, except where it is
changed.  --ablation peers changes one thing of CatBoost's YetiRank or of LightGBM's rank_xendcg.

With several seeds, the values of a query are averaged over them.  Intervals and p-values are
computed as by `firstpage.compare`: 95 % bootstrap over queries, and a randomization test, without a
correction.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import firstpage as fp
from common import peer, show, versions
from firstpage.data.concat import concat_datasets
from firstpage.data.folds import Fold, split_folds
from firstpage.measures.significance import mean_intervals, p_value

DEFAULT = "trees(forests=5, leaves=8, query_fraction=0.5)"
RATE, MAX_TREES, PATIENCE, THREADS = 0.1, 1000, 50, 1
Scores = np.ndarray
System = Callable[[Fold, int], Scores]
Change = tuple[str, str, str]


def ours(ranker: fp.Ranker) -> System:
    """Return a ranker of Firstpage as a system."""

    def scores(fold: Fold, seed: int) -> Scores:
        from sklearn.base import clone

        unfitted = clone(ranker).set_params(seed=seed, threads=THREADS)  # patience: 50 trees
        return unfitted.fit(fold.train, valid=fold.valid).predict(fold.test)

    return scores


def trees(text: str) -> str:
    """Return a scorer with the number of trees that all systems have at most."""
    return text.replace("trees", f"trees(count={MAX_TREES})", 1).replace(")(", ", ", 1)


def catboost(rate: float = RATE, **changes: object) -> System:
    """Return CatBoost's YetiRank as a system, with changed parameters."""
    library = peer("catboost")

    def pool(data: fp.Dataset) -> object:
        groups = np.repeat(np.arange(len(data)), data.lengths)
        return library.Pool(dense(data), data.y, group_id=groups)

    def scores(fold: Fold, seed: int) -> Scores:
        model = library.CatBoost({
            "loss_function": "YetiRank", "eval_metric": "NDCG:top=10;type=Exp",
            "random_seed": seed, "iterations": MAX_TREES, "learning_rate": rate,
            "thread_count": THREADS, "verbose": False, "allow_writing_files": False, **changes,
        })  # fmt: skip
        model.fit(pool(fold.train), eval_set=pool(fold.valid), early_stopping_rounds=PATIENCE)
        return model.predict(pool(fold.test))

    return scores


def lightgbm(objective: str, **changes: object) -> System:
    """Return an objective of LightGBM as a system, with changed parameters."""
    library = peer("lightgbm")

    def scores(fold: Fold, seed: int) -> Scores:
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
        return booster.predict(dense(fold.test), num_iteration=booster.best_iteration)

    return scores


def xgboost(fold: Fold, seed: int) -> Scores:
    """Return the scores of XGBoost's rank:ndcg."""
    library = peer("xgboost")
    train, valid, test = (
        library.DMatrix(
            dense(data), data.y, qid=np.repeat(np.arange(len(data)), data.lengths), nthread=THREADS
        )
        for data in (fold.train, fold.valid, fold.test)
    )
    params = {
        "objective": "rank:ndcg", "eval_metric": "ndcg@10", "eta": RATE, "seed": seed,
        "nthread": THREADS,
    }  # fmt: skip
    booster = library.train(
        params, train, MAX_TREES, evals=[(valid, "valid")], early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )  # fmt: skip
    return booster.predict(test, iteration_range=(0, booster.best_iteration + 1))


def dense(data: fp.Dataset) -> np.ndarray:
    return np.asarray(data.dense().X)


def systems() -> dict[str, System]:
    """Return the systems by name, the default first, and the peers that are installed."""
    named = {"ListNet, default": ours(fp.ListNet(scorer=trees(DEFAULT)))}
    named["ListNet, trees"] = ours(fp.ListNet(scorer=trees("trees")))
    named["ListMLE(k=10, normalize=minmax), linear"] = ours(fp.ListMLE(k=10, normalize="minmax"))
    if peer("catboost"):
        named["CatBoost YetiRank"] = catboost()
        named["CatBoost YetiRank, rate 0.03"] = catboost(0.03)
    if peer("lightgbm"):
        named["LightGBM rank_xendcg"] = lightgbm("rank_xendcg")
        named["LightGBM lambdarank"] = lightgbm("lambdarank")
    if peer("xgboost"):
        named["XGBoost rank:ndcg"] = xgboost
    return named


def variants() -> dict[str, System]:
    """Return variants of the default by name, which differ from another one in one thing."""
    texts = {
        "1 forest": "trees(leaves=8, {all})",
        "1 forest, 31 leaves": "trees(leaves=31, {all})",
        "1 forest, features": "trees(leaves=8, {half})",
        "1 forest, queries": "trees(leaves=8, query_fraction=0.5, {all})",
        "1 forest, noise": "trees(leaves=8, noise=0.5, {all})",
        "1 forest, features, queries": "trees(leaves=8, query_fraction=0.5, {half})",
        "5 forests, features": "trees(forests=5, leaves=8, {half})",
        "5 forests, queries": "trees(forests=5, leaves=8, query_fraction=0.5, {all})",
        "5 forests, noise": "trees(forests=5, leaves=8, noise=0.5, {all})",
        "default": DEFAULT.replace(")", ", {half})"),
        "default, noise": DEFAULT.replace(")", ", noise=0.5, {half})"),
        "default, 10 forests": DEFAULT.replace("forests=5", "forests=10"),
        "default, 31 leaves": DEFAULT.replace("leaves=8", "leaves=31"),
    }
    options = {
        name: f"options={{'feature_fraction': {x}}}" for name, x in (("all", 1.0), ("half", 0.5))
    }
    scorers = {name: trees(text.format(**options)) for name, text in texts.items()}
    named = {name: ours(fp.ListNet(scorer=scorer)) for name, scorer in scorers.items()}
    named["default, patience"] = ours(fp.ListNet(scorer=trees(DEFAULT), patience=PATIENCE))
    named["default, LambdaRank"] = ours(fp.LambdaRank(scorer=trees(DEFAULT)))
    named["default, ListMLE(k=10)"] = ours(fp.ListMLE(k=10, scorer=trees(DEFAULT)))
    return named


def peer_variants() -> dict[str, System]:
    """Return variants of YetiRank and of rank_xendcg, which differ from these in one thing."""
    return {
        "YetiRank": catboost(),
        "YetiRank, no bootstrap": catboost(bootstrap_type="No"),
        "YetiRank, no score noise": catboost(random_strength=0),
        "YetiRank, 1 permutation": catboost(loss_function="YetiRank:permutations=1"),
        "YetiRank, gradient leaves": catboost(leaf_estimation_method="Gradient"),
        "YetiRank, 8 leaves": catboost(depth=3),
        "PairLogit": catboost(loss_function="PairLogit"),
        "QuerySoftMax": catboost(loss_function="QuerySoftMax"),
        "rank_xendcg": lightgbm("rank_xendcg"),
        "rank_xendcg, 8 leaves": lightgbm("rank_xendcg", num_leaves=8),
        "rank_xendcg, features": lightgbm("rank_xendcg", feature_fraction=0.5),
        "ListNet, trees": ours(fp.ListNet(scorer=trees("trees"))),
    }


PEER_CHANGES = [  # as CHANGES
    ("no bootstrap of the documents", "YetiRank, no bootstrap", "YetiRank"),
    ("no noise in the scores of splits", "YetiRank, no score noise", "YetiRank"),
    ("1 sampled permutation, not 10", "YetiRank, 1 permutation", "YetiRank"),
    ("leaves by gradient, not by Newton", "YetiRank, gradient leaves", "YetiRank"),
    ("8 leaves, not 64", "YetiRank, 8 leaves", "YetiRank"),
    ("all pairs of equal weight, no sampling", "PairLogit", "YetiRank"),
    ("softmax, no pairs, no sampling", "QuerySoftMax", "YetiRank"),
    ("8 leaves, not 31", "rank_xendcg, 8 leaves", "rank_xendcg"),
    ("half of the features", "rank_xendcg, features", "rank_xendcg"),
    ("fixed targets and bounded leaves", "ListNet, trees", "rank_xendcg"),
]  # fmt: skip
CHANGES = [  # what is changed, to which variant, from which variant
    ("half of the features", "1 forest, features", "1 forest"),
    ("half of the features", "1 forest, features, queries", "1 forest, queries"),
    ("half of the features", "default", "5 forests, queries"),
    ("half of the queries", "1 forest, queries", "1 forest"),
    ("half of the queries", "1 forest, features, queries", "1 forest, features"),
    ("half of the queries", "default", "5 forests, features"),
    ("five forests", "5 forests, features", "1 forest, features"),
    ("five forests", "5 forests, queries", "1 forest, queries"),
    ("five forests", "5 forests, noise", "1 forest, noise"),
    ("five forests", "default", "1 forest, features, queries"),
    ("ten forests", "default, 10 forests", "default"),
    ("score noise of 0.5", "1 forest, noise", "1 forest"),
    ("score noise of 0.5", "default, noise", "default"),
    ("31 leaves", "1 forest, 31 leaves", "1 forest"),
    ("31 leaves", "default, 31 leaves", "default"),
    ("patience of 50 iterations", "default, patience", "default"),
    ("LambdaRank", "default, LambdaRank", "default"),
    ("ListMLE(k=10)", "default, ListMLE(k=10)", "default"),
]  # fmt: skip


def folds_of(folder: Path) -> list[Fold]:
    """Return the folds of a folder, or five random ones of all its queries."""
    folds = fp.read_folds(folder)
    if len(folds) > 1:
        return folds
    splits = [getattr(folds[0], name) for name in folds[0].splits]
    return split_folds(concat_datasets(splits), 5, 0)


def measure(
    folds: list[Fold], seeds: list[int], named: dict[str, System], label: str
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return NDCG@10 of each query and the mean CPU seconds of a fit, by system."""
    values: dict[str, np.ndarray] = {}
    cpu: dict[str, float] = {}
    for name, system in named.items():
        by_seed, times = [], []
        for seed in seeds:
            by_fold = []
            for fold in folds:
                _ = fold.train.X, fold.valid.X, fold.test.X  # reading is not timed
                start = time.process_time()
                scores = system(fold, seed)
                times.append(time.process_time() - start)
                result = fp.evaluate(
                    scores, fold.test, measures="NDCG@10", convention="letor", ci=False
                )
                by_fold.append(result.per_query("NDCG@10"))
            by_seed.append(np.concatenate(by_fold))
        values[name], cpu[name] = np.mean(by_seed, axis=0), float(np.mean(times))
        print(f"{label} {name} {values[name].mean():.4f}", file=sys.stderr, flush=True)
    return values, cpu


def difference(differences: np.ndarray) -> list[str]:
    """Return the mean of paired differences, its interval and its p-value as text."""
    low, high = mean_intervals(differences[None, :], 0)[0]
    p = p_value(differences, "randomization", 100_000, 0)
    return [f"{differences.mean():+.4f}", f"{low:+.4f} to {high:+.4f}", f"{p:.3f}"]


def show_systems(values: dict[str, np.ndarray], cpu: dict[str, float], title: str) -> None:
    """Print the mean of each system, and the difference of the first system from it."""
    first = next(iter(values))
    rows = [
        [name, f"{each.mean():.4f}"]
        + (["", "", ""] if name == first else difference(values[first] - each))
        + [f"{cpu[name]:.2f}", f"{cpu[name] / cpu[first]:.1f}"]
        for name, each in values.items()
    ]
    show(
        title,
        ["system", "NDCG@10", "default minus it", "95 % interval", "p", "CPU s", "/ default"],
        rows,
        "CPU seconds are those of a fit with early stopping and of scoring the test data.",
    )


def show_changes(
    values: dict[str, np.ndarray], cpu: dict[str, float], title: str, changes: list[Change]
) -> None:
    """Print the effect of each change, with everything else held equal."""
    rows = [
        [
            change, before, f"{values[before].mean():.4f}", f"{values[after].mean():.4f}",
            *difference(values[after] - values[before]), f"{cpu[after] / cpu[before]:.1f}",
        ]
        for change, after, before in changes
    ]  # fmt: skip
    show(
        title,
        ["change", "of", "before", "after", "difference", "95 % interval", "p", "CPU"],
        rows,
        "CPU is the time of a fit after the change as a multiple of that before it.",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--sets", default="mq2008,ohsumed,mslr-web10k-5k")
    parser.add_argument("--folds", type=int, default=5, help="how many folds to run")
    parser.add_argument("--seeds", default="0", help="seeds, as in 0,1,2")
    parser.add_argument("--ablation", choices=["default", "peers"], help="variants only")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    named = {"default": variants, "peers": peer_variants, None: systems}[chosen.ablation]()
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    for name in chosen.sets.split(","):
        folds = folds_of(chosen.data / name)[: chosen.folds]
        values, cpu = measure(folds, seeds, named, name)
        queries = len(next(iter(values.values())))
        title = f"{name}: NDCG@10, {len(folds)} folds, {queries} queries, seeds {seeds}"
        if chosen.ablation is None:
            show_systems(values, cpu, title)
        else:
            changes = CHANGES if chosen.ablation == "default" else PEER_CHANGES
            show_changes(values, cpu, title, changes)
    print(versions("numpy", "lightgbm", "xgboost-cpu", "catboost"))


if __name__ == "__main__":
    main()
