"""Figures 1 to 15: simulated lists and real queries (MSLR) with a known true measure."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from firstpage.core import Floats
from firstpage.papers.study.claims import (
    all_hold,
    at_least,
    below,
    greater,
    greater_at,
    no_greater,
    within,
)
from firstpage.papers.study.study import Cells, Claim, Experiment, PaperEntry, PaperProtocol, Plot
from firstpage.papers.zhou2013 import simulations
from firstpage.papers.zhou2013.simulations import DIFFERENCE

SIZES = [20, 50, 100, 200, 400, 600, 800]
AGREEMENT_EDGES = [0.25 + 0.5 * i for i in range(-1, 20)]  # of Figure 1; 1 is the middle of a bin
AGREEMENT_EDGES[0] = 0.0
DIFFERENCE_EDGES = {1: [0.5 * i for i in range(9)], 2: [3.0 * i for i in range(9)]}
REVERSED_COUNTS = [5, 25, 50, 100, 150, 200]
REGRADED_FRACTIONS = [0.05, 0.1, 0.2, 0.3, 0.4]
LEARNING_EQUAL = (
    "in each run, for all numbers of training pairs: test pairs, validation pairs (800, as noisy "
    "as the training pairs) and the grid of C"
)
VALIDATION_EQUAL = (
    f"{LEARNING_EQUAL}. Not equal: DCGLearn has 800 validation pairs in addition to its training "
    "pairs. Other is fixed: it learns from no pairs."
)
SIMILARITY_LIMIT = 0.892  # cos(c - c_K, c) for c = 1/log(k + 1), K = 10


THINNED = (
    "C is tuned on 800 validation pairs, instead of by cross-validation on the training pairs."
)
CROSS_VALIDATION_EQUAL = (
    "in each run, for all numbers of training pairs: test pairs and the grid of C, which is tuned "
    "by five-fold cross-validation on the training pairs. Other is fixed: it learns from no pairs."
)


def cross_validated(entry: PaperEntry) -> PaperEntry:
    """Return an entry with the paper's protocol: C by cross-validation on the training pairs."""
    experiments = [
        replace(e, params={**e.params, "cross_validated": True}) for e in entry.experiments
    ]
    note = f"C is tuned by cross-validation on the training pairs. {entry.note}".strip()
    full = PaperProtocol(experiments, note, CROSS_VALIDATION_EQUAL)
    return replace(entry, thinned=THINNED, paper_protocol=full)


def figure1() -> PaperEntry:
    return PaperEntry(
        "figure1",
        "Agreement of the gains 2^l - 1 and l, by the DCG difference",
        "The two measures disagree on many pairs, mostly where the difference is small; even at a "
        "difference of 1 only about 80 % of the pairs agree.",
        [Experiment(simulations.gain_agreement, {"edges": AGREEMENT_EDGES})],
        _figure1_claims,
        [("", Plot("discount", DIFFERENCE, "fraction of pairs on which both agree"))],
        paper_values=[({"discount": "natural logarithm", DIFFERENCE: 1.0}, 0.8)],
        note="The paper does not give the base of its logarithm, which scales the axis; both are "
        "shown.",
        held_equal="the pairs of rankings, which are the same for both measures and both units.",
    )


def _figure1_claims(cells: Cells) -> list[Claim]:
    natural = partial(cells.samples, discount="natural logarithm")
    differences = cells.label_values(DIFFERENCE)
    claims = [
        greater(
            "agreement grows with the difference",
            natural(**{DIFFERENCE: differences[-1]}),
            natural(**{DIFFERENCE: differences[0]}),
            margin=0.3,
        ),
        below(
            "at small differences agreement is little above chance (below 60 %)",
            natural(**{DIFFERENCE: differences[0]}),
            0.6,
        ),
    ]
    for unit in cells.label_values("discount"):
        values = cells.samples(**{"discount": unit, DIFFERENCE: 1.0})
        claims.append(within(f"about 80 % agree at a difference of 1 ({unit})", values, 0.77, 0.83))
    return claims


