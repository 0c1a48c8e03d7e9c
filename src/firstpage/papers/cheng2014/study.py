"""The study of Cheng, Sun and Xie (2014): entries, and verdicts on what the paper reads off its
figures.  It gives bars alone: no number to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from firstpage.papers.cheng2014 import training
from firstpage.papers.cheng2014.training import (
    LISTMLE,
    PRINTED,
    SCALINGS,
    TARGETS,
    VARIANTS,
    VOTERS,
)
from firstpage.papers.study.claims import every, greater, within
from firstpage.papers.study.letor_protocol import MODULES, over_folds
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Grid, Row, Study, Work
from firstpage.types import Floats

MEASURES = tuple(m for aim in TARGETS.values() for m in aim.measures)
PAPERS = ("OHSUMED", "TD2003", "TD2004")
# Where the paper has TopMargin ahead of TopSlack.
MARGIN_AHEAD: Mapping[str, tuple[str, ...]] = {
    "OHSUMED": ("P@10",),
    "TD2003": ("NDCG@1", "P@1", "P@3"),
    "TD2004": ("P@3", "NDCG@10"),
}
# By how much TopRank is better than TopSlack on TD2004.  4.36 % would be in line for the last.
GAINS = {"NDCG@1": 0.172, "NDCG@3": 0.056, "NDCG@10": 0.436}
SAME = 1e-9  # means that differ by less are equal
BARS = (*VOTERS, *SCALINGS, LISTMLE, "TopRank")


def _at(cells: Cells, model: str, measure: str) -> Floats:
    return cells.at(model=model, measure=measure)


def _ours(cells: Cells, model: str, measure: str) -> float:
    return cells.one(model=model, measure=measure).ours


def ahead(cells: Cells, one: str, other: str, measures: Sequence[str]) -> list[Claim]:
    """Part by part."""
    return [greater(m, _at(cells, one, m), _at(cells, other, m)) for m in measures]


def most(text: str, cells: Cells, one: str, other: str, **whose: str) -> Claim:
    """That one is ahead at more than half of the measures, and in their mean by more than chance.

    One test, of a query's mean over all measures: six would find something in noise too often.
    """
    apart = {m: _ours(cells, one, m) - _ours(cells, other, m) for m in MEASURES}
    won = sum(value > SAME for value in apart.values())
    mean = greater("", _mean(cells, model=one), _mean(cells, model=other))
    told = ", ".join(f"{m} {value:+.3f}" for m, value in apart.items())
    verdict = mean.verdict
    if verdict == "holds" and won <= len(MEASURES) / 2:
        verdict = "cannot be tested"
    why = f"ahead at {won} of {len(MEASURES)} ({told}); mean over the measures {mean.why}"
    return Claim(text, verdict, why, **whose)  # type: ignore[arg-type]


def _mean(cells: Cells, **labels: str) -> Floats:
    """Of every query the mean over all measures."""
    found: Floats = np.mean([cells.at(measure=m, **labels) for m in MEASURES], axis=0)
    return found


def scalings(data: str) -> Callable[[Cells], list[Claim]]:
    """Figure 2."""

    def claims(cells: Cells) -> list[Claim]:
        whose = "paper" if data in PAPERS else "ours"
        found = [most("TopSlack is better than TopMargin at most measures", cells, "TopSlack",
                      "TopMargin", whose=whose)]  # fmt: skip
        if data not in PAPERS:
            return found
        margin = MARGIN_AHEAD[data]
        slack = [m for m in MEASURES if m not in margin]
        return [
            *found,
            every(f"TopSlack is better at {', '.join(slack)}",
                  ahead(cells, "TopSlack", "TopMargin", slack)),
            every(f"TopMargin is better at {', '.join(margin)}",
                  ahead(cells, "TopMargin", "TopSlack", margin)),
        ]  # fmt: skip

    return claims


def aggregated(data: str) -> Callable[[Cells], list[Claim]]:
    """Figure 3."""

    def claims(cells: Cells) -> list[Claim]:
        whose = "paper" if data in PAPERS else "ours"
        found = [
            every("TopRank is better than TopSlack at every measure",
                  ahead(cells, "TopRank", "TopSlack", MEASURES), whose=whose),
            most("TopRank is better than TopSlack at most measures", cells, "TopRank", "TopSlack",
                 whose="ours"),
        ]  # fmt: skip
        if data == "TD2004":
            found += [_gain(cells, m, share) for m, share in GAINS.items()]
        return found

    return claims


def _gain(cells: Cells, measure: str, share: float) -> Claim:
    """ "Increases 17.2 %": half of it to half as much again will do."""
    base = _ours(cells, "TopSlack", measure)
    got = np.array([_ours(cells, "TopRank", measure) / base - 1 if base else np.inf])
    text = f"TopRank gains {share:.1%} over TopSlack at {measure}"
    return within(text, got, share / 2, share * 1.5)


def beside(data: str) -> Callable[[Cells], list[Claim]]:
    """Figure 4."""

    def claims(cells: Cells) -> list[Claim]:
        whose = "paper" if data in PAPERS else "ours"
        found = _of(cells, data)
        rest = [name for name in BARS if name not in ("TopRank", LISTMLE)]
        for top in (LISTMLE, "TopRank"):
            parts = [
                greater(f"{o}, {m}", _at(cells, top, m), _at(cells, o, m))
                for o in rest for m in MEASURES
            ]  # fmt: skip
            text = f"{top} is better than all that are no top-k rankers, at every measure"
            found.append(counted(text, parts, whose))
        return [*found, _places(cells, whose)]

    return claims


def _of(cells: Cells, data: str) -> list[Claim]:
    """What is said of one data set alone."""
    if data == "OHSUMED":
        listwise = [
            counted(f"{name} is better than Regression and RankSVM at every measure", [
                greater(f"{o}, {m}", _at(cells, name, m), _at(cells, o, m))
                for o in ("Regression", "RankSVM") for m in MEASURES
            ], "paper")
            for name in ("ListNet", LISTMLE, "TopRank")
        ]  # fmt: skip
        five = [m for m in MEASURES if m != "P@1"]
        return [
            *listwise,
            every(f"TopRank is better than {LISTMLE} at all but P@1",
                  ahead(cells, "TopRank", LISTMLE, five)),
            every(f"TopRank is worse than {LISTMLE} at P@1",
                  ahead(cells, LISTMLE, "TopRank", ["P@1"])),
        ]  # fmt: skip
    if data == "TD2004":
        parts = [
            greater(f"{o}, {m}", _at(cells, "RankSVM", m), _at(cells, o, m))
            for o in ("ListNet", "TopSlack") for m in ("P@1", "NDCG@1")
        ]  # fmt: skip
        return [every("RankSVM is much better than ListNet and TopSlack at P@1 and NDCG@1", parts)]
    return []


def counted(text: str, parts: Sequence[Claim], whose: str) -> Claim:
    """As `every`, but where parts are many their numbers alone are told."""
    whole = every(text, parts)
    by = {v: [p.text for p in parts if p.verdict == v] for v in ("holds", "does not hold")}
    left = len(parts) - sum(map(len, by.values()))
    against = f": {'; '.join(by['does not hold'])}" if by["does not hold"] else ""
    why = (
        f"of {len(parts)} comparisons {len(by['holds'])} hold by more than chance, "
        f"{len(by['does not hold'])} are the other way round{against}; {left} are too close to tell"
    )
    return Claim(text, whole.verdict, why, whose)  # type: ignore[arg-type]


def place(cells: Cells, measure: str, models: Sequence[str] = BARS) -> int:
    """TopRank's place among all, by the means; 1 is the best."""
    own = _ours(cells, "TopRank", measure)
    return 1 + sum(_ours(cells, m, measure) > own for m in models if m != "TopRank")


