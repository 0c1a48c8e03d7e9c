"""Probability spaces over orders, against the definitions."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.papers.theory.spaces import (
    ProbabilitySpace,
    changes_top,
    orders,
    precedes,
    random_space,
    swapped,
    theorem_6_pairs,
)


def swap(order: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    return tuple(j if o == i else i if o == j else o for o in order)


def preserves(space: ProbabilitySpace, k: int, i: int, j: int) -> bool:
    """Return whether Definition 2 holds, by its formula."""
    probability = dict(zip(permutations(range(space.n)), space.probabilities, strict=True))

    def top_probability(top: tuple[int, ...]) -> float:
        return sum(p for order, p in probability.items() if order[:k] == top)

    return all(
        top_probability(y[:k]) > top_probability(swap(y, i, j)[:k])
        for y in probability
        if y.index(i) < y.index(j) and y[:k] != swap(y, i, j)[:k]
    )


@pytest.mark.parametrize("n", [2, 3, 4])
def test_swapped_orders_match_explicit_swaps(n: int) -> None:
    all_orders = [tuple(order) for order in orders(n).tolist()]
    for i, j in permutations(range(n), 2):
        assert [all_orders[row] for row in swapped(n, i, j)] == [swap(y, i, j) for y in all_orders]
        assert precedes(n, i, j).tolist() == [y.index(i) < y.index(j) for y in all_orders]
        for k in range(1, n + 1):
            expected = [y[:k] != swap(y, i, j)[:k] for y in all_orders]
            assert changes_top(n, k, i, j).tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_preserves_matches_definition_2(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = ProbabilitySpace(4, rng.dirichlet(np.full(24, 3.0)))
    if seed % 2:
        space = random_space(rng, 4, 2, theorem_6_pairs([2, 0, 3, 1], 2, rng))
    seen = set()
    for k in (1, 2, 3):
        for i, j in permutations(range(4), 2):
            assert space.preserves(k, i, j) == preserves(space, k, i, j)
            seen.add(space.preserves(k, i, j))
    assert False in seen


@pytest.mark.parametrize(("n", "k"), [(3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3), (5, 2)])
@pytest.mark.parametrize("adversarial", [False, True])
def test_random_spaces_preserve_the_pairs(n: int, k: int, adversarial: bool) -> None:
    rng = np.random.default_rng(n * 10 + k)
    for _ in range(5):
        order = rng.permutation(n).tolist()
        pairs = theorem_6_pairs(order, k, rng)
        assert len(set(pairs)) == n - 1
        space = random_space(rng, n, k, pairs, adversarial)
        assert all(space.preserves(k, i, j) for i, j in pairs)
        assert space.bayes(k)[0] == tuple(order[:k])  # an assumption of Theorem 6


def test_adversarial_spaces_mislead_below_the_top() -> None:
    rng = np.random.default_rng(0)
    pairs = [(0, 1), (1, 2), (2, 3)]
    space = random_space(rng, 4, 1, pairs, adversarial=True)
    most_probable = orders(4)[np.argsort(-space.probabilities)[:4]].tolist()
    assert sorted(y[0] for y in most_probable) == [0, 1, 2, 3]
    for y in most_probable:
        assert all(y.index(i) > y.index(j) for i, j in pairs if y[0] not in (i, j))


def test_subgroup_probabilities() -> None:
    space = ProbabilitySpace.from_orders({(0, 1, 2): 0.5, (0, 2, 1): 0.2, (2, 1, 0): 0.3})
    assert space.subgroups(1) == pytest.approx({(0,): 0.7, (1,): 0.0, (2,): 0.3})
    order, risk = space.bayes(2)
    assert order == (0, 1)
    assert risk == pytest.approx(0.2)


def test_invalid_spaces_raise_data_errors() -> None:
    with pytest.raises(DataError, match=r"add up to 1; they add up to 0\.5"):
        ProbabilitySpace.from_orders({(0, 1): 0.5})
    with pytest.raises(DataError, match="2 objects need 2 probabilities"):
        ProbabilitySpace(2, np.array([1.0]))
    with pytest.raises(DataError, match=r"n must be an integer from 2 to 6, .* got 9"):
        orders(9)
    with pytest.raises(DataError, match="cycle"):
        random_space(np.random.default_rng(0), 3, 1, [(0, 1), (1, 0)])
