"""Why FocusedBoost as printed does badly between its ends: three rules for the same boosting.

The paper mixes the edges of two parts, beta * list + (1 - beta) * pair, and takes the step that
belongs to the mixture.  A pair edge is 0 for a weak ranker whose scores are all equal; a list edge
is not, since NDCG of a random order is far above 0.

printed      as the paper has it
line search  the same weak ranker each round, with the best of five step sizes
adjusted     list edge and list loss adjusted for chance, so that equal scores have the edge 0
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from firstpage.measures.evaluate import evaluate
from firstpage.papers.niu2012 import learned
from firstpage.papers.niu2012.learned import ALL_BETAS, WEAK, boosted, called, letor_parts
from firstpage.papers.niu2012.printed import TOP_K
from firstpage.papers.study.claims import greater
from firstpage.papers.study.letor_protocol import FOLDS, rows_of, seed_of
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Grid, Row, Work
from firstpage.rankers.boosted import FocusedBoost
from firstpage.solvers.boosting.boosting import (
    ROUNDING_EPS,
    BoostingState,
    InMemoryBoostingState,
    boosting_step,
)
from firstpage.types import Floats

PRINTED, SEARCHED, ADJUSTED = RULES = ("printed", "line search", "adjusted")
BETAS = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
CHOSEN = "chosen"
MEAN = "mean of 11 measures"
TRIED, KEPT = "weak rankers tried per round", "rounds kept"
TRAINED = ("list loss", "pair loss", TRIED, KEPT)
FLOOR = "list edge of equal scores"
SIZES = (2.0, 1.0, 0.5, 0.25, 0.0625)  # of a line search, as multiples of the printed step


class Counted(InMemoryBoostingState):
    """Boosting that records the losses of both parts at the start, and what was tried."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.start = [part.loss for _, part in self.terms]
        self.tried = 0

    def try_step(self, number: int, edge: float, halvings: int | None) -> float:
        self.tried += 1
        return super().try_step(number, edge, halvings)


class Searched(Counted):
    """Of five step sizes the one with the least loss of the mixture."""

    def try_step(self, number: int, edge: float, halvings: int | None) -> float:
        self.tried += 1
        before, steps = self.scores.copy(), [size * boosting_step(edge) for size in SIZES]
        losses = []
        for step in steps:
            self.pool.add(number, step, self.scores)
            losses.append(self._evaluate())
            self.scores[:] = before
        best = int(np.argmin(losses))
        if losses[best] >= self.loss - ROUNDING_EPS:
            return 0.0
        self.pool.add(number, steps[best], self.scores)
        self.loss, self._edges = self._evaluate(), None
        return steps[best]


@dataclass(eq=False, repr=False)
class Recorded(FocusedBoost):
    """FocusedBoost whose state can be looked at after a fit."""

    _: KW_ONLY
    search: bool = False

    def _begin(self, *given: Any) -> BoostingState:
        self.state_ = (Searched if self.search else Counted)(*given)
        return self.state_


def on_letor(
    rng: np.random.Generator, weak: str, rule: str, fold: int, betas: list[float], folder: str,
    beside: str | None = None,
) -> list[Row]:  # fmt: skip
    """One rule on one fold, top-k labels: test values, and what training did."""
    seed = seed_of(rng)
    parts = letor_parts(folder, beside, fold, seed)
    labels = {"data": called(folder, beside), "weak": weak, "rule": rule}
    rows, best = list[Row](), (-np.inf, dict[str, Floats]())
    for beta in betas:
        ranker = Recorded(
            10, beta, weak=weak, edge="adjusted" if rule == ADJUSTED else "printed",
            search=rule == SEARCHED, measure="kNDCG@10", ties="random", seed=seed, threads=1,
        )  # fmt: skip
        ranker.fit(parts.train.top_k, valid=parts.valid.top_k)
        values = _tested(ranker, parts.test.top_k)
        own = {**labels, "beta": beta}
        rows += rows_of(values, own)
        rows += [{**own, "measure": m, "value": value} for m, value in _of(ranker).items()]
        best = max(best, (ranker.training_["score"], values), key=lambda one: one[0])
    rows += rows_of(best[1], {**labels, "beta": CHOSEN})
    return [{**row, "panel": _panel(row["measure"], weak)} for row in rows]


def _panel(measure: str, weak: str) -> str:
    return f"{measure}, {weak}"


def _tested(ranker: FocusedBoost, test: Any) -> dict[str, Floats]:
    per_query = evaluate(ranker.predict(test), test, measures=list(TOP_K)).per_query
    values = {m: per_query(m) for m in TOP_K}
    return {"kNDCG@10": values["kNDCG@10"], "kERR": values["kERR"],
            MEAN: np.mean(list(values.values()), axis=0)}  # fmt: skip


