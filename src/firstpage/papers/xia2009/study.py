"""The study of Xia, Liu and Li (2009): entries, claims about the tables, and our thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from firstpage.core import Floats
from firstpage.papers.study.claims import (
    all_hold,
    equivalent,
    greater,
    greater_at,
    no_greater,
    reaches,
    within,
)
from firstpage.papers.study.letor_protocol import FOLDS, MODULES, fold_experiments
from firstpage.papers.study.study import (
    Cell,
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperProtocol,
    PaperStudy,
    Plot,
    TableLayout,
)
from firstpage.papers.xia2009 import training
from firstpage.papers.xia2009.training import (
    BASELINES,
    DEFAULT_TRAINING,
    DEPTHS,
    LETOR,
    MEASURES,
    SETTINGS,
    TRAININGS,
    TUNED_TRAINING,
    method_name,
    paper_values,
)

TOP_K_LISTMLE = ("Top-1 ListMLE", "Top-3 ListMLE", "Top-10 ListMLE")
TOP_10 = "Top-10 ListMLE"
COMPARABLE_MARGIN = 0.05  # the paper's own "comparable" numbers are up to .029 apart
TOLERANCE_AT_1, TOLERANCE = 0.04, 0.02  # below the printed numbers, at rank 1 and deeper
LETOR_TOLERANCE = 0.01  # below the means published by LETOR


def seed_means(cell: Cell) -> Floats:
    """Return the mean over folds per seed; values are ordered by fold, then by seed."""
    means: Floats = cell.values.reshape(len(FOLDS), -1).mean(axis=0)
    return means


def _seed_range(cell: Cell) -> str:
    """Return the range of the means over seeds as text."""
    means = seed_means(cell)
    if len(means) < 2:
        return ""
    return f" (seeds {means.min():.3f} to {means.max():.3f})"


def table1_claims(cells: Cells) -> list[Claim]:
    """Return the claims about Table 1."""
    claims = [
        all_hold(
            f"{top} is comparable to ListMLE: less than {COMPARABLE_MARGIN} apart at every measure",
            [
                equivalent(
                    m,
                    cells.samples(method=top, measure=m),
                    cells.samples(method="ListMLE", measure=m),
                    COMPARABLE_MARGIN,
                )
                for m in MEASURES
            ],
        )
        for top in TOP_K_LISTMLE
    ]
    claims += [
        all_hold(
            f"{name} is not below the printed numbers by more than {TOLERANCE_AT_1} at rank 1 "
            f"and {TOLERANCE} at 3 and 10",
            [_reaches_paper(cells.cell(method=name, measure=m)) for m in MEASURES],
            source="ours",
        )
        for name in ("ListMLE", TOP_10)
    ]
    return claims + [_within_two_errors(cells, name) for name in TOP_K_LISTMLE[:2]]


def _reaches_paper(cell: Cell) -> Claim:
    assert cell.paper is not None
    measure = str(cell.labels["measure"])
    return reaches(
        measure, cell.ours, cell.paper, TOLERANCE_AT_1 if measure.endswith("@1") else TOLERANCE
    )


def _within_two_errors(cells: Cells, name: str) -> Claim:
    """Return the claim that printed numbers are within two standard errors of ours."""
    claims = []
    for measure in MEASURES:
        cell = cells.cell(method=name, measure=measure)
        assert cell.paper is not None
        half_width = round(2 * (cell.se or 0.0), 3)
        low, high = round(cell.paper - half_width, 3), round(cell.paper + half_width, 3)
        claims.append(within(measure, cell.samples, low, high, _seed_range(cell)))
    text = f"{name}: the printed numbers are within two standard errors (over queries) of ours"
    return all_hold(text, claims, source="ours")


def table2_claims(cells: Cells) -> list[Claim]:
    """Return the claims about Tables 2 and 3: "significantly boosted, in terms of all measures"."""
    claims = [
        all_hold(
            f"{top} is better than ListMLE at every measure",
            greater_at(cells, {"method": top}, {"method": "ListMLE"}, measure=MEASURES),
        )
        for top in TOP_K_LISTMLE
    ]
    return [*claims, _ndcg_equals_precision_at_1(cells)]


def _ndcg_equals_precision_at_1(cells: Cells) -> Claim:
    text = "NDCG@1 equals P@1, as there are two grades"
    pairs = [
        [cells.samples(method=name, measure=m) for m in ("NDCG@1", "P@1")]
        for name in cells.label_values("method")
    ]
    difference = max(float(np.abs(ndcg - precision).max()) for ndcg, precision in pairs)
    evidence = f"the largest difference of a query is {difference:.2g}"
    return Claim(text, "holds" if difference < 1e-5 else "does not hold", evidence)


def per_setting(claims: Callable[[Cells], list[Claim]]) -> Callable[[Cells], list[Claim]]:
    """Return claims about the rows with default parameters, and about those with tuned ones."""

    def setting_claims(cells: Cells) -> list[Claim]:
        return [
            replace(claim, text=f"{claim.text} ({settings})")
            for settings in cells.label_values("settings")
            for claim in claims(_with_setting(cells, settings))
        ]

    return setting_claims


def _with_setting(cells: Cells, settings: str) -> Cells:
    return Cells(c for c in cells if c.labels["settings"] == settings)


def comparison_claims(cells: Cells) -> list[Claim]:
    """Return the claims about Table 4."""
    others = [c for c in cells.label_values("method") if c != TOP_10]

    def mean(measure: str) -> Floats:
        values = [cells.samples(method=o, measure=measure) for o in others]
        means: Floats = np.mean(values, axis=0)
        return means

    fair = [
        no_greater(m, mean(m), cells.samples(method=TOP_10, measure=m), COMPARABLE_MARGIN)
        for m in MEASURES
    ]
    return [
        all_hold(
            f"{TOP_10} performs fairly well: the mean of the others is less than "
            f"{COMPARABLE_MARGIN} "
            "above it at every measure",
            fair,
        ),
        best_at_first_rank(cells, others),
    ]


def table4_claims(cells: Cells) -> list[Claim]:
    """Return the claims about Table 4 per setting, and about LETOR's means for the defaults."""
    default_cells = _with_setting(cells, SETTINGS[0])
    return per_setting(comparison_claims)(cells) + [
        _reaches_letor(f"{name} is not below LETOR's published means", default_cells, name)
        for name in LETOR
    ]


