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
from firstpage.papers.study.letor_protocol import MODULES, fold_experiments
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperProtocol,
    PaperStudy,
    Plot,
    Row,
    TableLayout,
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
METHOD_NOTE = (
    "Everything is trained twice, for NDCG and for precision at 10. One parameter of every ranker "
    "is tuned on validation data over four values. For TopSlack, TopMargin and RankSVM it is C, "
    "with the values .001, .1, 10 and 1000. (The paper uses 1e-5, 1e-4 .. 1e5. The lowest values "
    "change nothing, and with the highest cutting planes take minutes.) For the others it is the "
    "penalty, from .0001 to .1. TopSlack and TopMargin start from least squares and order equal "
    "labels by score. Features are scaled within queries. Measures follow LETOR's conventions. "
    "Standard errors are over queries."
)
HELD_EQUAL = (
    "queries, folds, scaling of features, linear scores, tuning of one parameter over four values "
    "on the same validation data by the same measure (NDCG@10 or P@10), and the optimum of a "
    "convex loss, or cutting planes to the same gap."
)
TOPRANK_NOT_EQUAL = (
    " Not equal: TopRank reorders the candidates of TopSlack by three more rankers, whose weights "
    "are learned on the validation data. This is part of the method."
)
ALL_NOT_EQUAL = (
    TOPRANK_NOT_EQUAL
    + " TopSlack and TopMargin order equal labels by score. Top-10 ListMLE orders "
    "them at random (five seeds), as in its paper. The others learn from the grades."
)
OUR_DATA_NOTE = " The paper does not use these data."
NO_NUMBERS_NOTE = " The paper has bar charts without numbers."


THINNED = (
    f"C is tuned over {len(COSTS)} of the {len(PRINTED_COSTS)} printed values, 1e-5, 1e-4 .. 1e5."
)
PAPER_NOTE = METHOD_NOTE.replace(
    "over four values. For TopSlack, TopMargin and RankSVM it is C, "
    "with the values .001, .1, 10 and 1000. (The paper uses 1e-5, 1e-4 .. 1e5. The lowest values "
    "change nothing, and with the highest cutting planes take minutes.)",
    "over the printed values. For TopSlack, TopMargin and RankSVM it is C, with the eleven values "
    "1e-5, 1e-4 .. 1e5.",
).replace("from .0001 to .1.", "with four values from .0001 to .1; the paper prints none.")
PAPER_HELD_EQUAL = HELD_EQUAL.replace(
    "over four values on", "(C over eleven values, the penalty over four) on"
)


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


def _entry_name(figure: int, data: str) -> str:
    return f"figure{figure}" if data == "OHSUMED" else f"figure{figure}-{data.lower()}"


def _without_variants(row: Row) -> bool:
    return "variant" not in row


def _only_scalings(row: Row) -> bool:
    return _without_variants(row) and row["model"] in SCALINGS


def _only_slack_and_toprank(row: Row) -> bool:
    return _without_variants(row) and row["model"] in ("TopSlack", "TopRank")


def _figure(
    figure: int,
    data: str,
    title: str,
    statement: str,
    row_filter: Callable[[Row], bool],
    claims: Callable[[Cells], list[Claim]],
) -> PaperEntry:
    note = METHOD_NOTE + (NO_NUMBERS_NOTE if data in PAPER_DATASETS else OUR_DATA_NOTE)
    return PaperEntry(
        _entry_name(figure, data),
        f"{title} on {data}",
        statement,
        _comparison_experiments(data, figure == 4),
        claims,
        [("", Plot("model", None, f"NDCG and precision at 1, 3 and 10 on {data}"))],
        row_filter,
        note=note,
        layouts=[("", TableLayout("model", "measure"))],
        held_equal=HELD_EQUAL + ("", TOPRANK_NOT_EQUAL, ALL_NOT_EQUAL)[figure - 2],
        thinned=THINNED,
        paper_protocol=PaperProtocol(
            _comparison_experiments(data, figure == 4, PRINTED_COSTS),
            PAPER_NOTE + (NO_NUMBERS_NOTE if data in PAPER_DATASETS else OUR_DATA_NOTE),
            PAPER_HELD_EQUAL + ("", TOPRANK_NOT_EQUAL, ALL_NOT_EQUAL)[figure - 2],
        ),
    )