def accuracy_figure(number: int, data: int) -> PaperEntry:
    return PaperEntry(
        f"figure{number}",
        f"Accuracy by the number of training pairs, Data {data}",
        "Accuracy grows to nearly 98 % at 800 pairs; the measure of the other data set (Other) "
        "stays below 90 %.",
        [_learning(data)],
        _accuracy_claims,
        [("", Plot("method", "pairs", "accuracy", ["Other"]))],
        row_filter=lambda row: row["measure"] == "accuracy",
        paper_values=[({"method": "DCGLearn", "pairs": 800}, 0.98), ({"method": "Other"}, 0.9)],
        held_equal=VALIDATION_EQUAL,
    )


def _learning(data: int) -> Experiment:
    return Experiment(
        simulations.learning_curve, {"data": data, "sizes": SIZES}, f"learning {data}"
    )


def _accuracy_claims(cells: Cells) -> list[Claim]:
    ours = partial(cells.samples, method="DCGLearn")
    other = cells.samples(method="Other", pairs=800)
    return [
        greater("accuracy grows with the pairs", ours(pairs=800), ours(pairs=20)),
        at_least("about 98 % at 800 pairs (97 % or more)", ours(pairs=800), 0.97),
        within("Other agrees with about 90 % (89 to 91 %)", other, 0.89, 0.91),
        below("Other agrees with less than 90 %", other, 0.9),
        greater("DCGLearn is better than Other at 800 pairs", ours(pairs=800), other),
    ]


def bins_figure(number: int, data: int) -> PaperEntry:
    edges = DIFFERENCE_EDGES[data]
    return PaperEntry(
        f"figure{number}",
        f"Accuracy by the DCG difference of the test pair, Data {data}",
        "DCGLearn is far better than Other where the difference is small.",
        [
            Experiment(
                simulations.accuracy_by_difference, {"data": data, "pairs": 800, "edges": edges}
            )
        ],
        difference_claims,
        [("", Plot("method", DIFFERENCE, "accuracy", ["Other"]))],
        note="Learned from 800 pairs; the paper does not give the number. Differences are in "
        "units of the natural logarithm.",
        held_equal=VALIDATION_EQUAL,
    )


def difference_claims(cells: Cells) -> list[Claim]:
    """Return the claims about Figures 4, 5, 12 and 13."""
    first, *_, last = cells.label_values(DIFFERENCE)

    ours, other = (cells.samples(**{"method": m, DIFFERENCE: first}) for m in ("DCGLearn", "Other"))
    highest = [cells.samples(**{"method": m, DIFFERENCE: last}) for m in ("DCGLearn", "Other")]
    n = min(len(ours), len(highest[0]))
    return [
        greater(
            "better than Other by 10 points or more in the lowest bin", ours, other, margin=0.1
        ),
        greater(
            "the gain is greater in the lowest bin than in the highest",
            ours[:n] - other[:n],
            highest[0][:n] - highest[1][:n],
        ),
    ]


def figure6() -> PaperEntry:
    return PaperEntry(
        "figure6",
        "Similarity of the learned weights with the true ones",
        "Similarity grows with the number of pairs, and sometimes orders Data 1 and Data 2 "
        "differently from accuracy.",
        [_learning(1), _learning(2)],
        _similarity_claims,
        [("similarity", Plot("data", "pairs", "similarity"))],
        note="Pairs of orders of the same grades determine the discounts only up to a constant; "
        f"cos(c - c_K, c) = {SIMILARITY_LIMIT} is then the similarity of the best learnable "
        "weights.",
        row_filter=lambda row: row["method"] == "DCGLearn",
        held_equal=LEARNING_EQUAL + ". Not equal: Data 1 and Data 2 have different pairs.",
    )


