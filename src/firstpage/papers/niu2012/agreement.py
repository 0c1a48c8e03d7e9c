"""Tables 2 and 3: how far two people agree by top-k labels, and by grades."""

from __future__ import annotations

import numpy as np

from firstpage.labeling.statistics.agreement import Agreement, compare_methods
from firstpage.papers.niu2012 import labeling, printed, voted
from firstpage.papers.niu2012.assessors import Crowd
from firstpage.papers.niu2012.labeling import DOUBLY
from firstpage.papers.study.claims import alike, below, every, greater, within
from firstpage.papers.study.study import Cells, Claim, Entry, Grid, Row, Work
from firstpage.types import Floats

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


def with_votes() -> Entry:
    return Entry(
        "table2-votes", "Agreement of two people by top-k labels: recorded votes",
        "Two people agree on 74.5 % of pairs of documents, and on 89.7 % where neither has a tie.",
        [Work(voted.agreement, runs=40, quick=10, needs="votes")], _of_votes,
        note=f"{voted.NAME}, 16 topics of about 33 texts.  A 'person' is one of the five votes of "
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
        BY_GRADES, _by_grades, keep=_of_grades,
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


def _of_grades(row: Row) -> bool:
    return not str(row.get("matrix", "")).startswith("top-k")


def _matrix(tool: str, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        ({"matrix": f"{tool}, {name}", "said": row, "other": column}, printed.AGREEMENT[tool][i][j])
        for i, row in enumerate(printed.SIGNS)
        for j, column in enumerate(printed.SIGNS)
    ]


def _figures(tool: str, name: str) -> list[tuple[dict[str, str], float]]:
    """As printed; chance, kappa and ties follow from what is printed."""
    whole = said(tool).symmetrised()
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


def _of_votes(cells: Cells) -> list[Claim]:
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
    kappas = " against ".join(f"{said(t).symmetrised().kappa:.3f}" for t in ("top-k", "graded"))
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
