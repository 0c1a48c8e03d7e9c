"""Effort and agreement of a project, as the statistics give them, for JSON."""

from __future__ import annotations

import math
from typing import Any

from firstpage.labeling.statistics.effort import effort_by, learning_curve, outliers
from firstpage.labeling.statistics.profiles import (
    AssessorProfile,
    assessor_profiles,
    query_profiles,
)
from firstpage.labeling.statistics.study import Study, adjusted_note, study
from firstpage.web.analysis.records import records, results, sittings, skipped
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project

ROUNDS = 400  # of a bootstrap that somebody waits for
MAX_OUTLIERS = 50  # listed; all are counted


def effort(tx: Tx, project: Project) -> dict[str, Any]:
    """Seconds, minutes and judgments, by tool, assessor and query; what is odd; who gets faster."""
    tasks = sittings(tx, project)
    rows = records(tx, project, tasks)
    odd = outliers(rows)
    found: dict[str, Any] = {
        by: {name: part.to_dict() for name, part in effort_by(rows, by).items()}
        for by in ("tool", "assessor", "query")
    }
    found["outliers"] = [
        {
            "query": o.record.query, "assessor": o.record.assessor, "left": o.record.left,
            "right": o.record.right, "seconds": o.record.active, "z": o.z,
        }
        for o in odd[:MAX_OUTLIERS]
    ]  # fmt: skip
    found["outlier_count"] = len(odd)
    found["skipped"] = skipped(tasks)
    found["adjusted_note"] = adjusted_note(
        sum(part["adjusted_times"] for part in found["tool"].values())
    )
    found["learning"] = {
        tool: [
            {
                "first": b.first, "last": b.last, "judgments": b.judgments,
                "seconds": b.seconds.to_dict(),
            }
            for b in learning_curve(rows, tool)
        ]
        for tool in project.tools
    }  # fmt: skip
    return finite(found)


def studied(
    tx: Tx, project: Project, symmetrise: bool = False, rounds: int = ROUNDS
) -> tuple[Study, list[AssessorProfile]]:
    """The paper's tables for this project, and everyone's part in them."""
    found = sittings(tx, project)
    rows, ends = records(tx, project, found), results(tx, project, found)
    whole = study(rows, ends, symmetrise=symmetrise, rounds=rounds)
    return whole, assessor_profiles(rows, ends)


def skipped_questions(tx: Tx, project: Project) -> int:
    """Return how many questions were skipped: they are in no statistic."""
    return skipped(sittings(tx, project))


def agreement(tx: Tx, project: Project, symmetrise: bool = False) -> dict[str, Any]:
    """The same for JSON."""
    whole, people = studied(tx, project, symmetrise)
    return finite({**whole.to_dict(), "assessors": [profile.to_dict() for profile in people]})


def disagreements(tx: Tx, project: Project, most: int = 5) -> dict[str, Any]:
    """Queries that several people judged, the least agreed first, with their disputed pairs."""
    found = sittings(tx, project)
    profiles = query_profiles(records(tx, project, found), results(tx, project, found), most=most)
    return finite({"queries": [profile.to_dict() for profile in profiles]})


def finite(found: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN: what is not defined is null."""
    return {str(name): _finite(value) for name, value in found.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return finite(value)
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) or hasattr(value, "dtype"):
        return float(value) if math.isfinite(value) else None
    return value
