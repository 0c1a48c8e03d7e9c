"""Training of the rankers, and aggregation of their votes.

Everything is trained twice, as in the paper: for NDCG and for precision, which changes the loss of
TopSlack and TopMargin, the measure that parameters are tuned by, and the weights of the voters.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import FirstpageWarning, Floats
from firstpage.data import Dataset, Fold
from firstpage.evaluation.aggregation import (
    Ballots,
    Credit,
    SupervisedKemeny,
    aggregate,
    supervised_weights,
)
from firstpage.evaluation.measures import evaluate
from firstpage.learning.rankers import create_ranker, tune
from firstpage.papers.study.letor_protocol import draw_seed, load_fold, measure_rows
from firstpage.papers.study.study import Row


@dataclass(frozen=True)
class TrainingTarget:
    """The loss, the measure that parameters are tuned by, and the measures that are tested."""

    delta: str
    tuning_measure: str
    measures: tuple[str, ...]


TARGETS = {
    "NDCG": TrainingTarget("NDCG", "NDCG@10", ("NDCG@1", "NDCG@3", "NDCG@10")),
    "precision": TrainingTarget("Precision@10", "P@10", ("P@1", "P@3", "P@10")),
}
SCALINGS = ("TopMargin", "TopSlack")
VOTERS = ("Regression", "RankSVM", "ListNet")
# Values of the tuned parameter: as many for every ranker.
COSTS, PENALTIES = (0.001, 0.1, 10.0, 1000.0), (1e-4, 1e-3, 1e-2, 1e-1)
PRINTED_COSTS = tuple(10.0**i for i in range(-5, 6))
GRIDS: Mapping[str, Mapping[str, Sequence[float]]] = {
    **{name: {"C": COSTS} for name in (*SCALINGS, "RankSVM")},
    **{name: {"l2": PENALTIES} for name in ("Regression", "ListNet", "ListMLE")},
}
LISTMLE = "Top-10 ListMLE"
MAX_CANDIDATES = 100


@dataclass(frozen=True)
class VotingRule:
    """A rule that turns votes into an order; the defaults are those of the paper, with t per query.

    Attributes
    ----------
    credit : str
        Credit of a vote.
    depth : int
        t, the number of candidates of a query.
    same_depth : bool
        Use the length of the shortest list as t of all queries.
    k_agg : int or None
        How many documents of a voter's list get credit; None: half of the candidates.
    equal_weights : bool
        Voters have equal weights, instead of weights by their values on validation data.
    base_votes : bool
        The base ranker votes, too.
    """

    credit: Credit = "paper"
    depth: int = MAX_CANDIDATES
    same_depth: bool = False
    k_agg: int | None = None
    equal_weights: bool = False
    base_votes: bool = False


PRINTED = "as printed"
VARIANTS = {
    PRINTED: VotingRule(),
    "extended credit": VotingRule(credit="extended"),
    "equal weights": VotingRule(equal_weights=True),
    "credit for the whole list (k = t)": VotingRule(k_agg=MAX_CANDIDATES),
    "credit for the first 10 (k = 10)": VotingRule(k_agg=10),
    "t = 10": VotingRule(depth=10),
    "t = 20": VotingRule(depth=20),
    "t = 50": VotingRule(depth=50),
    "t = length of the shortest list": VotingRule(same_depth=True),
    "TopSlack also votes": VotingRule(base_votes=True),
}


def evaluate_rankers(
    rng: np.random.Generator,
    data: str,
    target: str,
    fold: int,
    folder: str,
    costs: Sequence[float] = COSTS,
) -> list[Row]:
    """Return the rows of all rankers of Figures 2 to 4 and of variants of TopRank, on one fold.

    `costs` are the values of C to choose from.
    """
    split, objective = load_fold(folder, fold), TARGETS[target]
    structured = {
        name: _tune(name, objective, split, costs, delta=objective.delta) for name in SCALINGS
    }
    voters = [_tune(name, objective, split, costs) for name in VOTERS]
    rows = [
        row
        for name, ranker in (*structured.items(), *zip(VOTERS, voters, strict=True))
        for row in _evaluate(
            ranker.predict(split.test), split.test, objective, {"data": data, "model": name}
        )
    ]
    for variant, rule in VARIANTS.items():
        scores = toprank_scores(
            structured["TopSlack"], voters, rule, split.valid, split.test, objective.tuning_measure
        )
        labels = {"data": data, "model": "TopRank"}
        if variant == PRINTED:
            rows += _evaluate(scores, split.test, objective, labels)
        rows += _evaluate(scores, split.test, objective, {**labels, "variant": variant})
    return rows


def evaluate_listmle(
    rng: np.random.Generator, data: str, target: str, fold: int, folder: str
) -> list[Row]:
    """Return the rows of Top-10 ListMLE at its optimum; the seed orders equal labels."""
    split, objective = load_fold(folder, fold), TARGETS[target]
    ranker = _tune("ListMLE", objective, split, k=10, ties="random", seed=draw_seed(rng))
    labels = {"data": data, "model": LISTMLE}
    return _evaluate(ranker.predict(split.test), split.test, objective, labels)


def evaluate_scalings(
    rng: np.random.Generator, data: str, target: str, cost: float, fold: int, folder: str
) -> list[Row]:
    """Return the rows of slack and margin scaling with one C, start and true ranking.

    Also whether the optimum is w = 0; the order of the start is used then.
    """
    split, objective = load_fold(folder, fold), TARGETS[target]
    rows = []
    for name in SCALINGS:
        labels = {"data": data, "model": name, "C": cost}
        with warnings.catch_warnings():  # counted in a row instead
            warnings.simplefilter("ignore", FirstpageWarning)
            ranker = _fit(name, split, delta=objective.delta, C=cost)
        rows += _evaluate(ranker.predict(split.test), split.test, objective, labels)
        zero = float("degenerate" in ranker.training_)
        rows.append({**labels, "measure": f"folds at w = 0, {target}", "value": zero})
    return rows


def toprank_scores(
    base: Any, voters: Sequence[Any], rule: VotingRule, valid: Dataset, data: Dataset, measure: str
) -> Floats:
    """Return the scores of TopRank: the candidates of the base ranker in the order of votes."""
    all_voters = [*voters, base] if rule.base_votes else list(voters)
    weights = None
    if not rule.equal_weights:
        weights = supervised_weights([v.predict(valid) for v in all_voters], valid, measure).weights
    votes = np.stack([voter.predict(data) for voter in all_voters])
    ballots = Ballots.from_scores(
        votes, data.offsets, base.predict(data), depth=rule.depth, same_depth=rule.same_depth
    )
    method = SupervisedKemeny(credit=rule.credit, k_agg=rule.k_agg)
    voter_weights = None if weights is None else weights.tolist()
    return aggregate(ballots, method, weights=voter_weights).scores


def _tune(
    name: str, objective: TrainingTarget, split: Fold, costs: Sequence[float] = COSTS, **params: Any
) -> Any:
    grid = {"C": costs} if "C" in GRIDS[name] else GRIDS[name]
    ranker = create_ranker(
        name, measure=objective.tuning_measure, normalize="minmax", threads=1, **params
    )
    return tune(ranker, split.train, split.valid, grid=grid).best


def _fit(name: str, split: Fold, **params: Any) -> Any:
    return create_ranker(name, normalize="minmax", threads=1, **params).fit(
        split.train, valid=split.valid
    )


def _evaluate(
    scores: Floats, test: Dataset, objective: TrainingTarget, labels: dict[str, Any]
) -> list[Row]:
    evaluation = evaluate(scores, test, measures=objective.measures, convention="letor")
    return measure_rows({m: evaluation.per_query(m) for m in objective.measures}, labels)
