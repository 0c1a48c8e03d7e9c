"""Sections 5.2 and 5.3: learning from pairs of rankings that a known measure compares.

In simulations, rankings are random orders of one list of grades.  C is tuned on 800 validation
pairs, as noisy as the training pairs; test pairs have no noise.  The paper gives neither number.

On real queries (MSLR), all documents of a query are shuffled twice, and the first ten of both
orders are compared by the measure of Data 2.  Queries are split into five folds; training pairs
come from four folds, test pairs from the fifth.  A run is one cross-validation, and its value the
mean over the folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstpage.core import Array, DataError, Floats
from firstpage.data.formats import read_letor
from firstpage.data.preferences import Preferences, Utility
from firstpage.evaluation.dcglearn import (
    DIFFERENCE_TOLERANCE,
    GRADES,
    OTHER_LIST,
    TEST_PAIRS,
    VALID_PAIRS,
    DCGLearn,
    PreferenceSimulator,
    differences,
    encode,
    fit_learner,
    randomize_grades,
    reverse_pairs,
    similarity,
    utility_accuracy,
    zhou_simulator,
)
from firstpage.papers.study.study import Row

BINNED_PAIRS = 40_000  # enough test pairs for bins of their difference
NATURAL_LOG_SCALE = 1 / np.log(2)  # discounts are 1/log2 here, and 1/log in the paper
DIFFERENCE = "DCG difference"


def fit_dcglearn(
    truth: Utility, train: Preferences, valid: Preferences, cross_validated: bool = False
) -> DCGLearn:
    """Return DCGLearn with C tuned on validation pairs, or by cross-validation on the training
    pairs; in one thread, as runs are parallel."""
    return fit_learner(truth, train, None if cross_validated else valid, threads=1)


def gain_agreement(rng: np.random.Generator, edges: list[float]) -> list[Row]:
    """Return the rows of Figure 1: agreement of two gains, by the difference in either unit."""
    exp, linear = zhou_simulator(2), zhou_simulator(1)
    left, right = exp.rankings(BINNED_PAIRS, rng), exp.rankings(BINNED_PAIRS, rng)
    differences_exp = exp.values(left) - exp.values(right)
    agreement = concordance(np.sign(differences_exp) * (linear.values(left) - linear.values(right)))
    nonzero = np.abs(differences_exp) > DIFFERENCE_TOLERANCE
    rows: list[Row] = []
    for unit, scale in (("natural logarithm", NATURAL_LOG_SCALE), ("logarithm to base 2", 1.0)):
        for middle, value in bin_means(
            np.abs(differences_exp[nonzero]) * scale, agreement[nonzero], edges
        ):
            rows.append({"discount": unit, DIFFERENCE: middle, "value": value})
    return rows


def learning_curve(
    rng: np.random.Generator, data: int, sizes: list[int], cross_validated: bool = False
) -> list[Row]:
    """Return the rows of Figures 2, 3, 6: accuracy and similarity by number of pairs."""
    simulator, other_simulator = zhou_simulator(data), zhou_simulator(3 - data)
    pool, valid, test = (simulator.pairs(n, rng) for n in (max(sizes), VALID_PAIRS, TEST_PAIRS))
    other_accuracy = utility_accuracy(other_simulator.truth, test)
    rows: list[Row] = []
    for m in sizes:
        learner = fit_dcglearn(simulator.truth, pool[:m], valid, cross_validated)
        rows += [
            _row("DCGLearn", data, m, "accuracy", learner.score(test)),
            _row("Other", data, m, "accuracy", other_accuracy),
            _row(
                "DCGLearn",
                data,
                m,
                "similarity",
                similarity(simulator.truth.weights, learner.weights_),
            ),
        ]
    return rows


def _row(method: str, data: int, pairs: int, measure: str, value: float) -> Row:
    return {"method": method, "data": data, "pairs": pairs, "measure": measure, "value": value}


def accuracy_by_difference(
    rng: np.random.Generator,
    data: int,
    pairs: int,
    edges: list[float],
    cross_validated: bool = False,
) -> list[Row]:
    """Return the rows of Figures 4, 5: accuracy by the difference of the test pair."""
    simulator, other_simulator = zhou_simulator(data), zhou_simulator(3 - data)
    train, valid, test = (simulator.pairs(n, rng) for n in (pairs, VALID_PAIRS, BINNED_PAIRS))
    learner = fit_dcglearn(simulator.truth, train, valid, cross_validated)
    return binned_accuracies(
        simulator.truth,
        {"DCGLearn": learner.weights_, "Other": other_simulator.truth.weights},
        test,
        edges,
    )


def binned_accuracies(
    truth: Utility, weights: dict[str, Floats], test: Preferences, edges: list[float]
) -> list[Row]:
    """Return accuracies of several weights in bins of the true difference (natural logarithm)."""
    encoded = encode(test.with_grades(truth.grades), truth.n_positions, len(truth.grades))
    true_differences = np.abs(differences(encoded, truth.weights)) * NATURAL_LOG_SCALE
    return [
        {"method": name, DIFFERENCE: middle, "value": value}
        for name, table in weights.items()
        for middle, value in bin_means(
            true_differences, concordance(differences(encoded, table)), edges
        )
    ]


def concordance(differences: Floats) -> Floats:
    """Return 1 for positive differences, 0 for negative ones, and 1/2 for ties."""
    nonzero = np.where(np.abs(differences) > DIFFERENCE_TOLERANCE, differences, 0.0)
    values: Floats = (np.sign(nonzero) + 1) / 2
    return values


def bin_means(sizes: Floats, values: Floats, edges: list[float]) -> list[tuple[float, float]]:
    """Return middle and mean of each nonempty bin."""
    number = np.digitize(sizes, edges) - 1
    return [
        (round((edges[i] + edges[i + 1]) / 2, 6), float(values[number == i].mean()))
        for i in range(len(edges) - 1)
        if (number == i).any()
    ]


def accuracy_with_reversed_pairs(
    rng: np.random.Generator, data: int, pairs: int, counts: list[int]
) -> list[Row]:
    """Return the rows of Figure 7: accuracy with some training pairs reversed."""
    simulator = zhou_simulator(data)
    train, valid, test = (simulator.pairs(n, rng) for n in (pairs, VALID_PAIRS, TEST_PAIRS))
    rows: list[Row] = []
    for count in counts:
        fraction = count / pairs
        learner = fit_dcglearn(
            simulator.truth,
            reverse_pairs(train, fraction, rng),
            reverse_pairs(valid, fraction, rng),
        )
        rows.append({"method": f"Data {data}", "reversed": count, "value": learner.score(test)})
    return rows


def accuracy_with_regraded_documents(
    rng: np.random.Generator, data: int, pairs: int, fractions: list[float]
) -> list[Row]:
    """Return the rows of Figure 8: accuracy with random grades of some documents."""
    simulator = zhou_simulator(data)
    train, valid, test = (simulator.pairs(n, rng) for n in (pairs, VALID_PAIRS, TEST_PAIRS))
    rows: list[Row] = []
    for fraction in fractions:
        learner = fit_dcglearn(
            simulator.truth,
            randomize_grades(train, fraction, rng),
            randomize_grades(valid, fraction, rng),
        )
        rows.append({"method": f"Data {data}", "regraded": fraction, "value": learner.score(test)})
    return rows


def learning_from_optimal_rankings(
    rng: np.random.Generator,
    data: int,
    sizes: list[int],
    other_list: bool,
    cross_validated: bool = False,
) -> list[Row]:
    """Return the rows of Figures 9, 10: one side of each training pair is the optimal order."""
    simulator = zhou_simulator(data)
    grades = OTHER_LIST if other_list else None
    train, valid = (simulator.optimal_pairs(n, rng, grades) for n in (max(sizes), VALID_PAIRS))
    test = simulator.pairs(TEST_PAIRS, rng)
    name = f"optimal rankings, Data {data}"
    accuracies = {
        m: fit_dcglearn(simulator.truth, train[:m], valid, cross_validated).score(test)
        for m in sizes
    }
    return [{"method": name, "pairs": m, "value": value} for m, value in accuracies.items()]


def learning_from_random_rankings(
    rng: np.random.Generator, data: int, sizes: list[int], cross_validated: bool = False
) -> list[Row]:
    """Return the rows of Figure 10 for pairs of random orders."""
    simulator: PreferenceSimulator = zhou_simulator(data)
    train, valid, test = (simulator.pairs(n, rng) for n in (max(sizes), VALID_PAIRS, TEST_PAIRS))
    name = f"random rankings, Data {data}"
    accuracies = {
        m: fit_dcglearn(simulator.truth, train[:m], valid, cross_validated).score(test)
        for m in sizes
    }
    return [{"method": name, "pairs": m, "value": value} for m, value in accuracies.items()]


N_RANKS, FOLDS, WEB_TEST = 10, 5, 2000
SUBSTITUTE_FILES = {
    "web10k": "train.txt",
    "web30k": "test.txt",
}  # of the sample that substitutes them


@dataclass(frozen=True, eq=False)
class QueryGrades:
    """Grades (1 to 5) of the documents per query; `judged` are those of a noisy assessor."""

    grades: tuple[Array, ...]
    judged: tuple[Array, ...]

    def __getitem__(self, rows: Array) -> QueryGrades:
        return QueryGrades(tuple(self.grades[i] for i in rows), tuple(self.judged[i] for i in rows))

    def with_random_grades(self, fraction: float, rng: np.random.Generator) -> QueryGrades:
        """Return lists with random grades of a fraction of the documents of each query."""
        judged = []
        for grades in self.grades:
            changed = rng.random(len(grades)) < fraction
            judged.append(np.where(changed, rng.integers(1, len(GRADES) + 1, len(grades)), grades))
        return QueryGrades(self.grades, tuple(judged))

    def pairs(self, count: int, rng: np.random.Generator) -> Preferences:
        """Return preferences by the true grades over lists with judged grades; ties are dropped."""
        preferences = self._draw_pairs(count, rng)
        while len(preferences) < count:
            preferences = preferences + self._draw_pairs(count, rng)
        return preferences[:count]

    def _draw_pairs(self, count: int, rng: np.random.Generator) -> Preferences:
        per_query = np.bincount(
            rng.integers(0, len(self.grades), count), minlength=len(self.grades)
        )
        true, shown = ([], []), ([], [])  # type: tuple[list[Array], list[Array]], tuple[list[Array], list[Array]]
        for grades, judged, n in zip(self.grades, self.judged, per_query.tolist(), strict=True):
            order = np.tile(np.arange(len(grades)), (n, 1))
            for side in range(2):
                top = rng.permuted(order, axis=1)[:, :N_RANKS]
                true[side].append(grades[top])
                shown[side].append(judged[top])
        first, second = (zhou_simulator(2).values(np.concatenate(side)) for side in true)
        difference = first - second
        rows = rng.permutation(np.flatnonzero(np.abs(difference) > DIFFERENCE_TOLERANCE))
        left, right = (np.concatenate(side)[rows] for side in shown)
        return Preferences.from_grades(left, right, np.sign(difference[rows]), grades=GRADES)


def read_query_grades(folder: str, name: str) -> QueryGrades:
    """Return all queries of a folder with folds, or those of the substitute for the data set."""
    base = Path(folder)
    if (base / "Fold1").is_dir():  # the files of one fold have all queries
        files = sorted((base / "Fold1").glob("*.txt"))
    else:
        files = [base / SUBSTITUTE_FILES[name]]
    grades = []
    for file in files:
        data = read_letor(file)
        for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            if last - first >= N_RANKS:
                grades.append(np.asarray(data.y[first:last]).astype(np.int8) + 1)
    if len(grades) < FOLDS:
        raise DataError(f"{base}: fewer than {FOLDS} queries with {N_RANKS} documents or more.")
    return QueryGrades(tuple(grades), tuple(grades))


def cross_validation_folds(
    lists: QueryGrades, rng: np.random.Generator
) -> Iterator[tuple[QueryGrades, QueryGrades]]:
    """Yield training and test queries of each fold."""
    fold_numbers = rng.permutation(len(lists.grades)) % FOLDS
    for fold in range(FOLDS):
        yield (
            lists[np.flatnonzero(fold_numbers != fold)],
            lists[np.flatnonzero(fold_numbers == fold)],
        )


def web_learning_curve(
    rng: np.random.Generator,
    name: str,
    sizes: list[int],
    folder: str,
    cross_validated: bool = False,
) -> list[Row]:
    """Return the rows of Figure 11: accuracy and similarity by number of pairs."""
    fold_values: dict[tuple[str, int, str], list[float]] = {}
    truth = zhou_simulator(2).truth
    for train, test in cross_validation_folds(read_query_grades(folder, name), rng):
        pool, valid = train.pairs(max(sizes), rng), train.pairs(VALID_PAIRS, rng)
        test_pairs = test.pairs(WEB_TEST, rng)
        other_accuracy = utility_accuracy(zhou_simulator(1).truth, test_pairs)
        for m in sizes:
            learner = fit_dcglearn(truth, pool[:m], valid, cross_validated)
            weight_similarity = similarity(truth.weights, learner.weights_)
            for method, measure, value in (
                ("DCGLearn", "accuracy", learner.score(test_pairs)),
                ("Other", "accuracy", other_accuracy),
                ("DCGLearn", "similarity", weight_similarity),
            ):
                fold_values.setdefault((f"{method}, {name}", m, measure), []).append(value)
    return [
        {"method": method, "pairs": m, "measure": measure, "value": float(np.mean(values))}
        for (method, m, measure), values in fold_values.items()
    ]


def web_accuracy_by_difference(
    rng: np.random.Generator,
    name: str,
    pairs: int,
    edges: list[float],
    folder: str,
    cross_validated: bool = False,
) -> list[Row]:
    """Return the rows of Figures 12, 13: accuracy by the difference of the test pair."""
    fold_values: dict[tuple[str, float], list[float]] = {}
    for train, test in cross_validation_folds(read_query_grades(folder, name), rng):
        learner = fit_dcglearn(
            zhou_simulator(2).truth,
            train.pairs(pairs, rng),
            train.pairs(VALID_PAIRS, rng),
            cross_validated,
        )
        weights = {"DCGLearn": learner.weights_, "Other": zhou_simulator(1).truth.weights}
        for row in binned_accuracies(
            zhou_simulator(2).truth, weights, test.pairs(BINNED_PAIRS // FOLDS, rng), edges
        ):
            value = row.pop("value")
            fold_values.setdefault(tuple(row.values()), []).append(value)
    return [
        {"method": method, "DCG difference": middle, "value": float(np.mean(values))}
        for (method, middle), values in fold_values.items()
    ]


def web_accuracy_with_noise(
    rng: np.random.Generator, name: str, sizes: list[int], fractions: list[float], folder: str
) -> list[Row]:
    """Return the rows of Figures 14, 15: documents graded at random, and pairs reversed."""
    fold_values: dict[tuple[str, float], list[float]] = {}
    for train, test in cross_validation_folds(read_query_grades(folder, name), rng):
        test_pairs = test.pairs(WEB_TEST, rng)
        for fraction in fractions:
            noisy = train.with_random_grades(fraction, rng)
            pool, valid = noisy.pairs(max(sizes), rng), noisy.pairs(VALID_PAIRS, rng)
            for m in sizes:
                learner = fit_dcglearn(zhou_simulator(2).truth, pool[:m], valid)
                fold_values.setdefault((f"{m} pairs", fraction), []).append(
                    learner.score(test_pairs)
                )
            pool, valid = (
                reverse_pairs(train.pairs(n, rng), fraction, rng) for n in (max(sizes), VALID_PAIRS)
            )
            learner = fit_dcglearn(zhou_simulator(2).truth, pool, valid)
            label = f"{max(sizes)} pairs, some reversed"
            fold_values.setdefault((label, fraction), []).append(learner.score(test_pairs))
    return [
        {"method": method, "noise": fraction, "value": float(np.mean(values))}
        for (method, fraction), values in fold_values.items()
    ]
