"""Figures 1 to 15: simulated lists and real queries (MSLR) with a known true measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

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
from firstpage.papers.study.descriptions import Descriptions
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperProtocol,
    Row,
    every_row,
)
from firstpage.papers.zhou2013 import simulations
from firstpage.papers.zhou2013.simulations import DIFFERENCE

SIZES = [20, 50, 100, 200, 400, 600, 800]
AGREEMENT_EDGES = [0.25 + 0.5 * i for i in range(-1, 20)]  # of Figure 1; 1 is the middle of a bin
AGREEMENT_EDGES[0] = 0.0
DIFFERENCE_EDGES = {1: [0.5 * i for i in range(9)], 2: [3.0 * i for i in range(9)]}
REVERSED_COUNTS = [5, 25, 50, 100, 150, 200]
REGRADED_FRACTIONS = [0.05, 0.1, 0.2, 0.3, 0.4]
SIMILARITY_LIMIT = 0.892  # cos(c - c_K, c) for c = 1/log(k + 1), K = 10


DESCRIBED = Descriptions(__file__, SIMILARITY_LIMIT=SIMILARITY_LIMIT)


def cross_validated(
    key: str,
    experiments: Sequence[Experiment],
    claims: Callable[[Cells], list[Claim]],
    row_filter: Callable[[Row], bool] = every_row,
    **words: Any,
) -> PaperEntry:
    """Return an entry whose printed protocol has C by cross-validation on the training pairs."""
    entry = DESCRIBED.entry(key, experiments, claims, row_filter=row_filter, **words)
    full = [replace(e, params={**e.params, "cross_validated": True}) for e in experiments]
    note = f"C is tuned by cross-validation on the training pairs. {entry.note}".strip()
    return replace(
        entry,
        thinned=DESCRIBED.texts["THINNED"],
        paper_protocol=PaperProtocol(full, note, DESCRIBED.texts["CROSS_VALIDATION_EQUAL"]),
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


def _of_both(function: Callable[..., list[Row]], **params: Any) -> list[Experiment]:
    """Return an experiment on Data 1, and one on Data 2."""
    return [Experiment(function, {"data": data, **params}) for data in (1, 2)]


def _simulated_entries() -> Iterator[PaperEntry]:
    edges = {"edges": AGREEMENT_EDGES}
    yield DESCRIBED.entry(
        "figure1", [Experiment(simulations.gain_agreement, edges)], _figure1_claims
    )
    for data in (1, 2):
        yield cross_validated(
            "accuracy",
            [_learning(data)],
            _accuracy_claims,
            lambda row: row["measure"] == "accuracy",
            number=1 + data,
            data=data,
        )
    for data in (1, 2):
        params = {"data": data, "pairs": 800, "edges": DIFFERENCE_EDGES[data]}
        experiment = Experiment(simulations.accuracy_by_difference, params)
        yield cross_validated("bins", [experiment], difference_claims, number=3 + data, data=data)
    yield cross_validated(
        "figure6",
        [_learning(1), _learning(2)],
        _similarity_claims,
        lambda row: row["method"] == "DCGLearn",
    )
    reversals = _of_both(
        simulations.accuracy_with_reversed_pairs, pairs=800, counts=REVERSED_COUNTS
    )
    yield DESCRIBED.entry("figure7", reversals, _reversed_claims)
    regraded = _of_both(
        simulations.accuracy_with_regraded_documents, pairs=800, fractions=REGRADED_FRACTIONS
    )
    yield DESCRIBED.entry("figure8", regraded, _regraded_claims)
    same, other = (
        _of_both(simulations.learning_from_optimal_rankings, sizes=SIZES, other_list=other_list)
        for other_list in (False, True)
    )
    yield cross_validated("figure9", same, _figure9_claims)
    random = _of_both(simulations.learning_from_random_rankings, sizes=SIZES)
    yield cross_validated("figure10", other + random, _figure10_claims)


WEB_SIZES = [20, 50, 100, 200, 400, 600, 800, 1000]
WEB_NOISE_SIZES = [200, 600, 1000]
WEB_NOISE_FRACTIONS = [0.0, 0.1, 0.2, 0.3, 0.4]
WEB_EDGES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0]
WEB_DATASETS = ("web10k", "web30k")


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


def _web(function: Callable[..., list[Row]], name: str, **params: Any) -> Experiment:
    return Experiment(function, {"name": name, **params}, runs=5, fast_runs=2, dataset=name)


def _web_entries() -> Iterator[PaperEntry]:
    curves = [_web(simulations.web_learning_curve, name, sizes=WEB_SIZES) for name in WEB_DATASETS]
    yield cross_validated("figure11", curves, _figure11_claims)
    for number, name in enumerate(WEB_DATASETS, 12):
        bins = _web(simulations.web_accuracy_by_difference, name, pairs=1000, edges=WEB_EDGES)
        yield cross_validated("web bins", [bins], difference_claims, number=number, data=name)
    for number, name in enumerate(WEB_DATASETS, 14):
        noise = _web(
            simulations.web_accuracy_with_noise,
            name,
            sizes=WEB_NOISE_SIZES,
            fractions=WEB_NOISE_FRACTIONS,
        )
        yield DESCRIBED.entry("web noise", [noise], _noise_claims, number=number, data=name)


ENTRIES = (*_simulated_entries(), *_web_entries())
