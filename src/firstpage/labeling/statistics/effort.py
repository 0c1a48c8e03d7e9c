"""The effort of labeling: measured, as in Table 1 of Niu et al. 2012, and predicted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any, Literal

from firstpage.core import DataError
from firstpage.labeling.session.estimate import expected_questions
from firstpage.labeling.session.events import DEFAULT_STRATEGY
from firstpage.labeling.statistics.intervals import nan_to_none
from firstpage.labeling.statistics.records import Record, counted_records
from firstpage.labeling.strategies.registry import STRATEGY_OF

SECONDS_PER_JUDGMENT: Mapping[str, float] = {"pairs": 5.51, "grades": 13.87, "lists": 30.0}
"""Mean seconds per judgment by tool: Table 1 of the paper; 30 for lists is an assumption."""
OUTLIER_Z = 3.5  # modified z-score of an outlier (Iglewicz and Hoaglin 1993)
MIN_SECONDS = 0.05  # a time of 0 has no logarithm
By = Literal["tool", "assessor", "query"]


@dataclass(frozen=True)
class SampleSummary:
    """Mean, median and sample standard deviation; NaN where there are too few values."""

    mean: float
    median: float
    sd: float

    @classmethod
    def from_values(cls, values: Iterable[float]) -> SampleSummary:
        """Return the summary of these values."""
        sample = list(values)
        if not sample:
            return cls(math.nan, math.nan, math.nan)
        return cls(fmean(sample), median(sample), stdev(sample) if len(sample) > 1 else math.nan)

    def to_dict(self) -> dict[str, float | None]:
        """Return the summary for JSON; None in place of NaN."""
        return {name: nan_to_none(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Effort:
    """The effort of a set of judgments.

    A task is one query judged by one assessor with one tool.

    Attributes
    ----------
    judgments, tasks : int
        Numbers of judgments and of tasks.
    seconds : SampleSummary
        Active seconds per judgment.
    minutes : SampleSummary
        Active minutes per task.
    per_query : SampleSummary
        Judgments per task.
    active, paused, away : float
        Total seconds.
    adjusted : int
        Number of judgments whose times differ from those reported: they are in no time, and
        their tasks are not in `minutes`.
    """

    judgments: int
    tasks: int
    seconds: SampleSummary
    minutes: SampleSummary
    per_query: SampleSummary
    active: float
    paused: float
    away: float
    adjusted: int = 0

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> Effort:
        """Return the effort of the records that count: no repeats, gold questions or training."""
        rows = list(counted_records(records))
        timed = [r for r in rows if not r.adjusted]
        tasks: dict[tuple[str, str, str], list[Record]] = {}
        for r in rows:
            tasks.setdefault((r.query, r.assessor, r.tool), []).append(r)
        timed_tasks = [task for task in tasks.values() if not any(r.adjusted for r in task)]
        return cls(
            len(rows),
            len(tasks),
            SampleSummary.from_values(r.active for r in timed if r.active > 0),  # 0: not measured
            SampleSummary.from_values(sum(r.active for r in task) / 60 for task in timed_tasks),
            SampleSummary.from_values(len(task) for task in tasks.values()),
            math.fsum(r.active for r in timed),
            math.fsum(r.paused for r in timed),
            math.fsum(r.away for r in timed),
            len(rows) - len(timed),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the effort for JSON."""
        return {
            "judgments": self.judgments,
            "tasks": self.tasks,
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
    """A judgment with an unusual time; `z` is its modified z-score, negative if too fast."""

    record: Record
    z: float


@dataclass(frozen=True)
class QuestionBlock:
    """The judgments with numbers `first` to `last` of every assessor, together."""

    first: int
    last: int
    judgments: int
    seconds: SampleSummary


@dataclass(frozen=True)
class Prediction:
    """Expected effort: judgments per query and in total, minutes per query, hours in total."""

    per_query: float
    judgments: float
    minutes: float
    hours: float


def effort_by(records: Iterable[Record], by: By = "tool") -> dict[str, Effort]:
    """Return the effort per tool, assessor or query, sorted by name."""
    groups: dict[str, list[Record]] = {}
    for record in counted_records(records):
        groups.setdefault(getattr(record, by), []).append(record)
    return {name: Effort.from_records(groups[name]) for name in sorted(groups)}


def outliers(records: Iterable[Record], threshold: float = OUTLIER_Z) -> list[Outlier]:
    """Return judgments with unusual times, such as an interruption or a click without reading.

    The modified z-score .6745 (x - median) / MAD of log active seconds, by tool, must exceed
    `threshold` in absolute value.  There are none where more than half of the times are equal.
    The most extreme outlier comes first.
    """
    groups: dict[str, list[Record]] = {}
    for record in counted_records(records):
        if not record.adjusted:
            groups.setdefault(record.tool, []).append(record)
    scored = []
    for rows in groups.values():
        logs = [math.log(max(r.active, MIN_SECONDS)) for r in rows]
        center = median(logs)
        deviation = median(abs(x - center) for x in logs)
        if deviation > 0:
            scored += [
                Outlier(r, 0.6745 * (x - center) / deviation)
                for r, x in zip(rows, logs, strict=True)
            ]
    return sorted((o for o in scored if abs(o.z) > threshold), key=lambda o: -abs(o.z))


def learning_curve(records: Iterable[Record], tool: str, block: int = 20) -> list[QuestionBlock]:
    """Return seconds per judgment by judgment number, to see whether assessors become faster.

    Each assessor's judgments with a tool are numbered from 1, in order of `answered_at` (records
    without it in the given order), and split into blocks; a block joins all assessors.
    """
    if block < 1:
        raise DataError(f"block must be at least 1; got {block}.")
    assessors: dict[str, list[Record]] = {}
    for record in counted_records(records):
        if record.tool == tool:
            assessors.setdefault(record.assessor, []).append(record)
    times: dict[int, list[float]] = {}
    for rows in assessors.values():
        if all(r.answered_at is not None for r in rows):
            rows.sort(key=lambda r: r.answered_at or 0.0)
        for number, record in enumerate(rows):
            if not record.adjusted:
                times.setdefault(number // block, []).append(record.active)
    return [
        QuestionBlock(
            b * block + 1, (b + 1) * block, len(seconds), SampleSummary.from_values(seconds)
        )
        for b, seconds in sorted(times.items())
    ]


def predicted_effort(
    documents: int,
    k: int = 10,
    *,
    queries: int = 1,
    tool: str = "pairs",
    strategy: str = DEFAULT_STRATEGY,
    refine: int = 0,
    seconds: float | None = None,
    replicates: int = 1,
) -> Prediction:
    """Return the expected effort of labeling queries with this number of documents.

    The questions per query are those of the tool's strategy; with pairs, those of `strategy` plus
    `refine`.  `seconds` per judgment are by default those of the paper: 5.51 for pairs, 13.87 for
    grades; 30 for lists is an assumption.
    """
    if min(documents, k, queries, replicates) < 1:
        raise DataError("documents, k, queries and replicates must be at least 1.")
    if tool not in SECONDS_PER_JUDGMENT:
        raise DataError(f"tool must be one of {', '.join(SECONDS_PER_JUDGMENT)}; got {tool!r}.")
    each = SECONDS_PER_JUDGMENT[tool] if seconds is None else seconds
    questions = expected_questions(STRATEGY_OF.get(tool, strategy), documents, k)
    questions += refine if tool == "pairs" else 0
    total = questions * queries * replicates
    return Prediction(questions, total, questions * each / 60, total * each / 3600)
