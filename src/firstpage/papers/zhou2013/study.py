"""The study of Zhou et al. (2013); here Table 1 and Figures 16 to 23.

These are side-by-side judgments of simulated editors, and active learning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.papers.study.claims import all_hold, greater, greater_at, no_greater, within
from firstpage.papers.study.descriptions import Descriptions
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Experiment,
    PaperEntry,
    PaperStudy,
)
from firstpage.papers.zhou2013 import known_measure, news
from firstpage.papers.zhou2013.known_measure import WEB_DATASETS
from firstpage.papers.zhou2013.news import COUNTS

TEST_SETS = ("all", "Set1", "Set2")
SIZES = [20, 50, 100, 150, 230]
TIE_COSTS = [0.0, 0.001, 0.01, 0.1, 0.3, 1.0]
DESCRIBED = Descriptions(__file__, SAMPLE_NOTE=known_measure.DESCRIBED.texts["SAMPLE_NOTE"])


def _table1_claims(cells: Cells) -> list[Claim]:
    comparisons = [
        within(f"label {label}", cells.samples(label=label), n - n**0.5, n + n**0.5)
        for label, n in COUNTS.items()
    ]
    text = "the counts are those of the table, within their square root"
    return [all_hold(text, comparisons, source="ours")]


def _figure16_claims(cells: Cells) -> list[Claim]:
    def accuracy(method: str, test: str) -> Floats:
        return cells.samples(method=method, test=test)

    standard = ("Baseline1", "Baseline2")
    claims = [
        all_hold(
            "all are better than Random",
            [
                greater(f"{m}, {s}", accuracy(m, s), accuracy("Random", s))
                for m in (*standard, "DCGLearn")
                for s in TEST_SETS
            ],
        )
    ]
    for s in TEST_SETS:
        comparisons = [greater(m, accuracy("DCGLearn", s), accuracy(m, s)) for m in standard]
        claims.append(
            all_hold(f"DCGLearn is better than both standard measures ({s})", comparisons)
        )
    methods = (*standard, "DCGLearn")
    comparisons = greater_at(cells, {"test": "Set1"}, {"test": "Set2"}, method=methods)
    return [*claims, all_hold("Set1 is easier than Set2", comparisons)]


def _figure17_claims(cells: Cells) -> list[Claim]:
    return [
        greater(
            f"{SIZES[-1]} pairs are better than {SIZES[0]} ({s})",
            cells.samples(test=s, pairs=SIZES[-1]),
            cells.samples(test=s, pairs=SIZES[0]),
        )
        for s in TEST_SETS
    ]


def _figure18_claims(cells: Cells) -> list[Claim]:
    pairs = [(1, 2), (1, 4), (5, 2), (5, 4)]
    return [
        all_hold(
            "the difference is larger for labels 1 and 5 than for 2 and 4",
            [
                greater(f"{a} and {b}", cells.samples(label=a), cells.samples(label=b))
                for a, b in pairs
            ],
        ),
        all_hold(
            "the difference is larger for labels 2 and 4 than for ties",
            [greater(f"{a} and 3", cells.samples(label=a), cells.samples(label=3)) for a in (2, 4)],
            source="ours",
        ),
    ]


def _figure19_claims(cells: Cells) -> list[Claim]:
    def accuracy(train: str, test: str) -> Floats:
        return cells.samples(**{"trained on": train, "test": test})

    kinds = ("labels 1, 5", "labels 2, 4")
    return [
        all_hold(
            "one kind only is worse over all pairs",
            [
                greater(f"all against {kind}", accuracy("all", "all"), accuracy(kind, "all"))
                for kind in kinds
            ],
        ),
        greater(
            "on Set1, labels 1 and 5 alone are better than labels 2 and 4 alone",
            accuracy(kinds[0], "Set1"),
            accuracy(kinds[1], "Set1"),
        ),
        all_hold(
            "all pairs are best in all cases",
            [
                greater(f"{kind}, {s}", accuracy("all", s), accuracy(kind, s))
                for kind in kinds
                for s in TEST_SETS
            ],
        ),
        *(
            greater(
                f"with equal numbers of pairs, labels 1 and 5 are better than labels 2 and 4 ({s})",
                accuracy(kinds[0], s),
                accuracy(news.EQUAL_NUMBER, s),
                source="ours",
                held_equal=DESCRIBED.texts["EQUAL_NUMBER_HELD"],
            )
            for s in TEST_SETS
        ),
    ]


def _figure20_claims(cells: Cells) -> list[Claim]:
    def values(measure: str, cost: float) -> Floats:
        return cells.samples(measure=measure, C_tie=cost)

    ties, relative, accuracy = (
        [values(measure, cost) for cost in (0.0, 1.0)]
        for measure in ("tie difference", "tie difference / |w|", "accuracy")
    )
    no_fall = "accuracy does not fall by a point or more"
    relative_fall = "the difference falls relative to the norm of w, too"
    return [
        greater("the difference of ties falls as C_t grows", ties[0], ties[1]),
        greater("accuracy rises", accuracy[1], accuracy[0]),
        no_greater(no_fall, accuracy[0], accuracy[1], 0.01, source="ours"),
        greater(relative_fall, relative[0], relative[1], source="ours"),
    ]


LABEL_COUNTS = [20, 50, 100, 150, 200, 250, 300]
RANDOM_LABEL_COUNTS = [*LABEL_COUNTS, 400, 500, 600, 700, 800]
EDITOR_LABEL_COUNTS = [20, 40, 80, 120, 160, 200]
TARGET_ACCURACY = 0.97
RUNS = {"random": (20, 5), "simple-margin": (20, 5), "diverse": (20, 3), "committee": (6, 1)}
BATCH = {"random": 1, "simple-margin": 5, "diverse": 5, "committee": 10}


def _active_learning_claims(cells: Cells) -> list[Claim]:
    def accuracy(strategy: str, pairs: int) -> Floats:
        return cells.samples(strategy=strategy, pairs=pairs)

    claims = [
        greater(
            f"SimpleMargin is better than random at {count} labels",
            accuracy("simple-margin", count),
            accuracy("random", count),
        )
        for count in (100, 200)
    ]
    text = "SimpleMargin reaches 97 % with at most half the labels that random pairs need"
    claims.append(half_the_labels(text, cells, "simple-margin"))
    for name, strategy in (("diverse", "diverse"), ("the committee", "committee")):
        text = f"{name} needs at most half the labels, too"
        claims.append(half_the_labels(text, cells, strategy, source="ours"))
    return claims


def half_the_labels(text: str, cells: Cells, strategy: str, **source: Any) -> Claim:
    """Return the claim of half the labels, by the interpolated mean curves of common runs."""
    runs = min(len(c.values) for c in cells if c.labels["strategy"] in (strategy, "random"))
    needed, random_needed = (labels_needed(cells, name, runs) for name in (strategy, "random"))
    if needed is None:
        evidence = f"{strategy} does not reach {TARGET_ACCURACY:.0%}"
        return Claim(text, "does not hold", evidence, **source)
    random_text = "never" if random_needed is None else f"at {random_needed:.0f}"
    holds = random_needed is None or needed <= random_needed / 2
    evidence = (
        f"{strategy} reaches it at {needed:.0f} labels, random pairs {random_text} ({runs} runs)"
    )
    return Claim(text, "holds" if holds else "does not hold", evidence, **source)


def labels_needed(cells: Cells, strategy: str, runs: int | None = None) -> float | None:
    """Return the number of labels at which the mean accuracy of the first runs is reached."""
    points = [
        (c.labels["pairs"], float(c.values[:runs].mean()))
        for c in cells
        if c.labels["strategy"] == strategy
    ]
    for (m, low), (n, high) in pairwise(points):
        if high >= TARGET_ACCURACY:
            reached = low >= TARGET_ACCURACY
            return float(m if reached else np.interp(TARGET_ACCURACY, [low, high], [m, n]))
    return None


def _figure23_claims(cells: Cells) -> list[Claim]:
    def strategies(data: str) -> Callable[[int], tuple[Floats, Floats]]:
        return lambda m: (
            cells.samples(data=data, strategy="simple-margin", pairs=m),
            cells.samples(data=data, strategy="random", pairs=m),
        )

    claims = [
        greater(f"SimpleMargin is better than random pairs at {m} labels ({s})", *strategies(s)(m))
        for s in WEB_DATASETS
        for m in (100, 200)
    ]
    few = strategies(WEB_DATASETS[0])(50)
    return [
        *claims,
        greater(
            "SimpleMargin is worse than random pairs at very few labels (50, web10k)",
            few[1],
            few[0],
        ),
        *(
            greater(
                f"SimpleMargin is better than random pairs at {m} labels (simulated news)",
                *strategies("simulated news")(m),
            )
            for m in (80, 120)
        ),
    ]


def _editor_entries() -> Iterator[PaperEntry]:
    describe = DESCRIBED.entry
    values = [({"label": label}, float(n)) for label, n in COUNTS.items()]
    counts = [Experiment(news.label_counts)]
    yield describe("table1", counts, _table1_claims, fields={"paper_values": values})
    methods = [Experiment(news.method_accuracies, runs=100)]
    yield describe("figure16", methods, _figure16_claims, row_filter=lambda row: "method" in row)
    pairs = Experiment(news.accuracy_by_training_pairs, {"sizes": SIZES}, runs=20, fast_runs=3)
    yield describe("figure17", [pairs], _figure17_claims)
    yield describe("figure18", methods, _figure18_claims, row_filter=lambda row: "label" in row)
    labels = Experiment(news.accuracy_by_training_labels, runs=200, fast_runs=3)
    yield describe("figure19", [labels], _figure19_claims)
    costs = Experiment(news.effect_of_tie_cost, {"costs": TIE_COSTS}, runs=100)
    yield describe("figure20", [costs], _figure20_claims)


def _active_entry(
    key: str,
    experiments: list[Experiment],
    claims: Callable[[Cells], list[Claim]],
    **words: Any,
) -> PaperEntry:
    """Return an entry in whose printed protocol the measure is learned anew after each answer."""
    full = [replace(e, params={**e.params, "batch": 1}) for e in experiments]
    return DESCRIBED.entry(key, experiments, claims, paper_experiments=full, **words)


def _simulated_labeling(data: int) -> list[Experiment]:
    return [
        Experiment(
            news.simulated_active_learning,
            {
                "data": data,
                "strategy": name,
                "sizes": RANDOM_LABEL_COUNTS if name == "random" else LABEL_COUNTS,
                "batch": BATCH[name],
            },
            f"asking {data}",
            *RUNS[name],
        )
        for name in RUNS
    ]


def _web_and_editor_labeling() -> list[Experiment]:
    names = ("random", "simple-margin")
    experiments = [
        Experiment(
            news.web_active_learning,
            {"name": s, "strategy": n, "sizes": LABEL_COUNTS, "batch": BATCH[n]},
            f"asking {s}",
            10,
            2,
            s,
        )
        for s in WEB_DATASETS
        for n in names
    ]
    return experiments + [
        Experiment(
            news.editor_active_learning,
            {"strategy": n, "sizes": EDITOR_LABEL_COUNTS, "batch": 10},
            "asking editors",
            60,
            3,
        )
        for n in names
    ]


ENTRIES = (
    *known_measure.ENTRIES,
    *_editor_entries(),
    *(
        _active_entry(
            "labeling",
            _simulated_labeling(data),
            _active_learning_claims,
            number=20 + data,
            data=data,
        )
        for data in (1, 2)
    ),
    _active_entry("figure23", _web_and_editor_labeling(), _figure23_claims),
)
ZHOU2013 = PaperStudy(
    "zhou2013",
    "Zhou, Zha, Chang, Xue: Learning the Gain Values and Discount Factors of Discounted "
    "Cumulative Gains (2013)",
    {entry.name: entry for entry in ENTRIES},
    (  # without the modules of claims, which may change without a new computation
        "firstpage.papers.zhou2013.simulations",
        "firstpage.papers.zhou2013.news",
        "firstpage.evaluation.dcglearn",
        "firstpage.core.kernels.losses.preferences",
        "firstpage.data.preferences",
    ),
)
