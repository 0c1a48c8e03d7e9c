"""The study of Xia, Liu and Li (2009): entries, verdicts on the tables, and our own bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from firstpage.papers.study.claims import alike, every, greater, no_greater, reaches, within
from firstpage.papers.study.letor_protocol import FOLDS, MODULES, over_folds
from firstpage.papers.study.study import Cell, Cells, Claim, Drawing, Entry, Grid, Study, Work
from firstpage.papers.xia2009 import training
from firstpage.papers.xia2009.training import (
    CHOSEN,
    DEPTHS,
    LETOR,
    MAIN,
    MEASURES,
    OTHERS,
    SETTINGS,
    TRAININGS,
    called,
    papers,
)
from firstpage.types import Floats

TOPS = ("Top-1 ListMLE", "Top-3 ListMLE", "Top-10 ListMLE")
BEST = "Top-10 ListMLE"
COMPARABLE = 0.05  # the paper's own "comparable" numbers are up to .029 apart
FIRST, LATER = 0.04, 0.02  # how far below the printed numbers is still fine: first place, others
PUBLISHED = 0.01  # below LETOR's published means


def seeds_of(cell: Cell) -> Floats:
    """The mean over folds, seed by seed: values are in the order of folds, then of seeds."""
    found: Floats = cell.values.reshape(len(FOLDS), -1).mean(axis=0)
    return found


def _spread(cell: Cell) -> str:
    """How far seeds are apart."""
    means = seeds_of(cell)
    if len(means) < 2:
        return ""
    return f" (seeds {means.min():.3f} to {means.max():.3f})"


def ohsumed(cells: Cells) -> list[Claim]:
    """Table 1."""
    found = [
        every(f"{top} is comparable to ListMLE: less than {COMPARABLE} apart at every measure", [
            alike(m, cells.at(method=top, measure=m), cells.at(method="ListMLE", measure=m),
                  COMPARABLE)
            for m in MEASURES
        ])
        for top in TOPS
    ]  # fmt: skip
    found += [
        every(f"{name} is not below the printed numbers by more than {FIRST} at the first place "
              f"and {LATER} at 3 and 10",
              [_reaches(cells.one(method=name, measure=m)) for m in MEASURES], whose="ours")
        for name in ("ListMLE", BEST)
    ]  # fmt: skip
    return found + [_noise(cells, name) for name in TOPS[:2]]


def _reaches(cell: Cell) -> Claim:
    assert cell.paper is not None
    measure = str(cell.where["measure"])
    return reaches(measure, cell.ours, cell.paper, FIRST if measure.endswith("@1") else LATER)


def _noise(cells: Cells, name: str) -> Claim:
    """Whether what differs from the paper is within what queries and seeds differ by."""
    parts = []
    for measure in MEASURES:
        cell = cells.one(method=name, measure=measure)
        assert cell.paper is not None
        far = round(2 * (cell.se or 0.0), 3)
        low, high = round(cell.paper - far, 3), round(cell.paper + far, 3)
        parts.append(within(measure, cell.units, low, high, _spread(cell)))
    text = f"{name}: the printed numbers lie within two standard errors (over queries) of ours"
    return every(text, parts, whose="ours")


def boosted(cells: Cells) -> list[Claim]:
    """Tables 2, 3: "significantly boosted, in terms of all measures"."""
    found = [
        every(f"{top} is better than ListMLE at every measure", [
            greater(m, cells.at(method=top, measure=m), cells.at(method="ListMLE", measure=m))
            for m in MEASURES
        ])
        for top in TOPS
    ]  # fmt: skip
    return [*found, _same_first(cells)]


def _same_first(cells: Cells) -> Claim:
    text = "NDCG@1 equals P@1, as there are two grades"
    apart = max(
        float(
            np.abs(cells.at(method=n, measure="NDCG@1") - cells.at(method=n, measure="P@1")).max()
        )
        for n in cells.names("method")
    )
    why = f"on no query they are more than {apart:.2g} apart"
    return Claim(text, "holds" if apart < 1e-5 else "does not hold", why)


def by_settings(claims: Callable[[Cells], list[Claim]]) -> Callable[[Cells], list[Claim]]:
    """The same claims of the rows with defaults, and of those with chosen parameters."""

    def judge(cells: Cells) -> list[Claim]:
        return [
            replace(claim, text=f"{claim.text} ({settings})")
            for settings in cells.names("settings")
            for claim in claims(_of(cells, settings))
        ]

    return judge


def _of(cells: Cells, settings: str) -> Cells:
    return Cells(c for c in cells if c.where["settings"] == settings)


def beside(cells: Cells) -> list[Claim]:
    """Table 4: OHSUMED."""
    others = [c for c in cells.names("method") if c != BEST]

    def mean(measure: str) -> Floats:
        found: Floats = np.mean([cells.at(method=o, measure=measure) for o in others], axis=0)
        return found

    fair = [no_greater(m, mean(m), cells.at(method=BEST, measure=m), COMPARABLE) for m in MEASURES]
    return [
        every(f"{BEST} performs fairly well: the mean of the others is less than {COMPARABLE} "
              "above it at every measure", fair),
        first_place(cells, others),
    ]  # fmt: skip


def table4(cells: Cells) -> list[Claim]:
    """Both kinds; LETOR's means against defaults, as those with a choice are in `trainings`."""
    own = _of(cells, SETTINGS[0])
    return by_settings(beside)(cells) + [
        _published(f"{name} is not below LETOR's published means", own, name) for name in LETOR
    ]