def best_at_first_rank(cells: Cells, others: Sequence[str]) -> Claim:
    """Return the claim "for N@1 and P@1, it significantly outperforms all the other methods"."""
    return all_hold(
        f"{TOP_10} is significantly better than all others at NDCG@1 and P@1",
        [
            greater(
                f"{o}, {m}",
                cells.samples(method=TOP_10, measure=m),
                cells.samples(method=o, measure=m),
            )
            for m in ("NDCG@1", "P@1")
            for o in others
        ],
    )


def table5_claims(cells: Cells) -> list[Claim]:
    """Return the claims about Tables 5 and 6."""
    others = [c for c in cells.label_values("method") if c != TOP_10]
    return [_best_at_almost_all(cells, others), best_at_first_rank(cells, others)]


def _best_at_almost_all(cells: Cells, others: Sequence[str]) -> Claim:
    """Return the claim of the best means at all measures but one, with significance counts."""
    top_10 = {m: cells.cell(method=TOP_10, measure=m) for m in MEASURES}
    rivals = {
        m: max((cells.cell(method=o, measure=m) for o in others), key=lambda c: c.ours)
        for m in MEASURES
    }
    leads = {m: top_10[m].ours - rivals[m].ours for m in MEASURES}
    won = [m for m in MEASURES if leads[m] >= 0]
    tested = [greater(m, top_10[m].samples, rivals[m].samples) for m in MEASURES]
    significant = sum(claim.verdict == "holds" for claim in tested)
    differences = ", ".join(f"{m} {leads[m]:+.3f} ({rivals[m].labels['method']})" for m in MEASURES)
    return Claim(
        f"{TOP_10} is the best at almost all measures (all but one)",
        "holds" if len(won) >= len(MEASURES) - 1 else "does not hold",
        f"ahead at {len(won)} of {len(MEASURES)}, {significant} of them significantly: "
        f"{differences}",
    )


