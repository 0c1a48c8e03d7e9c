"""Values that SPEC states, and errors."""

from __future__ import annotations

from math import exp, factorial, log

import numpy as np
import pytest

from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.focused import Focused, TopList, focused_net
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy, SquaredError
from firstpage.losses.pairwise import PairwiseLogistic
from firstpage.losses.permutation import PermutationCrossEntropy, reach_table


def one(labels: list[float]) -> Truth:
    return Truth.from_labels(labels, [1] * len(labels))


def value(loss, scores: list[float], labels: list[float]) -> float:
    return float(loss.value_grad(np.array(scores), one(labels))[0][0])


def test_the_first_two_places() -> None:
    want = -log(exp(2) / (exp(2) + exp(3) + exp(1))) - log(exp(3) / (exp(3) + exp(1)))
    assert value(PlackettLuce(2), [2, 1, 3], [3, 1, 2]) == pytest.approx(want)
    assert value(PlackettLuce(), [2, 1, 3], [3, 1, 2]) == pytest.approx(want)  # the last is sure


def test_equals_compete_together() -> None:
    rest = log(exp(2) + exp(3) + exp(1))
    assert value(PlackettLuce(), [2, 1, 3], [1, 0, 1]) == pytest.approx(2 * rest - 2 - 3)
    assert value(PlackettLuce(1), [2, 1, 3], [1, 0, 1]) == pytest.approx(rest - 2.5)


def test_listnet_at_zero_is_log_n_and_its_least_is_the_entropy() -> None:
    kappa = list(range(10, 0, -1))
    assert value(SoftmaxCrossEntropy(), [0.0] * 10, kappa) == pytest.approx(log(10))
    assert value(SoftmaxCrossEntropy(), kappa, kappa) == pytest.approx(1.0402, abs=5e-5)
    p = np.exp(kappa) / np.exp(kappa).sum()
    assert p[0] == pytest.approx(0.632, abs=5e-4)


def test_permutations_of_ten() -> None:
    kappa = list(range(10, 0, -1))
    assert value(PermutationCrossEntropy(), [0.0] * 10, kappa) == pytest.approx(log(factorial(10)))
    assert value(PermutationCrossEntropy(), kappa, kappa) == pytest.approx(7.489, abs=5e-4)
    assert reach_table(tuple(float(k) for k in kappa))[1] == pytest.approx(7.489, abs=5e-4)


def test_focused_parts_run_from_one_to_zero() -> None:
    kappa = [3, 2, 1, 0, 0, 0]
    assert value(TopList(3), [0.0] * 6, kappa) == pytest.approx(1)
    assert value(TopList(3), [3, 2, 1, 0, 0, 0], kappa) == pytest.approx(0, abs=1e-12)
    for beta in (0.0, 0.4, 1.0):
        assert value(focused_net(3, beta), [0.0] * 6, kappa) == pytest.approx(1)
    far = [102.0, 101.0, 100.0, 0, 0, 0]
    assert value(focused_net(3, 0.5), far, kappa) == pytest.approx(0, abs=1e-12)


def test_a_list_no_longer_than_k_has_no_pairs() -> None:
    truth = one([2, 1]).top_k(10)
    scores = np.array([0.0, 1.0])
    assert focused_net(10, 0.0).value_grad(scores, truth)[0].tolist() == [0]
    assert focused_net(10, 1.0).value_grad(scores, truth)[0][0] > 1


def test_pair_sets_have_the_sizes_of_the_papers() -> None:
    n, k = 7, 3
    truth = one(list(range(n, 0, -1)))
    at_zero = {
        "full": (PairwiseLogistic(), n * (n - 1) / 2),
        "top": (PairwiseLogistic(k), k * (n - k) + k * (k - 1) / 2),
        "cross": (PairwiseLogistic(k, pairs="cross"), k * (n - k)),
    }
    for loss, count in at_zero.values():
        assert loss.value_grad(np.zeros(n), truth)[0][0] == pytest.approx(count * log(2))


def test_cosine_ends() -> None:
    assert value(Cosine(), [2, 4], [1, 2]) == pytest.approx(0)
    assert value(Cosine(), [-2, -4], [1, 2]) == pytest.approx(1)
    assert value(Cosine(), [1e200, 2e200], [1, 2]) == pytest.approx(0)


def test_squared_error() -> None:
    assert value(SquaredError(), [1, 2], [0, 4]) == pytest.approx((1 + 4) / 4)


def test_losses_by_name() -> None:
    import firstpage as fp

    assert fp.loss("plackett-luce", k=3) == PlackettLuce(3)
    assert fp.loss("PairwiseLogistic(k=2, pairs=cross)") == PairwiseLogistic(2, "cross")
    assert fp.loss("focused", k=4, beta=0.2) == focused_net(4, 0.2)
    mixed = fp.loss("Focused", listwise=PlackettLuce(5), pairwise=PairwiseLogistic())
    assert mixed == Focused(PlackettLuce(5), PairwiseLogistic(), 0.5)
    for text, words in [
        ("plackett", "no loss 'plackett'"),
        ("Cosine(x=1)", "no parameter 'x'"),
        ("Focused(x=1)", r"Focused has no parameter 'x' \(it has: k, beta, listwise, pairwise\)"),
    ]:
        with pytest.raises(fp.FirstpageError, match=words):
            fp.loss(text)


def test_real_labels_and_long_lists() -> None:
    rng = np.random.default_rng(0)
    truth = Truth.from_labels(rng.random(30_000), np.zeros(30_000))
    for loss in (PlackettLuce(10), PlackettLuce(), SoftmaxCrossEntropy(10), focused_net(10, 0.5)):
        values, grad = loss.value_grad(rng.normal(size=30_000), truth)
        assert np.isfinite(values).all()
        assert grad.sum() == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PairwiseLogistic(pairs="some"), "'all' or 'cross'"),
        (lambda: SoftmaxCrossEntropy(temperature=0), "temperature must be above 0"),
        (lambda: PermutationCrossEntropy(temperature=-1), "temperature must be above 0"),
        (lambda: Focused(PlackettLuce(), PlackettLuce(), 1.5), "beta must be from 0 to 1"),
        (lambda: value(PermutationCrossEntropy(), [0.0] * 13, [1.0] * 13), "13 documents"),
    ],
)
def test_errors_say_what_is_wrong(make, words: str) -> None:
    with pytest.raises(DataError, match=words):
        make()