def first_place(cells: Cells, others: Sequence[str]) -> Claim:
    """ "For N@1 and P@1, it significantly outperforms all the other methods"."""
    return every(f"{BEST} is significantly better than all others at NDCG@1 and P@1", [
        greater(f"{o}, {m}", cells.at(method=BEST, measure=m), cells.at(method=o, measure=m))
        for m in ("NDCG@1", "P@1") for o in others
    ])  # fmt: skip


def best(cells: Cells) -> list[Claim]:
    """Tables 5, 6."""
    others = [c for c in cells.names("method") if c != BEST]
    return [_almost_all(cells, others), first_place(cells, others)]


def _almost_all(cells: Cells, others: Sequence[str]) -> Claim:
    """All but one, by the means; how many are more than chance is said too."""
    own = {m: cells.one(method=BEST, measure=m) for m in MEASURES}
    rivals = {
        m: max((cells.one(method=o, measure=m) for o in others), key=lambda c: c.ours)
        for m in MEASURES
    }
    leads = {m: own[m].ours - rivals[m].ours for m in MEASURES}
    won = [m for m in MEASURES if leads[m] >= 0]
    tested = [greater(m, own[m].units, rivals[m].units) for m in MEASURES]
    clear = sum(claim.verdict == "holds" for claim in tested)
    told = ", ".join(f"{m} {leads[m]:+.3f} ({rivals[m].where['method']})" for m in MEASURES)
    return Claim(
        f"{BEST} is the best at almost all measures (all but one)",
        "holds" if len(won) >= len(MEASURES) - 1 else "does not hold",
        f"ahead at {len(won)} of {len(MEASURES)}, {clear} of them by more than chance: {told}",
    )


def trainings(cells: Cells) -> list[Claim]:
    """Whether it matters how the loss is minimized."""

    def at(k: object, training: str) -> Floats:
        return cells.at(k=k, training=training, measure="NDCG@10")

    found = [
        alike(f"{name}: descent and optimum, both chosen on validation data, are less than .03 "
              "apart at NDCG@10", at(k, "SGD"), at(k, CHOSEN), 0.03, whose="ours")
        for k, name in (("n", "ListMLE"), (1, "Top-1 ListMLE"), (3, "Top-3 ListMLE"), (10, BEST))
    ]  # fmt: skip
    for name in LETOR:
        text = f"{name} with parameters chosen on validation data is not below LETOR's means"
        found.append(_published(text, cells, name, training="chosen"))
    return found


def _published(text: str, cells: Cells, name: str, **labels: str) -> Claim:
    parts = [
        reaches(m, cells.one(method=name, measure=m, **labels).ours, bar, PUBLISHED)
        for m, bar in zip(MEASURES, LETOR[name], strict=True)
    ]
    return every(f"{text} by more than {PUBLISHED}", parts, whose="ours")


