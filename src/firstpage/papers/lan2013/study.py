"""The study of Lan et al. (2013): entries, and claims about its curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firstpage.core import Floats
from firstpage.learning.solvers import RATES
from firstpage.papers.lan2013 import lists
from firstpage.papers.lan2013.lists import FULL, MEASURES, Depth
from firstpage.papers.study import letor_protocol
from firstpage.papers.study.claims import all_hold, equivalent, greater, no_greater
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperProtocol,
    PaperStudy,
    Plot,
)

SUFFICIENT_K = {"RankSVM": 10, "RankNet": 10, "ListMLE": 10, "RankBoost": 20}  # for stable curves
MODELS = tuple(SUFFICIENT_K)
LINEAR_RANKERS = ("RankSVM", "RankNet", "ListMLE")  # on MQ2007-list
STABLE_MARGIN = 0.01
ClaimFunction = Callable[[Cells], Claim]


def all_claims(*claim_functions: ClaimFunction) -> Callable[[Cells], list[Claim]]:
    """Return the function that returns the claims of an entry."""
    return lambda cells: [function(cells) for function in claim_functions]


def rises(cells: Cells) -> Claim:
    """Return the claim that performance rises up to the sufficient k."""
    return all_hold(
        "performance rises from k = 1 to k = 10 (RankBoost: 20), for all rankers and measures",
        [_better(cells, model, m, SUFFICIENT_K[model], 1) for model in MODELS for m in MEASURES],
    )


def stable(last: Depth, **source: Any) -> ClaimFunction:
    """Return the claim of a stable curve, tested at the k with the largest difference."""

    def claim(cells: Cells) -> Claim:
        until = "the full order" if last == FULL else f"k = {last}"
        comparisons = [
            _largest_difference(cells, model, m, last) for model in MODELS for m in MEASURES
        ]
        return all_hold(
            f"from k = 10 (RankBoost: 20) to {until} it stays within {STABLE_MARGIN} of its value "
            "at k = 10",
            comparisons,
            **source,
        )

    return claim


def sufficient(cells: Cells) -> Claim:
    """Return the claim that the full order gains nothing over the sufficient k."""
    comparisons = [
        no_greater(
            f"{model}, {m}",
            _values(cells, model, m, FULL),
            _values(cells, model, m, SUFFICIENT_K[model]),
            STABLE_MARGIN,
            ", full order against top k",
        )
        for model in MODELS
        for m in MEASURES
    ]
    return all_hold(
        f"the top 10 (RankBoost: 20) is sufficient: the full order gains less than {STABLE_MARGIN}",
        comparisons,
    )


def sufficient_by(measure: str) -> ClaimFunction:
    """Return the claim of sufficiency by another measure."""

    def claim(cells: Cells) -> Claim:
        comparisons = [
            no_greater(
                model,
                _values(cells, model, measure, FULL),
                _values(cells, model, measure, SUFFICIENT_K[model]),
                STABLE_MARGIN,
                ", full order against top k",
            )
            for model in MODELS
        ]
        text = f"also by {measure}: the full order gains less than {STABLE_MARGIN}"
        return all_hold(text, comparisons, source="ours")

    return claim


def drops(
    high: Depth, low: Depth, models: Sequence[str] = LINEAR_RANKERS, **source: Any
) -> ClaimFunction:
    """Return the claim that rankers are worse at the deeper k."""

    def claim(cells: Cells) -> Claim:
        deeper = "the full order" if low == FULL else f"k = {low}"
        return all_hold(
            f"{', '.join(models)} drop when k exceeds {high} (k = {high} is above {deeper})",
            [_better(cells, model, m, high, low) for model in models for m in MEASURES],
            **source,
        )

    return claim


def full_order_below_top_1(cells: Cells) -> Claim:
    """Return the claim that the full order is worse than the top 1."""
    return all_hold(
        f"the full order is worse than the top 1 for {', '.join(LINEAR_RANKERS)}",
        [_better(cells, model, m, 1, FULL) for model in LINEAR_RANKERS for m in MEASURES],
    )


def rises_and_drops(cells: Cells) -> Claim:
    """Return the claim that the curve of ListMLE rises and then drops."""
    comparisons = [_better(cells, "ListMLE", m, 20, other) for m in MEASURES for other in (1, FULL)]
    text = "ListMLE rises and then drops: k = 20 is above k = 1 and the full order"
    return all_hold(text, comparisons, source="ours")


def _values(cells: Cells, model: str, measure: str, k: Depth) -> Floats:
    return cells.samples(model=model, measure=measure, k=k)


def _better(cells: Cells, model: str, measure: str, better: Depth, worse: Depth) -> Claim:
    return greater(
        f"{model}, {measure}",
        _values(cells, model, measure, better),
        _values(cells, model, measure, worse),
    )


def _largest_difference(cells: Cells, model: str, measure: str, last: Depth) -> Claim:
    reference = _values(cells, model, measure, SUFFICIENT_K[model])
    deeper = [
        k
        for k in cells.label_values("k")
        if _is_deeper(k, SUFFICIENT_K[model]) and not _is_deeper(k, last)
    ]
    farthest = max(
        deeper, key=lambda k: abs(_values(cells, model, measure, k).mean() - reference.mean())
    )
    return equivalent(
        f"{model}, {measure}, largest difference at k = {farthest}",
        _values(cells, model, measure, farthest),
        reference,
        STABLE_MARGIN,
    )


def _is_deeper(k: Depth, other: Depth) -> bool:
    """Return whether k is deeper than the other; the full order is the deepest."""
    if isinstance(k, str) or isinstance(other, str):
        return isinstance(k, str) and not isinstance(other, str)
    return k > other


DEPTHS: tuple[Depth, ...] = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000, FULL)
GRADED_DEPTHS: tuple[Depth, ...] = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, FULL)
LIST_LENGTH = 500  # documents of a synthetic list
# Within the first 15 %, above the tail.
TOP_DEPTHS: tuple[Depth, ...] = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70)
TAIL_DEPTHS: tuple[Depth, ...] = (100, 200, FULL)
# RankBoost has no grid: its number of rounds is chosen on validation data.
Grids = Mapping[str, lists.ParameterGrid]
GRIDS: Grids = {
    "RankSVM": {"C": [1e-3, 1e-1, 10.0]},
    "RankNet": {"l2": [1e-3, 1e-1, 10.0]},
    "ListMLE": {"l2": [1e-3, 1e-1, 10.0]},
    "RankBoost": {},
}
SYNTHETIC_GRIDS: Grids = {
    "RankSVM": {"C": [1e-3, 1e-1]},
    "RankNet": {"l2": [1e-2, 10.0]},
    "ListMLE": {"l2": [1e-2, 10.0]},
    "RankBoost": {},
}
PRINTED_RATES: lists.ParameterGrid = {
    "solver": [f"gd(rate={rate:g}, max_iter=500)" for rate in RATES]
}
PRINTED_GRIDS: Grids = {
    "RankSVM": {
        "C": [1e-5, 1e-4, 1e-3, 1e-2, *(round(0.1 * i, 1) for i in range(1, 11)), 10.0, 100.0, 1e3]
    },
    "RankNet": PRINTED_RATES,
    "ListMLE": PRINTED_RATES,
    "RankBoost": {"tol": [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]},
}
THINNED = (
    "C has 3 (simulated lists: 2) of the 17 printed values. RankNet and ListMLE are minimized to "
    "the optimum with as many penalties, instead of 500 iterations with five rates. RankBoost has "
    "the best number of up to 300 rounds, instead of six tolerances and up to 500 rounds."
)
PAPER_NOTE = (
    "As printed, for each k on validation data by NDCG@10 of the full order: C of RankSVM over 17 "
    "values from 1e-5 to 1000, the rate of gradient descent of RankNet and ListMLE over 1e-5, 1e-4 "
    ".. 1e-1 with up to 500 iterations (the best one by validation data, no penalty), and the "
    "tolerance of RankBoost over 1e-1 .. 1e-6 with up to 500 rounds."
)
PAPER_HELD_EQUAL = (
    "for all k of a ranker: training, validation and test queries, the order of equal labels, the "
    "printed grid, and the measure for tuning. Not equal: the loss of a smaller k has fewer terms, "
    "so that the same rate makes smaller steps. Rankers are not compared with each other."
)
TUNING_NOTE = (
    "Penalties are tuned for each k on validation data by NDCG@10 of the full order, over two or "
    "three values. The paper tunes learning rates, and C over 17 values. RankBoost uses the best "
    "number of up to 300 rounds."
)
HELD_EQUAL = (
    "for all k of a ranker: training, validation and test queries, the order of equal labels, the "
    "grid of penalties (RankBoost: the best number of up to 300 rounds), the measure for tuning, "
    "and the optimum of the convex losses. Not equal: the loss of a smaller k has fewer terms, so "
    "that the same penalty has more effect. Therefore the penalty is tuned for each k. Rankers are "
    "not compared with each other."
)
STATEMENT = "Performance rises quickly with k and is stable from k = 10, for RankBoost from k = 20"
TAIL_STATEMENT = "The full order is worse than the top 1, because the labels of the tail are noise."


def _plots(measures: Sequence[str]) -> list[tuple[str, Plot]]:
    return [(m, Plot("model", "k", m, log_x=True)) for m in measures]


def figure_entry(
    number: int, data: str, statement: str, claims: Callable[[Cells], list[Claim]]
) -> PaperEntry:
    """Return Figure 1 or 2, with an experiment per fold, ranker and k: the lists are long."""

    def experiments(grids: Grids, **options: Any) -> list[Experiment]:
        return [
            Experiment(
                lists.evaluate_on_ordered_lists,
                {
                    "data": data,
                    "model": model,
                    "ks": [k],
                    "grid": grids[model],
                    "fold": fold,
                    **options,
                },
                f"fold {fold}",
                dataset=data.lower(),
                randomized=False,
            )
            for fold in letor_protocol.FOLDS
            for model in MODELS
            for k in DEPTHS
        ]

    return PaperEntry(
        f"figure{number}",
        f"NDCG of the full order by k, {data}",
        statement,
        experiments(GRIDS),
        claims,
        _plots(MEASURES),
        note=TUNING_NOTE,
        held_equal=HELD_EQUAL,
        thinned=THINNED,
        paper_protocol=PaperProtocol(
            experiments(PRINTED_GRIDS, printed=True), PAPER_NOTE, PAPER_HELD_EQUAL
        ),
    )


def synthetic_entry(
    tail: lists.TailKind, title: str, statement: str, *claim_functions: ClaimFunction
) -> PaperEntry:
    """Return NDCG by k on simulated lists with one kind of tail."""

    def experiments(grids: Grids, **options: Any) -> list[Experiment]:
        # Results above the tail are the same for all kinds of tails, and computed once.
        return [
            Experiment(
                lists.evaluate_on_synthetic_lists,
                {"tail": kind, "n": LIST_LENGTH, "ks": list(ks), "grids": grids, **options},
                "lists",
                10,
                3,
            )
            for kind, ks in (("clean", TOP_DEPTHS), (tail, TAIL_DEPTHS))
        ]

    simulated = (
        f"SIMULATED: {LIST_LENGTH} documents per list, 46 features, {lists.SPLIT_SIZES[0]} "
        "training queries per run. The first 15 % of a list are in the order of a linear utility "
        "with as much noise as signal. Tests are over runs, each with its own lists. "
    )
    return PaperEntry(
        f"synthetic-{tail}",
        f"NDCG of the full order by k, simulated lists {title}",
        statement,
        experiments(SYNTHETIC_GRIDS),
        all_claims(*claim_functions),
        _plots(MEASURES),
        note=simulated + TUNING_NOTE,
        held_equal=HELD_EQUAL,
        thinned=THINNED,
        paper_protocol=PaperProtocol(
            experiments(PRINTED_GRIDS, printed=True), simulated + PAPER_NOTE, PAPER_HELD_EQUAL
        ),
    )


def graded_entry(data: str, normalize: str | None) -> PaperEntry:
    """Return NDCG by k on full orders drawn from grades."""

    def experiments(grids: Grids, **options: Any) -> list[Experiment]:
        return [
            Experiment(
                lists.evaluate_on_graded_lists,
                {
                    "data": data,
                    "model": model,
                    "ks": list(GRADED_DEPTHS),
                    "grid": grids[model],
                    "normalize": normalize,
                    "fold": fold,
                    **options,
                },
                f"fold {fold}",
                5,
                1,
                data.lower(),
            )
            for fold in letor_protocol.FOLDS
            for model in MODELS
        ]

    orders = (
        "Equal grades are put in a random order, a new one in every run, in training, "
        "validation and test data. Most of that order is unpredictable, so that NDCG against it is "
        "low. The last measure is NDCG of the grades. "
    )
    return PaperEntry(
        f"grades-{data.lower()}",
        f"NDCG by k of full orders drawn from grades, {data}",
        STATEMENT + "; the paper did not use these data.",
        experiments(GRIDS),
        all_claims(
            rises,
            stable(100),
            sufficient,
            sufficient_by("NDCG@10, grades"),
            full_order_below_top_1,
            drops(10, FULL, MODELS, source="ours"),
        ),
        _plots((*MEASURES, "NDCG@10, grades")),
        note=orders + TUNING_NOTE,
        held_equal=HELD_EQUAL,
        thinned=THINNED,
        paper_protocol=PaperProtocol(
            experiments(PRINTED_GRIDS, printed=True), orders + PAPER_NOTE, PAPER_HELD_EQUAL
        ),
    )


ENTRIES = (
    figure_entry(
        1,
        "MQ2007-list",
        STATEMENT
        + "; RankSVM, RankNet and ListMLE drop when k exceeds 100, and are worse with the "
        "full order than with the top 1.",
        all_claims(rises, stable(100), drops(100, 1000), full_order_below_top_1, sufficient),
    ),
    figure_entry(
        2,
        "MQ2008-list",
        STATEMENT + ", up to the full order.",
        all_claims(rises, stable(FULL), sufficient),
    ),
    synthetic_entry(
        "clean",
        "with a tail in the same order",
        STATEMENT + ", up to the full order (as on MQ2008-list).",
        rises,
        stable(FULL),
        sufficient,
    ),
    synthetic_entry(
        "random",
        "with a shuffled tail",
        TAIL_STATEMENT,
        rises,
        stable(70),
        drops(70, FULL),
        full_order_below_top_1,
        sufficient,
    ),
    synthetic_entry(
        "misleading",
        "with a misleading tail",
        TAIL_STATEMENT,
        rises,
        stable(70),
        drops(70, FULL),
        full_order_below_top_1,
        sufficient,
        rises_and_drops,
    ),
    graded_entry("MQ2008", None),
    graded_entry("OHSUMED", "minmax"),
)
LAN2013 = PaperStudy(
    "lan2013",
    "Lan, Guo, Niu, Cheng: Is Top-k Sufficient for Ranking? (2013)",
    {entry.name: entry for entry in ENTRIES},
    ("firstpage.papers.lan2013.lists", *letor_protocol.MODULES),
)
