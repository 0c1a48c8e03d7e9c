"""Query weights and segments: by hand, by simulation, and through tables of queries."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import polars
import pytest
from scipy import stats

import firstpage as fp
from firstpage.evaluation.comparison.segments import interaction_p_value
from firstpage.evaluation.measures.query_segments import segments_of
from firstpage.evaluation.measures.significance import (
    effect_size,
    mean_intervals,
    mean_of,
    mean_pseudo_values,
    p_value,
)

QID = np.repeat(np.arange(24), 2)
LABELS = [1, 0] * 24
QUERIES = [str(q) for q in range(24)]


def comparison(a, b, **options) -> fp.results.Comparison:
    """Return a comparison of systems with these values of RR."""
    result = fp.compare(
        {"a": [2, 1] * 24, "b": [2, 1] * 24}, LABELS, qid=QID, measures="RR", rounds=2000, **options
    )
    evaluations = tuple(
        replace(e, values=np.array([values], float))
        for e, values in zip(result.evaluations, (a, b), strict=True)
    )
    return replace(result, evaluations=evaluations)


def test_weighted_means_by_hand() -> None:
    scores, labels, qid = [2, 1, 2, 1], [1, 0, 0, 1], ["x", "x", "y", "y"]
    evaluation = fp.evaluate(
        scores, labels, qid=qid, measures="RR", weights={"x": 1, "y": 3}, ci=True
    )
    assert evaluation["RR"] == (1 * 1 + 3 * 0.5) / 4
    assert evaluation.to_dict()["effective_queries"] == pytest.approx(16 / 10)
    low, high = evaluation.intervals["RR"]
    assert low == 0.5
    assert high == 1.0
    with pytest.raises(fp.DataError, match="1 of 2 queries have no weight: y"):
        fp.evaluate(scores, labels, qid=qid, weights={"x": 1})
    with pytest.raises(fp.DataError, match="finite and not negative"):
        fp.evaluate(scores, labels, qid=qid, weights={"x": 1, "y": -1})
    with pytest.raises(fp.DataError, match="all queries are 0"):
        fp.evaluate(scores, labels, qid=qid, weights={"x": 0, "y": 0})


def test_equal_weights_change_nothing() -> None:
    rng = np.random.default_rng(0)
    d, ones = rng.normal(0.1, 1, 40), np.full(40, 3.0)
    assert mean_of(d, ones) == pytest.approx(d.mean())
    assert mean_pseudo_values(d, ones) == pytest.approx(d)
    assert mean_intervals(d[None], 1, ones)[0] == pytest.approx(mean_intervals(d[None], 1)[0])
    assert p_value(d, "t", 0, 0, ones) == pytest.approx(p_value(d, "t", 0, 0))
    assert p_value(d, "randomization", 500, 0, ones) == p_value(d, "randomization", 500, 0)
    assert effect_size(d, ones) == pytest.approx(effect_size(d), rel=0.02)
    with pytest.raises(fp.MeasureError, match="wilcoxon has no form for weighted"):
        fp.compare([[1, 2], [2, 1]], [1, 0], qid=[1, 1], test="wilcoxon", weights={"1": 1})


def test_weighted_intervals_and_tests_hold_in_a_simulation() -> None:
    """Weights that depend on the values: the interval covers the true weighted mean."""
    rng = np.random.default_rng(4)
    queries, rounds = 60, 200
    covered, rejected = 0, {"t": 0, "randomization": 0}
    for seed in range(rounds):
        weights = rng.gamma(1.0, size=queries)
        values = 0.5 * weights + rng.normal(size=queries)  # E[w v] / E[w] = 0.5 * 2
        low, high = mean_intervals(values[None], seed, weights)[0]
        covered += low <= 1.0 <= high
        noise = rng.normal(size=queries) * (1 + weights)
        for test in rejected:
            rejected[test] += p_value(noise, test, 500, seed, weights) < 0.05  # type: ignore[arg-type]
    assert 0.86 < covered / rounds < 0.98
    for count in rejected.values():
        assert 0.015 < count / rounds < 0.10


@pytest.mark.parametrize("deviations", [(1.0, 1.0), (1.0, 3.0)])
def test_the_level_of_the_interaction_holds_for_unequal_variances(deviations) -> None:
    rng = np.random.default_rng(5)
    sizes = np.array([15, 45])
    p = []
    for seed in range(300):
        d = np.concatenate([rng.normal(0.2, s, n) for s, n in zip(deviations, sizes, strict=True)])
        p.append(interaction_p_value(d, np.ones(60), sizes, seed, rounds=199))
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09


def test_the_interaction_of_two_groups_agrees_with_welch() -> None:
    rng = np.random.default_rng(6)
    first, second = rng.normal(0.9, 1, 40), rng.normal(0, 2, 60)
    p = interaction_p_value(
        np.concatenate([first, second]), np.ones(100), np.array([40, 60]), seed=0
    )
    welch = stats.ttest_ind(first, second, equal_var=False).pvalue
    assert p == pytest.approx(welch, abs=0.01)


def test_segments_are_compared_and_corrected_together() -> None:
    rng = np.random.default_rng(7)
    a = rng.random(24)
    effect = np.where(np.arange(24) < 12, 0.2, -0.2) + rng.normal(scale=0.1, size=24)
    whole = comparison(a, a + effect)
    names = {q: "first" if int(q) < 12 else "second" for q in QUERIES}
    segments = fp.compare_segments(whole, names)
    assert list(segments.parts) == ["first", "second"]
    first, second = (segments.differences[name][0] for name in ("first", "second"))
    assert first.difference == pytest.approx(effect[:12].mean())
    assert second.difference == pytest.approx(effect[12:].mean())
    assert min(first.p_corrected, second.p_corrected) == pytest.approx(2 * min(first.p, second.p))
    (interaction,) = segments.interactions
    assert interaction.p_corrected < 0.01
    assert (interaction.largest, interaction.smallest) == ("first", "second")
    assert abs(whole.differences[0].difference) < 0.1  # the effects cancel
    assert segments.to_pandas()["segment"].tolist() == ["first", "second"]
    assert segments.to_dict()["segments"]["first"]["queries"] == 12
    assert "Does the difference depend on segment?" in str(segments)


def test_compare_takes_segments_as_the_command_does() -> None:
    systems = {"a": [2, 1, 2, 1, 2, 1, 1, 2], "b": [1, 2, 2, 1, 2, 1, 2, 1]}
    labels, qid = [1, 0] * 4, [1, 1, 2, 2, 3, 3, 4, 4]
    language = {"1": "en", "2": "en", "3": "de", "4": "de"}
    whole = fp.compare(systems, labels, qid=qid, measures="RR")
    table = fp.QueryTable({"language": language})
    split = fp.compare(systems, labels, qid=qid, measures="RR", by="language", query_table=table)
    expected = fp.compare_segments(whole, table, "language")
    assert whole.segments is None
    assert split.segments is not None
    assert split.segments.to_dict() == expected.to_dict() == split.to_dict()["segments"]
    assert str(split) == f"{whole}\n\n{expected}"
    by_dict = fp.compare(systems, labels, qid=qid, measures="RR", by=language)
    assert by_dict.segments is not None
    assert list(by_dict.segments.parts) == ["en", "de"]
    assert fp.compare_segments(split, table, "language").to_dict() == expected.to_dict()
    with pytest.raises(fp.DataError, match="give query_table too"):
        fp.compare(systems, labels, qid=qid, measures="RR", by="language")


def test_queries_without_a_segment_and_single_ones_are_reported() -> None:
    whole = comparison(np.ones(24), np.zeros(24))
    names: dict[str, str] = dict.fromkeys(QUERIES[:20], "big") | {"20": "one"}
    with (
        pytest.warns(fp.FirstpageWarning, match="3 of 24 queries have no segment"),
        pytest.warns(fp.FirstpageWarning, match="'one' has one query"),
    ):
        segments = fp.compare_segments(whole, names)
    assert list(segments.parts) == ["big"]
    assert segments.interactions == ()
    with pytest.raises(fp.DataError, match="no query has a segment"), pytest.warns():
        fp.compare_segments(whole, {})


TABLE = fp.QueryTable({"traffic": {"a": "60", "b": "30", "c": 20, "d": 5.0, "e": 5}})


def test_numbers_are_cut() -> None:
    assert segments_of(TABLE, "traffic(10, 30)")[1] == {
        "a": "from 30",
        "b": "from 30",
        "c": "10 to 30",
        "d": "below 10",
        "e": "below 10",
    }
    name, thirds = segments_of(TABLE, "traffic(head)")
    assert name == "traffic"
    assert thirds == {"a": "head", "b": "torso", "c": "tail", "d": "tail", "e": "tail"}
    with pytest.raises(fp.DataError, match="give cut points"):
        segments_of(TABLE, "traffic(x)")


def test_tables_of_queries_are_read(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"query_id": ["1", "2"], "lang": ["en", "de"], "n": [5, 6]})
    expected = {"1": "en", "2": "de"}
    frame.to_csv(tmp_path / "q.csv", index=False)
    frame.to_csv(tmp_path / "q.tsv", index=False, sep="\t")
    lines = [json.dumps(row) for row in frame.to_dict("records")]
    (tmp_path / "q.jsonl").write_text("\n".join(lines))

    polars.DataFrame(frame.to_dict("list")).write_parquet(tmp_path / "q.parquet")
    for name in ("q.csv", "q.tsv", "q.jsonl", "q.parquet"):
        table = fp.QueryTable.read(tmp_path / name)
        assert table.column("lang") == expected
        assert table.numbers("n") == {"1": 5.0, "2": 6.0}
    assert fp.QueryTable.from_frame(frame).column("lang") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", r"q.csv: has no column of query ids .* it has: a, b"),
        ("qid,b\n1,2\n1,3\n", "query '1' occurs twice"),
        ("qid,b\n1,2,3\n", "q.csv:2: the row has 3 cells, and the first line 2"),
        ("", "contains no queries"),
    ],
)
def test_errors_in_tables_name_the_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "q.csv").write_text(text)
    with pytest.raises(fp.DataError, match=message):
        fp.QueryTable.read(tmp_path / "q.csv")
    with pytest.raises(fp.DataError, match="no column 'x'; there are: traffic"):
        TABLE.column("x")
    with pytest.raises(fp.DataError, match="lang of query '1' must be a number; got 'en'"):
        fp.QueryTable({"lang": {"1": "en"}}).numbers("lang")


def test_missing_values_of_data_frames_are_no_segment() -> None:
    labels, qid = [1, 0] * 6, np.repeat(np.arange(6), 2)
    frame = pandas.DataFrame(
        {
            "query": [str(q) for q in range(6)],
            "lang": ["en", None, "de", float("nan"), "en", "de"],
            "traffic": [1.0, 2, 3, float("nan"), 5, 6],
        }
    )
    options = {"qid": qid, "measures": "RR", "query_table": frame}
    with pytest.warns(fp.FirstpageWarning, match="2 of 6 queries have no lang"):
        evaluation = fp.evaluate([2, 1] * 6, labels, by="lang", **options)
    assert list(evaluation.segments) == ["en", "de"]
    with pytest.raises(fp.DataError, match="traffic of query '3' must be a number; got nan"):
        fp.evaluate([2, 1] * 6, labels, by="traffic(2)", **options)
    options["query_table"] = frame.assign(traffic=1.0)
    with pytest.raises(fp.DataError, match="give cut points"):
        fp.evaluate([2, 1] * 6, labels, by="traffic(nan)", **options)


def test_small_p_values_are_not_printed_as_zero() -> None:
    differ = fp.compare(
        {"a": [2, 1] * 60, "b": [1, 2] * 60},
        [1, 0] * 60,
        qid=np.repeat(np.arange(60), 2),
        measures="RR",
        by={str(query): str(query % 2) for query in range(60)},
    )
    assert "RR: b - a = -0.5000, p < .0001\n" in str(differ)
    assert [row[-2:] for row in differ.segments.differences_table().rows] == [["<.0001"] * 2] * 2
