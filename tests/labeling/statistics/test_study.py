"""Simulated assessors agree as in the paper, and a study prints its tables."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.core.table import Table
from firstpage.labeling.statistics.agreement import Agreement, contrast, result_overlaps, total
from firstpage.labeling.statistics.records import Record
from firstpage.labeling.statistics.study import study
from firstpage.papers.niu2012.labeling import Crowd
from tests.labeling.statistics.simulated import simulated_results


def rows_of(results):
    """Yield a few answers and grades of each task, with constant times."""
    for (query, assessor, tool), labels in results.items():
        docs = sorted(labels)[:4]
        for i, left in enumerate(docs):
            if tool == "grades":
                yield Record(query, assessor, tool, left, grade=int(labels[left]), active=13.87)
            elif i:
                sign = int(np.sign(labels[left] - labels[docs[0]]))
                yield Record(query, assessor, tool, left, docs[0], sign, active=5.51)
    yield Record(query, assessor, "pairs", docs[0], docs[1], 1, kind="repeat")


def test_simulated_assessors_agree_as_in_the_paper():
    results = simulated_results(300, 50, 10, 2, seed=1)
    top, graded = (total(result_overlaps(results, tool)) for tool in ("pairs", "grades"))
    assert top.total == 300 * 1225 == graded.total
    assert top.overall == pytest.approx(0.745, abs=0.015)
    assert top.without_ties == pytest.approx(0.897, abs=0.015)
    assert top.ties == pytest.approx((780 / 1225, 780 / 1225))
    assert top.chance == pytest.approx(0.47, abs=0.005)
    assert graded.overall == pytest.approx(0.64, abs=0.015)
    assert graded.without_ties == pytest.approx(0.89, abs=0.01)
    # equal noise: the kappas differ less than the overall agreement
    assert top.overall - graded.overall > 0.1
    assert top.kappa - graded.kappa < 0.1


def test_assessors_without_noise_agree_on_everything():
    results = simulated_results(5, 20, 4, 3, crowd=Crowd(noise=0.0, jitter=0.0))
    for tool in ("pairs", "grades"):
        assert total(result_overlaps(results, tool)).overall == 1
    assert max(results["q0", "u0", "grades"].values()) == 4


def test_invalid_crowds_raise_an_error():
    with pytest.raises(DataError, match="noise and jitter must be"):
        Crowd(noise=-1.0)
    with pytest.raises(DataError, match="ascending"):
        Crowd(boundary_quantiles=(0.5, 0.4))


def first_keys(result):
    """Return the first two keys of the JSON record."""
    return list(result.to_dict())[:2]


def test_a_complete_study():
    results = simulated_results(12, 20, 5, 3)
    rows = list(rows_of(results))
    result = study(rows, results, rounds=200)
    assert result.effort["pairs"].seconds.mean == pytest.approx(5.51)
    assert result.effort["grades"].per_query.mean == 4
    assert result.derived["pairs"].total == 12 * 3 * 190
    assert result.tests["overall"].p < 0.001
    difference = result.differences["overall"]
    assert difference.value == pytest.approx(
        result.derived["pairs"].overall - result.derived["grades"].overall
    )
    assert difference.low < difference.value < difference.high
    assert list(result.effort) == ["pairs", "grades"]  # as in the paper
    assert result.shared["pairs"].total == 12 * 3 * 3
    estimate = result.estimates["pairs"]["overall"]
    assert estimate.value == pytest.approx(result.shared["pairs"].overall)
    assert estimate.low < estimate.value < estimate.high
    assert list(first_keys(result)) == ["shared_pairs", "derived_orders"]
    assert result.repeats.overall.total == 1
    assert result.alpha["grades"].low < result.alpha["grades"].value < result.alpha["grades"].high
    assert "favors top-k" in result.caution
    written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert written["derived_orders"]["pairs"]["overall"] == result.derived["pairs"].overall
    text = str(result)
    for text_part in ("Effort", "5.51", "13.87", "A≻B", "χ² = ", "Krippendorff's alpha", "Caution"):
        assert text_part in text
    symmetric = study(rows, results, rounds=2, symmetrize=True)
    for tool in ("pairs", "grades"):
        symmetrized, plain = symmetric.derived[tool], result.derived[tool]
        assert symmetrized.overall == pytest.approx(plain.overall)
        assert symmetrized.table[0, 0] == pytest.approx(symmetrized.table[2, 2])
    assert symmetric.tests["overall"].statistic == pytest.approx(result.tests["overall"].statistic)


@pytest.mark.parametrize(
    ("rows", "results"),
    [
        ([], {}),
        ([Record("q", "u", "lists", "a", grade=None, active=3.0)], {}),
        ([], {("q", "u", "pairs"): {"a": 1.0, "b": 0.0}}),  # one assessor
        ([], {("q", "u", "grades"): {"a": 1.0}, ("q", "v", "grades"): {"a": 1.0}}),  # one document
        (
            [],
            {("q", "u", "pairs"): {"a": 1.0}, ("q", "v", "pairs"): {"b": 1.0}},
        ),  # no common documents
        (
            [],
            {("q", w, t): {"a": 1.0, "b": 1.0} for w in "uv" for t in ("pairs", "grades")},
        ),  # ties
    ],
)
def test_degenerate_studies_are_defined(rows, results):
    result = study(rows, results, rounds=5)
    assert json.dumps(result.to_dict(), allow_nan=False)
    assert "nan" not in str(result)
    assert all(math.isnan(a.overall) for a in result.shared.values())
    assert all(math.isnan(a.kappa) for a in result.derived.values())


def test_shared_pairs_come_before_derived_orders():
    """Two assessors with equal final orders gave opposite answers to their shared pair."""
    results = {("q", assessor, "pairs"): {"a": 2.0, "b": 1.0, "c": 0.0} for assessor in "uv"}
    rows = [
        Record("q", "u", "pairs", "a", "b", 1),
        Record("q", "v", "pairs", "a", "b", -1),
        Record("q", "u", "pairs", "a", "c", 1),
        Record("q", "v", "pairs", "b", "c", 1),
    ]
    result = study(rows, results, rounds=5)
    assert (result.shared["pairs"].overall, result.shared["pairs"].total) == (0, 1)
    assert (result.derived["pairs"].overall, result.derived["pairs"].total) == (1, 3)
    titles = [table.title for table in result.tables()]
    assert titles.index("Agreement on shared pairs") < titles.index(
        "Agreement of derived orders, top-k labeling"
    )
    text = str(result)
    assert text.index("same answer") < text.index("by the assessors' final orders")


def test_a_note_says_that_no_pair_is_shared():
    results = {("q", assessor, "pairs"): {"a": 2.0, "b": 1.0, "c": 0.0} for assessor in "uv"}
    rows = [Record("q", "u", "pairs", "a", "b", 1), Record("q", "v", "pairs", "b", "c", 1)]
    assert "no pair of top-k labeling was answered by two" in str(study(rows, results, rounds=5))
    graded = {("q", assessor, "grades"): {"a": 2.0, "b": 1.0} for assessor in "uv"}
    assert "no pairs were asked" in str(study([], graded, rounds=5))


def test_the_tables_by_hand():
    table = Table(["", "x"], [["row", "1.5"]], "T", "note")
    assert table.text() == "T\n       x\n───  ───\nrow  1.5\nnote"
    assert Agreement.empty().rows()[0] == ["A≻B", "–", "–", "–"]


def test_contrast_by_hand():
    agreeing, opposed = np.diag([3.0, 1.0, 2.0]), np.array([[0, 0, 1], [0, 1, 0], [2, 0, 0]])
    first = {"q": Agreement(agreeing), "r": Agreement(opposed)}
    second = {"q": Agreement(opposed), "s": Agreement(opposed)}
    assert contrast(first, second).value == pytest.approx(7 / 10 - 2 / 8)
    assert contrast(first, second, "without_ties").value == pytest.approx(5 / 8 - 0)
    kappas = [sum(m.values(), Agreement.empty()).symmetrized().kappa for m in (first, second)]
    assert contrast(first, second, "kappa").value == pytest.approx(kappas[0] - kappas[1])
    assert math.isnan(contrast(first, {}).value)
    assert math.isnan(contrast({}, {}).value)
    with pytest.raises(DataError, match="statistic must be one of"):
        contrast(first, second, "nerve")


def test_the_interval_over_queries_is_wider_than_for_independent_pairs():
    """Pairs of a query are dependent: the interval is wider than that of a binomial."""
    results = simulated_results(60, 30, 6, 2)
    result = study([], results, rounds=500)
    top = result.derived["pairs"]
    independent = 1.96 * math.sqrt(2 * top.overall * (1 - top.overall) / top.total)
    assert (
        result.differences["overall"].high - result.differences["overall"].value > 2 * independent
    )
