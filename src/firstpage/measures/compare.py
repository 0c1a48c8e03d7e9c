"""compare(): several systems on the same queries, and whether they differ."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np

from firstpage.data.ids import Ids
from firstpage.errors import DataError, FirstpageWarning, MeasureError
from firstpage.measures.evaluate import DEFAULT_MEASURES, Evaluation, evaluate
from firstpage.measures.measure import Convention, Queries, Ties, resolve_convention
from firstpage.measures.registry import MeasureLike, as_list
from firstpage.measures.significance import (
    Correction,
    Test,
    adjust_p_values,
    effect_size,
    mean_intervals,
    p_value,
    randomized_tukey,
)
from firstpage.types import Floats

SHOWN = 20  # differences that are printed
TIE_TOLERANCE = 1e-9  # values of two systems closer than this count as equal


@dataclass(frozen=True)
class Difference:
    """One system against another on one measure; positive means that `system` has more."""

    measure: str
    system: str
    against: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float
    p_tukey: float
    effect: float
    wins: int
    ties: int
    losses: int

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Systems side by side: means, differences with p-values, queries that differ most."""

    evaluations: tuple[Evaluation, ...]
    baseline: str | None
    test: Test
    correction: Correction
    rounds: int
    seed: int

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.evaluations)

    @property
    def texts(self) -> tuple[str, ...]:
        return self.evaluations[0].texts

    @property
    def queries(self) -> Ids:
        return self.evaluations[0].queries

    def values(self, text: str) -> Floats:
        """Per-query values of a measure, a row a system."""
        return np.array([e.per_query(text) for e in self.evaluations])

    def lower_is_better(self, text: str) -> bool:
        return self.evaluations[0].measures[self.texts.index(text)].lower_is_better

    def best(self, text: str) -> str:
        """The system with the best mean."""
        means = self.values(text).mean(axis=1)
        at = np.argmin(means) if self.lower_is_better(text) else np.argmax(means)
        return self.systems[int(at)]

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every system against the baseline, or every pair if there is none; by measure.

        p-values are corrected within a measure, over all its comparisons.
        """
        found: list[Difference] = []
        for text in self.texts:
            found += self._of_measure(text)
        return tuple(found)

    def _pairs(self) -> list[tuple[int, int]]:
        names = self.systems
        if self.baseline is not None:
            base = names.index(self.baseline)
            return [(i, base) for i in range(len(names)) if i != base]
        return [(j, i) for i in range(len(names)) for j in range(i + 1, len(names))]

    def _of_measure(self, text: str) -> list[Difference]:
        values = self.values(text)
        pairs = self._pairs()
        gaps = [values[a] - values[b] for a, b in pairs]
        p = np.array([p_value(gap, self.test, self.rounds, self.seed) for gap in gaps])
        raised = adjust_p_values(p, self.correction)
        tukey = randomized_tukey(values, min(self.rounds, 20_000), self.seed)
        worse = -1 if self.lower_is_better(text) else 1
        found = []
        for at, ((a, b), gap) in enumerate(zip(pairs, gaps, strict=True)):
            wins, losses = (
                int((worse * gap > TIE_TOLERANCE).sum()),
                int((worse * gap < -TIE_TOLERANCE).sum()),
            )
            found.append(
                Difference(
                    text, self.systems[a], self.systems[b], float(gap.mean()),
                    *mean_intervals(gap[None], self.seed)[0],
                    float(p[at]), float(raised[at]), float(tukey[a, b]), effect_size(gap),
                    wins, len(gap) - wins - losses, losses,
                )
            )  # fmt: skip
        return found

    def most_different(self, text: str, a: str, b: str, count: int = 5) -> list[tuple[str, float]]:
        """Queries with the largest |a - b|, as (query, difference)."""
        names = self.systems
        values = self.values(text)
        gap = values[names.index(a)] - values[names.index(b)]
        order = np.argsort(-np.abs(gap), kind="stable")[:count]
        return [(self.queries[int(q)], float(gap[q])) for q in order if abs(gap[q]) > TIE_TOLERANCE]

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "systems": {e.name: e.means for e in self.evaluations},
            "queries": len(self.queries),
            "convention": self.evaluations[0].convention.name,
            "test": self.test,
            "correction": self.correction,
            "baseline": self.baseline,
            "differences": [d.to_dict() for d in self.differences],
            "most_different": [
                {
                    "measure": d.measure,
                    "system": d.system,
                    "against": d.against,
                    "queries": [
                        {"query": q, "difference": gap}
                        for q, gap in self.most_different(d.measure, d.system, d.against)
                    ],
                }
                for d in self.differences
            ],
        }

    def __str__(self) -> str:
        wide = max(len(name) for name in self.systems)
        lines = [f"{len(self.queries)} queries"]
        for e in self.evaluations:
            means = "  ".join(f"{text} {e[text]:.4f}" for text in self.texts)
            lines.append(f"{e.name:<{wide}}  {means}")
        lines += [
            f"{d.measure}: {d.system} - {d.against} = {d.difference:+.4f}, p = {d.p_corrected:.4f}"
            for d in self.differences[:SHOWN]
        ]
        if len(self.differences) > SHOWN:
            lines.append(f".. and {len(self.differences) - SHOWN} more, in `differences`")
        return "\n".join(lines)

    __repr__ = __str__


def compare(
    systems: Mapping[str, Any] | Iterable[Any],
    truth: Any,
    *,
    qid: Any = None,
    docid: Any = None,
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    convention: str | Convention = "default",
    baseline: str | None = None,
    test: Test = "randomization",
    correction: Correction = "holm",
    rounds: int = 100_000,
    k: int | None = None,
    ties: Ties | None = None,
    rel: float | None = None,
    queries: Queries | None = None,
    depth: int | None = None,
    seed: int = 0,
    ci: bool = True,
) -> Comparison:
    """Measure several systems on one truth and test their differences.

    `systems` maps names to what `evaluate` takes (scores or runs); without a `baseline` every
    pair is compared.  The other arguments are those of `evaluate`.
    """
    named = dict(systems) if isinstance(systems, Mapping) else _named(systems)
    if len(named) < 2:
        raise DataError("there must be at least two systems to compare.")
    if baseline is not None and baseline not in named:
        raise DataError(f"there is no system {baseline!r}; there are {', '.join(named)}.")
    if test not in get_args(Test):
        raise MeasureError(f"test must be {', '.join(get_args(Test))}; got {test!r}.")
    adjust_p_values(np.ones(2), correction)  # refuses an unknown one before the work
    texts = as_list(measures)
    how = resolve_convention(
        convention, ties=ties, rel=rel, queries=queries, depth=depth, seed=seed
    )
    found = tuple(
        evaluate(
            system, truth, qid=qid, docid=docid, measures=texts, convention=how, k=k, ci=ci,
            name=name,
        )
        for name, system in named.items()
    )  # fmt: skip
    if rounds < 1:
        raise MeasureError(f"rounds must be at least 1, and is {rounds}.")
    return Comparison(_aligned(found), baseline, test, correction, rounds, how.seed)


def _named(systems: Iterable[Any]) -> dict[str, Any]:
    """Names for unnamed systems: a run's tag, else a number; repeated ones get a number."""
    named: dict[str, Any] = {}
    for number, system in enumerate(systems, 1):
        name = getattr(system, "name", "") or f"system {number}"
        while name in named:
            name = f"{name} ({number})"
        named[name] = system
    return named


def _aligned(found: tuple[Evaluation, ...]) -> tuple[Evaluation, ...]:
    """On the queries that every evaluation has: they differ where only a run's count."""
    common = set(found[0].queries)
    for evaluation in found[1:]:
        common &= set(evaluation.queries)
    if not common:
        raise DataError("the systems share no judged query.")
    if any(len(e.queries) > len(common) for e in found):
        warnings.warn(
            f"not all systems have all queries; they are compared on the {len(common)} that they "
            "share (queries='judged' counts missing ones as 0).",
            FirstpageWarning,
            stacklevel=3,
        )
    aligned = []
    for e in found:
        keep = np.array([query in common for query in e.queries])
        if keep.all():
            aligned.append(e)
            continue
        picked = np.flatnonzero(keep)
        values = np.ascontiguousarray(e.values[:, picked])
        aligned.append(replace(e, queries=e.queries[picked], values=values, intervals={}))
    order = list(aligned[0].queries)
    assert all(list(e.queries) == order for e in aligned[1:]), "queries are in qrels order"
    return tuple(aligned)
