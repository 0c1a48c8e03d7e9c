"""Section 3 of Zhou et al. (2013), whose checks are in `dcglearn.claims`."""

from __future__ import annotations

import numpy as np

from firstpage.dcglearn.claims import Check as Claimed
from firstpage.dcglearn.claims import example_1, proposition_1, theorem_1
from firstpage.theory.checks import Check, Result


def _result(found: Claimed) -> Result:
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