def training_claims(cells: Cells) -> list[Claim]:
    """Return the claims on whether it matters how the loss is minimized."""

    def ndcg_10(k: object, training: str) -> Floats:
        return cells.samples(k=k, training=training, measure="NDCG@10")

    claims = [
        equivalent(
            f"{name}: SGD and the optimum, both tuned on validation data, differ by less than "
            ".03 at NDCG@10",
            ndcg_10(k, "SGD"),
            ndcg_10(k, TUNED_TRAINING),
            0.03,
            source="ours",
        )
        for k, name in (("n", "ListMLE"), (1, "Top-1 ListMLE"), (3, "Top-3 ListMLE"), (10, TOP_10))
    ]
    for name in LETOR:
        text = f"{name} with parameters tuned on validation data is not below LETOR's means"
        claims.append(_reaches_letor(text, cells, name, training="tuned"))
    return claims


def _reaches_letor(text: str, cells: Cells, name: str, **labels: str) -> Claim:
    claims = [
        reaches(m, cells.cell(method=name, measure=m, **labels).ours, published, LETOR_TOLERANCE)
        for m, published in zip(MEASURES, LETOR[name], strict=True)
    ]
    return all_hold(f"{text} by more than {LETOR_TOLERANCE}", claims, source="ours")


def sparse_claims(cells: Cells) -> list[Claim]:
    """Return the claims about the simulation: long lists of ties outweigh few relevant ones."""

    def ndcg_10(name: str, fraction: float, training: str = "optimum") -> Floats:
        return cells.samples(method=name, relevant=fraction, training=training, measure="NDCG@10")

    few, many = min(cells.label_values("relevant")), max(cells.label_values("relevant"))
    claims = [
        greater(
            f"{top} is better than ListMLE at NDCG@10 where {few:.0%} are relevant",
            ndcg_10(top, few),
            ndcg_10("ListMLE", few),
            source="ours",
        )
        for top in TOP_K_LISTMLE
    ]
    gain = {f: ndcg_10(TOP_10, f) - ndcg_10("ListMLE", f) for f in (few, many)}
    text = f"the gain of {TOP_10} is greater where {few:.0%} are relevant than where {many:.0%} are"
    claims.append(greater(text, gain[few], gain[many], source="ours"))
    text = f"ListMLE is better if equal labels share their ranks ({few:.0%} relevant)"
    shared, unshared = (
        ndcg_10("ListMLE", few, name) for name in ("optimum, ties share ranks", "optimum")
    )
    return [*claims, greater(text, shared, unshared, source="ours")]


SEEDS, FAST_SEEDS = 5, 2
RELEVANT_FRACTIONS = (0.01, 0.1, 0.3)  # of relevant documents in simulated lists
LAYOUT = TableLayout("method", "measure")
METHOD_NOTE = (
    "The model is linear and trained to the optimum of its loss (L-BFGS, default penalty). Ties of "
    "the truth are broken at random, with five seeds. Features are scaled within queries. Measures "
    "follow LETOR's conventions. k is the depth, and n the full list. Standard errors are over "
    "queries. The paper uses stochastic gradient descent; the entry trainings compares it."
)
COMPARISON_NOTE = (
    METHOD_NOTE
    + " There are two tables: all rankers with default parameters, and all rankers with one "
    "parameter tuned on validation data by NDCG@10 over five values (RankSVM: C; RankBoost: the "
    "stopping tolerance; the others: the penalty). The paper takes the numbers of the other "
    "rankers from the LETOR page."
)
SIMULATED_LOSSES_EQUAL = (
    "queries, runs, scaling of features, linear scores, the optimum of a convex loss, the penalty, "
    "and the random orders of equal grades."
)
LOSSES_EQUAL = (
    "queries, folds, scaling of features, linear scores, the optimum of a convex loss, the "
    "penalty, and the random orders of equal grades. Not equal: a top-k loss has fewer terms, so "
    "that the same penalty has more effect. The entry trainings tunes the penalty for each loss."
)
RANKERS_EQUAL = (
    "queries, folds, scaling of features and tuning. All rankers have default parameters, or all "
    "have one parameter tuned over five values on the same validation data by the same measure. "
    "Each claim compares rows of one kind. Not equal: RankBoost adds stumps, and its number of "
    "rounds is tuned on validation data in both kinds; the others have linear scores. ListMLE "
    "learns from a random order of equal grades, as in the paper; the others learn from the grades."
)


