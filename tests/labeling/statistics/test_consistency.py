"""One person's consistency: repeats, sides, circles; and the lines of people and queries."""

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


def asked(left, right, outcome, who="u", query="q", **more):
    return Record(query, who, "pairs", left, right, outcome, **more)


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_fair_coin_as_scipy(one, other):
    want = binomtest(one, one + other).pvalue if one + other else 1.0
    assert sign_test(one, other) == pytest.approx(want, rel=1e-9)


def test_repeats_by_hand():
    rows = [
        asked("a", "b", 1),
        asked("a", "c", 1),
        asked("b", "c", -1),
        asked("c", "d", 1),
        asked("a", "b", 1, kind="repeat"),  # same sides, same answer
        asked("a", "c", 0, kind="repeat"),  # same sides, another
        asked("c", "b", 1, kind="repeat"),  # swapped, same answer
        asked("d", "c", 1, kind="repeat"),  # swapped, and left again
        asked("a", "d", 1, kind="repeat"),  # nothing to compare with
        asked("a", "b", -1, who="v", kind="repeat"),  # another person
    ]
    found = self_consistency(rows)
    assert (found.same_sides.hits, found.same_sides.total) == (1, 2)
    assert (found.swapped.hits, found.swapped.total) == (1, 2)
    assert (found.overall.hits, found.overall.total) == (2, 4)
    assert (found.stuck_left, found.stuck_right, found.p) == (1, 0, 1.0)
    # a tie is the same whichever way it is shown
    tie = self_consistency([asked("a", "b", 0), asked("b", "a", 0, kind="repeat")])
    assert (tie.swapped.hits, tie.stuck_left, tie.stuck_right) == (1, 0, 0)


def test_somebody_who_always_clicks_left():
    rows = []
    for i in range(12):
        rows += [asked("a", f"x{i}", 1), asked(f"x{i}", "a", 1, kind="repeat")]
    found = self_consistency(rows)
    assert found.swapped.value == 0
    assert found.p == pytest.approx(2 / 2**12)
    bias = position_bias([*rows, asked("a", "b", 0), asked("a", "c", -1, kind="training")])
    assert (bias.left, bias.right, bias.ties) == (24, 0, 1)
    assert bias.p < 1e-4
    assert bias.fraction_left.value == 1