def _similarity_claims(cells: Cells) -> list[Claim]:
    def first_ahead(measure: str, pairs: int) -> bool:
        data_1, data_2 = (
            cells.samples(data=d, pairs=pairs, measure=measure).mean() for d in (1, 2)
        )
        return bool(data_1 > data_2)

    similarities = {
        d: {m: cells.samples(data=d, pairs=m, measure="similarity") for m in SIZES} for d in (1, 2)
    }
    differing = [m for m in SIZES if first_ahead("similarity", m) != first_ahead("accuracy", m)]
    disagreement = Claim(
        "similarity and accuracy sometimes order Data 1 and Data 2 differently",
        "holds" if differing else "does not hold",
        f"at {', '.join(map(str, differing))} pairs" if differing else "at no number of pairs",
    )
    return [
        all_hold(
            "similarity grows from 200 to 800 pairs",
            [greater(f"Data {d}", similarities[d][800], similarities[d][200]) for d in (1, 2)],
        ),
        disagreement,
        all_hold(
            f"similarity at 800 pairs is near cos(c - c_K, c) = {SIMILARITY_LIMIT}",
            [
                within(
                    f"Data {d}",
                    similarities[d][800],
                    SIMILARITY_LIMIT - 0.03,
                    SIMILARITY_LIMIT + 0.03,
                )
                for d in (1, 2)
            ],
            source="ours",
        ),
    ]


def figure7() -> PaperEntry:
    return PaperEntry(
        "figure7",
        "Accuracy with some of 800 training pairs reversed",
        "The loss is graceful: with 25 % of the pairs reversed accuracy is still about 85 %.",
        [
            Experiment(
                simulations.accuracy_with_reversed_pairs,
                {"data": d, "pairs": 800, "counts": REVERSED_COUNTS},
            )
            for d in (1, 2)
        ],
        _reversed_claims,
        [("", Plot("method", "reversed", "accuracy"))],
        paper_values=[({"reversed": 200}, 0.85)],
        note="C is tuned on 800 validation pairs with the same fraction reversed.",
        held_equal=LEARNING_EQUAL + ", and the training pairs before some are reversed.",
    )


def _reversed_claims(cells: Cells) -> list[Claim]:
    methods = cells.label_values("method")
    return [
        all_hold(
            "accuracy falls as more pairs are reversed",
            greater_at(cells, {"reversed": 5}, {"reversed": 200}, method=methods),
        ),
        all_hold(
            "85 % or more with a quarter of the pairs reversed",
            [at_least(m, cells.samples(method=m, reversed=200), 0.85) for m in methods],
        ),
    ]


def figure8() -> PaperEntry:
    return PaperEntry(
        "figure8",
        "Accuracy with some documents of the training lists graded at random",
        "Accuracy falls with the number of such documents; the loss is graceful.",
        [
            Experiment(
                simulations.accuracy_with_regraded_documents,
                {"data": d, "pairs": 800, "fractions": REGRADED_FRACTIONS},
            )
            for d in (1, 2)
        ],
        _regraded_claims,
        [("", Plot("method", "regraded", "accuracy"))],
        note="800 training pairs; `regraded` is the fraction of documents, and a random grade may "
        "be the old one.",
        held_equal=LEARNING_EQUAL + ", and the training pairs before some documents are regraded.",
    )


def _regraded_claims(cells: Cells) -> list[Claim]:
    methods = cells.label_values("method")
    low, high = REGRADED_FRACTIONS[0], REGRADED_FRACTIONS[-1]
    return [
        all_hold(
            "accuracy falls as more documents are graded at random",
            greater_at(cells, {"regraded": low}, {"regraded": high}, method=methods),
        ),
        all_hold(
            "graceful: 85 % or more with 40 % graded at random",
            [at_least(m, cells.samples(method=m, regraded=high), 0.85) for m in methods],
        ),
    ]


def figure9() -> PaperEntry:
    return PaperEntry(
        "figure9",
        "Training pairs with the optimal order of the same list on one side",
        "Accuracy does not grow with the number of pairs.",
        [
            Experiment(
                simulations.learning_from_optimal_rankings,
                {"data": d, "sizes": SIZES, "other_list": False},
            )
            for d in (1, 2)
        ],
        _figure9_claims,
        [("", Plot("method", "pairs", "accuracy"))],
        held_equal=LEARNING_EQUAL + ".",
    )


def _figure9_claims(cells: Cells) -> list[Claim]:
    return [
        all_hold(
            "800 pairs are no better than 20 (by less than two points)",
            [
                no_greater(
                    m, cells.samples(method=m, pairs=800), cells.samples(method=m, pairs=20), 0.02
                )
                for m in cells.label_values("method")
            ],
        )
    ]


