"""Spaces over orders, against the definitions written out."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from firstpage.errors import DataError
from firstpage.papers.theory.spaces import (
    Space,
    before,
    changes_top,
    orders,
    random_space,
    swapped,
    theorem_6_pairs,
)


def swap(order: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    return tuple(j if o == i else i if o == j else o for o in order)


def preserves(space: Space, k: int, i: int, j: int) -> bool:
    """Definition 2, word by word."""
    chance = dict(zip(permutations(range(space.n)), space.chances, strict=True))

    def of(top: tuple[int, ...]) -> float:
        return sum(p for order, p in chance.items() if order[:k] == top)

    return all(
        of(y[:k]) > of(swap(y, i, j)[:k])
        for y in chance
        if y.index(i) < y.index(j) and y[:k] != swap(y, i, j)[:k]
    )


@pytest.mark.parametrize("n", [2, 3, 4])
def test_swaps_are_those_of_orders(n: int) -> None:
    every = [tuple(order) for order in orders(n).tolist()]
    for i, j in permutations(range(n), 2):
        assert [every[at] for at in swapped(n, i, j)] == [swap(y, i, j) for y in every]
        assert before(n, i, j).tolist() == [y.index(i) < y.index(j) for y in every]
        for k in range(1, n + 1):
            wanted = [y[:k] != swap(y, i, j)[:k] for y in every]
            assert changes_top(n, k, i, j).tolist() == wanted


@pytest.mark.parametrize("seed", range(6))
def test_preserving_is_definition_2(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = Space(4, rng.dirichlet(np.full(24, 3.0)))
    if seed % 2:
        space = random_space(rng, 4, 2, theorem_6_pairs([2, 0, 3, 1], 2, rng))
    seen = set()
    for k in (1, 2, 3):
        for i, j in permutations(range(4), 2):
            assert space.preserves(k, i, j) == preserves(space, k, i, j)
            seen.add(space.preserves(k, i, j))
    assert False in seen


@pytest.mark.parametrize(("n", "k"), [(3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3), (5, 2)])
@pytest.mark.parametrize("harsh", [False, True])
def test_random_spaces_preserve_what_is_asked(n: int, k: int, harsh: bool) -> None:
    rng = np.random.default_rng(n * 10 + k)
    for _ in range(5):
        order = rng.permutation(n).tolist()
        pairs = theorem_6_pairs(order, k, rng)
        assert len(set(pairs)) == n - 1
        space = random_space(rng, n, k, pairs, harsh)
        assert all(space.preserves(k, i, j) for i, j in pairs)
        assert space.bayes(k)[0] == tuple(order[:k])  # which Theorem 6 takes for granted


def test_harsh_spaces_mislead_below_the_top() -> None:
    rng = np.random.default_rng(0)
    pairs = [(0, 1), (1, 2), (2, 3)]
    space = random_space(rng, 4, 1, pairs, harsh=True)
    likeliest = orders(4)[np.argsort(-space.chances)[:4]].tolist()
    assert sorted(y[0] for y in likeliest) == [0, 1, 2, 3]
    for y in likeliest:
        assert all(y.index(i) > y.index(j) for i, j in pairs if y[0] not in (i, j))


def test_subgroups_by_hand() -> None:
    space = Space.of({(0, 1, 2): 0.5, (0, 2, 1): 0.2, (2, 1, 0): 0.3})
    assert space.subgroups(1) == pytest.approx({(0,): 0.7, (1,): 0.0, (2,): 0.3})
    assert space.bayes(2) == ((0, 1), pytest.approx(0.2))


def test_what_is_no_space_is_refused() -> None:
    with pytest.raises(DataError, match=r"add up to 1; they add up to 0\.5"):
        Space.of({(0, 1): 0.5})
    with pytest.raises(DataError, match="2 objects have 2 chances"):
        Space(2, np.array([1.0]))
    with pytest.raises(DataError, match="n must be from 2 to 6; got 9"):
        orders(9)
    with pytest.raises(DataError, match="circle"):
        random_space(np.random.default_rng(0), 3, 1, [(0, 1), (1, 0)])
