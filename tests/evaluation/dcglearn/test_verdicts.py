"""No random gains and discounts contradict a proof, and every witness flips its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, MeasureError
from firstpage.data.preferences.utility import Utility
from firstpage.evaluation.dcglearn.certificates.problem import SumOfRatios
from firstpage.evaluation.dcglearn.certificates.verdicts import verdicts
from tests.evaluation.dcglearn import plain
from tests.narrow import present

EXP = {3: [0.0, 1.0, 3.0], 4: [0.0, 1.0, 3.0, 7.0]}


def log2(positions: int):
    return 1.0 / np.log2(np.arange(2.0, positions + 2.0))


def oriented(problem, verdict):
    """Return the problem with the better system first."""
    if verdict.better == "a":
        return problem
    return [(pool, b, a) for pool, a, b in problem]


def problems(count: int, seed: int) -> Iterator[tuple[int, plain.Problem, int]]:
    rng = np.random.default_rng(seed)
    for number in range(count):
        levels = int(rng.integers(3, 5))
        docs = int(rng.integers(4, 7))
        quality = float(rng.choice([0.0, 0.5, 1.5]))
        yield (
            number,
            plain.random_problem(rng, int(rng.integers(1, 9)), docs, levels, quality),
            levels,
        )


@pytest.mark.parametrize("measure", ["DCG", "NDCG"])
@pytest.mark.parametrize("vary", ["both", "gains", "discounts"])
def test_proofs_and_witnesses_withstand_random_search(measure: str, vary: Any) -> None:
    rng = np.random.default_rng(7)
    states = set()
    for number, problem, _ in problems(12, seed=1):
        gains, positions = EXP[4], 4
        text = f"{measure}(gain=[0, 1, 3, 7])@{positions}"
        (verdict,) = verdicts(*plain.as_systems(problem), text, vary=vary, max_boxes=20)
        normalized = measure == "NDCG"
        problem = oriented(problem, verdict)
        difference = plain.mean_gap(problem, gains, log2(positions), normalized)
        assert difference == pytest.approx(verdict.difference, abs=1e-12)
        if verdict.tie:
            continue
        states.add(verdict.unrestricted.state)
        for witness in (verdict.unrestricted.witness, verdict.nearest_witness):
            if witness is not None:
                u = witness.utility
                flipped_difference = plain.mean_gap(problem, u.gains, u.discounts, normalized)
                assert flipped_difference < 0, number
                assert flipped_difference == pytest.approx(witness.difference, abs=1e-12)
                assert (np.diff(u.gains) > 0).all()
                assert (np.diff(u.discounts) < 0).all()
        sampled = plain.within(
            rng, 3000, gains, log2(positions), min(verdict.proven_factor, 1e4), vary
        )
        assert plain.mean_gaps(problem, *sampled, normalized).min() > -1e-12, number
        if verdict.unrestricted.state == "proven":
            sampled = plain.within(rng, 3000, gains, log2(positions), 1e3, vary)
            assert plain.mean_gaps(problem, *sampled, normalized).min() > -1e-12, number
    assert "flips" in states
    assert "proven" in states


def test_dcg_verdict_stands_if_and_only_if_counts_dominate() -> None:
    rng = np.random.default_rng(3)
    decided = {"proven": 0, "flips": 0}
    for _, problem, _ in problems(60, seed=5):
        (verdict,) = verdicts(*plain.as_systems(problem), "DCG(gain=[0, 1, 3, 7])@4")
        if verdict.tie:
            continue
        problem = oriented(problem, verdict)
        decided[verdict.unrestricted.state] += 1
        assert (verdict.unrestricted.state == "proven") == bool(
            (verdict.count_differences >= 0).all()
        )
        sampled = plain.compatible(rng, 2000, 4, 4)
        if verdict.unrestricted.state == "proven":
            assert plain.mean_gaps(problem, *sampled, False).min() > 0
    assert min(decided.values()) > 5


def test_count_differences_match_the_lists() -> None:
    problem = [
        ([2, 1, 0, 2], [2, 0, 2, 1], [0, 1, 2, 2]),
        ([1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]),
    ]
    (verdict,) = verdicts(*plain.as_systems(problem), "DCG@3")
    problem = oriented(problem, verdict)
    for j in range(3):
        for level in (1, 2):
            expected = np.mean(
                [
                    sum(g >= level for g in a[: j + 1]) - sum(g >= level for g in b[: j + 1])
                    for _, a, b in problem
                ]
            )
            assert verdict.count_differences[j, level - 1] == pytest.approx(expected)


def test_radius_of_dcg_matches_a_dense_grid() -> None:
    """K = 2, L = 3: a fine grid of all four steps."""
    rng = np.random.default_rng(11)
    checked = 0
    for _ in range(40):
        problem = plain.random_problem(rng, 3, 4, 3)
        (verdict,) = verdicts(*plain.as_systems(problem), "DCG(gain=[0, 1, 3])@2")
        if verdict.tie or verdict.flip_factor > 20:
            continue
        problem = oriented(problem, verdict)
        up, fall = np.diff(EXP[3]), log2(2)
        down = np.array([fall[0] - fall[1], fall[1]])
        counts = verdict.count_differences

        def min_difference(factor: float, down=down, counts=counts, up=up) -> float:
            ends = np.geomspace(1 / factor, factor, 13)
            b1, b2, a1, a2 = np.meshgrid(ends, ends, ends, ends)
            return float(
                sum(
                    down[j] * b * counts[j, k] * up[k] * a
                    for j, b in enumerate((b1, b2))
                    for k, a in enumerate((a1, a2))
                ).min()
            )

        assert min_difference(verdict.flip_factor * 1.0001) < 0
        assert min_difference(verdict.proven_factor * 0.9999) > 0
        assert verdict.flip_factor / verdict.proven_factor < 1.0001
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("vary", ["gains", "discounts"])
def test_radius_of_gains_or_discounts_alone_has_a_closed_form(vary: Any) -> None:
    rng, checked = np.random.default_rng(0), 0
    up, fall = np.array([2.0, 1.0]), log2(3)
    for _ in range(80):
        problem = plain.random_problem(rng, 3, 5, 3)
        (verdict,) = verdicts(*plain.as_systems(problem), "DCG(gain=[0, 2, 3])@3", vary=vary)
        terms = (verdict.count_differences.T * (fall - np.append(fall[1:], 0))).T * up
        terms = terms.sum(axis=0 if vary == "gains" else 1)
        if verdict.tie or not (terms < -1e-12).any():
            continue
        root = np.sqrt(terms[terms > 0].sum() / -terms[terms < 0].sum())
        assert verdict.proven_factor < root < verdict.flip_factor
        assert verdict.flip_factor == pytest.approx(root, rel=1e-4)
        checked += 1
    assert checked > 3


def test_factor_one_is_proven_and_a_large_factor_flips() -> None:
    rng = np.random.default_rng(2)
    problem = plain.random_problem(rng, 12, 8, 3, 0.4)
    systems = plain.as_systems(problem)
    states = [
        present(verdicts(*systems, "NDCG@5", within=f)[0].within).state for f in (1.0, 1.05, 50.0)
    ]
    (verdict,) = verdicts(*systems, "NDCG@5")
    assert states[0] == "proven"
    assert verdict.proven_factor <= verdict.flip_factor
    assert states[2] == "flips"


def test_any_discounts_compare_positions_separately() -> None:
    problem = [([2, 1, 0, 0], [2, 1, 0, 0], [1, 2, 0, 0])]
    systems = plain.as_systems(problem)
    (decreasing,) = verdicts(*systems, "DCG@2")
    (free,) = verdicts(*systems, "DCG@2", decreasing=False)
    assert decreasing.unrestricted.state == "proven"
    assert free.unrestricted.state == "flips"
    witness = present(free.unrestricted.witness).utility
    assert plain.mean_gap(problem, witness.gains, witness.discounts, False) < 0


def test_weights_of_every_position_are_certified() -> None:
    rng = np.random.default_rng(4)
    problem = plain.random_problem(rng, 4, 6, 3, 0.3)
    systems = plain.as_systems(problem)
    steps = np.outer([0.5, 0.3, 0.2], [1.0, 2.0]) + rng.random((3, 2)) * 0.1
    weights = np.hstack([np.zeros((3, 1)), np.cumsum(np.cumsum(steps[::-1], 0)[::-1], 1)])
    utility = Utility((0, 1, 2), weights, np.array([0, 0.3, 1]), np.array([1, 0.5, 0.2]), "weights")
    (verdict,) = verdicts(*systems, utility)
    assert verdict.vary == "weights"
    ordered = oriented(problem, verdict)

    def gap(table) -> float:
        return float(
            np.mean([sum(table[j, a[j]] - table[j, b[j]] for j in range(3)) for _, a, b in ordered])
        )

    assert gap(weights) == pytest.approx(verdict.difference)
    assert gap(present(verdict.nearest_witness).utility.weights) < 0
    moved = present(verdict.nearest_witness).utility.weights
    moved_steps = np.diff(moved, axis=1) - np.vstack([np.diff(moved, axis=1)[1:], np.zeros(2)])
    ratio = moved_steps / steps
    assert np.sqrt(ratio.max() / ratio.min()) == pytest.approx(verdict.flip_factor, rel=1e-3)
    with pytest.raises(MeasureError, match="only weights can vary"):
        verdicts(*systems, utility, vary="gains")


def test_zero_steps_change_only_without_restriction() -> None:
    """Grades 1 and 2 have the same gain; the systems differ in grade 2 only."""
    problem = [([2, 1, 1, 0], [1, 1, 0, 2], [2, 0, 1, 1])] * 2
    systems = plain.as_systems(problem)
    (verdict,) = verdicts(*systems, "DCG(gain=[0, 1, 1])@2")
    assert verdict.better == "a"
    assert (verdict.proven_factor, verdict.flip_factor) == (np.inf, np.inf)
    assert verdict.unrestricted.state == "flips"
    u = present(verdict.unrestricted.witness).utility
    assert plain.mean_gap(problem, u.gains, u.discounts, False) < 0


def test_identical_systems_tie() -> None:
    problem = [([1, 0, 2], [2, 1, 0], [2, 1, 0])]
    (verdict,) = verdicts(*plain.as_systems(problem), "NDCG@3", within=2.0)
    assert verdict.tie
    assert verdict.difference == 0
    assert verdict.to_dict()["tie"] is True


def test_large_problems_use_bounds(monkeypatch) -> None:
    rng = np.random.default_rng(9)
    problem = plain.random_problem(rng, 6, 7, 4, 0.2)
    systems = plain.as_systems(problem)
    (exact,) = verdicts(*systems, "DCG(gain=[0, 1, 3, 7])@4")
    monkeypatch.setattr(
        "firstpage.evaluation.dcglearn.certificates.problem.MAX_ENUMERATED_SIDES", 1
    )
    (bounded,) = verdicts(*systems, "DCG(gain=[0, 1, 3, 7])@4")
    assert bounded.proven_factor <= exact.flip_factor * (1 + 1e-9)
    assert bounded.flip_factor >= exact.proven_factor * (1 - 1e-9)
    assert bounded.proven_factor > 1
    assert bounded.flip_factor < np.inf


def test_baseline_and_invalid_options() -> None:
    runs, qrels = plain.as_systems([([2, 1, 0], [2, 1, 0], [1, 2, 0])])
    runs["c"] = runs["a"]
    assert len(verdicts(runs, qrels, "NDCG@2")) == 3
    assert len(verdicts(runs, qrels, "NDCG@2", baseline="b")) == 2
    for changed, message in (
        ({"baseline": "x"}, "no system 'x'"),
        ({"within": 0.5}, "at least 1"),
        ({"max_boxes": 0}, "max_boxes"),
        ({"vary": "grades"}, "vary must be"),
        ({"measure": "DCG(gain=[0, 2, 1])@2"}, "decrease with the grade"),
        ({"measure": "DCG(gain=[1, 2, 3])@2"}, "worst grade"),
        ({"measure": "AP"}, "only DCG and NDCG"),
        ({"measure": Utility.from_gains([0, 1, 2], [0.5, 1])}, "any_discounts"),
        ({"measure": Utility.from_gains([0, 0, 0], [1, 0.5])}, "all the same"),
    ):
        options: dict[str, Any] = {"measure": "NDCG@2", **changed}
        with pytest.raises((DataError, MeasureError), match=message):
            verdicts(runs, qrels, **options)


def test_sum_of_ratios_at_a_point() -> None:
    problem = SumOfRatios(
        np.array([[[1.0, -2.0]], [[3.0, 0.0]]]), np.array([[[1.0, 1.0]], [[2.0, 1.0]]])
    )
    assert problem.value(np.ones(1), np.array([2.0, 1.0])) == pytest.approx(0 / 3 + 6 / 5)


def test_rounding_does_not_make_a_verdict_undecided():
    labels = np.array([[3, 3, 0, 2], [1, 2, 0, 2]])
    a, b = np.array([[3.0, 2, 1, 0]] * 2), np.array([[2.0, 1, 3, 0], [1, 2, 0, 3]])
    (verdict,) = fp.dcglearn.verdicts(
        {"A": a.ravel(), "B": b.ravel()},
        labels.ravel().astype(float),
        "DCG@3",
        qid=np.repeat([0, 1], 4),
        vary="discounts",
    )
    assert verdict.unrestricted.state == "flips"
    assert present(verdict.unrestricted.witness).difference < 0
