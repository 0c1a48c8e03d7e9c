"""Warnings about queries and documents that the run or the judgments lack, one per run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp

QRELS = {str(q): {f"d{i}": i % 3 for i in range(10)} for q in range(301, 311)}


def make_run(queries: list[str], docs: int = 10, first: int = 0) -> dict[str, dict[str, float]]:
    return {q: {f"d{i}": float(-i) for i in range(first, first + docs)} for q in queries}


def messages(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(issubclass(w.category, fp.FirstpageWarning) for w in caught)
    return [str(w.message) for w in caught]


def both_forms(run: dict[str, dict[str, float]]) -> list[tuple[Any, Any]]:
    """Return run and judgments as dictionaries, and as the objects that files are read to."""
    return [(run, QRELS), (fp.Run.from_dict(run), fp.Qrels.from_dict(QRELS))]


def test_there_is_no_warning_if_nothing_is_missing() -> None:
    for run, qrels in both_forms(make_run(list(QRELS))):
        assert messages(lambda run=run, qrels=qrels: fp.evaluate(run, qrels)) == []


def test_warning_about_judged_queries_that_the_run_lacks() -> None:
    """A query id written 0301 instead of 301 lowers the mean, and a warning says so."""
    run = make_run(["0301", *list(QRELS)[1:]])
    full = fp.evaluate(make_run(list(QRELS)), QRELS, measures="AP")["AP"]
    for system, qrels in both_forms(run):
        (line,) = messages(lambda s=system, q=qrels: fp.evaluate(s, q, name="a.run"))
        assert line == (
            "a.run: 1 of 10 judged queries are not in the run and count 0: 301; 1 of its 10 "
            "queries are not judged and are left out: 0301."
        )
        with pytest.warns(fp.FirstpageWarning):
            assert fp.evaluate(system, qrels, measures="AP")["AP"] < full
        (line,) = messages(lambda s=system, q=qrels: fp.evaluate(s, q, convention="trec"))
        assert (
            "1 of 10 judged queries are not in the run and are left out of the means: 301" in line
        )


@pytest.mark.parametrize(
    ("without_relevant", "effect"),
    [
        ("zero", "count 0: 2"),
        ("one", "count 0, or 1 where no document is relevant: 2"),
        ("skip", "count 0, or are left out where no document is relevant: 2"),
    ],
)
def test_warning_says_how_queries_without_relevant_documents_count(
    without_relevant, effect
) -> None:
    (line,) = messages(
        lambda: fp.evaluate(
            {"1": {"a": 1.0}},
            {"1": {"a": 1}, "2": {"b": 0}},
            convention=fp.Convention(without_relevant=without_relevant),
        )
    )
    assert f"1 of 2 judged queries are not in the run and {effect}." in line


def test_warning_names_only_the_first_queries() -> None:
    (line,) = messages(lambda: fp.evaluate(make_run(["301"]), QRELS))
    assert "9 of 10 judged queries" in line
    assert line.endswith(": 302, 303, 304, 305, 306, ...")


def test_unjudged_fraction_is_reported_at_the_deepest_cutoff() -> None:
    run = make_run(list(QRELS), docs=40, first=5)  # 5 judged, then 35 unjudged
    for system, qrels in both_forms(run):
        for measures, words in (
            (["AP"], "50.0% of the documents in the top 10 are unjudged"),
            (["P@5"], None),
            (["P@5", "NDCG@20", "AP"], "75.0% of the documents in the top 20 are unjudged"),
            (["P@1000"], "87.5% of the documents in the top 1000 are unjudged"),
        ):
            lines = messages(lambda s=system, q=qrels, m=measures: fp.evaluate(s, q, measures=m))
            assert lines == ([] if words is None else [f"the run: {words}."])


def test_comparison_warns_once_per_run() -> None:
    systems = {
        "full": make_run(list(QRELS)),
        "half": make_run(list(QRELS)[:5]),
        "none": make_run(["301"]),
    }
    lines = messages(lambda: fp.compare(systems, QRELS, rounds=100))
    assert [line.split(":")[0] for line in lines] == ["half", "none"]
    lines = messages(lambda: fp.dcglearn.coherence(systems, QRELS, "NDCG@10", "DCG@10"))
    assert [line.split(":")[0] for line in lines] == ["half", "none"]


def test_warning_names_the_file_of_a_run(tmp_path: Path) -> None:
    fp.write_run(fp.Run.from_dict(make_run(["301"]), "tag"), tmp_path / "a.run")
    (line,) = messages(lambda: fp.evaluate(fp.read_run(tmp_path / "a.run"), QRELS))
    assert line.startswith(f"{tmp_path / 'a.run'}: 9 of 10 judged queries")
