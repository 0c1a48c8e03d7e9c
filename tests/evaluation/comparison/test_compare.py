"""Significance tests against SciPy and enumeration, and `compare` of several systems."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import firstpage as fp
from firstpage.evaluation.measures.significance import (
    adjust_p_values,
    difference_interval,
    effect_size,
    p_value,
    paired_differences,
    paired_t,
    randomization,
    randomized_tukey,
    wilcoxon,
)
from tests.patience import PATIENCE

# Runs and judgments with different queries or documents warn; `test_coverage` tests that.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")

RNG = np.random.default_rng(5)
A, B = RNG.random(60), RNG.random(60) + 0.08
DIFFERENCES = B - A


def test_measures_are_found_by_any_text() -> None:
    systems = {"a": [2, 1, 2, 1], "b": [1, 2, 2, 1]}
    labels, qid = [1, 0, 0, 1], [1, 1, 2, 2]
    comparison = fp.compare(systems, labels, qid=qid, measures=["map", "NDCG@1"])
    assert comparison.best("AP") == comparison.best("map") == "a"
    assert not comparison.lower_is_better("AP")
    assert comparison.values("ndcg_cut_1").tolist() == comparison.values("NDCG@1").tolist()
    assert comparison.plot("AP").svg == comparison.plot("map").svg
    assert fp.rank_systems(comparison, "AP").rows == fp.rank_systems(comparison, "map").rows
    first = comparison.evaluations[0]
    assert first.mean_text("AP") == first.mean_text("map") == "0.7500"
    for failing in (comparison.best, comparison.plot, first.mean_text, first.interval_text):
        with pytest.raises(KeyError, match="'RR' was not measured; available: map, NDCG@1"):
            failing("RR")


def test_rounding_is_no_difference() -> None:
    """Orders that differ in the last bits of sums, and differences that are equal but for those."""
    a = np.array([3, 2, 1, 5, 7, 4, 9, 8, 6, 3, 2, 4]) / 10
    b = np.array([2, 1, 2, 2, 4, 1, 6, 5, 8, 1, 0, 2]) / 10
    exact = wilcoxon(np.rint(10 * (a - b)))
    assert wilcoxon(paired_differences(a, b)) == pytest.approx(exact)
    assert wilcoxon(a - b) != pytest.approx(exact)
    nearly = a + 1e-16 * np.arange(12)
    for test in ("t", "wilcoxon", "randomization"):
        assert p_value(paired_differences(nearly, a), test, 100, 0) == 1.0
    assert effect_size(paired_differences(nearly, a)) == 0.0
    same = paired_differences(np.array([0.3, 0.2, 0.4, 0.5]), np.array([0.2, 0.1, 0.3, 0.4]))
    assert effect_size(same) == effect_size(same, np.array([1.0, 2, 3, 4])) == np.inf
    large = paired_differences(1e9 * a, 1e9 * b)
    np.testing.assert_allclose(large, 1e9 * (a - b), atol=1e-2)


def test_paired_t_matches_scipy() -> None:
    assert paired_t(DIFFERENCES) == pytest.approx(stats.ttest_rel(B, A).pvalue)
    assert paired_t(np.zeros(5)) == 1
    assert paired_t(np.array([1.0])) == 1


def test_equal_differences_have_the_p_value_of_their_signs() -> None:
    """The t-test does not apply to them: it had p = 0."""
    for size in (1, 2, 4, 12):
        for test in ("t", "wilcoxon", "randomization"):
            assert p_value(np.full(size, 0.3), test, 1000, 0) == 2.0 ** (1 - size), test
    systems = {"a": [2, 1] * 4, "b": [1, 2] * 4}
    compared = fp.compare(systems, [1, 0] * 4, qid=np.repeat(range(4), 2), measures="RR", test="t")
    (difference,) = compared.differences
    assert difference.p == 0.125
    assert (difference.low, difference.high) == (-0.5, 0.0)  # four queries do not exclude 0


def test_p_values_of_t_are_exact_far_from_0() -> None:
    for n in (2, 3, 10, 1000):
        for shift in (0.0, 1e-6, 0.1, 1.0, 30.0):
            values = np.random.default_rng(n).normal(shift, 1.0, n)
            expected = stats.ttest_1samp(values, 0.0).pvalue
            assert paired_t(values) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 20])
def test_sampled_signs_give_the_exact_p_value(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(n).normal(0.3, 1.0, n)
    exact = randomization(differences)
    monkeypatch.setattr("firstpage.evaluation.measures.significance.MAX_EXACT_QUERIES", 0)
    error = np.sqrt(exact * (1 - exact) / 100_000)
    assert randomization(differences) == pytest.approx(exact, abs=4 * error + 1e-5)


@pytest.mark.parametrize("n", [63, 64, 65, 130, 1000])
def test_sampled_signs_of_many_queries_agree_with_t(n: int) -> None:
    differences = np.random.default_rng(n).normal(1.5 / np.sqrt(n), 1.0, n)
    assert randomization(differences) == pytest.approx(paired_t(differences), abs=0.01)


def test_wilcoxon_matches_scipy() -> None:
    assert wilcoxon(DIFFERENCES) == pytest.approx(stats.wilcoxon(B, A).pvalue)
    assert wilcoxon(np.array([0.0, 0.0])) == 1
    few = np.random.default_rng(0).normal(0.3, 1.0, 12)
    assert wilcoxon(few) == pytest.approx(stats.wilcoxon(few, method="exact").pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 5, 10, 50, 200])
@pytest.mark.parametrize(
    ("values", "probabilities"),
    [
        ([0, 0.5, -0.5], [0.8, 0.1, 0.1]),  # few queries change
        ([0.01, -0.01, 1, -1], [0.48, 0.48, 0.02, 0.02]),  # few queries change a lot
        (np.subtract.outer(*[[0.2, 0.25, 1 / 3, 0.5, 1]] * 2).ravel(), np.full(25, 1 / 25)),
    ],
)
def test_equal_systems_differ_significantly_in_5_percent(size, values, probabilities) -> None:
    rng, rounds = np.random.default_rng(size), 200
    for test in ("randomization", "t", "wilcoxon"):
        drawn = rng.choice(values, (rounds, size), p=probabilities)
        errors = np.mean([p_value(row, test, 2000, 0) <= 0.05 for row in drawn])
        assert errors <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rounds), test


@pytest.mark.slow
@given(st.lists(st.sampled_from([-2, -1, -0.5, 0, 0.5, 1, 3]), min_size=1, max_size=9))
def test_randomization_of_few_queries_is_exact(differences) -> None:
    """The p-value equals that of enumerating all sign patterns."""
    nonzero = [d for d in differences if d]
    sums = [
        abs(sum(s * d for s, d in zip(signs, nonzero, strict=True)))
        for signs in product((1, -1), repeat=len(nonzero))
    ]
    expected = sum(s >= abs(sum(nonzero)) - 1e-9 for s in sums) / len(sums) if nonzero else 1.0
    assert randomization(np.array(differences, float)) == pytest.approx(expected)


def test_randomization_of_many_queries_agrees_with_the_t_test() -> None:
    assert randomization(DIFFERENCES, 200_000) == pytest.approx(paired_t(DIFFERENCES), abs=0.005)
    assert randomization(DIFFERENCES, 1000, seed=1) == randomization(DIFFERENCES, 1000, seed=1)
    assert randomization(DIFFERENCES, 1000, seed=1) != randomization(DIFFERENCES, 1000, seed=2)
    assert randomization(np.full(100, 0.5), 10_000) == pytest.approx(1 / 10_001)


def test_p_values_are_uniform_under_the_null_hypothesis() -> None:
    rng = np.random.default_rng(0)
    p = [randomization(rng.normal(size=30), 2000, seed=i) for i in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_tukey_of_two_systems_matches_the_randomization_test() -> None:
    p = randomized_tukey(np.array([A, B]), 50_000)
    assert p[0, 1] == pytest.approx(randomization(DIFFERENCES, 50_000), abs=0.006)
    assert p[0, 0] == p[1, 1] == 1


def test_tukey_p_values_increase_with_the_number_of_systems() -> None:
    extra = np.array([A, B, *(0.04 + RNG.random((4, 60)))])
    two, six = randomized_tukey(np.array([A, B]), 20_000), randomized_tukey(extra, 20_000)
    assert six[0, 1] > two[0, 1]
    equal = randomized_tukey(np.array([A, A, A]), 500)
    assert np.all(equal == 1)


def test_corrections_by_hand_and_against_scipy() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.5])
    assert adjust_p_values(p, "holm").tolist() == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert adjust_p_values(p, "bh") == pytest.approx(stats.false_discovery_control(p))
    assert adjust_p_values(p, "none").tolist() == p.tolist()
    with pytest.raises(fp.MeasureError, match="holm, bh or none"):
        adjust_p_values(p, "bonferroni")  # type: ignore[arg-type]


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_never_lower_a_p_value(p) -> None:
    for correction in ("holm", "bh"):
        adjusted = adjust_p_values(np.array(p), correction)  # type: ignore[arg-type]
        assert (adjusted >= np.array(p) - 1e-12).all()
        assert (adjusted <= 1).all()
    assert (
        adjust_p_values(np.array(p), "holm") >= adjust_p_values(np.array(p), "bh") - 1e-12
    ).all()


def test_effect_size() -> None:
    assert effect_size(DIFFERENCES) == pytest.approx(DIFFERENCES.mean() / DIFFERENCES.std(ddof=1))
    assert effect_size(np.zeros(4)) == 0
    assert effect_size(np.full(4, -1.0)) == -np.inf


def systems(queries: int = 40, docs: int = 8):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, queries * docs)
    qid = np.repeat(np.arange(queries), docs)
    good = labels + rng.normal(size=len(labels))
    return {"good": good, "bad": rng.random(len(labels)), "again": good}, labels, qid


def test_compare_distinguishes_better_from_equal_systems() -> None:
    named, labels, qid = systems()
    comparison = fp.compare(named, labels, qid=qid, measures=["NDCG@5", "TopK01@1"])
    assert comparison.systems == ("good", "bad", "again")
    differences = {(d.measure, d.system, d.against): d for d in comparison.differences}
    assert len(differences) == 6
    worse = differences["NDCG@5", "bad", "good"]
    assert worse.difference < 0
    assert worse.p_corrected < 0.05
    assert worse.p <= worse.p_corrected
    assert worse.high < 0
    assert worse.wins + worse.ties + worse.losses == 40
    assert worse.losses > worse.wins
    equal = differences["NDCG@5", "again", "good"]
    assert (equal.difference, equal.p, equal.ties) == (0, 1, 40)
    loss = differences["TopK01@1", "bad", "good"]  # lower is better: more errors are losses
    assert loss.difference > 0
    assert loss.losses > loss.wins
    assert comparison.best("NDCG@5") in ("good", "again")
    assert comparison.best("TopK01@1") in ("good", "again")


def test_most_different_queries() -> None:
    named, labels, qid = systems()
    comparison = fp.compare(named, labels, qid=qid, measures="AP")
    rows = comparison.most_different("AP", "good", "bad", 3)
    differences = comparison.values("AP")[0] - comparison.values("AP")[1]
    assert [abs(difference) for _, difference in rows] == sorted(np.abs(differences))[::-1][:3]
    assert all(differences[int(q)] == difference for q, difference in rows)
    assert comparison.most_different("AP", "good", "again") == []


def test_with_a_baseline_only_its_pairs_are_compared() -> None:
    named, labels, qid = systems()
    comparison = fp.compare(named, labels, qid=qid, measures="AP", baseline="bad", test="t")
    assert [(d.system, d.against) for d in comparison.differences] == [
        ("good", "bad"),
        ("again", "bad"),
    ]
    assert comparison.differences[0].p == pytest.approx(
        stats.ttest_rel(*comparison.values("AP")[:2]).pvalue
    )


def test_runs_are_compared_on_the_queries_they_share() -> None:
    qrels = {q: {"a": 1, "b": 0} for q in "123"}
    runs = {
        "x": {"1": {"a": 1}, "2": {"a": 1}},
        "y": {"2": {"b": 1}, "3": {"a": 1}},
    }
    on_all = fp.compare(runs, qrels, measures="RR")
    assert list(on_all.queries) == ["1", "2", "3"]
    with pytest.warns(fp.FirstpageWarning, match="compared on the 1 that they share"):
        shared = fp.compare(runs, qrels, measures="RR", convention=fp.Convention(queries="run"))
    assert list(shared.queries) == ["2"]
    assert shared.values("RR").tolist() == [[1], [0]]


def test_measures_are_parsed_once_for_all_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    from firstpage.evaluation.measures import registry

    parsed, single = [], registry._single

    def record(text: str) -> fp.extend.Measure:
        parsed.append(text)
        return single(text)

    monkeypatch.setattr(registry, "_single", record)
    named = {name: [2, 1] * 4 for name in "abc"}
    qid = np.repeat(np.arange(4), 2)
    fp.compare(named, [1, 0] * 4, qid=qid, measures=["NDCG@10", "map"], rounds=100)
    assert parsed == ["NDCG@10", "map"]


def test_unnamed_runs_are_named_by_their_tags() -> None:
    runs = [fp.Run.from_dict({"1": {"a": 1}}, name=n) for n in ("bm25", "", "bm25")]
    comparison = fp.compare(runs, {"1": {"a": 1}}, measures="RR")
    assert comparison.systems == ("bm25", "system 2", "bm25 (3)")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "none"}, "no system 'none'; there are good"),
        ({"test": "sign"}, "test must be randomization, t, wilcoxon"),
        ({"correction": "x"}, "holm, bh or none"),
    ],
)
def test_invalid_comparisons_raise_an_error(options, message: str) -> None:
    named, labels, qid = systems()
    with pytest.raises(fp.FirstpageError, match=message):
        fp.compare(named, labels, qid=qid, **options)
    with pytest.raises(fp.DataError, match="at least two systems"):
        fp.compare({"only": named["good"]}, labels, qid=qid)


@pytest.mark.slow
def test_resampling_is_compiled_even_for_small_data(tmp_path: Path) -> None:
    env = {**os.environ, "FIRSTPAGE_CACHE": str(tmp_path)}
    script = (
        "import firstpage as fp\n"
        "fp.compare({'a': [1, 2] * 30, 'b': [2, 1] * 30}, [0, 1] * 30, qid=sorted([*range(30)] * 2))"
        ".differences\n"
    )
    subprocess.run([sys.executable, "-c", script], env=env, check=True, timeout=PATIENCE)
    compiled = {file.name.split("-")[0] for file in (tmp_path / "kernels").iterdir()}
    assert {"flip_signs", "tukey_ranges", "bootstrap_means"} <= compiled


def test_queries_without_weight_do_not_count_as_different() -> None:
    weights = np.array([1.0, 0, 0, 0, 0, 0])
    low, _ = difference_interval(np.full(6, 0.1), 0, weights)
    assert low == 0
