"""Why forests lost against plain LightGBM, and which objective trees learn best from.

    python benchmarks/trees_study.py --data data --part stopping
    python benchmarks/trees_study.py --data data --part objectives --seeds 0,1
    python benchmarks/trees_study.py --part editors --families "300 queries" --seeds 0,1,2

`stopping` grows five forests of ListNet in LightGBM, and reads the same forests with each stopping
rule: all forests by their average or each by its own scores, after 10 or 50 iterations without
improvement; with LightGBM's plain curvature p (1 - p), and with the curvature that is never less
than the absolute gradient.  `objectives` compares rankers and libraries with the same trees: 15
leaves, a rate of 0.05, at least 50 documents in a leaf, at most 600 trees, early stopping after 50
without improvement (35 in Firstpage).  `editors` learns a measure from the choices of simulated
editors, and compares trees that are trained for it with trees trained for NDCG@10.

Nothing is chosen on test folds; --test measures on them, in LETOR's convention.  Otherwise, on the
folds of --data, two thirds of the training queries train, one third stops, and the validation
queries measure; the test file is not read.  Synthetic families have a known number of queries,
noise and fraction of relevant documents, and 1,200 queries to measure.  Values are NDCG@10 with the
gain 2^label - 1, 0 for queries without relevant documents.  Differences have standard errors over
queries.  One thread.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import firstpage as fp
from common import peer, show, versions
from firstpage.learning.rankers.trees.growth import Gradients

LEAVES, RATE, MIN_DOCS, COUNT, PATIENCE, FORESTS = 15, 0.05, 50, 600, 50, 5
FAMILIES = {  # queries, noise as a multiple of the utility's deviation, fraction of relevant ones
    "1000 queries": (1000, 1.0, 0.25),
    "1000, sparse": (1000, 1.6, 0.10),
    "300 queries": (300, 1.0, 0.25),
    "300, noisy": (300, 1.6, 0.40),
}
FEATURES, FACTORS = 46, 8


class Split(NamedTuple):
    """Queries to train, to stop and to measure on."""

    train: fp.Dataset
    valid: fp.Dataset
    test: fp.Dataset


def family(
    queries: int, noise: float, relevant: float, seed: int, ordered: bool = False
) -> fp.Dataset:
    """Return lists whose grades are a nonlinear function of hidden factors, with noise.

    Where they are `ordered`, the labels are those of the first ten documents in order.
    """
    from scipy.special import ndtri

    world, rng = np.random.default_rng(777), np.random.default_rng(seed)  # one world for all
    mixing = world.normal(size=(FEATURES, FACTORS)) * (world.random((FEATURES, FACTORS)) < 0.3)
    kind, cut = world.integers(0, 4, FEATURES), world.normal(0, 1, FEATURES)
    own = world.uniform(0.3, 1.2, FEATURES)
    linear, pairs = world.normal(size=FACTORS), world.integers(0, FACTORS, (4, 2))
    joint = world.normal(size=4) * 0.7
    lengths = rng.integers(15, 46, queries)
    query = np.repeat(np.arange(queries), lengths)
    Z = rng.normal(size=(len(query), FACTORS)) + 0.7 * rng.normal(size=(queries, FACTORS))[query]
    X = Z @ mixing.T + own * rng.normal(size=(len(query), FEATURES))
    X = np.where(kind == 1, np.exp(X), np.where(kind == 2, np.maximum(X - cut, 0), X))
    X = np.where(kind == 3, np.round(X), X)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    low, high = np.minimum.reduceat(X, starts), np.maximum.reduceat(X, starts)
    X = (X - low[query]) / np.where(high > low, high - low, 1)[query]
    utility = np.tanh(Z) @ linear
    for weight, (a, b) in zip(joint, pairs, strict=True):
        utility += weight * np.maximum(Z[:, a], 0) * np.tanh(Z[:, b])
    utility = (utility - utility.mean()) / utility.std()
    utility += noise * rng.normal(size=len(query)) + 0.6 * rng.normal(size=queries)[query]
    deviation = np.sqrt(1 + noise**2 + 0.36)
    y = sum((utility > deviation * ndtri(1 - relevant * x)).astype(float) for x in (1.0, 0.35))
    data = fp.Dataset.from_arrays(X.astype(np.float32), utility if ordered else y, query)
    return data.with_labels(data.truth.top_k(10).labels) if ordered else data


def synthetic(name: str, draw: int, ordered: bool = False) -> list[Split]:
    """Return one draw of a family."""
    queries, noise, relevant = FAMILIES[name]
    first = 10 * draw + 1000 * list(FAMILIES).index(name)
    sizes = queries, max(queries // 3, 40), 1200
    parts = (family(n, noise, relevant, first + at, ordered) for at, n in enumerate(sizes))
    return [Split(*parts)]


def inner_folds(folder: Path, test: bool = False) -> list[Split]:
    """Return the folds of a set: as they are to `test` what was chosen, else without test data."""
    splits = []
    for fold in fp.read_folds(folder):
        if test:
            splits.append(Split(fold.train, fold.valid, fold.test))
            continue
        part = np.arange(len(fold.train)) % 3
        rest, stop = fold.train[part > 0], fold.train[part == 0]
        splits.append(Split(rest, stop, fold.valid))
    return splits


def ndcg(scores: np.ndarray, data: fp.Dataset, convention: str = "default") -> np.ndarray:
    """Return NDCG@10 of each query."""
    result = fp.evaluate(scores, data, measures="NDCG@10", ci=False, convention=convention)
    return np.asarray(result.per_query("NDCG@10"))


# --- which stopping rule, and which curvature


class Grown(NamedTuple):
    """One forest: by number of trees the validation measure and both scores."""

    measure: list[float]
    valid: list[np.ndarray]
    test: list[np.ndarray]


def grow(split: Split, floor: bool, forest: int) -> Grown:
    """Grow a forest of ListNet in LightGBM until 50 trees bring no improvement."""
    lightgbm = peer("lightgbm")
    params = {
        "objective": "none", "metric": "none", "verbosity": -1, "num_threads": 1, "seed": forest,
        "deterministic": True, "force_row_wise": True, "num_leaves": LEAVES, "learning_rate": RATE,
        "min_data_in_leaf": MIN_DOCS, "feature_fraction": 0.5,
    }  # fmt: skip
    data = lightgbm.Dataset(split.train.X, np.zeros(split.train.n_docs), params=params)
    booster = lightgbm.Booster(params, data)
    for name, part in (("valid", split.valid), ("test", split.test)):
        booster.add_valid(data.create_valid(part.X, np.zeros(part.n_docs), params=params), name)
    gradients = Gradients(fp.extend.loss("SoftmaxCrossEntropy"), split.train.truth)

    def derivatives(scores: np.ndarray, _: object) -> tuple[np.ndarray, np.ndarray]:
        gradient, curvature = gradients(np.asarray(scores, np.float64))
        return gradient, curvature if floor else gradients.curvature

    captured: list[np.ndarray] = []

    def capture(scores: np.ndarray, _: object) -> tuple[str, float, bool]:
        captured.append(np.array(scores, np.float64))
        return "", 0.0, True

    grown = Grown([], [], [])
    for number in range(COUNT):
        finished = booster.update(fobj=derivatives)
        captured.clear()
        booster.eval_valid(capture)
        grown.valid.append(captured[0])
        grown.test.append(captured[1])
        grown.measure.append(float(ndcg(captured[0], split.valid).mean()))
        if finished or number - int(np.argmax(grown.measure)) >= PATIENCE:
            break
    return grown


def best_of(measure: list[float], patience: int) -> int:
    """Return the number of the best tree where training stops after some without improvement."""
    best = 0
    for number, value in enumerate(measure):
        best = number if value > measure[best] else best
        if number - best >= patience:
            break
    return best


def stopped(forests: list[Grown], split: Split, joint: bool, patience: int) -> np.ndarray:
    """Return the averaged test scores of forests under a stopping rule."""
    if not joint:
        return sum(each.test[best_of(each.measure, patience)] for each in forests)
    longest = max(len(each.measure) for each in forests)

    def average(name: str, number: int) -> np.ndarray:
        parts = (getattr(each, name) for each in forests)
        return sum(part[min(number, len(part) - 1)] for part in parts)

    curve = [float(ndcg(average("valid", n), split.valid).mean()) for n in range(longest)]
    return average("test", best_of(curve, patience))


def stopping_study(sets: dict[str, list[Split]]) -> None:
    """Print NDCG@10 of the same forests under each stopping rule and curvature."""
    rules = [(joint, patience) for joint in (True, False) for patience in (10, PATIENCE)]
    rows = []
    for name, splits in sets.items():
        for floor in (False, True):
            values: dict[tuple[bool, int], list[np.ndarray]] = {rule: [] for rule in rules}
            for split in splits:
                forests = [grow(split, floor, forest) for forest in range(FORESTS)]
                for rule in rules:
                    values[rule].append(ndcg(stopped(forests, split, *rule), split.test))
            joined = {rule: np.concatenate(each) for rule, each in values.items()}
            first = joined[rules[0]]
            row = [f"{first.mean():.4f}", *(difference(joined[r], first) for r in rules[1:])]
            rows.append([name, "at least |gradient|" if floor else "p (1 - p)", *row])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    head = ["set", "curvature", "average, 10", "average, 50", "each, 10", "each, 50"]
    show(
        "ListNet, five forests: stopping rule and patience; differences from the first", head, rows
    )


def difference(values: np.ndarray, base: np.ndarray) -> str:
    """Return the mean difference with its standard error over queries."""
    by_query = values - base
    return f"{by_query.mean():+.4f} ± {by_query.std() / np.sqrt(len(by_query)):.4f}"


# --- which objective


def objectives() -> dict[str, Callable[[Split, int], np.ndarray]]:
    """Return the systems by name, as functions of a split and a seed that return test scores."""
    five = f"forests=5, leaves={LEAVES}, rate={RATE}, min_docs={MIN_DOCS}, count={COUNT}"
    texts = {
        "YetiRank": "YetiRank(scorer=trees)",
        "YetiRank, five forests": f"YetiRank(scorer=trees({five}))",
        "YetiRank, one forest": "YetiRank(scorer=trees(forests=1))",
        "ListNet": "ListNet(scorer=trees)",
        "ListMLE, linear": "ListMLE(k=10)",
    }
    named: dict[str, Callable[[Split, int], np.ndarray]] = {
        name: (lambda split, seed, text=text: ours(text, split, seed))
        for name, text in texts.items()
    }
    if peer("catboost"):
        named["CatBoost YetiRank"] = catboost
    named["LightGBM rank_xendcg"] = xendcg
    return named


def ours(text: str, split: Split, seed: int) -> np.ndarray:
    ranker = fp.ranker(text, seed=seed, threads=1).fit(split.train, valid=split.valid)
    return np.asarray(ranker.predict(split.test))


def catboost(split: Split, seed: int) -> np.ndarray:
    library = peer("catboost")

    def pool(data: fp.Dataset) -> object:
        groups = np.repeat(np.arange(len(data)), data.lengths)
        return library.Pool(np.asarray(data.X), data.y, group_id=groups)

    model = library.CatBoost(
        {
            "loss_function": "YetiRank", "eval_metric": "NDCG:top=10;type=Exp",
            "random_seed": seed, "iterations": COUNT, "learning_rate": RATE, "depth": 6,
            "thread_count": 1, "verbose": False, "allow_writing_files": False,
        }
    )  # fmt: skip
    model.fit(pool(split.train), eval_set=pool(split.valid), early_stopping_rounds=PATIENCE)
    return np.asarray(model.predict(pool(split.test)))


def xendcg(split: Split, seed: int) -> np.ndarray:
    library = peer("lightgbm")
    params = {
        "objective": "rank_xendcg", "metric": "ndcg", "eval_at": [10], "verbosity": -1,
        "seed": seed, "learning_rate": RATE, "num_leaves": LEAVES, "min_data_in_leaf": MIN_DOCS,
        "num_threads": 1, "deterministic": True, "force_row_wise": True,
    }  # fmt: skip
    train = library.Dataset(
        split.train.X, split.train.y.astype(int), group=split.train.lengths, params=params
    )
    valid = train.create_valid(split.valid.X, split.valid.y.astype(int), group=split.valid.lengths)
    stop = library.early_stopping(PATIENCE, verbose=False)
    booster = library.train(params, train, COUNT, valid_sets=[valid], callbacks=[stop])
    return np.asarray(booster.predict(split.test.X, num_iteration=booster.best_iteration))


def objective_study(sets: dict[str, list[Split]], seeds: list[int], convention: str) -> None:
    """Print NDCG@10 and CPU seconds of each system, and differences from CatBoost or the first."""
    systems = objectives()
    tiny = Split(*[family(40, 1.0, 0.25, 7)] * 3)
    for scores in systems.values():  # imports and compiled code are not timed
        scores(tiny, 0)
    ranks = np.zeros((len(sets), len(systems)))
    for at, (name, splits) in enumerate(sets.items()):
        values, seconds = {}, {}
        for system, scores in systems.items():
            start = time.process_time()
            runs = [[scores(split, seed) for split in splits] for seed in seeds]
            seconds[system] = (time.process_time() - start) / (len(seeds) * len(splits))
            by_seed = [
                np.concatenate(
                    [ndcg(s, p.test, convention) for s, p in zip(run, splits, strict=True)]
                )
                for run in runs
            ]
            values[system] = np.mean(by_seed, axis=0)
            text = f"{name} | {system} | {values[system].mean():.4f} | {seconds[system]:.1f} s"
            print(text, file=sys.stderr, flush=True)
        base = values.get("CatBoost YetiRank", next(iter(values.values())))
        rows = [
            [system, f"{each.mean():.4f}", difference(each, base), f"{seconds[system]:.1f}"]
            for system, each in values.items()
        ]
        ranks[at] = np.argsort(np.argsort([-each.mean() for each in values.values()])) + 1
        head = ["system", "NDCG@10", "minus CatBoost", "CPU s of a fit"]
        show(f"{name}: {len(base)} queries, seeds {seeds}", head, rows)
    order = [[system, f"{ranks[:, at].mean():.1f}"] for at, system in enumerate(systems)]
    show(f"mean rank over {len(sets)} sets", ["system", "mean rank"], order)


# --- trees for a learned measure

EDITORS = {  # gains of the grades 0, 1, 2; the discount of a position as a fraction of that above
    "best grade, first positions": ((0.0, 0.0, 1.0), 0.6),
    "any relevant, whole page": ((0.0, 1.0, 1.0), 1.0),
}
PREFERENCES, PAGE, EDITOR_NOISE = 2000, 10, 0.3


def learn_measure(train: fp.Dataset, gains: Sequence[float], decay: float, path: str) -> float:
    """Write the measure that is learned from an editor's choices; return its accuracy."""
    rng, discount = np.random.default_rng(0), decay ** np.arange(PAGE)
    pages = np.zeros((2 * PREFERENCES, PAGE), np.int64)
    for page, at in zip(pages, np.repeat(rng.integers(0, len(train), PREFERENCES), 2), strict=True):
        y = train.y[train.offsets[at] : train.offsets[at + 1]]
        page[:] = y[np.argsort(-y - rng.normal(0, rng.uniform(0.3, 2), len(y)))][:PAGE]
    left, right = pages[::2], pages[1::2]
    gap = (np.asarray(gains)[left] - np.asarray(gains)[right]) @ discount
    seen = gap + EDITOR_NOISE * gap.std() * rng.normal(size=len(gap))
    learner = fp.dcglearn.DCGLearn(K=PAGE).fit(left, right, np.where(seen > 0, 1, -1))
    learner.utility_.save(path)
    return float(learner.accuracy_)


