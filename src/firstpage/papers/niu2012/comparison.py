"""Tables 4 and 5: ten rankers on grades and on top-k labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.evaluation.measures import p_phrase
from firstpage.papers.niu2012 import learned, printed
from firstpage.papers.niu2012.learned import (
    ALL_BETAS,
    COSTS,
    FIXED_BETA,
    LETOR_TRUTH,
    PENALTIES,
    PRINTED_COSTS,
    PRINTED_ROUNDS,
    PRINTED_SOLVERS,
    RANKERS,
    SIMULATED_STUDY,
    WEAK_RANKERS,
    boosted_name,
    fixed_beta_name,
    ten_rankers,
)
from firstpage.papers.niu2012.printed import GAINS, LETOR_MQ2008, TOP_K
from firstpage.papers.study.claims import ALPHA, all_hold, equivalent, greater, reaches
from firstpage.papers.study.descriptions import Descriptions
from firstpage.papers.study.letor_protocol import FOLDS
from firstpage.papers.study.study import (
    Cells,
    Claim,
    ClaimVerdict,
    Experiment,
    PaperEntry,
    Row,
)

FAMILIES: dict[str, tuple[str, str]] = {
    "FocusedSVM": ("RankSVM", "SVM-MAP"),
    **{
        boosted_name("FocusedBoost", weak): (
            boosted_name("RankBoost", weak),
            boosted_name("AdaRank", weak),
        )
        for weak in WEAK_RANKERS
    },
    "FocusedNet": ("RankNet", "ListNet"),
}
COMPARABLE_MARGIN = 0.02  # largest difference of "comparable" rankers
LETOR_TOLERANCE = 0.01
RANDOM_ORDERS = {"features": 6, "stumps": 4}  # of equal grades; stumps take longer
ADARANK_MAP = ("AdaRank", "AdaRank-MAP", 0.2288)  # LETOR has two variants of AdaRank
LETOR_BASELINES = {
    "RankSVM": "RankSVM",
    "RankBoost": boosted_name("RankBoost", "stumps"),
    "AdaRank": boosted_name("AdaRank", "features"),
}  # with the weak rankers of LETOR


def _grid(values: Sequence[float], name: str) -> str:
    return f"{len(values)} {name} from {values[0]:g} to {values[-1]:g}"


DESCRIBED = Descriptions(
    __file__,
    costs=_grid(COSTS, "values of C"),
    penalties=_grid(PENALTIES, "penalties"),
    printed_costs=_grid(PRINTED_COSTS, "values of C"),
    rates=len(PRINTED_SOLVERS),
    rounds=PRINTED_ROUNDS,
    beta=f"{FIXED_BETA:g}",
    n_costs=len(COSTS),
    n_penalties=len(PENALTIES),
)
FIXED_BETA_EQUAL: str = DESCRIBED.texts["FIXED_BETA_EQUAL"]


def on_mq2007(
    function: Callable[..., list[Row]],
    params: Mapping[str, Any],
    runs: int = 2,
    randomized: bool = True,
) -> Experiment:
    """Return an experiment on MQ2007, joined with MQ2007-list; equal runs draw the same orders."""
    return Experiment(function, params, "truth", runs, 1, "mq2007", randomized, "mq2007-list")


def letor_experiment(
    model: str,
    fold: int,
    truth: str = "top-k",
    runs: int = 2,
    randomized: bool = True,
    **options: Any,
) -> Experiment:
    """Return the experiment of a ranker on a fold of MQ2007."""
    params = {"model": model, "truth": truth, "fold": fold, "betas": ALL_BETAS, **options}
    return on_mq2007(learned.evaluate_on_letor, params, runs, randomized)


def letor_experiments(**options: Any) -> list[Experiment]:
    """Return the experiments of Table 4, by fold, so that each fold is read once.

    `options` are those of the paper's protocol, `printed=True`; else there are none.
    A run has one truth for all folds and rankers.  On grades, only the order of ties that top-k
    rankers learn from is random: one run.
    """
    return [
        letor_experiment(model, fold, truth, runs, truth == "top-k" or spec.top_k, **options)
        for truth, runs in (("top-k", 2), ("graded", 1))
        for fold in FOLDS
        for model, spec in RANKERS.items()
    ]


def orders_experiments(**options: Any) -> list[Experiment]:
    """Return experiments of boosted rankers on top-k labels; the first runs are Table 4's."""
    return [
        letor_experiment(model, fold, runs=RANDOM_ORDERS[weak], **options)
        for weak in WEAK_RANKERS
        for fold in FOLDS
        for model in (boosted_name(name, weak) for name in ("AdaRank", "RankBoost", "FocusedBoost"))
    ]


