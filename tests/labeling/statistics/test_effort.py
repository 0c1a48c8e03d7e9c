"""Effort: by hand, and as in Table 1 of the paper."""

from __future__ import annotations

import json
import math

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.statistics.effort import (
    Effort,
    SampleSummary,
    effort_by,
    learning_curve,
    outliers,
    predicted_effort,
)
from firstpage.labeling.statistics.records import Record
from firstpage.labeling.statistics.study import study


def judgment(seconds, query="q", assessor="u", tool="pairs", **more):
    pair = {"right": "b", "outcome": 1} if tool == "pairs" else {"grade": 1}
    return Record(query, assessor, tool, "a", active=seconds, **pair, **more)


def test_table_1_by_hand():
    rows = [
        judgment(3.0, paused=60.0),
        judgment(9.0, away=30.0),
        judgment(6.0, assessor="v"),
        judgment(12.0, query="r"),
        judgment(20.0, tool="grades"),
        judgment(500.0, kind="training"),
        judgment(500.0, kind="repeat"),
        judgment(500.0, kind="gold"),
    ]
    effort = effort_by(rows)
    pairs = effort["pairs"]
    assert list(effort) == ["grades", "pairs"]
    assert (pairs.judgments, pairs.tasks) == (4, 3)
    assert pairs.seconds.mean == 7.5
    assert pairs.seconds.median == 7.5
    assert pairs.seconds.sd == pytest.approx(math.sqrt((4.5**2 + 1.5**2 + 1.5**2 + 4.5**2) / 3))
    assert pairs.minutes.mean == pytest.approx((12 + 6 + 12) / 60 / 3)
    assert pairs.per_query.mean == pytest.approx(4 / 3)
    assert (pairs.active, pairs.paused, pairs.away) == (30, 60, 30)
    assert effort_by(rows, "assessor")["v"].seconds.mean == 6
    assert effort_by(rows, "query")["r"].seconds.mean == 12
    assert json.dumps(pairs.to_dict(), allow_nan=False)


def test_the_paper_s_table_1():
    """142.76 judgments of 5.51 s take 13.11 minutes (13.13 printed), 50 of 13.87 s take 11.56."""
    counts = [143] * 38 + [142] * 12  # fifty queries, 142.76 in the mean
    rows = [judgment(5.51, query=f"q{i}") for i, n in enumerate(counts) for _ in range(n)]
    rows += [judgment(13.87, query=f"q{i}", tool="grades") for i in range(50) for _ in range(50)]
    effort = effort_by(rows)
    assert effort["pairs"].per_query.mean == pytest.approx(142.76)
    assert effort["pairs"].minutes.mean == pytest.approx(13.11, abs=5e-3)
    assert effort["grades"].minutes.mean == pytest.approx(11.56, abs=5e-3)
    assert effort["grades"].seconds.mean / effort["pairs"].seconds.mean == pytest.approx(
        2.52, abs=5e-3
    )


def test_effort_of_no_and_one_judgment():
    nothing = Effort.from_records([])
    assert nothing.judgments == 0
    assert math.isnan(nothing.seconds.mean)
    assert nothing.to_dict()["seconds_per_judgment"]["mean"] is None
    assert math.isnan(SampleSummary.from_values([3.0]).sd)
    assert effort_by([]) == {}
    assert outliers([]) == []
    assert learning_curve([], "pairs") == []


def test_adjusted_times_are_left_out():
    rows = [
        judgment(10, "q1"),
        judgment(20, "q1"),
        judgment(6, "q2"),
        judgment(86_400, "q2", adjusted=True, paused=7, away=7),
    ]
    effort = Effort.from_records(rows)
    assert (effort.judgments, effort.tasks, effort.adjusted) == (4, 2, 1)
    assert effort.seconds.mean == 12
    assert effort.minutes.mean == 0.5, "a task with an adjusted time is left out"
    assert effort.per_query.mean == 2
    assert (effort.active, effort.paused, effort.away) == (36, 0, 0)
    assert effort.to_dict()["adjusted_times"] == 1
    assert not outliers(rows)
    assert learning_curve(rows, "pairs")[0].seconds.mean == 12
    assert "1 judgments are not in these times" in str(study(rows, {}, rounds=10))


def test_outliers_are_slow_or_fast():
    typical = [judgment(4.0 + i % 5) for i in range(40)]
    slow, fast = judgment(3600.0), judgment(0.0)
    extreme = outliers([*typical, slow, fast])
    assert {o.record.active for o in extreme} == {3600.0, 0.0}
    assert [o.z > 0 for o in extreme] == [True, False]
    assert outliers([judgment(5.0)] * 9 + [slow]) == []  # no deviation
    # by tool: what is slow for a pair may be typical for a grade
    grades = [judgment(3000.0 + i, tool="grades") for i in range(40)]
    assert all(o.record.tool == "pairs" for o in outliers([*typical, slow, *grades]))


def test_the_learning_curve_by_hand():
    rows = [
        judgment(10.0 - i, answered_at=float(i)) for i in reversed(range(5))
    ]  # in order of time
    rows += [
        judgment(20.0, assessor="v"),
        judgment(10.0, assessor="v"),
        judgment(3.0, assessor="v"),
    ]  # in order given
    rows += [judgment(99.0, tool="grades")]
    blocks = learning_curve(rows, "pairs", block=2)
    assert [(b.first, b.last, b.judgments) for b in blocks] == [(1, 2, 4), (3, 4, 3), (5, 6, 1)]
    assert [b.seconds.mean for b in blocks] == [(10 + 9 + 20 + 10) / 4, (8 + 7 + 3) / 3, 6.0]
    with pytest.raises(DataError, match="block"):
        learning_curve(rows, "pairs", block=0)


def test_predicted_effort():
    pairs = predicted_effort(50, 10, queries=50, strategy="heap")
    assert pairs.per_query == pytest.approx(150.8, abs=4)
    assert predicted_effort(50, strategy="adaptive(budget=80)").per_query == 80
    assert predicted_effort(50, strategy="adaptive(budget=80)", refine=9).per_query == 89
    assert pairs.minutes == pytest.approx(pairs.per_query * 5.51 / 60)
    assert pairs.hours == pytest.approx(50 * pairs.minutes / 60)
    grades = predicted_effort(50, tool="grades", queries=50, replicates=2)
    assert (grades.per_query, grades.judgments) == (50, 5000)
    assert grades.minutes == pytest.approx(11.56, abs=5e-3)
    by_seconds = predicted_effort(50, strategy="adaptive(budget=100)", seconds=6.0)
    assert by_seconds.minutes == pytest.approx(10)
    assert predicted_effort(3, tool="lists").per_query == 3
    with pytest.raises(DataError, match="one of pairs, grades, lists"):
        predicted_effort(50, tool="thumbs")
    with pytest.raises(DataError, match="at least 1"):
        predicted_effort(0)
