"""Hinges of the NDCG of a measure file: against all rankings, and against standard NDCG."""

from __future__ import annotations

import json
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.data.truth import Truth
from firstpage.learning.losses.structural import StructuralHinge, parse_delta
from tests.narrow import present

DISCOUNTS = {
    "falling": [1.0, 0.7, 0.4, 0.1],
    "level": [1.0, 0.5, 0.5, 0.5, 0.2],
    "two levels": [1.0, 1.0, 0.3, 0.3, 0.3],
    "ends at 0": [1.0, 0.6, 0.0, 0.0],
}


@pytest.fixture
def measure_files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, discounts in DISCOUNTS.items():
        fp.dcglearn.Utility.from_gains([0, 1, 1.5, 5], discounts).save(f"{name}.json")
    fp.dcglearn.Utility.from_dcg("exp", range(5), 10).save("usual.json")
    fp.dcglearn.Utility.from_gains([0, 1, 2], [0.5, 1.0, 0.2, -0.4]).save("rising.json")
    return tmp_path


def lists(seed: int, grades: int, longest: int = 6, size: int = 250):
    rng = np.random.default_rng(seed)
    for _ in range(size):
        n = int(rng.integers(2, longest + 1))
        yield rng.integers(0, grades, n).astype(float), np.round(rng.normal(size=n) * 2, 1)


def rankings(gain, s, discounts):
    """Return (Delta, score) of every ranking with a loss, and the greatest score of one without."""
    a = np.zeros(len(s))
    a[: len(discounts)] = discounts[: len(s)]
    ideal = (a * np.sort(gain)[::-1]).sum()
    orders = np.array(list(permutations(range(len(s)))))
    losses, scores = 1 - gain[orders] @ a / ideal, s[orders] @ a
    wrong = losses > 1e-12
    violated = list(zip(losses[wrong], scores[wrong], strict=True))
    true_score = scores[~wrong].max(initial=-np.inf)
    return violated, true_score


@pytest.mark.parametrize("name", DISCOUNTS)
@pytest.mark.parametrize("cutoff", ["", "@3"])
def test_margin_rescaling_is_the_maximum_over_all_rankings(
    measure_files: Path, name: str, cutoff: str
):
    utility = fp.dcglearn.read_utility(f"{name}.json")
    loss = StructuralHinge(f"NDCG({name}.json){cutoff}")
    cases = 0
    for y, s in lists(1, 4):
        value, _ = loss.value_grad(s, Truth.from_labels(y))
        depth = 3 if cutoff else None
        gain = utility.gains[y.astype(int)]
        violated, true_score = (
            rankings(gain, s, utility.discounts[:depth]) if gain.any() else ([], 0.0)
        )
        expected = max([0.0, *(loss + score - true_score for loss, score in violated)])
        cases += expected > 0
        assert value[0] == pytest.approx(expected, abs=1e-9)
    assert cases > 100


@pytest.mark.parametrize("name", DISCOUNTS)
def test_slack_rescaling_finds_nearly_all_and_never_misses_a_violation(measure_files, name):
    utility = fp.dcglearn.read_utility(f"{name}.json")
    loss = StructuralHinge(f"NDCG({name}.json)", "slack")
    missed, cases = 0, 0
    for y, s in lists(2, 4):
        target, value, grad = loss.target(Truth.from_labels(y)), np.empty(1), np.empty(len(s))
        target.bind_slice(0, 1, s, value, grad)()
        gain = utility.gains[y.astype(int)]
        violated, true_score = rankings(gain, s, utility.discounts) if gain.any() else ([], 0.0)
        exact = max([0.0, *(loss * (1 + score - true_score) for loss, score in violated)])
        cases += exact > 0
        assert value[0] <= exact + 1e-9
        assert (value[0] > 0) == (exact > 1e-12)
        assert present(target.upper_bounds)[0] >= exact - 1e-9
        missed += value[0] < exact - 1e-9
    assert cases > 100
    assert missed <= 0.02 * cases


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("reference", ["resort", "mean", "fixed"])
def test_a_file_of_standard_gains_gives_the_standard_loss(
    measure_files: Path, scaling, reference
) -> None:
    rng = np.random.default_rng(3)
    offsets = np.array([0, 4, 30, 31, 80])
    for _ in range(20):
        truth = Truth(
            rng.integers(0, 5, 80).astype(float),
            offsets,
            Truth.from_labels([1]).queries.from_values("abcd"),
        )
        s = rng.normal(size=80)
        from_file = StructuralHinge("NDCG(usual.json)@10", scaling, reference).value_grad(s, truth)
        usual = StructuralHinge("NDCG@10", scaling, reference).value_grad(s, truth)
        assert from_file[0] == pytest.approx(usual[0], abs=1e-9)
        assert from_file[1] == pytest.approx(usual[1], abs=1e-9)


def test_increasing_discounts_are_replaced_with_a_warning(measure_files: Path) -> None:
    loss = StructuralHinge("NDCG(rising.json)")
    assert loss.parsed_delta.discounts == pytest.approx([1.5, 1.5, 0.4])
    with pytest.warns(
        FirstpageWarning, match=r"rising.json: its discounts increase .* 1.5, 1.5, 0.4"
    ):
        value, _ = loss.value_grad(np.array([0.0, 1.0, 2.0]), Truth.from_labels([2, 1, 0]))
    violated, true_score = rankings(np.array([1, 0.5, 0]), np.array([0.0, 1, 2]), [1.5, 1.5, 0.4])
    assert value[0] == pytest.approx(max(loss + score - true_score for loss, score in violated))
    assert not parse_delta("NDCG(rising.json)@1").note


