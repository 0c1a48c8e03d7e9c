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
from firstpage.papers.study.study import (
    Cells,
    Claim,
    ClaimVerdict,
    Experiment,
    PaperEntry,
    Row,
    TableLayout,
)

STRATEGIES = ["heap", "heap-memo", "heap-closure", "insertion"]
EXPECTED_JUDGMENTS = {"heap": 150.8, "heap-memo": 135.8, "heap-closure": 130.4, "insertion": 115.6}
SIZES, TOPS = [50, 100, 200, 400, 800], [10]
GRADING_TAKES_LONGER = (
    "grading a document takes 2 to 3 times as long as comparing a pair (13.87 s, 5.51 s)"
)
CONSISTENT_DATA = f"as many texts as {VOTES_DATA}"
COMPARABLE_RATIO = 4 / 3  # largest ratio of "comparable" times


def table1() -> PaperEntry:
    experiments = [
        Experiment(labeling.simulated_effort, {"strategies": STRATEGIES}, runs=40, fast_runs=10),
        Experiment(labeling.heap_growth, {"sizes": SIZES, "tops": TOPS}, runs=200, fast_runs=50),
    ]
    return PaperEntry(
        "table1",
        "Judgments and time per query: top-k labeling and five grades",
        "Grading a document takes 2 to 3 times as long as comparing a pair; the heap needs 142.76 "
        "pairs per query, about log k per document; the time per query is comparable.",
        experiments,
        _table1_claims,
        paper_values=[
            ({"data": "simulated", "tool": tool, "measure": measure}, value)
            for tool, (_, minutes, judgments) in EFFORT.items()
            for measure, value in (
                ("judgments", judgments),
                ("minutes at the paper's seconds", minutes),
            )
        ],
        note="Simulated assessors take no time. Minutes are our number of judgments times the "
        "seconds of the paper, 5.51 and 13.87. insertion is ours.",
        layouts=[
            (
                "simulated",
                TableLayout("tool", "measure", "50 documents, k = 10, simulated assessors"),
            ),
            (
                "random order",
                TableLayout("documents", "measure", "the heap by the number of documents"),
            ),
        ],
        held_equal="in each run, for all strategies: the queries, their 50 documents, k and the "
        "assessors' noise. Not equal: the seconds per judgment, which are those of the paper.",
    )


def table1_votes() -> PaperEntry:
    experiments = [
        Experiment(
            labeling.voted_effort, {"strategies": STRATEGIES}, runs=20, fast_runs=5, dataset="votes"
        ),
        Experiment(labeling.seconds_per_pair, dataset="votes", randomized=False),
    ]
    return PaperEntry(
        "table1-votes",
        "Judgments per query with recorded votes",
        "Grading a document takes 2 to 3 times as long as comparing a pair; the heap needs about "
        "log k pairs per document.",
        experiments,
        _votes_effort_claims,
        note=f"{VOTES_DATA} has 16 topics of about 33 texts. Every pair was judged by five people, "
        "one of whom answers. 'equal' is a tie, which the heap treats as 'not better'.",
        layouts=[
            (VOTES_DATA, TableLayout("tool", "measure", "recorded votes")),
            (CONSISTENT_DATA, TableLayout("tool", "measure", "as many texts, consistent answers")),
        ],
        held_equal="topics, their number of texts, k, and the recorded votes that answers are "
        "drawn from. Consistent answers are those of simulated assessors.",
    )


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
SIMULATION_NOTE = (
    "There are five simulated assessors, 50 queries of 50 documents, and k = 10. An assessor "
    "perceives the utility of a document (standard deviation 1) with noise of standard deviation "
    f"{Crowd().noise:g}, and the boundaries between grades with a jitter of {Crowd().jitter:g}; "
    "both are calibrated to reproduce Table 2. The assignment is that of the paper, and again "
    "shifted by two folds. Pairs of a query are dependent, so standard errors are over queries."
)

ASSESSORS_EQUAL = (
    "queries, documents, k, runs, and the assessors' noise and jitter with both tools, unless a "
    "claim says otherwise. Not equal: the number of ties, which top-k labels force."
)


def _matrix_layout(name: str, title: str) -> tuple[str, TableLayout]:
    return name, TableLayout("assessor 1", "assessor 2", title)


def table2() -> PaperEntry:
    return PaperEntry(
        "table2",
        "Agreement of two assessors by top-k labels",
        "Two assessors agree on 74.5 % of pairs of documents, and on 89.7 % where neither has a "
        "tie.",
        [EQUAL_NOISE_EXPERIMENT],
        _table2_claims,
        row_filter=_without_grades,
        paper_values=[
            *_matrix_values("top-k", EQUAL_NOISE),
            *_statistic_values("top-k", EQUAL_NOISE),
        ],
        note=SIMULATION_NOTE,
        layouts=[
            _matrix_layout(f"top-k, {EQUAL_NOISE}", "top-k labels, simulated assessors"),
            (EQUAL_NOISE, TableLayout("tool", "measure", "simulated assessors")),
        ],
        held_equal=ASSESSORS_EQUAL,
    )


def table2_votes() -> PaperEntry:
    return PaperEntry(
        "table2-votes",
        "Agreement of two assessors by top-k labels: recorded votes",
        "Two assessors agree on 74.5 % of pairs of documents, and on 89.7 % where neither has a "
        "tie.",
        [Experiment(labeling.voted_agreement, runs=40, fast_runs=10, dataset="votes")],
        _votes_agreement_claims,
        note=f"{VOTES_DATA} has 16 topics of about 33 texts. An 'assessor' is one of the five "
        "votes of every pair, and so combines several people. Two assessors have no vote in "
        "common. There are no grades.",
        layouts=[
            _matrix_layout("top-k, votes", "top-k labels of the heap from votes"),
            _matrix_layout("pairs, votes", "the votes themselves"),
            ("votes", TableLayout("tool", "measure")),
        ],
        held_equal="topics, texts and votes: in each run, the labels of the heap come from the "
        "votes that they are compared with. Not equal: the number of ties.",
    )


def table3() -> PaperEntry:
    tools = ("top-k", "graded")
    return PaperEntry(
        "table3",
        "Agreement of two assessors by five grades, compared with top-k labels",
        "By grades two assessors agree on 54.7 % of pairs, less than by top-k labels (74.5 %, "
        "chi-square 420.7); without ties on 83.1 % (89.7 %, chi-square 28.5).",
        TABLE3_EXPERIMENTS,
        _table3_claims,
        row_filter=lambda row: not str(row.get("matrix", "")).startswith("top-k"),
        paper_values=[
            *_matrix_values("graded", EQUAL_NOISE),
            *_matrix_values("graded", MORE_NOISE),
            *(
                labeled
                for name in (EQUAL_NOISE, MORE_NOISE)
                for tool in tools
                for labeled in _statistic_values(tool, name)
            ),
        ],
        note=SIMULATION_NOTE + f" A second table has graders whose noise is {GRADING_NOISE:g}.",
        layouts=[
            _matrix_layout(f"graded, {EQUAL_NOISE}", "grades, the same noise"),
            _matrix_layout(f"graded, {MORE_NOISE}", f"grades, noise {GRADING_NOISE:g}"),
            (EQUAL_NOISE, TableLayout("tool", "measure", "the same noise")),
            (MORE_NOISE, TableLayout("tool", "measure", f"grades with noise {GRADING_NOISE:g}")),
            *(
                (
                    f"{tool}, 4 queries against 4",
                    TableLayout("test", "statistic", "chi-squares with p < .05"),
                )
                for tool in tools
            ),
        ],
        held_equal=ASSESSORS_EQUAL,
    )


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
