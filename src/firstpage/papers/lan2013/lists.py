"""Test values of rankers that are trained on the top k of full orders, for many k.

Training, tuning and testing use labels n - rank; measures accept them at any length, since gains
are relative to the largest one.  The paper takes at most 500 gradient steps with one of five rates;
here the convex losses are minimized to the optimum, with a tuned penalty, and the number of rounds
of RankBoost is chosen on validation data.

Long lists are simulated, too.  Their order is that of a linear utility with as much noise as
signal.  The first 15 % of a list are the same for all kinds of tails:

clean       the rest continues in this order
random      the rest is shuffled: pure noise
misleading  the rest follows another direction of the features, which can be learned
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from firstpage.core import Floats
from firstpage.data import Dataset, Synthetic, Truth
from firstpage.evaluation.measures import evaluate
from firstpage.learning.rankers import Ranker, create_ranker, tune
from firstpage.papers.study.letor_protocol import draw_seed, load_fold, measure_rows
from firstpage.papers.study.study import Row

MEASURES = ("NDCG@5", "NDCG@10")
FULL = "full"
ROUNDS = 300
# Early stopping would depend on noise: all rounds are run, and the best number of them is used.
EXTRA_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "RankBoost": {"rounds": ROUNDS, "patience": ROUNDS}
}
# Section 4.1: at most 500 rounds, a tolerance to stop by, and gradient descent without a penalty.
PRINTED_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "RankBoost": {"rounds": 500, "patience": 500},
    "RankNet": {"l2": 0.0},
    "ListMLE": {"l2": 0.0},
}
Depth = int | str  # k, or FULL
ParameterGrid = Mapping[str, Sequence[Any]]
Values = dict[str, Floats]  # by measure: one value per query


def evaluate_on_ordered_lists(
    rng: np.random.Generator,
    data: str,
    model: str,
    ks: Sequence[Depth],
    grid: ParameterGrid,
    fold: int,
    folder: str,
    printed: bool = False,
) -> list[Row]:
    """Return the rows of Figures 1 and 2 for one fold; labels are full orders, larger is better."""
    train, valid, test = _ordered_fold(folder, fold, 0)
    return [
        row
        for k in ks
        for row in measure_rows(
            query_values(fit_top_k(model, k, grid, train, valid, printed=printed), test),
            _labels(data, model, k),
        )
    ]


def evaluate_on_graded_lists(
    rng: np.random.Generator,
    data: str,
    model: str,
    ks: Sequence[Depth],
    grid: ParameterGrid,
    normalize: str | None,
    fold: int,
    folder: str,
    printed: bool = False,
) -> list[Row]:
    """Return the rows of one fold of graded data with equal grades in a random order.

    Rankers are tested on this order, and on the grades.
    """
    train, valid, test = _ordered_fold(folder, fold, draw_seed(rng))
    rows = list[Row]()
    for k in ks:
        ranker = fit_top_k(model, k, grid, train, valid, normalize, printed)
        values = query_values(ranker, test)
        values["NDCG@10, grades"] = query_values(ranker, load_fold(folder, fold).test)["NDCG@10"]
        rows += measure_rows(values, _labels(data, model, k))
    return rows


def fit_top_k(
    model: str,
    k: Depth,
    grid: ParameterGrid,
    train: Dataset,
    valid: Dataset,
    normalize: str | None = None,
    printed: bool = False,
) -> Ranker:
    """Return a ranker fitted to the top-k truth, with parameters tuned on validation data.

    With `printed`, rankers have the printed numbers of rounds and no penalty.
    """
    depth = None if k == FULL else k
    extra = (PRINTED_PARAMETERS if printed else EXTRA_PARAMETERS).get(model, {})
    ranker = create_ranker(model, k=depth, normalize=normalize, threads=1, **extra)
    if grid:
        return tune(ranker, train, valid, grid).best
    return ranker.fit(train, valid=valid)


def query_values(ranker: Ranker, test: Dataset) -> Values:
    """Return the values of all measures per test query."""
    evaluation = evaluate(ranker.predict(test), test, measures=list(MEASURES))
    return {m: evaluation.per_query(m) for m in MEASURES}


def _labels(data: str, model: str, k: Depth) -> dict[str, Any]:
    return {"data": data, "model": model, "k": k}


def _ordered_fold(folder: str, number: int, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    """Return training, validation and test data as full orders; the seed orders equal labels."""
    fold = load_fold(folder, number)
    train, valid, test = (
        data.with_labels(data.truth.full_order(seed))
        for data in (fold.train, fold.valid, fold.test)
    )
    return train, valid, test


TailKind = Literal["clean", "random", "misleading"]
TOP_FRACTION = 0.15
SPLIT_SIZES = (60, 40, 200)  # training, validation and test queries
FEATURES, NOISE = 46, 1.0


def evaluate_on_synthetic_lists(
    rng: np.random.Generator,
    tail: TailKind,
    n: int,
    ks: Sequence[Depth],
    grids: Mapping[str, ParameterGrid],
    printed: bool = False,
) -> list[Row]:
    """Return the means over test queries; every run has its own lists.

    `grids` has the parameter grid of each ranker.
    """
    train, valid, test = synthetic_lists(draw_seed(rng), tail, n)
    rows = list[Row]()
    for model, grid in grids.items():
        for k in ks:
            measured = query_values(fit_top_k(model, k, grid, train, valid, printed=printed), test)
            rows += [
                {
                    "data": f"synthetic, n = {n}",
                    "model": model,
                    "k": k,
                    "measure": m,
                    "value": float(values.mean()),
                }
                for m, values in measured.items()
            ]
    return rows


def synthetic_lists(
    seed: int, tail: TailKind, n: int, split_sizes: tuple[int, ...] = SPLIT_SIZES
) -> tuple[Dataset, Dataset, Dataset]:
    """Return simulated training, validation and test data."""
    generator = Synthetic(
        queries=sum(split_sizes),
        docs=n,
        features=FEATURES,
        noise=NOISE,
        labels="order",
        head_fraction=TOP_FRACTION if tail == "misleading" else None,
        seed=seed,
    )
    data = generator.dataset()
    if tail == "random":
        data = data.with_labels(shuffle_tails(data.truth, seed))
    ends = np.cumsum([0, *split_sizes])
    train, valid, test = (data[np.arange(a, b)] for a, b in pairwise(ends.tolist()))
    return train, valid, test


def shuffle_tails(truth: Truth, seed: int) -> Truth:
    """Return the truth with the documents below the top in a random order."""
    rng = np.random.default_rng([seed, 1])
    labels = truth.labels.copy()
    for low, high in pairwise(truth.offsets.tolist()):
        n = high - low
        tail = low + np.flatnonzero(labels[low:high] < n - round(TOP_FRACTION * n))
        labels[tail] = rng.permutation(labels[tail])
    return Truth(labels, truth.offsets, truth.queries)
