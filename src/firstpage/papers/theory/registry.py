"""All checks in one list, and the running of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from zlib import crc32

import numpy as np

from firstpage.errors import DataError
from firstpage.papers.cheng2014.theorems import CHECKS as CHENG2014
from firstpage.papers.lan2013.theorems import CHECKS as LAN2013
from firstpage.papers.theory.checks import Check, Outcome
from firstpage.papers.xia2009.theorems import CHECKS as XIA2009
from firstpage.papers.zhou2013.theorems import CHECKS as ZHOU2013
from firstpage.types import Progress

CHECKS: tuple[Check, ...] = (*XIA2009, *LAN2013, *CHENG2014, *ZHOU2013)
SAMPLES = 2000


def chosen(names: Sequence[str]) -> list[Check]:
    """Checks of these names, or whose names begin so; all if none is given."""
    if not names:
        return list(CHECKS)
    for name in names:
        if not any(check.name.startswith(name) for check in CHECKS):
            raise DataError(f"no check begins with {name!r}; --list shows all.")
    # One that is named in full is meant alone, though longer names begin so too.
    exact = {check.name for check in CHECKS} & set(names)
    begins = tuple(name for name in names if name not in exact)
    return [c for c in CHECKS if c.name in exact or (begins and c.name.startswith(begins))]


def run(
    checks: Iterable[Check] = CHECKS, samples: int = SAMPLES, seed: int = 0,
    progress: Progress | None = None,
) -> list[Outcome]:  # fmt: skip
    """Each check with random numbers of its own: which others run changes nothing."""
    every = list(checks)
    found = []
    for done, check in enumerate(every):
        if progress is not None:
            progress(done, len(every))
        begun = perf_counter()
        rng = np.random.default_rng([seed, crc32(check.name.encode())])
        result = check.run(rng, samples)
        found.append(Outcome(check, result, perf_counter() - begun))
    return found
