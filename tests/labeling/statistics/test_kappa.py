"""Fleiss's kappa and Krippendorff's alpha: published examples, plain references, real votes."""

from __future__ import annotations

import csv
import math
from itertools import permutations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.errors import DataError
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
KRIPPENDORFF = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]).T  # fmt: skip
# Fleiss 1971, Table 1: thirty patients, six psychiatrists each, five diagnoses.
FLEISS = [
    [0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0],
    [2, 0, 4, 0, 0], [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6],
    [1, 0, 0, 5, 0], [1, 1, 0, 4, 0], [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1],
    [0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0], [0, 2, 0, 4, 0], [1, 0, 2, 0, 3],
    [0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0], [1, 0, 0, 4, 1],
    [0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6],
]  # fmt: skip


def spelled(counts):
    return Ratings.from_units(
        (str(i), [v for v, c in enumerate(row) for _ in range(c)]) for i, row in enumerate(counts)
    )


def pair_ratings(records):
    """Raw answers: a unit is a pair of documents, a value their relation, seen both ways."""
    answers = pair_answers(records).items()
    return Ratings.from_units(
        (query, given.values()) for (query, _, _), given in answers
    ).both_ways()


def plain_alpha(units, metric):
    """1 - Do/De from all ordered couples of values, as the definition reads."""
    units = [[v for v in unit if not math.isnan(v)] for unit in units]
    units = [unit for unit in units if len(unit) > 1]
    values = [v for unit in units for v in unit]

    def far(c, k):
        if metric == "nominal":
            return float(c != k)
        if metric == "interval":
            return (c - k) ** 2
        low, high = min(c, k), max(c, k)
        between = sum(low <= v <= high for v in values)
        return (between - (values.count(c) + values.count(k)) / 2) ** 2 if c != k else 0.0

    observed = sum(
        far(c, k) / (len(unit) - 1) for unit in units for c, k in permutations(unit, 2)
    ) / max(len(values), 1)
    expected = sum(far(c, k) for c, k in permutations(values, 2))
    if not expected:
        return math.nan
    return 1 - observed / (expected / (len(values) * (len(values) - 1)))


def plain_fleiss(units):
    units = [unit for unit in units if len(unit) > 1]
    if not units:
        return math.nan
    agree = fmean(fmean(a == b for a, b in permutations(unit, 2)) for unit in units)
    values = [v for unit in units for v in unit]
    chance = sum((values.count(v) / len(values)) ** 2 for v in set(values))
    return (agree - chance) / (1 - chance) if chance < 1 else math.nan