def _listmle_experiments(
    data: str, dataset: str, k: training.Depth, training_name: str = DEFAULT_TRAINING
) -> list[Experiment]:
    params = {"data": data, "k": k, "training": training_name}
    randomized = TRAININGS[training_name][0]["ties"] == "random"
    # SGD takes 50 times as long
    runs, fast_runs = (FAST_SEEDS, 1) if training_name == "SGD" else (SEEDS, FAST_SEEDS)
    options = {"runs": runs, "fast_runs": fast_runs, "randomized": randomized}
    return fold_experiments(training.evaluate_listmle, params, dataset, **options)


def _baseline_experiments(
    data: str, dataset: str, method: str, tuned: bool = False
) -> list[Experiment]:
    """Return the experiments of a baseline; only RankCosine starts at random."""
    params = {"data": data, "method": method, "tuned": tuned}
    options = {"runs": SEEDS, "fast_runs": FAST_SEEDS, "randomized": method == "RankCosine"}
    return fold_experiments(training.evaluate_baseline, params, dataset, **options)


THINNED = (
    "ListMLE is trained to the optimum of its loss, instead of by stochastic gradient descent with "
    "one step per query."
)
PAPER_NOTE = (
    "The model is linear and trained by stochastic gradient descent, as in the paper: one step per "
    "query, 100 epochs; rate (1e-5 to 1e-1) and epoch are tuned on validation data, as the paper "
    "gives none. Ties of the truth are broken at random, with two seeds. Features are scaled "
    "within queries. Measures follow LETOR's conventions. k is the depth, and n the full list. "
    "Standard errors are over queries."
)
PAPER_LOSSES_EQUAL = (
    "queries, folds, scaling of features, linear scores, stochastic gradient descent with the same "
    "five rates and 100 epochs, tuned on the same validation data, no penalty, and the random "
    "orders of equal grades."
)


def _depth_table(
    number: int, data: str, statement: str, claims: Callable[[Cells], list[Claim]]
) -> PaperEntry:
    """Return Table 1, 2 or 3."""
    dataset = data.lower()
    return PaperEntry(
        f"table{number}",
        f"ListMLE and top-k ListMLE on {data}",
        statement,
        [experiment for k in DEPTHS for experiment in _listmle_experiments(data, dataset, k)],
        claims,
        paper_values=paper_values(data, tuple(method_name(k) for k in DEPTHS)),
        note=METHOD_NOTE,
        layouts=[("", LAYOUT)],
        held_equal=LOSSES_EQUAL,
        thinned=THINNED,
        paper_protocol=PaperProtocol(
            [e for k in DEPTHS for e in _listmle_experiments(data, dataset, k, "SGD")],
            PAPER_NOTE,
            PAPER_LOSSES_EQUAL,
        ),
    )


def _comparison_table(
    number: int, data: str, statement: str, claims: Callable[[Cells], list[Claim]]
) -> PaperEntry:
    """Return Table 4, 5 or 6."""
    dataset = data.lower()

    def experiments(tuned_training: str) -> list[Experiment]:
        return [
            experiment
            for tuned, training_name in ((False, DEFAULT_TRAINING), (True, tuned_training))
            for method in (*BASELINES, None)
            for experiment in (
                _listmle_experiments(data, dataset, 10, training_name)
                if method is None
                else _baseline_experiments(data, dataset, method, tuned)
            )
        ]

    return PaperEntry(
        f"table{number}",
        f"Top-10 ListMLE and other rankers on {data}",
        statement,
        experiments(TUNED_TRAINING),
        claims,
        paper_values=paper_values(data, (*BASELINES, method_name(10))),
        note=COMPARISON_NOTE,
        layouts=[(kind, TableLayout("method", "measure", kind)) for kind in SETTINGS],
        held_equal=RANKERS_EQUAL,
        thinned=THINNED,
        paper_protocol=PaperProtocol(
            experiments("SGD"),
            COMPARISON_NOTE + " In the table of tuned parameters ListMLE is trained by stochastic "
            "gradient descent, as in the paper; its rate and its epoch are tuned.",
            RANKERS_EQUAL,
        ),
    )