def test_the_projection_is_the_nearest_nonincreasing_sequence(measure_files: Path) -> None:
    """Compare with a grid of all nonincreasing sequences."""
    grid = np.linspace(0, 2, 21)
    rng = np.random.default_rng(7)
    for _ in range(20):
        discounts = np.round(rng.uniform(-0.5, 2, 3), 1)
        discounts[0] = max(discounts[0], 0.5)
        fp.dcglearn.Utility((0, 1), np.ones((3, 2)), np.array([0.0, 1.0]), discounts).save(
            "any.json"
        )
        projected = np.zeros(3)
        positive = parse_delta("NDCG(any.json)").discounts
        projected[: len(positive)] = positive
        distances = [
            ((np.array(c) - discounts) ** 2).sum()
            for c in product(grid, repeat=3)
            if c[0] >= c[1] >= c[2]
        ]
        assert ((projected - discounts) ** 2).sum() <= min(distances) + 1e-12
        assert (np.diff(projected) <= 1e-12).all()


def test_long_lists_with_equal_discounts(measure_files: Path) -> None:
    """The longest violated ranking is one exchange away from an ideal order, whose partner may be inside
    the next level."""
    discounts = np.repeat([1.0, 0.6, 0.3, 0.1], [3, 5, 2, 6])
    fp.dcglearn.Utility.from_gains([0, 1, 2], discounts).save("long.json")
    loss = StructuralHinge("NDCG(long.json)")
    rng = np.random.default_rng(11)
    a = np.concatenate([discounts, np.zeros(14)])
    for _ in range(50):
        y = np.sort(rng.integers(0, 3, 30))[::-1].astype(float)
        s = 20 * y + rng.normal(
            size=30
        )  # far from any other order: the best ranking with a loss is one exchange away
        gain = y / (a * y).sum() if y.any() else y
        true_score = (a * s[np.lexsort((-s, -y))]).sum()
        order = np.argsort(-(s - gain), kind="stable")
        expected = 0.0
        for p in range(30):
            for r in range(p + 1, 30):
                other = order.copy()
                other[[p, r]] = other[[r, p]]
                loss_of = 1 - (a * gain[other]).sum()
                if loss_of > 1e-12:
                    expected = max(expected, loss_of + (a * s[other]).sum() - true_score)
        assert loss.value_grad(s, Truth.from_labels(y))[0][0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NDCG(none.json)@3", "none.json: no such file"),
        (
            "NDCG(usual.json)@11",
            "cutoff of delta is 11, and usual.json has discounts of 10 ranks",
        ),
        ("NDCG(usual.json, form=weights)", "delta needs gains and discounts"),
        ("NDCG(usual.json, segment=x)", "usual.json: there is no segment 'x'"),
        ("NDCG(gain=exp)@3", "delta must be NDCG or Precision"),
        ("Precision(usual.json)@3", "delta must be NDCG or Precision"),
        ("DCG(usual.json)@3", "delta must be NDCG or Precision"),
        ("NDCG(down.json)", "no gain may be below that of the worst grade"),
        ("NDCG(nothing.json)", "no discount above 0"),
    ],
)
def test_a_measure_that_cannot_be_trained_for_is_refused(
    measure_files: Path, text: str, message: str
) -> None:
    fp.dcglearn.Utility((0, 1, 2), np.ones((1, 3)), np.array([0.0, -1.0, 1.0]), np.ones(1)).save(
        "down.json"
    )
    fp.dcglearn.Utility((0, 1), np.ones((2, 2)), np.array([0.0, 1.0]), np.array([-1.0, -2.0])).save(
        "nothing.json"
    )
    with pytest.raises(DataError, match=message):
        StructuralHinge(text)
    with pytest.raises(DataError, match=message):
        fp.TopSlack(delta=text).fit([[0.0], [1.0]], [0, 1], qid=[1, 1])


def test_labels_without_a_grade_are_refused(measure_files: Path) -> None:
    with pytest.raises(DataError, match="grades 0, 1, 2, 3, 4, and the data have a label 5"):
        StructuralHinge("NDCG(usual.json)").target(Truth.from_labels([5, 0]))
    below = StructuralHinge("NDCG(usual.json)").value_grad(np.zeros(2), Truth.from_labels([1, -1]))[
        0
    ]
    assert (
        below
        == StructuralHinge("NDCG(usual.json)").value_grad(np.zeros(2), Truth.from_labels([1, 0]))[0]
    )


@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
def test_a_trained_ranker_does_not_need_the_measure_file(measure_files: Path, cls) -> None:
    data = fp.Synthetic(queries=20, docs=12, features=4, grades=5, seed=1).dataset()
    usual = cls(delta="NDCG@10").fit(data)
    from_file = cls(delta="NDCG(usual.json)@10", measure="NDCG(usual.json)@10").fit(data)
    assert from_file.predict(data) == pytest.approx(usual.predict(data), abs=1e-6)
    from_file.save("model.json")
    Path("usual.json").unlink()
    again = fp.load("model.json")
    assert again.delta == "NDCG(usual.json)@10"
    assert (
        json.loads(Path("model.json").read_text())["training"]["measure"] == "NDCG(usual.json)@10"
    )
    assert np.array_equal(again.predict(data), from_file.predict(data))
    with pytest.raises(fp.FirstpageError, match="no such file"):
        again.score(data)