def _places(cells: Cells, whose: str) -> Claim:
    places = {m: place(cells, m) for m in MEASURES}
    told = ", ".join(f"{m} {n}" for m, n in places.items())
    verdict = "holds" if max(places.values()) <= 2 else "does not hold"
    why = f"its place among {len(BARS)}, by the means: {told}"
    return Claim("TopRank is the best or the second at every measure", verdict, why, whose)  # type: ignore[arg-type]


def overall(cells: Cells) -> list[Claim]:
    """Figure 4, all three data sets: "best with 11 of 18 points, second with the rest"."""
    places = [
        place(Cells(c for c in cells if c.where["data"] == data), m)
        for data in PAPERS for m in MEASURES
    ]  # fmt: skip
    first, second = places.count(1), places.count(2)
    why = f"first at {first}, second at {second}, below at {len(places) - first - second}"
    fine = first >= 11 and first + second == len(places)
    return [
        Claim("TopRank is the best at 11 of 18 points and the second at the other 7",
              "holds" if fine else "does not hold", why)
    ]  # fmt: skip


def variants(cells: Cells) -> list[Claim]:
    """What becomes better or worse if one thing is done otherwise."""
    return [
        _differs(cells, data, name)
        for data in cells.names("data")
        for name in VARIANTS
        if name != PRINTED
    ]


