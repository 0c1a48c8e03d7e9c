"""Progress, effort and agreement of a project, for JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from firstpage.labeling.app.analysis.records import (
    any_answer,
    keys_by_query,
    records,
    results,
    skipped,
    skipping_tasks,
    task_judgments,
)
from firstpage.labeling.app.store import Project, TaskRow, assigning, projects, tasks, texts
from firstpage.labeling.app.store.assigning import predicted_query_effort
from firstpage.labeling.app.store.connect import Tx, iso
from firstpage.labeling.app.store.tables import events
from firstpage.labeling.app.store.tables import tasks as task_table
from firstpage.labeling.planning.tasks import format_names
from firstpage.labeling.session.implied import (
    ProbeCounts,
    QuestionCounts,
    probe_counts,
    question_counts,
)
from firstpage.labeling.statistics.effort import effort_by, learning_curve, outliers
from firstpage.labeling.statistics.intervals import Proportion
from firstpage.labeling.statistics.profiles import (
    AssessorProfile,
    assessor_profiles,
    query_profiles,
)
from firstpage.labeling.statistics.study import Study, adjusted_note, study

STATES = ("open", "started", "done")
PACE_DAYS = 7
MAX_DAYS = 3650  # a later end date is not an estimate


def progress(tx: Tx, project: Project) -> dict[str, Any]:
    """Return tasks by state and judgments so far: in total, by query and by assessor.

    `problems` are those of the current assignment, `idle` the present assessors without a task, and
    `not_judged` the queries that are done without an answer, since everything was skipped.
    """
    rows = tasks.of_project(tx, project.id)
    skipping = skipping_tasks(tx, project)
    skips = {task: sum(j.skipped for j in judgments) for task, judgments in skipping.items()}
    empty = {task for task, judgments in skipping.items() if not any_answer(judgments)}
    present = set(projects.present(tx, project.id, "assessor"))
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
        for key, query_tasks in by_query.items()
        if (done := [row.id for row in query_tasks if row.state == "done"])
        and empty.issuperset(done)
    ]
    plan = assigning.current_plan(tx, project) if rows else None
    everything = _counts(rows, present, skips)
    return {
        "state": project.state,
        "all": everything,
        "pace": pace(tx, project, everything["expected_remaining"]),
        "queries": [
            {"query": key, "text": titles.get(key, key), **_counts(query_tasks, present, skips)}
            for key, query_tasks in by_query.items()
        ],
        "assessors": [
            {
                "person": person,
                "name": names.get(person, f"deleted-{person}"),
                "departed": person not in present,
                **_counts(own_tasks, present, skips),
            }
            for person, own_tasks in by_person.items()
        ],
        "problems": [*_not_judged_problem(not_judged), *([] if plan is None else plan.problems)],
        "not_judged": not_judged,
        "idle": [] if plan is None else plan.idle,
    }


def _not_judged_problem(keys: Sequence[str]) -> list[str]:
    if not keys:
        return []
    return [
        f"In {len(keys)} finished queries every question was skipped, so they have no truth: "
        f"{format_names(map(repr, keys))}. Their assessors can still answer (Review), or others "
        "can judge them."
    ]


def _counts(
    rows: list[TaskRow], present: Collection[int], skips: Mapping[int, int]
) -> dict[str, Any]:
    """Count the tasks that cover a query by state, and the others separately.

    `skipped` tasks were returned, `abandoned` ones started by people who have left.  `judgments`
    are answers; `skipped_questions` have none.
    """
    skipped_questions = sum(skips.get(row.id, 0) for row in rows)
    covering = [row for row in rows if tasks.covers(row, present)]
    states = Counter(row.state for row in covering)
    skipped = sum(row.state == "skipped" for row in rows)
    remaining = 0.0
    for row in covering:
        if row.state in tasks.TO_DO:
            total = predicted_query_effort(row.setting, row.tool, row.n).judgments
            remaining += max(1.0, total - row.judgments)
    return {
        "tasks": len(covering),
        **{state: states[state] for state in STATES},
        "skipped": skipped,
        "abandoned": sum(tasks.abandoned(row, present) for row in rows) - skipped,
        "judgments": sum(row.judgments for row in rows) - skipped_questions,
        "skipped_questions": skipped_questions,
        "expected_remaining": remaining,
    }


ROUNDS = 400  # bootstrap samples
QUESTION = ("query", "assessor", "left", "right")
MAX_OUTLIERS = 50  # listed; all are counted


def effort(tx: Tx, project: Project) -> dict[str, Any]:
    """Return seconds, minutes and judgments by tool, assessor and query; outliers; learning."""
    tasks = task_judgments(tx, project)
    rows = records(tx, project, tasks)
    unusual = outliers(rows)
    report: dict[str, Any] = {
        by: {name: summary.to_dict() for name, summary in effort_by(rows, by).items()}
        for by in ("tool", "assessor", "query")
    }
    report["outliers"] = [
        {
            **{name: getattr(o.record, name) for name in QUESTION},
            "z": o.z,
            "seconds": o.record.active,
        }
        for o in unusual[:MAX_OUTLIERS]
    ]
    report["outlier_count"] = len(unusual)
    report["skipped"] = skipped(tasks)
    report["adjusted_note"] = adjusted_note(
        sum(summary["adjusted_times"] for summary in report["tool"].values())
    )
    report["learning"] = {
        tool: [{**vars(b), "seconds": b.seconds.to_dict()} for b in learning_curve(rows, tool)]
        for tool in project.tools
    }
    return nan_to_none(report)


def questions(tx: Tx, project: Project) -> dict[str, Any]:
    """Return how many pairs were asked, implied and pruned, and how probes were answered.

    Of the tools that compare documents or lists, over all tasks with an answer, in total and by
    assessor; `transitivity` is the fraction of probes that confirm what was implied.
    """
    keys = keys_by_query(tx, project)
    by_name: dict[str, tuple[QuestionCounts, ProbeCounts]] = {}
    for task in task_judgments(tx, project):
        if task.tool != "grades" and task.judgments:
            judgments = [judgment for judgment, _ in task.judgments]
            counts, probes = by_name.get(task.name, (QuestionCounts(), ProbeCounts()))
            by_name[task.name] = (
                counts + question_counts(keys[task.query_id], judgments),
                probes + probe_counts(keys[task.query_id], judgments),
            )
    total = (
        sum((counts for counts, _ in by_name.values()), QuestionCounts()),
        sum((probes for _, probes in by_name.values()), ProbeCounts()),
    )
    return nan_to_none(
        {
            "all": _question_record(*total),
            "assessors": [{"name": n, **_question_record(*c)} for n, c in by_name.items()],
        }
    )


def _question_record(counts: QuestionCounts, probes: ProbeCounts) -> dict[str, Any]:
    transitivity = Proportion(probes.confirmed, probes.total)
    return {**asdict(counts), "probes": asdict(probes), "transitivity": transitivity.to_dict()}


def pace(tx: Tx, project: Project, remaining: float) -> dict[str, Any]:
    """Return the answers per day of the last week, and when the remaining ones will be given.

    The days since the first answer of that week count; `end` is None without an answer, and
    where nothing remains.
    """
    now = datetime.fromisoformat(tx.now)
    start = iso(now - timedelta(days=PACE_DAYS))
    recent = tx.first(
        select(func.count().label("n"), func.min(events.c.recorded_at).label("first"))
        .select_from(events.join(task_table, task_table.c.id == events.c.task))
        .where(task_table.c.project == project.id, events.c.recorded_at >= start)
    )
    if recent is None or not recent["n"]:
        return {"per_day": 0.0, "end": None}
    days = max(1.0, (now - datetime.fromisoformat(recent["first"])) / timedelta(days=1))
    per_day = recent["n"] / days
    wait = remaining / per_day
    if not 0 < wait < MAX_DAYS or project.state != "open":
        return {"per_day": per_day, "end": None}
    return {"per_day": per_day, "end": iso(now + timedelta(days=wait))[:10]}


def project_study(
    tx: Tx, project: Project, symmetrize: bool = False, rounds: int = ROUNDS
) -> tuple[Study, list[AssessorProfile]]:
    """Return the study of the paper for this project, and a profile of each assessor."""
    tasks = task_judgments(tx, project)
    rows, labels = records(tx, project, tasks), results(tx, project, tasks)
    return study(rows, labels, symmetrize=symmetrize, rounds=rounds), assessor_profiles(
        rows, labels
    )


def study_tables(tx: Tx, project: Project) -> Any:
    """Return the tables of the paper for this project."""
    return project_study(tx, project)[0].tables()


def skipped_questions(tx: Tx, project: Project) -> int:
    """Return the number of skipped questions, which are in no statistic."""
    return skipped(task_judgments(tx, project))


def agreement(tx: Tx, project: Project, symmetrize: bool = False) -> dict[str, Any]:
    """Return the study and the profiles for JSON."""
    result, profiles = project_study(tx, project, symmetrize)
    return nan_to_none({**result.to_dict(), "assessors": [p.to_dict() for p in profiles]})


def disagreements(tx: Tx, project: Project, max_pairs: int = 5) -> dict[str, Any]:
    """Return queries with several assessors, the lowest agreement first, with disputed pairs."""
    tasks = task_judgments(tx, project)
    profiles = query_profiles(
        records(tx, project, tasks), results(tx, project, tasks), max_pairs=max_pairs
    )
    return nan_to_none({"queries": [profile.to_dict() for profile in profiles]})


def nan_to_none(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record for JSON, with None in place of NaN and infinity."""
    return {str(name): _nan_to_none(value) for name, value in record.items()}


def _nan_to_none(value: Any) -> Any:
    if isinstance(value, dict):
        return nan_to_none(value)
    if isinstance(value, list | tuple):
        return [_nan_to_none(v) for v in value]
    if isinstance(value, float) or hasattr(value, "dtype"):
        return float(value) if math.isfinite(value) else None
    return value
