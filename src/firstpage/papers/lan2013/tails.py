"""Full orders of long lists whose tail is known to be right, noise, or something else.

A list's order is that of a linear utility with as much noise as there is signal.  The first 15 %
are the same in all kinds of tails:

clean   the rest goes on in this order
random  the rest is shuffled: noise, with nothing to learn
other   the rest follows another direction of the features, which can be learned, and misleads
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.synthetic import Synthetic
from firstpage.data.truth import Truth
from firstpage.papers.lan2013.lists import Depth, Grid, tested, trained
from firstpage.papers.study.letor_protocol import seed_of
from firstpage.papers.study.study import Row

Tail = Literal["clean", "random", "other"]
TOP = 0.15
PARTS = (60, 40, 200)  # queries to train on, to choose on, to test on
FEATURES, NOISE = 46, 1.0


def curves(
    rng: np.random.Generator, tail: Tail, n: int, ks: Sequence[Depth], grids: Mapping[str, Grid]
) -> list[Row]:
    """Means over test queries, a grid a ranker; runs differ in all their lists."""
    train, vali, test = lists(seed_of(rng), tail, n)
    rows = list[Row]()
    for model, grid in grids.items():
        for k in ks:
            found = tested(trained(model, k, grid, train, vali), test)
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
    train, vali, test = (data[np.arange(a, b)] for a, b in pairwise(ends.tolist()))
    return train, vali, test


def shuffled(truth: Truth, seed: int) -> Truth:
    """The same tops; what is below them in a random order."""
    rng = np.random.default_rng([seed, 1])
    labels = truth.labels.copy()
    for low, high in pairwise(truth.offsets.tolist()):
        n = high - low
        tail = low + np.flatnonzero(labels[low:high] < n - round(TOP * n))
        labels[tail] = rng.permutation(labels[tail])
    return Truth(labels, truth.offsets, truth.queries)
