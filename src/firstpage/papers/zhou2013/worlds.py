"""Sections 5.2 and 5.3: what is learned from pairs of rankings that a known measure compares.

Rankings are random orders of one list of grades.  Every training set is learned from with the C
that does best on 800 validation pairs, as noisy as the training pairs are; the test pairs are
clean.  The paper names neither number.

Or they are lists of real queries (MSLR).  Of a query all documents are shuffled, twice, and the
first ten of each order are compared by the measure of Data 2.  Queries are dealt into five folds;
pairs to learn from come from four, pairs to test on from the fifth.  A run is one such
cross-validation; its value the mean of the folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstpage.data.formats.letor import read_letor
from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.pairs import encode
from firstpage.dcglearn.simulation import (
    DIFFERENCE_TOLERANCE,
    GRADES,
    OTHER_LIST,
    TEST_PAIRS,
    VALID_PAIRS,
    PreferenceSimulator,
    fit_learner,
    randomize_grades,
    reverse_pairs,
    utility_accuracy,
    zhou_simulator,
)
from firstpage.dcglearn.validation import differences
from firstpage.dcglearn.weights import similarity
from firstpage.errors import DataError
from firstpage.papers.study.study import Row
from firstpage.types import Array, Floats

MANY = 40_000  # pairs, to be told apart by their difference
TO_NATURAL = 1 / np.log(2)  # discounts are 1/log2 here, and 1/log in the paper
DIFFERENCE = "DCG difference"


def fitted(truth: Utility, train: Preferences, valid: Preferences) -> DCGLearn:
    """DCGLearn in one thread: runs are spread over processes."""
    return fit_learner(truth, train, valid, threads=1)


def coherence(rng: np.random.Generator, edges: list[float]) -> list[Row]:
    """Figure 1: how often the two measures agree, by their difference in either unit."""
    exp, linear = zhou_simulator(2), zhou_simulator(1)
    left, right = exp.rankings(MANY, rng), exp.rankings(MANY, rng)
    apart = exp.values(left) - exp.values(right)
    same = right_way(np.sign(apart) * (linear.values(left) - linear.values(right)))
    clear = np.abs(apart) > DIFFERENCE_TOLERANCE
    rows: list[Row] = []
    for unit, scale in (("natural logarithm", TO_NATURAL), ("logarithm to base 2", 1.0)):
        for middle, value in binned(np.abs(apart[clear]) * scale, same[clear], edges):
            rows.append({"discount": unit, DIFFERENCE: middle, "value": value})
    return rows


def learning(rng: np.random.Generator, data: int, sizes: list[int]) -> list[Row]:
    """Figures 2, 3, 6: accuracy and similarity by the number of pairs."""
    right, wrong = zhou_simulator(data), zhou_simulator(3 - data)
    pool, valid, test = (right.pairs(n, rng) for n in (max(sizes), VALID_PAIRS, TEST_PAIRS))
    other = utility_accuracy(wrong.truth, test)
    rows: list[Row] = []
    for m in sizes:
        learner = fitted(right.truth, pool[:m], valid)
        rows += [
            _row("DCGLearn", data, m, "accuracy", learner.score(test)),
            _row("Other", data, m, "accuracy", other),
            _row(
                "DCGLearn", data, m, "similarity", similarity(right.truth.weights, learner.weights_)
            ),
        ]
    return rows


def _row(method: str, data: int, pairs: int, measure: str, value: float) -> Row:
    return {"method": method, "data": data, "pairs": pairs, "measure": measure, "value": value}


def by_difference(rng: np.random.Generator, data: int, pairs: int, edges: list[float]) -> list[Row]:
    """Figures 4, 5: accuracy by how far the rankings of a test pair are apart."""
    right, wrong = zhou_simulator(data), zhou_simulator(3 - data)
    train, valid, test = (right.pairs(n, rng) for n in (pairs, VALID_PAIRS, MANY))
    learner = fitted(right.truth, train, valid)
    return bins_of(
        right.truth, {"DCGLearn": learner.weights_, "Other": wrong.truth.weights}, test, edges
    )


def bins_of(
    truth: Utility, tables: dict[str, Floats], test: Preferences, edges: list[float]
) -> list[Row]:
    """Accuracies of several weights in bins of the true difference (natural logarithm)."""
    every = encode(test.with_grades(truth.grades), truth.n_positions, len(truth.grades))
    size = np.abs(differences(every, truth.weights)) * TO_NATURAL
    return [
        {"method": name, DIFFERENCE: middle, "value": value}
        for name, table in tables.items()
        for middle, value in binned(size, right_way(differences(every, table)), edges)
    ]  # fmt: skip


def right_way(apart: Floats) -> Floats:
    """1 for a difference above zero, 0 below, and half for none."""
    found: Floats = (np.sign(np.where(np.abs(apart) > DIFFERENCE_TOLERANCE, apart, 0.0)) + 1) / 2
    return found


def binned(size: Floats, values: Floats, edges: list[float]) -> list[tuple[float, float]]:
    """(middle, mean) of each bin that has anything in it."""
    number = np.digitize(size, edges) - 1
    return [
        (round((edges[i] + edges[i + 1]) / 2, 6), float(values[number == i].mean()))
        for i in range(len(edges) - 1)
        if (number == i).any()
    ]


def reversed_some(rng: np.random.Generator, data: int, pairs: int, counts: list[int]) -> list[Row]:
    """Figure 7: so many of the training pairs turned round."""
    right = zhou_simulator(data)
    train, valid, test = (right.pairs(n, rng) for n in (pairs, VALID_PAIRS, TEST_PAIRS))
    rows: list[Row] = []
    for count in counts:
        share = count / pairs
        learner = fitted(
            right.truth, reverse_pairs(train, share, rng), reverse_pairs(valid, share, rng)
        )
        rows.append({"method": f"Data {data}", "reversed": count, "value": learner.score(test)})
    return rows


def regraded_some(
    rng: np.random.Generator, data: int, pairs: int, shares: list[float]
) -> list[Row]:
    """Figure 8: a share of the documents in training lists with a random grade."""
    right = zhou_simulator(data)
    train, valid, test = (right.pairs(n, rng) for n in (pairs, VALID_PAIRS, TEST_PAIRS))
    rows: list[Row] = []
    for share in shares:
        learner = fitted(
            right.truth, randomize_grades(train, share, rng), randomize_grades(valid, share, rng)
        )
        rows.append({"method": f"Data {data}", "regraded": share, "value": learner.score(test)})
    return rows


def optimal(rng: np.random.Generator, data: int, sizes: list[int], other_list: bool) -> list[Row]:
    """Figures 9, 10: one side of every training pair is the best order."""
    right = zhou_simulator(data)
    grades = OTHER_LIST if other_list else None
    train, valid = (right.optimal_pairs(n, rng, grades) for n in (max(sizes), VALID_PAIRS))
    test = right.pairs(TEST_PAIRS, rng)
    name = f"optimal rankings, Data {data}"
    found = {m: fitted(right.truth, train[:m], valid).score(test) for m in sizes}
    return [{"method": name, "pairs": m, "value": value} for m, value in found.items()]


def random_orders(rng: np.random.Generator, data: int, sizes: list[int]) -> list[Row]:
    """Figure 10's other line: pairs of random orders."""
    right: PreferenceSimulator = zhou_simulator(data)
    train, valid, test = (right.pairs(n, rng) for n in (max(sizes), VALID_PAIRS, TEST_PAIRS))
    name = f"random rankings, Data {data}"
    found = {m: fitted(right.truth, train[:m], valid).score(test) for m in sizes}
    return [{"method": name, "pairs": m, "value": value} for m, value in found.items()]