def figure10() -> PaperEntry:
    experiments = [
        Experiment(
            simulations.learning_from_optimal_rankings,
            {"data": d, "sizes": SIZES, "other_list": True},
        )
        for d in (1, 2)
    ]
    experiments += [
        Experiment(simulations.learning_from_random_rankings, {"data": d, "sizes": SIZES})
        for d in (1, 2)
    ]
    return PaperEntry(
        "figure10",
        "Training pairs with the optimal order of another list on one side",
        "Such pairs help, but more of them are needed than of random orders.",
        experiments,
        _figure10_claims,
        [("", Plot("method", "pairs", "accuracy"))],
        held_equal="the numbers of training, validation (800) and test pairs, and the grid of C. "
        "Validation pairs are of the same kind as the training pairs. Test pairs are random "
        "orders. Not equal: the two kinds have different runs.",
    )


def _figure10_claims(cells: Cells) -> list[Claim]:
    def line(kind: str, data: int, pairs: int) -> Floats:
        return cells.samples(method=f"{kind} rankings, Data {data}", pairs=pairs)

    return [
        all_hold(
            "learning from them: 800 pairs are better than 20",
            [greater(f"Data {d}", line("optimal", d, 800), line("optimal", d, 20)) for d in (1, 2)],
        ),
        all_hold(
            "random orders are better at 100 and at 800 pairs",
            [
                greater(f"Data {d}, {m} pairs", line("random", d, m), line("optimal", d, m))
                for d in (1, 2)
                for m in (100, 800)
            ],
        ),
    ]


SIMULATED_ENTRIES = (
    figure1(),
    cross_validated(accuracy_figure(2, 1)),
    cross_validated(accuracy_figure(3, 2)),
    cross_validated(bins_figure(4, 1)),
    cross_validated(bins_figure(5, 2)),
    cross_validated(figure6()),
    figure7(),
    figure8(),
    cross_validated(figure9()),
    cross_validated(figure10()),
)


WEB_SIZES = [20, 50, 100, 200, 400, 600, 800, 1000]
WEB_NOISE_SIZES = [200, 600, 1000]
WEB_NOISE_FRACTIONS = [0.0, 0.1, 0.2, 0.3, 0.4]
WEB_EDGES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0]
WEB_DATASETS = ("web10k", "web30k")
SAMPLE_NOTE = (
    "The sample of MSLR has the first 5,000 lines of Web10K's Fold1 train and test, with 43 + 43 "
    "queries. If it is used, the queries of train.txt substitute Web10K and those of test.txt "
    "Web30K; neither is the data of the paper. Standard errors are over draws of pairs and folds, "
    "not over queries."
)


def figure11() -> PaperEntry:
    experiments = [
        Experiment(
            simulations.web_learning_curve,
            {"name": name, "sizes": WEB_SIZES},
            runs=5,
            fast_runs=2,
            dataset=name,
        )
        for name in WEB_DATASETS
    ]
    return PaperEntry(
        "figure11",
        "Accuracy by the number of training pairs, Web10K and Web30K",
        "Accuracy grows with the pairs, almost as in the simulations; Other agrees with 90 %.",
        experiments,
        _figure11_claims,
        [
            (
                "accuracy",
                Plot("method", "pairs", "accuracy", [f"Other, {name}" for name in WEB_DATASETS]),
            ),
            ("similarity", Plot("method", "pairs", "similarity")),
        ],
        paper_values=[
            ({"method": f"Other, {name}", "measure": "accuracy"}, 0.9) for name in WEB_DATASETS
        ],
        note="Similarity is ours: here lists differ in their grades, and it may exceed the limit "
        "of Figure 6. " + SAMPLE_NOTE,
        held_equal=VALIDATION_EQUAL,
    )