def _of(ranker: Recorded) -> dict[str, float]:
    """What training did: losses of the last round as fractions of those at the start."""
    state, losses = ranker.state_, dict[str, float]()
    for (_, part), start in zip(state.terms, state.start, strict=True):
        losses[f"{part.name} loss"] = part.loss / start
    tried = state.tried / max(ranker.n_iter_, 1)
    return {**losses, TRIED: tried, KEPT: float(ranker.best_iteration_ or 0)}


def equal_scores(
    rng: np.random.Generator, fold: int, folder: str, beside: str | None = None
) -> list[Row]:
    """NDCG of the top's documents in a random order: the printed list edge of equal scores."""
    parts = letor_parts(folder, beside, fold, seed_of(rng))
    ranker = Recorded(10, 1.0, weak="features", rounds=1, ties="random").fit(parts.train.top_k)
    (start,) = ranker.state_.start
    return [{"data": called(folder, beside), "measure": FLOOR,
             "value": 1.0 - start}]  # fmt: skip


def edges() -> Entry:
    """Truths are those of Table 4: the same stream and runs."""
    folds = [
        Work(on_letor, {"weak": weak, "rule": rule, "fold": fold, "betas": BETAS},
             "truth", 2, 1, "mq2007", True, "mq2007-list")
        for fold in FOLDS for weak in WEAK for rule in RULES
    ]  # fmt: skip
    floors = [
        Work(equal_scores, {"fold": fold}, "truth", 2, 1, "mq2007", True, "mq2007-list")
        for fold in FOLDS
    ]
    parents = [
        Work(learned.on_letor, {"model": boosted(name, weak), "truth": "top-k", "fold": fold,
                                "betas": ALL_BETAS}, "truth", 2, 1, "mq2007", True, "mq2007-list")
        for fold in FOLDS for weak in WEAK for name in ("RankBoost", "AdaRank")
    ]  # fmt: skip
    return Entry(
        "edges",
        "FocusedBoost by its rule for edges and steps, MQ2007 (or MQ2008)",
        "The step of the mixture, 1/2 log((1 + r) / (1 - r)), minimizes the mixed bound.",
        [*folds, *floors, *parents],
        _claims,
        [(_panel(MEAN, weak), Drawing("rule", "beta", _panel(MEAN, weak))) for weak in WEAK],
        note="Top-k labels.  printed: as the paper has it.  line search: the best of five step "
        "sizes, from twice to 1/16 of the printed one.  adjusted: list edge and list loss "
        "adjusted for chance, FocusedBoost(edge=adjusted).  Losses are fractions of those at the "
        "start of training.",
        grids=[
            *((_panel(m, weak), Grid("rule", "beta", _panel(m, weak)))
              for weak in WEAK for m in (MEAN, "kNDCG@10", "kERR", *TRAINED)),
            (FLOOR, Grid("data", "measure", "first round")),
        ],
        held_equal="queries, folds, truths, weak rankers, rounds (300), stopping rules and "
        "validation data, for all rules; between rules also beta, or the seven values of it that "
        "validation data choose from.  RankBoost and AdaRank have no beta to choose.",
    )  # fmt: skip


def _claims(cells: Cells) -> list[Claim]:
    return [claim for weak in WEAK for claim in _of_kind(cells, weak)]


def _of_kind(cells: Cells, weak: str) -> list[Claim]:
    def at(rule: str, beta: float | str) -> Floats:
        return cells.at(weak=weak, rule=rule, beta=beta, measure=MEAN)

    def inside(rule: str) -> Floats:
        values: Floats = np.mean([at(rule, beta) for beta in BETAS[1:-1]], axis=0)
        return values

    def parent(name: str) -> Floats:
        own = [cells.at(model=boosted(name, weak), measure=m) for m in TOP_K]
        values: Floats = np.mean(own, axis=0)
        return values

    ends = (BETAS[0], BETAS[-1])
    return [
        *(greater(f"{rule}: beta from .1 to .9 is on average better than beta = {end:g} ({weak})",
                  inside(rule), at(rule, end), whose="ours")
          for rule in RULES for end in ends),
        *(greater(f"{rule} is better than printed, on average of beta from .1 to .9 ({weak})",
                  inside(rule), inside(PRINTED), whose="ours") for rule in RULES[1:]),
        *(greater(f"{rule}, beta chosen, is better than {name} ({weak})", at(rule, CHOSEN),
                  parent(name), whose="ours")
          for rule in RULES for name in ("RankBoost", "AdaRank")),
    ]  # fmt: skip