PLACES, FOLDS, WEB_TEST = 10, 5, 2000
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
        apart = zhou_simulator(2).values(np.concatenate(true[0])) - zhou_simulator(2).values(
            np.concatenate(true[1])
        )
        kept = rng.permutation(np.flatnonzero(np.abs(apart) > DIFFERENCE_TOLERANCE))
        left, right = (np.concatenate(side)[kept] for side in seen)
        return Preferences.from_grades(left, right, np.sign(apart[kept]), grades=GRADES)


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


def web_learning(rng: np.random.Generator, name: str, sizes: list[int], folder: str) -> list[Row]:
    """Figure 11: accuracy by the number of pairs; and the similarity with the true weights."""
    found: dict[tuple[str, int, str], list[float]] = {}
    truth = zhou_simulator(2).truth
    for train, test in folds(read_lists(folder, name), rng):
        pool, valid = train.pairs(max(sizes), rng), train.pairs(VALID_PAIRS, rng)
        held = test.pairs(WEB_TEST, rng)
        other = utility_accuracy(zhou_simulator(1).truth, held)
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


def web_by_difference(
    rng: np.random.Generator, name: str, pairs: int, edges: list[float], folder: str
) -> list[Row]:
    """Figures 12, 13: accuracy by how far the rankings of a test pair are apart."""
    found: dict[tuple[str, float], list[float]] = {}
    for train, test in folds(read_lists(folder, name), rng):
        learner = fitted(
            zhou_simulator(2).truth, train.pairs(pairs, rng), train.pairs(VALID_PAIRS, rng)
        )
        tables = {"DCGLearn": learner.weights_, "Other": zhou_simulator(1).truth.weights}
        for row in bins_of(zhou_simulator(2).truth, tables, test.pairs(MANY // FOLDS, rng), edges):
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
        held = test.pairs(WEB_TEST, rng)
        for share in shares:
            bad = train.misjudged(share, rng)
            pool, valid = bad.pairs(max(sizes), rng), bad.pairs(VALID_PAIRS, rng)
            for m in sizes:
                learner = fitted(zhou_simulator(2).truth, pool[:m], valid)
                found.setdefault((f"{m} pairs", share), []).append(learner.score(held))
            turned = [
                reverse_pairs(train.pairs(n, rng), share, rng) for n in (max(sizes), VALID_PAIRS)
            ]
            learner = fitted(zhou_simulator(2).truth, *turned)
            label = f"{max(sizes)} pairs, pairs reversed"
            found.setdefault((label, share), []).append(learner.score(held))
    return [
        {"method": method, "noise": share, "value": float(np.mean(values))}
        for (method, share), values in found.items()
    ]
