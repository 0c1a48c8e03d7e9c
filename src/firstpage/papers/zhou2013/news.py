"""Sections 5.4 and 5.5: side-by-side judgments of simulated editors, and active learning.

A run draws a new set of 766 judged queries.  Pairs that are not ties are split into five folds;
every pair is predicted by a measure learned from the other four, with C by cross-validation.
Set1 has the pairs with labels 1 and 5 (much better), Set2 those with labels 2 and 4.

In active learning, each strategy starts with the same 20 pairs and chooses from the same pool, a
few pairs at a time; the measure is learned anew after each answer.  C is fixed: 100 without noise,
0.1 for editors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firstpage.core import Array, Bools, Floats, Ints
from firstpage.data.preferences import Preferences, Utility
from firstpage.evaluation.dcglearn import DCGLearn, Strategy, choose, zhou_simulator
from firstpage.papers.study.study import Row
from firstpage.papers.zhou2013 import simulations

GRADES = (1, 2, 3, 4)
QUERIES, N_RANKS = 766, 5
COUNTS = {1: 13, 2: 108, 3: 473, 4: 148, 5: 24}  # Table 1
OUTCOMES = {1: 2, 2: 1, 3: 0, 4: -1, 5: -2}  # of labels; positive: the left list is better


@dataclass(frozen=True)
class Editors:
    """Parameters of the simulation, calibrated to reproduce the counts of Table 1."""

    documents: int = 20  # per query
    grade_fractions: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)  # from the lowest grade up
    concentration: float = 4.0  # the larger, the more similar the grade fractions of queries
    shared_noise: float = 1.0  # of both rankers
    ranker_noise: tuple[float, float] = (1.65, 1.2)  # of each ranker
    gains: tuple[float, ...] = (0.0, 0.05, 0.9, 1.0)
    discounts: tuple[float, ...] = (1.0, 0.9, 0.8, 0.2, 0.1)
    judgment_noise: float = 0.8
    tie_threshold: float = 0.887  # of perceived differences
    strong_threshold: float = 2.033  # above which a list is "much better"

    @property
    def truth(self) -> Utility:
        """The measure behind the judgments."""
        return Utility.from_gains(self.gains, self.discounts, GRADES)

    def judged(self, rng: np.random.Generator, queries: int = QUERIES) -> Preferences:
        """Return two lists per query with the outcomes 2, 1, 0, -1, -2 for the labels 1 to 5."""
        grades = self._grades(rng, queries)
        common = self.shared_noise * rng.normal(size=grades.shape)
        left, right = (
            _top_grades(grades, grades + common + sd * rng.normal(size=grades.shape))
            for sd in self.ranker_noise
        )
        perceived = self._utility(left) - self._utility(right)
        perceived = perceived + self.judgment_noise * rng.normal(size=queries)
        size = np.abs(perceived)
        strength = (size > self.tie_threshold).astype(int) + (size > self.strong_threshold)
        outcome = np.sign(perceived) * strength
        return Preferences.from_grades(
            left, right, outcome, grades=GRADES, source="simulated editors"
        )

    def _grades(self, rng: np.random.Generator, queries: int) -> Array:
        """Return random grades, one row per query."""
        alpha = np.array(self.grade_fractions) * self.concentration
        cumulative = rng.dirichlet(alpha, queries).cumsum(axis=1)
        uniform = rng.random((queries, self.documents, 1))
        grades: Array = 1 + (uniform > cumulative[:, None, :-1]).sum(axis=2)
        return grades

    def _utility(self, lists: Array) -> Floats:
        values: Floats = self.truth.weights[np.arange(N_RANKS), lists - 1].sum(axis=1)
        return values


def _top_grades(grades: Array, scores: Floats) -> Array:
    """Return the grades of the documents with the highest scores, in this order."""
    best = np.argsort(-scores, axis=1)[:, :N_RANKS]
    return np.take_along_axis(grades, best, axis=1)


FOLDS = 5
EQUAL_NUMBER = "labels 2, 4, as many as 1, 5"


def fit_dcglearn(train: Preferences) -> DCGLearn:
    """Return DCGLearn with C by cross-validation; "much better" counts as "better"."""
    return DCGLearn(N_RANKS, grades=GRADES, threads=1).fit(train)


def cross_validation_folds(n: int, rng: np.random.Generator) -> Iterator[tuple[Ints, Ints]]:
    """Yield training rows, in random order, and test rows of each fold."""
    fold_numbers = rng.permutation(n) % FOLDS
    for fold in range(FOLDS):
        train = rng.permutation(np.flatnonzero(fold_numbers != fold))
        yield train, np.flatnonzero(fold_numbers == fold)


def label_sets(pairs: Preferences) -> dict[str, Bools]:
    """Return masks of all pairs, of Set1 and of Set2."""
    strong: Bools = np.abs(pairs.outcome) == 2
    return {"all": np.ones(len(pairs), bool), "Set1": strong, "Set2": ~strong}


def concordance(differences: Floats, pairs: Preferences) -> Floats:
    """Return 1 for correctly predicted preferences, 0 for wrong ones, and 1/2 for ties."""
    values: Floats = (np.sign(np.round(differences, 9)) * np.sign(pairs.outcome) + 1) / 2
    return values


def _rows(label: str, name: str | float, concordances: Floats, pairs: Preferences) -> list[Row]:
    """Return the accuracy on all pairs, on Set1 and on Set2."""
    return [
        {label: name, "test": test, "value": float(concordances[mask].mean())}
        for test, mask in label_sets(pairs).items()
        if mask.any()
    ]


def label_counts(rng: np.random.Generator) -> list[Row]:
    """Return the rows of Table 1: the number of pairs per label."""
    outcome = Editors().judged(rng).outcome
    return [
        {"label": label, "value": float((outcome == OUTCOMES[label]).sum())} for label in COUNTS
    ]


def method_accuracies(rng: np.random.Generator) -> list[Row]:
    """Return the rows of Figures 16 and 18: accuracies, and sizes of differences by label."""
    judged = Editors().judged(rng)
    pairs, ties = judged[~judged.tied], judged[judged.tied]
    differences, tie_sizes = np.zeros(len(pairs)), np.zeros(len(ties))
    for train, test in cross_validation_folds(len(pairs), rng):
        learner = fit_dcglearn(pairs[train])
        differences[test] = learner.decision_function(pairs[test])
        tie_sizes += np.abs(learner.decision_function(ties)) / FOLDS
    concordances = {
        "Random": rng.integers(0, 2, len(pairs)).astype(float),
        "Baseline1": concordance(dcg_differences("exp", pairs), pairs),
        "Baseline2": concordance(dcg_differences("linear", pairs), pairs),
        "DCGLearn": concordance(differences, pairs),
        "true measure": concordance(_differences(Editors().truth, pairs), pairs),
    }
    rows = [
        row for name, values in concordances.items() for row in _rows("method", name, values, pairs)
    ]
    for label, outcome in OUTCOMES.items():
        sizes = tie_sizes if outcome == 0 else np.abs(differences[pairs.outcome == outcome])
        rows.append({"label": label, "value": float(sizes.mean()) if len(sizes) else 0.0})
    return rows


def dcg_differences(gain: str, pairs: Preferences) -> Floats:
    """Return the differences of pairs by a standard DCG."""
    return _differences(Utility.from_dcg(gain, GRADES, N_RANKS), pairs)


def _differences(measure: Utility, pairs: Preferences) -> Floats:
    ranks = np.arange(N_RANKS)
    weights = measure.weights
    values: Floats = (weights[ranks, pairs.left] - weights[ranks, pairs.right]).sum(axis=1)
    return values


def accuracy_by_training_pairs(rng: np.random.Generator, sizes: list[int]) -> list[Row]:
    """Return the rows of Figure 17: accuracy by number of training pairs."""
    judged = Editors().judged(rng)
    pairs = judged[~judged.tied]
    concordances = {m: np.zeros(len(pairs)) for m in sizes}
    for train, test in cross_validation_folds(len(pairs), rng):
        for m in sizes:
            differences = fit_dcglearn(pairs[train[:m]]).decision_function(pairs[test])
            concordances[m][test] = concordance(differences, pairs[test])
    return [row for m in sizes for row in _rows("pairs", m, concordances[m], pairs)]


def accuracy_by_training_labels(rng: np.random.Generator) -> list[Row]:
    """Return the rows of Figure 19: training on all labels, on 1 and 5, or on 2 and 4.

    Labels 1 and 5 are few: the same number of pairs with labels 2 and 4 separates the effect of
    the kind of pairs from that of their number.
    """
    judged = Editors().judged(rng)
    pairs = judged[~judged.tied]
    names = {"all": "all", "Set1": "labels 1, 5", "Set2": "labels 2, 4"}
    concordances = {name: np.zeros(len(pairs)) for name in (*names.values(), EQUAL_NUMBER)}
    for train, test in cross_validation_folds(len(pairs), rng):
        subsets = {name: train[label_sets(pairs)[key][train]] for key, name in names.items()}
        subsets[EQUAL_NUMBER] = subsets["labels 2, 4"][: len(subsets["labels 1, 5"])]
        for name, subset in subsets.items():
            differences = fit_dcglearn(pairs[subset]).decision_function(pairs[test])
            concordances[name][test] = concordance(differences, pairs[test])
    return [
        row
        for name, values in concordances.items()
        for row in _rows("trained on", name, values, pairs)
    ]


def effect_of_tie_cost(rng: np.random.Generator, costs: list[float]) -> list[Row]:
    """Return the rows of Figure 20: accuracy, and differences of held-out ties, by cost of ties.

    C is tuned once per fold, without ties.
    """
    judged = Editors().judged(rng)
    pairs, ties = judged[~judged.tied], judged[judged.tied]
    concordances = {c: np.zeros(len(pairs)) for c in costs}
    tie_sizes = {c: np.zeros(len(ties)) for c in costs}
    weight_norms = {c: np.zeros(len(ties)) for c in costs}
    folds = zip(
        cross_validation_folds(len(pairs), rng), cross_validation_folds(len(ties), rng), strict=True
    )
    for (train, test), (train_ties, test_ties) in folds:
        cost = fit_dcglearn(pairs[train]).C_
        for c in costs:
            learner = DCGLearn(N_RANKS, C=cost, C_tie=c, grades=GRADES, threads=1)
            learner.fit(pairs[train] + ties[train_ties])
            differences = learner.decision_function(pairs[test])
            concordances[c][test] = concordance(differences, pairs[test])
            tie_sizes[c][test_ties] = np.abs(learner.decision_function(ties[test_ties]))
            weight_norms[c][test_ties] = np.linalg.norm(learner.weights_)
    rows: list[Row] = []
    for c in costs:
        values = {
            "accuracy": concordances[c].mean(),
            "tie difference": tie_sizes[c].mean(),
            "tie difference / |w|": (tie_sizes[c] / weight_norms[c]).mean(),
        }
        rows += [{"C_tie": c, "measure": m, "value": float(v)} for m, v in values.items()]
    return rows


INITIAL_PAIRS, POOL_PAIRS, TEST_PAIRS = 20, 2000, 4000
NOISELESS_C, EDITORS_C = 100.0, 0.1


def simulated_active_learning(
    rng: np.random.Generator, data: int, strategy: Strategy, sizes: list[int], batch: int
) -> list[Row]:
    """Return the rows of Figures 21 and 22."""
    simulator = zhou_simulator(data)
    pool, test = simulator.pairs(POOL_PAIRS, rng), simulator.pairs(TEST_PAIRS, rng)
    accuracies = active_learning_curve(
        simulator.truth, pool, test, strategy, sizes, batch, NOISELESS_C
    )
    return [{"strategy": strategy, "pairs": m, "value": value} for m, value in accuracies.items()]


def web_active_learning(
    rng: np.random.Generator,
    name: str,
    strategy: Strategy,
    sizes: list[int],
    batch: int,
    folder: str,
) -> list[Row]:
    """Return the rows of Figure 23 (a), (b): a pool from four folds, test pairs from the fifth."""
    query_grades = simulations.read_query_grades(folder, name)
    train, test = next(simulations.cross_validation_folds(query_grades, rng))
    pool, test_pairs = train.pairs(POOL_PAIRS, rng), test.pairs(TEST_PAIRS, rng)
    accuracies = active_learning_curve(
        zhou_simulator(2).truth, pool, test_pairs, strategy, sizes, batch, NOISELESS_C
    )
    return [
        {"data": name, "strategy": strategy, "pairs": m, "value": value}
        for m, value in accuracies.items()
    ]


def editor_active_learning(
    rng: np.random.Generator, strategy: Strategy, sizes: list[int], batch: int
) -> list[Row]:
    """Return the rows of Figure 23 (c): a pool of four folds of the simulated editors' pairs."""
    judged = Editors().judged(rng)
    pairs = judged[~judged.tied]
    accuracies = dict.fromkeys(sizes, 0.0)
    for train, test in cross_validation_folds(len(pairs), rng):
        fold_accuracies = active_learning_curve(
            Editors().truth, pairs[train], pairs[test], strategy, sizes, batch, EDITORS_C
        )
        for m, value in fold_accuracies.items():
            accuracies[m] += value * len(test) / len(pairs)
    return [
        {"data": "simulated news", "strategy": strategy, "pairs": m, "value": value}
        for m, value in accuracies.items()
    ]


