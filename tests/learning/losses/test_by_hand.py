"""Values of the losses computed by hand, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, factorial, log

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.data.truth import Truth
from firstpage.learning.losses.focused import Focused, TopList, focused_net
from firstpage.learning.losses.listwise import (
    Cosine,
    PlackettLuce,
    SoftmaxCrossEntropy,
    SquaredError,
)
from firstpage.learning.losses.pairwise import PairwiseLogistic
from firstpage.learning.losses.permutation import PermutationCrossEntropy, reach_table


def one_query(labels: Sequence[float]) -> Truth:
    return Truth.from_labels(labels, [1] * len(labels))


def value(loss, scores: Sequence[float], labels: Sequence[float]) -> float:
    return float(loss.value_grad(np.array(scores), one_query(labels))[0][0])


def test_plackett_luce_of_the_first_two_ranks() -> None:
    expected = -log(exp(2) / (exp(2) + exp(3) + exp(1))) - log(exp(3) / (exp(3) + exp(1)))
    assert value(PlackettLuce(2), [2, 1, 3], [3, 1, 2]) == pytest.approx(expected)
    # The last rank is certain.
    assert value(PlackettLuce(), [2, 1, 3], [3, 1, 2]) == pytest.approx(expected)


def test_equal_labels_compete_for_their_ranks() -> None:
    rest = log(exp(2) + exp(3) + exp(1))
    assert value(PlackettLuce(), [2, 1, 3], [1, 0, 1]) == pytest.approx(2 * rest - 2 - 3)
    assert value(PlackettLuce(1), [2, 1, 3], [1, 0, 1]) == pytest.approx(rest - 2.5)


def test_listnet_is_log_n_at_zero_and_the_entropy_at_its_minimum() -> None:
    kappa = list(range(10, 0, -1))
    assert value(SoftmaxCrossEntropy(), [0.0] * 10, kappa) == pytest.approx(log(10))
    assert value(SoftmaxCrossEntropy(), kappa, kappa) == pytest.approx(1.0402, abs=5e-5)
    p = np.exp(kappa) / np.exp(kappa).sum()
    assert p[0] == pytest.approx(0.632, abs=5e-4)


def test_permutations_of_ten_documents() -> None:
    kappa = list(range(10, 0, -1))
    assert value(PermutationCrossEntropy(), [0.0] * 10, kappa) == pytest.approx(log(factorial(10)))
    assert value(PermutationCrossEntropy(), kappa, kappa) == pytest.approx(7.489, abs=5e-4)
    assert reach_table(tuple(float(k) for k in kappa))[1] == pytest.approx(7.489, abs=5e-4)


def test_focused_terms_are_one_at_equal_scores_and_zero_at_their_infimum() -> None:
    kappa = [3, 2, 1, 0, 0, 0]
    assert value(TopList(3), [0.0] * 6, kappa) == pytest.approx(1)
    assert value(TopList(3), [3, 2, 1, 0, 0, 0], kappa) == pytest.approx(0, abs=1e-12)
    for beta in (0.0, 0.4, 1.0):
        assert value(focused_net(3, beta), [0.0] * 6, kappa) == pytest.approx(1)
    separated = [102.0, 101.0, 100.0, 0, 0, 0]
    assert value(focused_net(3, 0.5), separated, kappa) == pytest.approx(0, abs=1e-12)


def test_a_list_of_at_most_k_documents_has_no_cross_pairs() -> None:
    truth = one_query([2, 1]).top_k(10)
    scores = np.array([0.0, 1.0])
    assert focused_net(10, 0.0).value_grad(scores, truth)[0].tolist() == [0]
    assert focused_net(10, 1.0).value_grad(scores, truth)[0][0] > 1


def test_the_number_of_pairs_is_that_of_the_papers() -> None:
    n, k = 7, 3
    truth = one_query(list(range(n, 0, -1)))
    cases = {
        "full": (PairwiseLogistic(), n * (n - 1) / 2),
        "top": (PairwiseLogistic(k), k * (n - k) + k * (k - 1) / 2),
        "cross": (PairwiseLogistic(k, pairs="cross"), k * (n - k)),
    }
    for loss, count in cases.values():
        assert loss.value_grad(np.zeros(n), truth)[0][0] == pytest.approx(count * log(2))


def test_cosine_of_parallel_and_opposite_vectors() -> None:
    assert value(Cosine(), [2, 4], [1, 2]) == pytest.approx(0)
    assert value(Cosine(), [-2, -4], [1, 2]) == pytest.approx(1)
    assert value(Cosine(), [1e200, 2e200], [1, 2]) == pytest.approx(0)


def test_squared_error_is_half_the_mean_square() -> None:
    assert value(SquaredError(), [1, 2], [0, 4]) == pytest.approx((1 + 4) / 4)


def test_losses_are_created_by_name() -> None:
    import firstpage as fp

    assert fp.extend.loss("plackett-luce", k=3) == PlackettLuce(3)
    assert fp.extend.loss("PairwiseLogistic(k=2, pairs=cross)") == PairwiseLogistic(2, "cross")
    assert fp.extend.loss("focused", k=4, beta=0.2) == focused_net(4, 0.2)
    mixed = fp.extend.loss("Focused", listwise=PlackettLuce(5), pairwise=PairwiseLogistic())
    assert mixed == Focused(PlackettLuce(5), PairwiseLogistic(), 0.5)
    for text, message in [
        ("plackett", "no loss 'plackett'"),
        ("Cosine(x=1)", "no parameter 'x'"),
        ("Focused(x=1)", r"Focused has no parameter 'x' \(it has: k, beta, listwise, pairwise\)"),
    ]:
        with pytest.raises(fp.FirstpageError, match=message):
            fp.extend.loss(text)


def test_real_valued_labels_and_long_lists() -> None:
    rng = np.random.default_rng(0)
    truth = Truth.from_labels(rng.random(30_000), np.zeros(30_000))
    for loss in (PlackettLuce(10), PlackettLuce(), SoftmaxCrossEntropy(10), focused_net(10, 0.5)):
        values, grad = loss.value_grad(rng.normal(size=30_000), truth)
        assert np.isfinite(values).all()
        assert grad.sum() == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: PairwiseLogistic(pairs="some"), "'all' or 'cross'"),  # type: ignore[arg-type]
        (lambda: SoftmaxCrossEntropy(temperature=0), "temperature must be above 0"),
        (lambda: PermutationCrossEntropy(temperature=-1), "temperature must be above 0"),
        (lambda: Focused(PlackettLuce(), PlackettLuce(), 1.5), "beta must be from 0 to 1"),
        (lambda: value(PermutationCrossEntropy(), [0.0] * 13, [1.0] * 13), "13 documents"),
    ],
)
def test_errors_name_the_wrong_parameter(create, message: str) -> None:
    with pytest.raises(DataError, match=message):
        create()
