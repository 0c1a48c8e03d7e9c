"""Section 5.3: lists of real queries (MSLR), compared by a known measure.

Of a query all documents are shuffled, twice, and the first ten of each order are compared by the
measure of Data 2.  Queries are dealt into five folds; pairs to learn from come from four, pairs
to test on from the fifth.  A run is one such cross-validation; its value the mean of the folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstpage.data.formats.letor import read_letor
from firstpage.data.preferences.preferences import Preferences
from firstpage.dcglearn.simulation import GRADES, NOTHING, VALID, accuracy_of, reversed_pairs, world
from firstpage.dcglearn.weights import similarity
from firstpage.errors import DataError
from firstpage.papers.study.study import Row
from firstpage.papers.zhou2013.worlds import MANY, bins_of, fitted
from firstpage.types import Array

PLACES, FOLDS, TEST = 10, 5, 2000
PARTS = {"web10k": "train.txt", "web30k": "test.txt"}  # halves of a sample that stand for them


@dataclass(frozen=True, eq=False)
class Lists:
    """Grades (1 to 5) of the documents of queries; `seen`: the same as an assessor gave them."""

    grades: tuple[Array, ...]
    seen: tuple[Array, ...]

    def __getitem__(self, rows: Array) -> Lists:
        return Lists(tuple(self.grades[i] for i in rows), tuple(self.seen[i] for i in rows))

    def misjudged(self, share: float, rng: np.random.Generator) -> Lists:
        """A share of each query's documents with a random grade, the same in all lists."""
        seen = []
        for grades in self.grades:
            wrong = rng.random(len(grades)) < share
            seen.append(np.where(wrong, rng.integers(1, len(GRADES) + 1, len(grades)), grades))
        return Lists(self.grades, tuple(seen))

    def pairs(self, count: int, rng: np.random.Generator) -> Preferences:
        """Preferences of the true grades, over lists of the seen ones; equal pairs are left out."""
        found = self._some(count, rng)
        while len(found) < count:
            found = found + self._some(count, rng)
        return found[:count]

    def _some(self, count: int, rng: np.random.Generator) -> Preferences:
        number = np.bincount(rng.integers(0, len(self.grades), count), minlength=len(self.grades))
        true, seen = ([], []), ([], [])  # type: tuple[list[Array], list[Array]], tuple[list[Array], list[Array]]
        for grades, judged, n in zip(self.grades, self.seen, number.tolist(), strict=True):
            order = np.tile(np.arange(len(grades)), (n, 1))
            for side in range(2):
                top = rng.permuted(order, axis=1)[:, :PLACES]
                true[side].append(grades[top])
                seen[side].append(judged[top])
        apart = world(2).worth(np.concatenate(true[0])) - world(2).worth(np.concatenate(true[1]))
        kept = rng.permutation(np.flatnonzero(np.abs(apart) > NOTHING))
        left, right = (np.concatenate(side)[kept] for side in seen)
        return Preferences.of(left, right, np.sign(apart[kept]), grades=GRADES)


def read_lists(folder: str, name: str) -> Lists:
    """All queries of a folder with folds; of a sample, the half that stands for this data set."""
    base = Path(folder)
    if (base / "Fold1").is_dir():  # the parts of one fold are the whole
        files = sorted((base / "Fold1").glob("*.txt"))
    else:
        files = [base / PARTS[name]]
    found = []
    for file in files:
        data = read_letor(file)
        for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            if last - first >= PLACES:
                found.append(np.asarray(data.y[first:last]).astype(np.int8) + 1)
    if len(found) < FOLDS:
        raise DataError(f"{base}: fewer than {FOLDS} queries with {PLACES} documents or more.")
    return Lists(tuple(found), tuple(found))


def folds(lists: Lists, rng: np.random.Generator) -> Iterator[tuple[Lists, Lists]]:
    """Queries to learn from and to test on."""
    part = rng.permutation(len(lists.grades)) % FOLDS
    for fold in range(FOLDS):
        yield lists[np.flatnonzero(part != fold)], lists[np.flatnonzero(part == fold)]


def learning(rng: np.random.Generator, name: str, sizes: list[int], folder: str) -> list[Row]:
    """Figure 11: accuracy by the number of pairs; and the similarity with the true weights."""
    found: dict[tuple[str, int, str], list[float]] = {}
    truth = world(2).truth
    for train, test in folds(read_lists(folder, name), rng):
        pool, valid = train.pairs(max(sizes), rng), train.pairs(VALID, rng)
        held = test.pairs(TEST, rng)
        other = accuracy_of(world(1).truth, held)
        for m in sizes:
            learner = fitted(truth, pool[:m], valid)
            alike = similarity(truth.weights, learner.weights_)
            for method, measure, value in (
                ("DCGLearn", "accuracy", learner.score(held)),
                ("Other", "accuracy", other),
                ("DCGLearn", "similarity", alike),
            ):
                found.setdefault((f"{method}, {name}", m, measure), []).append(value)
    return [
        {"method": method, "pairs": m, "measure": measure, "value": float(np.mean(values))}
        for (method, m, measure), values in found.items()
    ]


def by_difference(
    rng: np.random.Generator, name: str, pairs: int, edges: list[float], folder: str
) -> list[Row]:
    """Figures 12, 13: accuracy by how far the rankings of a test pair are apart."""
    found: dict[tuple[str, float], list[float]] = {}
    for train, test in folds(read_lists(folder, name), rng):
        learner = fitted(world(2).truth, train.pairs(pairs, rng), train.pairs(VALID, rng))
        tables = {"DCGLearn": learner.weights_, "Other": world(1).truth.weights}
        for row in bins_of(world(2).truth, tables, test.pairs(MANY // FOLDS, rng), edges):
            value = row.pop("value")
            found.setdefault(tuple(row.values()), []).append(value)
    return [
        {"method": method, "DCG difference": middle, "value": float(np.mean(values))}
        for (method, middle), values in found.items()
    ]


def noisy(
    rng: np.random.Generator, name: str, sizes: list[int], shares: list[float], folder: str
) -> list[Row]:
    """Figures 14, 15: documents judged at random; and, as the captions have it, pairs reversed."""
    found: dict[tuple[str, float], list[float]] = {}
    for train, test in folds(read_lists(folder, name), rng):
        held = test.pairs(TEST, rng)
        for share in shares:
            bad = train.misjudged(share, rng)
            pool, valid = bad.pairs(max(sizes), rng), bad.pairs(VALID, rng)
            for m in sizes:
                learner = fitted(world(2).truth, pool[:m], valid)
                found.setdefault((f"{m} pairs", share), []).append(learner.score(held))
            turned = [reversed_pairs(train.pairs(n, rng), share, rng) for n in (max(sizes), VALID)]
            learner = fitted(world(2).truth, *turned)
            label = f"{max(sizes)} pairs, pairs reversed"
            found.setdefault((label, share), []).append(learner.score(held))
    return [
        {"method": method, "noise": share, "value": float(np.mean(values))}
        for (method, share), values in found.items()
    ]
