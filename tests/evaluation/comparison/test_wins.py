"""Queries that differ most and hardest queries, with documents; and charts of results."""

from __future__ import annotations

import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

import firstpage as fp

QRELS = {str(q): {"a": 2, "b": 0, "c": 1} for q in range(4)}
GOOD = {q: {"a": 3.0, "x": 2.5, "c": 2.0, "b": 1.0} for q in QRELS}
BAD = {**GOOD, "1": {"b": 3.0, "c": 2.0}, "2": {"b": 3.0, "a": 2.0}}
GOOD["3"] = {"b": 2.0, "a": 1.0}  # the only query that the bad system wins
SYSTEMS = {"bad": BAD, "good": GOOD}


@pytest.fixture(scope="module")
def comparison() -> fp.results.Comparison:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)
        return fp.compare(SYSTEMS, QRELS, measures=["RR", "NDCG@5"], rounds=100)


def test_cases_are_the_largest_differences_either_way_and_the_hardest(comparison) -> None:
    result = fp.wins_and_losses(comparison, SYSTEMS, QRELS, measure="NDCG@5", count=1, depth=2)
    values = comparison.values("NDCG@5")
    gain = values[1] - values[0]
    assert [(c.kind, c.query) for c in result.cases] == [
        ("win", str(np.argmax(gain))),
        ("loss", str(np.argmin(gain))),
        ("hard", str(np.argmin(values.mean(axis=0)))),
    ]
    win = result.cases[0]
    assert win.difference == pytest.approx(gain.max())
    assert win.values == {"good": values[1, 1], "bad": values[0, 1]}
    shown = {
        name: [(d.document, d.grade) for d in documents]
        for name, documents in win.documents.items()
    }
    assert shown == {"good": [("a", 2.0), ("x", None)], "bad": [("b", 0.0), ("c", 1.0)]}
    assert result.tables()[0].rows == [["1", "a", "2", "b", "0"], ["2", "x", "-", "c", "1"]]
    frame = result.to_pandas()
    assert len(frame) == sum(len(d) for c in result.cases for d in c.documents.values())
    assert result.to_dict()["cases"][0]["documents"]["good"][0]["document"] == "a"


def test_equal_systems_have_neither_wins_nor_losses() -> None:
    same = {"one": BAD, "two": BAD}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)
        condensed = fp.Convention(condensed=True)
        equal = fp.compare(same, QRELS, measures="RR", rounds=100, convention=condensed)
    result = fp.wins_and_losses(equal, same, QRELS)
    assert {c.kind for c in result.cases} == {"hard"}
    assert all(d.grade is not None for c in result.cases for d in c.documents["one"])  # condensed


def test_rows_are_named_where_documents_have_no_ids() -> None:
    systems = {"a": [1, 2, 2, 1], "b": [2, 1, 2, 1]}
    labels, qid = [1, 0, 1, 0], ["p", "q", "p", "q"]  # interleaved
    compared = fp.compare(systems, labels, qid=qid, measures="P(rel=1)@1", rounds=100)
    cases = fp.wins_and_losses(compared, systems, labels, qid=qid).cases
    first = next(case for case in cases if case.kind == "hard").documents["a"][0]
    assert (first.document, first.grade) == ("row 2", 0.0)


def test_what_does_not_fit_the_comparison_is_refused(comparison) -> None:
    with pytest.raises(fp.DataError, match="the comparison is of bad, good"):
        fp.wins_and_losses(comparison, {"bad": BAD}, QRELS)
    with pytest.raises(fp.DataError, match="at least 1"):
        fp.wins_and_losses(comparison, SYSTEMS, QRELS, count=0)


def test_charts_are_svg_files_without_variables(comparison, tmp_path) -> None:
    evaluation = fp.evaluate(QRELS, QRELS, measures=["RR", "NDCG@5"], ci=True)
    for result in (comparison, evaluation):
        all_measures, one = result.plot(), result.plot("RR")
        root = ElementTree.fromstring(all_measures._repr_svg_())
        assert root.tag.endswith("svg")
        assert "var(" not in all_measures.svg
        assert "NDCG@5" in all_measures.svg
        assert "NDCG@5" not in one.svg
        one.save(tmp_path / "chart.svg")
        ElementTree.parse(tmp_path / "chart.svg")
        with pytest.raises(KeyError):
            result.plot("AP")
    one.save(tmp_path / "chart.html")
    assert "<svg" in (tmp_path / "chart.html").read_text()
    with pytest.raises(fp.FirstpageError, match=r"saved as \.svg or \.html"):
        one.save(tmp_path / "chart.png")
