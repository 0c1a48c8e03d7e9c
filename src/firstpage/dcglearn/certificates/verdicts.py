"""Certificates for verdicts: how far does "A beats B" depend on gains and discounts?

A verdict by DCG stands for all gains that rise with the grade and all discounts that fall with
the place exactly if A shows, on average, at least as many documents of at least every grade
among its first places as B, at every depth: first-order dominance at all thresholds and depths.
Where that fails, there is a radius: the factor by which every step of gains and discounts may
be changed before the verdict flips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.certificates import proofs
from firstpage.dcglearn.certificates.problem import Case, Vary, case_of
from firstpage.dcglearn.certificates.proofs import BOXES, Point, Radius, State
from firstpage.dcglearn.coherence import signs
from firstpage.dcglearn.ranked import Ranked, Scale, wanted
from firstpage.engine.threads import single_threaded_blas
from firstpage.errors import DataError, MeasureError
from firstpage.measures.measure import Convention
from firstpage.measures.measure import convention as named_convention
from firstpage.types import Floats, Progress

PLACES = 200  # of NDCG, for which bounds are still quick


@dataclass(frozen=True, eq=False)
class Witness:
    """Gains and discounts under which the other system is better, by `difference` below zero."""

    utility: Utility
    difference: float

    def to_dict(self) -> dict[str, Any]:
        found = {
            "difference": self.difference, "grades": list(self.utility.grades),
            "gains": self.utility.gains.tolist(), "discounts": self.utility.discounts.tolist(),
        }  # fmt: skip
        if self.utility.form == "weights":
            found["weights"] = self.utility.weights.tolist()
        return found


@dataclass(frozen=True, eq=False)
class Outcome:
    """`proven`: none turns the verdict; `flips`: the witness does; `undecided`: neither found."""

    state: State
    witness: Witness | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "state": self.state, "witness": None if self.witness is None else self.witness.to_dict()
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Verdict:
    """One system better than another under a measure, and how far that goes.

    better, worse   the systems; in the order given where they tie (difference 0)
    anyhow          under any compatible gains and discounts, or what of them may vary
    proven, flips   stands for all within the first factor, and is turned at the second
    nearest         the witness at `flips`
    within          the outcome at a factor asked for
    more            by place and step of the grades: how many more documents of at least this
                    grade `better` has in its first places (at the place, where discounts may be
                    any), on average
    """

    scale: Scale
    better: str
    worse: str
    difference: float
    queries: int
    vary: Vary
    falling: bool
    anyhow: Outcome
    proven: float
    flips: float
    nearest: Witness | None
    more: Floats
    factor: float | None = None
    within: Outcome | None = None

    def __repr__(self) -> str:
        sign = "ties with" if self.tie else "beats"
        return (
            f"Verdict({self.better} {sign} {self.worse} by {self.difference:+.4f} in "
            f"{self.measure}; {self.anyhow.state})"
        )

    @property
    def tie(self) -> bool:
        return self.difference == 0

    @property
    def measure(self) -> str:
        return self.scale.text

    @property
    def normalized(self) -> bool:
        return self.scale.normalized

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints; a factor without end is null."""
        return {
            "measure": self.measure, "better": self.better, "worse": self.worse,
            "difference": self.difference, "tie": self.tie, "queries": self.queries,
            "vary": self.vary, "falling_discounts": self.falling,
            "any": self.anyhow.to_dict(),
            "proven": _finite(self.proven), "flips": _finite(self.flips),
            "nearest": None if self.nearest is None else self.nearest.to_dict(),
            "factor": None if self.factor is None else _finite(self.factor),
            "within": None if self.within is None else self.within.to_dict(),
            "more": self.more.tolist(),
        }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def verdicts(
    systems: Mapping[str, Any], truth: Any, measure: str | Utility = "NDCG@10", *,
    qid: Any = None, docid: Any = None, baseline: str | None = None, vary: Vary | None = None,
    within: float | None = None, falling: bool = True, effort: int = BOXES,
    convention: str | Convention = "default",
) -> tuple[Verdict, ...]:  # fmt: skip
    """Every pair of systems, or each against the baseline, with certificates.

    vary      gains, discounts, both, or weights (of every place and grade); None: both
    within    also decide for all steps within this factor of the measure's
    falling   discounts must fall with the place; else they may be any, above zero
    effort    boxes that a proof for NDCG may ask
    """
    asked = wanted(measure)
    _check(within, effort)
    ranked = Ranked.of(systems, truth, named_convention(convention), qid, docid, asked.depth)
    scale = ranked.scale(asked)
    return verdicts_of(ranked, scale, baseline, vary, within, falling, effort)