def _figures(data: str) -> list[PaperEntry]:
    return [
        _figure(
            2,
            data,
            "TopSlack and TopMargin",
            "Slack scaling is in general more accurate than margin scaling: better at 5 of 6 "
            "points of OHSUMED, 4 of TD2004, 3 of TD2003.",
            _only_scalings,
            scaling_claims(data),
        ),
        _figure(
            3,
            data,
            "TopRank and TopSlack",
            "Aggregation is better than TopSlack at all measures on all data.",
            _only_slack_and_toprank,
            aggregation_claims(data),
        ),
        _figure(
            4,
            data,
            "TopRank and all others",
            "The two top-k rankers are significantly better than all others at all measures; "
            "TopRank is the best at 11 of 18 points and the second at the rest.",
            _without_variants,
            comparison_claims(data),
        ),
    ]


def _overall_entry() -> PaperEntry:
    def experiments(costs: Sequence[float] = ()) -> list[Experiment]:
        return [e for data in PAPER_DATASETS for e in _comparison_experiments(data, True, costs)]

    return PaperEntry(
        "figure4-all",
        "Ranks of TopRank on all three data sets",
        "TopRank is the best at 11 of 18 points and the second at the other 7.",
        experiments(),
        overall_claims,
        row_filter=_without_variants,
        note=METHOD_NOTE + NO_NUMBERS_NOTE,
        layouts=[(data, TableLayout("model", "measure", data)) for data in PAPER_DATASETS],
        held_equal=HELD_EQUAL + ALL_NOT_EQUAL,
        thinned=THINNED,
        paper_protocol=PaperProtocol(
            experiments(PRINTED_COSTS),
            PAPER_NOTE + NO_NUMBERS_NOTE,
            PAPER_HELD_EQUAL + ALL_NOT_EQUAL,
        ),
    )


def _votes_entry(data: str) -> PaperEntry:
    return PaperEntry(
        f"votes-{data.lower()}",
        f"Variants of the votes on {data}",
        "t, k and the rule for the weights are fixed, without alternatives.",
        _comparison_experiments(data),
        variant_claims,
        row_filter=lambda row: "variant" in row,
        note="Each row changes one detail of the first. As printed: credit within the first half "
        "of 100 candidates, and weights proportional to the measure of the voters on validation "
        "data.",
        layouts=[("", TableLayout("variant", "measure"))],
        held_equal="the fitted rankers, their scores, the base order of the candidates, and the "
        "validation queries for the weights. Each variant changes only what it names.",
        thinned=THINNED,
        paper_protocol=PaperProtocol(_comparison_experiments(data, costs=PRINTED_COSTS)),
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
    return PaperEntry(
        f"scaling-{data.lower()}",
        f"Slack and margin scaling, everything else equal, on {data}",
        "Slack scaling is better behaved than margin scaling.",
        experiments,
        scaling_entry_claims,
        note="Both have the same C, the same least-squares start and the same true ranking (equal "
        "labels by score). Where the optimum is w = 0, the order of the start is used; such folds "
        "are counted. There TopSlack also tries the direction of TopMargin.",
        held_equal="everything but the scaling: queries, folds, features, C, the start, the true "
        "ranking, and the gap at which cutting planes stop. Nothing is tuned. Not equal: where its "
        "optimum is w = 0, TopSlack also tries the direction of TopMargin.",
    )


def _entries() -> list[PaperEntry]:
    """Return all entries, figure by figure; our own last."""
    figures_by_data = {data: _figures(data) for data in DATASETS}
    figures = [figures_by_data[data][i] for i in range(3) for data in DATASETS]
    ours = [make(data) for make in (_scaling_entry, _votes_entry) for data in ("OHSUMED", "MQ2008")]
    return [*figures, _overall_entry(), *ours]


CHENG2014 = PaperStudy(
    "cheng2014",
    "Cheng, Sun, Xie: TopRank: A Novel Top-k Ranking Method Based on Rank Aggregation (2014)",
    {entry.name: entry for entry in _entries()},
    ("firstpage.papers.cheng2014.training", "firstpage.evaluation.aggregation", *MODULES),
)