def _training_entry() -> PaperEntry:
    data, dataset = "OHSUMED", "ohsumed"
    experiments = [
        experiment
        for name in TRAININGS
        for k in DEPTHS
        for experiment in _listmle_experiments(data, dataset, k, name)
    ]
    experiments += [
        experiment
        for method in BASELINES
        for experiment in _baseline_experiments(data, dataset, method, tuned=True)
    ]
    return PaperEntry(
        "trainings",
        "Tables 1 and 4 by training method (OHSUMED)",
        "Stochastic gradient descent is used; no details are given.",
        experiments,
        training_claims,
        note="optimum: as in Table 1. optimum, l2 tuned: the penalty is tuned on validation data. "
        "SGD: one step per query, 100 epochs, two seeds; rate (1e-5 to 1e-1) and epoch are tuned "
        "on validation data. optimum, ties share ranks: equal labels share their ranks instead of "
        "a random order. tuned: the baselines, with one parameter tuned on validation data over "
        "five values.",
        layouts=[(name, TableLayout("method", "measure", name)) for name in (*TRAININGS, "tuned")],
        held_equal="queries, folds, scaling of features, loss and random orders of equal grades. "
        "SGD (five rates, and the epoch) and the penalty (five values) are tuned on the same "
        "validation data. Claims compare these two. Not equal: SGD has two seeds, the optimum "
        "five. Queries are compared by their means over seeds.",
    )


def _sparse_entry() -> PaperEntry:
    trainings = (DEFAULT_TRAINING, "optimum, ties share ranks")
    experiments = [
        Experiment(
            training.evaluate_on_simulated_lists,
            {"k": k, "training": name, "relevant": fraction},
            f"sparse {fraction}",
            runs=10,
            fast_runs=3,
        )
        for fraction in RELEVANT_FRACTIONS
        for name in trainings
        for k in DEPTHS
    ]
    return PaperEntry(
        "sparse",
        "Top-k ListMLE where few documents are relevant (simulated)",
        "Top-k ListMLE is far better on TD2003 and TD2004, where about one document in a hundred "
        "is relevant, and no better on OHSUMED, where three in ten are.",
        experiments,
        sparse_claims,
        row_filter=lambda row: row["measure"] == "NDCG@10",
        plots=[
            (name, Plot("method", "relevant", f"NDCG@10; {name}", ["ListMLE"]))
            for name in trainings
        ],
        note="SIMULATED, in place of TD2003 and TD2004. Lists have 500 documents with two grades "
        "and 44 features; the truth is linear with noise. There are 30 training and 100 test "
        "queries. The simulation shows why the gain of the paper is to be expected, not how large "
        "it is on those data.",
        held_equal=SIMULATED_LOSSES_EQUAL,
    )


BOOSTED_STATEMENT = "With the modification ListMLE is significantly better in all measures."
BEST_STATEMENT = (
    "Top-10 ListMLE is the best in almost all measures, and significantly so at N@1 and P@1."
)
ENTRIES = (
    _depth_table(1, "OHSUMED", "All four losses are comparable.", table1_claims),
    _depth_table(2, "TD2003", BOOSTED_STATEMENT, table2_claims),
    _depth_table(3, "TD2004", BOOSTED_STATEMENT, table2_claims),
    _comparison_table(
        4,
        "OHSUMED",
        "Top-10 ListMLE performs fairly well, and is significantly the best at N@1 and P@1.",
        table4_claims,
    ),
    _comparison_table(5, "TD2003", BEST_STATEMENT, per_setting(table5_claims)),
    _comparison_table(6, "TD2004", BEST_STATEMENT, per_setting(table5_claims)),
    _training_entry(),
    _sparse_entry(),
)
XIA2009 = PaperStudy(
    "xia2009",
    "Xia, Liu, Li: Statistical Consistency of Top-k Ranking (2009)",
    {entry.name: entry for entry in ENTRIES},
    ("firstpage.papers.xia2009.training", *MODULES),
)
