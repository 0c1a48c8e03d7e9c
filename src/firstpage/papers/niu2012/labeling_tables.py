"""Tables 1 to 3: what labeling costs, and how far two people agree by either tool."""

from __future__ import annotations

import numpy as np

from firstpage.labeling.statistics.agreement import Agreement, compare_methods
from firstpage.papers.niu2012 import labeling, printed
from firstpage.papers.niu2012.labeling import DOCUMENTS, DOUBLY, VOTED, Crowd, K
from firstpage.papers.niu2012.printed import EFFORT
from firstpage.papers.study.claims import alike, below, every, greater, within
from firstpage.papers.study.study import Cells, Claim, Entry, Grid, Row, Verdict, Work
from firstpage.types import Floats

STRATEGIES = ["heap", "heap-memo", "heap-closure", "insertion"]
EXPECTED = {"heap": 150.8, "heap-memo": 135.8, "heap-closure": 130.4, "insertion": 115.6}
SIZES, TOPS = [50, 100, 200, 400, 800], [10]
LONGER = "a judgment of five grades takes 2 to 3 times as long as one of a pair (13.87 s, 5.51 s)"
SURE = f"as many texts as {VOTED}"
COMPARABLE = 4 / 3  # how far apart two times may be and still be called so


def table1() -> Entry:
    works = [
        Work(labeling.effort, {"strategies": STRATEGIES}, runs=40, quick=10),
        Work(labeling.growth, {"sizes": SIZES, "tops": TOPS}, runs=200, quick=50),
    ]
    return Entry(
        "table1", "Judgments and time a query: top-k labeling and five grades",
        "A judgment of five grades takes 2 to 3 times as long as one of a pair; the heap asks "
        "142.76 pairs a query, about log k a document; the time of a query is comparable.",
        works, _claims,
        paper=[
            ({"data": "simulated", "tool": tool, "measure": measure}, value)
            for tool, (_, minutes, judgments) in EFFORT.items()
            for measure, value in
            (("judgments", judgments), ("minutes at the paper's seconds", minutes))
        ],
        note="Simulated people answer in no time: minutes are our number of judgments times the "
        "paper's seconds, 5.51 and 13.87.  insertion is ours.",
        grids=[
            ("simulated", Grid("tool", "measure", "50 documents, k = 10, simulated people")),
            ("any order", Grid("documents", "measure", "the heap by the number of documents")),
        ],
        held_equal="for all ways of asking: the queries, their 50 documents, k and the assessors' "
        "noise, run by run.  Not equal: seconds per judgment, which are the paper's.",
    )  # fmt: skip


def effort_of_votes() -> Entry:
    works = [
        Work(labeling.voted_effort, {"strategies": STRATEGIES}, runs=20, quick=5, needs="votes"),
        Work(labeling.seconds, needs="votes", chance=False),
    ]
    return Entry(
        "table1-votes", "Judgments a query where people answer: recorded votes",
        "A judgment of five grades takes 2 to 3 times as long as one of a pair; the heap asks "
        "about log k pairs a document.",
        works, _effort_claims,
        note=f"{VOTED}: 16 topics of about 33 texts, every pair judged by five people, one of "
        "whom answers.  'equal' is handed on as a tie, which the heap reads as 'not better'.",
        grids=[
            (VOTED, Grid("tool", "measure", "recorded votes")),
            (SURE, Grid("tool", "measure", "as many texts, and nobody in doubt")),
        ],
        held_equal="topics, their number of texts and k; for the ways of asking also the votes "
        "that answer, run by run.  Answers without doubt are of simulated assessors.",
    )  # fmt: skip


