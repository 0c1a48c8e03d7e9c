"""Test values of rankers that are trained on the top k of full orders, for many k.

Trained, chosen and tested on labels n - place: the measures take them at any length, since gains
are reckoned as shares of the greatest.  The paper steps along gradients with five rates for at
most 500 steps; here the convex losses are brought to their optimum, with the penalty chosen
instead, and validation data say how many rounds of RankBoost are kept.

Long lists are made up, too, whose tail is known to be right, noise, or something else.  A list's
order is that of a linear utility with as much noise as there is signal.  The first 15 % are the
same in all kinds of tails:

clean   the rest goes on in this order
random  the rest is shuffled: noise, with nothing to learn
other   the rest follows another direction of the features, which can be learned, and misleads
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.synthetic import Synthetic
from firstpage.data.truth import Truth
from firstpage.measures.evaluate import evaluate
from firstpage.papers.study.letor_protocol import fold as _fold
from firstpage.papers.study.letor_protocol import rows_of, seed_of
from firstpage.papers.study.study import Row
from firstpage.rankers.methods import create_ranker
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.selection.tuning import tune
from firstpage.types import Floats

MEASURES = ("NDCG@5", "NDCG@10")
FULL = "full"
ROUNDS = 300
# Early stopping would end it by chance; all rounds are made, and the best number of them is kept.
RULES: Mapping[str, Mapping[str, Any]] = {"RankBoost": {"rounds": ROUNDS, "patience": ROUNDS}}
Depth = int | str  # k, or FULL
Grid = Mapping[str, Sequence[Any]]
Values = dict[str, Floats]  # by measure, one a query


def listed(
    rng: np.random.Generator, data: str, model: str, ks: Sequence[Depth],
    grid: Grid, fold: int, folder: str,
) -> list[Row]:  # fmt: skip
    """Figures 1 and 2: one fold of a folder whose labels are full orders, larger is nearer the
    top."""
    train, valid, test = _ordered(folder, fold, 0)
    return [
        row
        for k in ks
        for row in rows_of(
            tested(trained(model, k, grid, train, valid), test), _labels(data, model, k)
        )
    ]


def graded(
    rng: np.random.Generator, data: str, model: str, ks: Sequence[Depth],
    grid: Grid, normalize: str | None, fold: int, folder: str,
) -> list[Row]:  # fmt: skip
    """One fold of graded data, equal grades in a random order; tested on this order, and on the
    grades."""
    train, valid, test = _ordered(folder, fold, seed_of(rng))
    rows = list[Row]()
    for k in ks:
        ranker = trained(model, k, grid, train, valid, normalize)
        found = tested(ranker, test)
        found["NDCG@10, grades"] = tested(ranker, _fold(folder, fold).test)["NDCG@10"]
        rows += rows_of(found, _labels(data, model, k))
    return rows


def trained(
    model: str, k: Depth, grid: Grid, train: Dataset, valid: Dataset,
    normalize: str | None = None,
) -> Ranker:  # fmt: skip
    """On the top-k truth, with the parameters that are best on validation data."""
    depth = None if k == FULL else k
    ranker = create_ranker(model, k=depth, normalize=normalize, threads=1, **RULES.get(model, {}))
    if grid:
        return tune(ranker, train, valid, grid).best
    return ranker.fit(train, valid=valid)


def tested(ranker: Ranker, test: Dataset) -> Values:
    found = evaluate(ranker.predict(test), test, measures=list(MEASURES))
    return {m: found.per_query(m) for m in MEASURES}


def _labels(data: str, model: str, k: Depth) -> dict[str, Any]:
    return {"data": data, "model": model, "k": k}


def _ordered(folder: str, number: int, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    """Training, validation and test data as full orders; equal labels as the seed has it."""
    of = _fold(folder, number)
    train, valid, test = (
        each.with_labels(each.truth.full_order(seed)) for each in (of.train, of.valid, of.test)
    )
    return train, valid, test


Tail = Literal["clean", "random", "other"]
TOP = 0.15
PARTS = (60, 40, 200)  # queries to train on, to choose on, to test on
FEATURES, NOISE = 46, 1.0


def curves(
    rng: np.random.Generator, tail: Tail, n: int, ks: Sequence[Depth], grids: Mapping[str, Grid]
) -> list[Row]:
    """Means over test queries, a grid a ranker; runs differ in all their lists."""
    train, valid, test = lists(seed_of(rng), tail, n)
    rows = list[Row]()
    for model, grid in grids.items():
        for k in ks:
            found = tested(trained(model, k, grid, train, valid), test)
            rows += [
                {"data": f"synthetic, n = {n}", "model": model, "k": k, "measure": m,
                 "value": float(values.mean())}
                for m, values in found.items()
            ]  # fmt: skip
    return rows


def lists(
    seed: int, tail: Tail, n: int, parts: tuple[int, ...] = PARTS
) -> tuple[Dataset, Dataset, Dataset]:
    """Training, validation and test data."""
    recipe = Synthetic(
        queries=sum(parts), docs=n, features=FEATURES, noise=NOISE, labels="order",
        tail=TOP if tail == "other" else None, seed=seed,
    )  # fmt: skip
    data = recipe.dataset()
    if tail == "random":
        data = data.with_labels(shuffled(data.truth, seed))
    ends = np.cumsum([0, *parts])
    train, valid, test = (data[np.arange(a, b)] for a, b in pairwise(ends.tolist()))
    return train, valid, test


def shuffled(truth: Truth, seed: int) -> Truth:
    """The same tops; what is below them in a random order."""
    rng = np.random.default_rng([seed, 1])
    labels = truth.labels.copy()
    for low, high in pairwise(truth.offsets.tolist()):
        n = high - low
        tail = low + np.flatnonzero(labels[low:high] < n - round(TOP * n))
        labels[tail] = rng.permutation(labels[tail])
    return Truth(labels, truth.offsets, truth.queries)
