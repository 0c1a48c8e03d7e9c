"""Rankers that learn from simulated clicks: what corrections recover (docs/clicks.md).

    FIRSTPAGE_DATA=data python benchmarks/clicks.py --sets mq2008 --sessions 1000,100000

The logging ranker is trained on 1 % of the training queries; users see its ranking, shuffled a
little on each page, and click by the human grades.  --logging replace-last also shows a random
document at the last rank (Oosterhuis and de Rijke 2020), and plackett-luce samples each page from
the softmax of the standardized scores.  Learners are RankNet, which is linear, and ListNet with
trees, beside trees of LightGBM and XGBoost.

"full" learns the click probabilities of the grades themselves, of all documents; "full, displayed"
of those that the log displays; "click-through" clicks by impressions.  "EB" is empirical Bayes, and
"click model" the one of CLICK_MODELS that predicts held-out pages best.  Values are NDCG@10 on
test queries; what is recovered is the part of what naive learning with the same scorer loses to
full information, of all documents and of those displayed, and p is that of a paired t-test against
naive.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

import firstpage as fp
from firstpage.clicks.position_bias.by_features import estimator

ROOT = Path(os.environ.get("FIRSTPAGE_DATA", "data"))
FILES = {
    "mq2008": ("mq2008/Fold1/train.txt", "mq2008/Fold1/test.txt"),
    "ohsumed": ("ohsumed/Fold1/train.txt", "ohsumed/Fold1/test.txt"),
    "mslr": ("mslr-web10k-5k/train.txt", "mslr-web10k-5k/test.txt"),
}
WITH_TREES = ("full", "naive", "IPS", "EB")
TREES = "trees(count=200, leaves=8, rate=0.05)"  # as of the peers
CLICK_MODELS = ("PBM", "UBM", "SimplifiedDBN")
COMPARED_PAGES = 20_000  # by which the click model is chosen, a fifth of them held out
DEPTH = 10  # documents per page
LOGGING = ("shuffled", "replace-last", "plackett-luce")
Values = dict[str, np.ndarray]


def read(name: str) -> tuple[fp.Dataset, fp.Dataset]:
    """Return training and test data with document ids."""
    parts = []
    for path in FILES[name]:
        data = fp.read(ROOT / path)
        ids = [f"d{row}" for row in range(data.n_docs)]
        parts.append(fp.Dataset.from_arrays(data.X, data.y, data.qid, docid=ids))
    return parts[0], parts[1]


def logging_scores(data: fp.Dataset, seed: int) -> np.ndarray:
    """Return the scores of a ranker trained on 1 % of the queries that have preferences."""
    useful = [q for q in range(len(data)) if np.ptp(data[q].y) > 0]
    count = max(round(0.01 * len(data)), 1)
    chosen = np.random.default_rng(seed).choice(useful, count, replace=False)
    logger = fp.RankNet(normalize="minmax", l2=0.1).fit(data[chosen])
    return np.asarray(logger.predict(data))


def logged(
    data: fp.Dataset, users: str, count: int, seed: int, noise: float, logging: str
) -> fp.Sessions:
    """Return simulated sessions on pages of the logging ranker."""
    scores, docids = logging_scores(data, seed), list(data.docid)
    if logging == "shuffled":
        run = fp.Run.from_arrays(data.qid, docids, scores)
        qrels = fp.Qrels.from_arrays(data.qid, docids, data.y)
        return fp.clicks.simulate(run, qrels, users, n_sessions=count, noise=noise, seed=seed)
    model, rng = fp.clicks.SimulatedUsers.named(users), np.random.default_rng(seed)
    grades = np.round(data.y / data.y.max() * (model.click.shape[-1] - 1)).astype(np.int8)
    pages = rng.multinomial(count, np.full(len(data), 1 / len(data)))
    columns: dict[str, list[np.ndarray]] = {"query": [], "document": [], "rank": [], "clicked": []}
    for query, (first, end) in enumerate(pairwise(data.offsets.tolist())):
        known, shape = scores[first:end], (pages[query], end - first)
        if logging == "plackett-luce":
            key = -known / max(known.std(), 1e-9) - rng.gumbel(size=shape)
        else:
            key = np.argsort(np.argsort(-known)) + noise * rng.normal(size=shape)
        order = np.argsort(key, axis=1)
        if logging == "replace-last" and end - first > DEPTH:
            other = rng.integers(DEPTH - 1, end - first, len(order))
            order[:, DEPTH - 1] = order[np.arange(len(order)), other]
        rows = first + order[:, :DEPTH]
        columns["query"].append(np.full(rows.size, query))
        columns["document"].append(rows.ravel())
        columns["rank"].append(np.tile(np.arange(1, rows.shape[1] + 1), len(rows)))
        columns["clicked"].append(model.clicks(grades[rows], rng).ravel())
    sessions = fp.Sessions.from_arrays(
        **{name: np.concatenate(parts) for name, parts in columns.items()}
    )
    return replace(
        sessions,
        queries=tuple(str(data.queries[int(name)]) for name in sessions.queries),
        documents=tuple(docids[int(name)] for name in sessions.documents),
    )


def full_information(
    data: fp.Dataset, users: fp.clicks.SimulatedUsers, largest: float
) -> fp.ClickTraining:
    """Return training data with the probabilities of clicks of the grades, all queries equal."""
    click = np.atleast_2d(users.click)[0]
    grade = np.round(data.y / largest * (len(click) - 1)).astype(int)
    relevance = click[grade]
    return fp.ClickTraining(data.with_labels(relevance), "full", 0, 0, {}, ())


def learn(training: fp.ClickTraining, scorer: str = "linear") -> fp.Ranker:
    """Return a linear learner of weighted pairs, or trees that learn the labels."""
    if scorer == "trees":
        return fp.ListNet(scorer=TREES).fit(training.data)
    return fp.RankNet(normalize="minmax").fit(training.data, pairs=training.pairs)


def peers(sessions: fp.Sessions, data: fp.Dataset, test: fp.Dataset) -> Values:
    """Return values of LightGBM with positions and XGBoost unbiased; each page is a query."""
    import lightgbm
    import xgboost

    pages = np.flatnonzero(np.add.reduceat(sessions.clicks, sessions.offsets[:-1]) > 0)[:20_000]
    some = sessions.select(pages)
    row_of = {name: row for row, name in enumerate(data.docid)}
    rows = np.array([row_of[some.documents[d]] for d in some.document])
    X, clicked, sizes = data.X[rows], some.clicked.astype(int), np.diff(some.offsets)
    params = {"objective": "lambdarank", "num_leaves": 8, "learning_rate": 0.05, "verbose": -1,
              "num_threads": 1}  # fmt: skip
    light = lightgbm.Dataset(X, clicked, group=sizes, position=some.rank)
    booster = lightgbm.train(params, light, 200)
    xgb = xgboost.DMatrix(X, clicked)
    xgb.set_group(sizes)
    forest = xgboost.train(
        {"objective": "rank:ndcg", "lambdarank_unbiased": True, "max_leaves": 8, "eta": 0.05,
         "grow_policy": "lossguide", "tree_method": "hist", "ndcg_exp_gain": False, "nthread": 1,
         "lambdarank_pair_method": "topk"}, xgb, 200,
    )  # fmt: skip
    return {
        "LightGBM position=": value(booster.predict(test.X), test),
        "XGBoost unbiased": value(forest.predict(xgboost.DMatrix(test.X)), test),
    }


def value(scores: Any, test: fp.Dataset) -> np.ndarray:
    """Return NDCG@10 of each test query."""
    return fp.evaluate(scores, test, measures="NDCG@10").per_query("NDCG@10")


def corrected(
    sessions: fp.Sessions, data: fp.Dataset, name: str
) -> dict[str, Callable[[], fp.ClickTraining]]:
    """Return training data of the log by the name of the correction."""
    users, ones = fp.clicks.SimulatedUsers.named(name), [1.0] * DEPTH

    @cache
    def estimated() -> Any:
        return fp.clicks.estimate_propensities(sessions)

    @cache
    def jointly(method: str) -> Any:
        """Return what estimate_propensities does, without intervals, which take 20 more fits."""
        fit, parameters = estimator(sessions, data, method, np.unique(sessions.rank))
        logarithms, _ = fit(np.ones(sessions.n_pages), np.zeros(parameters))
        return np.exp(logarithms - logarithms[0])

    def by(correction: Any, propensities: Callable[[], Any]) -> Callable[[], fp.ClickTraining]:
        return lambda: fp.from_clicks(sessions, data, propensities(), correction=correction)

    eb = "empirical-bayes"
    rows = {
        "naive": by(None, lambda: None),
        "default": by(None, estimated),
        "IPS": by("ips", estimated),
        "policy-aware": by("policy-aware", estimated),
        "EB": by(eb, estimated),
        "EB, click model": by(eb, lambda: best_click_model(sessions)),
        "EB, regression EM": by(eb, lambda: jointly("regression-em")),
        "EB, dual learning": by(eb, lambda: jointly("dual")),
        "IPS, regression EM": by("ips", lambda: jointly("regression-em")),
        "IPS, dual learning": by("ips", lambda: jointly("dual")),
        "click-through": by(eb, lambda: ones),
    }
    if users.examination is not None and np.ndim(users.click) == 1:
        for row, correction in (("default", None), ("IPS", "ips"), ("EB", eb)):
            rows[f"{row}, correct"] = by(correction, lambda: users.propensities(DEPTH))
    if name == "trust":
        rows["EB, affine"] = by(eb, lambda: fp.clicks.trust_bias(sessions))
    return rows


def best_click_model(sessions: fp.Sessions) -> fp.clicks.ClickModel:
    """Return the click model that predicts held-out pages of a sample best, fitted to the log."""
    rng, size = np.random.default_rng(0), min(sessions.n_pages, COMPARED_PAGES)
    sample = sessions.select(rng.choice(sessions.n_pages, size, replace=False))
    scores = fp.clicks.compare_models(CLICK_MODELS, *sample.split()).scores
    print(f"  click model: {scores[0].model}", flush=True)
    return fp.clicks.click_model(scores[0].model).fit(sessions)


def displayed(data: fp.Dataset, sessions: fp.Sessions) -> fp.Dataset:
    """Return the documents that the log displays."""
    pairs, names = sessions.pairs, np.array(sessions.documents)
    rows = np.flatnonzero(np.isin(np.array(list(data.docid)), names[pairs.document]))
    ids = np.array(list(data.docid))[rows]
    return fp.Dataset.from_arrays(data.X[rows], data.y[rows], data.qid[rows], docid=list(ids))


def measured(
    dataset: str, users: str, count: int, seed: int, scorer: str, args: argparse.Namespace
) -> tuple[Values, dict[str, float]]:
    """Return the values per query of each row for one logging ranker, and the CPU time."""
    data, test = read(dataset)
    sessions = logged(data, users, count, seed, args.noise, args.logging)
    model, largest = fp.clicks.SimulatedUsers.named(users), data.y.max()
    rows = {
        "full": lambda: full_information(data, model, largest),
        "full, displayed": lambda: full_information(displayed(data, sessions), model, largest),
    } | corrected(sessions, data, users)
    results: Values = {}
    spent: dict[str, float] = {}
    chosen = WITH_TREES if scorer == "trees" else args.rows.split(";") if args.rows else rows
    for name in chosen:
        start = time.process_time()
        results[name] = value(learn(rows[name](), scorer).predict(test), test)
        spent[name] = time.process_time() - start
    return results | (peers(sessions, data, test) if scorer == "trees" else {}), spent


def setting(dataset: str, users: str, count: int, scorer: str, args: argparse.Namespace) -> None:
    """Print the rows of one data set, one kind of users and one number of sessions."""
    seeds = [int(seed) for seed in args.seeds.split(",")]
    runs = [measured(dataset, users, count, seed, scorer, args) for seed in seeds]
    results = {name: np.mean([values[name] for values, _ in runs], axis=0) for name in runs[0][0]}
    means, naive = {name: values.mean() for name, values in results.items()}, results["naive"]
    for name, values in results.items():
        p = ttest_rel(values, naive).pvalue if name != "naive" else float("nan")
        parts = []
        for ceiling in ("full", "full, displayed"):
            lost = means.get(ceiling, np.nan) - means["naive"]
            parts.append((means[name] - means["naive"]) / lost if lost >= 0.01 else np.nan)
        print(
            f"{dataset:8} {users:14} {count:9,} {scorer:6} {name:24} {means[name]:.4f} "
            f"recovered {100 * parts[0]:5.0f} % of full, {100 * parts[1]:5.0f} % of displayed, "
            f"p {p:.3f} CPU {runs[0][1].get(name, 0.0):5.1f} s",
            flush=True,
        )


def million() -> None:
    """Print the CPU time of a million sessions: 100 features learned, ten rankings estimated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 100)).astype(np.float32)
    qid, docid = np.repeat(np.arange(2000), 20), [str(n) for n in range(len(X))]
    grades = np.clip(np.round(X[:, :5].sum(axis=1) / 2 + 1), 0, 4)
    data = fp.Dataset.from_arrays(X, grades, qid, docid=docid)
    run = fp.Run.from_arrays(qid, docid, X[:, 0])
    users = fp.clicks.SimulatedUsers.named("pbm")
    sessions = fp.clicks.simulate(
        run, fp.Qrels.from_arrays(qid, docid, grades), n_sessions=1_000_000, noise=1.0
    )
    sessions = replace(sessions)  # without what the simulation has computed
    start = time.process_time()
    training = fp.from_clicks(sessions, data, fp.clicks.estimate_propensities(sessions))
    read_at = time.process_time()
    learn(training)
    print(f"a million sessions: {read_at - start:.1f} s of CPU for propensities and training data, "
          f"{time.process_time() - read_at:.1f} s for RankNet")  # fmt: skip
    known = {rank: float(p) for rank, p in enumerate(users.propensities(10), 1)}
    rankings = [
        fp.Run.from_arrays(qid, docid, X[:, 0] + 0.3 * rng.normal(size=len(X))) for _ in range(10)
    ]
    start = time.process_time()
    log = fp.clicks.ClickLog(replace(sessions), known)
    for ranking in rankings:
        fp.evaluate_clicks(ranking, log)
    print(f"ten rankings estimated in {time.process_time() - start:.1f} s of CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="mq2008,ohsumed,mslr")
    parser.add_argument("--users", default="pbm,trust,navigational")
    parser.add_argument("--sessions", default="1000,10000,100000,1000000")
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--seeds", default="0,1,2", help="logging rankers; values are their means")
    parser.add_argument(
        "--scorers", default="linear,trees", help="trees are beside those of LightGBM and XGBoost"
    )
    parser.add_argument("--logging", choices=LOGGING, default="shuffled")
    parser.add_argument("--rows", help="rows of linear rankers, such as 'full;naive;EB'")
    parser.add_argument("--million", action="store_true", help="measure the CPU time only")
    args = parser.parse_args()
    if args.million:
        million()
        return
    for dataset in args.sets.split(","):
        for users in args.users.split(","):
            for count in map(int, args.sessions.split(",")):
                for scorer in args.scorers.split(","):
                    setting(dataset, users, count, scorer, args)


if __name__ == "__main__":
    main()
