"""Figures 1 to 15: the true measure is known, of simulated lists and of real queries (MSLR)."""

from __future__ import annotations

from functools import partial

from firstpage.papers.study.claims import at_least, below, every, greater, no_greater, within
from firstpage.papers.study.study import Cells, Claim, Drawing, Entry, Work
from firstpage.papers.zhou2013 import worlds
from firstpage.papers.zhou2013.worlds import DIFFERENCE
from firstpage.types import Floats

SIZES = [20, 50, 100, 200, 400, 600, 800]
FINE = [0.25 + 0.5 * i for i in range(-1, 20)]  # bins of Figure 1: 1 is the middle of one
FINE[0] = 0.0
BINS = {1: [0.5 * i for i in range(9)], 2: [3.0 * i for i in range(9)]}
REVERSED = [5, 25, 50, 100, 150, 200]
SHARES = [0.05, 0.1, 0.2, 0.3, 0.4]
# What is learned chooses C; what it is compared with is fixed, and needs no data.
LEARNED = (
    "test pairs, run by run; for all numbers of pairs also the validation pairs (800, as noisy as "
    "the training pairs) and the values of C to choose from"
)
EXTRA = f"{LEARNED}.  Not equal: DCGLearn has 800 validation pairs beside its training pairs."
LIMIT = 0.892  # cos(c - c_K, c) for c = 1/log(k + 1), K = 10


def figure1() -> Entry:
    return Entry(
        "figure1", "Agreement of the gains 2^l - 1 and l, by the DCG difference",
        "The two measures disagree on many pairs, most where the difference is small; even at a "
        "difference of 1 only about 80 % of the pairs agree.",
        [Work(worlds.coherence, {"edges": FINE})],
        _figure1_claims,
        [("", Drawing("discount", DIFFERENCE, "share of pairs on which both agree"))],
        paper=[({"discount": "natural logarithm", DIFFERENCE: 1.0}, 0.8)],
        note="The paper does not say the base of its logarithm, which scales the axis; both are "
        "drawn.",
        held_equal="the pairs of rankings: both measures and both units see the same ones.",
    )  # fmt: skip


def _figure1_claims(cells: Cells) -> list[Claim]:
    natural = partial(cells.at, discount="natural logarithm")
    at = cells.names(DIFFERENCE)
    found = [
        greater("agreement grows with the difference", natural(**{DIFFERENCE: at[-1]}),
                natural(**{DIFFERENCE: at[0]}), by=0.3),
        below("small differences agree little better than chance (under 60 %)",
              natural(**{DIFFERENCE: at[0]}), 0.6),
    ]  # fmt: skip
    for unit in cells.names("discount"):
        values = cells.at(**{"discount": unit, DIFFERENCE: 1.0})
        found.append(within(f"about 80 % agree at a difference of 1 ({unit})", values, 0.77, 0.83))
    return found


def accuracy_figure(number: int, data: int) -> Entry:
    return Entry(
        f"figure{number}", f"Accuracy by the number of training pairs, Data {data}",
        "Accuracy grows to nearly 98 % at 800 pairs; the measure of the other data set (Other) "
        "stays below 90 %.",
        [_learning(data)],
        _accuracy_claims,
        [("", Drawing("method", "pairs", "accuracy", ["Other"]))],
        keep=lambda row: row["measure"] == "accuracy",
        paper=[({"method": "DCGLearn", "pairs": 800}, 0.98), ({"method": "Other"}, 0.9)],
        held_equal=EXTRA + "  Other is fixed, and learns from none.",
    )  # fmt: skip


def _learning(data: int) -> Work:
    return Work(worlds.learning, {"data": data, "sizes": SIZES}, f"learning {data}")


