"""Interleaving: distributions against enumeration, fairness, credit."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.clicks.interleaving import INTERLEAVING, optimal_lists

TWO = ([1, 2, 3], [2, 3, 1])
THREE = ([1, 2, 3, 4], [2, 3, 1, 4], [4, 1, 5, 2])
DRAWS = 6000
Distribution = dict[tuple[Any, ...], float]


def team_draft(lists: Any, size: int) -> Distribution:
    """Enumerate the orders of the rankings in all rounds."""
    result: Distribution = defaultdict(float)

    def rounds(shown: tuple[Any, ...], p: float) -> None:
        if len(shown) == size:
            result[shown] += p
            return
        for order in itertools.permutations(range(len(lists))):
            now = shown
            for arm in order:
                rest = [d for d in lists[arm] if d not in now]
                now = (*now, rest[0]) if rest and len(now) < size else now
            rounds(now, p / math.factorial(len(lists)))

    rounds((), 1.0)
    return result


def balanced(lists: Any, size: int) -> Distribution:
    """Enumerate which ranking begins."""
    result: Distribution = defaultdict(float)
    for order in ((0, 1), (1, 0)):
        merged = [d for pair in zip(*(lists[arm] for arm in order), strict=True) for d in pair]
        result[tuple(dict.fromkeys(merged))[:size]] += 0.5
    return result


def probabilistic(lists: Any, size: int) -> Distribution:
    """Enumerate all rankings and documents at all ranks."""
    result: Distribution = defaultdict(float)

    def ranks(shown: tuple[Any, ...], p: float) -> None:
        if len(shown) == size:
            result[shown] += p
            return
        softmax = [{d: r**-3.0 for r, d in enumerate(row, 1) if d not in shown} for row in lists]
        able = [weights for weights in softmax if weights]
        for weights in able:
            for d, w in weights.items():
                ranks((*shown, d), p * w / sum(weights.values()) / len(able))

    ranks((), 1.0)
    return result


def pairwise(lists: Any, size: int) -> Distribution:
    """Enumerate the documents at all ranks."""
    result: Distribution = defaultdict(float)

    def ranks(shown: tuple[Any, ...], p: float) -> None:
        if len(shown) == size:
            result[shown] += p
            return
        there = {d for row in lists for d in row[: len(shown) + 1]} - set(shown)
        for d in there:
            ranks((*shown, d), p / len(there))

    ranks((), 1.0)
    return result


def optimized(lists: Any, size: int) -> Distribution:
    """Return the solution by hand of the conditions on (1, 2, 3) and (2, 3, 1).

    Credits of the documents are 1 - 1/3, 1/2 - 1 and 1/3 - 1/2.  At rank 1, 2/3 p(1, 2, 3) is 1/2
    of the rest; at rank 2, 1/6 of the two lists that begin with 1 and 2 is 2/3 p(2, 3, 1).
    """
    return {(1, 2, 3): 3 / 7, (2, 1, 3): 13 / 35, (2, 3, 1): 1 / 5}


ENUMERATION: dict[str, Callable[[Any, int], Distribution]] = {
    "team-draft": team_draft, "balanced": balanced, "probabilistic": probabilistic,
    "optimized": optimized, "pairwise": pairwise,
}  # fmt: skip


@pytest.mark.parametrize("method", INTERLEAVING)
def test_two_rankings_have_the_distribution_of_enumeration(method: Any) -> None:
    check_distribution(method, TWO, 3)


@pytest.mark.parametrize("method", ["team-draft", "probabilistic", "pairwise"])
def test_three_rankings_have_the_distribution_of_enumeration(method: Any) -> None:
    check_distribution(method, THREE, 4)


def check_distribution(method: Any, lists: Any, size: int) -> None:
    expected = ENUMERATION[method](lists, size)
    assert sum(expected.values()) == pytest.approx(1.0)
    drawn = Counter(
        fp.clicks.interleave(lists, method, size, seed=seed).documents for seed in range(DRAWS)
    )
    assert set(drawn) <= set(expected)
    for documents, p in expected.items():
        deviation = math.sqrt(p * (1 - p) / DRAWS)
        assert drawn[documents] / DRAWS == pytest.approx(p, abs=4.5 * deviation + 1e-12), documents


def clicks_of_a_random_user(size: int) -> Iterator[tuple[float, list[int]]]:
    """Yield all patterns of clicks, with probabilities that depend on the rank alone."""
    for bits in itertools.product([0, 1], repeat=size):
        p = [0.7 / (rank + 1) for rank in range(size)]
        yield math.prod(q if bit else 1 - q for q, bit in zip(p, bits, strict=True)), list(bits)


def credit_of_random_clicks(method: Any, lists: Any, size: int, draws: int) -> Any:
    """Return the mean credit of random clicks, and its standard error."""
    patterns = list(clicks_of_a_random_user(size))
    rows, known = [], {}
    for seed in range(draws):
        shown = fp.clicks.interleave(lists, method, size, seed=seed)
        lists_shown = repr((shown.documents, shown.to_dict()))  # credit depends on nothing else
        if lists_shown not in known:
            credit = sum(p * shown.credit(bits) for p, bits in patterns)
            known[lists_shown] = credit - np.mean(credit)
        rows.append(known[lists_shown])
    values = np.array(rows)
    return values.mean(axis=0), values.std(axis=0) / math.sqrt(draws)


@pytest.mark.parametrize(
    ("method", "lists", "size"),
    [
        *((method, TWO, 3) for method in ("team-draft", "probabilistic", "optimized", "pairwise")),
        *((method, THREE, 4) for method in ("team-draft", "probabilistic", "pairwise")),
        *((m, ([1, 2], [1]), 2) for m in ("team-draft", "probabilistic", "optimized")),
        *((m, ([1, 2, 3], [4, 1]), 4) for m in ("team-draft", "probabilistic", "optimized")),
    ],
)
def test_random_clicks_give_equal_credit(method: Any, lists: Any, size: int) -> None:
    mean, error = credit_of_random_clicks(method, lists, size, 1500)
    assert np.all(np.abs(mean) <= 4.5 * error + 1e-12)


def test_balanced_interleaving_prefers_a_ranking_although_clicks_are_random() -> None:
    """The known bias: a random click is nearer to the top of the ranking that moved one document."""
    mean, error = credit_of_random_clicks("balanced", TWO, 3, 1500)
    assert abs(mean[0]) > 10 * error[0]


def test_expected_credit_of_optimized_lists_is_equal_at_every_rank() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        lists = rng.permutation(9)[:7].tolist(), rng.permutation(9)[:7].tolist()
        inverse = tuple(
            tuple(1 / (row.index(d) + 1 if d in row else 8) for row in lists) for d in range(9)
        )
        allowed, p = optimal_lists(tuple(lists[0][:5]), tuple(lists[1][:5]), 5, inverse)
        gain = np.array(inverse)[np.array(allowed)]
        means = np.cumsum((gain[..., 0] - gain[..., 1]).T @ p)
        assert means == pytest.approx(np.zeros(5), abs=1e-9)
        for shown in allowed:  # each continues one of the rankings
            for k, d in enumerate(shown):
                ends = [next(x for x in row if x not in shown[:k]) for row in lists]
                assert d in ends


@pytest.mark.parametrize("method", INTERLEAVING)
def test_a_better_ranking_gets_more_credit(method: Any) -> None:
    better, worse = [*range(8)], [7, 6, 5, 4, 3, 2, 1, 0]
    difference = 0.0
    for seed in range(200):
        shown = fp.clicks.interleave([worse, better], method, 6, seed=seed)
        credit = shown.credit([float(d in (0, 1)) for d in shown.documents])
        difference += credit[1] - credit[0]
    assert difference > 0


@pytest.mark.parametrize("method", INTERLEAVING)
def test_pages_continue_each_other_and_a_key_repeats_its_list(method: Any) -> None:
    rng = np.random.default_rng(1)
    lists = [rng.permutation(25).tolist(), rng.permutation(25).tolist()]
    shown = fp.clicks.interleave(lists, method, key="session 1, fox")
    assert shown == fp.clicks.interleave(lists, method, key="session 1, fox")
    keys = {fp.clicks.interleave(lists, method, key=str(k)).documents for k in range(20)}
    assert len(keys) > 1
    pages = [shown.page(number, 10) for number in (1, 2, 3, 4)]
    assert [d for page in pages for d in page.documents] == list(shown.documents)
    assert sorted(shown.documents) == list(range(25))
    assert [len(page.documents) for page in pages] == [10, 10, 5, 0]
    assert pages[1].credit([1] + [0] * 9).shape == (2,)


def test_credit_of_a_log_is_that_of_the_list() -> None:
    from firstpage.clicks.interleaving import credit_of

    method: Any
    for method in INTERLEAVING:
        shown = fp.clicks.interleave(TWO, method, key="x")
        clicks = [0, 1, 2]
        logged = credit_of(shown.to_dict(), clicks, 2)
        assert logged.tolist() == shown.credit(clicks).tolist()


def test_values_by_hand() -> None:
    draft = fp.clicks.Interleaved(("a", "b", "c"), (1, 0, -1))
    assert draft.credit([1, 0, 5]).tolist() == [0, 1]
    ranks = {"ranks": [[1, 3], [2, 1], [3, 2]]}
    merged = fp.clicks.Interleaved((1, 2, 3), (-1,) * 3, "balanced", ranks)
    assert merged.credit([0, 1, 0]).tolist() == [0, 1]  # the lowest click is first of the second
    assert merged.credit([1, 0, 1]).tolist() == [1, 1]  # among the first two: 1 or 3
    weights = {"weights": [[0, 2, 1], [2, 0, 1], [1, 1, 0]]}
    preferred = fp.clicks.Interleaved((1, 2, 3), (-1,) * 3, "pairwise", ranks | weights)
    # document 2 is preferred to 1 (weight 2) and to 3: the first ranking errs once, the second never
    assert preferred.credit([0, 1, 0]).tolist() == [-2 + 1, 2 + 1]


@pytest.mark.parametrize(
    ("rankings", "method", "message"),
    [
        ([[1, 2]], "team-draft", "two or more rankings"),
        ([[1], [2], [3]], "balanced", "needs two rankings; got 3"),
        ([[1, 1], [2]], "team-draft", "ranking 1 contains a document twice"),
        ([[1], [2]], "zip", "unknown interleaving 'zip'"),
    ],
)
def test_impossible_requests_are_refused(rankings: Any, method: Any, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.clicks.interleave(rankings, method)


def test_a_log_without_what_credit_needs_is_refused() -> None:
    from firstpage.clicks.interleaving import credit_of

    with pytest.raises(fp.DataError, match="no credit can be computed"):
        credit_of({"method": "optimized", "teams": [0, 1]}, [1, 0], 2)