def _claims(cells: Cells) -> list[Claim]:
    def asked(tool: str) -> Floats:
        return cells.at(data="simulated", tool=tool, measure="judgments")

    ratio = _minutes(cells, "heap") / _minutes(cells, "five-grade").mean()
    sizes = cells.names("documents")
    long = {n: cells.at(documents=n, k=K) / n for n in sizes}
    return [
        Claim(LONGER, "cannot be tested", "simulated people take no time"),
        within("judgments a document are at a scale around log k", asked("heap") / DOCUMENTS,
               float(np.log(K)), float(np.log2(K)), " (ln k to log2 k)"),
        within("the time of a query is comparable", ratio, 1 / COMPARABLE, COMPARABLE,
               " times as long at the paper's seconds and our judgments"),
        every("judgments are at most of the order of n log k", [
            below(f"{n} documents", long[n], float(np.log2(K)), " a document") for n in sizes
        ]),
        greater("on average they are fewer: a document costs less the longer the list, since few "
                "later ones enter the heap", long[sizes[0]], long[sizes[-1]],
                what=f" judgments a document ({sizes[0]}, {sizes[-1]} documents)", whose="ours"),
        every("judgments are those expected of a random order", [
            within(how, asked(how), mean - 3, mean + 3) for how, mean in EXPECTED.items()
        ], whose="ours"),
        within("the heap as printed asks the paper's 142.76 pairs", asked("heap"), 142.76 - 4,
               142.76 + 4, " (4: two standard errors of 50 queries)", whose="ours"),
        _product(),
    ]  # fmt: skip


def _effort_claims(cells: Cells) -> list[Claim]:
    def asked(tool: str, data: str) -> Floats:
        return cells.at(data=data, tool=tool, measure="judgments")

    spent = cells.one(measure="seconds").ours
    texts = cells.at(data=VOTED, measure="texts")
    each = asked("heap", VOTED) / texts
    return [
        Claim(LONGER, "cannot be tested",
              f"nobody graded these texts; a pair took {spent:.0f} s (median; three to a sheet, "
              "and a reason to be written for each)"),
        within("judgments a document are at a scale around log k", each,
               float(np.log(K)), float(np.log2(K)), " (ln k to log2 k)"),
        greater("people who may say 'equal' make the heap cheaper than sure ones do",
                asked("heap", SURE), asked("heap", VOTED), whose="ours"),
    ]  # fmt: skip


def _minutes(cells: Cells, tool: str) -> Floats:
    return cells.at(data="simulated", tool=tool, measure="minutes at the paper's seconds")


def _product() -> Claim:
    """Whether Table 1 agrees with itself."""
    told, verdict = [], "holds"
    for tool, (seconds, minutes, judgments) in EFFORT.items():
        product = seconds * judgments / 60
        off = abs(product - minutes)
        told.append(f"{tool}: {seconds} s x {judgments:g} = {product:.2f}, printed {minutes}")
        if off > 0.05:
            verdict = "does not hold"
    text = "the printed minutes a query are the printed seconds times judgments"
    found: Verdict = "holds" if verdict == "holds" else "does not hold"
    return Claim(text, found, "; ".join(told), "ours")


PAIRS = 50 * 49 / 2  # of a query
NOISY = 0.7  # of people who grade, with which Table 3 comes out
SAME, OTHER = "simulated assessors", f"grading noise {NOISY:g}"
BY_PAIRS = Work(labeling.agreement, {"noise": Crowd().noise}, runs=40, quick=10)
BY_GRADES = [
    BY_PAIRS,
    Work(labeling.agreement, {"noise": NOISY}, runs=40, quick=10),
    Work(labeling.alarms, runs=40, quick=10),
]
GIVEN = (
    "Five simulated people, 50 queries of 50 documents, k = 10; a person sees the utility of a "
    f"document (sd 1) with noise of sd {Crowd().noise:g} and draws the lines between grades with a "
    f"jitter of {Crowd().jitter:g}, set so that Table 2 comes out.  The assignment is the paper's, "
    "and again shifted by two folds.  Pairs of a query hang together: errors here are over queries."
)

PEOPLE = (
    "queries, documents, k, and the assessors' noise and jitter by both tools, unless a claim says "
    "otherwise; the same runs.  Not equal: the number of ties, which top-k labels force."
)