def _accuracy_claims(cells: Cells) -> list[Claim]:
    ours = partial(cells.at, method="DCGLearn")
    other = cells.at(method="Other", pairs=800)
    return [
        greater("accuracy grows with the pairs", ours(pairs=800), ours(pairs=20)),
        at_least("about 98 % at 800 pairs (97 % or more)", ours(pairs=800), 0.97),
        within("Other agrees with about 90 % (89 to 91 %)", other, 0.89, 0.91),
        below("Other agrees with less than 90 %", other, 0.9),
        greater("DCGLearn is better than Other at 800 pairs", ours(pairs=800), other),
    ]


def bins_figure(number: int, data: int) -> Entry:
    edges = BINS[data]
    return Entry(
        f"figure{number}", f"Accuracy by the DCG difference of the test pair, Data {data}",
        "DCGLearn is better than Other by far where the difference is small.",
        [Work(worlds.by_difference, {"data": data, "pairs": 800, "edges": edges})],
        difference_claims,
        [("", Drawing("method", DIFFERENCE, "accuracy", ["Other"]))],
        note="Learned from 800 pairs; the paper does not say from how many.  Differences are in "
        "units of the natural logarithm.",
        held_equal=EXTRA + "  Other is fixed, and learns from none.",
    )  # fmt: skip


def difference_claims(cells: Cells) -> list[Claim]:
    """Of Figures 4, 5, 12 and 13."""
    first, *_, last = cells.names(DIFFERENCE)

    ours, other = (cells.at(**{"method": m, DIFFERENCE: first}) for m in ("DCGLearn", "Other"))
    far = [cells.at(**{"method": m, DIFFERENCE: last}) for m in ("DCGLearn", "Other")]
    n = min(len(ours), len(far[0]))
    return [
        greater("better than Other by 10 points or more in the lowest bin", ours, other, by=0.1),
        greater("the gain is greater in the lowest bin than in the highest",
                ours[:n] - other[:n], far[0][:n] - far[1][:n]),
    ]  # fmt: skip


def figure6() -> Entry:
    return Entry(
        "figure6", "Similarity of the learned weights with the true ones",
        "Similarity grows with the pairs, and at times orders Data 1 and Data 2 otherwise than "
        "accuracy does.",
        [_learning(1), _learning(2)],
        _similarity_claims,
        [("similarity", Drawing("data", "pairs", "similarity"))],
        note="Pairs of orders of the same grades leave the discounts known less the last one "
        f"only; cos(c - c_K, c) = {LIMIT} is then the similarity of the best that can be learned.",
        keep=lambda row: row["method"] == "DCGLearn",
        held_equal=LEARNED + "; Data 1 and Data 2 have pairs of their own.",
    )  # fmt: skip


def _similarity_claims(cells: Cells) -> list[Claim]:
    def first_ahead(measure: str, pairs: int) -> bool:
        one, two = (cells.at(data=d, pairs=pairs, measure=measure).mean() for d in (1, 2))
        return bool(one > two)

    sims = {d: {m: cells.at(data=d, pairs=m, measure="similarity") for m in SIZES} for d in (1, 2)}
    against = [m for m in SIZES if first_ahead("similarity", m) != first_ahead("accuracy", m)]
    quarrel = Claim(
        "similarity and accuracy sometimes order Data 1 and Data 2 differently",
        "holds" if against else "does not hold",
        f"they do at {', '.join(map(str, against))} pairs" if against else "they never do",
    )
    return [
        every("similarity grows from 200 to 800 pairs", [
            greater(f"Data {d}", sims[d][800], sims[d][200]) for d in (1, 2)
        ]),
        quarrel,
        every(f"similarity at 800 pairs stays near cos(c - c_K, c) = {LIMIT}", [
            within(f"Data {d}", sims[d][800], LIMIT - 0.03, LIMIT + 0.03) for d in (1, 2)
        ], whose="ours"),
    ]  # fmt: skip


