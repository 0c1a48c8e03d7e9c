"""Tables 4 and 5: ten rankers under grades and under top-k labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from firstpage.studies.base import Cells, Claim, Entry, Grid, Row, Verdict, Work
from firstpage.studies.claims import RARE, alike, every, greater, reaches
from firstpage.studies.learning import FOLDS
from firstpage.studies.niu2012 import learned, printed
from firstpage.studies.niu2012.learned import LETOR, METHODS
from firstpage.studies.niu2012.printed import GAINS, LETOR_MQ2008, TOP_K
from firstpage.studies.niu2012.truths import STUDY
from firstpage.types import Floats

BETAS = [round(0.05 * i, 2) for i in range(21)]
FAMILIES = {
    "FocusedSVM": ("RankSVM", "SVM-MAP"), "FocusedBoost": ("RankBoost", "AdaRank"),
    "FocusedNet": ("RankNet", "ListNet"),
}  # fmt: skip
NEAR = 0.02  # what "comparable" is held to
SLACK = 0.01
ADARANK_MAP = ("AdaRank", "AdaRank-MAP", 0.2288)  # LETOR has two of it
CHOSEN = (
    "Chosen on validation data by (k)NDCG@10: C of the SVMs, the rounds of the boosted rankers, "
    "the penalty of the nets and of ListMLE (in place of the number of iterations), and beta of "
    "0, .05 .. 1.  Ordinary rankers read labels 10 .. 1, 0 of the top ten as grades; for top-k "
    "rankers equal grades are put into a random order."
)


def letor_works() -> list[Work]:
    """By fold, so that each is read once; a run has one truth for all folds and rankers."""
    return [
        Work(
            learned.on_letor, {"model": model, "truth": truth, "fold": fold, "betas": BETAS},
            "truth", 2, 1, "mq2007", truth == "top-k" or method.top_k, "mq2007-list",
        )
        for fold in FOLDS
        for model, method in METHODS.items()
        for truth in ("graded", "top-k")
    ]  # fmt: skip


def study_works() -> list[Work]:
    return [
        Work(learned.on_study, {"model": model, "truth": truth, "betas": BETAS}, "study", 4, 1)
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
        grids=_grids(),
    )  # fmt: skip


def table5() -> Entry:
    return Entry(
        "table5", "Ten rankers on the user study's TD2003 (simulated)",
        "As on MQ2007: comparable on grades, better than both parents on top-k labels.",
        study_works(), _claims, keep=_of_tables,
        note="SIMULATED: the labels of the user study are not public.  A run is a study of its "
        "own: 50 queries of 50 documents with 44 features, labelled by five simulated people, the "
        "top ten by the heap and five grades by somebody else; the features tell so much that "
        "rankers measure about as in the paper.  " + CHOSEN,
        grids=_grids()[:1] + _grids()[2:],
    )  # fmt: skip


def _said(data: str) -> list[tuple[dict[str, str], float]]:
    found = list(printed.cells(data))
    tool = [({**where, "truth": LETOR}, v) for where, v in found if where["truth"] == "graded"]
    return [*found, *tool]


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

    def best(self, measure: str) -> str:
        return max(METHODS, key=lambda model: self.mean(model, measure))


def _claims(cells: Cells) -> list[Claim]:
    at = At(cells)
    found = [_comparable(at, focused) for focused in FAMILIES]
    for focused, parents in FAMILIES.items():
        for parent in parents:
            text = f"on top-k labels {focused} is better than {parent}"
            found += [_on_average(text, at, focused, parent),
                      _ahead(f"{text} at every cut-off", at, focused, parent)]  # fmt: skip
    found += [_gain(at, parent, measure) for parent, measure in GAINS]
    found += [
        _bests("the best of a column of top-k labels is nearly always a focused ranker",
               at, list(FAMILIES)),
        _bests("FocusedNet is the best in most columns of top-k labels", at, ["FocusedNet"]),
        _ahead("on top-k labels FocusedNet is better than top-k ListMLE at every cut-off",
               at, "FocusedNet", "Top-k ListMLE"),
        every("focused rankers are comparable with top-k ListMLE on top-k labels", [
            alike(f, at(f, "kNDCG@10"), at("Top-k ListMLE", "kNDCG@10"), NEAR) for f in FAMILIES
        ]),
        _rising(at),
        *(_order(at, measure) for measure in ("NDCG@10", "kNDCG@10")),
    ]  # fmt: skip
    return [*found, *_published(at)]


def _comparable(at: At, focused: str) -> Claim:
    return every(f"on grades {focused} is comparable with its parents (less than {NEAR:g} apart)", [
        alike(f"{parent}, {measure}", at(focused, measure), at(parent, measure), NEAR)
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


def _gain(at: At, parent: str, measure: str) -> Claim:
    said = GAINS[parent, measure]
    gain = at.mean("FocusedBoost", measure) / at.mean(parent, measure) - 1
    return greater(
        f"FocusedBoost gains on {parent} in {measure} (MQ2007: {said:.2f} %)",
        at("FocusedBoost", measure), at(parent, measure), what=f" ({100 * gain:+.2f} %)",
    )  # fmt: skip


def _bests(text: str, at: At, names: list[str]) -> Claim:
    """Counted by means; differences in a column may be by chance."""
    won = {m: at.best(m) for m in TOP_K}
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


def _order(at: At, measure: str) -> Claim:
    """Kendall's tau with the order of Table 4 or 5; ten rankers are few."""
    from scipy.stats import kendalltau

    data = "MQ2007" if at.data != STUDY else "TD2003"
    paper = printed.table(data, "top-k" if measure in TOP_K else "graded")
    ours = [at.mean(m, measure) for m in METHODS]
    found = kendalltau(ours, [paper[m, measure] for m in METHODS])
    verdict: Verdict = "cannot be tested"
    if found.pvalue <= RARE:
        verdict = "holds" if found.statistic > 0 else "does not hold"
    shown = " > ".join(
        f"{m} {at.mean(m, measure):.4f}"
        for m in sorted(METHODS, key=lambda m: -at.mean(m, measure))
    )
    why = f"tau {found.statistic:.2f}, p = {found.pvalue:.2f}: {shown}"
    return Claim(f"rankers stand in about the order printed for {data} ({measure})", verdict, why)


def _published(at: At) -> list[Claim]:
    """LETOR's baselines, which there are for MQ2008."""
    if at.data != "MQ2008":
        return []
    bars = [(model, *said) for model, said in LETOR_MQ2008.items()]
    return [
        reaches(f"{model} is no worse than LETOR's {name}, NDCG@10 by LETOR's tool",
                at.mean(model, "NDCG@10", LETOR), bar, SLACK, whose="ours")
        for model, name, bar in [*bars, ADARANK_MAP]
    ]  # fmt: skip
