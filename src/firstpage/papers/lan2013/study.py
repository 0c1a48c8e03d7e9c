"""The study of Lan et al. (2013)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from firstpage.papers.lan2013 import lists, tails, verdicts
from firstpage.papers.lan2013.lists import FULL, MEASURES, Depth
from firstpage.papers.lan2013.verdicts import MODELS
from firstpage.papers.study import letor_protocol
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Study, Work

DEPTHS: tuple[Depth, ...] = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000, FULL)
GRADED: tuple[Depth, ...] = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, FULL)
LENGTH = 500  # documents of a synthetic list
SHARED: tuple[Depth, ...] = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70)  # below 15 %: tails count not
TAIL: tuple[Depth, ...] = (100, 200, FULL)
# RankBoost has none: validation data say how many rounds are kept.
Grids = Mapping[str, lists.Grid]
THIN: Grids = {
    "RankSVM": {"C": [1e-3, 1e-1, 10.0]},
    "RankNet": {"l2": [1e-3, 1e-1, 10.0]},
    "ListMLE": {"l2": [1e-3, 1e-1, 10.0]},
    "RankBoost": {},
}
THINNER: Grids = {
    "RankSVM": {"C": [1e-3, 1e-1]},
    "RankNet": {"l2": [1e-2, 10.0]},
    "ListMLE": {"l2": [1e-2, 10.0]},
    "RankBoost": {},
}
OURS = (
    "Penalties are chosen for each k on validation data (NDCG@10 of the full order), from two or "
    "three values; the paper chooses learning rates, and C from 17.  RankBoost keeps the best of "
    "300 rounds."
)
HELD = (
    "for all k of a ranker: training, validation and test queries, the order of equal labels, the "
    "penalties to choose from (RankBoost: 300 rounds, the best number kept), the measure they are "
    "chosen by, and the optimum of the convex losses.  Not equal: a loss of a smaller k has fewer "
    "terms, so that the same penalty weighs more; that is why it is chosen for each k.  Rankers "
    "are not compared with each other."
)
FLAT = "Performance rises quickly with k and keeps stable from k = 10 on, RankBoost's from 20 on"


def _curves(measures: Sequence[str]) -> list[tuple[str, Drawing]]:
    return [(m, Drawing("model", "k", m, log=True)) for m in measures]


def paper_figure(
    number: int, data: str, says: str, claims: Callable[[Cells], list[Claim]]
) -> Entry:
    """A work a fold, ranker and k: the lists are long, and little is lost when it is stopped."""
    works = [
        Work(
            lists.listed,
            {"data": data, "model": model, "ks": [k], "grid": THIN[model], "fold": fold},
            f"fold {fold}", needs=data.lower(), chance=False,
        )
        for fold in letor_protocol.FOLDS for model in MODELS for k in DEPTHS
    ]  # fmt: skip
    return Entry(
        f"figure{number}", f"NDCG against the full order by k, {data}", says, works, claims,
        _curves(MEASURES), note=OURS, held_equal=HELD,
    )  # fmt: skip


def synthetic(tail: tails.Tail, title: str, says: str, *judges: verdicts.Judge) -> Entry:
    # What lies above the tail is the same in all three, and is done once.
    works = [
        Work(tails.curves, {"tail": kind, "n": LENGTH, "ks": list(ks), "grids": THINNER},
             "lists", 10, 3)
        for kind, ks in (("clean", SHARED), (tail, TAIL))
    ]  # fmt: skip
    return Entry(
        f"synthetic-{tail}", f"The same curves on made-up lists of {LENGTH}, {title}",
        says, works, verdicts.judged(*judges), _curves(MEASURES),
        note=f"SIMULATED: 46 features, {tails.PARTS[0]} training queries a run; the first 15 % of "
        "a list are in the order of a linear utility with as much noise as signal.  Tests are over "
        f"runs, each with lists of its own.  {OURS}",
        held_equal=HELD,
    )  # fmt: skip


def grades(data: str, normalize: str | None) -> Entry:
    works = [
        Work(
            lists.graded,
            {"data": data, "model": model, "ks": list(GRADED), "grid": THIN[model],
             "normalize": normalize, "fold": fold},
            f"fold {fold}", 5, 1, data.lower(),
        )
        for fold in letor_protocol.FOLDS for model in MODELS
    ]  # fmt: skip
    return Entry(
        f"grades-{data.lower()}", f"The same curves on full orders drawn from grades, {data}",
        FLAT + "; the paper did not look at these.", works,
        verdicts.judged(
            verdicts.rises, verdicts.stable(100), verdicts.sufficient,
            verdicts.as_good("NDCG@10, grades"), verdicts.below_top_1,
            verdicts.drops(10, FULL, MODELS, whose="ours"),
        ),
        _curves((*MEASURES, "NDCG@10, grades")),
        note="Equal grades are put in a random order, anew in every run, in training, validation "
        "and test data alike: most of the order is noise that nobody can predict, so NDCG against "
        "it is low.  The last measure is that of the grades.  " + OURS,
        held_equal=HELD,
    )  # fmt: skip


_ALL = (
    paper_figure(
        1, "MQ2007-list",
        FLAT + "; RankSVM, RankNet and ListMLE drop when k exceeds 100, and are worse with the "
        "full order than with the top 1.",
        verdicts.judged(
            verdicts.rises, verdicts.stable(100), verdicts.drops(100, 1000),
            verdicts.below_top_1, verdicts.sufficient,
        ),
    ),
    paper_figure(
        2, "MQ2008-list", FLAT + ", to the end.",
        verdicts.judged(verdicts.rises, verdicts.stable(FULL), verdicts.sufficient),
    ),
    synthetic(
        "clean", "right to the end", FLAT + ", to the end (as on MQ2008-list).",
        verdicts.rises, verdicts.stable(FULL), verdicts.sufficient,
    ),
    synthetic(
        "random", "with a shuffled tail",
        "Labels of the tail are noise; that is why the full order is worse than the top 1.",
        verdicts.rises, verdicts.stable(70), verdicts.drops(70, FULL), verdicts.below_top_1,
        verdicts.sufficient,
    ),
    synthetic(
        "other", "whose tail follows something else",
        "Labels of the tail are noise; that is why the full order is worse than the top 1.",
        verdicts.rises, verdicts.stable(70), verdicts.drops(70, FULL), verdicts.below_top_1,
        verdicts.sufficient, verdicts.hump,
    ),
    grades("MQ2008", None),
    grades("OHSUMED", "minmax"),
)  # fmt: skip
LAN2013 = Study(
    "lan2013",
    "Lan, Guo, Niu, Cheng: Is Top-k Sufficient for Ranking? (2013)",
    {entry.name: entry for entry in _ALL},
    ("firstpage.papers.lan2013.lists", "firstpage.papers.lan2013.tails", *letor_protocol.ROOMS),
)
