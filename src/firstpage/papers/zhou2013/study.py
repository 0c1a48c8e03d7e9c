"""The study of Zhou et al. (2013); here Table 1 and Figures 16 to 23.

Side-by-side judgments are of simulated editors; pairs are chosen to be asked.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from firstpage.papers.study.claims import every, greater, no_greater, within
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Study, Work
from firstpage.papers.zhou2013 import known_measure, news
from firstpage.papers.zhou2013.known_measure import SAMPLE, SETS
from firstpage.papers.zhou2013.news import COUNTS
from firstpage.types import Floats

TESTS = ("all", "Set1", "Set2")
SIZES = [20, 50, 100, 150, 230]
TIE_COSTS = [0.0, 0.001, 0.01, 0.1, 0.3, 1.0]
FOLDED = (
    "the judged pairs and their five folds, run by run, and the values of C, which "
    "cross-validation on the training pairs chooses from"
)
AS_MANY_HELD = FOLDED + ", and the number of training pairs."
MADE_UP = (
    "SIMULATED: the judgments of the news search engine are not public.  Editors, lists and "
    "rankers are made up so that the counts of Table 1 come out about right; what holds here holds "
    "for such editors."
)


def table1() -> Entry:
    return Entry(
        "table1", "Labels of side-by-side judgments (simulated editors)",
        "13, 108, 473, 148 and 24 of 766 pairs have the labels 1 to 5.",
        [Work(news.counts)], _counts,
        paper=[({"label": label}, float(n)) for label, n in COUNTS.items()],
        note=MADE_UP,
        held_equal="the number of queries, 766; the thresholds are set to the counts.",
    )  # fmt: skip


def _counts(cells: Cells) -> list[Claim]:
    parts = [
        within(f"label {label}", cells.at(label=label), n - n**0.5, n + n**0.5)
        for label, n in COUNTS.items()
    ]
    return [
        every("the counts come out as in the table, give or take their root", parts, whose="ours")
    ]


def figure16() -> Entry:
    return Entry(
        "figure16", "Accuracy of Random, two usual measures and DCGLearn (simulated editors)",
        "All are better than Random; DCGLearn is better than both usual measures on all pairs, "
        "Set1 and Set2; Set1 is easier than Set2.",
        [Work(news.methods, runs=100)], _methods,
        [("", Drawing("method", None, "accuracy"))],
        keep=lambda row: "method" in row, note=MADE_UP,
        held_equal=FOLDED + ".  The usual measures are fixed, and learn from none.",
    )  # fmt: skip


def _methods(cells: Cells) -> list[Claim]:
    def at(method: str, test: str) -> Floats:
        return cells.at(method=method, test=test)

    usual = ("Baseline1", "Baseline2")
    found = [
        every("all are better than Random", [
            greater(f"{m}, {s}", at(m, s), at("Random", s))
            for m in (*usual, "DCGLearn") for s in TESTS
        ]),
    ]  # fmt: skip
    for s in TESTS:
        parts = [greater(m, at("DCGLearn", s), at(m, s)) for m in usual]
        found.append(every(f"DCGLearn is better than both usual measures ({s})", parts))
    parts = [greater(m, at(m, "Set1"), at(m, "Set2")) for m in (*usual, "DCGLearn")]
    return [*found, every("Set1 is easier than Set2", parts)]


def figure17() -> Entry:
    return Entry(
        "figure17", "Accuracy by the number of training pairs (simulated editors)",
        "Accuracy grows in general with the number of pairs.",
        [Work(news.amounts, {"sizes": SIZES}, runs=20, quick=3)], _amounts,
        [("", Drawing("test", "pairs", "accuracy"))], note=MADE_UP, held_equal=FOLDED + ".",
    )  # fmt: skip


def _amounts(cells: Cells) -> list[Claim]:
    return [
        greater(f"{SIZES[-1]} pairs are better than {SIZES[0]} ({s})",
                cells.at(test=s, pairs=SIZES[-1]), cells.at(test=s, pairs=SIZES[0])) for s in TESTS
    ]  # fmt: skip


def figure18() -> Entry:
    return Entry(
        "figure18", "Size of the learned difference by label (simulated editors)",
        "The difference is much larger for pairs with labels 1 or 5 than with 2 or 4.",
        [Work(news.methods, runs=100)], _sizes,
        [("", Drawing("label", None, "mean |w.d|"))],
        keep=lambda row: "label" in row,
        note=MADE_UP + "  Label 3: the ties, which are not learned from.",
        held_equal=FOLDED + ", the same weights for all labels of a fold.",
    )  # fmt: skip


def _sizes(cells: Cells) -> list[Claim]:
    pairs = [(1, 2), (1, 4), (5, 2), (5, 4)]
    return [
        every("larger for labels 1 and 5 than for 2 and 4", [
            greater(f"{a} and {b}", cells.at(label=a), cells.at(label=b)) for a, b in pairs
        ]),
        every("and larger for 2 and 4 than for ties", [
            greater(f"{a} and 3", cells.at(label=a), cells.at(label=3)) for a in (2, 4)
        ], whose="ours"),
    ]  # fmt: skip


def figure19() -> Entry:
    return Entry(
        "figure19", "Learned from one kind of pairs only (simulated editors)",
        "One kind only is worse over all pairs; labels 1 and 5 alone do comparatively well on "
        "Set1; and all pairs are best in all cases.",
        [Work(news.subsets, runs=40, quick=3)], _subsets,
        [("", Drawing("trained on", None, "accuracy"))],
        note=MADE_UP + "  The paper says both that labels 1 and 5 alone perform better on Set1 and "
        "that all pairs are best in all cases; both are tested.",
        held_equal=FOLDED + ".  Not equal, as in the paper: the number of training pairs (about "
        "300 of all kinds, 260 with labels 2 and 4, 30 with labels 1 and 5).",
    )  # fmt: skip


def _subsets(cells: Cells) -> list[Claim]:
    def at(train: str, test: str) -> Floats:
        return cells.at(**{"trained on": train, "test": test})

    parts = ("labels 1, 5", "labels 2, 4")
    return [
        every("one kind only is worse over all pairs", [
            greater(f"all against {p}", at("all", "all"), at(p, "all")) for p in parts
        ]),
        greater("on Set1, labels 1 and 5 alone are better than labels 2 and 4 alone",
                at(parts[0], "Set1"), at(parts[1], "Set1")),
        every("all pairs are best in all cases", [
            greater(f"{p}, {s}", at("all", s), at(p, s)) for p in parts for s in TESTS
        ]),
        *(greater(f"with as many pairs, labels 1 and 5 are better than labels 2 and 4 ({s})",
                  at(parts[0], s), at(news.AS_MANY, s), whose="ours",
                  held_equal=AS_MANY_HELD)
          for s in TESTS),
    ]  # fmt: skip


def figure20() -> Entry:
    return Entry(
        "figure20", "Ties in learning: accuracy and the difference of ties (simulated editors)",
        "As C_t grows from 0 to 1, the difference of tied pairs falls and accuracy rises a little.",
        [Work(news.tied, {"costs": TIE_COSTS}, runs=100)], _ties,
        [(m, Drawing("measure", "C_tie", m)) for m in ("accuracy", "diff", "diff / |w|")],
        note=MADE_UP + "  diff scales with the length of w, so diff / |w| is shown too.  Ties are "
        "held out as pairs are.",
        held_equal="the judged pairs, ties and their folds, run by run, and C, chosen once per "
        "fold without ties.",
    )  # fmt: skip


def _ties(cells: Cells) -> list[Claim]:
    def at(measure: str, cost: float) -> Floats:
        return cells.at(measure=measure, C_tie=cost)

    return [
        greater("the difference of ties falls as C_t grows", at("diff", 0.0), at("diff", 1.0)),
        greater("accuracy rises", at("accuracy", 1.0), at("accuracy", 0.0)),
        no_greater("accuracy does not suffer (by a point or more)",
                   at("accuracy", 0.0), at("accuracy", 1.0), 0.01, whose="ours"),
        greater("the difference falls against the length of w, too",
                at("diff / |w|", 0.0), at("diff / |w|", 1.0), whose="ours"),
    ]  # fmt: skip


EDITED = (table1(), figure16(), figure17(), figure18(), figure19(), figure20())


ASKED = [20, 50, 100, 150, 200, 250, 300]
CHANCE = [*ASKED, 400, 500, 600, 700, 800]
FEW = [20, 40, 80, 120, 160, 200]
GOAL = 0.97
RUNS = {"random": (20, 5), "simple-margin": (20, 5), "diverse": (20, 3), "committee": (6, 1)}
SAME_POOL = (
    "the first 20 pairs, the pool to choose from, the test pairs and C (100; for editors .1), run "
    "by run; strategies are compared on the runs that both have.  Not equal: a choice is made 5 "
    "pairs at a time, the committee's (and editors') 10."
)
BATCH = {"random": 1, "simple-margin": 5, "diverse": 5, "committee": 10}


def simulated_figure(number: int, data: int) -> Entry:
    works = [
        Work(news.simulated, {
            "data": data, "strategy": name, "sizes": CHANCE if name == "random" else ASKED,
            "batch": BATCH[name],
        }, f"asking {data}", *RUNS[name])
        for name in RUNS
    ]  # fmt: skip
    return Entry(
        f"figure{number}", f"SimpleMargin against pairs by chance, Data {data}",
        "Chosen pairs reach better accuracy with fewer labels.",
        works, _fewer, [("", Drawing("strategy", "pairs", "accuracy", ["random"]))],
        note="From the same 20 pairs on; 5 pairs are asked at a time (committee: 10).  diverse and "
        "committee are ours.",
        held_equal=SAME_POOL,
    )  # fmt: skip


def _fewer(cells: Cells) -> list[Claim]:
    def at(strategy: str, pairs: int) -> Floats:
        return cells.at(strategy=strategy, pairs=pairs)

    return [
        greater("SimpleMargin is better than chance at 100 labels",
                at("simple-margin", 100), at("random", 100)),
        greater("SimpleMargin is better than chance at 200 labels",
                at("simple-margin", 200), at("random", 200)),
        half("97 % with at most half the labels that chance needs", cells, "simple-margin"),
        half("so does diverse", cells, "diverse", whose="ours"),
        half("so does committee", cells, "committee", whose="ours"),
    ]  # fmt: skip


def half(text: str, cells: Cells, strategy: str, **whose: str) -> Claim:
    """By the mean curves of the runs that both have, linear between the points."""
    runs = min(len(c.values) for c in cells if c.where["strategy"] in (strategy, "random"))
    ours, chance = (reached(cells, name, runs) for name in (strategy, "random"))
    if ours is None:
        return Claim(text, "does not hold", f"{strategy} does not reach {GOAL:.0%}", **whose)  # type: ignore[arg-type]
    shown = "never" if chance is None else f"at {chance:.0f}"
    fine = chance is None or ours <= chance / 2
    why = f"{strategy} is there at {ours:.0f} labels, chance {shown} ({runs} runs)"
    return Claim(text, "holds" if fine else "does not hold", why, **whose)  # type: ignore[arg-type]


def reached(cells: Cells, strategy: str, runs: int | None = None) -> float | None:
    """The number of labels at which the mean accuracy of the first runs is there."""
    points = [
        (c.where["pairs"], float(c.values[:runs].mean()))
        for c in cells
        if c.where["strategy"] == strategy
    ]
    for (m, low), (n, high) in pairwise(points):
        if high >= GOAL:
            return float(np.interp(GOAL, [low, high], [m, n])) if low < GOAL else float(m)
    return None


def figure23() -> Entry:
    names = ("random", "simple-margin")
    works = [
        Work(news.real_lists, {"name": s, "strategy": n, "sizes": ASKED, "batch": BATCH[n]},
             f"asking {s}", 10, 2, s)
        for s in SETS for n in names
    ]  # fmt: skip
    works += [
        Work(news.editors, {"strategy": n, "sizes": FEW, "batch": 10}, "asking editors", 60, 3)
        for n in names
    ]
    return Entry(
        "figure23", "SimpleMargin against pairs by chance: Web10K, Web30K, news (simulated)",
        "Chosen pairs are better in most cases; on Web10K they are worse at very few labels; on "
        "news they need far fewer.",
        works, _elsewhere,
        [(s, Drawing("strategy", "pairs", f"accuracy, {s}", ["random"])) for s in
         (*SETS, "simulated news")],
        note=SAMPLE + "  News: " + MADE_UP,
        held_equal=SAME_POOL,
    )  # fmt: skip


def _elsewhere(cells: Cells) -> list[Claim]:
    def apart(data: str) -> Callable[[int], tuple[Floats, Floats]]:
        return lambda m: (
            cells.at(data=data, strategy="simple-margin", pairs=m),
            cells.at(data=data, strategy="random", pairs=m),
        )

    found = [
        greater(f"better than chance at {m} labels ({s})", *apart(s)(m))
        for s in SETS for m in (100, 200)
    ]  # fmt: skip
    few = apart(SETS[0])(50)
    return [
        *found,
        greater("worse than chance at very few labels (50, web10k)", few[1], few[0]),
        *(greater(f"better than chance at {m} labels (simulated news)", *apart("simulated news")(m))
          for m in (80, 120)),
    ]  # fmt: skip


ASKING = (simulated_figure(21, 1), simulated_figure(22, 2), figure23())


_ALL = (*known_measure.SIMULATED, *known_measure.WEB, *EDITED, *ASKING)
ZHOU2013 = Study(
    "zhou2013",
    "Zhou, Zha, Chang, Xue: Learning the Gain Values and Discount Factors of Discounted "
    "Cumulative Gains (2013)",
    {entry.name: entry for entry in _ALL},
    (  # what computes; claims may be worded anew without computing anew
        "firstpage.papers.zhou2013.worlds", "firstpage.papers.zhou2013.news", "firstpage.dcglearn",
        "firstpage.kernels.losses.preferences", "firstpage.data.preferences",
    ),
)  # fmt: skip