def table2() -> Entry:
    return Entry(
        "table2", "Agreement of two people by top-k labels",
        "Two people agree on 74.5 % of pairs of documents, and on 89.7 % where neither has a tie.",
        [BY_PAIRS], _by_pairs, keep=_of_pairs,
        paper=[*_matrix("top-k", SAME), *_figures("top-k", SAME)],
        note=GIVEN,
        grids=[
            (f"top-k, {SAME}", Grid("said", "other", "top-k labels, simulated people")),
            (SAME, Grid("tool", "measure", "simulated people")),
        ],
        held_equal=PEOPLE,
    )  # fmt: skip


def agreement_of_votes() -> Entry:
    return Entry(
        "table2-votes", "Agreement of two people by top-k labels: recorded votes",
        "Two people agree on 74.5 % of pairs of documents, and on 89.7 % where neither has a tie.",
        [Work(labeling.voted_agreement, runs=40, quick=10, needs="votes")], _agreement_claims,
        note=f"{VOTED}, 16 topics of about 33 texts.  A 'person' is one of the five votes of "
        "every pair, so several people; two of them share no vote.  Nobody graded these texts.",
        grids=[
            ("top-k, votes", Grid("said", "other", "top-k labels that the heap makes of votes")),
            ("pairs, votes", Grid("said", "other", "the votes themselves")),
            ("votes", Grid("tool", "measure")),
        ],
        held_equal="topics, texts and votes: the heap's labels are made of the votes that they are "
        "compared with, run by run.  Not equal: the number of ties.",
    )  # fmt: skip


def table3() -> Entry:
    tools = ("top-k", "graded")
    return Entry(
        "table3", "Agreement of two people by five grades, and against top-k labels",
        "By grades two people agree on 54.7 % of pairs, less than by top-k labels (74.5 %, "
        "chi-square 420.7); without ties on 83.1 % (89.7 %, chi-square 28.5).",
        BY_GRADES, _by_grades, keep=lambda row: not str(row.get("matrix", "")).startswith("top-k"),
        paper=[
            *_matrix("graded", SAME), *_matrix("graded", OTHER),
            *(said for name in (SAME, OTHER) for tool in tools for said in _figures(tool, name)),
        ],
        note=GIVEN + f"  Also with graders whose noise is {NOISY:g}.",
        grids=[
            (f"graded, {SAME}", Grid("said", "other", "grades, the same noise")),
            (f"graded, {OTHER}", Grid("said", "other", f"grades, noise {NOISY:g}")),
            (SAME, Grid("tool", "measure", "the same noise")),
            (OTHER, Grid("tool", "measure", f"grades with noise {NOISY:g}")),
            *((f"{tool}, 4 queries against 4", Grid("test", "finds", "chi-squares with p < .05"))
              for tool in tools),
        ],
        held_equal=PEOPLE,
    )  # fmt: skip


def _of_pairs(row: Row) -> bool:
    return row.get("tool") != "graded" and not str(row.get("matrix", "")).startswith("graded")


def _matrix(tool: str, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        ({"matrix": f"{tool}, {name}", "said": row, "other": column}, printed.AGREEMENT[tool][i][j])
        for i, row in enumerate(printed.SIGNS)
        for j, column in enumerate(printed.SIGNS)
    ]


def _figures(tool: str, name: str) -> list[tuple[dict[str, str], float]]:
    """As printed; chance, kappa and ties follow from what is printed."""
    whole = said(tool).symmetrized()
    values = {
        "overall": printed.OVERALL[tool], "without ties": printed.WITHOUT_TIES[tool],
        "chance": round(whole.chance, 4), "kappa": round(whole.kappa, 4),
        "ties": round(whole.ties[0], 4),
    }  # fmt: skip
    return [
        ({"summary": name, "tool": tool, "measure": measure}, value)
        for measure, value in values.items()
    ]


def said(tool: str) -> Agreement:
    """The paper's table as counts of the pairs of four queries."""
    return Agreement(np.maximum(printed.weighted(tool), 0.0) * PAIRS * DOUBLY)


