"""What is trained: ListMLE for the first k places or all, and the rankers beside it.

As in the paper: a linear model, and one order drawn at random among those that the grades allow
(here one a seed).  The paper descends by stochastic gradients and says no more; the loss is convex,
so that tables take its optimum (L-BFGS, a small penalty), and the descent, with rate and epoch
chosen on validation data, stands beside it.  Features are scaled to [0, 1] within each query.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from firstpage.data.synthetic import Synthetic
from firstpage.measures.evaluate import evaluate
from firstpage.papers.study.letor_protocol import fold as fold_of
from firstpage.papers.study.letor_protocol import measured, rows_of, seed_of
from firstpage.papers.study.study import Row
from firstpage.papers.xia2009.printed import MEASURES
from firstpage.rankers.methods import made

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
    return made("ListMLE", k=None if k == WHOLE else k, normalize="minmax", threads=1, **parameters)


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
    ranker = made(name, normalize="minmax", threads=1)
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