def _differs(cells: Cells, data: str, name: str) -> Claim:
    """By a query's mean over all measures."""
    own, base = (_mean(cells, data=data, variant=v) for v in (name, PRINTED))
    found = greater(f"{name} is better than as printed ({data})", own, base, whose="ours")
    told = ", ".join(
        f"{m} {cells.one(data=data, variant=name, measure=m).ours - was:+.4f}"
        for m in MEASURES
        for was in (cells.one(data=data, variant=PRINTED, measure=m).ours,)
    )
    return replace(found, why=f"mean over the measures {found.why} ({told})")


def same_start(cells: Cells) -> list[Claim]:
    """Slack against margin, all else alike."""
    found = []
    for data in cells.names("data"):
        for cost in cells.names("C"):
            own = Cells(c for c in cells if c.where["data"] == data and c.where["C"] == cost)
            text = f"TopSlack is better than TopMargin at most measures, C = {cost:g} ({data})"
            found.append(most(text, own, "TopSlack", "TopMargin", whose="ours"))
    return found


SAME_COSTS = [1.0, 100.0]
SEEDS, HASTE = 5, 2
SETS = {"OHSUMED": "ohsumed", "TD2003": "td2003", "TD2004": "td2004", "MQ2008": "mq2008"}
HOW = (
    "Trained twice, for NDCG (what N@k shows) and for precision at 10 (P@k).  On validation data "
    "every ranker chooses among four values: C of TopSlack, TopMargin and RankSVM among .001, .1, "
    "10, 1000 (the paper tries 1e-5, 1e-4 .. 1e5: at the low end nothing changes any more, and at "
    "the high end cutting planes take minutes), the penalty of the others among .0001 .. .1.  "
    "TopSlack and TopMargin start from least squares and order equal labels by score.  Features "
    "are scaled within queries; measured as LETOR's tool does; errors are over queries."
)
HELD = (
    "queries, folds, scaling of features, linear scores, four values of one parameter to choose "
    "from for every ranker on the same validation data by the same measure (NDCG@10 or P@10), and "
    "the optimum of a convex loss, or cutting planes to the same gap."
)
AGAINST_VOTES = (
    "  Not equal: TopRank reorders the candidates of TopSlack by three more rankers, whose weights "
    "are chosen on the validation data, too; that is the method."
)
AGAINST_ALL = (
    AGAINST_VOTES + "  TopSlack and TopMargin order equal labels by score, Top-10 ListMLE at "
    "random (five seeds), as in its paper; the others learn from the grades."
)
OURS = "  These data are ours, not the paper's."
NO_NUMBERS = "  The paper has bars and no numbers."


def _compared(data: str, listmle: bool = False) -> list[Work]:
    works = []
    for target in TARGETS:
        params = {"data": data, "target": target}
        works += over_folds(training.compared, params, SETS[data], chance=False)
        if listmle:
            works += over_folds(training.likelihood, params, SETS[data], runs=SEEDS, quick=HASTE)
    return works


def _named(figure: int, data: str) -> str:
    return f"figure{figure}" if data == "OHSUMED" else f"figure{figure}-{data.lower()}"


def _bars(row: Row) -> bool:
    return "variant" not in row


def _scalings(row: Row) -> bool:
    return _bars(row) and row["model"] in SCALINGS


