"""How far a project is, by query and by assessor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from firstpage.web.store import assigning, projects, tasks, texts
from firstpage.web.store.assigning import effort_of
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project
from firstpage.web.store.tasks import TaskRow

STATES = ("open", "started", "done")


def progress(tx: Tx, project: Project) -> dict[str, Any]:
    """Return tasks by state and judgments so far: in all, by query, by assessor.

    `problems` says what the deal as it is leaves uncovered, `idle` who is present without a task.
    """
    rows = tasks.of_project(tx, project.id)
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
    dealt = assigning.current_plan(tx, project) if rows else None
    return {
        "state": project.state,
        "all": _counted(rows, present),
        "queries": [
            {"query": key, "text": titles.get(key, key), **_counted(mine, present)}
            for key, mine in by_query.items()
        ],
        "assessors": [
            {
                "person": person, "name": names.get(person, f"deleted-{person}"),
                "departed": person not in present, **_counted(mine, present),
            }
            for person, mine in by_person.items()
        ],
        "problems": [] if dealt is None else dealt.problems,
        "idle": [] if dealt is None else dealt.idle,
    }  # fmt: skip


def _counted(rows: list[TaskRow], present: Collection[int]) -> dict[str, Any]:
    """Count tasks that cover a query by their state, and abandoned ones apart."""
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
        "left_behind": sum(tasks.abandoned(row, present) for row in rows) - skipped,
        "judgments": sum(row.asked for row in rows), "expected_left": remaining,
    }  # fmt: skip
