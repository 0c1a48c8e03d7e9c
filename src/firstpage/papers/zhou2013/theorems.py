"""Section 3 of Zhou et al. (2013), on the coherence of DCG, as checks."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from firstpage.core import Floats
from firstpage.data.preferences import Utility
from firstpage.evaluation.dcglearn import list_agreement, list_values
from firstpage.papers.theory.checks import Evidence, described_checks


def _increasing_gains(rng: np.random.Generator, grades: int) -> Floats:
    """Return random gains that increase with the grade, from 0."""
    return np.concatenate([[0.0], np.cumsum(rng.random(grades - 1) + 0.01)])


def _decreasing_discounts(rng: np.random.Generator, n_ranks: int) -> Floats:
    """Return random discounts that decrease with the rank."""
    return np.cumsum(rng.random(n_ranks) + 0.01)[::-1].copy()


def theorem_1(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that with two grades, compatible gains order all rankings in the same way.

    Both sides have `>=`, so that a tie of one is a tie of the other; the printed proof replaces
    it by `>`, which equal rankings refute.
    """
    rng = np.random.default_rng(int(rng.integers(2**31)))
    agree = ties = pairs = 0
    for _ in range(max(samples // 10, 10)):
        n_ranks = int(rng.integers(1, 11))
        discounts = _decreasing_discounts(rng, n_ranks)
        first, second = (Utility.from_gains(_increasing_gains(rng, 2), discounts) for _ in range(2))
        a, b = rng.integers(0, 2, (2, 100, n_ranks))
        result = list_agreement(a, b, first, second)
        agree, ties, pairs = agree + result.agree, ties + result.both_tie, pairs + result.pairs
    return Evidence(agree == pairs, {"pairs": pairs, "agree": agree, "ties": ties})


def strict(rng: np.random.Generator, samples: int) -> Evidence:
    """Test the proof's step from >= to >, which equal rankings refute."""
    numbers = theorem_1(rng, samples).numbers
    example = "two rankings that show the same grades tie under both" if numbers["ties"] else ""
    counts = {name: numbers[name] for name in ("pairs", "ties")}
    return Evidence(not numbers["ties"], counts, example)


def example_1(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that gains 1/2, 2, 3 to different powers order two rankings differently.

    The first ranking shows the middle and the worst grade, the second the worst and the best;
    the discounts are 1.5 and 0.5.
    """
    discounts, gains = np.array([1.5, 0.5]), np.array([0.5, 2.0, 3.0])
    numbers: dict[str, float] = {}
    flipped = {}
    for power in (1, 2, 3):
        first, second = (float(discounts @ gains[ranking] ** power) for ranking in ([1, 0], [0, 2]))
        numbers |= {f"first, power {power:g}": first, f"second, power {power:g}": second}
        flipped[power] = first < second
    numbers["flips at power"] = min((p for p, f in flipped.items() if f), default=np.nan)
    return Evidence(len(set(flipped.values())) == 2, numbers)


def proposition_1(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that no order beats the sorted one under random compatible gains and discounts."""
    rng, rounds = np.random.default_rng(int(rng.integers(2**31))), max(samples // 20, 10)
    beaten, margin = 0, np.inf
    for _ in range(rounds):
        utility = Utility.from_gains(_increasing_gains(rng, 4), _decreasing_discounts(rng, 5))
        best = np.sort(rng.integers(0, 4, 5))[::-1]
        rankings = np.array(sorted(set(permutations(best.tolist())), reverse=True))
        values = list_values(rankings, utility)
        beaten += int((values[1:] > values[0] + 1e-12).sum())
        if len(values) > 1:
            margin = min(margin, float(values[0] - values[1:].max()))
    numbers = {
        "rounds": rounds,
        "better orders found": beaten,
        "smallest margin of the sorted order": margin,
    }
    return Evidence(beaten == 0, numbers)


CHECKS = described_checks(
    __file__,
    {
        "theorem-1": theorem_1,
        "theorem-1-proof": strict,
        "example-1": example_1,
        "proposition-1": proposition_1,
    },
)
