"""What a check is: a sentence of a paper, whether we hold it for true, and a run that tries it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Kind = Literal["printed", "mended", "ours"]
PAPERS = {
    "xia2009": "Xia, Liu and Li (2009): top-k ranking, statistical consistency",
    "lan2013": "Lan et al. (2013): is top-k sufficient for ranking? Bounds of 1 - NDCG@k",
    "cheng2014": "Cheng et al. (2014): TopRank, cutting planes",
    "zhou2013": "Zhou et al. (2013): coherence of DCG",
}


@dataclass(frozen=True)
class Result:
    """Whether a claim stood every trial, the numbers behind that, and where it fell."""

    holds: bool
    numbers: Mapping[str, float] = field(default_factory=dict)
    example: str = ""


Run = Callable[[np.random.Generator, int], Result]


@dataclass(frozen=True)
class Check:
    """A claim that can be run.

    kind   as the paper prints it, a mended form of `mends`, or one that the paper has not
    holds  what is recorded: a printed theorem may be recorded as false
    note   what is left of a claim that does not hold and has no mended form
    """

    name: str
    claim: str
    run: Run
    kind: Kind = "printed"
    holds: bool = True
    mends: str = ""
    note: str = ""

    @property
    def paper(self) -> str:
        return self.name.partition("/")[0]


@dataclass(frozen=True)
class Outcome:
    """A check and what came of it."""

    check: Check
    result: Result
    seconds: float = 0.0

    @property
    def as_recorded(self) -> bool:
        return self.result.holds == self.check.holds

    @property
    def verdict(self) -> str:
        return "holds" if self.result.holds else "does not hold"

    def to_dict(self) -> dict[str, Any]:
        check, result = self.check, self.result
        return {
            "name": check.name, "paper": PAPERS[check.paper], "claim": check.claim,
            "kind": check.kind, "mends": check.mends or None, "note": check.note or None,
            "holds": result.holds,
            "recorded": check.holds, "as_recorded": self.as_recorded,
            "numbers": {k: _plain(v) for k, v in result.numbers.items()},
            "example": result.example or None, "seconds": round(self.seconds, 3),
        }  # fmt: skip


def _plain(value: float) -> float | None:
    """JSON knows no infinity."""
    return float(value) if np.isfinite(value) else None
