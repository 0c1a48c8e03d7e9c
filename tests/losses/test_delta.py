"""Hinges of the NDCG of a measure file: against all rankings, and against the usual numbers."""

from __future__ import annotations

import json
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.truth import Truth
from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.structural import StructuralHinge, delta

DISCOUNTS = {
    "falling": [1.0, 0.7, 0.4, 0.1],
    "level": [1.0, 0.5, 0.5, 0.5, 0.2],
    "two levels": [1.0, 1.0, 0.3, 0.3, 0.3],
    "ends at 0": [1.0, 0.6, 0.0, 0.0],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, discounts in DISCOUNTS.items():
        fp.Utility.from_gains([0, 1, 1.5, 5], discounts).save(f"{name}.json")
    fp.Utility.from_dcg("exp", range(5), 10).save("usual.json")
    fp.Utility.from_gains([0, 1, 2], [0.5, 1.0, 0.2, -0.4]).save("rising.json")
    return tmp_path


def lists(seed: int, grades: int, most: int = 6, size: int = 250):
    rng = np.random.default_rng(seed)
    for _ in range(size):
        n = int(rng.integers(2, most + 1))
        yield rng.integers(0, grades, n).astype(float), np.round(rng.normal(size=n) * 2, 1)


def rankings(gain, s, discounts):
    """(Delta, score) of every ranking with a loss; the greatest score of one without."""
    a = np.zeros(len(s))
    a[: len(discounts)] = discounts[: len(s)]
    ideal = (a * np.sort(gain)[::-1]).sum()
    orders = np.array(list(permutations(range(len(s)))))
    losses, scores = 1 - gain[orders] @ a / ideal, s[orders] @ a
    wrong = losses > 1e-12
    found = list(zip(losses[wrong], scores[wrong], strict=True))
    own = scores[~wrong].max(initial=-np.inf)
    return found, own


@pytest.mark.slow
@pytest.mark.parametrize("name", DISCOUNTS)
@pytest.mark.parametrize("cutoff", ["", "@3"])
def test_margin_scaling_is_the_maximum_over_all_rankings(here: Path, name: str, cutoff: str):
    utility = fp.read_utility(f"{name}.json")
    loss = StructuralHinge(f"NDCG({name}.json){cutoff}")
    cases = 0
    for y, s in lists(1, 4):
        value, _ = loss.value_grad(s, Truth.from_labels(y))
        depth = 3 if cutoff else None
        gain = utility.gains[y.astype(int)]
        found, own = rankings(gain, s, utility.discounts[:depth]) if gain.any() else ([], 0.0)
        want = max([0.0, *(loss + score - own for loss, score in found)])
        cases += want > 0
        assert value[0] == pytest.approx(want, abs=1e-9)
    assert cases > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", DISCOUNTS)
@pytest.mark.parametrize("search", ["chords", "golden"])
def test_slack_scaling_finds_nearly_all_and_never_misses_a_violation(here, name, search):
    utility = fp.read_utility(f"{name}.json")
    loss = StructuralHinge(f"NDCG({name}.json)", "slack", search=search)
    missed, cases = 0, 0
    for y, s in lists(2, 4):
        target, value, grad = loss.target(Truth.from_labels(y)), np.empty(1), np.empty(len(s))
        target.bind(0, 1, s, value, grad)()
        gain = utility.gains[y.astype(int)]
        found, own = rankings(gain, s, utility.discounts) if gain.any() else ([], 0.0)
        exact = max([0.0, *(loss * (1 + score - own) for loss, score in found)])
        cases += exact > 0
        assert value[0] <= exact + 1e-9
        assert (value[0] > 0) == (exact > 1e-12)
        if search == "chords":
            assert target.bounds[0] >= exact - 1e-9
        missed += value[0] < exact - 1e-9
    assert cases > 100
    assert missed <= 0.02 * cases


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("reference", ["resort", "mean", "fixed"])
def test_the_usual_numbers_are_the_usual_loss(here: Path, scaling, reference) -> None:
    rng = np.random.default_rng(3)
    offsets = np.array([0, 4, 30, 31, 80])
    for _ in range(20):
        truth = Truth(
            rng.integers(0, 5, 80).astype(float),
            offsets,
            Truth.from_labels([1]).queries.from_values("abcd"),
        )
        s = rng.normal(size=80)
        ours = StructuralHinge("NDCG(usual.json)@10", scaling, reference).value_grad(s, truth)
        usual = StructuralHinge("NDCG@10", scaling, reference).value_grad(s, truth)
        assert ours[0] == pytest.approx(usual[0], abs=1e-9)
        assert ours[1] == pytest.approx(usual[1], abs=1e-9)


def test_discounts_that_rise_are_made_to_fall_and_that_is_said(here: Path) -> None:
    loss = StructuralHinge("NDCG(rising.json)")
    assert loss.read.discounts == pytest.approx([1.5, 1.5, 0.4])
    with pytest.warns(FirstpageWarning, match=r"rising.json: its discounts rise .* 1.5, 1.5, 0.4"):
        value, _ = loss.value_grad(np.array([0.0, 1.0, 2.0]), Truth.from_labels([2, 1, 0]))
    found, own = rankings(np.array([1, 0.5, 0]), np.array([0.0, 1, 2]), [1.5, 1.5, 0.4])
    assert value[0] == pytest.approx(max(loss + score - own for loss, score in found))
    assert not delta("NDCG(rising.json)@1").note


@pytest.mark.slow
def test_the_projection_is_the_nearest_that_falls(here: Path) -> None:
    """Against a grid of all falling numbers."""
    grid = np.linspace(0, 2, 21)
    rng = np.random.default_rng(7)
    for _ in range(20):
        given = np.round(rng.uniform(-0.5, 2, 3), 1)
        given[0] = max(given[0], 0.5)
        fp.Utility((0, 1), np.ones((3, 2)), [0, 1], given).save("any.json")
        got = np.zeros(3)
        kept = delta("NDCG(any.json)").discounts
        got[: len(kept)] = kept
        far = [
            ((np.array(c) - given) ** 2).sum()
            for c in product(grid, repeat=3)
            if c[0] >= c[1] >= c[2]
        ]
        assert ((got - given) ** 2).sum() <= min(far) + 1e-12
        assert (np.diff(got) <= 1e-12).all()


@pytest.mark.slow
def test_long_lists_with_level_discounts(here: Path) -> None:
    """One exchange away from an ideal order: the partner may stand inside the next level."""
    discounts = np.repeat([1.0, 0.6, 0.3, 0.1], [3, 5, 2, 6])
    fp.Utility.from_gains([0, 1, 2], discounts).save("long.json")
    loss = StructuralHinge("NDCG(long.json)")
    rng = np.random.default_rng(11)
    a = np.concatenate([discounts, np.zeros(14)])
    for _ in range(50):
        y = np.sort(rng.integers(0, 3, 30))[::-1].astype(float)
        s = 20 * y + rng.normal(size=30)  # ideal by far: the best with a loss is one exchange off
        gain = y / (a * y).sum() if y.any() else y
        own = (a * s[np.lexsort((-s, -y))]).sum()
        order = np.argsort(-(s - gain), kind="stable")
        want = 0.0
        for p in range(30):
            for r in range(p + 1, 30):
                other = order.copy()
                other[[p, r]] = other[[r, p]]
                loss_of = 1 - (a * gain[other]).sum()
                if loss_of > 1e-12:
                    want = max(want, loss_of + (a * s[other]).sum() - own)
        assert loss.value_grad(s, Truth.from_labels(y))[0][0] == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("NDCG(none.json)@3", "none.json: no such file"),
        (
            "NDCG(usual.json)@11",
            "cut-off of delta is 11, and usual.json has discounts of 10 places",
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
def test_what_cannot_be_trained_for_is_told_in_one_line(here: Path, text: str, says: str) -> None:
    fp.Utility((0, 1, 2), np.ones((1, 3)), [0, -1, 1], [1]).save("down.json")
    fp.Utility((0, 1), np.ones((2, 2)), [0, 1], [-1, -2]).save("nothing.json")
    with pytest.raises(DataError, match=says):
        StructuralHinge(text)
    with pytest.raises(DataError, match=says):
        fp.TopSlack(delta=text).fit([[0.0], [1.0]], [0, 1], qid=[1, 1])


def test_labels_that_are_no_grades_are_told(here: Path) -> None:
    with pytest.raises(DataError, match="grades 0, 1, 2, 3, 4, and the data hold a label 5"):
        StructuralHinge("NDCG(usual.json)").target(Truth.from_labels([5, 0]))
    below = StructuralHinge("NDCG(usual.json)").value_grad(np.zeros(2), Truth.from_labels([1, -1]))[
        0
    ]
    assert (
        below
        == StructuralHinge("NDCG(usual.json)").value_grad(np.zeros(2), Truth.from_labels([1, 0]))[0]
    )


@pytest.mark.slow
@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
def test_rankers_train_for_a_file_and_live_without_it(here: Path, cls) -> None:
    data = fp.Synthetic(queries=20, docs=12, features=4, grades=5, seed=1).dataset()
    usual = cls(delta="NDCG@10").fit(data)
    ours = cls(delta="NDCG(usual.json)@10", measure="NDCG(usual.json)@10").fit(data)
    assert ours.predict(data) == pytest.approx(usual.predict(data), abs=1e-6)
    ours.save("model.json")
    Path("usual.json").unlink()
    again = fp.load("model.json")
    assert again.delta == "NDCG(usual.json)@10"
    assert (
        json.loads(Path("model.json").read_text())["training"]["measure"] == "NDCG(usual.json)@10"
    )
    assert np.array_equal(again.predict(data), ours.predict(data))
    with pytest.raises(fp.FirstpageError, match="no such file"):
        again.score(data)
