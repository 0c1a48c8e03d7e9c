"""Data structures of a check: a statement of a paper, the recorded result, and a test of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.papers.tables import tables_beside

Kind = Literal["printed", "corrected", "ours"]
PAPERS = {
    "xia2009": "Xia, Liu and Li (2009): top-k ranking, statistical consistency",
    "lan2013": "Lan et al. (2013): is top-k sufficient for ranking? Bounds of 1 - NDCG@k",
    "cheng2014": "Cheng et al. (2014): TopRank, cutting planes",
    "zhou2013": "Zhou et al. (2013): coherence of DCG",
}


@dataclass(frozen=True)
class Evidence:
    """Result of the trials of a statement.

    Attributes
    ----------
    holds : bool
        Whether no trial refuted the statement.
    numbers : mapping
        Counts and extreme values of the trials, by name.
    example : str
        A counterexample, where there is one.
    """

    holds: bool
    numbers: Mapping[str, float] = field(default_factory=dict)
    example: str = ""


CheckFunction = Callable[[np.random.Generator, int], Evidence]


@dataclass(frozen=True)
class TheoremCheck:
    """A statement that can be tested.

    Attributes
    ----------
    name : str
        Paper and statement, such as "xia2009/theorem-6".
    claim : str
        The statement in words.
    run : callable
        ``run(rng, samples)`` returns the evidence.
    kind : {"printed", "corrected", "ours"}
        As the paper prints it, a corrected form of `corrects`, or not in the paper.
    holds : bool
        The recorded result: a printed theorem may be recorded as false.
    corrects : str
        Name of the false statement that this one corrects.
    note : str
        What remains of a false statement that has no corrected form.
    """

    name: str
    claim: str
    run: CheckFunction
    kind: Kind = "printed"
    holds: bool = True
    corrects: str = ""
    note: str = ""

    @property
    def paper(self) -> str:
        """Name of the paper, such as "xia2009"."""
        return self.name.partition("/")[0]


@dataclass(frozen=True)
class CheckResult:
    """The result of a check, returned by `check_theorems`.

    Attributes
    ----------
    check : TheoremCheck
        The statement.
    evidence : Evidence
        Whether it held, with numbers and a counterexample.
    seconds : float
        Time that it took.
    """

    check: TheoremCheck
    evidence: Evidence
    seconds: float = 0.0

    @property
    def as_recorded(self) -> bool:
        """Whether the result is the recorded one."""
        return self.evidence.holds == self.check.holds

    @property
    def verdict(self) -> str:
        """The result in words: "holds" or "does not hold"."""
        return "holds" if self.evidence.holds else "does not hold"

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        check, evidence = self.check, self.evidence
        return {
            "name": check.name,
            "paper": PAPERS[check.paper],
            "claim": check.claim,
            "kind": check.kind,
            "corrects": check.corrects or None,
            "note": check.note or None,
            "holds": evidence.holds,
            "recorded": check.holds,
            "as_recorded": self.as_recorded,
            "numbers": {k: _finite_or_none(v) for k, v in evidence.numbers.items()},
            "example": evidence.example or None,
            "seconds": round(self.seconds, 3),
        }


def _finite_or_none(value: float) -> float | None:
    """Return None for infinities and NaN, which JSON does not have."""
    return float(value) if np.isfinite(value) else None


def described_checks(
    module_file: str, functions: Mapping[str, CheckFunction]
) -> list[TheoremCheck]:
    """Return the checks of a paper: functions by name, for the statements of a TOML file beside."""
    paper, tables = Path(module_file).parent.name, tables_beside(module_file)
    assert tables.keys() == functions.keys()
    return [
        TheoremCheck(f"{paper}/{name}", run=functions[name], **table)
        for name, table in tables.items()
    ]
