"""How far a project is, and its effort and agreement, as the statistics give them, for JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from firstpage.labeling.planning.tasks import listed
from firstpage.labeling.statistics.effort import effort_by, learning_curve, outliers
from firstpage.labeling.statistics.profiles import (
    AssessorProfile,
    assessor_profiles,
    query_profiles,
)
from firstpage.labeling.statistics.study import Study, adjusted_note, study
from firstpage.web.analysis.records import (
    any_answer,
    records,
    results,
    sittings,
    skipped,
    skipping_tasks,
)
from firstpage.web.store import assigning, projects, tasks, texts
from firstpage.web.store.assigning import effort_of
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project
from firstpage.web.store.tasks import TaskRow

STATES = ("open", "started", "done")


def progress(tx: Tx, project: Project) -> dict[str, Any]:
    """Return tasks by state and judgments so far: in all, by query, by assessor.

    `problems` says what the deal as it is leaves uncovered, `idle` who is present without a task,
    `not_judged` which queries are done and have no answer, since everything was skipped.
    """
    rows = tasks.of_project(tx, project.id)
    skipping = skipping_tasks(tx, project)
    skips = {task: sum(j.skipped for j in judged) for task, judged in skipping.items()}
    empty = {task for task, judged in skipping.items() if not any_answer(judged)}
    present = set(assigning.present_assessors(tx, project))
    names = {r["person"]: r["name"] for r in projects.members(tx, project)}
    by_query: dict[str, list[TaskRow]] = {
        row["key"]: [] for row in texts.of_project(tx, project.id)
    }
    titles = {row["key"]: row["text"] for row in texts.of_project(tx, project.id)}
    by_person: dict[int, list[TaskRow]] = {}
    for row in rows:
        by_query.setdefault(row.query_key, []).append(row)
        by_person.setdefault(row.person, []).append(row)
    not_judged = [
        key
        for key, mine in by_query.items()
        if (done := [row.id for row in mine if row.state == "done"]) and empty.issuperset(done)
    ]
    dealt = assigning.current_plan(tx, project) if rows else None
    return {
        "state": project.state,
        "all": _counted(rows, present, skips),
        "queries": [
            {"query": key, "text": titles.get(key, key), **_counted(mine, present, skips)}
            for key, mine in by_query.items()
        ],
        "assessors": [
            {
                "person": person, "name": names.get(person, f"deleted-{person}"),
                "departed": person not in present, **_counted(mine, present, skips),
            }
            for person, mine in by_person.items()
        ],
        "problems": [*_not_judged(not_judged), *([] if dealt is None else dealt.problems)],
        "not_judged": not_judged,
        "idle": [] if dealt is None else dealt.idle,
    }  # fmt: skip


def _not_judged(keys: Sequence[str]) -> list[str]:
    if not keys:
        return []
    return [
        f"Of {len(keys)} queries that are done, everything was skipped, so they have no truth: "
        f"{listed(map(repr, keys))}. Their assessors can still answer (Look back), or others "
        "judge them."
    ]


def _counted(
    rows: list[TaskRow], present: Collection[int], skips: Mapping[int, int]
) -> dict[str, Any]:
    """Count tasks that cover a query by their state, and abandoned ones apart.

    `judgments` are answers; `skipped_questions` have none.
    """
    skipped_questions = sum(skips.get(row.id, 0) for row in rows)
    covering = [row for row in rows if tasks.covers(row, present)]
    states = Counter(row.state for row in covering)
    skipped = sum(row.state == "skipped" for row in rows)
    remaining = 0.0
    for row in covering:
        if row.state in tasks.TO_DO:
            whole = effort_of(row.setting, row.tool, row.n).judgments
            remaining += max(1.0, whole - row.asked)
    return {
        "tasks": len(covering), **{state: states[state] for state in STATES}, "skipped": skipped,
        "abandoned": sum(tasks.abandoned(row, present) for row in rows) - skipped,
        "judgments": sum(row.asked for row in rows) - skipped_questions,
        "skipped_questions": skipped_questions, "expected_remaining": remaining,
    }  # fmt: skip


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
    tx: Tx, project: Project, symmetrize: bool = False, rounds: int = ROUNDS
) -> tuple[Study, list[AssessorProfile]]:
    """The paper's tables for this project, and everyone's part in them."""
    found = sittings(tx, project)
    rows, ends = records(tx, project, found), results(tx, project, found)
    whole = study(rows, ends, symmetrize=symmetrize, rounds=rounds)
    return whole, assessor_profiles(rows, ends)


def skipped_questions(tx: Tx, project: Project) -> int:
    """Return how many questions were skipped: they are in no statistic."""
    return skipped(sittings(tx, project))


def agreement(tx: Tx, project: Project, symmetrize: bool = False) -> dict[str, Any]:
    """The same for JSON."""
    whole, people = studied(tx, project, symmetrize)
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
