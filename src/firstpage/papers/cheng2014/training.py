"""What is trained and how its votes are counted.

Everything is done twice, as in the paper: once for NDCG and once for precision, which changes the
loss of TopSlack and TopMargin, what C is chosen by and what the voters' weights come from.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.aggregation.aggregation import aggregate
from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.methods import Credit, SupervisedKemeny
from firstpage.aggregation.weights import supervised_weights
from firstpage.data.dataset import Dataset
from firstpage.data.folds import Fold
from firstpage.errors import FirstpageWarning
from firstpage.measures.evaluate import evaluate
from firstpage.papers.study.letor_protocol import fold as fold_of
from firstpage.papers.study.letor_protocol import rows_of, seed_of
from firstpage.papers.study.study import Row
from firstpage.rankers.methods import create_ranker
from firstpage.rankers.selection.tuning import tune
from firstpage.types import Floats


@dataclass(frozen=True)
class Target:
    """What is trained for: the loss, the measure to choose by, and what is tested."""

    delta: str
    chosen_by: str
    measures: tuple[str, ...]


TARGETS = {
    "NDCG": Target("NDCG", "NDCG@10", ("NDCG@1", "NDCG@3", "NDCG@10")),
    "precision": Target("Precision@10", "P@10", ("P@1", "P@3", "P@10")),
}
SCALINGS = ("TopMargin", "TopSlack")
VOTERS = ("Regression", "RankSVM", "ListNet")
# What is chosen on validation data: as many values for every ranker.
COSTS, PENALTIES = (0.001, 0.1, 10.0, 1000.0), (1e-4, 1e-3, 1e-2, 1e-1)
GRIDS: Mapping[str, Mapping[str, Sequence[float]]] = {
    **{name: {"C": COSTS} for name in (*SCALINGS, "RankSVM")},
    **{name: {"l2": PENALTIES} for name in ("Regression", "ListNet", "ListMLE")},
}
LISTMLE = "Top-10 ListMLE"
DEEP = 100


@dataclass(frozen=True)
class Votes:
    """How votes become an order; as it stands: what the paper prints, but for t query by query.

    depth  t, the candidates of a query; `same_depth`: that of the shortest list for all
    k_agg  how much of a voter's list gives credit; None: half of the candidates
    alike  voters weigh alike, not by what they measure on validation data
    own    the first ranker votes too
    """

    credit: Credit = "paper"
    depth: int = DEEP
    same_depth: bool = False
    k_agg: int | None = None
    alike: bool = False
    own: bool = False


PRINTED = "as printed"
VARIANTS = {
    PRINTED: Votes(),
    "extended credit": Votes(credit="extended"),
    "weights alike": Votes(alike=True),
    "credit to all of a list (k = t)": Votes(k_agg=DEEP),
    "credit to the first 10 (k = 10)": Votes(k_agg=10),
    "t = 10": Votes(depth=10),
    "t = 20": Votes(depth=20),
    "t = 50": Votes(depth=50),
    "t of the shortest list": Votes(same_depth=True),
    "TopSlack votes too": Votes(own=True),
}


def compared(rng: np.random.Generator, data: str, target: str, fold: int, folder: str) -> list[Row]:
    """All rankers of Figures 2 to 4 on one fold, and TopRank in its variants."""
    on, aim = fold_of(folder, fold), TARGETS[target]
    tops = {name: _tuned(name, aim, on, delta=aim.delta) for name in SCALINGS}
    voters = [_tuned(name, aim, on) for name in VOTERS]
    rows = [
        row
        for name, ranker in (*tops.items(), *zip(VOTERS, voters, strict=True))
        for row in _tested(ranker.predict(on.test), on.test, aim, {"data": data, "model": name})
    ]
    for variant, how in VARIANTS.items():
        scores = voted(tops["TopSlack"], voters, how, on.valid, on.test, aim.chosen_by)
        labels = {"data": data, "model": "TopRank"}
        if variant == PRINTED:
            rows += _tested(scores, on.test, aim, labels)
        rows += _tested(scores, on.test, aim, {**labels, "variant": variant})
    return rows


def likelihood(
    rng: np.random.Generator, data: str, target: str, fold: int, folder: str
) -> list[Row]:
    """Top-10 ListMLE at its optimum; equal labels in the random order of the seed."""
    on, aim = fold_of(folder, fold), TARGETS[target]
    ranker = _tuned("ListMLE", aim, on, k=10, ties="random", seed=seed_of(rng))
    labels = {"data": data, "model": LISTMLE}
    return _tested(ranker.predict(on.test), on.test, aim, labels)


def scaled(
    rng: np.random.Generator, data: str, target: str, cost: float, fold: int, folder: str
) -> list[Row]:
    """Slack and margin scaling with one C, from the same start, with the same true ranking.

    Also whether the optimum is w = 0; what is kept then is the order of the start.
    """
    on, aim = fold_of(folder, fold), TARGETS[target]
    rows = []
    for name in SCALINGS:
        labels = {"data": data, "model": name, "C": cost}
        with warnings.catch_warnings():  # it is counted here instead
            warnings.simplefilter("ignore", FirstpageWarning)
            ranker = _fitted(name, on, delta=aim.delta, C=cost)
        rows += _tested(ranker.predict(on.test), on.test, aim, labels)
        zero = float("degenerate" in ranker.training_)
        rows.append({**labels, "measure": f"folds at w = 0, {target}", "value": zero})
    return rows


def voted(
    first: Any, voters: Sequence[Any], how: Votes, valid: Dataset, data: Dataset, measure: str
) -> Floats:
    """TopRank's scores: the first ranker's candidates in the order of the votes."""
    every = [*voters, first] if how.own else list(voters)
    weights = None
    if not how.alike:
        weights = supervised_weights([v.predict(valid) for v in every], valid, measure).weights
    votes = np.stack([voter.predict(data) for voter in every])
    ballots = Ballots.from_scores(
        votes, data.offsets, first.predict(data), depth=how.depth, same_depth=how.same_depth
    )
    method = SupervisedKemeny(credit=how.credit, k_agg=how.k_agg)
    found = aggregate(ballots, method, weights=None if weights is None else weights.tolist())
    return found.scores


def _tuned(name: str, aim: Target, on: Fold, **given: Any) -> Any:
    ranker = create_ranker(name, measure=aim.chosen_by, normalize="minmax", threads=1, **given)
    return tune(ranker, on.train, on.valid, grid=GRIDS[name]).best


def _fitted(name: str, on: Fold, **given: Any) -> Any:
    return create_ranker(name, normalize="minmax", threads=1, **given).fit(on.train, valid=on.valid)


def _tested(scores: Floats, test: Dataset, aim: Target, labels: dict[str, Any]) -> list[Row]:
    found = evaluate(scores, test, measures=aim.measures, convention="letor")
    return rows_of({m: found.per_query(m) for m in aim.measures}, labels)
