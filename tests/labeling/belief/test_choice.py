"""Which question next: against plain loops, against the entropy it should lower, and at the edges."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from firstpage.labeling.belief import choice
from firstpage.labeling.belief.choice import cut_points, next_pair, pair_gains
from firstpage.labeling.belief.utilities import Utilities, moments, prior


def random_belief(n: int, seed: int, scale: float = 1.0) -> Utilities:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n)) / n**0.5
    return Utilities(scale * rng.standard_normal(n), scale**2 * (root @ root.T + 0.3 * np.eye(n)))


def slow_gain(belief: Utilities, k: int, a: int, b: int) -> float:
    """The gain of one question, in plain loops over cuts and documents."""
    m, v, n = belief.mean, belief.covariance, len(belief.mean)
    sd = [v[i, i] ** 0.5 for i in range(n)]
    about = np.zeros(n)
    about[a], about[b] = 1.0, -1.0
    answer = 0.0
    for outcome in (1, 0, -1):
        log_chance, slope, _ = moments(m[a] - m[b], about @ v @ about, outcome, belief.margin)
        answer += np.exp(log_chance) * slope**2
    total, known, member = 0.0, 0.0, np.zeros(n)
    for c in range(k, 0, -1):
        expected = lambda t, c=c: sum(norm.sf((t - m[i]) / sd[i]) for i in range(n)) - c  # noqa: E731
        point = brentq(expected, -60, 60, xtol=1e-12)
        edge = np.array([norm.pdf(point, m[i], sd[i]) for i in range(n)])
        edge /= edge.sum()
        for i in range(n):
            from_edge = -edge
            from_edge[i] += 1.0
            variance = from_edge @ v @ from_edge
            z = (m[i] - point) / variance**0.5
            p = norm.cdf(z)
            if c == k:
                member[i] = p
            weight = 0.5 / (p * (1 - p)) if c == k else member[i] * known**2 / c
            share = (from_edge @ v @ about) ** 2 / variance
            total += weight * 2 * np.pi * norm.pdf(z) ** 2 * share
        known = known_share(member)
    return total * answer


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 2), (7, 6)])
def test_gains_are_those_of_plain_loops(n: int, k: int) -> None:
    belief = random_belief(n, seed=n)
    chosen, gain = pair_gains(belief, k)
    slow = [[slow_gain(belief, k, a, b) if a < b else 0.0 for b in range(n)] for a in range(n)]
    assert chosen.tolist() == list(range(n))
    np.testing.assert_allclose(gain, slow, rtol=1e-4, atol=1e-9)
    best = next_pair(belief, k, np.arange(n), np.arange(n))
    assert best == np.unravel_index(np.argmax(slow), (n, n))


def known_share(member: np.ndarray) -> float:
    """How far the set is known, of chances to be in it."""
    share = sum(member) / len(member)
    unknown = sum(p * (1 - p) for p in member) / (len(member) * share * (1 - share))
    return max(1 - unknown, 0.0)


def cost(belief: Utilities, k: int, member: np.ndarray) -> float:
    """What the gain should lower, by its definition; `member` weighs the order."""
    deviation = np.sqrt(belief.variance)
    total = 0.0
    for c, point in enumerate(cut_points(belief, k), 1):
        p = chances(belief, point, deviation)
        if c == k:
            total -= float((p * np.log(p) + (1 - p) * np.log(1 - p)).sum())
        else:
            total += known_share(member) ** 2 / c * float((member * p * (1 - p)).sum())
    return total


def chances(belief: Utilities, point: float, deviation: np.ndarray) -> np.ndarray:
    edge = norm.pdf(point, belief.mean, deviation)
    from_edge = np.eye(len(edge)) - edge / edge.sum()
    variance = np.einsum("ij,jk,ik->i", from_edge, belief.covariance, from_edge)
    return norm.cdf((belief.mean - point) / np.sqrt(variance))


def test_the_gain_is_the_cost_that_an_answer_takes_away() -> None:
    """To second order, for beliefs that one answer changes little; edges are taken as fixed mixes."""
    belief, k = random_belief(8, seed=3, scale=0.1), 3
    _, gain = pair_gains(belief, k)
    member = chances(belief, cut_points(belief, k)[-1], np.sqrt(belief.variance))
    foreseen, found = [], []
    for a, b in combinations(range(8), 2):
        after = 0.0
        for outcome in (1, 0, -1):
            then = belief.updated(a, b, outcome)
            after += np.exp(then.evidence) * cost(then, k, member)
        foreseen.append(gain[a, b] / (2 * np.pi))
        found.append(cost(belief, k, member) - after)
    assert np.corrcoef(foreseen, found)[0, 1] > 0.98
    np.testing.assert_allclose(foreseen, found, rtol=0.4, atol=0.05 * max(found))


@given(st.integers(0, 99), st.permutations(range(6)), st.floats(-5, 5))
def test_names_and_a_common_shift_do_not_matter(seed: int, names: list[int], shift: float) -> None:
    belief = random_belief(6, seed)
    everyone, turn = np.arange(6), np.arange(6)
    found = next_pair(belief, 2, everyone, turn)
    renamed = Utilities(belief.mean[names] + shift, belief.covariance[np.ix_(names, names)])
    again = next_pair(renamed, 2, everyone, turn[names])
    assert found is not None
    assert again is not None
    assert {names[d] for d in again} == set(found)


def test_a_question_is_not_asked_again_at_once_and_old_ones_are_worth_less() -> None:
    belief = random_belief(6, seed=0)
    everyone = np.arange(6)
    best = next_pair(belief, 2, everyone, everyone)
    assert best is not None
    pair = (min(best), max(best))
    other = next_pair(belief, 2, everyone, everyone, last=pair)
    assert other is not None
    assert set(other) != set(pair)
    stale = next_pair(belief, 2, everyone, everyone, counts={pair: 30})
    assert stale == other
    assert next_pair(belief, 2, everyone, everyone, counts={pair: 0}) == best


def test_every_document_is_soon_seen() -> None:
    belief, seen = prior(30), set()
    rng = np.random.default_rng(0)
    turn = rng.permutation(30)
    for _ in range(30):
        pair = next_pair(belief, 8, np.arange(30), turn)
        assert pair is not None
        seen |= set(pair)
        belief = belief.updated(*pair, int(rng.integers(-1, 2)))
    assert len(seen) == 30


def test_documents_left_out_are_not_asked_about() -> None:
    belief = random_belief(6, seed=0)
    among = np.array([1, 2, 4])
    asked = [next_pair(belief, k, among, np.arange(6)) for k in (1, 2, 3, 10)]
    assert all(pair is not None and set(pair) <= {1, 2, 4} for pair in asked)


def test_nothing_is_asked_where_nothing_can_be() -> None:
    belief, turn = random_belief(3, seed=0), np.arange(3)
    assert next_pair(belief, 2, np.array([], np.int64), turn) is None
    assert next_pair(belief, 2, np.array([1]), turn) is None
    assert next_pair(belief, 1, np.array([1, 2]), turn) is not None
    assert next_pair(belief, 1, np.array([1, 2]), turn, last=(1, 2)) is None


def test_a_belief_that_is_certain_still_gives_a_question() -> None:
    sure = Utilities(np.arange(4) * 1e6, 1e-12 * np.eye(4))
    found = next_pair(sure, 2, np.arange(4), np.arange(4), last=(0, 1))
    assert found is not None
    assert set(found) != {0, 1}


def test_few_candidates_are_as_good_as_all(monkeypatch: pytest.MonkeyPatch) -> None:
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