def ohsumed_experiments(**options: Any) -> list[Experiment]:
    """Return experiments on OHSUMED with top-k labels; its features are not normalized."""
    return [
        Experiment(
            learned.evaluate_on_letor,
            {**letor_experiment(model, fold).params, "normalize": "minmax", **options},
            "truth",
            2,
            1,
            "ohsumed",
        )
        for fold in FOLDS
        for model in RANKERS
    ]


def study_experiments(**options: Any) -> list[Experiment]:
    return [
        Experiment(
            learned.evaluate_on_user_study,
            {"model": model, "truth": truth, "betas": ALL_BETAS, **options},
            "study",
            4,
            1,
        )
        for model in RANKERS
        for truth in ("graded", "top-k")
    ]


def entries() -> list[PaperEntry]:
    """Return Table 4 and its variants, and Table 5."""
    rows = (
        ("table4", letor_experiments, _claims),
        ("table4-orders", orders_experiments, _random_order_claims),
        ("table4-ohsumed", ohsumed_experiments, _ohsumed_claims),
        ("table5", study_experiments, _claims),
    )
    return [
        DESCRIBED.entry(
            key,
            experiments(),
            claims,
            row_filter=_without_beta,
            paper_experiments=experiments(printed=True),
            fields={"paper_values": list(_paper_values("MQ2007"))} if key == "table4" else {},
        )
        for key, experiments, claims in rows
    ]


def _paper_values(data: str) -> list[tuple[dict[str, str], float]]:
    """Return the printed values for every row of a ranker, and for LETOR's tool."""
    rows = [
        ({**labels, "model": model}, value)
        for labels, value in printed.cells(data)
        for model, spec in RANKERS.items()
        if spec.printed == labels["model"]
    ]
    letor_rows = [
        ({**labels, "truth": LETOR_TRUTH}, value)
        for labels, value in rows
        if labels["truth"] == "graded"
    ]
    return [*rows, *letor_rows]


def _without_beta(row: Row) -> bool:
    return "beta" not in row


