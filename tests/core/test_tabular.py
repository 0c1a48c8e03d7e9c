"""Results as data frames, and as tables in notebooks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import firstpage as fp

DATA = fp.Synthetic(queries=6, docs=5, features=3, seed=1).dataset()
SCORES = np.arange(float(DATA.n_docs))
RUNS = [{"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 2.0, "a": 1.0, "c": 0.5}}]


def results() -> dict[str, tuple[Any, list[str], int]]:
    """Return one result of each kind, with the columns and the number of rows of its frame."""
    evaluation = fp.evaluate(SCORES, DATA, measures=["NDCG@3", "AP"], ci=True)
    comparison = fp.compare({"up": SCORES, "down": -SCORES}, DATA, measures=["NDCG@3", "AP"])
    values = {"A": {"AP": np.array([[0.5, 1.0]])}, "B": {"AP": np.array([[0.4, 0.6]])}}
    validation = fp.results.CrossValidation(
        ("AP",), "default", ("q1", "q2"), np.array([1.0, 1.0]), values, {}
    )
    difference = ["measure", "system", "against", "difference", "low", "high", "p", "p_corrected"]
    return {
        "evaluation": (evaluation, ["query", "NDCG@3", "AP"], 6),
        "comparison": (comparison, difference, 2),
        "cross-validation": (validation, ["ranker", "measure", "mean", "standard_error"], 2),
        "aggregation": (
            fp.aggregation.aggregate(RUNS, "Borda"), ["query", "document", "rank", "score"], 3,
        ),
        "ranker": (fp.ListMLE().fit(DATA), ["feature", "importance"], 3),
        "dataset": (DATA, ["label", "qid", "docid", "f1", "f2", "f3"], 30),
    }  # fmt: skip


RESULTS = results()


@pytest.mark.parametrize("kind", RESULTS)
def test_frames_have_the_same_columns_rows_and_values(kind: str) -> None:
    result, columns, rows = RESULTS[kind]
    pandas, polars = result.to_pandas(), result.to_polars()
    assert list(pandas.columns)[: len(columns)] == columns
    assert list(polars.columns) == list(pandas.columns)
    assert len(pandas) == len(polars) == rows
    for name in columns:
        assert pandas[name].tolist() == polars[name].to_list()


@pytest.mark.parametrize("kind", RESULTS)
def test_notebooks_show_html(kind: str) -> None:
    html = RESULTS[kind][0]._repr_html_()
    assert "<table" in html or "<div" in html


def test_values_of_the_frames() -> None:
    evaluation = RESULTS["evaluation"][0]
    assert evaluation.to_pandas()["AP"].mean() == pytest.approx(evaluation["AP"])
    aggregated = RESULTS["aggregation"][0].to_pandas()
    assert aggregated["rank"].tolist() == [1, 2, 3]
    assert aggregated["score"].is_monotonic_decreasing
    ranker = RESULTS["ranker"][0]
    assert ranker.to_pandas()["importance"].tolist() == ranker.coef_.tolist()


def test_html_escapes_names() -> None:
    evaluations = fp.compare({"<b>": SCORES, "other": -SCORES}, DATA, measures="AP")
    assert "&lt;b&gt;" in evaluations._repr_html_()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"needs the package '{package}'"):
        getattr(DATA, f"to_{package}")()
