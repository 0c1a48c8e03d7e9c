"""Floors: the least time that the bytes or comparisons of a task need, and what Firstpage needs.

    python benchmarks/floors.py

Each task is measured beside the cheapest thing that any program must do on the same data, on one
thread: read every byte once, or sort every list once with NumPy.  CPU time, least of five repeats.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import firstpage as fp
from common import seconds, show, versions
from firstpage.evaluation.dcglearn import (
    PairSums,
    encode,
    reverse_pairs,
    solve,
    weight_cone,
    zhou_simulator,
)
from firstpage.learning.rankers.trees.growth import Gradients
from firstpage.search import Matcher
from text import documents, queries

QUERIES, DOCS, FEATURES, TEXTS = 2000, 100, 46, 20_000


def least(job: Callable[[], object]) -> float:
    """Return the least CPU time of five runs, after an untimed one."""
    job()
    times = []
    for _ in range(5):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def row(task: str, floor: str, needed: float, measured: float) -> list[str]:
    return [task, floor, seconds(needed), seconds(measured), f"{measured / needed:.1f}"]


def evaluation_rows(data: fp.Dataset) -> list[list[str]]:
    """Return the rows of evaluation."""
    scores = np.random.default_rng(0).normal(size=data.n_docs)
    read = least(lambda: (scores.sum(), data.y.sum()))
    sort = least(lambda: np.argsort(scores.reshape(QUERIES, DOCS), axis=1))

    def evaluation(measure: str) -> float:
        return least(lambda: fp.evaluate(scores, data, measures=measure, ci=False))

    gradients = Gradients(fp.extend.loss("SampledNeighbors"), data.truth)
    return [
        row("evaluate NDCG@10", "read scores and labels", read, evaluation("NDCG@10")),
        row("evaluate AP", "sort the lists", sort, evaluation("AP")),
        row("YetiRank, a gradient", "sort the lists", sort, least(lambda: gradients(scores))),
    ]


def training_rows(data: fp.Dataset) -> list[list[str]]:
    """Return the rows of an iteration of linear rankers, which reads the features at least once."""
    X = np.ascontiguousarray(data.X)
    read = least(lambda: X.sum())
    rows = []
    for name in ("ListNet", "RankSVM"):
        ranker = fp.ranker(name, threads=1)
        measured = least(lambda ranker=ranker: ranker.fit(data)) / ranker.n_iter_
        rows.append(row(f"{name}, an iteration", "read the features", read, measured))
    return rows


def parsing_row(data: fp.Dataset, folder: Path) -> list[str]:
    """Return the row of LETOR text, every byte of which must be read."""
    path = folder / "data.txt"
    fp.write_letor(data[:200], path)
    text = path.read_bytes()

    needed = least(lambda: text.count(b"\n"))
    measured = least(lambda: fp.read_letor(path, cache=False).X)
    return row("parse LETOR text", "find the ends of lines", needed, measured)


def aggregation_row() -> list[str]:
    """Return the row of Supervised Kemeny, which has to sort the lists of five rankers."""
    rng = np.random.default_rng(0)
    scores, base = rng.normal(size=(5, 100_000)), rng.normal(size=100_000)
    offsets = np.arange(0, 100_001, DOCS)
    sort = least(lambda: np.argsort(scores.reshape(5, -1, DOCS), axis=2))
    made = fp.aggregation.Ballots.from_scores

    def aggregate() -> object:
        ballots = made(scores, offsets, base)
        return fp.aggregation.aggregate(ballots, weights=[0.25, 0.22, 0.2, 0.18, 0.15]).scores

    return row("aggregate 1,000 x 5 lists", "sort the lists", sort, least(aggregate))


def learning_row() -> list[str]:
    """Return the row of DCGLearn, an iteration of which reads the pairs at least once."""
    rng = np.random.default_rng(0)
    pairs = encode(reverse_pairs(zhou_simulator(2).pairs(20_000, rng), 0.1, rng), 10, 5)
    delta, weights = pairs.sparse(), np.ones(50)

    def learn() -> object:
        return solve(PairSums(pairs, np.ones(3), 1), weight_cone(10, 5), np.full(3, 1.0))

    product = least(lambda: delta @ weights)
    return row("DCGLearn, 20,000 pairs", "a product with all pairs", product, least(learn))


def text_rows(folder: Path) -> list[list[str]]:
    """Return the rows of indexing and search."""
    listed, typed = list(documents(TEXTS)), queries(100)
    words = [doc["title"] + " " + doc["text"] for doc in listed]
    split = least(lambda: [text.split() for text in words])
    path = folder / "index"
    start = time.process_time()
    fp.Index.from_documents(listed, path, latent=0)
    indexing = time.process_time() - start
    index = fp.Index(path)
    matcher = Matcher(index.forward)
    sums = np.random.default_rng(0).random(TEXTS)

    def search() -> None:
        for _, text in typed:
            index.retrieve(index.forward.query(text), 100, None, matcher)

    select = least(lambda: np.argpartition(sums, -100))
    return [
        row(f"index {TEXTS:,} texts", "split at spaces, in Python", split, indexing),
        row("search, a query", "select 100 of the scores", select, least(search) / len(typed)),
    ]


def main() -> None:
    warnings.simplefilter("ignore")
    data = fp.Synthetic(queries=QUERIES, docs=DOCS, features=FEATURES, grades=3, seed=0).dataset()
    with tempfile.TemporaryDirectory() as name:
        rows = [
            *evaluation_rows(data),
            *training_rows(data),
            parsing_row(data, Path(name)),
            aggregation_row(),
            learning_row(),
            *text_rows(Path(name)),
        ]
    head = ["task", "floor", "CPU of the floor", "CPU of Firstpage", "ratio"]
    show(f"{QUERIES} x {DOCS} x {FEATURES}, one thread", head, rows)
    print(versions("numpy"))


if __name__ == "__main__":
    main()