def figure7() -> Entry:
    return Entry(
        "figure7", "Accuracy with some of 800 training pairs reversed",
        "The loss is graceful: with 25 % of the pairs reversed accuracy is still about 85 %.",
        [Work(worlds.reversed_some, {"data": d, "pairs": 800, "counts": REVERSED}) for d in (1, 2)],
        _reversed_claims,
        [("", Drawing("method", "reversed", "accuracy"))],
        paper=[({"reversed": 200}, 0.85)],
        note="C by 800 validation pairs with the same share reversed.",
        held_equal=LEARNED + ", and the training pairs before some are reversed.",
    )  # fmt: skip


def _reversed_claims(cells: Cells) -> list[Claim]:
    both = cells.names("method")
    return [
        every("accuracy falls as more pairs are reversed", [
            greater(m, cells.at(method=m, reversed=5), cells.at(method=m, reversed=200))
            for m in both
        ]),
        every("85 % or more with a quarter of the pairs reversed", [
            at_least(m, cells.at(method=m, reversed=200), 0.85) for m in both
        ]),
    ]  # fmt: skip


def figure8() -> Entry:
    return Entry(
        "figure8", "Accuracy with some documents of the training lists graded at random",
        "Accuracy falls with the number of such documents; the loss is graceful.",
        [Work(worlds.regraded_some, {"data": d, "pairs": 800, "shares": SHARES}) for d in (1, 2)],
        _regraded_claims,
        [("", Drawing("method", "regraded", "accuracy"))],
        note="800 training pairs; `regraded` is the share of documents, and a random grade may be "
        "the old one.",
        held_equal=LEARNED + ", and the training pairs before some documents are regraded.",
    )  # fmt: skip


def _regraded_claims(cells: Cells) -> list[Claim]:
    both, (least, most) = cells.names("method"), (SHARES[0], SHARES[-1])
    return [
        every("accuracy falls as more documents are graded at random", [
            greater(m, cells.at(method=m, regraded=least), cells.at(method=m, regraded=most))
            for m in both
        ]),
        every("graceful: 85 % or more with 40 % graded at random", [
            at_least(m, cells.at(method=m, regraded=most), 0.85) for m in both
        ]),
    ]  # fmt: skip


def figure9() -> Entry:
    return Entry(
        "figure9", "Training pairs with the best order of the same list on one side",
        "Accuracy does not grow with the number of pairs.",
        [Work(worlds.optimal, {"data": d, "sizes": SIZES, "other_list": False}) for d in (1, 2)],
        _no_learning,
        [("", Drawing("method", "pairs", "accuracy"))],
        held_equal=LEARNED + ".",
    )  # fmt: skip


def _no_learning(cells: Cells) -> list[Claim]:
    return [
        every("800 pairs are no better than 20 (by less than two points)", [
            no_greater(m, cells.at(method=m, pairs=800), cells.at(method=m, pairs=20), 0.02)
            for m in cells.names("method")
        ]),
    ]  # fmt: skip


def figure10() -> Entry:
    works = [
        Work(worlds.optimal, {"data": d, "sizes": SIZES, "other_list": True}) for d in (1, 2)
    ]  # fmt: skip
    works += [Work(worlds.random_orders, {"data": d, "sizes": SIZES}) for d in (1, 2)]
    return Entry(
        "figure10", "Training pairs with the best order of another list on one side",
        "Such pairs teach, but more of them are needed than of random orders.",
        works, _slower,
        [("", Drawing("method", "pairs", "accuracy"))],
        held_equal="the number of training, validation (800) and test pairs, and the values of C "
        "to choose from; validation pairs are of the kind of the training pairs, test pairs are "
        "random orders.  Not equal: the two kinds have runs of their own.",
    )  # fmt: skip


def _slower(cells: Cells) -> list[Claim]:
    def line(kind: str, data: int, pairs: int) -> Floats:
        return cells.at(method=f"{kind} rankings, Data {data}", pairs=pairs)

    return [
        every("they teach: 800 pairs are better than 20", [
            greater(f"Data {d}", line("optimal", d, 800), line("optimal", d, 20)) for d in (1, 2)
        ]),
        every("random orders are better at 100 and at 800 pairs", [
            greater(f"Data {d}, {m} pairs", line("random", d, m), line("optimal", d, m))
            for d in (1, 2) for m in (100, 800)
        ]),
    ]  # fmt: skip


