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
from firstpage.papers.study.descriptions import Descriptions
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperStudy,
)

SUFFICIENT_K = {"RankSVM": 10, "RankNet": 10, "ListMLE": 10, "RankBoost": 20}  # for stable curves
MODELS = tuple(SUFFICIENT_K)
LINEAR_RANKERS = ("RankSVM", "RankNet", "ListMLE")  # on MQ2007-list
STABLE_MARGIN = 0.01
ClaimFunction = Callable[[Cells], Claim]


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
DESCRIBED = Descriptions(
    __file__, LENGTH=LIST_LENGTH, FEATURES=lists.FEATURES, QUERIES=lists.SPLIT_SIZES[0]
)


def _full_order_entry(key: str, data: str, *claim_functions: ClaimFunction) -> PaperEntry:
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

    return _entry(key, experiments, GRIDS, *claim_functions)


def _synthetic_entry(tail: lists.TailKind, *claim_functions: ClaimFunction) -> PaperEntry:
    def experiments(grids: Grids, **options: Any) -> list[Experiment]:
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

    return _entry(f"synthetic-{tail}", experiments, SYNTHETIC_GRIDS, *claim_functions)


def _graded_entry(data: str, normalize: str | None) -> PaperEntry:
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

    return _entry(
        f"grades-{data.lower()}",
        experiments,
        GRIDS,
        rises,
        stable(100),
        sufficient,
        sufficient_by("NDCG@10, grades"),
        full_order_below_top_1,
        drops(10, FULL, MODELS, source="ours"),
    )


def _entry(
    key: str,
    experiments: Callable[..., list[Experiment]],
    grids: Grids,
    *claim_functions: ClaimFunction,
) -> PaperEntry:
    """Return an entry with thinned grids; its printed protocol has those of the paper."""
    return DESCRIBED.entry(
        key,
        experiments(grids),
        lambda cells: [function(cells) for function in claim_functions],
        paper_experiments=experiments(PRINTED_GRIDS, printed=True),
    )


NOISY_TAIL = (rises, stable(70), drops(70, FULL), full_order_below_top_1, sufficient)
ENTRIES = (
    _full_order_entry(
        "figure1",
        "MQ2007-list",
        rises,
        stable(100),
        drops(100, 1000),
        full_order_below_top_1,
        sufficient,
    ),
    _full_order_entry("figure2", "MQ2008-list", rises, stable(FULL), sufficient),
    _synthetic_entry("clean", rises, stable(FULL), sufficient),
    _synthetic_entry("random", *NOISY_TAIL),
    _synthetic_entry("misleading", *NOISY_TAIL, rises_and_drops),
    _graded_entry("MQ2008", None),
    _graded_entry("OHSUMED", "minmax"),
)
LAN2013 = PaperStudy(
    "lan2013",
    "Lan, Guo, Niu, Cheng: Is Top-k Sufficient for Ranking? (2013)",
    {entry.name: entry for entry in ENTRIES},
    ("firstpage.papers.lan2013.lists", *letor_protocol.MODULES),
)