def _slack(row: Row) -> bool:
    return _bars(row) and row["model"] in ("TopSlack", "TopRank")


def _figure(
    figure: int, data: str, title: str, says: str, keep: Callable[[Row], bool],
    claims: Callable[[Cells], list[Claim]],
) -> Entry:  # fmt: skip
    note = HOW + (NO_NUMBERS if data in PAPERS else OURS)
    return Entry(
        _named(figure, data), f"{title} on {data}", says, _compared(data, figure == 4), claims,
        [("", Drawing("model", None, f"N and P at 1, 3, 10 on {data}"))], keep, note=note,
        grids=[("", Grid("model", "measure"))],
        held_equal=HELD + ("", AGAINST_VOTES, AGAINST_ALL)[figure - 2],
    )  # fmt: skip


def _figures(data: str) -> list[Entry]:
    return [
        _figure(2, data, "TopSlack and TopMargin",
                "Slack scaling is in general more accurate than margin scaling: better at 5 of 6 "
                "points of OHSUMED, 4 of TD2004, 3 of TD2003.", _scalings, scalings(data)),
        _figure(3, data, "TopRank and TopSlack",
                "Aggregation is better than TopSlack at all measures on all data.", _slack,
                aggregated(data)),
        _figure(4, data, "TopRank and all others",
                "The two top-k rankers are significantly better than all others at all measures; "
                "TopRank is the best at 11 of 18 points and the second at the rest.", _bars,
                beside(data)),
    ]  # fmt: skip


def _overall() -> Entry:
    works = [w for data in PAPERS for w in _compared(data, True)]
    return Entry(
        "figure4-all", "TopRank's places on all three data sets",
        "TopRank is the best at 11 of 18 points and the second at the other 7.",
        works, overall, keep=_bars, note=HOW + NO_NUMBERS,
        grids=[(data, Grid("model", "measure", data)) for data in PAPERS],
        held_equal=HELD + AGAINST_ALL,
    )  # fmt: skip


def _votes(data: str) -> Entry:
    return Entry(
        f"votes-{data.lower()}", f"What of the votes matters on {data}",
        "Nothing: it fixes t, k and the weights.",
        _compared(data), variants, keep=lambda row: "variant" in row,
        note="Each line changes one thing of the first.  As printed: credit among the first half "
        "of 100 candidates, weights by what voters measure on validation data.",
        grids=[("", Grid("variant", "measure"))],
        held_equal="the fitted rankers, their scores, the candidates' base order and the "
        "validation queries of the weights; each variant changes what it names, and nothing else.",
    )  # fmt: skip


def _same(data: str) -> Entry:
    works = [
        work
        for target in TARGETS
        for cost in SAME_COSTS
        for work in over_folds(
            training.scaled, {"data": data, "target": target, "cost": cost}, SETS[data],
            chance=False,
        )
    ]  # fmt: skip
    return Entry(
        f"scaling-{data.lower()}", f"Slack and margin scaling, all else alike, on {data}",
        "Slack scaling is the better behaved one.",
        works, same_start,
        note="One C for both, the same least-squares start, the same true ranking (equal labels by "
        "score).  Where the optimum is w = 0 the order of the start is kept; such folds are "
        "counted.  TopSlack, there, also tries the direction of TopMargin.",
        held_equal="everything but the scaling: queries, folds, features, C, the start, the true "
        "ranking, the gap at which cutting planes stop; nothing is chosen.  Not equal: where it is "
        "at w = 0, TopSlack also tries the direction of TopMargin.",
    )  # fmt: skip


def _all() -> list[Entry]:
    """Figure by figure; what is ours last."""
    by = {data: _figures(data) for data in SETS}
    figures = [by[data][i] for i in range(3) for data in SETS]
    ours = [make(data) for make in (_same, _votes) for data in ("OHSUMED", "MQ2008")]
    return [*figures, _overall(), *ours]


CHENG2014 = Study(
    "cheng2014",
    "Cheng, Sun, Xie: TopRank: A Novel Top-k Ranking Method Based on Rank Aggregation (2014)",
    {entry.name: entry for entry in _all()},
    ("firstpage.papers.cheng2014.training", "firstpage.aggregation", *MODULES),
)