def _figure11_claims(cells: Cells) -> list[Claim]:
    def dataset_claims(name: str) -> list[Claim]:
        ours = partial(cells.samples, method=f"DCGLearn, {name}", measure="accuracy")
        similarity = cells.samples(method=f"DCGLearn, {name}", measure="similarity", pairs=1000)
        other = cells.samples(method=f"Other, {name}", pairs=1000)
        return [
            greater(f"accuracy grows with the pairs ({name})", ours(pairs=1000), ours(pairs=20)),
            within(
                f"almost as in the simulations: 96 to 99 % at 800 pairs ({name})",
                ours(pairs=800),
                0.96,
                0.99,
            ),
            within(f"Other agrees with about 90 % (89 to 91 %, {name})", other, 0.89, 0.91),
            greater(
                f"DCGLearn is better than Other at 1000 pairs ({name})", ours(pairs=1000), other
            ),
            at_least(
                f"similarity exceeds the limit of one list of grades, {SIMILARITY_LIMIT} ({name})",
                similarity,
                SIMILARITY_LIMIT,
                source="ours",
            ),
        ]

    return [claim for name in WEB_DATASETS for claim in dataset_claims(name)]


def web_bins_figure(number: int, name: str) -> PaperEntry:
    return PaperEntry(
        f"figure{number}",
        f"Accuracy by the DCG difference of the test pair, {name}",
        "DCGLearn is much better than Other where the two rankings are close to each other.",
        [
            Experiment(
                simulations.web_accuracy_by_difference,
                {"name": name, "pairs": 1000, "edges": WEB_EDGES},
                runs=5,
                fast_runs=2,
                dataset=name,
            )
        ],
        difference_claims,
        [("", Plot("method", DIFFERENCE, "accuracy", ["Other"]))],
        note="Learned from 1000 pairs. " + SAMPLE_NOTE,
        held_equal=VALIDATION_EQUAL,
    )


def web_noise_figure(number: int, name: str) -> PaperEntry:
    return PaperEntry(
        f"figure{number}",
        f"Accuracy with some documents judged at random, {name}",
        "Accuracy falls gracefully as more documents are judged at random; more pairs are better.",
        [
            Experiment(
                simulations.web_accuracy_with_noise,
                {"name": name, "sizes": WEB_NOISE_SIZES, "fractions": WEB_NOISE_FRACTIONS},
                runs=5,
                fast_runs=2,
                dataset=name,
            )
        ],
        _noise_claims,
        [
            (
                "",
                Plot(
                    "method", "noise", "accuracy", [f"{WEB_NOISE_SIZES[-1]} pairs, some reversed"]
                ),
            )
        ],
        note="The caption of the paper mentions noisy pairs, its text documents judged at random. "
        "We follow the text: a document has the same wrong grade in all lists. The dashed line has "
        "reversed pairs instead. " + SAMPLE_NOTE,
        held_equal=LEARNING_EQUAL + ". Documents judged at random and reversed pairs have the same "
        "fraction, the same number of pairs and the same test pairs.",
    )


def _noise_claims(cells: Cells) -> list[Claim]:
    lines = [f"{m} pairs" for m in WEB_NOISE_SIZES]
    return [
        all_hold(
            "accuracy falls as more documents are judged at random",
            greater_at(cells, {"noise": 0.0}, {"noise": 0.4}, method=lines),
        ),
        all_hold(
            "1000 pairs are better than 200",
            [
                greater(
                    f"noise {s:g}",
                    cells.samples(method=lines[-1], noise=s),
                    cells.samples(method=lines[0], noise=s),
                )
                for s in WEB_NOISE_FRACTIONS
            ],
        ),
        greater(
            "documents judged at random harm more than the same fraction (10 %) of reversed pairs",
            cells.samples(method=f"{WEB_NOISE_SIZES[-1]} pairs, some reversed", noise=0.1),
            cells.samples(method=lines[-1], noise=0.1),
            source="ours",
        ),
    ]


WEB_ENTRIES = (
    cross_validated(figure11()),
    cross_validated(web_bins_figure(12, WEB_DATASETS[0])),
    cross_validated(web_bins_figure(13, WEB_DATASETS[1])),
    web_noise_figure(14, WEB_DATASETS[0]),
    web_noise_figure(15, WEB_DATASETS[1]),
)
