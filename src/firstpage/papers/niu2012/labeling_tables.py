"""Tables 1 to 3: effort of labeling, and agreement of two assessors with either tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.labeling import Agreement, compare_methods
from firstpage.papers.niu2012 import labeling, printed
from firstpage.papers.niu2012.labeling import DOCUMENTS, DOUBLE_JUDGED, VOTES_DATA, Crowd, K
from firstpage.papers.niu2012.printed import EFFORT
from firstpage.papers.study.claims import all_hold, below, equivalent, greater, within
from firstpage.papers.study.descriptions import Descriptions
from firstpage.papers.study.study import (
    Cells,
    Claim,
    ClaimVerdict,
    Experiment,
    PaperEntry,
    Row,
)

STRATEGIES = ["heap", "heap-memo", "heap-closure", "insertion"]
EXPECTED_JUDGMENTS = {"heap": 150.8, "heap-memo": 135.8, "heap-closure": 130.4, "insertion": 115.6}
SIZES, TOPS = [50, 100, 200, 400, 800], [10]
GRADING_TAKES_LONGER = (
    "grading a document takes 2 to 3 times as long as comparing a pair (13.87 s, 5.51 s)"
)
CONSISTENT_DATA = f"as many texts as {VOTES_DATA}"
COMPARABLE_RATIO = 4 / 3  # largest ratio of "comparable" times


def _table1_claims(cells: Cells) -> list[Claim]:
    def judgments(tool: str) -> Floats:
        return cells.samples(data="simulated", tool=tool, measure="judgments")

    ratio = _minutes(cells, "heap") / _minutes(cells, "five-grade").mean()
    sizes = cells.label_values("documents")
    per_document = {n: cells.samples(documents=n, k=K) / n for n in sizes}
    return [
        Claim(GRADING_TAKES_LONGER, "inconclusive", "simulated assessors take no time"),
        _around_log_k(judgments("heap") / DOCUMENTS),
        within(
            "the time per query is comparable",
            ratio,
            1 / COMPARABLE_RATIO,
            COMPARABLE_RATIO,
            " times as long at the seconds of the paper and our judgments",
        ),
        all_hold(
            "the number of judgments is at most of the order of n log k",
            [
                below(f"{n} documents", per_document[n], float(np.log2(K)), " per document")
                for n in sizes
            ],
        ),
        greater(
            "longer lists need fewer judgments per document on average, since few later documents "
            "enter the heap",
            per_document[sizes[0]],
            per_document[sizes[-1]],
            detail=f" judgments per document ({sizes[0]}, {sizes[-1]} documents)",
            source="ours",
        ),
        all_hold(
            "the number of judgments is that expected for a random order",
            [
                within(strategy, judgments(strategy), mean - 3, mean + 3)
                for strategy, mean in EXPECTED_JUDGMENTS.items()
            ],
            source="ours",
        ),
        within(
            "the heap as printed needs the 142.76 pairs of the paper",
            judgments("heap"),
            142.76 - 4,
            142.76 + 4,
            " (4: two standard errors of 50 queries)",
            source="ours",
        ),
        _minutes_are_consistent(),
    ]


def _votes_effort_claims(cells: Cells) -> list[Claim]:
    def judgments(tool: str, data: str) -> Floats:
        return cells.samples(data=data, tool=tool, measure="judgments")

    seconds = cells.cell(measure="seconds").ours
    texts = cells.samples(data=VOTES_DATA, measure="texts")
    per_document = judgments("heap", VOTES_DATA) / texts
    return [
        Claim(
            GRADING_TAKES_LONGER,
            "inconclusive",
            f"there are no grades of these texts; a pair took {seconds:.0f} s (median; three to a "
            "sheet, and a reason to be written for each)",
        ),
        _around_log_k(per_document),
        greater(
            "the heap needs fewer judgments from people, who may answer 'equal', than from "
            "consistent assessors",
            judgments("heap", CONSISTENT_DATA),
            judgments("heap", VOTES_DATA),
            source="ours",
        ),
    ]


def _around_log_k(judgments: Floats) -> Claim:
    low, high = float(np.log(K)), float(np.log2(K))
    text = "judgments per document are around log k"
    return within(text, judgments, low, high, " (ln k to log2 k)")


def _minutes(cells: Cells, tool: str) -> Floats:
    return cells.samples(data="simulated", tool=tool, measure="minutes at the paper's seconds")


def _minutes_are_consistent() -> Claim:
    """Return the claim that minutes of Table 1 are seconds times judgments."""
    products, consistent = [], True
    for tool, (seconds, minutes, judgments) in EFFORT.items():
        product = seconds * judgments / 60
        products.append(f"{tool}: {seconds} s x {judgments:g} = {product:.2f}, printed {minutes}")
        consistent = consistent and abs(product - minutes) <= 0.05
    text = "the printed minutes per query are the printed seconds times judgments"
    verdict: ClaimVerdict = "holds" if consistent else "does not hold"
    return Claim(text, verdict, "; ".join(products), "ours")


STATISTICS = ("overall", "without ties")  # of agreement
AGREEMENT_OF_TOPS = "two assessors agree on 74.5 % and, without ties, on 89.7 %"
TOP_RANGES = ((0.725, 0.765), (0.877, 0.917))
PAIRS_PER_QUERY = 50 * 49 / 2  # of a query
GRADING_NOISE = 0.7  # of graders, which reproduces Table 3
EQUAL_NOISE, MORE_NOISE = "simulated assessors", f"grading noise {GRADING_NOISE:g}"
EQUAL_NOISE_EXPERIMENT = Experiment(
    labeling.simulated_agreement, {"noise": Crowd().noise}, runs=40, fast_runs=10
)
TABLE3_EXPERIMENTS = [
    EQUAL_NOISE_EXPERIMENT,
    Experiment(labeling.simulated_agreement, {"noise": GRADING_NOISE}, runs=40, fast_runs=10),
    Experiment(labeling.false_positive_rates, runs=40, fast_runs=10),
]


def _without_grades(row: Row) -> bool:
    return row.get("tool") != "graded" and not str(row.get("matrix", "")).startswith("graded")


def _matrix_values(tool: str, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        (
            {"matrix": f"{tool}, {name}", "assessor 1": row, "assessor 2": column},
            printed.AGREEMENT[tool][i][j],
        )
        for i, row in enumerate(printed.SIGNS)
        for j, column in enumerate(printed.SIGNS)
    ]


def _statistic_values(tool: str, name: str) -> list[tuple[dict[str, str], float]]:
    """Return printed agreement; chance, kappa and ties follow from the printed tables."""
    table = printed_agreement(tool).symmetrized()
    values = {
        "overall": printed.OVERALL[tool],
        "without ties": printed.WITHOUT_TIES[tool],
        "chance": round(table.chance, 4),
        "kappa": round(table.kappa, 4),
        "ties": round(table.ties[0], 4),
    }
    return [
        ({"assessors": name, "tool": tool, "measure": measure}, value)
        for measure, value in values.items()
    ]


def printed_agreement(tool: str) -> Agreement:
    """Return the printed table as counts of the pairs of four queries."""
    return Agreement(
        np.maximum(printed.joint_agreement(tool), 0.0) * PAIRS_PER_QUERY * DOUBLE_JUDGED
    )


def _agree_within(
    text: str, values: Sequence[Floats], ranges: Sequence[tuple[float, float]], **source: Any
) -> Claim:
    """Return the claim that agreement, overall and without ties, is in these ranges."""
    rows = zip(STATISTICS, values, ranges, strict=True)
    return all_hold(text, [within(name, each, *ends) for name, each, ends in rows], **source)


def _table2_claims(cells: Cells) -> list[Claim]:
    def values(measure: str) -> Floats:
        return cells.samples(tool="top-k", measure=measure)

    forced = 40 * 39 / (50 * 49)
    weights = printed.joint_agreement("top-k").sum(axis=1)
    return [
        _agree_within(
            f"{AGREEMENT_OF_TOPS} (by design of the simulation)",
            (values("overall"), values("without ties")),
            TOP_RANGES,
            source="ours",
        ),
        within(
            "ties are the pairs outside the top ten, which are forced: 63.7 % of all",
            np.array([weights[1]]),
            forced - 0.005,
            forced + 0.005,
            " by the row weights that follow from the printed totals",
            source="ours",
        ),
        within(".47 of pairs would agree by chance", values("chance"), 0.46, 0.48, source="ours"),
    ]


def _votes_agreement_claims(cells: Cells) -> list[Claim]:
    def values(measure: str, tool: str) -> Floats:
        return cells.samples(tool=tool, measure=measure)

    votes, tops = values("without ties", "pairs"), values("without ties", "top-k")
    return [
        _agree_within(
            f"{AGREEMENT_OF_TOPS}, within two points",
            (values("overall", "top-k"), tops),
            TOP_RANGES,
        ),
        greater(
            "labels of the heap agree less than the votes they come from, without ties: it "
            "trusts every answer",
            votes,
            tops,
            source="ours",
        ),
        greater(
            "they also agree less by kappa",
            values("kappa", "pairs"),
            values("kappa", "top-k"),
            source="ours",
        ),
        Claim(
            "assessors agree more by top-k labels than by grades",
            "inconclusive",
            "there are no grades of these texts",
        ),
    ]


def _table3_claims(cells: Cells) -> list[Claim]:
    by_statistic = {
        measure: (_table3_values(cells, measure, "top-k"), _table3_values(cells, measure, "graded"))
        for measure in ("overall", "without ties", "kappa")
    }
    return [
        *_printed_table3_claims(by_statistic),
        *_equal_noise_claims(by_statistic),
        *_grading_noise_claims(cells),
    ]


def _table3_values(cells: Cells, measure: str, tool: str, name: str = EQUAL_NOISE) -> Floats:
    return cells.samples(assessors=name, tool=tool, measure=measure)


def _printed_table3_claims(by_statistic: dict[str, tuple[Floats, Floats]]) -> list[Claim]:
    """Return the claims of the paper, about simulated assessors and the printed tables."""
    tests = compare_methods(printed_agreement("top-k"), printed_agreement("graded"))
    return [
        greater(
            "assessors agree more by top-k labels (simulated assessors, same noise)",
            *by_statistic["overall"],
        ),
        Claim(
            "assessors agree more by top-k labels without ties, too (89.7 against 83.1 %)",
            "inconclusive",
            "needs people; simulated assessors with equal noise agree on {:.4f} and {:.4f}".format(
                *(v.mean() for v in by_statistic["without ties"])
            ),
        ),
        all_hold(
            "chi-squares are 420.7 and 28.5",
            [
                within(
                    f"{name}, {DOUBLE_JUDGED} queries", np.array([tests[key].statistic]), low, high
                )
                for name, key, low, high in (
                    ("overall", "overall", 419.0, 422.0),
                    ("without ties", "without_ties", 27.0, 30.0),
                )
            ],
        ),
    ]


def _equal_noise_claims(by_statistic: dict[str, tuple[Floats, Floats]]) -> list[Claim]:
    """Return our claims about assessors whose noise is the same with both tools."""
    kappas = " against ".join(
        f"{printed_agreement(t).symmetrized().kappa:.3f}" for t in ("top-k", "graded")
    )
    difference = float((by_statistic["overall"][0] - by_statistic["overall"][1]).mean())
    printed_difference = printed.OVERALL["top-k"] - printed.OVERALL["graded"]
    return [
        within(
            "assessors with equal noise explain about half of the overall difference",
            np.array([difference / printed_difference]),
            0.4,
            0.7,
            f" of {printed_difference:.3f}",
            source="ours",
        ),
        equivalent(
            "assessors with equal noise explain none of the difference without ties",
            *by_statistic["without ties"],
            0.02,
            source="ours",
        ),
        greater(
            "the kappa of assessors with equal noise is higher by top-k labels, too",
            *by_statistic["kappa"],
            detail=f" (from the printed tables {kappas})",
            source="ours",
        ),
    ]


def _grading_noise_claims(cells: Cells) -> list[Claim]:
    """Return our claims about assessors with more noise when they grade, and about the test."""
    agreement = [_table3_values(cells, m, "graded", MORE_NOISE) for m in STATISTICS]
    return [
        _agree_within(
            f"Table 3 is reproduced if assessors have more noise ({GRADING_NOISE:g}) when they "
            "grade than when they compare",
            agreement,
            ((0.517, 0.577), (0.811, 0.851)),
            source="ours",
        ),
        all_hold(
            f"a chi-square test of {DOUBLE_JUDGED} against {DOUBLE_JUDGED} queries with one tool, "
            "which assumes independent pairs, is significant (p < .05) about one time in twenty",
            [
                below(f"{test}, {name}", cells.samples(test=test, statistic=name), 0.1, " of tests")
                for test in cells.label_values("test")
                for name in STATISTICS
            ],
            source="ours",
        ),
    ]


DESCRIBED = Descriptions(
    __file__,
    VOTES_DATA=VOTES_DATA,
    CONSISTENT_DATA=CONSISTENT_DATA,
    noise=f"{Crowd().noise:g}",
    jitter=f"{Crowd().jitter:g}",
    grading_noise=f"{GRADING_NOISE:g}",
)


def _effort_values() -> list[tuple[dict[str, str], float]]:
    return [
        ({"data": "simulated", "tool": tool, "measure": measure}, value)
        for tool, (_, minutes, judgments) in EFFORT.items()
        for measure, value in (
            ("judgments", judgments),
            ("minutes at the paper's seconds", minutes),
        )
    ]


def entries() -> list[PaperEntry]:
    """Return Tables 1 to 3, and those of recorded votes."""
    describe, strategies = DESCRIBED.entry, {"strategies": STRATEGIES}
    effort = Experiment(labeling.simulated_effort, strategies, runs=40, fast_runs=10)
    sizes = {"sizes": SIZES, "tops": TOPS}
    growth = Experiment(labeling.heap_growth, sizes, runs=200, fast_runs=50)
    voted = Experiment(labeling.voted_effort, strategies, runs=20, fast_runs=5, dataset="votes")
    seconds = Experiment(labeling.seconds_per_pair, dataset="votes", randomized=False)
    agreement = Experiment(labeling.voted_agreement, runs=40, fast_runs=10, dataset="votes")
    top_values = [*_matrix_values("top-k", EQUAL_NOISE), *_statistic_values("top-k", EQUAL_NOISE)]
    noises = (EQUAL_NOISE, MORE_NOISE)
    grade_values = [value for name in noises for value in _matrix_values("graded", name)]
    for name in noises:
        grade_values += _statistic_values("top-k", name) + _statistic_values("graded", name)
    return [
        describe(
            "table1", [effort, growth], _table1_claims, fields={"paper_values": _effort_values()}
        ),
        describe("table1-votes", [voted, seconds], _votes_effort_claims),
        describe(
            "table2",
            [EQUAL_NOISE_EXPERIMENT],
            _table2_claims,
            row_filter=_without_grades,
            fields={"paper_values": top_values},
        ),
        describe("table2-votes", [agreement], _votes_agreement_claims),
        describe(
            "table3",
            TABLE3_EXPERIMENTS,
            _table3_claims,
            row_filter=lambda row: not str(row.get("matrix", "")).startswith("top-k"),
            fields={"paper_values": grade_values},
        ),
    ]
