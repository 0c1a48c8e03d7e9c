"""The study of Cheng, Sun and Xie (2014): entries, and claims about its figures.

The paper has bar charts only: there are no numbers to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.papers.cheng2014 import training
from firstpage.papers.cheng2014.training import (
    COSTS,
    LISTMLE,
    PRINTED,
    PRINTED_COSTS,
    SCALINGS,
    TARGETS,
    VARIANTS,
    VOTERS,
)
from firstpage.papers.study.claims import all_hold, greater, greater_at, within
from firstpage.papers.study.descriptions import Descriptions
from firstpage.papers.study.letor_protocol import MODULES, fold_experiments
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperStudy,
    Row,
)

MEASURES = tuple(m for target in TARGETS.values() for m in target.measures)
PAPER_DATASETS = ("OHSUMED", "TD2003", "TD2004")
# Measures at which the paper has TopMargin ahead of TopSlack.
TOPMARGIN_AHEAD: Mapping[str, tuple[str, ...]] = {
    "OHSUMED": ("P@10",),
    "TD2003": ("NDCG@1", "P@1", "P@3"),
    "TD2004": ("P@3", "NDCG@10"),
}
# Gains of TopRank over TopSlack on TD2004; 4.36 % would be plausible for the last.
GAINS = {"NDCG@1": 0.172, "NDCG@3": 0.056, "NDCG@10": 0.436}
TIE_TOLERANCE = 1e-9  # of means
ALL_RANKERS = (*VOTERS, *SCALINGS, LISTMLE, "TopRank")


def _values(cells: Cells, model: str, measure: str) -> Floats:
    return cells.samples(model=model, measure=measure)


def _mean_value(cells: Cells, model: str, measure: str) -> float:
    return cells.cell(model=model, measure=measure).ours


def better_at(cells: Cells, first: str, second: str, measures: Sequence[str]) -> list[Claim]:
    """Return a claim per measure."""
    return greater_at(cells, {"model": first}, {"model": second}, measure=measures)


def _better_than_each(
    cells: Cells, model: str, others: Sequence[str], measures: Sequence[str] = MEASURES
) -> list[Claim]:
    """Return a claim per other ranker and measure."""
    return [
        greater(f"{other}, {m}", _values(cells, model, m), _values(cells, other, m))
        for other in others
        for m in measures
    ]


def better_at_most(text: str, cells: Cells, first: str, second: str, **source: str) -> Claim:
    """Return the claim that `first` is better at most measures, and significantly in their mean.

    There is one test, of the mean over all measures per query: six tests would find differences
    in noise too often.
    """
    differences = {
        m: _mean_value(cells, first, m) - _mean_value(cells, second, m) for m in MEASURES
    }
    won = sum(value > TIE_TOLERANCE for value in differences.values())
    mean = greater("", _mean(cells, model=first), _mean(cells, model=second))
    listed = ", ".join(f"{m} {value:+.3f}" for m, value in differences.items())
    verdict = mean.verdict
    if verdict == "holds" and won <= len(MEASURES) / 2:
        verdict = "inconclusive"
    evidence = (
        f"ahead at {won} of {len(MEASURES)} ({listed}); mean over the measures {mean.evidence}"
    )
    return Claim(text, verdict, evidence, **source)  # type: ignore[arg-type]


def _mean(cells: Cells, **labels: str) -> Floats:
    """Return the mean over all measures per query."""
    means: Floats = np.mean([cells.samples(measure=m, **labels) for m in MEASURES], axis=0)
    return means


def scaling_claims(data: str) -> Callable[[Cells], list[Claim]]:
    """Return the claims about Figure 2."""

    def claims(cells: Cells) -> list[Claim]:
        source, pair = "paper" if data in PAPER_DATASETS else "ours", ("TopSlack", "TopMargin")
        claims = [
            better_at_most(
                f"{' is better than '.join(pair)} at most measures", cells, *pair, source=source
            )
        ]
        if data not in PAPER_DATASETS:
            return claims
        margin = TOPMARGIN_AHEAD[data]
        slack = [m for m in MEASURES if m not in margin]
        return [
            *claims,
            *(
                all_hold(f"{a} is better at {', '.join(at)}", better_at(cells, a, b, at))
                for a, b, at in ((*pair, slack), (*pair[::-1], margin))
            ),
        ]

    return claims


def aggregation_claims(data: str) -> Callable[[Cells], list[Claim]]:
    """Return the claims about Figure 3."""

    def claims(cells: Cells) -> list[Claim]:
        source, pair = "paper" if data in PAPER_DATASETS else "ours", ("TopRank", "TopSlack")
        claims = [
            all_hold(
                f"{' is better than '.join(pair)} at every measure",
                better_at(cells, *pair, MEASURES),
                source=source,
            ),
            better_at_most(
                f"{' is better than '.join(pair)} at most measures", cells, *pair, source="ours"
            ),
        ]
        if data == "TD2004":
            claims += [_gain(cells, m, gain) for m, gain in GAINS.items()]
        return claims

    return claims


def _gain(cells: Cells, measure: str, printed: float) -> Claim:
    """Return the claim of a gain such as "increases 17.2 %", within half of it."""
    base = _mean_value(cells, "TopSlack", measure)
    gain = np.array([_mean_value(cells, "TopRank", measure) / base - 1 if base else np.inf])
    text = f"TopRank gains {printed:.1%} over TopSlack at {measure}"
    return within(text, gain, printed / 2, printed * 1.5)


def comparison_claims(data: str) -> Callable[[Cells], list[Claim]]:
    """Return the claims about Figure 4."""

    def claims(cells: Cells) -> list[Claim]:
        source = "paper" if data in PAPER_DATASETS else "ours"
        claims = _dataset_claims(cells, data)
        rest = [name for name in ALL_RANKERS if name not in ("TopRank", LISTMLE)]
        for top in (LISTMLE, "TopRank"):
            text = f"{top} is better than all rankers that are not top-k rankers, at every measure"
            claims.append(all_hold_counted(text, _better_than_each(cells, top, rest), source))
        return [*claims, _first_or_second(cells, source)]

    return claims


def _dataset_claims(cells: Cells, data: str) -> list[Claim]:
    """Return the claims about a single data set."""
    if data == "OHSUMED":
        listwise = [
            all_hold_counted(
                f"{name} is better than Regression and RankSVM at every measure",
                _better_than_each(cells, name, ("Regression", "RankSVM")),
                "paper",
            )
            for name in ("ListNet", LISTMLE, "TopRank")
        ]
        five = [m for m in MEASURES if m != "P@1"]
        better, worse = (
            better_at(cells, "TopRank", LISTMLE, five),
            better_at(cells, LISTMLE, "TopRank", ["P@1"]),
        )
        return [
            *listwise,
            all_hold(f"TopRank is better than {LISTMLE} at all but P@1", better),
            all_hold(f"TopRank is worse than {LISTMLE} at P@1", worse),
        ]
    if data == "TD2004":
        others = ("ListNet", "TopSlack")
        comparisons = _better_than_each(cells, "RankSVM", others, ("P@1", "NDCG@1"))
        text = "RankSVM is much better than ListNet and TopSlack at P@1 and NDCG@1"
        return [all_hold(text, comparisons)]
    return []


def all_hold_counted(text: str, comparisons: Sequence[Claim], source: str) -> Claim:
    """Return the claim of `all_hold`, with counts instead of the evidence of many comparisons."""
    combined = all_hold(text, comparisons)
    names = {v: [p.text for p in comparisons if p.verdict == v] for v in ("holds", "does not hold")}
    inconclusive = len(comparisons) - sum(map(len, names.values()))
    against = f": {'; '.join(names['does not hold'])}" if names["does not hold"] else ""
    evidence = (
        f"of {len(comparisons)} comparisons {len(names['holds'])} hold significantly, "
        f"{len(names['does not hold'])} are significantly reversed{against}; {inconclusive} are "
        "inconclusive"
    )
    return Claim(text, combined.verdict, evidence, source)  # type: ignore[arg-type]


def toprank_rank(cells: Cells, measure: str, models: Sequence[str] = ALL_RANKERS) -> int:
    """Return the rank of TopRank among all rankers by their means; 1 is the best."""
    own_mean = _mean_value(cells, "TopRank", measure)
    return 1 + sum(_mean_value(cells, m, measure) > own_mean for m in models if m != "TopRank")


def _first_or_second(cells: Cells, source: str) -> Claim:
    ranks = {m: toprank_rank(cells, m) for m in MEASURES}
    listed = ", ".join(f"{m} {n}" for m, n in ranks.items())
    verdict = "holds" if max(ranks.values()) <= 2 else "does not hold"
    evidence = f"its rank among {len(ALL_RANKERS)}, by the means: {listed}"
    return Claim("TopRank is the best or the second at every measure", verdict, evidence, source)  # type: ignore[arg-type]


def overall_claims(cells: Cells) -> list[Claim]:
    """Return the claim about Figure 4: "best with 11 of 18 points, second with the rest"."""
    ranks = [
        toprank_rank(Cells(c for c in cells if c.labels["data"] == data), m)
        for data in PAPER_DATASETS
        for m in MEASURES
    ]
    first, second = ranks.count(1), ranks.count(2)
    evidence = f"first at {first}, second at {second}, below at {len(ranks) - first - second}"
    holds = first >= 11 and first + second == len(ranks)
    text = "TopRank is the best at 11 of 18 points and the second at the other 7"
    return [Claim(text, "holds" if holds else "does not hold", evidence)]


def variant_claims(cells: Cells) -> list[Claim]:
    """Return a claim per variant of TopRank and data set."""
    return [
        _better_variant(cells, data, name)
        for data in cells.label_values("data")
        for name in VARIANTS
        if name != PRINTED
    ]


def _better_variant(cells: Cells, data: str, name: str) -> Claim:
    """Return the claim that a variant is better, by the mean over all measures per query."""
    variant_mean, printed_mean = (_mean(cells, data=data, variant=v) for v in (name, PRINTED))
    claim = greater(
        f"{name} is better than as printed ({data})", variant_mean, printed_mean, source="ours"
    )
    differences = ", ".join(
        f"{m} {cells.cell(data=data, variant=name, measure=m).ours - printed:+.4f}"
        for m in MEASURES
        for printed in (cells.cell(data=data, variant=PRINTED, measure=m).ours,)
    )
    return replace(claim, evidence=f"mean over the measures {claim.evidence} ({differences})")


def scaling_entry_claims(cells: Cells) -> list[Claim]:
    """Return claims on slack against margin scaling, with everything else equal."""
    claims = []
    for data in cells.label_values("data"):
        for cost in cells.label_values("C"):
            chosen = {"data": data, "C": cost}
            cost_cells = Cells(c for c in cells if chosen.items() <= c.labels.items())
            text = f"TopSlack is better than TopMargin at most measures, C = {cost:g} ({data})"
            claims.append(better_at_most(text, cost_cells, "TopSlack", "TopMargin", source="ours"))
    return claims


SAME_COSTS = [1.0, 100.0]
SEEDS, FAST_SEEDS = 5, 2
DATASETS = {"OHSUMED": "ohsumed", "TD2003": "td2003", "TD2004": "td2004", "MQ2008": "mq2008"}


def _comparison_experiments(
    data: str, listmle: bool = False, costs: Sequence[float] = ()
) -> list[Experiment]:
    """Return the experiments of a data set; without `costs` C has the thinned values."""
    experiments = []
    for target in TARGETS:
        params: dict[str, Any] = {"data": data, "target": target}
        experiments += fold_experiments(
            training.evaluate_rankers,
            {**params, "costs": list(costs)} if costs else params,
            DATASETS[data],
            randomized=False,
        )
        if listmle:
            experiments += fold_experiments(
                training.evaluate_listmle, params, DATASETS[data], runs=SEEDS, fast_runs=FAST_SEEDS
            )
    return experiments


def _without_variants(row: Row) -> bool:
    return "variant" not in row


def _only_scalings(row: Row) -> bool:
    return _without_variants(row) and row["model"] in SCALINGS


def _only_slack_and_toprank(row: Row) -> bool:
    return _without_variants(row) and row["model"] in ("TopSlack", "TopRank")


DESCRIBED = Descriptions(__file__, COSTS=len(COSTS), PRINTED_COSTS=len(PRINTED_COSTS))
ROWS = {2: _only_scalings, 3: _only_slack_and_toprank, 4: _without_variants}
CLAIMS = {2: scaling_claims, 3: aggregation_claims, 4: comparison_claims}


def _figure(number: int, data: str) -> PaperEntry:
    entry = DESCRIBED.entry(
        f"figure{number}",
        _comparison_experiments(data, number == 4),
        CLAIMS[number](data),
        row_filter=ROWS[number],
        paper_experiments=_comparison_experiments(data, number == 4, PRINTED_COSTS),
        data=data,
        numbers=DESCRIBED.texts["NO_NUMBERS" if data in PAPER_DATASETS else "OUR_DATA"],
    )
    return entry if data == "OHSUMED" else replace(entry, name=f"figure{number}-{data.lower()}")


def _overall_entry() -> PaperEntry:
    def experiments(costs: Sequence[float] = ()) -> list[Experiment]:
        return [e for data in PAPER_DATASETS for e in _comparison_experiments(data, True, costs)]

    return DESCRIBED.entry(
        "figure4-all",
        experiments(),
        overall_claims,
        row_filter=_without_variants,
        paper_experiments=experiments(PRINTED_COSTS),
    )


def _votes_entry(data: str) -> PaperEntry:
    return DESCRIBED.entry(
        "votes",
        _comparison_experiments(data),
        variant_claims,
        row_filter=lambda row: "variant" in row,
        paper_experiments=_comparison_experiments(data, costs=PRINTED_COSTS),
        data=data,
        lower=data.lower(),
    )


def _scaling_entry(data: str) -> PaperEntry:
    experiments = [
        experiment
        for target in TARGETS
        for cost in SAME_COSTS
        for experiment in fold_experiments(
            training.evaluate_scalings,
            {"data": data, "target": target, "cost": cost},
            DATASETS[data],
            randomized=False,
        )
    ]
    return DESCRIBED.entry(
        "scaling", experiments, scaling_entry_claims, data=data, lower=data.lower()
    )


def _entries() -> list[PaperEntry]:
    """Return all entries, figure by figure; our own last."""
    figures = [_figure(number, data) for number in CLAIMS for data in DATASETS]
    ours = [make(data) for make in (_scaling_entry, _votes_entry) for data in ("OHSUMED", "MQ2008")]
    return [*figures, _overall_entry(), *ours]


CHENG2014 = PaperStudy(
    "cheng2014",
    "Cheng, Sun, Xie: TopRank: A Novel Top-k Ranking Method Based on Rank Aggregation (2014)",
    {entry.name: entry for entry in _entries()},
    ("firstpage.papers.cheng2014.training", "firstpage.evaluation.aggregation", *MODULES),
)
