"""Synthetic collections: recipes, their true utilities, and invalid recipes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from tests.narrow import dense


def test_data_do_not_depend_on_block_size() -> None:
    recipe = fp.Synthetic(queries=23, docs="lognormal(8, .7)", features=3, seed=4)
    data = recipe.dataset()
    blocks = list(recipe.blocks(5))
    assert len(blocks) == 5
    assert np.array_equal(np.concatenate([p.X for p in blocks]), dense(data.X))
    assert np.array_equal(np.concatenate([p.y for p in blocks]), data.y)
    assert fp.Synthetic(queries=23, seed=5).dataset().X[0, 0] != data.X[0, 0]


@pytest.mark.parametrize("utility", ["linear", "nonlinear"])
def test_labels_follow_the_known_utility(utility) -> None:
    recipe = fp.Synthetic(queries=200, docs=40, utility=utility, noise=0.3)
    data = recipe.dataset()
    best = fp.evaluate(recipe.true_utility(dense(data.X)), data, measures="NDCG@10")["NDCG@10"]
    linear = fp.evaluate(data.X @ recipe.weights, data, measures="NDCG@10")["NDCG@10"]
    tied = fp.evaluate(np.zeros(data.n_docs), data, measures="NDCG@10")["NDCG@10"]
    assert best > 0.85
    assert tied < 0.4
    if utility == "linear":
        assert linear == pytest.approx(best, abs=1e-6)
    else:
        assert linear < best - 0.1


def test_fractions_lengths_orders_and_tails() -> None:
    sparse = fp.Synthetic(queries=400, docs=50, relevant=0.02, grades=2).dataset()
    assert 0.015 < (sparse.y > 0).mean() < 0.025
    assert (
        np.add.reduceat(sparse.y, sparse.offsets[:-1]) == 0
    ).any()  # some have no relevant document
    lengths = fp.Synthetic(queries=300, docs="uniform(5, 7)").dataset().lengths
    assert set(lengths.tolist()) == {5, 6, 7}
    order = fp.Synthetic(queries=5, docs=9, labels="order").dataset()
    assert all(sorted(q.y.tolist()) == list(range(9)) for q in order)
    recipe = fp.Synthetic(queries=100, docs=40, labels="order", head_fraction=0.2, noise=0.0)
    data = recipe.dataset()
    u = recipe.true_utility(dense(data.X))
    top = fp.evaluate(u, data, measures=["kNDCG(k=8)@8", "Tau"])
    assert top["kNDCG(k=8)@8"] > 0.999
    assert top["Tau"] < 0.6


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"queries": 0}, "queries must be at least 1"),
        ({"docs": "normal(3)"}, "docs must be a number or one of uniform"),
        ({"docs": "uniform(a)"}, "needs 2 positive numbers"),
        ({"docs": 0}, "docs must be at least 1"),
        ({"relevant": 0}, r"relevant must lie in \(0, 1\]"),
        ({"utility": "cubic"}, "utility must be linear or nonlinear"),
        ({"noise": -1}, "noise must not be negative"),
        ({"head_fraction": 2}, "head_fraction must lie between"),
        ({"docs": 2.5}, "docs must be a number or one of uniform.*got 2.5"),
        ({"docs": "uniform(7, 5)"}, "needs 2 positive numbers"),
        ({"docs": "poisson(3, 4)"}, "needs 1 positive numbers"),
        ({"docs": "lognormal(nan, 1)"}, "needs 2 positive numbers"),
        ({"queries": 2.5}, "queries must be an integer; got 2.5"),
        ({"features": "3"}, "features must be an integer; got '3'"),
        ({"grades": 1}, "grades must be at least 2"),
        ({"noise": float("nan")}, "noise must not be negative"),
        ({"seed": -1}, "seed must not be negative"),
        ({"seed": 0.5}, "seed must be an integer; got 0.5"),
        ({"errors": "cauchy"}, "errors must be normal or gumbel"),
        ({"labels": "pairs"}, "labels must be grades or order"),
    ],
)
def test_invalid_recipes_are_refused(recipe, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.Synthetic(**recipe)


@pytest.mark.parametrize("errors", ["normal", "gumbel"])
@pytest.mark.parametrize("labels", ["grades", "order"])
def test_queries_match_a_plain_loop(errors: Any, labels: Any) -> None:
    """Generate each query separately, document by document."""
    recipe = fp.Synthetic(
        queries=7, docs=5, features=3, noise=0.4, errors=errors, labels=labels, grades=4, seed=2
    )
    data = recipe.dataset()
    for number, query in enumerate(data):
        rng = np.random.default_rng([2, number + 10])
        X = rng.normal(size=(5, 3)).astype(np.float32)
        noise = (rng.normal if errors == "normal" else rng.gumbel)(size=5)
        observed = [
            sum(float(x) * w for x, w in zip(row, recipe.weights, strict=True)) + 0.4 * e
            for row, e in zip(X, noise, strict=True)
        ]
        if labels == "grades":
            expected = [
                sum(value >= threshold for threshold in recipe.thresholds) for value in observed
            ]
        else:
            expected = [sum(other < value for other in observed) for value in observed]
        assert np.array_equal(dense(query.X), X)
        assert query.y.tolist() == expected
        assert list(query.docids or ()) == [f"q{number + 1}d{i + 1}" for i in range(5)]


def test_each_grade_has_half_the_documents_of_the_one_below() -> None:
    recipe = fp.Synthetic(queries=400, docs=50, relevant=0.4, grades=4)
    y = recipe.dataset().y
    for grade, fraction in ((1, 0.4), (2, 0.2), (3, 0.1)):
        assert (y >= grade).mean() == pytest.approx(fraction, abs=0.015)


@pytest.mark.parametrize("size", [0, -3])
def test_block_size_must_be_positive(size: int) -> None:
    with pytest.raises(DataError, match="size must be at least 1; got"):
        next(fp.Synthetic().blocks(size))
