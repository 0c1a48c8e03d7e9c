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
from firstpage.measures.significance import (
    adjust_p_values,
    effect_size,
    paired_t,
    randomization,
    randomized_tukey,
    wilcoxon,
)
from tests.patience import PATIENCE

# Runs and judgments that lack something of each other; `test_coverage` is about what is said then.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.errors.FirstpageWarning")

RNG = np.random.default_rng(5)
A, B = RNG.random(60), RNG.random(60) + 0.08
GAP = B - A


def test_paired_t_is_scipys() -> None:
    assert paired_t(GAP) == pytest.approx(stats.ttest_rel(B, A).pvalue)
    assert paired_t(np.zeros(5)) == 1
    assert paired_t(np.ones(5)) == 0
    assert paired_t(np.array([1.0])) == 1


def test_wilcoxon_is_scipys() -> None:
    assert wilcoxon(GAP) == pytest.approx(stats.wilcoxon(B, A).pvalue)
    assert wilcoxon(np.array([0.0, 0.0])) == 1


@given(st.lists(st.sampled_from([-2, -1, -0.5, 0, 0.5, 1, 3]), min_size=1, max_size=9))
def test_randomization_of_few_queries_is_exact(gaps) -> None:
    """Against all sign patterns, one by one."""
    moved = [g for g in gaps if g]
    sums = [
        abs(sum(s * g for s, g in zip(signs, moved, strict=True)))
        for signs in product((1, -1), repeat=len(moved))
    ]
    want = sum(s >= abs(sum(moved)) - 1e-9 for s in sums) / len(sums) if moved else 1.0
    assert randomization(np.array(gaps, float)) == pytest.approx(want)


def test_randomization_of_many_queries_agrees_with_the_t_test() -> None:
    assert randomization(GAP, 200_000) == pytest.approx(paired_t(GAP), abs=0.005)
    assert randomization(GAP, 1000, seed=1) == randomization(GAP, 1000, seed=1)
    assert randomization(GAP, 1000, seed=1) != randomization(GAP, 1000, seed=2)
    assert randomization(np.full(100, 0.5), 10_000) == pytest.approx(1 / 10_001)


def test_p_values_are_uniform_when_there_is_no_difference() -> None:
    rng = np.random.default_rng(0)
    p = [randomization(rng.normal(size=30), 2000, seed=i) for i in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_tukey_of_two_systems_is_the_randomization_test() -> None:
    p = randomized_tukey(np.array([A, B]), 50_000)
    assert p[0, 1] == pytest.approx(randomization(GAP, 50_000), abs=0.006)
    assert p[0, 0] == p[1, 1] == 1


def test_tukey_is_more_careful_with_more_systems() -> None:
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


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_never_lower_a_p_value(p) -> None:
    for how in ("holm", "bh"):
        raised = adjust_p_values(np.array(p), how)  # type: ignore[arg-type]
        assert (raised >= np.array(p) - 1e-12).all()
        assert (raised <= 1).all()
    assert (
        adjust_p_values(np.array(p), "holm") >= adjust_p_values(np.array(p), "bh") - 1e-12
    ).all()


def test_effect_size() -> None:
    assert effect_size(GAP) == pytest.approx(GAP.mean() / GAP.std(ddof=1))
    assert effect_size(np.zeros(4)) == 0
    assert effect_size(np.full(4, -1.0)) == -np.inf


def systems(queries: int = 40, docs: int = 8):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, queries * docs)
    qid = np.repeat(np.arange(queries), docs)
    good = labels + rng.normal(size=len(labels))
    return {"good": good, "bad": rng.random(len(labels)), "again": good}, labels, qid