class ComparisonValues:
    """Values per query of the rankers, by ranker and measure."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.data = cells.label_values("data")[0]

    def __call__(self, model: str, measure: str, truth: str = "") -> Floats:
        truth = truth or ("top-k" if measure in TOP_K else "graded")
        return self.cells.samples(model=model, measure=measure, truth=truth)

    def mean(self, model: str, measure: str, truth: str = "") -> float:
        """Return the mean over folds, as in the table."""
        truth = truth or ("top-k" if measure in TOP_K else "graded")
        return self.cells.cell(model=model, measure=measure, truth=truth).ours

    def by_run(self, model: str) -> Floats:
        """Return the mean of all top-k measures over folds, one value per run."""
        cells = [self.cells.cell(model=model, measure=m, truth="top-k") for m in TOP_K]
        means: Floats = np.mean([c.values.reshape(len(FOLDS), -1) for c in cells], axis=(0, 1))
        return means

    def best(self, measure: str, models: Sequence[str]) -> str:
        """Return the ranker with the highest mean."""
        return max(models, key=lambda model: self.mean(model, measure))


def _claims(cells: Cells) -> list[Claim]:
    values = ComparisonValues(cells)
    return [
        *(_comparable(values, focused) for focused in FAMILIES),
        *_better_than_parents(values),
        *(
            _gain(values, parent, measure, weak)
            for weak in WEAK_RANKERS
            for parent, measure in GAINS
        ),
        *(claim for weak in WEAK_RANKERS for claim in _column_claims(values, weak)),
        _better_at_every_cutoff(
            "on top-k labels FocusedNet is better than top-k ListMLE at every cut-off",
            values,
            "FocusedNet",
            "Top-k ListMLE",
        ),
        all_hold(
            "focused rankers are comparable with top-k ListMLE on top-k labels",
            [
                equivalent(
                    f, values(f, "kNDCG@10"), values("Top-k ListMLE", "kNDCG@10"), COMPARABLE_MARGIN
                )
                for f in FAMILIES
            ],
        ),
        _rises_with_cutoff(values),
        *(
            _same_order(values, measure, weak)
            for weak in WEAK_RANKERS
            for measure in ("NDCG@10", "kNDCG@10")
        ),
        *_reaches_letor(values),
    ]


def _ohsumed_claims(cells: Cells) -> list[Claim]:
    return [
        replace(claim, source="ours") for claim in _better_than_parents(ComparisonValues(cells))
    ]


def _better_than_parents(values: ComparisonValues) -> list[Claim]:
    """Return claims of each focused ranker against both parents."""
    claims = []
    for focused, parents in FAMILIES.items():
        for parent in parents:
            text = f"on top-k labels {focused} is better than {parent}"
            fixed_name = fixed_beta_name(focused)
            claims += [
                _on_average(text, values, focused, parent),
                _better_at_every_cutoff(f"{text} at every cut-off", values, focused, parent),
                replace(
                    _on_average(
                        f"on top-k labels {fixed_name} is better than {parent}",
                        values,
                        fixed_name,
                        parent,
                    ),
                    source="ours",
                    held_equal=FIXED_BETA_EQUAL,
                ),
            ]
    return claims


def _random_order_claims(cells: Cells) -> list[Claim]:
    """Return claims tested over queries, with the difference per random order."""
    values, claims = ComparisonValues(cells), []
    for weak in WEAK_RANKERS:
        focused = boosted_name("FocusedBoost", weak)
        for parent in FAMILIES[focused]:
            for name, held_equal in (
                (focused, ""),
                (fixed_beta_name(focused), FIXED_BETA_EQUAL),
            ):
                claim = _on_average(
                    f"on top-k labels {name} is better than {parent}", values, name, parent
                )
                differences = values.by_run(name) - values.by_run(parent)
                listed = " ".join(f"{value:+.4f}" for value in differences)
                evidence = f"{claim.evidence}; by random order {listed}"
                claims.append(
                    replace(claim, evidence=evidence, source="ours", held_equal=held_equal)
                )
    return claims


def _column_claims(values: ComparisonValues, weak: str) -> list[Claim]:
    """Return claims about the best of ten rankers with the same weak rankers."""
    focused = [name for name in FAMILIES if name in ten_rankers(weak)]
    return [
        _best_of_columns(
            "the best of a column of top-k labels is almost always a focused ranker "
            f"(boosted: {weak})",
            values,
            focused,
            weak,
        ),
        _best_of_columns(
            f"FocusedNet is the best in most columns of top-k labels (boosted: {weak})",
            values,
            ["FocusedNet"],
            weak,
        ),
    ]


def _comparable(values: ComparisonValues, focused: str) -> Claim:
    limit = f"difference below {COMPARABLE_MARGIN:g}"
    text = f"on grades {focused} is comparable with its parents ({limit})"
    return all_hold(
        text,
        [
            equivalent(
                f"{parent}, {measure}",
                values(focused, measure),
                values(parent, measure),
                COMPARABLE_MARGIN,
            )
            for parent in FAMILIES[focused]
            for measure in ("NDCG@10", "ERR")
        ],
    )


def _on_average(text: str, values: ComparisonValues, first: str, second: str) -> Claim:
    """Return the claim that `first` is better by the mean of all eleven measures per query."""
    means = [np.mean([values(model, m) for m in TOP_K], axis=0) for model in (first, second)]
    return greater(f"{text} (mean of all measures)", means[0], means[1])


def _better_at_every_cutoff(text: str, values: ComparisonValues, first: str, second: str) -> Claim:
    """Return the claim that `first` is better at all eleven measures (paired tests)."""
    claims = [greater(m, values(first, m), values(second, m)) for m in TOP_K]
    differences = np.array([values.mean(first, m) - values.mean(second, m) for m in TOP_K])
    significant = {
        v: [c.text for c in claims if c.verdict == v] for v in ("holds", "does not hold")
    }
    verdict: ClaimVerdict = "inconclusive"
    if significant["does not hold"]:
        verdict = "does not hold"
    elif len(significant["holds"]) == len(claims):
        verdict = "holds"
    evidence = (
        f"above at {int((differences > 0).sum())} of {len(claims)}, significantly (p < {ALPHA:g}) "
        f"at {_join(significant['holds'])}; significantly below at "
        f"{_join(significant['does not hold'])}; "
        f"kNDCG@10 {values.mean(first, 'kNDCG@10'):.4f} against "
        f"{values.mean(second, 'kNDCG@10'):.4f}, "
        f"kERR {values.mean(first, 'kERR'):.4f} against {values.mean(second, 'kERR'):.4f}"
    )
    return Claim(text, verdict, evidence)


def _join(names: Sequence[str]) -> str:
    if len(names) == len(TOP_K):
        return "all"
    return ", ".join(names) or "none"


def _gain(values: ComparisonValues, parent: str, measure: str, weak: str) -> Claim:
    printed_gain = GAINS[parent, measure]
    focused, parent_name = boosted_name("FocusedBoost", weak), boosted_name(parent, weak)
    gain = values.mean(focused, measure) / values.mean(parent_name, measure) - 1
    return greater(
        f"FocusedBoost gains on {parent} in {measure}, {weak} (MQ2007: {printed_gain:.2f} %)",
        values(focused, measure),
        values(parent_name, measure),
        detail=f" ({100 * gain:+.2f} %)",
    )


def _best_of_columns(text: str, values: ComparisonValues, names: list[str], weak: str) -> Claim:
    """Return the claim that these rankers have the best means; differences are not tested."""
    winners = {m: values.best(m, ten_rankers(weak)) for m in TOP_K}
    count = sum(best in names for best in winners.values())
    required = len(TOP_K) / 2 if len(names) == 1 else 0.8 * len(TOP_K)
    listed = "; ".join(
        f"{name} {_join([m for m in TOP_K if winners[m] == name])}"
        for name in dict.fromkeys(winners.values())
    )
    evidence = f"{count} of {len(TOP_K)}: {listed}"
    return Claim(text, "holds" if count > required else "does not hold", evidence)


def _rises_with_cutoff(values: ComparisonValues) -> Claim:
    measures = TOP_K[:-1]
    falls = [
        f"{model} from {a} to {b}"
        for model in RANKERS
        for a, b in pairwise(measures)
        if values.mean(model, b) < values.mean(model, a)
    ]
    evidence = "; ".join(falls) if falls else "at every step"
    verdict: ClaimVerdict = "does not hold" if falls else "holds"
    return Claim("kNDCG rises with the cut-off for all rankers", verdict, evidence, "ours")


def _same_order(values: ComparisonValues, measure: str, weak: str) -> Claim:
    """Return the claim that rankers have the printed order, by Kendall's tau of ten rankers."""
    from scipy.stats import kendalltau

    data = "MQ2007" if values.data != SIMULATED_STUDY else "TD2003"
    paper_table = printed.table(data, "top-k" if measure in TOP_K else "graded")
    models = ten_rankers(weak)
    ours = [values.mean(m, measure) for m in models]
    tau = kendalltau(ours, [paper_table[RANKERS[m].printed, measure] for m in models])
    verdict: ClaimVerdict = "inconclusive"
    if tau.pvalue <= ALPHA:
        verdict = "holds" if tau.statistic > 0 else "does not hold"
    ranking = " > ".join(
        f"{m} {values.mean(m, measure):.4f}"
        for m in sorted(models, key=lambda m: -values.mean(m, measure))
    )
    evidence = f"tau {tau.statistic:.2f}, {p_phrase(tau.pvalue)}: {ranking}"
    text = f"rankers are in about the order printed for {data} ({measure}; boosted: {weak})"
    return Claim(text, verdict, evidence)


def _reaches_letor(values: ComparisonValues) -> list[Claim]:
    """Return claims about LETOR's baselines, which are published for MQ2008."""
    if values.data != "MQ2008":
        return []
    published = [(model, *baseline) for model, baseline in LETOR_MQ2008.items()]
    return [
        reaches(
            f"{LETOR_BASELINES[model]} is no worse than LETOR's {name}, NDCG@10 by LETOR's tool",
            values.mean(LETOR_BASELINES[model], "NDCG@10", LETOR_TRUTH),
            value,
            LETOR_TOLERANCE,
            source="ours",
            held_equal=DESCRIBED.texts["LETOR_HELD_EQUAL"],
        )
        for model, name, value in [*published, ADARANK_MAP]
    ]
