"""Training of ListMLE and top-k ListMLE and of the baselines, and the numbers of Tables 1 to 6.

As in the paper: a linear model, and one random order among those that the grades allow (here one
per seed).  The paper uses stochastic gradient descent without details.  The loss is convex, so that
the tables have its optimum (L-BFGS, a small penalty); gradient descent, with rate and epoch tuned
on validation data, is compared with it.  Features are scaled to [0, 1] within each query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from firstpage.data import Synthetic
from firstpage.evaluation.measures import evaluate
from firstpage.learning.rankers import create_ranker
from firstpage.papers.study.letor_protocol import (
    draw_seed,
    evaluate_on_fold,
    load_fold,
    measure_rows,
)
from firstpage.papers.study.study import Row

MEASURES = ("NDCG@1", "NDCG@3", "NDCG@10", "P@1", "P@3", "P@10")
Printed = Mapping[str, tuple[float, ...]]

OHSUMED: Printed = {
    "ListMLE": (0.548, 0.473, 0.446, 0.642, 0.582, 0.495),
    "Top-1 ListMLE": (0.529, 0.482, 0.447, 0.652, 0.595, 0.499),
    "Top-3 ListMLE": (0.535, 0.484, 0.445, 0.671, 0.608, 0.504),
    "Top-10 ListMLE": (0.558, 0.473, 0.444, 0.672, 0.601, 0.509),
    "RankBoost": (0.497, 0.472, 0.435, 0.604, 0.586, 0.495),
    "Ranking SVM": (0.495, 0.464, 0.441, 0.633, 0.592, 0.507),
    "ListNet": (0.523, 0.477, 0.448, 0.642, 0.602, 0.509),
    "RankCosine": (0.523, 0.475, 0.437, 0.642, 0.589, 0.493),
}


def _binary(at_1: float, n3: float, n10: float, p3: float, p10: float) -> tuple[float, ...]:
    """Return six values from five: with two grades NDCG@1 and P@1 are equal, and printed once."""
    return at_1, n3, n10, at_1, p3, p10


TD2003: Printed = {
    "ListMLE": _binary(0.24, 0.253, 0.261, 0.22, 0.146),
    "Top-1 ListMLE": _binary(0.4, 0.329, 0.314, 0.3, 0.176),
    "Top-3 ListMLE": _binary(0.44, 0.382, 0.343, 0.34, 0.204),
    "Top-10 ListMLE": _binary(0.5, 0.410, 0.378, 0.38, 0.22),
    "RankBoost": _binary(0.26, 0.270, 0.285, 0.24, 0.178),
    "Ranking SVM": _binary(0.42, 0.378, 0.341, 0.34, 0.206),
    "ListNet": _binary(0.46, 0.408, 0.374, 0.36, 0.222),
    "RankCosine": _binary(0.36, 0.346, 0.322, 0.3, 0.182),
}
TD2004: Printed = {
    "ListMLE": _binary(0.4, 0.351, 0.356, 0.284, 0.188),
    "Top-1 ListMLE": _binary(0.52, 0.469, 0.451, 0.413, 0.248),
    "Top-3 ListMLE": _binary(0.506, 0.456, 0.458, 0.417, 0.261),
    "Top-10 ListMLE": _binary(0.52, 0.469, 0.472, 0.413, 0.269),
    "RankBoost": _binary(0.48, 0.463, 0.471, 0.404, 0.253),
    "Ranking SVM": _binary(0.44, 0.409, 0.420, 0.351, 0.225),
    "ListNet": _binary(0.439, 0.437, 0.457, 0.399, 0.257),
    "RankCosine": _binary(0.439, 0.397, 0.405, 0.328, 0.209),
}
PRINTED: Mapping[str, Printed] = {"OHSUMED": OHSUMED, "TD2003": TD2003, "TD2004": TD2004}

# Means over the five test folds of OHSUMED on the LETOR page.  Table 4 prints them truncated to
# three digits.
LETOR: Printed = {
    "RankBoost": (0.497691, 0.472649, 0.435602, 0.604762, 0.586147, 0.495455),
    "Ranking SVM": (0.495238, 0.464899, 0.441096, 0.633766, 0.592352, 0.507056),
    "ListNet": (0.523088, 0.477732, 0.448895, 0.642857, 0.602309, 0.509697),
}


def paper_values(data: str, methods: tuple[str, ...]) -> list[tuple[Mapping[str, Any], float]]:
    """Return the printed values of some methods, with the labels of their cells."""
    return [
        ({"data": data, "method": method, "measure": measure}, value)
        for method in methods
        for measure, value in zip(MEASURES, PRINTED[data][method], strict=True)
    ]


Depth = int | str
FULL_LIST = "n"  # k of ListMLE itself: the length of the list
DEPTHS: tuple[Depth, ...] = (FULL_LIST, 1, 3, 10)
# How ListMLE is trained: parameters of the ranker, and whether others are tuned.
DEFAULT_TRAINING = "optimum"  # of Tables 1 to 3
TUNED_TRAINING = "optimum, l2 tuned"
SETTINGS = ("defaults", "tuned")  # of all rankers of Tables 4 to 6
PENALTIES = {"l2": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
TRAININGS: dict[str, tuple[dict[str, Any], bool]] = {
    DEFAULT_TRAINING: ({"ties": "random"}, False),
    "SGD": ({"ties": "random", "l2": 0.0, "solver": "sgd"}, True),
    TUNED_TRAINING: ({"ties": "random"}, True),
    "optimum, ties share ranks": ({"ties": "share"}, False),
}
BASELINES = {"RankBoost": "RankBoost", "Ranking SVM": "RankSVM", "ListNet": "ListNet",
          "RankCosine": "RankCosine"}  # fmt: skip
# Five values of one parameter for each.
GRIDS: dict[str, dict[str, list[float]]] = {
    "RankBoost": {"tol": [1e-2, 1e-3, 1e-4, 1e-5, 1e-6]},
    "Ranking SVM": {"C": [1e-2, 1e-1, 1.0, 10.0, 100.0]},
    "ListNet": PENALTIES,
    "RankCosine": PENALTIES,
}


def method_name(k: Depth) -> str:
    """Return the name in the tables."""
    return "ListMLE" if k == FULL_LIST else f"Top-{k} ListMLE"


def listmle(k: Depth, training: str) -> Any:
    """Return the unfitted ranker."""
    parameters, _ = TRAININGS[training]
    return create_ranker(
        "ListMLE", k=None if k == FULL_LIST else k, normalize="minmax", threads=1, **parameters
    )


def evaluate_listmle(
    rng: np.random.Generator, data: str, k: Depth, training: str, fold: int, folder: str
) -> list[Row]:
    """Return the rows of ListMLE on one fold."""
    tuned = TRAININGS[training][1]
    labels = {
        "data": data,
        "method": method_name(k),
        "model": "ListMLE",
        "k": k,
        "training": training,
        "settings": SETTINGS[tuned],
    }
    grid = PENALTIES if training == TUNED_TRAINING else None
    return evaluate_on_fold(
        listmle(k, training),
        load_fold(folder, fold),
        MEASURES,
        labels,
        draw_seed(rng),
        tuned=tuned,
        grid=grid,
    )


def evaluate_baseline(
    rng: np.random.Generator, data: str, method: str, tuned: bool, fold: int, folder: str
) -> list[Row]:
    """Return the rows of a baseline on one fold, with default or with tuned parameters."""
    name = BASELINES[method]
    labels = {"data": data, "method": method, "model": name,
              "training": "tuned" if tuned else "default",
              "settings": SETTINGS[tuned]}  # fmt: skip
    ranker = create_ranker(name, normalize="minmax", threads=1)
    return evaluate_on_fold(
        ranker,
        load_fold(folder, fold),
        MEASURES,
        labels,
        draw_seed(rng),
        tuned=tuned,
        grid=GRIDS[method] if tuned else None,
    )


TRAIN, VALID, TEST = 30, 10, 100
SIMULATION = {"docs": 500, "features": 44, "grades": 2, "noise": 0.5}


def evaluate_on_simulated_lists(
    rng: np.random.Generator, k: Depth, training: str, relevant: float
) -> list[Row]:
    """Return the rows of ListMLE on simulated lists with a fraction of relevant documents."""
    seed = draw_seed(rng)
    queries = TRAIN + VALID + TEST
    data = Synthetic(queries=queries, relevant=relevant, seed=seed, **SIMULATION).dataset()  # type: ignore[arg-type]
    train, valid, test = data[:TRAIN], data[TRAIN : TRAIN + VALID], data[TRAIN + VALID :]
    ranker = listmle(k, training).set_params(seed=seed).fit(train, valid=valid)
    evaluation = evaluate(ranker.predict(test), test, measures=MEASURES, convention="letor")
    labels = {"method": method_name(k), "model": "ListMLE", "k": k, "training": training,
              "relevant": relevant}  # fmt: skip
    rows = measure_rows(dict(zip(MEASURES, evaluation.values, strict=True)), labels)
    # Every run has its own queries: tests are over runs, not over queries.
    return [{name: v for name, v in row.items() if name != "queries"} for row in rows]
