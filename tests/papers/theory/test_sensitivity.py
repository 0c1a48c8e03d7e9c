"""Every clause of Definition 3 can fail, and the losses of the package have known results."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.truth import Truth
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.focused import focused_net
from firstpage.papers.theory.sensitivity import CLAUSES, find_kink
from firstpage.papers.theory.spaces import (
    FunctionSurrogate,
    loss_forms,
    loss_name,
    make_surrogate,
    orders,
    parse_loss,
    positions,
)
from firstpage.papers.xia2009.theorems import KFactorListNet

LISTS = ["ListMLE", "RankCosine", "ListNet", "PermutationCrossEntropy"]
PAIRS = ["RankNet", "RankBoost", "Regression"]
HINGES = ["RankSVM", "AveragePrecisionHinge", "StructuralHinge"]


def top_one(g, y) -> float:
    """Return top-1 ListMLE by its formula."""
    z = g[list(y)]
    return float(np.logaddexp.reduce(z) - z[0])


def full(g, y) -> float:
    z = g[list(y)]
    return float(sum(np.logaddexp.reduce(z[i:]) - z[i] for i in range(len(z))))


def squared(g, y) -> float:
    """Return a squared hinge without margin, whose gradient is 0 at equal scores."""
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
    "gradient": squared,
}


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", [*LISTS, *PAIRS])
def test_full_forms_fail_by_the_subgroup_clause_alone(name: str, k: int) -> None:
    assert fp.papers.order_sensitive(name, n=4, k=k).broken == ("subgroup",)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", [*LISTS, *PAIRS])
def test_top_k_forms_are_sensitive(name: str, k: int) -> None:
    result = fp.papers.order_sensitive(f"{name}(k={k})", n=4, k=k)
    assert result
    assert result.broken == ()


@pytest.mark.parametrize("name", [*LISTS, *PAIRS])
def test_full_forms_are_sensitive_at_k_n_minus_1(name: str) -> None:
    assert fp.papers.order_sensitive(name, n=4, k=3)
    assert fp.papers.order_sensitive(name, n=4, k=4)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", HINGES)
def test_top_k_hinges_fail_by_their_kinks_alone(name: str, k: int) -> None:
    assert fp.papers.order_sensitive(f"{name}(k={k})", n=4, k=k).broken == ("differentiable",)


@pytest.mark.parametrize(
    ("k", "beta", "broken"),
    [
        (1, 0.0, ()), (1, 0.7, ()), (1, 1.0, ("strict", "gradient")),
        (2, 0.0, ()), (2, 0.3, ("ordered",)), (2, 1.0, ("ordered",)),
        (3, 0.0, ()), (3, 0.7, ("ordered",)),
    ],
)  # fmt: skip
def test_focused_net(k: int, beta: float, broken: tuple[str, ...]) -> None:
    assert fp.papers.order_sensitive(focused_net(k, beta), n=4, k=k).broken == broken


@pytest.mark.parametrize("clause", MUTANTS)
def test_each_clause_detects_its_mutant(clause: str) -> None:
    result = fp.papers.order_sensitive(MUTANTS[clause], n=3, k=1, samples=15)
    assert clause in result.broken
    if clause != "symmetric":  # which breaks the order clauses, too
        assert result.broken == (clause,)
    by_name = {c.name: c for c in result.clauses}
    assert "order" in by_name[clause].example
    assert by_name[clause].failed > 0


def test_reversed_loss_is_detected() -> None:
    result = fp.papers.order_sensitive(lambda g, y: top_one(-g, y), n=3, k=1, samples=15)
    assert {"ordered", "strict", "gradient"} <= set(result.broken)
    assert not result
    nothing = fp.papers.order_sensitive(lambda g, y: 0.0, n=3, k=1, samples=5)
    assert nothing.broken == ("strict", "gradient")


def test_example_of_subgroup_clause_is_correct() -> None:
    """The difference in the example is that of the formula."""
    result = {c.name: c for c in fp.papers.order_sensitive(full, n=3, k=1, samples=3).clauses}
    text = result["subgroup"].example
    g = np.array([float(x) for x in text[text.index("(") + 1 : text.index(")")].split(", ")])
    y = tuple(int(x) - 1 for x in text[text.index("order ") + 6 :][:3])
    cost = float(text.rsplit(" ", 1)[1])
    assert full(g, y) - full(g, (y[0], y[2], y[1])) == pytest.approx(cost, rel=0.01)


@pytest.mark.parametrize("margin", [0.37, 1.0, 2.5])
def test_kinks_are_found(margin: float) -> None:
    result = find_kink(FunctionSurrogate(hinge(margin), 3), np.random.default_rng(0))
    assert result is not None
    gaps = np.abs(np.subtract.outer(result.scores, result.scores) - margin)
    assert gaps.min() < 1e-3


@pytest.mark.parametrize("name", ["ListMLE", "RankBoost", "RankCosine(k=1)", "Regression"])
@pytest.mark.parametrize("seed", range(3))
def test_smooth_losses_have_no_kinks(name: str, seed: int) -> None:
    assert find_kink(make_surrogate(name, 4), np.random.default_rng(seed)) is None


@pytest.mark.parametrize("name", ["ListMLE(k=2)", "RankNet", "RankCosine", "Regression(k=1)"])
def test_surrogates_match_the_losses(name: str) -> None:
    loss: Loss = parse_loss(name)
    phi, g = make_surrogate(loss, 4), np.random.default_rng(1).normal(size=4)
    for row, order in enumerate(orders(4)):
        labels = np.empty(4)
        labels[order] = [3, 2, 1, 0]
        value, grad = loss.value_grad(g, Truth.from_labels(labels))
        assert phi.values(g)[row] == pytest.approx(value[0], abs=1e-12)
        np.testing.assert_allclose(phi.gradients(g)[row], grad, atol=1e-12)
    plain = FunctionSurrogate(lambda s, y: float(phi.values(s)[_row(y)]), 4)
    np.testing.assert_allclose(plain.gradients(g), phi.gradients(g), atol=1e-8)


def _row(order: tuple[int, ...]) -> int:
    return [tuple(y) for y in orders(4).tolist()].index(order)


def test_k_factors_of_1_and_n_are_known_losses() -> None:
    g = np.random.default_rng(2).normal(size=4)
    for k, name in ((1, "ListNet"), (4, "PermutationCrossEntropy")):
        ours = make_surrogate(name, 4)
        np.testing.assert_allclose(KFactorListNet(4, k).values(g), ours.values(g), atol=1e-12)
        np.testing.assert_allclose(KFactorListNet(4, k).gradients(g), ours.gradients(g), atol=1e-12)
    assert fp.papers.order_sensitive(KFactorListNet(4, 2), 4, 2).broken == ("subgroup",)
    assert fp.papers.order_sensitive(KFactorListNet(4, 2), 4, 4)
    assert fp.papers.order_sensitive(KFactorListNet(4, 2, level=2), 4, 2)


def test_positions_and_orders_are_inverse() -> None:
    assert (np.take_along_axis(positions(4), orders(4), 1) == np.arange(4)).all()


def test_names_and_forms_of_losses() -> None:
    assert loss_name(parse_loss("ListMLE(k=2)")) == "PlackettLuce(k=2)"
    assert loss_name(focused_net(2, 0.5)) == "Focused(k=2, beta=0.5)"
    assert list(loss_forms(parse_loss("ListMLE"), "ListMLE", 2)) == [
        "ListMLE, full order",
        "ListMLE, top 2",
    ]
    assert list(loss_forms(parse_loss("ListMLE(k=1)"), "x", 2)) == ["x"]
    assert set(fp.papers.order_sensitive("ListMLE", 3, 1, samples=1).to_dict()) == {
        "loss",
        "n",
        "k",
        "holds",
        "clauses",
    }
    assert len(CLAUSES) == 7


def test_invalid_losses_raise_data_errors() -> None:
    with pytest.raises(
        DataError,
        match=r"<lambda>: phi\(scores, order\) must return a number .* it raised TypeError: ",
    ):
        fp.papers.order_sensitive(lambda g: 0.0)  # type: ignore[arg-type, misc]
    with pytest.raises(DataError, match="is not finite at scores"):
        fp.papers.order_sensitive(lambda g, y: float("nan"))
    with pytest.raises(
        DataError, match=r"loss must be a name, a Loss, or a function phi\(scores, order\); got 5"
    ):
        fp.papers.order_sensitive(5)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="k must be from 1 to the number of objects, 4; got 5"):
        fp.papers.order_sensitive("ListMLE", k=5)
