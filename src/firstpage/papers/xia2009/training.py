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
from firstpage.papers.tables import tables_beside

MEASURES = ("NDCG@1", "NDCG@3", "NDCG@10", "P@1", "P@3", "P@10")
Printed = Mapping[str, tuple[float, ...]]

_TABLES: dict[str, Printed] = {
    data: {method: tuple(values) for method, values in rows.items()}
    for data, rows in tables_beside(__file__).items()
}
LETOR = _TABLES.pop("LETOR")
PRINTED: Mapping[str, Printed] = _TABLES


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
