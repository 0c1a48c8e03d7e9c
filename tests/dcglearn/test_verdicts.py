"""No random gains and discounts contradict a proof, and every witness really flips."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.certificates.problem import Problem
from firstpage.dcglearn.certificates.verdicts import verdicts
from firstpage.errors import DataError, MeasureError
from tests.dcglearn import plain

EXP = {3: [0.0, 1.0, 3.0], 4: [0.0, 1.0, 3.0, 7.0]}


def log2(places: int):
    return 1.0 / np.log2(np.arange(2.0, places + 2.0))


def oriented(problem, verdict):
    """With the better system first."""
    if verdict.better == "a":
        return problem
    return [(pool, b, a) for pool, a, b in problem]


def problems(count: int, seed: int):
    rng = np.random.default_rng(seed)
    for number in range(count):
        levels = int(rng.integers(3, 5))
        docs = int(rng.integers(4, 7))
        lean = float(rng.choice([0.0, 0.5, 1.5]))
        yield number, plain.random_problem(rng, int(rng.integers(1, 9)), docs, levels, lean), levels


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["DCG", "NDCG"])
@pytest.mark.parametrize("vary", ["both", "gains", "discounts"])
def test_proofs_and_witnesses_hold_against_random_search(measure: str, vary: str) -> None:
    rng = np.random.default_rng(7)
    states = set()
    for number, problem, _ in problems(12, seed=1):
        gains, places = EXP[4], 4
        text = f"{measure}(gain=[0, 1, 3, 7])@{places}"
        (found,) = verdicts(*plain.as_systems(problem), text, vary=vary, effort=20)
        normalized = measure == "NDCG"
        problem = oriented(problem, found)
        own = plain.mean_gap(problem, gains, log2(places), normalized)
        assert own == pytest.approx(found.difference, abs=1e-12)
        if found.tie:
            continue
        states.add(found.anyhow.state)
        for outcome in (found.anyhow.witness, found.nearest):
            if outcome is not None:
                u = outcome.utility
                again = plain.mean_gap(problem, u.gains, u.discounts, normalized)
                assert again < 0, number
                assert again == pytest.approx(outcome.difference, abs=1e-12)
                assert (np.diff(u.gains) > 0).all()
                assert (np.diff(u.discounts) < 0).all()
        drawn = plain.within(rng, 3000, gains, log2(places), min(found.proven, 1e4), vary)
        assert plain.mean_gaps(problem, *drawn, normalized).min() > -1e-12, number
        if found.anyhow.state == "proven":
            drawn = plain.within(rng, 3000, gains, log2(places), 1e3, vary)
            assert plain.mean_gaps(problem, *drawn, normalized).min() > -1e-12, number
    assert "flips" in states
    assert "proven" in states


@pytest.mark.slow
def test_dcg_without_a_turned_count_stands_for_all_gains_and_discounts() -> None:
    rng = np.random.default_rng(3)
    decided = {"proven": 0, "flips": 0}
    for _, problem, _ in problems(60, seed=5):
        (found,) = verdicts(*plain.as_systems(problem), "DCG(gain=[0, 1, 3, 7])@4")
        if found.tie:
            continue
        problem = oriented(problem, found)
        decided[found.anyhow.state] += 1
        assert (found.anyhow.state == "proven") == bool((found.more >= 0).all())
        drawn = plain.compatible(rng, 2000, 4, 4)
        if found.anyhow.state == "proven":
            assert plain.mean_gaps(problem, *drawn, False).min() > 0
    assert min(decided.values()) > 5


def test_the_counts_are_those_of_the_lists() -> None:
    problem = [
        ([2, 1, 0, 2], [2, 0, 2, 1], [0, 1, 2, 2]),
        ([1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]),
    ]
    (found,) = verdicts(*plain.as_systems(problem), "DCG@3")
    problem = oriented(problem, found)
    for j in range(3):
        for level in (1, 2):
            want = np.mean(
                [
                    sum(g >= level for g in a[: j + 1]) - sum(g >= level for g in b[: j + 1])
                    for _, a, b in problem
                ]
            )
            assert found.more[j, level - 1] == pytest.approx(want)


def test_the_radius_of_dcg_is_that_of_a_dense_grid() -> None:
    """K = 2, L = 3: all corners and a fine grid of all four steps."""
    rng = np.random.default_rng(11)
    checked = 0
    for _ in range(40):
        problem = plain.random_problem(rng, 3, 4, 3)
        (found,) = verdicts(*plain.as_systems(problem), "DCG(gain=[0, 1, 3])@2")
        if found.tie or found.flips > 20:
            continue
        problem = oriented(problem, found)
        up, fall = np.diff(EXP[3]), log2(2)
        down = np.array([fall[0] - fall[1], fall[1]])
        counts = found.more

        def least(factor: float, down=down, counts=counts, up=up) -> float:
            ends = np.geomspace(1 / factor, factor, 13)
            b1, b2, a1, a2 = np.meshgrid(ends, ends, ends, ends)
            return float(
                sum(
                    down[j] * b * counts[j, k] * up[k] * a
                    for j, b in enumerate((b1, b2))
                    for k, a in enumerate((a1, a2))
                ).min()
            )

        assert least(found.flips * 1.0001) < 0
        assert least(found.proven * 0.9999) > 0
        assert found.flips / found.proven < 1.0001
        checked += 1
    assert checked > 10


@pytest.mark.slow
@pytest.mark.parametrize("vary", ["gains", "discounts"])
def test_the_radius_of_one_varied_part_has_a_closed_form(vary: str) -> None:
    rng, checked = np.random.default_rng(0), 0
    up, fall = np.array([2.0, 1.0]), log2(3)
    for _ in range(80):
        problem = plain.random_problem(rng, 3, 5, 3)
        (found,) = verdicts(*plain.as_systems(problem), "DCG(gain=[0, 2, 3])@3", vary=vary)
        parts = (found.more.T * (fall - np.append(fall[1:], 0))).T * up
        parts = parts.sum(axis=0 if vary == "gains" else 1)
        if found.tie or not (parts < -1e-12).any():
            continue
        root = np.sqrt(parts[parts > 0].sum() / -parts[parts < 0].sum())
        assert found.proven < root < found.flips
        assert found.flips == pytest.approx(root, rel=1e-4)
        checked += 1
    assert checked > 3


@pytest.mark.slow
def test_factor_one_is_the_measure_itself_and_proofs_grow() -> None:
    rng = np.random.default_rng(2)
    problem = plain.random_problem(rng, 12, 8, 3, 0.4)
    systems = plain.as_systems(problem)
    states = [verdicts(*systems, "NDCG@5", within=f)[0].within.state for f in (1.0, 1.05, 50.0)]
    (found,) = verdicts(*systems, "NDCG@5")
    assert states[0] == "proven"
    assert found.proven <= found.flips
    assert states[2] == "flips"


def test_any_discounts_look_at_each_place_alone() -> None:
    problem = [([2, 1, 0, 0], [2, 1, 0, 0], [1, 2, 0, 0])]
    systems = plain.as_systems(problem)
    (falling,) = verdicts(*systems, "DCG@2")
    (free,) = verdicts(*systems, "DCG@2", falling=False)
    assert falling.anyhow.state == "proven"
    assert free.anyhow.state == "flips"
    witness = free.anyhow.witness.utility
    assert plain.mean_gap(problem, witness.gains, witness.discounts, False) < 0


def test_weights_of_every_place_are_certified_too() -> None:
    rng = np.random.default_rng(4)
    problem = plain.random_problem(rng, 4, 6, 3, 0.3)
    systems = plain.as_systems(problem)
    steps = np.outer([0.5, 0.3, 0.2], [1.0, 2.0]) + rng.random((3, 2)) * 0.1
    weights = np.hstack([np.zeros((3, 1)), np.cumsum(np.cumsum(steps[::-1], 0)[::-1], 1)])
    utility = Utility((0, 1, 2), weights, np.array([0, 0.3, 1]), np.array([1, 0.5, 0.2]), "weights")
    (found,) = verdicts(*systems, utility)
    assert found.vary == "weights"
    best = oriented(problem, found)

    def gap(table) -> float:
        return float(
            np.mean([sum(table[j, a[j]] - table[j, b[j]] for j in range(3)) for _, a, b in best])
        )

    assert gap(weights) == pytest.approx(found.difference)
    assert gap(found.nearest.utility.weights) < 0
    moved = found.nearest.utility.weights
    theirs = np.diff(moved, axis=1) - np.vstack([np.diff(moved, axis=1)[1:], np.zeros(2)])
    ratio = theirs / steps
    assert np.sqrt(ratio.max() / ratio.min()) == pytest.approx(found.flips, rel=1e-3)
    with pytest.raises(MeasureError, match="its weights vary"):
        verdicts(*systems, utility, vary="gains")


def test_zero_steps_stay_zero_within_a_factor_and_move_anyhow() -> None:
    """Grades 1 and 2 are worth the same; the systems differ in grade 2 alone, and against."""
    problem = [([2, 1, 1, 0], [1, 1, 0, 2], [2, 0, 1, 1])] * 2
    systems = plain.as_systems(problem)
    (found,) = verdicts(*systems, "DCG(gain=[0, 1, 1])@2")
    assert found.better == "a"
    assert (found.proven, found.flips) == (np.inf, np.inf)
    assert found.anyhow.state == "flips"
    u = found.anyhow.witness.utility
    assert plain.mean_gap(problem, u.gains, u.discounts, False) < 0


def test_systems_alike_tie() -> None:
    problem = [([1, 0, 2], [2, 1, 0], [2, 1, 0])]
    (found,) = verdicts(*plain.as_systems(problem), "NDCG@3", within=2.0)
    assert found.tie
    assert found.difference == 0
    assert found.to_dict()["tie"] is True


@pytest.mark.slow
def test_large_problems_fall_back_to_bounds(monkeypatch) -> None:
    rng = np.random.default_rng(9)
    problem = plain.random_problem(rng, 6, 7, 4, 0.2)
    systems = plain.as_systems(problem)
    (sure,) = verdicts(*systems, "DCG(gain=[0, 1, 3, 7])@4")
    monkeypatch.setattr("firstpage.dcglearn.certificates.problem.CORNERS", 1)
    (bounded,) = verdicts(*systems, "DCG(gain=[0, 1, 3, 7])@4")
    assert bounded.proven <= sure.flips * (1 + 1e-9)
    assert bounded.flips >= sure.proven * (1 - 1e-9)
    assert bounded.proven > 1
    assert bounded.flips < np.inf


def test_baseline_and_errors() -> None:
    runs, qrels = plain.as_systems([([2, 1, 0], [2, 1, 0], [1, 2, 0])])
    runs["c"] = runs["a"]
    assert len(verdicts(runs, qrels, "NDCG@2")) == 3
    assert len(verdicts(runs, qrels, "NDCG@2", baseline="b")) == 2
    for wrong, said in (
        ({"baseline": "x"}, "no system 'x'"), ({"within": 0.5}, "at least 1"), ({"effort": 0}, "effort"),
        ({"vary": "grades"}, "what varies"), ({"measure": "DCG(gain=[0, 2, 1])@2"}, "fall with the grade"),
        ({"measure": "DCG(gain=[1, 2, 3])@2"}, "worst grade"), ({"measure": "AP"}, "only DCG and NDCG"),
        ({"measure": Utility.from_gains([0, 1, 2], [0.5, 1])}, "any-discounts"),
        ({"measure": Utility.from_gains([0, 0, 0], [1, 0.5])}, "all the same"),
    ):  # fmt: skip
        with pytest.raises((DataError, MeasureError), match=said):
            verdicts(runs, qrels, **{"measure": "NDCG@2", **wrong})


def test_the_problem_at_ones_is_the_difference() -> None:
    one = Problem(np.array([[[1.0, -2.0]], [[3.0, 0.0]]]), np.array([[[1.0, 1.0]], [[2.0, 1.0]]]))
    assert one.value(np.ones(1), np.array([2.0, 1.0])) == pytest.approx(0 / 3 + 6 / 5)


def test_a_verdict_is_not_undecided_by_rounding():
    labels = np.array([[3, 3, 0, 2], [1, 2, 0, 2]])
    a, b = np.array([[3.0, 2, 1, 0]] * 2), np.array([[2.0, 1, 3, 0], [1, 2, 0, 3]])
    (found,) = fp.verdicts(
        {"A": a.ravel(), "B": b.ravel()}, labels.ravel().astype(float), "DCG@3",
        qid=np.repeat([0, 1], 4), vary="discounts",
    )  # fmt: skip
    assert found.anyhow.state == "flips"
    assert found.anyhow.witness.difference < 0
