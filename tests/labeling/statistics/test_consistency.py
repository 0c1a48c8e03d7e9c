"""Consistency of one assessor: repeats, sides, triads; and profiles of assessors and queries."""

from __future__ import annotations

import json
import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from firstpage.labeling.statistics.consistency import (
    Triads,
    per_assessor,
    position_bias,
    self_consistency,
    sign_test,
    triads,
)
from firstpage.labeling.statistics.profiles import assessor_profiles, gold_accuracy, query_profiles
from firstpage.labeling.statistics.records import Record


def answer(left, right, outcome, assessor="u", query="q", **more):
    return Record(query, assessor, "pairs", left, right, outcome, **more)


@pytest.mark.slow
@given(st.integers(0, 60), st.integers(0, 60))
def test_sign_test_matches_scipy(first, second):
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert sign_test(first, second) == pytest.approx(expected, rel=1e-9)


def test_repeats_by_hand():
    rows = [
        answer("a", "b", 1),
        answer("a", "c", 1),
        answer("b", "c", -1),
        answer("c", "d", 1),
        answer("a", "b", 1, kind="repeat"),  # same sides, same answer
        answer("a", "c", 0, kind="repeat"),  # same sides, another
        answer("c", "b", 1, kind="repeat"),  # swapped, same answer
        answer("d", "c", 1, kind="repeat"),  # swapped, and left again
        answer("a", "d", 1, kind="repeat"),  # no first answer
        answer("a", "b", -1, assessor="v", kind="repeat"),  # another person
    ]
    consistency = self_consistency(rows)
    assert (consistency.same_sides.hits, consistency.same_sides.total) == (1, 2)
    assert (consistency.swapped.hits, consistency.swapped.total) == (1, 2)
    assert (consistency.overall.hits, consistency.overall.total) == (2, 4)
    assert (consistency.left_twice, consistency.right_twice, consistency.p) == (1, 0, 1.0)
    # a tie is the same with swapped sides
    tie = self_consistency([answer("a", "b", 0), answer("b", "a", 0, kind="repeat")])
    assert (tie.swapped.hits, tie.left_twice, tie.right_twice) == (1, 0, 0)


def test_an_assessor_who_always_chooses_left():
    rows = []
    for i in range(12):
        rows += [answer("a", f"x{i}", 1), answer(f"x{i}", "a", 1, kind="repeat")]
    consistency = self_consistency(rows)
    assert consistency.swapped.value == 0
    assert consistency.p == pytest.approx(2 / 2**12)
    bias = position_bias([*rows, answer("a", "b", 0), answer("a", "c", -1, kind="training")])
    assert (bias.left, bias.right, bias.ties) == (24, 0, 1)
    assert bias.p < 1e-4
    assert bias.fraction_left.value == 1


@pytest.mark.slow
def test_a_winner_that_keeps_its_side_is_no_bias():
    """The best document of each query keeps its side and always wins."""
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(60):
        rows = []
        for q in range(20):
            left = rng.random() < 0.5
            for i in range(15):
                pair = ("a", f"x{i}", 1) if left else (f"x{i}", "a", -1)
                rows.append(answer(*pair, query=f"q{q}"))
        p_values.append(position_bias(rows).p)
    assert np.mean(np.array(p_values) < 0.05) <= 0.12
    assert np.mean(np.array(p_values) < 0.6) >= 0.3  # the test has power


def test_statistics_without_records_are_defined():
    for statistic in (self_consistency([]), position_bias([]), triads([])):
        assert json.dumps(statistic.to_dict(), allow_nan=False)
    assert math.isnan(position_bias([]).fraction_left.value)
    assert position_bias([]).p == 1.0
    assert math.isnan(triads([]).fraction)


def test_circular_triads_by_hand():
    circle = [answer("a", "b", 1), answer("b", "c", 1), answer("a", "c", -1)]
    assert triads(circle) == Triads(1, 1)
    assert triads([*circle, answer("a", "c", 1)]) == Triads(0, 1)  # a later answer
    assert triads([*circle[:2], answer("a", "c", 0)]) == Triads(0, 0)  # a tie is not a comparison
    assert triads([*circle[:2], answer("a", "c", -1, assessor="v")]) == Triads(0, 0)
    assert triads([*circle[:2], answer("a", "c", -1, query="r")]) == Triads(0, 0)


@given(st.lists(st.sampled_from([1, 0, -1, None]), min_size=10, max_size=10))
def test_circular_triads_match_enumeration(outcomes):
    sign = {}
    rows = []
    for (a, b), outcome in zip(combinations("abcde", 2), outcomes, strict=True):
        if outcome is not None:
            rows.append(answer(a, b, outcome))
            sign[a, b], sign[b, a] = outcome, -outcome
    circular = complete = 0
    for triple in combinations("abcde", 3):
        x, y, z = triple
        signs = [sign.get(p, 0) for p in ((x, y), (y, z), (z, x))]
        complete += all(signs)
        circular += abs(sum(signs)) == 3
    assert triads(rows) == Triads(circular, complete)


