"""What section 3 of Zhou et al. (2013) says of DCG, as checks that run."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.measure_coherence import list_agreement, list_values
from firstpage.papers.theory.checks import Check, Result
from firstpage.types import Floats


def _rising(rng: np.random.Generator, grades: int) -> Floats:
    """Random gains that rise with the grade, from 0."""
    return np.concatenate([[0.0], np.cumsum(rng.random(grades - 1) + 0.01)])


def _falling(rng: np.random.Generator, places: int) -> Floats:
    """Random discounts that fall with the place."""
    return np.cumsum(rng.random(places) + 0.01)[::-1].copy()


def theorem_1(rng: np.random.Generator, samples: int) -> Result:
    """Two grades, the same discounts: all compatible gains order all rankings alike.

    `>=` is kept on both sides, so a tie of one is a tie of the other; the printed proof turns
    it into `>` on the way, which equal rankings refute.
    """
    rng = np.random.default_rng(int(rng.integers(2**31)))
    agree = ties = pairs = 0
    for _ in range(max(samples // 10, 10)):
        places = int(rng.integers(1, 11))
        fall = _falling(rng, places)
        one, two = (Utility.from_gains(_rising(rng, 2), fall) for _ in range(2))
        a, b = rng.integers(0, 2, (2, 100, places))
        found = list_agreement(a, b, one, two)
        agree, ties, pairs = agree + found.agree, ties + found.both_tie, pairs + found.pairs
    return Result(agree == pairs, {"pairs": pairs, "agree": agree, "ties": ties})


def strict(rng: np.random.Generator, samples: int) -> Result:
    """The proof turns >= into > on the way; equal rankings would refute that."""
    numbers = theorem_1(rng, samples).numbers
    example = "two rankings that show the same grades tie under both" if numbers["ties"] else ""
    shown = {name: numbers[name] for name in ("pairs", "ties")}
    return Result(not numbers["ties"], shown, example)


def example_1(rng: np.random.Generator, samples: int) -> Result:
    """Three grades: gains 1/2, 2, 3 to a power order two rankings one way, or the other.

    The first ranking shows the middle and the worst grade, the second the worst and the best;
    the discounts are 1.5 and 0.5.
    """
    fall, gains = np.array([1.5, 0.5]), np.array([0.5, 2.0, 3.0])
    numbers: dict[str, float] = {}
    flipped = {}
    for power in (1, 2, 3):
        first, second = (float(fall @ gains[shown] ** power) for shown in ([1, 0], [0, 2]))
        numbers |= {f"first, power {power:g}": first, f"second, power {power:g}": second}
        flipped[power] = first < second
    numbers["flips at power"] = min((p for p, f in flipped.items() if f), default=np.nan)
    return Result(len(set(flipped.values())) == 2, numbers)


def proposition_1(rng: np.random.Generator, samples: int) -> Result:
    """All orders of a list, under random compatible gains and discounts: sorted is never beaten."""
    rng, rounds = np.random.default_rng(int(rng.integers(2**31))), max(samples // 20, 10)
    beaten, margin = 0, np.inf
    for _ in range(rounds):
        utility = Utility.from_gains(_rising(rng, 4), _falling(rng, 5))
        best = np.sort(rng.integers(0, 4, 5))[::-1]
        every = np.array(sorted(set(permutations(best.tolist())), reverse=True))
        values = list_values(every, utility)
        beaten += int((values[1:] > values[0] + 1e-12).sum())
        if len(values) > 1:
            margin = min(margin, float(values[0] - values[1:].max()))
    numbers = {"rounds": rounds, "better orders found": beaten, "least lead of the sorted": margin}
    return Result(beaten == 0, numbers)


CHECKS = [
    Check("zhou2013/theorem-1", "with two grades, compatible gains order all rankings alike, ties "
          "too", theorem_1),
    Check("zhou2013/theorem-1-proof", "one of two rankings is always strictly better, as the "
          "proof's step from >= to > has it", strict, holds=False,
          note="keep >=: the theorem stands (theorem-1)"),
    Check("zhou2013/example-1", "with three grades, compatible gains may order two rankings "
          "differently", example_1),
    Check("zhou2013/proposition-1", "the order by grades is best under all compatible gains and "
          "discounts", proposition_1),
]  # fmt: skip
