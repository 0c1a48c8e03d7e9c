"""Figures 11 to 15: lists of real queries (MSLR)."""

from __future__ import annotations

from functools import partial

from firstpage.papers.study.claims import at_least, every, greater, within
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Work
from firstpage.papers.zhou2013 import web
from firstpage.papers.zhou2013.simulated import EXTRA, LEARNED, LIMIT, difference_claims
from firstpage.papers.zhou2013.worlds import DIFFERENCE

SIZES = [20, 50, 100, 200, 400, 600, 800, 1000]
FEW = [200, 600, 1000]
SHARES = [0.0, 0.1, 0.2, 0.3, 0.4]
EDGES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0]
SETS = ("web10k", "web30k")
SAMPLE = (
    "With the sample of MSLR (the first 5,000 lines of Web10K's Fold1 train and test: 43 + 43 "
    "queries) the queries of train.txt stand for Web10K and those of test.txt for Web30K; neither "
    "is the paper's data.  Standard errors are over draws of pairs and folds, not over queries."
)


def figure11() -> Entry:
    works = [
        Work(web.learning, {"name": name, "sizes": SIZES}, runs=5, quick=2, needs=name)
        for name in SETS
    ]
    return Entry(
        "figure11", "Accuracy by the number of training pairs, Web10K and Web30K",
        "Accuracy grows with the pairs, almost as in the simulations; Other agrees with 90 %.",
        works, _growth,
        [("accuracy", Drawing("method", "pairs", "accuracy", [f"Other, {name}" for name in SETS])),
         ("similarity", Drawing("method", "pairs", "similarity"))],
        paper=[({"method": f"Other, {name}", "measure": "accuracy"}, 0.9) for name in SETS],
        note="Similarity is ours: here lists differ in their grades, and it may pass the limit of "
        "Figure 6.  " + SAMPLE,
        held_equal=EXTRA + "  Other is fixed, and learns from none.",
    )  # fmt: skip


def _growth(cells: Cells) -> list[Claim]:
    def part(name: str) -> list[Claim]:
        ours = partial(cells.at, method=f"DCGLearn, {name}", measure="accuracy")
        alike = cells.at(method=f"DCGLearn, {name}", measure="similarity", pairs=1000)
        other = cells.at(method=f"Other, {name}", pairs=1000)
        return [
            greater(f"accuracy grows with the pairs ({name})", ours(pairs=1000), ours(pairs=20)),
            within(f"almost as in the simulations: 96 to 99 % at 800 pairs ({name})",
                   ours(pairs=800), 0.96, 0.99),
            within(f"Other agrees with about 90 % (89 to 91 %, {name})", other, 0.89, 0.91),
            greater(f"DCGLearn is better than Other at 1000 pairs ({name})",
                    ours(pairs=1000), other),
            at_least(f"similarity passes the limit of one list of grades, {LIMIT} ({name})",
                     alike, LIMIT, whose="ours"),
        ]  # fmt: skip

    return [claim for name in SETS for claim in part(name)]


def bins_figure(number: int, name: str) -> Entry:
    return Entry(
        f"figure{number}", f"Accuracy by the DCG difference of the test pair, {name}",
        "DCGLearn is much better than Other where the two rankings are close to each other.",
        [Work(web.by_difference, {"name": name, "pairs": 1000, "edges": EDGES}, runs=5, quick=2,
              needs=name)],
        difference_claims,
        [("", Drawing("method", DIFFERENCE, "accuracy", ["Other"]))],
        note="Learned from 1000 pairs.  " + SAMPLE,
        held_equal=EXTRA + "  Other is fixed, and learns from none.",
    )  # fmt: skip


def noise_figure(number: int, name: str) -> Entry:
    return Entry(
        f"figure{number}", f"Accuracy with some documents judged at random, {name}",
        "Accuracy falls gracefully as more documents are judged at random; more pairs are better.",
        [Work(web.noisy, {"name": name, "sizes": FEW, "shares": SHARES}, runs=5, quick=2,
              needs=name)],
        _noise_claims,
        [("", Drawing("method", "noise", "accuracy", [f"{FEW[-1]} pairs, pairs reversed"]))],
        note="The caption speaks of noisy pairs, the text of documents judged at random: the text "
        "is followed, a document being misjudged alike in all lists; the dashed line has pairs "
        "reversed instead.  " + SAMPLE,
        held_equal=LEARNED + "; documents judged at random and pairs reversed have the same "
        "fraction, the same number of pairs and the same test pairs.",
    )  # fmt: skip


def _noise_claims(cells: Cells) -> list[Claim]:
    lines = [f"{m} pairs" for m in FEW]
    return [
        every("accuracy falls as more documents are judged at random", [
            greater(m, cells.at(method=m, noise=0.0), cells.at(method=m, noise=0.4)) for m in lines
        ]),
        every("1000 pairs are better than 200", [
            greater(f"noise {s:g}", cells.at(method=lines[-1], noise=s),
                    cells.at(method=lines[0], noise=s)) for s in SHARES
        ]),
        greater("documents judged at random harm more than as many pairs reversed, at 10 %",
                cells.at(method=f"{FEW[-1]} pairs, pairs reversed", noise=0.1),
                cells.at(method=lines[-1], noise=0.1), whose="ours"),
    ]  # fmt: skip


ENTRIES = (
    figure11(), bins_figure(12, SETS[0]), bins_figure(13, SETS[1]),
    noise_figure(14, SETS[0]), noise_figure(15, SETS[1]),
)  # fmt: skip