def active_learning_curve(
    truth: Utility,
    pool: Preferences,
    test: Preferences,
    strategy: Strategy,
    sizes: list[int],
    batch: int,
    cost: float,
) -> dict[int, float]:
    """Return the accuracy by number of labeled pairs."""
    labeled, unlabeled = np.arange(INITIAL_PAIRS), np.arange(INITIAL_PAIRS, len(pool))
    learner = DCGLearn(truth.n_positions, C=cost, grades=truth.grades, threads=1)
    accuracies: dict[int, float] = {}
    for m in sizes:
        while len(labeled) < m:
            needed = m - len(labeled)
            count = needed if strategy == "random" else min(batch, needed)
            chosen = _choose_pairs(learner, pool, labeled, unlabeled, count, strategy)
            if not chosen:  # the remaining pairs have no difference
                break
            labeled = np.append(labeled, unlabeled[chosen])
            unlabeled = np.delete(unlabeled, chosen)
        accuracies[m] = learner.fit(pool[labeled]).score(test)
    return accuracies


def _choose_pairs(
    learner: DCGLearn,
    pool: Preferences,
    labeled: np.ndarray,
    unlabeled: np.ndarray,
    count: int,
    strategy: Strategy,
) -> list[int]:
    """Return which unlabeled pairs to label; at random: the first ones of the unordered pool."""
    if strategy == "random":
        return list(range(count))
    return choose(learner.fit(pool[labeled]), pool[unlabeled], count, strategy, seed=len(labeled))