@pytest.mark.parametrize(
    ("metric", "want"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_s_example(metric, want):
    found = krippendorff_alpha(Ratings.from_matrix(KRIPPENDORFF), metric)
    assert found.value == pytest.approx(want, abs=5e-4)
    assert found.value == pytest.approx(plain_alpha(KRIPPENDORFF.tolist(), metric))
    assert found.low < found.value < found.high


def test_fleiss_s_example():
    assert all(sum(row) == 6 for row in FLEISS)
    # P = .5556 and Pe = .2199, as by hand: kappa = .430
    assert fleiss_kappa(spelled(FLEISS)).value == pytest.approx(0.430, abs=5e-4)


def test_the_well_known_worked_example_of_fleiss_kappa():
    """Ten subjects, fourteen raters, five categories: P = .378, Pe = .213, kappa = .210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(spelled(counts)).value == pytest.approx(0.210, abs=5e-4)


units_of = st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=6)


@given(units_of)
def test_as_the_plain_references(units):
    ratings = Ratings.from_units((str(i), unit) for i, unit in enumerate(units))
    found = fleiss_kappa(ratings, rounds=5)
    assert found.value == pytest.approx(plain_fleiss(units), nan_ok=True)
    for metric in ("nominal", "ordinal", "interval"):
        found = krippendorff_alpha(ratings, metric, rounds=5)
        assert found.value == pytest.approx(plain_alpha(units, metric), nan_ok=True)


@pytest.mark.slow
@given(st.integers(1, 5), st.integers(1, 6), st.randoms())
def test_people_and_units_may_be_permuted(people, units, random):
    table = np.array([[random.choice([0, 1, 2, _]) for _p in range(people)] for _u in range(units)])
    moved = table[random.sample(range(units), units)][:, random.sample(range(people), people)]
    for one in ("nominal", "ordinal", "interval"):
        a, b = (
            krippendorff_alpha(Ratings.from_matrix(t), one, rounds=2).value for t in (table, moved)
        )
        assert a == pytest.approx(b, nan_ok=True)


def test_extremes_are_defined():
    nobody = Ratings.from_matrix(np.full((3, 2), _))
    alone = Ratings.from_matrix([[1.0], [2.0]])
    same = Ratings.from_matrix([[1.0, 1.0], [1.0, 1.0]])
    for ratings in (nobody, alone, same, Ratings.from_units([]), relation_ratings({}, "pairs")):
        for found in (fleiss_kappa(ratings), krippendorff_alpha(ratings)):
            assert math.isnan(found.value)
            assert math.isnan(found.low)
            assert found.to_dict()["value"] is None
            assert str(found) == "– [–, –]"
    perfect = Ratings.from_matrix([[1.0, 1.0], [2.0, 2.0]])
    assert krippendorff_alpha(perfect).value == 1
    assert fleiss_kappa(perfect).value == 1


def test_what_is_refused():
    with pytest.raises(DataError, match="units x assessors"):
        Ratings.from_matrix([1.0])
    with pytest.raises(DataError, match="one entry for each of the 1 units"):
        Ratings.from_matrix([[1.0]], ["a", "b"])
    with pytest.raises(DataError, match="metric must be"):
        krippendorff_alpha(Ratings.from_matrix([[1.0]]), "ratio")
    with pytest.raises(DataError, match="at most 200"):
        krippendorff_alpha(Ratings.from_matrix(np.arange(402.0).reshape(201, 2)))


def test_the_interval_draws_whole_queries_by_its_seed():
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
    # one query, drawn again and again, has no interval
    one = Ratings.from_matrix([[1.0, 2.0], [2.0, 2.0]], groups=["q", "q"])
    assert math.isnan(krippendorff_alpha(one).low)
    assert not math.isnan(krippendorff_alpha(one).value)


def test_units_of_results_and_records():
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


def test_names_of_documents_do_not_matter():
    """Renamed from best to worst, everybody would say +1, and nothing would beat chance."""
    results = simulated_results(10, 8, 3, 3)
    first = results["q0", "u0", "pairs"]
    order = sorted(first, key=lambda d: -first[d])
    renamed = {
        key: {f"x{order.index(d)}": label for d, label in labels.items()}
        for key, labels in results.items()
    }
    for tool in ("pairs", "grades"):
        one, other = (relation_ratings(r, tool) for r in (results, renamed))
        assert fleiss_kappa(one).value == pytest.approx(fleiss_kappa(other).value)
        for metric in ("nominal", "ordinal", "interval"):
            a, b = (krippendorff_alpha(r, metric, rounds=2).value for r in (one, other))
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
    """41,750 votes on pairs of arguments, about five people a pair."""
    sign = {"a1": 1, "a2": -1, "equal": 0}
    with open(real_data / "ukpconvarg1" / "votes.csv", encoding="utf-8") as lines:
        rows = [
            Record(v["topic"], v["worker"], "pairs", v["arg1"], v["arg2"], sign[v["vote"]])
            for v in csv.DictReader(lines)
        ]
    assert len(rows) == 41_750
    ratings = pair_ratings(rows)
    alpha = krippendorff_alpha(ratings, "ordinal", rounds=40)
    kappa = fleiss_kappa(ratings, rounds=2)
    overlaps = pair_overlaps(rows)
    overall = all_of(overlaps)
    assert alpha.value == pytest.approx(0.369, abs=1e-3)  # [.315, .424] over the 16 topics
    assert krippendorff_alpha(ratings, rounds=2).value == pytest.approx(0.263, abs=1e-3)
    assert kappa.value == pytest.approx(0.262, abs=1e-3)
    assert alpha.low < 0.35 < alpha.value < 0.39 < alpha.high
    # every couple of people on every pair: more weight to pairs that more people judged
    assert overall.overall == pytest.approx(0.521, abs=1e-3)
    assert overall.without_ties == pytest.approx(0.731, abs=1e-3)
    assert overall.kappa == pytest.approx(0.2626, abs=1e-3)
    people = by_assessor(overlaps)
    shares = [fmean(t.overall for t in others.values()) for others in people.values()]
    assert len(shares) == 2440
    assert np.median(shares) == pytest.approx(0.51, abs=0.01)
    # sides were drawn at random there, and nobody leans to one; few circles
    assert position_bias(rows).fraction_left.value == pytest.approx(0.5017, abs=1e-4)
    assert position_bias(rows).p == pytest.approx(0.57, abs=0.02)
    assert triads(rows) == Triads(68, 1724)
