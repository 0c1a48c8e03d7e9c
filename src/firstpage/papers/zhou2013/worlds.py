"""Section 5.2: what is learned from pairs of random orders of one list of grades.

Every training set is learned from with the C that does best on 800 validation pairs, as noisy as
the training pairs are; the test pairs are clean.  The paper names neither number.
"""

from __future__ import annotations

import numpy as np

from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.pairs import encode
from firstpage.dcglearn.simulation import (
    NOTHING,
    OTHER_LIST,
    TEST,
    VALID,
    World,
    accuracy_of,
    learn,
    regraded,
    reversed_pairs,
    world,
)
from firstpage.dcglearn.validation import differences
from firstpage.dcglearn.weights import similarity
from firstpage.papers.study.study import Row
from firstpage.types import Floats

MANY = 40_000  # pairs, to be told apart by their difference
TO_NATURAL = 1 / np.log(2)  # discounts are 1/log2 here, and 1/log in the paper
DIFFERENCE = "DCG difference"


def fitted(truth: Utility, train: Preferences, valid: Preferences) -> DCGLearn:
    """DCGLearn in one thread: runs are spread over processes."""
    return learn(truth, train, valid, threads=1)


def coherence(rng: np.random.Generator, edges: list[float]) -> list[Row]:
    """Figure 1: how often the two measures agree, by their difference in either unit."""
    exp, linear = world(2), world(1)
    left, right = exp.rankings(MANY, rng), exp.rankings(MANY, rng)
    apart = exp.worth(left) - exp.worth(right)
    same = right_way(np.sign(apart) * (linear.worth(left) - linear.worth(right)))
    clear = np.abs(apart) > NOTHING
    rows: list[Row] = []
    for unit, scale in (("natural logarithm", TO_NATURAL), ("logarithm to base 2", 1.0)):
        for middle, value in binned(np.abs(apart[clear]) * scale, same[clear], edges):
            rows.append({"discount": unit, DIFFERENCE: middle, "value": value})
    return rows


def learning(rng: np.random.Generator, data: int, sizes: list[int]) -> list[Row]:
    """Figures 2, 3, 6: accuracy and similarity by the number of pairs."""
    right, wrong = world(data), world(3 - data)
    pool, valid, test = (right.pairs(n, rng) for n in (max(sizes), VALID, TEST))
    other = accuracy_of(wrong.truth, test)
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
    right, wrong = world(data), world(3 - data)
    train, valid, test = (right.pairs(n, rng) for n in (pairs, VALID, MANY))
    learner = fitted(right.truth, train, valid)
    return bins_of(
        right.truth, {"DCGLearn": learner.weights_, "Other": wrong.truth.weights}, test, edges
    )


def bins_of(
    truth: Utility, tables: dict[str, Floats], test: Preferences, edges: list[float]
) -> list[Row]:
    """Accuracies of several weights in bins of the true difference (natural logarithm)."""
    every = encode(test.regraded(truth.grades), truth.places, len(truth.grades))
    size = np.abs(differences(every, truth.weights)) * TO_NATURAL
    return [
        {"method": name, DIFFERENCE: middle, "value": value}
        for name, table in tables.items()
        for middle, value in binned(size, right_way(differences(every, table)), edges)
    ]  # fmt: skip


def right_way(apart: Floats) -> Floats:
    """1 for a difference above zero, 0 below, and half for none."""
    found: Floats = (np.sign(np.where(np.abs(apart) > NOTHING, apart, 0.0)) + 1) / 2
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
    right = world(data)
    train, valid, test = (right.pairs(n, rng) for n in (pairs, VALID, TEST))
    rows: list[Row] = []
    for count in counts:
        share = count / pairs
        learner = fitted(
            right.truth, reversed_pairs(train, share, rng), reversed_pairs(valid, share, rng)
        )
        rows.append({"method": f"Data {data}", "reversed": count, "value": learner.score(test)})
    return rows


def regraded_some(
    rng: np.random.Generator, data: int, pairs: int, shares: list[float]
) -> list[Row]:
    """Figure 8: a share of the documents in training lists with a random grade."""
    right = world(data)
    train, valid, test = (right.pairs(n, rng) for n in (pairs, VALID, TEST))
    rows: list[Row] = []
    for share in shares:
        learner = fitted(right.truth, regraded(train, share, rng), regraded(valid, share, rng))
        rows.append({"method": f"Data {data}", "regraded": share, "value": learner.score(test)})
    return rows


def optimal(rng: np.random.Generator, data: int, sizes: list[int], other_list: bool) -> list[Row]:
    """Figures 9, 10: one side of every training pair is the best order."""
    right = world(data)
    grades = OTHER_LIST if other_list else None
    train, valid = (right.optimal_pairs(n, rng, grades) for n in (max(sizes), VALID))
    test = right.pairs(TEST, rng)
    name = f"optimal rankings, Data {data}"
    found = {m: fitted(right.truth, train[:m], valid).score(test) for m in sizes}
    return [{"method": name, "pairs": m, "value": value} for m, value in found.items()]


def random_orders(rng: np.random.Generator, data: int, sizes: list[int]) -> list[Row]:
    """Figure 10's other line: pairs of random orders."""
    right: World = world(data)
    train, valid, test = (right.pairs(n, rng) for n in (max(sizes), VALID, TEST))
    name = f"random rankings, Data {data}"
    found = {m: fitted(right.truth, train[:m], valid).score(test) for m in sizes}
    return [{"method": name, "pairs": m, "value": value} for m, value in found.items()]