@pytest.mark.slow
def test_what_stays_on_its_side_and_wins_again_is_no_bias():
    """The best document of each query stays where it was first put, and wins every time."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(60):
        rows = []
        for q in range(20):
            left = rng.random() < 0.5
            for i in range(15):
                pair = ("a", f"x{i}", 1) if left else (f"x{i}", "a", -1)
                rows.append(asked(*pair, query=f"q{q}"))
        found.append(position_bias(rows).p)
    assert np.mean(np.array(found) < 0.05) <= 0.12
    assert np.mean(np.array(found) < 0.6) >= 0.3  # and it is no test that never finds anything


def test_nothing_asked_is_defined():
    for found in (self_consistency([]), position_bias([]), triads([])):
        assert json.dumps(found.to_dict(), allow_nan=False)
    assert math.isnan(position_bias([]).fraction_left.value)
    assert position_bias([]).p == 1.0
    assert math.isnan(triads([]).fraction)


def test_a_circle_by_hand():
    circle = [asked("a", "b", 1), asked("b", "c", 1), asked("a", "c", -1)]
    assert triads(circle) == Triads(1, 1)
    assert triads([*circle, asked("a", "c", 1)]) == Triads(0, 1)  # thought again
    assert triads([*circle[:2], asked("a", "c", 0)]) == Triads(0, 0)  # a tie closes nothing
    assert triads([*circle[:2], asked("a", "c", -1, who="v")]) == Triads(0, 0)
    assert triads([*circle[:2], asked("a", "c", -1, query="r")]) == Triads(0, 0)


@given(st.lists(st.sampled_from([1, 0, -1, None]), min_size=10, max_size=10))
def test_circles_by_looking_at_every_three(outcomes):
    sign = {}
    rows = []
    for (a, b), outcome in zip(combinations("abcde", 2), outcomes, strict=True):
        if outcome is not None:
            rows.append(asked(a, b, outcome))
            sign[a, b], sign[b, a] = outcome, -outcome
    circular = complete = 0
    for three in combinations("abcde", 3):
        x, y, z = three
        signs = [sign.get(p, 0) for p in ((x, y), (y, z), (z, x))]
        complete += all(signs)
        circular += abs(sum(signs)) == 3
    assert triads(rows) == Triads(circular, complete)


def test_a_quarter_of_all_threes_is_circular_by_chance():
    share = 0
    for outcomes in product([1, -1], repeat=3):
        rows = [asked(a, b, o) for (a, b), o in zip(combinations("abc", 2), outcomes, strict=True)]
        share += triads(rows).fraction / 8
    assert share == 0.25


def test_each_person_apart():
    rows = [asked("a", "b", 1, who="v"), asked("a", "b", -1, who="u"), asked("a", "c", 1, who="v")]
    found = per_assessor(rows, position_bias)
    assert list(found) == ["u", "v"]
    assert (found["v"].left, found["u"].right) == (2, 1)


def test_gold():
    rows = [
        asked("a", "b", 1, kind="gold", expected=1),
        asked("a", "b", 0, kind="gold", expected=1),
        asked("a", "b", 0, kind="gold"),
        asked("a", "b", 1, expected=-1),
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


def test_people_by_their_results():
    rows = [
        asked("a", "b", 1, active=4.0),
        asked("a", "c", 0, active=10.0),
        asked("a", "c", 0, active=100.0, kind="training"),
    ]
    u, v, w = assessor_profiles(rows, RESULTS)
    assert [p.assessor for p in (u, v, w)] == ["u", "v", "w"]
    assert (u.judgments, u.partners, u.seconds) == (2, 0, 7.0)
    # with v 2 of 3 and 3 of 3, with w 0 of 3
    assert u.derived.overall == pytest.approx(5 / 9)
    assert math.isnan(u.agreement), "nobody else was asked the same pairs"
    assert u.ties == 0.5
    assert math.isnan(v.seconds)
    assert w.to_dict()["derived_orders"]["overall"] == 0
    assert w.to_dict()["shared_pairs"] == {
        "pairs": 0, "overall": None, "without_ties": None, "kappa": None,
    }  # fmt: skip
    assert json.dumps([p.to_dict() for p in (u, v, w)], allow_nan=False)


def test_people_by_their_answers():
    rows = [asked("a", "b", 1), asked("b", "a", -1, who="v"), asked("a", "b", 0, who="w")]
    u, _, w = assessor_profiles(rows)
    assert u.agreement == 0.5
    assert u.shared.total == 2
    assert (w.agreement, w.ties) == (0, 1)
    alone = assessor_profiles([asked("a", "b", 0), asked("a", "c", 1)])[0]
    assert (alone.partners, alone.ties) == (0, 0.5)
    assert math.isnan(alone.agreement)
    assert assessor_profiles([]) == []


def test_queries_least_agreed_first():
    r, q = query_profiles([], RESULTS)
    assert (r.query, r.assessors, q.query) == ("r", 3, "q")
    assert [(d.first, d.second, d.above, d.tied, d.below) for d in r.disputed] == [
        ("a", "c", 2, 0, 1),  # the farthest apart: 2 - 0 against 0 - 2
        ("a", "b", 2, 0, 1),
        ("b", "c", 2, 0, 1),
    ]
    assert r.disputed[0].apart == 4
    assert r.disputed[0].opposed == 2
    assert r.worth_discussing
    assert [(d.first, d.second) for d in q.disputed] == [("a", "b")]
    assert len(query_profiles([], RESULTS, max_pairs=1)[0].disputed) == 1
    assert not query_profiles([], RESULTS, below=-1.0)[0].worth_discussing
    assert json.dumps([p.to_dict() for p in (r, q)], allow_nan=False)


def test_queries_by_answers():
    rows = [asked("a", "b", 1), asked("a", "b", -1, who="v"), asked("a", "c", 0, who="v")]
    (q,) = query_profiles(rows)
    assert [(d.first, d.second, d.above, d.below) for d in q.disputed] == [("a", "b", 1, 1)]
    assert q.worth_discussing
    assert query_profiles([asked("a", "b", 1)]) == []
