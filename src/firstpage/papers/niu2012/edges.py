"""Three rules for edges and steps of FocusedBoost, which as printed is poor for 0 < beta < 1.

The paper mixes the edges of two loss terms, beta * list + (1 - beta) * pair, and takes the step of
the mixture.  The pair edge of a weak ranker with equal scores is 0; its list edge is not, since
NDCG of a random order is far above 0.

printed      as in the paper
line search  the same weak ranker in each round, with the best of five step sizes
adjusted     list edge and list loss adjusted for chance, so that equal scores have an edge of 0
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.evaluation.measures import evaluate
from firstpage.learning.rankers import FocusedBoost, Ranker
from firstpage.learning.solvers import (
    ROUNDING_EPS,
    BoostingState,
    InMemoryBoostingState,
    boosting_step,
)
from firstpage.papers.niu2012.comparison import letor_experiment, on_mq2007
from firstpage.papers.niu2012.learned import WEAK_RANKERS, boosted_name, dataset_name, letor_split
from firstpage.papers.niu2012.printed import TOP_K
from firstpage.papers.study.claims import greater
from firstpage.papers.study.descriptions import Descriptions
from firstpage.papers.study.letor_protocol import FOLDS, draw_seed, measure_rows
from firstpage.papers.study.study import Cells, Claim, PaperEntry, Plot, Row, TableLayout

PRINTED, LINE_SEARCH, ADJUSTED = RULES = ("printed", "line search", "adjusted")
BETAS = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
TUNED = "tuned"
MEAN = "mean of 11 measures"
TRIED, BEST_ROUND = "weak rankers tried per round", "best round"
TRAINING_MEASURES = ("list loss", "pair loss", TRIED, BEST_ROUND)
EQUAL_SCORES_EDGE = "list edge of equal scores"
PARENTS = ("RankBoost", "AdaRank")
STEP_SIZES = (2.0, 1.0, 0.5, 0.25, 0.0625)  # of the line search, as multiples of the printed step


class RecordingState(InMemoryBoostingState):
    """Boosting that records the initial losses of both terms, and the number of tried rankers."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.initial_losses = [term.loss for _, term in self.terms]
        self.n_tried = 0

    def try_step(self, number: int, edge: float, halvings: int | None) -> float:
        self.n_tried += 1
        return super().try_step(number, edge, halvings)


class LineSearchState(RecordingState):
    """Boosting with the step size, of five, that has the smallest mixed loss."""

    def try_step(self, number: int, edge: float, halvings: int | None) -> float:
        self.n_tried += 1
        scores, steps = self.scores.copy(), [size * boosting_step(edge) for size in STEP_SIZES]
        losses = []
        for step in steps:
            self.pool.add(number, step, self.scores)
            losses.append(self._evaluate())
            self.scores[:] = scores
        best = int(np.argmin(losses))
        if losses[best] >= self.loss - ROUNDING_EPS:
            return 0.0
        self.pool.add(number, steps[best], self.scores)
        self.loss, self._edges = self._evaluate(), None
        return steps[best]


@dataclass(eq=False, repr=False)
class RecordingBoost(Ranker):
    """Learns by the rounds of `boosted`, with a state that can be inspected after a fit."""

    _: KW_ONLY
    boosted: FocusedBoost = field(default_factory=FocusedBoost)
    line_search: bool = False

    def compose(self, learns_from: Any = "labels") -> Any:
        return replace(self.boosted.compose(learns_from), state=self._state)

    def _state(self, *args: Any) -> BoostingState:
        self.state_ = (LineSearchState if self.line_search else RecordingState)(*args)
        return self.state_


def evaluate_rule(
    rng: np.random.Generator,
    weak: str,
    rule: str,
    fold: int,
    betas: list[float],
    folder: str,
    optional_folder: str | None = None,
) -> list[Row]:
    """Return the rows of one rule on one fold: test values on top-k labels, and training."""
    seed = draw_seed(rng)
    split = letor_split(folder, optional_folder, fold, seed)
    labels = {"data": dataset_name(folder, optional_folder), "weak": weak, "rule": rule}
    rows, best = list[Row](), (-np.inf, dict[str, Floats]())
    for beta in betas:
        ranker = RecordingBoost(
            10,
            boosted=FocusedBoost(
                10, beta, weak=weak, edge="adjusted" if rule == ADJUSTED else "printed"
            ),
            line_search=rule == LINE_SEARCH,
            measure="kNDCG@10",
            ties="random",
            seed=seed,
            threads=1,
        )
        ranker.fit(split.train.top_k, valid=split.valid.top_k)
        query_values = _evaluate(ranker, split.test.top_k)
        beta_labels = {**labels, "beta": beta}
        rows += measure_rows(query_values, beta_labels)
        rows += [
            {**beta_labels, "measure": m, "value": value}
            for m, value in _training_summary(ranker).items()
        ]
        best = max(best, (ranker.training_["score"], query_values), key=lambda pair: pair[0])
    rows += measure_rows(best[1], {**labels, "beta": TUNED})
    return [{**row, "panel": _panel(row["measure"], weak)} for row in rows]