SIMULATED = (
    figure1(), accuracy_figure(2, 1), accuracy_figure(3, 2), bins_figure(4, 1), bins_figure(5, 2),
    figure6(), figure7(), figure8(), figure9(), figure10(),
)  # fmt: skip


WEB_SIZES = [20, 50, 100, 200, 400, 600, 800, 1000]
WEB_FEW = [200, 600, 1000]
WEB_SHARES = [0.0, 0.1, 0.2, 0.3, 0.4]
WEB_EDGES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0]
SETS = ("web10k", "web30k")
SAMPLE = (
    "With the sample of MSLR (the first 5,000 lines of Web10K's Fold1 train and test: 43 + 43 "
    "queries) the queries of train.txt stand for Web10K and those of test.txt for Web30K; neither "
    "is the paper's data.  Standard errors are over draws of pairs and folds, not over queries."
)


def figure11() -> Entry:
    works = [
        Work(worlds.web_learning, {"name": name, "sizes": WEB_SIZES}, runs=5, quick=2, needs=name)
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


def web_bins_figure(number: int, name: str) -> Entry:
    return Entry(
        f"figure{number}", f"Accuracy by the DCG difference of the test pair, {name}",
        "DCGLearn is much better than Other where the two rankings are close to each other.",
        [Work(worlds.web_by_difference, {"name": name, "pairs": 1000, "edges": WEB_EDGES},
              runs=5, quick=2, needs=name)],
        difference_claims,
        [("", Drawing("method", DIFFERENCE, "accuracy", ["Other"]))],
        note="Learned from 1000 pairs.  " + SAMPLE,
        held_equal=EXTRA + "  Other is fixed, and learns from none.",
    )  # fmt: skip


def web_noise_figure(number: int, name: str) -> Entry:
    return Entry(
        f"figure{number}", f"Accuracy with some documents judged at random, {name}",
        "Accuracy falls gracefully as more documents are judged at random; more pairs are better.",
        [Work(worlds.noisy, {"name": name, "sizes": WEB_FEW, "shares": WEB_SHARES}, runs=5, quick=2,
              needs=name)],
        _noise_claims,
        [("", Drawing("method", "noise", "accuracy", [f"{WEB_FEW[-1]} pairs, pairs reversed"]))],
        note="The caption speaks of noisy pairs, the text of documents judged at random: the text "
        "is followed, a document being misjudged alike in all lists; the dashed line has pairs "
        "reversed instead.  " + SAMPLE,
        held_equal=LEARNED + "; documents judged at random and pairs reversed have the same "
        "fraction, the same number of pairs and the same test pairs.",
    )  # fmt: skip


def _noise_claims(cells: Cells) -> list[Claim]:
    lines = [f"{m} pairs" for m in WEB_FEW]
    return [
        every("accuracy falls as more documents are judged at random", [
            greater(m, cells.at(method=m, noise=0.0), cells.at(method=m, noise=0.4)) for m in lines
        ]),
        every("1000 pairs are better than 200", [
            greater(f"noise {s:g}", cells.at(method=lines[-1], noise=s),
                    cells.at(method=lines[0], noise=s)) for s in WEB_SHARES
        ]),
        greater("documents judged at random harm more than as many pairs reversed, at 10 %",
                cells.at(method=f"{WEB_FEW[-1]} pairs, pairs reversed", noise=0.1),
                cells.at(method=lines[-1], noise=0.1), whose="ours"),
    ]  # fmt: skip


WEB = (
    figure11(), web_bins_figure(12, SETS[0]), web_bins_figure(13, SETS[1]),
    web_noise_figure(14, SETS[0]), web_noise_figure(15, SETS[1]),
)  # fmt: skip
