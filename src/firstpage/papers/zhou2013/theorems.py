"""What section 3 of Zhou et al. (2013) says of DCG, as checks that run.

Each returns whether the claim holds and the numbers behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.coherence import list_agreement, list_values
from firstpage.papers.theory.checks import Check, Result
from firstpage.types import Floats


@dataclass(frozen=True)
class Claim:
    """A claim, whether it holds, and numbers."""

    name: str
    claim: str
    holds: bool
    numbers: Mapping[str, float] = field(default_factory=dict)


def _rising(rng: np.random.Generator, grades: int) -> Floats:
    """Random gains that rise with the grade, from 0."""
    return np.concatenate([[0.0], np.cumsum(rng.random(grades - 1) + 0.01)])


def _falling(rng: np.random.Generator, places: int) -> Floats:
    """Random discounts that fall with the place."""
    return np.cumsum(rng.random(places) + 0.01)[::-1].copy()


def theorem_1(rounds: int = 200, lists: int = 200, seed: int = 0) -> Claim:
    """Two grades, the same discounts: all compatible gains order all rankings alike.

    `>=` is kept on both sides, so a tie of one is a tie of the other; the printed proof turns
    it into `>` on the way, which equal rankings refute.
    """
    rng = np.random.default_rng(seed)
    agree = ties = pairs = 0
    for _ in range(rounds):
        places = int(rng.integers(1, 11))
        fall = _falling(rng, places)
        one, two = (Utility.of(_rising(rng, 2), fall) for _ in range(2))
        a, b = rng.integers(0, 2, (2, lists, places))
        found = list_agreement(a, b, one, two)
        agree, ties, pairs = agree + found.agree, ties + found.both_tie, pairs + found.pairs
    return Claim(
        "Theorem 1",
        "with two grades, compatible gains and the same discounts order rankings alike, ties too",
        agree == pairs,
        {"pairs": pairs, "agree": agree, "ties": ties},
    )


def example_1(epsilon: float = 0.5, exponents: Sequence[float] = (1, 2, 3)) -> Claim:
    """Three grades: gains 1/2, 2, 3 to a power order two rankings one way, or the other.

    The first ranking shows the middle and the worst grade, the second the worst and the best;
    the discounts are 1 + epsilon and 1 - epsilon.
    """
    fall = np.array([1 + epsilon, 1 - epsilon])
    gains = np.array([0.5, 2.0, 3.0])
    numbers: dict[str, float] = {}
    flipped = {}
    for power in exponents:
        first = float(fall @ gains[[1, 0]] ** power)
        second = float(fall @ gains[[0, 2]] ** power)
        numbers |= {f"first, power {power:g}": first, f"second, power {power:g}": second}
        flipped[power] = first < second
    return Claim(
        "Example 1",
        "with three grades, compatible gains may order two rankings differently",
        len(set(flipped.values())) == 2,
        {**numbers, "flips at power": min((p for p, f in flipped.items() if f), default=np.nan)},
    )


def proposition_1(rounds: int = 100, places: int = 5, grades: int = 4, seed: int = 0) -> Claim:
    """All orders of a list, under random compatible gains and discounts: sorted is never beaten."""
    rng = np.random.default_rng(seed)
    beaten, margin = 0, np.inf
    for _ in range(rounds):
        utility = Utility.of(_rising(rng, grades), _falling(rng, places))
        best = np.sort(rng.integers(0, grades, places))[::-1]
        every = np.array(sorted(set(permutations(best.tolist())), reverse=True))
        values = list_values(every, utility)
        beaten += int((values[1:] > values[0] + 1e-12).sum())
        if len(values) > 1:
            margin = min(margin, float(values[0] - values[1:].max()))
    return Claim(
        "Proposition 1",
        "the order by grades is best under all compatible gains and discounts",
        beaten == 0,
        {"rounds": rounds, "better orders found": beaten, "least lead of the sorted": margin},
    )


CLAIMS: Mapping[str, Callable[[], Claim]] = {
    "theorem 1": theorem_1,
    "example 1": example_1,
    "proposition 1": proposition_1,
}


def _result(found: Claim) -> Result:
    return Result(found.holds, dict(found.numbers))


def theorem(rng: np.random.Generator, samples: int) -> Result:
    rounds = max(samples // 10, 10)
    return _result(theorem_1(rounds, 100, int(rng.integers(2**31))))


def strict(rng: np.random.Generator, samples: int) -> Result:
    """The proof turns >= into > on the way; equal rankings would refute that."""
    found = theorem_1(max(samples // 10, 10), 100, int(rng.integers(2**31)))
    ties = found.numbers["ties"]
    example = "two rankings that show the same grades tie under both" if ties else ""
    return Result(ties == 0, {"pairs": found.numbers["pairs"], "ties": ties}, example)


def example(rng: np.random.Generator, samples: int) -> Result:
    return _result(example_1())


def proposition(rng: np.random.Generator, samples: int) -> Result:
    return _result(proposition_1(max(samples // 20, 10), seed=int(rng.integers(2**31))))


CHECKS = [
    Check("zhou2013/theorem-1", "with two grades, compatible gains order all rankings alike, ties "
          "too", theorem),
    Check("zhou2013/theorem-1-proof", "one of two rankings is always strictly better, as the "
          "proof's step from >= to > has it", strict, holds=False,
          note="keep >=: the theorem stands (theorem-1)"),
    Check("zhou2013/example-1", "with three grades, compatible gains may order two rankings "
          "differently", example),
    Check("zhou2013/proposition-1", "the order by grades is best under all compatible gains and "
          "discounts", proposition),
]  # fmt: skip
