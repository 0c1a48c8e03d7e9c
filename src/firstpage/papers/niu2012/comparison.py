"""Tables 4 and 5: ten rankers under grades and under top-k labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from firstpage.papers.niu2012 import learned, printed
from firstpage.papers.niu2012.learned import (
    ALL_BETAS,
    COSTS,
    HALF,
    LETOR,
    METHODS,
    PENALTIES,
    STUDY,
    WEAK,
    at_half,
    boosted,
    ten,
)
from firstpage.papers.niu2012.printed import GAINS, LETOR_MQ2008, TOP_K
from firstpage.papers.study.claims import RARE, alike, every, greater, reaches
from firstpage.papers.study.letor_protocol import FOLDS
from firstpage.papers.study.study import Cells, Claim, Entry, Grid, Row, Verdict, Work
from firstpage.types import Floats

FAMILIES: dict[str, tuple[str, str]] = {
    "FocusedSVM": ("RankSVM", "SVM-MAP"),
    **{boosted("FocusedBoost", weak): (boosted("RankBoost", weak), boosted("AdaRank", weak))
       for weak in WEAK},
    "FocusedNet": ("RankNet", "ListNet"),
}  # fmt: skip
COMPARABLE = 0.02  # what "comparable" is held to
SLACK = 0.01
ORDERS = {"features": 6, "stumps": 4}  # random orders of equal grades; stumps take longer
ADARANK_MAP = ("AdaRank", "AdaRank-MAP", 0.2288)  # LETOR has two of it
PUBLISHED = {
    "RankSVM": "RankSVM",
    "RankBoost": boosted("RankBoost", "stumps"),
    "AdaRank": boosted("AdaRank", "features"),
}  # with the weak rankers of LETOR's
CHOSEN = (
    "Chosen on validation data by (k)NDCG@10: C of the SVMs, the rounds of the boosted rankers, "
    "the penalty of the nets and of ListMLE (in place of the number of iterations), and beta of "
    "0, .05 .. 1.  Ordinary rankers read labels 10 .. 1, 0 of the top ten as grades; for top-k "
    "rankers equal grades are put into a random order.  The paper does not say what its weak "
    "rankers are; all three boosted rankers are run with features and with stumps."
)
PROTOCOL = (
    "queries, features, folds, truths (one random order of equal grades per run for all rankers), "
    "the measure and the validation queries that settings are chosen on; the settings of a family: "
    f"for the three SVMs {len(COSTS)} values of C, {COSTS[0]:g} to {COSTS[-1]:g}; for the nets and "
    f"ListMLE {len(PENALTIES)} penalties, {PENALTIES[0]:g} to {PENALTIES[-1]:g}, and the optimum "
    "of a convex loss; for the three boosted rankers one kind of weak rankers, at most 300 rounds, "
    "and the same rules for stopping."
)
HELD = (
    f"{PROTOCOL}  Not equal: focused rankers also choose among 21 values of beta, as in the "
    f"paper; the rows with beta = {HALF:g} do not."
)
LETOR_HELD = (
    "queries, folds, features, weak rankers and the measuring tool; LETOR chose its own parameters."
)
NO_BETA = f"{PROTOCOL}  beta is {HALF:g} without a choice: as many settings as the other has."


def letor_works() -> list[Work]:
    """By fold, so that each is read once; a run has one truth for all folds and rankers.

    On grades nothing is random but the order of equals that top-k rankers learn from: one run.
    """
    return [
        Work(
            learned.on_letor, {"model": model, "truth": truth, "fold": fold, "betas": ALL_BETAS},
            "truth", runs, 1, "mq2007", truth == "top-k" or method.top_k, "mq2007-list",
        )
        for truth, runs in (("top-k", 2), ("graded", 1))
        for fold in FOLDS
        for model, method in METHODS.items()
    ]  # fmt: skip


def orders_works() -> list[Work]:
    """Boosted rankers on top-k labels; the first runs are those of Table 4."""
    return [
        Work(
            learned.on_letor, {"model": model, "truth": "top-k", "fold": fold, "betas": ALL_BETAS},
            "truth", ORDERS[weak], 1, "mq2007", True, "mq2007-list",
        )
        for weak in WEAK
        for fold in FOLDS
        for model in (boosted(name, weak) for name in ("AdaRank", "RankBoost", "FocusedBoost"))
    ]  # fmt: skip


def ohsumed_works() -> list[Work]:
    """Top-k labels alone; the features of OHSUMED are raw."""
    return [
        Work(
            learned.on_letor,
            {"model": model, "truth": "top-k", "fold": fold, "betas": ALL_BETAS,
             "normalize": "minmax"},
            "truth", 2, 1, "ohsumed",
        )
        for fold in FOLDS
        for model in METHODS
    ]  # fmt: skip


def study_works() -> list[Work]:
    return [
        Work(learned.on_study, {"model": model, "truth": truth, "betas": ALL_BETAS}, "study", 4, 1)
        for model in METHODS
        for truth in ("graded", "top-k")
    ]


def table4() -> Entry:
    return Entry(
        "table4", "Ten rankers on MQ2007 (or MQ2008), graded and top-k",
        "Focused rankers are comparable with ordinary ones on grades, and better than both of "
        "their parents on top-k labels; FocusedNet is better than top-k ListMLE.",
        letor_works(), _claims, keep=_of_tables, paper=list(_said("MQ2007")),
        note="With MQ2007 and MQ2007-list in the folder of data these are joined, as in the paper. "
        "Without them MQ2008 stands in: the top ten are those of the grades, equals in a random "
        "order, so that much of that order is chance.  " + CHOSEN + "  Measures are those of "
        "the paper's formulas; by LETOR's tool, which has NDCG@n = 0 for lists shorter than n, "
        "grades alone.  ERR goes by the greatest grade of the data, and of the query.",
        grids=_grids(), held_equal=HELD,
    )  # fmt: skip


def orders() -> Entry:
    return Entry(
        "table4-orders", "Boosted rankers of Table 4 over more random orders of equal grades",
        "FocusedBoost is better than both of its parents on top-k labels.",
        orders_works(), _over_orders, keep=_of_tables,
        note="As Table 4, with more runs: each draws another order of equal grades, which is most "
        "of the order of MQ2008's top ten.  Tests over queries take the orders for given; how much "
        "they differ is said with each claim.  " + CHOSEN,
        grids=_grids()[2:], held_equal=HELD,
    )  # fmt: skip


def ohsumed() -> Entry:
    return Entry(
        "table4-ohsumed", "The same rankers on OHSUMED, top-k labels",
        "Nothing: the paper did not look at OHSUMED.",
        ohsumed_works(), _on_ohsumed, keep=_of_tables,
        note="The top ten are those of the grades, equals in a random order; features are scaled "
        "within queries.  " + CHOSEN,
        grids=_grids()[2:], held_equal=HELD,
    )  # fmt: skip


def table5() -> Entry:
    return Entry(
        "table5", "Ten rankers on the user study's TD2003 (simulated)",
        "As on MQ2007: comparable on grades, better than both parents on top-k labels.",
        study_works(), _claims, keep=_of_tables,
        note="SIMULATED: the labels of the user study are not public.  A run is a study of its "
        "own: 50 queries of 50 documents with 44 features, labeled by five simulated people, the "
        "top ten by the heap and five grades by somebody else; the features tell so much that "
        "rankers measure about as in the paper.  " + CHOSEN,
        grids=_grids()[:1] + _grids()[2:], held_equal=HELD,
    )  # fmt: skip


def _said(data: str) -> list[tuple[dict[str, str], float]]:
    """What is printed, beside every row of the ranker; by LETOR's tool the grades once more."""
    rows = [
        ({**where, "model": model}, value)
        for where, value in printed.cells(data)
        for model, method in METHODS.items()
        if method.printed == where["model"]
    ]
    tool = [({**where, "truth": LETOR}, v) for where, v in rows if where["truth"] == "graded"]
    return [*rows, *tool]