def _panel(measure: str, weak: str) -> str:
    return f"{measure}, {weak}"


def _evaluate(ranker: Ranker, test: Any) -> dict[str, Floats]:
    per_query = evaluate(ranker.predict(test), test, measures=list(TOP_K)).per_query
    values = {m: per_query(m) for m in TOP_K}
    return {
        "kNDCG@10": values["kNDCG@10"],
        "kERR": values["kERR"],
        MEAN: np.mean(list(values.values()), axis=0),
    }


def _training_summary(ranker: RecordingBoost) -> dict[str, float]:
    """Return the final losses as fractions of the initial ones, and numbers of rounds."""
    state, losses = ranker.state_, dict[str, float]()
    for (_, term), initial_loss in zip(state.terms, state.initial_losses, strict=True):
        losses[f"{term.name} loss"] = term.loss / initial_loss
    tried = state.n_tried / max(ranker.n_iter_, 1)
    return {**losses, TRIED: tried, BEST_ROUND: float(ranker.best_iteration_ or 0)}


def edge_of_equal_scores(
    rng: np.random.Generator, fold: int, folder: str, optional_folder: str | None = None
) -> list[Row]:
    """Return the printed list edge of equal scores: NDCG of a random order of the top."""
    split = letor_split(folder, optional_folder, fold, draw_seed(rng))
    boosted = FocusedBoost(10, 1.0, weak="features", rounds=1)
    ranker = RecordingBoost(10, boosted=boosted, ties="random").fit(split.train.top_k)
    (initial_loss,) = ranker.state_.initial_losses
    return [
        {
            "data": dataset_name(folder, optional_folder),
            "measure": EQUAL_SCORES_EDGE,
            "value": 1.0 - initial_loss,
        }
    ]


def edges() -> PaperEntry:
    """Return the entry; its truths are those of Table 4, by the same stream and runs."""
    rule_experiments = [
        on_mq2007(evaluate_rule, {"weak": weak, "rule": rule, "fold": fold, "betas": BETAS})
        for fold in FOLDS
        for weak in WEAK_RANKERS
        for rule in RULES
    ]
    equal_score_experiments = [on_mq2007(edge_of_equal_scores, {"fold": fold}) for fold in FOLDS]
    parent_experiments = [
        letor_experiment(boosted_name(name, weak), fold)
        for fold in FOLDS
        for weak in WEAK_RANKERS
        for name in PARENTS
    ]
    layouts = [
        (_panel(m, weak), TableLayout("rule", "beta", _panel(m, weak)))
        for weak in WEAK_RANKERS
        for m in (MEAN, "kNDCG@10", "kERR", *TRAINING_MEASURES)
    ]
    layouts.append((EQUAL_SCORES_EDGE, TableLayout("data", "measure", "first round")))
    means = [_panel(MEAN, weak) for weak in WEAK_RANKERS]
    plots = [(mean, Plot("rule", "beta", mean)) for mean in means]
    return Descriptions(__file__).entry(
        "edges",
        [*rule_experiments, *equal_score_experiments, *parent_experiments],
        _claims,
        fields={"plots": plots, "layouts": layouts},
    )


def _claims(cells: Cells) -> list[Claim]:
    return [claim for weak in WEAK_RANKERS for claim in _claims_for(cells, weak)]


def _claims_for(cells: Cells, weak: str) -> list[Claim]:
    def values(rule: str, beta: float | str) -> Floats:
        return cells.samples(weak=weak, rule=rule, beta=beta, measure=MEAN)

    def mean_inside(rule: str) -> Floats:
        means: Floats = np.mean([values(rule, beta) for beta in BETAS[1:-1]], axis=0)
        return means

    def parent_values(name: str) -> Floats:
        measures = [cells.samples(model=boosted_name(name, weak), measure=m) for m in TOP_K]
        means: Floats = np.mean(measures, axis=0)
        return means

    ends = (BETAS[0], BETAS[-1])
    claims = []
    for rule in RULES:
        text = f"{rule}: beta from .1 to .9 is on average better than beta ="
        claims += [(f"{text} {end:g}", mean_inside(rule), values(rule, end)) for end in ends]
    for rule in RULES[1:]:
        text = f"{rule} is better than printed, on average of beta from .1 to .9"
        claims.append((text, mean_inside(rule), mean_inside(PRINTED)))
    for rule in RULES:
        text, tuned = f"{rule} with tuned beta is better than", values(rule, TUNED)
        claims += [(f"{text} {name}", tuned, parent_values(name)) for name in PARENTS]
    return [greater(f"{text} ({weak})", a, b, source="ours") for text, a, b in claims]
