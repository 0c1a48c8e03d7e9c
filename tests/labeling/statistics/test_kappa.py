"""Fleiss' kappa and Krippendorff's alpha: published examples, plain references, real votes."""

from __future__ import annotations

import csv
import math
from itertools import permutations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.errors import DataError
from firstpage.labeling.statistics.agreement import by_assessor, pair_answers, pair_overlaps
from firstpage.labeling.statistics.agreement import total as all_of
from firstpage.labeling.statistics.consistency import Triads, position_bias, triads
from firstpage.labeling.statistics.intervals import Proportion
from firstpage.labeling.statistics.kappa import (
    Ratings,
    fleiss_kappa,
    krippendorff_alpha,
    relation_ratings,
)
from firstpage.labeling.statistics.records import Record
from tests.labeling.statistics.simulated import simulated_results

_ = math.nan
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability": four observers, twelve units.
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T
# Fleiss 1971, Table 1: thirty patients, six psychiatrists each, five diagnoses.
FLEISS = [
    [0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0],
    [2, 0, 4, 0, 0], [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6],
    [1, 0, 0, 5, 0], [1, 1, 0, 4, 0], [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1],
    [0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0], [0, 2, 0, 4, 0], [1, 0, 2, 0, 3],
    [0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0], [1, 0, 0, 4, 1],
    [0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6],
]  # fmt: skip


def ratings_of_counts(counts):
    return Ratings.from_units(
        (str(i), [v for v, c in enumerate(row) for _ in range(c)]) for i, row in enumerate(counts)
    )


def pair_ratings(records):
    """Return raw answers as ratings: a unit is a pair of documents, in both orientations."""
    answers = pair_answers(records).items()
    return Ratings.from_units(
        (query, outcomes.values()) for (query, _, _), outcomes in answers
    ).symmetrized()


def plain_alpha(units, metric):
    """Return 1 - Do/De over all ordered pairs of values, by the definition."""
    units = [[v for v in unit if not math.isnan(v)] for unit in units]
    units = [unit for unit in units if len(unit) > 1]
    values = [v for unit in units for v in unit]

    def distance(c, k):
        if metric == "nominal":
            return float(c != k)
        if metric == "interval":
            return (c - k) ** 2
        low, high = min(c, k), max(c, k)
        between = sum(low <= v <= high for v in values)
        return (between - (values.count(c) + values.count(k)) / 2) ** 2 if c != k else 0.0

    observed = sum(
        distance(c, k) / (len(unit) - 1) for unit in units for c, k in permutations(unit, 2)
    ) / max(len(values), 1)
    expected = sum(distance(c, k) for c, k in permutations(values, 2))
    if not expected:
        return math.nan
    return 1 - observed / (expected / (len(values) * (len(values) - 1)))


def plain_fleiss(units):
    units = [unit for unit in units if len(unit) > 1]
    if not units:
        return math.nan
    agree = fmean(fmean(a == b for a, b in permutations(unit, 2)) for unit in units)
    values = [v for unit in units for v in unit]
    expected = sum((values.count(v) / len(values)) ** 2 for v in set(values))
    return (agree - expected) / (1 - expected) if expected < 1 else math.nan