def verdicts_of(
    ranked: Ranked, scale: Scale, baseline: str | None = None, vary: Vary | None = None,
    within: float | None = None, falling: bool = True, effort: int = BOXES,
    progress: Progress | None = None,
) -> tuple[Verdict, ...]:  # fmt: skip
    """The same of rankings that are read already; `progress` is told (done, total)."""
    _check(within, effort)
    if scale.normalized and scale.places > PLACES:
        raise MeasureError(
            f"{scale.text} looks at {scale.places} places; certificates go to {PLACES}: give a "
            "cut-off, such as NDCG@10."
        )
    names = ranked.names
    if baseline is not None and baseline not in names:
        raise DataError(f"there is no system {baseline!r}; there are {', '.join(names)}.")
    base = None if baseline is None else names.index(baseline)
    pairs = [p for p in combinations(range(len(names)), 2) if base is None or base in p]
    found = []
    for done, pair in enumerate(pairs):
        if progress is not None:
            progress(done, len(pairs))
        with single_threaded_blas():
            found.append(_verdict(ranked, scale, pair, vary, within, falling, effort))
    return tuple(found)


def _check(within: float | None, effort: int) -> None:
    if within is not None and not within >= 1:
        raise MeasureError(f"a factor is at least 1, and may be inf; got {within}.")
    if effort < 1:
        raise MeasureError(f"effort must be at least 1; got {effort}.")


def _verdict(
    ranked: Ranked, scale: Scale, pair: tuple[int, int], vary: Vary | None,
    within: float | None, falling: bool, effort: int,
) -> Verdict:  # fmt: skip
    values = ranked.values(scale).mean(axis=1)
    a, b = pair if values[pair[0]] >= values[pair[1]] else pair[::-1]
    case = case_of(ranked, scale, a, b, vary, falling)
    difference = float(values[a] - values[b])
    if not signs(np.array([difference]))[0]:
        difference, radius, anyhow = 0.0, Radius(1.0, 1.0, None), Outcome("undecided")
        nearest, inside = None, None if within is None else Outcome("undecided")
    else:
        judge = _Judge(ranked, case, a, b)
        radius = proofs.radius(case.problem(), effort)
        nearest = judge.witness(radius.point)
        anyhow = judge.anyhow(radius, effort)
        inside = None if within is None else judge.within(within, radius, anyhow, effort)
    return Verdict(
        scale, ranked.names[a], ranked.names[b], difference, len(ranked.queries), case.vary,
        falling, anyhow, radius.proven, radius.flips, nearest, case.more.sum(axis=0),
        within, inside,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Judge:
    """Makes outcomes of points, each checked by measuring the rankings again."""

    ranked: Ranked
    case: Case
    a: int
    b: int

    def witness(self, point: Point | None, free: bool = False) -> Witness | None:
        if point is None:
            return None
        utility = self.case.utility(*point, free)
        scale = replace(self.case.scale, utility=utility, unit=1.0)
        values = self.ranked.values(scale).mean(axis=1)
        difference = float(values[self.a] - values[self.b])
        return Witness(utility, difference) if difference < 0 else None

    def outcome(self, state: State, point: Point | None, free: bool = False) -> Outcome:
        found = self.witness(point, free)
        return Outcome("undecided" if state == "flips" and found is None else state, found)

    def anyhow(self, radius: Radius, effort: int) -> Outcome:
        """With any steps; a turn that is near serves as well, unless some step of it is zero."""
        case = self.case
        positive = all((steps > 0).all() for steps in case.varied)
        if case.best is not None and radius.point is not None and positive:
            return self.outcome("flips", radius.point)
        if radius.proven == np.inf and positive:
            return Outcome("proven")
        return self.outcome(*proofs.anyhow(case.problem(free=True), effort), free=True)

    def within(self, factor: float, radius: Radius, anyhow: Outcome, effort: int) -> Outcome:
        if factor == np.inf:
            return anyhow
        if factor <= radius.proven:
            return Outcome("proven")
        if factor >= radius.flips:
            return self.outcome("flips", radius.point)
        return self.outcome(*proofs.decide(self.case.problem(), factor, effort))
