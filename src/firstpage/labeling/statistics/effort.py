"""What labeling costs: Table 1 of Niu et al. 2012 for one's own judgments, and beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any, Literal

from firstpage.errors import DataError
from firstpage.labeling.session.estimate import expected_questions
from firstpage.labeling.session.events import DEFAULT_STRATEGY
from firstpage.labeling.statistics.intervals import defined
from firstpage.labeling.statistics.records import Record, judged
from firstpage.labeling.strategies.registry import STRATEGY_OF

SECONDS_PER_JUDGMENT: Mapping[str, float] = {"pairs": 5.51, "grades": 13.87, "lists": 30.0}
"""Seconds a judgment in Table 1 of the paper; of two lists nobody has published any."""
FAR = 3.5  # modified z of an outlier (Iglewicz and Hoaglin 1993)
SHORTEST = 0.05  # seconds; a time of 0 has no logarithm
By = Literal["tool", "assessor", "query"]


@dataclass(frozen=True)
class SampleSummary:
    """Mean, median and standard deviation (of a sample); NaN where there are too few values."""

    mean: float
    median: float
    sd: float

    @classmethod
    def from_values(cls, values: Iterable[float]) -> SampleSummary:
        found = list(values)
        if not found:
            return cls(math.nan, math.nan, math.nan)
        return cls(fmean(found), median(found), stdev(found) if len(found) > 1 else math.nan)

    def to_dict(self) -> dict[str, float | None]:
        return {name: defined(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Effort:
    """The cost of some judgments.

    A sitting is one query by one assessor with one tool.  `seconds` is the active time of a
    judgment (over judgments), `minutes` that of a sitting and `per_query` its number of
    judgments (over sittings); `active`, `paused` and `away` are seconds in all.  `adjusted`
    judgments, whose times were not as reported, are in none of the times, nor are their sittings
    in `minutes`.
    """

    judgments: int
    sittings: int
    seconds: SampleSummary
    minutes: SampleSummary
    per_query: SampleSummary
    active: float
    paused: float
    away: float
    adjusted: int = 0

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> Effort:
        """Over the judgments that count: repeats, gold and training are left out."""
        rows = list(judged(records))
        timed = [r for r in rows if not r.adjusted]
        sittings: dict[tuple[str, str, str], list[Record]] = {}
        for r in rows:
            sittings.setdefault((r.query, r.assessor, r.tool), []).append(r)
        whole = [own for own in sittings.values() if not any(r.adjusted for r in own)]
        return cls(
            len(rows),
            len(sittings),
            SampleSummary.from_values(
                r.active for r in timed if r.active > 0
            ),  # 0: nobody measured it
            SampleSummary.from_values(sum(r.active for r in own) / 60 for own in whole),
            SampleSummary.from_values(len(own) for own in sittings.values()),
            math.fsum(r.active for r in timed),
            math.fsum(r.paused for r in timed),
            math.fsum(r.away for r in timed),
            len(rows) - len(timed),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "judgments": self.judgments,
            "sittings": self.sittings,
            "seconds_per_judgment": self.seconds.to_dict(),
            "minutes_per_query": self.minutes.to_dict(),
            "judgments_per_query": self.per_query.to_dict(),
            "active_seconds": self.active,
            "paused_seconds": self.paused,
            "away_seconds": self.away,
            "adjusted_times": self.adjusted,
        }


@dataclass(frozen=True)
class Outlier:
    """A judgment whose time is far from the others of its tool; `z` below 0 is too fast."""

    record: Record
    z: float


@dataclass(frozen=True)
class Block:
    """Judgments number `first` to `last` of each assessor, taken together."""

    first: int
    last: int
    judgments: int
    seconds: SampleSummary


@dataclass(frozen=True)
class Prediction:
    """Expected effort: judgments a query and in all, minutes a query, hours in all."""

    per_query: float
    judgments: float
    minutes: float
    hours: float


def effort_by(records: Iterable[Record], by: By = "tool") -> dict[str, Effort]:
    """Effort by tool, assessor or query, by name."""
    parts: dict[str, list[Record]] = {}
    for record in judged(records):
        parts.setdefault(getattr(record, by), []).append(record)
    return {name: Effort.from_records(parts[name]) for name in sorted(parts)}


def outliers(records: Iterable[Record], far: float = FAR) -> list[Outlier]:
    """Judgments by whose time something went wrong: a nap, or a click without a look.

    By tool, the modified z .6745 (x - median) / MAD of the logarithm of active seconds, beyond
    `far` either way; none where more than half of all times are the same.  The farthest first.
    """
    parts: dict[str, list[Record]] = {}
    for record in judged(records):
        if not record.adjusted:
            parts.setdefault(record.tool, []).append(record)
    found = []
    for rows in parts.values():
        logs = [math.log(max(r.active, SHORTEST)) for r in rows]
        middle = median(logs)
        spread = median(abs(x - middle) for x in logs)
        if spread > 0:
            found += [
                Outlier(r, 0.6745 * (x - middle) / spread) for r, x in zip(rows, logs, strict=True)
            ]
    return sorted((o for o in found if abs(o.z) > far), key=lambda o: -abs(o.z))


def learning_curve(records: Iterable[Record], tool: str, block: int = 20) -> list[Block]:
    """Seconds by judgment number: are people getting faster?

    Each assessor's judgments with a tool are numbered from 1 on, in order of `answered_at`
    (records without it in the order given), and cut in blocks; a block joins all assessors.
    """
    if block < 1:
        raise DataError(f"block must be a whole number from 1 on; got {block}.")
    people: dict[str, list[Record]] = {}
    for record in judged(records):
        if record.tool == tool:
            people.setdefault(record.assessor, []).append(record)
    times: dict[int, list[float]] = {}
    for rows in people.values():
        if all(r.answered_at is not None for r in rows):
            rows.sort(key=lambda r: r.answered_at or 0.0)
        for number, record in enumerate(rows):
            if not record.adjusted:
                times.setdefault(number // block, []).append(record.active)
    return [
        Block(b * block + 1, (b + 1) * block, len(found), SampleSummary.from_values(found))
        for b, found in sorted(times.items())
    ]


def predicted_effort(
    documents: int, k: int = 10, *, queries: int = 1, tool: str = "pairs",
    strategy: str = DEFAULT_STRATEGY, refine: int = 0, seconds: float | None = None,
    replicates: int = 1,
) -> Prediction:  # fmt: skip
    """What to expect before anybody starts.

    Questions a query are those of the tool's own strategy, or with pairs of `strategy`, and
    `refine` more.  `seconds` a judgment are the paper's if not given: 5.51 for pairs, 13.87 for
    grades; for two lists a guess of 30.
    """
    if min(documents, k, queries, replicates) < 1:
        raise DataError("documents, k, queries and replicates must be whole numbers from 1 on.")
    if tool not in SECONDS_PER_JUDGMENT:
        raise DataError(f"a tool is one of {', '.join(SECONDS_PER_JUDGMENT)}; got {tool!r}.")
    each = SECONDS_PER_JUDGMENT[tool] if seconds is None else seconds
    asked = expected_questions(STRATEGY_OF.get(tool, strategy), documents, k)
    asked += refine if tool == "pairs" else 0
    total = asked * queries * replicates
    return Prediction(asked, total, asked * each / 60, total * each / 3600)
