"""Quality of fusion on LETOR's MQ2008-agg, 25 partial rankings per query, and on runs by BM25.

    python benchmarks/aggregate_quality.py FOLDER [MQ2008]

FOLDER has S1..S5.ranks.csv (query, ranking, document, rank) and S1..S5.rel.csv (query, 0, document,
label).  Fold f trains on parts f, f + 1, f + 2, validates on f + 3 and tests on f + 4.  Parameters,
weights and models come from the training and validation parts of a fold alone; the score of a
document in a ranking is its negated rank in the full list.  Measures follow LETOR's convention.

MQ2008 is LETOR's folder of that name, with Fold1..Fold5.  Its systems are BM25 of body, anchor,
title, URL and the whole document, each of which lists the ten best documents with a score above 0.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

import firstpage as fp
from common import show
from firstpage.evaluation.measures.significance import paired_t

MEASURES = ["NDCG@5", "NDCG@10", "AP"]
RANKINGS, PARTS = 25, 5
FIXED = (
    "skr(partial=equal)", "skr", "Condorcet", "Copeland", "BestInsertion", "Borda", "RRF",
    "RBC(phi=0.98)", "ISR", "LogNISR", "CombSUM", "CombMNZ", "CombMNZ(normalize=rank)", "CombANZ",
    "CombMAX", "CombMIN", "CombMED",
)  # fmt: skip
TUNED = ("RRF", "RBC", "skr", "CombMNZ")
FIELDS = {"body": 20, "anchor": 21, "title": 22, "url": 23, "whole": 24}  # columns of BM25
Fuser = Callable[[list[fp.Run], fp.Qrels, list[fp.Run]], fp.Run]


def read_parts(folder: Path, parts: list[int]) -> tuple[list[fp.Run], fp.Qrels]:
    """Return the rankings and the judgments of some parts."""
    runs: list[dict[str, dict[str, float]]] = [defaultdict(dict) for _ in range(RANKINGS)]
    qrels: dict[str, dict[str, float]] = defaultdict(dict)
    for part in parts:
        with open(folder / f"S{part}.ranks.csv") as file:
            for query, ranking, document, rank in csv.reader(file):
                runs[int(ranking) - 1][query][document] = -float(rank)
        with open(folder / f"S{part}.rel.csv") as file:
            for query, _, document, label in csv.reader(file):
                qrels[query][document] = float(label)
    named = [fp.Run.from_dict(run, f"r{a}") for a, run in enumerate(runs, 1)]
    return named, fp.Qrels.from_dict(qrels)


def read_bm25(folder: Path, fold: int) -> list[tuple[list[fp.Run], fp.Qrels]]:
    """Return runs of the fields and judgments: of training and validation, and of test queries."""
    subsets = []
    for files in (("train.txt", "vali.txt"), ("test.txt",)):
        tables: list[dict[str, dict[str, float]]] = [{} for _ in FIELDS]
        qrels: dict[str, dict[str, float]] = {}
        for data in (fp.read_letor(folder / f"Fold{fold + 1}" / file) for file in files):
            for query, part in zip(data.queries, data, strict=True):
                docs = list(part.docids)
                qrels[query] = dict(zip(docs, part.y.tolist(), strict=True))
                for table, column in zip(tables, FIELDS.values(), strict=True):
                    scores = part.X[:, column]
                    best = [i for i in np.argsort(-scores, kind="stable")[:10] if scores[i] > 0]
                    table[query] = {docs[i]: float(scores[i]) for i in best}
        runs = [fp.Run.from_dict(t, name) for t, name in zip(tables, FIELDS, strict=True)]
        subsets.append((runs, fp.Qrels.from_dict(qrels)))
    return subsets


def fixed(text: str) -> Fuser:
    return lambda _, __, test: fp.aggregation.aggregate(test, text, depth=None).run


def weighted(text: str) -> Fuser:
    def fuse(train: list[fp.Run], qrels: fp.Qrels, test: list[fp.Run]) -> fp.Run:
        weights = fp.aggregation.supervised_weights(train, qrels)
        return fp.aggregation.aggregate(test, text, weights=weights, depth=None).run

    return fuse


def tuned(text: str) -> Fuser:
    def fuse(train: list[fp.Run], qrels: fp.Qrels, test: list[fp.Run]) -> fp.Run:
        best = fp.aggregation.tune_method(train, qrels, text, what="all")
        return fp.aggregation.aggregate(test, best.method, weights=best.weights, depth=None).run

    return fuse


def learned(ranker: str, *features: str) -> Fuser:
    return lambda train, qrels, test: (
        fp.LearnedFusion(ranker, features, folds=2).fit(train, qrels).fuse(test)
    )


def best_single(train: list[fp.Run], qrels: fp.Qrels, test: list[fp.Run]) -> fp.Run:
    means = [fp.evaluate(run, qrels, measures="NDCG@10")["NDCG@10"] for run in train]
    return test[int(np.argmax(means))]


def compare(title: str, folds: list[list[tuple[list[fp.Run], fp.Qrels]]]) -> None:
    """Print the means of all methods over folds, each of training and of test queries."""
    families = ("presence", "rank", "agreement")
    methods: dict[str, Fuser] = {
        "best ranking": best_single,
        **{text: fixed(text) for text in FIXED},
        **{f"{text}, weighted": weighted(text) for text in ("skr", "RRF")},
        **{f"{text}, tuned": tuned(text) for text in TUNED},
        "learned, ListNet": learned("ListNet", *families),
        "learned, ListNet, with scores": learned("ListNet", *families, "score"),
        "learned, ListMLE(k=10)": learned("ListMLE(k=10)", *families),
    }
    values: dict[str, list[np.ndarray]] = {name: [] for name in methods}
    for (train, qrels), (test, truth) in folds:
        for name, fuse in methods.items():
            fused = fuse(train, qrels, test)
            result = fp.evaluate(fused, truth, measures=MEASURES, convention="letor")
            values[name].append(np.array([result.per_query(m) for m in MEASURES]))
    baseline = np.concatenate(values["RRF"], axis=1)
    rows = []
    for name, of_folds in values.items():
        means = np.mean([part.mean(axis=1) for part in of_folds], axis=0)
        p = paired_t((np.concatenate(of_folds, axis=1) - baseline)[1])
        rows.append([name, *(f"{mean:.3f}" for mean in means), "" if name == "RRF" else f"{p:.2g}"])
    show(f"{title}, means of five folds", ["method", *MEASURES, "p (NDCG@10, RRF)"], rows)


def main() -> None:
    warnings.simplefilter("ignore", fp.FirstpageWarning)
    numbers = [[(fold + i) % PARTS + 1 for i in range(PARTS)] for fold in range(PARTS)]
    folder = Path(sys.argv[1])
    compare("MQ2008-agg", [[read_parts(folder, n[:4]), read_parts(folder, n[4:])] for n in numbers])
    if len(sys.argv) > 2:
        compare("BM25 of five fields", [read_bm25(Path(sys.argv[2]), f) for f in range(PARTS)])


if __name__ == "__main__":
    main()
