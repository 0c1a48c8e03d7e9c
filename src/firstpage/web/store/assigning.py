"""Who judges what: tasks dealt out, and dealt again when somebody comes or goes.

The tasks in the database are the assignment; the engine's form is made from them when needed,
with people by their ids, which stay when names go.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, func, select

from firstpage.errors import DataError
from firstpage.labeling.events import Setting
from firstpage.labeling.planning.assignment import (
    Assignment,
    Task,
    join,
    leave,
    make_assignment,
    problems,
)
from firstpage.labeling.statistics.effort import Prediction, predicted_effort
from firstpage.web.store import audit, projects, tasks, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.sessions import settle
from firstpage.web.store.tables import spans
from firstpage.web.store.tables import tasks as task_table
from firstpage.web.store.tasks import TaskRow


@dataclass(frozen=True)
class Load:
    """What one person has to do."""

    person: int
    name: str
    tasks: int
    judgments: float
    hours: float


@dataclass(frozen=True)
class Plan:
    """Tasks as they are or would be, what is wrong with them, and what they cost."""

    assignment: Assignment
    problems: list[str]
    judgments: float
    hours: float
    loads: list[Load]


def plan(tx: Tx, project: Project) -> Plan:
    """What dealing out would give: anew where nobody has begun, else with newcomers added."""
    return _told(tx, project, _planned(tx, project))


def deal(tx: Tx, project: Project, by: Person) -> Plan:
    """Deal the open work out; what somebody has begun stays."""
    wanted = _planned(tx, project)
    _write(tx, project, wanted)
    audit.note(tx, "work dealt out", person=by.id, project=project.id, tasks=len(wanted))
    return _told(tx, project, wanted)


def leave_project(tx: Tx, project: Project, person: Person, by: Person) -> None:
    """Somebody who has left the project: open tasks go to the others."""
    now = current(tx, project)
    here = {row.person for row in tasks.of_project(tx, project.id)}
    if person.id not in here:
        return
    before = Assignment(
        now.queries, (*now.assessors, str(person.id)), now.tools, now.replicates, now.tasks,
        tuple(name for name in now.gone if name != str(person.id)),
    )  # fmt: skip
    after = leave(before, str(person.id), _fixed(tx, project))
    _write(tx, project, after)
    audit.note(tx, "open work passed on", person=by.id, project=project.id, who=person.id)


def hand_on(tx: Tx, row: TaskRow) -> None:
    """A query that somebody handed back goes to whoever has least to do and has not seen it."""
    project = projects.get(tx, row.project)
    everyone = tasks.of_project(tx, project.id)
    seen = {t.person for t in everyone if t.query == row.query}
    free = [p for p in _present(tx, project) if p not in seen]
    if not free:
        return
    load = {
        p: sum(t.person == p and t.state in ("open", "started") for t in everyone) for p in free
    }
    _add(
        tx, project, row.query, min(free, key=lambda p: (load[p], p)), row.tool, row.replicate,
        _last(tx, project) + 1,
    )  # fmt: skip


def work_alone(tx: Tx, project: Project, person: Person) -> None:
    """One person does it all: joins as assessor, gets every query; a draft with texts is opened."""
    if not projects.assesses(tx, project.id, person.id):
        projects.join(tx, project, person, "assessor", by=person)
    give_all(tx, project, person)
    if project.state == "draft" and texts.of_project(tx, project.id):
        projects.set_state(tx, project, "open", person)


def give_all(tx: Tx, project: Project, person: Person) -> int:
    """Every query to one person, under the project's tool; for those who work alone."""
    have = {(t.query, t.tool) for t in tasks.of_person(tx, project, person.id)}
    count = 0
    for row in texts.of_project(tx, project.id):
        if (row["id"], project.tool) not in have:
            _add(tx, project, row["id"], person.id, project.tool, 0, row["position"])
            count += 1
    audit.note(tx, "tasks given", person=person.id, project=project.id, tasks=count)
    return count


