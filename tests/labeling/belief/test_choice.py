"""The choice of the next question: against plain loops, against the expected cost, and at the edges."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from firstpage.labeling.belief import choice
from firstpage.labeling.belief.choice import cut_points, next_pair, pair_gains
from firstpage.labeling.belief.utilities import Utilities, moments, prior


def random_belief(n: int, seed: int, scale: float = 1.0) -> Utilities:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n)) / n**0.5
    return Utilities(scale * rng.standard_normal(n), scale**2 * (root @ root.T + 0.3 * np.eye(n)))


def slow_gain(belief: Utilities, k: int, a: int, b: int) -> float:
    """Return the gain of a question by plain loops over cuts and documents."""
    m, v, n = belief.mean, belief.covariance, len(belief.mean)
    sd = [v[i, i] ** 0.5 for i in range(n)]
    difference = np.zeros(n)
    difference[a], difference[b] = 1.0, -1.0
    answer = 0.0
    for outcome in (1, 0, -1):
        log_probability, gradient, _ = moments(
            m[a] - m[b], float(difference @ v @ difference), outcome, belief.margin
        )
        answer += np.exp(log_probability) * gradient**2
    total, known, member = 0.0, 0.0, np.zeros(n)
    for c in range(k, 0, -1):
        expected = lambda t, c=c: sum(ndtr((m[i] - t) / sd[i]) for i in range(n)) - c  # noqa: E731
        point = brentq(expected, -60, 60, xtol=1e-12)
        boundary = np.array([norm.pdf(point, m[i], sd[i]) for i in range(n)])
        boundary /= boundary.sum()
        for i in range(n):
            from_boundary = -boundary
            from_boundary[i] += 1.0
            variance = from_boundary @ v @ from_boundary
            z = (m[i] - point) / variance**0.5
            p = norm.cdf(z)
            if c == k:
                member[i] = p
            weight = 0.5 / (p * (1 - p)) if c == k else member[i] * known**2 / c
            reduction = (from_boundary @ v @ difference) ** 2 / variance
            total += weight * 2 * np.pi * norm.pdf(z) ** 2 * reduction
        known = known_fraction(member)
    return total * answer


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 2), (7, 6)])
def test_gains_match_plain_loops(n: int, k: int) -> None:
    belief = random_belief(n, seed=n)
    chosen, gain = pair_gains(belief, k)
    slow = [[slow_gain(belief, k, a, b) if a < b else 0.0 for b in range(n)] for a in range(n)]
    assert chosen.tolist() == list(range(n))
    np.testing.assert_allclose(gain, slow, rtol=1e-4, atol=1e-9)
    best = next_pair(belief, k, np.arange(n), np.arange(n))
    first, second = np.unravel_index(np.argmax(slow), (n, n))
    assert best == (int(first), int(second))


def known_fraction(member: np.ndarray) -> float:
    """Return how far the set is known, from 0 to 1, given membership probabilities."""
    mean = sum(member) / len(member)
    unknown = sum(p * (1 - p) for p in member) / (len(member) * mean * (1 - mean))
    return max(1 - unknown, 0.0)


def cost(belief: Utilities, k: int, member: np.ndarray) -> float:
    """Return the cost that questions reduce, by its definition; `member` weights the order."""
    deviation = np.sqrt(belief.variance)
    total = 0.0
    for c, point in enumerate(cut_points(belief, k), 1):
        p = membership(belief, point, deviation)
        if c == k:
            total -= float((p * np.log(p) + (1 - p) * np.log(1 - p)).sum())
        else:
            total += known_fraction(member) ** 2 / c * float((member * p * (1 - p)).sum())
    return total


def membership(belief: Utilities, point: float, deviation: np.ndarray) -> np.ndarray:
    boundary = norm.pdf(point, belief.mean, deviation)
    from_boundary = np.eye(len(boundary)) - boundary / boundary.sum()
    variance = np.einsum("ij,jk,ik->i", from_boundary, belief.covariance, from_boundary)
    return norm.cdf((belief.mean - point) / np.sqrt(variance))


def test_the_gain_is_the_expected_reduction_of_the_cost() -> None:
    """To second order, for beliefs that one answer changes little, with fixed boundaries."""
    belief, k = random_belief(8, seed=3, scale=0.1), 3
    _, gain = pair_gains(belief, k)
    member = membership(belief, cut_points(belief, k)[-1], np.sqrt(belief.variance))
    predicted, observed = [], []
    for a, b in combinations(range(8), 2):
        after = 0.0
        for outcome in (1, 0, -1):
            then = belief.updated(a, b, outcome)
            after += np.exp(then.evidence) * cost(then, k, member)
        predicted.append(gain[a, b] / (2 * np.pi))
        observed.append(cost(belief, k, member) - after)
    assert np.corrcoef(predicted, observed)[0, 1] > 0.98
    np.testing.assert_allclose(predicted, observed, rtol=0.4, atol=0.05 * max(observed))


@given(st.integers(0, 99), st.permutations(range(6)), st.floats(-5, 5))
def test_the_choice_is_invariant_to_names_and_a_common_shift(
    seed: int, names: list[int], shift: float
) -> None:
    belief = random_belief(6, seed)
    documents, tie_break = np.arange(6), np.arange(6)
    pair = next_pair(belief, 2, documents, tie_break)
    renamed = Utilities(belief.mean[names] + shift, belief.covariance[np.ix_(names, names)])
    again = next_pair(renamed, 2, documents, tie_break[names])
    assert pair is not None
    assert again is not None
    assert {names[d] for d in again} == set(pair)


def test_the_last_pair_is_not_repeated_and_repeated_pairs_are_worth_less() -> None:
    belief = random_belief(6, seed=0)
    documents = np.arange(6)
    best = next_pair(belief, 2, documents, documents)
    assert best is not None
    pair = (min(best), max(best))
    other = next_pair(belief, 2, documents, documents, last=pair)
    assert other is not None
    assert set(other) != set(pair)
    repeated = next_pair(belief, 2, documents, documents, counts={pair: 30})
    assert repeated == other
    assert next_pair(belief, 2, documents, documents, counts={pair: 0}) == best


def test_every_document_is_shown_early() -> None:
    belief, shown = prior(30), set()
    rng = np.random.default_rng(0)
    tie_break = rng.permutation(30)
    for _ in range(30):
        pair = next_pair(belief, 8, np.arange(30), tie_break)
        assert pair is not None
        shown |= set(pair)
        belief = belief.updated(*pair, int(rng.integers(-1, 2)))
    assert len(shown) == 30


def test_only_the_given_documents_are_compared() -> None:
    belief = random_belief(6, seed=0)
    documents = np.array([1, 2, 4])
    pairs = [next_pair(belief, k, documents, np.arange(6)) for k in (1, 2, 3, 10)]
    assert all(pair is not None and set(pair) <= {1, 2, 4} for pair in pairs)


def test_no_question_without_two_documents() -> None:
    belief, tie_break = random_belief(3, seed=0), np.arange(3)
    assert next_pair(belief, 2, np.array([], np.int64), tie_break) is None
    assert next_pair(belief, 2, np.array([1]), tie_break) is None
    assert next_pair(belief, 1, np.array([1, 2]), tie_break) is not None
    assert next_pair(belief, 1, np.array([1, 2]), tie_break, last=(1, 2)) is None


def test_a_certain_belief_still_gives_a_question() -> None:
    certain = Utilities(1e6 * np.arange(4.0), 1e-12 * np.eye(4))
    pair = next_pair(certain, 2, np.arange(4), np.arange(4), last=(0, 1))
    assert pair is not None
    assert set(pair) != {0, 1}


def test_few_candidates_have_nearly_the_greatest_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = prior(90, 1.5)
    rng = np.random.default_rng(2)
    for _ in range(150):
        a, b = rng.choice(90, 2, replace=False)
        belief = belief.updated(a, b, 1 if a > b else -1)
    everything = pair_gains(belief, 10)[1].max()
    monkeypatch.setattr(choice, "MAX_CANDIDATES", 40)
    chosen, gain = pair_gains(belief, 10)
    assert len(chosen) == 40
    assert gain.max() >= 0.95 * everything