def _grids() -> list[tuple[str, Grid]]:
    return [
        ("graded", Grid("model", "measure", "grades")),
        (LETOR, Grid("model", "measure", "grades, by LETOR's tool")),
        ("top-k", Grid("model", "measure", "top-k labels")),
    ]


def _of_tables(row: Row) -> bool:
    return "beta" not in row


class At:
    """Values by query of one data set."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.data = cells.names("data")[0]

    def __call__(self, model: str, measure: str, truth: str = "") -> Floats:
        truth = truth or ("top-k" if measure in TOP_K else "graded")
        return self.cells.at(model=model, measure=measure, truth=truth)

    def mean(self, model: str, measure: str, truth: str = "") -> float:
        """As the table has it: over folds."""
        truth = truth or ("top-k" if measure in TOP_K else "graded")
        return self.cells.one(model=model, measure=measure, truth=truth).ours

    def by_run(self, model: str) -> Floats:
        """The mean of all measures of top-k labels, one value per run: over folds."""
        cells = [self.cells.one(model=model, measure=m, truth="top-k") for m in TOP_K]
        means: Floats = np.mean([c.values.reshape(len(FOLDS), -1) for c in cells], axis=(0, 1))
        return means

    def best(self, measure: str, models: Sequence[str]) -> str:
        return max(models, key=lambda model: self.mean(model, measure))


def _claims(cells: Cells) -> list[Claim]:
    at = At(cells)
    return [
        *(_comparable(at, focused) for focused in FAMILIES),
        *_better(at),
        *(_gain(at, parent, measure, weak) for weak in WEAK for parent, measure in GAINS),
        *(claim for weak in WEAK for claim in _columns(at, weak)),
        _ahead("on top-k labels FocusedNet is better than top-k ListMLE at every cut-off",
               at, "FocusedNet", "Top-k ListMLE"),
        every("focused rankers are comparable with top-k ListMLE on top-k labels", [
            alike(f, at(f, "kNDCG@10"), at("Top-k ListMLE", "kNDCG@10"), COMPARABLE)
            for f in FAMILIES
        ]),
        _rising(at),
        *(_order(at, measure, weak) for weak in WEAK for measure in ("NDCG@10", "kNDCG@10")),
        *_published(at),
    ]  # fmt: skip


def _on_ohsumed(cells: Cells) -> list[Claim]:
    return [replace(claim, whose="ours") for claim in _better(At(cells))]


def _better(at: At) -> list[Claim]:
    """Each focused ranker against both parents; boosted ones with the same weak rankers."""
    claims = []
    for focused, parents in FAMILIES.items():
        for parent in parents:
            text = f"on top-k labels {focused} is better than {parent}"
            fixed = at_half(focused)
            claims += [
                _on_average(text, at, focused, parent),
                _ahead(f"{text} at every cut-off", at, focused, parent),
                replace(_on_average(f"on top-k labels {fixed} is better than {parent}",
                                    at, fixed, parent), whose="ours", held_equal=NO_BETA),
            ]  # fmt: skip
    return claims


def _over_orders(cells: Cells) -> list[Claim]:
    """Tested over queries; and the difference of every random order."""
    at, claims = At(cells), []
    for weak in WEAK:
        focused = boosted("FocusedBoost", weak)
        for parent in FAMILIES[focused]:
            for name, held in ((focused, ""), (at_half(focused), NO_BETA)):
                claim = _on_average(f"on top-k labels {name} is better than {parent}", at, name,
                                    parent)  # fmt: skip
                apart = at.by_run(name) - at.by_run(parent)
                each = " ".join(f"{value:+.4f}" for value in apart)
                why = f"{claim.why}; by random order {each}"
                claims.append(replace(claim, why=why, whose="ours", held_equal=held))
    return claims


def _columns(at: At, weak: str) -> list[Claim]:
    """Which ranker is the best, among ten with the same weak rankers."""
    focused = [name for name in FAMILIES if name in ten(weak)]
    return [
        _bests("the best of a column of top-k labels is nearly always a focused ranker "
               f"(boosted: {weak})", at, focused, weak),
        _bests(f"FocusedNet is the best in most columns of top-k labels (boosted: {weak})",
               at, ["FocusedNet"], weak),
    ]  # fmt: skip


def _comparable(at: At, focused: str) -> Claim:
    text = f"on grades {focused} is comparable with its parents (less than {COMPARABLE:g} apart)"
    return every(text, [
        alike(f"{parent}, {measure}", at(focused, measure), at(parent, measure), COMPARABLE)
        for parent in FAMILIES[focused] for measure in ("NDCG@10", "ERR")
    ])  # fmt: skip


def _on_average(text: str, at: At, one: str, other: str) -> Claim:
    """By the mean of all eleven measures of a query."""
    means = [np.mean([at(model, m) for m in TOP_K], axis=0) for model in (one, other)]
    return greater(f"{text} (mean of all measures)", means[0], means[1])


def _ahead(text: str, at: At, one: str, other: str) -> Claim:
    """At all of the eleven measures, each by a paired test over queries."""
    parts = [greater(m, at(one, m), at(other, m)) for m in TOP_K]
    apart = np.array([at.mean(one, m) - at.mean(other, m) for m in TOP_K])
    sure = {v: [p.text for p in parts if p.verdict == v] for v in ("holds", "does not hold")}
    verdict: Verdict = "cannot be tested"
    if sure["does not hold"]:
        verdict = "does not hold"
    elif len(sure["holds"]) == len(parts):
        verdict = "holds"
    why = (
        f"above at {int((apart > 0).sum())} of {len(parts)}, surely (p < {RARE:g}) at "
        f"{_listed(sure['holds'])}; surely below at {_listed(sure['does not hold'])}; "
        f"kNDCG@10 {at.mean(one, 'kNDCG@10'):.4f} against {at.mean(other, 'kNDCG@10'):.4f}, "
        f"kERR {at.mean(one, 'kERR'):.4f} against {at.mean(other, 'kERR'):.4f}"
    )
    return Claim(text, verdict, why)


def _listed(names: Sequence[str]) -> str:
    if len(names) == len(TOP_K):
        return "all"
    return ", ".join(names) or "none"


def _gain(at: At, parent: str, measure: str, weak: str) -> Claim:
    said = GAINS[parent, measure]
    one, other = boosted("FocusedBoost", weak), boosted(parent, weak)
    gain = at.mean(one, measure) / at.mean(other, measure) - 1
    return greater(
        f"FocusedBoost gains on {parent} in {measure}, {weak} (MQ2007: {said:.2f} %)",
        at(one, measure), at(other, measure), what=f" ({100 * gain:+.2f} %)",
    )  # fmt: skip


def _bests(text: str, at: At, names: list[str], weak: str) -> Claim:
    """Counted by means; differences in a column may be by chance."""
    won = {m: at.best(m, ten(weak)) for m in TOP_K}
    count = sum(best in names for best in won.values())
    most = len(TOP_K) / 2 if len(names) == 1 else 0.8 * len(TOP_K)
    told = "; ".join(
        f"{name} {_listed([m for m in TOP_K if won[m] == name])}"
        for name in dict.fromkeys(won.values())
    )
    why = f"{count} of {len(TOP_K)}: {told}"
    return Claim(text, "holds" if count > most else "does not hold", why)


def _rising(at: At) -> Claim:
    cuts = TOP_K[:-1]
    falls = [
        f"{model} from {a} to {b}"
        for model in METHODS
        for a, b in pairwise(cuts)
        if at.mean(model, b) < at.mean(model, a)
    ]
    why = "; ".join(falls) if falls else "at every step"
    verdict: Verdict = "does not hold" if falls else "holds"
    return Claim("kNDCG rises with the cut-off for all rankers", verdict, why, "ours")


def _order(at: At, measure: str, weak: str) -> Claim:
    """Kendall's tau with the order of Table 4 or 5; ten rankers are few."""
    from scipy.stats import kendalltau

    data = "MQ2007" if at.data != STUDY else "TD2003"
    paper = printed.table(data, "top-k" if measure in TOP_K else "graded")
    models = ten(weak)
    ours = [at.mean(m, measure) for m in models]
    tau = kendalltau(ours, [paper[METHODS[m].printed, measure] for m in models])
    verdict: Verdict = "cannot be tested"
    if tau.pvalue <= RARE:
        verdict = "holds" if tau.statistic > 0 else "does not hold"
    shown = " > ".join(
        f"{m} {at.mean(m, measure):.4f}" for m in sorted(models, key=lambda m: -at.mean(m, measure))
    )
    why = f"tau {tau.statistic:.2f}, p = {tau.pvalue:.2f}: {shown}"
    text = f"rankers stand in about the order printed for {data} ({measure}; boosted: {weak})"
    return Claim(text, verdict, why)


def _published(at: At) -> list[Claim]:
    """LETOR's baselines, which there are for MQ2008."""
    if at.data != "MQ2008":
        return []
    bars = [(model, *said) for model, said in LETOR_MQ2008.items()]
    return [
        reaches(f"{PUBLISHED[model]} is no worse than LETOR's {name}, NDCG@10 by LETOR's tool",
                at.mean(PUBLISHED[model], "NDCG@10", LETOR), bar, SLACK, whose="ours",
                held_equal=LETOR_HELD)
        for model, name, bar in [*bars, ADARANK_MAP]
    ]  # fmt: skip
