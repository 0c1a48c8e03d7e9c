"""The study of Xia, Liu and Li (2009)."""

from __future__ import annotations

from collections.abc import Callable

from firstpage.papers.study.letor_protocol import ROOMS, over_folds
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Grid, Study, Work
from firstpage.papers.xia2009 import training, verdicts
from firstpage.papers.xia2009.printed import papers
from firstpage.papers.xia2009.training import (
    CHOSEN,
    DEPTHS,
    MAIN,
    OTHERS,
    SETTINGS,
    TRAININGS,
    called,
)

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
        works, verdicts.trainings,
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
        works, verdicts.drowned, keep=_first_page,
        drawings=[
            (how, Drawing("method", "relevant", f"NDCG@10; {how}", ["ListMLE"])) for how in hows
        ],
        note="SIMULATED, in place of TD2003 and TD2004: lists of 500 documents with two grades, 44 "
        "features, a linear truth with noise; 30 training queries, 100 to test.  It shows why "
        "the paper's gain is what one would expect, not how large it is on those data.",
        held_equal=LOSSES.replace(", folds", ", runs").split("  Not equal")[0],
    )  # fmt: skip


def _first_page(row: dict[str, object]) -> bool:
    return row["measure"] == "NDCG@10"


_BOOSTED = "With the modification ListMLE is significantly better in all measures."
_BEST = "Top-10 ListMLE is the best in almost all measures, and significantly so at N@1 and P@1."
_ALL = (
    _depths(1, "OHSUMED", "All four losses are comparable.", verdicts.ohsumed),
    _depths(2, "TD2003", _BOOSTED, verdicts.boosted),
    _depths(3, "TD2004", _BOOSTED, verdicts.boosted),
    _beside(
        4, "OHSUMED",
        "Top-10 ListMLE performs fairly well, and is significantly the best at N@1 and P@1.",
        verdicts.table4,
    ),
    _beside(5, "TD2003", _BEST, verdicts.by_settings(verdicts.best)),
    _beside(6, "TD2004", _BEST, verdicts.by_settings(verdicts.best)),
    _trainings(),
    _sparse(),
)  # fmt: skip
XIA2009 = Study(
    "xia2009",
    "Xia, Liu, Li: Statistical Consistency of Top-k Ranking (2009)",
    {entry.name: entry for entry in _ALL},
    (
        "firstpage.papers.xia2009.training", "firstpage.papers.xia2009.training", *ROOMS,
    ),
)  # fmt: skip
