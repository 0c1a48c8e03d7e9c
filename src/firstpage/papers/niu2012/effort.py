"""Table 1: what labelling costs."""

from __future__ import annotations

import numpy as np

from firstpage.papers.niu2012 import labeling, voted
from firstpage.papers.niu2012.assessors import DOCUMENTS, K
from firstpage.papers.niu2012.printed import EFFORT
from firstpage.papers.study.claims import below, every, greater, within
from firstpage.papers.study.study import Cells, Claim, Entry, Grid, Verdict, Work
from firstpage.types import Floats

STRATEGIES = ["heap", "heap-memo", "heap-closure", "insertion"]
EXPECTED = {"heap": 150.8, "heap-memo": 135.8, "heap-closure": 130.4, "insertion": 115.6}
SIZES, TOPS = [50, 100, 200, 400, 800], [10]
LONGER = "a judgment of five grades takes 2 to 3 times as long as one of a pair (13.87 s, 5.51 s)"
SURE = f"as many texts as {voted.NAME}"
COMPARABLE = 4 / 3  # how far apart two times may be and still be called so


def table1() -> Entry:
    works = [
        Work(labeling.effort, {"strategies": STRATEGIES}, runs=40, quick=10),
        Work(labeling.growth, {"sizes": SIZES, "tops": TOPS}, runs=200, quick=50),
    ]
    return Entry(
        "table1", "Judgments and time a query: top-k labelling and five grades",
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


def with_votes() -> Entry:
    works = [
        Work(voted.effort, {"strategies": STRATEGIES}, runs=20, quick=5, needs="votes"),
        Work(voted.seconds, needs="votes", chance=False),
    ]
    return Entry(
        "table1-votes", "Judgments a query where people answer: recorded votes",
        "A judgment of five grades takes 2 to 3 times as long as one of a pair; the heap asks "
        "about log k pairs a document.",
        works, _of_votes,
        note=f"{voted.NAME}: 16 topics of about 33 texts, every pair judged by five people, one of "
        "whom answers.  'equal' is handed on as a tie, which the heap reads as 'not better'.",
        grids=[
            (voted.NAME, Grid("tool", "measure", "recorded votes")),
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


def _of_votes(cells: Cells) -> list[Claim]:
    def asked(tool: str, data: str) -> Floats:
        return cells.at(data=data, tool=tool, measure="judgments")

    spent = cells.one(measure="seconds").ours
    texts = cells.at(data=voted.NAME, measure="texts")
    each = asked("heap", voted.NAME) / texts
    return [
        Claim(LONGER, "cannot be tested",
              f"nobody graded these texts; a pair took {spent:.0f} s (median; three to a sheet, "
              "and a reason to be written for each)"),
        within("judgments a document are at a scale around log k", each,
               float(np.log(K)), float(np.log2(K)), " (ln k to log2 k)"),
        greater("people who may say 'equal' make the heap cheaper than sure ones do",
                asked("heap", SURE), asked("heap", voted.NAME), whose="ours"),
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
