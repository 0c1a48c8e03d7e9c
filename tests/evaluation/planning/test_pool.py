"""Unjudged documents: three readings by hand, condensed lists, and pool bias."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp

QRELS = {"q1": {"a": 1, "b": 0, "c": 2, "e": 1}, "q2": {"d": 1}}
FIRST = {"q1": {"x": 5.0, "a": 4.0, "b": 3.0}, "q2": {"d": 2.0, "y": 1.0}}
SECOND = {"q1": {"c": 5.0, "a": 4.0, "b": 3.0}, "q2": {"d": 2.0}}


def test_three_readings_of_unjudged_documents() -> None:
    row = fp.planning.check_pool({"first": FIRST}, QRELS, measures="RR", depth=2).rows[0]
    assert row.nonrelevant == (0.5 + 1) / 2
    assert row.condensed == row.relevant == 1.0
    assert row.judged == 0.5
    assert row.pool_depth == 0
    assert row.left_out is None


def test_a_run_left_out_of_the_pool_loses_its_unique_documents() -> None:
    report = fp.planning.check_pool(
        {"first": FIRST, "second": SECOND}, QRELS, measures=["RR", "P@2"], depth=2
    )
    rows = {(row.system, row.measure): row for row in report.rows}
    second = rows["second", "RR"]
    assert second.unique == 1  # document c of q1
    assert second.nonrelevant == 1.0
    assert second.left_out == (0.5 + 1) / 2  # c is unjudged now
    assert rows["second", "P@2"].left_out == (0.5 + 0.5) / 2
    assert rows["first", "RR"].unique == 0
    assert rows["first", "RR"].left_out == rows["first", "RR"].nonrelevant
    assert report.to_pandas()["system"].tolist() == ["first", "first", "second", "second"]
    assert "+" not in str(rows["second", "RR"].left_out)
    assert "bias" in str(report)


@given(st.data())
def test_readings_bound_measures_that_only_gain(data) -> None:
    """P and RR with any assignment of grades to unjudged documents lie between the two readings."""
    docs = "abcdef"
    run = {"q": {d: float(n) for n, d in enumerate(data.draw(st.permutations(docs)))}}
    judged = data.draw(st.sets(st.sampled_from(docs), min_size=1))
    qrels = {"q": {d: data.draw(st.integers(0, 1)) for d in sorted(judged)}}
    complete = {"q": {d: qrels["q"].get(d, data.draw(st.integers(0, 1))) for d in docs}}
    for row in fp.planning.check_pool([run], qrels, measures=["P@3", "RR@3"], depth=3).rows:
        truth = fp.evaluate(run, complete, measures=row.measure)[row.measure]
        assert row.nonrelevant <= truth + 1e-12
        assert truth <= row.relevant + 1e-12


def test_condensed_lists_hold_judged_documents_in_their_order() -> None:
    run = fp.condensed(FIRST, QRELS)
    assert run.to_dict() == {"q1": {"a": 4.0, "b": 3.0}, "q2": {"d": 2.0}}
    assert len(fp.condensed({"q1": {"z": 1.0}}, QRELS).values) == 0
    with pytest.raises(fp.DataError, match="a run is required; got list"):
        fp.planning.check_pool({"scores": [1.0]}, QRELS)
    assert np.array_equal(fp.condensed(SECOND, QRELS).values, fp.Run.from_dict(SECOND).values)
