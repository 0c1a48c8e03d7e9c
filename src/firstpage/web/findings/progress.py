"""How far a project is, by query and by assessor."""

from __future__ import annotations

from collections import Counter
from typing import Any

from firstpage.web.store import projects, tasks
from firstpage.web.store.assigning import effort_of
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project
from firstpage.web.store.tasks import TaskRow

STATES = ("open", "started", "done", "skipped")


def progress(tx: Tx, project: Project) -> dict[str, Any]:
    """Tasks by state and judgments so far: in all, by query, by assessor."""
    rows = tasks.of_project(tx, project.id)
    names = {r["person"]: r["name"] for r in projects.members(tx, project)}
    by_query: dict[str, list[TaskRow]] = {}
    by_person: dict[int, list[TaskRow]] = {}
    for row in rows:
        by_query.setdefault(row.query_key, []).append(row)
        by_person.setdefault(row.person, []).append(row)
    return {
        "state": project.state,
        "all": _counted(rows),
        "queries": [
            {"query": key, "text": found[0].query_text, **_counted(found)}
            for key, found in by_query.items()
        ],
        "assessors": [
            {"person": person, "name": names.get(person, f"deleted-{person}"), **_counted(found)}
            for person, found in by_person.items()
        ],
    }


def _counted(rows: list[TaskRow]) -> dict[str, Any]:
    states = Counter(row.state for row in rows)
    left = 0.0
    for row in rows:
        if row.state in ("open", "started"):
            whole = effort_of(row.setting, row.tool, row.n).judgments
            left += max(1.0, whole - row.asked)
    return {
        "tasks": len(rows), **{state: states[state] for state in STATES},
        "judgments": sum(row.asked for row in rows), "expected_left": left,
    }  # fmt: skip
