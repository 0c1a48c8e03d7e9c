"""Beliefs about more documents than have a joint distribution, against beliefs about all of them."""

from __future__ import annotations

import numpy as np
import pytest

from firstpage.labeling.belief import choice, factorized, utilities
from firstpage.labeling.belief.choice import cut_points, next_pair
from firstpage.labeling.belief.factorized import fit_many
from firstpage.labeling.belief.posterior_ranks import consensus, is_confident, rank_posterior
from firstpage.labeling.belief.utilities import Answers, Utilities, fit, prior
from firstpage.labeling.strategies.adaptive import Adaptive
from firstpage.labeling.strategies.strategy import Answer, Compare, TopKTask
from tests.narrow import present

N = 40


@pytest.fixture
def few_joint(monkeypatch: pytest.MonkeyPatch) -> int:
    """Allow fewer joint documents than there are; return how many."""
    for module in (utilities, factorized):
        monkeypatch.setattr(module, "MAX_JOINT", 24)
    monkeypatch.setattr(choice, "MAX_CANDIDATES", 20)
    return 24


def some_answers(documents: int, count: int, seed: int = 0) -> Answers:
    rng = np.random.default_rng(seed)
    merit = rng.normal(size=documents)
    pairs = [rng.choice(documents, 2, replace=False) for _ in range(count)]
    outcomes = [int(np.sign(merit[a] - merit[b])) for a, b in pairs]
    return [int(a) for a, _ in pairs], [int(b) for _, b in pairs], outcomes


def dense_prior(scores: list[float] | None = None) -> Utilities:
    """Return the prior of N documents that are all joint."""
    limit, utilities.MAX_JOINT = utilities.MAX_JOINT, N
    try:
        return prior(N, 1.2, scores)
    finally:
        utilities.MAX_JOINT = limit


def updated(belief: Utilities, answers: Answers) -> Utilities:
    for row in zip(*answers, strict=True):
        belief = belief.updated(*row)
    return belief


@pytest.mark.parametrize("scores", [None, list(np.random.default_rng(1).normal(size=N))])
def test_nothing_is_lost_while_few_documents_are_compared(
    few_joint: int, scores: list[float] | None
) -> None:
    answers = some_answers(few_joint, 60)  # about the first documents only
    sparse, dense = updated(prior(N, 1.2, scores), answers), updated(dense_prior(scores), answers)
    assert sparse.joint is not None
    assert dense.joint is None
    everything = np.arange(N)
    np.testing.assert_allclose(sparse.mean, dense.mean, atol=1e-12)
    np.testing.assert_allclose(sparse.variance, dense.variance, atol=1e-12)
    np.testing.assert_allclose(
        sparse.covariance_of(everything, everything), dense.covariance, atol=1e-12
    )
    columns = np.random.default_rng(2).normal(size=(N, 3))
    for power in (1, 2):
        np.testing.assert_allclose(
            sparse.covariance_times(columns, power), dense.covariance_times(columns, power)
        )
    some = np.array([30, 2, 7, 39, 0])
    np.testing.assert_allclose(
        sparse.marginal(some).covariance_of(np.arange(5), np.arange(5)),
        dense.covariance[np.ix_(some, some)],
        atol=1e-12,
    )
    good = np.setdiff1d(everything, [3, 35])
    assert next_pair(sparse, 5, good, everything) == next_pair(dense, 5, good, everything)
    for confidence in (0.01, 0.5, 0.99):
        assert is_confident(confidence, sparse, 5, good) == is_confident(confidence, dense, 5, good)
    np.testing.assert_allclose(
        rank_posterior(sparse, 5, good).membership,
        rank_posterior(dense, 5, good).membership,
        atol=0.05,
    )
    np.testing.assert_allclose(
        fit_many(prior(N, 1.2, scores), answers).mean,
        fit(dense_prior(scores), answers).mean,
        atol=1e-9,
    )


