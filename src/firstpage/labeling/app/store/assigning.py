"""Assignment of queries to assessors, and reassignment when people join or leave.

The tasks in the database are the assignment; the planner's form is built from them when needed,
with people by their ids, which remain when names are deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import delete, func, select

from firstpage.core import DataError, plain_text
from firstpage.labeling.app.store import audit, projects, tasks, texts, webhooks
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.sessions import finish_if_trivial
from firstpage.labeling.app.store.tables import spans
from firstpage.labeling.app.store.tables import tasks as task_table
from firstpage.labeling.app.store.tasks import TaskRow
from firstpage.labeling.planning.assignment import (
    Assignment,
    Task,
    make_assignment,
    problems,
    rebalance,
)
from firstpage.labeling.session.events import Setting
from firstpage.labeling.statistics.effort import Prediction, predicted_effort

BATCH = 500  # tasks per DELETE statement


@dataclass(frozen=True)
class Workload:
    """The tasks of one person; `done` and `started` count those that are finished or started."""

    person: int
    name: str
    tasks: int
    judgments: float
    hours: float
    done: int = 0
    started: int = 0
    departed: bool = False


@dataclass(frozen=True)
class AssignmentPlan:
    """An actual or proposed assignment, its problems, and its expected effort.

    `idle` are the names of present assessors without a task.
    """

    assignment: Assignment
    problems: list[str]
    judgments: float
    hours: float
    workloads: list[Workload]
    idle: list[str]


@dataclass(frozen=True)
class AssignmentOverview:
    """The current assignment (None before the first), and the one that assigning would give.

    `reason` says why nothing can be assigned; empty where it can.
    """

    current: AssignmentPlan | None
    next: AssignmentPlan | None
    reason: str = ""

    @property
    def changes(self) -> bool:
        """Whether assigning again would add or remove a task."""
        if self.current is None or self.next is None:
            return self.next is not None
        return set(self.current.assignment.tasks) != set(self.next.assignment.tasks)

    @property
    def moves(self) -> list[tuple[str, int, int]]:
        """The name, the present and the proposed number of tasks of every assessor."""
        before = (
            {load.person: load.tasks for load in self.current.workloads} if self.current else {}
        )
        after = self.next.workloads if self.next else []
        return [(load.name, before.get(load.person, 0), load.tasks) for load in after]


def overview(tx: Tx, project: Project) -> AssignmentOverview:
    """Return the current and the proposed assignment; nothing is written."""
    current = current_plan(tx, project) if tasks.of_project(tx, project.id) else None
    try:
        return AssignmentOverview(current, plan(tx, project))
    except DataError as error:
        return AssignmentOverview(current, None, plain_text(error))


def current_plan(tx: Tx, project: Project) -> AssignmentPlan:
    """Return the current assignment with its problems and effort."""
    return _plan_of(tx, project, current_assignment(tx, project))


def plan(tx: Tx, project: Project) -> AssignmentPlan:
    """Return the proposed assignment: a new one if no task is started, else of the open tasks."""
    return _plan_of(tx, project, _planned(tx, project))


def assign_tasks(tx: Tx, project: Project, by: Person) -> AssignmentPlan:
    """Assign the open queries; finished tasks, and those started by present people, stay."""
    planned = _planned(tx, project)
    _write(tx, project, planned)
    audit.note(tx, "queries assigned", by, project, tasks=len(planned))
    return _plan_of(tx, project, planned)


def reassign_open_tasks(tx: Tx, project: Project, person: Person, by: Person) -> None:
    """Reassign the open and started tasks of a person who has left.

    Their judgments stay in the log, and their finished tasks stay theirs.
    """
    rows = tasks.of_person(tx, project, person.id)
    ended_tasks = [row for row in rows if row.state in tasks.TO_DO]
    if ended_tasks:
        reassign_uncovered(tx, project, person, by)
        webhooks.queries_finished(tx, ended_tasks)


def reassign_uncovered(tx: Tx, project: Project, person: Person, by: Person) -> None:
    """Reassign what is uncovered since this person left; a closed project stays as it is."""
    if project.state == "closed":
        return
    _write(tx, project, rebalance(current_assignment(tx, project), _fixed(tx, project)))
    audit.note(tx, "open queries reassigned", by, project, account=person.id)


def reassign_query(tx: Tx, row: TaskRow) -> None:
    """Assign a returned query to the least loaded assessor who has not seen it."""
    project = projects.get(tx, row.project)
    rows = tasks.of_project(tx, project.id)
    seen = {t.person for t in rows if t.query == row.query}
    candidates = [p for p in projects.present(tx, project.id, "assessor") if p not in seen]
    if not candidates:
        return
    load = {
        p: sum(t.person == p and t.state in ("open", "started") for t in rows) for p in candidates
    }
    person, position = min(candidates, key=lambda p: (load[p], p)), _last(tx, project) + 1
    add_task(tx, project, row.query, person, row.tool, row.replicate, position)


def assign_to_single_person(tx: Tx, project: Project, person: Person) -> None:
    """Make one person the assessor of every query; a draft that has queries is opened."""
    if not projects.is_assessor(tx, project.id, person.id):
        projects.join(tx, project, person, "assessor", by=person)
    assign_all_queries(tx, project, person)
    if project.state == "draft" and texts.of_project(tx, project.id):
        projects.set_state(tx, project, "open", person)


def assign_all_queries(tx: Tx, project: Project, person: Person) -> int:
    """Assign every query to one person with each of the tools; return how many tasks are new."""
    assigned = {(t.query, t.tool) for t in tasks.of_person(tx, project, person.id)}
    count = 0
    for tool in project.tools:
        for row in texts.of_project(tx, project.id):
            if (row["id"], tool) not in assigned:
                add_task(tx, project, row["id"], person.id, tool, 0, row["position"])
                count += 1
    audit.note(tx, "all queries assigned", person, project, tasks=count)
    return count


def current_assignment(tx: Tx, project: Project) -> Assignment:
    """Return the tasks as an assignment, with the queries in working order.

    Finished tasks, and open or started tasks of people who are present, cover their query.  Tasks
    that were returned, or started by people who have left, are abandoned; tasks that people who
    have left did not start are dropped.
    """
    rows = tasks.of_project(tx, project.id)
    keys = dict.fromkeys(row.query_key for row in rows)
    keys |= dict.fromkeys(row["key"] for row in texts.of_project(tx, project.id))
    present = projects.present(tx, project.id, "assessor")
    departed = dict.fromkeys(str(row.person) for row in rows if row.person not in present)
    return Assignment(
        tuple(keys),
        tuple(map(str, present)),
        project.tools,
        project.options.replicates,
        tuple(_task(row) for row in rows if tasks.covers(row, present)),
        tuple(departed),
        tuple(_task(row) for row in rows if tasks.abandoned(row, present)),
    )


def _task(row: TaskRow) -> Task:
    return Task(row.query_key, str(row.person), row.tool, row.replicate)


def predicted_query_effort(
    setting: Setting, tool: str, n: int, seconds: float | None = None
) -> Prediction:
    """Return the expected effort of one query of n documents."""
    return predicted_effort(
        n, setting.k, tool=tool, strategy=setting.strategy, refine=setting.refine, seconds=seconds
    )


def _planned(tx: Tx, project: Project) -> Assignment:
    keys = [row["key"] for row in texts.of_project(tx, project.id)]
    people = [str(p) for p in projects.present(tx, project.id, "assessor")]
    if not keys:
        raise DataError("there are no queries yet; import some first.")
    if not people:
        raise DataError("there are no assessors yet; invite some first.")
    if all(row.state == "open" for row in tasks.of_project(tx, project.id)):
        return make_assignment(
            keys,
            people,
            folds=project.options.folds,
            tools=project.tools,
            replicates=project.options.replicates,
            seed=project.setting.seed,
        )
    return rebalance(current_assignment(tx, project), _fixed(tx, project))


def _plan_of(tx: Tx, project: Project, assignment: Assignment) -> AssignmentPlan:
    """Return an assignment with its problems and the workload of every person."""
    sizes = {row["key"]: row["n"] for row in texts.of_project(tx, project.id)}
    names = _names(tx, project)
    states = {
        (r.query_key, str(r.person), r.tool): r.state for r in tasks.of_project(tx, project.id)
    }
    effort: dict[str, list[tuple[float, float]]] = {name: [] for name in assignment.assessors}
    counts: Counter[tuple[str, str]] = Counter()
    for task in assignment.tasks:
        expected = predicted_query_effort(
            project.setting, task.tool, sizes[task.query], project.options.seconds_per_judgment
        )
        effort.setdefault(task.assessor, []).append((expected.judgments, expected.hours))
        counts[task.assessor, states.get((task.query, task.assessor, task.tool), "open")] += 1
    workloads = [
        Workload(
            int(p),
            names.get(p, p),
            len(c),
            sum(a for a, _ in c),
            sum(b for _, b in c),
            counts[p, "done"],
            counts[p, "started"],
            p in assignment.departed,
        )
        for p, c in effort.items()
    ]
    return AssignmentPlan(
        assignment,
        problems(_named(assignment, names)),
        sum(x.judgments for x in workloads),
        sum(x.hours for x in workloads),
        workloads,
        [x.name for x in workloads if not x.tasks],
    )


def _names(tx: Tx, project: Project) -> dict[str, str]:
    """Return display names by id; people with the same name have their logins added."""
    accounts = {
        str(row["person"]): (row["name"], row["login"]) for row in projects.members(tx, project)
    }
    count = Counter(name for name, _ in accounts.values())
    return {
        person: name if count[name] == 1 else f"{name} ({login})"
        for person, (name, login) in accounts.items()
    }


def _named(assignment: Assignment, names: Mapping[str, str]) -> Assignment:
    """Return the assignment with display names in place of ids."""

    def renamed(rows: Sequence[Task]) -> tuple[Task, ...]:
        return tuple(replace(t, assessor=names.get(t.assessor, t.assessor)) for t in rows)

    return replace(
        assignment,
        assessors=tuple(names.get(p, p) for p in assignment.assessors),
        departed=tuple(names.get(p, p) for p in assignment.departed),
        tasks=renamed(assignment.tasks),
        abandoned=renamed(assignment.abandoned),
    )


def _write(tx: Tx, project: Project, planned: Assignment) -> None:
    """Delete open tasks that are not planned, and add planned tasks that do not exist."""
    rows = {(r.query_key, str(r.person), r.tool): r for r in tasks.of_project(tx, project.id)}
    keys = {(t.query, t.assessor, t.tool) for t in planned.tasks}
    ended_tasks = [r for key, r in rows.items() if key not in keys and r.state == "open"]
    dropped = [r.id for r in ended_tasks]
    for start in range(0, len(dropped), BATCH):
        batch = dropped[start : start + BATCH]
        tx.run(delete(spans).where(spans.c.task.in_(batch)))
        tx.run(delete(task_table).where(task_table.c.id.in_(batch)))
    queries = {row["key"]: row["id"] for row in texts.of_project(tx, project.id)}
    position = {key: i for i, key in enumerate(planned.queries)}
    for task in planned.tasks:
        if (task.query, task.assessor, task.tool) not in rows:
            query, person = queries[task.query], int(task.assessor)
            number = position[task.query]
            add_task(tx, project, query, person, task.tool, task.replicate, number)
    webhooks.queries_finished(tx, ended_tasks)


def add_task(
    tx: Tx, project: Project, query: int, person: int, tool: str, replicate: int, position: int
) -> None:
    """Add a task; one that has nothing to ask is finished at once."""
    finish_if_trivial(tx, tasks.add(tx, project, query, person, tool, replicate, position))


def _fixed(tx: Tx, project: Project) -> list[tuple[str, str]]:
    """Return the query and person of every covering task that is started or finished."""
    present = projects.present(tx, project.id, "assessor")
    rows = tasks.of_project(tx, project.id)
    return [
        (r.query_key, str(r.person)) for r in rows if r.state != "open" and tasks.covers(r, present)
    ]


def _last(tx: Tx, project: Project) -> int:
    last = select(func.max(task_table.c.position)).where(task_table.c.project == project.id)
    return int(tx.value(last) or 0)
