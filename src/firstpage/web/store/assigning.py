"""Who judges what: tasks dealt out, and dealt again when somebody comes or goes."""

from __future__ import annotations

from firstpage.web.store import audit, tasks, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project


def give_all(tx: Tx, project: Project, person: Person) -> int:
    """Every query to one person, under the project's tool; for those who work alone."""
    have = {(t.query, t.tool) for t in tasks.of_person(tx, project, person.id)}
    count = 0
    for row in texts.of_project(tx, project.id):
        if (row["id"], project.tool) not in have:
            tasks.add(tx, project, row["id"], person.id, project.tool, 0, row["position"])
            count += 1
    audit.note(tx, "tasks given", person=person.id, project=project.id, tasks=count)
    return count