def test_documents_that_leave_keep_their_moments(few_joint: int) -> None:
    belief = updated(prior(N, 1.2), some_answers(N, 50))
    for first, second in ((0, 39), (17, 38), (20, 5)):
        assert belief.joint is not None
        joined = belief.with_joint(first, second)
        assert joined.joint is not None
        assert len(joined.joint) == len(set(joined.joint)) <= few_joint
        assert {first, second} <= set(joined.joint)
        np.testing.assert_allclose(joined.mean, belief.mean)
        np.testing.assert_allclose(joined.variance, belief.variance)
        left = np.setdiff1d(belief.joint, joined.joint)
        promise = belief.mean + 2 * np.sqrt(belief.variance)
        stayed = np.setdiff1d(joined.joint, [first, second])
        assert promise[left].max(initial=-np.inf) <= promise[stayed].min()
        belief = joined.updated(first, second, 1)
        assert (np.linalg.eigvalsh(belief.covariance) > -1e-9).all()


def test_features_correlate_the_first_documents_by_score(few_joint: int) -> None:
    scores = list(range(N))
    features = np.repeat(np.arange(N / 2), 2)[:, None]
    belief = prior(N, 1.2, scores, features)
    assert belief.joint is not None
    assert sorted(belief.joint) == list(range(N - few_joint, N))
    after = belief.updated(N - 1, N - 20, -1)
    assert after.mean[N - 2] < belief.mean[N - 2]  # the same features as the loser
    assert after.mean[0] == belief.mean[0]


@pytest.mark.parametrize("k", [1, 10])
@pytest.mark.parametrize("scored", [False, True])
def test_cut_points_of_many_documents_are_those_without_groups(
    k: int, scored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = list(np.random.default_rng(0).normal(size=2000)) if scored else None
    belief = updated(prior(2000, 1.2, scores), some_answers(2000, 30))
    points = cut_points(belief, k)
    monkeypatch.setattr(choice, "MAX_UNGROUPED", 2000)
    np.testing.assert_allclose(points, cut_points(belief, k), atol=5e-4)


def test_a_consensus_beyond_the_joint_documents_finds_the_same_top(few_joint: int) -> None:
    opinions = [
        [(Compare(a, b), Answer(o)) for a, b, o in zip(*some_answers(N, 400), strict=True)]
    ] * 2  # the same merits, twice the answers
    many = consensus(N, 5, opinions)
    utilities.MAX_JOINT = factorized.MAX_JOINT = N  # type: ignore[attr-defined]
    dense = consensus(N, 5, opinions)
    assert many.order == dense.order
    np.testing.assert_allclose(present(many.membership), present(dense.membership), atol=0.15)


def test_messages_do_not_depend_on_the_order_of_answers(few_joint: int) -> None:
    answers = some_answers(N, 200)
    backward = (answers[0][::-1], answers[1][::-1], answers[2][::-1])
    first, second = fit_many(prior(N), answers), fit_many(prior(N), backward)
    np.testing.assert_allclose(first.mean, second.mean, atol=0.05)


def test_adaptive_finds_the_top_of_many_documents(few_joint: int) -> None:
    merit = np.random.default_rng(5).permutation(N)
    run = Adaptive(confidence=0.9).start(TopKTask(N, 3))
    while (question := run.question) is not None:
        run.answer(Answer(1 if merit[question.first] > merit[question.second] else -1))
    assert {merit[d] for d in run.result.order} == {N - 1, N - 2, N - 3}


def test_an_answer_about_ten_thousand_documents_is_small() -> None:
    """Count bytes, not time: the belief keeps no matrix of all documents."""
    run = Adaptive().start(TopKTask(10_000, 10))
    for _ in range(3):
        run.answer(Answer(1))
    for belief in run._state.ensemble.beliefs:
        assert belief.covariance.shape[0] <= 6
    assert len(run.result.order) == 10