def _by_pairs(cells: Cells) -> list[Claim]:
    def at(measure: str) -> Floats:
        return cells.at(tool="top-k", measure=measure)

    forced = 40 * 39 / (50 * 49)
    weights = printed.weighted("top-k").sum(axis=1)
    return [
        every("two people agree on 74.5 % and, without ties, on 89.7 % (simulated people are made "
              "so)", [
                  within("overall", at("overall"), 0.725, 0.765),
                  within("without ties", at("without ties"), 0.877, 0.917),
              ], whose="ours"),
        within("ties are the pairs outside the top ten, which are forced: 63.7 % of all",
               np.array([weights[1]]), forced - 0.005, forced + 0.005,
               " by the weights that the printed totals give the rows", whose="ours"),
        within("so .47 of pairs would agree by chance", at("chance"), 0.46, 0.48, whose="ours"),
    ]  # fmt: skip


def _agreement_claims(cells: Cells) -> list[Claim]:
    def at(measure: str, tool: str) -> Floats:
        return cells.at(tool=tool, measure=measure)

    votes, tops = at("without ties", "pairs"), at("without ties", "top-k")
    return [
        every("two people agree on 74.5 % and, without ties, on 89.7 %, give or take two points", [
            within("overall", at("overall", "top-k"), 0.725, 0.765),
            within("without ties", tops, 0.877, 0.917),
        ]),
        greater("labels that the heap makes of votes agree less than the votes do, without ties: "
                "it trusts every answer", votes, tops, whose="ours"),
        greater("and by kappa", at("kappa", "pairs"), at("kappa", "top-k"), whose="ours"),
        Claim("people agree more by top-k labels than by grades", "cannot be tested",
              "nobody graded these texts"),
    ]  # fmt: skip


def _by_grades(cells: Cells) -> list[Claim]:
    def at(measure: str, tool: str, name: str = SAME) -> Floats:
        return cells.at(summary=name, tool=tool, measure=measure)

    same = {m: (at(m, "top-k"), at(m, "graded")) for m in ("overall", "without ties", "kappa")}
    tests = compare_methods(said("top-k"), said("graded"))
    kappas = " against ".join(f"{said(t).symmetrized().kappa:.3f}" for t in ("top-k", "graded"))
    apart = float((same["overall"][0] - same["overall"][1]).mean())
    paper = printed.OVERALL["top-k"] - printed.OVERALL["graded"]
    return [
        greater("people agree more by top-k labels (simulated people, same noise)",
                *same["overall"]),
        Claim("without ties, too (89.7 against 83.1 %)", "cannot be tested",
              "it takes people; of simulated ones who see alike {:.4f} and {:.4f} agree".format(
                  *(v.mean() for v in same["without ties"]))),
        every("chi-squares are 420.7 and 28.5", [
            within(f"{name}, {DOUBLY} queries", np.array([tests[key].statistic]), low, high)
            for name, key, low, high in (
                ("overall", "overall", 419.0, 422.0), ("without ties", "without_ties", 27.0, 30.0))
        ]),
        within("people who see alike, whatever the tool, make about half of the overall difference",
               np.array([apart / paper]), 0.4, 0.7, f" of {paper:.3f}", whose="ours"),
        alike("and none of that without ties", *same["without ties"], 0.02, whose="ours"),
        greater("their kappa is higher by top-k labels, too", *same["kappa"],
                what=f" (from the printed tables {kappas})", whose="ours"),
        every(f"Table 3 comes out if people grade with more noise ({NOISY:g}) than they compare "
              "with", [
                  within("overall", at("overall", "graded", OTHER), 0.517, 0.577),
                  within("without ties", at("without ties", "graded", OTHER), 0.811, 0.851),
              ], whose="ours"),
        every(f"a chi-square of {DOUBLY} against {DOUBLY} queries by one tool, which takes pairs "
              "for independent, finds a difference (p < .05) about one time in twenty", [
                  below(f"{test}, {figure}", cells.at(test=test, finds=figure), 0.1, " of tests")
                  for test in cells.names("test") for figure in ("overall", "without ties")
              ], whose="ours"),
    ]  # fmt: skip
