"""Ten rankers under both truths: fitted on a fold, chosen on validation data, tested by query.

What a family compares has the same settings to choose from: one grid of C for the three SVMs, one
grid of penalties for the nets and ListMLE, and the same weak rankers, rounds and stopping rules for
the boosted rankers, which are run with either kind of weak rankers.  Focused rankers choose beta as
well; they are also tested at beta = .5, where they choose from no more settings than the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstpage.measures.evaluate import evaluate
from firstpage.papers.niu2012.printed import CUTS, GRADED, TOP_K
from firstpage.papers.niu2012.truths import STUDY, Both, Parts, called, letor_parts, study_folds
from firstpage.papers.study.letor_protocol import rows_of, seed_of
from firstpage.papers.study.study import Row
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.registry import ranker
from firstpage.rankers.selection.tuning import tune
from firstpage.types import Floats

LETOR = "graded, LETOR's tool"
SHOWN = {"graded": ("NDCG@5", "NDCG@10", "ERR"), "top-k": ("kNDCG@5", "kNDCG@10", "kERR")}
COSTS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
WEAK = ("features", "stumps")
ALL_BETAS = [round(0.05 * i, 2) for i in range(21)]  # as in the paper
HALF = 0.5  # the beta of focused rankers that do not choose one
Values = dict[tuple[str, str], Floats]  # by kind of truth and measure


@dataclass(frozen=True)
class Method:
    """A ranker, and what is chosen on validation data.

    printed  its name in the paper's tables
    top_k    it reads a top-k truth, so that equal grades are put into a random order for it
    focused  it has a beta, and all are tried
    """

    text: str
    printed: str
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    top_k: bool = False
    focused: bool = False

    def made(self, truth: str, seed: int, **more: Any) -> Ranker:
        measure = "NDCG@10" if truth == "graded" else "kNDCG@10"
        ties = {"ties": "random"} if self.top_k else {}
        return ranker(self.text, measure=measure, seed=seed, threads=1, **ties, **more)


def boosted(name: str, weak: str) -> str:
    """Return the name of a boosted ranker's row: the same ranker with either weak rankers."""
    return f"{name}, {weak}"


def at_half(model: str) -> str:
    """Return the name of a focused ranker's row without a choice of beta."""
    return f"{model}, beta = {HALF:g}"


def _boosting(name: str, focused: bool = False) -> dict[str, Method]:
    return {
        boosted(name, weak): Method(f"{name}(weak={weak})", name, {}, focused, focused)
        for weak in WEAK
    }


METHODS: Mapping[str, Method] = {
    "SVM-MAP": Method("SVMMAP", "SVM-MAP", {"C": COSTS}),
    "RankSVM": Method("RankSVM", "RankSVM", {"C": COSTS}),
    "FocusedSVM": Method("FocusedSVM", "FocusedSVM", {"C": COSTS}, True, True),
    **_boosting("AdaRank"),
    **_boosting("RankBoost"),
    **_boosting("FocusedBoost", focused=True),
    "ListNet": Method("ListNet", "ListNet", {"l2": PENALTIES}),
    "RankNet": Method("RankNet", "RankNet", {"l2": PENALTIES}),
    "FocusedNet": Method("FocusedNet", "FocusedNet", {"l2": PENALTIES}, True, True),
    "Top-k ListMLE": Method("ListMLE(k=10)", "Top-k ListMLE", {"l2": PENALTIES}, True),
}


def ten(weak: str) -> list[str]:
    """Return the rows of the paper's ten rankers, the boosted ones with these weak rankers."""
    other = [boosted("", one) for one in WEAK if one != weak]
    return [model for model in METHODS if not any(model.endswith(end) for end in other)]


def on_letor(
    rng: np.random.Generator, model: str, truth: str, fold: int, betas: list[float], folder: str,
    beside: str | None = None, normalize: str | None = None,
) -> list[Row]:  # fmt: skip
    """One ranker on one fold."""
    seed = seed_of(rng)
    parts = letor_parts(folder, beside, fold, seed)
    return _rows([parts], model, truth, betas, seed, called(folder, beside), normalize)


def on_study(rng: np.random.Generator, model: str, truth: str, betas: list[float]) -> list[Row]:
    """One ranker on all folds of a simulated user study; a run is a study of its own."""
    folds = study_folds(rng)
    return _rows(folds, model, truth, betas, seed_of(rng), STUDY)


def _rows(
    folds: Sequence[Parts], model: str, truth: str, betas: list[float], seed: int, data: str,
    normalize: str | None = None,
) -> list[Row]:  # fmt: skip
    """Rows of what validation chose, and for focused rankers of every beta."""
    method = METHODS[model]
    chosen: list[Values] = []
    swept: dict[float, list[Values]] = {}
    for parts in folds:
        train, vali = parts.train.under(truth), parts.vali.under(truth)
        best = -np.inf
        for beta in betas if method.focused else [None]:
            more = {} if beta is None else {"beta": beta}
            candidate = method.made(truth, seed, normalize=normalize, **more)
            tuned = tune(candidate, train, vali, grid=method.grid or {"seed": [seed]})
            values = tested(tuned.best, parts.test, truth)
            if beta is not None:
                swept.setdefault(beta, []).append(values)
            if tuned.score > best:
                best, kept = tuned.score, values
        chosen.append(kept)
    labels = {"data": data, "model": model}
    rows = _told(_joined(chosen), labels)
    if HALF in swept:
        rows += _told(_joined(swept[HALF]), {**labels, "model": at_half(model)})
    for beta, each in swept.items():
        shown = {key: v for key, v in _joined(each).items() if key in _keys(truth)}
        rows += _told(shown, {**labels, "beta": beta})
    return rows


def tested(model: Ranker, test: Both, truth: str) -> Values:
    """Values by query: grades by the paper's formula and by LETOR's tool, or those of the top."""
    data = test.under(truth)
    scores = model.predict(data)
    if truth == "top-k":
        found = evaluate(scores, data, measures=list(TOP_K))
        return {("top-k", m): found.per_query(m) for m in TOP_K}
    # 3.3.2 takes the greatest label of the query, the usual definition that of the scale
    scale = f"ERR(max={int(max(test.graded.y.max(), 1))})"
    names = {**{m: m for m in GRADED}, "ERR": scale, "ERR(max=query)": "ERR(max=query)"}
    usual = evaluate(scores, data, measures=list(names.values()))
    cuts = [f"NDCG@{n}" for n in CUTS]
    tool = evaluate(scores, data, measures=cuts, convention="letor")
    return {
        **{("graded", m): usual.per_query(given) for m, given in names.items()},
        **{(LETOR, m): tool.per_query(m) for m in cuts},
    }


def _joined(folds: Sequence[Values]) -> Values:
    return {key: np.concatenate([each[key] for each in folds]) for key in folds[0]}


def _keys(truth: str) -> list[tuple[str, str]]:
    return [(truth, m) for m in SHOWN[truth]]


def _told(values: Values, labels: Mapping[str, Any]) -> list[Row]:
    found: list[Row] = []
    for truth in dict.fromkeys(truth for truth, _ in values):
        own = {m: v for (t, m), v in values.items() if t == truth}
        found += rows_of(own, {**labels, "truth": truth})
    return found
