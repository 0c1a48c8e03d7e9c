"""Boosted trees."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.learning.rankers.sharded.data import check_trees
from firstpage.learning.rankers.trees.growth import Gradients, Randomness
from firstpage.learning.scorers.registry import scorer
from firstpage.learning.scorers.tree_scoring import TreesScoring
from firstpage.learning.scorers.trees import Trees
from tests.narrow import instance, present

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_errors_of_the_libraries_are_one_line() -> None:
    for unfitted in (
        fp.LambdaMART(scorer="trees(count=3, options={'num_leaves': -3})"),
        fp.ListNet(scorer="trees(count=3, library=xgboost, options={'tree_method': 'oak'})"),
    ):
        with pytest.raises(DataError, match="refuses") as caught:
            unfitted.fit(X, Y, qid=QID)
        assert "\n" not in str(caught.value)


def test_cost_of_long_lists_depends_on_k() -> None:
    loss = fp.RankNet(k=10).compose().loss
    truth = fp.Truth.from_labels(RNG.random(100_000), np.zeros(100_000))
    assert np.isfinite(loss.curvature(np.zeros(100_000), truth)).all()  # O(n^2) would take minutes


def test_noise_is_normal_and_seeded() -> None:
    noise = np.asarray(Randomness(noise=1.0, seed=3).score_noise(20_000, 5))
    for other in (
        Randomness(1.0, seed=3).score_noise(20_000, 6),
        Randomness(1.0, seed=4).score_noise(20_000, 5),
    ):
        assert abs(np.corrcoef(noise, other)[0, 1]) < 0.03
    assert noise.mean() == pytest.approx(0, abs=0.03)
    assert noise.std() == pytest.approx(1, abs=0.03)
    assert (noise > 1.96).mean() == pytest.approx(0.025, abs=0.005)
    again = np.asarray(Randomness(noise=2.0, seed=3).score_noise(20_000, 5))
    assert again.tolist() == (2 * noise).tolist()


def test_queries_are_drawn_anew_for_every_tree() -> None:
    randomness, scores = Randomness(query_fraction=0.5, seed=2), np.zeros(300)
    truth = fp.Truth.from_labels(Y, QID)
    full = Gradients(fp.ListNet().compose().loss, truth)(scores)
    gradients = Gradients(fp.ListNet().compose().loss, truth, randomness=randomness)
    calls = [gradients(scores) for _ in range(400)]
    counted = np.array([np.abs(first).reshape(30, 10).any(axis=1) for first, _ in calls])
    informative = np.abs(full[0]).reshape(30, 10).any(axis=1)
    assert counted[:, informative].mean() == pytest.approx(0.5, abs=0.02)
    assert len({tuple(row) for row in counted.tolist()}) > 390
    for (first, second), row in zip(calls, np.repeat(counted, 10, axis=1), strict=True):
        assert first.tolist() == (full[0] * row).tolist()
        assert second[row].tolist() == full[1][row].tolist()
    assert Randomness(query_fraction=1e-9).queries(5, 0).sum() == 1  # never none


@pytest.mark.parametrize("unfitted", [fp.ListNet(), fp.ListMLE(2), fp.LambdaRank(), fp.RankNet()])
def test_mean_gradient_is_that_of_the_expected_loss(unfitted: Any) -> None:
    """The gradient with noise has the mean that Gauss-Hermite quadrature finds."""
    loss, labels, scores = (
        unfitted.compose("trees").loss,
        np.array([1.0, 0, 2]),
        np.array([-0.5, 0.4, 0.0]),
    )
    sigma, draws = 0.7, 4000

    def copies(count: int) -> fp.Truth:
        return fp.Truth.from_labels(np.tile(labels, count), np.repeat(np.arange(count), 3))

    noisy = Gradients(loss, copies(draws), randomness=Randomness(noise=sigma, seed=1))
    samples = noisy(np.tile(scores, draws))[0].reshape(draws, 3)
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    if unfitted.__class__ is fp.LambdaRank:  # its gradient jumps, so nodes must be dense
        nodes, weights = np.linspace(-4, 4, 33), np.exp(-(np.linspace(-4, 4, 33) ** 2) / 2)
    grid = np.array(np.meshgrid(nodes, nodes, nodes)).reshape(3, -1).T  # 7^3 or 33^3 nodes
    weight = np.prod(np.meshgrid(weights, weights, weights), axis=0).ravel()
    exact = loss.value_grad((scores + sigma * grid).ravel(), copies(len(grid)))[1]
    expected = np.average(exact.reshape(-1, 3), axis=0, weights=weight)
    error = samples.std(axis=0) / np.sqrt(draws)
    assert (np.abs(samples.mean(axis=0) - expected) < 4 * error + 1e-3).all()
    assert np.abs(expected - loss.value_grad(scores, copies(1))[1]).max() > 0.01  # it smooths


def test_noise_is_the_same_for_any_number_of_threads() -> None:
    text = "trees(count=8, leaves=5, min_docs=5, noise=0.5, forests=3, query_fraction=0.7)"
    fits = [fp.ListNet(scorer=text, threads=n).fit(X, Y, qid=QID) for n in (1, 2)]
    texts = [
        instance(TreesScoring, fitted.model_).text.partition("\nparameters:")[0] for fitted in fits
    ]
    assert texts[0] == texts[1]
    reseeded = fp.ListNet(scorer=text, seed=1).fit(X, Y, qid=QID)
    assert reseeded.predict(X).tolist() != fits[0].predict(X).tolist()
    exact = fp.ListNet(scorer=text.replace("noise=0.5", "noise=0")).fit(X, Y, qid=QID)
    assert exact.predict(X).tolist() != fits[0].predict(X).tolist()
    assert fits[0].score(X, Y, qid=QID) > 0.9


def test_each_forest_has_its_own_best_number_of_trees(tmp_path) -> None:
    data = fp.Dataset.from_arrays(X, Y, QID)
    train, valid = data[:20], data[20:]
    options = "options={'feature_fraction': 0.5, 'max_bin': 63}"
    text = f"trees(count=40, leaves=4, min_docs=5, forests=3, {options})"
    fitted = fp.ListNet(scorer=text, patience=6).fit(train, valid=valid)
    measured: list[list[float]] = []  # by forest: the measure on validation data of 1, 2, .. trees

    def watch(tree: int, booster: Any, scores: np.ndarray | None) -> bool:
        measured.append(
            [
                fp.metric("NDCG@10")(valid.y, column, None, valid.lengths)[1]
                for column in present(scores).T
            ]
        )
        return False

    gradients = Gradients(fp.extend.loss("SoftmaxCrossEntropy"), train.truth)
    instance(Trees, scorer(text)).grow(train.X, gradients, valid.X, watch, 0, 1)
    best = []
    for values in np.array(measured).T:
        top = 0
        for number, value in enumerate(values):
            top = number if value > values[top] else top
            if number - top == 6:
                break
        best.append(1 + top)
    assert len(set(best)) > 1
    assert fitted.best_iteration_ == max(best)
    # Scores are averaged up to the last tree, which is at most 6 beyond the best.
    trees = instance(TreesScoring, fitted.model_).forest("model").trees
    assert len(trees) == sum(min(40, each + 6) for each in best)
    assert fitted.score(valid) == pytest.approx(fitted.best_score_)
    fitted.save(tmp_path / "model.json")
    assert (
        fp.load(tmp_path / "model.json").predict(valid).tolist() == fitted.predict(valid).tolist()
    )


@pytest.mark.parametrize("forests", [1, 4])
def test_forests_have_the_patience_of_one(forests: int) -> None:
    equal = fp.Dataset.from_arrays(-X, np.zeros(len(X)), QID)  # no ranking of it is better
    text = f"trees(count=100, leaves=4, min_docs=5, forests={forests})"
    with pytest.warns(FirstpageWarning, match="they choose no number of iterations"):
        fitted = fp.ListNet(scorer=text).fit(X, Y, qid=QID, valid=equal)
    assert fitted.n_iter_ == 36
    assert fitted.best_iteration_ == 1


@pytest.mark.parametrize("option", ["forests=2", "noise=0.1", "query_fraction=0.5"])
def test_lambdarank_of_lightgbm_refuses_noise_and_forests(option: str) -> None:
    with pytest.raises(DataError, match=r"one forest, no noise and all queries; .*LambdaRank"):
        fp.LambdaMART(scorer=f"trees({option})").fit(X, Y, qid=QID)


@pytest.mark.parametrize("option", ["forests=2", "noise=0.1", "query_fraction=0.5"])
def test_trees_over_shards_refuse_noise_and_forests(option: str) -> None:
    cluster = SimpleNamespace(client=object())
    check_trees(cluster, Trees())
    with pytest.raises(DataError, match="over shards, trees have one forest, no noise"):
        check_trees(cluster, instance(Trees, scorer(f"trees({option})")))
