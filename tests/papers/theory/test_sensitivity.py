"""Every clause of Definition 3 can fail, and the losses of the package come out as they should."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.focused import focused_net
from firstpage.losses.loss import Loss
from firstpage.papers.theory.sensitivity import CLAUSES, kink
from firstpage.papers.theory.spaces import (
    OfFunction,
    forms,
    named,
    orders,
    places,
    surrogate,
    written,
)
from firstpage.papers.xia2009.theorems import KFactor

LISTS = ["ListMLE", "RankCosine", "ListNet", "PermutationCrossEntropy"]
PAIRS = ["RankNet", "RankBoost", "Regression"]
HINGES = ["RankSVM", "AveragePrecisionHinge", "StructuralHinge"]


def top_one(g, y) -> float:
    """Top-1 ListMLE, plainly."""
    z = g[list(y)]
    return float(np.logaddexp.reduce(z) - z[0])


def full(g, y) -> float:
    z = g[list(y)]
    return float(sum(np.logaddexp.reduce(z[i:]) - z[i] for i in range(len(z))))


def squared(g, y) -> float:
    """Without a margin nothing pulls equal scores apart."""
    return float(sum(max(0.0, g[o] - g[y[0]]) ** 2 for o in y[1:]))


def hinge(margin: float):
    def phi(g, y) -> float:
        return float(sum(max(0.0, margin - g[y[0]] + g[o]) for o in y[1:]))

    return phi


MUTANTS = {
    "nonnegative": lambda g, y: top_one(g, y) - 1.0,
    "differentiable": hinge(1.0),
    "symmetric": lambda g, y: top_one(g, y) * (1.0 + 1e-3 * (y[0] == 0)),
    "subgroup": full,
    "slope": squared,
}


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", [*LISTS, *PAIRS])
def test_full_forms_fail_by_the_subgroup_clause_alone(name: str, k: int) -> None:
    assert fp.papers.order_sensitive(name, n=4, k=k).broken == ("subgroup",)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", [*LISTS, *PAIRS])
def test_top_k_forms_are_sensitive(name: str, k: int) -> None:
    found = fp.papers.order_sensitive(f"{name}(k={k})", n=4, k=k)
    assert found
    assert found.broken == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LISTS, *PAIRS])
def test_full_forms_are_sensitive_where_the_top_says_all(name: str) -> None:
    assert fp.papers.order_sensitive(name, n=4, k=3)
    assert fp.papers.order_sensitive(name, n=4, k=4)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", HINGES)
def test_top_k_hinges_fail_by_their_corners_alone(name: str, k: int) -> None:
    assert fp.papers.order_sensitive(f"{name}(k={k})", n=4, k=k).broken == ("differentiable",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "beta", "broken"),
    [
        (1, 0.0, ()), (1, 0.7, ()), (1, 1.0, ("strict", "slope")),
        (2, 0.0, ()), (2, 0.3, ("ordered",)), (2, 1.0, ("ordered",)),
        (3, 0.0, ()), (3, 0.7, ("ordered",)),
    ],
)  # fmt: skip
def test_focused_net(k: int, beta: float, broken: tuple[str, ...]) -> None:
    assert fp.papers.order_sensitive(focused_net(k, beta), n=4, k=k).broken == broken


@pytest.mark.slow
@pytest.mark.parametrize("clause", MUTANTS)
def test_a_mutant_is_caught_by_its_clause(clause: str) -> None:
    found = fp.papers.order_sensitive(MUTANTS[clause], n=3, k=1, samples=15)
    assert clause in found.broken
    if clause != "symmetric":  # which drags the order clauses along
        assert found.broken == (clause,)
    held = {c.name: c for c in found.clauses}
    assert "order" in held[clause].example
    assert held[clause].failed > 0


def test_a_loss_turned_round_is_caught() -> None:
    found = fp.papers.order_sensitive(lambda g, y: top_one(-g, y), n=3, k=1, samples=15)
    assert {"ordered", "strict", "slope"} <= set(found.broken)
    assert not found
    nothing = fp.papers.order_sensitive(lambda g, y: 0.0, n=3, k=1, samples=5)
    assert nothing.broken == ("strict", "slope")


@pytest.mark.slow
def test_examples_are_true() -> None:
    """The example of the subgroup clause, worked out by hand."""
    found = {c.name: c for c in fp.papers.order_sensitive(full, n=3, k=1, samples=3).clauses}
    text = found["subgroup"].example
    g = np.array([float(x) for x in text[text.index("(") + 1 : text.index(")")].split(", ")])
    y = tuple(int(x) - 1 for x in text[text.index("order ") + 6 :][:3])
    cost = float(text.rsplit(" ", 1)[1])
    assert full(g, y) - full(g, (y[0], y[2], y[1])) == pytest.approx(cost, rel=0.01)


@pytest.mark.parametrize("margin", [0.37, 1.0, 2.5])
def test_corners_are_found_wherever_they_are(margin: float) -> None:
    found = kink(OfFunction(hinge(margin), 3), np.random.default_rng(0))
    assert found is not None
    gaps = np.abs(np.subtract.outer(found.scores, found.scores) - margin)
    assert gaps.min() < 1e-3


@pytest.mark.parametrize("name", ["ListMLE", "RankBoost", "RankCosine(k=1)", "Regression"])
@pytest.mark.parametrize("seed", range(3))
def test_smooth_losses_have_no_corners(name: str, seed: int) -> None:
    assert kink(surrogate(name, 4), np.random.default_rng(seed)) is None


@pytest.mark.parametrize("name", ["ListMLE(k=2)", "RankNet", "RankCosine", "Regression(k=1)"])
def test_surrogates_are_the_losses(name: str) -> None:
    loss: Loss = named(name)
    phi, g = surrogate(loss, 4), np.random.default_rng(1).normal(size=4)
    for at, order in enumerate(orders(4)):
        labels = np.empty(4)
        labels[order] = [3, 2, 1, 0]
        value, grad = loss.value_grad(g, Truth.from_labels(labels))
        assert phi.values(g)[at] == pytest.approx(value[0], abs=1e-12)
        np.testing.assert_allclose(phi.slopes(g)[at], grad, atol=1e-12)
    plain = OfFunction(lambda s, y: float(phi.values(s)[_row(y)]), 4)
    np.testing.assert_allclose(plain.slopes(g), phi.slopes(g), atol=1e-8)


def _row(order: tuple[int, ...]) -> int:
    return [tuple(y) for y in orders(4).tolist()].index(order)


@pytest.mark.slow
def test_k_factors_of_one_and_of_all_are_the_known_forms() -> None:
    g = np.random.default_rng(2).normal(size=4)
    for k, name in ((1, "ListNet"), (4, "PermutationCrossEntropy")):
        ours = surrogate(name, 4)
        np.testing.assert_allclose(KFactor(4, k).values(g), ours.values(g), atol=1e-12)
        np.testing.assert_allclose(KFactor(4, k).slopes(g), ours.slopes(g), atol=1e-12)
    assert fp.papers.order_sensitive(KFactor(4, 2), 4, 2).broken == ("subgroup",)
    assert fp.papers.order_sensitive(KFactor(4, 2), 4, 4)
    assert fp.papers.order_sensitive(KFactor(4, 2, level=2), 4, 2)


def test_places_and_orders_are_inverse() -> None:
    assert (np.take_along_axis(places(4), orders(4), 1) == np.arange(4)).all()


def test_names_and_forms() -> None:
    assert written(named("ListMLE(k=2)")) == "PlackettLuce(k=2)"
    assert written(focused_net(2, 0.5)) == "Focused(k=2, beta=0.5)"
    assert list(forms(named("ListMLE"), "ListMLE", 2)) == ["ListMLE, full order", "ListMLE, top 2"]
    assert list(forms(named("ListMLE(k=1)"), "x", 2)) == ["x"]
    assert set(fp.papers.order_sensitive("ListMLE", 3, 1, samples=1).to_dict()) == {
        "loss", "n", "k", "holds", "clauses",
    }  # fmt: skip
    assert len(CLAUSES) == 7


def test_wrong_losses_are_refused_in_one_line() -> None:
    with pytest.raises(DataError, match=r"<lambda>: phi\(scores, order\) must give a number"):
        fp.papers.order_sensitive(lambda g: 0.0)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="is not finite at scores"):
        fp.papers.order_sensitive(lambda g, y: float("nan"))
    with pytest.raises(
        DataError, match=r"a loss is a name, a Loss, or phi\(scores, order\); got 5"
    ):
        fp.papers.order_sensitive(5)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="k must be from 1 to the number of objects, 4; got 5"):
        fp.papers.order_sensitive("ListMLE", k=5)
