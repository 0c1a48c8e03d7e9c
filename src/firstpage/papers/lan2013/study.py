"""The study of Lan et al. (2013): entries, and verdicts on what it says of its curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firstpage.papers.lan2013 import lists
from firstpage.papers.lan2013.lists import FULL, MEASURES, Depth
from firstpage.papers.study import letor_protocol
from firstpage.papers.study.claims import alike, every, greater, no_greater
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Study, Work
from firstpage.types import Floats

KNEE = {"RankSVM": 10, "RankNet": 10, "ListMLE": 10, "RankBoost": 20}  # where curves flatten
MODELS = tuple(KNEE)
DROPPING = ("RankSVM", "RankNet", "ListMLE")  # on MQ2007-list
MARGIN = 0.01
Judge = Callable[[Cells], Claim]


def judged(*judges: Judge) -> Callable[[Cells], list[Claim]]:
    """The claims of an entry."""
    return lambda cells: [judge(cells) for judge in judges]


def rises(cells: Cells) -> Claim:
    return every(
        "performance rises from k = 1 to k = 10 (RankBoost: 20), for all rankers and measures",
        [_more(cells, model, m, KNEE[model], 1) for model in MODELS for m in MEASURES],
    )


def stable(last: Depth, **whose: Any) -> Judge:
    """Held to the k, of all between the knee and the last, where a curve is farthest away."""

    def judge(cells: Cells) -> Claim:
        until = "the full order" if last == FULL else f"k = {last}"
        parts = [_farthest(cells, model, m, last) for model in MODELS for m in MEASURES]
        return every(
            f"from k = 10 (RankBoost: 20) to {until} it keeps within {MARGIN} of its value there",
            parts, **whose,
        )  # fmt: skip

    return judge


def sufficient(cells: Cells) -> Claim:
    parts = [
        no_greater(f"{model}, {m}", _at(cells, model, m, FULL), _at(cells, model, m, KNEE[model]),
                   MARGIN, ", full order against top k")
        for model in MODELS for m in MEASURES
    ]  # fmt: skip
    return every(
        f"the top 10 (RankBoost: 20) is sufficient: the full order gains less than {MARGIN}", parts
    )


def as_good(measure: str) -> Judge:
    """The same of another measure."""

    def judge(cells: Cells) -> Claim:
        parts = [
            no_greater(model, _at(cells, model, measure, FULL),
                       _at(cells, model, measure, KNEE[model]), MARGIN,
                       ", full order against top k")
            for model in MODELS
        ]  # fmt: skip
        text = f"so it is by {measure}: the full order gains less than {MARGIN}"
        return every(text, parts, whose="ours")

    return judge


def drops(high: Depth, low: Depth, models: Sequence[str] = DROPPING, **whose: Any) -> Judge:
    def judge(cells: Cells) -> Claim:
        told = "the full order" if low == FULL else f"k = {low}"
        return every(
            f"{', '.join(models)} drop when k exceeds {high} (k = {high} is above {told})",
            [_more(cells, model, m, high, low) for model in models for m in MEASURES], **whose,
        )  # fmt: skip

    return judge


def below_top_1(cells: Cells) -> Claim:
    return every(
        f"the full order is worse than the top 1 for {', '.join(DROPPING)}",
        [_more(cells, model, m, 1, FULL) for model in DROPPING for m in MEASURES],
    )


def hump(cells: Cells) -> Claim:
    """The shape in one sentence."""
    parts = [
        _more(cells, "ListMLE", m, 20, other) for m in MEASURES for other in (1, FULL)
    ]  # fmt: skip
    return every("ListMLE rises and collapses: k = 20 is above k = 1 and the full order", parts,
                 whose="ours")  # fmt: skip


def _at(cells: Cells, model: str, measure: str, k: Depth) -> Floats:
    return cells.at(model=model, measure=measure, k=k)


def _more(cells: Cells, model: str, measure: str, better: Depth, worse: Depth) -> Claim:
    return greater(
        f"{model}, {measure}",
        _at(cells, model, measure, better), _at(cells, model, measure, worse),
    )  # fmt: skip


def _farthest(cells: Cells, model: str, measure: str, last: Depth) -> Claim:
    knee = _at(cells, model, measure, KNEE[model])
    later = [k for k in cells.names("k") if _after(k, KNEE[model]) and not _after(k, last)]
    far = max(later, key=lambda k: abs(_at(cells, model, measure, k).mean() - knee.mean()))
    return alike(
        f"{model}, {measure}, farthest at k = {far}", _at(cells, model, measure, far), knee, MARGIN
    )


def _after(k: Depth, other: Depth) -> bool:
    """Whether k is deeper; the full order is the deepest."""
    if isinstance(k, str) or isinstance(other, str):
        return isinstance(k, str) and not isinstance(other, str)
    return k > other


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


def synthetic(tail: lists.Tail, title: str, says: str, *judges: Judge) -> Entry:
    # What lies above the tail is the same in all three, and is done once.
    works = [
        Work(lists.curves, {"tail": kind, "n": LENGTH, "ks": list(ks), "grids": THINNER},
             "lists", 10, 3)
        for kind, ks in (("clean", SHARED), (tail, TAIL))
    ]  # fmt: skip
    return Entry(
        f"synthetic-{tail}", f"The same curves on made-up lists of {LENGTH}, {title}",
        says, works, judged(*judges), _curves(MEASURES),
        note=f"SIMULATED: 46 features, {lists.PARTS[0]} training queries a run; the first 15 % of "
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
        judged(
            rises, stable(100), sufficient,
            as_good("NDCG@10, grades"), below_top_1,
            drops(10, FULL, MODELS, whose="ours"),
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
        judged(
            rises, stable(100), drops(100, 1000),
            below_top_1, sufficient,
        ),
    ),
    paper_figure(
        2, "MQ2008-list", FLAT + ", to the end.",
        judged(rises, stable(FULL), sufficient),
    ),
    synthetic(
        "clean", "right to the end", FLAT + ", to the end (as on MQ2008-list).",
        rises, stable(FULL), sufficient,
    ),
    synthetic(
        "random", "with a shuffled tail",
        "Labels of the tail are noise; that is why the full order is worse than the top 1.",
        rises, stable(70), drops(70, FULL), below_top_1,
        sufficient,
    ),
    synthetic(
        "other", "whose tail follows something else",
        "Labels of the tail are noise; that is why the full order is worse than the top 1.",
        rises, stable(70), drops(70, FULL), below_top_1,
        sufficient, hump,
    ),
    grades("MQ2008", None),
    grades("OHSUMED", "minmax"),
)  # fmt: skip
LAN2013 = Study(
    "lan2013",
    "Lan, Guo, Niu, Cheng: Is Top-k Sufficient for Ranking? (2013)",
    {entry.name: entry for entry in _ALL},
    ("firstpage.papers.lan2013.lists", *letor_protocol.MODULES),
)
