"""What is trained: ListMLE for the first k places or all, and the rankers beside it; and the
numbers of Tables 1 to 6, with those of the LETOR page that Tables 4 to 6 compare with.

As in the paper: a linear model, and one order drawn at random among those that the grades allow
(here one a seed).  The paper descends by stochastic gradients and says no more; the loss is convex,
so that tables take its optimum (L-BFGS, a small penalty), and the descent, with rate and epoch
chosen on validation data, stands beside it.  Features are scaled to [0, 1] within each query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from firstpage.data.synthetic import Synthetic
from firstpage.measures.evaluate import evaluate
from firstpage.papers.study.letor_protocol import fold as fold_of
from firstpage.papers.study.letor_protocol import measured, rows_of, seed_of
from firstpage.papers.study.study import Row
from firstpage.rankers.methods import create_ranker

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


def _binary(one: float, n3: float, n10: float, p3: float, p10: float) -> tuple[float, ...]:
    """With two grades the first places of NDCG and P are the same, and printed once."""
    return one, n3, n10, one, p3, p10


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

# Means over the five test folds of OHSUMED as the LETOR page has them.  Table 4 prints the same,
# cut off after three digits.
LETOR: Printed = {
    "RankBoost": (0.497691, 0.472649, 0.435602, 0.604762, 0.586147, 0.495455),
    "Ranking SVM": (0.495238, 0.464899, 0.441096, 0.633766, 0.592352, 0.507056),
    "ListNet": (0.523088, 0.477732, 0.448895, 0.642857, 0.602309, 0.509697),
}


def papers(data: str, methods: tuple[str, ...]) -> list[tuple[Mapping[str, Any], float]]:
    """What a table says of some methods, as entries have it."""
    return [
        ({"data": data, "method": method, "measure": measure}, value)
        for method in methods
        for measure, value in zip(MEASURES, PRINTED[data][method], strict=True)
    ]


Depth = int | str
WHOLE = "n"  # k of ListMLE itself: the length of the list
DEPTHS: tuple[Depth, ...] = (WHOLE, 1, 3, 10)
# How ListMLE is trained: the ranker's parameters, and whether more are chosen on validation data.
MAIN = "optimum"  # that of the tables
CHOSEN = "optimum, l2 chosen"
SETTINGS = ("defaults", "tuned")  # of all rankers of Tables 4 to 6 alike
PENALTIES = {"l2": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
TRAININGS: dict[str, tuple[dict[str, Any], bool]] = {
    MAIN: ({"ties": "random"}, False),
    "SGD": ({"ties": "random", "l2": 0.0, "solver": "sgd"}, True),
    CHOSEN: ({"ties": "random"}, True),
    "optimum, equal labels share": ({"ties": "share"}, False),
}
OTHERS = {"RankBoost": "RankBoost", "Ranking SVM": "RankSVM", "ListNet": "ListNet",
          "RankCosine": "RankCosine"}  # fmt: skip
# Five values of one parameter for each.
GRIDS: dict[str, dict[str, list[float]]] = {
    "RankBoost": {"tol": [1e-2, 1e-3, 1e-4, 1e-5, 1e-6]},
    "Ranking SVM": {"C": [1e-2, 1e-1, 1.0, 10.0, 100.0]},
    "ListNet": PENALTIES,
    "RankCosine": PENALTIES,
}


def called(k: Depth) -> str:
    """As the tables do."""
    return "ListMLE" if k == WHOLE else f"Top-{k} ListMLE"


def listmle(k: Depth, training: str) -> Any:
    """The ranker; None is the whole list."""
    parameters, _ = TRAININGS[training]
    return create_ranker(
        "ListMLE", k=None if k == WHOLE else k, normalize="minmax", threads=1, **parameters
    )


def likelihood(
    rng: np.random.Generator, data: str, k: Depth, training: str, fold: int, folder: str
) -> list[Row]:
    """ListMLE on one fold."""
    tuned = TRAININGS[training][1]
    labels = {"data": data, "method": called(k), "model": "ListMLE", "k": k, "training": training,
              "settings": SETTINGS[tuned]}  # fmt: skip
    on, grid = fold_of(folder, fold), PENALTIES if training == CHOSEN else None
    return measured(
        listmle(k, training), on, MEASURES, labels, seed_of(rng), tuned=tuned, grid=grid
    )


def other(
    rng: np.random.Generator, data: str, method: str, tuned: bool, fold: int, folder: str
) -> list[Row]:
    """Another ranker on one fold: as it comes, or with parameters chosen on validation data."""
    name = OTHERS[method]
    labels = {"data": data, "method": method, "model": name,
              "training": "chosen" if tuned else "as it comes",
              "settings": SETTINGS[tuned]}  # fmt: skip
    ranker = create_ranker(name, normalize="minmax", threads=1)
    return measured(
        ranker, fold_of(folder, fold), MEASURES, labels, seed_of(rng), tuned=tuned,
        grid=GRIDS[method] if tuned else None,
    )  # fmt: skip


TRAIN, VALID, TEST = 30, 10, 100
MADE = {"docs": 500, "features": 44, "grades": 2, "noise": 0.5}


def simulated(rng: np.random.Generator, k: Depth, training: str, relevant: float) -> list[Row]:
    """ListMLE on data of its own, a share of them relevant."""
    seed = seed_of(rng)
    queries = TRAIN + VALID + TEST
    data = Synthetic(queries=queries, relevant=relevant, seed=seed, **MADE).dataset()  # type: ignore[arg-type]
    train, valid, test = data[:TRAIN], data[TRAIN : TRAIN + VALID], data[TRAIN + VALID :]
    ranker = listmle(k, training).set_params(seed=seed).fit(train, valid=valid)
    found = evaluate(ranker.predict(test), test, measures=MEASURES, convention="letor")
    labels = {"method": called(k), "model": "ListMLE", "k": k, "training": training,
              "relevant": relevant}  # fmt: skip
    rows = rows_of(dict(zip(MEASURES, found.values, strict=True)), labels)
    # Every run has queries of its own: runs, not queries, are what chance is judged by.
    return [{name: v for name, v in row.items() if name != "queries"} for row in rows]