@pytest.mark.parametrize(
    ("metric", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_s_example(metric, expected):
    alpha = krippendorff_alpha(Ratings.from_matrix(KRIPPENDORFF), metric)
    assert alpha.value == pytest.approx(expected, abs=5e-4)
    assert alpha.value == pytest.approx(plain_alpha(KRIPPENDORFF.tolist(), metric))
    assert alpha.low < alpha.value < alpha.high


def test_fleiss_s_example():
    assert all(sum(row) == 6 for row in FLEISS)
    # P = .5556 and Pe = .2199, as by hand: kappa = .430
    assert fleiss_kappa(ratings_of_counts(FLEISS)).value == pytest.approx(0.430, abs=5e-4)


def test_a_worked_example_of_fleiss_kappa():
    """Ten subjects, fourteen raters, five categories: P = .378, Pe = .213, kappa = .210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(ratings_of_counts(counts)).value == pytest.approx(0.210, abs=5e-4)


units_of = st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=6)


@given(units_of)
def test_statistics_match_plain_references(units):
    ratings = Ratings.from_units((str(i), unit) for i, unit in enumerate(units))
    estimate = fleiss_kappa(ratings, rounds=5)
    assert estimate.value == pytest.approx(plain_fleiss(units), nan_ok=True)
    for metric in ("nominal", "ordinal", "interval"):
        estimate = krippendorff_alpha(ratings, metric, rounds=5)
        assert estimate.value == pytest.approx(plain_alpha(units, metric), nan_ok=True)


@given(st.integers(1, 5), st.integers(1, 6), st.randoms())
def test_alpha_is_invariant_to_permutations(people, units, random):
    table = np.array([[random.choice([0, 1, 2, _]) for _p in range(people)] for _u in range(units)])
    permuted = table[random.sample(range(units), units)][:, random.sample(range(people), people)]
    for metric in ("nominal", "ordinal", "interval"):
        a, b = (
            krippendorff_alpha(Ratings.from_matrix(t), metric, rounds=2).value
            for t in (table, permuted)
        )
        assert a == pytest.approx(b, nan_ok=True)


def test_degenerate_ratings_are_defined():
    empty = Ratings.from_matrix(np.full((3, 2), _))
    single = Ratings.from_matrix([[1.0], [2.0]])
    same = Ratings.from_matrix([[1.0, 1.0], [1.0, 1.0]])
    for ratings in (empty, single, same, Ratings.from_units([]), relation_ratings({}, "pairs")):
        for estimate in (fleiss_kappa(ratings), krippendorff_alpha(ratings)):
            assert math.isnan(estimate.value)
            assert math.isnan(estimate.low)
            assert estimate.to_dict()["value"] is None
            assert str(estimate) == "– [–, –]"
    perfect = Ratings.from_matrix([[1.0, 1.0], [2.0, 2.0]])
    assert krippendorff_alpha(perfect).value == 1
    assert fleiss_kappa(perfect).value == 1


def test_invalid_ratings_raise_an_error():
    with pytest.raises(DataError, match="units x assessors"):
        Ratings.from_matrix([1.0])
    with pytest.raises(DataError, match="one entry for each of the 1 units"):
        Ratings.from_matrix([[1.0]], ["a", "b"])
    with pytest.raises(DataError, match="metric must be"):
        krippendorff_alpha(Ratings.from_matrix([[1.0]]), "ratio")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="at most 200"):
        krippendorff_alpha(Ratings.from_matrix(np.arange(402.0).reshape(201, 2)))


def test_the_interval_resamples_queries_by_its_seed():
    results = simulated_results(20, 12, 4, 3)
    ratings = relation_ratings(results, "grades")
    assert ratings.queries == 20
    assert ratings.counts.shape == (2 * 20 * 66, 3)
    a, b, c = (krippendorff_alpha(ratings, "ordinal", seed=s) for s in (1, 1, 2))
    assert a == b != c
    assert a.low < a.value < a.high
    wide = krippendorff_alpha(ratings, "ordinal", level=0.99)
    assert wide.low < a.low
    assert wide.high > a.high
    # a single query has no interval
    single_query = Ratings.from_matrix([[1.0, 2.0], [2.0, 2.0]], groups=["q", "q"])
    assert math.isnan(krippendorff_alpha(single_query).low)
    assert not math.isnan(krippendorff_alpha(single_query).value)


def test_ratings_from_results_and_records():
    results = {
        ("q", "u", "pairs"): {"a": 2.0, "b": 1.0},
        ("q", "v", "pairs"): {"a": 1.0, "b": 2.0},
        ("q", "v", "grades"): {"a": 9.0},
    }
    assert relation_ratings(results, "pairs").counts.tolist() == [[1, 1], [1, 1]]  # both ways
    rows = [
        Record("q", "u", "pairs", "a", "b", 1),
        Record("q", "v", "pairs", "b", "a", 0),
    ]
    assert pair_ratings(rows).counts.tolist() == [[0, 1, 1], [1, 1, 0]]


def test_statistics_are_invariant_to_document_names():
    """With names from best to worst, every relation would be +1 in one orientation."""
    results = simulated_results(10, 8, 3, 3)
    first = results["q0", "u0", "pairs"]
    order = sorted(first, key=lambda d: -first[d])
    renamed = {
        key: {f"x{order.index(d)}": label for d, label in labels.items()}
        for key, labels in results.items()
    }
    for tool in ("pairs", "grades"):
        original, by_rank = (relation_ratings(r, tool) for r in (results, renamed))
        assert fleiss_kappa(original).value == pytest.approx(fleiss_kappa(by_rank).value)
        for metric in ("nominal", "ordinal", "interval"):
            a, b = (krippendorff_alpha(r, metric, rounds=2).value for r in (original, by_rank))
            assert a == pytest.approx(b)


def test_wilson_s_interval():
    low, high = Proportion(8, 10).interval  # Wilson 1927: .4902 and .9433
    assert (low, high) == pytest.approx((0.4902, 0.9433), abs=5e-5)
    assert Proportion(0, 0).interval == (0.0, 1.0)
    assert math.isnan(Proportion(0, 0).value)
    assert Proportion(0, 5).interval[0] == 0.0
    assert Proportion(5, 5).interval[1] == 1.0
    assert Proportion(0, 0).to_dict()["value"] is None


@pytest.mark.data
def test_real_votes(real_data):
    """41,750 votes on pairs of arguments, about five assessors per pair."""
    sign = {"a1": 1, "a2": -1, "equal": 0}
    with open(real_data / "ukpconvarg1" / "votes.csv", encoding="utf-8") as lines:
        rows = [
            Record(v["topic"], v["worker"], "pairs", v["arg1"], v["arg2"], sign[v["vote"]])
            for v in csv.DictReader(lines)
        ]
    assert len(rows) == 41_750
    ratings = pair_ratings(rows)
    alpha = krippendorff_alpha(ratings, "ordinal", rounds=15)
    kappa = fleiss_kappa(ratings, rounds=2)
    overlaps = pair_overlaps(rows)
    overall = all_of(overlaps)
    assert alpha.value == pytest.approx(0.369, abs=1e-3)  # [.315, .424] over the 16 topics
    assert krippendorff_alpha(ratings, rounds=2).value == pytest.approx(0.263, abs=1e-3)
    assert kappa.value == pytest.approx(0.262, abs=1e-3)
    assert alpha.low < 0.35 < alpha.value < 0.39 < alpha.high
    # pairs of assessors per pair of documents: pairs with more votes have more weight
    assert overall.overall == pytest.approx(0.521, abs=1e-3)
    assert overall.without_ties == pytest.approx(0.731, abs=1e-3)
    assert overall.kappa == pytest.approx(0.2626, abs=1e-3)
    people = by_assessor(overlaps)
    fractions = [fmean(t.overall for t in others.values()) for others in people.values()]
    assert len(fractions) == 2440
    assert np.median(fractions) == pytest.approx(0.51, abs=0.01)
    # sides were random; no position bias, few circular triads
    bias = position_bias(rows)
    assert bias.fraction_left.value == pytest.approx(0.5017, abs=1e-4)
    assert bias.p == pytest.approx(0.57, abs=0.02)
    assert triads(rows) == Triads(68, 1724)