def current(tx: Tx, project: Project) -> Assignment:
    """The tasks as they are; queries stand in the order of work."""
    rows = tasks.of_project(tx, project.id)
    keys = dict.fromkeys(row.query_key for row in rows)
    keys |= dict.fromkeys(row["key"] for row in texts.of_project(tx, project.id))
    present = tuple(map(str, _present(tx, project)))
    others = dict.fromkeys(str(row.person) for row in rows if str(row.person) not in present)
    made = tuple(Task(r.query_key, str(r.person), r.tool, r.replicate) for r in rows)
    return Assignment(
        tuple(keys), present, project.tools, project.options["replicates"], made, tuple(others)
    )


def effort_of(setting: Setting, tool: str, n: int, seconds: float | None = None) -> Prediction:
    """What to expect of one query of n documents."""
    return predicted_effort(
        n, setting.k, tool=tool, strategy=setting.strategy, refine=setting.refine, seconds=seconds
    )


def _planned(tx: Tx, project: Project) -> Assignment:
    keys = [row["key"] for row in texts.of_project(tx, project.id)]
    people = [str(p) for p in _present(tx, project)]
    if not keys:
        raise DataError("there are no queries yet; import some first.")
    if not people:
        raise DataError("there are no assessors yet; invite some first.")
    fixed = _fixed(tx, project)
    if not fixed:
        return make_assignment(
            keys, people, folds=project.options["folds"], tools=project.tools,
            replicates=project.options["replicates"], seed=project.setting.seed,
        )  # fmt: skip
    now = current(tx, project)
    idle = [p for p in people if not any(t.assessor == p for t in now.tasks)]
    working = tuple(p for p in now.assessors if p not in idle)
    found = Assignment(now.queries, working, now.tools, now.replicates, now.tasks, now.gone)
    for person in idle:
        found = join(found, person, fixed)
    return found


def _told(tx: Tx, project: Project, found: Assignment) -> Plan:
    sizes = {row["key"]: row["n"] for row in texts.of_project(tx, project.id)}
    names = {str(row["person"]): row["name"] for row in projects.members(tx, project)}
    asked: dict[str, list[tuple[float, float]]] = {name: [] for name in found.assessors}
    for task in found.tasks:
        each = effort_of(project.setting, task.tool, sizes[task.query], project.options["seconds"])
        asked.setdefault(task.assessor, []).append((each.judgments, each.hours))
    loads = [
        Load(int(p), names.get(p, p), len(c), sum(a for a, _ in c), sum(b for _, b in c))
        for p, c in asked.items()
    ]
    return Plan(
        found, problems(found), sum(x.judgments for x in loads), sum(x.hours for x in loads), loads
    )


def _write(tx: Tx, project: Project, wanted: Assignment) -> None:
    """Open tasks that are not wanted go; those wanted and absent come."""
    rows = {(r.query_key, str(r.person), r.tool): r for r in tasks.of_project(tx, project.id)}
    keep = {(t.query, t.assessor, t.tool) for t in wanted.tasks}
    gone = [r.id for key, r in rows.items() if key not in keep and r.state == "open"]
    for start in range(0, len(gone), 500):
        part = gone[start : start + 500]
        tx.run(delete(spans).where(spans.c.task.in_(part)))
        tx.run(delete(task_table).where(task_table.c.id.in_(part)))
    queries = {row["key"]: row["id"] for row in texts.of_project(tx, project.id)}
    place = {key: i for i, key in enumerate(wanted.queries)}
    for task in wanted.tasks:
        if (task.query, task.assessor, task.tool) not in rows:
            _add(
                tx, project, queries[task.query], int(task.assessor), task.tool, task.replicate,
                place[task.query],
            )  # fmt: skip


def _add(tx: Tx, project: Project, query: int, person: int, tool: str, *place: int) -> None:
    """A task; one with nothing to ask is done at once."""
    settle(tx, tasks.add(tx, project, query, person, tool, *place))


def _fixed(tx: Tx, project: Project) -> list[tuple[str, str]]:
    """What was begun, finished or handed back."""
    rows = tasks.of_project(tx, project.id)
    return [(r.query_key, str(r.person)) for r in rows if r.state != "open"]


def _present(tx: Tx, project: Project) -> list[int]:
    rows = projects.members(tx, project, "assessor")
    return [row["person"] for row in rows if row["left"] is None]


def _last(tx: Tx, project: Project) -> int:
    last = select(func.max(task_table.c.position)).where(task_table.c.project == project.id)
    return int(tx.value(last) or 0)