def drowned(cells: Cells) -> list[Claim]:
    """The simulation: full lists of equals drown the few that are not."""

    def at(name: str, share: float, training: str = "optimum") -> Floats:
        return cells.at(method=name, relevant=share, training=training, measure="NDCG@10")

    few, many = min(cells.names("relevant")), max(cells.names("relevant"))
    found = [
        greater(f"{top} is better than ListMLE at NDCG@10 where {few:.0%} are relevant",
                at(top, few), at("ListMLE", few), whose="ours")
        for top in TOPS
    ]  # fmt: skip
    gain = {share: at(BEST, share) - at("ListMLE", share) for share in (few, many)}
    found.append(greater(
        f"the gain of {BEST} is greater where {few:.0%} are relevant than where {many:.0%} are",
        gain[few], gain[many], whose="ours",
    ))  # fmt: skip
    share = "optimum, equal labels share"
    found.append(greater(
        f"equal labels that share their places help ListMLE ({few:.0%} relevant)",
        at("ListMLE", few, share), at("ListMLE", few), whose="ours",
    ))  # fmt: skip
    return found


SEEDS, HASTE = 5, 2
SHARES = (0.01, 0.1, 0.3)  # of relevant documents in made-up lists
GRID = Grid("method", "measure")
HOW = (
    "Linear model at the optimum of its loss (L-BFGS, penalty as it comes); ties of the truth "
    "broken at random, five seeds; features scaled within queries; measured as LETOR's tool does. "
    " k is the depth, n the whole list.  Errors are over queries.  The paper descends by "
    "stochastic gradients: see the entry trainings."
)
BESIDE = (
    HOW + "  Twice: all rankers with their defaults, and all with a parameter chosen on validation "
    "data by NDCG@10 among five values (the penalty; RankSVM: C; RankBoost: the tolerance that "
    "ends it).  The paper takes the numbers of the others from the LETOR page."
)
LOSSES = (
    "queries, folds, scaling of features, linear scores, the optimum of a convex loss, the "
    "penalty, and the random orders of equal grades.  Not equal: a loss of the top k has fewer "
    "terms, so that the same penalty weighs more; the entry trainings has it chosen for each."
)
RANKERS = (
    "queries, folds, scaling of features, and effort: all with defaults, or all with one parameter "
    "chosen among five values on the same validation data by the same measure; each claim compares "
    "rows of one kind.  Not equal: RankBoost adds up stumps, the others have linear scores, and "
    "its rounds are chosen on validation data in either kind; ListMLE learns from a random order "
    "of equal grades, as in the paper, the others from the grades."
)


def _listmle(data: str, needs: str, k: training.Depth, how: str = MAIN) -> list[Work]:
    params = {"data": data, "k": k, "training": how}
    chance = TRAININGS[how][0]["ties"] == "random"
    runs, quick = (HASTE, 1) if how == "SGD" else (SEEDS, HASTE)  # a descent takes 50 times as long
    return over_folds(training.likelihood, params, needs, runs=runs, quick=quick, chance=chance)


def _other(data: str, needs: str, method: str, tuned: bool = False) -> list[Work]:
    """Of these RankCosine alone starts at random."""
    params = {"data": data, "method": method, "tuned": tuned}
    chance = method == "RankCosine"
    return over_folds(training.other, params, needs, runs=SEEDS, quick=HASTE, chance=chance)


def _depths(number: int, data: str, says: str, claims: Callable[[Cells], list[Claim]]) -> Entry:
    """Tables 1 to 3."""
    needs = data.lower()
    return Entry(
        f"table{number}", f"ListMLE and top-k ListMLE on {data}", says,
        [work for k in DEPTHS for work in _listmle(data, needs, k)], claims,
        paper=papers(data, tuple(called(k) for k in DEPTHS)), note=HOW, grids=[("", GRID)],
        held_equal=LOSSES,
    )  # fmt: skip