def test_a_quarter_of_random_triads_is_circular():
    fraction = 0
    for outcomes in product([1, -1], repeat=3):
        rows = [answer(a, b, o) for (a, b), o in zip(combinations("abc", 2), outcomes, strict=True)]
        fraction += triads(rows).fraction / 8
    assert fraction == 0.25


def test_statistics_per_assessor():
    rows = [
        answer("a", "b", 1, assessor="v"),
        answer("a", "b", -1, assessor="u"),
        answer("a", "c", 1, assessor="v"),
    ]
    biases = per_assessor(rows, position_bias)
    assert list(biases) == ["u", "v"]
    assert (biases["v"].left, biases["u"].right) == (2, 1)


def test_gold_accuracy_by_hand():
    rows = [
        answer("a", "b", 1, kind="gold", expected=1),
        answer("a", "b", 0, kind="gold", expected=1),
        answer("a", "b", 0, kind="gold"),
        answer("a", "b", 1, expected=-1),
        Record("q", "u", "grades", "a", grade=3, kind="gold", expected=3),
    ]
    assert (gold_accuracy(rows).hits, gold_accuracy(rows).total) == (2, 3)


RESULTS = {
    ("q", "u", "pairs"): {"a": 2.0, "b": 1.0, "c": 0.0},
    ("q", "v", "pairs"): {"a": 1.0, "b": 2.0, "c": 0.0},
    ("r", "u", "pairs"): {"a": 2.0, "b": 1.0, "c": 0.0},
    ("r", "v", "pairs"): {"a": 2.0, "b": 1.0, "c": 0.0},
    ("r", "w", "pairs"): {"a": 0.0, "b": 1.0, "c": 2.0},
    ("s", "u", "grades"): {"a": 1.0},
}


def test_assessor_profiles_from_results():
    rows = [
        answer("a", "b", 1, active=4.0),
        answer("a", "c", 0, active=10.0),
        answer("a", "c", 0, active=100.0, kind="training"),
    ]
    u, v, w = assessor_profiles(rows, RESULTS)
    assert [p.assessor for p in (u, v, w)] == ["u", "v", "w"]
    assert (u.judgments, u.partners, u.seconds) == (2, 0, 7.0)
    # with v 2 of 3 and 3 of 3, with w 0 of 3
    assert u.derived.overall == pytest.approx(5 / 9)
    assert math.isnan(u.agreement), "no shared pairs"
    assert u.ties == 0.5
    assert math.isnan(v.seconds)
    assert w.to_dict()["derived_orders"]["overall"] == 0
    assert w.to_dict()["shared_pairs"] == {
        "pairs": 0,
        "overall": None,
        "without_ties": None,
        "kappa": None,
    }
    assert json.dumps([p.to_dict() for p in (u, v, w)], allow_nan=False)


def test_assessor_profiles_from_answers():
    rows = [
        answer("a", "b", 1),
        answer("b", "a", -1, assessor="v"),
        answer("a", "b", 0, assessor="w"),
    ]
    u, _, w = assessor_profiles(rows)
    assert u.agreement == 0.5
    assert u.shared.total == 2
    assert (w.agreement, w.ties) == (0, 1)
    alone = assessor_profiles([answer("a", "b", 0), answer("a", "c", 1)])[0]
    assert (alone.partners, alone.ties) == (0, 0.5)
    assert math.isnan(alone.agreement)
    assert assessor_profiles([]) == []


def test_query_profiles_are_sorted_by_kappa():
    r, q = query_profiles([], RESULTS)
    assert (r.query, r.assessors, q.query) == ("r", 3, "q")
    assert [(d.first, d.second, d.above, d.tied, d.below) for d in r.disputed] == [
        ("a", "c", 2, 0, 1),  # the greatest range: 2 - 0 against 0 - 2
        ("a", "b", 2, 0, 1),
        ("b", "c", 2, 0, 1),
    ]
    assert r.disputed[0].label_range == 4
    assert r.disputed[0].opposed == 2
    assert r.worth_discussing
    assert [(d.first, d.second) for d in q.disputed] == [("a", "b")]
    assert len(query_profiles([], RESULTS, max_pairs=1)[0].disputed) == 1
    assert not query_profiles([], RESULTS, below=-1.0)[0].worth_discussing
    assert json.dumps([p.to_dict() for p in (r, q)], allow_nan=False)


def test_query_profiles_from_answers():
    rows = [
        answer("a", "b", 1),
        answer("a", "b", -1, assessor="v"),
        answer("a", "c", 0, assessor="v"),
    ]
    (q,) = query_profiles(rows)
    assert [(d.first, d.second, d.above, d.below) for d in q.disputed] == [("a", "b", 1, 1)]
    assert q.worth_discussing
    assert query_profiles([answer("a", "b", 1)]) == []