def test_compare_tells_better_from_equal() -> None:
    named, labels, qid = systems()
    found = fp.compare(named, labels, qid=qid, measures=["NDCG@5", "TopK01@1"])
    assert found.systems == ("good", "bad", "again")
    by = {(d.measure, d.system, d.against): d for d in found.differences}
    assert len(by) == 6
    worse = by["NDCG@5", "bad", "good"]
    assert worse.difference < 0
    assert worse.p_corrected < 0.05
    assert worse.p <= worse.p_corrected
    assert worse.high < 0
    assert worse.wins + worse.ties + worse.losses == 40
    assert worse.losses > worse.wins
    equal = by["NDCG@5", "again", "good"]
    assert (equal.difference, equal.p, equal.ties) == (0, 1, 40)
    loss = by["TopK01@1", "bad", "good"]  # lower is better: more errors are losses
    assert loss.difference > 0
    assert loss.losses > loss.wins
    assert found.best("NDCG@5") in ("good", "again")
    assert found.best("TopK01@1") in ("good", "again")


def test_most_different_queries() -> None:
    named, labels, qid = systems()
    found = fp.compare(named, labels, qid=qid, measures="AP")
    rows = found.most_different("AP", "good", "bad", 3)
    gap = found.values("AP")[0] - found.values("AP")[1]
    assert [abs(g) for _, g in rows] == sorted(np.abs(gap))[::-1][:3]
    assert all(gap[int(q)] == g for q, g in rows)
    assert found.most_different("AP", "good", "again") == []


def test_a_baseline_halves_the_comparisons() -> None:
    named, labels, qid = systems()
    found = fp.compare(named, labels, qid=qid, measures="AP", baseline="bad", test="t")
    assert [(d.system, d.against) for d in found.differences] == [("good", "bad"), ("again", "bad")]
    assert found.differences[0].p == pytest.approx(stats.ttest_rel(*found.values("AP")[:2]).pvalue)


def test_runs_are_compared_on_the_queries_they_share() -> None:
    qrels = {q: {"a": 1, "b": 0} for q in "123"}
    runs = {
        "x": {"1": {"a": 1}, "2": {"a": 1}},
        "y": {"2": {"b": 1}, "3": {"a": 1}},
    }
    every = fp.compare(runs, qrels, measures="RR")
    assert list(every.queries) == ["1", "2", "3"]
    with pytest.warns(fp.FirstpageWarning, match="compared on the 1 that they share"):
        shared = fp.compare(runs, qrels, measures="RR", queries="run")
    assert list(shared.queries) == ["2"]
    assert shared.values("RR").tolist() == [[1], [0]]


def test_unnamed_runs_get_their_tags() -> None:
    runs = [fp.Run.from_dict({"1": {"a": 1}}, name=n) for n in ("bm25", "", "bm25")]
    found = fp.compare(runs, {"1": {"a": 1}}, measures="RR")
    assert found.systems == ("bm25", "system 2", "bm25 (3)")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"baseline": "none"}, "no system 'none'; there are good"),
        ({"test": "sign"}, "test must be randomization, t, wilcoxon"),
        ({"correction": "x"}, "holm, bh or none"),
    ],
)
def test_bad_comparisons(options, says: str) -> None:
    named, labels, qid = systems()
    with pytest.raises(fp.FirstpageError, match=says):
        fp.compare(named, labels, qid=qid, **options)
    with pytest.raises(fp.DataError, match="at least two systems"):
        fp.compare({"one": named["good"]}, labels, qid=qid)


@pytest.mark.slow
def test_resampling_is_compiled_even_for_small_data(tmp_path: Path) -> None:
    env = {**os.environ, "FIRSTPAGE_CACHE": str(tmp_path)}
    script = (
        "import firstpage as fp\n"
        "fp.compare({'a': [1, 2] * 30, 'b': [2, 1] * 30}, [0, 1] * 30, qid=sorted([*range(30)] * 2))"
        ".differences\n"
    )
    subprocess.run([sys.executable, "-c", script], env=env, check=True, timeout=PATIENCE)
    made = {file.name.split("-")[0] for file in (tmp_path / "kernels").iterdir()}
    assert {"flip_signs", "tukey_ranges", "bootstrap_means"} <= made
