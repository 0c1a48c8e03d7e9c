"""Figures 21 to 23: pairs chosen to be asked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from firstpage.papers.study.claims import greater
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Work
from firstpage.papers.zhou2013 import active
from firstpage.papers.zhou2013.lists import SAMPLE, SETS
from firstpage.papers.zhou2013.side_by_side import MADE_UP
from firstpage.types import Floats

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
        Work(active.simulated, {
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
        Work(active.real_lists, {"name": s, "strategy": n, "sizes": ASKED, "batch": BATCH[n]},
             f"asking {s}", 10, 2, s)
        for s in SETS for n in names
    ]  # fmt: skip
    works += [
        Work(active.editors, {"strategy": n, "sizes": FEW, "batch": 10}, "asking editors", 60, 3)
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


ENTRIES = (simulated_figure(21, 1), simulated_figure(22, 2), figure23())