def editor_study(name: str, draws: list[int], seeds: list[int]) -> None:
    """Print by how much trees for a measure beat trees for NDCG@10, by that measure."""
    rows = []
    splits = [synthetic(name, draw)[0] for draw in draws]
    with tempfile.TemporaryDirectory() as folder:
        for editor, (gains, decay) in EDITORS.items():
            measures = []
            for split in splits:
                measures.append(f"NDCG({folder}/{len(rows)}-{len(measures)}.json)@10")
                accuracy = learn_measure(split.train, gains, decay, measures[-1][5:-4])
                print(f"agrees with {accuracy:.3f} of the choices", file=sys.stderr)
            rows += compared(editor, splits, splits, measures, seeds)
    ordered = [synthetic(name, draw, ordered=True)[0] for draw in draws]
    rows += compared("top 10 in order", splits, ordered, ["kNDCG@10"] * len(draws), seeds)
    head = ["editors", "ranker", "trained for NDCG@10", "difference if trained for the measure"]
    show(f"{name}, draws {draws}, seeds {seeds}: the learned measure, or kNDCG@10", head, rows)


def compared(
    name: str, graded: list[Split], own: list[Split], measures: list[str], seeds: list[int]
) -> list[list[str]]:
    """Return a row per ranker: trees for NDCG@10 of grades, and for a measure of its own labels.

    The values of a query are averaged over the seeds.
    """
    rows = []
    for ranker in ("LambdaRank(", "PLRank(samples=4, ", "YetiRank("):
        values: list[list[np.ndarray]] = [[], []]
        for *pair, measure in zip(graded, own, measures, strict=True):
            for at, (split, target) in enumerate(zip(pair, ("NDCG@10", measure), strict=True)):
                text, by_seed = f"{ranker}measure='{target}', scorer=trees)", []
                for seed in seeds:
                    scores = ours(text, split, seed)
                    result = fp.evaluate(scores, pair[1].test, measures=measure, ci=False)
                    by_seed.append(result.per_query(measure))
                values[at].append(np.mean(by_seed, axis=0))
        base, best = map(np.concatenate, values)
        rows.append([name, ranker.partition("(")[0], f"{base.mean():.4f}", difference(best, base)])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder of mq2008, ohsumed")
    parser.add_argument("--sets", default="ohsumed,mq2008", help="folders of --data with folds")
    parser.add_argument("--families", default=";".join(FAMILIES), help="synthetic, or none")
    parser.add_argument("--part", choices=["stopping", "objectives", "editors"], default="stopping")
    parser.add_argument("--draw", type=int, default=0, help="the draw of the synthetic families")
    parser.add_argument("--test", action="store_true", help="test on the folds: after the choice")
    parser.add_argument("--seeds", default="0", help="seeds, as in 0,1")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    if chosen.part == "editors":
        editor_study(chosen.families.split(";")[0], [chosen.draw, chosen.draw + 1], seeds)
        return
    names = [] if chosen.families == "none" else chosen.families.split(";")
    sets = {name: synthetic(name, chosen.draw) for name in names}
    if chosen.data is not None:
        sets |= {
            name: inner_folds(chosen.data / name, chosen.test) for name in chosen.sets.split(",")
        }
    if chosen.part == "stopping":
        stopping_study(sets)
    else:
        convention = "letor" if chosen.test else "default"
        objective_study(sets, seeds, convention)
    print(versions("numpy", "lightgbm", "catboost"))


if __name__ == "__main__":
    main()
