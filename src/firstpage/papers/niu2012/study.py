"""The study of Niu et al. (2012): entries, among them Figures 1 and 2 (what beta does)."""

from __future__ import annotations

import numpy as np

from firstpage.papers.niu2012 import comparison, edges
from firstpage.papers.niu2012.comparison import FAMILIES, letor_works, study_works
from firstpage.papers.niu2012.labeling_tables import (
    agreement_of_votes,
    effort_of_votes,
    table1,
    table2,
    table3,
)
from firstpage.papers.niu2012.learned import SHOWN
from firstpage.papers.study.claims import every, greater
from firstpage.papers.study.letor_protocol import MODULES
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Study, Verdict, Work
from firstpage.types import Floats

SMALL = 0.1
MEASURES = [(truth, m) for truth, measures in SHOWN.items() for m in measures]


def figure1() -> Entry:
    return _figure("figure1", "beta on MQ2007 (or MQ2008)", letor_works())


def figure2() -> Entry:
    return _figure("figure2", "beta on the user study's TD2003 (simulated)",
                   study_works())  # fmt: skip


def _figure(name: str, title: str, works: list[Work]) -> Entry:
    return Entry(
        name, title,
        "As beta grows from 0 to 1, measures first grow to a maximum and then fall; the variation "
        "is small (2.7 % of the mean for the most varied curve of MQ2007, 6.2 % of TD2003).",
        [work for work in works if work.params["model"] in FAMILIES],
        _claims,
        [(model, Drawing("measure", "beta", model)) for model in FAMILIES],
        keep=lambda row: "beta" in row,
        note="C and the penalty are chosen on validation data for each beta.  'Variation' is read "
        "as (greatest - least) / mean.  Whether a maximum stands out is tested on queries that did "
        "not choose it: half of them choose the beta for the other half.  FocusedBoost is drawn "
        "with both kinds of weak rankers.",
        held_equal="for all values of beta: queries, folds, truths, weak rankers, rounds and "
        "stopping rules, and the settings that C or the penalty is chosen from on validation data.",
    )  # fmt: skip


def _claims(cells: Cells) -> list[Claim]:
    found = []
    for model in FAMILIES:
        found += [_inside(cells, model), _stands_out(cells, model), _flat(cells, model)]
    return [*found, *(_middle(cells, model) for model in FAMILIES)]


def curve(cells: Cells, model: str, measure: str) -> dict[float, Floats]:
    """Values by query, by beta."""
    own = [c for c in cells if c.where["model"] == model and c.where["measure"] == measure]
    return {c.where["beta"]: c.units for c in own}


def _means(cells: Cells, model: str, measure: str) -> dict[float, float]:
    return {beta: float(v.mean()) for beta, v in curve(cells, model, measure).items()}


def _inside(cells: Cells, model: str) -> Claim:
    told, worst = [], "holds"
    for _, measure in MEASURES:
        means = _means(cells, model, measure)
        best = max(means, key=lambda beta: means[beta])
        told.append(f"{measure} {best:g}")
        if best in (min(means), max(means)):
            worst = "does not hold"
    verdict: Verdict = "holds" if worst == "holds" else "does not hold"
    text = f"{model}: the greatest mean lies between beta = 0 and 1, not at an end"
    return Claim(text, verdict, "at " + ", ".join(told))


def _stands_out(cells: Cells, model: str) -> Claim:
    """Rise and fall, each for kNDCG@10 and kERR."""
    parts = []
    for measure in SHOWN["top-k"][1:]:
        values = curve(cells, model, measure)
        best = chosen_elsewhere(values)
        parts += [
            greater(f"{measure} against beta = {end:g}", best, values[end])
            for end in (min(values), max(values))
        ]
    return every(f"{model}: it first grows, then falls (top-k labels)", parts)


def chosen_elsewhere(values: dict[float, Floats]) -> Floats:
    """Of every query the value at the beta that is best for the other half of the queries."""
    table = np.array(list(values.values()))
    even = np.arange(table.shape[1]) % 2 == 0
    found = np.empty(table.shape[1])
    for half in (even, ~even):
        found[half] = table[int(np.argmax(table[:, ~half].mean(axis=1)))][half]
    return found


def spread(means: dict[float, float]) -> float:
    values = np.array(list(means.values()))
    return float((values.max() - values.min()) / values.mean())


def _flat(cells: Cells, model: str) -> Claim:
    each = {m: _means(cells, model, m) for _, m in MEASURES}
    wide = {m: spread(means) for m, means in each.items()}
    verdict: Verdict = "holds" if max(wide.values()) < SMALL else "does not hold"
    told = ", ".join(f"{m} {100 * v:.1f} %" for m, v in wide.items())
    return Claim(f"{model}: the variation is small (below {SMALL:.0%})", verdict, told)


def _middle(cells: Cells, model: str) -> Claim:
    """Without the ends, where one of the two losses is missing."""
    wide = {}
    for _, m in MEASURES:
        means = _means(cells, model, m)
        wide[m] = spread({b: v for b, v in means.items() if b not in (min(means), max(means))})
    verdict: Verdict = "holds" if max(wide.values()) < SMALL else "does not hold"
    told = ", ".join(f"{m} {100 * v:.1f} %" for m, v in wide.items())
    text = f"{model}: the variation is below {SMALL:.0%} without the ends"
    return Claim(text, verdict, told, "ours")


OWN = ("labeling", "learned", "printed", "edges")
ENTRIES = (
    table1(), effort_of_votes(), table2(), agreement_of_votes(), table3(),
    comparison.table4(), comparison.orders(), comparison.ohsumed(), comparison.table5(),
    figure1(), figure2(), edges.edges(),
)  # fmt: skip

NIU2012 = Study(
    "niu2012",
    "Niu, Guo, Lan, Cheng: Top-k Learning to Rank: Labeling, Ranking and Evaluation (SIGIR 2012)",
    {entry.name: entry for entry in ENTRIES},
    (*MODULES, "firstpage.labeling", *(f"firstpage.papers.niu2012.{name}" for name in OWN)),
)