def _beside(number: int, data: str, says: str, claims: Callable[[Cells], list[Claim]]) -> Entry:
    """Tables 4 to 6."""
    needs = data.lower()
    works = [
        work
        for tuned, how in ((False, MAIN), (True, CHOSEN))
        for method in (*OTHERS, None)
        for work in (
            _listmle(data, needs, 10, how) if method is None else _other(data, needs, method, tuned)
        )
    ]
    return Entry(
        f"table{number}", f"Top-10 ListMLE and other rankers on {data}", says,
        works, claims, paper=papers(data, (*OTHERS, called(10))), note=BESIDE,
        grids=[(kind, Grid("method", "measure", kind)) for kind in SETTINGS], held_equal=RANKERS,
    )  # fmt: skip


def _trainings() -> Entry:
    data, needs = "OHSUMED", "ohsumed"
    works = [w for how in TRAININGS for k in DEPTHS for w in _listmle(data, needs, k, how)]
    works += [w for method in OTHERS for w in _other(data, needs, method, tuned=True)]
    return Entry(
        "trainings", "Tables 1 and 4 by how the rankers are trained (OHSUMED)",
        "Nothing: it names stochastic gradient descent, and no more.",
        works, trainings,
        note="optimum: as in Table 1, or with the penalty chosen on validation data.  SGD: a step "
        "a query, 100 epochs, rate (1e-5 to 1e-1) and epoch chosen on validation data, two seeds. "
        " share: no order drawn, equal labels share their places.  chosen: the others, with one "
        "parameter chosen on validation data among five values.",
        grids=[(how, Grid("method", "measure", how)) for how in (*TRAININGS, "chosen")],
        held_equal="queries, folds, scaling of features, loss and random orders of equal grades; "
        "descent (five rates, and the epoch) and penalty (five values) are chosen on the same "
        "validation data; claims compare these.  Not equal: descent has two seeds, the optimum "
        "five; queries are compared by their means over seeds.",
    )  # fmt: skip


def _sparse() -> Entry:
    hows = (MAIN, "optimum, equal labels share")
    works = [
        Work(training.simulated, {"k": k, "training": how, "relevant": share}, f"sparse {share}",
             runs=10, quick=3)
        for share in SHARES for how in hows for k in DEPTHS
    ]  # fmt: skip
    return Entry(
        "sparse", "Top-k ListMLE where few documents are relevant (simulated)",
        "Top-k ListMLE is far better on TD2003 and TD2004, where about one document in a hundred "
        "is relevant, and no better on OHSUMED, where three in ten are.",
        works, drowned, keep=lambda row: row["measure"] == "NDCG@10",
        drawings=[
            (how, Drawing("method", "relevant", f"NDCG@10; {how}", ["ListMLE"])) for how in hows
        ],
        note="SIMULATED, in place of TD2003 and TD2004: lists of 500 documents with two grades, 44 "
        "features, a linear truth with noise; 30 training queries, 100 to test.  It shows why "
        "the paper's gain is what one would expect, not how large it is on those data.",
        held_equal=LOSSES.replace(", folds", ", runs").split("  Not equal")[0],
    )  # fmt: skip


_BOOSTED = "With the modification ListMLE is significantly better in all measures."
_BEST = "Top-10 ListMLE is the best in almost all measures, and significantly so at N@1 and P@1."
_ALL = (
    _depths(1, "OHSUMED", "All four losses are comparable.", ohsumed),
    _depths(2, "TD2003", _BOOSTED, boosted),
    _depths(3, "TD2004", _BOOSTED, boosted),
    _beside(
        4, "OHSUMED",
        "Top-10 ListMLE performs fairly well, and is significantly the best at N@1 and P@1.",
        table4,
    ),
    _beside(5, "TD2003", _BEST, by_settings(best)),
    _beside(6, "TD2004", _BEST, by_settings(best)),
    _trainings(),
    _sparse(),
)  # fmt: skip
XIA2009 = Study(
    "xia2009",
    "Xia, Liu, Li: Statistical Consistency of Top-k Ranking (2009)",
    {entry.name: entry for entry in _ALL},
    ("firstpage.papers.xia2009.training", *MODULES),
)  # fmt: skip
